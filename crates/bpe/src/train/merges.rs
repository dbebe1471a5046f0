//! The loop: take the best pair, merge it where it stands, keep the counts.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::ControlFlow;

use hashbrown::HashSet;
use tokenizer_core::{Observe, PieceCounts, PieceRules, TokenId, TokenKind, Vocab, VocabBuilder};

use crate::train::arena::{Arena, BREAK};
use crate::train::counts::{Entry, PairCounts, Place};
use crate::train::order::{
    Candidate, FirstOccurrence, GreatestBytes, LowestIds, Queue, SentencePiece, TieRule, Ties,
    Tokens,
};
use crate::train::{BpeTrainer, Compat, Goal, MergeStep, Plan, TrainError};

type Learned = (Vocab, Vec<(TokenId, TokenId)>);

/// Learns the merges of a corpus.
pub(crate) fn learn(
    trainer: &BpeTrainer,
    plan: Plan,
    counts: &PieceCounts,
    observe: &mut dyn Observe<MergeStep>,
) -> Result<Learned, TrainError> {
    match trainer.ties {
        Ties::LowestIds => {
            Learner::new(LowestIds, trainer, plan, counts)?.run(LowestIds, trainer, observe)
        }
        Ties::FirstOccurrence => Learner::new(FirstOccurrence, trainer, plan, counts)?.run(
            FirstOccurrence,
            trainer,
            observe,
        ),
        Ties::GreatestBytes => {
            Learner::new(GreatestBytes, trainer, plan, counts)?.run(GreatestBytes, trainer, observe)
        }
        Ties::SentencePiece => {
            Learner::new(SentencePiece, trainer, plan, counts)?.run(SentencePiece, trainer, observe)
        }
    }
}

struct Learner<R> {
    arena: Arena,
    pairs: PairCounts,
    /// The places of all pairs; see [`Entry`](crate::train::counts::Entry).
    pool: Vec<u32>,
    queue: Queue<R>,
    tokens: Tokens,
    vocab: VocabBuilder,
    merges: Vec<(TokenId, TokenId)>,
    /// What is merged before anything is chosen; the queue is filled behind it.
    first_merges: Vec<(TokenId, TokenId)>,
    is_choosing: bool,
    /// Pairs that occur less often than this wait outside of the queue.
    bar: u64,
    /// Chosen merges make no token with a lower id.
    first_new: u32,
    /// The continuing prefix, which the right part of a merge loses.
    prefix: Vec<u8>,
    /// Pairs that occur less often are not merged. At 0 those are merged, too, that occur no more.
    least: u64,
    /// Pairs count if their parts are together shorter than this, or single units.
    max_units: u64,
    /// Pairs count if they make an allowed piece.
    rules: Option<PieceRules>,
    /// Pairs that count all the same as long as the given merges are made: those of a model that
    /// was trained with other limits.
    given: HashSet<(u32, u32)>,
    text: String,
    events: Vec<Event>,
    left: Side,
    right: Side,
}

/// One place where the pair was merged: where it begins, and its neighbours at that moment.
struct Event {
    at: u32,
    before_at: u32,
    before: u32,
    after: u32,
}

/// What the merges of one pair mean for the symbols on one side of it: by neighbour, the weight
/// and the number of merges next to it. One update of the table serves all of them.
#[derive(Default)]
struct Side {
    sums: Vec<Sum>,
    seen: Vec<u32>,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    weight: u64,
    places: u32,
    /// Where the next place goes in the pool; [`NOT_COUNTED`] if the pair does not count.
    at: usize,
}

const NOT_COUNTED: usize = usize::MAX;

/// How many pairs are queued at least, if there are so many.
const QUEUED: usize = 1 << 16;

impl Side {
    #[inline]
    fn add(&mut self, symbol: u32, weight: u64) {
        if symbol == BREAK {
            return;
        }
        let index = symbol as usize;
        if index >= self.sums.len() {
            self.sums.resize(index + 1, Sum::default());
        }
        let sum = &mut self.sums[index];
        if sum.places == 0 {
            self.seen.push(symbol);
        }
        sum.weight += weight;
        sum.places += 1;
    }

    fn clear(&mut self) {
        for &symbol in &self.seen {
            self.sums[symbol as usize] = Sum::default();
        }
        self.seen.clear();
    }
}

