//! One suite for every transport: what collectives compute, and how they fail.

mod failures;
mod jobs;
mod reference;
mod values;
