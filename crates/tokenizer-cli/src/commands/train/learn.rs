//! From options to trained models.

use std::collections::HashSet;
use std::ops::ControlFlow;

use baseline::{Bytes, CharsTrainer, Fallback, WordsTrainer};
use bpe::{Alphabet, Bpe, BpeTrainer, ByteOrder, EndOfWord, Goal, Rules, Ties};
use tokenizer::lift::Target;
use tokenizer_core::{Model as _, PieceCounts, Silent, TokenId, TokenKind, Train as _, Vocab};
use unigram::{Compat, SpecialToken, State, TrainCompat, Unigram, UnigramTrainer, VocabLimit};
use wordpiece::{WordPiece, WordPieceTrainer};

use super::checkpoint::{Checkpoint, Stage};
use super::model::Model;
use super::options::Special;
use super::placing::Placing;
use super::trace::Watch;
use super::{Algorithm, ByteNumbers, Criterion, EndOfWordAs, Limit, TieRule, Train, Unit};
use crate::corpus::Counted;
use crate::failure::Failure;
use crate::model::chain;
use crate::output::Progress;

/// A trained model, and how it came about.
pub(super) struct Outcome {
    pub(super) model: Model,
    /// The size that was asked for.
    pub(super) asked: Option<usize>,
    /// Merges or rounds.
    pub(super) steps: u64,
}

/// What cannot be trained as the command line says.
fn refused(error: impl std::error::Error) -> Failure {
    Failure::usage(chain(&error))
}

impl Train {
    /// Trains a model for each size, smallest first; without sizes the one of `--merges`.
    ///
    /// Merges only ever append, so the largest training of BPE and WordPiece holds the smaller.
    pub(super) fn learn(
        &self,
        counted: &Counted,
        sizes: &[usize],
        target: Target,
        base: Option<&Model>,
        checkpoint: Option<(&mut Checkpoint, Stage)>,
        progress: Progress,
    ) -> Result<Vec<Outcome>, Failure> {
        let counts = &counted.counts;
        match self.algorithm {
            Algorithm::Bpe => {
                let base = base.and_then(Model::as_bpe);
                self.learn_bpe(counts, sizes, target, base, checkpoint, progress)
            }
            Algorithm::Wordpiece => {
                let base = base.and_then(Model::as_wordpiece);
                self.learn_wordpiece(counts, sizes, base, checkpoint, progress)
            }
            Algorithm::Unigram => {
                let base = base.and_then(Model::as_unigram);
                self.learn_unigram(counted, sizes, target, base, checkpoint, progress)
            }
            Algorithm::Char => {
                sizes.iter().map(|&size| self.learn_chars(counts, size, progress)).collect()
            }
            Algorithm::Word => {
                sizes.iter().map(|&size| self.learn_words(counts, size, progress)).collect()
            }
            Algorithm::Byte => {
                // The vocabulary is the same at every size that is asked for.
                let asked = sizes.iter().copied().map(Some);
                let asked = if sizes.is_empty() { vec![None] } else { asked.collect() };
                let learn = |asked| {
                    let special = self.special_and_reserved().into_iter();
                    let model = Bytes::new(special.map(|token| (token, TokenKind::Control)));
                    Ok(Outcome { model: Model::Bytes(model.map_err(refused)?), asked, steps: 0 })
                };
                asked.into_iter().map(learn).collect()
            }
        }
    }

