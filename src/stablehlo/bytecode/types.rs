//! Types of `builtin` and `vhlo`.

use std::sync::Arc;

use super::cursor::{Cursor, Read};
use super::pool::Pool;
use crate::ifrt::{DType, Shape};
use crate::stablehlo::attribute::Attribute;
use crate::stablehlo::{
    DynamicTensorType, Quantization, QuantizationParameters, QuantizedTensorType, TensorType, Type,
};

/// The most dimensions a tensor may have, as in the text reader.
const MAX_RANK: usize = 64;

/// The size that stands for a dynamic dimension.
const DYNAMIC: i64 = i64::MIN;

/// A type, of a value or not.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum MlirType {
    /// The type of a value.
    Value(Type),
    /// An element type.
    Element(DType),
    /// A quantized element type.
    Quantized(Arc<Quantization>),
    /// `tf32`, the type of a precision.
    Tf32,
    /// A list of this many `index`: the type of a layout.
    Layout(usize),
    /// `(types) -> types`.
    Function(Vec<Type>, Vec<Type>),
    /// `index`.
    Index,
    /// `none`.
    None,
}

impl MlirType {
    /// The type of a value, or what this is instead.
    pub(super) fn into_value_type(self) -> Result<Type, String> {
        match self {
            Self::Value(ty) => Ok(ty),
            Self::Element(dtype) => Err(format!("a value of the element type {dtype}")),
            Self::Quantized(element) => Err(format!("a value of the element type {element}")),
            Self::Tf32 => Err("a value of the element type tf32".to_owned()),
            Self::Layout(_) => Err("a list of the type index".to_owned()),
            Self::Function(..) => Err("a value of a function type".to_owned()),
            Self::Index => Err("a value of the type index".to_owned()),
            Self::None => Err("a value of the type none".to_owned()),
        }
    }

    /// About how many bytes a copy takes.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Value(ty) => weight(ty),
            Self::Function(operands, results) => operands.iter().chain(results).map(weight).sum(),
            Self::Element(_)
            | Self::Quantized(_)
            | Self::Tf32
            | Self::Layout(_)
            | Self::Index
            | Self::None => 0,
        }
    }
}

/// About how many bytes a copy of `ty` takes.
pub(super) fn weight(ty: &Type) -> usize {
    let inside = match ty {
        Type::Tensor(ty) => size_of_val(ty.shape.dims()),
        Type::Quantized(ty) => size_of_val(ty.shape().dims()),
        Type::Dynamic(ty) => size_of_val(&*ty.dims) + size_of_val(&*ty.bounds),
        Type::Token => 0,
        Type::Future(types) | Type::Tuple(types) => {
            types.iter().map(weight).fold(0, usize::saturating_add)
        }
    };
    inside.saturating_add(size_of::<Type>())
}

impl<'a> Pool<'a> {
    /// A type of dialect `builtin`.
    pub(super) fn builtin_type(&mut self, cursor: &mut Cursor<'a>) -> Read<MlirType> {
        let at = cursor.offset();
        Ok(match cursor.varint()? {
            0 => {
                let bits = cursor.varint()?;
                let dtype = integer(bits >> 2, bits & 3 == 2);
                MlirType::Element(dtype.ok_or_else(|| {
                    cursor.not_known(at, format!("an integer type of {} bits", bits >> 2))
                })?)
            }
            1 => MlirType::Index,
            2 => MlirType::Function(self.value_types(cursor)?, self.value_types(cursor)?),
            3 => MlirType::Element(DType::BF16),
            4 => MlirType::Element(DType::F16),
            5 => MlirType::Element(DType::F32),
            6 => MlirType::Element(DType::F64),
            9 => self.complex(cursor)?,
            12 => MlirType::None,
            13 => self.tensor(cursor, Box::default())?,
            14 => return Err(cursor.not_known(at, "the encoding of a tensor type")),
            15 => MlirType::Value(Type::Tuple(self.value_types(cursor)?)),
            code => return Err(cursor.not_known(at, format!("the builtin type of code {code}"))),
        })
    }

