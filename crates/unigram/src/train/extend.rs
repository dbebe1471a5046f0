//! Training on top of a model: its pieces and their scores stay, new pieces come behind.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::ControlFlow;

use tokenizer_core::{Model, Observe, PieceCounts, TokenKind, Vocab, utf8};

use super::corpus::{Corpus, MAX_UNIT};
use super::error::{Kind, TrainError};
use super::lattice::most_pieces;
use super::pieces::Pieces;
use super::workers::Workers;
use super::{Report, Round, SpecialToken, State, TrainCompat, UnigramTrainer, seeds, stop_if};
use crate::model::{Unigram, least_score};

impl UnigramTrainer {
    /// Trains more pieces on top of a model, for [`vocab_size`](Self::vocab_size) and each of the
    /// `smaller` sizes, which count old and new tokens. Gives a model for every size, in ascending
    /// order.
    ///
    /// Old tokens keep their ids and their scores. Behind them come the
    /// [`special_tokens`](Self::special_tokens) that the model lacks, in order (their
    /// [`id`](SpecialToken::id) must be left open), then the new pieces: the characters of the text
    /// that have no piece, as far as [`coverage`](Self::coverage) asks for them, and the best others.
    /// The options are the model's.
    ///
    /// A text whose best path has no new piece is encoded as before: it was the best path among
    /// fewer. New scores are not below the least old one, so that unknown characters score what they
    /// did. (Where the sum of the scores of one piece of text passes 100,000, SentencePiece's
    /// arithmetic moves sums back to 0 at places that new pieces can shift, which rounds otherwise.)
    ///
    /// New pieces are found as always: repeated substrings, EM, pruning. In the E-step old pieces
    /// take their part with the scores they have; the M-step gives new pieces alone a score, from
    /// their share of all tokens that are expected; and a piece is worth what the best segmentations
    /// lose without it, by the scores as they are. All probabilities together pass 1 by what the new
    /// pieces have.
    ///
    /// # Errors
    ///
    /// As [`train_reporting`](Self::train_reporting); [`TrainError::needed_vocab_size`] and
    /// [`TrainError::possible_vocab_size`] count the old tokens. Also if the model has no normal
    /// token, or for [`TrainCompat::SentencePiece`].
    pub fn extend(
        &self,
        model: &Unigram,
        counts: &PieceCounts,
        smaller: &[usize],
        observe: &mut dyn Observe<Round>,
    ) -> Result<Vec<(Unigram, Report)>, TrainError> {
        let mut save = |_: &State| ControlFlow::Continue(());
        self.resume_extending(model, None, counts, smaller, &mut save, observe)
    }

    /// Goes on with an interrupted [`extend`](Self::extend), as [`resume`](Self::resume) does with a
    /// training.
    ///
    /// # Errors
    ///
    /// As [`extend`](Self::extend).
    pub fn resume_extending(
        &self,
        model: &Unigram,
        from: Option<State>,
        counts: &PieceCounts,
        smaller: &[usize],
        save: &mut dyn FnMut(&State) -> ControlFlow<()>,
        observe: &mut dyn Observe<Round>,
    ) -> Result<Vec<(Unigram, Report)>, TrainError> {
        let base = Base::new(self, model)?;
        let like = base.trainer(self);
        let trainers = like.at_sizes(smaller)?;
        let mut report = Report::default();
        let corpus = Corpus::new(&like, counts, observe, &mut report)?;
        let chars = corpus.alphabet.keys().filter(|&&c| !base.knows(c)).count();
        let fixed = base.fixed();
        if let Some(&Self { vocab_size: size, .. }) = trainers.last()
            && size < fixed + chars
        {
            let (old, special) = (model.vocab().len(), base.special.len());
            return Err(TrainError::new(Kind::NoRoom { size, old, special, alphabet: chars }));
        }
        let workers = Workers::new(like.threads);
        let state = match from {
            Some(mut state) => {
                base.check(&state, &corpus, trainers.len())?;
                state.pieces.set_floor(base.floor);
                for round in &state.report.rounds {
                    stop_if(observe.step(round))?;
                }
                state
            }
            None => {
                let longest = base.longest().max(like.max_piece_len);
                let room = most_pieces(longest).saturating_sub(base.known.len());
                let target = match like.vocab_size > fixed + chars {
                    true => usize::MAX,
                    false => 0,
                };
                let found = seeds::seeds(&like, &corpus, target, room, &workers, observe)?;
                let pieces = base.with_new(&found);
                report.seeds = pieces.len() - base.known.len();
                State { longest: pieces.longest(), pieces, report, fitted: Vec::new() }
            }
        };
        // Sizes in pieces: the tokens of the model that match no text are none.
        let pieces_at = |size: usize| size - fixed + base.known.len();
        let targets: Vec<usize> = trainers.iter().map(|t| pieces_at(t.vocab_size)).collect();
        let fitted = like.fit(state, &corpus, &targets, &workers, save, observe)?;
        let mut models = Vec::with_capacity(fitted.len());
        for ((pieces, report), trainer) in fitted.into_iter().zip(&trainers) {
            trainer.check_size(fixed + pieces.len() - base.known.len())?;
            models.push((base.build(&pieces)?, report));
        }
        models.reverse();
        Ok(models)
    }
}

