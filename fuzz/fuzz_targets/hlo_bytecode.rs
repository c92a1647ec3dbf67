//! Reads a program as bytecode. An error is at a place in the file; what the verifier accepts must
//! print as text that reads back equal.
#![no_main]

use lockstep::stablehlo::{parse, parse_bytecode, verify};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    match parse_bytecode(bytes) {
        Err(error) => assert!(error.offset <= bytes.len()),
        Ok(module) if verify(&module).is_ok() => {
            let again = parse(&module.to_string()).expect("what is printed reads back");
            assert_eq!(again.fingerprint(), module.fingerprint());
        }
        Ok(_) => {}
    }
});
