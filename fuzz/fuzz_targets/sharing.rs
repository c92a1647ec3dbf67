//! Decodes what ranks publish about the memory that they share.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lockstep_collectives::fuzzing::shared_memory::sharing(bytes));
