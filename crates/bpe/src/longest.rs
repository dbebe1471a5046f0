//! Encoding by longest tokens first: what runs when nothing is remembered of a piece.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use piece_table::{Key, hash_bytes, prefetch};
use tokenizer_core::{Array, Span, Token, TokenId, Vocab};

use crate::compact::Compact;
use crate::image::{ImageError, Reader, Writer};
use crate::pairs::NarrowTable;

/// Finds the encoding of a piece from the left, a token at a time, without merging.
///
/// Tokens are the encoding of their text if and only if each is the encoding of its own and each two
/// neighbours are the encoding of theirs (Berglund & van der Merwe 2023, Formalizing BPE
/// Tokenization, <https://arxiv.org/abs/2309.08715>). So any way through a piece from neighbour to
/// neighbour is its encoding, however it was found. The longest token first is the right one most of
/// the time; where its neighbour forbids it, a shorter one is tried (the search of van Antwerpen
/// and Neubeck 2024, crate `bpe`).
///
/// Exists where products have greater numbers than their parts, so that merges happen in order of
/// number.
///
/// # Cost
///
/// A token of up to 15 bytes: filters for which lengths a token can have that begins as the text does, a
/// look or two into a table, and the test of two neighbours, which undoes merges on both sides of
/// their border, five or so. Memory for n tokens: about 36 n bytes and 0.6 MB.
#[derive(Clone)]
pub(crate) struct Longest {
    finder: Finder,
    /// The left and the right part that a product was made of; zeros where a number is no product.
    parts: Array<[u32; 2]>,
    /// All products have this number or a greater one, all units a lesser one.
    first_product: u32,
    crossing: PairFilter,
    floors: Floors,
    /// The ids of the tokens that are whole pieces only; as numbers they follow the others.
    alone: Array<u32>,
    /// Those of them that have no key, in order of their texts.
    long_alone: Array<u32>,
}

/// So many tokens of a piece are guessed.
const GUESSED: usize = 8;

/// What the first tokens of a piece may be, with numbers for ids.
#[derive(Clone, Copy)]
pub(crate) struct Guess {
    start: usize,
    end: usize,
    tokens: [Token; GUESSED],
    n: usize,
    /// The end of the tokens, what begins there, and the lengths that a token may have there.
    at: usize,
    key: Option<Key>,
    lens: u32,
    /// The hash of the longest of those.
    hash: u64,
}

impl Guess {
    /// Nothing is known of a piece.
    #[inline]
    pub(crate) fn new(start: usize, end: usize) -> Self {
        let tokens = [Token { id: TokenId(0), len: 0 }; GUESSED];
        Self { start, end, tokens, n: 0, at: start, key: None, lens: 0, hash: 0 }
    }
}

