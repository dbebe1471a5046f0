//! The trainer of SentencePiece 0.2.3, with its arithmetic.

mod lattice;
mod seeds;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::ControlFlow;

use tokenizer_core::sentences::{SpecialTexts, covering_alphabet};
use tokenizer_core::{Observe, PieceCount, PieceCounts, PieceRules, utf8};

use self::lattice::{Lattice, Scored, Second};
use super::error::{Kind, TrainError};
use super::pieces::Pieces;
use super::workers::Workers;
use super::{Report, Round, State, UnigramTrainer, VocabLimit, stop_if};
use crate::math::ln;
use crate::model::Unigram;

/// SentencePiece adds up expected counts in so many places by default (`num_threads`), each for
/// every so many-th word, and then those sums. Single precision makes that part of the result.
const STRIDES: usize = 16;
/// Pieces expected less often are dropped.
const MIN_EXPECTED: f32 = 0.5;

/// Trains a model of each size as SentencePiece does, each from its beginning, in ascending order.
///
/// `from` is where an earlier training was: the pieces and the report of each size that was done, and
/// those of the size that was not, which are none before its first round.
pub(super) fn train_sizes(
    trainers: &[UnigramTrainer],
    from: Option<State>,
    counts: &PieceCounts,
    save: &mut dyn FnMut(&State) -> ControlFlow<()>,
    observe: &mut dyn Observe<Round>,
) -> Result<Vec<(Unigram, Report)>, TrainError> {
    let mut state = from.unwrap_or_else(State::empty);
    if state.fitted.len() > trainers.len() || state.longest != 1 {
        return Err(TrainError::new(Kind::OtherState));
    }
    for round in state.fitted.iter().flat_map(|(_, report)| &report.rounds) {
        stop_if(observe.step(round))?;
    }
    for trainer in &trainers[state.fitted.len()..] {
        let (pieces, report) = train(trainer, &mut state, counts, save, observe)?;
        let fitted = core::mem::take(&mut state.fitted);
        state = State { fitted, ..State::empty() };
        state.fitted.push((pieces, report));
        stop_if(save(&state))?;
    }
    let models = trainers.iter().zip(state.fitted);
    models.map(|(trainer, (pieces, report))| Ok((trainer.build(&pieces)?, report))).collect()
}

/// Trains one model, from its seeds or from the pieces of the state.
fn train(
    trainer: &UnigramTrainer,
    state: &mut State,
    counts: &PieceCounts,
    save: &mut dyn FnMut(&State) -> ControlFlow<()>,
    observe: &mut dyn Observe<Round>,
) -> Result<(Pieces, Report), TrainError> {
    let mut rules = trainer.rules.unwrap_or_default();
    rules.max_chars = trainer.max_piece_len;
    let bytes = if trainer.options.byte_fallback { 256 } else { 0 };
    let fixed = trainer.special_tokens.len() + bytes;
    let mut lines = lines(trainer, counts);
    if lines.is_empty() {
        return Err(TrainError::new(Kind::NothingLeft));
    }
    let required = covering_alphabet(
        lines.iter().map(|(line, count)| (line.as_slice(), *count)),
        &trainer.required_chars,
        trainer.coverage,
    );
    let size = trainer.vocab_size;
    if fixed + required.len() > size {
        return Err(TrainError::new(Kind::TooSmall {
            size,
            special: trainer.special_tokens.len(),
            bytes,
            alphabet: required.len(),
        }));
    }
    replace_rare(&mut lines, &required);
    let (mut pieces, mut report) = match state.report.rounds.as_slice() {
        [] => {
            stop_if(observe.progress("seeds", 0, 1))?;
            let pieces = seeds::seeds(&lines, &rules, trainer.seed_size)?;
            stop_if(observe.progress("seeds", 1, 1))?;
            let (alphabet, seeds) = (required.len(), pieces.len());
            (pieces, Report { alphabet, seeds, ..Report::default() })
        }
        rounds => {
            if state.report.alphabet != required.len() {
                return Err(TrainError::new(Kind::OtherState));
            }
            for round in rounds {
                stop_if(observe.step(round))?;
            }
            (scored(&state.pieces), state.report.clone())
        }
    };

    let words = if rules.split_by_whitespace { words(&lines, &rules) } else { written_out(&lines) };
    let mut text = Text {
        chars: words
            .iter()
            .map(|(word, count)| utf8::chars(word).count() as f64 * *count as f64)
            .sum(),
        words,
        workers: Workers::new(trainer.threads),
    };
    let target = (size as f64 * 1.1) as usize;
    // Before the first round there is no telling how many pieces stay.
    while report.rounds.is_empty() || pieces.len() > target {
        let pieces_before = pieces.len();
        let mut log_likelihood = 0.0;
        for _ in 0..trainer.sub_iterations {
            stop_if(observe.progress("expect", 0, 1))?;
            let expected = text.expect(&pieces)?;
            log_likelihood = expected.1;
            pieces = maximize(pieces, &expected.0);
            if pieces.len() == 0 {
                return Err(TrainError::new(Kind::NothingLeft));
            }
        }
        stop_if(observe.progress("prune", 0, 1))?;
        let (used, tokens) = text.best_counts(&pieces)?;
        let shrunk = (trainer.shrinking_factor as f32 * pieces.len() as f32) as usize;
        pieces = prune(pieces, &used, target.max(shrunk), &text.workers)?;
        let round = Round {
            round: report.rounds.len() + 1,
            pieces_before,
            pieces_after: pieces.len(),
            log_likelihood,
            tokens,
        };
        let flow = observe.step(&round);
        report.rounds.push(round);
        stop_if(flow)?;
        report.log_likelihood = log_likelihood;
        state.pieces = kept(pieces.pieces.iter().zip(pieces.scores.iter().copied()));
        state.report = report.clone();
        stop_if(save(state))?;
    }
    pieces = reachable(pieces)?;
    let chosen = choose(&pieces, &required, size - fixed);
    if chosen.len() < size - fixed && trainer.limit == VocabLimit::Hard {
        let possible = fixed + chosen.len();
        return Err(TrainError::new(Kind::TooLarge { size, possible }));
    }
    Ok((kept(chosen.iter().map(|(piece, &score)| (piece, score))), report))
}