impl<R: TieRule> Learner<R> {
    fn new(
        rule: R,
        trainer: &BpeTrainer,
        plan: Plan,
        counts: &PieceCounts,
    ) -> Result<Self, TrainError> {
        let arena = Arena::new(trainer, &plan, counts)?;
        let mut tokens = Tokens::default();
        for (id, bytes, _) in plan.vocab.clone().build().iter() {
            tokens.push(bytes, plan.units_of(trainer, id, bytes));
        }
        let mut learner = Self {
            arena,
            pairs: PairCounts::new(),
            pool: Vec::new(),
            queue: Queue::new(rule, Vec::new(), &tokens),
            tokens,
            vocab: plan.vocab,
            merges: Vec::new(),
            first_merges: plan.first_merges,
            is_choosing: false,
            bar: 0,
            first_new: plan.first_new,
            prefix: trainer.continuing_prefix.as_deref().unwrap_or("").into(),
            least: match trainer.compat {
                Compat::Standard => trainer.min_frequency.max(1),
                Compat::SentencePiece => trainer.min_frequency,
            },
            max_units: trainer.max_token_len.map_or(u64::MAX, |len| len as u64),
            rules: trainer.rules,
            given: HashSet::new(),
            text: String::new(),
            events: Vec::new(),
            left: Side::default(),
            right: Side::default(),
        };
        learner.given = learner.given_beyond_limits();
        learner.count_pairs();
        Ok(learner)
    }

    /// Counts the pairs of the corpus as it is in the beginning and lists their places.
    fn count_pairs(&mut self) {
        let pairs = &mut self.pairs;
        for (_, left, right, weight) in self.arena.initial_pairs() {
            let slot = pairs.find_or_insert(left, right);
            let entry = pairs.entry_mut(slot);
            entry.count += weight;
            entry.len += 1;
        }
        let slots: Vec<(Place, u32, u32)> = pairs.iter().collect();
        let mut total = 0;
        for (slot, left, right) in slots {
            let may_pair = self.may_pair(left, right);
            let entry = self.pairs.entry_mut(slot);
            if !may_pair {
                (entry.count, entry.len) = (0, 0);
            }
            entry.start = if may_pair { total } else { NOT_COUNTED };
            total += entry.len as usize;
            entry.len = 0;
        }
        self.pool = alloc::vec![0; total];
        for (at, left, right, _) in self.arena.initial_pairs() {
            let slot = self.pairs.find(left, right).expect("every pair was counted");
            let entry = self.pairs.entry_mut(slot);
            if entry.start != NOT_COUNTED {
                self.pool[entry.start + entry.len as usize] = at;
                entry.len += 1;
            }
        }
    }

    /// The given merges of tokens to begin with that the options would not choose.
    fn given_beyond_limits(&mut self) -> HashSet<(u32, u32)> {
        let tokens = self.vocab.len();
        let merges = core::mem::take(&mut self.first_merges);
        let pairs = merges.iter().map(|&(left, right)| (left.0, right.0));
        let known = pairs.filter(|&(left, right)| (left.max(right) as usize) < tokens);
        let given = known.filter(|&(left, right)| !self.is_allowed(left, right)).collect();
        self.first_merges = merges;
        given
    }

    /// Takes the pairs out of the table that counted only because they were given.
    fn forget_given(&mut self) {
        for (left, right) in core::mem::take(&mut self.given) {
            if let Some(slot) = self.pairs.find(left, right) {
                let entry = self.pairs.entry_mut(slot);
                (entry.count, entry.len, entry.start) = (0, 0, NOT_COUNTED);
            }
        }
    }

    /// Whether a pair counts.
    fn may_pair(&mut self, left: u32, right: u32) -> bool {
        self.is_allowed(left, right) || self.given.contains(&(left, right))
    }

    /// Whether the options let a pair be merged.
    fn is_allowed(&mut self, left: u32, right: u32) -> bool {
        self.tokens.may_pair(left, right, self.max_units)
            && self.rules.is_none_or(|rules| {
                let (left, right) = (self.tokens.bytes(left), self.tokens.bytes(right));
                rules.allow_pair(left, right, &mut self.text)
            })
    }

