//! Byte ranks with a pattern: tiktoken's encodings and Mistral's Tekken.

use bpe::{Bpe, BpeOptions, BuildError};
use formats::IdMap;
use formats::tekken::Tekken;
use pretok::RegexSplitter;
use tokenizer_core::{Model, TokenId, TokenKind, Vocab};

use super::LowerError;
use super::vocab::fill_to;
use crate::added::AddedToken;
use crate::pipeline::{Parts, PieceStep, Tokenizer};

/// A published encoding: what its file of ranks does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TiktokenEncoding {
    /// GPT-2 and GPT-3: `r50k_base`.
    R50kBase,
    /// Codex: `p50k_base`.
    P50kBase,
    /// Codex for edits: `p50k_edit`, the ranks of `p50k_base`.
    P50kEdit,
    /// GPT-3.5 and GPT-4: `cl100k_base`.
    Cl100kBase,
    /// GPT-4o: `o200k_base`.
    O200kBase,
    /// gpt-oss: `o200k_harmony`, the ranks of `o200k_base`.
    O200kHarmony,
}

impl TiktokenEncoding {
    /// Every encoding.
    pub const ALL: &'static [Self] = &[
        Self::R50kBase,
        Self::P50kBase,
        Self::P50kEdit,
        Self::Cl100kBase,
        Self::O200kBase,
        Self::O200kHarmony,
    ];

    /// tiktoken's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::R50kBase => "r50k_base",
            Self::P50kBase => "p50k_base",
            Self::P50kEdit => "p50k_edit",
            Self::Cl100kBase => "cl100k_base",
            Self::O200kBase => "o200k_base",
            Self::O200kHarmony => "o200k_harmony",
        }
    }

    /// The encoding of this name; `gpt2` is `r50k_base`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "gpt2" => Some(Self::R50kBase),
            _ => Self::ALL.iter().copied().find(|encoding| encoding.name() == name),
        }
    }

    /// The encoding whose ranks these are, told by their number and the text of the last one; for
    /// files that come without a pattern. Encodings that share their ranks give the first.
    #[must_use]
    pub fn of_ranks(ranks: &IdMap<[u8]>) -> Option<Self> {
        let last = ranks.id_bound().checked_sub(1)?;
        match (ranks.len(), last, ranks.token(last)?) {
            (50256, 50255, b" gazed") => Some(Self::R50kBase),
            (50280, 50280, _) => Some(Self::P50kBase),
            (100_256, 100_255, b" Conveyor") => Some(Self::Cl100kBase),
            (199_998, 199_997, b" cocos") => Some(Self::O200kBase),
            _ => None,
        }
    }

    /// The pattern that cuts the text.
    #[must_use]
    pub const fn pattern(self) -> pretok::Pattern {
        match self {
            Self::R50kBase => pretok::Pattern::R50k,
            Self::P50kBase | Self::P50kEdit => pretok::Pattern::P50k,
            Self::Cl100kBase => pretok::Pattern::Cl100k,
            Self::O200kBase | Self::O200kHarmony => pretok::Pattern::O200k,
        }
    }

    /// The special tokens and their ids.
    #[must_use]
    pub fn special_tokens(self) -> Vec<(String, u32)> {
        let named = |tokens: &[(&str, u32)]| {
            tokens.iter().map(|&(token, id)| (token.to_owned(), id)).collect::<Vec<_>>()
        };
        match self {
            Self::R50kBase | Self::P50kBase => named(&[("<|endoftext|>", 50256)]),
            Self::P50kEdit => named(&[
                ("<|endoftext|>", 50256),
                ("<|fim_prefix|>", 50281),
                ("<|fim_middle|>", 50282),
                ("<|fim_suffix|>", 50283),
            ]),
            Self::Cl100kBase => named(&[
                ("<|endoftext|>", 100_257),
                ("<|fim_prefix|>", 100_258),
                ("<|fim_middle|>", 100_259),
                ("<|fim_suffix|>", 100_260),
                ("<|endofprompt|>", 100_276),
            ]),
            Self::O200kBase => named(&[("<|endoftext|>", 199_999), ("<|endofprompt|>", 200_018)]),
            Self::O200kHarmony => {
                let mut tokens = named(&[
                    ("<|startoftext|>", 199_998),
                    ("<|endoftext|>", 199_999),
                    ("<|endofprompt|>", 200_018),
                    ("<|return|>", 200_002),
                    ("<|constrain|>", 200_003),
                    ("<|channel|>", 200_005),
                    ("<|start|>", 200_006),
                    ("<|end|>", 200_007),
                    ("<|message|>", 200_008),
                    ("<|call|>", 200_012),
                ]);
                let reserved = [200_000, 200_001, 200_004, 200_009, 200_010, 200_011];
                let reserved = reserved.into_iter().chain(200_013..201_088);
                tokens.extend(reserved.map(|id| (format!("<|reserved_{id}|>"), id)));
                tokens
            }
        }
    }
}

