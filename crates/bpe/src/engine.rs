//! The merge process: lowest rank first, leftmost first.

use alloc::vec::Vec;

use tokenizer_core::Rng;

use crate::pairs::{Merge, NO_MERGE, PairTable, Symbol};
use crate::queue::Queue;

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
    queue: Queue,
    skipped: Vec<(u32, u32)>,
}

#[derive(Clone, Copy)]
struct Link {
    prev: u32,
    next: u32,
}

/// No node on this side.
const END: u32 = u32::MAX;

/// Up to here the scan for the lowest rank is used. On stretches of English with the ranks of
/// cl100k the queue is as fast from about 16 symbols on, and wins from 24 on (56 against 83 ns a
/// byte, 2026-11-30, on a busy machine); the scan needs less memory.
const LONGEST_SCAN: usize = 32;

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
    /// `O(n^2)` with a tiny constant for up to 32 nodes, `O(n log n)` above.
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
        while let Some((rank, at)) = self.queue.pop() {
            if self.is_current(rank, at) {
                self.merge_at(at as usize, pairs, nodes, watch);
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
        while let Some((rank, at)) = self.queue.pop() {
            if !self.is_current(rank, at) {
                continue;
            }
            if rng.next_f64() < p {
                self.skipped.push((rank, at));
                continue;
            }
            for (rank, at) in self.skipped.drain(..) {
                self.queue.push(rank, at);
            }
            self.merge_at(at as usize, pairs, nodes, watch);
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
        self.queue.start(nodes.len(), pairs.max_rank());
        for (&merge, at) in self.merges.iter().zip(0u32..) {
            if merge != NO_MERGE {
                self.queue.add(merge.rank(), at);
            }
        }
        self.queue.sort();
    }

    /// Whether the pair at this node still has the rank that it had when it was queued. Then it is
    /// the lowest and leftmost of all, whenever it was queued.
    #[inline]
    fn is_current(&self, rank: u32, at: u32) -> bool {
        self.merges[at as usize].rank() == rank
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
            self.queue.push(merge.rank(), at);
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
