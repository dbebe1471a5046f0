use core::fmt;

use tokenizer_core::VocabError;

/// Why a model could not be trained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainError {
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    TooSmall { asked: usize, needed: usize },
    Option(&'static str),
    EmptySpecial { at: usize },
    CorpusTooLarge { symbols: u64 },
    TooManyTokens,
    CountOverflow,
    Vocab(VocabError),
    Stopped,
}

impl TrainError {
    pub(crate) fn too_small(asked: usize, needed: usize) -> Self {
        Self { kind: Kind::TooSmall { asked, needed } }
    }

    pub(crate) fn option(says: &'static str) -> Self {
        Self { kind: Kind::Option(says) }
    }

    pub(crate) fn empty_special(at: usize) -> Self {
        Self { kind: Kind::EmptySpecial { at } }
    }

    pub(crate) fn corpus_too_large(symbols: u64) -> Self {
        Self { kind: Kind::CorpusTooLarge { symbols } }
    }

    pub(crate) fn too_many_tokens() -> Self {
        Self { kind: Kind::TooManyTokens }
    }

    pub(crate) fn count_overflow() -> Self {
        Self { kind: Kind::CountOverflow }
    }

    pub(crate) fn stopped() -> Self {
        Self { kind: Kind::Stopped }
    }

    /// The smallest vocabulary size that would do, where the one asked for was too small.
    #[must_use]
    pub fn needed_vocab_size(&self) -> Option<usize> {
        match self.kind {
            Kind::TooSmall { needed, .. } => Some(needed),
            _ => None,
        }
    }

    /// Whether the observer stopped the training.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.kind == Kind::Stopped
    }
}

impl From<VocabError> for TrainError {
    fn from(error: VocabError) -> Self {
        Self { kind: Kind::Vocab(error) }
    }
}

impl fmt::Display for TrainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::TooSmall { asked, needed } => write!(
                f,
                "a vocabulary of {asked} tokens was asked for, but special tokens and alphabet \
                 alone need {needed}"
            ),
            Kind::Option(says) => f.write_str(says),
            Kind::EmptySpecial { at } => write!(f, "special token {at} is empty"),
            Kind::CorpusTooLarge { symbols } => write!(
                f,
                "the distinct pieces hold {symbols} symbols together, but at most 4294967293 can \
                 be trained on"
            ),
            Kind::TooManyTokens => {
                write!(f, "the vocabulary passes 16777215 tokens, the most that can be trained")
            }
            Kind::CountOverflow => {
                write!(f, "the counts of all pairs together pass 18446744073709551615")
            }
            Kind::Vocab(_) => write!(f, "the vocabulary cannot hold the trained tokens"),
            Kind::Stopped => write!(f, "training was stopped"),
        }
    }
}

impl core::error::Error for TrainError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.kind {
            Kind::Vocab(error) => Some(error),
            _ => None,
        }
    }
}
