//! Who is in the job, and moving and reducing bytes between its processes.
//!
//! - [`World`]: what a program opens. It joins the job that an [`Environment`] describes.
//! - [`Coordinator`] and [`Session`]: membership, key-value store, barriers, heartbeats and the
//!   news of failures.
//! - [`Communicator`]: the collectives of one member.
//! - [`transport`]: bytes between members, in shared memory, over QUIC or, in tests, a simulated
//!   network.
//! - [`shared_memory`]: memory that the processes of one host share.
//!
//! All collectives move elements of every type. Those that reduce (all_reduce, reduce and
//! reduce_scatter) know these:
//!
//! | elements | sum, product | min, max | and, or, xor | mean | function |
//! |---|---|---|---|---|---|
//! | bool | yes | yes | yes | no | yes |
//! | i8, i16, i32, i64, u8, u16, u32, u64 | yes | yes | yes | no | yes |
//! | i2, i4, u2, u4 | yes | yes | yes | no | yes |
//! | f16, bf16, f32, f64 | yes | yes | no | yes | yes |
//! | f8e3m4, f8e4m3, f8e4m3fn, f8e4m3b11fnuz, f8e4m3fnuz, f8e5m2, f8e5m2fnuz | yes | yes | no | yes | yes |
//! | c64, c128 | yes | no | no | yes | yes |
//! | opaque16 | no | no | no | no | yes |
//!
//! Integers wrap, a bool is 0 or 1, a NaN of any member is in every minimum and maximum, where -0
//! is less than +0. Floats of 8 and 16 bits are folded in f32 and rounded once. The opaque ones
//! are those of any size that arithmetic does not know.
//!
//! All members get the same bits, in every run (I4). Operands are folded in the order of the group,
//! unless a reduction takes an [`Algorithm`] that folds them in another; a [`Policy`] that is
//! reproducible takes none of those, so that the bits do not depend on where the members are
//! either. A function is always applied in the order of the group.
//!
//! Bytes from a peer never panic and never allocate without a bound (invariant I5). Every wait has
//! a deadline (I3). There is no global state: two jobs can live in one process (I6).

#![deny(unsafe_code)]

mod algorithm;
mod code;
mod communicator;
mod descriptor;
mod element;
mod endpoint;
pub mod environment;
mod flight;
mod identity;
mod ids;
mod reduce;
mod rendezvous;
mod secret;
pub mod shared_memory;
#[expect(unsafe_code, reason = "no safe function stores past the caches")]
mod stream;
mod topology;
pub mod transport;
mod world;

/// What the fuzz targets of `fuzz/` call; in their builds only.
#[cfg(feature = "fuzzing")]
pub mod fuzzing {
    pub use crate::communicator::fuzzing as communicator;
    pub use crate::rendezvous::fuzzing as rendezvous;
    pub use crate::shared_memory::fuzzing as shared_memory;
    pub use crate::transport::fuzzing as transport;
}

pub use algorithm::{Algorithm, Cost, InvalidAlgorithm, Policy};
pub use communicator::{
    Call, CollectiveCause, CollectiveError, Communicator, Group, GroupError, MAX_REASON_BYTES,
    MAX_SIDES, Participant, Side,
};
pub use descriptor::{CollectiveKey, CollectiveKind, Descriptor, GroupId, OperationId, Signature};
pub use element::{ElementType, Operator, OperatorName, Reduction, ReductionFunction};
pub use endpoint::{
    ConnectError, Connector, EndpointError, PeerConnection, PeerEndpoint, Protocol, address_towards,
};
pub use environment::{
    Environment, EnvironmentError, InvalidDuration, InvalidTransport, KeySource, Limits,
    TransportChoice, parse_duration,
};
pub use flight::{FLIGHT_ENTRIES, FlightEntry, FlightLog, FlightRecorder, FlightState};
pub use identity::{Identity, IdentityError, PeerName};
pub use ids::{Attempt, InvalidJobId, JobId, Member, Rank};
pub use rendezvous::{
    CallRefusal, Coordinator, CoordinatorOptions, CoordinatorStatus, DEFAULT_HEARTBEAT_TIMEOUT,
    FailureCause, Failures, JoinError, JoinOptions, JoinRefusal, KeyValueStore, MAX_KEY_BYTES,
    MAX_VALUE_BYTES, Meeting, MeetingError, MissingRanks, ProcessExit, RankFailure,
    RendezvousError, Session, SessionError, StoreError, signal_name,
};
pub use secret::{JobSecret, SecretError};
pub use topology::{Fingerprint, HostId, RankInfo, Topology, TopologyError};
pub use transport::CancelToken;
pub use world::{World, WorldError};
