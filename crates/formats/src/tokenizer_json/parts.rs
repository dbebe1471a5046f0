use std::collections::BTreeMap;

use crate::ErrorKind;
use crate::error::quoted;

/// What `normalizer` can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Normalizer {
    /// `BertNormalizer`.
    Bert(BertNormalizer),
    /// `Strip`: white space at the ends.
    Strip {
        /// Strip the beginning.
        left: bool,
        /// Strip the end.
        right: bool,
    },
    /// `StripAccents`: remove combining marks.
    StripAccents,
    /// `NFC`.
    Nfc,
    /// `NFD`.
    Nfd,
    /// `NFKC`.
    Nfkc,
    /// `NFKD`.
    Nfkd,
    /// `Lowercase`.
    Lowercase,
    /// `Nmt`: the control and space rules of SentencePiece's nmt normalization.
    Nmt,
    /// `Precompiled`: a SentencePiece charsmap.
    Precompiled {
        /// The charsmap blob: length of the trie in bytes (u32), trie, replacement strings.
        charsmap: Vec<u8>,
    },
    /// `Replace`.
    Replace(Replace),
    /// `Prepend`: put a string in front of a text that is not empty.
    Prepend {
        /// The string.
        prepend: String,
    },
    /// `ByteLevel`: every byte becomes its character of the [byte alphabet](crate::byte_level).
    ByteLevel,
    /// `Sequence`: one after the other.
    Sequence(Vec<Normalizer>),
}

/// The cleaning that BERT does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BertNormalizer {
    /// Remove control characters and make all white space a space.
    pub clean_text: bool,
    /// Put spaces around Chinese characters.
    pub handle_chinese_chars: bool,
    /// Remove accents; `None` does what `lowercase` says.
    pub strip_accents: Option<bool>,
    /// Make lower case.
    pub lowercase: bool,
}

/// Replace every match of a pattern; a normalizer and a decoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replace {
    /// What is replaced.
    pub pattern: Pattern,
    /// What stands there instead.
    pub content: String,
}

/// A literal text or a regular expression (of Oniguruma's syntax).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// `{"String": ..}`: a literal text.
    String(String),
    /// `{"Regex": ..}`: a regular expression. Its syntax is not checked here.
    Regex(String),
}

/// What `pre_tokenizer` can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreTokenizer {
    /// `BertPreTokenizer`: split at white space, isolate punctuation.
    Bert,
    /// `ByteLevel`.
    ByteLevel(ByteLevel),
    /// `CharDelimiterSplit`: split at a character and drop it.
    CharDelimiterSplit {
        /// The character.
        delimiter: char,
    },
    /// `Metaspace`.
    Metaspace(Metaspace),
    /// `Whitespace`: the matches of `\w+|[^\w\s]+`.
    Whitespace,
    /// `WhitespaceSplit`: split at white space and drop it.
    WhitespaceSplit,
    /// `Split`: split at the matches of a pattern.
    Split {
        /// The delimiter.
        pattern: Pattern,
        /// What becomes of the delimiter.
        behavior: SplitBehavior,
        /// Whether the pattern describes what is between the delimiters instead.
        invert: bool,
    },
    /// `Punctuation`: split at punctuation.
    Punctuation {
        /// What becomes of the punctuation. Files without it mean `Isolated`.
        behavior: SplitBehavior,
    },
    /// `Digits`: numbers are pieces of their own.
    Digits {
        /// Whether every digit is one.
        individual_digits: bool,
    },
    /// `UnicodeScripts`: split where the script changes.
    UnicodeScripts,
    /// `FixedLength`: pieces of so many characters, at least 1. Files without it mean 5.
    FixedLength {
        /// Characters a piece.
        length: usize,
    },
    /// `Sequence`: each splits the pieces of the one before.
    Sequence(Vec<PreTokenizer>),
}

/// Byte-level pre-tokenizer, post-processor and decoder; each reads the fields that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteLevel {
    /// Put a space in front of a text that does not begin with one.
    pub add_prefix_space: bool,
    /// Leave white space out of the offsets.
    pub trim_offsets: bool,
    /// Split with the GPT-2 pattern. Files without it mean `true`.
    pub use_regex: bool,
}

impl Default for ByteLevel {
    fn default() -> Self {
        Self { add_prefix_space: true, trim_offsets: true, use_regex: true }
    }
}