/// A model that is extended.
struct Base<'m> {
    model: &'m Unigram,
    /// The tokens that it lacks.
    special: Vec<SpecialToken>,
    /// The pieces that text can be cut into, with their scores.
    known: BTreeMap<&'m [u8], f64>,
    /// The least score that a new piece may have.
    floor: f64,
}

impl<'m> Base<'m> {
    fn new(trainer: &UnigramTrainer, model: &'m Unigram) -> Result<Self, TrainError> {
        if trainer.compat == TrainCompat::SentencePiece {
            return Err(TrainError::new(Kind::OtherTrainer));
        }
        let vocab = model.vocab();
        let is_piece = |bytes: &[u8]| {
            // What ends inside of a character is on no path.
            let chars = core::str::from_utf8(bytes).is_ok() && !bytes.contains(&0);
            chars && !bytes.is_empty() && bytes.len() <= MAX_UNIT
        };
        let known: BTreeMap<&[u8], f64> = vocab
            .iter()
            .filter(|&(_, bytes, kind)| kind == TokenKind::Normal && is_piece(bytes))
            .map(|(id, bytes, _)| (bytes, model.edges.by_id(id.0)))
            .collect();
        let floor = least_score(vocab, model.scores(), model.options().compat);
        let (Some(floor), false) = (floor, known.is_empty()) else {
            return Err(TrainError::new(Kind::NothingToExtend));
        };
        let taken: BTreeSet<&[u8]> = vocab
            .iter()
            .filter(|&(.., kind)| kind != TokenKind::Byte)
            .map(|(_, bytes, _)| bytes)
            .collect();
        let mut special = Vec::new();
        for (index, token) in trainer.special_tokens.iter().enumerate() {
            if taken.contains(token.bytes.as_slice()) {
                continue;
            }
            if let Some(id) = token.id {
                let size = vocab.len();
                return Err(TrainError::new(Kind::IdOfSpecial { index, id, size }));
            }
            special.push(token.clone());
        }
        Ok(Self { model, special, known, floor })
    }

    /// The trainer with the options of the model, whose other tokens part the text, and whose
    /// characters are in the alphabet.
    fn trainer(&self, trainer: &UnigramTrainer) -> UnigramTrainer {
        let vocab = self.model.vocab();
        let mut special_tokens = self.special.clone();
        for (_, bytes, kind) in vocab.iter() {
            let kind = match kind {
                TokenKind::Normal | TokenKind::Byte => continue,
                // Hugging Face's arithmetic matches all that is not unused: special tokens are that.
                TokenKind::Unused if bytes.is_empty() || vocab.get(bytes).is_some() => continue,
                TokenKind::Unused => TokenKind::Control,
                kind => kind,
            };
            special_tokens.push(SpecialToken::new(bytes, kind));
        }
        let mut required_chars = trainer.required_chars.clone();
        required_chars.extend(self.known.keys().filter_map(|piece| only_char(piece)));
        UnigramTrainer {
            special_tokens,
            required_chars,
            options: self.model.options().clone(),
            ..trainer.clone()
        }
    }

