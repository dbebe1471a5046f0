//! The assembled pipeline: added tokens, normalization, splitting, a model, a template, decoding.
//!
//! The one crate of the workspace that knows all the others. [`Tokenizer`] is immutable and shared;
//! a [`Session`] is the scratch memory of one thread.
//!
//! ```
//! use tokenizer::{DecodeOptions, Tokenizer};
//!
//! let tokenizer = Tokenizer::bytes();
//! let ids = tokenizer.ids("né");
//! assert_eq!(ids.len(), 3);
//! assert_eq!(tokenizer.decode(&ids, DecodeOptions::default())?, "né");
//! # Ok::<(), tokenizer_core::DecodeError>(())
//! ```
//!
//! User text never becomes a control token unless the caller says so with a [`Policy`]; counting
//! never fails.
//!
//! # Features
//!
//! `images` (default): the tables of the embedded encodings are made when the crate is built and read where they lie
//! in the program. Changes no result; a program becomes larger by about 65 bytes for each token of the encodings that it can
//! load, 27 MB for all of them. Without it their tables are built when an encoding is loaded, in a few milliseconds. Where
//! numbers are big-endian, and for WebAssembly, that is always so.

mod added;
mod batch;
pub mod convert;
mod counting;
mod decoder;
mod dropout;
mod embedded;
mod encode_stream;
mod encoding;
mod fit;
mod lane;
pub mod lift;
mod limit;
mod load;
mod lower;
mod offsets;
mod pipeline;
mod policy;
mod post;
#[cfg(any(test, not(images)))]
mod ranked;
mod sentences;
mod session;
mod stream;
mod trace;
pub mod verify;

pub use added::{AddedToken, AddedTokenError};
pub use batch::Batch;
pub use counting::{CorpusCounter, CountingError, Run, Spill};
pub use decoder::{DecodePattern, DecodeStep, LeadingSpace, Spelling, clean_up};
pub use encode_stream::EncodeStream;
pub use encoding::{CharIndex, Encoding};
pub use fit::{PadTo, Padding, Side, Truncation, TruncationError, TruncationStrategy};
pub use load::{Document, LoadError, LoadOptions};
pub use lower::{BertCase, LowerError, RanksSetup, TiktokenEncoding, gpt2_as_tokenizer_json};
pub use offsets::OffsetsError;
pub use pipeline::{
    ByteOffsets, EditPiece, EncodeOptions, Parts, PartsError, PieceStep, Session, Tokenizer,
};
pub use policy::{Policy, SpecialSet, SpecialTokenError};
pub use post::{PostProcessor, Template, TemplateError, TemplatePart};
pub use sentences::Sentences;
pub use session::SessionOptions;
pub use stream::{DecodeOptions, DecodeStream};
pub use trace::{Stretch, Trace, TracedPiece, TracedText};

/// The examples of docs/formats.md, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/formats.md")]
struct FormatsPage;
