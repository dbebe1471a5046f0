//! What is measured: every metric with its formula and source.
//!
//! A [`Document`] is a text with its pieces and tokens. [`Tally::of`] walks its tokens once and
//! gives sums that add up over documents; every [`Ratio`] divides two of those sums, so that a
//! corpus is measured as one long text and resampled by documents. What is no ratio of sums (the
//! Rényi efficiency, vocabulary use, length quantiles, digit grouping) is kept in a [`Profile`].
//!
//! The same definitions in prose, with worked numbers, are in `docs/metrics.md`.
//!
//! ```
//! use harness::metrics::{Document, Placed, Ratio, Tally, TextFacts};
//! use tokenizer_core::{Span, Vocab};
//!
//! // "hugs" as hug|s and "pug" as one token.
//! let vocab = Vocab::from_tokens(["hug", "s", " pug"])?;
//! let text = "hugs pug";
//! let tokens = [(0, 0..3), (1, 3..4), (2, 4..8)].map(|(id, span)| Placed::new(id, span.into()));
//! let pieces = [Span::new(0, 4), Span::new(4, 8)];
//! let document = Document { text, pieces: &pieces, tokens: &tokens };
//! let tally = Tally::of(&document, &TextFacts::new(text), &vocab);
//! assert_eq!(Ratio::BytesPerToken.of(&tally), Some(8.0 / 3.0));
//! assert_eq!(Ratio::TokensPerWord.of(&tally), Some(3.0 / 2.0));
//! assert_eq!(Ratio::SingleTokenWords.of(&tally), Some(1.0 / 2.0));
//! # Ok::<(), tokenizer_core::VocabError>(())
//! ```

mod bits;
mod code;
mod emoji;
mod facts;
mod profile;

use std::fmt;

use serde::{Deserialize, Serialize};
use tokenizer_core::{Span, Token, TokenId, TokenKind, Vocab};

pub(crate) use bits::MICRO;
pub use bits::TokenCosts;
pub use facts::TextFacts;
pub use profile::{DigitGrouping, Lengths, Profile};

use facts::{CodeFacts, PUNCTUATION, SPACE, START, WORD};

/// A token and where it lies: byte offsets into the text, half-open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Which token.
    pub id: TokenId,
    /// What it covers. Empty for a token that stands for no text.
    pub span: Span,
}

impl Placed {
    /// The token `id` at `span`.
    #[must_use]
    pub fn new(id: u32, span: Span) -> Self {
        Self { id: TokenId(id), span }
    }

    /// Appends to `placed` the tokens of `pieces`, which were encoded in order, with their places.
    ///
    /// # Errors
    ///
    /// If the lengths of the tokens do not tile the pieces: a broken encoder.
    pub fn place_into(
        pieces: &[Span],
        tokens: &[Token],
        placed: &mut Vec<Self>,
    ) -> Result<(), TilingError> {
        let mut rest = tokens.iter();
        for piece in pieces {
            let mut at = piece.start;
            while at < piece.end {
                let token = rest.next().ok_or(TilingError { piece: *piece, at })?;
                let end = at + token.len as usize;
                if end > piece.end {
                    return Err(TilingError { piece: *piece, at });
                }
                placed.push(Self { id: token.id, span: Span::new(at, end) });
                at = end;
            }
        }
        let end = pieces.last().map_or(0, |piece| piece.end);
        // Tokens that cover nothing may follow the last piece; any other is too many.
        for token in rest {
            if token.len != 0 {
                return Err(TilingError { piece: Span::new(end, end), at: end });
            }
            placed.push(Self { id: token.id, span: Span::new(end, end) });
        }
        Ok(())
    }
}

/// The lengths of the tokens do not add up to the pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TilingError {
    piece: Span,
    at: usize,
}

impl fmt::Display for TilingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { piece: Span { start, end }, at } = self;
        write!(f, "token lengths do not tile the piece at bytes {start}..{end}: they part at {at}")
    }
}

impl std::error::Error for TilingError {}

/// A text as a tokenizer saw it.
#[derive(Clone, Copy, Debug)]
pub struct Document<'d> {
    /// The text that was split and encoded (after normalization).
    pub text: &'d str,
    /// The pieces, sorted and disjoint. Text between them was dropped by the splitter.
    pub pieces: &'d [Span],
    /// The tokens in order.
    pub tokens: &'d [Placed],
}

