//! Long pieces in windows.

use alloc::vec::Vec;
use core::ops::Range;

use tokenizer_core::{Token, TokenId};

use super::Merger;
use crate::compact::{Compact, LONGEST, Numbered};
use crate::engine::{Node, Scratch};
use crate::longest::Guess;
use crate::model::Context;
use crate::pairs::PairTable;

/// How long windows are, and how much they share at least: what is shared has to agree in one token.
/// In bytes, or in what else a piece begins as.
#[derive(Clone, Copy)]
pub(super) struct Window {
    len: usize,
    overlap: usize,
}

/// The windows of each way to find tokens.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    /// By the longest token first.
    long: Window,
    /// By merging what fits into a few registers; at most [`LONGEST`].
    small: Window,
    /// By merging, where tokens are too long for small windows to agree.
    middle: Window,
}

/// Small windows share what five tokens of random letters have: of 300 pairs of windows, less than one
/// does not agree then.
pub(super) const SIZES: Sizes = Sizes {
    long: Window { len: 2048, overlap: 128 },
    small: Window { len: LONGEST, overlap: 10 },
    middle: Window { len: 1024, overlap: 128 },
};

/// Where the longest tokens are mostly wrong, as in random letters, or short, as in random characters,
/// merging is faster; then that is what is done for so many bytes. Each token costs the way to its text
/// and parts, while bytes that do not merge cost next to nothing.
const DENSE: usize = 1 << 16;

/// What merging in windows needs.
#[derive(Default)]
pub(super) struct Windows {
    /// The tokens of a window.
    next: Vec<Token>,
    /// What a window of numbers is merged in.
    nodes: Vec<Node>,
    /// The tokens of all numbers.
    numbers: Vec<Token>,
    /// So many bytes are merged yet.
    dense: usize,
    /// How many bytes, doubled, the tokens of late fell short of two and a half each.
    short: isize,
}

impl Windows {
    /// Whether merging is faster than the longest tokens first, as far as is known.
    #[inline]
    pub(super) fn is_dense(&self) -> bool {
        self.dense > 0
    }

    /// Says that it is for so many bytes, at least.
    pub(super) fn is_dense_for(&mut self, bytes: usize) {
        self.dense = self.dense.max(bytes);
    }

    /// So many bytes were merged.
    #[inline]
    pub(super) fn merged(&mut self, bytes: usize) {
        self.dense = self.dense.saturating_sub(bytes);
    }

    /// The longest tokens were the right ones, so many for so many bytes.
    #[inline]
    pub(super) fn note(&mut self, tokens: usize, bytes: usize) {
        const ENOUGH: isize = 2048;
        let short = self.short + 5 * tokens as isize - 2 * bytes as isize;
        self.short = short.clamp(-ENOUGH, ENOUGH);
        if self.short == ENOUGH {
            (self.dense, self.short) = (DENSE, 0);
        }
    }
}

/// A long piece of which the tokens of the front are known.
///
/// # Why windows are exact
///
/// Tokens are the encoding of their text if and only if each two neighbours are the encoding of theirs.
/// If: until some merge crosses a border of the tokens, the process does in the text of any two
/// neighbours what it does in that text alone, where none crosses. Only if: nothing crossed the ends
/// of the two, so what happened between was what happens there alone. (Berglund & van der Merwe 2023,
/// Formalizing BPE Tokenization, <https://arxiv.org/abs/2309.08715>.) So two encodings of parts that
/// overlap and share a token join there: all neighbours left of it and right of it are neighbours in
/// one of them.
///
/// The argument needs nothing of the ranks, and holds for whatever a piece begins as.
///
/// A window that reads as the one before has its tokens, so runs and short periods are encoded once.
struct Front<'a, T> {
    piece: &'a [T],
    /// The tokens from here on are the encoding of the piece up to `end`.
    first: usize,
    end: usize,
    /// The window whose tokens are known yet; empty if there is none.
    before: Range<usize>,
}

impl<'a, T: PartialEq> Front<'a, T> {
    fn new(piece: &'a [T], tokens: &[Token]) -> Self {
        Self { piece, first: tokens.len(), end: 0, before: 0..0 }
    }

    fn is_whole(&self) -> bool {
        self.end == self.piece.len()
    }

