//! Documents of `formats` to pipelines.
//!
//! A loaded file behaves as its own library does, except that text never becomes a control token
//! on its own: special tokens are recognised by the pipeline under a [`Policy`](crate::Policy),
//! never by the model.

mod gguf;
mod gpt2;
pub(crate) mod normalizers;
mod sentencepiece;
mod spm_normalizer;
mod spm_pieces;
mod tiktoken;
mod tokenizer_json;
mod vocab;
mod vocab_txt;

use std::fmt;

pub(crate) use gguf::document as gguf_document;
pub use gpt2::gpt2_as_tokenizer_json;
pub use tiktoken::{RanksSetup, TiktokenEncoding};
pub(crate) use tokenizer_json::Mark;
pub(crate) use vocab::fill_to;
pub use vocab_txt::BertCase;

/// Why a document could not become a tokenizer.
#[derive(Debug)]
pub struct LowerError {
    part: String,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl LowerError {
    pub(crate) fn new(part: impl Into<String>, message: impl Into<String>) -> Self {
        Self { part: part.into(), message: message.into(), source: None }
    }

    /// A part that another crate refused.
    pub(crate) fn caused(
        part: impl Into<String>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self { part: part.into(), message: source.to_string(), source: Some(Box::new(source)) }
    }

    /// The part of the document, as `model` or `pre_tokenizer.pretokenizers[1]`.
    #[must_use]
    pub fn part(&self) -> &str {
        &self.part
    }
}

impl fmt::Display for LowerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.part, self.message)
    }
}

impl std::error::Error for LowerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().and_then(|source| source.source())
    }
}
