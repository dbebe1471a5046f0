use core::fmt;

use tokenizer_core::TokenId;

use crate::model::MAX_SCORE;

/// Why a model could not be built.
#[derive(Clone, Debug, PartialEq)]
pub struct BuildError {
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    ScoreCount { tokens: usize, scores: usize },
    Score { id: TokenId, score: f64 },
    TwoUnknown { id: TokenId, first: TokenId },
    MissingByte { byte: u8 },
    TooLarge { tokens: usize },
}

impl BuildError {
    pub(crate) fn new(kind: Kind) -> Self {
        Self { kind }
    }

    /// The id of the token at fault, where the fault lies with one token.
    #[must_use]
    pub fn token(&self) -> Option<TokenId> {
        match self.kind {
            Kind::Score { id, .. } | Kind::TwoUnknown { id, .. } => Some(id),
            _ => None,
        }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::ScoreCount { tokens, scores } => {
                write!(f, "the vocabulary holds {tokens} tokens, but there are {scores} scores")
            }
            Kind::Score { id, score } => {
                write!(
                    f,
                    "token {id} has score {score}, but scores go from -{MAX_SCORE:e} to {MAX_SCORE:e}"
                )
            }
            Kind::TwoUnknown { id, first } => {
                write!(f, "token {id} is an unknown token, but token {first} is one already")
            }
            Kind::MissingByte { byte } => {
                write!(f, "byte fallback needs all 256 byte tokens, but <0x{byte:02X}> is missing")
            }
            Kind::TooLarge { tokens } => {
                write!(
                    f,
                    "the {tokens} tokens do not fit a double array of 268435456 units and 134217727 values"
                )
            }
        }
    }
}

impl core::error::Error for BuildError {}
