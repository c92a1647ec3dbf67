//! The bytes with which a stream between two processes begins.
//!
//! A stream carries one message. Its head has a fixed size, so that it is read in one go:
//! `version: u8, length: u8, head (postcard, length bytes), zeros up to 64`. The bytes it announces
//! follow, and then the stream ends.

use serde::{Deserialize, Serialize};

use super::Tag;
use crate::descriptor::OperationId;

const VERSION: u8 = 1;

/// The longest head takes 52 bytes.
pub(super) const HEAD_BYTES: usize = 64;

/// What follows on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Head {
    /// Bytes for the receive that waits under a tag.
    Message { tag: Tag, length_bytes: u64 },
    /// The reason for which an operation was given up.
    Notice { operation: OperationId, length_bytes: u32 },
}

/// A head that is not of this version or not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a stream begins with something other than version {VERSION} of this protocol")]
pub(super) struct HeadError;

impl Head {
    pub(super) fn encode(&self) -> Result<[u8; HEAD_BYTES], HeadError> {
        let mut bytes = [0; HEAD_BYTES];
        let [version, length, room @ ..] = &mut bytes;
        *version = VERSION;
        let used = postcard::to_slice(self, room).map_err(|_| HeadError)?.len();
        *length = u8::try_from(used).map_err(|_| HeadError)?;
        Ok(bytes)
    }

    pub(super) fn decode(bytes: &[u8; HEAD_BYTES]) -> Result<Self, HeadError> {
        let [VERSION, length, room @ ..] = bytes else { return Err(HeadError) };
        let encoded = room.get(..usize::from(*length)).ok_or(HeadError)?;
        match postcard::take_from_bytes(encoded) {
            Ok((head, [])) => Ok(head),
            _ => Err(HeadError),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::descriptor::GroupId;
    use crate::ids::Member;

    #[test]
    fn the_longest_heads_fit() {
        let operation = OperationId { group: GroupId([0xff; 16]), sequence: u64::MAX };
        let member = Member(u32::MAX);
        let tag = Tag { operation, step: u32::MAX, from: member, to: member };
        for head in [
            Head::Message { tag, length_bytes: u64::MAX },
            Head::Notice { operation, length_bytes: u32::MAX },
        ] {
            let mut bytes = head.encode().unwrap();
            assert_eq!(Head::decode(&bytes), Ok(head));
            bytes[0] += 1;
            assert_eq!(Head::decode(&bytes), Err(HeadError));
        }
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(mut bytes in prop::array::uniform32(any::<[u8; 2]>())) {
            for version in [bytes[0][0], VERSION] {
                bytes[0][0] = version;
                let _ = Head::decode(bytemuck::cast_ref(&bytes));
            }
        }
    }
}