    fn learn_bpe(
        &self,
        counts: &PieceCounts,
        sizes: &[usize],
        target: Target,
        base: Option<&Bpe>,
        checkpoint: Option<(&mut Checkpoint, Stage)>,
        progress: Progress,
    ) -> Result<Vec<Outcome>, Failure> {
        let mut trainer = BpeTrainer::default();
        let by_chars = self.units() == Unit::Char;
        trainer.unit = if by_chars { Alphabet::Char } else { Alphabet::Byte };
        trainer.ties = match self.ties {
            Some(TieRule::FirstOccurrence) => Ties::FirstOccurrence,
            Some(TieRule::LowestIds) => Ties::LowestIds,
            Some(TieRule::GreatestBytes) => Ties::GreatestBytes,
            Some(TieRule::SentencePiece) => Ties::SentencePiece,
            None if target == Target::SentencePiece => Ties::SentencePiece,
            None => Ties::LowestIds,
        };
        trainer.byte_order = match self.byte_order {
            Some(ByteNumbers::Value) => ByteOrder::Value,
            Some(ByteNumbers::Gpt2) => ByteOrder::Gpt2,
            None if target == Target::TokenizerJson && self.pretok.as_deref() != Some("none") => {
                ByteOrder::Gpt2
            }
            None => ByteOrder::Value,
        };
        trainer.min_frequency = self.min_frequency.unwrap_or(1);
        // The trainer's limit is one that no token reaches.
        trainer.max_token_len = self.max_token_length.map(|len| len.saturating_add(1));
        let mut specials = self.specials("<unk>", base.is_some())?;
        // SentencePiece has an unknown piece in any case, and takes a run of it as one.
        let has_unk = by_chars
            && (!self.byte_fallback || target == Target::SentencePiece || self.unk.is_some());
        let unk = self.unknown("<unk>");
        let mut seen = HashSet::new();
        specials.retain(|Special { token, .. }| {
            (has_unk || *token != unk || self.special.contains(token)) && seen.insert(token.clone())
        });
        let placing = Placing::new(&specials);
        trainer.special_tokens = specials.into_iter().map(|special| special.token).collect();
        trainer.unk_token = has_unk.then_some(unk);
        trainer.user_defined.clone_from(&self.user_defined);
        trainer.rules = self.piece_rules();
        if self.follows_sentencepiece() {
            trainer.compat = bpe::Compat::SentencePiece;
            (trainer.min_frequency, trainer.max_token_len) = (0, None);
        }
        trainer.reserved_tokens = self.reserved;
        trainer.alphabet_limit = self.alphabet_limit;
        trainer.initial_alphabet = self.initial_alphabet.clone().unwrap_or_default();
        trainer.character_coverage = self.character_coverage.unwrap_or(1.0);
        trainer.end_of_word = self.end_of_word.clone().map(|mark| match self.end_of_word_as {
            None | Some(EndOfWordAs::Symbol) => EndOfWord::Symbol(mark),
            Some(EndOfWordAs::Suffix) => EndOfWord::Suffix(mark),
        });
        trainer.continuing_prefix.clone_from(&self.continuing_prefix);
        trainer.byte_fallback = self.byte_fallback;
        trainer.fuse_unk = target == Target::SentencePiece;
        trainer.goal = match (sizes.last(), self.merges) {
            (_, Some(merges)) => Goal::Merges(merges),
            (size, None) => Goal::VocabSize(size.copied().unwrap_or(0)),
        };
        if sizes.len() > 1 {
            // The smallest size must be possible too: find out before the work.
            let mut smallest = trainer.clone();
            smallest.goal = Goal::VocabSize(0);
            let tried = match base {
                Some(model) => smallest.extend(model, counts, &mut Silent),
                None => smallest.train(counts, &mut Silent),
            };
            check_smallest(sizes[0], tried.err(), |error| error.needed_vocab_size())?;
        }
        check_places(&placing, sizes)?;
        let (checkpoint, stage) = checkpoint.unzip();
        let first = made(stage);
        let mut watch = Watch::new(progress, self.open_trace()?, checkpoint);
        if !self.follows_sentencepiece() {
            watch.placing = placing.clone();
        }
        let result = match base {
            Some(model) => trainer.resume_extending(model, &first, counts, &mut watch),
            None => trainer.resume(&first, counts, &mut watch),
        };
        let (model, steps) = watch.finish(result.map_err(refused))?;
        let mut outcomes = Vec::new();
        if let Some((_, smaller)) = sizes.split_last() {
            for &size in smaller {
                let (model, steps) = prefix(&model, size)?;
                outcomes.push(Outcome { model: Model::Bpe(model), asked: Some(size), steps });
            }
        }
        outcomes.push(Outcome { model: Model::Bpe(model), asked: sizes.last().copied(), steps });
        place(outcomes, &placing)
    }

