//! Who is in the job: membership, a key-value store, barriers and the news of failures.
//!
//! One process, the launcher or rank 0, runs the [`Coordinator`]; every rank has a [`Session`] with
//! it. The decisions are made in `core`, a state machine without I/O or clock; `coordinator` and
//! `session` carry its messages over QUIC, in the form that `message` gives them.
//!
//! What a process has to know to come to the coordinator, it has from its launcher, or through a
//! `store` that the processes have in common.
//!
//! Every wait has a deadline at the coordinator, where the one who waits is also known to the ones
//! waited for (I3). A member that dies, leaves or falls silent ends the waits for it at once, with
//! its name.

mod coordinator;
mod core;
mod failure;
mod flight;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod join;
mod link;
mod message;
mod refusal;
mod session;
mod store;
mod watch;

pub use coordinator::{
    Coordinator, CoordinatorOptions, DEFAULT_HEARTBEAT_TIMEOUT, RendezvousError,
};
pub use core::CoordinatorStatus;
pub use failure::{FailureCause, ProcessExit, RankFailure, signal_name};
pub use join::{JoinError, JoinOptions};
pub use message::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
pub use refusal::{CallRefusal, JoinRefusal, MissingRanks};
pub use session::{Failures, Session, SessionError};
pub(crate) use store::Invitation;
pub use store::{KeyValueStore, Meeting, MeetingError, StoreError};
