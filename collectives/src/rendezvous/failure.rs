//! How a process of the job ended, in the words that every other process and the launcher use.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Rank;

/// A rank that the job has lost.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[error("{rank} {cause}")]
pub struct RankFailure {
    /// The rank.
    pub rank: Rank,
    /// How it was lost.
    pub cause: FailureCause,
}

/// How a rank was lost.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FailureCause {
    /// It closed its connection, or the network did, without leaving.
    Disconnected,
    /// Its process ended with a code other than 0.
    Exited {
        /// The code.
        code: i32,
    },
    /// It left the job in order, while others still needed it.
    Left,
    /// It said itself that it cannot go on.
    Reported(String),
    /// Its process was killed.
    Signalled {
        /// The signal's number.
        signal: i32,
    },
    /// No sign of life came from it.
    Silent {
        /// For how long.
        for_: Duration,
    },
}

/// How a process ended, as its parent learns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProcessExit {
    /// It returned this code.
    Exited {
        /// The code; 0 is success.
        code: i32,
    },
    /// A signal ended it.
    Signalled {
        /// The signal's number.
        signal: i32,
    },
}

impl ProcessExit {
    /// The failure this is; `None` for success.
    pub fn failure(self) -> Option<FailureCause> {
        match self {
            Self::Exited { code: 0 } => None,
            Self::Exited { code } => Some(FailureCause::Exited { code }),
            Self::Signalled { signal } => Some(FailureCause::Signalled { signal }),
        }
    }
}

impl fmt::Display for FailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disconnected => f.write_str("closed its connection without leaving"),
            Self::Exited { code } => write!(f, "exited with code {code}"),
            Self::Left => f.write_str("left the job"),
            Self::Reported(message) => write!(f, "reported: {message}"),
            Self::Signalled { signal } => match signal_name(*signal) {
                Some(name) => write!(f, "was killed by signal {signal} ({name})"),
                None => write!(f, "was killed by signal {signal}"),
            },
            Self::Silent { for_ } => write!(f, "was silent for {:.1} s", for_.as_secs_f64()),
        }
    }
}

/// The name of a signal of Linux.
pub fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_read_as_sentences() {
        let read = |cause| RankFailure { rank: Rank(2), cause }.to_string();
        let signalled = |signal| read(FailureCause::Signalled { signal });
        assert_eq!(signalled(9), "rank 2 was killed by signal 9 (SIGKILL)");
        assert_eq!(signalled(40), "rank 2 was killed by signal 40");
        assert_eq!(read(FailureCause::Exited { code: 3 }), "rank 2 exited with code 3");
        let silent = FailureCause::Silent { for_: Duration::from_millis(30_400) };
        assert_eq!(read(silent), "rank 2 was silent for 30.4 s");
        assert_eq!(read(FailureCause::Left), "rank 2 left the job");
        assert_eq!(
            read(FailureCause::Reported("out of memory".into())),
            "rank 2 reported: out of memory"
        );
    }

    #[test]
    fn only_code_zero_is_success() {
        assert_eq!(ProcessExit::Exited { code: 0 }.failure(), None);
        let code = ProcessExit::Exited { code: 1 }.failure();
        assert_eq!(code, Some(FailureCause::Exited { code: 1 }));
        let signal = ProcessExit::Signalled { signal: 15 }.failure();
        assert_eq!(signal, Some(FailureCause::Signalled { signal: 15 }));
    }
}
