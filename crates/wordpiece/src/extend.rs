//! From piece counts to symbols on top of a model: what is settled before the first new merge.

use alloc::vec::Vec;

use tokenizer_core::{Model, Observe, PieceCounts, Token, TokenKind, VocabBuilder};

use crate::alphabet::{Corpus, Run, Tally, Tokens, keep, tally, units};
use crate::trainer::{Merge, TrainError, WordPieceTrainer};
use crate::{BuildError, Options, Position, Unknown, WordPiece, model};

/// Appends the tokens of a word.
pub(crate) type Segment<'s> = &'s dyn Fn(&WordPiece, &[u8], &mut Vec<Token>);

/// Lays out the tokens of `model`, all under their ids, and behind them what it lacks: special
/// tokens, characters inside of its own tokens, characters of the text. The words are segmented as
/// the model with those would encode them; what still has no token parts a word.
///
/// Why the characters inside of tokens: a new token may end in the middle of an old one, and matching
/// must be able to go on from there, or a word that was known became unknown.
pub(crate) fn prepare(
    trainer: &WordPieceTrainer,
    model: &WordPiece,
    counts: &PieceCounts,
    segment: Segment<'_>,
    observe: &mut dyn Observe<Merge>,
) -> Result<(Tokens, Corpus), TrainError> {
    trainer.check()?;
    let old = model.vocab().len();
    let mut tokens = Tokens::new(&trainer.options.continuing_prefix);
    for (id, bytes, kind) in model.vocab().iter() {
        let text = model.text_of(id).map_or(bytes, |(text, _)| text);
        tokens.push(bytes.to_vec(), kind, units(trainer.options.unit, text).count() as u64)?;
    }
    for text in &trainer.special_tokens {
        if tokens.get(text).is_none() {
            tokens.push(text.clone(), TokenKind::Control, 0)?;
        }
    }
    close(&mut tokens, model)?;
    let mut corpus = Corpus::default();
    add_characters(&mut tokens, trainer, counts, &mut corpus, observe)?;
    if tokens.len() > trainer.vocab_size {
        return Err(TrainError::no_room(trainer.vocab_size, old, tokens.len() - old));
    }
    let reader = reader(&tokens, &trainer.options).map_err(TrainError::build)?;
    let mut found = Vec::new();
    for piece in counts.iter().filter(|piece| !trainer.skips(piece.piece)) {
        found.clear();
        segment(&reader, piece.piece, &mut found);
        let is_symbol =
            |token: &Token| token.id.index() < tokens.len() && !tokens.is_special(token.id.0);
        for run in found.split(|token| !is_symbol(token)).filter(|run| !run.is_empty()) {
            corpus.symbols.extend(run.iter().map(|token| token.id.0));
            corpus.runs.push(Run { end: corpus.symbols.len(), weight: piece.count });
        }
    }
    Ok((tokens, corpus))
}

/// Adds every character that is inside of a continuation and is none itself.
fn close(tokens: &mut Tokens, model: &WordPiece) -> Result<(), TrainError> {
    let options = model.options();
    let mut missing: Vec<Vec<u8>> = Vec::new();
    for (id, _, kind) in model.vocab().iter() {
        let Some((text, position)) = model.text_of(id) else { continue };
        // Where the prefix is empty a token stands at the beginning and inside alike.
        let is_inside = position == Position::Continuation || options.continuing_prefix.is_empty();
        if is_inside && model::matches(kind) {
            let inner = units(options.unit, text).skip(1);
            missing.extend(inner.map(|char| [&options.continuing_prefix[..], char].concat()));
        }
    }
    missing.sort_unstable();
    missing.dedup();
    missing.into_iter().try_for_each(|text| tokens.symbol(text).map(drop))
}

/// Adds the characters of the text that have no token, those of the beginning of words first.
fn add_characters(
    tokens: &mut Tokens,
    trainer: &WordPieceTrainer,
    counts: &PieceCounts,
    corpus: &mut Corpus,
    observe: &mut dyn Observe<Merge>,
) -> Result<(), TrainError> {
    let prefix = &trainer.options.continuing_prefix[..];
    let inner = |char: &[u8]| [prefix, char].concat();
    let tallies = tally(trainer, counts, &mut corpus.report, observe)?;
    let is_known = |char: &[u8], tally: Tally| {
        (tally.initial == 0 || tokens.get(char).is_some())
            && (tally.inner == 0 || tokens.get(&inner(char)).is_some())
    };
    let kept = keep(trainer, tallies, is_known, &mut corpus.report);
    for (char, _) in kept.iter().filter(|(_, tally)| tally.initial > 0) {
        tokens.symbol(char.to_vec())?;
    }
    for (char, _) in kept.iter().filter(|(_, tally)| tally.inner > 0) {
        tokens.symbol(inner(char))?;
    }
    Ok(())
}

/// A model of these tokens that reads words of any length and goes on behind a character without a
/// token, for which it has one behind all others.
fn reader(tokens: &Tokens, options: &Options) -> Result<WordPiece, BuildError> {
    let mut vocab: VocabBuilder = tokens.to_vocab_builder();
    let mut unk = b"\0".to_vec();
    while vocab.get(&unk).is_some() {
        unk.push(0);
    }
    // Of a kind that matches no text.
    vocab.push(&unk, TokenKind::Control).map_err(BuildError::vocab)?;
    let options = Options {
        unk: Some(unk),
        unknown: Unknown::Character,
        max_chars: usize::MAX,
        ..options.clone()
    };
    WordPiece::new(vocab.build(), options)
}
