//! What fuzz targets do with the heads of streams.

use super::Tag;
use super::wire::{HEAD_BYTES, Head};
use crate::descriptor::{GroupId, OperationId};
use crate::ids::Member;

/// A head as a peer may send it: what is read of it is written as it was.
///
/// # Panics
/// When it is not.
pub fn head(bytes: &[u8]) {
    let mut head = [0; HEAD_BYTES];
    let length = bytes.len().min(HEAD_BYTES);
    head[..length].copy_from_slice(&bytes[..length]);
    if let Ok(head) = Head::decode(&head) {
        let again = head.encode().map(|bytes| Head::decode(&bytes));
        assert!(matches!(again, Ok(Ok(again)) if again == head));
    }
}

/// Heads as peers send them.
pub fn seeds() -> Vec<Vec<u8>> {
    let operation = OperationId { group: GroupId::of(&[Member(0), Member(1)]), sequence: 7 };
    let tag = Tag { operation, step: 1, from: Member(1), to: Member(0) };
    let heads = [
        Head::Message { tag, length_bytes: 1 << 20 },
        Head::Notice { operation, length_bytes: 100 },
    ];
    heads.iter().filter_map(|head| Some(head.encode().ok()?.to_vec())).collect()
}
