//! What fuzz targets do with what the processes of a host say before they share memory.

#![expect(clippy::unwrap_used, reason = "a target stops at what it does not expect")]

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{AddressFamily, SendFlags, Shutdown, SocketFlags, SocketType};
use rustix::process::geteuid;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::handover::{Serving, ask_for};
use super::sharing::{self, Outcome, Sharing};
use crate::{JobSecret, Rank};

/// A report, an offer or an agreement as a rank may publish it: what is read of it is written as
/// it was.
///
/// # Panics
/// When it is not.
pub fn sharing(bytes: &[u8]) {
    again::<Outcome>(bytes);
    again::<Result<String, String>>(bytes);
    if let Some(sharing) = again::<Sharing>(bytes) {
        for rank in [Rank(0), Rank(1), Rank(u32::MAX)] {
            let _ = sharing.refusal(rank);
            assert!(sharing.partners_of(rank).all(|peer| sharing.shares(peer, rank)));
        }
    }
}

fn again<T: DeserializeOwned + Serialize + PartialEq>(bytes: &[u8]) -> Option<T> {
    let value: T = sharing::decode(bytes)?;
    assert!(sharing::decode::<T>(&sharing::encode(&value)).is_some_and(|again| again == value));
    Some(value)
}

/// Either side of a handover, told what a process without the secret may say: the first byte of
/// each packet is its length.
///
/// # Panics
/// When a file passes.
pub fn handover(bytes: &[u8]) {
    let secret = JobSecret::generate().unwrap();
    let name = "lockstep-fuzzed";
    let taken = ask_for(name, Rank(3), &secret, &stranger(bytes).0, geteuid());
    assert!(taken.is_err(), "a stranger gave a file");
    let (taker, _stranger) = stranger(bytes);
    let serving = Serving {
        socket: Arc::new(socket_pair().0),
        name: name.to_owned(),
        file: memfd_create(c"fuzzed", MemfdFlags::CLOEXEC).unwrap(),
        secret,
        user: geteuid(),
    };
    assert!(serving.hand_over(&taker).is_err(), "a stranger got the file");
}

/// A socket whose other end, the second, has said everything already.
fn stranger(mut bytes: &[u8]) -> (OwnedFd, OwnedFd) {
    let (ours, stranger) = socket_pair();
    while let [length, rest @ ..] = bytes {
        let (packet, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        if rustix::net::send(&stranger, packet, flags).is_err() {
            break;
        }
        bytes = rest;
    }
    rustix::net::shutdown(&stranger, Shutdown::Write).unwrap();
    (ours, stranger)
}

fn socket_pair() -> (OwnedFd, OwnedFd) {
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    rustix::net::socketpair(family, kind, SocketFlags::CLOEXEC, None).unwrap()
}

/// What ranks publish.
pub fn sharing_seeds() -> Vec<Vec<u8>> {
    let outcomes: [Outcome; 2] = [Ok(Rank(0)), Err("no memfd".to_owned())];
    let offer: Result<String, String> = Ok("lockstep-0123".to_owned());
    let reports = outcomes.iter().map(sharing::encode);
    let agreed = outcomes.iter().cloned().map(Sharing::solo).map(|agreed| sharing::encode(&agreed));
    reports.chain(agreed).chain([sharing::encode(&offer)]).collect()
}

/// Packets of the lengths that the protocol has, for either side.
pub fn handover_seeds() -> Vec<Vec<u8>> {
    let packets = |lengths: &[u8]| {
        let packet = |&length: &u8| [vec![length], vec![7; usize::from(length)]].concat();
        lengths.iter().flat_map(packet).collect()
    };
    vec![packets(&[36, 32]), packets(&[64, 1]), packets(&[36, 32, 1])]
}
