//! Hands a segment over to, and takes one from, a process without the job's secret.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lockstep_collectives::fuzzing::shared_memory::handover(bytes));
