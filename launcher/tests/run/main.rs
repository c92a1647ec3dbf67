//! `lockstep run` from outside: the built command, real processes, real signals.

#![forbid(unsafe_code)]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod arguments;
mod exit_codes;
mod external;
mod flight;
mod leftovers;
mod membership;
mod output;
mod relays;
mod signals;
mod support;
