//! Text to spans: named pre-tokenization patterns, splitters, and regular expressions.
//!
//! A tokenizer first cuts text into pieces (words, numbers, punctuation), which are then encoded
//! independently. This crate computes the spans of those pieces, for every splitter that published
//! tokenizers use, cut for cut as their reference libraries do.
//!
//! ```
//! use pretok::Pattern;
//! use tokenizer_core::Split;
//!
//! let text = "it's 1234\n";
//! let spans = Pattern::Cl100k.splitter().split(text);
//! let pieces: Vec<_> = spans.iter().map(|s| &text[s.range()]).collect();
//! assert_eq!(pieces, ["it", "'s", " ", "123", "4", "\n"]);
//! ```
//!
//! # What there is
//!
//! - [`Pattern`]: the published patterns by name: GPT-2, cl100k, o200k, Llama 3, Qwen, DeepSeek,
//!   Tekken, Kimi.
//! - [`Scanner`]: their families, hand-written, by [`Rules`]. One pass, no allocation but spans,
//!   64 bytes at a time with AVX-512, AVX2, NEON or plain arithmetic ([`Backend`]).
//! - [`RegexSplitter`]: any pattern. It recognises the families by their parts and uses a scanner;
//!   else an automaton, else backtracking ([`Engine`]). Which one never changes the cuts.
//! - [`PatternSplit`], [`Punctuation`], [`DigitSplit`], [`WhitespaceSplit`], [`Words`], [`Bert`],
//!   [`Metaspace`], [`Scripts`], [`CharDelimiter`], [`FixedLength`], [`Sequence`]: the
//!   pre-tokenizers of Hugging Face tokenizers; [`DigitGroups`], [`SpacePrefix`], [`Chars`],
//!   [`Whole`] besides.
//! - [`Chunks`]: one text in several threads, with the same pieces.
//! - [`Neighbours`]: the places of a text where certain bytes meet, with the same back ends.
//! - [`from_spec`]: all of them from a string, for command lines.
//! - [`naive`]: the slow twins that define what is right.
//!
//! # Cost
//!
//! Scanners are linear. They look at 64 bytes at a time ([`Backend`]): about six instructions a
//! byte of English with AVX2, three times as many beyond ASCII. Automata take 5 to 15 times
//! as long, backtracking 15 to 150 times, on a hostile text any time up to its limit ([`RegexOptions::backtrack_limit`]).
//!
//! # Unicode
//!
//! Character classes are tables of Unicode 16.0, which Oniguruma 6.9.10 and the `regex` crates
//! have; where Hugging Face tokenizers use another version ([`Punctuation`], [`DigitSplit`],
//! [`Scripts`]), so do we.
//!
//! # Features
//!
//! `regex` (default) adds [`RegexSplitter`] and the crates `fancy-regex` and `regex-automata`.
//! `std` (default) asks the machine which back ends it has; without it the crate knows what it was
//! compiled for. Without both the crate is `no_std` with `alloc`, depends on `tokenizer-core`
//! alone, and has all else.

#![cfg_attr(not(test), no_std)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod behavior;
mod chunks;
#[cfg(feature = "regex")]
mod class_dfa;
mod classes;
mod deepseek;
mod masks;
pub mod naive;
mod neighbours;
#[cfg(feature = "regex")]
mod oniguruma;
mod pattern;
#[cfg(feature = "regex")]
mod recognise;
#[cfg(feature = "regex")]
mod regex;
mod scanner;
mod simd;
mod spec;
mod split;
mod splitters;
#[cfg(feature = "regex")]
mod syntax;
mod tables;

pub use behavior::Behavior;
pub use chunks::Chunks;
pub use classes::script_of;
pub use deepseek::DeepSeekV3;
pub use neighbours::{Met, Neighbours};
pub use pattern::Pattern;
#[cfg(feature = "regex")]
pub use regex::{Dialect, Engine, MatchError, RegexError, RegexOptions, RegexSplitter};
pub use scanner::{Case, Contractions, Digits, Han, Letters, Prefix, Rules, Scanner, Tail, White};
pub use simd::Backend;
pub use spec::{SpecError, Splitter, from_spec, names};
pub use split::{Delimiter, PatternSplit};
pub use splitters::{
    Align, Bert, CharDelimiter, Chars, DigitGroups, DigitSplit, FixedLength, Metaspace,
    Punctuation, Scripts, Sequence, SpacePrefix, WhitespaceSplit, Whole, Words,
};
