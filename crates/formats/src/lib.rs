//! Vocabulary file formats: file bytes to documents and back.
//!
//! A document holds what a file says, whole and checked, and knows no algorithm: the `tokenizer`
//! crate makes pipelines of documents and documents of pipelines. Nothing here opens a file;
//! readers take bytes, writers give bytes or text.
//!
//! | module | files |
//! |---|---|
//! | [`tokenizer_json`] | `tokenizer.json` of Hugging Face tokenizers 0.23 |
//! | [`tiktoken`] | `.tiktoken` byte ranks of OpenAI encodings |
//! | [`tekken`] | `tekken.json` of Mistral |
//! | [`sentencepiece`] | SentencePiece `.model` |
//! | [`vocab_txt`] | `vocab.txt` of BERT |
//! | [`gpt2`] | `vocab.json` and `merges.txt` |
//! | [`gguf`] | the vocabulary of a GGUF file, read only |
//! | [`counts`] | piece counts for training, as binary shards and as text |
//!
//! [`detect`] tells them apart by content, and [`byte_level`] is the byte alphabet that several
//! of them are written in.
//!
//! ```
//! use formats::{Format, detect, vocab_txt::VocabTxt};
//!
//! let file = b"[UNK]\nhug\n##s\n";
//! assert_eq!(detect(file), Some(Format::VocabTxt));
//! assert_eq!(VocabTxt::parse(file)?.ids()["##s"], 2);
//! # Ok::<(), formats::ReadError>(())
//! ```
//!
//! # What every reader promises
//!
//! - Any bytes give a document or a [`ReadError`] that says what is wrong, where (line and column
//!   and path for JSON, line for text, byte offset for binary files) and what the limit is. Never a
//!   panic, and never a guess: what is not known is refused by name.
//! - Time is linear in the file, and memory is what the file holds, never what it claims.
//! - Ids are at most [`MAX_ID`], so that whoever makes a dense table of them need not fear.
//! - Writing a document and reading the result gives an equal document.
//!
//! # Features
//!
//! `parquet` (off by default) reads and writes piece counts as tables in Parquet: `counts::parquet`. It
//! brings in the crate of that name without Arrow, and Snappy.

mod crc32;
mod detect;
mod error;
mod id_map;
mod json;
mod lines;
mod protobuf;

pub mod byte_level;
pub mod counts;
pub mod gguf;
pub mod gpt2;
pub mod sentencepiece;
pub mod tekken;
pub mod tiktoken;
pub mod tokenizer_json;
pub mod vocab_txt;

pub use detect::{Format, detect};
pub use error::{ErrorKind, Position, ReadError, WriteError};
pub use id_map::{IdMap, IdMapError, Key, MAX_ID, Strings};
pub use json::Layout;
