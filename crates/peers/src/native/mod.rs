//! Crates of other projects.

pub mod huggingface;
pub mod tiktoken;
