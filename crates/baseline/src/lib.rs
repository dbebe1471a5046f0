//! The baselines of the comparison: bytes, characters, whole words
