use alloc::vec::Vec;
use core::fmt;

use hashbrown::HashMap;
use piece_table::{Apart, Key, Miss, PieceTable, Sink, Size, Words};
use tokenizer_core::{Encode, Model, Rng, Span, Token, TokenId, TokenKind};

use crate::Bpe;
use crate::compact::{AT_ONCE, LONGEST};
use crate::engine::{Blind, Node, Scratch, Watch};
use crate::model::Context;
use crate::pairs::Symbol;

/// A session of a [`Bpe`]: the model, the pieces it met lately, and scratch memory, which grows to
/// the longest piece seen and is reused.
///
/// A piece that is a token, and is known to encode to that token alone, costs one look-up, and so
/// does one that was met lately. Any other piece of n bytes costs `O(n log n)`, with about 40 bytes
/// of scratch a byte. What is remembered takes at most about 4 MB.
pub struct Encoder<'m> {
    table: PieceTable<'m>,
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
    /// How many pieces the table asked for.
    asked: usize,
    /// The table has words, and among them every short piece that is one token.
    words_are_all: bool,
}

/// A session that asked for so many pieces has the model's words built: that costs about as much as
/// finding a few thousand tokens in the vocabulary, and a program that encodes a short text never
/// pays for it.
const ASKED_BEFORE_WORDS: usize = 4096;

impl<'m> Encoder<'m> {
    pub(crate) fn new(model: &'m Bpe, size: Size) -> Self {
        let words = model.words_if_built();
        Self {
            table: PieceTable::with_size(words, size),
            merger: Merger {
                model,
                scratch: Scratch::default(),
                nodes: Vec::new(),
                buffer: Vec::new(),
                splits: Splits::default(),
                stack: Vec::new(),
                asked: 0,
                words_are_all: words.is_some_and(Words::is_complete),
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
        if self.merger.asked > ASKED_BEFORE_WORDS && !self.table.has_words() {
            let words = self.merger.model.words();
            self.table.set_words(words);
            self.merger.words_are_all = words.is_complete();
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

impl Miss for Merger<'_> {
    #[inline]
    fn encode(&mut self, piece: &[u8], tokens: &mut Vec<Token>) {
        self.asked += 1;
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
        for pieces in pieces.chunks(AT_ONCE) {
            let mut bytes = [&b""[..]; AT_ONCE];
            let mut all_merge = true;
            for (bytes, piece) in bytes.iter_mut().zip(pieces) {
                *bytes = &text[piece.range()];
                let is_known = self.words_are_all && Key::fits(piece.len());
                all_merge &= (1..=LONGEST).contains(&piece.len())
                    && (is_known || self.whole_piece(bytes).is_none());
            }
            if let (Some(compact), true) = (self.model.compact(), all_merge) {
                self.asked += pieces.len();
                compact.merge_at_once(&bytes[..pieces.len()], tokens, ends);
                continue;
            }
            for piece in pieces {
                self.encode(&text[piece.range()], tokens);
                ends.push(tokens.len());
            }
        }
    }
}

impl Merger<'_> {
    #[inline]
    fn whole_piece(&mut self, piece: &[u8]) -> Option<TokenId> {
        self.model.whole_piece(piece, &mut self.buffer)
    }

    #[inline]
    fn merge(&mut self, piece: &[u8], tokens: &mut Vec<Token>) {
        match self.model.compact() {
            Some(compact) if (1..=LONGEST).contains(&piece.len()) => compact.merge(piece, tokens),
            _ => self.merge_in(Context::WHOLE, piece, tokens),
        }
    }

    fn merge_in(&mut self, context: Context, piece: &[u8], tokens: &mut Vec<Token>) {
        self.start(piece, context);
        let Self { model, scratch, nodes, splits, .. } = self;
        if model.splits_unused() {
            scratch.merge_all(model.pairs(), nodes, splits);
        } else {
            scratch.merge_all(model.pairs(), nodes, &mut Blind);
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
