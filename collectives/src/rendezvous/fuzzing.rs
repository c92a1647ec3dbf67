//! What fuzz targets do with the messages of the rendezvous.

use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::message::{FromMember, Reply, Request, ToMember, decode, encode};
use crate::ids::{Attempt, JobId};
use crate::topology::Topology;

/// A message of any kind: what is read of it is written as it was, and a topology is one or not.
///
/// # Panics
/// When it is not.
pub fn message(bytes: &[u8]) {
    again::<FromMember>(bytes);
    again::<Request>(bytes);
    again::<Reply>(bytes);
    if let (Some(ToMember::Joined { ranks, .. }), Ok(job)) = (again(bytes), JobId::new("fuzzed")) {
        let _ = Topology::new(job, Attempt(0), ranks);
    }
}

fn again<T: DeserializeOwned + Serialize + PartialEq>(bytes: &[u8]) -> Option<T> {
    let message: T = decode(bytes).ok()?;
    assert!(decode::<T>(&encode(&message)).is_ok_and(|again| again == message));
    Some(message)
}

/// Messages as the coordinator and its members send them.
pub fn seeds() -> Vec<Vec<u8>> {
    let timeout = Duration::from_secs(5);
    let (key, name) = ("key".to_owned(), "name".to_owned());
    let value = Bytes::from_static(b"value");
    let joined =
        ToMember::Joined { ranks: Topology::solo(2).ranks().to_vec(), heartbeat_timeout: timeout };
    [
        encode(&FromMember::ReportFailure("it failed".to_owned())),
        encode(&joined),
        encode(&Request::Barrier { name, timeout }),
        encode(&Request::Set { key: key.clone(), value: value.clone(), overwrite: true }),
        encode(&Reply::Entries(vec![(key, value)])),
    ]
    .iter()
    .map(|message| message.to_vec())
    .collect()
}
