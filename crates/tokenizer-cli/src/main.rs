//! `tok`: train, run and compare subword tokenizers.
fn main() {}
