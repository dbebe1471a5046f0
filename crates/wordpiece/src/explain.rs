use alloc::vec::Vec;

use tokenizer_core::{Encode, Span, Token, TokenId, utf8};

use crate::encoder::{char_len, is_too_long};
use crate::{Unit, Unknown, WordPiece};

/// Why a word splits as it does. Made by [`WordPiece::explain`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The longest matches from left to right, whether or not they end up in the result.
    pub matches: Vec<Match>,
    /// How it ended.
    pub outcome: Outcome,
    /// What the encoder gives.
    pub tokens: Vec<Token>,
}

/// One step of MaxMatch: the longest token at a place in the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// The bytes of the word that the step covers; without a token, the part left unknown.
    pub span: Span,
    /// The longest token that matches at `span.start`, if any does.
    pub token: Option<TokenId>,
    /// How far any token of the vocabulary agrees with the word: `span.start..agrees_to` begins
    /// some token, and one more byte begins none. Greater than `span.end` if a longer token began
    /// well but was not complete.
    pub agrees_to: usize,
    /// What ended the match.
    pub stop: Stop,
}

/// What ended a longest match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The match reaches the end of the word.
    EndOfWord,
    /// No token goes on with the next byte of the word.
    NoLongerToken,
    /// Longer tokens agree with the word up to `agrees_to`, but none of them is complete there.
    LongerTokensDiffer,
}

/// How a word came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every part matched.
    Matched,
    /// The word has more characters than [`Options::max_chars`](crate::Options::max_chars);
    /// nothing was looked up.
    TooLong {
        /// How many characters it has.
        chars: usize,
    },
    /// No token matches at a place; what became unknown is the model's
    /// [`Unknown`](crate::Unknown) mode's affair.
    Unmatched {
        /// The first such place: a byte offset into the word.
        at: usize,
    },
}

pub(crate) fn explain(model: &WordPiece, word: &[u8]) -> Explanation {
    let mut tokens = Vec::new();
    model.session().encode_piece(word, &mut tokens);
    if is_too_long(model, word) {
        let chars = match model.options().unit {
            Unit::Byte => word.len(),
            Unit::Char => utf8::chars(word).count(),
        };
        return Explanation { matches: Vec::new(), outcome: Outcome::TooLong { chars }, tokens };
    }
    let mut matches = Vec::new();
    let mut outcome = Outcome::Matched;
    let mut start = 0;
    while start < word.len() {
        let mut step = longest_match(model, word, start);
        if step.token.is_none() {
            if outcome == Outcome::Matched {
                outcome = Outcome::Unmatched { at: start };
            }
            step.span.end = match model.options().unknown {
                Unknown::Word | Unknown::Rest => word.len(),
                Unknown::Character => start + char_len(model.options().unit, &word[start..]),
            };
        }
        start = step.span.end;
        matches.push(step);
    }
    Explanation { matches, outcome, tokens }
}

fn longest_match(model: &WordPiece, word: &[u8], start: usize) -> Match {
    let matcher = &model.matcher;
    let mut node = if start == 0 { matcher.initial } else { matcher.continuation };
    let mut agrees_to = start;
    let mut found = None;
    while let Some(next) = word.get(agrees_to).and_then(|&byte| matcher.child(node, byte)) {
        node = next;
        agrees_to += 1;
        // A node is a token if its only pop spells the whole node.
        let mut pops = matcher.pops(node);
        if let (Some((id, len)), None) = (pops.next(), pops.next())
            && len as usize == agrees_to - start
        {
            found = Some((TokenId(id), agrees_to));
        }
    }
    let end = found.map_or(start, |(_, end)| end);
    let stop = if end == word.len() {
        Stop::EndOfWord
    } else if agrees_to > end {
        Stop::LongerTokensDiffer
    } else {
        Stop::NoLongerToken
    };
    Match { span: Span::new(start, end), token: found.map(|(id, _)| id), agrees_to, stop }
}
