use crate::{IdMap, Strings};

/// What `model` can be.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// `BPE`.
    Bpe(Bpe),
    /// `WordPiece`.
    WordPiece(WordPiece),
    /// `WordLevel`.
    WordLevel(WordLevel),
    /// `Unigram`.
    Unigram(Unigram),
}

/// A byte-pair encoding model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bpe {
    /// The probability of leaving a merge out, from 0 to 1.
    pub dropout: Option<f32>,
    /// What stands for characters without token. Not checked to be in the vocabulary.
    pub unk_token: Option<String>,
    /// What pieces behind the first carry in front, as `##`.
    pub continuing_subword_prefix: Option<String>,
    /// What the last piece of a word carries behind, as `</w>`.
    pub end_of_word_suffix: Option<String>,
    /// Whether a run of unknown characters is one token.
    pub fuse_unk: bool,
    /// Whether characters without token are spelled by tokens `<0xHH>`.
    pub byte_fallback: bool,
    /// Whether a whole piece that is in the vocabulary is one token without merging.
    pub ignore_merges: bool,
    /// The tokens.
    pub vocab: IdMap<str>,
    /// The merges, the first of the lowest rank. A pair may be there twice; the last counts.
    pub merges: Vec<Merge>,
}

/// Two tokens and what they become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Merge {
    /// The id of the left token.
    pub left: u32,
    /// The id of the right token.
    pub right: u32,
    /// The id of both together, without the right one's continuing prefix.
    pub product: u32,
}

/// A WordPiece model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordPiece {
    /// What stands for a word that cannot be spelled. Not checked to be in the vocabulary.
    pub unk_token: String,
    /// What pieces behind the first carry in front, as `##`.
    pub continuing_subword_prefix: String,
    /// Words of more characters are unknown.
    pub max_input_chars_per_word: usize,
    /// The tokens.
    pub vocab: IdMap<str>,
}

/// A model that looks whole pieces up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordLevel {
    /// The tokens.
    pub vocab: IdMap<str>,
    /// What stands for a word that is not there. Not checked to be in the vocabulary.
    pub unk_token: String,
}

/// A Unigram model: piece i has id i.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unigram {
    /// The id of the unknown piece, below the number of pieces.
    pub unk_id: Option<u32>,
    /// The pieces. One may be there twice; its id is the last.
    pub pieces: Strings,
    /// The logarithm of each piece's probability, as many as pieces, all finite.
    pub scores: Vec<f64>,
    /// Whether unknown text is spelled by pieces `<0xHH>`.
    pub byte_fallback: bool,
}

impl Model {
    /// The type as the file writes it.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Bpe(_) => "BPE",
            Self::WordPiece(_) => "WordPiece",
            Self::WordLevel(_) => "WordLevel",
            Self::Unigram(_) => "Unigram",
        }
    }

    /// The number of tokens (not of ids: those of a map may have gaps).
    #[must_use]
    pub fn len(&self) -> usize {
        match self.map() {
            Some(vocab) => vocab.len(),
            None => self.unigram().map_or(0, |model| model.pieces.len()),
        }
    }

    /// Whether there is no token.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The vocabulary of all models but Unigram.
    #[must_use]
    pub fn map(&self) -> Option<&IdMap<str>> {
        match self {
            Self::Bpe(model) => Some(&model.vocab),
            Self::WordPiece(model) => Some(&model.vocab),
            Self::WordLevel(model) => Some(&model.vocab),
            Self::Unigram(_) => None,
        }
    }

    /// The model if it is Unigram.
    #[must_use]
    pub fn unigram(&self) -> Option<&Unigram> {
        match self {
            Self::Unigram(model) => Some(model),
            _ => None,
        }
    }
}