macro_rules! tally {
    ($($(#[doc = $doc:literal])+ $field:ident,)+) => {
        /// Sums over the documents that were counted. All fields are counts, so tallies of parts
        /// add up to the tally of the whole.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct Tally {
            $($(#[doc = $doc])+ pub $field: u64,)+
        }

        impl Tally {
            /// The names of the sums.
            pub const FIELDS: &'static [&'static str] = &[$(stringify!($field)),+];

            /// The sums, in the order of [`FIELDS`](Self::FIELDS).
            #[must_use]
            pub fn values(&self) -> Vec<u64> {
                vec![$(self.$field),+]
            }
        }

        impl std::ops::AddAssign<&Tally> for Tally {
            fn add_assign(&mut self, other: &Self) {
                $(self.$field += other.$field;)+
            }
        }
    };
}

tally! {
    /// Documents.
    documents,
    /// Bytes of text.
    bytes,
    /// Characters (Unicode scalar values).
    chars,
    /// Extended grapheme clusters (UAX #29).
    graphemes,
    /// Pieces that the splitter made.
    pieces,
    /// Tokens.
    tokens,
    /// Squares of the numbers of tokens of each document.
    squared_tokens,
    /// Maximal runs without white space, in documents that separate words.
    words,
    /// Tokens of the documents that separate words.
    tokens_of_words,
    /// Words that hold a letter or number, without the punctuation around them.
    cores,
    /// Those that one token covers whole.
    single_token_cores,
    /// Tokens of kind unknown.
    unknown_tokens,
    /// Characters that unknown tokens cover, whole or in part.
    unknown_chars,
    /// Tokens of kind byte (byte fallback).
    byte_tokens,
    /// Tokens that begin or end inside a character.
    char_splitting_tokens,
    /// Tokens that cross a word or punctuation boundary.
    crossing_tokens,
    /// Those of them with white space inside.
    space_crossing_tokens,
    /// Emoji (grapheme clusters).
    emoji,
    /// Tokens that cover a part of an emoji, counted once for each emoji that they touch.
    emoji_tokens,
    /// Millionths of bits that the tokens cost under the distribution of the training text; see
    /// [`TokenCosts`]. 0 before [`priced`](Tally::priced).
    token_microbits,
    /// Bytes of text that `token_microbits` are of.
    token_priced_bytes,
    /// Millionths of bits of the text under the model's own distribution, if it has one.
    model_microbits,
    /// Bytes of text that `model_microbits` are of.
    model_priced_bytes,
    /// Tokens of documents of code.
    code_tokens,
    /// Indentations of code.
    indentations,
    /// Tokens that touch an indentation, counted once for each that they touch.
    indentation_tokens,
    /// Indentations that are under one token, which ends where they end.
    single_indentations,
    /// Indentations whose last token reaches into the code behind them.
    merged_indentations,
    /// Operators of two characters or more in code.
    operators,
    /// Those that one token covers whole.
    single_operators,
    /// Tokens of code that hold a character of an operator and one of a name.
    operator_crossing_tokens,
}

impl Tally {
    /// The tally of one document. `facts` are those of `document.text`; `vocab` tells the kinds of
    /// the tokens. One walk over the tokens.
    #[must_use]
    pub fn of(document: &Document<'_>, facts: &TextFacts, vocab: &Vocab) -> Self {
        let n = document.tokens.len() as u64;
        let mut tally = Self {
            documents: 1,
            bytes: facts.bytes,
            chars: facts.chars,
            graphemes: facts.graphemes,
            pieces: document.pieces.len() as u64,
            tokens: n,
            squared_tokens: n.saturating_mul(n),
            emoji: facts.emoji.len() as u64,
            ..Self::default()
        };
        let classes = &facts.classes;
        let on_boundary = |at: usize| classes.get(at).is_none_or(|class| class & START != 0);
        for token in document.tokens {
            let Span { start, end } = token.span;
            match vocab.kind(token.id) {
                Some(TokenKind::Unknown) => {
                    tally.unknown_tokens += 1;
                    let starts = classes[start..end].iter().filter(|&&class| class & START != 0);
                    let begun_before = !token.span.is_empty() && !on_boundary(start);
                    tally.unknown_chars += starts.count() as u64 + u64::from(begun_before);
                }
                Some(TokenKind::Byte) => tally.byte_tokens += 1,
                _ => {}
            }
            tally.char_splitting_tokens += u64::from(!on_boundary(start) || !on_boundary(end));
            let (crosses, at_space) = crosses(&classes[start..end]);
            tally.crossing_tokens += u64::from(crosses);
            tally.space_crossing_tokens += u64::from(at_space);
        }
        if facts.spaced {
            tally.words = facts.words;
            tally.tokens_of_words = n;
            tally.cores = facts.cores.len() as u64;
            tally.single_token_cores = touching(document.tokens, facts.cores.iter().copied())
                .filter(|(core, tokens)| {
                    matches!(tokens, [only] if only.span.start <= core.start && core.end <= only.span.end)
                })
                .count() as u64;
        }
        tally.emoji_tokens = touching(document.tokens, facts.emoji.iter().copied())
            .map(|(_, tokens)| tokens.iter().filter(|token| !token.span.is_empty()).count() as u64)
            .sum();
        if let Some(code) = &facts.code {
            tally.count_code(document, code);
        }
        tally
    }

    fn count_code(&mut self, document: &Document<'_>, code: &CodeFacts) {
        self.code_tokens = document.tokens.len() as u64;
        self.indentations = code.indentations.len() as u64;
        for (span, tokens) in touching(document.tokens, code.indentations.iter().copied()) {
            let tokens: Vec<&Placed> = tokens.iter().filter(|t| !t.span.is_empty()).collect();
            self.indentation_tokens += tokens.len() as u64;
            // A splitter may drop white space: then no token is there, and nothing is merged.
            let merged = tokens.last().is_some_and(|last| last.span.end > span.end);
            self.merged_indentations += u64::from(merged);
            let whole = |token: &Placed| token.span.start <= span.start && !merged;
            let single = matches!(tokens[..], [only] if whole(only) && only.span.end == span.end);
            self.single_indentations += u64::from(single);
        }
        self.operators = code.operators.len() as u64;
        self.single_operators = touching(document.tokens, code.operators.iter().copied())
            .filter(|(span, tokens)| {
                matches!(tokens, [only] if only.span.start <= span.start && span.end <= only.span.end)
            })
            .count() as u64;
        let crosses = |token: &&Placed| {
            let bytes = &document.text.as_bytes()[token.span.range()];
            bytes.iter().any(|&byte| code::is_operator(byte))
                && bytes.iter().any(|&byte| code::is_name(byte))
        };
        self.operator_crossing_tokens = document.tokens.iter().filter(crosses).count() as u64;
    }

    /// This tally of one document with what the document costs in millionths of bits: its tokens
    /// under [`TokenCosts`], its text under the model's own distribution, where there is one.
    #[must_use]
    pub fn priced(self, token_microbits: u64, model_microbits: Option<u64>) -> Self {
        Self {
            token_microbits,
            token_priced_bytes: self.bytes,
            model_microbits: model_microbits.unwrap_or(0),
            model_priced_bytes: if model_microbits.is_some() { self.bytes } else { 0 },
            ..self
        }
    }
}

/// For each of `spans` (sorted and disjoint), the tokens from the first to the last that overlap
/// it. Linear in spans and tokens.
fn touching(
    tokens: &[Placed],
    spans: impl Iterator<Item = Span>,
) -> impl Iterator<Item = (Span, &[Placed])> {
    let mut first = 0;
    spans.map(move |span| {
        while tokens.get(first).is_some_and(|token| token.span.end <= span.start) {
            first += 1;
        }
        let mut last = first;
        while tokens.get(last).is_some_and(|token| token.span.start < span.end) {
            last += 1;
        }
        (span, &tokens[first..last])
    })
}

/// Whether what is left of a token without the white space at its ends holds characters of more
/// than one class (letters and numbers, white space, punctuation); and whether it holds white
/// space.
fn crosses(classes: &[u8]) -> (bool, bool) {
    let is_text = |class: &u8| class & (WORD | PUNCTUATION) != 0;
    let Some(first) = classes.iter().position(is_text) else { return (false, false) };
    let last = classes.iter().rposition(is_text).unwrap_or(first);
    let inside = classes[first..=last].iter().fold(0, |all, class| all | class);
    let kinds = (inside & (SPACE | WORD | PUNCTUATION)).count_ones();
    (kinds > 1, inside & SPACE != 0)
}

macro_rules! ratios {
    ($($(#[doc = $doc:literal])+ $name:ident $key:literal $title:literal $unit:ident $better:ident = $above:ident / $below:ident,)+) => {
        /// A metric that is a ratio of two sums of a [`Tally`].
        ///
        /// On a corpus it is the ratio of the corpus' sums, not the mean of its documents' ratios.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Ratio {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Ratio {
            /// Every ratio, in the order of the report.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The name in JSON.
            #[must_use]
            pub fn key(self) -> &'static str {
                match self { $(Self::$name => $key,)+ }
            }

            /// The name in tables.
            #[must_use]
            pub fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)+ }
            }

            /// How the value is printed.
            #[must_use]
            pub fn unit(self) -> Unit {
                match self { $(Self::$name => Unit::$unit,)+ }
            }

            /// Which direction is usually wanted. Not a verdict on quality.
            #[must_use]
            pub fn better(self) -> Better {
                match self { $(Self::$name => Better::$better,)+ }
            }

            /// What the quotient of the sums is multiplied by: one, or a millionth where the sum
            /// above the line is in millionths.
            #[must_use]
            pub fn scale(self) -> f64 {
                match self {
                    Self::BitsPerByte | Self::ModelBitsPerByte => 1.0 / MICRO,
                    _ => 1.0,
                }
            }

            /// The names of the sum above and the sum below the line, of [`Tally::FIELDS`].
            #[must_use]
            pub fn fields(self) -> (&'static str, &'static str) {
                match self { $(Self::$name => (stringify!($above), stringify!($below)),)+ }
            }

            /// The sum above and the sum below the line.
            #[must_use]
            pub fn parts(self, tally: &Tally) -> (f64, f64) {
                match self { $(Self::$name => (tally.$above as f64, tally.$below as f64),)+ }
            }
        }
    };
}

