//! The arithmetic of each element type, as StableHLO and XLA:CPU define it.
//!
//! Integers wrap. Dividing one by zero gives all ones, its remainder by zero is the dividend.
//! Maximum and minimum of floats are IEEE 754's `maximum` and `minimum`: a NaN wins, and -0 is
//! less than +0. 16-bit floats compute in `f32` and round after every operation.

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};

/// A truth value of one byte, 0 or 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct Bool(u8);

impl From<bool> for Bool {
    fn from(value: bool) -> Self {
        Self(u8::from(value))
    }
}

impl From<Bool> for bool {
    fn from(value: Bool) -> Self {
        value.0 != 0
    }
}

/// An element type with its arithmetic.
pub(crate) trait Element: Pod + PartialOrd + Default + Send + Sync + 'static {
    /// What sums and products are kept in: `f32` for 16-bit floats, else the type itself.
    type Accumulator: Element<Accumulator = Self::Accumulator>;
    /// The neutral element of addition; for floats that is -0.
    const ZERO: Self;
    /// The neutral element of multiplication.
    const ONE: Self;
    /// The least value, an infinity where there is one.
    const LOWEST: Self;
    /// The greatest value, an infinity where there is one.
    const HIGHEST: Self;

    /// The value, to be accumulated.
    fn widen(self) -> Self::Accumulator;
    /// The accumulated value, rounded once.
    fn narrow(value: Self::Accumulator) -> Self;
    fn add(self, rhs: Self) -> Self;
    fn subtract(self, rhs: Self) -> Self;
    fn multiply(self, rhs: Self) -> Self;
    fn divide(self, rhs: Self) -> Self;
    fn remainder(self, rhs: Self) -> Self;
    fn maximum(self, rhs: Self) -> Self;
    fn minimum(self, rhs: Self) -> Self;
    fn power(self, rhs: Self) -> Self;
    fn negate(self) -> Self;
    fn abs(self) -> Self;
    fn sign(self) -> Self;
}

/// Element types with bitwise arithmetic.
pub(crate) trait Bitwise: Element {
    /// The neutral element of `and`.
    const ONES: Self;
    fn and(self, rhs: Self) -> Self;
    fn or(self, rhs: Self) -> Self;
    fn xor(self, rhs: Self) -> Self;
    fn not(self) -> Self;
}

/// Integers.
pub(crate) trait Integer: Bitwise {
    fn shift_left(self, by: Self) -> Self;
    fn shift_right_logical(self, by: Self) -> Self;
    fn shift_right_arithmetic(self, by: Self) -> Self;
    fn count_ones(self) -> Self;
    fn leading_zeros(self) -> Self;
    /// The index, wrapped.
    fn from_index(index: usize) -> Self;
}

/// Real floating-point numbers.
pub(crate) trait Float: Element {
    /// The type whose functions compute this type's: `f32` or `f64`.
    type Compute;
    fn compute(self) -> Self::Compute;
    fn rounded(value: Self::Compute) -> Self;
    /// A key that orders as `totalOrder` of IEEE 754: -NaN < -inf < … < -0 < +0 < … < NaN.
    fn total_order(self) -> i64;
}

