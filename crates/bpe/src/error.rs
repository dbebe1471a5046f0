use core::fmt;

use tokenizer_core::TokenId;

/// Why a model could not be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildError {
    kind: BuildErrorKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BuildErrorKind {
    MergeNames { merge: usize, id: TokenId, vocab_len: usize },
    MergeNamesUnused { merge: usize, id: TokenId },
    NoProduct { merge: usize, left: TokenId, right: TokenId },
    TooManyMerges { merges: usize },
    UnkMissing { unk: TokenId, vocab_len: usize },
    EmptyAffix { option: &'static str },
    EndSymbolMissing,
    AffixWithoutMerges { option: &'static str },
    ScoreCount { scores: usize, vocab_len: usize },
    ScoreNotANumber { id: TokenId },
    UnusedTooLong { id: TokenId, len: usize },
}

/// The longest unused piece that can be split again, in bytes.
pub(crate) const LONGEST_UNUSED: usize = 4096;

impl BuildError {
    pub(crate) fn new(kind: BuildErrorKind) -> Self {
        Self { kind }
    }

    /// The index of the merge at fault, where one is.
    #[must_use]
    pub fn merge(&self) -> Option<usize> {
        match self.kind {
            BuildErrorKind::MergeNames { merge, .. }
            | BuildErrorKind::MergeNamesUnused { merge, .. }
            | BuildErrorKind::NoProduct { merge, .. } => Some(merge),
            _ => None,
        }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use BuildErrorKind as K;
        match &self.kind {
            K::MergeNames { merge, id, vocab_len } => {
                write!(f, "merge {merge} names token {id}, but the vocabulary holds {vocab_len}")
            }
            K::MergeNamesUnused { merge, id } => {
                write!(f, "merge {merge} names token {id}, which is of kind Unused")
            }
            K::NoProduct { merge, left, right } => write!(
                f,
                "merge {merge} joins tokens {left} and {right}, but the vocabulary does not hold \
                 what they make"
            ),
            K::TooManyMerges { merges } => {
                write!(f, "{merges} merges were given, but at most 4294967294 can be ranked")
            }
            K::UnkMissing { unk, vocab_len } => {
                write!(f, "the unknown token is {unk}, but the vocabulary holds {vocab_len}")
            }
            K::EmptyAffix { option } => write!(f, "{option} is given, but empty"),
            K::EndSymbolMissing => {
                write!(f, "the end-of-word symbol is not a token of the vocabulary")
            }
            K::AffixWithoutMerges { option } => {
                write!(f, "{option} needs a list of merges, but ranks or scores are given")
            }
            K::ScoreCount { scores, vocab_len } => {
                write!(f, "{scores} scores were given, but the vocabulary holds {vocab_len}")
            }
            K::ScoreNotANumber { id } => write!(f, "the score of token {id} is not a number"),
            K::UnusedTooLong { id, len } => write!(
                f,
                "unused piece {id} holds {len} bytes, but only pieces of up to {LONGEST_UNUSED} \
                 can be split again"
            ),
        }
    }
}

impl core::error::Error for BuildError {}
