//! The trainer: seed pieces, EM, pruning by loss.

mod corpus;
mod em;
mod error;
mod extend;
mod lattice;
mod pieces;
mod prune;
mod seeds;
mod sentencepiece;
mod state;
mod workers;

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::ControlFlow;

use tokenizer_core::{Observe, PieceCounts, PieceRules, TokenId, TokenKind, Train, Vocab};

use self::corpus::Corpus;
use self::em::{Em, Expected};
pub use self::error::TrainError;
use self::error::{Kind, Limit};
use self::lattice::most_pieces;
use self::pieces::Pieces;
pub use self::state::{State, StateError};
use self::workers::Workers;
use crate::model::{Unigram, UnigramOptions};

/// Trains a [`Unigram`] model by EM and pruning (Kudo 2018, section 3.2).
///
/// 1. Seeds: every character of the alphabet, and the repeated substrings of pieces with the
///    greatest count times length.
/// 2. EM: the expected count of each piece over all segmentations of the text, then new scores
///    from it by the digamma function (a variational step that makes rare pieces rarer). Pieces
///    expected less than half a time are dropped.
/// 3. Pruning: the pieces whose loss would hurt the likelihood least are dropped, down to
///    [`shrinking_factor`](Self::shrinking_factor) of them. Steps 2 and 3 repeat until the size is
///    reached; a last EM fits the scores to the final pieces. Its last step takes the logarithm of
///    each piece's share in place of digamma, with every count at least 1.
///
/// The vocabulary is the special tokens and bytes under the lowest free ids, then the pieces by
/// score, best first, equal ones by bytes. It has exactly the size that was asked for. Scores are
/// rounded to 32-bit floats, so that every file format holds them exactly.
///
/// The same counts train the same model, bit for bit, in any order, with any number of threads,
/// on any machine: expected counts are summed as integers, and logarithms are computed without the
/// platform's library.
///
/// Characters outside of the alphabet (see [`coverage`](Self::coverage)), special tokens in the
/// text, ill-formed bytes and NUL part the text around them and belong to no piece. Pieces of the
/// counts that are longer than 16,384 bytes are cut there ([`Report::cut_pieces`]), which changes
/// a likelihood only at the cuts.
///
/// The cost is `O(n d)` a pass for n bytes of distinct pieces and 3 to 4 passes a round; memory
/// is about 40 bytes a character of the distinct pieces while seeds are made, then 8 bytes a
/// piece and thread.
///
/// The struct may gain fields: begin with [`new`](Self::new) and set what differs.
///
/// ```
/// use tokenizer_core::{Model, PieceCounts, Silent, Train};
/// use unigram::UnigramTrainer;
///
/// let counts = PieceCounts::from_pairs([("hug", 10), ("pug", 5), ("pun", 12), ("hugs", 5)])?;
/// let model = UnigramTrainer::new(10).train(&counts, &mut Silent)?;
/// assert_eq!(model.vocab().len(), 10);
/// assert_eq!(model.encode(b"hugs").len(), 2); // hug|s
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct UnigramTrainer {
    /// How many tokens to end with, special tokens and bytes included.
    pub vocab_size: usize,
    /// Whose training is followed.
    pub compat: TrainCompat,
    /// What happens if the text does not support so many.
    pub limit: VocabLimit,
    /// Tokens that are not trained. Default: `<unk>`, of kind `Unknown`.
    pub special_tokens: Vec<SpecialToken>,
    /// How the trained model reads text. With `byte_fallback` the 256 bytes are tokens, behind the
    /// special tokens, and count for the size.
    pub options: UnigramOptions,
    /// What share of all characters of the text the alphabet must cover, by its most frequent
    /// characters, equally frequent ones by code point; default 0.9995. Every character of the
    /// alphabet is a token.
    pub coverage: f64,
    /// Characters that are in the alphabet in any case, whether they occur or not.
    pub required_chars: String,
    /// The longest piece in characters; default 16.
    pub max_piece_len: usize,
    /// Which pieces of two characters or more there may be, besides their length; by default all.
    pub rules: Option<PieceRules>,
    /// How many seed pieces of two characters or more to begin with; by default 8 times the
    /// vocabulary size, at least 100,000.
    pub seed_size: Option<usize>,
    /// The share of pieces that stay in a round of pruning; default 0.75.
    pub shrinking_factor: f64,
    /// How often EM runs before each pruning; default 2.
    pub sub_iterations: usize,
    /// How many threads to use; 0, the default, is as many as the machine has. Without feature
    /// `std` always 1. Any number trains the same model.
    pub threads: usize,
    /// For [`TrainCompat::SentencePiece`], to which it matters: the line that stands last in the text, as
    /// it was counted (`tokenizer::Sentences` finds it). By default, or if it was not counted, the last
    /// one of those that were new.
    pub last_line: Option<Vec<u8>>,
}