macro_rules! integer {
    ($($t:ident, $unsigned:ident, $signed:ident, $sign:expr;)*) => {$(
        impl Element for $t {
            type Accumulator = Self;
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const LOWEST: Self = $t::MIN;
            const HIGHEST: Self = $t::MAX;

            #[inline(always)]
            fn widen(self) -> Self { self }
            #[inline(always)]
            fn narrow(value: Self) -> Self { value }
            #[inline(always)]
            fn add(self, rhs: Self) -> Self { self.wrapping_add(rhs) }
            #[inline(always)]
            fn subtract(self, rhs: Self) -> Self { self.wrapping_sub(rhs) }
            #[inline(always)]
            fn multiply(self, rhs: Self) -> Self { self.wrapping_mul(rhs) }
            #[inline(always)]
            fn divide(self, rhs: Self) -> Self {
                if rhs == 0 { !0 } else { self.wrapping_div(rhs) }
            }
            #[inline(always)]
            fn remainder(self, rhs: Self) -> Self {
                if rhs == 0 { self } else { self.wrapping_rem(rhs) }
            }
            #[inline(always)]
            fn maximum(self, rhs: Self) -> Self { Ord::max(self, rhs) }
            #[inline(always)]
            fn minimum(self, rhs: Self) -> Self { Ord::min(self, rhs) }
            #[inline(always)]
            fn power(self, rhs: Self) -> Self { integer_power(self, rhs) }
            #[inline(always)]
            fn negate(self) -> Self { self.wrapping_neg() }
            #[inline(always)]
            fn abs(self) -> Self {
                #[allow(unused_comparisons, reason = "the signed and unsigned types share this")]
                if self < 0 { self.wrapping_neg() } else { self }
            }
            #[inline(always)]
            fn sign(self) -> Self {
                let sign: fn($t) -> $t = $sign;
                sign(self)
            }
        }

        impl Bitwise for $t {
            const ONES: Self = !0;
            #[inline(always)]
            fn and(self, rhs: Self) -> Self { self & rhs }
            #[inline(always)]
            fn or(self, rhs: Self) -> Self { self | rhs }
            #[inline(always)]
            fn xor(self, rhs: Self) -> Self { self ^ rhs }
            #[inline(always)]
            fn not(self) -> Self { !self }
        }

        // A shift by the width or more (a negative one is more) pushes every bit out.
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_possible_wrap,
            clippy::cast_sign_loss,
            clippy::unnecessary_cast,
            reason = "same-width casts change signedness; counts are below 65 after the check"
        )]
        impl Integer for $t {
            #[inline(always)]
            fn shift_left(self, by: Self) -> Self {
                let by = by as $unsigned;
                if by < $t::BITS as $unsigned { self << by as u32 } else { 0 }
            }
            #[inline(always)]
            fn shift_right_logical(self, by: Self) -> Self {
                let by = by as $unsigned;
                if by < $t::BITS as $unsigned { (self as $unsigned >> by as u32) as $t } else { 0 }
            }
            #[inline(always)]
            fn shift_right_arithmetic(self, by: Self) -> Self {
                let by = (by as $unsigned).min($t::BITS as $unsigned - 1);
                (self as $signed >> by as u32) as $t
            }
            #[inline(always)]
            fn count_ones(self) -> Self { self.count_ones() as $t }
            #[inline(always)]
            fn leading_zeros(self) -> Self { self.leading_zeros() as $t }
            #[inline(always)]
            fn from_index(index: usize) -> Self { index as $t }
        }
    )*};
}

integer! {
    i8, u8, i8, i8::signum;
    i16, u16, i16, i16::signum;
    i32, u32, i32, i32::signum;
    i64, u64, i64, i64::signum;
    u8, u8, i8, |x| x.min(1);
    u16, u16, i16, |x| x.min(1);
    u32, u32, i32, |x| x.min(1);
    u64, u64, i64, |x| x.min(1);
}

/// `base` to the power `exponent`, wrapping; a negative exponent gives the reciprocal, truncated.
fn integer_power<T: Integer>(base: T, exponent: T) -> T {
    let zero = T::default();
    if exponent < zero {
        let minus_one = T::ONE.negate();
        return if base == T::ONE || (base == minus_one && exponent.and(T::ONE) == zero) {
            T::ONE
        } else if base == minus_one {
            minus_one
        } else {
            zero
        };
    }
    let (mut result, mut square, mut rest) = (T::ONE, base, exponent);
    while rest != zero {
        if rest.and(T::ONE) == T::ONE {
            result = result.multiply(square);
        }
        square = square.multiply(square);
        rest = rest.shift_right_logical(T::ONE);
    }
    result
}

