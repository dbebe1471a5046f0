//! The encoder: one forward pass that keeps the best token that ends at each byte, and the walk
//! back.

use alloc::vec::Vec;
use core::ops::Range;

use tokenizer_core::{Encode, Span, Token, TokenId, TokenKind, Vocab, utf8};

use crate::model::{Compat, Unigram};
use crate::trie::DoubleArray;

/// A unigram encoder and its scratch memory: 8 bytes for each byte of the longest piece so far,
/// 16 in Hugging Face mode.
#[derive(Clone, Debug)]
pub struct Session<'m> {
    model: &'m Unigram,
    pub(crate) narrow: Vec<Node<f32>>,
    wide: Vec<Node<f64>>,
}

/// The best path that ends at one byte offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<S> {
    /// Its score.
    pub(crate) sum: S,
    /// Its last token, or [`UNKNOWN`] + the length of an unknown character.
    id: u32,
}

/// Ids from here on are no tokens (a double array has fewer values) but unknown characters.
pub(crate) const UNKNOWN: u32 = u32::MAX - 8;

impl<'m> Session<'m> {
    pub(crate) fn new(model: &'m Unigram) -> Self {
        Self { model, narrow: Vec::new(), wide: Vec::new() }
    }

    /// Calls `push` with the tokens of one piece, the last one first.
    fn backwards(&mut self, piece: &[u8], push: impl FnMut(TokenId, usize)) {
        let model = self.model;
        match &model.edges {
            EdgeScores::SentencePiece(scores) => {
                forward::<SentencePiece>(model, scores, piece, &mut self.narrow);
                emit(model, piece, &self.narrow, push);
            }
            EdgeScores::SentencePiece021(scores) => {
                forward::<SentencePiece021>(model, scores, piece, &mut self.narrow);
                emit(model, piece, &self.narrow, push);
            }
            EdgeScores::HuggingFace(scores) => {
                forward::<HuggingFace>(model, scores, piece, &mut self.wide);
                emit(model, piece, &self.wide, push);
            }
        }
    }

    /// For each byte offset the last edge of the best path that ends there: a token's id, or
    /// [`UNKNOWN`] and the length of the character.
    pub(crate) fn best_edges(&mut self, piece: &[u8]) -> Vec<u32> {
        let model = self.model;
        match &model.edges {
            EdgeScores::SentencePiece(scores) => {
                forward::<SentencePiece>(model, scores, piece, &mut self.narrow);
                self.narrow.iter().map(|node| node.id).collect()
            }
            EdgeScores::SentencePiece021(scores) => {
                forward::<SentencePiece021>(model, scores, piece, &mut self.narrow);
                self.narrow.iter().map(|node| node.id).collect()
            }
            EdgeScores::HuggingFace(scores) => {
                forward::<HuggingFace>(model, scores, piece, &mut self.wide);
                self.wide.iter().map(|node| node.id).collect()
            }
        }
    }
}

impl Encode for Session<'_> {
    fn encode_piece(&mut self, piece: &[u8], tokens: &mut Vec<Token>) {
        let first = tokens.len();
        self.backwards(piece, |id, len| tokens.push(Token::new(id, len)));
        tokens[first..].reverse();
    }

    fn encode_ids_into(&mut self, text: &[u8], pieces: &[Span], ids: &mut Vec<TokenId>) {
        for piece in pieces {
            let first = ids.len();
            self.backwards(&text[piece.range()], |id, _| ids.push(id));
            ids[first..].reverse();
        }
    }

    fn count_pieces(&mut self, text: &[u8], pieces: &[Span]) -> usize {
        let mut count = 0;
        for piece in pieces {
            self.backwards(&text[piece.range()], |_, _| count += 1);
        }
        count
    }
}

/// Finds the best path to every byte offset: `nodes[i]` afterwards is the best that ends at `i`.
///
/// Offsets inside of characters are reached only by tokens that end there; no path goes on from
/// them.
fn forward<A: Arithmetic>(
    model: &Unigram,
    scores: &Scores<A::Edge>,
    piece: &[u8],
    nodes: &mut Vec<Node<A::Sum>>,
) {
    forward_from::<A>(model, scores, piece, A::ZERO, nodes);
}

