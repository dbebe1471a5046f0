//! Units of a longer text whose path may be kept, although sums are rounded.
//!
//! SentencePiece adds scores in 32-bit floats from the beginning of the sentence. So even where no
//! token crosses a place of the text, the path behind it depends on the sum before it: far from 0
//! two candidates that differ by a little become equal, or change places. A unit's path can be
//! kept nevertheless if its candidates differ by more than all the rounding there can be.
//!
//! # The bound
//!
//! Let a unit of k characters begin at a node with sum a (a 32-bit float), and let no token cross
//! its ends. Let S(j) be the exact best sum of a path from the beginning of the unit to its node j,
//! and W the greatest magnitude of all S(j) and of all exact candidates S(i) + w. What is computed
//! instead is s(0) = a and s(j) = max over the candidates fl(s(i) + w), with |fl(x) - x| <= u |x|
//! and u = 2^-24. (Sums of floats that underflow are exact, and none overflows:
//! [`MAX_SCORE`](crate::MAX_SCORE).) Let A = |a| + W and B = A (1 + 2ku).
//!
//! Claim: every candidate for a node that is reached by at most n edges, n <= k, differs from
//! a + its exact value by at most n u B, and so does s(j), a maximum of such, from a + S(j).
//! By induction: s(i) is off by at most (n - 1) u B, so s(i) + w is in magnitude at most
//! A + k u B <= B (which holds for ku <= 1/2), and rounding it adds at most u B.
//!
//! So a candidate that is exactly better than all its rivals by more than 2 k u B wins in rounded
//! arithmetic, too, whatever the order. Let m be the least such margin over the nodes *of the
//! best path*; then the best path is the one that is computed if
//!
//! ```text
//! m > 2 k u (1 + 2ku) (|a| + W),    that is    |a| < m / (2 k u (1 + 2ku)) - W.
//! ```
//!
//! The right side is the unit's limit. Where |a| is below, the sum behind the unit is what adding
//! the scores of its tokens to a, one by one in 32-bit floats, gives: bit for bit that of the
//! encoder. The exact sums are computed in 64-bit floats; their own error, k W 2^-53 a sum, is
//! taken off the margin many times over. Equal candidates have no margin, so such a unit is never
//! certified. Sums that pass ±100000 are moved back to 0 there; the limit keeps away from that, so
//! that none does inside of a certified unit.

use alloc::vec::Vec;

use tokenizer_core::{Token, TokenId, utf8};

use crate::model::{Compat, Unigram};
use crate::viterbi::{EdgeScores, SentencePiece, Session, UNKNOWN, edge_len, emit, forward_from};

/// Units of more characters are not certified. (Their limit would be too low to be of use.)
const LONGEST: usize = 128;

/// Sums are moved back beyond this; less what rounding and the last score may add.
const FAR: f64 = 100_000.0 - 16.0;

/// A node of the exact pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exact {
    sum: f64,
    /// The best of the candidates that lost.
    rival: f64,
    id: u32,
}

const UNREACHED: Exact = Exact { sum: f64::NEG_INFINITY, rival: f64::NEG_INFINITY, id: UNKNOWN };

/// The unigram encoder for a text that comes in units, of which each goes on with the sum that the
/// units before it left. Only for [`Compat::SentencePiece`].
///
/// No token may match across the ends of a unit. Then the tokens of all units are those of the whole
/// text, but that unknown tokens at the end of one unit and the beginning of the next are one there
/// ([`fused_unknown`](Self::fused_unknown)).
#[derive(Clone, Debug)]
pub struct UnitSession<'m> {
    model: &'m Unigram,
    scores: &'m [f32],
    unknown: f32,
    session: Session<'m>,
    exact: Vec<Exact>,
    edges: Vec<u32>,
}

/// How [`UnitSession::certify`] says that a token adds nothing to the sum.
const NOTHING: u32 = 15;

impl<'m> UnitSession<'m> {
    /// The session; `None` in another mode than [`Compat::SentencePiece`].
    #[must_use]
    pub fn new(model: &'m Unigram) -> Option<Self> {
        let EdgeScores::SentencePiece(scores) = &model.edges else { return None };
        debug_assert_eq!(model.options.compat, Compat::SentencePiece);
        Some(Self {
            model,
            scores: scores.by_id(),
            unknown: scores.unknown(),
            session: model.session(),
            exact: Vec::new(),
            edges: Vec::new(),
        })
    }

    /// The token that unknown characters in a row are together; `None` where each has its own, or its
    /// bytes.
    #[inline]
    #[must_use]
    pub fn fused_unknown(&self) -> Option<TokenId> {
        let options = &self.model.options;
        self.model.unk.filter(|_| options.fuse_unk && !options.byte_fallback)
    }

    /// Finds the exact best path of a unit and appends its tokens as *steps*. Returns the limit:
    /// the steps are those of the encoder for every sum below it in magnitude. 0 means that
    /// nothing is certain; then nothing is appended.
    ///
    /// The length of a step is no length, but says what it adds to the sum: 0 the token's score,
    /// 1 to 14 so many times the score of an unknown character, 15 nothing.
    pub fn certify(&mut self, unit: &[u8], steps: &mut Vec<Token>) -> f32 {
        let first = steps.len();
        let limit = self.exact_pass(unit).unwrap_or(0.0);
        // Rounded towards 0.
        let limit = (limit * (1.0 - 1e-6)) as f32;
        if limit <= 0.0 || !self.push_steps(unit, steps) {
            steps.truncate(first);
            return 0.0;
        }
        limit
    }