macro_rules! native_float {
    ($($t:ident, $signed:ident;)*) => {$(
        impl Element for $t {
            type Accumulator = Self;
            const ZERO: Self = -0.0;
            const ONE: Self = 1.0;
            const LOWEST: Self = $t::NEG_INFINITY;
            const HIGHEST: Self = $t::INFINITY;

            #[inline(always)]
            fn widen(self) -> Self { self }
            #[inline(always)]
            fn narrow(value: Self) -> Self { value }
            #[inline(always)]
            fn add(self, rhs: Self) -> Self { self + rhs }
            #[inline(always)]
            fn subtract(self, rhs: Self) -> Self { self - rhs }
            #[inline(always)]
            fn multiply(self, rhs: Self) -> Self { self * rhs }
            #[inline(always)]
            fn divide(self, rhs: Self) -> Self { self / rhs }
            #[inline(always)]
            fn remainder(self, rhs: Self) -> Self { self % rhs }
            // Selects rather than branches, so that loops over them vectorise. Equal operands
            // differ at most in the sign of a zero.
            #[inline(always)]
            fn maximum(self, rhs: Self) -> Self {
                let greater = if self > rhs || self.is_nan() { self } else { rhs };
                let equal = Self::from_bits(self.to_bits() & rhs.to_bits());
                if self == rhs { equal } else { greater }
            }
            #[inline(always)]
            fn minimum(self, rhs: Self) -> Self {
                let less = if self < rhs || self.is_nan() { self } else { rhs };
                let equal = Self::from_bits(self.to_bits() | rhs.to_bits());
                if self == rhs { equal } else { less }
            }
            #[inline(always)]
            fn power(self, rhs: Self) -> Self { self.powf(rhs) }
            #[inline(always)]
            fn negate(self) -> Self { -self }
            #[inline(always)]
            fn abs(self) -> Self { self.abs() }
            #[inline(always)]
            fn sign(self) -> Self {
                if self.is_nan() || self == 0.0 { self } else { Self::copysign(1.0, self) }
            }
        }

        impl Float for $t {
            type Compute = Self;
            #[inline(always)]
            fn compute(self) -> Self { self }
            #[inline(always)]
            fn rounded(value: Self) -> Self { value }
            #[inline(always)]
            fn total_order(self) -> i64 {
                let bits = self.to_bits().cast_signed();
                i64::from(bits ^ ((bits >> ($signed::BITS - 1)) & $signed::MAX))
            }
        }
    )*};
}

native_float! { f32, i32; f64, i64; }

macro_rules! short_float {
    ($($t:ident;)*) => {$(
        impl Element for $t {
            type Accumulator = f32;
            const ZERO: Self = $t::NEG_ZERO;
            const ONE: Self = $t::ONE;
            const LOWEST: Self = $t::NEG_INFINITY;
            const HIGHEST: Self = $t::INFINITY;

            #[inline(always)]
            fn widen(self) -> f32 { self.to_f32() }
            #[inline(always)]
            fn narrow(value: f32) -> Self { $t::from_f32(value) }
            #[inline(always)]
            fn add(self, rhs: Self) -> Self { Self::narrow(self.widen() + rhs.widen()) }
            #[inline(always)]
            fn subtract(self, rhs: Self) -> Self { Self::narrow(self.widen() - rhs.widen()) }
            #[inline(always)]
            fn multiply(self, rhs: Self) -> Self { Self::narrow(self.widen() * rhs.widen()) }
            #[inline(always)]
            fn divide(self, rhs: Self) -> Self { Self::narrow(self.widen() / rhs.widen()) }
            #[inline(always)]
            fn remainder(self, rhs: Self) -> Self { Self::narrow(self.widen() % rhs.widen()) }
            #[inline(always)]
            fn maximum(self, rhs: Self) -> Self { Self::narrow(Element::maximum(self.widen(), rhs.widen())) }
            #[inline(always)]
            fn minimum(self, rhs: Self) -> Self { Self::narrow(Element::minimum(self.widen(), rhs.widen())) }
            #[inline(always)]
            fn power(self, rhs: Self) -> Self { Self::narrow(self.widen().powf(rhs.widen())) }
            #[inline(always)]
            fn negate(self) -> Self { -self }
            #[inline(always)]
            fn abs(self) -> Self { $t::from_bits(self.to_bits() & 0x7fff) }
            #[inline(always)]
            fn sign(self) -> Self { Self::narrow(Element::sign(self.widen())) }
        }

        impl Float for $t {
            type Compute = f32;
            #[inline(always)]
            fn compute(self) -> f32 { self.to_f32() }
            #[inline(always)]
            fn rounded(value: f32) -> Self { $t::from_f32(value) }
            #[inline(always)]
            fn total_order(self) -> i64 {
                let bits = self.to_bits().cast_signed();
                i64::from(bits ^ ((bits >> 15) & i16::MAX))
            }
        }
    )*};
}

short_float! { f16; bf16; }

