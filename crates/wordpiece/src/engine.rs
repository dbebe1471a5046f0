//! The merge loop: exact counts by place, and a heap of heaps.
//!
//! BPE's lazy heap rests on counts that only fall, so that a stale key is too high and is noticed
//! when it comes up. PMI scores also *rise*, whenever the count of a part falls, and a stale key
//! that is too low would never come up: keys must be renewed, and a frequent symbol is in
//! thousands of pairs.
//!
//! So every pair belongs to a *group*, that of its more frequent part. A group orders its pairs by
//! count / count of the other part, which the frequent part's count does not touch; that count
//! divides the group's best alone, in the heap of groups. When `##s` loses an occurrence, one key
//! is renewed. For the less frequent part a symbol renews the pairs that it has with more frequent
//! ones, which are few: frequent symbols are few.
//!
//! Keys may be too high (a pair lost occurrences since), never too low, so the first key up that
//! is current is the best. Ties are in the order too (see [`Candidate`]): it does not matter how
//! many pairs share a score.
//!
//! Tried and lost, 2026-11: one heap of upper bounds, with reference counts some percent below
//! the counts, so that renewals are logarithmic. Stems that only occur before `##s` all have the
//! score 1 / count(`##s`), and all of them were evaluated again for each merge: 14.8 s instead of
//! 1.6 s on 10 MB of English at 32,000 tokens. On top of the groups such slack gains nothing.

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
/// The observer hears of progress once in this many merges.
const PROGRESS_INTERVAL: u64 = 64;

pub(crate) struct Engine<'t> {
    trainer: &'t WordPieceTrainer,
    tokens: Tokens,
    slots: Vec<Slot>,
    weights: Vec<u64>,
    symbols: Vec<Symbol>,
    pairs: Vec<Pair>,
    /// By [`joined`].
    pair_index: HashMap<u64, u32>,
    /// The best of each group.
    heap: BinaryHeap<GroupEntry>,
    /// Pairs whose count rose in this merge.
    risen: Vec<u32>,
    /// Groups whose best may have changed.
    changed: Vec<u32>,
    merges: u64,
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
    /// The pairs that belong to the group of their other part, some of them gone.
    pairs: Vec<u32>,
    group: Group,
}

/// The pairs that belong to a symbol.
#[derive(Default)]
struct Group {
    heap: BinaryHeap<Entry>,
    /// When the heap is longer than this, its void entries are removed.
    limit: usize,
    /// What the heap of groups was told.
    told: Option<Candidate>,
    /// Older entries of the heap of groups are void.
    version: u32,
    changed: bool,
}

struct Pair {
    left: u32,
    right: u32,
    /// The part whose group the pair belongs to, and the other part.
    owner: u32,
    other: u32,
    count: u64,
    /// The version of its key; older entries of the group's heap are void.
    version: u32,
    /// The merge in which the count last rose.
    risen_in: u64,
    barred: bool,
    /// Slots of the left symbol, some of them gone.
    places: Vec<u32>,
}

/// A pair in its group: its place, the owner's count left out, or a better one.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Entry {
    key: Candidate,
    pair: u32,
    version: u32,
}

/// A group: the place of its best pair, or a better one.
#[derive(Clone, Copy, PartialEq, Eq)]
struct GroupEntry {
    key: Candidate,
    group: u32,
    version: u32,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key).then_with(|| self.version.cmp(&other.version))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for GroupEntry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key).then_with(|| self.version.cmp(&other.version))
    }
}