/// Pieces in this order with their scores, which 64 bits hold exactly.
fn kept<'p>(scored: impl Iterator<Item = (&'p Vec<u8>, f32)>) -> Pieces {
    let mut pieces = Pieces::empty();
    for (piece, score) in scored {
        pieces.push_scored(piece, f64::from(score), utf8::char_len(piece) == piece.len());
    }
    pieces
}

/// The way back.
fn scored(pieces: &Pieces) -> Scored {
    let mut scored = Scored::default();
    for i in 0..pieces.len() {
        scored.push(pieces.bytes(i).to_vec(), pieces.score(i) as f32);
    }
    scored
}

/// The lines in order, with special tokens replaced by a character that is in no piece. Lines with
/// the character that stands for unknown ones are left out.
fn lines(trainer: &UnigramTrainer, counts: &PieceCounts) -> Vec<(Vec<u8>, u64)> {
    let tokens = trainer.special_tokens.iter().map(|token| token.bytes.as_slice());
    let special = SpecialTexts::new(tokens, trainer.options.byte_fallback);
    let mut unknown = [0; 4];
    let unknown = PieceRules::UNKNOWN.encode_utf8(&mut unknown).as_bytes();
    let is_taken = |line: &PieceCount<'_>| {
        let mut parts = line.piece.windows(unknown.len());
        !line.piece.is_empty() && line.count > 0 && parts.all(|part| part != unknown)
    };
    let mut lines: Vec<(&[u8], u64)> = counts
        .by_first_seen()
        .into_iter()
        .filter(is_taken)
        .map(|line| (line.piece, line.count))
        .collect();
    // The last copy of the last line, which may have stood before.
    let last = trainer.last_line.as_deref();
    if let Some(at) = lines.iter().position(|&(line, _)| Some(line) == last) {
        let line = lines[at].0;
        lines[at].1 -= 1;
        lines.push((line, 1));
        if lines[at].1 == 0 {
            lines.remove(at);
        }
    }
    lines.into_iter().map(|(line, count)| (special.replaced(line), count)).collect()
}

/// Replaces the characters without a place in the vocabulary.
fn replace_rare(lines: &mut [(Vec<u8>, u64)], required: &[(char, u64)]) {
    let mut known: Vec<char> = required.iter().map(|&(c, _)| c).collect();
    known.sort_unstable();
    for (line, _) in lines {
        let replaced: String = String::from_utf8_lossy(line)
            .chars()
            .map(|c| if known.binary_search(&c).is_ok() { c } else { PieceRules::UNKNOWN })
            .collect();
        *line = replaced.into_bytes();
    }
}

