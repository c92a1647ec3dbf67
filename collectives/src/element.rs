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
    /// The low two bits of a byte: those above are ignored where it is read, 0 where it is written.
    I2,
    /// The low four bits of a byte, as [`ElementType::I2`].
    I4,
    /// The low two bits of a byte, as [`ElementType::I2`].
    U2,
    /// The low four bits of a byte, as [`ElementType::I2`].
    U4,
    F16,
    BF16,
    F32,
    F64,
    F8E3M4,
    F8E4M3,
    F8E4M3FN,
    F8E4M3B11FNUZ,
    F8E4M3FNUZ,
    F8E5M2,
    F8E5M2FNUZ,
    /// Two of [`ElementType::F32`]: real, imaginary.
    C64,
    /// Two of [`ElementType::F64`]: real, imaginary.
    C128,
    /// Bytes that are moved and never reduced: every type that arithmetic does not know.
    Opaque {
        /// Bytes of one element, at least 1.
        size_bytes: u32,
    },
}

/// How the elements of several members become one, in the order of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Reduction {
    /// The sum: integers wrap, booleans take or, floats of 8 and 16 bits accumulate in f32 and
    /// round once.
    Sum,
    /// The product: integers wrap, booleans take and, floats of 8 and 16 bits as for the sum.
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
    /// The sum divided by the number of members, in the type in which the sum accumulates; of
    /// floats and complex numbers. The mean of integers has no rounding that all would expect.
    Mean,
}

/// How operands become one: by a reduction that this package knows, or by the caller's function.
#[derive(Clone, Copy, Debug)]
pub enum Operator<'a> {
    /// One that the package knows.
    Named(Reduction),
    /// The caller's.
    Function(ReductionFunction<'a>),
}

/// An [`Operator`] as members compare it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum OperatorName {
    /// One that the package knows.
    Named(Reduction),
    /// The caller's.
    Function {
        /// [`ReductionFunction::fingerprint`].
        fingerprint: u64,
    },
}

/// A reduction of the caller's: of elements of any type, [`ElementType::Opaque`] ones too.
#[derive(Clone, Copy)]
pub struct ReductionFunction<'a> {
    /// What members compare to tell whether they mean the same function.
    pub fingerprint: u64,
    /// Makes each element `a` of the first block, and the element `b` at its place in the second,
    /// the `a` of the next member's turn.
    ///
    /// Blocks are equally long, of whole elements and of any alignment. Where an operand is cut
    /// into blocks must not matter, nor which thread calls.
    pub fold: &'a (dyn Fn(&mut [u8], &[u8]) + Sync),
}

impl ElementType {
    /// Every type that has arithmetic: all but [`ElementType::Opaque`].
    pub const ARITHMETIC: [Self; 26] = [
        Self::Bool,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::I2,
        Self::I4,
        Self::U2,
        Self::U4,
        Self::F16,
        Self::BF16,
        Self::F32,
        Self::F64,
        Self::F8E3M4,
        Self::F8E4M3,
        Self::F8E4M3FN,
        Self::F8E4M3B11FNUZ,
        Self::F8E4M3FNUZ,
        Self::F8E5M2,
        Self::F8E5M2FNUZ,
        Self::C64,
        Self::C128,
    ];

    /// Bytes of one element.
    pub fn size_bytes(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I2 | Self::I4 | Self::U2 | Self::U4 => 1,
            Self::F8E3M4 | Self::F8E4M3 | Self::F8E4M3FN | Self::F8E4M3B11FNUZ => 1,
            Self::F8E4M3FNUZ | Self::F8E5M2 | Self::F8E5M2FNUZ => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::BF16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::C64 => 8,
            Self::C128 => 16,
            Self::Opaque { size_bytes } => size_bytes as usize,
        }
    }

    /// Whole elements in `length_bytes`; 0 if an element has no bytes.
    pub(crate) fn elements_in(self, length_bytes: usize) -> usize {
        let size = self.size_bytes();
        // A division takes as long as twenty other instructions, and nearly all sizes do without.
        if size.is_power_of_two() {
            length_bytes >> size.trailing_zeros()
        } else {
            length_bytes.checked_div(size).unwrap_or(0)
        }
    }

    /// Whether they are integers or booleans: their reductions are exact in any order.
    pub(crate) fn is_integer(self) -> bool {
        self.supports(Reduction::Xor)
    }

    /// Whether elements of this type can be reduced by `reduction`; the package's documentation
    /// has the table.
    pub fn supports(self, reduction: Reduction) -> bool {
        let [integer, real, complex] = match reduction {
            Reduction::Sum | Reduction::Product => [true, true, true],
            Reduction::Min | Reduction::Max => [true, true, false],
            Reduction::And | Reduction::Or | Reduction::Xor => [true, false, false],
            Reduction::Mean => [false, true, true],
        };
        match self {
            Self::Bool | Self::I8 | Self::I16 | Self::I32 | Self::I64 => integer,
            Self::U8 | Self::U16 | Self::U32 | Self::U64 => integer,
            Self::I2 | Self::I4 | Self::U2 | Self::U4 => integer,
            Self::F16 | Self::BF16 | Self::F32 | Self::F64 => real,
            Self::F8E3M4 | Self::F8E4M3 | Self::F8E4M3FN | Self::F8E4M3B11FNUZ => real,
            Self::F8E4M3FNUZ | Self::F8E5M2 | Self::F8E5M2FNUZ => real,
            Self::C64 | Self::C128 => complex,
            Self::Opaque { .. } => false,
        }
    }
}

