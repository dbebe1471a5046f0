//! The merge loop: exact counts by place, and a heap of upper bounds.
//!
//! BPE's lazy heap rests on counts that only fall, so that a stale key is too high and is noticed
//! when it comes up. PMI scores also *rise*, whenever the count of a part falls, and a stale key
//! that is too low would never come up. So the keys here are not scores but upper bounds: each
//! symbol has a *floor*, at most its count, and a pair's key divides by the floors. Only when a
//! count falls below its floor the floor is lowered and the pairs of the symbol get new keys; with
//! a floor some percent below the count that happens a logarithmic number of times.
//!
//! The best pair is found by taking pairs off the heap, evaluating them exactly, until the next
//! upper bound is not above the best exact value. Ties are in the order too: see [`Candidate`].
//!
//! Where counts are low or a symbol has few pairs the floor is the count itself. That is what
//! keeps the many exact ties among rare pairs from being evaluated again for each merge: the key
//! of such a pair is its exact place in the order, so the first one up is the best.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::ControlFlow;

use hashbrown::HashMap;
use tokenizer_core::{Observe, TokenId, TokenKind};

use crate::alphabet::{Corpus, Product, Tokens};
use crate::score::Candidate;
use crate::trainer::{Criterion, Merge, Report, TrainError, WordPieceTrainer};

const NONE: u32 = u32::MAX;
/// Symbols in at most this many pairs get no slack: renewing so few keys is cheaper.
const FEW_PAIRS: usize = 16;
/// The observer hears of progress once in this many merges.
const PROGRESS_INTERVAL: u64 = 64;

pub(crate) struct Engine<'t> {
    trainer: &'t WordPieceTrainer,
    tokens: Tokens,
    slots: Vec<Slot>,
    weights: Vec<u64>,
    symbols: Vec<Symbol>,
    pairs: Vec<Pair>,
    pair_index: HashMap<(u32, u32), u32>,
    heap: BinaryHeap<Entry>,
    /// Pairs whose count rose in this merge.
    risen: Vec<u32>,
    merges: u64,
    /// Scratch of `best`.
    held: Vec<Entry>,
}

/// A place in the text: a symbol and its neighbours. A merge keeps the left place and frees the
/// right one.
struct Slot {
    symbol: u32,
    previous: u32,
    next: u32,
    run: u32,
}

#[derive(Default)]
struct Symbol {
    count: u64,
    /// At most `count`; what keys are made of.
    floor: u64,
    /// The pairs in which the symbol is left or right, some of them gone.
    pairs: Vec<u32>,
}

struct Pair {
    left: u32,
    right: u32,
    count: u64,
    /// The version of its key; older entries of the heap are void.
    version: u32,
    /// The merge in which the count last rose.
    risen_in: u64,
    barred: bool,
    /// Slots of the left symbol, some of them gone.
    places: Vec<u32>,
}

