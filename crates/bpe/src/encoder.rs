use alloc::vec::Vec;
use core::fmt;

use hashbrown::HashMap;
use piece_table::{Apart, Key, Located, Miss, PieceTable, Sink, Size, hash_bytes};
use tokenizer_core::{Encode, Model, Offset, Rng, Span, Token, TokenId, TokenKind};

use crate::Bpe;
use crate::compact::{Compact, LONGEST};
use crate::engine::{Blind, Node, Scratch, Watch};
use crate::longest::{Guess, Longest, PairFilter};
use crate::memory::Memory;
use crate::model::Context;
use crate::pairs::Symbol;

mod windows;

use windows::{SIZES, Windows};

/// A session of a [`Bpe`]: the model, the pieces it met lately, and scratch memory, which grows to
/// the longest piece seen and is reused.
///
/// A piece that is a token, and is known to encode to that token alone, costs one look-up, and so
/// does one that was met lately. Of other pieces, the tokens of byte-level models are found by longest
/// token first, once some thousand pieces were asked for, a few dozen nanoseconds each, and else by
/// merging: `O(n log n)` for n bytes, with about 40 bytes of scratch a byte. What is remembered
/// takes at most about 4 MB.
pub struct Encoder<'m> {
    table: PieceTable<'m>,
    /// The size of the session, and of the table once the memory behind it has grown.
    size: Size,
    later: Size,
    merger: Merger<'m>,
}

/// Encodes pieces one by one and remembers none.
struct Merger<'m> {
    model: &'m Bpe,
    scratch: Scratch,
    nodes: Vec<Node>,
    buffer: Vec<u8>,
    splits: Splits,
    stack: Vec<Node>,
    windows: Windows,
    /// How many pieces the table asked for, and how many have to be before more is done about them.
    asked: usize,
    patience: usize,
    /// The bytes of those that were merged.
    asked_bytes: usize,
    /// Once it is worth it: what finds tokens without merging. Then the table needs no words.
    longest: Option<(&'m Compact, &'m Longest)>,
    /// Of this size, once it is worth it.
    memory: Option<Memory>,
    memory_size: usize,
    guesses: Vec<Guess>,
}

/// A session that asked for so many pieces has what finds tokens fast built: that costs as much as
/// merging some ten thousand, and a program that encodes a short text never pays for it. From then on
/// the session also remembers more. One that remembers hardly anything asks more often, and has it
/// built sooner.
const ASKED_BEFORE_WORDS: usize = 4096;

/// Where that is there from the start, a session that asked for so many pieces that are no token has the
/// memory made: its index is written when it is made, which short texts do not get back.
const ASKED_BEFORE_MEMORY: usize = 1024;

impl<'m> Encoder<'m> {
    pub(crate) fn new(model: &'m Bpe, size: Size) -> Self {
        let longest = model.compact().zip(model.longest_if_built());
        let patience = if longest.is_some() { ASKED_BEFORE_MEMORY } else { ASKED_BEFORE_WORDS };
        let words = model.words_if_built();
        let (first, later, memory_size) =
            if model.compact().is_some() && (longest.is_some() || words.is_none()) {
                divide(size)
            } else {
                (size, size, 0)
            };
        Self {
            table: PieceTable::with_size(words, first),
            size,
            later,
            merger: Merger {
                model,
                scratch: Scratch::default(),
                nodes: Vec::new(),
                buffer: Vec::new(),
                splits: Splits::default(),
                stack: Vec::new(),
                windows: Windows::default(),
                asked: 0,
                patience: patience.min(size.short),
                asked_bytes: 0,
                longest,
                memory: None,
                memory_size,
                guesses: Vec::new(),
            },
        }
    }

