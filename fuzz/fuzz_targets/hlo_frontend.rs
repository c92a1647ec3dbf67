//! Reads what frontends say beside a program: shardings as strings and as messages, device
//! assignments, compile options. What is accepted must be written as it was read.
#![no_main]

use lockstep::stablehlo::xla::{CompileOptions, DeviceAssignment, HloSharding};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok());
    for sharding in text.into_iter().chain(HloSharding::from_proto(bytes).ok()) {
        assert_eq!(sharding.to_string().parse().as_ref(), Ok(&sharding));
        assert_eq!(HloSharding::from_proto(&sharding.to_proto()).as_ref(), Ok(&sharding));
        if let HloSharding::Tiled(tiling) = &sharding {
            assert!(!tiling.devices().is_empty());
        }
    }
    if let Ok(assignment) = DeviceAssignment::from_proto(bytes) {
        assert_eq!(DeviceAssignment::from_proto(&assignment.to_proto()), Ok(assignment));
    }
    let _ = CompileOptions::from_proto(bytes);
});
