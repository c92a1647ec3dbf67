//! Attributes of `builtin` and `vhlo`.

use super::cursor::{Cursor, Read};
use super::pool::Pool;
use super::types::MlirType;
use crate::ifrt::DType;
use crate::stablehlo::attribute::Attribute;
use crate::stablehlo::number::float_from_bits;
use crate::stablehlo::{Literal, Type};

/// The enumerations of `vhlo`: the code of the attribute, the name of the enumeration in
/// StableHLO, and its cases in the order of their numbers.
const ENUMERATIONS: &[(u64, &str, &[&str])] = &[
    (3, "comparison_direction", &["EQ", "NE", "GE", "GT", "LE", "LT"]),
    (4, "comparison_type", &["NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"]),
    (7, "fft_type", &["FFT", "IFFT", "RFFT", "IRFFT"]),
    (11, "precision", &["DEFAULT", "HIGH", "HIGHEST"]),
    (12, "rng_algorithm", &["DEFAULT", "THREE_FRY", "PHILOX"]),
    (13, "rng_distribution", &["", "UNIFORM", "NORMAL"]),
    (16, "transpose", &["TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"]),
    (19, "result_accuracy_mode", &["DEFAULT", "HIGHEST", "TOLERANCE"]),
];

impl<'a> Pool<'a> {
    /// An attribute of dialect `builtin`.
    pub(super) fn builtin_attribute(&mut self, cursor: &mut Cursor<'a>) -> Read<Attribute> {
        let at = cursor.offset();
        Ok(match cursor.varint()? {
            0 => self.array(cursor)?,
            1 => self.dictionary(cursor)?,
            2 => Attribute::String(self.string(cursor)?),
            3 => {
                let text = self.string(cursor)?;
                self.mlir_type(cursor)?;
                Attribute::String(text)
            }
            4 => Attribute::Symbol(self.string_attribute(cursor)?),
            5 => self.symbol_reference(cursor)?,
            6 => self.type_attribute(cursor)?,
            7 => Attribute::Unit,
            8 => self.integer(cursor)?,
            9 => self.float(cursor)?,
            // A location, of which the operations keep the line and column.
            10..=15 | 22 => {
                cursor.take(cursor.remaining())?;
                Attribute::location()
            }
            16 => self.resource(cursor)?,
            17 => self.dense_array(cursor)?,
            18 => self.elements(cursor)?,
            19 => return Err(cursor.not_known(at, "a constant of strings")),
            20 => return Err(cursor.not_known(at, "a sparse constant")),
            code => {
                return Err(cursor.not_known(at, format!("the builtin attribute of code {code}")));
            }
        })
    }

    /// An attribute of dialect `vhlo`.
    pub(super) fn vhlo_attribute(&mut self, cursor: &mut Cursor<'a>) -> Read<Attribute> {
        let at = cursor.offset();
        let code = cursor.varint()?;
        if let Some(&(_, family, cases)) = ENUMERATIONS.iter().find(|&&(found, ..)| found == code) {
            let case = cursor.index(cases.len(), family)?;
            let case = cases.get(case).copied().unwrap_or_default().to_owned();
            return Ok(Attribute::Case { family: family.to_owned(), case });
        }
        Ok(match code {
            1 => self.array(cursor)?,
            2 => match cursor.varint()? {
                0 => Attribute::Bool(false),
                1 => Attribute::Bool(true),
                other => return Err(cursor.malformed(at, format!("{other} is not a truth value"))),
            },
            // How a custom call is called: a number in StableHLO.
            5 => Attribute::Integer(i128::from(cursor.varint()?), Some(DType::S32)),
            6 => self.dictionary(cursor)?,
            8 => self.float(cursor)?,
            9 => self.integer(cursor)?,
            10 => {
                let output = cursor.list(Cursor::signed_varint)?;
                let operand = cursor.signed_varint()?;
                let inside = cursor.list(Cursor::signed_varint)?;
                let numbers = |numbers: Vec<i64>| {
                    let numbers = numbers.into_iter();
                    Attribute::Array(numbers.map(|n| Attribute::Integer(n.into(), None)).collect())
                };
                let fields = vec![
                    ("output_tuple_indices".to_owned(), numbers(output)),
                    ("operand_index".to_owned(), Attribute::Integer(operand.into(), None)),
                    ("operand_tuple_indices".to_owned(), numbers(inside)),
                ];
                Attribute::Fields { name: "stablehlo.output_operand_alias".to_owned(), fields }
            }
            14 => Attribute::String(self.string(cursor)?),
            15 => self.elements(cursor)?,
            17 => self.type_attribute(cursor)?,
            18 => {
                let bounds = Attribute::Integers(cursor.list(Cursor::signed_varint)?);
                let fields = vec![("bounds".to_owned(), bounds)];
                Attribute::Fields { name: "stablehlo.type_extensions".to_owned(), fields }
            }
            20 => self.result_accuracy(cursor)?,
            _ => match self.mesh_attribute(code, cursor)? {
                Some(attribute) => attribute,
                None => {
                    return Err(cursor.not_known(at, format!("the vhlo attribute of code {code}")));
                }
            },
        })
    }