    /// A type of dialect `vhlo`.
    pub(super) fn vhlo_type(&mut self, cursor: &mut Cursor<'a>) -> Read<MlirType> {
        let at = cursor.offset();
        let code = cursor.varint()?;
        if let Some(dtype) = vhlo_element(code) {
            return Ok(MlirType::Element(dtype));
        }
        Ok(match code {
            1 => self.complex(cursor)?,
            8 => MlirType::Function(self.value_types(cursor)?, self.value_types(cursor)?),
            9 => MlirType::Index,
            20 => self.tensor(cursor, Box::default())?,
            21 => {
                let bounds = self.bounds(cursor)?;
                self.tensor(cursor, bounds)?
            }
            22 => MlirType::Value(Type::Token),
            23 => MlirType::Value(Type::Tuple(self.value_types(cursor)?)),
            24 => self.quantized(cursor, false)?,
            25 => return Err(cursor.not_known(at, "a tensor type without a rank")),
            30 => self.quantized(cursor, true)?,
            33 => MlirType::None,
            34 => MlirType::Tf32,
            42 => MlirType::Value(Type::Future(self.value_types(cursor)?)),
            _ => return Err(cursor.not_known(at, format!("the vhlo type of code {code}"))),
        })
    }

    fn value_types(&mut self, cursor: &mut Cursor<'a>) -> Read<Vec<Type>> {
        cursor.list(|cursor| self.value_type(cursor))
    }

    fn element(&mut self, cursor: &mut Cursor<'a>) -> Read<DType> {
        let at = cursor.offset();
        match self.mlir_type(cursor)? {
            MlirType::Element(dtype) => Ok(dtype),
            _ => Err(cursor.not_known(at, "an element type of this kind")),
        }
    }

    fn complex(&mut self, cursor: &mut Cursor<'a>) -> Read<MlirType> {
        let at = cursor.offset();
        match self.element(cursor)? {
            DType::F32 => Ok(MlirType::Element(DType::C64)),
            DType::F64 => Ok(MlirType::Element(DType::C128)),
            other => Err(cursor.malformed(at, format!("there is no complex type of {other}"))),
        }
    }

    /// The greatest sizes of dynamic dimensions, which encode a tensor type.
    fn bounds(&mut self, cursor: &mut Cursor<'a>) -> Read<Box<[Option<usize>]>> {
        let at = cursor.offset();
        let Attribute::Fields { fields, .. } = self.attribute(cursor)? else {
            return Err(cursor.not_known(at, "the encoding of a tensor type"));
        };
        match fields.as_slice() {
            [(name, Attribute::Integers(bounds))] if name == "bounds" => {
                bounds.iter().map(|&bound| size(cursor, at, bound)).collect()
            }
            _ => Err(cursor.not_known(at, "the encoding of a tensor type")),
        }
    }

    /// Dimensions, then the element type.
    fn tensor(&mut self, cursor: &mut Cursor<'a>, bounds: Box<[Option<usize>]>) -> Read<MlirType> {
        let at = cursor.offset();
        let dims = cursor.list(Cursor::signed_varint)?;
        let element = self.mlir_type(cursor)?;
        if dims.len() > MAX_RANK {
            return Err(
                cursor.not_known(at, format!("a tensor of more than {MAX_RANK} dimensions"))
            );
        }
        let sizes = dims.iter().map(|&dim| size(cursor, at, dim)).collect::<Read<Vec<_>>>()?;
        if !DynamicTensorType::are_bounds(&sizes, &bounds) {
            return Err(
                cursor.malformed(at, "only dynamic dimensions have bounds, each one or none")
            );
        }
        let Some(dims) = sizes.iter().copied().collect::<Option<Vec<usize>>>() else {
            let MlirType::Element(dtype) = element else {
                return Err(cursor.not_known(at, "an element type of this kind"));
            };
            let ty = DynamicTensorType { dtype, dims: sizes.into(), bounds };
            return Ok(MlirType::Value(Type::Dynamic(ty)));
        };
        if let (MlirType::Index, &[size]) = (&element, dims.as_slice()) {
            return Ok(MlirType::Layout(size));
        }
        let shape = Shape::new(dims).map_err(|error| cursor.malformed(at, error.to_string()))?;
        Ok(MlirType::Value(match element {
            MlirType::Element(dtype) => Type::Tensor(TensorType::new(dtype, shape)),
            MlirType::Quantized(quantization) => {
                let ty = QuantizedTensorType::new(quantization, shape);
                Type::Quantized(ty.map_err(|message| cursor.malformed(at, message))?)
            }
            _ => return Err(cursor.not_known(at, "an element type of this kind")),
        }))
    }

