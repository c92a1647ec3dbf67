//! Reads the launcher's variables: line by line the value of one each, if there is such a line.
#![no_main]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use lockstep_collectives::{Environment, Limits, environment, parse_duration};

const NAMES: [&str; 13] = [
    environment::RANK,
    environment::WORLD_SIZE,
    environment::LOCAL_RANK,
    environment::LOCAL_SIZE,
    environment::COORDINATOR,
    environment::COORDINATOR_HOSTED,
    environment::JOB,
    environment::ATTEMPT,
    environment::KEY_FILE,
    environment::DEVICES,
    environment::INIT_TIMEOUT,
    environment::HEARTBEAT_TIMEOUT,
    environment::COLLECTIVE_TIMEOUT,
];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let variable = |name: &str| {
        let index = NAMES.iter().position(|known| *known == name)?;
        let value = lines.get(index).filter(|value| !value.is_empty())?;
        Some(OsStr::from_bytes(value).to_owned())
    };
    if let Ok(Some(environment)) = Environment::from_variables(variable) {
        assert!(environment.rank.0 < environment.world_size);
        let variables = environment.variables();
        let again = Environment::from_variables(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.clone())
        });
        assert_eq!(again.ok(), Some(Some(environment)));
    }
    let _ = Limits::from_variables(variable);
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = parse_duration(text);
    }
});