impl Longest {
    /// From the merges; `alone` are the tokens that merging does not make, but that pieces of their text
    /// are. `None` where merges do not happen in order of number, or different tokens have the same
    /// text.
    pub(crate) fn new<'t>(
        compact: &Compact,
        vocab: &'t Vocab,
        alone: impl Iterator<Item = (TokenId, &'t [u8])>,
    ) -> Option<Self> {
        let pairs = compact.pairs();
        let n_numbers = pairs.max_product().max(*compact.units().iter().max()?) as usize + 1;
        // One more, where the parts of free slots go.
        let mut parts = vec![[0; 2]; n_numbers + 1];
        let (mut first_product, mut n_products, mut ascend) = (u32::MAX, 0, true);
        for (left, right, product) in pairs.slots() {
            ascend &= product > left.max(right);
            first_product = first_product.min(product);
            n_products += usize::from((product as usize) < n_numbers);
            parts[n_numbers.min(product as usize)] = [left, right];
        }
        parts.truncate(n_numbers);
        if !ascend || compact.units().iter().any(|&unit| unit >= first_product) {
            return None;
        }
        let mut crossing = PairFilter::new(pairs.max_product());
        let alone: Vec<_> = alone.collect();
        let mut finder = Finder::new(n_numbers, n_products + 256, alone.len());
        // The numbers of tokens without a key, and where their texts lie.
        let mut longer = Vec::new();
        let mut floors = Floors::new();
        let texts = vocab.all_bytes();
        for (&unit, byte) in compact.units().iter().zip(0..=u8::MAX) {
            finder.insert(&[byte], Span::new(0, 1), unit)?;
        }
        // In order of number, so that what belongs to a number is written from front to back.
        for (&[left, right], number) in parts.iter().zip(0..).skip(first_product as usize) {
            // Two of the unit 0 are a product like any other.
            if left | right == 0 && pairs.get(0, 0) != Some(number) {
                continue;
            }
            crossing.insert(left, right, number);
            let text = vocab.span(compact.token(number))?;
            let border = text.start + vocab.token_len(compact.token(left))?;
            let &[before, behind] = texts.get(border.checked_sub(1)?..)?.first_chunk()?;
            floors.insert(before, behind, number);
            if text.len() > Key::MAX_LEN {
                longer.push((number, text));
            }
            finder.insert(texts, text, number)?;
        }
        finder.longer = LongTokens::new(texts, &longer)?;
        let mut long_alone = Vec::new();
        for (&(id, text), number) in alone.iter().zip(n_numbers as u32..) {
            match Key::new(text) {
                Some(key) => finder.insert_key(key, number)?,
                None => long_alone.push((text, id.0)),
            }
        }
        long_alone.sort_unstable();
        let ids = |(_, id): (&[u8], u32)| id;
        let long_alone: Vec<u32> = long_alone.into_iter().map(ids).collect();
        let alone: Vec<u32> = alone.into_iter().map(|(id, _)| id.0).collect();
        let (alone, long_alone) = (alone.into(), long_alone.into());
        let parts = parts.into();
        Some(Self { finder, parts, first_product, crossing, floors, alone, long_alone })
    }

    pub(crate) fn write(&self, image: &mut Writer) {
        let Self { finder, parts, first_product, crossing, floors, alone, long_alone } = self;
        image.array(&[*first_product]);
        image.array(parts);
        image.array(alone);
        image.array(long_alone);
        image.array(&floors.logs);
        crossing.write(image);
        finder.write(image);
    }

    pub(crate) fn read(image: &mut Reader) -> Result<Self, ImageError> {
        let [first_product] = image.numbers()?;
        let (parts, alone, long_alone) = (image.array()?, image.array()?, image.array()?);
        let floors = Floors { logs: image.array()? };
        let crossing = PairFilter::read(image)?;
        let finder = Finder::read(image)?;
        image.check(floors.logs.len() == 1 << 16, "floors")?;
        let n_numbers = parts.len() + alone.len();
        image.check(finder.n_numbers as usize == parts.len(), "parts")?;
        image.check(finder.keys.len() == n_numbers, "keys")?;
        Ok(Self { finder, parts, first_product, crossing, floors, alone, long_alone })
    }

    /// The pairs that merge, and a few that do not.
    #[inline(always)]
    pub(crate) fn crossing(&self) -> &PairFilter {
        &self.crossing
    }

