//! `dense<…> : tensor<…>`: constants of every element type.
//!
//! The elements come before their type, so the reader looks past them first and then reads them
//! straight into bytes. What is stored is never longer than a small multiple of the source, since
//! every element but those of a splat is written out.

use super::attributes::float_text;
use super::cursor::{Cursor, Parsed, leading};
use crate::ifrt::DType;
use crate::stablehlo::attribute::Attribute;
use crate::stablehlo::number::float_bytes;
use crate::stablehlo::{Literal, TensorType};

impl Cursor<'_> {
    /// `dense<…> : tensor<…>`, or a layout: `dense<[1, 0]> : tensor<2xindex>`.
    pub(super) fn dense_attribute(&mut self) -> Parsed<Attribute> {
        let start = self.offset();
        self.expect_word("dense")?;
        let open = self.offset();
        self.expect("<")?;
        let content = self.offset();
        self.skip_elements(open)?;
        let is_layout = self.rest().strip_prefix(':').is_some_and(|rest| {
            let ty = rest.trim_start().strip_prefix("tensor<");
            let size = ty.map(|ty| ty.trim_start_matches(|c: char| c.is_ascii_digit()));
            size.is_some_and(|rest| rest.starts_with("xindex>"))
        });
        if !is_layout {
            self.seek(start);
            return self.dense_literal().map(Attribute::Elements);
        }
        self.expect(":")?;
        self.expect_word("tensor")?;
        self.expect("<")?;
        let digits = leading(self.rest(), |byte| byte.is_ascii_digit());
        self.advance(digits.len());
        self.expect("x")?;
        self.expect_word("index")?;
        self.expect(">")?;
        let end = self.offset();
        self.seek(content);
        let dims = if self.eat("[") {
            self.list("]", |cursor| cursor.number("a dimension"))?
        } else if self.peek() == Some(b'>') {
            Vec::new()
        } else {
            vec![self.number("a dimension")?]
        };
        self.expect(">")?;
        if digits.parse() != Ok(dims.len()) {
            return self.error_at(start, format!("{} dimensions are not {digits}", dims.len()));
        }
        self.seek(end);
        Ok(Attribute::Layout(dims))
    }

    /// `dense<…> : tensor<…>`.
    pub(super) fn dense_literal(&mut self) -> Parsed<Literal> {
        let start = self.offset();
        self.expect_word("dense")?;
        let open = self.offset();
        self.expect("<")?;
        let content = self.offset();
        self.skip_elements(open)?;
        self.expect(":")?;
        let ty = self.tensor_type()?;
        let end = self.offset();
        self.seek(content);
        let literal = match self.peek() {
            Some(b'>') => Literal::dense(ty.clone(), Vec::new()),
            Some(b'"') => self.hex_literal(&ty)?,
            Some(b'[') => {
                let mut elements = Elements { ty: &ty, bytes: Vec::new() };
                let bytes_per_element = ty.dtype.size_bytes();
                // At least two characters are written for each element: itself and a comma.
                let bound = (end - content) / 2 * bytes_per_element;
                elements
                    .bytes
                    .reserve(ty.shape.num_elements().saturating_mul(bytes_per_element).min(bound));
                self.elements(&mut elements, 0)?;
                Literal::dense(ty.clone(), elements.bytes)
            }
            _ => {
                let mut bytes = Vec::new();
                self.element(ty.dtype, &mut bytes)?;
                Literal::splat(ty.clone(), bytes)
            }
        };
        let Some(literal) = literal else {
            return self.error_at(start, format!("this constant has not the elements of {ty}"));
        };
        self.expect(">")?;
        self.seek(end);
        Ok(literal)
    }

    /// Moves past the elements and the closing `>`; strings may hold anything.
    fn skip_elements(&mut self, open: usize) -> Parsed<()> {
        loop {
            let Some(length) = self.raw().bytes().position(|byte| matches!(byte, b'>' | b'"'))
            else {
                return self.error_at(open, "this bracket is never closed");
            };
            self.advance(length);
            if self.eat(">") {
                return Ok(());
            }
            let Some(string) = self.raw()[1..].bytes().position(|byte| byte == b'"') else {
                return self.error_at(open, "a string in this constant has no end");
            };
            self.advance(string + 2);
        }
    }

    /// `[…]` at dimension `dim`: as many entries as the type says.
    fn elements(&mut self, elements: &mut Elements<'_>, dim: usize) -> Parsed<()> {
        let start = self.offset();
        let dims = elements.ty.shape.dims();
        let Some(&expected) = dims.get(dim) else {
            return self.error(format!("{} has fewer dimensions than this constant", elements.ty));
        };
        let innermost = dim + 1 == dims.len();
        self.expect("[")?;
        // The depth is the rank, which the source of the type bounds; deep ones are refused.
        self.enter()?;
        let mut count = 0_usize;
        if !self.eat("]") {
            loop {
                if innermost {
                    self.element(elements.ty.dtype, &mut elements.bytes)?;
                } else {
                    self.elements(elements, dim + 1)?;
                }
                count += 1;
                if !self.eat(",") {
                    break;
                }
            }
            self.expect("]")?;
        }
        self.leave();
        if count != expected {
            let ty = elements.ty;
            let message =
                format!("{ty} has {expected} entries in dimension {dim}, found {count} here");
            return self.error_at(start, message);
        }
        Ok(())
    }

    /// One element, appended to `bytes`.
    pub(super) fn element(&mut self, dtype: DType, bytes: &mut Vec<u8>) -> Parsed<()> {
        match dtype {
            DType::Bool => {
                let start = self.offset();
                let value = match self.peek_word() {
                    "true" => self.word("true").map(|_| true)?,
                    "false" => self.word("false").map(|_| false)?,
                    _ if self.peek().is_some_and(|byte| byte.is_ascii_digit() || byte == b'-') => {
                        // The only bit of a number, which may be a sign.
                        match self.integer()? {
                            0 => false,
                            1 | -1 => true,
                            _ => return self.error_at(start, "expected `0` or `1`"),
                        }
                    }
                    _ => return self.unexpected("`true` or `false`"),
                };
                bytes.push(value.into());
                Ok(())
            }
            DType::C64 | DType::C128 => {
                let part = if dtype == DType::C64 { DType::F32 } else { DType::F64 };
                self.expect("(")?;
                self.element(part, bytes)?;
                self.expect(",")?;
                self.element(part, bytes)?;
                self.expect(")")
            }
            _ if dtype.is_float() => self.float_element(dtype, bytes),
            _ => self.integer_element(dtype, bytes),
        }
    }

    fn integer_element(&mut self, dtype: DType, bytes: &mut Vec<u8>) -> Parsed<()> {
        let start = self.offset();
        let value = self.integer()?;
        let bits = dtype.bit_width();
        let (least, greatest) = if dtype.is_signed_integer() {
            (-(1_i128 << (bits - 1)), (1_i128 << bits) - 1)
        } else {
            (0, (1_i128 << bits) - 1)
        };
        if value < least || value > greatest {
            return self.error_at(start, format!("{value} does not fit {dtype}"));
        }
        // MLIR's types have no sign, so all the bits of a number may be written without one.
        let wraps = dtype.is_signed_integer() && value >> (bits - 1) == 1;
        let value = if wraps { value - (1 << bits) } else { value };
        bytes.extend_from_slice(&value.to_le_bytes()[..dtype.size_bytes()]);
        Ok(())
    }

    fn float_element(&mut self, dtype: DType, bytes: &mut Vec<u8>) -> Parsed<()> {
        let start = self.offset();
        if self.raw().starts_with("0x") {
            let bits = self.integer()?;
            if bits >> dtype.bit_width() != 0 {
                return self.error_at(start, format!("these bits do not fit {dtype}"));
            }
            bytes.extend_from_slice(&bits.to_le_bytes()[..dtype.size_bytes()]);
            return Ok(());
        }
        let text = float_text(self.raw());
        let Ok(value) = text.parse::<f64>() else { return self.unexpected("a number") };
        let Some(element) = float_bytes(value, dtype) else {
            return self.error_at(start, format!("{text} is no number of type {dtype}"));
        };
        self.advance(text.len());
        bytes.extend_from_slice(&element);
        Ok(())
    }

    /// `"0x…"`: the bytes of one element or of all of them, little-endian.
    fn hex_literal(&mut self, ty: &TensorType) -> Parsed<Option<Literal>> {
        let start = self.offset();
        self.expect("\"")?;
        let text = leading(self.raw(), |byte| byte != b'"');
        self.advance(text.len());
        self.expect("\"")?;
        let Some(digits) = text.strip_prefix("0x") else {
            return self.error_at(start, "expected a string that starts with 0x");
        };
        let Some(bytes) = hex_bytes(digits) else {
            return self.error_at(start, "expected two hexadecimal digits per byte");
        };
        Ok(Literal::from_storage(ty, &bytes))
    }
}

/// The bytes that pairs of hexadecimal digits stand for.
pub(super) fn hex_bytes(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() / 2);
    // The value of a digit that is none has all bits set, and so has what it is combined with.
    let mut invalid = 0;
    for pair in digits.chunks_exact(2) {
        let (high, low) = (DIGITS[usize::from(pair[0])], DIGITS[usize::from(pair[1])]);
        invalid |= high | low;
        bytes.push(high << 4 | low & 0xF);
    }
    (invalid < 0x10).then_some(bytes)
}

/// The values of the hexadecimal digits; `0xFF` for what is none.
const DIGITS: [u8; 256] = {
    let mut values = [0xFF; 256];
    let mut digit = 0_u8;
    while digit < 16 {
        values[b"0123456789abcdef"[digit as usize] as usize] = digit;
        values[b"0123456789ABCDEF"[digit as usize] as usize] = digit;
        digit += 1;
    }
    values
};

/// Elements being read.
struct Elements<'a> {
    ty: &'a TensorType,
    bytes: Vec<u8>,
}