/// The distinct words, most frequent first, then by bytes. A word begins with each `▁`, or with each
/// run of them where those may be pieces.
fn words(lines: &[(Vec<u8>, u64)], rules: &PieceRules) -> Vec<(Vec<u8>, u64)> {
    let mut space = [0; 4];
    let space = PieceRules::SPACE.encode_utf8(&mut space).as_bytes();
    let mut words: BTreeMap<&[u8], u64> = BTreeMap::new();
    for (line, count) in lines {
        let mut from = 0;
        let mut at = 0;
        let mut is_after_space = false;
        while at < line.len() {
            let is_space = line[at..].starts_with(space);
            if is_space && at > from && !(rules.whitespace_only && is_after_space) {
                *words.entry(&line[from..at]).or_default() += count;
                from = at;
            }
            is_after_space = is_space;
            at += utf8::char_len(&line[at..]);
        }
        *words.entry(&line[from..]).or_default() += count;
    }
    let mut words: Vec<(Vec<u8>, u64)> =
        words.into_iter().map(|(word, count)| (word.to_vec(), count)).collect();
    words.sort_by_key(|&(_, count)| core::cmp::Reverse(count));
    words
}

/// Every line as often as it occurs.
fn written_out(lines: &[(Vec<u8>, u64)]) -> Vec<(Vec<u8>, u64)> {
    lines.iter().flat_map(|(line, count)| (0..*count).map(|_| (line.clone(), 1))).collect()
}

/// What EM reads.
struct Text {
    words: Vec<(Vec<u8>, u64)>,
    chars: f64,
    workers: Workers,
}

/// Sums over every so many-th word.
struct Stride {
    first: usize,
    sums: Vec<f32>,
    log_likelihood: f64,
    tokens: u64,
}

impl Text {
    /// Calls `work` for each word of each stride, whose sums are then added up in order.
    fn strides(
        &mut self,
        pieces: usize,
        work: impl Fn(&mut Lattice, &[u8], u64, &mut Stride) + Sync,
    ) -> Stride {
        let mut strides: Vec<Stride> = (0..STRIDES)
            .map(|first| Stride { first, sums: vec![0.0; pieces], log_likelihood: 0.0, tokens: 0 })
            .collect();
        let words = &self.words;
        self.workers.each(&mut strides, |stride| {
            let mut lattice = Lattice::default();
            for (word, count) in words.iter().skip(stride.first).step_by(STRIDES) {
                work(&mut lattice, word, *count, stride);
            }
        });
        let mut strides = strides.into_iter();
        let mut all = strides.next().expect("there are 16 strides");
        for stride in strides {
            for (sum, more) in all.sums.iter_mut().zip(stride.sums) {
                *sum += more;
            }
            all.log_likelihood += stride.log_likelihood;
            all.tokens += stride.tokens;
        }
        all
    }

    /// How often each piece is expected, and the log-likelihood a character.
    fn expect(&mut self, pieces: &Scored) -> Result<(Vec<f32>, f64), TrainError> {
        let model = pieces.model()?;
        let all = self.strides(pieces.len(), |lattice, word, count, stride| {
            lattice.fill(word, &model);
            let log = lattice.expect(count as f32, &mut stride.sums);
            stride.log_likelihood += count as f64 * f64::from(log);
        });
        Ok((all.sums, all.log_likelihood / self.chars))
    }

    /// How often each piece is in the best segmentations, and how many tokens these are.
    fn best_counts(&mut self, pieces: &Scored) -> Result<(Vec<f32>, u64), TrainError> {
        let model = pieces.model()?;
        let all = self.strides(pieces.len(), |lattice, word, count, stride| {
            lattice.fill(word, &model);
            lattice.best_path(|id| {
                stride.sums[id as usize] += count as f32;
                stride.tokens += count;
            });
        });
        Ok((all.sums, all.tokens))
    }
}

/// The M-step (Liang and Klein 2007), without what is expected too rarely.
fn maximize(pieces: Scored, expected: &[f32]) -> Scored {
    let mut kept = Scored::default();
    let mut sum = 0.0f32;
    for (piece, &count) in pieces.pieces.into_iter().zip(expected) {
        if count >= MIN_EXPECTED {
            kept.push(piece, count);
            sum += count;
        }
    }
    let total = digamma(f64::from(sum)) as f32;
    for score in &mut kept.scores {
        *score = (digamma(f64::from(*score)) - f64::from(total)) as f32;
    }
    kept
}

