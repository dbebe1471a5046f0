//! The automaton of LinMaxMatch: longest matches of a whole word in one pass over its bytes.
//!
//! Song et al. 2021 put every token into one trie, `##` and all. We plant two tries in one array:
//! one of all tokens as they are spelled, for the beginning of a word, and one of the
//! continuations without their prefix. A word that itself begins with `##` then needs no special
//! case, and neither does an empty prefix (both roots are one).
//!
//! Every node carries what to do when the next byte leads nowhere: the tokens that are certain by
//! now (*pops*) and the node of the bytes that remain after them (*fail*). Each failure consumes
//! at least one token, so a word of n bytes takes at most 2n steps.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tokenizer_core::sort_by_bytes;

/// Where nothing matches after the pops.
pub(crate) const STUCK: u32 = u32::MAX;

const NONE: u32 = u32::MAX;
/// The `check` of a slot that holds no node, and of a root: no node has this index.
const FREE: u32 = u32::MAX;
const ROOT: u32 = u32::MAX - 1;
const BLOCK: usize = 256;
/// How many blocks with free slots are searched for a place; more packs tighter and builds slower.
const OPEN_BLOCKS: usize = 16;

/// A node of the double array: the child by byte b is at `base ^ b` if its `check` names us.
#[derive(Clone, Copy)]
struct Node {
    base: u32,
    check: u32,
    /// The node to go on from after the pops, or [`STUCK`].
    fail: u32,
    /// The last of the tokens to pop, or `NONE`.
    pops: u32,
}

/// A token of a list of pops. Lists are shared: a node's list extends its parent's, so all lists
/// together are no longer than all tokens together. (As arrays they would be quadratic.)
#[derive(Clone, Copy)]
pub(crate) struct Pop {
    /// The pop before this one, or `NONE`.
    previous: u32,
    pub(crate) id: u32,
    /// Where the token ends, in bytes from the beginning of the node's string.
    end: u32,
}

#[derive(Clone)]
pub(crate) struct Matcher {
    nodes: Vec<Node>,
    pops: Vec<Pop>,
    pub(crate) initial: u32,
    pub(crate) continuation: u32,
}

/// The array would pass 32-bit indexes.
#[derive(Debug)]
pub(crate) struct TooLarge;

impl Matcher {
    /// The automaton of tokens `(bytes, id)` with distinct, non-empty bytes.
    pub(crate) fn new<'t>(
        tokens: impl Iterator<Item = (&'t [u8], u32)>,
        prefix: &[u8],
    ) -> Result<Self, TooLarge> {
        let mut initial: Vec<_> = tokens.collect();
        sort_by_bytes(&mut initial);
        let mut builder = Builder::default();
        builder.matcher.continuation = builder.root()?;
        if prefix.is_empty() {
            builder.matcher.initial = builder.matcher.continuation;
        } else {
            builder.matcher.initial = builder.root()?;
            let continuations: Vec<_> = initial
                .iter()
                .filter_map(|&(bytes, id)| Some((bytes.strip_prefix(prefix)?, id)))
                .filter(|(rest, _)| !rest.is_empty())
                .collect();
            builder.plant(builder.matcher.continuation, &continuations)?;
        }
        builder.plant(builder.matcher.initial, &initial)?;
        Ok(builder.matcher)
    }

    #[inline]
    pub(crate) fn child(&self, node: u32, byte: u8) -> Option<u32> {
        let at = self.nodes[node as usize].base ^ u32::from(byte);
        (self.nodes[at as usize].check == node).then_some(at)
    }

    /// Where to go on from when `node` has no child for the next byte, after popping its tokens.
    #[inline]
    pub(crate) fn fail(&self, node: u32) -> u32 {
        self.nodes[node as usize].fail
    }

    /// The tokens to pop at `node`, **last first**, each with its length in bytes of text.
    #[inline]
    pub(crate) fn pops(&self, node: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let mut at = self.nodes[node as usize].pops;
        core::iter::from_fn(move || {
            if at == NONE {
                return None;
            }
            let pop = self.pops[at as usize];
            at = pop.previous;
            let start = if at == NONE { 0 } else { self.pops[at as usize].end };
            Some((pop.id, pop.end - start))
        })
    }