    /// Asks for the memory where a short piece is looked for among the tokens.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u64) {
        prefetch(&self.finder.slots[self.finder.home(hash).0]);
    }

    /// A token that a short piece may be. Its text is asked for.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u64) -> Option<u32> {
        let number = self.finder.find(hash, |_| true)?;
        self.prefetch_text(number);
        Some(number)
    }

    /// The token of a number that [`find`](Self::find) gave.
    #[inline(always)]
    pub(crate) fn token(&self, compact: &Compact, number: u32) -> TokenId {
        match self.alone.get((number as usize).wrapping_sub(self.parts.len())) {
            Some(&id) => TokenId(id),
            None => compact.token(number),
        }
    }

    /// The token that a piece without a key is, though merging does not make it.
    #[inline]
    pub(crate) fn long_alone(&self, vocab: &Vocab, piece: &[u8]) -> Option<TokenId> {
        if self.long_alone.is_empty() || Key::fits(piece.len()) {
            return None;
        }
        let text = |id: &u32| vocab.bytes(TokenId(*id)).unwrap_or_default();
        let at = self.long_alone.binary_search_by(|id| text(id).cmp(piece)).ok()?;
        Some(TokenId(self.long_alone[at]))
    }

    /// Asks for the text of a token.
    #[inline(always)]
    pub(crate) fn prefetch_text(&self, number: u32) {
        prefetch(&self.finder.keys[number as usize]);
    }

    /// The length of a token, if the text has it at a place and it does not reach beyond `end`.
    #[inline(always)]
    pub(crate) fn len_at(
        &self,
        number: u32,
        text: &[u8],
        (at, end): (usize, usize),
    ) -> Option<usize> {
        let key = self.finder.key(number);
        let len = key.len();
        if len > end - at || Key::of(text, at, len) != key {
            return None;
        }
        if len == Key::MAX_LEN
            && let Some(token) = self.finder.longer.text(number)
        {
            return text[at..end].starts_with(token).then_some(token.len());
        }
        Some(len)
    }

    /// Guesses the tokens of some pieces of a text: the longest ones, whether they may be neighbours or
    /// not. The pieces take turns, so that each waits for memory while others work.
    pub(crate) fn guess(&self, compact: &Compact, text: &[u8], guesses: &mut [Guess]) {
        for guess in guesses.iter_mut() {
            self.prepare(text, guess);
        }
        let mut is_done = false;
        while !is_done {
            is_done = true;
            for guess in guesses.iter_mut().filter(|guess| guess.key.is_some()) {
                let Some(key) = guess.key else { continue };
                let (number, len) = self
                    .finder
                    .first_tagged(key, guess.lens, guess.hash)
                    .unwrap_or_else(|| (compact.units()[usize::from(key.first_eight() as u8)], 1));
                self.prefetch_text(number);
                prefetch(&self.parts[number as usize]);
                guess.tokens[guess.n] = Token { id: TokenId(number), len: len as u32 };
                guess.n += 1;
                guess.at += len;
                self.prepare(text, guess);
                is_done &= guess.key.is_none();
            }
        }
    }

    /// Asks for the memory in which the next token of a guess is looked for.
    #[inline(always)]
    fn prepare(&self, text: &[u8], guess: &mut Guess) {
        guess.key = None;
        if guess.at == guess.end || guess.n == guess.tokens.len() {
            return;
        }
        let most = guess.end - guess.at;
        let key = Key::of(text, guess.at, most.min(Key::MAX_LEN));
        let (lens, has_longer) = self.finder.lens(key);
        if has_longer && most > Key::MAX_LEN {
            return; // To be looked for thoroughly.
        }
        (guess.key, guess.lens) = (Some(key), lens);
        // The first is found most of the time, and if it is not, the second.
        let Some(len) = lens.checked_ilog2() else { return };
        guess.hash = key.prefix(len as usize).hash();
        self.prefetch(guess.hash);
        if let Some(len) = (lens ^ 1 << len).checked_ilog2() {
            self.prefetch(key.prefix(len as usize).hash());
        }
    }

    /// Appends the tokens of a piece of `text`, with numbers for ids, or nothing: then so many tokens were
    /// tried in vain, and merging is to find them.
    #[inline]
    pub(crate) fn encode(
        &self,
        compact: &Compact,
        text: &[u8],
        guess: &Guess,
        mut tries: usize,
        out: &mut Vec<Token>,
    ) -> bool {
        let are_neighbours = |at: usize, left, right| {
            let floor = self.floors.get(text[at - 1], text[at]);
            self.are_neighbours(compact.pairs(), floor, left, right)
        };
        let first = out.len();
        let end = guess.end;
        let mut at = guess.start;
        // The number of the token in front.
        let mut before = None;
        // The length of the longest token here, if it is known to be no neighbour.
        let mut refused = None;
        for token in &guess.tokens[..guess.n] {
            let number = token.id.0;
            // Another token of the same tag may fit, too.
            if self.len_at(number, text, (at, end)) != Some(token.len as usize) {
                break;
            }
            if !before.is_none_or(|before| are_neighbours(at, before, number)) {
                refused = Some(token.len as usize);
                break;
            }
            out.push(*token);
            at += token.len as usize;
            before = Some(number);
        }
        let mut most = end - at;
        while at < end {
            let len = if let Some(len) = refused.take() {
                len
            } else {
                let (number, len) = self.finder.longest(compact, text, at, most);
                if before.is_none_or(|before| are_neighbours(at, before, number)) {
                    out.push(Token { id: TokenId(number), len: len as u32 });
                    at += len;
                    before = Some(number);
                    most = end - at;
                    continue;
                }
                len
            };
            most = len - 1;
            while most == 0 {
                // Nothing fits behind the token in front, so that one is another.
                let Some(token) = out[first..].last().copied() else { return false };
                out.pop();
                at -= token.len as usize;
                most = token.len as usize - 1;
                before = out[first..].last().map(|token| token.id.0);
            }
            if tries == 0 {
                out.truncate(first);
                return false;
            }
            tries -= 1;
        }
        true
    }

    /// Whether two tokens stay as they are next to each other.
    ///
    /// Goes back through the merges that made them, the last one first, and looks whether what stood
    /// at their border at that time would have merged before. Of the same merge, the left one happened
    /// first. No product across the border is less than `floor`.
    fn are_neighbours(
        &self,
        pairs: &NarrowTable,
        floor: u64,
        mut left: u32,
        mut right: u32,
    ) -> bool {
        let mut limit = u32::MAX;
        // The limit never rises, so what it does not leave now it will not leave later.
        while floor < limit.into() {
            if self.crossing.may_become(left, right, limit)
                && pairs.get(left, right).is_some_and(|product| product < limit)
            {
                return false;
            }
            if left > right {
                if left < self.first_product {
                    return true;
                }
                limit = left;
                left = self.parts[left as usize][1];
            } else {
                if right < self.first_product {
                    return true;
                }
                limit = right + 1;
                right = self.parts[right as usize][0];
            }
        }
        true
    }
}