    fn learn_wordpiece(
        &self,
        counts: &PieceCounts,
        sizes: &[usize],
        base: Option<&WordPiece>,
        checkpoint: Option<(&mut Checkpoint, Stage)>,
        progress: Progress,
    ) -> Result<Vec<Outcome>, Failure> {
        let largest = sizes.last().copied().unwrap_or(0);
        let mut trainer = WordPieceTrainer::new(largest);
        trainer.options = match self.units() {
            Unit::Char => wordpiece::Options::default(),
            Unit::Byte => wordpiece::Options::bytes(),
        };
        if self.units() == Unit::Char {
            trainer.options.unk = Some(self.unknown("[UNK]").into_bytes());
        }
        if let Some(prefix) = &self.continuing_prefix {
            trainer.options.continuing_prefix = prefix.clone().into_bytes();
        }
        let specials = self.specials("[UNK]", base.is_some())?;
        let placing = Placing::new(&specials);
        let special = specials.into_iter().map(|special| special.token);
        let reserved = self.reserved(base.map(WordPiece::vocab));
        trainer.special_tokens = special.chain(reserved).map(String::into_bytes).collect();
        trainer.criterion = match self.criterion {
            None | Some(Criterion::Pmi) => wordpiece::Criterion::Pmi,
            Some(Criterion::Frequency) => wordpiece::Criterion::Frequency,
        };
        trainer.min_frequency = self.min_frequency.unwrap_or(1);
        trainer.max_token_len = self.max_token_length;
        trainer.alphabet_limit = self.alphabet_limit;
        trainer.coverage = self.character_coverage.unwrap_or(1.0);
        let initial = self.initial_alphabet.iter().flat_map(|chars| chars.chars());
        trainer.initial_alphabet = initial.map(|c| c.to_string().into_bytes()).collect();
        if sizes.len() > 1 {
            let mut smallest = trainer.clone();
            smallest.vocab_size = 0;
            let tried = match base {
                Some(model) => smallest.extend(model, counts, &mut Silent).map(|(model, _)| model),
                None => smallest.train(counts, &mut Silent),
            };
            check_smallest(sizes[0], tried.err(), |error| error.needed_vocab_size())?;
        }
        check_places(&placing, sizes)?;
        let (checkpoint, stage) = checkpoint.unzip();
        let first = made(stage);
        let mut watch = Watch::new(progress, self.open_trace()?, checkpoint);
        watch.placing = placing.clone();
        let result = match base {
            Some(model) => trainer.resume_extending(model, &first, counts, &mut watch),
            None => trainer.resume(&first, counts, &mut watch),
        };
        let ((model, report), steps) = watch.finish(result.map_err(refused))?;
        if report.skipped_pieces > 0 || report.dropped_chars > 0 {
            progress.warn(format!(
                "{} characters are outside of the alphabet ({} times)",
                report.dropped_chars, report.dropped_count
            ));
        }
        let mut outcomes = Vec::new();
        for &size in sizes.split_last().map_or(&[][..], |(_, smaller)| smaller) {
            let cut = model.prefix(size).map_err(refused)?;
            // Merges that spell a token again are not told apart from its vocabulary.
            let steps = steps.saturating_sub((model.vocab().len() - cut.vocab().len()) as u64);
            outcomes.push(Outcome { model: Model::WordPiece(cut), asked: Some(size), steps });
        }
        outcomes.push(Outcome { model: Model::WordPiece(model), asked: Some(largest), steps });
        place(outcomes, &placing)
    }

