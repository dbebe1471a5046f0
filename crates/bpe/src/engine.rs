//! The merge process: lowest rank first, leftmost first.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use tokenizer_core::Rng;

use crate::pairs::{Merge, NO_MERGE, PairTable, Symbol};

/// One symbol of a piece in the making, and how many bytes of the piece it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) symbol: Symbol,
    pub(crate) len: u32,
}

/// The memory of the merge process, reused from piece to piece.
#[derive(Clone, Default)]
pub(crate) struct Scratch {
    /// The merge of node i and its right neighbour.
    merges: Vec<Merge>,
    links: Vec<Link>,
    /// `rank << 32 | node`: pops the lowest rank, of equal ranks the leftmost.
    queue: BinaryHeap<Reverse<u64>>,
    skipped: Vec<Reverse<u64>>,
}

#[derive(Clone, Copy)]
struct Link {
    prev: u32,
    next: u32,
}

/// No node on this side.
const END: u32 = u32::MAX;

/// Up to here the scan for the lowest rank beats the queue. Measured on runs of random letters
/// with cl100k ranks: see docs/algorithms/bpe.md.
const LONGEST_SCAN: usize = 64;

/// Sees what the process does.
pub(crate) trait Watch {
    /// The pair of these symbols was looked at and would become `product`.
    #[inline]
    fn candidate(&mut self, left: Symbol, right: Symbol, product: Symbol) {
        let _ = (left, right, product);
    }

    /// The node that began as the initial node `at` and its right neighbour merge now. Only the
    /// queue says so, the scan does not keep initial nodes apart.
    #[inline]
    fn merge(&mut self, at: usize, left: Symbol, right: Symbol, merge: Merge) {
        let _ = (at, left, right, merge);
    }
}

/// Watches nothing.
pub(crate) struct Blind;

impl Watch for Blind {}

impl Scratch {
    /// Merges `nodes` in place until nothing merges.
    ///
    /// `O(n^2)` with a tiny constant for up to 64 nodes, `O(n log n)` above.
    #[inline]
    pub(crate) fn merge_all<W: Watch>(
        &mut self,
        pairs: &PairTable,
        nodes: &mut Vec<Node>,
        watch: &mut W,
    ) {
        if nodes.len() <= LONGEST_SCAN {
            self.scan(pairs, nodes, watch);
        } else {
            self.run_queue(pairs, nodes, watch);
        }
    }

    /// Finds the lowest rank by looking at all pairs; removes by moving the tail up.
    fn scan<W: Watch>(&mut self, pairs: &PairTable, nodes: &mut Vec<Node>, watch: &mut W) {
        let merges = &mut self.merges;
        merges.clear();
        merges.extend(nodes.windows(2).map(|pair| look_up(pairs, pair[0], pair[1], watch)));
        loop {
            let (mut at, mut lowest) = (0, NO_MERGE);
            for (i, &merge) in merges.iter().enumerate() {
                if merge.rank() < lowest.rank() {
                    (at, lowest) = (i, merge);
                }
            }
            if lowest == NO_MERGE {
                return;
            }
            nodes[at] = Node { symbol: lowest.product(), len: nodes[at].len + nodes[at + 1].len };
            nodes.remove(at + 1);
            merges.remove(at);
            if at > 0 {
                merges[at - 1] = look_up(pairs, nodes[at - 1], nodes[at], watch);
            }
            if at < merges.len() {
                merges[at] = look_up(pairs, nodes[at], nodes[at + 1], watch);
            }
        }
    }

    /// Keeps the pairs in a queue and the nodes in a linked list.
    pub(crate) fn run_queue<W: Watch>(
        &mut self,
        pairs: &PairTable,
        nodes: &mut Vec<Node>,
        watch: &mut W,
    ) {
        self.link(pairs, nodes, watch);
        while let Some(Reverse(entry)) = self.queue.pop() {
            if let Some(at) = self.current(entry) {
                self.merge_at(at, pairs, nodes, watch);
            }
        }
        self.compact(nodes);
    }

