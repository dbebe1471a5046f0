//! Files whose model is trained further.

use bpe::{Alphabet, Bpe, Rules};
use formats::tokenizer_json as doc;
use formats::{IdMap, byte_level};
use tokenizer_core::{Model, TokenKind, Vocab};

use super::json::{added_tokens, spelled, written_merge};
use super::{Learned, LiftError};
use crate::counting::CorpusCounter;
use crate::pipeline::{PartsError, Tokenizer};

/// A tokenizer.json whose model is trained further. All else that it says stays as it is: how text
/// is normalized and cut, templates, the decoder, the spelling and the ids of its tokens.
///
/// ```no_run
/// use bpe::{Bpe, BpeTrainer, Goal};
/// use formats::tokenizer_json::TokenizerJson;
/// use tokenizer::lift::{Frame, Learned};
/// use tokenizer_core::Silent;
///
/// let frame = Frame::of(TokenizerJson::parse(&std::fs::read("gpt2.json")?)?)?;
/// let mut counter = frame.counter();
/// counter.add(&["le chat est sur le tapis"])?;
/// let base = frame.tokenizer().model().as_any().and_then(|any| any.downcast_ref::<Bpe>());
/// let mut trainer = BpeTrainer::default();
/// trainer.goal = Goal::VocabSize(50_300);
/// let counts = counter.finish()?;
/// let model = trainer.extend(base.expect("GPT-2 is BPE"), &counts, &mut Silent)?;
/// let document = frame.with_model(Learned::Bpe(&model))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Frame {
    document: doc::TokenizerJson,
    tokenizer: Tokenizer,
}

impl Frame {
    /// The frame that a document is for its model.
    ///
    /// Added tokens whose ids lie behind the model's become tokens of the model, which they are to
    /// a reader anyway: new tokens go behind them.
    ///
    /// # Errors
    ///
    /// If the document is none that can be read, or is Unigram with added tokens behind its pieces.
    pub fn of(mut document: doc::TokenizerJson) -> Result<Self, LiftError> {
        take_added_tokens(&mut document)?;
        let tokenizer = Tokenizer::from_tokenizer_json(&document)
            .map_err(|error| LiftError::new(error.to_string()))?;
        Ok(Self { document, tokenizer })
    }

    /// The tokenizer that the document describes.
    #[must_use]
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Counts what the model is trained further on.
    #[must_use]
    pub fn counter(&self) -> CorpusCounter<'_> {
        CorpusCounter::of(&self.tokenizer)
    }

    /// The document with a model that was trained on top of its own: its own tokens, merges and
    /// scores are written as they stand there, the new ones behind them.
    ///
    /// # Errors
    ///
    /// If the model is not the document's and more, or a new token cannot be spelled.
    pub fn with_model(&self, model: Learned<'_>) -> Result<doc::TokenizerJson, LiftError> {
        let mut document = self.document.clone();
        let old = self.tokenizer.vocab().len();
        let vocab = match (&mut document.model, model) {
            (doc::Model::Bpe(written), Learned::Bpe(model)) => {
                let byte_level = model.options().alphabet == Alphabet::Byte;
                written.vocab = with_new(&written.vocab, model.vocab(), old, byte_level)?;
                let (Rules::Merges(merges), Some(merged)) = (model.rules(), self.merges()) else {
                    return Err(other_model());
                };
                for pair in merges.get(merged..).ok_or_else(other_model)? {
                    written.merges.push(written_merge(model, *pair)?);
                }
                model.vocab()
            }
            (doc::Model::WordPiece(written), Learned::WordPiece(model)) => {
                written.vocab = with_new(&written.vocab, model.vocab(), old, false)?;
                model.vocab()
            }
            (doc::Model::Unigram(written), Learned::Unigram(model)) => {
                for (id, bytes, kind) in model.vocab().iter().skip(old) {
                    written.pieces.push(&spelled(bytes, kind)?);
                    written.scores.push(model.scores()[id.index()]);
                }
                model.vocab()
            }
            _ => return Err(other_model()),
        };
        if vocab.len() < old {
            return Err(other_model());
        }
        let new = added_tokens(vocab)?.into_iter().filter(|token| token.id as usize >= old);
        document.added_tokens.extend(new);
        document.canonicalize();
        document.validate().map_err(|error| LiftError::new(error.to_string()))?;
        Ok(document)
    }

    /// The tokenizer of the document with another model.
    ///
    /// # Errors
    ///
    /// As [`Parts::build`](crate::Parts::build).
    pub fn tokenizer_with(&self, model: Box<dyn Model>) -> Result<Tokenizer, PartsError> {
        let same = Tokenizer::from_tokenizer_json(&self.document);
        let mut parts = same.expect("it was read before").into_parts();
        parts.model = model;
        parts.build()
    }

    /// The number of merges.
    fn merges(&self) -> Option<usize> {
        match self.tokenizer.model().as_any()?.downcast_ref::<Bpe>()?.rules() {
            Rules::Merges(merges) => Some(merges.len()),
            _ => None,
        }
    }
}

fn other_model() -> LiftError {
    LiftError::new("the model does not go on from the one of the file")
}

/// Gives the model the added tokens whose ids lie behind its own.
fn take_added_tokens(document: &mut doc::TokenizerJson) -> Result<(), LiftError> {
    let resolved = document.resolved_added_tokens().into_iter();
    let mut added: Vec<(String, u32)> =
        resolved.map(|(id, token)| (token.content.clone(), id)).collect();
    let mut with = |vocab: &IdMap<str>| {
        added.retain(|(token, _)| vocab.get(token).is_none());
        joined(vocab, std::mem::take(&mut added))
    };
    match &mut document.model {
        doc::Model::Bpe(model) => model.vocab = with(&model.vocab)?,
        doc::Model::WordPiece(model) => model.vocab = with(&model.vocab)?,
        doc::Model::Unigram(model) => {
            let behind = added.iter().find(|(_, id)| *id as usize >= model.pieces.len());
            if let Some((token, id)) = behind {
                return Err(LiftError::new(format!(
                    "the added token {token:?} has id {id}, behind the {} pieces, where a new \
                     piece would go",
                    model.pieces.len()
                )));
            }
        }
        doc::Model::WordLevel(_) => {}
    }
    Ok(())
}

/// A vocabulary and the tokens of a trained one from id `old` on.
fn with_new(
    written: &IdMap<str>,
    vocab: &Vocab,
    old: usize,
    byte_level: bool,
) -> Result<IdMap<str>, LiftError> {
    let mut new = Vec::new();
    for (id, bytes, kind) in vocab.iter().skip(old) {
        let token = match kind {
            TokenKind::Normal if byte_level => byte_level::encode(bytes),
            _ => spelled(bytes, kind)?,
        };
        new.push((token, id.0));
    }
    joined(written, new)
}

fn joined(written: &IdMap<str>, new: Vec<(String, u32)>) -> Result<IdMap<str>, LiftError> {
    let old = written.iter().map(|(id, token)| (token.to_owned(), id));
    IdMap::from_pairs(old.chain(new))
        .map_err(|error| LiftError::new(format!("two tokens would be written alike: {error}")))
}