/// What merges across a border between two bytes at least: most borders of tokens are between bytes that few
/// products join, or none.
#[derive(Clone)]
struct Floors {
    /// By the byte in front and the byte behind, the logarithm of the least product that is joined there,
    /// rounded down.
    logs: Array<u8>,
}

/// The logarithm of more than any product.
const NO_FLOOR: u8 = 32;

impl Floors {
    fn new() -> Self {
        Self { logs: vec![NO_FLOOR; 1 << 16].into() }
    }

    /// Adds a product that is joined between these bytes.
    #[inline(always)]
    fn insert(&mut self, before: u8, behind: u8, product: u32) {
        let log = &mut self.logs.to_mut()[Self::place(before, behind)];
        *log = (*log).min(product.max(1).ilog2() as u8);
    }

    /// No product that is joined between these bytes is less.
    #[inline(always)]
    fn get(&self, before: u8, behind: u8) -> u64 {
        1 << self.logs[Self::place(before, behind)]
    }

    #[inline(always)]
    fn place(before: u8, behind: u8) -> usize {
        usize::from(before) << 8 | usize::from(behind)
    }
}

/// Finds the longest token that a text begins with.
#[derive(Clone)]
struct Finder {
    /// The lengths of 2 and 3 that tokens have which begin with two bytes, as bits.
    two: Array<u8>,
    /// Of 4 to 8, by a hash of four bytes; the lowest bit is 4.
    four: Array<u8>,
    /// Of 9 to 15, by a hash of eight bytes, and as the lowest bit greater ones.
    eight: Array<u8>,
    /// Tokens of up to 15 bytes by a hash of their text: `tag | number`, [`FREE`] where there is none.
    slots: Array<u32>,
    number_bits: u32,
    /// What has this number or a greater one is no part of a piece.
    n_numbers: u32,
    /// The [`Key`] of each number, of a longer token that of the first 15 bytes.
    keys: Array<[u8; 16]>,
    longer: LongTokens,
}

