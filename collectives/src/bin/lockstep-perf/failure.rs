//! Why a benchmark has no good end, and the exit code that says so.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use lockstep_collectives::{CollectiveError, GroupError, WorldError};

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A collective failed; its error names who is missing or at fault.
    #[error("at {size_bytes} bytes: {source}{}", limit(*timeout))]
    Collective {
        /// The size that was measured.
        size_bytes: usize,
        /// What `--timeout` says.
        timeout: Option<Duration>,
        source: Box<CollectiveError>,
    },
    #[error(transparent)]
    Group(#[from] GroupError),
    /// There is no room for the operands.
    #[error("no memory for operands of {size_bytes} bytes; lower -e")]
    Memory { size_bytes: u64 },
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
    /// `--min-busbw` is missed.
    #[error("the average bus bandwidth is {found:.3} GB/s, below the {least} GB/s of --min-busbw")]
    TooSlow { found: f64, least: f64 },
    /// The arguments do not fit the job.
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    World(#[from] WorldError),
    /// Results are wrong.
    #[error("{count} elements are wrong")]
    Wrong { count: u64 },
}

impl Failure {
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            _ => ExitCode::from(1),
        }
    }
}

fn limit(timeout: Option<Duration>) -> String {
    timeout.map(|timeout| format!(" (--timeout gives a size {timeout:?})")).unwrap_or_default()
}