/// A token that is not trained: unknown, beginning of sentence, a user's symbol, a reserved id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecialToken {
    /// Its bytes in the vocabulary. Where they occur in the text (and the kind is not `Unused`)
    /// they part the text around them, longest first.
    pub bytes: Vec<u8>,
    /// Its kind: not `Byte`.
    pub kind: TokenKind,
    /// Its id; by default the lowest one that is free, in order.
    pub id: Option<TokenId>,
}

impl SpecialToken {
    /// A token under the next free id.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>, kind: TokenKind) -> Self {
        Self { bytes: bytes.into(), kind, id: None }
    }
}

/// What happens if the text does not support as many tokens as were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum VocabLimit {
    /// An error that names the greatest size possible.
    #[default]
    Hard,
    /// The vocabulary is as large as it can be.
    Soft,
}

/// Whose training is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TrainCompat {
    /// The one that [`UnigramTrainer`] describes.
    #[default]
    Standard,
    /// The trainer of SentencePiece 0.2.3 with its default of 16 threads: its pieces with their
    /// scores, by its single precision. Counts are of whole lines, in which `▁` stands for spaces.
    ///
    /// Seeds come from the lines as they follow each other, which is taken from where each was seen
    /// first, and from [`last_line`](UnigramTrainer::last_line). A size trains alone, the smallest
    /// first.
    SentencePiece,
}

/// One round of EM and pruning: what the trainer reports as a step.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Round {
    /// The number of the round, from 1.
    pub round: usize,
    /// How many trained pieces there were before the round.
    pub pieces_before: usize,
    /// How many there are after it.
    pub pieces_after: usize,
    /// The log-likelihood of the text a character, before the last update of scores.
    pub log_likelihood: f64,
    /// How many tokens the text is in the best segmentation, before pruning.
    pub tokens: u64,
}

/// What a training found out besides the model.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// How many characters the alphabet has.
    pub alphabet: usize,
    /// Which share of the characters of the text are in the alphabet.
    pub coverage: f64,
    /// How many distinct pieces were cut because they were longer than 16,384 bytes.
    pub cut_pieces: usize,
    /// How many seed pieces there were, characters included.
    pub seeds: usize,
    /// The rounds.
    pub rounds: Vec<Round>,
    /// The log-likelihood of the text a character under the final pieces.
    pub log_likelihood: f64,
}

impl UnigramTrainer {
    /// The default trainer for a vocabulary of this size.
    #[must_use]
    pub fn new(vocab_size: usize) -> Self {
        Self {
            vocab_size,
            compat: TrainCompat::default(),
            limit: VocabLimit::default(),
            special_tokens: vec![SpecialToken::new("<unk>", TokenKind::Unknown)],
            options: UnigramOptions::default(),
            coverage: 0.9995,
            required_chars: String::new(),
            max_piece_len: 16,
            rules: None,
            seed_size: None,
            shrinking_factor: 0.75,
            sub_iterations: 2,
            threads: 0,
            last_line: None,
        }
    }

