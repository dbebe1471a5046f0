//! Merging of short pieces in small numbers: what runs when a table of known pieces misses.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use hashbrown::HashSet;
use tokenizer_core::{Array, Token, TokenId};

use crate::engine::{Blind, Node, Scratch};
use crate::image::{ImageError, Reader, Writer};
use crate::longest::PairFilter;
use crate::pairs::{NarrowTable, PairTable, Symbol};

/// The merges of a model whose symbols begin as single bytes, renumbered so that a symbol's number
/// is its rank: first all symbols that no merge makes, then the products in order of rank. Then a
/// pair and what it becomes fit 8 bytes, and a rank and a place 4.
///
/// Exists where each rank makes one product and each product has one rank.
#[derive(Clone)]
pub(crate) struct Compact {
    /// What two bytes become, for the pairs that a piece begins with.
    bytes: Array<Entry>,
    /// The number of each byte.
    units: Box<[u32; 256]>,
    pairs: Arc<NarrowTable>,
    /// The token of each number; `None` where numbers are ids.
    tokens: Option<Box<[TokenId]>>,
}

/// The longest piece that is merged here.
pub(crate) const LONGEST: usize = 32;

/// A product's number, shifted to leave room for a place among [`LONGEST`]. Pairs that do not merge have
/// the greatest number that is not negative, whatever the place.
type Entry = u32;
const NEVER: Entry = i32::MAX as Entry;
const PLACE_BITS: u32 = LONGEST.trailing_zeros();

/// A merge and the number that goes with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RankedMerge {
    pub(crate) rank: u32,
    pub(crate) left: Symbol,
    pub(crate) right: Symbol,
    pub(crate) product: Symbol,
}

impl Compact {
    /// From all merges, in order of rank; `units` are the symbols of the bytes. `None` where ranks
    /// or products repeat or there are too many of them.
    pub(crate) fn new(
        units: &[Symbol; 256],
        n_symbols: usize,
        merges: impl Iterator<Item = RankedMerge> + Clone,
    ) -> Option<Self> {
        let Renumbered { is_product, n_merges, numbers, tokens } =
            Renumbered::of(n_symbols, merges.clone())?;
        if units.iter().any(|&unit| is_product[unit as usize]) {
            return None;
        }
        let number = |symbol: Symbol| {
            numbers.as_ref().map_or(symbol, |numbers: &Vec<u32>| numbers[symbol as usize])
        };
        let units = units.map(number);
        let merges =
            merges.map(|merge| (number(merge.left), number(merge.right), number(merge.product)));
        Self::of_numbers(units, n_symbols, n_merges, merges, tokens)
    }

    /// As [`new`](Self::new), of up to `n_merges` merges (left, right, product) whose products ascend, are
    /// their ranks, and are no units.
    pub(crate) fn of_ranks(
        units: &[Symbol; 256],
        n_symbols: usize,
        n_merges: usize,
        merges: impl Iterator<Item = (u32, u32, u32)>,
    ) -> Option<Self> {
        Self::of_numbers(*units, n_symbols, n_merges, merges, None)
    }

    fn of_numbers(
        units: [u32; 256],
        n_symbols: usize,
        n_merges: usize,
        merges: impl Iterator<Item = (u32, u32, u32)>,
        tokens: Option<Box<[TokenId]>>,
    ) -> Option<Self> {
        let last_unit = units.iter().max().map_or(0, |&unit| unit as usize);
        let mut unit_of = vec![u16::MAX; n_symbols.min(last_unit + 1).min(1 << 16)];
        for (&unit, byte) in units.iter().zip(0..) {
            if let Some(slot) = unit_of.get_mut(unit as usize) {
                *slot = byte;
            }
        }
        let unit_of = |number: u32| unit_of.get(number as usize).filter(|&&b| b != u16::MAX);
        let mut bytes = vec![NEVER; 1 << 16];
        let mut pairs = NarrowTable::new(n_symbols, n_merges)?;
        merges.for_each(|(left, right, product)| {
            if let (Some(&left), Some(&right)) = (unit_of(left), unit_of(right)) {
                bytes[usize::from(left) << 8 | usize::from(right)] = product << PLACE_BITS;
            }
            pairs.insert(left, right, product);
        });
        // A byte numbered beyond the table would be missed above.
        if units.iter().any(|&unit| unit_of(unit).is_none()) {
            return None;
        }
        Some(Self { bytes: bytes.into(), units: units.into(), pairs: Arc::new(pairs), tokens })
    }