    /// Goes on by a window, whose tokens `encode` appends or, saying `false`, does not find. Says
    /// whether it did: not if the tokens do not agree with those that were known, or leave nothing
    /// of the window for new ones. `next` holds the tokens of the window before.
    #[inline]
    fn extend(
        &mut self,
        Window { len, overlap }: Window,
        tokens: &mut Vec<Token>,
        next: &mut Vec<Token>,
        encode: impl FnOnce(Range<usize>, &mut Vec<Token>) -> bool,
    ) -> bool {
        // Back to where a token begins:
        let (mut at, mut start) = (tokens.len(), self.end);
        while at > self.first && self.end - start < overlap {
            at -= 1;
            start -= tokens[at].len as usize;
        }
        let end = (start + len).min(self.piece.len());
        if end < self.piece.len() && end <= self.end + len / 4 {
            return false;
        }
        if self.piece[start..end] != self.piece[self.before.clone()] {
            next.clear();
            self.before = 0..0;
            if !encode(start..end, next) {
                return false;
            }
            self.before = start..end;
        }
        let joint = if at == self.first { Some((0, 0)) } else { shared(&tokens[at..], next) };
        let Some((kept, from)) = joint else { return false };
        tokens.truncate(at + kept);
        tokens.extend_from_slice(&next[from..]);
        self.end = end;
        true
    }
}

impl Merger<'_> {
    /// Appends the tokens of a long piece of single bytes, found in windows that overlap, so that the
    /// memory of the process stays in a near cache.
    pub(super) fn merge_windows(
        &mut self,
        compact: &Compact,
        piece: &[u8],
        sizes: Sizes,
        tokens: &mut Vec<Token>,
    ) {
        let mut next = core::mem::take(&mut self.windows.next);
        let mut front = Front::new(piece, tokens);
        while !front.is_whole() {
            if let Some((compact, longest)) = self.longest
                && !self.windows.is_dense()
            {
                let (known, done) = (tokens.len(), front.end);
                let found = front.extend(sizes.long, tokens, &mut next, |part, tokens| {
                    let guess = Guess::new(part.start, part.end);
                    let found = longest.encode(compact, piece, &guess, part.len() / 8, tokens);
                    compact.name(tokens);
                    found
                });
                if found {
                    let new = tokens.len().saturating_sub(known);
                    if 5 * new > 2 * (front.end - done) {
                        self.windows.dense = DENSE;
                    }
                    continue;
                }
                self.windows.dense = DENSE;
            }
            let end = front.end;
            let by_merging = front.extend(sizes.small, tokens, &mut next, |part, tokens| {
                compact.merge(self.filter(), &piece[part], tokens);
                true
            }) || front.extend(sizes.middle, tokens, &mut next, |part, tokens| {
                self.merge_in(Context::WHOLE, &piece[part], tokens);
                true
            });
            if !by_merging {
                // As one, then: it takes longer, but not more than it always would.
                tokens.truncate(front.first);
                self.merge_in(Context::WHOLE, piece, tokens);
                break;
            }
            self.windows.merged(front.end - end);
        }
        self.windows.next = next;
    }

    /// Merges the nodes at hand in windows that overlap.
    pub(super) fn merge_nodes(&mut self, numbered: &Numbered, sizes: Sizes) {
        let Self { model, scratch, nodes, windows, .. } = self;
        for node in nodes.iter_mut() {
            node.symbol = numbered.number(node.symbol);
        }
        windows.numbers.clear();
        if !windows.merge_numbers(numbered, model.pairs(), nodes, scratch, sizes) {
            numbered.merge_all(model.pairs(), scratch, nodes);
            nodes.iter_mut().for_each(|node| node.symbol = numbered.symbol(node.symbol));
            return;
        }
        // A token is never longer than what it is made of, so what is read was not overwritten.
        let (mut at, mut kept) = (0, 0);
        for token in &windows.numbers {
            let behind = at + token.len as usize;
            let len = nodes[at..behind].iter().map(|node| node.len).sum();
            nodes[kept] = Node { symbol: numbered.symbol(token.id.0), len };
            (at, kept) = (behind, kept + 1);
        }
        nodes.truncate(kept);
    }
}