/// The same for a piece that stands behind others, whose best path has the sum `sum`.
pub(crate) fn forward_from<A: Arithmetic>(
    model: &Unigram,
    scores: &Scores<A::Edge>,
    piece: &[u8],
    sum: A::Sum,
    nodes: &mut Vec<Node<A::Sum>>,
) {
    nodes.clear();
    nodes.resize(piece.len() + 1, Node { sum: A::UNREACHED, id: UNKNOWN });
    nodes[0].sum = sum;
    let trie: &DoubleArray = &model.trie;
    let by_id = scores.by_id.as_slice();
    let mut start = 0;
    while start < piece.len() {
        if A::is_far(nodes[start].sum) {
            let end = (start + model.max_len.max(4)).min(piece.len());
            A::move_back(&mut nodes[start..=end]);
        }
        let rest = &piece[start..];
        let char_len = utf8::char_len(rest);
        // Tokens that begin here end behind here: their nodes, the first of which ends one byte on.
        let (here, ahead) = nodes[start..].split_at_mut(1);
        let sum = here[0].sum;
        let mut relax = |len: usize, id: u32, candidate: A::Candidate| {
            let node = &mut ahead[len - 1];
            if A::beats(candidate, node.sum) {
                *node = Node { sum: A::store(candidate), id };
            }
        };
        let mut has_char = false;
        trie.prefixes(rest, |len, id| {
            relax(len, id, A::add(sum, by_id[id as usize]));
            has_char |= len == char_len;
        });
        if !has_char {
            let candidate = A::add_unknown(sum, scores.unknown);
            relax(char_len, UNKNOWN + char_len as u32, candidate);
        }
        start += char_len;
    }
}

/// Walks back from the end.
pub(crate) fn emit<S>(
    model: &Unigram,
    piece: &[u8],
    nodes: &[Node<S>],
    push: impl FnMut(TokenId, usize),
) {
    let mut end = piece.len();
    let edges = core::iter::from_fn(|| {
        let id = (end > 0).then(|| nodes[end].id)?;
        end -= edge_len(model, id);
        Some(id)
    });
    emit_edges(model, piece, edges, push);
}

/// Turns the edges of a path, the last one first, into tokens, the last one first: unknown
/// characters into what stands for them.
#[inline]
pub(crate) fn emit_edges(
    model: &Unigram,
    piece: &[u8],
    edges: impl Iterator<Item = u32>,
    mut push: impl FnMut(TokenId, usize),
) {
    let unk = match model.options.compat {
        // The unknown token's own text counts as unknown too.
        Compat::HuggingFace => model.unk.map(|id| id.0),
        _ => None,
    };
    let fuse = model.options.fuse_unk;
    let mut end = piece.len();
    let mut run_end = None;
    for id in edges {
        let len = edge_len(model, id);
        if id >= UNKNOWN || Some(id) == unk {
            if fuse {
                run_end.get_or_insert(end);
            } else {
                emit_unknown(model, piece, end - len..end, &mut push);
            }
        } else {
            if let Some(run_end) = run_end.take() {
                emit_unknown(model, piece, end..run_end, &mut push);
            }
            push(TokenId(id), len);
        }
        end -= len;
    }
    if let Some(run_end) = run_end {
        emit_unknown(model, piece, 0..run_end, &mut push);
    }
}

/// The number of bytes that an edge covers.
#[inline]
pub(crate) fn edge_len(model: &Unigram, id: u32) -> usize {
    match id.checked_sub(UNKNOWN) {
        Some(len) => len as usize,
        None => model.lens[id as usize] as usize,
    }
}

/// What stands for a run of unknown characters (or for one, if they are not fused), the last
/// token first.
fn emit_unknown(
    model: &Unigram,
    piece: &[u8],
    run: Range<usize>,
    push: &mut impl FnMut(TokenId, usize),
) {
    let text = &piece[run.clone()];
    if model.options.compat == Compat::HuggingFace
        && let Some(id) = model.exact(text)
    {
        return push(id, run.len());
    }
    let vocab = &model.vocab;
    if model.options.byte_fallback && text.iter().all(|&byte| vocab.byte(byte).is_some()) {
        for id in text.iter().rev().filter_map(|&byte| vocab.byte(byte)) {
            push(id, 1);
        }
    } else if let Some(id) = model.unk {
        push(id, run.len());
    }
}

/// The scores of tokens where they match text, in the arithmetic of the mode.
#[derive(Clone, Debug)]
pub(crate) enum EdgeScores {
    SentencePiece(Scores<f32>),
    SentencePiece021(Scores<f64>),
    HuggingFace(Scores<f64>),
}

#[derive(Clone, Debug)]
pub(crate) struct Scores<E> {
    by_id: Vec<E>,
    unknown: E,
}

impl<E: Copy> Scores<E> {
    pub(crate) fn by_id(&self) -> &[E] {
        &self.by_id
    }

    pub(crate) fn unknown(&self) -> E {
        self.unknown
    }
}

