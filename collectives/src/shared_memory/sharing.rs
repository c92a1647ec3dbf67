//! Who shares memory with whom: each host finds out, and the job agrees.
//!
//! The lowest rank of a host makes the segment and offers it to the others (see `handover`). Every
//! rank reports to rank 0 whose segment it has mapped, or why none; rank 0 tells all of them what
//! all have said. So the answer is the same everywhere, whatever went wrong where: algorithms may
//! depend on it. A rank that cannot share is reached over the network.
//!
//! The ranks talk through the session's key-value store, which is all that every kind of job has.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::handover::{Offer, take};
use super::segment::Segment;
use crate::rendezvous::{CallRefusal, Session, SessionError};
use crate::{JobSecret, Rank, Topology, TransportChoice, environment};

/// The longest reason that is passed on.
const MAX_REASON_BYTES: usize = 512;

/// Where rank 0 publishes what all ranks have said.
const AGREED: &str = "lockstep/shared-memory";

/// Which processes of a job share memory: the same value in all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sharing {
    ranks: Vec<Outcome>,
}

/// The rank whose segment a rank has mapped, or why it has none.
pub(super) type Outcome = Result<Rank, String>;

impl Sharing {
    /// That of a job of one process.
    pub(crate) fn solo(outcome: Outcome) -> Self {
        Self { ranks: vec![outcome] }
    }

    /// Whether two processes have a segment in common. One process shares with itself if it has a
    /// segment.
    pub fn shares(&self, one: Rank, other: Rank) -> bool {
        self.segment_of(one).is_some() && self.segment_of(one) == self.segment_of(other)
    }

    /// The ranks that have the segment of `rank`, itself included, in order; none if it has none.
    pub fn partners_of(&self, rank: Rank) -> impl Iterator<Item = Rank> {
        (0..)
            .map(Rank)
            .zip(&self.ranks)
            .map(|(peer, _)| peer)
            .filter(move |peer| self.shares(rank, *peer))
    }

    /// The rank that made the segment of `rank`; `None` if it has none.
    pub fn segment_of(&self, rank: Rank) -> Option<Rank> {
        self.outcome(rank)?.as_ref().ok().copied()
    }

    /// Why `rank` has no segment; `None` if it has one.
    pub fn refusal(&self, rank: Rank) -> Option<&str> {
        self.outcome(rank)?.as_ref().err().map(String::as_str)
    }

    /// How `rank` reaches its peers, to show: `ranks 1 to 3 through shared memory, …`.
    pub(crate) fn describe(&self, rank: Rank, topology: &Topology) -> String {
        let peers = || topology.ranks().iter().map(|info| info.rank).filter(|peer| *peer != rank);
        let neighbour = |peer: &Rank| topology.neighbours_of(rank).any(|other| other == *peer);
        let (near, far): (Vec<Rank>, Vec<Rank>) = peers().partition(neighbour);
        let (shared, apart): (Vec<Rank>, Vec<Rank>) =
            near.into_iter().partition(|peer| self.shares(rank, *peer));
        let mut parts = Vec::new();
        if !shared.is_empty() {
            parts.push(format!("{} through shared memory", list(&shared)));
        }
        if let Some(first) = apart.first() {
            let why = self.refusal(rank).or_else(|| self.refusal(*first)).unwrap_or("unknown");
            parts.push(format!("{} of its host over QUIC ({why})", list(&apart)));
        }
        if !far.is_empty() {
            parts.push(format!("{} of other hosts over QUIC", list(&far)));
        }
        if parts.is_empty() { "nobody".to_owned() } else { parts.join(", ") }
    }

    fn outcome(&self, rank: Rank) -> Option<&Outcome> {
        self.ranks.get(usize::try_from(rank.0).ok()?)
    }
}

