//! What the recorder held at one moment: plain values that travel to the coordinator.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::descriptor::{CollectiveKind, GroupId, OperationId};
use crate::element::ElementType;
use crate::ids::Member;

/// The last collectives of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlightLog {
    /// How many the process has begun so far.
    pub recorded: u64,
    /// When this was read, on the clock of the process's transport.
    pub taken: Duration,
    /// The oldest first; at most [`FLIGHT_ENTRIES`](super::FLIGHT_ENTRIES).
    pub entries: Vec<FlightEntry>,
}

/// One collective as one local member went through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlightEntry {
    /// Whose side it is.
    pub member: Member,
    /// The first 64 bits of the group's name.
    pub group: u64,
    /// How many members the group has.
    pub group_size: u32,
    /// Its place among the collectives of the group, as in [`OperationId`].
    pub sequence: u64,
    /// What was called.
    pub kind: CollectiveKind,
    /// The type of the elements; `None` for a barrier.
    pub element: Option<ElementType>,
    /// Elements of one member's operand.
    pub count: u64,
    /// When it began, on the clock of the process's transport.
    pub started: Duration,
    /// When it ended; `None` while it runs.
    pub ended: Option<Duration>,
    /// How it stands.
    pub state: FlightState,
}

/// How a recorded collective stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FlightState {
    /// It has not returned.
    Running,
    /// It returned its result.
    Completed,
    /// It returned an error.
    Failed,
}

impl FlightLog {
    /// What the process is in the middle of, the longest first.
    pub fn running(&self) -> impl Iterator<Item = &FlightEntry> {
        self.entries.iter().filter(|entry| entry.state == FlightState::Running)
    }

    /// The last one to return in order, and the last one to fail.
    pub fn last(&self, state: FlightState) -> Option<&FlightEntry> {
        let of_state = self.entries.iter().filter(|entry| entry.state == state);
        of_state.max_by_key(|entry| entry.ended)
    }

    /// The same with only the newest `count` entries.
    #[must_use]
    pub fn tail(mut self, count: usize) -> Self {
        self.entries.drain(..self.entries.len().saturating_sub(count));
        self
    }
}

impl FlightEntry {
    /// Its number in the group, as errors write it.
    pub fn operation(&self) -> impl fmt::Display {
        // The name of the group is not part of the text.
        OperationId { group: GroupId([0; 16]), sequence: self.sequence }
    }

    /// How long it took, or has taken at `now`, on the clock of the process's transport.
    pub fn took(&self, now: Duration) -> Duration {
        self.ended.unwrap_or(now).saturating_sub(self.started)
    }
}

/// `all_reduce(f32, 1024 elements) #5.1`
impl fmt::Display for FlightEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.element {
            Some(element) => write!(f, "{}({element}, {} elements) ", self.kind, self.count)?,
            None => write!(f, "{} ", self.kind)?,
        }
        self.operation().fmt(f)
    }
}

/// `running`, `completed`, `failed`
impl fmt::Display for FlightState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(sequence: u64, state: FlightState) -> FlightEntry {
        let ended = (state != FlightState::Running).then(|| Duration::from_millis(sequence + 3));
        FlightEntry {
            member: Member(1),
            group: 7,
            group_size: 4,
            sequence,
            kind: CollectiveKind::AllReduce,
            element: Some(ElementType::F32),
            count: 1024,
            started: Duration::from_millis(sequence),
            ended,
            state,
        }
    }

    #[test]
    fn a_log_knows_what_runs_and_what_came_last() {
        use FlightState::{Completed, Failed, Running};
        let states = [Completed, Running, Completed, Failed, Running];
        let entries = (1..).zip(states).map(|(sequence, state)| entry(sequence, state)).collect();
        let log = FlightLog { recorded: 5, taken: Duration::from_millis(10), entries };
        assert_eq!(log.running().map(|entry| entry.sequence).collect::<Vec<_>>(), [2, 5]);
        assert_eq!(log.last(Completed).unwrap().sequence, 3);
        assert_eq!(log.last(Failed).unwrap().sequence, 4);
        assert_eq!(log.running().next().unwrap().took(log.taken), Duration::from_millis(8));
        assert_eq!(log.last(Failed).unwrap().took(log.taken), Duration::from_millis(3));
        let tail = log.tail(2);
        assert_eq!(tail.entries.iter().map(|entry| entry.sequence).collect::<Vec<_>>(), [4, 5]);
        assert_eq!(tail.recorded, 5);
        assert_eq!(tail.tail(9).entries.len(), 2);
    }

    #[test]
    fn an_entry_reads_as_the_call() {
        let mut entry = entry((5 << 24) + 1, FlightState::Completed);
        assert_eq!(entry.to_string(), "all_reduce(f32, 1024 elements) #5.1");
        (entry.kind, entry.element, entry.sequence) = (CollectiveKind::Barrier, None, 3);
        assert_eq!(entry.to_string(), "barrier #3");
    }
}
