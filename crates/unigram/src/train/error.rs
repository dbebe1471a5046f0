use core::error::Error;
use core::fmt;

use tokenizer_core::{TokenId, VocabError};

use crate::error::BuildError;

/// Why training failed.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainError {
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Range(Limit),
    NotSpecial { index: usize },
    IdOfSpecial { index: usize, id: TokenId, size: usize },
    IdTaken { index: usize, id: TokenId },
    TooSmall { size: usize, special: usize, bytes: usize, alphabet: usize },
    NoRoom { size: usize, old: usize, special: usize, alphabet: usize },
    NothingToExtend,
    OtherTrainer,
    TooLarge { size: usize, possible: usize },
    TooMuchText { chars: u64 },
    TooManyBytes { bytes: u64 },
    NothingLeft,
    TooManyPieces { pieces: usize },
    OtherState,
    Overflow,
    Stopped,
    Vocab(VocabError),
    Build(BuildError),
}

/// An option and its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Limit {
    Coverage(f64),
    MaxPieceLen(usize),
    ShrinkingFactor(f64),
    SubIterations(usize),
    VocabSize(usize),
}

impl TrainError {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind }
    }

    /// The least vocabulary size that these counts and options allow, if the size was smaller.
    #[must_use]
    pub fn needed_vocab_size(&self) -> Option<usize> {
        match self.kind {
            Kind::TooSmall { special, bytes, alphabet, .. } => Some(special + bytes + alphabet),
            Kind::NoRoom { old, special, alphabet, .. } => Some(old + special + alphabet),
            _ => None,
        }
    }

    /// The greatest vocabulary size that these counts and options allow, if the size was greater
    /// and the limit hard.
    #[must_use]
    pub fn possible_vocab_size(&self) -> Option<usize> {
        match self.kind {
            Kind::TooLarge { possible, .. } => Some(possible),
            _ => None,
        }
    }

    /// Whether the observer stopped the training.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.kind == Kind::Stopped
    }
}

impl fmt::Display for TrainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Range(Limit::Coverage(value)) => {
                write!(f, "the character coverage is {value}, but must be above 0 and at most 1")
            }
            Kind::Range(Limit::MaxPieceLen(value)) => {
                write!(f, "the longest piece is {value} characters, but must be 1 to 512")
            }
            Kind::Range(Limit::ShrinkingFactor(value)) => {
                write!(f, "the shrinking factor is {value}, but must be 0.05 to 0.95")
            }
            Kind::Range(Limit::SubIterations(value)) => {
                write!(f, "there are {value} sub-iterations, but must be 1 to 100")
            }
            Kind::Range(Limit::VocabSize(value)) => {
                write!(f, "the vocabulary size is {value}, but must be under 134217728")
            }
            Kind::NotSpecial { index } => {
                write!(
                    f,
                    "special token {index} is of a kind that is trained or made for all bytes"
                )
            }
            Kind::IdOfSpecial { index, id, size } => {
                write!(f, "special token {index} wants id {id}, but the vocabulary size is {size}")
            }
            Kind::IdTaken { index, id } => {
                write!(f, "special token {index} wants id {id}, which an earlier one has")
            }
            Kind::TooSmall { size, special, bytes, alphabet } => {
                let needed = special + bytes + alphabet;
                write!(
                    f,
                    "the vocabulary size is {size}, but {special} special tokens, {bytes} bytes and \
                     {alphabet} characters need {needed}"
                )
            }
            Kind::NoRoom { size, old, special, alphabet } => {
                let needed = old + special + alphabet;
                write!(
                    f,
                    "the vocabulary size is {size}, but {old} tokens of the model, {special} special \
                     tokens and {alphabet} characters that it lacks need {needed}"
                )
            }
            Kind::NothingToExtend => {
                write!(f, "the model has no piece that a text could be cut into")
            }
            Kind::OtherTrainer => {
                write!(f, "SentencePiece's trainer knows no model to begin with")
            }
            Kind::TooLarge { size, possible } => {
                write!(f, "the vocabulary size is {size}, but the text supports at most {possible}")
            }
            Kind::TooMuchText { chars } => {
                write!(f, "the distinct pieces have {chars} characters, but may have 4294967294")
            }
            Kind::TooManyBytes { bytes } => {
                write!(f, "the lines written out have {bytes} bytes, but may have 4294967295")
            }
            Kind::NothingLeft => write!(f, "no piece is expected half a time"),
            Kind::TooManyPieces { pieces } => {
                write!(f, "{pieces} seed pieces do not fit a double array of 268435456 units")
            }
            Kind::Overflow => {
                write!(f, "the characters times their counts pass 18446744073709551615")
            }
            Kind::OtherState => {
                write!(f, "the state to go on from is of other counts or other options")
            }
            Kind::Stopped => write!(f, "stopped"),
            Kind::Vocab(_) => write!(f, "the special tokens are in each other's way"),
            Kind::Build(_) => write!(f, "the trained tokens make no model"),
        }
    }
}

impl Error for TrainError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            Kind::Vocab(error) => Some(error),
            Kind::Build(error) => Some(error),
            _ => None,
        }
    }
}
