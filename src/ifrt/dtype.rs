//! Element types of arrays.

use std::fmt;

/// The type of one element of an array.
///
/// The set is that of IFRT's `DType`; sub-byte types occupy less than a byte per element when
/// packed (see [`DType::bit_width`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// A boolean, one byte per element, 0 or 1.
    Bool,
    /// 2-bit signed integer.
    S2,
    /// 4-bit signed integer.
    S4,
    /// 8-bit signed integer.
    S8,
    /// 16-bit signed integer.
    S16,
    /// 32-bit signed integer.
    S32,
    /// 64-bit signed integer.
    S64,
    /// 2-bit unsigned integer.
    U2,
    /// 4-bit unsigned integer.
    U4,
    /// 8-bit unsigned integer.
    U8,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
    /// IEEE 754 half precision.
    F16,
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 double precision.
    F64,
    /// The upper half of an IEEE 754 single precision number.
    BF16,
    /// A pair of [`DType::F32`]: real, imaginary.
    C64,
    /// A pair of [`DType::F64`]: real, imaginary.
    C128,
    /// 8-bit float, 3 exponent bits, 4 mantissa bits.
    F8E3M4,
    /// 8-bit float, 4 exponent bits, 3 mantissa bits, with infinities.
    F8E4M3,
    /// 8-bit float, 4 exponent bits, 3 mantissa bits, finite with NaN.
    F8E4M3FN,
    /// 8-bit float, 4 exponent bits, bias 11, finite, NaN at negative zero.
    F8E4M3B11FNUZ,
    /// 8-bit float, 4 exponent bits, finite, NaN at negative zero.
    F8E4M3FNUZ,
    /// 8-bit float, 5 exponent bits, 2 mantissa bits, with infinities.
    F8E5M2,
    /// 8-bit float, 5 exponent bits, finite, NaN at negative zero.
    F8E5M2FNUZ,
    /// 8-bit power of two, no sign, no mantissa.
    F8E8M0FNU,
    /// 4-bit float, 2 exponent bits, 1 mantissa bit.
    F4E2M1FN,
    /// 6-bit float, 2 exponent bits, 3 mantissa bits.
    F6E2M3FN,
    /// 6-bit float, 3 exponent bits, 2 mantissa bits.
    F6E3M2FN,
}

impl DType {
    /// Bits of one packed element.
    pub const fn bit_width(self) -> usize {
        match self {
            Self::S2 | Self::U2 => 2,
            Self::S4 | Self::U4 | Self::F4E2M1FN => 4,
            Self::F6E2M3FN | Self::F6E3M2FN => 6,
            Self::Bool
            | Self::S8
            | Self::U8
            | Self::F8E3M4
            | Self::F8E4M3
            | Self::F8E4M3FN
            | Self::F8E4M3B11FNUZ
            | Self::F8E4M3FNUZ
            | Self::F8E5M2
            | Self::F8E5M2FNUZ
            | Self::F8E8M0FNU => 8,
            Self::S16 | Self::U16 | Self::F16 | Self::BF16 => 16,
            Self::S32 | Self::U32 | Self::F32 => 32,
            Self::S64 | Self::U64 | Self::F64 | Self::C64 => 64,
            Self::C128 => 128,
        }
    }

    /// Bytes of one element in memory, where each element starts on a byte of its own.
    ///
    /// Sub-byte types take one byte per element unpacked, which is how host buffers and device
    /// buffers hold them.
    pub const fn size_bytes(self) -> usize {
        self.bit_width().div_ceil(8)
    }

    /// Whether elements are real floating-point numbers.
    pub const fn is_float(self) -> bool {
        !self.is_integer() && !self.is_complex() && !matches!(self, Self::Bool)
    }

    /// Whether elements are complex numbers.
    pub const fn is_complex(self) -> bool {
        matches!(self, Self::C64 | Self::C128)
    }

    /// Whether elements are signed or unsigned integers ([`DType::Bool`] is neither).
    pub const fn is_integer(self) -> bool {
        self.is_signed_integer() || self.is_unsigned_integer()
    }

    /// Whether elements are two's complement integers.
    pub const fn is_signed_integer(self) -> bool {
        matches!(self, Self::S2 | Self::S4 | Self::S8 | Self::S16 | Self::S32 | Self::S64)
    }

    /// Whether elements are unsigned integers.
    pub const fn is_unsigned_integer(self) -> bool {
        matches!(self, Self::U2 | Self::U4 | Self::U8 | Self::U16 | Self::U32 | Self::U64)
    }

    /// The name StableHLO's text form uses, such as `f32`, `ui8`, `i1` or `complex<f32>`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "i1",
            Self::S2 => "i2",
            Self::S4 => "i4",
            Self::S8 => "i8",
            Self::S16 => "i16",
            Self::S32 => "i32",
            Self::S64 => "i64",
            Self::U2 => "ui2",
            Self::U4 => "ui4",
            Self::U8 => "ui8",
            Self::U16 => "ui16",
            Self::U32 => "ui32",
            Self::U64 => "ui64",
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::BF16 => "bf16",
            Self::C64 => "complex<f32>",
            Self::C128 => "complex<f64>",
            Self::F8E3M4 => "f8E3M4",
            Self::F8E4M3 => "f8E4M3",
            Self::F8E4M3FN => "f8E4M3FN",
            Self::F8E4M3B11FNUZ => "f8E4M3B11FNUZ",
            Self::F8E4M3FNUZ => "f8E4M3FNUZ",
            Self::F8E5M2 => "f8E5M2",
            Self::F8E5M2FNUZ => "f8E5M2FNUZ",
            Self::F8E8M0FNU => "f8E8M0FNU",
            Self::F4E2M1FN => "f4E2M1FN",
            Self::F6E2M3FN => "f6E2M3FN",
            Self::F6E3M2FN => "f6E3M2FN",
        }
    }

    /// Every type, in declaration order.
    pub const ALL: [Self; 30] = [
        Self::Bool,
        Self::S2,
        Self::S4,
        Self::S8,
        Self::S16,
        Self::S32,
        Self::S64,
        Self::U2,
        Self::U4,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::F16,
        Self::F32,
        Self::F64,
        Self::BF16,
        Self::C64,
        Self::C128,
        Self::F8E3M4,
        Self::F8E4M3,
        Self::F8E4M3FN,
        Self::F8E4M3B11FNUZ,
        Self::F8E4M3FNUZ,
        Self::F8E5M2,
        Self::F8E5M2FNUZ,
        Self::F8E8M0FNU,
        Self::F4E2M1FN,
        Self::F6E2M3FN,
        Self::F6E3M2FN,
    ];

    /// The type whose [`DType::name`] is `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == name)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_read_back() {
        for (i, dtype) in DType::ALL.into_iter().enumerate() {
            assert_eq!(DType::from_name(dtype.name()), Some(dtype));
            for other in &DType::ALL[i + 1..] {
                assert_ne!(dtype.name(), other.name());
            }
        }
        assert_eq!(DType::from_name("f31"), None);
    }

    #[test]
    fn every_type_is_exactly_one_kind() {
        for dtype in DType::ALL {
            let kinds = [
                dtype == DType::Bool,
                dtype.is_signed_integer(),
                dtype.is_unsigned_integer(),
                dtype.is_float(),
                dtype.is_complex(),
            ];
            assert_eq!(kinds.iter().filter(|&&kind| kind).count(), 1, "{dtype}");
        }
    }
}