    /// Writes what [`read`](Self::read) reads: all of it where numbers are ids.
    pub(crate) fn write(&self, image: &mut Writer) {
        image.array(&self.units[..]);
        image.array(&self.bytes);
        self.pairs.write(image);
    }

    pub(crate) fn read(image: &mut Reader) -> Result<Self, ImageError> {
        let units = Box::new(image.numbers()?);
        let bytes: Array<Entry> = image.array()?;
        image.check(bytes.len() == 1 << 16, "pairs of bytes")?;
        Ok(Self { bytes, units, pairs: Arc::new(NarrowTable::read(image)?), tokens: None })
    }

    /// The merges by token ids, where those are the numbers.
    pub(crate) fn pairs_of_ids(&self) -> Option<Arc<NarrowTable>> {
        self.tokens.is_none().then(|| Arc::clone(&self.pairs))
    }

    /// The merges by number.
    #[inline(always)]
    pub(crate) fn pairs(&self) -> &NarrowTable {
        &self.pairs
    }

    /// The number of each byte.
    #[inline(always)]
    pub(crate) fn units(&self) -> &[u32; 256] {
        &self.units
    }

    /// Whether numbers are ids.
    #[inline]
    pub(crate) fn ids_are_numbers(&self) -> bool {
        self.tokens.is_none()
    }

    /// Gives tokens with numbers for ids their ids.
    #[inline]
    pub(crate) fn name(&self, numbered: &mut [Token]) {
        if let Some(tokens) = &self.tokens {
            for token in numbered {
                token.id = tokens[token.id.index()];
            }
        }
    }

    /// The token of a number.
    #[inline(always)]
    pub(crate) fn token(&self, number: u32) -> TokenId {
        match &self.tokens {
            None => TokenId(number),
            Some(tokens) => tokens[number as usize],
        }
    }

    /// Appends the tokens of a piece of 1 to [`LONGEST`] bytes. A filter of the pairs, where there is one,
    /// is nearer than the pairs.
    #[inline]
    pub(crate) fn merge(&self, filter: Option<&PairFilter>, piece: &[u8], out: &mut Vec<Token>) {
        let mut merging = Merging::EMPTY;
        merging.start(self, piece);
        match filter {
            Some(filter) => merging.merge_all(|left, right| {
                if filter.may_merge(left, right) { self.pairs.get(left, right) } else { None }
            }),
            None => merging.merge_all(|left, right| self.pairs.get(left, right)),
        }
        merging.give_out(|number| self.token(number), out);
    }
}

/// What [`Compact`] has of the merges, for models whose symbols begin as anything: characters, bytes that
/// stand for unknown ones, tokens that users defined.
///
/// Holds the merges in front of the first whose rank or product another one has, too; exists where there are few
/// behind. Those are done when no other is left, as their ranks are greater. So where the others leave none of
/// their pairs side by side, what is left is what all merges leave.
#[derive(Clone)]
pub(crate) struct Numbered {
    pairs: PairTable,
    /// The pairs of the merges that are not among `pairs`, by number.
    late: HashSet<(u32, u32)>,
    /// A bit for each number that such a pair begins with.
    late_lefts: Box<[u64]>,
    filter: PairFilter,
    /// The number of each symbol.
    numbers: Box<[u32]>,
    /// The symbol of each number.
    symbols: Box<[TokenId]>,
}

/// So many merges may be late. Each of their pairs that comes up has a window merged again.
const MOST_LATE: usize = 64;

