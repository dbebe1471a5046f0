//! The slow twins, which say what the fast code must give. They stay for ever.

use alloc::vec::Vec;

use tokenizer_core::Span;

use crate::Behavior;

/// What becomes of the parts of a text of `len` bytes with these `matches`: lists every part,
/// matches and what lies between, then folds the list, from the right for
/// [`Behavior::MergedWithNext`].
#[must_use]
pub fn cut(len: usize, matches: &[Span], behavior: Behavior, invert: bool) -> Vec<Span> {
    let mut parts = Vec::new();
    let mut at = 0;
    for &span in matches {
        if at != span.start {
            parts.push((Span::new(at, span.start), invert));
        }
        parts.push((span, !invert));
        at = span.end;
    }
    if at != len {
        parts.push((Span::new(at, len), invert));
    }
    let mut pieces: Vec<Span> = Vec::new();
    match behavior {
        Behavior::Removed => pieces.extend(parts.iter().filter(|p| !p.1).map(|p| p.0)),
        Behavior::Isolated => pieces.extend(parts.iter().map(|p| p.0)),
        Behavior::MergedWithPrevious | Behavior::Contiguous => {
            let mut last_is_match = false;
            for (span, is_match) in parts {
                let joins = match behavior {
                    Behavior::Contiguous => is_match == last_is_match,
                    _ => is_match && !last_is_match,
                };
                match pieces.last_mut() {
                    Some(piece) if joins => piece.end = span.end,
                    _ => pieces.push(span),
                }
                last_is_match = is_match;
            }
        }
        Behavior::MergedWithNext => {
            let mut next_is_match = false;
            for (span, is_match) in parts.into_iter().rev() {
                match pieces.last_mut() {
                    Some(piece) if is_match && !next_is_match => piece.start = span.start,
                    _ => pieces.push(span),
                }
                next_is_match = is_match;
            }
            pieces.reverse();
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// A splitter by one regular expression, through `fancy-regex` and nothing else: what lies
/// between matches is a piece too.
#[cfg(feature = "regex")]
#[derive(Clone, Debug)]
pub struct Backtracking {
    regex: fancy_regex::Regex,
}

#[cfg(feature = "regex")]
impl Backtracking {
    /// Compiles the pattern.
    ///
    /// # Errors
    ///
    /// If the pattern is not well formed.
    pub fn new(pattern: &str) -> Result<Self, fancy_regex::Error> {
        let regex = fancy_regex::RegexBuilder::new(pattern).backtrack_limit(usize::MAX).build()?;
        Ok(Self { regex })
    }
}

#[cfg(feature = "regex")]
impl tokenizer_core::Split for Backtracking {
    /// # Panics
    ///
    /// If the engine runs out of stack (a million characters that it may have to give back).
    fn split_into(&self, text: &str, spans: &mut Vec<Span>) {
        let matches: Vec<Span> = self
            .regex
            .find_iter(text)
            .map(|found| {
                let found = found.expect("no backtracking limit is set");
                Span::new(found.start(), found.end())
            })
            .collect();
        spans.extend(cut(text.len(), &matches, Behavior::Isolated, false));
    }
}