/// An upper bound of a pair's place in the order of candidates.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Entry {
    bound: Candidate,
    pair: u32,
    version: u32,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bound.cmp(&other.bound).then_with(|| self.version.cmp(&other.version))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<'t> Engine<'t> {
    pub(crate) fn new(trainer: &'t WordPieceTrainer, tokens: Tokens, corpus: Corpus) -> Self {
        let mut engine = Self {
            trainer,
            slots: Vec::with_capacity(corpus.symbols.len()),
            weights: Vec::with_capacity(corpus.runs.len()),
            symbols: (0..tokens.len()).map(|_| Symbol::default()).collect(),
            tokens,
            pairs: Vec::new(),
            pair_index: HashMap::new(),
            heap: BinaryHeap::new(),
            risen: Vec::new(),
            merges: 0,
            held: Vec::new(),
        };
        let mut start = 0;
        for (run, &crate::alphabet::Run { end, weight }) in (0u32..).zip(&corpus.runs) {
            engine.weights.push(weight);
            for at in start..end {
                let symbol = corpus.symbols[at];
                engine.symbols[symbol as usize].count += weight;
                engine.slots.push(Slot {
                    symbol,
                    previous: if at == start { NONE } else { at as u32 - 1 },
                    next: if at + 1 == end { NONE } else { at as u32 + 1 },
                    run,
                });
                if at > start {
                    engine.raise(corpus.symbols[at - 1], symbol, weight, at as u32 - 1);
                }
            }
            start = end;
        }
        for symbol in 0..engine.symbols.len() {
            engine.set_floor(symbol as u32);
        }
        engine
    }

    pub(crate) fn run(
        mut self,
        observe: &mut dyn Observe<Merge>,
        report: &mut Report,
    ) -> Result<Tokens, TrainError> {
        let first = self.tokens.len();
        self.push_risen();
        self.progress(first, observe)?;
        while self.tokens.len() < self.trainer.vocab_size {
            let Some(pair) = self.best() else {
                report.ran_dry = true;
                break;
            };
            let Pair { left, right, count, .. } = self.pairs[pair as usize];
            let id = match self.tokens.product(left, right) {
                Product::Special => {
                    self.pairs[pair as usize].barred = true;
                    continue;
                }
                Product::Known(id) => id,
                Product::New(text) => {
                    self.symbols.push(Symbol::default());
                    let len = self.tokens.joint_len(left, right);
                    self.tokens.push(text, TokenKind::Normal, len)?
                }
            };
            self.merges += 1;
            let merge = Merge {
                step: self.merges,
                left: TokenId(left),
                right: TokenId(right),
                id: TokenId(id),
                left_bytes: self.tokens.text(left).to_vec(),
                right_bytes: self.tokens.text(right).to_vec(),
                token: self.tokens.text(id).to_vec(),
                count,
                left_count: self.symbols[left as usize].count,
                right_count: self.symbols[right as usize].count,
            };
            self.merge(pair, id);
            if observe.step(&merge).is_break() {
                return Err(TrainError::stopped());
            }
            if self.merges.is_multiple_of(PROGRESS_INTERVAL) {
                self.progress(first, observe)?;
            }
        }
        self.progress(first, observe)?;
        report.merges = self.merges;
        Ok(self.tokens)
    }

    fn progress(&self, first: usize, observe: &mut dyn Observe<Merge>) -> Result<(), TrainError> {
        let [done, total] =
            [self.tokens.len(), self.trainer.vocab_size].map(|len| (len - first) as u64);
        match observe.progress("merges", done, total) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(TrainError::stopped()),
        }
    }

    /// Takes the best pair off the heap, exactly.
    fn best(&mut self) -> Option<u32> {
        let mut best: Option<(Candidate, usize)> = None;
        while let Some(&top) = self.heap.peek() {
            if best.is_some_and(|(best, _)| top.bound <= best) {
                break;
            }
            self.heap.pop();
            let pair = &self.pairs[top.pair as usize];
            if pair.version != top.version || pair.barred || pair.count < self.min_count() {
                continue;
            }
            let bound = self.candidate(pair, |symbol| symbol.floor);
            if bound != top.bound {
                // The count fell, or a floor rose: the pair comes up again where it belongs.
                self.heap.push(Entry { bound, ..top });
                continue;
            }
            let exact = self.candidate(pair, |symbol| symbol.count);
            if best.is_none_or(|(best, _)| exact > best) {
                best = Some((exact, self.held.len()));
            }
            self.held.push(top);
        }
        let winner = best.map(|(_, at)| self.held.swap_remove(at).pair);
        self.heap.extend(self.held.drain(..));
        winner
    }

    /// Replaces every occurrence of the pair by the symbol `id`, left to right.
    fn merge(&mut self, pair: u32, id: u32) {
        let Pair { left, right, .. } = self.pairs[pair as usize];
        let mut places = core::mem::take(&mut self.pairs[pair as usize].places);
        if left == right && !places.is_sorted() {
            // Only where a symbol meets itself does the order of places decide.
            places.sort_unstable();
        }
        let mut moved = 0;
        for place in places {
            let Slot { symbol, previous, next, run } = self.slots[place as usize];
            if symbol != left || next == NONE || self.slots[next as usize].symbol != right {
                continue;
            }
            let weight = self.weights[run as usize];
            let after = self.slots[next as usize].next;
            if previous != NONE {
                let before = self.slots[previous as usize].symbol;
                self.lower(before, left, weight);
                self.raise(before, id, weight, previous);
            }
            if after != NONE {
                let behind = self.slots[after as usize].symbol;
                self.lower(right, behind, weight);
                self.raise(id, behind, weight, place);
                self.slots[after as usize].previous = place;
            }
            self.slots[place as usize].symbol = id;
            self.slots[place as usize].next = after;
            self.slots[next as usize].symbol = NONE;
            moved += weight;
        }
        self.pairs[pair as usize].count -= moved;
        self.symbols[left as usize].count -= moved;
        self.symbols[right as usize].count -= moved;
        self.symbols[id as usize].count += moved;
        if self.trainer.criterion == Criterion::Pmi {
            if self.symbols[id as usize].floor == 0 {
                self.set_floor(id);
            }
            for part in [left, right] {
                let symbol = &self.symbols[part as usize];
                if symbol.count < symbol.floor {
                    self.renew(part);
                }
            }
        }
        self.push_risen();
    }

    /// Counts `weight` more of a pair at `place`.
    fn raise(&mut self, left: u32, right: u32, weight: u64, place: u32) {
        let at = *self.pair_index.entry((left, right)).or_insert_with(|| {
            let at = u32::try_from(self.pairs.len()).expect("2^32 pairs do not fit any memory");
            let too_long = self
                .trainer
                .max_token_len
                .is_some_and(|max| self.tokens.joint_len(left, right) > max as u64);
            self.pairs.push(Pair {
                left,
                right,
                count: 0,
                version: 0,
                risen_in: u64::MAX,
                barred: too_long,
                places: Vec::new(),
            });
            self.symbols[left as usize].pairs.push(at);
            if left != right {
                self.symbols[right as usize].pairs.push(at);
            }
            at
        });
        let pair = &mut self.pairs[at as usize];
        pair.count += weight;
        if pair.barred {
            return;
        }
        pair.places.push(place);
        if pair.risen_in != self.merges {
            pair.risen_in = self.merges;
            self.risen.push(at);
        }
    }

    /// Counts `weight` less of a pair.
    fn lower(&mut self, left: u32, right: u32, weight: u64) {
        let at = self.pair_index[&(left, right)];
        let pair = &mut self.pairs[at as usize];
        pair.count -= weight;
        if pair.count == 0 {
            pair.places = Vec::new();
        }
    }

    fn push_risen(&mut self) {
        for at in core::mem::take(&mut self.risen) {
            self.push(at);
        }
    }

    /// Gives a pair a new key.
    fn push(&mut self, at: u32) {
        if self.pairs[at as usize].barred || self.pairs[at as usize].count < self.min_count() {
            return;
        }
        let pair = &mut self.pairs[at as usize];
        pair.version += 1;
        let version = pair.version;
        let bound = self.candidate(&self.pairs[at as usize], |symbol| symbol.floor);
        self.heap.push(Entry { bound, pair: at, version });
    }

    /// Lowers the floor of a symbol and gives its pairs new keys.
    fn renew(&mut self, symbol: u32) {
        let mut list = core::mem::take(&mut self.symbols[symbol as usize].pairs);
        list.retain(|&at| self.pairs[at as usize].count > 0);
        self.symbols[symbol as usize].pairs = list;
        self.set_floor(symbol);
        for i in 0..self.symbols[symbol as usize].pairs.len() {
            self.push(self.symbols[symbol as usize].pairs[i]);
        }
    }

    fn set_floor(&mut self, symbol: u32) {
        let symbol = &mut self.symbols[symbol as usize];
        symbol.floor = if symbol.pairs.len() <= FEW_PAIRS {
            symbol.count
        } else {
            let percent = 100 + u128::from(self.trainer.slack_percent);
            // Not above the count, so it fits.
            (u128::from(symbol.count) * 100).div_ceil(percent) as u64
        };
    }

    fn candidate(&self, pair: &Pair, measure: impl Fn(&Symbol) -> u64) -> Candidate {
        let denominator = match self.trainer.criterion {
            Criterion::Frequency => 1,
            Criterion::Pmi => {
                let [left, right] = [pair.left, pair.right]
                    .map(|symbol| u128::from(measure(&self.symbols[symbol as usize])));
                left * right
            }
        };
        Candidate { denominator, count: pair.count, left: pair.left, right: pair.right }
    }

    fn min_count(&self) -> u64 {
        self.trainer.min_frequency.max(1)
    }
}