/// Spaces become a visible character; pre-tokenizer and decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metaspace {
    /// What stands for a space, usually `▁`.
    pub replacement: char,
    /// Where one is put in front. Files without it mean `Always`; the old field
    /// `add_prefix_space: false` means `Never`.
    pub prepend_scheme: PrependScheme,
    /// Whether to split in front of every replacement. Files without it mean `true`.
    pub split: bool,
}

impl Default for Metaspace {
    fn default() -> Self {
        Self { replacement: '\u{2581}', prepend_scheme: PrependScheme::Always, split: true }
    }
}

/// Where [`Metaspace`] puts a replacement in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PrependScheme {
    /// `first`: of the beginning of the text.
    First,
    /// `never`.
    Never,
    /// `always`: of every stretch between special tokens.
    Always,
}

/// What becomes of a delimiter, shown on `the-final--countdown` split at `-`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SplitBehavior {
    /// `the|final|countdown`
    Removed,
    /// `the|-|final|-|-|countdown`
    Isolated,
    /// `the-|final-|-|countdown`
    MergedWithPrevious,
    /// `the|-final|-|-countdown`
    MergedWithNext,
    /// `the|-|final|--|countdown`
    Contiguous,
}

/// What `post_processor` can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PostProcessor {
    /// `BertProcessing`: `[CLS] a [SEP]` and `[CLS] a [SEP] b [SEP]`.
    Bert {
        /// The separator and its id.
        sep: (String, u32),
        /// The beginning and its id.
        cls: (String, u32),
    },
    /// `RobertaProcessing`: `<s> a </s>` and `<s> a </s></s> b </s>`.
    Roberta {
        /// The separator and its id.
        sep: (String, u32),
        /// The beginning and its id.
        cls: (String, u32),
        /// Leave white space out of the offsets.
        trim_offsets: bool,
        /// Whether the pre-tokenizer puts a space in front.
        add_prefix_space: bool,
    },
    /// `ByteLevel`: trims offsets.
    ByteLevel(ByteLevel),
    /// `TemplateProcessing`.
    Template(Template),
    /// `Sequence`: one after the other.
    Sequence(Vec<PostProcessor>),
}

/// Where special tokens stand in one sequence and in a pair.
///
/// Every special token that a template names is in `special_tokens`, with as many ids as tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// For one sequence.
    pub single: Vec<TemplatePiece>,
    /// For a pair of sequences.
    pub pair: Vec<TemplatePiece>,
    /// The special tokens by the name that the templates use.
    pub special_tokens: BTreeMap<String, TemplateToken>,
}

/// One piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplatePiece {
    /// An input sequence.
    Sequence {
        /// Which one.
        id: TemplateSequence,
        /// The type id of its tokens.
        type_id: u32,
    },
    /// A special token.
    SpecialToken {
        /// Its name in [`Template::special_tokens`].
        id: String,
        /// The type id of its tokens.
        type_id: u32,
    },
}

/// An input sequence of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TemplateSequence {
    /// The first, which is always there.
    A,
    /// The second, of a pair.
    B,
}

/// A special token of a template: usually one token, but it can be several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateToken {
    /// Its name. Hugging Face looks tokens up by the key of the map, not by this.
    pub id: String,
    /// The ids.
    pub ids: Vec<u32>,
    /// The tokens, as many as ids.
    pub tokens: Vec<String>,
}

impl Template {
    /// Checks that every special token that is named is there, with as many ids as tokens.
    pub(super) fn check(&self) -> Result<(), (ErrorKind, String)> {
        for piece in self.single.iter().chain(&self.pair) {
            if let TemplatePiece::SpecialToken { id, .. } = piece
                && !self.special_tokens.contains_key(id)
            {
                let what = format!("the template names {}, which special_tokens lacks", quoted(id));
                return Err((ErrorKind::Dangling, what));
            }
        }
        for (key, token) in &self.special_tokens {
            if token.ids.len() != token.tokens.len() {
                let (ids, tokens) = (token.ids.len(), token.tokens.len());
                let what =
                    format!("special token {} has {ids} ids for {tokens} tokens", quoted(key));
                return Err((ErrorKind::Invalid, what));
            }
        }
        Ok(())
    }
}

impl TemplateToken {
    /// A special token that is one token.
    #[must_use]
    pub fn one(token: &str, id: u32) -> Self {
        Self { id: token.to_owned(), ids: vec![id], tokens: vec![token.to_owned()] }
    }
}