impl Element for Bool {
    type Accumulator = Self;
    const ZERO: Self = Self(0);
    const ONE: Self = Self(1);
    const LOWEST: Self = Self(0);
    const HIGHEST: Self = Self(1);

    #[inline(always)]
    fn widen(self) -> Self {
        self
    }
    #[inline(always)]
    fn narrow(value: Self) -> Self {
        value
    }
    #[inline(always)]
    fn add(self, rhs: Self) -> Self {
        self.or(rhs)
    }
    #[inline(always)]
    fn subtract(self, rhs: Self) -> Self {
        self.xor(rhs)
    }
    #[inline(always)]
    fn multiply(self, rhs: Self) -> Self {
        self.and(rhs)
    }
    #[inline(always)]
    fn divide(self, rhs: Self) -> Self {
        // Division by false gives all ones, as for the wider integers.
        self.or(rhs.not())
    }
    #[inline(always)]
    fn remainder(self, rhs: Self) -> Self {
        self.and(rhs.not())
    }
    #[inline(always)]
    fn maximum(self, rhs: Self) -> Self {
        self.or(rhs)
    }
    #[inline(always)]
    fn minimum(self, rhs: Self) -> Self {
        self.and(rhs)
    }
    #[inline(always)]
    fn power(self, rhs: Self) -> Self {
        self.or(rhs.not())
    }
    #[inline(always)]
    fn negate(self) -> Self {
        self
    }
    #[inline(always)]
    fn abs(self) -> Self {
        self
    }
    #[inline(always)]
    fn sign(self) -> Self {
        self
    }
}

impl Bitwise for Bool {
    const ONES: Self = Self(1);
    #[inline(always)]
    fn and(self, rhs: Self) -> Self {
        Self(self.0 & rhs.0)
    }
    #[inline(always)]
    fn or(self, rhs: Self) -> Self {
        Self(self.0 | rhs.0)
    }
    #[inline(always)]
    fn xor(self, rhs: Self) -> Self {
        Self(self.0 ^ rhs.0)
    }
    #[inline(always)]
    fn not(self) -> Self {
        Self(self.0 ^ 1)
    }
}

/// Evaluates an expression with `$T` bound to the Rust type of a `DType`, or `$otherwise` when the
/// type is not among the listed kinds.
macro_rules! with_element {
    ($dtype:expr, $T:ident => $body:expr, _ => $otherwise:expr) => {
        match $dtype {
            $crate::ifrt::DType::Bool => {
                type $T = $crate::backend::cpu::kernels::element::Bool;
                $body
            }
            dtype => $crate::backend::cpu::kernels::element::with_integer!(
                dtype, $T => $body,
                _ => $crate::backend::cpu::kernels::element::with_float!(
                    dtype, $T => $body, _ => $otherwise
                )
            ),
        }
    };
}

/// [`with_element!`] for integers only.
macro_rules! with_integer {
    ($dtype:expr, $T:ident => $body:expr, _ => $otherwise:expr) => {
        match $dtype {
            $crate::ifrt::DType::S8 => {
                type $T = i8;
                $body
            }
            $crate::ifrt::DType::S16 => {
                type $T = i16;
                $body
            }
            $crate::ifrt::DType::S32 => {
                type $T = i32;
                $body
            }
            $crate::ifrt::DType::S64 => {
                type $T = i64;
                $body
            }
            $crate::ifrt::DType::U8 => {
                type $T = u8;
                $body
            }
            $crate::ifrt::DType::U16 => {
                type $T = u16;
                $body
            }
            $crate::ifrt::DType::U32 => {
                type $T = u32;
                $body
            }
            $crate::ifrt::DType::U64 => {
                type $T = u64;
                $body
            }
            _ => $otherwise,
        }
    };
}

/// [`with_element!`] for floats only.
macro_rules! with_float {
    ($dtype:expr, $T:ident => $body:expr, _ => $otherwise:expr) => {
        match $dtype {
            $crate::ifrt::DType::F16 => {
                type $T = half::f16;
                $body
            }
            $crate::ifrt::DType::BF16 => {
                type $T = half::bf16;
                $body
            }
            $crate::ifrt::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::ifrt::DType::F64 => {
                type $T = f64;
                $body
            }
            _ => $otherwise,
        }
    };
}

