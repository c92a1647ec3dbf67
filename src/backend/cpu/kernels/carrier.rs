//! Arithmetic of element types that compute in another one, their carrier: narrow integers in
//! bytes, 8-bit floats in `f32`.
//!
//! Operands are converted to the carrier, the carrier's loop runs, and the result is converted
//! back: for a float that rounds it once.

use super::elementwise::UnaryKernel;
use super::{convert, minifloat, narrow};
use crate::ifrt::DType;
use crate::stablehlo::OpKind;
use crate::stablehlo::op::{Binary, Unary};

/// The way of an element type into its carrier and back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carrier {
    /// The type computed in.
    pub(crate) dtype: DType,
    /// The loop that converts an operand.
    pub(crate) into: UnaryKernel,
    /// The loop that converts a result.
    pub(crate) back: UnaryKernel,
}

/// The carrier of values of a type, if it is not its own.
pub(crate) fn carrier(dtype: DType) -> Option<Carrier> {
    let carried = narrow::computed_in(dtype).or(minifloat::computed_in(dtype))?;
    Some(Carrier {
        dtype: carried,
        into: convert::convert(dtype, carried)?,
        back: convert::convert(carried, dtype)?,
    })
}

/// The carrier in which an operation on operands of a type computes, if it is not that type.
pub(crate) fn carrier_for(kind: &OpKind, dtype: DType) -> Option<Carrier> {
    // What moves or looks at bits from above reads a narrow integer by its sign, or with zeros
    // above, whichever of the two the type is.
    let signed = match kind {
        OpKind::Convert
        | OpKind::Select
        | OpKind::Unary(Unary::CountLeadingZeros | Unary::Real | Unary::Imag)
        | OpKind::Binary(Binary::Complex) => return None,
        OpKind::Binary(Binary::ShiftRightArithmetic) => Some(true),
        OpKind::Binary(Binary::ShiftRightLogical) | OpKind::Unary(Unary::Popcnt) => Some(false),
        _ => None,
    };
    match (signed, narrow::computed_in(dtype)) {
        (Some(signed), Some(_)) => Some(Carrier {
            dtype: if signed { DType::S8 } else { DType::U8 },
            into: narrow::unpack(dtype, signed)?,
            back: narrow::pack(dtype)?,
        }),
        _ => carrier(dtype),
    }
}

#[cfg(test)]
mod tests {
    use super::super::elementwise::binary;
    use super::*;

    fn carried(op: Binary, dtype: DType, a: &[u8], b: &[u8]) -> Vec<u8> {
        let carrier = carrier_for(&OpKind::Binary(op), dtype).unwrap();
        let width = carrier.dtype.size_bytes();
        let tile = |bytes: &[u8]| {
            let mut tile = vec![0_u32; bytes.len() * width / 4];
            (carrier.into)(bytes, bytemuck::cast_slice_mut(&mut tile));
            tile
        };
        let (a, b) = (tile(a), tile(b));
        let mut result = a.clone();
        binary(op, carrier.dtype).unwrap()(
            bytemuck::cast_slice(&a),
            bytemuck::cast_slice(&b),
            bytemuck::cast_slice_mut(&mut result),
        );
        let mut out = vec![0; result.len() * 4 / width];
        (carrier.back)(bytemuck::cast_slice(&result), &mut out);
        out
    }

    #[test]
    fn narrow_shifts_see_the_sign_or_zeros_above() {
        let (a, by) = ([8_u8, 15, 7, 9], [1_u8, 3, 4, 15]);
        for dtype in [DType::S4, DType::U4] {
            assert_eq!(carried(Binary::ShiftRightArithmetic, dtype, &a, &by), [12, 15, 0, 15]);
            assert_eq!(carried(Binary::ShiftRightLogical, dtype, &a, &by), [4, 1, 0, 0]);
            assert_eq!(carried(Binary::ShiftLeft, dtype, &a, &by), [0, 8, 0, 0]);
        }
    }

    #[test]
    fn narrow_quotients_and_extremes_go_by_the_type() {
        let (a, b) = ([8_u8, 15, 7, 9], [15_u8, 2, 0, 4]);
        assert_eq!(carried(Binary::Divide, DType::S4, &a, &b), [8, 0, 15, 15]);
        assert_eq!(carried(Binary::Divide, DType::U4, &a, &b), [0, 7, 15, 2]);
        assert_eq!(carried(Binary::Maximum, DType::S4, &a, &b), [15, 2, 7, 4]);
        assert_eq!(carried(Binary::Maximum, DType::U4, &a, &b), [15, 15, 7, 9]);
    }

    #[test]
    fn an_eight_bit_float_is_rounded_once() {
        // 1 + 1/16 lies between 1 and 1.125, and goes to the even one; 448 + 448 is too great.
        let (a, b) = ([0x38_u8, 0x38, 0x7e, 0xb8], [0x18_u8, 0x20, 0x7e, 0x38]);
        assert_eq!(carried(Binary::Add, DType::F8E4M3FN, &a, &b), [0x38, 0x39, 0x7f, 0x00]);
    }

    #[test]
    fn whole_types_carry_themselves() {
        assert!(carrier(DType::S8).is_none() && carrier(DType::BF16).is_none());
        assert!(carrier_for(&OpKind::Select, DType::S4).is_none());
    }
}
