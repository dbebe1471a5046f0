//! Seed pieces: repeated substrings, from a suffix array.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

use tokenizer_core::{Observe, PieceRules, utf8};

use super::corpus::Corpus;
use super::error::{Kind, TrainError};
use super::pieces::Pieces;
use super::workers::Workers;
use super::{Round, UnigramTrainer, stop_if};

/// All characters of the alphabet, and the substrings of two characters or more that score best
/// by count times length in characters.
///
/// The candidates are the substrings that occur at least twice and cannot be made longer to the
/// right without occurring less often: the nodes of the suffix tree of all units, cut off at the
/// greatest length. Among equal scores the longer one (in bytes) comes first, then the lesser one.
///
/// There are no more than `room`, which is what an edge of a lattice can tell apart.
pub(super) fn seeds(
    trainer: &UnigramTrainer,
    corpus: &Corpus,
    target: usize,
    room: usize,
    workers: &Workers,
    observe: &mut dyn Observe<Round>,
) -> Result<Pieces, TrainError> {
    stop_if(observe.progress("seeds", 0, 3))?;
    let wanted = if target > corpus.alphabet.len() && trainer.max_piece_len > 1 {
        let wanted = trainer.seed_size;
        let wanted = wanted.unwrap_or_else(|| trainer.vocab_size.saturating_mul(8).max(100_000));
        wanted.min(room.saturating_sub(corpus.alphabet.len()))
    } else {
        0 // There is no room for more than the characters.
    };
    let mut seeds: Vec<(String, u64)> =
        corpus.alphabet.iter().map(|(&c, &count)| (c.into(), count)).collect();
    if wanted > 0 {
        let text = Text::new(corpus)?;
        stop_if(observe.progress("seeds", 1, 3))?;
        let found = candidates(&text, corpus, trainer, wanted, workers);
        stop_if(observe.progress("seeds", 2, 3))?;
        seeds.extend(found.into_iter().map(|seed| {
            let piece = seed.symbols(&text).iter().map(|&symbol| text.char(symbol)).collect();
            (piece, seed.score)
        }));
    }
    seeds.sort_unstable();
    stop_if(observe.progress("seeds", 3, 3))?;
    Ok(Pieces::from_weights(
        seeds.iter().map(|(piece, weight)| (piece.as_bytes(), *weight)),
        |piece| utf8::char_len(piece) == piece.len(),
    ))
}

/// All units as symbols: characters numbered by code point from 1; 0 ends a unit.
struct Text {
    symbols: Vec<u32>,
    /// By symbol position the unit it belongs to.
    units: Vec<u32>,
    /// By symbol, less 1, the character.
    chars: Vec<char>,
    /// How many bits a symbol takes.
    bits: u32,
}

impl Text {
    fn new(corpus: &Corpus) -> Result<Self, TrainError> {
        // A character has at least a byte, an end adds one.
        let most = corpus.bytes() as u64 + corpus.len() as u64;
        if most >= u64::from(u32::MAX) {
            return Err(TrainError::new(Kind::TooMuchText { chars: most }));
        }
        let chars: Vec<char> = corpus.alphabet.keys().copied().collect();
        let mut numbers = vec![0; chars.last().map_or(0, |&c| c as usize + 1)];
        for (i, &c) in chars.iter().enumerate() {
            numbers[c as usize] = i as u32 + 1;
        }
        let mut symbols = Vec::with_capacity(corpus.bytes() + corpus.len());
        let mut units = Vec::with_capacity(corpus.bytes() + corpus.len());
        for i in 0..corpus.len() {
            let (unit, _) = corpus.unit(i);
            let mut at = 0;
            while at < unit.len() {
                let (c, len) = utf8::decode(&unit[at..]);
                at += len;
                let c = c.expect("units are made of characters of the alphabet");
                symbols.push(numbers[c as usize]);
            }
            symbols.push(0);
            units.resize(symbols.len(), i as u32);
        }
        let bits = (u32::BITS - (chars.len() as u32).leading_zeros()).max(1);
        Ok(Self { symbols, units, chars, bits })
    }

    fn char(&self, symbol: u32) -> char {
        self.chars[symbol as usize - 1]
    }
}

/// All suffixes that begin with the same character, sorted by their first characters; suffixes that
/// agree in all of them are in order of position.
///
/// One character after the other: threads share them out, and only a part of the text is being
/// sorted at any time.
#[derive(Default)]
struct Suffixes {
    /// Where they begin, as symbol positions, with the last key.
    keyed: Vec<Keyed>,
    /// With how many characters each agrees with the one before it, up to the depth.
    common: Vec<u16>,
    ranges: Vec<(usize, usize, usize)>,
}