/// Evaluates an expression with `$T` bound to the unsigned integer of a width in bytes: for
/// kernels that only move elements.
macro_rules! with_width {
    ($width:expr, $T:ident => $body:expr) => {
        match $width {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            8 => {
                type $T = u64;
                $body
            }
            _ => {
                type $T = u128;
                $body
            }
        }
    };
}

pub(crate) use {with_element, with_float, with_integer, with_width};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_division_has_no_traps() {
        assert_eq!(7_i32.divide(0), -1);
        assert_eq!(7_u8.divide(0), 255);
        assert_eq!(7_i32.remainder(0), 7);
        assert_eq!(i64::MIN.divide(-1), i64::MIN);
        assert_eq!(i8::MIN.remainder(-1), 0);
        assert_eq!((-7_i16).divide(2), -3);
        assert_eq!((-7_i16).remainder(2), -1);
    }

    #[test]
    fn shifts_past_the_width_push_every_bit_out() {
        for by in [32, 33, -1, i32::MIN] {
            assert_eq!((-5_i32).shift_left(by), 0, "{by}");
            assert_eq!((-5_i32).shift_right_logical(by), 0, "{by}");
            assert_eq!((-5_i32).shift_right_arithmetic(by), -1, "{by}");
            assert_eq!(5_i32.shift_right_arithmetic(by), 0, "{by}");
        }
        assert_eq!((-1_i32).shift_left(31), i32::MIN);
        assert_eq!((-1_i32).shift_right_logical(31), 1);
        assert_eq!(0x80_u8.shift_right_arithmetic(7), 0xff);
        assert_eq!(0x80_u8.shift_right_arithmetic(9), 0xff);
    }

    #[test]
    fn integer_powers_wrap_and_truncate() {
        assert_eq!(3_i32.power(4), 81);
        assert_eq!(3_u8.power(6), 217);
        assert_eq!((-1_i32).power(-3), -1);
        assert_eq!((-1_i32).power(-4), 1);
        assert_eq!(2_i32.power(-1), 0);
        assert_eq!(0_i32.power(0), 1);
    }

    fn extremes_of<T: Float>(nan: T, one: T, zero: T) {
        for other in [one, zero, T::LOWEST, T::HIGHEST] {
            for result in
                [nan.maximum(other), other.maximum(nan), nan.minimum(other), other.minimum(nan)]
            {
                assert!(result.partial_cmp(&result).is_none(), "a NaN wins");
            }
        }
        let minus_zero = zero.negate();
        assert_eq!(zero.maximum(minus_zero).total_order(), zero.total_order());
        assert_eq!(minus_zero.maximum(zero).total_order(), zero.total_order());
        assert_eq!(zero.minimum(minus_zero).total_order(), minus_zero.total_order());
        assert_eq!(minus_zero.minimum(zero).total_order(), minus_zero.total_order());
        assert_eq!(minus_zero.maximum(minus_zero).total_order(), minus_zero.total_order());
        assert!(one.maximum(T::HIGHEST) == T::HIGHEST && one.minimum(T::HIGHEST) == one);
    }

    #[test]
    fn extremes_keep_nan_and_the_sign_of_zero() {
        extremes_of(f32::NAN, 1.0, 0.0);
        extremes_of(f64::NAN, 1.0, 0.0);
        extremes_of(bf16::NAN, bf16::ONE, bf16::ZERO);
        extremes_of(f16::NAN, f16::ONE, f16::ZERO);
    }

    #[test]
    fn total_order_is_total() {
        let ascending = [
            -f32::NAN,
            f32::NEG_INFINITY,
            -1.0,
            -0.0,
            0.0,
            f32::MIN_POSITIVE,
            f32::INFINITY,
            f32::NAN,
        ];
        for pair in ascending.windows(2) {
            assert!(pair[0].total_order() < pair[1].total_order(), "{pair:?}");
        }
    }

    #[test]
    fn short_floats_round_after_every_operation() {
        let (x, y) = (bf16::from_f32(256.0), bf16::from_f32(1.0));
        // 257 has nine significant bits, bf16 eight; the tie goes to even.
        assert_eq!(x.add(y), bf16::from_f32(256.0));
        assert_eq!(x.add(y).subtract(x), bf16::from_f32(0.0));
    }
}