    /// Trains, and says what happened besides. [`Train::train`] is this without the report.
    ///
    /// # Errors
    ///
    /// If an option is out of its range, if special tokens are in each other's way, if the
    /// vocabulary is smaller than the special tokens, bytes and alphabet need
    /// ([`TrainError::needed_vocab_size`]) or, with a hard limit, larger than the text supports
    /// ([`TrainError::possible_vocab_size`]), if the distinct text passes 2^32 characters, if the
    /// characters times their counts pass 64 bits, or if `observe` stopped the training.
    pub fn train_reporting(
        &self,
        counts: &PieceCounts,
        observe: &mut dyn Observe<Round>,
    ) -> Result<(Unigram, Report), TrainError> {
        let mut models = self.train_sizes(counts, &[], observe)?;
        Ok(models.pop().expect("a model for the size of the trainer"))
    }

    /// Trains once for [`vocab_size`](Self::vocab_size) and takes a model on the way down at each of
    /// the `smaller` sizes. Gives a model for every size, in ascending order.
    ///
    /// The largest model is that of [`train_reporting`](Self::train_reporting). The others come from
    /// its seeds and its rounds, so they differ a little from what their own training gives, which
    /// would begin with fewer seeds; each is pruned to its size and fitted as always.
    ///
    /// # Errors
    ///
    /// As [`train_reporting`](Self::train_reporting), for the smallest size too.
    pub fn train_sizes(
        &self,
        counts: &PieceCounts,
        smaller: &[usize],
        observe: &mut dyn Observe<Round>,
    ) -> Result<Vec<(Unigram, Report)>, TrainError> {
        self.resume(None, counts, smaller, &mut |_| ControlFlow::Continue(()), observe)
    }

    /// As [`train_sizes`](Self::train_sizes), from a state that a training with the same options and
    /// counts was in: the models are bit for bit those of the whole training. `save` is given the
    /// state after each round; `observe` hears of the rounds that were made before, too.
    ///
    /// # Errors
    ///
    /// As [`train_sizes`](Self::train_sizes).
    pub fn resume(
        &self,
        from: Option<State>,
        counts: &PieceCounts,
        smaller: &[usize],
        save: &mut dyn FnMut(&State) -> ControlFlow<()>,
        observe: &mut dyn Observe<Round>,
    ) -> Result<Vec<(Unigram, Report)>, TrainError> {
        let trainers = self.at_sizes(smaller)?;
        if self.compat == TrainCompat::SentencePiece {
            let ascending: Vec<Self> = trainers.into_iter().rev().collect();
            return sentencepiece::train_sizes(&ascending, from, counts, save, observe);
        }
        let mut report = Report::default();
        let corpus = Corpus::new(self, counts, observe, &mut report)?;
        let fixed = self.special_tokens.len() + if self.options.byte_fallback { 256 } else { 0 };
        let needed = fixed + corpus.alphabet.len();
        if let Some(&Self { vocab_size: size, .. }) = trainers.last()
            && size < needed
        {
            return Err(TrainError::new(Kind::TooSmall {
                size,
                special: self.special_tokens.len(),
                bytes: fixed - self.special_tokens.len(),
                alphabet: corpus.alphabet.len(),
            }));
        }
        let workers = Workers::new(self.threads);
        let state = match from {
            Some(state) => {
                // Every character of the text must have its piece.
                let required: Vec<&[u8]> = (0..state.pieces.len())
                    .filter(|&i| state.pieces.is_required(i))
                    .map(|i| state.pieces.bytes(i))
                    .collect();
                let alphabet = corpus.alphabet.keys().map(|c| String::from(*c).into_bytes());
                if !alphabet.eq(required.iter().map(|bytes| bytes.to_vec()))
                    || state.pieces.longest() > state.longest
                    || state.fitted.len() > trainers.len()
                {
                    return Err(TrainError::new(Kind::OtherState));
                }
                for round in &state.report.rounds {
                    stop_if(observe.step(round))?;
                }
                state
            }
            None => {
                let (target, room) = (self.vocab_size - fixed, most_pieces(self.max_piece_len));
                let pieces = seeds::seeds(self, &corpus, target, room, &workers, observe)?;
                report.seeds = pieces.len();
                State { longest: pieces.longest(), pieces, report, fitted: Vec::new() }
            }
        };
        let targets: Vec<usize> = trainers.iter().map(|t| t.vocab_size - fixed).collect();
        let fitted = self.fit(state, &corpus, &targets, &workers, save, observe)?;
        let mut models = Vec::with_capacity(fitted.len());
        for ((pieces, report), trainer) in fitted.into_iter().zip(&trainers) {
            trainer.check_size(fixed + pieces.len())?;
            models.push((trainer.build(&pieces)?, report));
        }
        models.reverse();
        Ok(models)
    }

