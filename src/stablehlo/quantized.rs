//! Quantized tensors: whole numbers that stand for floats, `f = (i - zero_point) * scale`.
//!
//! A value of these types exists only if it satisfies the specification's constraints on quantized
//! types, which messages name as `(C5)`.

use std::fmt;
use std::sync::Arc;

use super::print::decimal;
use crate::ifrt::{DType, Shape};

/// The type of a tensor of quantized numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QuantizedTensorType {
    quantization: Arc<Quantization>,
    shape: Shape,
}

/// A quantized element type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Quantization {
    /// The type of the whole numbers.
    storage: DType,
    /// The least and the greatest number stored.
    range: (i64, i64),
    /// The type of the floats.
    expressed: DType,
    /// The dimension along which the parameters differ; without one there are the same for all.
    dimension: Option<usize>,
    parameters: Vec<QuantizationParameters>,
}

/// How whole numbers become floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QuantizationParameters {
    /// The bits of the scale, a 64-bit float, so that types can be compared.
    scale_bits: u64,
    /// The number that stands for zero.
    pub zero_point: i64,
}

impl QuantizationParameters {
    /// These parameters.
    pub fn new(scale: f64, zero_point: i64) -> Self {
        Self { scale_bits: scale.to_bits(), zero_point }
    }

    /// What one step of the whole numbers is worth.
    pub fn scale(self) -> f64 {
        f64::from_bits(self.scale_bits)
    }
}

impl Quantization {
    /// A quantized element type; without a range, that of the storage type is taken.
    ///
    /// # Errors
    /// The violated constraint.
    pub fn new(
        storage: DType,
        range: Option<(i64, i64)>,
        expressed: DType,
        dimension: Option<usize>,
        parameters: Vec<QuantizationParameters>,
    ) -> Result<Self, String> {
        let Some(widest) = full_range(storage) else {
            return Err(format!("numbers cannot be stored as {storage} (C1)"));
        };
        if !expressed.is_float() {
            return Err(format!("{expressed} is no type of floats (C4)"));
        }
        let (least, greatest) = range.unwrap_or(widest);
        if least < widest.0 || least >= greatest || greatest > widest.1 {
            return Err(format!("{least}:{greatest} is no range of {storage} (C3)"));
        }
        for parameters in &parameters {
            let (scale, zero_point) = (parameters.scale(), parameters.zero_point);
            if scale <= 0.0 || scale.is_nan() {
                return Err(format!("the scale {scale} must be greater than 0 (C5)"));
            }
            if scale.is_infinite() {
                return Err("a scale must be finite (C6)".to_owned());
            }
            if !(least..=greatest).contains(&zero_point) {
                return Err(format!(
                    "the zero point {zero_point} is not in {least}:{greatest} (C7)"
                ));
            }
        }
        if dimension.is_none() && parameters.len() != 1 {
            return Err(format!("{} scales need a dimension (C10)", parameters.len()));
        }
        Ok(Self { storage, range: (least, greatest), expressed, dimension, parameters })
    }

    /// The type of the whole numbers.
    pub fn storage(&self) -> DType {
        self.storage
    }

    /// The least and the greatest number stored.
    pub fn range(&self) -> (i64, i64) {
        self.range
    }

    /// The dimension along which the parameters differ; without one there are the same for all.
    pub fn dimension(&self) -> Option<usize> {
        self.dimension
    }

    /// One for all elements, or one for each index of the dimension.
    pub fn parameters(&self) -> &[QuantizationParameters] {
        &self.parameters
    }

    /// The type of the floats.
    pub fn expressed(&self) -> DType {
        self.expressed
    }
}

impl QuantizedTensorType {
    /// A tensor type.
    ///
    /// # Errors
    /// The violated constraint.
    pub fn new(quantization: Arc<Quantization>, shape: Shape) -> Result<Self, String> {
        if let Some(dimension) = quantization.dimension {
            let Some(&size) = shape.dims().get(dimension) else {
                return Err(format!("there is no dimension {dimension} (C12)"));
            };
            let scales = quantization.parameters.len();
            if size != scales {
                return Err(format!("dimension {dimension} of {size} has {scales} scales (C13)"));
            }
        }
        Ok(Self { quantization, shape })
    }

    /// The element type.
    pub fn quantization(&self) -> &Quantization {
        &self.quantization
    }

    /// The type of a tensor of this shape with the same elements; `None` when the parameters do
    /// not fit the shape.
    pub(super) fn of_shape(&self, shape: Shape) -> Option<Self> {
        Self::new(Arc::clone(&self.quantization), shape).ok()
    }

    /// The dimensions.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }
}

