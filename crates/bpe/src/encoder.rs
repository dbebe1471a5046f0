use alloc::vec::Vec;
use core::fmt;

use hashbrown::HashMap;
use tokenizer_core::{Encode, Model, Rng, Span, Token, TokenId, TokenKind};

use crate::Bpe;
use crate::engine::{Blind, Node, Scratch, Watch};
use crate::model::Context;
use crate::pairs::Symbol;

/// A session of a [`Bpe`]: the model and the scratch memory, which grows to the longest piece
/// seen and is reused.
///
/// A piece that is a token, and is known to encode to that token alone, costs one look-up. Any
/// other piece of n bytes costs `O(n log n)`, with about 40 bytes of scratch a byte.
pub struct Encoder<'m> {
    model: &'m Bpe,
    scratch: Scratch,
    nodes: Vec<Node>,
    buffer: Vec<u8>,
    splits: Splits,
    stack: Vec<Node>,
}

impl<'m> Encoder<'m> {
    pub(crate) fn new(model: &'m Bpe) -> Self {
        Self {
            model,
            scratch: Scratch::default(),
            nodes: Vec::new(),
            buffer: Vec::new(),
            splits: Splits::default(),
            stack: Vec::new(),
        }
    }

    /// The model of the session.
    #[must_use]
    pub fn model(&self) -> &'m Bpe {
        self.model
    }

    /// The token of a whole piece, where it is known without merging that the piece encodes to
    /// that token alone. `None` says nothing.
    #[inline]
    #[must_use]
    pub fn whole_piece(&mut self, piece: &[u8]) -> Option<TokenId> {
        self.model.whole_piece(piece, &mut self.buffer)
    }

    /// Appends the tokens that merging makes of one piece, without looking for the whole piece
    /// first: what to call when a table of known pieces has no entry. Equal to
    /// [`encode_piece`](Encode::encode_piece) for every piece that
    /// [`whole_piece`](Self::whole_piece) does not know.
    pub fn merge_piece(&mut self, piece: &[u8], tokens: &mut Vec<Token>) {
        self.merge(piece, tokens);
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
            self.start(piece, Context::WHOLE);
            let Self { model, scratch, nodes, splits, .. } = self;
            scratch.run_dropout(model.pairs(), nodes, splits, rng, p);
            self.finish(piece, tokens);
        } else {
            self.encode_piece(piece, tokens);
        }
    }

    #[inline]
    fn encode(&mut self, piece: &[u8], sink: &mut impl Sink) {
        match self.model.whole_piece(piece, &mut self.buffer) {
            Some(id) => sink.push(id, piece.len() as u32),
            None => self.merge(piece, sink),
        }
    }

    fn merge(&mut self, piece: &[u8], sink: &mut impl Sink) {
        self.merge_in(Context::WHOLE, piece, sink);
    }

    pub(crate) fn merge_in(&mut self, context: Context, piece: &[u8], sink: &mut impl Sink) {
        self.start(piece, context);
        let Self { model, scratch, nodes, splits, .. } = self;
        if model.splits_unused() {
            scratch.merge_all(model.pairs(), nodes, splits);
        } else {
            scratch.merge_all(model.pairs(), nodes, &mut Blind);
        }
        self.finish(piece, sink);
    }

    fn start(&mut self, piece: &[u8], context: Context) {
        assert!(u32::try_from(piece.len()).is_ok(), "a piece is shorter than 4 GiB");
        self.nodes.clear();
        self.splits.last.clear();
        if !piece.is_empty() {
            self.model.initial(piece, context, &mut self.nodes, &mut self.buffer);
        }
    }

    fn finish(&mut self, piece: &[u8], sink: &mut impl Sink) {
        if self.model.symbols_are_tokens() {
            for node in &self.nodes {
                sink.push(TokenId(node.symbol), node.len);
            }
        } else {
            self.give_out(piece, sink);
        }
    }

    /// Gives out symbols that need not be tokens: unused pieces are split again, unknown
    /// characters become bytes or the unknown token or nothing.
    fn give_out(&mut self, piece: &[u8], sink: &mut impl Sink) {
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
                    flush(&mut unknown, sink);
                    sink.push(TokenId(node.symbol), node.len);
                } else if options.byte_fallback && bytes.iter().all(|&b| vocab.byte(b).is_some()) {
                    flush(&mut unknown, sink);
                    for id in bytes.iter().filter_map(|&b| vocab.byte(b)) {
                        sink.push(id, 1);
                    }
                } else if let Some(unk) = options.unk {
                    match &mut unknown {
                        Some(run) if options.fuse_unk => run.len += node.len,
                        _ => {
                            flush(&mut unknown, sink);
                            unknown = Some(Node { symbol: unk.0, len: node.len });
                        }
                    }
                }
            }
        }
        flush(&mut unknown, sink);
    }
}

fn flush(unknown: &mut Option<Node>, sink: &mut impl Sink) {
    if let Some(node) = unknown.take() {
        sink.push(TokenId(node.symbol), node.len);
    }
}

impl Encode for Encoder<'_> {
    fn encode_piece(&mut self, piece: &[u8], tokens: &mut Vec<Token>) {
        self.encode(piece, tokens);
    }

    fn encode_pieces(&mut self, text: &[u8], pieces: &[Span], tokens: &mut Vec<Token>) {
        for piece in pieces {
            self.encode(&text[piece.range()], tokens);
        }
    }

    fn encode_ids_into(&mut self, text: &[u8], pieces: &[Span], ids: &mut Vec<TokenId>) {
        for piece in pieces {
            self.encode(&text[piece.range()], ids);
        }
    }

    fn count_pieces(&mut self, text: &[u8], pieces: &[Span]) -> usize {
        let mut count = 0;
        for piece in pieces {
            self.encode(&text[piece.range()], &mut count);
        }
        count
    }
}

impl fmt::Debug for Encoder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").field("model", self.model).finish_non_exhaustive()
    }
}

/// Where tokens go: one merge process serves tokens, ids alone and counts.
pub(crate) trait Sink {
    fn push(&mut self, id: TokenId, len: u32);
}

impl Sink for Vec<Token> {
    #[inline]
    fn push(&mut self, id: TokenId, len: u32) {
        Vec::push(self, Token { id, len });
    }
}

impl Sink for Vec<TokenId> {
    #[inline]
    fn push(&mut self, id: TokenId, _: u32) {
        Vec::push(self, id);
    }
}

impl Sink for usize {
    #[inline]
    fn push(&mut self, _: TokenId, _: u32) {
        *self += 1;
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
