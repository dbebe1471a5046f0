//! Laws, generators and fixture access for tests; a dev-dependency only.
//!
//! - [`laws`]: what every model, splitter and normalizer must obey.
//! - [`texts`]: the awkward texts that every test set includes.
//! - [`strategies`]: proptest generators of text that tokenizers find hard.
//! - [`fixtures`]: the committed corpora, vectors and samples, with their manifest.
//! - [`generated`] and [`pathological`]: corpora that are made, of any size.
//! - [`clock`]: processor time, for examples that measure.

pub mod clock;
pub mod fixtures;
pub mod generated;
pub mod laws;
pub mod pathological;
pub mod strategies;
pub mod texts;