    fn array(&mut self, cursor: &mut Cursor<'a>) -> Read<Attribute> {
        cursor
            .list(|cursor| {
                self.pay(cursor, size_of::<Attribute>())?;
                self.attribute(cursor)
            })
            .map(Attribute::Array)
    }

    fn dictionary(&mut self, cursor: &mut Cursor<'a>) -> Read<Attribute> {
        cursor
            .list(|cursor| {
                self.pay(cursor, size_of::<(String, Attribute)>())?;
                Ok((self.string_attribute(cursor)?, self.attribute(cursor)?))
            })
            .map(Attribute::Dictionary)
    }

    fn type_attribute(&mut self, cursor: &mut Cursor<'a>) -> Read<Attribute> {
        let at = cursor.offset();
        Ok(match self.mlir_type(cursor)? {
            MlirType::Value(ty) => Attribute::Type(ty),
            MlirType::Function(operands, results) => Attribute::FunctionType(operands, results),
            MlirType::Element(dtype) => Attribute::Opaque(dtype.name().to_owned()),
            MlirType::Index => Attribute::Opaque("index".to_owned()),
            MlirType::Tf32 => Attribute::Opaque("tf32".to_owned()),
            MlirType::Quantized(element) => Attribute::Opaque(element.to_string()),
            MlirType::Layout(_) => {
                return Err(cursor.not_known(at, "a list of the type index as an attribute"));
            }
            MlirType::None => Attribute::Opaque("none".to_owned()),
        })
    }

    /// A type, then the number: a byte if it has no more bits, else with a sign.
    fn integer(&mut self, cursor: &mut Cursor<'a>) -> Read<Attribute> {
        let at = cursor.offset();
        let ty = self.mlir_type(cursor)?;
        let (dtype, bits) = match ty {
            MlirType::Index => (None, 64),
            MlirType::Element(DType::Bool) => return Ok(Attribute::Bool(cursor.byte()? & 1 == 1)),
            MlirType::Element(dtype) if dtype.is_integer() => (Some(dtype), dtype.bit_width()),
            _ => return Err(cursor.malformed(at, "a whole number of a type that has none")),
        };
        let low = i128::from(low_bits(cursor, bits)?);
        let is_signed = dtype.is_none_or(DType::is_signed_integer);
        let is_negative = is_signed && low >> (bits - 1) & 1 == 1;
        let value = if is_negative { low - (1 << bits) } else { low };
        Ok(Attribute::Integer(value, dtype))
    }

    fn float(&mut self, cursor: &mut Cursor<'a>) -> Read<Attribute> {
        let at = cursor.offset();
        let dtype = match self.mlir_type(cursor)? {
            MlirType::Element(dtype) if dtype.is_float() => dtype,
            _ => return Err(cursor.malformed(at, "a number of a type that has none")),
        };
        let bits = i128::from(low_bits(cursor, dtype.bit_width())?);
        match float_from_bits(bits, dtype) {
            Some(value) => Ok(Attribute::Float(value, Some(dtype))),
            None => Err(cursor.not_known(at, format!("this number of type {dtype}"))),
        }
    }

    /// A type, then the elements as MLIR stores them.
    fn elements(&mut self, cursor: &mut Cursor<'a>) -> Read<Attribute> {
        let at = cursor.offset();
        let ty = self.mlir_type(cursor)?;
        let length = cursor.count()?;
        let bytes = cursor.take(length)?;
        let ty = match ty {
            MlirType::Value(Type::Tensor(ty)) => ty,
            MlirType::Layout(size) => return layout(cursor, at, size, bytes),
            _ => return Err(cursor.malformed(at, "a constant of a type that is not a tensor")),
        };
        match Literal::from_storage(&ty, bytes) {
            Some(literal) => Ok(Attribute::Elements(literal)),
            None => {
                let message = format!("{length} bytes are not the elements of {ty}");
                Err(cursor.malformed(at, message))
            }
        }
    }

