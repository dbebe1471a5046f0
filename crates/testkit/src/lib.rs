//! Laws, generators and fixture access for tests; a dev-dependency only.
//!
//! - [`laws`]: what every model, splitter and normalizer must obey.
//! - [`texts`]: the awkward texts that every test set includes.
//! - [`strategies`]: proptest generators of text that tokenizers find hard.

pub mod laws;
pub mod strategies;
pub mod texts;
