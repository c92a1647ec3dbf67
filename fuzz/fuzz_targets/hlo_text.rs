//! Reads a program as text. What the verifier accepts must print as text that reads back equal,
//! in both forms.
#![no_main]

use lockstep::stablehlo::{parse, parse_all, verify};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(modules) = parse_all(text) else { return };
    for module in modules {
        if verify(&module).is_err() {
            continue;
        }
        let printed = module.to_string();
        for form in [&printed, &module.to_generic_text()] {
            let again = parse(form).expect("what is printed reads back");
            assert_eq!(again.to_string(), printed);
        }
    }
});