/// A suffix and the next few of its symbols, packed.
type Keyed = (u64, u32);

impl Suffixes {
    /// Sorts by a few symbols at a time: what fits 64 bits. Only suffixes that agree so far are
    /// looked at again, so nothing is ever compared twice, and `depth` bounds the work on text
    /// that repeats itself: `O(n depth / symbols a key)` and the sorting of integers.
    fn sort(&mut self, text: &Text, positions: &[u32], depth: usize) {
        let per_key = (64 / text.bits) as usize;
        let key = |position: u32, done: usize| -> u64 {
            let mut key = 0u64;
            let from = position as usize + done;
            let mut ended = false;
            for i in 0..per_key {
                let symbol = match ended {
                    true => 0,
                    false => text.symbols.get(from + i).copied().unwrap_or(0),
                };
                ended |= symbol == 0;
                key = key << text.bits | u64::from(symbol);
            }
            key
        };
        let Self { keyed, common, ranges } = self;
        keyed.clear();
        keyed.extend(positions.iter().map(|&position| (key(position, 0), position)));
        common.clear();
        common.resize(keyed.len(), 0);
        // Ranges of suffixes that agree in the first `done` symbols and have not ended there.
        ranges.push((0, keyed.len(), 0));
        while let Some((low, high, done)) = ranges.pop() {
            let range = &mut keyed[low..high];
            if done > 0 {
                for entry in range.iter_mut() {
                    entry.0 = key(entry.1, done);
                }
            }
            range.sort_unstable();
            let mut first = low;
            for i in low + 1..=high {
                let equal = i < high && keyed[i].0 == keyed[first].0;
                if !equal {
                    // keyed[first..i] agree in all symbols of this key.
                    let key = keyed[first].0;
                    let ended = key & ((1 << text.bits) - 1) == 0;
                    let agreed = done + symbols_in(key, text.bits, per_key);
                    common[first + 1..i].fill(agreed.min(depth) as u16);
                    if !ended && agreed < depth && i - first > 1 {
                        ranges.push((first, i, agreed));
                    }
                    if i < high {
                        let differ = (key ^ keyed[i].0) << (64 - text.bits * per_key as u32);
                        let agreed = done + (differ.leading_zeros() / text.bits) as usize;
                        common[i] = agreed.min(depth) as u16;
                    }
                    first = i;
                }
            }
        }
    }
}

/// How many symbols a key has before the end of the unit.
fn symbols_in(key: u64, bits: u32, per_key: usize) -> usize {
    if key == 0 { 0 } else { per_key - (key.trailing_zeros() / bits) as usize }
}

/// A candidate.
#[derive(Clone, Copy)]
struct Seed {
    /// Count times length in characters.
    score: u64,
    /// The length in bytes.
    len: u32,
    /// The length in characters.
    chars: u32,
    /// A symbol position where it occurs.
    position: u32,
}

impl Seed {
    fn symbols<'t>(&self, text: &'t Text) -> &'t [u32] {
        &text.symbols[self.position as usize..][..self.chars as usize]
    }

    /// Best first.
    fn order(&self, other: &Self, text: &Text) -> Ordering {
        // Symbols are in order of code point, and so are the bytes of UTF-8.
        (other.score, other.len)
            .cmp(&(self.score, self.len))
            .then_with(|| self.symbols(text).cmp(other.symbols(text)))
    }
}