const LONGER: u8 = 1;
const FOUR_BITS: u32 = 17;
const EIGHT_BITS: u32 = 16;

/// Not 0, so that slots are written when they are made: the system gives memory that is read first
/// twice, once to be read and once to be written. No number has all bits.
const FREE: u32 = u32::MAX;

impl Finder {
    /// For tokens with numbers below `n_numbers`, and further numbers for whole pieces only.
    fn new(n_numbers: usize, n_tokens: usize, n_alone: usize) -> Self {
        let number_bits = (n_numbers + n_alone + 1).ilog2() + 1;
        Self {
            two: vec![0; 1 << 16].into(),
            four: vec![0; 1 << FOUR_BITS].into(),
            eight: vec![0; 1 << EIGHT_BITS].into(),
            // At most half full.
            slots: vec![FREE; 2 * (n_tokens + n_alone) + 2].into(),
            number_bits,
            keys: vec![Key::of(&[0], 0, 1).to_bytes(); n_numbers + n_alone].into(),
            n_numbers: n_numbers as u32,
            longer: LongTokens::default(),
        }
    }

    fn write(&self, image: &mut Writer) {
        image.array(&[self.number_bits, self.n_numbers]);
        image.array(&self.two);
        image.array(&self.four);
        image.array(&self.eight);
        image.array(&self.slots);
        image.array(&self.keys);
        self.longer.write(image);
    }

    fn read(image: &mut Reader) -> Result<Self, ImageError> {
        let [number_bits, n_numbers] = image.numbers()?;
        let [two, four, eight] = [image.array()?, image.array()?, image.array()?];
        let (slots, keys, longer) = (image.array()?, image.array()?, LongTokens::read(image)?);
        let lens = [two.len(), four.len(), eight.len()];
        image.check(lens == [1 << 16, 1 << FOUR_BITS, 1 << EIGHT_BITS], "lengths")?;
        image.check(!slots.is_empty() && (1..u32::BITS).contains(&number_bits), "slots")?;
        Ok(Self { two, four, eight, slots, number_bits, n_numbers, keys, longer })
    }

    /// The text of a number, of a longer token the first 15 bytes.
    #[inline(always)]
    fn key(&self, number: u32) -> Key {
        Key::from_bytes(self.keys[number as usize])
    }

    /// Adds the token whose text lies there in `texts`, of one without a key only that it is there. `None`
    /// where the text is empty or that of a token that is there already.
    #[inline]
    fn insert(&mut self, texts: &[u8], at: Span, number: u32) -> Option<()> {
        let len = at.len();
        if len == 0 {
            return None;
        }
        let key = Key::of(texts, at.start, len.min(Key::MAX_LEN));
        let eight = key.first_eight();
        match len {
            1 => {}
            2 | 3 => self.two.to_mut()[usize::from(eight as u16)] |= 1 << len,
            4..=8 => self.four.to_mut()[hash_four(eight as u32)] |= 1 << (len - 4),
            9..=Key::MAX_LEN => self.eight.to_mut()[hash_eight(eight)] |= 1 << (len - 8),
            _ => {
                self.eight.to_mut()[hash_eight(eight)] |= LONGER;
                self.keys.to_mut()[number as usize] = key.to_bytes();
                return Some(());
            }
        }
        self.insert_key(key, number)
    }

