//! Viterbi against its naive twin: `fuzz::lattice`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::lattice::run(data));
