use alloc::string::String;

use tokenizer_core::TokenId;

/// What a piece is taken apart into before anything merges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Alphabet {
    /// Bytes. The vocabulary stores the bytes that tokens stand for, not a printable stand-in.
    #[default]
    Byte,
    /// Characters; an ill-formed byte counts as a character of its own.
    Char,
}

/// How the end of a word is marked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum EndOfWord {
    /// Glued to the last character, which so becomes a symbol of its own: `l o w</w>`
    /// (subword-nmt since 0.2, Hugging Face's `end_of_word_suffix`).
    Suffix(String),
    /// A symbol behind the last character: `l o w </w>` (the listing in Sennrich et al. 2016). It
    /// is a token of the vocabulary and covers no byte.
    Symbol(String),
}

impl EndOfWord {
    /// The mark, as `</w>`.
    #[must_use]
    pub fn mark(&self) -> &str {
        match self {
            Self::Suffix(mark) | Self::Symbol(mark) => mark,
        }
    }
}

/// How a [`Bpe`](crate::Bpe) takes pieces apart and what it does with what it has no token for.
///
/// The default is byte-level BPE as GPT-2 has it.
///
/// ```
/// use bpe::{Alphabet, BpeOptions, EndOfWord};
///
/// let mut options = BpeOptions::default();
/// options.alphabet = Alphabet::Char;
/// options.end_of_word = Some(EndOfWord::Suffix("</w>".into()));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BpeOptions {
    /// Bytes or characters.
    pub alphabet: Alphabet,
    /// The mark of the end of a word.
    pub end_of_word: Option<EndOfWord>,
    /// Put in front of every character but the first (`##`); merging drops it from the right part.
    pub continuing_prefix: Option<String>,
    /// A character without a token becomes its bytes, where each of them has a token of kind
    /// [`Byte`](tokenizer_core::TokenKind::Byte).
    pub byte_fallback: bool,
    /// Stands for a character without a token. Without it such characters are dropped, and what
    /// stood left and right of them becomes adjacent and may merge, as Hugging Face has it.
    pub unk: Option<TokenId>,
    /// Unknown characters in a row are one token.
    pub fuse_unk: bool,
    /// A piece that is in the vocabulary is that token, whatever merging would give; but never a
    /// control token, which no text becomes.
    pub ignore_merges: bool,
}
