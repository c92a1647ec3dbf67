//! Where a member's operand lies: in memory of its own, or in the output, which it becomes.

use std::ops::Range;

use crate::reduce::Source;
use crate::transport::shm::Exposure;

/// A member's operand.
#[derive(Clone, Debug)]
pub(crate) enum Operand<'a> {
    /// Memory that the collective does not write.
    Apart(&'a [u8]),
    /// These bytes of the output; the collective is in place.
    Within(Range<usize>),
}

impl<'a> Operand<'a> {
    /// Bytes of the operand.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Apart(bytes) => bytes.len(),
            Self::Within(range) => range.len(),
        }
    }

    /// Whether it lies in the output.
    pub(super) fn is_within(&self) -> bool {
        matches!(self, Self::Within(_))
    }

    /// How long it stays as it is where the output is written while others read.
    pub(super) fn exposure(&self) -> Exposure {
        if self.is_within() { Exposure::Changing } else { Exposure::Lasting }
    }

    /// The operand, while `output` has not been written; empty where the output does not have it.
    pub(super) fn bytes<'b>(&'b self, output: &'b [u8]) -> &'b [u8] {
        match self {
            Self::Apart(bytes) => bytes,
            Self::Within(range) => output.get(range.clone()).unwrap_or_default(),
        }
    }

    /// The operand as one of a fold into where it lies, if it lies in the output.
    pub(super) fn source(&self) -> Source<'a> {
        match self {
            Self::Apart(bytes) => Some(bytes),
            Self::Within(_) => None,
        }
    }

    /// Puts the operand into `place`, in which it lies already if it is in place.
    pub(super) fn copy_to(&self, place: &mut [u8]) {
        if let Self::Apart(bytes) = self {
            place.copy_from_slice(bytes);
        }
    }
}
