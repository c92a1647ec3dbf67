//! Kinds, reductions and types as numbers, in words that members or threads read of each other.
//!
//! The numbers are those of no enum's order, so that neither a new name nor another order changes
//! what is written.

use crate::descriptor::CollectiveKind;
use crate::element::{ElementType, Reduction};

/// The number of what is not there.
pub(crate) const NONE: u8 = 0;
const OPAQUE: u8 = 255;

/// The kind with this number.
pub(crate) fn kind(code: u8) -> Option<CollectiveKind> {
    decode(CollectiveKind::ALL, of_kind, code)
}

/// The reduction with this number.
pub(crate) fn reduction(code: u8) -> Option<Reduction> {
    decode(Reduction::ALL, of_reduction, code)
}

/// The type with this number, of `size_bytes` if it is opaque: `Some(None)` is that there is none.
pub(crate) fn element(code: u8, size_bytes: u32) -> Option<Option<ElementType>> {
    match code {
        NONE => Some(None),
        OPAQUE => Some(Some(ElementType::Opaque { size_bytes })),
        code => decode(ElementType::ARITHMETIC, of_arithmetic, code).map(Some),
    }
}

/// What of `all` has this number.
pub(crate) fn decode<T: Copy, const N: usize>(
    all: [T; N],
    code_of: impl Fn(T) -> u8,
    code: u8,
) -> Option<T> {
    all.into_iter().find(|value| code_of(*value) == code)
}

pub(crate) fn of_kind(kind: CollectiveKind) -> u8 {
    match kind {
        CollectiveKind::AllGather => 1,
        CollectiveKind::AllReduce => 2,
        CollectiveKind::AllToAll => 3,
        CollectiveKind::AllToAllV => 4,
        CollectiveKind::Barrier => 5,
        CollectiveKind::Broadcast => 6,
        CollectiveKind::CollectivePermute => 7,
        CollectiveKind::Gather => 8,
        CollectiveKind::Reduce => 9,
        CollectiveKind::ReduceScatter => 10,
        CollectiveKind::Scatter => 11,
        CollectiveKind::Send => 12,
        CollectiveKind::SendRecv => 13,
    }
}

pub(crate) fn of_reduction(reduction: Reduction) -> u8 {
    match reduction {
        Reduction::Sum => 1,
        Reduction::Product => 2,
        Reduction::Min => 3,
        Reduction::Max => 4,
        Reduction::And => 5,
        Reduction::Or => 6,
        Reduction::Xor => 7,
        Reduction::Mean => 8,
    }
}

/// The number of a type, and the size of an opaque one.
pub(crate) fn of_element(element: Option<ElementType>) -> (u8, Option<u32>) {
    match element {
        None => (NONE, None),
        Some(ElementType::Opaque { size_bytes }) => (OPAQUE, Some(size_bytes)),
        Some(element) => (of_arithmetic(element), None),
    }
}

fn of_arithmetic(element: ElementType) -> u8 {
    match element {
        ElementType::Bool => 1,
        ElementType::I8 => 2,
        ElementType::I16 => 3,
        ElementType::I32 => 4,
        ElementType::I64 => 5,
        ElementType::U8 => 6,
        ElementType::U16 => 7,
        ElementType::U32 => 8,
        ElementType::U64 => 9,
        ElementType::I2 => 10,
        ElementType::I4 => 11,
        ElementType::U2 => 12,
        ElementType::U4 => 13,
        ElementType::F16 => 14,
        ElementType::BF16 => 15,
        ElementType::F32 => 16,
        ElementType::F64 => 17,
        ElementType::F8E3M4 => 18,
        ElementType::F8E4M3 => 19,
        ElementType::F8E4M3FN => 20,
        ElementType::F8E4M3B11FNUZ => 21,
        ElementType::F8E4M3FNUZ => 22,
        ElementType::F8E5M2 => 23,
        ElementType::F8E5M2FNUZ => 24,
        ElementType::C64 => 25,
        ElementType::C128 => 26,
        ElementType::Opaque { .. } => OPAQUE,
    }
}
