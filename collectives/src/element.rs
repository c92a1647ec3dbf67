//! What collectives move: the types of elements, and what each can be reduced by.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The type of an operand's elements, in the byte order of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the types")]
pub enum ElementType {
    /// One byte; 0 is false, any other value is true, and only 0 and 1 are ever written.
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    BF16,
    F32,
    F64,
    /// Bytes that are moved and never reduced: every type that arithmetic does not know.
    Opaque {
        /// Bytes of one element, at least 1.
        size_bytes: u32,
    },
}

/// How the elements of several members become one, in the order of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Reduction {
    /// The sum: integers wrap, booleans take or, 16-bit floats accumulate in f32 and round once.
    Sum,
    /// The product: integers wrap, booleans take and, 16-bit floats as for the sum.
    Product,
    /// The least: NaN if any is NaN, and -0 is less than +0.
    Min,
    /// The greatest: NaN if any is NaN, and +0 is greater than -0.
    Max,
    /// And, bit by bit; of booleans and integers.
    And,
    /// Or, bit by bit; of booleans and integers.
    Or,
    /// Exclusive or, bit by bit; of booleans and integers.
    Xor,
}

impl ElementType {
    /// Every type that has arithmetic: all but [`ElementType::Opaque`].
    pub const ARITHMETIC: [Self; 13] = [
        Self::Bool,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::F16,
        Self::BF16,
        Self::F32,
        Self::F64,
    ];

    /// Bytes of one element.
    pub fn size_bytes(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::BF16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
            Self::Opaque { size_bytes } => size_bytes as usize,
        }
    }

    /// Whether elements of this type can be reduced by `reduction`.
    pub fn supports(self, reduction: Reduction) -> bool {
        match self {
            Self::Opaque { .. } => false,
            Self::F16 | Self::BF16 | Self::F32 | Self::F64 => {
                !matches!(reduction, Reduction::And | Reduction::Or | Reduction::Xor)
            }
            _ => true,
        }
    }
}

impl Reduction {
    /// Every reduction.
    pub const ALL: [Self; 7] =
        [Self::Sum, Self::Product, Self::Min, Self::Max, Self::And, Self::Or, Self::Xor];
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bool => "bool",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Opaque { size_bytes } => return write!(f, "opaque{size_bytes}"),
        })
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sum => "sum",
            Self::Product => "product",
            Self::Min => "min",
            Self::Max => "max",
            Self::And => "and",
            Self::Or => "or",
            Self::Xor => "xor",
        })
    }
}
