//! Complex numbers, which have sums and products and no order.

use bytemuck::{Pod, Zeroable};

use super::number::{Arithmetic, Divide};

/// A real and an imaginary part, in this order.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(transparent)]
pub(super) struct Complex<T>([T; 2]);

macro_rules! complex {
    ($($part:ty)*) => {$(
        impl Arithmetic for Complex<$part> {
            type Accumulator = Self;

            fn widen(self) -> Self {
                self
            }
            fn round(accumulator: Self) -> Self {
                accumulator
            }
            fn sum(Self([a, ai]): Self, Self([b, bi]): Self) -> Self {
                Self([a + b, ai + bi])
            }
            fn product(Self([a, ai]): Self, Self([b, bi]): Self) -> Self {
                Self([a * b - ai * bi, a * bi + ai * b])
            }
        }

        impl Divide for Complex<$part> {
            fn divide(sum: Self, count: usize) -> Self {
                Self(sum.0.map(|part| <$part as Divide>::divide(part, count)))
            }
        }
    )*};
}
complex!(f32 f64);