impl Numbered {
    /// From all merges, in order of rank, of symbols below `n_symbols`.
    pub(crate) fn new(
        n_symbols: usize,
        merges: impl Iterator<Item = RankedMerge> + Clone,
    ) -> Option<Self> {
        let n_early = count_own(n_symbols, merges.clone());
        if merges.clone().skip(n_early).nth(MOST_LATE).is_some() {
            return None;
        }
        let early = merges.clone().take(n_early);
        let renumbered = Renumbered::of(n_symbols, early.clone())?;
        let numbers = renumbered.numbers.unwrap_or_else(|| (0..n_symbols as u32).collect());
        let symbols: Option<Box<[TokenId]>> = renumbered.tokens;
        let symbols = symbols.unwrap_or_else(|| (0..n_symbols as u32).map(TokenId).collect());
        let mut pairs = NarrowTable::new(n_symbols, renumbered.n_merges)?;
        let number = |symbol: Symbol| numbers[symbol as usize];
        let mut filter = PairFilter::new(n_symbols as u32);
        early.for_each(|RankedMerge { left, right, product, .. }| {
            pairs.insert(number(left), number(right), number(product));
            filter.insert_unlimited(number(left), number(right));
        });
        let late = merges.skip(n_early).map(|merge| (number(merge.left), number(merge.right)));
        let late: HashSet<(u32, u32)> = late.collect();
        let mut late_lefts = vec![0; n_symbols.div_ceil(64)];
        for (left, _) in &late {
            late_lefts[*left as usize / 64] |= 1 << (left % 64);
        }
        let pairs = PairTable::Narrow(Arc::new(pairs));
        let (late_lefts, numbers) = (late_lefts.into(), numbers.into());
        Some(Self { pairs, late, late_lefts, filter, numbers, symbols })
    }

    /// Merges numbers in place, however many. `pairs` are all merges of the model, by symbol.
    pub(crate) fn merge_all(
        &self,
        pairs: &PairTable,
        scratch: &mut Scratch,
        nodes: &mut Vec<Node>,
    ) {
        if self.late.is_empty() {
            scratch.merge_all(&self.pairs, nodes, &mut Blind);
            return;
        }
        nodes.iter_mut().for_each(|node| node.symbol = self.symbol(node.symbol));
        scratch.merge_all(pairs, nodes, &mut Blind);
        nodes.iter_mut().for_each(|node| node.symbol = self.number(node.symbol));
    }

    /// The number of a symbol. One that merges with nothing keeps its own.
    #[inline]
    pub(crate) fn number(&self, symbol: Symbol) -> u32 {
        self.numbers.get(symbol as usize).copied().unwrap_or(symbol)
    }

    /// The symbol of a number.
    #[inline]
    pub(crate) fn symbol(&self, number: u32) -> Symbol {
        self.symbols.get(number as usize).map_or(number, |symbol| symbol.0)
    }

    /// Appends what merging leaves of 1 to [`LONGEST`] numbers: again numbers, each with how many it was
    /// made of. `false` if some of them are a pair of a late merge: then the merging is not done.
    #[inline]
    pub(crate) fn merge(&self, numbers: &[Node], out: &mut Vec<Token>) -> bool {
        let PairTable::Narrow(pairs) = &self.pairs else { unreachable!("made by `new`") };
        let get = |left, right| {
            if self.filter.may_merge(left, right) { pairs.get(left, right) } else { None }
        };
        let mut merging = Merging::EMPTY;
        merging.start_numbers(numbers, get);
        merging.merge_all(get);
        let first = out.len();
        merging.give_out(TokenId, out);
        !out[first..].windows(2).any(|pair| self.is_late(pair[0].id.0, pair[1].id.0))
    }

    #[inline]
    fn is_late(&self, left: u32, right: u32) -> bool {
        let word = self.late_lefts.get(left as usize / 64);
        word.is_some_and(|word| word >> (left % 64) & 1 == 1) && self.late.contains(&(left, right))
    }
}

/// How many merges, in order of rank, come before the first whose rank or product another one of them has.
fn count_own(n_symbols: usize, merges: impl Iterator<Item = RankedMerge>) -> usize {
    let mut is_product = vec![false; n_symbols];
    let mut last = None;
    for (at, merge) in merges.enumerate() {
        if last == Some(merge.rank) {
            return at - 1;
        }
        if core::mem::replace(&mut is_product[merge.product as usize], true) {
            return at;
        }
        last = Some(merge.rank);
    }
    usize::MAX
}