    /// Makes the merges that are given. A pair that does not occur makes its token all the same.
    fn make_first_merges(
        &mut self,
        observe: &mut dyn Observe<MergeStep>,
    ) -> Result<(), TrainError> {
        let first = core::mem::take(&mut self.first_merges);
        for (done, &(TokenId(left), TokenId(right))) in first.iter().enumerate() {
            if done % 64 == 0 {
                go_on(observe.progress("replay", done as u64, first.len() as u64))?;
            }
            if left.max(right) as usize >= self.vocab.len() {
                return Err(TrainError::option(
                    "a given merge names a token that was not made yet",
                ));
            }
            let count = self.pairs.find(left, right).map_or(0, |slot| self.pairs.entry(slot).count);
            let step = self.name(left, right, count)?;
            if count > 0 {
                self.replace(left, right, step.id.0);
                self.recount(left, right, step.id.0);
            }
            go_on(observe.step(&step))?;
        }
        self.forget_given();
        Ok(())
    }

    /// Fills the empty queue with the most frequent pairs of those that were not queued, and says how
    /// frequent they are: a corpus has many more than are ever merged.
    fn fill_queue(&mut self, rule: R) {
        let (least, before) = (self.least, self.is_choosing.then_some(self.bar));
        let waits = |entry: &Entry| {
            let was_queued = before.is_some_and(|bar| entry.count >= bar);
            entry.start != NOT_COUNTED && entry.count >= least && !was_queued
        };
        let mut waiting: Vec<(Place, u32, u32)> = self.pairs.iter().collect();
        waiting.retain(|&(at, ..)| waits(self.pairs.entry(at)));
        self.bar = least;
        // Where pairs are merged that do not occur any more, the table does not know all of them.
        if least > 0 && waiting.len() > QUEUED {
            let count = |&(at, ..): &(Place, u32, u32)| self.pairs.entry(at).count;
            let mut counts: Vec<u64> = waiting.iter().map(count).collect();
            let (_, &mut count, _) = counts.select_nth_unstable_by(QUEUED, |a, b| b.cmp(a));
            self.bar = count;
            waiting.retain(|&(at, ..)| self.pairs.entry(at).count >= count);
        }
        let pairs = waiting.into_iter();
        let candidates = pairs.map(|(at, left, right)| self.candidate(at, left, right)).collect();
        self.queue = Queue::new(rule, candidates, &self.tokens);
        self.is_choosing = true;
    }

    fn run(
        mut self,
        rule: R,
        trainer: &BpeTrainer,
        observe: &mut dyn Observe<MergeStep>,
    ) -> Result<Learned, TrainError> {
        let initial = self.vocab.len();
        self.make_first_merges(observe)?;
        if let Goal::VocabSize(size) = trainer.goal
            && size < self.vocab.len()
        {
            return Err(TrainError::too_small(size, self.vocab.len()));
        }
        self.fill_queue(rule);
        loop {
            let (done, total) = match trainer.goal {
                Goal::VocabSize(size) => (self.vocab.len() - initial, size - initial),
                Goal::Merges(merges) => (self.merges.len(), merges),
            };
            if self.merges.len().is_multiple_of(64) || done >= total {
                go_on(observe.progress("merges", done as u64, total as u64))?;
            }
            if done >= total {
                break;
            }
            let Some(best) = self.take_best(rule) else { break };
            let step = self.merge(best)?;
            go_on(observe.step(&step))?;
        }
        Ok((self.vocab.build(), self.merges))
    }

    /// The best pair. Counts in the queue may be out of date; they are brought up to date when
    /// they come to the front, where only the true best stays.
    fn take_best(&mut self, rule: R) -> Option<Candidate> {
        loop {
            let Some(best) = self.queue.best() else {
                if self.bar == self.least {
                    return None;
                }
                self.fill_queue(rule);
                continue;
            };
            let slot = self.pairs.find(best.left, best.right);
            let now = match slot {
                Some(slot) => Some(self.candidate(slot, best.left, best.right)),
                // Pairs that are used up leave the table.
                None => (self.least == 0).then_some(Candidate { count: 0, first: 0, ..best }),
            };
            match now {
                Some(now) if now == best => {
                    self.queue.remove_best(&self.tokens);
                    if self.first_new > 0 && self.makes_an_old_token(best) {
                        continue;
                    }
                    return Some(best);
                }
                Some(now) if now.count >= self.bar => {
                    self.queue.replace_best(now, &self.tokens);
                }
                _ => self.queue.remove_best(&self.tokens),
            }
        }
    }

