//! Decodes what processes tell each other about the programs that they compiled.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lockstep::fuzzing::client::agreement(bytes));
