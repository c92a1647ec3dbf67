//! The words between a process and the coordinator, and their bytes.
//!
//! A member's first stream carries [`FromMember`] one way and [`ToMember`] the other, each message
//! behind its length. Every call has a stream of its own with one [`Request`] and one [`Reply`], so
//! a large value delays nothing else and a caller that gives up just stops its stream.
//!
//! A message is a version byte and then postcard's encoding of the value. No bytes panic, and none
//! make the decoder allocate more than a small multiple of their own length.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use quinn::RecvStream;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{CallRefusal, JoinRefusal, MissingRanks, RankFailure};
use crate::{Attempt, FlightLog, HostId, JobId, Rank, RankInfo};

/// The version of everything in this file; it changes with any change of a type.
const VERSION: u8 = 2;

/// The largest value of a key.
pub const MAX_VALUE_BYTES: usize = 64 << 20;

/// The longest key, barrier name or prefix.
pub const MAX_KEY_BYTES: usize = 1024;

/// The longest [`FromMember`] message.
pub(super) const MAX_FROM_MEMBER_BYTES: usize = 16 << 10;

/// The longest [`ToMember`] message: a topology of tens of thousands of ranks.
pub(super) const MAX_TO_MEMBER_BYTES: usize = 16 << 20;

/// The longest [`Request`] or [`Reply`]: the largest value and its key.
pub(super) const MAX_CALL_BYTES: usize = MAX_VALUE_BYTES + (16 << 10);