    /// The bytes of memory that the automaton takes.
    pub(crate) fn memory(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>() + self.pops.capacity() * size_of::<Pop>()
    }
}

struct Builder {
    matcher: Matcher,
    /// Blocks that have free slots, with a bit for each slot that is taken.
    open: Vec<(u32, [u64; BLOCK / 64])>,
    /// Scratch of `append`.
    list: Vec<(u32, u32)>,
}

impl Default for Builder {
    fn default() -> Self {
        let matcher = Matcher { nodes: Vec::new(), pops: Vec::new(), initial: 0, continuation: 0 };
        Self { matcher, open: Vec::new(), list: Vec::new() }
    }
}

impl Builder {
    fn root(&mut self) -> Result<u32, TooLarge> {
        let base = self.place(&[0])?;
        self.matcher.nodes[base as usize] = Node { base: 0, check: ROOT, fail: STUCK, pops: NONE };
        Ok(base)
    }

    /// Plants the trie of sorted, distinct, non-empty keys, level by level: a failure link leads
    /// to a shallower node (or into the trie of continuations, planted before), so what it needs
    /// is there.
    fn plant(&mut self, root: u32, keys: &[(&[u8], u32)]) -> Result<(), TooLarge> {
        let mut queue = VecDeque::from([(root, 0, keys.len(), 0usize)]);
        let (mut labels, mut ends) = (Vec::new(), Vec::new());
        while let Some((node, mut from, to, depth)) = queue.pop_front() {
            // The node's own key sorts first.
            if from < to && keys[from].0.len() == depth {
                from += 1;
            }
            labels.clear();
            ends.clear();
            let mut start = from;
            while start < to {
                let label = keys[start].0[depth];
                let same = keys[start..to].partition_point(|(key, _)| key[depth] == label);
                start += same;
                labels.push(label);
                ends.push(start);
            }
            if labels.is_empty() {
                continue;
            }
            let base = self.place(&labels)?;
            self.matcher.nodes[node as usize].base = base;
            for (&label, &end) in labels.iter().zip(&ends) {
                let child = base ^ u32::from(label);
                let (key, id) = keys[from];
                let token = (key.len() == depth + 1).then_some(id);
                let (fail, pops) = self.failure(node, label, token, depth + 1)?;
                self.matcher.nodes[child as usize] = Node { base: 0, check: node, fail, pops };
                queue.push_back((child, from, end, depth + 1));
                from = end;
            }
        }
        Ok(())
    }

    /// The failure link and pops of the child of `parent` by `label`.
    fn failure(
        &mut self,
        parent: u32,
        label: u8,
        token: Option<u32>,
        depth: usize,
    ) -> Result<(u32, u32), TooLarge> {
        if let Some(id) = token {
            let pops = self.pop(NONE, id, depth as u32)?;
            return Ok((self.matcher.continuation, pops));
        }
        // Not a token, so what is certain of the parent is certain here; then the label follows.
        let Node { mut fail, mut pops, .. } = self.matcher.nodes[parent as usize];
        while fail != STUCK {
            if let Some(next) = self.matcher.child(fail, label) {
                return Ok((next, pops));
            }
            pops = self.append(pops, fail)?;
            fail = self.matcher.fail(fail);
        }
        Ok((STUCK, pops))
    }

    /// The list `pops`, followed by the pops of `node`.
    fn append(&mut self, mut pops: u32, node: u32) -> Result<u32, TooLarge> {
        let mut list = core::mem::take(&mut self.list);
        list.extend(self.matcher.pops(node));
        while let Some((id, len)) = list.pop() {
            pops = self.pop(pops, id, len)?;
        }
        self.list = list;
        Ok(pops)
    }

    fn pop(&mut self, previous: u32, id: u32, len: u32) -> Result<u32, TooLarge> {
        let at = u32::try_from(self.matcher.pops.len()).map_err(|_| TooLarge)?;
        let start = if previous == NONE { 0 } else { self.matcher.pops[previous as usize].end };
        self.matcher.pops.push(Pop { previous, id, end: start + len });
        Ok(at)
    }

