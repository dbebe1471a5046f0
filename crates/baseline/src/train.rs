use alloc::vec::Vec;
use core::fmt;

use hashbrown::HashMap;
use tokenizer_core::{
    Observe, PieceCounts, TokenId, TokenKind, Train, Vocab, VocabBuilder, VocabError, utf8,
};

use crate::{Chars, Words};

/// What stands in for text that a trained vocabulary does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// The token of this spelling, of kind `Unknown`.
    Unknown(Vec<u8>),
    /// 256 tokens of kind `Byte`: nothing is unknown.
    Bytes,
}

impl Default for Fallback {
    /// `<unk>`.
    fn default() -> Self {
        Self::Unknown(b"<unk>".to_vec())
    }
}

/// Trains [`Chars`]: the most frequent characters, ties by their bytes.
///
/// Ids: the special tokens in their order (the unknown token first, if it is not among them), the
/// byte tokens if any, then the characters, most frequent first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CharsTrainer {
    /// How many tokens to end with; fewer if the text has fewer characters.
    pub vocab_size: usize,
    /// The first tokens, of kind `Control`.
    pub special_tokens: Vec<Vec<u8>>,
    /// What becomes of other characters; default `<unk>`.
    pub fallback: Fallback,
}

impl CharsTrainer {
    /// The default trainer for a vocabulary of this size.
    #[must_use]
    pub fn new(vocab_size: usize) -> Self {
        Self { vocab_size, special_tokens: Vec::new(), fallback: Fallback::default() }
    }
}

impl Train for CharsTrainer {
    type Model = Chars;
    type Step = ();
    type Error = TrainError;

    fn train(
        &self,
        counts: &PieceCounts,
        observe: &mut dyn Observe<()>,
    ) -> Result<Chars, TrainError> {
        let (mut vocab, unk) = special_tokens(&self.special_tokens, &self.fallback)?;
        let mut chars: HashMap<&[u8], u128> = HashMap::new();
        for (done, piece) in counts.iter().enumerate() {
            progress(observe, done, counts.len())?;
            for char in utf8::chars(piece.piece) {
                *chars.entry(char).or_default() += u128::from(piece.count);
            }
        }
        fill(&mut vocab, self.vocab_size, chars.into_iter().collect())?;
        Ok(Chars::new(vocab.build(), unk).expect("the unknown token was added"))
    }
}

/// Trains [`Words`]: the most frequent pieces, ties by their bytes.
///
/// Ids: the special tokens in their order (the unknown token first, if it is not among them), then
/// the pieces, most frequent first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WordsTrainer {
    /// How many tokens to end with; fewer if the text has fewer pieces.
    pub vocab_size: usize,
    /// The first tokens, of kind `Control`.
    pub special_tokens: Vec<Vec<u8>>,
    /// The token that stands in for other pieces; default `<unk>`.
    pub unk: Vec<u8>,
}

impl WordsTrainer {
    /// The default trainer for a vocabulary of this size.
    #[must_use]
    pub fn new(vocab_size: usize) -> Self {
        Self { vocab_size, special_tokens: Vec::new(), unk: b"<unk>".to_vec() }
    }
}

impl Train for WordsTrainer {
    type Model = Words;
    type Step = ();
    type Error = TrainError;

    fn train(
        &self,
        counts: &PieceCounts,
        observe: &mut dyn Observe<()>,
    ) -> Result<Words, TrainError> {
        let fallback = Fallback::Unknown(self.unk.clone());
        let (mut vocab, unk) = special_tokens(&self.special_tokens, &fallback)?;
        let mut words = Vec::with_capacity(counts.len());
        for (done, piece) in counts.iter().enumerate() {
            progress(observe, done, counts.len())?;
            words.push((piece.piece, u128::from(piece.count)));
        }
        fill(&mut vocab, self.vocab_size, words)?;
        Ok(Words::new(vocab.build(), unk).expect("the unknown token was added"))
    }
}

fn special_tokens(
    tokens: &[Vec<u8>],
    fallback: &Fallback,
) -> Result<(VocabBuilder, Option<TokenId>), TrainError> {
    let mut vocab = Vocab::builder();
    let unk = match fallback {
        Fallback::Unknown(unk) => Some(unk),
        Fallback::Bytes => None,
    };
    for token in unk.filter(|unk| !tokens.contains(unk)).into_iter().chain(tokens) {
        let kind = if Some(token) == unk { TokenKind::Unknown } else { TokenKind::Control };
        vocab.push(token, kind).map_err(TrainError::vocab)?;
    }
    if unk.is_none() {
        for byte in 0..=255u8 {
            vocab.push(&[byte], TokenKind::Byte).map_err(TrainError::vocab)?;
        }
    }
    let unk = unk.and_then(|unk| vocab.get(unk));
    Ok((vocab, unk))
}

/// Adds the most frequent of `entries` that are no special tokens.
fn fill(
    vocab: &mut VocabBuilder,
    size: usize,
    mut entries: Vec<(&[u8], u128)>,
) -> Result<(), TrainError> {
    if vocab.len() > size {
        return Err(TrainError { kind: Kind::VocabTooSmall { size, needed: vocab.len() } });
    }
    entries.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    for (bytes, _) in entries {
        if vocab.len() == size {
            break;
        }
        if vocab.get(bytes).is_none() {
            vocab.push(bytes, TokenKind::Normal).map_err(TrainError::vocab)?;
        }
    }
    Ok(())
}

fn progress(observe: &mut dyn Observe<()>, done: usize, total: usize) -> Result<(), TrainError> {
    const INTERVAL: usize = 1 << 14;
    if done.is_multiple_of(INTERVAL)
        && observe.progress("counts", done as u64, total as u64).is_break()
    {
        return Err(TrainError { kind: Kind::Stopped });
    }
    Ok(())
}

/// Why a training failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainError {
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    VocabTooSmall { size: usize, needed: usize },
    Vocab(VocabError),
    Stopped,
}

impl TrainError {
    fn vocab(error: VocabError) -> Self {
        Self { kind: Kind::Vocab(error) }
    }

    /// The least vocabulary size that is possible, if the one asked for is smaller.
    #[must_use]
    pub fn needed_vocab_size(&self) -> Option<usize> {
        match self.kind {
            Kind::VocabTooSmall { needed, .. } => Some(needed),
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
            Kind::VocabTooSmall { size, needed } => write!(
                f,
                "a vocabulary of {size} is too small: special and byte tokens need at least {needed}"
            ),
            Kind::Vocab(_) => write!(f, "the tokens do not make a vocabulary"),
            Kind::Stopped => write!(f, "the training was stopped"),
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