    /// A pair as it stands now.
    fn candidate(&mut self, slot: Place, left: u32, right: u32) -> Candidate {
        let entry = self.pairs.entry_mut(slot);
        let mut candidate = Candidate { count: entry.count, left, right, first: 0 };
        if R::ASKS_FIRST && entry.count > 0 {
            // Places where the pair no longer stands are dropped for good: where it comes to
            // stand again it is put on the list again.
            while entry.len > 0 {
                let first = self.pool[entry.start];
                if self.arena.pair_at(first, left, right).is_some() {
                    candidate.first = first;
                    break;
                }
                entry.start += 1;
                entry.len -= 1;
            }
        }
        candidate
    }

    fn merge(&mut self, best: Candidate) -> Result<MergeStep, TrainError> {
        let Candidate { left, right, count, .. } = best;
        let step = self.name(left, right, count)?;
        let new = step.id.0;
        if count > 0 {
            self.replace(left, right, new);
            self.recount(left, right, new);
        }
        Ok(step)
    }

    fn makes_an_old_token(&self, pair: Candidate) -> bool {
        let right = self.tokens.bytes(pair.right);
        let tail = right.strip_prefix(&self.prefix[..]).unwrap_or(right);
        let product = self.vocab.get(&[self.tokens.bytes(pair.left), tail].concat());
        product.is_some_and(|id| id.0 < self.first_new)
    }

    /// The token that a pair becomes, a new one unless its bytes are a token already.
    fn name(&mut self, left: u32, right: u32, count: u64) -> Result<MergeStep, TrainError> {
        let left_bytes = self.tokens.bytes(left).to_vec();
        let right_bytes = self.tokens.bytes(right).to_vec();
        let tail = right_bytes.strip_prefix(&self.prefix[..]).unwrap_or(&right_bytes);
        let token = [&left_bytes, tail].concat();
        let units = self.tokens.units(left) + self.tokens.units(right);
        let id = match self.vocab.get(&token) {
            Some(id) => id,
            None => {
                if self.vocab.len() >= BREAK as usize {
                    return Err(TrainError::too_many_tokens());
                }
                self.tokens.push(&token, units);
                self.vocab.push(&token, TokenKind::Normal)?
            }
        };
        self.merges.push((TokenId(left), TokenId(right)));
        Ok(MergeStep {
            step: self.merges.len() as u64,
            left: TokenId(left),
            right: TokenId(right),
            left_bytes,
            right_bytes,
            token,
            id,
            count,
        })
    }

    /// Merges the pair wherever it stands, from left to right, and notes the neighbours.
    fn replace(&mut self, left: u32, right: u32, new: u32) {
        let slot = self.pairs.find(left, right).expect("the best pair is in the table");
        let entry = self.pairs.entry_mut(slot);
        let places = entry.start..entry.start + entry.len as usize;
        (entry.count, entry.len) = (0, 0);
        self.events.clear();
        for &at in &self.pool[places] {
            let Some((middle, end)) = self.arena.pair_at(at, left, right) else { continue };
            let weight = self.arena.weight(at);
            let (before, before_at) = self.arena.before(at);
            let after = self.arena.symbol(end);
            self.arena.join(at, middle, end, new);
            self.left.add(before, weight);
            self.right.add(after, weight);
            self.events.push(Event { at, before_at, before, after });
        }
    }

    /// Brings the table up to date: (x, left) became (x, new), (right, y) became (new, y).
    fn recount(&mut self, left: u32, right: u32, new: u32) {
        let mut sides = (core::mem::take(&mut self.left), core::mem::take(&mut self.right));
        let (lefts, rights) = (&mut sides.0, &mut sides.1);
        self.reserve_pool(2 * self.events.len());
        // New pairs first, then old ones: a pair that came and went in one sweep (the second of
        // `abab` takes the `a` from beside the first) never counts less than nothing.
        self.add_new(lefts, |x| (x, new), |event| (event.before, event.before_at));
        self.add_new(rights, |y| (new, y), |event| (event.after, event.at));
        for &x in &lefts.seen {
            self.take_old((x, left), (left, right), lefts.sums[x as usize].weight);
        }
        for &y in &rights.seen {
            self.take_old((right, y), (left, right), rights.sums[y as usize].weight);
        }
        for &x in &lefts.seen {
            self.enqueue(x, new);
        }
        for &y in &rights.seen {
            self.enqueue(new, y);
        }
        lefts.clear();
        rights.clear();
        (self.left, self.right) = sides;
    }