    /// This trainer at its size and the smaller ones, the largest first.
    fn at_sizes(&self, smaller: &[usize]) -> Result<Vec<Self>, TrainError> {
        let mut sizes = Vec::from(smaller);
        sizes.retain(|&size| size < self.vocab_size);
        sizes.push(self.vocab_size);
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        sizes.dedup();
        let at = |vocab_size| Self { vocab_size, ..self.clone() };
        let trainers: Vec<Self> = sizes.into_iter().map(at).collect();
        trainers.iter().try_for_each(Self::check)?;
        Ok(trainers)
    }

    /// Refuses a vocabulary of another size than was asked for, if it must not be.
    fn check_size(&self, possible: usize) -> Result<(), TrainError> {
        let size = self.vocab_size;
        match possible < size && self.limit == VocabLimit::Hard {
            true => Err(TrainError::new(Kind::TooLarge { size, possible })),
            false => Ok(()),
        }
    }

    /// EM and pruning until as many pieces are left as each of the `targets` says, which descend.
    fn fit(
        &self,
        mut state: State,
        corpus: &Corpus,
        targets: &[usize],
        workers: &Workers,
        save: &mut dyn FnMut(&State) -> ControlFlow<()>,
        observe: &mut dyn Observe<Round>,
    ) -> Result<Vec<(Pieces, Report)>, TrainError> {
        let mut em = Em::new(&state.pieces, state.longest, corpus, workers)?;
        // Pieces of a model that is extended are there for good: only the others shrink.
        let fixed = state.pieces.fixed();
        while let Some(&target) = targets.get(state.fitted.len()) {
            let State { pieces, report, fitted, .. } = &mut state;
            let pieces_before = pieces.len();
            let mut log_likelihood = 0.0;
            for _ in 0..self.sub_iterations {
                let expected = em.expect(pieces, observe)?;
                log_likelihood = expected.log_likelihood;
                pieces.maximize(&expected, if report.rounds.is_empty() { 0 } else { target });
            }
            let used = em.best_counts(pieces, observe)?;
            let tokens = used.iter().fold(0u64, |sum, &count| sum.saturating_add(count));
            let mut round = Round {
                round: report.rounds.len() + 1,
                pieces_before,
                pieces_after: 0,
                log_likelihood,
                tokens,
            };
            let alive = pieces.alive();
            let shrunk = fixed + ((alive - fixed) as f64 * self.shrinking_factor) as usize;
            let nearly = |target: usize| target + (target - fixed) / 10;
            let worth = prune::worths(&pieces.trie()?, workers, pieces, &used);
            while let Some(&target) = targets.get(fitted.len())
                && (alive <= nearly(target) || shrunk <= nearly(target))
            {
                // The others go on with all pieces: here those that are too many only die.
                let mut chosen = pieces.clone();
                chosen.kill(&prune::choose(&worth, target, target));
                round.pieces_after = chosen.alive();
                let mut report = report.clone();
                let flow = observe.step(&round);
                report.rounds.push(round.clone());
                stop_if(flow)?;
                for i in 1..=self.sub_iterations {
                    let expected = em.expect(&chosen, observe)?;
                    report.log_likelihood = expected.log_likelihood;
                    match i < self.sub_iterations {
                        true => chosen.maximize(&expected, usize::MAX),
                        false => chosen.settle(&expected),
                    }
                }
                chosen.bury();
                fitted.push((chosen, report));
            }
            let Some(&target) = targets.get(fitted.len()) else { break };
            let is_kept = prune::choose(&worth, shrunk.max(nearly(target)), target);
            pieces.retain(&is_kept);
            em.retain(&is_kept);
            round.pieces_after = pieces.len();
            let flow = observe.step(&round);
            report.rounds.push(round);
            stop_if(flow)?;
            stop_if(save(&state))?;
        }
        Ok(state.fitted)
    }