    /// A type, then the number of the resource that has the elements.
    fn resource(&mut self, cursor: &mut Cursor<'a>) -> Read<Attribute> {
        let at = cursor.offset();
        let MlirType::Value(Type::Tensor(ty)) = self.mlir_type(cursor)? else {
            return Err(cursor.malformed(at, "a constant of a type that is not a tensor"));
        };
        let bytes = self.resource_at(cursor)?.blob()?;
        // A resource may have several uses, each with elements of its own.
        self.pay(cursor, bytes.len())?;
        match Literal::from_resource(&ty, bytes.into()) {
            Some(literal) => Ok(Attribute::Elements(literal)),
            None => {
                let message = format!("{} bytes are not the elements of {ty}", bytes.len());
                Err(cursor.malformed(at, message))
            }
        }
    }

    /// `@outer::@inner`, to which nothing here refers.
    fn symbol_reference(&mut self, cursor: &mut Cursor<'a>) -> Read<Attribute> {
        let at = cursor.offset();
        let mut text = Attribute::Symbol(self.string_attribute(cursor)?).to_string();
        for inner in cursor.list(|cursor| self.attribute(cursor))? {
            if !matches!(inner, Attribute::Symbol(_)) {
                return Err(cursor.malformed(at, "this attribute is not a symbol"));
            }
            text += &format!("::{inner}");
        }
        Ok(Attribute::Opaque(text))
    }

    /// `array<i64: 1, 2>`: the element type, a count, the elements.
    fn dense_array(&mut self, cursor: &mut Cursor<'a>) -> Read<Attribute> {
        let at = cursor.offset();
        let ty = self.mlir_type(cursor)?;
        let count = cursor.count()?;
        let length = cursor.count()?;
        let bytes = cursor.take(length)?;
        let MlirType::Element(dtype) = ty else {
            return Err(cursor.not_known(at, "an array of this type"));
        };
        if count.checked_mul(dtype.size_bytes()) != Some(length) {
            return Err(cursor.malformed(at, format!("{length} bytes are not {count} elements")));
        }
        if dtype == DType::S64 {
            return Ok(Attribute::Integers(numbers(bytes).collect()));
        }
        let bytes = match dtype {
            DType::Bool => bytes.iter().map(|&byte| u8::from(byte != 0)).collect(),
            _ => bytes.to_vec(),
        };
        let literal = Literal::list(dtype, bytes);
        let literal = literal.ok_or_else(|| cursor.malformed(at, "an array that is too long"))?;
        Ok(Attribute::DenseArray(literal))
    }

    /// The bits of the absolute and the relative tolerance, units in the last place, and whether
    /// they are asked for.
    fn result_accuracy(&mut self, cursor: &mut Cursor<'a>) -> Read<Attribute> {
        let float = |cursor: &mut Cursor<'a>| {
            let bits = cursor.signed_varint()?.cast_unsigned();
            Ok(Attribute::Float(f64::from_bits(bits), Some(DType::F64)))
        };
        let fields = vec![
            ("atol".to_owned(), float(cursor)?),
            ("rtol".to_owned(), float(cursor)?),
            ("ulps".to_owned(), Attribute::Integer(cursor.signed_varint()?.into(), None)),
            ("mode".to_owned(), self.attribute(cursor)?),
        ];
        Ok(Attribute::Fields { name: "stablehlo.result_accuracy".to_owned(), fields })
    }
}

/// The dimensions of a layout, 64 bits each; one stands for all where they are the same.
fn layout(cursor: &Cursor<'_>, at: usize, size: usize, bytes: &[u8]) -> Read<Attribute> {
    /// No tensor has more dimensions.
    const MAX_RANK: usize = 64;
    let mut dims: Vec<i64> = numbers(bytes).collect();
    if let (&[dim], 2..=MAX_RANK) = (dims.as_slice(), size) {
        dims = vec![dim; size];
    }
    if dims.len() != size || !bytes.len().is_multiple_of(8) {
        let message = format!("{} bytes are not {size} dimensions", bytes.len());
        return Err(cursor.malformed(at, message));
    }
    Ok(Attribute::Layout(dims))
}

/// Numbers of 64 bits each.
fn numbers(bytes: &[u8]) -> impl Iterator<Item = i64> {
    bytes.chunks_exact(8).map(|bytes| {
        let mut number = [0; 8];
        number.copy_from_slice(bytes);
        i64::from_le_bytes(number)
    })
}

/// The low `bits`, 64 at most, of a number.
fn low_bits(cursor: &mut Cursor<'_>, bits: usize) -> Read<u64> {
    let value =
        if bits <= 8 { u64::from(cursor.byte()?) } else { cursor.signed_varint()?.cast_unsigned() };
    Ok(value & (u64::MAX >> (64 - bits)))
}
