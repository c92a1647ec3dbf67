//! Decodes what the coordinator and its members tell each other.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lockstep_collectives::fuzzing::rendezvous::message(bytes));
