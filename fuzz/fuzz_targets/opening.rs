//! Decodes the opening of a collective, as a peer may send it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lockstep_collectives::fuzzing::communicator::opening(bytes));