impl Reduction {
    /// Every reduction.
    pub const ALL: [Self; 8] = [
        Self::Sum,
        Self::Product,
        Self::Min,
        Self::Max,
        Self::And,
        Self::Or,
        Self::Xor,
        Self::Mean,
    ];
}

impl Operator<'_> {
    /// What members compare.
    pub fn name(&self) -> OperatorName {
        match self {
            Self::Named(reduction) => OperatorName::Named(*reduction),
            Self::Function(ReductionFunction { fingerprint, .. }) => {
                OperatorName::Function { fingerprint: *fingerprint }
            }
        }
    }

    /// Whether elements of type `element` can be reduced by it.
    pub fn supports(&self, element: ElementType) -> bool {
        match self {
            Self::Named(reduction) => element.supports(*reduction),
            Self::Function(_) => true,
        }
    }
}

impl From<Reduction> for Operator<'_> {
    fn from(reduction: Reduction) -> Self {
        Self::Named(reduction)
    }
}

impl<'a> From<ReductionFunction<'a>> for Operator<'a> {
    fn from(function: ReductionFunction<'a>) -> Self {
        Self::Function(function)
    }
}

impl fmt::Debug for ReductionFunction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReductionFunction")
            .field("fingerprint", &self.fingerprint)
            .finish_non_exhaustive()
    }
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
            Self::I2 => "i2",
            Self::I4 => "i4",
            Self::U2 => "u2",
            Self::U4 => "u4",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::F8E3M4 => "f8e3m4",
            Self::F8E4M3 => "f8e4m3",
            Self::F8E4M3FN => "f8e4m3fn",
            Self::F8E4M3B11FNUZ => "f8e4m3b11fnuz",
            Self::F8E4M3FNUZ => "f8e4m3fnuz",
            Self::F8E5M2 => "f8e5m2",
            Self::F8E5M2FNUZ => "f8e5m2fnuz",
            Self::C64 => "c64",
            Self::C128 => "c128",
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
            Self::Mean => "mean",
        })
    }
}

impl fmt::Display for OperatorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(reduction) => reduction.fmt(f),
            Self::Function { fingerprint } => write!(f, "function {fingerprint:016x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The package's documentation has a row for every type, and each says what the code does.
    #[test]
    fn the_table_in_the_documentation_holds() {
        let rows = include_str!("lib.rs").lines().filter_map(|line| line.strip_prefix("//! | "));
        let mut types: Vec<ElementType> = ElementType::ARITHMETIC.to_vec();
        types.push(ElementType::Opaque { size_bytes: 16 });
        let function = ReductionFunction { fingerprint: 0, fold: &|_, _| {} };
        for row in rows.skip(1) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            for name in cells[0].split(", ") {
                let place = types.iter().position(|element| element.to_string() == name);
                let element = types.swap_remove(place.unwrap_or_else(|| panic!("{name} is new")));
                for reduction in Reduction::ALL {
                    let column = match reduction {
                        Reduction::Sum | Reduction::Product => 1,
                        Reduction::Min | Reduction::Max => 2,
                        Reduction::And | Reduction::Or | Reduction::Xor => 3,
                        Reduction::Mean => 4,
                    };
                    let supported = element.supports(reduction);
                    assert_eq!(cells[column] == "yes", supported, "{reduction} of {name}");
                }
                assert_eq!(cells[5] == "yes", Operator::from(function).supports(element));
            }
        }
        assert!(types.is_empty(), "{types:?} are not in the table");
    }
}
