//! Constants as text: decimal where that reads back exactly, bits where it does not, and raw
//! bytes when there are many elements.

use std::fmt::{self, Write as _};

use sha2::{Digest as _, Sha256};

use super::Constants;
use super::fingerprint::Fingerprint;
use crate::ifrt::DType;
use crate::stablehlo::number::{float_bytes, float_from_bits};
use crate::stablehlo::{Literal, TensorType};

/// More elements than these are printed as bytes in hexadecimal.
const MAX_WRITTEN_ELEMENTS: usize = 32;

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        constant(f, self, Constants::Whole)
    }
}

/// `dense<…> : tensor<…>`.
pub(super) fn constant(
    f: &mut fmt::Formatter<'_>,
    literal: &Literal,
    constants: Constants,
) -> fmt::Result {
    f.write_str("dense<")?;
    elements(f, literal, constants)?;
    write!(f, "> : {}", literal.ty())
}

/// `array<f32: 1.0, 2.0>`.
pub(super) fn dense_array(f: &mut fmt::Formatter<'_>, literal: &Literal) -> fmt::Result {
    let dtype = literal.ty().dtype;
    write!(f, "array<{dtype}")?;
    let bytes = literal.to_bytes();
    for (i, bytes) in bytes.chunks_exact(dtype.size_bytes()).enumerate() {
        write!(f, "{} {}", if i == 0 { ":" } else { "," }, element(bytes, dtype))?;
    }
    f.write_str(">")
}

fn elements(f: &mut fmt::Formatter<'_>, literal: &Literal, constants: Constants) -> fmt::Result {
    let TensorType { dtype, shape } = literal.ty();
    let bytes = literal.stored_bytes();
    if let Some(splat) = literal.splat_element() {
        return f.write_str(&element(splat, *dtype));
    }
    if bytes.is_empty() {
        return Ok(());
    }
    let many = shape.num_elements() > MAX_WRITTEN_ELEMENTS;
    if many && constants == Constants::Hashed {
        return write!(f, "hash {}", Fingerprint::from(Sha256::digest(bytes)));
    }
    // Booleans and elements narrower than a byte are packed differently by different MLIRs.
    if many && *dtype != DType::Bool && dtype.bit_width() % 8 == 0 {
        f.write_str("\"0x")?;
        for chunk in bytes.chunks(256) {
            let text = chunk.iter().fold(String::with_capacity(512), |mut text, byte| {
                // Writing to a string does not fail.
                _ = write!(text, "{byte:02X}");
                text
            });
            f.write_str(&text)?;
        }
        return f.write_str("\"");
    }
    let mut rest = bytes;
    nested(f, shape.dims(), *dtype, &mut rest)
}

/// `[[1, 2], [3, 4]]`, taking elements from `bytes`.
fn nested(
    f: &mut fmt::Formatter<'_>,
    dims: &[usize],
    dtype: DType,
    bytes: &mut &[u8],
) -> fmt::Result {
    let Some((&count, inner)) = dims.split_first() else {
        let (first, rest) = bytes.split_at(dtype.size_bytes().min(bytes.len()));
        *bytes = rest;
        return f.write_str(&element(first, dtype));
    };
    f.write_str("[")?;
    for i in 0..count {
        if i > 0 {
            f.write_str(", ")?;
        }
        nested(f, inner, dtype, bytes)?;
    }
    f.write_str("]")
}

/// One element as text.
pub(crate) fn element(bytes: &[u8], dtype: DType) -> String {
    match dtype {
        DType::Bool => (bytes != [0]).to_string(),
        DType::C64 | DType::C128 => {
            let part = if dtype == DType::C64 { DType::F32 } else { DType::F64 };
            let (re, im) = bytes.split_at(bytes.len() / 2);
            format!("({},{})", element(re, part), element(im, part))
        }
        _ => {
            let unsigned = unsigned(bytes);
            if dtype.is_float() {
                return float(unsigned, bytes, dtype);
            }
            let bits = dtype.bit_width();
            let wraps = dtype.is_signed_integer() && unsigned >> (bits - 1) & 1 == 1;
            // The stored byte of a narrow negative number is sign-extended.
            let value = unsigned & ((1 << bits) - 1);
            if wraps { (value - (1 << bits)).to_string() } else { value.to_string() }
        }
    }
}

/// A float in decimal if that reads back to the same bits, otherwise its bits.
fn float(bits: i128, bytes: &[u8], dtype: DType) -> String {
    if let Some(value) = float_from_bits(bits, dtype).filter(|value| value.is_finite()) {
        #[expect(clippy::cast_possible_truncation, reason = "the shorter text is tried first")]
        let single = value as f32;
        let texts = [decimal_of(format!("{single:e}")), decimal(value)];
        for text in texts {
            let read = text.parse().ok().and_then(|value| float_bytes(value, dtype));
            if read.as_deref() == Some(bytes) {
                return text;
            }
        }
    }
    format!("0x{bits:0width$X}", width = dtype.size_bytes() * 2)
}

/// Little-endian bytes, at most eight, as a number.
fn unsigned(bytes: &[u8]) -> i128 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | i128::from(byte))
}

/// The shortest decimal that reads back to `value`, in the form that MLIR reads: `1.5e-3`.
pub(in crate::stablehlo) fn decimal(value: f64) -> String {
    decimal_of(format!("{value:e}"))
}

/// MLIR wants a point in every float: `1e-3` becomes `1.0e-3`.
fn decimal_of(scientific: String) -> String {
    match scientific.split_once('e') {
        Some((mantissa, exponent)) => {
            let point = if mantissa.contains('.') { "" } else { ".0" };
            let exponent = if exponent == "0" { String::new() } else { format!("e{exponent}") };
            format!("{mantissa}{point}{exponent}")
        }
        None => scientific,
    }
}
