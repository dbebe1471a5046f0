//! The table of pieces against the algorithm behind it: `fuzz::table`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::table::run(data));
