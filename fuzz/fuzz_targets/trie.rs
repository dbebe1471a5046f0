//! WordPiece's matcher against its naive twin: `fuzz::trie`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::trie::run(data));