    /// `None` where a token with that key is there already.
    #[inline]
    fn insert_key(&mut self, key: Key, number: u32) -> Option<()> {
        let (mut at, tag) = self.home(key.hash());
        while self.slots[at] != FREE {
            let (other_tag, other) = self.tag_and_number(self.slots[at]);
            if other_tag == tag && self.key(other) == key {
                return None;
            }
            at = self.after(at);
        }
        self.slots.to_mut()[at] = tag << self.number_bits | number;
        self.keys.to_mut()[number as usize] = key.to_bytes();
        Some(())
    }

    /// The place of a hash to begin with, and its tag.
    #[inline(always)]
    fn home(&self, hash: u64) -> (usize, u32) {
        let at = ((hash >> 32) * self.slots.len() as u64) >> 32;
        (at as usize, hash as u32 & (u32::MAX >> self.number_bits))
    }

    #[inline(always)]
    fn after(&self, at: usize) -> usize {
        if at + 1 == self.slots.len() { 0 } else { at + 1 }
    }

    /// The first number of a hash that `is_it`, among those that have its tag.
    #[inline(always)]
    fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let (mut at, tag) = self.home(hash);
        loop {
            let slot = self.slots[at];
            if slot == FREE {
                return None;
            }
            let (its_tag, number) = self.tag_and_number(slot);
            if its_tag == tag && is_it(number) {
                return Some(number);
            }
            at = self.after(at);
        }
    }

    #[inline(always)]
    fn tag_and_number(&self, slot: u32) -> (u32, u32) {
        (slot >> self.number_bits, slot & ((1 << self.number_bits) - 1))
    }

    /// The lengths of more than one byte that a token may have that a key begins with, and whether longer
    /// tokens may begin as it does.
    #[inline(always)]
    fn lens(&self, key: Key) -> (u32, bool) {
        let eight = key.first_eight();
        let mut lens = u32::from(self.two[usize::from(eight as u16)])
            | u32::from(self.four[hash_four(eight as u32)]) << 4;
        let mut has_longer = false;
        if key.len() > 8 {
            let long = self.eight[hash_eight(eight)];
            has_longer = long & LONGER != 0;
            lens |= u32::from(long & !LONGER) << 8;
        }
        (lens & ((2 << key.len()) - 1), has_longer)
    }

    /// The longest token of these lengths that a key begins with, and its length.
    #[inline(always)]
    fn first_of(
        &self,
        key: Key,
        mut lens: u32,
        is_it: impl Fn(u32, Key) -> bool,
    ) -> Option<(u32, usize)> {
        while lens != 0 {
            let len = lens.ilog2() as usize;
            let prefix = key.prefix(len);
            let is_part = |number| number < self.n_numbers && is_it(number, prefix);
            if let Some(number) = self.find(prefix.hash(), is_part) {
                return Some((number, len));
            }
            lens ^= 1 << len;
        }
        None
    }

    /// As [`first_of`](Self::first_of), of tokens that have the tag at least; `hash` is that of the longest
    /// length.
    #[inline(always)]
    fn first_tagged(&self, key: Key, lens: u32, hash: u64) -> Option<(u32, usize)> {
        let len = lens.checked_ilog2()? as usize;
        match self.find(hash, |number| number < self.n_numbers) {
            Some(number) => Some((number, len)),
            None => self.first_of(key, lens ^ 1 << len, |_, _| true),
        }
    }

    /// The longest token of up to `most` bytes that the text at a place begins with, and its length.
    #[inline(always)]
    fn longest(&self, compact: &Compact, text: &[u8], at: usize, most: usize) -> (u32, usize) {
        let key = Key::of(text, at, most.min(Key::MAX_LEN));
        let (lens, has_longer) = self.lens(key);
        if has_longer && let Some(found) = self.longer.find(&text[at..at + most]) {
            return found;
        }
        let found = self.first_of(key, lens, |number, key| self.key(number) == key);
        found.unwrap_or_else(|| (compact.units()[usize::from(key.first_eight() as u8)], 1))
    }
}

