//! Decodes the words of a descriptor, as a process of the host may write them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lockstep_collectives::fuzzing::communicator::words(bytes));