    /// How many pieces of batches were neither words nor met lately, since the session began.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.merger.asked
    }

    #[inline]
    fn encode_batch(&mut self, text: &[u8], pieces: &[Span], sink: &mut impl Sink) {
        let merger = &self.merger;
        if (merger.asked > merger.patience || merger.asked_bytes > LONG)
            && merger.longest.is_none()
            && !self.table.has_words()
        {
            let model = self.merger.model;
            self.merger.longest = model.compact().zip(model.longest());
            if self.merger.longest.is_none() {
                self.table.set_words(model.words());
                self.table.set_size(self.size);
            }
        }
        if let Some(memory) = &mut self.merger.memory
            && memory.wants_to_grow()
        {
            // In this order: then the memory grows into what the table leaves.
            self.table.set_size(self.later);
            memory.grow();
        }
        self.table.encode(text, pieces, &mut self.merger, sink);
    }

    /// The model of the session.
    #[must_use]
    pub fn model(&self) -> &'m Bpe {
        self.merger.model
    }

    /// The token of a whole piece, where it is known without merging that the piece encodes to
    /// that token alone. `None` says nothing.
    #[inline]
    #[must_use]
    pub fn whole_piece(&mut self, piece: &[u8]) -> Option<TokenId> {
        self.merger.whole_piece(piece)
    }

    /// Appends the tokens that merging makes of one piece, without looking for the whole piece
    /// first: what to call when a table of known pieces has no entry. Equal to
    /// [`encode_piece`](Encode::encode_piece) for every piece that
    /// [`whole_piece`](Self::whole_piece) does not know.
    pub fn merge_piece(&mut self, piece: &[u8], tokens: &mut Vec<Token>) {
        self.merger.merge(piece, tokens);
    }

    pub(crate) fn merge_in(&mut self, context: Context, piece: &[u8], tokens: &mut Vec<Token>) {
        self.merger.merge_in(context, piece, tokens);
    }

    /// Appends the tokens of one piece with BPE-dropout: before every merge each possible merge
    /// sits out with probability `p`. At 0 this is the plain encoding, at 1 nothing merges.
    ///
    /// The same seed gives the same tokens; reference implementations draw in other orders, so
    /// only the distribution is theirs. A `p` outside of 0 to 1 counts as the nearer end, and one
    /// that is not a number as 0. The shortcuts for whole pieces are not taken, unless `p` is 0.
    ///
    /// Expected cost `O(n log n / (1 - p))`, at most `O(n^2 log n)`.
    pub fn encode_piece_dropout(
        &mut self,
        piece: &[u8],
        rng: &mut Rng,
        p: f64,
        tokens: &mut Vec<Token>,
    ) {
        if p > 0.0 {
            let merger = &mut self.merger;
            merger.start(piece, Context::WHOLE);
            let Merger { model, scratch, nodes, splits, .. } = merger;
            scratch.run_dropout(model.pairs(), nodes, splits, rng, p);
            merger.finish(piece, tokens);
        } else {
            self.encode_piece(piece, tokens);
        }
    }
}

/// What of a session's memory is for the table, first and later, and how many bytes for what is
/// remembered behind it.
///
/// A session that meets few different pieces gives the table more: it is faster. A session that meets
/// many remembers more of them in less.
fn divide(size: Size) -> (Size, Size, usize) {
    const LINE: usize = 64;
    let mut later = size;
    (later.short, later.long, later.ring) = (size.short * 9 / 16, size.long / 12, 0);
    let lines = size.short - later.short + size.long - later.long;
    let free = lines * LINE + size.ring * 10;
    // Some is left for the small tables that were outgrown.
    let free = free - free / 32;
    let memory = free.min(Memory::MOST);
    later.short += (free - memory) / LINE;
    let mut first = later;
    // As much as the half that the memory grows by, and a page.
    first.short += memory * 11 / 32 / LINE + 4096 / LINE;
    (first, later, memory)
}

impl Miss for Merger<'_> {
    #[inline]
    fn encode(&mut self, piece: &[u8], tokens: &mut Vec<Token>) {
        if self.longest.is_some() {
            self.search(piece, &[Span::new(0, piece.len())], tokens, |_| {});
            return;
        }
        self.asked += 1;
        self.asked_bytes += piece.len();
        match self.whole_piece(piece) {
            Some(id) => tokens.push(Token { id, len: piece.len() as u32 }),
            None => self.merge(piece, tokens),
        }
    }

    fn encode_many(
        &mut self,
        text: &[u8],
        pieces: &[Span],
        tokens: &mut Vec<Token>,
        ends: &mut Vec<usize>,
    ) {
        if self.longest.is_some() {
            for pieces in pieces.chunks(AT_ONCE) {
                self.search(text, pieces, tokens, |end| ends.push(end));
            }
            return;
        }
        for piece in pieces {
            self.encode(&text[piece.range()], tokens);
            ends.push(tokens.len());
        }
    }
}

/// So many pieces are searched for at once, so that the ways to memory overlap.
const AT_ONCE: usize = 32;

/// Where a piece was found, to be looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    /// Among the tokens, by number.
    Token(u32),
    /// At a place of the memory.
    Place(usize),
    /// Nowhere; a guess.
    Guess(usize),
    Nothing,
}