/// How a value is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A plain number.
    Plain,
    /// A share of one, shown in percent.
    Share,
}

/// Which direction of a metric is usually wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Higher.
    Higher,
    /// Lower.
    Lower,
    /// Neither: a description.
    Neither,
}

ratios! {
    /// Bytes of UTF-8 text / tokens: compression. Comparable between tokenizers on the same text,
    /// not between scripts (a Thai letter has three bytes, an English one has one).
    BytesPerToken "bytes_per_token" "bytes per token" Plain Higher = bytes / tokens,
    /// Unicode scalar values / tokens.
    CharsPerToken "chars_per_token" "characters per token" Plain Higher = chars / tokens,
    /// Tokens / words: fertility (Ács 2019; Rust et al. 2021). Words are maximal runs without white
    /// space. Documents in scripts that are written without spaces are left out on both sides of
    /// the line ([`TextFacts::spaced`]); a corpus of only such documents has no fertility.
    TokensPerWord "tokens_per_word" "fertility (tokens per word)" Plain Lower = tokens_of_words / words,
    /// Words that one token covers whole / words: the single-token retention rate (Nayeem et al.
    /// 2025), by occurrence; one minus it is the proportion of continued words (Rust et al. 2021).
    /// Words are as for fertility, but without the punctuation around them, and only those that
    /// hold a letter or number; the covering token may reach beyond the word (a space before it).
    SingleTokenWords "single_token_words" "single-token words" Share Higher = single_token_cores / cores,
    /// Tokens / extended grapheme clusters (UAX #29): what a reader sees as one character.
    TokensPerGrapheme "tokens_per_grapheme" "tokens per grapheme" Plain Lower = tokens / graphemes,
    /// Tokens that touch an emoji / emoji. An emoji is a grapheme cluster with emoji presentation
    /// (UTS #51); families joined by U+200D and flags are one emoji each.
    TokensPerEmoji "tokens_per_emoji" "tokens per emoji" Plain Lower = emoji_tokens / emoji,
    /// Tokens of kind unknown / tokens.
    UnknownTokens "unknown_tokens" "unknown tokens" Share Lower = unknown_tokens / tokens,
    /// Characters under unknown tokens / characters: the part of the text that is lost.
    UnknownChars "unknown_chars" "characters lost" Share Lower = unknown_chars / chars,
    /// Tokens of kind byte / tokens: byte fallback. Zero by construction for byte-level models,
    /// whose single bytes are ordinary tokens.
    ByteTokens "byte_tokens" "byte-fallback tokens" Share Lower = byte_tokens / tokens,
    /// Tokens that begin or end inside a UTF-8 character / tokens.
    CharSplittingTokens "char_splitting_tokens" "tokens that split a character" Share Lower = char_splitting_tokens / tokens,
    /// Tokens that cross a word or punctuation boundary / tokens. A token crosses one if, without
    /// the white space at its ends, it holds characters of more than one of three classes: letters
    /// and numbers, white space, everything else. Combining marks and joiners belong to what they
    /// follow.
    CrossingTokens "crossing_tokens" "tokens across a boundary" Share Neither = crossing_tokens / tokens,
    /// Tokens with white space between two characters that are not / tokens: the part of the
    /// crossing tokens that joins words.
    SpaceCrossingTokens "space_crossing_tokens" "tokens across white space" Share Neither = space_crossing_tokens / tokens,
    /// Bits that the tokens cost under one distribution of tokens, estimated on the training text
    /// ([`TokenCosts`]) / bytes of text: the cross-entropy of a unigram model over tokens, of
    /// which the bytes make tokenizers of any vocabulary comparable.
    BitsPerByte "bits_per_byte" "bits per byte (unigram over tokens)" Plain Lower = token_microbits / token_priced_bytes,
    /// Bits of the text under the model's own distribution, summed over all segmentations / bytes
    /// of text. Only the Unigram model has one.
    ModelBitsPerByte "model_bits_per_byte" "bits per byte (the model's own)" Plain Lower = model_microbits / model_priced_bytes,
    /// Tokens that touch an indentation / indentations, in code. An indentation is the spaces and
    /// tabs at the beginning of a line that has something behind them.
    TokensPerIndentation "tokens_per_indentation" "tokens per indentation" Plain Lower = indentation_tokens / indentations,
    /// Indentations under one token that ends where they end / indentations. The token may begin
    /// before (a line end).
    SingleTokenIndentations "single_token_indentations" "single-token indentations" Share Higher = single_indentations / indentations,
    /// Indentations whose last token reaches into the code behind them / indentations.
    MergedIndentations "merged_indentations" "indentations merged with code" Share Neither = merged_indentations / indentations,
    /// Operators of two characters or more that one token covers whole / such operators, in code.
    SingleTokenOperators "single_token_operators" "single-token operators" Share Higher = single_operators / operators,
    /// Tokens that hold a character of an operator and a letter, digit or underscore / tokens, in
    /// code.
    OperatorCrossingTokens "operator_crossing_tokens" "tokens across operator and name" Share Neither = operator_crossing_tokens / code_tokens,
}