/// Finds out, together with all other ranks of the job, who shares memory, and maps the segment
/// that this process shares.
///
/// # Errors
/// When the coordinator is lost, a rank fails, or the ranks do not agree within `timeout`.
pub(crate) fn agree(
    session: &Session,
    secret: &JobSecret,
    choice: TransportChoice,
    timeout: Duration,
) -> Result<(Sharing, Option<Arc<Segment>>), SessionError> {
    let start = Instant::now();
    // The stages end one after the other, so that who is late in one is not so in all.
    let left = |quarters: u32| (timeout * quarters / 4).saturating_sub(start.elapsed());
    let (rank, topology) = (session.rank(), session.topology());
    // It serves the others until all have reported.
    let (outcome, _offer) = join_segment(session, secret, choice, || left(2))?;
    let report: Outcome = match &outcome {
        Ok((leader, _)) => Ok(*leader),
        Err(reason) => Err(shortened(reason)),
    };
    session.set(&key_of("report", rank), encode(&report))?;
    if rank == Rank(0) {
        let mut ranks = Vec::new();
        for info in topology.ranks() {
            let report = wait_for(session, &key_of("report", info.rank), left(3))?;
            ranks.push(report.unwrap_or_else(|| Err("it did not report in time".to_owned())));
        }
        session.set(AGREED, encode(&Sharing { ranks }))?;
    }
    let agreed = session.get(AGREED, left(4))?;
    let sharing = decode(&agreed).unwrap_or_else(|| Sharing { ranks: Vec::new() });
    // Who reported too late has a segment that the others do not count on.
    let segment = outcome.ok().filter(|_| sharing.segment_of(rank).is_some());
    Ok((sharing, segment.map(|(_, segment)| Arc::new(segment))))
}

/// A segment for the members of the only process.
pub(crate) fn alone(devices: u32, choice: TransportChoice) -> (Sharing, Option<Arc<Segment>>) {
    let segment = create(1, devices, choice);
    let sharing = Sharing::solo(segment.as_ref().map(|_| Rank(0)).map_err(Clone::clone));
    (sharing, segment.ok().map(Arc::new))
}

type Joined = Result<(Rank, Segment), String>;

/// Makes the segment of this host, if this is its lowest rank, and offers it to the others; takes
/// it otherwise.
fn join_segment(
    session: &Session,
    secret: &JobSecret,
    choice: TransportChoice,
    left: impl Fn() -> Duration,
) -> Result<(Joined, Option<Offer>), SessionError> {
    let (rank, topology) = (session.rank(), session.topology());
    let neighbours: Vec<Rank> = topology.neighbours_of(rank).collect();
    let leader = neighbours.first().copied().unwrap_or(rank);
    if leader == rank {
        let devices = topology.members_of(rank).len();
        let segment = create(neighbours.len(), u32::try_from(devices).unwrap_or(u32::MAX), choice);
        if neighbours.len() < 2 {
            return Ok((segment.map(|segment| (rank, segment)), None));
        }
        let offered = segment.and_then(|segment| {
            let file = segment.file().try_clone_to_owned().map_err(|error| error.to_string())?;
            let offer = Offer::new(file, secret).map_err(|error| error.to_string())?;
            Ok((segment, offer))
        });
        let name = match &offered {
            Ok((_, offer)) => Ok(offer.name().to_owned()),
            Err(reason) => Err(shortened(reason)),
        };
        session.set(&key_of("offer", leader), encode::<Result<String, String>>(&name))?;
        return Ok(match offered {
            Ok((segment, offer)) => (Ok((rank, segment)), Some(offer)),
            Err(reason) => (Err(reason), None),
        });
    }
    if choice == TransportChoice::Quic {
        return Ok((Err(chosen()), None));
    }
    let offer: Option<Result<String, String>> =
        wait_for(session, &key_of("offer", leader), left())?;
    let joined = match offer {
        None => Err(format!("{leader} offered no segment in time")),
        Some(Err(reason)) => Err(format!("{leader} has none to offer: {reason}")),
        Some(Ok(name)) => {
            let place = neighbours.iter().position(|other| *other == rank).unwrap_or(0);
            take(&name, rank, secret, left())
                .map_err(|error| error.to_string())
                .and_then(|file| Segment::open(file, place).map_err(|error| error.to_string()))
                .map(|segment| (leader, segment))
        }
    };
    Ok((joined, None))
}

/// A segment of this process, if there is anyone to share it with.
fn create(places: usize, devices: u32, choice: TransportChoice) -> Result<Segment, String> {
    if choice == TransportChoice::Quic {
        Err(chosen())
    } else if places < 2 && devices < 2 {
        Err("there is nobody to share memory with".to_owned())
    } else {
        Segment::create(places).map_err(|error| error.to_string())
    }
}

fn chosen() -> String {
    format!("{} is {}", environment::TRANSPORT, TransportChoice::Quic)
}

fn key_of(what: &str, rank: Rank) -> String {
    format!("lockstep/shared-memory/{what}/{}", rank.0)
}