impl Merger<'_> {
    /// Appends the tokens of some pieces, which are found among the tokens, in the memory, or by the
    /// longest tokens first.
    fn search(
        &mut self,
        text: &[u8],
        pieces: &[Span],
        tokens: &mut Vec<Token>,
        mut end_piece: impl FnMut(usize),
    ) {
        let Some((compact, longest)) = self.longest else { return };
        if self.memory.is_none() && self.asked > self.patience {
            self.memory = Some(Memory::new(self.memory_size));
        }
        let mut hashes = [0; AT_ONCE];
        for (hash, piece) in hashes.iter_mut().zip(pieces) {
            if Key::fits(piece.len()) {
                *hash = Key::of(text, piece.start, piece.len()).hash();
                longest.prefetch(*hash);
            } else {
                *hash = hash_bytes(&text[piece.range()]);
            }
            if let Some(memory) = &self.memory {
                memory.prefetch(*hash);
            }
        }
        let mut found = [Found::Nothing; AT_ONCE];
        for ((found, &hash), piece) in found.iter_mut().zip(&hashes).zip(pieces) {
            let token = if Key::fits(piece.len()) { longest.find(hash) } else { None };
            *found = match (token, &self.memory) {
                (Some(number), _) => Found::Token(number),
                (None, Some(memory)) => memory.find(hash).map_or(Found::Nothing, Found::Place),
                (None, None) => Found::Nothing,
            };
        }
        if let Some(memory) = &self.memory {
            for found in &found[..pieces.len()] {
                if let Found::Place(place) = *found {
                    memory.numbers(place).for_each(|number| longest.prefetch_text(number));
                }
            }
        }
        self.guesses.clear();
        for (found, piece) in found.iter_mut().zip(pieces) {
            if *found == Found::Nothing {
                *found = Found::Guess(self.guesses.len());
                self.guesses.push(Guess::new(piece.start, piece.end));
            }
        }
        if self.guesses.len() > 1 && !self.windows.is_dense() {
            longest.guess(compact, text, &mut self.guesses);
        }
        for ((found, &hash), piece) in found.iter_mut().zip(&hashes).zip(pieces) {
            let first = tokens.len();
            if !self.check(*found, text, *piece, tokens) {
                self.asked += 1;
                let guess = match *found {
                    Found::Guess(at) => self.guesses[at],
                    _ => Guess::new(piece.start, piece.end),
                };
                let bytes = &text[piece.range()];
                if let Some(id) = longest.long_alone(self.model.vocab(), bytes) {
                    tokens.push(Token { id, len: bytes.len() as u32 });
                } else if piece.len() <= SEARCHED
                    && !(self.windows.is_dense() && piece.len() > SURE)
                    && longest.encode(compact, text, &guess, 2 * piece.len() + 8, tokens)
                {
                    let new = &mut tokens[first..];
                    self.windows.note(new.len(), piece.len());
                    if let Some(memory) = &mut self.memory {
                        memory.put(hash, new);
                    }
                    compact.name(new);
                } else {
                    let is_searched = piece.len() <= SEARCHED;
                    if is_searched {
                        // The longest tokens were not found, and need not be tried once more.
                        self.windows.is_dense_for(piece.len());
                    }
                    self.merge(bytes, tokens);
                    if let Some(memory) = &mut self.memory
                        && is_searched
                        && compact.ids_are_numbers()
                    {
                        memory.put(hash, &tokens[first..]);
                    }
                }
            }
            end_piece(tokens.len());
        }
    }

    /// Appends the tokens that were found if they spell the piece.
    #[inline(always)]
    fn check(&self, found: Found, text: &[u8], piece: Span, tokens: &mut Vec<Token>) -> bool {
        let Some((compact, longest)) = self.longest else { return false };
        let first = tokens.len();
        let mut at = piece.start;
        let mut push = |number, id| {
            let len = longest.len_at(number, text, (at, piece.end))?;
            at += len;
            tokens.push(Token { id, len: len as u32 });
            Some(())
        };
        match (found, &self.memory) {
            (Found::Token(number), _) => push(number, longest.token(compact, number)),
            (Found::Place(place), Some(memory)) => {
                memory.numbers(place).try_for_each(|number| push(number, compact.token(number)))
            }
            _ => None,
        };
        let is_whole = at == piece.end;
        if !is_whole {
            tokens.truncate(first);
        }
        is_whole
    }

    #[inline]
    fn whole_piece(&mut self, piece: &[u8]) -> Option<TokenId> {
        self.model.whole_piece(piece, &mut self.buffer)
    }

    #[inline]
    fn merge(&mut self, piece: &[u8], tokens: &mut Vec<Token>) {
        match self.model.compact() {
            Some(compact) if (1..=LONGEST).contains(&piece.len()) => {
                self.windows.merged(piece.len());
                compact.merge(self.filter(), piece, tokens);
            }
            Some(compact) => {
                if piece.len() > LONG && self.longest.is_none() {
                    self.longest = self.model.longest().map(|longest| (compact, longest));
                }
                self.merge_windows(compact, piece, SIZES, tokens);
            }
            None => self.merge_in(Context::WHOLE, piece, tokens),
        }
    }

    /// The filter of pairs, once there is one.
    #[inline]
    fn filter(&self) -> Option<&PairFilter> {
        self.longest.map(|(_, longest)| longest.crossing())
    }

    fn merge_in(&mut self, context: Context, piece: &[u8], tokens: &mut Vec<Token>) {
        self.start(piece, context);
        let Self { model, scratch, nodes, splits, .. } = self;
        match model.numbered() {
            Some(numbered) => self.merge_nodes(numbered, SIZES),
            None if model.splits_unused() => scratch.merge_all(model.pairs(), nodes, splits),
            None => scratch.merge_all(model.pairs(), nodes, &mut Blind),
        }
        self.finish(piece, tokens);
    }

    fn start(&mut self, piece: &[u8], context: Context) {
        assert!(u32::try_from(piece.len()).is_ok(), "a piece is shorter than 4 GiB");
        self.nodes.clear();
        self.splits.last.clear();
        if !piece.is_empty() {
            self.model.initial(piece, context, &mut self.nodes, &mut self.buffer);
        }
    }

    fn finish(&mut self, piece: &[u8], tokens: &mut Vec<Token>) {
        if self.model.symbols_are_tokens() {
            for node in &self.nodes {
                push(tokens, node.symbol, node.len);
            }
        } else {
            self.give_out(piece, tokens);
        }
    }

    /// Gives out symbols that need not be tokens: unused pieces are split again, unknown
    /// characters become bytes or the unknown token or nothing.
    fn give_out(&mut self, piece: &[u8], tokens: &mut Vec<Token>) {
        let vocab = self.model.vocab();
        let options = self.model.options();
        let mut unknown: Option<Node> = None;
        let mut at = 0;
        for &node in &self.nodes {
            self.stack.push(node);
            while let Some(node) = self.stack.pop() {
                let kind = vocab.kind(TokenId(node.symbol));
                if kind == Some(TokenKind::Unused)
                    && let Some(&(left, right)) = self.splits.last.get(&node.symbol)
                {
                    let left_len = self.model.symbol_len(left) as u32;
                    self.stack.push(Node { symbol: right, len: node.len - left_len });
                    self.stack.push(Node { symbol: left, len: left_len });
                    continue;
                }
                let bytes = &piece[at..at + node.len as usize];
                at += bytes.len();
                if kind.is_some() {
                    flush(&mut unknown, tokens);
                    push(tokens, node.symbol, node.len);
                } else if options.byte_fallback && bytes.iter().all(|&b| vocab.byte(b).is_some()) {
                    flush(&mut unknown, tokens);
                    for id in bytes.iter().filter_map(|&b| vocab.byte(b)) {
                        push(tokens, id.0, 1);
                    }
                } else if let Some(unk) = options.unk {
                    match &mut unknown {
                        Some(run) if options.fuse_unk => run.len += node.len,
                        _ => {
                            flush(&mut unknown, tokens);
                            unknown = Some(Node { symbol: unk.0, len: node.len });
                        }
                    }
                }
            }
        }
        flush(&mut unknown, tokens);
    }
}