impl Windows {
    /// Appends to `numbers` what merging leaves of `nodes`, each with how many nodes it was made of.
    /// `pairs` are all merges by symbol. Says whether windows agreed.
    fn merge_numbers(
        &mut self,
        numbered: &Numbered,
        pairs: &PairTable,
        nodes: &[Node],
        scratch: &mut Scratch,
        sizes: Sizes,
    ) -> bool {
        let mut front = Front::new(nodes, &self.numbers);
        while !front.is_whole() {
            let Self { next, numbers, nodes: part_nodes, .. } = self;
            let found = front.extend(sizes.small, numbers, next, |part, tokens| {
                numbered.merge(&nodes[part], tokens)
            }) || front.extend(sizes.middle, numbers, next, |part, tokens| {
                part_nodes.clear();
                part_nodes.extend(nodes[part].iter().map(|node| Node { len: 1, ..*node }));
                numbered.merge_all(pairs, scratch, part_nodes);
                let token = |node: &Node| Token { id: TokenId(node.symbol), len: node.len };
                tokens.extend(part_nodes.iter().map(token));
                true
            });
            if !found {
                return false;
            }
        }
        true
    }
}

/// Where two lists of tokens that begin at the same place have the same token at the same place: how
/// many tokens of each end with it.
fn shared(left: &[Token], right: &[Token]) -> Option<(usize, usize)> {
    let (mut i, mut j) = (0, 0);
    let (mut left_at, mut right_at) = (0, 0);
    while let (Some(a), Some(b)) = (left.get(i), right.get(j)) {
        if left_at == right_at && a == b {
            return Some((i + 1, j + 1));
        }
        if left_at <= right_at {
            left_at += a.len;
            i += 1;
        } else {
            right_at += b.len;
            j += 1;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use tokenizer_core::{Encode, Rng, Vocab};

    use super::super::tests::random_model;
    use super::*;
    use crate::{Alphabet, Bpe, BpeOptions, naive};

    /// Windows so small that each way is taken and each gives up.
    fn all_sizes() -> impl Iterator<Item = Sizes> {
        let window = |(len, overlap)| Window { len, overlap };
        let longer = [(2, 1), (5, 1), (8, 4), (30, 3), (64, 40), (100, 99)];
        let small = [(1, 1), (2, 1), (7, 3), (16, 8), (32, 10), (32, 31)];
        longer.into_iter().zip(small).map(move |(longer, small)| Sizes {
            long: window(longer),
            small: window(small),
            middle: window(longer),
        })
    }

    /// Random letters, fewer than `longest`, sometimes with a run or a short period, in which windows
    /// agree late or never and repeat.
    fn random_text<T: Copy>(rng: &mut Rng, letters: &[T], longest: u64) -> Vec<T> {
        let len = rng.below(longest) as usize;
        let mut text: Vec<T> =
            (0..len).map(|_| letters[rng.below(letters.len() as u64) as usize]).collect();
        if rng.below(3) == 0 && len > 0 {
            let from = rng.below(len as u64) as usize;
            let period = 1 + rng.below(4) as usize;
            for i in from + period..len {
                text[i] = text[i - period];
            }
        }
        text
    }

    #[test]
    fn windows_are_the_whole() {
        let mut rng = Rng::new(1);
        let (mut windowed, mut compacts) = (0, 0);
        for round in 0..200 {
            let letters = &b"abc d"[..1 + round % 5];
            let n_merges = 1 + rng.below(60) as usize;
            let model = random_model(&mut rng, letters, n_merges);
            let Some(compact) = model.compact() else { continue };
            compacts += 1;
            let mut session = model.session();
            let mut fast = model.session();
            fast.merger.longest = Some(compact).zip(model.longest());
            for _ in 0..8 {
                let piece = random_text(&mut rng, letters, 400);
                let mut whole = Vec::new();
                session.merger.merge_in(Context::WHOLE, &piece, &mut whole);
                for sizes in all_sizes() {
                    // What stands before the piece's tokens stays.
                    let mut tokens = vec![Token { id: TokenId(7), len: 1 }];
                    session.merger.merge_windows(compact, &piece, sizes, &mut tokens);
                    assert_eq!(tokens.split_off(1), whole, "{piece:?}");
                    fast.merger.windows.dense = 0;
                    fast.merger.merge_windows(compact, &piece, sizes, &mut tokens);
                    assert_eq!(tokens.split_off(1), whole, "{piece:?}");
                    windowed += 1;
                }
            }
        }
        assert!(compacts > 150 && windowed == 48 * compacts, "{compacts} {windowed}");
    }

    /// A model of some characters and random tokens of them; some characters are unknown.
    fn random_characters(rng: &mut Rng, letters: &[char]) -> Bpe {
        let mut texts: Vec<alloc::string::String> =
            letters[..letters.len() - 1].iter().map(|&letter| letter.into()).collect();
        for _ in 0..rng.below(40) {
            let mut pick = || texts[rng.below(texts.len() as u64) as usize].clone();
            let text = pick() + &pick();
            if !texts.contains(&text) && text.chars().count() <= 24 {
                texts.push(text);
            }
        }
        let vocab = Vocab::from_tokens(core::iter::once("<unk>").chain(texts.iter().map(|t| &**t)));
        // Some are tied, the last ones or two in between.
        let n_tied = if rng.below(2) == 0 { 0 } else { 1 + rng.below(4) as usize };
        let first_tied = texts.len().saturating_sub(n_tied);
        let two = rng.below(3 * texts.len() as u64) as usize;
        let tied = |i: usize| if i == two { i + 1 } else { i.min(first_tied) };
        let scores = (0..=texts.len()).map(|i| -(tied(i) as f32)).collect();
        let options = BpeOptions {
            alphabet: Alphabet::Char,
            unk: Some(TokenId(0)),
            fuse_unk: rng.below(2) == 0,
            ..BpeOptions::default()
        };
        Bpe::from_scores(vocab.unwrap(), scores, options).unwrap()
    }

    #[test]
    fn windows_of_characters_are_the_whole() {
        let mut rng = Rng::new(2);
        let (mut windowed, mut longer) = (0, 0);
        for round in 0..150 {
            let letters = &['a', '\u{2581}', '\u{1F600}', 'b', '\u{E9}'][..2 + round % 4];
            let model = random_characters(&mut rng, letters);
            let numbered = model.numbered().expect("few scores rank more than one token");
            let mut session = model.session();
            for _ in 0..3 {
                let text: alloc::string::String =
                    random_text(&mut rng, letters, 120).into_iter().collect();
                let expected = naive::NaiveEncoder::new(&model).encode_piece(text.as_bytes());
                let mut tokens = Vec::new();
                session.encode_piece(text.as_bytes(), &mut tokens);
                assert_eq!(tokens, expected, "{text:?}");
                for sizes in all_sizes() {
                    let merger = &mut session.merger;
                    merger.start(text.as_bytes(), Context::WHOLE);
                    merger.merge_nodes(numbered, sizes);
                    tokens.clear();
                    merger.finish(text.as_bytes(), &mut tokens);
                    assert_eq!(tokens, expected, "{text:?}");
                    windowed += 1;
                }
                longer += usize::from(text.chars().count() > LONGEST);
            }
        }
        assert!(windowed == 2_700 && longer > 250, "{longer}");
    }

    #[test]
    fn windows_that_repeat_are_encoded_once() {
        let model = random_model(&mut Rng::new(4), b"ab", 1);
        let mut session = model.session();
        // Whatever the model, periods up to 2 repeat; another letter is seen in each window that has it.
        let mut texts = [b"b".repeat(200), b"ab".repeat(100), b"a".repeat(200)];
        texts[2][150] = b'b';
        let encoded = texts.map(|text| {
            let (mut tokens, mut next, mut n_encoded) = (Vec::new(), Vec::new(), 0);
            let mut front = Front::new(&text, &tokens);
            while !front.is_whole() {
                let window = Window { len: 20, overlap: 6 };
                let went_on = front.extend(window, &mut tokens, &mut next, |part, tokens| {
                    n_encoded += 1;
                    session.merger.merge_in(Context::WHOLE, &text[part], tokens);
                    true
                });
                assert!(went_on, "{text:?}");
            }
            let mut whole = Vec::new();
            session.merger.merge_in(Context::WHOLE, &text, &mut whole);
            assert_eq!(tokens, whole);
            n_encoded
        });
        assert!(encoded.iter().all(|n| (2..=5).contains(n)), "{encoded:?} of 15 windows or so");
    }

    #[test]
    fn shared_tokens_stand_at_the_same_place() {
        let tokens = |list: &[(u32, u32)]| -> Vec<Token> {
            list.iter().map(|&(id, len)| Token { id: TokenId(id), len }).collect()
        };
        let left = tokens(&[(1, 2), (2, 1), (1, 2), (3, 4)]);
        assert_eq!(shared(&left, &left), Some((1, 1)));
        // The token 1 at place 3 in both.
        assert_eq!(shared(&left, &tokens(&[(9, 3), (1, 2)])), Some((3, 2)));
        // Another token at place 3; the same token at another place.
        assert_eq!(shared(&left, &tokens(&[(9, 3), (8, 2), (4, 1)])), None);
        assert_eq!(shared(&left, &tokens(&[(9, 1), (1, 2)])), None);
        assert_eq!(shared(&left, &[]), None);
    }
}