impl PartialOrd for GroupEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Both ids in one word, which is hashed in one step.
fn joined(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
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
            changed: Vec::new(),
            merges: 0,
        };
        let mut start = 0;
        for run in &corpus.runs {
            for &symbol in &corpus.symbols[start..run.end] {
                engine.symbols[symbol as usize].count += run.weight;
            }
            start = run.end;
        }
        start = 0;
        for (run, &crate::alphabet::Run { end, weight }) in (0u32..).zip(&corpus.runs) {
            engine.weights.push(weight);
            for at in start..end {
                let symbol = corpus.symbols[at];
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
        engine
    }

    pub(crate) fn run(
        mut self,
        known: &[(TokenId, TokenId)],
        observe: &mut dyn Observe<Merge>,
        report: &mut Report,
    ) -> Result<Tokens, TrainError> {
        let first = self.tokens.len();
        self.push_risen();
        self.progress(first, observe)?;
        let mut known = known.iter();
        while self.tokens.len() < self.trainer.vocab_size {
            let chosen = match known.next() {
                Some(&(left, right)) => {
                    // Its entry in a heap is void when nothing of the pair is left.
                    let pair = self.pair_index.get(&joined(left.0, right.0));
                    Some(*pair.ok_or_else(TrainError::unknown_merge)?)
                }
                None => self.best(),
            };
            let Some(pair) = chosen else {
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

    /// Takes the best pair off the heaps.
    fn best(&mut self) -> Option<u32> {
        while let Some(top) = self.heap.pop() {
            let group = &mut self.symbols[top.group as usize].group;
            if group.version != top.version {
                continue;
            }
            group.told = None;
            let entry = group.heap.pop().expect("a group in the heap has a pair");
            let is_live = self.is_live(&entry);
            let key = self.key(&self.pairs[entry.pair as usize]);
            if is_live && key != entry.key {
                // The pair lost occurrences: it comes up again where it belongs.
                self.symbols[top.group as usize].group.heap.push(Entry { key, ..entry });
            }
            self.tell(top.group);
            if is_live && key == entry.key {
                return Some(entry.pair);
            }
        }
        None
    }

    /// Whether the entry is the pair's newest and the pair can be merged.
    fn is_live(&self, entry: &Entry) -> bool {
        let pair = &self.pairs[entry.pair as usize];
        pair.version == entry.version && !pair.barred && pair.count >= self.min_count()
    }

    /// Notes that the best of a group may have changed.
    fn change(&mut self, symbol: u32) {
        let group = &mut self.symbols[symbol as usize].group;
        if !group.changed {
            group.changed = true;
            self.changed.push(symbol);
        }
    }

    fn tell_changed(&mut self) {
        for symbol in core::mem::take(&mut self.changed) {
            self.symbols[symbol as usize].group.changed = false;
            self.tell(symbol);
        }
    }

    /// Tells the heap of groups what the best of a group is now.
    fn tell(&mut self, symbol: u32) {
        let Symbol { count, group, .. } = &mut self.symbols[symbol as usize];
        let Some(top) = group.heap.peek() else {
            return;
        };
        let denominator = match self.trainer.criterion {
            Criterion::Frequency => 1,
            Criterion::Pmi => top.key.denominator * u128::from(*count),
        };
        let key = Candidate { denominator, ..top.key };
        if group.told != Some(key) {
            group.told = Some(key);
            group.version += 1;
            let version = group.version;
            self.heap.push(GroupEntry { key, group: symbol, version });
            if self.heap.len() > 4 * self.symbols.len() + 1024 {
                let Self { heap, symbols, .. } = self;
                heap.retain(|entry| symbols[entry.group as usize].group.version == entry.version);
            }
        }
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
            self.renew(left);
            self.renew(right);
            if self.symbols[id as usize].count > moved {
                // An older token of this spelling; of a new one all pairs have risen.
                self.renew(id);
            }
        }
        self.push_risen();
    }

    /// Counts `weight` more of a pair at `place`.
    fn raise(&mut self, left: u32, right: u32, weight: u64, place: u32) {
        let at = *self.pair_index.entry(joined(left, right)).or_insert_with(|| {
            let at = u32::try_from(self.pairs.len()).expect("2^32 pairs do not fit any memory");
            let too_long = self
                .trainer
                .max_token_len
                .is_some_and(|max| self.tokens.joint_len(left, right) > max as u64);
            let is_left = self.symbols[left as usize].count > self.symbols[right as usize].count;
            let (owner, other) = match self.trainer.criterion {
                // One group for all: there is nothing to divide by.
                Criterion::Frequency => (0, 0),
                Criterion::Pmi if is_left => (left, right),
                Criterion::Pmi => (right, left),
            };
            self.pairs.push(Pair {
                left,
                right,
                owner,
                other,
                count: 0,
                version: 0,
                risen_in: u64::MAX,
                barred: too_long,
                places: Vec::new(),
            });
            self.symbols[other as usize].pairs.push(at);
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
        let at = self.pair_index[&joined(left, right)];
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
        self.tell_changed();
    }

    /// Gives a pair a new key.
    fn push(&mut self, at: u32) {
        if self.pairs[at as usize].barred || self.pairs[at as usize].count < self.min_count() {
            return;
        }
        let pair = &mut self.pairs[at as usize];
        pair.version += 1;
        let (owner, version) = (pair.owner, pair.version);
        let key = self.key(&self.pairs[at as usize]);
        let mut heap = core::mem::take(&mut self.symbols[owner as usize].group.heap);
        heap.push(Entry { key, pair: at, version });
        if heap.len() > self.symbols[owner as usize].group.limit {
            heap.retain(|entry| self.is_live(entry));
            self.symbols[owner as usize].group.limit = 2 * heap.len() + 16;
        }
        self.symbols[owner as usize].group.heap = heap;
        self.change(owner);
    }

    /// Renews the keys that a symbol's count is part of.
    fn renew(&mut self, symbol: u32) {
        let mut pairs = core::mem::take(&mut self.symbols[symbol as usize].pairs);
        pairs.retain(|&at| self.pairs[at as usize].count > 0);
        for &at in &pairs {
            self.push(at);
        }
        self.symbols[symbol as usize].pairs = pairs;
        self.change(symbol);
    }

    /// The pair's place in its group: the owner's count is left out.
    fn key(&self, pair: &Pair) -> Candidate {
        let denominator = match self.trainer.criterion {
            Criterion::Frequency => 1,
            Criterion::Pmi => u128::from(self.symbols[pair.other as usize].count),
        };
        Candidate { denominator, count: pair.count, left: pair.left, right: pair.right }
    }

    fn min_count(&self) -> u64 {
        self.trainer.min_frequency.max(1)
    }
}
