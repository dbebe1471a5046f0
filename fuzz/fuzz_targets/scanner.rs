//! Scanners against their twin and their pattern: `fuzz::scanner`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::scanner::run(data));
