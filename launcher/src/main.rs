//! The `lockstep` command: starts the processes of a job and answers for them.

#![forbid(unsafe_code)]

fn main() {}