impl TemplatePiece {
    /// The piece that Hugging Face's short form stands for: `$`, `$A`, `$B`, `$0` (sequence A,
    /// type id 0), `[CLS]`, each with `:1` behind for a type id.
    ///
    /// Files hold pieces as objects; this form is for people. `None` if it is not of that form.
    ///
    /// ```
    /// use formats::tokenizer_json::{TemplatePiece, TemplateSequence};
    ///
    /// let piece = TemplatePiece::parse("$B:1");
    /// assert_eq!(piece, Some(TemplatePiece::Sequence { id: TemplateSequence::B, type_id: 1 }));
    /// assert_eq!(TemplatePiece::parse("$C"), None);
    /// ```
    #[must_use]
    pub fn parse(short: &str) -> Option<Self> {
        let (name, type_id) = match short.split_once(':') {
            Some((name, type_id)) => (name, Some(type_id.parse().ok()?)),
            None => (short, None),
        };
        let sequence =
            |id, default: u32| Self::Sequence { id, type_id: type_id.unwrap_or(default) };
        Some(match name.strip_prefix('$') {
            None => Self::SpecialToken { id: name.to_owned(), type_id: type_id.unwrap_or(0) },
            Some("" | "A" | "a") => sequence(TemplateSequence::A, 0),
            Some("B" | "b") => sequence(TemplateSequence::B, 0),
            Some(number) => sequence(TemplateSequence::A, number.parse().ok()?),
        })
    }
}

/// What `decoder` can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decoder {
    /// `BPEDecoder`: the suffix ends words.
    Bpe {
        /// The suffix, usually `</w>`.
        suffix: String,
    },
    /// `ByteLevel`.
    ByteLevel(ByteLevel),
    /// `WordPiece`.
    WordPiece {
        /// The prefix of continuations, usually `##`.
        prefix: String,
        /// Whether to take spaces out in front of punctuation and English contractions.
        cleanup: bool,
    },
    /// `Metaspace`.
    Metaspace(Metaspace),
    /// `CTC`.
    Ctc {
        /// The token that separates repeats.
        pad_token: String,
        /// The token that becomes a space.
        word_delimiter_token: String,
        /// As for WordPiece.
        cleanup: bool,
    },
    /// `Replace`.
    Replace(Replace),
    /// `Fuse`: join all tokens.
    Fuse,
    /// `Strip`: take a character off the ends of every token.
    Strip {
        /// The character.
        content: char,
        /// At most so many at the beginning.
        start: usize,
        /// At most so many at the end.
        stop: usize,
    },
    /// `ByteFallback`: tokens `<0xHH>` become bytes.
    ByteFallback,
    /// `Sequence`: one after the other.
    Sequence(Vec<Decoder>),
}

/// What `truncation` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncation {
    /// The end that is cut off. Files without it mean `Right`.
    pub direction: Direction,
    /// Tokens that remain, special tokens included.
    pub max_length: usize,
    /// Which sequence of a pair is cut.
    pub strategy: TruncationStrategy,
    /// Tokens that overflowing parts share with the part before.
    pub stride: usize,
}

/// An end of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The beginning.
    Left,
    /// The end.
    Right,
}

/// Which sequence of a pair is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TruncationStrategy {
    /// The longest first.
    LongestFirst,
    /// Only the first.
    OnlyFirst,
    /// Only the second.
    OnlySecond,
}

/// What `padding` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Padding {
    /// To which length.
    pub strategy: PaddingStrategy,
    /// The end that is filled.
    pub direction: Direction,
    /// Lengths are rounded up to a multiple of this; 0 is as `None`.
    pub pad_to_multiple_of: Option<usize>,
    /// The id that fills.
    pub pad_id: u32,
    /// Its type id.
    pub pad_type_id: u32,
    /// Its token.
    pub pad_token: String,
}

/// To which length sequences are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PaddingStrategy {
    /// The longest of the batch.
    BatchLongest,
    /// `{"Fixed": n}`.
    Fixed(usize),
}

/// A token that is found in the text before the model sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedToken {
    /// The id that the file gives. Hugging Face does not take it over: see
    /// [`resolved_added_tokens`](super::TokenizerJson::resolved_added_tokens).
    pub id: u32,
    /// The text.
    pub content: String,
    /// Match only where no word character is beside it.
    pub single_word: bool,
    /// Take in the white space in front.
    pub lstrip: bool,
    /// Take in the white space behind.
    pub rstrip: bool,
    /// Match its normalized form in the normalized text.
    pub normalized: bool,
    /// Left out of decoded text on request.
    pub special: bool,
}
