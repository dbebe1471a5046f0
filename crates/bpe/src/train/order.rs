use alloc::vec::Vec;
use core::cmp::Ordering;

/// Which of several pairs with the highest count is merged: a total order for each rule, so that
/// the same counts always train the same model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ties {
    /// The smallest left id, then the smallest right id (Hugging Face).
    #[default]
    LowestIds,
    /// The pair whose first occurrence in the corpus as merged so far comes first; pieces are in
    /// the order in which they were first seen (the textbook loop over a counting dictionary,
    /// minbpe).
    FirstOccurrence,
    /// The greatest left bytes, then the greatest right bytes (subword-nmt).
    GreatestBytes,
    /// The fewest units (characters or bytes) together, then the smallest concatenation of bytes,
    /// then the smallest ids (SentencePiece).
    SentencePiece,
}

/// The bytes and the length in units of every token so far, by id.
#[derive(Clone, Default)]
pub(crate) struct Tokens {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    units: Vec<u64>,
}

impl Tokens {
    pub(crate) fn push(&mut self, bytes: &[u8], units: u64) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
        self.units.push(units);
    }

    pub(crate) fn bytes(&self, id: u32) -> &[u8] {
        let start = if id == 0 { 0 } else { self.ends[id as usize - 1] };
        &self.bytes[start..self.ends[id as usize]]
    }

    /// Whether a pair counts: it makes a token that is shorter than `max_units`, or its parts are
    /// single units.
    pub(crate) fn may_pair(&self, left: u32, right: u32, max_units: u64) -> bool {
        let (left, right) = (self.units(left), self.units(right));
        left + right < max_units || (left == 1 && right == 1)
    }

    pub(crate) fn units(&self, id: u32) -> u64 {
        self.units[id as usize]
    }
}

/// A pair that waits to be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) count: u64,
    pub(crate) left: u32,
    pub(crate) right: u32,
    /// Where the pair first occurs: an index into the corpus in order of first sight. 0 where the
    /// rule does not ask.
    pub(crate) first: u32,
}

/// A tie rule as a type, so that the queue is compiled for each.
pub(crate) trait TieRule: Copy {
    /// Whether [`Candidate::first`] decides.
    const ASKS_FIRST: bool = false;

    /// `Less` if `a` is merged before `b`, both having the same count.
    fn cmp(self, tokens: &Tokens, a: &Candidate, b: &Candidate) -> Ordering;

    /// Whether `a` is merged before `b`.
    #[inline]
    fn is_before(self, tokens: &Tokens, a: &Candidate, b: &Candidate) -> bool {
        a.count > b.count || (a.count == b.count && self.cmp(tokens, a, b).is_lt())
    }
}

#[derive(Clone, Copy)]
pub(crate) struct LowestIds;
#[derive(Clone, Copy)]
pub(crate) struct FirstOccurrence;
#[derive(Clone, Copy)]
pub(crate) struct GreatestBytes;
#[derive(Clone, Copy)]
pub(crate) struct SentencePiece;

impl TieRule for LowestIds {
    #[inline]
    fn cmp(self, _: &Tokens, a: &Candidate, b: &Candidate) -> Ordering {
        (a.left, a.right).cmp(&(b.left, b.right))
    }
}

impl TieRule for FirstOccurrence {
    const ASKS_FIRST: bool = true;

    #[inline]
    fn cmp(self, _: &Tokens, a: &Candidate, b: &Candidate) -> Ordering {
        a.first.cmp(&b.first)
    }
}

impl TieRule for GreatestBytes {
    fn cmp(self, tokens: &Tokens, a: &Candidate, b: &Candidate) -> Ordering {
        let key = |c: &Candidate| (tokens.bytes(c.left), tokens.bytes(c.right));
        key(b).cmp(&key(a))
    }
}

impl TieRule for SentencePiece {
    fn cmp(self, tokens: &Tokens, a: &Candidate, b: &Candidate) -> Ordering {
        let units = |c: &Candidate| tokens.units(c.left) + tokens.units(c.right);
        let piece = |c: &Candidate| {
            let right = tokens.bytes(c.right);
            tokens.bytes(c.left).iter().chain(right)
        };
        units(a)
            .cmp(&units(b))
            .then_with(|| piece(a).cmp(piece(b)))
            .then_with(|| (a.left, a.right).cmp(&(b.left, b.right)))
    }
}

/// A queue of candidates, best first: a heap of four children a node, which is shallower than a
/// binary one and touches a line or two a level.
pub(crate) struct Queue<R> {
    heap: Vec<Candidate>,
    rule: R,
}

const CHILDREN: usize = 4;

impl<R: TieRule> Queue<R> {
    /// The queue of these candidates. `O(n)`.
    pub(crate) fn new(rule: R, candidates: Vec<Candidate>, tokens: &Tokens) -> Self {
        let mut queue = Self { heap: candidates, rule };
        for at in (0..queue.heap.len().div_ceil(CHILDREN)).rev() {
            queue.sink(at, tokens);
        }
        queue
    }

    pub(crate) fn best(&self) -> Option<Candidate> {
        self.heap.first().copied()
    }

    pub(crate) fn push(&mut self, candidate: Candidate, tokens: &Tokens) {
        let mut at = self.heap.len();
        self.heap.push(candidate);
        while at > 0 {
            let parent = (at - 1) / CHILDREN;
            if !self.rule.is_before(tokens, &candidate, &self.heap[parent]) {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = candidate;
    }

    /// Puts another candidate in the place of the best.
    pub(crate) fn replace_best(&mut self, candidate: Candidate, tokens: &Tokens) {
        self.heap[0] = candidate;
        self.sink(0, tokens);
    }

    pub(crate) fn remove_best(&mut self, tokens: &Tokens) {
        let Some(last) = self.heap.pop() else { return };
        if !self.heap.is_empty() {
            self.replace_best(last, tokens);
        }
    }

    fn sink(&mut self, mut at: usize, tokens: &Tokens) {
        let Some(&candidate) = self.heap.get(at) else { return };
        loop {
            let first = at * CHILDREN + 1;
            let Some(children) = self.heap.get(first..(first + CHILDREN).min(self.heap.len()))
            else {
                break;
            };
            let Some(mut best) = children.first().map(|_| first) else { break };
            for child in first + 1..first + children.len() {
                if self.rule.is_before(tokens, &self.heap[child], &self.heap[best]) {
                    best = child;
                }
            }
            if !self.rule.is_before(tokens, &self.heap[best], &candidate) {
                break;
            }
            self.heap[at] = self.heap[best];
            at = best;
        }
        self.heap[at] = candidate;
    }
}
