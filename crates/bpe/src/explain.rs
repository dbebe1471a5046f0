//! What a model says about itself: the merges of one piece, tokens that can never come out, the
//! merges behind a list of ranks.

use alloc::vec;
use alloc::vec::Vec;

use tokenizer_core::{Encode, Model, Token, TokenId, TokenKind};

use crate::engine::{Node, Scratch, Watch};
use crate::model::Context;
use crate::pairs::{Merge, Symbol};
use crate::{Bpe, Rules};

/// How one piece became its tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trace {
    /// The symbols before any merge. `None` is a character without a token, which ranks and
    /// scores replace only in the end; it covers the given number of bytes.
    pub initial: Vec<(Option<TokenId>, u32)>,
    /// The merges in the order in which they were made.
    pub merges: Vec<TracedMerge>,
    /// The tokens, as [`Encode::encode_piece`] gives them.
    pub tokens: Vec<Token>,
    /// The piece is a token that was taken whole although merging gives something else.
    pub taken_whole: bool,
}

/// One merge of a [`Trace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TracedMerge {
    /// Its priority, lowest first: the index in the list of merges, the id for ranks, the number
    /// of distinct better scores for scores.
    pub rank: u32,
    /// The left part; `None` if it is a character without a token.
    pub left: Option<TokenId>,
    /// The right part; `None` if it is a character without a token.
    pub right: Option<TokenId>,
    /// What they became.
    pub product: TokenId,
    /// Where the left part begins: byte offset in the piece, dropped characters not counted.
    pub position: usize,
}

/// A token that its own text does not encode to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unreachable {
    /// The token.
    pub token: TokenId,
    /// What its text encodes to by merging.
    pub encoding: Vec<TokenId>,
}

impl Bpe {
    /// The merges of one piece. `O(n log n)` for n bytes.
    #[must_use]
    pub fn trace(&self, piece: &[u8]) -> Trace {
        let mut nodes = Vec::new();
        if !piece.is_empty() {
            self.initial(piece, Context::WHOLE, &mut nodes, &mut Vec::new());
        }
        let initial: Vec<_> =
            nodes.iter().map(|node| (self.token_of(node.symbol), node.len)).collect();
        let mut position = 0;
        let starts = nodes
            .iter()
            .map(|node| {
                position += node.len as usize;
                position - node.len as usize
            })
            .collect();
        let mut tracer = Tracer { model: self, starts, merges: Vec::new() };
        Scratch::default().run_queue(self.pairs(), &mut nodes, &mut tracer);
        let mut tokens = Vec::new();
        self.session().encode_piece(piece, &mut tokens);
        let taken_whole = matches!(tokens[..], [token] if nodes.len() != 1
            || nodes[0].symbol != token.id.0)
            && self.session().whole_piece(piece).is_some();
        Trace { initial, merges: tracer.merges, tokens, taken_whole }
    }

    /// The tokens of kind `Normal` that merging never makes, not even of their own text, with
    /// what it makes instead.
    ///
    /// That ranks and [`ignore_merges`](crate::BpeOptions::ignore_merges) take a piece whole when
    /// it is a token is left aside: inside a longer piece such a token does not come out either.
    #[must_use]
    pub fn unreachable_tokens(&self) -> Vec<Unreachable> {
        let mut session = self.session();
        let mut found = Vec::new();
        for (token, bytes, kind) in self.vocab().iter() {
            if kind != TokenKind::Normal || self.is_reachable(token) {
                continue;
            }
            let own = self.own_texts(token).next();
            let (text, context) = own.unwrap_or((bytes, Context::WHOLE));
            let mut encoding = Vec::new();
            session.merge_in(context, text, &mut encoding);
            let encoding = encoding.iter().map(|token| token.id).collect();
            found.push(Unreachable { token, encoding });
        }
        found
    }

    /// The list of merges that a model of ranks amounts to: for each token of kind `Normal` in
    /// order of id, the two parts that the merges of lower rank leave of it.
    ///
    /// Tokens of one symbol have no merge. Nor have tokens of which lower ranks leave more than
    /// two parts, which only a whole piece can become; with the list and
    /// [`ignore_merges`](crate::BpeOptions::ignore_merges) a model from
    /// [`from_merges`](Self::from_merges) encodes alike. (Tokens of more than 4096 bytes whose
    /// parts do not all rank lower than themselves are passed over too.)
    ///
    /// Empty for models of scores; for a list of merges, that list.
    #[must_use]
    pub fn recover_merges(&self) -> Vec<(TokenId, TokenId)> {
        match self.rules() {
            Rules::Merges(merges) => merges.clone(),
            Rules::Scores(_) => Vec::new(),
            Rules::Ranks => {
                let mut recovery = Recovery { model: self, scratch: Scratch::default() };
                self.vocab()
                    .iter()
                    .filter(|&(_, _, kind)| kind == TokenKind::Normal)
                    .filter_map(|(id, bytes, _)| recovery.parts(id, bytes))
                    .collect()
            }
        }
    }