/// So many bytes are worth as much as [`ASKED_BEFORE_WORDS`] pieces.
const LONG: usize = 1 << 16;
/// Pieces that are not longer are found by the longest tokens first in any text.
const SURE: usize = 8;
/// Longer pieces are not looked for, neither among the tokens nor in the memory.
const SEARCHED: usize = 4096;

fn flush(unknown: &mut Option<Node>, tokens: &mut Vec<Token>) {
    if let Some(node) = unknown.take() {
        push(tokens, node.symbol, node.len);
    }
}

fn push(tokens: &mut Vec<Token>, symbol: Symbol, len: u32) {
    tokens.push(Token { id: TokenId(symbol), len });
}

impl Encode for Encoder<'_> {
    fn encode_piece(&mut self, piece: &[u8], tokens: &mut Vec<Token>) {
        self.merger.encode(piece, tokens);
    }

    fn encode_pieces(&mut self, text: &[u8], pieces: &[Span], tokens: &mut Vec<Token>) {
        self.encode_batch(text, pieces, tokens);
    }

    fn encode_pieces_apart(
        &mut self,
        text: &[u8],
        pieces: &[Span],
        tokens: &mut Vec<Token>,
        ends: &mut Vec<usize>,
    ) {
        self.encode_batch(text, pieces, &mut Apart { tokens, ends });
    }

    fn encode_ids_into(&mut self, text: &[u8], pieces: &[Span], ids: &mut Vec<TokenId>) {
        self.encode_batch(text, pieces, ids);
    }

    fn encode_offsets_into(
        &mut self,
        text: &[u8],
        pieces: &[Span],
        ids: &mut Vec<TokenId>,
        offsets: &mut Vec<Offset>,
    ) {
        let in_reach = pieces.last().is_none_or(|last| Offset::try_from(*last).is_ok());
        assert!(in_reach, "pieces of less than 4 GiB");
        self.encode_batch(text, pieces, &mut Located::new(ids, offsets));
    }

    fn count_pieces(&mut self, text: &[u8], pieces: &[Span]) -> usize {
        let mut count = 0;
        self.encode_batch(text, pieces, &mut count);
        count
    }
}