    /// As [`run_queue`](Self::run_queue), but before every merge each possible merge sits out
    /// with probability `p` (Provilkov et al. 2020, algorithm 1).
    pub(crate) fn run_dropout<W: Watch>(
        &mut self,
        pairs: &PairTable,
        nodes: &mut Vec<Node>,
        watch: &mut W,
        rng: &mut Rng,
        p: f64,
    ) {
        self.link(pairs, nodes, watch);
        self.skipped.clear();
        // Asking the candidates in order of rank until one does not sit out draws the same merge
        // as asking all of them and taking the first that is left.
        while let Some(Reverse(entry)) = self.queue.pop() {
            let Some(at) = self.current(entry) else { continue };
            if rng.next_f64() < p {
                self.skipped.push(Reverse(entry));
                continue;
            }
            self.queue.extend(self.skipped.drain(..));
            self.merge_at(at, pairs, nodes, watch);
        }
        self.compact(nodes);
    }

    fn link<W: Watch>(&mut self, pairs: &PairTable, nodes: &[Node], watch: &mut W) {
        let count = u32::try_from(nodes.len()).expect("a piece is shorter than 4 GiB");
        self.merges.clear();
        self.merges.extend(nodes.windows(2).map(|w| look_up(pairs, w[0], w[1], watch)));
        self.merges.push(NO_MERGE);
        self.links.clear();
        self.links.extend((0..count).map(|i| Link {
            prev: if i == 0 { END } else { i - 1 },
            next: if i + 1 == count { END } else { i + 1 },
        }));
        // Filling a vector and making it a heap at once is linear.
        let mut entries = core::mem::take(&mut self.queue).into_vec();
        entries.clear();
        entries.extend(
            self.merges
                .iter()
                .zip(0u32..)
                .filter(|(merge, _)| **merge != NO_MERGE)
                .map(|(&merge, at)| Reverse(entry(merge, at))),
        );
        self.queue = BinaryHeap::from(entries);
    }

    /// The node of a queue entry, if its pair still has the rank that it had when it was queued.
    /// Then it is the lowest and leftmost of all, whenever it was queued.
    #[inline]
    fn current(&self, entry: u64) -> Option<usize> {
        let at = (entry & u64::from(u32::MAX)) as usize;
        (self.merges[at].rank() == (entry >> 32) as u32).then_some(at)
    }

    #[inline]
    fn merge_at<W: Watch>(
        &mut self,
        at: usize,
        pairs: &PairTable,
        nodes: &mut [Node],
        watch: &mut W,
    ) {
        let merge = self.merges[at];
        let Link { prev, next } = self.links[at];
        let right = next as usize;
        watch.merge(at, nodes[at].symbol, nodes[right].symbol, merge);
        nodes[at] = Node { symbol: merge.product(), len: nodes[at].len + nodes[right].len };
        self.merges[right] = NO_MERGE;
        let after = self.links[right].next;
        self.links[at].next = after;
        if prev != END {
            self.renew(prev, look_up(pairs, nodes[prev as usize], nodes[at], watch));
        }
        self.merges[at] = NO_MERGE;
        if after != END {
            self.links[after as usize].prev = at as u32;
            self.renew(at as u32, look_up(pairs, nodes[at], nodes[after as usize], watch));
        }
    }

    #[inline]
    fn renew(&mut self, at: u32, merge: Merge) {
        self.merges[at as usize] = merge;
        if merge != NO_MERGE {
            self.queue.push(Reverse(entry(merge, at)));
        }
    }

    /// Moves the nodes that are left to the front.
    fn compact(&self, nodes: &mut Vec<Node>) {
        let (mut at, mut kept) = (0, 0);
        while at != END && !nodes.is_empty() {
            nodes[kept] = nodes[at as usize];
            kept += 1;
            at = self.links[at as usize].next;
        }
        nodes.truncate(kept);
    }
}

#[inline]
fn look_up<W: Watch>(pairs: &PairTable, left: Node, right: Node, watch: &mut W) -> Merge {
    let merge = pairs.get(left.symbol, right.symbol);
    if merge != NO_MERGE {
        watch.candidate(left.symbol, right.symbol, merge.product());
    }
    merge
}

#[inline]
fn entry(merge: Merge, at: u32) -> u64 {
    u64::from(merge.rank()) << 32 | u64::from(at)
}
