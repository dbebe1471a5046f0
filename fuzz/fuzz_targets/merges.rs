//! Byte-pair encoders against their naive twin: `fuzz::merges`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::merges::run(data));