    /// Takes slots for children with these labels; returns their base.
    fn place(&mut self, labels: &[u8]) -> Result<u32, TooLarge> {
        let mut full = None;
        let mut found = None;
        for (at, (block, taken)) in self.open.iter_mut().enumerate() {
            let Some(low) = find_place(taken, labels) else {
                continue;
            };
            for label in labels {
                let slot = low ^ label;
                taken[usize::from(slot / 64)] |= 1 << (slot % 64);
            }
            full = taken.iter().all(|&word| word == u64::MAX).then_some(at);
            found = Some(*block * BLOCK as u32 + u32::from(low));
            break;
        }
        if let Some(at) = full {
            self.open.remove(at);
        }
        if let Some(base) = found {
            return Ok(base);
        }
        let nodes = &mut self.matcher.nodes;
        // The last block stays unused, so that no index equals a sentinel.
        if nodes.len() + 2 * BLOCK > u32::MAX as usize {
            return Err(TooLarge);
        }
        let block = (nodes.len() / BLOCK) as u32;
        let free = Node { base: 0, check: FREE, fail: STUCK, pops: NONE };
        nodes.resize(nodes.len() + BLOCK, free);
        if self.open.len() == OPEN_BLOCKS {
            self.open.remove(0);
        }
        self.open.push((block, [0; BLOCK / 64]));
        self.place(labels)
    }
}

/// The first base in a block at which the slots of all labels are free.
fn find_place(taken: &[u64; BLOCK / 64], labels: &[u8]) -> Option<u8> {
    let is_free = |slot: u8| taken[usize::from(slot / 64)] >> (slot % 64) & 1 == 0;
    let (&first, rest) = labels.split_first()?;
    for (word, &bits) in (0u8..).zip(taken) {
        let mut free = !bits;
        while free != 0 {
            let low = (word * 64 + free.trailing_zeros() as u8) ^ first;
            if rest.iter().all(|label| is_free(low ^ label)) {
                return Some(low);
            }
            free &= free - 1;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matcher(tokens: &[&str]) -> Matcher {
        Matcher::new(tokens.iter().zip(0u32..).map(|(t, id)| (t.as_bytes(), id)), b"##").unwrap()
    }

    #[test]
    fn every_token_is_walked_to_and_nothing_else() {
        let tokens = ["a", "abcd", "##b", "##bcd", "##", "##z"];
        let matcher = matcher(&tokens);
        let walk = |root, bytes: &str| {
            bytes.bytes().try_fold(root, |node, byte| matcher.child(node, byte))
        };
        for (token, id) in tokens.iter().zip(0u32..) {
            let node = walk(matcher.initial, token).unwrap();
            assert_eq!(matcher.pops(node).next().unwrap(), (id, token.len() as u32));
            assert_eq!(matcher.fail(node), matcher.continuation);
        }
        let z = walk(matcher.continuation, "z").unwrap();
        assert_eq!(matcher.pops(z).collect::<Vec<_>>(), [(5, 1)]);
        assert_eq!(walk(matcher.initial, "b"), None);
        assert_eq!(walk(matcher.continuation, "#"), None);
    }

    /// The trace of docs/algorithms/wordpiece.md (Song et al. 2021, figure 1).
    #[test]
    fn failure_links_of_the_worked_trace() {
        let tokens = ["a", "abcdx", "##b", "##c", "##cdy", "##dz"];
        let matcher = matcher(&tokens);
        let walk = |root, bytes: &str| {
            bytes.bytes().try_fold(root, |node, byte| matcher.child(node, byte)).unwrap()
        };
        let pops = |node| {
            let mut pops: Vec<u32> = matcher.pops(node).map(|(id, _)| id).collect();
            pops.reverse();
            pops
        };
        let abcd = walk(matcher.initial, "abcd");
        assert_eq!(pops(abcd), [0, 2]);
        assert_eq!(matcher.fail(abcd), walk(matcher.continuation, "cd"));
        let cd = walk(matcher.continuation, "cd");
        assert_eq!(pops(cd), [3]);
        assert_eq!(matcher.fail(cd), walk(matcher.continuation, "d"));
        let d = walk(matcher.continuation, "d");
        assert_eq!(pops(d), []);
        assert_eq!(matcher.fail(d), STUCK);
    }

    #[test]
    fn one_huge_token_takes_linear_memory() {
        let long = "a".repeat(200_000);
        let tokens = ["a", "##a", &long];
        let matcher = matcher(&tokens);
        assert!(matcher.memory() < 200_000 * 80, "{}", matcher.memory());
    }
}
