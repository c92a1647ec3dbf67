//! Decodes the bytes with which a stream between processes begins.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lockstep_collectives::fuzzing::transport::head(bytes));