/// Numbers for symbols: first those that no merge makes, then the products in order of rank.
struct Renumbered {
    is_product: Vec<bool>,
    n_merges: usize,
    /// The number of each symbol and the symbol of each number; `None` where symbols are such numbers.
    numbers: Option<Vec<u32>>,
    tokens: Option<Box<[TokenId]>>,
}

impl Renumbered {
    /// From all merges in order of rank. `None` where ranks or products repeat.
    fn of(n_symbols: usize, merges: impl Iterator<Item = RankedMerge> + Clone) -> Option<Self> {
        let mut is_product = vec![false; n_symbols];
        // Products that ascend with their ranks are their ranks.
        let mut are_ranks = true;
        let mut n_merges = 0;
        let mut last: Option<RankedMerge> = None;
        for merge in merges.clone() {
            if last.is_some_and(|last| last.rank >= merge.rank)
                || is_product[merge.product as usize]
            {
                return None;
            }
            is_product[merge.product as usize] = true;
            are_ranks &= last.is_none_or(|last| last.product < merge.product);
            last = Some(merge);
            n_merges += 1;
        }
        if are_ranks {
            return Some(Self { is_product, n_merges, numbers: None, tokens: None });
        }
        let mut tokens: Vec<TokenId> =
            (0..n_symbols as u32).filter(|&s| !is_product[s as usize]).map(TokenId).collect();
        tokens.extend(merges.map(|merge| TokenId(merge.product)));
        let mut numbers = vec![0; n_symbols];
        for (&token, number) in tokens.iter().zip(0u32..) {
            numbers[token.index()] = number;
        }
        Some(Self { is_product, n_merges, numbers: Some(numbers), tokens: Some(tokens.into()) })
    }
}

/// A piece in the making.
///
/// Symbols stay where their first byte is; a set of bits says which places still begin one, so
/// nothing moves when two merge, and lengths follow from the places in the end.
struct Merging {
    symbols: [u32; LONGEST],
    /// The entry of the pair that begins at a place, and the place: the least of them is that of
    /// lowest rank, and of equal ones the leftmost.
    entries: [Entry; LONGEST],
    begins: u64,
    len: usize,
}

/// Where two symbols merged, and the symbols around: the one before and the one behind, at `NONE`
/// where there is none.
#[derive(Clone, Copy)]
struct Merged {
    before: usize,
    at: usize,
    behind: usize,
}

const NONE: usize = usize::MAX;

impl Merging {
    const EMPTY: Self =
        Self { symbols: [0; LONGEST], entries: [NEVER; LONGEST], begins: 0, len: 0 };

    #[inline(always)]
    fn start(&mut self, compact: &Compact, piece: &[u8]) {
        assert!(piece.len().wrapping_sub(1) < LONGEST, "a short piece");
        for (symbol, &byte) in self.symbols.iter_mut().zip(piece) {
            *symbol = compact.units[usize::from(byte)];
        }
        for ((entry, pair), place) in self.entries.iter_mut().zip(piece.windows(2)).zip(0..) {
            *entry = compact.bytes[usize::from(pair[0]) << 8 | usize::from(pair[1])] | place;
        }
        self.begins = u64::MAX >> (64 - piece.len());
        self.len = piece.len();
    }

    #[inline(always)]
    fn start_numbers(&mut self, numbers: &[Node], pairs: impl Fn(u32, u32) -> Option<u32>) {
        assert!(numbers.len().wrapping_sub(1) < LONGEST, "a few numbers");
        for (symbol, node) in self.symbols.iter_mut().zip(numbers) {
            *symbol = node.symbol;
        }
        for ((at, slot), pair) in self.entries.iter_mut().enumerate().zip(numbers.windows(2)) {
            *slot = entry(pairs(pair[0].symbol, pair[1].symbol), at);
        }
        self.begins = u64::MAX >> (64 - numbers.len());
        self.len = numbers.len();
    }

    #[inline(always)]
    fn merge_all(&mut self, pairs: impl Fn(u32, u32) -> Option<u32>) {
        while let Some(merged) = self.merge_next() {
            self.look_up(&pairs, merged);
        }
    }

