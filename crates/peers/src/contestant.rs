//! The one trait that everybody who is compared implements.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A tokenizer that can be asked.
pub trait Contestant {
    /// Its name and version.
    fn name(&self) -> &str;

    /// Encodes one text or a pair.
    fn encode(&mut self, request: &Request<'_>) -> Outcome<Encoded>;

    /// Encodes many; a contestant behind a pipe overrides this to be asked once.
    fn encode_all(&mut self, requests: &[Request<'_>]) -> Vec<Outcome<Encoded>> {
        requests.iter().map(|request| self.encode(request)).collect()
    }

    /// Why a difference in the answer to this is none: a fault of the contestant that is known, or
    /// of the file.
    fn excuse(&mut self, _request: &Request<'_>) -> Option<String> {
        None
    }

    /// As [`excuse`](Self::excuse), for decoding.
    fn excuse_decoding(&mut self, _request: &DecodeRequest<'_>) -> Option<String> {
        None
    }

    /// The text of ids.
    fn decode(&mut self, request: &DecodeRequest<'_>) -> Outcome<String>;

    /// Decodes many.
    fn decode_all(&mut self, requests: &[DecodeRequest<'_>]) -> Vec<Outcome<String>> {
        requests.iter().map(|request| self.decode(request)).collect()
    }
}

/// What is to be encoded, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'t> {
    /// The text.
    pub first: &'t str,
    /// The second text of a pair.
    pub second: Option<&'t str>,
    /// Whether the text of special tokens becomes the token.
    pub special: bool,
    /// Whether the template is filled in.
    pub template: bool,
}

/// What is to be decoded, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeRequest<'t> {
    /// The ids.
    pub ids: &'t [u32],
    /// Whether special tokens give no text.
    pub skip_special: bool,
}

/// What came of a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome<T> {
    /// An answer.
    Value(T),
    /// An error, as the contestant words it.
    Refused(String),
    /// It panicked, died or ran out of time.
    Crashed(String),
}

impl<T> Outcome<T> {
    /// Runs code of another project; a panic is an outcome.
    pub fn of<E: std::fmt::Display>(run: impl FnOnce() -> Result<T, E>) -> Self {
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(value)) => Self::Value(value),
            Ok(Err(error)) => Self::Refused(error.to_string()),
            Err(panic) => Self::Crashed(words(panic.as_ref())),
        }
    }
}

/// What a panic says.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words").into()
}

/// The whole answer to a [`Request`]. A contestant that does not know a part leaves it `None`,
/// and the part is not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// The ids.
    pub ids: Vec<u32>,
    /// Byte offsets in the text that each token is of.
    pub bytes: Option<Vec<(usize, usize)>>,
    /// Character offsets; of single texts only.
    pub chars: Option<Vec<(usize, usize)>>,
    /// The index of the word that each token is of.
    pub words: Option<Vec<Option<u32>>>,
    /// Type ids.
    pub types: Option<Vec<u32>>,
    /// 1 where template or padding added the token.
    pub special: Option<Vec<u32>>,
    /// 0 for padding.
    pub attention: Option<Vec<u32>>,
    /// What truncation cut off.
    pub overflowing: Vec<Encoded>,
}