/// What a file of ranks does not say.
#[derive(Clone, Debug)]
pub struct RanksSetup {
    /// The regular expression that cuts the text, as published (Rust syntax).
    pub pattern: String,
    /// The special tokens and their ids.
    pub special_tokens: Vec<(String, u32)>,
}

impl From<TiktokenEncoding> for RanksSetup {
    fn from(encoding: TiktokenEncoding) -> Self {
        let pattern = encoding.pattern().stages()[0].to_owned();
        Self { pattern, special_tokens: encoding.special_tokens() }
    }
}

impl RanksSetup {
    /// The special tokens, which may not have the ids of ranks.
    fn added_tokens(&self, vocab: &Vocab) -> Result<Vec<AddedToken>, LowerError> {
        let added = self.special_tokens.iter().map(|(token, id)| {
            if vocab.kind(TokenId(*id)) == Some(TokenKind::Normal) {
                return Err(LowerError::new(
                    "special_tokens",
                    format!("{token:?} has id {id}, which is the rank of an ordinary token"),
                ));
            }
            Ok(AddedToken::special(token, TokenId(*id)))
        });
        added.collect()
    }
}

impl Tokenizer {
    /// The tokenizer of tiktoken's ranks with a pattern and special tokens.
    ///
    /// # Errors
    ///
    /// If the pattern cannot be compiled, a special token repeats, or its id is that of a rank.
    pub fn from_ranks(ranks: &IdMap<[u8]>, setup: &RanksSetup) -> Result<Self, LowerError> {
        let mut vocab = Vocab::builder();
        for (id, token) in ranks.iter() {
            fill_to(&mut vocab, id, "ranks")?;
            vocab
                .push(token, TokenKind::Normal)
                .map_err(|error| LowerError::caused("ranks", error))?;
        }
        let vocab = vocab.build();
        let special = setup.added_tokens(&vocab)?;
        byte_pairs(Bpe::from_ranks(vocab, BpeOptions::default()), &setup.pattern, special)
    }

    /// As [`from_ranks`](Self::from_ranks), of a model that was made of ranks.
    pub(crate) fn from_ranked(model: Bpe, setup: &RanksSetup) -> Result<Self, LowerError> {
        let special = setup.added_tokens(model.vocab())?;
        byte_pairs(Ok(model), &setup.pattern, special)
    }

    /// The tokenizer that a tekken.json describes.
    ///
    /// # Errors
    ///
    /// If the pattern cannot be compiled or a special token is empty or repeats.
    pub fn from_tekken(document: &Tekken) -> Result<Self, LowerError> {
        let mut vocab = Vocab::builder();
        let mut special = Vec::new();
        let fail = |error| LowerError::caused("vocab", error);
        for (id, token) in document.special_tokens().iter().enumerate() {
            // The text of a special token may equal that of an ordinary one.
            vocab.push(token.token_str.as_bytes(), TokenKind::Unused).map_err(fail)?;
            special.push(AddedToken::special(&token.token_str, TokenId(id as u32)));
        }
        for (rank, token) in document.tokens() {
            fill_to(&mut vocab, document.id_of_rank(rank), "vocab")?;
            vocab.push(token, TokenKind::Normal).map_err(fail)?;
        }
        let model = Bpe::from_ranks(vocab.build(), BpeOptions::default());
        byte_pairs(model, &document.pattern, special)
    }
}

fn byte_pairs(
    model: Result<Bpe, BuildError>,
    pattern: &str,
    special: Vec<AddedToken>,
) -> Result<Tokenizer, LowerError> {
    let model = model.map_err(|error| LowerError::caused("ranks", error))?;
    let splitter =
        RegexSplitter::new(pattern).map_err(|error| LowerError::caused("pattern", error))?;
    let mut parts = Parts::new(Box::new(model));
    parts.steps = vec![PieceStep::Split(Box::new(splitter))];
    parts.added_tokens = special;
    parts.build().map_err(|error| LowerError::caused("special_tokens", error))
}