    fn token_of(&self, symbol: Symbol) -> Option<TokenId> {
        Some(TokenId(symbol)).filter(|id| id.index() < self.vocab().len())
    }
}

struct Tracer<'m> {
    model: &'m Bpe,
    starts: Vec<usize>,
    merges: Vec<TracedMerge>,
}

impl Watch for Tracer<'_> {
    fn merge(&mut self, at: usize, left: Symbol, right: Symbol, merge: Merge) {
        self.merges.push(TracedMerge {
            rank: merge.rank(),
            left: self.model.token_of(left),
            right: self.model.token_of(right),
            product: TokenId(merge.product()),
            position: self.starts[at],
        });
    }
}

struct Recovery<'m> {
    model: &'m Bpe,
    scratch: Scratch,
}

/// The longest token that [`Recovery::parts_by_scan`] takes on.
const LONGEST_SCANNED: usize = 4096;

impl Recovery<'_> {
    fn parts(&mut self, id: TokenId, bytes: &[u8]) -> Option<(TokenId, TokenId)> {
        let mut nodes: Vec<Node> = Vec::new();
        self.model.initial(bytes, Context::WHOLE, &mut nodes, &mut Vec::new());
        if nodes.len() < 2 {
            return None;
        }
        // If every merge on the way to the token ranks below the token, leaving out the merges
        // that do not rank below it changes nothing.
        if self.model.is_reachable(id) {
            let mut last = LastMerge { lowest_first: true, token: id.0, parts: (0, 0) };
            self.scratch.run_queue(self.model.pairs(), &mut nodes, &mut last);
            if last.lowest_first {
                let (left, right) = last.parts;
                return Some((self.model.token_of(left)?, self.model.token_of(right)?));
            }
        }
        (bytes.len() <= LONGEST_SCANNED).then(|| self.parts_by_scan(id, bytes)).flatten()
    }

    /// Merges with nothing but lower ranks, by looking at all pairs each time.
    fn parts_by_scan(&self, id: TokenId, bytes: &[u8]) -> Option<(TokenId, TokenId)> {
        let vocab = self.model.vocab();
        let token =
            |bytes: &[u8]| vocab.get(bytes).filter(|&id| vocab.kind(id) == Some(TokenKind::Normal));
        let alphabet = self.model.options().alphabet;
        let mut ends = vec![0];
        ends.extend(crate::model::units(alphabet, bytes).scan(0, |at, unit| {
            *at += unit.len();
            Some(*at)
        }));
        // `ranks[i]` belongs to the parts that meet at `ends[i + 1]`.
        let rank = |ends: &[usize], i: usize| {
            token(&bytes[ends[i]..ends[i + 2]]).filter(|&product| product < id)
        };
        let mut ranks: Vec<_> = (0..ends.len().saturating_sub(2)).map(|i| rank(&ends, i)).collect();
        while ends.len() > 3 {
            let lowest = (0..ranks.len()).filter(|&i| ranks[i].is_some()).min_by_key(|&i| ranks[i]);
            let at = lowest?;
            ends.remove(at + 1);
            ranks.remove(at);
            if at > 0 {
                ranks[at - 1] = rank(&ends, at - 1);
            }
            if at < ranks.len() {
                ranks[at] = rank(&ends, at);
            }
        }
        let middle = *ends.get(1)?;
        Some((token(&bytes[..middle])?, token(&bytes[middle..])?))
    }
}

/// Remembers the merge that makes the token, and whether all before it rank lower.
struct LastMerge {
    lowest_first: bool,
    token: Symbol,
    parts: (Symbol, Symbol),
}

impl Watch for LastMerge {
    fn merge(&mut self, _: usize, left: Symbol, right: Symbol, merge: Merge) {
        self.parts = (left, right);
        self.lowest_first &= merge.product() == self.token || merge.rank() < self.token;
    }
}