    fn build(&self, pieces: &Pieces) -> Result<Unigram, TrainError> {
        let mut order: Vec<usize> = (0..pieces.len()).collect();
        let score = |i: usize| pieces.score(i) as f32;
        // Pieces are in order of their bytes, and the sort is stable.
        order.sort_by(|&a, &b| score(b).total_cmp(&score(a)));
        let mut trained = order.into_iter();

        let bytes: Vec<SpecialToken> = match self.options.byte_fallback {
            true => (0..=255).map(|b| SpecialToken::new(vec![b], TokenKind::Byte)).collect(),
            false => Vec::new(),
        };
        let mut placed = vec![None; self.vocab_size];
        for token in &self.special_tokens {
            if let Some(id) = token.id {
                placed[id.index()] = Some(token);
            }
        }
        let mut free = 0;
        for token in self.special_tokens.iter().filter(|token| token.id.is_none()).chain(&bytes) {
            while placed[free].is_some() {
                free += 1;
            }
            placed[free] = Some(token);
        }
        let mut vocab = Vocab::builder();
        let mut scores = Vec::with_capacity(self.vocab_size);
        let built = |error| TrainError::new(Kind::Vocab(error));
        for place in placed {
            if let Some(token) = place {
                if let Some(id) = token.id.filter(|id| id.index() != vocab.len()) {
                    // A soft limit left too few pieces to reach this id.
                    let index = self.special_tokens.iter().position(|t| t == token).unwrap_or(0);
                    let size = vocab.len();
                    return Err(TrainError::new(Kind::IdOfSpecial { index, id, size }));
                }
                vocab.push(&token.bytes, token.kind).map_err(built)?;
                scores.push(0.0);
            } else if let Some(i) = trained.next() {
                vocab.push(pieces.bytes(i), TokenKind::Normal).map_err(built)?;
                scores.push(f64::from(score(i)));
            }
        }
        Unigram::new(vocab.build(), scores, self.options.clone())
            .map_err(|error| TrainError::new(Kind::Build(error)))
    }

    fn check(&self) -> Result<(), TrainError> {
        let range = |limit: Limit, ok: bool| match ok {
            true => Ok(()),
            false => Err(TrainError::new(Kind::Range(limit))),
        };
        range(Limit::Coverage(self.coverage), self.coverage > 0.0 && self.coverage <= 1.0)?;
        range(Limit::MaxPieceLen(self.max_piece_len), (1..=512).contains(&self.max_piece_len))?;
        let shrinking = self.shrinking_factor;
        range(Limit::ShrinkingFactor(shrinking), (0.05..=0.95).contains(&shrinking))?;
        let iterations = self.sub_iterations;
        range(Limit::SubIterations(iterations), (1..=100).contains(&iterations))?;
        range(Limit::VocabSize(self.vocab_size), self.vocab_size < 1 << 27)?;
        let mut taken = Vec::new();
        for (i, token) in self.special_tokens.iter().enumerate() {
            if token.kind == TokenKind::Byte || token.kind == TokenKind::Normal {
                return Err(TrainError::new(Kind::NotSpecial { index: i }));
            }
            if let Some(id) = token.id {
                if id.index() >= self.vocab_size {
                    let size = self.vocab_size;
                    return Err(TrainError::new(Kind::IdOfSpecial { index: i, id, size }));
                }
                if taken.contains(&id) {
                    return Err(TrainError::new(Kind::IdTaken { index: i, id }));
                }
                taken.push(id);
            }
        }
        Ok(())
    }
}

impl Train for UnigramTrainer {
    type Model = Unigram;
    type Step = Round;
    type Error = TrainError;

    fn train(
        &self,
        counts: &PieceCounts,
        observe: &mut dyn Observe<Round>,
    ) -> Result<Unigram, TrainError> {
        self.train_reporting(counts, observe).map(|(model, _)| model)
    }
}

fn stop_if(flow: ControlFlow<()>) -> Result<(), TrainError> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(TrainError::new(Kind::Stopped)),
    }
}