    /// Flags, the types of what is stored and expressed, then the parameters: one pair, or a
    /// dimension and lists of them, with the range of what is stored before the lists.
    fn quantized(&mut self, cursor: &mut Cursor<'a>, is_per_axis: bool) -> Read<MlirType> {
        /// The flag of signed storage, and the only one.
        const SIGNED: u64 = 1;
        let at = cursor.offset();
        let flags = cursor.varint()?;
        let storage = self.element(cursor)?;
        let expressed = self.element(cursor)?;
        let (dimension, parameters, range) = if is_per_axis {
            let dimension = usize::try_from(cursor.varint()?).unwrap_or(usize::MAX);
            let range = (cursor.signed_varint()?, cursor.signed_varint()?);
            let scales = cursor.list(Cursor::signed_varint)?;
            let zero_points = cursor.list(Cursor::signed_varint)?;
            if scales.len() != zero_points.len() {
                return Err(cursor.malformed(at, "scales and zero points differ in number (C9)"));
            }
            let parameters = scales.into_iter().zip(zero_points).map(parameters).collect();
            (Some(dimension), parameters, range)
        } else {
            let one = (cursor.signed_varint()?, cursor.signed_varint()?);
            let range = (cursor.signed_varint()?, cursor.signed_varint()?);
            (None, vec![parameters(one)], range)
        };
        let storage = if flags & SIGNED == 0 { unsigned(storage) } else { storage };
        let quantization =
            Quantization::new(storage, Some(range), expressed, dimension, parameters);
        match quantization {
            Ok(quantization) => Ok(MlirType::Quantized(Arc::new(quantization))),
            Err(message) => Err(cursor.malformed(at, message)),
        }
    }
}

/// The size of a dimension; `None` when it is dynamic.
fn size(cursor: &Cursor<'_>, at: usize, dim: i64) -> Read<Option<usize>> {
    match usize::try_from(dim) {
        Ok(dim) => Ok(Some(dim)),
        Err(_) if dim == DYNAMIC => Ok(None),
        Err(_) => Err(cursor.malformed(at, format!("a dimension of size {dim}"))),
    }
}

/// The bits of a scale, and a zero point.
fn parameters((scale, zero_point): (i64, i64)) -> QuantizationParameters {
    QuantizationParameters::new(f64::from_bits(scale.cast_unsigned()), zero_point)
}

/// The unsigned type as wide as `dtype`.
fn unsigned(dtype: DType) -> DType {
    u64::try_from(dtype.bit_width()).ok().and_then(|bits| integer(bits, true)).unwrap_or(dtype)
}

/// The integer type of `bits`.
fn integer(bits: u64, is_unsigned: bool) -> Option<DType> {
    Some(match (bits, is_unsigned) {
        (1, false) => DType::Bool,
        (2, false) => DType::S2,
        (4, false) => DType::S4,
        (8, false) => DType::S8,
        (16, false) => DType::S16,
        (32, false) => DType::S32,
        (64, false) => DType::S64,
        (2, true) => DType::U2,
        (4, true) => DType::U4,
        (8, true) => DType::U8,
        (16, true) => DType::U16,
        (32, true) => DType::U32,
        (64, true) => DType::U64,
        _ => return None,
    })
}

/// The element type whose code in `vhlo` is `code`.
fn vhlo_element(code: u64) -> Option<DType> {
    Some(match code {
        0 => DType::Bool,
        2 => DType::BF16,
        3 => DType::F16,
        4 => DType::F32,
        5 => DType::F64,
        6 => DType::F8E4M3FN,
        7 => DType::F8E5M2,
        10 => DType::S4,
        11 => DType::S8,
        12 => DType::S16,
        13 => DType::S32,
        14 => DType::S64,
        15 => DType::U4,
        16 => DType::U8,
        17 => DType::U16,
        18 => DType::U32,
        19 => DType::U64,
        27 => DType::F8E4M3FNUZ,
        28 => DType::F8E5M2FNUZ,
        29 => DType::F8E4M3B11FNUZ,
        31 => DType::S2,
        32 => DType::U2,
        35 => DType::F8E4M3,
        36 => DType::F8E3M4,
        37 => DType::F4E2M1FN,
        38 => DType::F6E2M3FN,
        39 => DType::F6E3M2FN,
        40 => DType::F8E8M0FNU,
        _ => return None,
    })
}
