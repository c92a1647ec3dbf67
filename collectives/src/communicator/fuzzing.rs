//! What fuzz targets do with the messages of collectives.

use super::error::{CollectiveCause, Participant};
use super::head;
use super::wire::{self, Opening};
use crate::descriptor::{
    CollectiveKey, CollectiveKind, Descriptor, GroupId, OperationId, Signature,
};
use crate::element::ElementType;
use crate::ids::{Member, Rank};
use crate::transport::shm::Head;

/// An opening as a peer may send it: what is read of it is written as it was.
///
/// # Panics
/// When it is not.
pub fn opening(bytes: &[u8]) {
    let mut opening = Opening::empty();
    let length = bytes.len().min(opening.bytes().len());
    opening.bytes_mut()[..length].copy_from_slice(&bytes[..length]);
    let _ = opening.inline(usize::MAX);
    if let Ok(descriptor) = opening.descriptor() {
        let _ = descriptor.to_string();
        let again = Opening::new(&descriptor, &[]).map(|opening| opening.descriptor());
        assert!(matches!(again, Ok(Ok(again)) if again == descriptor));
    }
}

/// The words of a descriptor as a process of the host may write them: what is read of them is
/// written as it was.
///
/// # Panics
/// When it is not.
pub fn words(bytes: &[u8]) {
    let mut words = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
    let mut next = || words.next().unwrap_or(0);
    let (first, more) = (std::array::from_fn(|_| next()), std::array::from_fn(|_| next()));
    let found = Head { first, more: Some(more) };
    if let Ok(descriptor) = head::decode(&found, descriptor().operation) {
        let _ = descriptor.to_string();
        let again = head::encode(&descriptor);
        assert_eq!(again.first, found.first, "the first words of {descriptor}");
        assert!(again.more.is_none() || again.more == found.more, "the others of {descriptor}");
    }
}

/// A notice as a peer may send it: what is read of it is written as it was.
///
/// # Panics
/// When it is not.
pub fn notice(bytes: &[u8]) {
    if let Ok((descriptor, cause)) = wire::decode_notice(bytes) {
        let _ = cause.to_string();
        let again = wire::encode_notice(descriptor.as_ref(), &cause);
        assert!(wire::decode_notice(&again) == Ok((descriptor, cause)));
    }
}

/// An opening and notices as members send them.
pub fn seeds() -> Vec<Vec<u8>> {
    let descriptor = descriptor();
    let by = Participant { rank: Rank(1), member: Member(1) };
    let causes = [
        CollectiveCause::Cancelled { by },
        CollectiveCause::Usage { by, detail: "no".to_owned() },
        CollectiveCause::Late { missing: vec![by; 3], timeout: std::time::Duration::from_secs(5) },
    ];
    let notices = causes.iter().map(|cause| wire::encode_notice(Some(&descriptor), cause));
    let opening = Opening::new(&descriptor, &[1, 2, 3]).map(|opening| opening.bytes().to_vec());
    opening.into_iter().chain(notices).collect()
}

/// A descriptor as a process writes it into shared memory.
pub fn word_seeds() -> Vec<Vec<u8>> {
    let Head { first, more } = head::encode(&descriptor());
    vec![bytemuck::cast_slice(&[&first[..], &more.unwrap_or_default()].concat()).to_vec()]
}

fn descriptor() -> Descriptor {
    Descriptor {
        signature: Signature::new(CollectiveKind::AllToAll, ElementType::BF16, 4096),
        key: Some(CollectiveKey { launch: 3, program: 0xbeef, ordinal: 2, iteration: 1 }),
        operation: OperationId { group: GroupId::of(&[Member(0), Member(1)]), sequence: 7 },
        algorithm: crate::Algorithm::Ring,
    }
}