impl EdgeScores {
    pub(crate) fn new(compat: Compat, vocab: &Vocab, scores: &[f64], min_score: f64) -> Self {
        let tokens =
            || vocab.iter().zip(scores).map(|((_, bytes, kind), &score)| (bytes, kind, score));
        let penalty = 10.0f32;
        match compat {
            Compat::SentencePiece => Self::SentencePiece(Scores {
                by_id: tokens()
                    .map(|(bytes, kind, score)| match kind {
                        TokenKind::UserDefined => (0.1 * (bytes.len() as f64 - 1.0)) as f32,
                        _ => score as f32,
                    })
                    .collect(),
                unknown: min_score as f32 - penalty,
            }),
            Compat::SentencePiece021 => {
                let best = tokens()
                    .filter(|token| token.1 == TokenKind::Normal)
                    .map(|token| token.2 as f32)
                    .fold(f32::MIN_POSITIVE, f32::max);
                Self::SentencePiece021(Scores {
                    by_id: tokens()
                        .map(|(bytes, kind, score)| match kind {
                            TokenKind::UserDefined => f64::from(bytes.len() as f32 * best) - 0.1,
                            _ => f64::from(score as f32),
                        })
                        .collect(),
                    unknown: f64::from(min_score as f32 - penalty),
                })
            }
            Compat::HuggingFace => Self::HuggingFace(Scores {
                by_id: scores.to_vec(),
                unknown: min_score - f64::from(penalty),
            }),
        }
    }

    /// The score of a token where it matches text: for a user-defined token not the one given.
    pub(crate) fn by_id(&self, id: u32) -> f64 {
        match self {
            Self::SentencePiece(scores) => f64::from(scores.by_id[id as usize]),
            Self::SentencePiece021(scores) | Self::HuggingFace(scores) => scores.by_id[id as usize],
        }
    }

    /// The score of an edge: of a token, or of an unknown character.
    pub(crate) fn edge(&self, id: u32) -> f64 {
        if id >= UNKNOWN { self.unknown() } else { self.by_id(id) }
    }

    /// The score of an unknown character.
    pub(crate) fn unknown(&self) -> f64 {
        match self {
            Self::SentencePiece(scores) => f64::from(scores.unknown),
            Self::SentencePiece021(scores) | Self::HuggingFace(scores) => scores.unknown,
        }
    }
}

/// How sums are made and compared.
pub(crate) trait Arithmetic {
    /// The score of a token.
    type Edge: Copy;
    /// The score of a path, as it is kept.
    type Sum: Copy;
    /// The score of a path before it is kept.
    type Candidate: Copy;
    const ZERO: Self::Sum;
    const UNREACHED: Self::Sum;
    fn add(sum: Self::Sum, edge: Self::Edge) -> Self::Candidate;
    /// The same for the score of an unknown character.
    #[inline]
    fn add_unknown(sum: Self::Sum, edge: Self::Edge) -> Self::Candidate {
        Self::add(sum, edge)
    }
    /// Strictly greater: the path that came first, which begins earlier, wins a tie.
    fn beats(candidate: Self::Candidate, sum: Self::Sum) -> bool;
    fn store(candidate: Self::Candidate) -> Self::Sum;
    /// Whether sums are to be moved back to 0 here.
    #[inline]
    fn is_far(_: Self::Sum) -> bool {
        false
    }
    /// Subtracts the first sum from all.
    fn move_back(_: &mut [Node<Self::Sum>]) {}
}

pub(crate) struct SentencePiece;
struct SentencePiece021;
struct HuggingFace;

impl Arithmetic for SentencePiece {
    type Edge = f32;
    type Sum = f32;
    type Candidate = f32;
    const ZERO: f32 = 0.0;
    const UNREACHED: f32 = f32::NEG_INFINITY;

    #[inline]
    fn add(sum: f32, edge: f32) -> f32 {
        edge + sum
    }

    #[inline]
    fn beats(candidate: f32, sum: f32) -> bool {
        candidate > sum
    }

    #[inline]
    fn store(candidate: f32) -> f32 {
        candidate
    }

    #[inline]
    fn is_far(sum: f32) -> bool {
        sum.abs() > 100_000.0
    }

    #[cold]
    fn move_back(nodes: &mut [Node<f32>]) {
        let offset = nodes[0].sum;
        for node in nodes {
            // What is not reached stays at negative infinity.
            node.sum -= offset;
        }
    }
}

impl Arithmetic for SentencePiece021 {
    type Edge = f64;
    type Sum = f32;
    type Candidate = f64;
    const ZERO: f32 = 0.0;
    const UNREACHED: f32 = f32::NEG_INFINITY;

    #[inline]
    fn add(sum: f32, edge: f64) -> f64 {
        edge + f64::from(sum)
    }

    #[inline]
    fn add_unknown(sum: f32, edge: f64) -> f64 {
        f64::from(edge as f32 + sum)
    }

    #[inline]
    fn beats(candidate: f64, sum: f32) -> bool {
        candidate > f64::from(sum)
    }

    #[inline]
    fn store(candidate: f64) -> f32 {
        candidate as f32
    }
}

impl Arithmetic for HuggingFace {
    type Edge = f64;
    type Sum = f64;
    type Candidate = f64;
    const ZERO: f64 = 0.0;
    const UNREACHED: f64 = f64::NEG_INFINITY;

    #[inline]
    fn add(sum: f64, edge: f64) -> f64 {
        edge + sum
    }

    #[inline]
    fn beats(candidate: f64, sum: f64) -> bool {
        candidate > sum
    }

    #[inline]
    fn store(candidate: f64) -> f64 {
        candidate
    }
}
