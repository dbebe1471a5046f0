//! A model of one of the algorithms.

use baseline::{Bytes, Chars, Words};
use bpe::Bpe;
use tokenizer::lift::Learned;
use tokenizer_core::{Model as _, Vocab};
use unigram::Unigram;
use wordpiece::WordPiece;

/// A trained model of any algorithm.
#[derive(Clone)]
#[allow(clippy::large_enum_variant)] // There are as many as sizes were asked for: a handful.
pub(super) enum Model {
    Bpe(Bpe),
    WordPiece(WordPiece),
    Unigram(Unigram),
    Chars(Chars),
    Words(Words),
    Bytes(Bytes),
}

impl Model {
    pub(super) fn learned(&self) -> Learned<'_> {
        match self {
            Self::Bpe(model) => Learned::Bpe(model),
            Self::WordPiece(model) => Learned::WordPiece(model),
            Self::Unigram(model) => Learned::Unigram(model),
            Self::Chars(model) => Learned::Chars(model),
            Self::Words(model) => Learned::Words(model),
            Self::Bytes(model) => Learned::Bytes(model),
        }
    }

    pub(super) fn vocab(&self) -> &Vocab {
        match self {
            Self::Bpe(model) => model.vocab(),
            Self::WordPiece(model) => model.vocab(),
            Self::Unigram(model) => model.vocab(),
            Self::Chars(model) => model.vocab(),
            Self::Words(model) => model.vocab(),
            Self::Bytes(model) => model.vocab(),
        }
    }

    pub(super) fn vocab_len(&self) -> usize {
        self.vocab().len()
    }

    pub(super) fn as_bpe(&self) -> Option<&Bpe> {
        if let Self::Bpe(model) = self { Some(model) } else { None }
    }

    pub(super) fn as_wordpiece(&self) -> Option<&WordPiece> {
        if let Self::WordPiece(model) = self { Some(model) } else { None }
    }

    pub(super) fn as_unigram(&self) -> Option<&Unigram> {
        if let Self::Unigram(model) = self { Some(model) } else { None }
    }

    pub(super) fn boxed(self) -> Box<dyn tokenizer_core::Model> {
        match self {
            Self::Bpe(model) => Box::new(model),
            Self::WordPiece(model) => Box::new(model),
            Self::Unigram(model) => Box::new(model),
            Self::Chars(model) => Box::new(model),
            Self::Words(model) => Box::new(model),
            Self::Bytes(model) => Box::new(model),
        }
    }
}