/// The value of `key`, if it comes in time.
fn wait_for<T: DeserializeOwned>(
    session: &Session,
    key: &str,
    timeout: Duration,
) -> Result<Option<T>, SessionError> {
    match session.get(key, timeout) {
        Ok(value) => Ok(decode(&value)),
        Err(SessionError::Refused { refusal: CallRefusal::Late { .. }, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    // Plain values in memory: encoding them cannot fail.
    postcard::to_stdvec(value).unwrap_or_default()
}

/// `None` for bytes that another release wrote.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    postcard::from_bytes(bytes).ok()
}

fn shortened(reason: &str) -> String {
    reason.chars().take(MAX_REASON_BYTES / 4).collect()
}

/// `rank 1`, `ranks 1 to 3, 7`.
fn list(ranks: &[Rank]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for rank in ranks {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(rank.0) => *last = rank.0,
            _ => runs.push((rank.0, rank.0)),
        }
    }
    let run = |(first, last): &(u32, u32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first} to {last}"),
    };
    let runs: Vec<String> = runs.iter().map(run).collect();
    format!("rank{} {}", if ranks.len() == 1 { "" } else { "s" }, runs.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attempt, Fingerprint, HostId, JobId, RankInfo};

    /// Six ranks: 0 to 3 and 5 on one host, 4 on another.
    fn topology() -> Topology {
        let info = |rank: u32| RankInfo {
            rank: Rank(rank),
            host: HostId {
                name: "host".to_owned(),
                boot_id: "boot".to_owned(),
                network: u64::from(rank == 4),
            },
            process_id: 100 + rank,
            devices: 1,
            address: std::net::SocketAddr::from(([10, 0, 0, 1], 4000)),
            fingerprint: Fingerprint([0; 32]),
        };
        Topology::new(JobId::new("job").unwrap(), Attempt(0), (0..6).map(info).collect()).unwrap()
    }

    fn sharing(ranks: [Result<u32, &str>; 6]) -> Sharing {
        let outcome = |rank: Result<u32, &str>| rank.map(Rank).map_err(str::to_owned);
        Sharing { ranks: ranks.into_iter().map(outcome).collect() }
    }

    #[test]
    fn partners_have_the_same_segment() {
        let sharing = sharing([Ok(0), Err("no memfd"), Ok(0), Ok(0), Ok(4), Err("late")]);
        let partners =
            |rank| sharing.partners_of(Rank(rank)).map(|rank| rank.0).collect::<Vec<_>>();
        assert_eq!(partners(2), [0, 2, 3]);
        assert_eq!(partners(4), [4]);
        assert!(partners(1).is_empty() && partners(6).is_empty());
        assert!(!sharing.shares(Rank(1), Rank(5)), "to have none is nothing in common");
        assert!(!sharing.shares(Rank(1), Rank(1)) && sharing.shares(Rank(4), Rank(4)));
    }

    #[test]
    fn the_description_says_how_and_why_not() {
        let (topology, mixed) = (
            topology(),
            sharing([Ok(0), Err("no memfd"), Ok(0), Ok(0), Err("alone"), Err("late")]),
        );
        for (rank, expected) in [
            (
                0,
                "ranks 2, 3 through shared memory, ranks 1, 5 of its host over QUIC (no memfd), \
                 rank 4 of other hosts over QUIC",
            ),
            (5, "ranks 0 to 3 of its host over QUIC (late), rank 4 of other hosts over QUIC"),
            (4, "ranks 0 to 3, 5 of other hosts over QUIC"),
        ] {
            assert_eq!(mixed.describe(Rank(rank), &topology), expected);
        }
        let alone = Topology::solo(1);
        assert_eq!(Sharing::solo(Err("nobody".to_owned())).describe(Rank(0), &alone), "nobody");
    }

    #[test]
    fn what_ranks_say_survives_the_store_and_nonsense_does_not() {
        let sharing = sharing([Ok(0), Err("no memfd"), Ok(0), Ok(0), Ok(4), Err("late")]);
        let bytes = encode(&sharing);
        assert_eq!(decode::<Sharing>(&bytes), Some(sharing));
        for length in 0..bytes.len() {
            assert_eq!(decode::<Sharing>(&bytes[..length]), None);
        }
        // A count that promises more than there is.
        assert_eq!(decode::<Sharing>(&[0xff, 0xff, 0xff, 0xff, 0x0f]), None);
        assert_eq!(shortened(&"é".repeat(10_000)).len(), 256);
    }
}
