//! Reads the job's key from a pipe, as a launcher passes it.
#![no_main]

use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;

use lockstep_collectives::JobSecret;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (reader, mut writer) = io::pipe().expect("a pipe");
    // Within what a pipe holds.
    let bytes = &bytes[..bytes.len().min(4096)];
    writer.write_all(bytes).expect("room");
    drop(writer);
    if let Ok(secret) = JobSecret::from_descriptor(reader.as_raw_fd()) {
        let text = secret.to_text();
        assert_eq!(text.trim_end().as_bytes(), bytes[..64].to_ascii_lowercase());
    }
});