impl Ratio {
    /// The value on a tally; `None` where nothing below the line was counted.
    #[must_use]
    pub fn of(self, tally: &Tally) -> Option<f64> {
        let (above, below) = self.parts(tally);
        (below > 0.0).then(|| above / below * self.scale())
    }
}

/// The premium of a language: its tokens / the tokens of the reference language, on the same
/// content (Petrov et al. 2023, "Language Model Tokenizers Introduce Unfairness Between
/// Languages"). The tallies are those of aligned documents. `None` if the reference has no token.
#[must_use]
pub fn premium(language: &Tally, reference: &Tally) -> Option<f64> {
    (reference.tokens > 0).then(|| language.tokens as f64 / reference.tokens as f64)
}

/// The relative cost of attention: Σ L² / Σ L² of the baseline, for L tokens a document. Attention
/// compares every token of a document with every other, so its cost grows with the square; the
/// documents are those of the corpus, not full context windows. `None` if the baseline has no
/// token.
#[must_use]
pub fn relative_attention_cost(tally: &Tally, baseline: &Tally) -> Option<f64> {
    (baseline.squared_tokens > 0)
        .then(|| tally.squared_tokens as f64 / baseline.squared_tokens as f64)
}

/// The parameters of an embedding matrix: `vocab_len` rows of `width` numbers. A model whose output
/// layer is not tied to its embedding has twice as many.
#[must_use]
pub fn embedding_parameters(vocab_len: usize, width: usize) -> u64 {
    vocab_len as u64 * width as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cuts `text` at `|` and gives each distinct token an id; pieces are the whole text.
    fn tally_of(cut: &str, kinds: &[(&str, TokenKind)]) -> Tally {
        let text = cut.replace('|', "");
        tally_of_bytes(&text, &cut.split('|').map(str::as_bytes).collect::<Vec<_>>(), kinds)
    }

    fn tally_of_bytes(text: &str, parts: &[&[u8]], kinds: &[(&str, TokenKind)]) -> Tally {
        let mut vocab = Vocab::builder();
        let (mut tokens, mut at) = (Vec::new(), 0);
        let mut ids = std::collections::HashMap::new();
        for part in parts {
            let kind = kinds.iter().find(|k| k.0.as_bytes() == *part).map(|k| k.1);
            let id = *ids
                .entry(*part)
                .or_insert_with(|| vocab.push(part, kind.unwrap_or_default()).unwrap());
            tokens.push(Placed { id, span: Span::new(at, at + part.len()) });
            at += part.len();
        }
        assert_eq!(at, text.len());
        let pieces = [Span::new(0, text.len())];
        let document = Document { text, pieces: &pieces, tokens: &tokens };
        Tally::of(&document, &TextFacts::new(text), &vocab.build())
    }

    #[test]
    fn compression_and_fertility_by_hand() {
        // 19 bytes, 18 characters, 3 words, 5 tokens.
        let tally = tally_of("caf|é| tokeni|zes| xyz", &[]);
        assert_eq!(Ratio::BytesPerToken.parts(&tally), (19.0, 5.0));
        assert_eq!(Ratio::CharsPerToken.parts(&tally), (18.0, 5.0));
        assert_eq!(Ratio::TokensPerWord.parts(&tally), (5.0, 3.0));
        assert_eq!(tally.squared_tokens, 25);
    }

    #[test]
    fn single_token_words_ignore_punctuation_and_count_the_space_before() {
        // "Hello" and "big" are one token; "world" is two; "..." is no word.
        let tally = tally_of("\"|Hello|,| wor|ld|\"| ...| big", &[]);
        assert_eq!(Ratio::SingleTokenWords.parts(&tally), (2.0, 3.0));
    }

    #[test]
    fn a_word_inside_a_longer_token_counts_as_single() {
        let tally = tally_of("of the| t|ree", &[]);
        assert_eq!(Ratio::SingleTokenWords.parts(&tally), (2.0, 3.0));
    }

    #[test]
    fn unspaced_documents_have_no_fertility() {
        let mut tally = tally_of("人人|生而|自由", &[]);
        assert_eq!(Ratio::TokensPerWord.of(&tally), None);
        assert_eq!(Ratio::SingleTokenWords.of(&tally), None);
        assert_eq!(Ratio::CharsPerToken.of(&tally), Some(2.0));
        // They do not disturb the fertility of the others.
        tally += &tally_of("a| b", &[]);
        assert_eq!(Ratio::TokensPerWord.of(&tally), Some(1.0));
        assert_eq!(tally.documents, 2);
    }

    #[test]
    fn unknown_and_byte_rates() {
        let tally = tally_of("a|xyz|b|xyz", &[("xyz", TokenKind::Unknown)]);
        assert_eq!(Ratio::UnknownTokens.of(&tally), Some(0.5));
        assert_eq!(Ratio::UnknownChars.of(&tally), Some(6.0 / 8.0));
        let tally = tally_of_bytes("a\u{E9}", &[b"a", b"\xC3", b"\xA9"], &[]);
        assert_eq!(Ratio::ByteTokens.of(&tally), Some(0.0));
        assert_eq!(Ratio::CharSplittingTokens.of(&tally), Some(2.0 / 3.0));
        let tally = tally_of("a|b|b", &[("b", TokenKind::Byte)]);
        assert_eq!(Ratio::ByteTokens.of(&tally), Some(2.0 / 3.0));
    }

    #[test]
    fn unknown_bytes_of_one_character_lose_it_once_each() {
        // Each of the two unknown tokens covers a part of é.
        let mut vocab = Vocab::builder();
        vocab.push(b"?", TokenKind::Unknown).unwrap();
        let text = "\u{E9}";
        let tokens = [Placed::new(0, (0..1).into()), Placed::new(0, (1..2).into())];
        let document = Document { text, pieces: &[Span::new(0, 2)], tokens: &tokens };
        let tally = Tally::of(&document, &TextFacts::new(text), &vocab.build());
        assert_eq!(tally.unknown_chars, 2);
    }

    #[test]
    fn crossing_tokens_of_the_worked_example() {
        // The 80 merges of a textbook byte-pair encoder without splitting on 972 bytes of English;
        // eleven of the tokens cross a boundary.
        let merges = [
            "s ",
            " t",
            "er",
            "en",
            " i",
            "e ",
            ", ",
            "or",
            " th",
            "an",
            "t ",
            "in",
            "mo",
            "pl",
            ".\n",
            " to",
            "ra",
            "de",
            " is ",
            "et",
            "it",
            "mode",
            "model",
            "ken",
            "ter",
            " token",
            "bet",
            "better",
            "better th",
            "better than",
            "mpl",
            " n",
            "on",
            "ea",
            "ti",
            " is better than",
            " c",
            "ex",
            "al",
            "ou",
            " a",
            "wor",
            "iz",
            "rain",
            "ic",
            "gh",
            "s.\n",
            "ver",
            "of",
            "di",
            "word",
            " tokeniz",
            ", model",
            "ro",
            " train",
            "ly",
            "ompl",
            "ec",
            "ar",
            "ough",
            " b",
            " the ",
            "s s",
            " ne",
            " never",
            "ati",
            "ation",
            "e model",
            "ot ",
            "s t",
            " in",
            " s",
            "ing",
            "ul",
            ". ",
            "icit",
            " impl",
            ".\nS",
            " is better than c",
            " is better than compl",
        ];
        let crossing: Vec<&str> =
            merges.into_iter().filter(|token| tally_of(token, &[]).crossing_tokens == 1).collect();
        assert_eq!(
            crossing,
            [
                "better th",
                "better than",
                " is better than",
                "s.\n",
                ", model",
                "s s",
                "e model",
                "s t",
                ".\nS",
                " is better than c",
                " is better than compl",
            ]
        );
    }

    #[test]
    fn marks_and_joiners_cross_nothing() {
        for token in ["e\u{301}", "नमस्ते", "\u{1F468}\u{200D}\u{1F469}", " \u{2764}\u{FE0F}"]
        {
            assert_eq!(tally_of(token, &[]).crossing_tokens, 0, "{token:?}");
        }
        let tally = tally_of("a b", &[]);
        assert_eq!((tally.crossing_tokens, tally.space_crossing_tokens), (1, 1));
        let tally = tally_of("a.", &[]);
        assert_eq!((tally.crossing_tokens, tally.space_crossing_tokens), (1, 0));
    }

    #[test]
    fn emoji_and_graphemes() {
        // A family of three is one emoji, one grapheme, and here three tokens; the flag is one.
        let tally =
            tally_of("a|\u{1F468}\u{200D}|\u{1F469}\u{200D}|\u{1F467}|\u{1F1FB}\u{1F1F3}", &[]);
        assert_eq!(Ratio::TokensPerEmoji.parts(&tally), (4.0, 2.0));
        assert_eq!(Ratio::TokensPerGrapheme.parts(&tally), (5.0, 3.0));
        assert_eq!(Ratio::TokensPerEmoji.of(&tally_of("a", &[])), None);
    }

    /// The tally of `cut` as code.
    fn tally_of_code(cut: &str) -> Tally {
        let text = cut.replace('¦', "");
        let mut vocab = Vocab::builder();
        vocab.push(b"x", TokenKind::Normal).unwrap();
        let mut at = 0;
        let spans = cut.split('¦').map(|part| {
            at += part.len();
            Placed::new(0, (at - part.len()..at).into())
        });
        let tokens: Vec<Placed> = spans.collect();
        let pieces = [Span::new(0, text.len())];
        let document = Document { text: &text, pieces: &pieces, tokens: &tokens };
        Tally::of(&document, &TextFacts::new(&text).with_code(&text), &vocab.build())
    }

    #[test]
    fn indentations_by_hand() {
        // Three indentations: two tokens; one with the line end before it; one that reaches into
        // the code.
        let tally = tally_of_code("if¦\n¦  ¦  ¦a¦\n        ¦b¦\n   ¦ c");
        assert_eq!(Ratio::TokensPerIndentation.parts(&tally), (5.0, 3.0));
        assert_eq!(Ratio::SingleTokenIndentations.parts(&tally), (1.0, 3.0));
        assert_eq!(Ratio::MergedIndentations.parts(&tally), (1.0, 3.0));
        // One token for all of it and the code is merged, not single.
        let tally = tally_of_code("  return¦ x");
        assert_eq!(tally.single_indentations, 0);
        assert_eq!(tally.merged_indentations, 1);
    }

    #[test]
    fn operators_by_hand() {
        // `==` is one token, `->` two, `::` under a token with a name; `.` alone is no operator of
        // two characters, but `.b` crosses.
        let tally = tally_of_code("a¦ ==¦ b¦-¦>¦c¦::d¦.b");
        assert_eq!(Ratio::SingleTokenOperators.parts(&tally), (2.0, 3.0));
        assert_eq!(Ratio::OperatorCrossingTokens.parts(&tally), (2.0, 8.0));
        // What is not code has neither.
        assert_eq!(Ratio::SingleTokenOperators.of(&tally_of("a| ==| b", &[])), None);
        assert_eq!(Ratio::TokensPerIndentation.of(&tally_of("  |b", &[])), None);
    }

    #[test]
    fn bits_by_hand() {
        // 3 bytes at 6 bits and 9 bits; the second document has no distribution of its own.
        let tally = tally_of("a|bc", &[]).priced(6_000_000, Some(9_000_000));
        assert_eq!(Ratio::BitsPerByte.of(&tally), Some(2.0));
        assert_eq!(Ratio::ModelBitsPerByte.of(&tally), Some(3.0));
        let mut both = tally;
        both += &tally_of("abc", &[]).priced(3_000_000, None);
        assert_eq!(Ratio::BitsPerByte.of(&both), Some(1.5));
        assert_eq!(Ratio::ModelBitsPerByte.of(&both), Some(3.0));
        assert_eq!(Ratio::BitsPerByte.of(&tally_of("abc", &[])), None);
    }

    #[test]
    fn premium_attention_and_embeddings_by_hand() {
        let four = tally_of("a|b|c|d", &[]);
        let two = tally_of("ab|cd", &[]);
        assert_eq!(premium(&four, &two), Some(2.0));
        assert_eq!(premium(&four, &Tally::default()), None);
        assert_eq!(relative_attention_cost(&two, &four), Some(0.25));
        assert_eq!(embedding_parameters(32_000, 768), 24_576_000);
        // Two documents of two tokens cost half of one document of four.
        let mut pair = two;
        pair += &two;
        assert_eq!(relative_attention_cost(&pair, &four), Some(0.5));
    }

    #[test]
    fn placing_needs_a_tiling() {
        let token = |id, len| Token::new(TokenId(id), len);
        let pieces = [Span::new(1, 4), Span::new(5, 6)];
        let mut placed = Vec::new();
        Placed::place_into(&pieces, &[token(0, 0), token(1, 3), token(2, 1)], &mut placed).unwrap();
        let spans: Vec<Span> = placed.iter().map(|p| p.span).collect();
        assert_eq!(spans, [Span::new(1, 1), Span::new(1, 4), Span::new(5, 6)]);
        for wrong in [&[token(1, 4)][..], &[token(1, 3)], &[token(1, 3), token(2, 1), token(2, 1)]]
        {
            assert!(Placed::place_into(&pieces, wrong, &mut Vec::new()).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn empty_and_awkward_texts_have_finite_or_no_values() {
        for (name, text) in testkit::texts::AWKWARD {
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            let tally = tally_of_bytes(text, &bytes, &[]);
            for ratio in Ratio::ALL {
                assert!(ratio.of(&tally).is_none_or(f64::is_finite), "{name} {ratio:?}");
            }
            assert_eq!(tally.tokens, text.len() as u64, "{name}");
        }
    }
}