    /// How many tokens there are before the first new piece.
    fn fixed(&self) -> usize {
        self.model.vocab().len() + self.special.len()
    }

    fn knows(&self, char: char) -> bool {
        self.known.contains_key(char.encode_utf8(&mut [0; 4]).as_bytes())
    }

    /// In characters.
    fn longest(&self) -> usize {
        self.known.keys().map(|piece| utf8::chars(piece).count()).max().unwrap_or(1)
    }

    /// The known pieces, and those of the seeds that no token of the model is spelled like.
    fn with_new(&self, seeds: &Pieces) -> Pieces {
        let vocab = self.model.vocab();
        let others = vocab.iter().filter(|&(.., kind)| kind != TokenKind::Byte);
        let taken: BTreeSet<&[u8]> = others
            .map(|(_, bytes, _)| bytes)
            .chain(self.special.iter().map(|token| token.bytes.as_slice()))
            .collect();
        let mut all: BTreeMap<&[u8], Option<usize>> =
            self.known.keys().map(|&piece| (piece, None)).collect();
        for i in (0..seeds.len()).filter(|&i| !taken.contains(seeds.bytes(i))) {
            all.insert(seeds.bytes(i), Some(i));
        }
        let mut pieces = Pieces::empty();
        pieces.set_floor(self.floor);
        for (bytes, seed) in all {
            match seed {
                None => pieces.push_fixed(bytes, self.known[bytes]),
                Some(i) => {
                    let score = seeds.score(i).max(self.floor);
                    pieces.push_scored(bytes, score, seeds.is_required(i));
                }
            }
        }
        pieces
    }

    /// Refuses a state of another text or another model.
    fn check(&self, state: &State, corpus: &Corpus, sizes: usize) -> Result<(), TrainError> {
        let pieces = &state.pieces;
        let of = |fixed: bool| {
            let required = (0..pieces.len()).filter(|&i| pieces.is_required(i));
            required.filter(move |&i| pieces.is_fixed(i) == fixed)
        };
        let chars = corpus.alphabet.keys().filter(|&&c| !self.knows(c));
        let chars = chars.map(|&c| String::from(c).into_bytes());
        let same_chars = chars.eq(of(false).map(|i| pieces.bytes(i).to_vec()));
        let known = self.known.iter().map(|(&bytes, &score)| (bytes, score));
        let same_known = known.eq(of(true).map(|i| (pieces.bytes(i), pieces.score(i))));
        let fits = pieces.longest() <= state.longest && state.fitted.len() <= sizes;
        match same_chars && same_known && fits {
            true => Ok(()),
            false => Err(TrainError::new(Kind::OtherState)),
        }
    }

    fn build(&self, pieces: &Pieces) -> Result<Unigram, TrainError> {
        // Scores fit 32 bits as always, but for the least one that the model allows.
        let score = |i: usize| f64::from(pieces.score(i) as f32).max(self.floor);
        let mut new: Vec<usize> = (0..pieces.len()).filter(|&i| !pieces.is_fixed(i)).collect();
        // Pieces are in order of their bytes, and the sort is stable.
        new.sort_by(|&a, &b| score(b).total_cmp(&score(a)));
        let mut vocab = Vocab::builder();
        let mut scores = self.model.scores().to_vec();
        let old = self.model.vocab().iter().map(|(_, bytes, kind)| (bytes, kind));
        let special = self.special.iter().map(|token| (token.bytes.as_slice(), token.kind));
        let trained = new.iter().map(|&i| (pieces.bytes(i), TokenKind::Normal));
        for (bytes, kind) in old.chain(special).chain(trained) {
            vocab.push(bytes, kind).map_err(|error| TrainError::new(Kind::Vocab(error)))?;
        }
        scores.resize(self.fixed(), 0.0);
        scores.extend(new.iter().map(|&i| score(i)));
        Unigram::new(vocab.build(), scores, self.model.options().clone())
            .map_err(|error| TrainError::new(Kind::Build(error)))
    }
}

/// The character that a piece is, if it is one.
fn only_char(piece: &[u8]) -> Option<char> {
    let (char, len) = utf8::decode(piece);
    char.filter(|_| len == piece.len())
}
