//! Who is in the job, and moving and reducing bytes between its processes.
//!
//!
//! Bytes from a peer never panic and never allocate without a bound (invariant I5). Every wait has
//! a deadline (I3). There is no global state: two jobs can live in one process (I6).

#![forbid(unsafe_code)]

mod ids;

pub use ids::{Attempt, JobId, Member, Rank};
