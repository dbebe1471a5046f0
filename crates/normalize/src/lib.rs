//! Text to text, with edits that keep offsets: the normalizers of Hugging Face tokenizers (as of
//! 0.23) and of SentencePiece (as of 0.2.3), exactly as those libraries have them.
//!
//! ```
//! use normalize::{Form, Lowercase, Sequence, StripAccents, UnicodeForm};
//! use tokenizer_core::{Alignment, Normalize, Span};
//!
//! let plain = Sequence::new().then(UnicodeForm::new(Form::Nfd)).then(StripAccents).then(Lowercase);
//! let mut edits = Vec::new();
//! assert_eq!(plain.normalize_with_edits("Ça là", &mut edits), "ca la");
//! // "la" is bytes 3 to 5 of the normalized text and 4 to 7 of the original.
//! assert_eq!(Alignment::new(edits).to_source(Span::new(3, 5)), Span::new(4, 7));
//! ```
//!
//! # What is here
//!
//! | part of `tokenizer.json` | here |
//! |---|---|
//! | `NFC`, `NFD`, `NFKC`, `NFKD` | [`UnicodeForm`] (UAX #15) |
//! | `Lowercase`, `Strip`, `StripAccents`, `Nmt` | [`Lowercase`], [`Strip`], [`StripAccents`], [`Nmt`] |
//! | `BertNormalizer` | [`BertNormalizer`] |
//! | `ByteLevel` | [`ByteLevel`]; its `add_prefix_space` is [`PrefixSpace`] |
//! | `Prepend`, `Replace` | [`Prepend`], [`Replace`] |
//! | `Precompiled` | [`Precompiled`] with a [`Charsmap`] |
//! | `Sequence` | [`Sequence`] |
//! | `Metaspace` (a pre-tokenizer) | [`Metaspace`] |
//!
//! [`SentencePieceNormalizer`] is the normalizer of a SentencePiece model; [`NamedRules`] compiles
//! the rule sets that SentencePiece names.
//!
//! # Offsets
//!
//! Hugging Face's alignment gives every character of the normalized text one character of the
//! original (an inserted one that of its neighbour; a composed one the first that it is composed
//! of). The edits here say the same: [`Alignment::to_source`](tokenizer_core::Alignment::to_source)
//! gives the offsets of that library, after a [`Sequence`] too. SentencePiece's offsets differ; see
//! [`SentencePieceNormalizer`].
//!
//! # Unicode versions
//!
//! Exact means with the tables that the libraries carry: normalization forms of Unicode 9.0
//! ([`UnicodeVersion::Current`] is at hand), marks of 9.0 for [`StripAccents`], categories of 8.0
//! for [`BertNormalizer`]. Lowercase mappings are those of the standard library, as in Hugging
//! Face tokenizers; graphemes are those of unicode-segmentation.
//!
//! # Cost
//!
//! `O(n)` for n bytes, with one allocation for a text that changes and none for one that does not;
//! runs of ASCII that nothing applies to are copied as they are. Edits cost memory only for what
//! changes. The specification in code is in [`naive`].
//!
//! This crate is `no_std` with `alloc`, has no features, and never panics on any text; files are
//! checked when they are loaded ([`CharsmapError`]). Building [`NamedRules`] is the only thing
//! that takes long, some tenths of a second.

#![no_std]

extern crate alloc;

mod bert;
mod chars;
mod charsmap;
mod forms;
mod layout;
pub mod naive;
mod named;
mod precompiled;
mod replace;
mod rewrite;
mod sentencepiece;
mod sequence;
mod tables;
mod unicode;

pub use bert::BertNormalizer;
pub use chars::{ByteLevel, Lowercase, Nmt, Strip, StripAccents};
pub use charsmap::{CharStep, Charsmap, CharsmapError};
pub use forms::{Form, UnicodeForm, UnicodeVersion};
pub use named::NamedRules;
pub use precompiled::Precompiled;
pub use replace::{Find, Metaspace, PrefixSpace, Prepend, PrependScheme, Replace};
pub use sentencepiece::{SentencePieceNormalizer, SpaceOptions, Symbols};
pub use sequence::Sequence;