    fn learn_unigram(
        &self,
        counted: &Counted,
        sizes: &[usize],
        target: Target,
        base: Option<&Unigram>,
        checkpoint: Option<(&mut Checkpoint, Stage)>,
        progress: Progress,
    ) -> Result<Vec<Outcome>, Failure> {
        let Some((&largest, smaller)) = sizes.split_last() else { return Ok(Vec::new()) };
        let mut trainer = UnigramTrainer::new(largest);
        if self.follows_sentencepiece() {
            trainer.compat = TrainCompat::SentencePiece;
        }
        trainer.options.byte_fallback = self.byte_fallback;
        trainer.special_tokens = self
            .specials("<unk>", base.is_some())?
            .into_iter()
            .map(|special| SpecialToken {
                id: special.id.map(TokenId),
                ..SpecialToken::new(special.token, special.kind)
            })
            .collect();
        let reserved = self.reserved(base.map(Unigram::vocab)).into_iter();
        let reserved = reserved.map(|token| SpecialToken::new(token, TokenKind::Unused));
        trainer.special_tokens.extend(reserved);
        if let Some(coverage) = self.character_coverage {
            trainer.coverage = coverage;
        }
        if let Some(len) = self.max_token_length {
            trainer.max_piece_len = len;
        }
        trainer.rules = self.piece_rules();
        trainer.special_tokens.extend(
            self.user_defined
                .iter()
                .map(|token| SpecialToken::new(token.as_bytes(), TokenKind::UserDefined)),
        );
        trainer.required_chars = self.initial_alphabet.clone().unwrap_or_default();
        trainer.shrinking_factor = self.shrinking_factor.unwrap_or(trainer.shrinking_factor);
        trainer.sub_iterations = self.sub_iterations.unwrap_or(trainer.sub_iterations);
        trainer.seed_size = self.seed_size;
        if self.vocab_limit == Some(Limit::Soft) {
            trainer.limit = VocabLimit::Soft;
        }
        trainer.threads = self.threads.unwrap_or(0);
        trainer.last_line = counted.last_line.clone().map(String::into_bytes);
        let mut watch = Watch::new(progress, self.open_trace()?, None);
        let (mut checkpoint, stage) = checkpoint.unzip();
        let from = match stage {
            Some(Stage::Rounds(state)) => Some(*state),
            _ => None,
        };
        let mut failure = None;
        let mut save = |state: &State| match checkpoint
            .as_mut()
            .map_or(Ok(()), |checkpoint| checkpoint.round(state))
        {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        };
        let result = match base {
            Some(model) => trainer.resume_extending(
                model,
                from,
                &counted.counts,
                smaller,
                &mut save,
                &mut watch,
            ),
            None => trainer.resume(from, &counted.counts, smaller, &mut save, &mut watch),
        };
        let result = match failure {
            Some(failure) => Err(failure),
            None => result.map_err(refused),
        };
        let (models, _) = watch.finish(result)?;
        let mut outcomes = Vec::new();
        for ((model, report), &size) in models.into_iter().zip(sizes) {
            let model = match target {
                Target::TokenizerJson => for_hugging_face(&model)?,
                _ => model,
            };
            let steps = report.rounds.len() as u64;
            outcomes.push(Outcome { model: Model::Unigram(model), asked: Some(size), steps });
        }
        Ok(outcomes)
    }

    fn learn_chars(
        &self,
        counts: &PieceCounts,
        size: usize,
        progress: Progress,
    ) -> Result<Outcome, Failure> {
        let mut trainer = CharsTrainer::new(size);
        trainer.special_tokens =
            self.special_and_reserved().into_iter().map(String::into_bytes).collect();
        trainer.fallback = match self.byte_fallback {
            true => Fallback::Bytes,
            false => Fallback::Unknown(self.unknown("<unk>").into_bytes()),
        };
        let mut watch = Watch::new(progress, None, None);
        let result = trainer.train(counts, &mut watch).map_err(refused);
        let (model, steps) = watch.finish(result)?;
        Ok(Outcome { model: Model::Chars(model), asked: Some(size), steps })
    }

    fn learn_words(
        &self,
        counts: &PieceCounts,
        size: usize,
        progress: Progress,
    ) -> Result<Outcome, Failure> {
        let mut trainer = WordsTrainer::new(size);
        trainer.special_tokens =
            self.special_and_reserved().into_iter().map(String::into_bytes).collect();
        trainer.unk = self.unknown("<unk>").into_bytes();
        let mut watch = Watch::new(progress, None, None);
        let result = trainer.train(counts, &mut watch).map_err(refused);
        let (model, steps) = watch.finish(result)?;
        Ok(Outcome { model: Model::Words(model), asked: Some(size), steps })
    }

    fn unknown(&self, default: &str) -> String {
        self.unk.clone().unwrap_or_else(|| default.to_owned())
    }

    /// The special tokens for a training; on top of a model only those that it may lack, whose ids are
    /// the next ones.
    fn specials(&self, unk: &str, is_continued: bool) -> Result<Vec<Special>, Failure> {
        let mut specials = self.special_tokens(unk)?;
        if is_continued {
            specials.retain(|special| special.kind != TokenKind::Unknown);
            specials.iter_mut().for_each(|special| special.id = None);
        }
        Ok(specials)
    }

    /// The names of reserved tokens, without those that a model has.
    fn reserved(&self, base: Option<&Vocab>) -> Vec<String> {
        let taken: HashSet<&[u8]> = base.iter().flat_map(|v| v.iter().map(|t| t.1)).collect();
        let names = (0..).map(|i| format!("<|reserved_{i}|>"));
        names.filter(|name| !taken.contains(name.as_bytes())).take(self.reserved).collect()
    }

    fn special_and_reserved(&self) -> Vec<String> {
        self.special.iter().cloned().chain(self.reserved(None)).collect()
    }
}

/// Refuses chosen ids that a size has not.
fn check_places(placing: &Placing, sizes: &[usize]) -> Result<(), Failure> {
    sizes.first().map_or(Ok(()), |&size| placing.check(size))
}

