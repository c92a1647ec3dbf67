//! Who is in the job: membership, a key-value store, barriers and the news of failures.

mod failure;

pub use failure::{FailureCause, ProcessExit, RankFailure, signal_name};
