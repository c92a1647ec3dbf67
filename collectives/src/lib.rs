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
//! Bytes from a peer never panic and never allocate without a bound (invariant I5). Every wait has
//! a deadline (I3). There is no global state: two jobs can live in one process (I6).

#![deny(unsafe_code)]

mod algorithm;
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
mod topology;
pub mod transport;
mod world;

/// What the fuzz targets of `fuzz/` call; in their builds only.
#[cfg(feature = "fuzzing")]
pub mod fuzzing {
    pub use crate::communicator::fuzzing as communicator;
    pub use crate::rendezvous::fuzzing as rendezvous;
    pub use crate::transport::fuzzing as transport;
}

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
    FailureCause, Failures, JoinError, JoinOptions, JoinRefusal, MAX_KEY_BYTES, MAX_VALUE_BYTES,
    MissingRanks, ProcessExit, RankFailure, RendezvousError, Session, SessionError, signal_name,
};
pub use secret::{JobSecret, SecretError};
pub use topology::{Fingerprint, HostId, RankInfo, Topology, TopologyError};
pub use transport::CancelToken;
pub use world::{World, WorldError};