/// The `wanted` best nodes of the suffix tree.
fn candidates(
    text: &Text,
    corpus: &Corpus,
    trainer: &UnigramTrainer,
    wanted: usize,
    workers: &Workers,
) -> Vec<Seed> {
    let depth = trainer.max_piece_len;
    // All positions by their symbol.
    let mut ends = vec![0u32; text.chars.len() + 1];
    for &symbol in &text.symbols {
        ends[symbol as usize] += 1;
    }
    let mut sum = 0;
    for end in &mut ends[1..] {
        sum += *end;
        *end = sum - *end; // For now, where they begin.
    }
    let mut positions = vec![0u32; sum as usize];
    for (position, &symbol) in text.symbols.iter().enumerate().filter(|(_, symbol)| **symbol > 0) {
        let next = &mut ends[symbol as usize];
        positions[*next as usize] = position as u32;
        *next += 1;
    }
    let mut groups: Vec<&[u32]> = Vec::with_capacity(text.chars.len());
    let mut start = 0;
    for &end in &ends[1..] {
        groups.push(&positions[start..end as usize]);
        start = end as usize;
    }
    // The longest first, so that threads end at about the same time.
    groups.sort_by_key(|group| core::cmp::Reverse(group.len()));
    let mut states: Vec<(Best<'_>, Suffixes)> = (0..workers.threads())
        .map(|_| (Best::new(text, wanted, trainer.rules), Suffixes::default()))
        .collect();
    workers.run(&mut states, 0..groups.len(), 1, |(best, suffixes), range| {
        for group in &groups[range] {
            suffixes.sort(text, group, depth);
            walk(text, corpus, suffixes, depth, best);
        }
    });
    let mut all = Best::new(text, wanted, trainer.rules);
    for (best, _) in states {
        all.seeds.extend(best.seeds);
    }
    all.finish()
}

/// Finds the nodes of a suffix tree by a walk over the sorted suffixes with a stack (Abouelhoda,
/// Kurtz & Ohlebusch 2004).
fn walk(text: &Text, corpus: &Corpus, suffixes: &Suffixes, max_depth: usize, best: &mut Best<'_>) {
    let mut stack: Vec<Node> = Vec::new();
    for (&(_, position), &common) in suffixes.keyed.iter().zip(&suffixes.common) {
        let common = usize::from(common);
        let mut closed: Option<Node> = None;
        while let Some(mut node) = stack.pop_if(|node| node.depth > common) {
            node.absorb(closed);
            best.take(&node);
            closed = Some(node);
        }
        if let Some(closed) = closed
            && common > 0
        {
            if stack.last().is_none_or(|node| node.depth < common) {
                stack.push(Node { depth: common, count: 0, position: closed.position });
            }
            if let Some(node) = stack.last_mut() {
                node.absorb(Some(closed));
            }
        }
        // The suffix itself is a node: its whole text, or as much of it as may be a piece.
        let (_, count) = corpus.unit(text.units[position as usize] as usize);
        let rest = text.symbols[position as usize..].iter().take(max_depth);
        let depth = rest.take_while(|&&symbol| symbol != 0).count();
        let leaf = Node { depth, count, position };
        match stack.last_mut() {
            Some(node) if node.depth == depth => node.absorb(Some(leaf)),
            _ => stack.push(leaf),
        }
    }
    let mut closed = None;
    while let Some(mut node) = stack.pop() {
        node.absorb(closed);
        best.take(&node);
        closed = Some(node);
    }
}

/// A node of the suffix tree: a string that suffixes begin with.
#[derive(Clone, Copy)]
struct Node {
    /// Its length in characters.
    depth: usize,
    /// How often it occurs.
    count: u64,
    /// A symbol position where it does.
    position: u32,
}

impl Node {
    fn absorb(&mut self, child: Option<Self>) {
        self.count = self.count.saturating_add(child.map_or(0, |child| child.count));
    }
}

/// The best candidates so far, and some more.
struct Best<'t> {
    text: &'t Text,
    seeds: Vec<Seed>,
    wanted: usize,
    /// Nothing under this score can be among the best.
    bar: u64,
    rules: Option<PieceRules>,
    piece: String,
}

impl<'t> Best<'t> {
    fn new(text: &'t Text, wanted: usize, rules: Option<PieceRules>) -> Self {
        Self { text, seeds: Vec::new(), wanted, bar: 0, rules, piece: String::new() }
    }

    fn take(&mut self, node: &Node) {
        let score = node.count.saturating_mul(node.depth as u64);
        if node.depth < 2 || node.count < 2 || score < self.bar {
            return;
        }
        let mut seed = Seed { score, len: 0, chars: node.depth as u32, position: node.position };
        self.piece.clear();
        self.piece.extend(seed.symbols(self.text).iter().map(|&symbol| self.text.char(symbol)));
        if self.rules.is_some_and(|rules| !rules.allow(&self.piece)) {
            return;
        }
        seed.len = self.piece.len() as u32;
        self.seeds.push(seed);
        if self.seeds.len() >= self.wanted.saturating_mul(2).max(1024) {
            let text = self.text;
            let (_, worst, _) =
                self.seeds.select_nth_unstable_by(self.wanted - 1, |a, b| a.order(b, text));
            self.bar = worst.score;
            self.seeds.truncate(self.wanted);
        }
    }