/// Gives the chosen ids to special tokens.
fn place(outcomes: Vec<Outcome>, placing: &Placing) -> Result<Vec<Outcome>, Failure> {
    let place = |outcome: Outcome| {
        let model = placing.apply(outcome.model)?;
        Ok(Outcome { model, ..outcome })
    };
    outcomes.into_iter().map(place).collect()
}

/// The merges of a checkpoint.
fn made(stage: Option<Stage>) -> Vec<(TokenId, TokenId)> {
    match stage {
        Some(Stage::Merges(merges)) => merges,
        _ => Vec::new(),
    }
}

/// Refuses a size below the smallest possible one; `error` is that of a training at size 0.
fn check_smallest<E: std::error::Error>(
    size: usize,
    error: Option<E>,
    needed: impl Fn(&E) -> Option<usize>,
) -> Result<(), Failure> {
    let Some(error) = error else { return Ok(()) };
    match needed(&error) {
        Some(needed) if needed > size => Err(Failure::usage(format!(
            "a vocabulary of {size} tokens was asked for, but special tokens and alphabet alone \
             need {needed}"
        ))),
        Some(_) => Ok(()),
        None => Err(refused(error)),
    }
}

/// The model that training would have given at a smaller size, and the number of its merges.
fn prefix(model: &Bpe, size: usize) -> Result<(Bpe, u64), Failure> {
    let all = model.vocab();
    let Rules::Merges(merges) = model.rules() else {
        return prefix_by_scores(model, size);
    };
    let mut vocab = Vocab::builder();
    for (_, bytes, kind) in all.iter().take(size) {
        vocab.push(bytes, kind).map_err(refused)?;
    }
    // Training stops with the merge that fills the vocabulary.
    let prefix = model.options().continuing_prefix.as_deref().unwrap_or("").as_bytes();
    let mut kept = Vec::new();
    let mut is_full = size >= all.len();
    for &(left, right) in merges {
        let bytes = |id| all.bytes(id).unwrap_or_default();
        let right_text = bytes(right).strip_prefix(prefix).unwrap_or(bytes(right));
        let product = all.get(&[bytes(left), right_text].concat());
        if product.is_none_or(|id| id.index() >= size) {
            break;
        }
        if is_full && size < all.len() {
            break;
        }
        kept.push((left, right));
        is_full = product.is_some_and(|id| id.index() + 1 == size);
    }
    let steps = kept.len() as u64;
    let model = Bpe::from_merges(vocab.build(), kept, model.options().clone()).map_err(refused)?;
    Ok((model, steps))
}

/// The same of a model whose merges stand in front of the characters.
fn prefix_by_scores(model: &Bpe, size: usize) -> Result<(Bpe, u64), Failure> {
    let all = model.vocab();
    let is_merge = |bytes: &[u8], kind| {
        kind == TokenKind::Normal && String::from_utf8_lossy(bytes).chars().nth(1).is_some()
    };
    let mut spare = all.len().saturating_sub(size);
    let merges = all.iter().filter(|&(_, bytes, kind)| is_merge(bytes, kind)).count();
    let kept = merges.saturating_sub(spare);
    let mut vocab = Vocab::builder();
    let (mut scores, mut made, mut score) = (Vec::new(), 0, -0.0);
    for (_, bytes, kind) in all.iter() {
        if is_merge(bytes, kind) {
            made += 1;
            if made > kept && spare > 0 {
                spare -= 1;
                continue;
            }
        }
        vocab.push(bytes, kind).map_err(refused)?;
        scores.push(if kind == TokenKind::Normal { score } else { 0.0 });
        score -= if kind == TokenKind::Normal { 1.0 } else { 0.0 };
    }
    let model = Bpe::from_scores(vocab.build(), scores, model.options().clone());
    Ok((model.map_err(refused)?, kept as u64))
}

/// The model under Hugging Face's arithmetic, where control tokens would match text.
fn for_hugging_face(model: &Unigram) -> Result<Unigram, Failure> {
    let mut vocab = Vocab::builder();
    for (_, bytes, kind) in model.vocab().iter() {
        let kind = if kind == TokenKind::Control { TokenKind::Unused } else { kind };
        vocab.push(bytes, kind).map_err(refused)?;
    }
    let mut options = model.options().clone();
    options.compat = Compat::HuggingFace;
    Unigram::new(vocab.build(), model.scores().to_vec(), options).map_err(refused)
}