/// What a process says about itself when it joins.
///
/// Its certificate's fingerprint is not among it: the coordinator takes it from the connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Join {
    pub(super) job: JobId,
    pub(super) attempt: Attempt,
    pub(super) rank: Rank,
    pub(super) world_size: u32,
    /// Drawn once by the process, so that its own second try is not taken for a duplicate.
    pub(super) incarnation: u64,
    pub(super) host: HostId,
    pub(super) process_id: u32,
    pub(super) devices: u32,
    pub(super) address: SocketAddr,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum FromMember {
    Heartbeat,
    Join(Join),
    Leave,
    ReportFailure(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ToMember {
    Failed(RankFailure),
    Joined { ranks: Vec<RankInfo>, heartbeat_timeout: Duration },
    Left,
    Refused(JoinRefusal),
    Waiting(MissingRanks),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Request {
    Barrier { name: String, timeout: Duration },
    Delete { key: String },
    Flight(FlightLog),
    Get { key: String, timeout: Duration },
    List { prefix: String },
    Set { key: String, value: Bytes, overwrite: bool },
    TryGet { key: String },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Reply {
    /// The key does not exist.
    Absent,
    Done,
    Entries(Vec<(String, Bytes)>),
    Refused(CallRefusal),
    Value(Bytes),
}

/// Why bytes are not a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DecodeError {
    #[error("a message of {found} bytes, where {limit} are allowed")]
    TooLong { found: usize, limit: usize },
    #[error("a message of protocol version {found}, expected {VERSION}: the releases differ")]
    OtherVersion { found: u8 },
    #[error("bytes that are no message of the rendezvous")]
    Malformed,
}

/// Why no message could be read from a stream.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameError {
    #[error("it sends {0}")]
    Decode(#[from] DecodeError),
    /// The stream or its connection has ended.
    #[error("{0}")]
    Ended(#[from] quinn::ReadExactError),
}

/// The bytes of `message`.
pub(super) fn encode(message: &impl Serialize) -> Bytes {
    // Only a type that cannot say its length makes this fail, and the types here all can.
    postcard::to_extend(message, vec![VERSION]).map(Bytes::from).unwrap_or_default()
}

/// The bytes of `message` behind their length.
pub(super) fn encode_frame(message: &impl Serialize) -> Bytes {
    let body = encode(message);
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    [&length.to_le_bytes(), body.as_ref()].concat().into()
}

/// Reads one message of a stream of frames; the error says what is wrong with it.
pub(super) async fn read_frame<T: DeserializeOwned>(
    stream: &mut RecvStream,
    limit: usize,
) -> Result<T, FrameError> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).await?;
    let mut body = vec![0; frame_length(header, limit)?];
    stream.read_exact(&mut body).await?;
    Ok(decode(&body)?)
}

/// The length of the frame that begins with `header`.
fn frame_length(header: [u8; 4], limit: usize) -> Result<usize, DecodeError> {
    let found = usize::try_from(u32::from_le_bytes(header)).unwrap_or(usize::MAX);
    if found > limit { Err(DecodeError::TooLong { found, limit }) } else { Ok(found) }
}

/// The message that `bytes` are.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    let (version, body) = bytes.split_first().ok_or(DecodeError::Malformed)?;
    if *version != VERSION {
        return Err(DecodeError::OtherVersion { found: *version });
    }
    match postcard::take_from_bytes(body) {
        Ok((message, [])) => Ok(message),
        Ok(_) | Err(_) => Err(DecodeError::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use proptest::prelude::*;

    use super::*;
    use crate::{
        CollectiveKind, ElementType, FailureCause, Fingerprint, FlightEntry, FlightState, Member,
    };

    fn join() -> Join {
        Join {
            job: JobId::new("job-1").unwrap(),
            attempt: Attempt(2),
            rank: Rank(3),
            world_size: 5,
            incarnation: u64::MAX - 7,
            host: HostId { name: "host".into(), boot_id: "boot".into(), network: 4 },
            process_id: 4242,
            devices: 4,
            address: "[2001:db8::7]:4433".parse().unwrap(),
        }
    }

    fn from_member() -> Vec<FromMember> {
        vec![
            FromMember::Heartbeat,
            FromMember::Join(join()),
            FromMember::Leave,
            FromMember::ReportFailure("NaN in step 7".into()),
        ]
    }

    fn to_member() -> Vec<ToMember> {
        let failure = RankFailure { rank: Rank(1), cause: FailureCause::Signalled { signal: 9 } };
        let info = RankInfo {
            rank: Rank(0),
            host: join().host,
            process_id: 7,
            devices: 2,
            address: join().address,
            fingerprint: Fingerprint([200; 32]),
        };
        vec![
            ToMember::Failed(failure.clone()),
            ToMember::Joined { ranks: vec![info], heartbeat_timeout: Duration::from_secs(30) },
            ToMember::Left,
            ToMember::Refused(JoinRefusal::JobFailed(failure)),
            ToMember::Waiting(MissingRanks::new([Rank(2), Rank(4)].into_iter())),
        ]
    }

    fn flight_log() -> FlightLog {
        let entry = |sequence, element, ended| FlightEntry {
            member: Member(3),
            group: u64::MAX,
            group_size: 4,
            sequence,
            kind: CollectiveKind::AllReduce,
            element,
            count: 1 << 40,
            started: Duration::from_micros(7),
            ended,
            state: FlightState::Running,
        };
        let later = Some(Duration::from_secs(9));
        let entries = vec![entry(1, Some(ElementType::F32), later), entry(2, None, None)];
        FlightLog { recorded: 2000, taken: Duration::from_secs(10), entries }
    }

    fn requests() -> Vec<Request> {
        let (key, timeout) = ("a/b".to_owned(), Duration::from_millis(1500));
        vec![
            Request::Barrier { name: "start".into(), timeout },
            Request::Delete { key: key.clone() },
            Request::Flight(flight_log()),
            Request::Get { key: key.clone(), timeout },
            Request::List { prefix: "a/".into() },
            Request::Set { key: key.clone(), value: vec![0, 255, 7].into(), overwrite: true },
            Request::TryGet { key },
        ]
    }

    fn replies() -> Vec<Reply> {
        vec![
            Reply::Absent,
            Reply::Done,
            Reply::Entries(vec![("a".into(), vec![1].into()), ("b".into(), Bytes::new())]),
            Reply::Refused(CallRefusal::RankLeft(Rank(3))),
            Reply::Value(vec![3; 300].into()),
        ]
    }

    fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(messages: Vec<T>) {
        for message in messages {
            let bytes = encode(&message);
            assert_eq!(decode::<T>(&bytes).as_ref(), Ok(&message));
            let mut longer = bytes.to_vec();
            longer.push(0);
            assert_eq!(decode::<T>(&longer), Err(DecodeError::Malformed));
            for end in 0..bytes.len() {
                assert_eq!(decode::<T>(&bytes[..end]), Err(DecodeError::Malformed), "{message:?}");
            }
        }
    }

    #[test]
    fn messages_survive_and_parts_of_them_do_not() {
        check(from_member());
        check(to_member());
        check(requests());
        check(replies());
    }

    #[test]
    fn refuses_other_versions_and_long_frames() {
        let mut bytes = encode(&FromMember::Heartbeat).to_vec();
        bytes[0] = VERSION + 1;
        let found = decode::<FromMember>(&bytes);
        assert_eq!(found, Err(DecodeError::OtherVersion { found: VERSION + 1 }));
        assert_eq!(frame_length([4, 1, 0, 0], 260), Ok(260));
        let too_long = DecodeError::TooLong { found: 261, limit: 260 };
        assert_eq!(frame_length([5, 1, 0, 0], 260), Err(too_long));
        let frame = encode_frame(&FromMember::Join(join()));
        let (header, body) = frame.split_at(4);
        assert_eq!(frame_length(header.try_into().unwrap(), 1000), Ok(body.len()));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..200),
            versioned in any::<bool>(),
        ) {
            if let (true, Some(first)) = (versioned, bytes.first_mut()) {
                *first = VERSION;
            }
            let _ = decode::<FromMember>(&bytes);
            let _ = decode::<ToMember>(&bytes);
            let _ = decode::<Request>(&bytes);
            let _ = decode::<Reply>(&bytes);
        }

        #[test]
        fn no_changed_byte_panics(which in 0_usize..5, at in any::<prop::sample::Index>(), to: u8) {
            if let Some(message) = to_member().get(which) {
                let mut bytes = encode(message).to_vec();
                let at = at.index(bytes.len());
                bytes[at] = to;
                let _ = decode::<ToMember>(&bytes);
            }
        }
    }
}