    fn add_new(
        &mut self,
        side: &mut Side,
        pair: impl Fn(u32) -> (u32, u32),
        place: impl Fn(&Event) -> (u32, u32),
    ) {
        let mut known = Vec::new();
        for &symbol in &side.seen {
            let sum = &mut side.sums[symbol as usize];
            let (left, right) = pair(symbol);
            if !self.may_pair(left, right) {
                sum.at = NOT_COUNTED;
                continue;
            }
            let slot = self.pairs.find_or_insert(left, right);
            let entry = self.pairs.entry_mut(slot);
            let old = entry.start..entry.start + entry.len as usize;
            entry.count += sum.weight;
            entry.start = self.pool.len();
            if !old.is_empty() {
                // Only when a merge makes a token that another merge made before.
                self.pool.extend_from_within(old);
                known.push((left, right));
            }
            entry.len += sum.places;
            sum.at = self.pool.len();
            self.pool.resize(self.pool.len() + sum.places as usize, 0);
        }
        for event in &self.events {
            let (symbol, at) = place(event);
            if symbol != BREAK {
                let sum = &mut side.sums[symbol as usize];
                if sum.at != NOT_COUNTED {
                    self.pool[sum.at] = at;
                    sum.at += 1;
                }
            }
        }
        for (left, right) in known {
            let at = self.pairs.find(left, right).expect("it was inserted");
            let entry = self.pairs.entry(at);
            self.pool[entry.start..entry.start + entry.len as usize].sort_unstable();
        }
    }

    fn take_old(&mut self, old: (u32, u32), merged: (u32, u32), weight: u64) {
        if old == merged {
            return; // All of it is gone, and its count is 0 already.
        }
        // A pair that does not count is not in the table, or is marked there.
        if let Some(slot) = self.pairs.find(old.0, old.1) {
            let entry = self.pairs.entry_mut(slot);
            if entry.start == NOT_COUNTED {
                return;
            }
            debug_assert!(entry.count >= weight, "a pair loses no more than it has");
            entry.count -= weight;
            if entry.count == 0 {
                entry.len = 0;
            }
        }
    }

    fn enqueue(&mut self, left: u32, right: u32) {
        if !self.is_choosing {
            return;
        }
        let Some(slot) = self.pairs.find(left, right) else { return };
        let candidate = self.candidate(slot, left, right);
        if candidate.count >= self.bar {
            self.queue.push(candidate, &self.tokens);
        }
    }

    /// Makes room for new places, where that pays by moving the lists together.
    fn reserve_pool(&mut self, more: usize) {
        if self.pool.capacity() - self.pool.len() >= more {
            return;
        }
        let slots: Vec<Place> = self.pairs.iter().map(|(slot, ..)| slot).collect();
        let alive: usize = slots.iter().map(|&slot| self.pairs.entry(slot).len as usize).sum();
        if alive + more > self.pool.capacity() / 3 * 2 {
            // By half only: lists of places are most of the memory.
            self.pool.reserve_exact(more.max(self.pool.len() / 2));
            return;
        }
        // In place: a second pool would be the peak of memory.
        let mut slots = slots;
        slots.retain(|&slot| self.pairs.entry(slot).len > 0);
        slots.sort_unstable_by_key(|&slot| self.pairs.entry(slot).start);
        let mut end = 0;
        for slot in slots {
            let entry = self.pairs.entry_mut(slot);
            let places = entry.start..entry.start + entry.len as usize;
            entry.start = end;
            end += places.len();
            self.pool.copy_within(places, entry.start);
        }
        self.pool.truncate(end);
    }
}

fn go_on(flow: ControlFlow<()>) -> Result<(), TrainError> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(TrainError::stopped()),
    }
}