/// The tokens without a key.
#[derive(Clone, Default)]
struct LongTokens {
    /// In order of number, each a [`LongToken`].
    tokens: Array<[u32; 4]>,
    /// Their texts end to end.
    texts: Array<u8>,
    /// By a hash of the first 16 bytes, which is the longest token that begins with them; [`FREE`] where
    /// there is none. At most half full.
    first: Array<u32>,
}

#[derive(Clone, Copy)]
struct LongToken {
    number: u32,
    /// Its text among those of all.
    start: u32,
    len: u32,
    /// The next longest one with the same beginning, [`FREE`] if there is none.
    next: u32,
}

impl LongTokens {
    /// From tokens in order of number and where their texts lie. `None` where two have the same text.
    fn new(all_texts: &[u8], list: &[(u32, Span)]) -> Option<Self> {
        let mut first = vec![FREE; 2 * list.len() + 1];
        let mut texts = Vec::with_capacity(list.iter().map(|(_, text)| text.len()).sum());
        let mut tokens: Vec<LongToken> = Vec::with_capacity(list.len());
        for &(number, text) in list {
            let new = tokens.len() as u32;
            let (start, len) = (texts.len() as u32, text.len() as u32);
            texts.extend_from_slice(&all_texts[text.range()]);
            let text = &texts[start as usize..];
            let head: &[u8; 16] = text.first_chunk()?;
            let begins = |token: u32| texts[tokens[token as usize].range()].starts_with(head);
            let at = Self::place(&first, head, begins);
            let (mut before, mut next) = (FREE, first[at]);
            while let Some(token) = tokens.get(next as usize).filter(|token| token.len >= len) {
                if token.len == len && texts[token.range()] == *text {
                    return None;
                }
                (before, next) = (next, token.next);
            }
            match tokens.get_mut(before as usize) {
                Some(before) => before.next = new,
                None => first[at] = new,
            }
            tokens.push(LongToken { number, start, len, next });
        }
        let numbers = |token: LongToken| [token.number, token.start, token.len, token.next];
        let tokens: Vec<_> = tokens.into_iter().map(numbers).collect();
        Some(Self { tokens: tokens.into(), texts: texts.into(), first: first.into() })
    }

    fn write(&self, image: &mut Writer) {
        image.array(&self.tokens);
        image.array(&self.texts);
        image.array(&self.first);
    }

    fn read(image: &mut Reader) -> Result<Self, ImageError> {
        Ok(Self { tokens: image.array()?, texts: image.array()?, first: image.array()? })
    }

    /// Where the first token with this beginning is said, or would be; `begins` tells whether one does.
    #[inline]
    fn place(first: &[u32], head: &[u8; 16], begins: impl Fn(u32) -> bool) -> usize {
        let mut at = (((hash_bytes(head) >> 32) * first.len() as u64) >> 32) as usize;
        while first[at] != FREE && !begins(first[at]) {
            at = if at + 1 == first.len() { 0 } else { at + 1 };
        }
        at
    }

    #[inline]
    fn token(&self, at: u32) -> Option<LongToken> {
        let &[number, start, len, next] = self.tokens.get(at as usize)?;
        Some(LongToken { number, start, len, next })
    }

    /// The number of the longest of these tokens that the text begins with, and its length.
    #[cold]
    #[inline(never)]
    fn find(&self, text: &[u8]) -> Option<(u32, usize)> {
        if self.first.is_empty() {
            return None;
        }
        let head = text.first_chunk()?;
        let begins = |token| {
            let token = self.token(token);
            token.is_some_and(|token| self.texts[token.range()].starts_with(head))
        };
        let mut next = self.first[Self::place(&self.first, head, begins)];
        while let Some(token) = self.token(next) {
            if text.starts_with(&self.texts[token.range()]) {
                return Some((token.number, token.len as usize));
            }
            next = token.next;
        }
        None
    }