/// The least and the greatest number of an integer type; `None` for others, and for those that
/// do not fit.
fn full_range(dtype: DType) -> Option<(i64, i64)> {
    let bits = dtype.bit_width();
    if dtype.is_signed_integer() {
        Some((i64::MIN >> (64 - bits), i64::MAX >> (64 - bits)))
    } else if dtype.is_unsigned_integer() && bits < 64 {
        Some((0, (1 << bits) - 1))
    } else {
        None
    }
}

impl fmt::Display for Quantization {
    /// As MLIR prints it: `!quant.uniform<u8<1:255>:f32:0, {0.5:128, 0.25:1}>`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let storage = self.storage.name();
        write!(
            f,
            "!quant.uniform<{}",
            storage
                .strip_prefix("ui")
                .map_or_else(|| storage.to_owned(), |bits| format!("u{bits}"),)
        )?;
        if full_range(self.storage) != Some(self.range) {
            write!(f, "<{}:{}>", self.range.0, self.range.1)?;
        }
        write!(f, ":{}", self.expressed)?;
        if let Some(dimension) = self.dimension {
            write!(f, ":{dimension}")?;
        }
        f.write_str(if self.dimension.is_some() { ", {" } else { ", " })?;
        for (i, parameters) in self.parameters.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{}", decimal(parameters.scale()))?;
            if parameters.zero_point != 0 {
                write!(f, ":{}", parameters.zero_point)?;
            }
        }
        f.write_str(if self.dimension.is_some() { "}>" } else { ">" })
    }
}

impl fmt::Display for QuantizedTensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tensor<")?;
        for dim in self.shape.dims() {
            write!(f, "{dim}x")?;
        }
        write!(f, "{}>", self.quantization)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn per_tensor(
        storage: DType,
        range: Option<(i64, i64)>,
        scale: f64,
        zero: i64,
    ) -> Result<Quantization, String> {
        Quantization::new(
            storage,
            range,
            DType::F32,
            None,
            vec![QuantizationParameters::new(scale, zero)],
        )
    }

    #[test]
    fn prints_what_is_not_the_default() {
        let shown = |quantization: Result<Quantization, String>| quantization.unwrap().to_string();
        assert_eq!(shown(per_tensor(DType::S8, None, 0.5, 0)), "!quant.uniform<i8:f32, 5.0e-1>");
        assert_eq!(
            shown(per_tensor(DType::U8, Some((1, 255)), 2.0, 128)),
            "!quant.uniform<u8<1:255>:f32, 2.0:128>"
        );
        assert_eq!(
            shown(per_tensor(DType::S8, Some((-128, 127)), 1.0, -1)),
            "!quant.uniform<i8:f32, 1.0:-1>"
        );
    }

    #[test]
    fn constraints_are_named() {
        let refused = |quantization: Result<Quantization, String>, constraint: &str| {
            let message = quantization.unwrap_err();
            assert!(message.ends_with(constraint), "{message}");
        };
        refused(per_tensor(DType::F32, None, 1.0, 0), "(C1)");
        refused(per_tensor(DType::S8, Some((-129, 127)), 1.0, 0), "(C3)");
        refused(per_tensor(DType::S4, Some((0, 8)), 1.0, 0), "(C3)");
        refused(per_tensor(DType::S8, Some((3, 3)), 1.0, 3), "(C3)");
        refused(per_tensor(DType::S8, None, 0.0, 0), "(C5)");
        refused(per_tensor(DType::S8, None, f64::NAN, 0), "(C5)");
        refused(per_tensor(DType::S8, None, f64::INFINITY, 0), "(C6)");
        refused(per_tensor(DType::U8, None, 1.0, -1), "(C7)");
        let two = vec![QuantizationParameters::new(1.0, 0); 2];
        refused(Quantization::new(DType::S8, None, DType::S8, None, two.clone()), "(C4)");
        refused(Quantization::new(DType::S8, None, DType::F32, None, two.clone()), "(C10)");
        let per_axis = Quantization::new(DType::S8, None, DType::F32, Some(1), two).unwrap();
        let per_axis = Arc::new(per_axis);
        let tensor = |dims: &[usize]| {
            let shape = Shape::new(dims.to_vec()).unwrap();
            QuantizedTensorType::new(Arc::clone(&per_axis), shape)
        };
        assert!(tensor(&[2]).unwrap_err().ends_with("(C12)"));
        assert!(tensor(&[2, 3]).unwrap_err().ends_with("(C13)"));
        assert_eq!(
            tensor(&[3, 2]).unwrap().to_string(),
            "tensor<3x2x!quant.uniform<i8:f32:1, {1.0,1.0}>>"
        );
    }
}
