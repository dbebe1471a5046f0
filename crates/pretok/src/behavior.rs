//! What becomes of a match: the five behaviours of Hugging Face tokenizers.

use alloc::vec::Vec;

use tokenizer_core::Span;

/// What becomes of a match of a delimiter, and of the text between matches.
///
/// For the delimiter `-` in "the-final--countdown" (Hugging Face's own example):
///
/// | behaviour | pieces |
/// |---|---|
/// | `Removed` | `the` `final` `countdown` |
/// | `Isolated` | `the` `-` `final` `-` `-` `countdown` |
/// | `MergedWithPrevious` | `the-` `final-` `-` `countdown` |
/// | `MergedWithNext` | `the` `-final` `-` `-countdown` |
/// | `Contiguous` | `the` `-` `final` `--` `countdown` |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Behavior {
    /// Matches are dropped.
    Removed,
    /// Every match is a piece.
    #[default]
    Isolated,
    /// A match ends the piece in front of it; a match behind a match is a piece.
    MergedWithPrevious,
    /// A match begins the piece behind it; a match in front of a match is a piece.
    MergedWithNext,
    /// Adjacent matches are one piece.
    Contiguous,
}

impl Behavior {
    /// Every behaviour.
    pub const ALL: [Self; 5] = [
        Self::Removed,
        Self::Isolated,
        Self::MergedWithPrevious,
        Self::MergedWithNext,
        Self::Contiguous,
    ];

    /// The name in lower case with hyphens, as `merged-with-previous`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Removed => "removed",
            Self::Isolated => "isolated",
            Self::MergedWithPrevious => "merged-with-previous",
            Self::MergedWithNext => "merged-with-next",
            Self::Contiguous => "contiguous",
        }
    }

    /// The behaviour of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|behavior| behavior.name() == name)
    }
}

/// Turns the matches of a text, given in order, into pieces.
///
/// An empty match is no piece, but parts what is around it.
pub(crate) struct Cutter<'s> {
    behavior: Behavior,
    invert: bool,
    spans: &'s mut Vec<Span>,
    /// Where the text begins that was not yet seen.
    at: usize,
    /// The last piece, which what follows may still join.
    last: Option<Span>,
    last_is_match: bool,
}

impl<'s> Cutter<'s> {
    /// With `invert`, what lies between matches counts as a match, and matches do not.
    pub(crate) fn new(behavior: Behavior, invert: bool, spans: &'s mut Vec<Span>) -> Self {
        Self { behavior, invert, spans, at: 0, last: None, last_is_match: false }
    }

    /// The next match.
    #[inline]
    pub(crate) fn matched(&mut self, span: Span) {
        if self.at < span.start {
            self.part(Span::new(self.at, span.start), self.invert);
        }
        self.part(span, !self.invert);
        self.at = span.end;
    }

    /// The text ends here.
    pub(crate) fn finish(mut self, len: usize) {
        if self.at < len {
            self.part(Span::new(self.at, len), self.invert);
        }
        if let Some(last) = self.last {
            self.emit(last);
        }
    }

    #[inline]
    fn part(&mut self, span: Span, is_match: bool) {
        let joins = match self.behavior {
            Behavior::Removed => {
                if !is_match {
                    self.emit(span);
                }
                return;
            }
            Behavior::Isolated => return self.emit(span),
            Behavior::MergedWithPrevious => is_match && !self.last_is_match,
            Behavior::MergedWithNext => !is_match && self.last_is_match,
            Behavior::Contiguous => is_match == self.last_is_match,
        };
        self.last_is_match = is_match;
        match &mut self.last {
            Some(last) if joins => last.end = span.end,
            last => {
                if let Some(done) = last.replace(span) {
                    self.emit(done);
                }
            }
        }
    }

    #[inline]
    fn emit(&mut self, span: Span) {
        if !span.is_empty() {
            self.spans.push(span);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naive;

    #[test]
    fn five_behaviours_of_the_documented_example() {
        let text = "the-final--countdown";
        let cases: [(Behavior, &[&str]); 5] = [
            (Behavior::Removed, &["the", "final", "countdown"]),
            (Behavior::Isolated, &["the", "-", "final", "-", "-", "countdown"]),
            (Behavior::MergedWithPrevious, &["the-", "final-", "-", "countdown"]),
            (Behavior::MergedWithNext, &["the", "-final", "-", "-countdown"]),
            (Behavior::Contiguous, &["the", "-", "final", "--", "countdown"]),
        ];
        for (behavior, expected) in cases {
            let mut spans = Vec::new();
            let mut cutter = Cutter::new(behavior, false, &mut spans);
            for (at, _) in text.match_indices('-') {
                cutter.matched(Span::new(at, at + 1));
            }
            cutter.finish(text.len());
            let pieces: Vec<_> = spans.iter().map(|s| &text[s.range()]).collect();
            assert_eq!(pieces, expected, "{behavior:?}");
        }
    }

    #[test]
    fn equals_the_naive_cut_for_all_matches_in_short_texts() {
        // Every way to place up to three matches, empty ones too, in a text of 4 bytes.
        let len = 4;
        let spans: Vec<Span> =
            (0..=len).flat_map(|s| (s..=len).map(move |e| Span::new(s, e))).collect();
        let mut sets = alloc::vec![Vec::new()];
        for _ in 0..3 {
            let longer: Vec<Vec<Span>> = sets
                .iter()
                .flat_map(|set: &Vec<Span>| {
                    let after = set.last().copied();
                    spans
                        .iter()
                        .filter(move |s| after.is_none_or(|a| a.end <= s.start && a != **s))
                        .map(move |&s| [set.as_slice(), &[s]].concat())
                })
                .collect();
            sets.extend(longer);
        }
        for matches in sets {
            for behavior in Behavior::ALL {
                for invert in [false, true] {
                    let mut spans = Vec::new();
                    let mut cutter = Cutter::new(behavior, invert, &mut spans);
                    matches.iter().for_each(|&span| cutter.matched(span));
                    cutter.finish(len);
                    let slow = naive::cut(len, &matches, behavior, invert);
                    assert_eq!(spans, slow, "{matches:?} {behavior:?} invert {invert}");
                }
            }
        }
    }
}
