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
//! - [`Scanner`]: their families, hand-written, by [`Rules`]. One pass, no allocation but spans.
//! - [`RegexSplitter`]: any pattern. It recognises the families by their parts and uses a scanner;
//!   else an automaton, else backtracking ([`Engine`]). Which one never changes the cuts.
//! - [`PatternSplit`], [`Punctuation`], [`DigitSplit`], [`WhitespaceSplit`], [`Words`], [`Bert`],
//!   [`Metaspace`], [`Scripts`], [`CharDelimiter`], [`FixedLength`], [`Sequence`]: the
//!   pre-tokenizers of Hugging Face tokenizers; [`DigitGroups`], [`SpacePrefix`], [`Chars`],
//!   [`Whole`] besides.
//! - [`from_spec`]: all of them from a string, for command lines.
//! - [`naive`]: the slow twins that define what is right.
//!
//! # Cost
//!
//! Scanners are linear: one table lookup a character of ASCII (letters eight at a time), two for
//! the rest. Automata take two to five times as long, backtracking five to forty times, on a hostile
//! text any time up to its limit ([`RegexOptions::backtrack_limit`]).
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
//! Without it the crate is `no_std` with `alloc`, depends on `tokenizer-core` alone, and has all
//! else.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod behavior;
mod classes;
mod deepseek;
pub mod naive;
#[cfg(feature = "regex")]
mod oniguruma;
mod pattern;
#[cfg(feature = "regex")]
mod recognise;
#[cfg(feature = "regex")]
mod regex;
mod scanner;
mod spec;
mod split;
mod splitters;
#[cfg(feature = "regex")]
mod syntax;
mod tables;

pub use behavior::Behavior;
pub use deepseek::DeepSeekV3;
pub use pattern::Pattern;
#[cfg(feature = "regex")]
pub use regex::{Dialect, Engine, MatchError, RegexError, RegexOptions, RegexSplitter};
pub use scanner::{Case, Contractions, Digits, Han, Letters, Prefix, Rules, Scanner, Tail, White};
pub use spec::{SpecError, Splitter, from_spec, names};
pub use split::{Delimiter, PatternSplit};
pub use splitters::{
    Align, Bert, CharDelimiter, Chars, DigitGroups, DigitSplit, FixedLength, Metaspace,
    Punctuation, Scripts, Sequence, SpacePrefix, WhitespaceSplit, Whole, Words,
};
