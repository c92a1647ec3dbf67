//! Why the coordinator refuses to admit a process or to do what a member asks.
//!
//! These travel as they are, so both sides say the same words.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::RankFailure;
use crate::{Attempt, HostId, JobId, Rank};

/// Why a process may not join.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum JoinRefusal {
    /// The rank is taken.
    #[error("{rank} has joined already, as process {process_id} on {host}: start each rank once")]
    Duplicate {
        /// The rank.
        rank: Rank,
        /// The host of the process that has it.
        host: HostId,
        /// The process that has it.
        process_id: u32,
    },
    /// The rank was there and has left.
    #[error("{0} has left the job: a process joins once")]
    HasLeft(Rank),
    /// A rank's process ended before it joined, so the job can never be complete.
    #[error("the job cannot come together: {0} ended before it joined")]
    Incomplete(Rank),
    /// The job has failed already.
    #[error("the job has failed: {0}")]
    JobFailed(RankFailure),
    /// What the process says of itself is out of bounds.
    #[error("a join with {0}")]
    Malformed(String),
    /// It belongs to another restart of the job.
    #[error(
        "this is {expected} of the job, not {found}: a process of another start is still alive"
    )]
    OtherAttempt {
        /// The coordinator's.
        expected: Attempt,
        /// The process's.
        found: Attempt,
    },
    /// It belongs to another job.
    #[error("this is job {expected}, not {found}: check LOCKSTEP_COORDINATOR and LOCKSTEP_JOB")]
    OtherJob {
        /// The coordinator's.
        expected: JobId,
        /// The process's.
        found: JobId,
    },
    /// It believes the job to have another size.
    #[error("the job has {expected} processes, not {found}: check LOCKSTEP_WORLD_SIZE")]
    OtherWorldSize {
        /// The coordinator's.
        expected: u32,
        /// The process's.
        found: u32,
    },
    /// The job has no such rank.
    #[error("the job has ranks 0 to {}, not {rank}", world_size.saturating_sub(1))]
    OutOfRange {
        /// The rank.
        rank: Rank,
        /// The job's size.
        world_size: u32,
    },
}

/// Why a member's call came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum CallRefusal {
    /// A key that may be set once is set.
    #[error("the key is set already")]
    AlreadySet,
    /// The same member waits at the same barrier already.
    #[error("this rank waits at this barrier already: give the barriers of two threads two names")]
    AlreadyWaiting,
    /// Something had not come within the time.
    #[error("{}", late(*timeout, missing))]
    Late {
        /// The caller's, or that of the first caller whose time was up.
        timeout: Duration,
        /// The ranks that had not arrived; none for a key.
        missing: MissingRanks,
    },
    /// The caller is no member.
    #[error("this connection has not joined the job")]
    NotJoined,
    /// A rank has failed, so what is waited for may never come.
    #[error("{0}")]
    RankFailed(RankFailure),
    /// A rank has left, so the barrier can never be complete.
    #[error("{0} has left the job")]
    RankLeft(Rank),
    /// More than the coordinator keeps or sends.
    #[error("{what} of {found}, where at most {limit} is allowed")]
    TooLarge {
        /// What is too large.
        what: String,
        /// Its size or number.
        found: u64,
        /// The limit.
        limit: u64,
    },
}

/// The ranks that something waits for: the first few, and how many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingRanks {
    first: Vec<Rank>,
    count: u32,
}

impl MissingRanks {
    /// How many ranks are listed by number.
    const LISTED: usize = 16;

    /// The ranks that `ranks` yields, which are in order.
    pub fn new(ranks: impl ExactSizeIterator<Item = Rank>) -> Self {
        let count = u32::try_from(ranks.len()).unwrap_or(u32::MAX);
        Self { first: ranks.take(Self::LISTED).collect(), count }
    }

    /// Whether none is missing.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many are missing.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The lowest of the missing ranks, 16 at most.
    pub fn first(&self) -> &[Rank] {
        &self.first
    }
}

impl fmt::Display for MissingRanks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first.as_slice() {
            [] => f.write_str("no rank"),
            [rank] if self.count == 1 => write!(f, "{rank}"),
            ranks => {
                f.write_str("ranks ")?;
                for (index, rank) in ranks.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(f, "{comma}{}", rank.0)?;
                }
                let listed = u32::try_from(ranks.len()).unwrap_or(u32::MAX);
                match self.count.saturating_sub(listed) {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
        }
    }
}

fn late(timeout: Duration, missing: &MissingRanks) -> String {
    if missing.is_empty() {
        format!("not set within {timeout:?}")
    } else {
        format!("{missing} did not come within {timeout:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_ranks_read_well_however_many() {
        let read = |ranks: std::ops::Range<u32>| MissingRanks::new(ranks.map(Rank)).to_string();
        assert_eq!(read(0..0), "no rank");
        assert_eq!(read(7..8), "rank 7");
        assert_eq!(read(3..5), "ranks 3, 4");
        let many = "ranks 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16";
        assert_eq!(read(1..17), many);
        assert_eq!(read(1..4096), format!("{many} and 4079 more"));
    }
}