    /// The text of a token, if it is one of these.
    #[cold]
    fn text(&self, number: u32) -> Option<&[u8]> {
        let at = self.tokens.binary_search_by_key(&number, |&[number, ..]| number).ok()?;
        Some(&self.texts[self.token(at as u32)?.range()])
    }
}

impl LongToken {
    fn range(&self) -> Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }
}

#[inline(always)]
fn hash_four(four: u32) -> usize {
    (four.wrapping_mul(0x9E37_79B1) >> (u32::BITS - FOUR_BITS)) as usize
}

#[inline(always)]
fn hash_eight(eight: u64) -> usize {
    (eight.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - EIGHT_BITS)) as usize
}

/// Which pairs may become a product below a limit: says no for most that do not (Bloom 1970), by two bits of
/// one word.
///
/// There is a set for each power of two, of the pairs whose products are less. Limits fall as merges are
/// undone, and small limits ask small sets, which are near.
#[derive(Clone)]
pub(crate) struct PairFilter {
    /// The set of the products below `1 << level` has `1 << level - 3` words, and so many are in front of
    /// it.
    words: Array<u64>,
    top: u32,
}

/// The lowest level.
const LOWEST: u32 = 8;

impl PairFilter {
    /// For products up to `max_product`.
    pub(crate) fn new(max_product: u32) -> Self {
        let top = level(max_product.saturating_add(1)).max(LOWEST);
        Self { words: vec![0; 2 << (top - 3)].into(), top }
    }

    fn write(&self, image: &mut Writer) {
        image.array(&[self.top]);
        image.array(&self.words);
    }

    fn read(image: &mut Reader) -> Result<Self, ImageError> {
        let [top] = image.numbers()?;
        let words: Array<u64> = image.array()?;
        let is_sized = (LOWEST..=u32::BITS).contains(&top) && words.len() as u64 == 2 << (top - 3);
        image.check(is_sized, "filter of pairs")?;
        Ok(Self { words, top })
    }

    #[inline(always)]
    fn place(left: u32, right: u32, level: u32) -> (usize, u64) {
        let key = u64::from(left) << 32 | u64::from(right);
        let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let log = level - 3;
        let word = (1 << log) + (hash >> (u64::BITS - log));
        let bits = 1 << (hash >> 20 & 63) | 1 << (hash >> 26 & 63);
        (word as usize, bits)
    }

    fn insert(&mut self, left: u32, right: u32, product: u32) {
        for level in level(product + 1).max(LOWEST)..=self.top {
            let (word, bits) = Self::place(left, right, level);
            self.words.to_mut()[word] |= bits;
        }
    }

    /// As [`insert`](Self::insert), for [`may_merge`](Self::may_merge) alone.
    pub(crate) fn insert_unlimited(&mut self, left: u32, right: u32) {
        let (word, bits) = Self::place(left, right, self.top);
        self.words.to_mut()[word] |= bits;
    }

    /// Whether the pair may become anything.
    #[inline(always)]
    pub(crate) fn may_merge(&self, left: u32, right: u32) -> bool {
        let (word, bits) = Self::place(left, right, self.top);
        self.words[word] & bits == bits
    }

    /// Whether the pair may become a product less than `limit`.
    #[inline(always)]
    fn may_become(&self, left: u32, right: u32, limit: u32) -> bool {
        let level = level(limit).clamp(LOWEST, self.top);
        let (word, bits) = Self::place(left, right, level);
        self.words[word] & bits == bits
    }
}

/// The least level whose set has all products below a limit.
#[inline(always)]
fn level(limit: u32) -> u32 {
    u32::BITS - (limit - 1).leading_zeros()
}