/// Keeps the pieces that have no other segmentation, and of the others those up to `size` whose
/// loss would cost most: their share of all tokens, times the difference to their second best
/// segmentation.
fn prune(
    pieces: Scored,
    used: &[f32],
    size: usize,
    workers: &Workers,
) -> Result<Scored, TrainError> {
    let sum = used.iter().map(|&count| f64::from(count)).sum::<f64>() as f32;
    let log_sum = ln(f64::from(sum)) as f32;
    let mut kept = Scored::default();
    let mut candidates: Vec<(usize, f32)> = Vec::new();
    for (i, second) in seconds(&pieces, workers)?.into_iter().enumerate() {
        let count = used[i];
        let path = match second {
            _ if count == 0.0 => continue,
            Second::First => continue,
            Second::None => {
                kept.push(pieces.pieces[i].clone(), pieces.scores[i]);
                continue;
            }
            Second::Path(path) => path,
        };
        let log_with = (ln(f64::from(count)) - f64::from(log_sum)) as f32;
        let sum_without = sum + count * (path.len() - 1) as f32;
        let log_sum_without = ln(f64::from(sum_without)) as f32;
        let mut log_without = 0.0f32;
        for other in path {
            let log = ln(f64::from(used[other as usize] + count)) - f64::from(log_sum_without);
            log_without = (f64::from(log_without) + log) as f32;
        }
        candidates.push((i, count / sum * (log_with - log_without)));
    }
    candidates.sort_by(|a, b| b.1.total_cmp(&a.1));
    let free = size.saturating_sub(kept.len());
    for &(i, _) in candidates.iter().take(free) {
        kept.push(pieces.pieces[i].clone(), pieces.scores[i]);
    }
    Ok(kept)
}

/// The second best segmentation of each piece.
fn seconds(pieces: &Scored, workers: &Workers) -> Result<Vec<Second>, TrainError> {
    let model = pieces.model()?;
    let mut seconds = vec![Second::None; pieces.len()];
    let mut parts: Vec<(&[Vec<u8>], &mut [Second])> =
        pieces.pieces.chunks(1 << 12).zip(seconds.chunks_mut(1 << 12)).collect();
    workers.each(&mut parts, |(pieces, seconds)| {
        let mut lattice = Lattice::default();
        for (piece, second) in pieces.iter().zip(seconds.iter_mut()) {
            lattice.fill(piece, &model);
            *second = lattice.second();
        }
    });
    Ok(seconds)
}

/// Leaves out the pieces that no best segmentation has, because their parts score better.
fn reachable(pieces: Scored) -> Result<Scored, TrainError> {
    let model = pieces.model()?;
    let mut lattice = Lattice::default();
    let mut kept = Scored::default();
    for (i, piece) in pieces.pieces.iter().enumerate() {
        lattice.fill(piece, &model);
        if !lattice.is_shadowed(i as u32) {
            kept.push(piece.clone(), pieces.scores[i]);
        }
    }
    Ok(kept)
}

/// The final pieces, by their bytes: the required characters, and the best up to `size`. Characters
/// that were lost get the least score, the most frequent ones first and a ten-thousandth apart.
fn choose(pieces: &Scored, required: &[(char, u64)], size: usize) -> BTreeMap<Vec<u8>, f32> {
    let scores: BTreeMap<&[u8], f32> =
        pieces.pieces.iter().map(Vec::as_slice).zip(pieces.scores.iter().copied()).collect();
    let least = pieces.least_score();
    let mut penalty = 0.0f32;
    let mut chosen = BTreeMap::new();
    for &(c, _) in required {
        let piece = String::from(c).into_bytes();
        let score = scores.get(piece.as_slice()).copied().unwrap_or_else(|| {
            let score = least + penalty;
            penalty += 0.0001;
            score
        });
        chosen.insert(piece, score);
    }
    let mut order: Vec<(&[u8], f32)> = scores.into_iter().collect();
    // Stable: equal ones stay in order of their bytes.
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    for (piece, score) in order {
        if chosen.len() >= size {
            break;
        }
        chosen.entry(piece.to_vec()).or_insert(score);
    }
    chosen
}

/// The logarithmic derivative of the gamma function as SentencePiece has it: the asymptotic series
/// around x - 1/2 to its fourth term, from 7 on. It is exact to 5e-11, which the last bit of a
/// score can show, so that the better one of [`crate::math`] is not used.
fn digamma(mut x: f64) -> f64 {
    let mut shifted = 0.0;
    while x < 7.0 {
        shifted -= 1.0 / x;
        x += 1.0;
    }
    let x = x - 0.5;
    let inverse = 1.0 / x;
    let square = inverse * inverse;
    let series = [127.0 / 30_720.0, 31.0 / 8064.0, 7.0 / 960.0, 1.0 / 24.0];
    // The signs alternate, the first term is positive.
    shifted + ln(x) + series.into_iter().fold(0.0, |sum, term| square * (term - sum))
}