    fn finish(mut self) -> Vec<Seed> {
        let text = self.text;
        self.seeds.sort_unstable_by(|a, b| a.order(b, text));
        self.seeds.truncate(self.wanted);
        self.seeds
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;
    use tokenizer_core::{PieceCounts, Silent};

    use super::*;
    use crate::train::Report;

    /// How often, what follows, and whether an occurrence cannot be made longer.
    type Occurrences = (u64, BTreeSet<Option<char>>, bool);

    /// Every candidate with its score, by looking at every substring.
    fn naive(counts: &PieceCounts, max_len: usize) -> BTreeMap<Vec<u8>, u64> {
        let mut occurrences: BTreeMap<Vec<u8>, Occurrences> = BTreeMap::new();
        for counted in counts.iter() {
            let chars: Vec<char> = core::str::from_utf8(counted.piece).unwrap().chars().collect();
            for start in 0..chars.len() {
                for end in start + 2..=chars.len().min(start + max_len) {
                    let text: String = chars[start..end].iter().collect();
                    let entry = occurrences.entry(text.into_bytes()).or_default();
                    entry.0 += counted.count;
                    entry.1.insert(chars.get(end).copied());
                    entry.2 |= end == chars.len() || end - start == max_len;
                }
            }
        }
        let is_candidate =
            |(count, followers, ends): &Occurrences| *count >= 2 && (*ends || followers.len() > 1);
        let candidates = occurrences.into_iter().filter(|entry| is_candidate(&entry.1));
        candidates
            .map(|(bytes, (count, ..))| {
                let len = utf8::chars(&bytes).count() as u64;
                (bytes, count * len)
            })
            .collect()
    }

    fn found(counts: &PieceCounts, max_len: usize, wanted: usize) -> Vec<(Vec<u8>, u64)> {
        let mut trainer = UnigramTrainer::new(100_000);
        trainer.special_tokens.clear();
        trainer.coverage = 1.0;
        trainer.max_piece_len = max_len;
        let corpus = Corpus::new(&trainer, counts, &mut Silent, &mut Report::default()).unwrap();
        let text = Text::new(&corpus).unwrap();
        let workers = Workers::new(wanted % 3 + 1);
        candidates(&text, &corpus, &trainer, wanted, &workers)
            .iter()
            .map(|seed| {
                let piece: String = seed.symbols(&text).iter().map(|&s| text.char(s)).collect();
                (piece.into_bytes(), seed.score)
            })
            .collect()
    }

    proptest! {
        #[test]
        fn seeds_are_the_repeated_substrings_that_cannot_grow(
            words in prop::collection::vec(("[abé]{1,12}", 1u64..4), 0..12),
            max_len in 2usize..14,
            wanted in 1usize..30,
        ) {
            let counts = PieceCounts::from_pairs(words).unwrap();
            let naive = naive(&counts, max_len);
            let all = found(&counts, max_len, usize::MAX / 4);
            prop_assert_eq!(&all.iter().cloned().collect::<BTreeMap<_, _>>(), &naive);
            prop_assert_eq!(all.len(), naive.len());
            let in_order = all.is_sorted_by(|a, b| (b.1, b.0.len(), &a.0) < (a.1, a.0.len(), &b.0));
            prop_assert!(in_order);
            let best = found(&counts, max_len, wanted);
            prop_assert_eq!(&best[..], &all[..wanted.min(all.len())]);
        }
    }

    #[test]
    fn large_alphabets_pack_fewer_symbols() {
        // 70,000 characters need 17 bits, so that a key holds three.
        let long: String = (0x4E00..0x4E00 + 20_000)
            .chain(0x20000..0x20000 + 50_000)
            .filter_map(char::from_u32)
            .collect();
        let tail: String = long.chars().skip(1000).take(6).collect();
        let counts = PieceCounts::from_pairs([(long.as_str(), 1), (tail.as_str(), 2)]).unwrap();
        let seeds = found(&counts, 16, 1_000_000);
        assert_eq!(seeds[0], (tail.clone().into_bytes(), 18));
        assert_eq!(seeds.len(), 5);
    }

    #[test]
    fn one_letter_repeated() {
        let counts = PieceCounts::from_pairs([("a".repeat(100_000), 1)]).unwrap();
        let seeds = found(&counts, 16, 1_000_000);
        assert_eq!(seeds.len(), 15);
        // Six units of 16,384 and one of 1,696 letters.
        assert_eq!(seeds[0], ("a".repeat(16).into_bytes(), 16 * 99_895));
    }
}
