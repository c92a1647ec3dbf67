//! The bytes of the two messages of this layer: the opening of a collective and the notice that
//! it was given up.
//!
//! An opening has a fixed size, so that it is one exchange like any other:
//! `version: u8, length: u8, descriptor (postcard, length bytes), zeros up to 128, inline data`.
//! A notice is `version: u8, (descriptor, cause) (postcard)`, the descriptor optional: who does not
//! take part need not know what it misses.

use crate::communicator::error::CollectiveCause;
use crate::descriptor::Descriptor;

const VERSION: u8 = 3;

/// Room for the descriptor and what goes before it. The longest descriptor takes 111 bytes.
const HEAD_BYTES: usize = 128;

/// The longest contribution that travels in the opening itself.
pub(super) const INLINE_BYTES: usize = 128;

/// What a member sends to every other when it enters a collective.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    bytes: [u8; HEAD_BYTES + INLINE_BYTES],
}

impl Opening {
    /// Room for a peer's opening.
    pub(super) fn empty() -> Self {
        Self { bytes: [0; HEAD_BYTES + INLINE_BYTES] }
    }

    /// The opening for `descriptor` with the first [`INLINE_BYTES`] of `contribution`.
    pub(super) fn new(descriptor: &Descriptor, contribution: &[u8]) -> Result<Self, WireError> {
        let mut opening = Self::empty();
        let (head, inline) = opening.bytes.split_at_mut(HEAD_BYTES);
        let [version, length, room @ ..] = head else { return Err(WireError) };
        *version = VERSION;
        let used = postcard::to_slice(descriptor, room).map_err(|_| WireError)?.len();
        *length = u8::try_from(used).map_err(|_| WireError)?;
        let inline_bytes = contribution.len().min(INLINE_BYTES);
        inline[..inline_bytes].copy_from_slice(&contribution[..inline_bytes]);
        Ok(opening)
    }

    pub(super) fn descriptor(&self) -> Result<Descriptor, WireError> {
        let [VERSION, length, room @ ..] = &self.bytes[..HEAD_BYTES] else { return Err(WireError) };
        let encoded = room.get(..usize::from(*length)).ok_or(WireError)?;
        whole(postcard::take_from_bytes(encoded))
    }

    /// The first `length` bytes of the inline data; what exceeds it is not there.
    pub(super) fn inline(&self, length: usize) -> &[u8] {
        &self.bytes[HEAD_BYTES..][..length.min(INLINE_BYTES)]
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

/// A message that is not of this version or not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a message of version {VERSION} of this protocol")]
pub(super) struct WireError;

pub(super) fn encode_notice(descriptor: Option<&Descriptor>, cause: &CollectiveCause) -> Vec<u8> {
    postcard::to_extend(&(descriptor, cause), vec![VERSION]).unwrap_or_default()
}

pub(super) fn decode_notice(
    bytes: &[u8],
) -> Result<(Option<Descriptor>, CollectiveCause), WireError> {
    let [VERSION, encoded @ ..] = bytes else { return Err(WireError) };
    whole(postcard::take_from_bytes(encoded))
}

fn whole<T>(decoded: postcard::Result<(T, &[u8])>) -> Result<T, WireError> {
    match decoded {
        Ok((value, [])) => Ok(value),
        _ => Err(WireError),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::communicator::error::Participant;
    use crate::descriptor::{CollectiveKey, CollectiveKind, GroupId, OperationId, Signature};
    use crate::element::{ElementType, OperatorName};
    use crate::ids::{Member, Rank};

    /// The longest there is.
    fn descriptor() -> Descriptor {
        Descriptor {
            signature: Signature {
                kind: CollectiveKind::ReduceScatter,
                reduction: Some(OperatorName::Function { fingerprint: u64::MAX }),
                element: Some(ElementType::Opaque { size_bytes: u32::MAX }),
                count: u64::MAX,
                root: Some(u32::MAX),
                pairs: Some(u64::MAX),
            },
            key: Some(CollectiveKey {
                launch: u64::MAX,
                program: u64::MAX,
                ordinal: u32::MAX,
                iteration: u64::MAX,
            }),
            operation: OperationId { group: GroupId([0xff; 16]), sequence: u64::MAX },
            algorithm: crate::Algorithm::Shared,
        }
    }

    #[test]
    fn the_longest_descriptor_fits() {
        let contribution: Vec<u8> = (1..=200).collect();
        let opening = Opening::new(&descriptor(), &contribution).unwrap();
        assert_eq!(opening.descriptor(), Ok(descriptor()));
        assert_eq!(opening.inline(5), [1, 2, 3, 4, 5]);
        assert_eq!(opening.inline(usize::MAX), &contribution[..INLINE_BYTES]);
    }

    #[test]
    fn another_version_is_refused() {
        let mut opening = Opening::new(&descriptor(), &[]).unwrap();
        opening.bytes_mut()[0] = VERSION + 1;
        assert_eq!(opening.descriptor(), Err(WireError));
    }

    #[test]
    fn a_notice_comes_back_as_it_was() {
        let cause = CollectiveCause::Usage {
            by: Participant { rank: Rank(3), member: Member(7) },
            detail: "the output is too short".to_owned(),
        };
        assert_eq!(decode_notice(&encode_notice(None, &cause)), Ok((None, cause.clone())));
        let bytes = encode_notice(Some(&descriptor()), &cause);
        assert_eq!(decode_notice(&bytes), Ok((Some(descriptor()), cause)));
        for cut in 0..bytes.len() {
            assert_eq!(decode_notice(&bytes[..cut]), Err(WireError), "cut at {cut}");
        }
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(
            bytes in prop::collection::vec(any::<u8>(), HEAD_BYTES + INLINE_BYTES),
            notice: Vec<u8>,
        ) {
            let mut opening = Opening::empty();
            opening.bytes_mut().copy_from_slice(&bytes);
            let _ = opening.descriptor();
            opening.bytes_mut()[0] = VERSION;
            let _ = opening.descriptor();
            let _ = decode_notice(&notice);
            let _ = decode_notice(&[&[VERSION], notice.as_slice()].concat());
        }
    }
}