    /// Merges the pair of lowest rank; its new neighbours are to be looked up then.
    #[inline(always)]
    fn merge_next(&mut self) -> Option<Merged> {
        let least = least(&self.entries, self.len);
        if least == NEVER {
            return None;
        }
        let at = (least & (LONGEST as u32 - 1)) as usize;
        let behind = self.begins & (u64::MAX << at << 1);
        let right = behind.trailing_zeros() as usize % LONGEST;
        self.begins &= !(1 << right);
        self.symbols[at] = least >> PLACE_BITS;
        self.entries[right] = NEVER;
        let behind = behind & self.begins;
        let before = self.begins & ((1 << at) - 1);
        Some(Merged {
            before: before.checked_ilog2().map_or(NONE, |place| place as usize),
            at,
            behind: if behind == 0 { NONE } else { behind.trailing_zeros() as usize },
        })
    }

    #[inline(always)]
    fn look_up(&mut self, pairs: impl Fn(u32, u32) -> Option<u32>, merged: Merged) {
        let Merged { before, at, behind } = merged;
        let product = self.symbols[at];
        self.entries[at] = match self.symbols.get(behind) {
            Some(&symbol) => entry(pairs(product, symbol), at),
            None => NEVER,
        };
        if let Some(&symbol) = self.symbols.get(before) {
            self.entries[before] = entry(pairs(symbol, product), before);
        }
    }

    #[inline(always)]
    fn give_out(&self, token: impl Fn(u32) -> TokenId, out: &mut Vec<Token>) {
        let mut begins = self.begins;
        while begins != 0 {
            let at = begins.trailing_zeros() as usize % LONGEST;
            begins &= begins - 1;
            let end = if begins == 0 { self.len } else { begins.trailing_zeros() as usize };
            out.push(Token { id: token(self.symbols[at]), len: (end - at) as u32 });
        }
    }
}

/// The entry of what two numbers become at a place.
#[inline(always)]
fn entry(product: Option<u32>, place: usize) -> Entry {
    match product {
        Some(product) => product << PLACE_BITS | place as u32,
        None => NEVER,
    }
}

/// The least of the first `n` entries; those behind are [`NEVER`].
#[inline(always)]
fn least(entries: &[Entry; LONGEST], n: usize) -> Entry {
    let (eights, _) = entries.as_chunks::<8>();
    // Signed, since every x86-64 compares signed numbers four at a time.
    let mut least = [NEVER as i32; 8];
    for eight in &eights[..n.div_ceil(8).min(4)] {
        for (least, &entry) in least.iter_mut().zip(eight) {
            *least = (*least).min(entry as i32);
        }
    }
    least.into_iter().fold(NEVER as i32, i32::min) as Entry
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merges(list: &[(u32, u32, u32, u32)]) -> Vec<RankedMerge> {
        let merge = |&(rank, left, right, product)| RankedMerge { rank, left, right, product };
        list.iter().map(merge).collect()
    }

    #[test]
    fn only_ranks_that_name_products_are_taken() {
        let units = core::array::from_fn(|byte| byte as u32);
        let check = |list: &[(u32, u32, u32, u32)], fits: bool| {
            let found = Compact::new(&units, 300, merges(list).into_iter());
            assert_eq!(found.is_some(), fits, "{list:?}");
        };
        check(&[], true);
        check(&[(0, 97, 98, 256), (5, 256, 97, 257)], true);
        check(&[(0, 97, 98, 257), (1, 257, 97, 256)], true); // Renumbered.
        check(&[(0, 97, 98, 256), (0, 98, 98, 257)], false); // One rank, two products.
        check(&[(0, 97, 98, 256), (1, 98, 98, 256)], false); // One product, two ranks.
        check(&[(0, 97, 98, 99)], false); // A unit is made.
    }

    #[test]
    fn products_come_out_as_tokens() {
        let units = core::array::from_fn(|byte| byte as u32);
        let list = merges(&[(3, 98, 99, 257), (4, 97, 257, 256), (9, 256, 256, 299)]);
        let compact = Compact::new(&units, 300, list.into_iter()).unwrap();
        let mut out = Vec::new();
        compact.merge(None, b"abcabcbc", &mut out);
        let token = |id, len| Token { id: TokenId(id), len };
        assert_eq!(out, [token(299, 6), token(257, 2)]);
    }
}