    /// The sum behind steps that [`certify`](Self::certify) gave, if it was `sum` before them.
    #[inline]
    #[must_use]
    pub fn replay(&self, mut sum: f32, steps: &[Token]) -> f32 {
        for step in steps {
            if step.len == 0 {
                sum += self.scores[step.id.index()];
            } else if step.len < NOTHING {
                (0..step.len).for_each(|_| sum += self.unknown);
            }
        }
        sum
    }

    /// As [`replay`](Self::replay), and the greatest magnitude of a sum before a step. `None` if a step stands for
    /// unknown characters.
    #[inline]
    #[must_use]
    pub fn replay_known(&self, mut sum: f32, steps: &[Token]) -> Option<(f32, f32)> {
        let unknown = self.fused_unknown();
        let (mut is_unknown, mut greatest) = (false, 0.0f32);
        for step in steps {
            is_unknown |= step.len != 0 || Some(step.id) == unknown;
            greatest = greatest.max(sum.abs());
            sum += self.scores[step.id.index()];
        }
        (!is_unknown).then_some((sum, greatest))
    }

    /// Appends the tokens of a unit behind the sum `sum`, as the encoder has them, and returns the
    /// sum behind it.
    pub fn encode(&mut self, unit: &[u8], sum: f32, tokens: &mut Vec<Token>) -> f32 {
        let EdgeScores::SentencePiece(scores) = &self.model.edges else {
            unreachable!("checked when the session was made")
        };
        let nodes = &mut self.session.narrow;
        forward_from::<SentencePiece>(self.model, scores, unit, sum, nodes);
        let first = tokens.len();
        emit(self.model, unit, nodes, |id, len| tokens.push(Token::new(id, len)));
        tokens[first..].reverse();
        nodes[unit.len()].sum
    }

    /// Computes the sums and margins of all nodes; returns the limit, if there may be one.
    fn exact_pass(&mut self, unit: &[u8]) -> Option<f64> {
        let model = self.model;
        let nodes = &mut self.exact;
        nodes.clear();
        if unit.len() > 4 * LONGEST {
            return None;
        }
        nodes.resize(unit.len() + 1, UNREACHED);
        nodes[0].sum = 0.0;
        let (mut start, mut chars, mut widest) = (0, 0, 0.0f64);
        while start < unit.len() {
            let rest = &unit[start..];
            let char_len = utf8::char_len(rest);
            let (here, ahead) = nodes[start..].split_at_mut(1);
            let sum = here[0].sum;
            let mut relax = |len: usize, id: u32, score: f32| {
                let candidate = sum + f64::from(score);
                widest = widest.max(candidate.abs());
                let node = &mut ahead[len - 1];
                if candidate > node.sum {
                    *node = Exact { sum: candidate, rival: node.sum, id };
                } else {
                    node.rival = node.rival.max(candidate);
                }
            };
            let mut has_char = false;
            let scores = self.scores;
            model.trie.prefixes(rest, |len, id| {
                relax(len, id, scores[id as usize]);
                has_char |= len == char_len;
            });
            if !has_char {
                relax(char_len, UNKNOWN + char_len as u32, self.unknown);
            }
            start += char_len;
            chars += 1;
        }
        if chars > LONGEST {
            return None;
        }
        let mut margin = f64::INFINITY;
        let mut end = unit.len();
        self.edges.clear();
        while end > 0 {
            let node = nodes[end];
            margin = margin.min(node.sum - node.rival);
            self.edges.push(node.id);
            end -= edge_len(model, node.id);
        }
        let steps = chars as f64;
        let unit_roundoff = f64::from(f32::EPSILON) / 2.0;
        let margin = margin - steps * widest * f64::EPSILON * 16.0;
        let factor = 2.0 * steps * unit_roundoff * (1.0 + 2.0 * steps * unit_roundoff);
        Some((margin / factor - widest).min(FAR - widest))
    }

    /// Appends the path that the exact pass found. `false` if steps cannot say what it adds.
    fn push_steps(&mut self, unit: &[u8], steps: &mut Vec<Token>) -> bool {
        let model = self.model;
        let (options, vocab) = (&model.options, &model.vocab);
        let mut at = 0;
        let mut edges = self.edges.iter().rev().peekable();
        while let Some(&edge) = edges.next() {
            let first = at;
            at += edge_len(model, edge);
            if edge < UNKNOWN {
                steps.push(Token { id: TokenId(edge), len: 0 });
                continue;
            }
            let mut adds = 1;
            while options.fuse_unk
                && let Some(&edge) = edges.next_if(|&&edge| edge >= UNKNOWN)
            {
                at += edge_len(model, edge);
                adds += 1;
            }
            if adds >= NOTHING {
                return false;
            }
            let text = &unit[first..at];
            if options.byte_fallback && text.iter().all(|&byte| vocab.byte(byte).is_some()) {
                let ids = text.iter().filter_map(|&byte| vocab.byte(byte));
                let adds = core::iter::once(adds).chain(core::iter::repeat(NOTHING));
                steps.extend(ids.zip(adds).map(|(id, len)| Token { id, len }));
            } else if let Some(id) = model.unk {
                steps.push(Token { id, len: adds });
            } else {
                return false;
            }
        }
        true
    }
}
