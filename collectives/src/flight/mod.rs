//! The flight recorder: the last collectives of a process, always on.
//!
//! Owns the ring that a [`Communicator`](crate::Communicator) writes into as operations begin and
//! end, and the [`FlightLog`] that is read out of it. Who asks for a log, and where it goes, is the
//! [`Session`](crate::Session)'s; how it reads is the launcher's.
//!
//! Recording allocates nothing and takes no lock: a few stores to a cache line of its own for each
//! operation. Times are those of the transport's clock, which the caller reads anyway.

mod log;
mod ring;

pub use log::{FlightEntry, FlightLog, FlightState};
pub use ring::{FLIGHT_ENTRIES, FlightRecorder};