impl fmt::Debug for Encoder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").field("model", self.merger.model).finish_non_exhaustive()
    }
}

/// The parts of every product that was last looked at, as SentencePiece remembers them to split
/// unused pieces.
#[derive(Clone, Default)]
struct Splits {
    last: HashMap<Symbol, (Symbol, Symbol)>,
}

impl Watch for Splits {
    fn candidate(&mut self, left: Symbol, right: Symbol, product: Symbol) {
        self.last.insert(product, (left, right));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use alloc::vec;

    use tokenizer_core::Vocab;

    use super::*;
    use crate::BpeOptions;

    /// A model of all bytes and random merges over a few of them.
    pub(super) fn random_model(rng: &mut Rng, letters: &[u8], n_merges: usize) -> Bpe {
        let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        let mut ids: Vec<u32> = letters.iter().map(|&byte| u32::from(byte)).collect();
        let mut merges = Vec::new();
        while merges.len() < n_merges {
            let mut pick = || ids[rng.below(ids.len() as u64) as usize];
            let (left, right) = (pick(), pick());
            let token = [&tokens[left as usize][..], &tokens[right as usize]].concat();
            if token.len() > 40 || tokens.contains(&token) {
                // Fewer merges where few tokens are possible.
                if rng.below(50) == 0 {
                    break;
                }
                continue;
            }
            ids.push(tokens.len() as u32);
            merges.push((TokenId(left), TokenId(right)));
            tokens.push(token);
        }
        let vocab = Vocab::from_tokens(&tokens).unwrap();
        Bpe::from_merges(vocab, merges, BpeOptions::default()).unwrap()
    }

    #[test]
    fn longest_tokens_first_is_merging() {
        let mut rng = Rng::new(2);
        let (mut models, mut found, mut given_up) = (0, 0, 0);
        for round in 0..600 {
            let letters = &b"abc d"[..1 + round % 5];
            let n_merges = 1 + rng.below(60) as usize;
            let model = random_model(&mut rng, letters, n_merges);
            let (Some(compact), Some(longest)) = (model.compact(), model.longest()) else {
                continue;
            };
            models += 1;
            let mut session = model.session();
            for _ in 0..40 {
                let len = 1 + rng.below(60) as usize;
                let text: Vec<u8> =
                    (0..len).map(|_| letters[rng.below(letters.len() as u64) as usize]).collect();
                let mut span = |_| {
                    let start = rng.below(len as u64) as usize;
                    Span::new(start, start + 1 + rng.below((len - start) as u64) as usize)
                };
                let spans: Vec<Span> = (0..5).map(&mut span).collect();
                let mut guesses: Vec<Guess> =
                    spans.iter().map(|span| Guess::new(span.start, span.end)).collect();
                longest.guess(compact, &text, &mut guesses);
                for (span, guess) in spans.iter().zip(guesses) {
                    let (mut whole, mut expected) = (Vec::new(), Vec::new());
                    session.merger.merge_in(Context::WHOLE, &text[span.range()], &mut expected);
                    for guess in [guess, Guess::new(span.start, span.end)] {
                        // What stands before the piece's tokens stays.
                        whole.push(Token { id: TokenId(7), len: 1 });
                        if longest.encode(compact, &text, &guess, 130, &mut whole) {
                            compact.name(&mut whole[1..]);
                            assert_eq!(whole.split_off(1), expected, "{text:?} {span:?}");
                            found += 1;
                        } else {
                            given_up += 1;
                        }
                        assert_eq!(whole, [Token { id: TokenId(7), len: 1 }]);
                        whole.clear();
                    }
                }
            }
        }
        assert!(models > 300 && found > 100 * given_up, "{models} {found} {given_up}");
    }
}
