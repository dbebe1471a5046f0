//! The splitters that need no pattern.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroUsize;

use tokenizer_core::{Span, Split};

use crate::Behavior;
use crate::behavior::Cutter;
use crate::classes::{Set, class, is_numeric, is_punctuation, is_space, is_word};

/// The whole text as one piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Whole;

impl Split for Whole {
    fn split_into(&self, text: &str, spans: &mut Vec<Span>) {
        if !text.is_empty() {
            spans.push(Span::new(0, text.len()));
        }
    }
}

/// Every character a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chars;

impl Split for Chars {
    fn split_into(&self, text: &str, spans: &mut Vec<Span>) {
        spans.extend(text.char_indices().map(|(at, c)| Span::new(at, at + c.len_utf8())));
    }

    /// What follows changes no character.
    fn unsettled(&self) -> Option<usize> {
        Some(0)
    }
}

/// Pieces of `n` characters; the last may be shorter. Hugging Face's `FixedLength`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedLength(pub NonZeroUsize);

impl Split for FixedLength {
    fn split_into(&self, text: &str, spans: &mut Vec<Span>) {
        let mut start = 0;
        // A piece ends where every n-th character begins, and at the end.
        for (at, _) in text.char_indices().step_by(self.0.get()).skip(1) {
            spans.push(Span::new(start, at));
            start = at;
        }
        if start < text.len() {
            spans.push(Span::new(start, text.len()));
        }
    }

    /// What follows can go on the last piece.
    fn unsettled(&self) -> Option<usize> {
        Some(1)
    }
}

/// Cut at white space, which is removed. Hugging Face's `WhitespaceSplit`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WhitespaceSplit;

impl Split for WhitespaceSplit {
    fn split_into(&self, text: &str, spans: &mut Vec<Span>) {
        by_char(text, is_space, Behavior::Removed, spans);
    }

    /// What follows can go on the last piece.
    fn unsettled(&self) -> Option<usize> {
        Some(1)
    }

    fn as_any(&self) -> Option<&dyn core::any::Any> {
        Some(self)
    }
}

/// Runs of word characters and runs of what is neither word nor white space: `\w+|[^\w\s]+`;
/// white space is removed. Hugging Face's `Whitespace`. `\w` is that of Unicode 16.0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Words;

impl Split for Words {
    fn split_into(&self, text: &str, spans: &mut Vec<Span>) {
        #[derive(Clone, Copy, PartialEq)]
        enum Kind {
            Word,
            Space,
            Rest,
        }
        let kind = |c| match c {
            c if is_word(c) => Kind::Word,
            c if is_space(c) => Kind::Space,
            _ => Kind::Rest,
        };
        let (mut start, mut last) = (0, Kind::Space);
        for (at, c) in text.char_indices() {
            let kind = kind(c);
            if kind != last {
                if last != Kind::Space {
                    spans.push(Span::new(start, at));
                }
                (start, last) = (at, kind);
            }
        }
        if last != Kind::Space {
            spans.push(Span::new(start, text.len()));
        }
    }

    /// What follows can go on the last piece.
    fn unsettled(&self) -> Option<usize> {
        Some(1)
    }
}

/// BERT's rule: white space is removed, every punctuation character is a piece. Hugging Face's
/// `BertPreTokenizer`.
///
/// Punctuation is what [`Punctuation`] says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bert;

impl Split for Bert {
    fn split_into(&self, text: &str, spans: &mut Vec<Span>) {
        let mut start = 0;
        for (at, c) in text.char_indices() {
            let (space, punctuation) = (is_space(c), is_punctuation(c));
            if space || punctuation {
                let end = at + c.len_utf8();
                if start < at {
                    spans.push(Span::new(start, at));
                }
                if punctuation {
                    spans.push(Span::new(at, end));
                }
                start = end;
            }
        }
        if start < text.len() {
            spans.push(Span::new(start, text.len()));
        }
    }

    /// What follows can go on the last piece.
    fn unsettled(&self) -> Option<usize> {
        Some(1)
    }

    fn as_any(&self) -> Option<&dyn core::any::Any> {
        Some(self)
    }
}

/// Cut at punctuation. Hugging Face's `Punctuation`.
///
/// Punctuation is what Hugging Face tokenizers 0.23 take for it: all ASCII characters but letters,
/// digits, white space and controls (so `$`, `+`, `<` too), and the category `P` of Unicode 8.0
/// (with U+166D and U+111C9, which are symbols today).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Punctuation(pub Behavior);

impl Split for Punctuation {
    fn split_into(&self, text: &str, spans: &mut Vec<Span>) {
        by_char(text, is_punctuation, self.0, spans);
    }
}

/// Digits apart from the rest. Hugging Face's `Digits`.
///
/// A digit is what Hugging Face tokenizers 0.23.3 take for one: category `N` of Unicode 17.0, so
/// `²` and `¼` too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DigitSplit {
    /// Every digit is a piece.
    #[default]
    Individual,
    /// Every run of digits is a piece.
    Runs,
}

impl Split for DigitSplit {
    fn split_into(&self, text: &str, spans: &mut Vec<Span>) {
        let behavior = match self {
            Self::Individual => Behavior::Isolated,
            Self::Runs => Behavior::Contiguous,
        };
        by_char(text, is_numeric, behavior, spans);
    }
}

/// Runs of digits in groups; what lies between is a piece too.
///
/// A digit is `\p{N}` of Unicode 16.0, so that groups of 3 from the left are what the pattern
/// `\p{N}{1,3}` isolates.
///
/// ```
/// use core::num::NonZeroUsize;
/// use pretok::{Align, DigitGroups};
/// use tokenizer_core::Split;
///
/// let text = "x=1234567";
/// let groups = |align| DigitGroups { len: NonZeroUsize::new(3).unwrap(), align };
/// let pieces = |s: DigitGroups| s.split(text).iter().map(|s| &text[s.range()]).collect::<Vec<_>>();
/// assert_eq!(pieces(groups(Align::Left)), ["x=", "123", "456", "7"]);
/// assert_eq!(pieces(groups(Align::Right)), ["x=", "1", "234", "567"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigitGroups {
    /// The most digits in a group.
    pub len: NonZeroUsize,
    /// Where the short group goes.
    pub align: Align,
}

/// From which end of a run of digits groups are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// From the left: the last group may be short.
    #[default]
    Left,
    /// From the right, as people write large numbers: the first group may be short.
    Right,
}

impl Split for DigitGroups {
    fn split_into(&self, text: &str, spans: &mut Vec<Span>) {
        let is_digit = |c| Set::NUMBER.has(class(c));
        let mut rest = 0;
        while let Some(start) = text[rest..].find(is_digit).map(|at| rest + at) {
            if rest < start {
                spans.push(Span::new(rest, start));
            }
            let run = &text[start..];
            let run = &run[..run.find(|c| !is_digit(c)).unwrap_or(run.len())];
            rest = start + run.len();
            let first = match self.align {
                Align::Left => 0,
                Align::Right => run.chars().count() % self.len,
            };
            let mut group = start;
            let ends = run.char_indices().skip(first).step_by(self.len.get());
            for end in ends.map(|(at, _)| start + at).chain([rest]) {
                if group < end {
                    spans.push(Span::new(group, end));
                    group = end;
                }
            }
        }
        if rest < text.len() {
            spans.push(Span::new(rest, text.len()));
        }
    }
}

/// Cut before every `▁` (U+2581), which stands for a space: the pieces of SentencePiece models.
///
/// The text has its `▁` already: putting them in is normalization. This is the cut of Hugging
/// Face's `Metaspace`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metaspace;

impl Split for Metaspace {
    fn split_into(&self, text: &str, spans: &mut Vec<Span>) {
        before_every(text, '\u{2581}', spans);
    }

    /// What follows can go on the last piece.
    fn unsettled(&self) -> Option<usize> {
        Some(1)
    }
}

/// Cut before every space: "a b" gives "a" and " b".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpacePrefix;

impl Split for SpacePrefix {
    fn split_into(&self, text: &str, spans: &mut Vec<Span>) {
        before_every(text, ' ', spans);
    }

    /// What follows can go on the last piece.
    fn unsettled(&self) -> Option<usize> {
        Some(1)
    }
}

/// Cut at one character, which is removed. Hugging Face's `CharDelimiterSplit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CharDelimiter(pub char);

impl Split for CharDelimiter {
    fn split_into(&self, text: &str, spans: &mut Vec<Span>) {
        by_char(text, |c| c == self.0, Behavior::Removed, spans);
    }

    /// What follows can go on the last piece.
    fn unsettled(&self) -> Option<usize> {
        Some(1)
    }
}

/// Cut where the script changes. Hugging Face's `UnicodeScripts`.
///
/// Scripts are those of Unicode 9.0. Hiragana, Katakana and U+30FC count as Han. The space, and
/// what has no script (private use, what came after Unicode 9.0), goes with what is in front of
/// it; at the start of the text, where nothing is in front, it is dropped, as the reference does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scripts;

impl Split for Scripts {
    fn split_into(&self, text: &str, spans: &mut Vec<Span>) {
        let (mut start, mut last) = (0, 0);
        // Neighbours mostly have code points in the same run of one script.
        let (mut script, mut same) = (0, 0..0);
        for (at, c) in text.char_indices() {
            if !same.contains(&u32::from(c)) {
                (script, same) = crate::classes::script(c);
            }
            if script != 0 && script != last {
                if last != 0 {
                    spans.push(Span::new(start, at));
                }
                (start, last) = (at, script);
            }
        }
        if last != 0 {
            spans.push(Span::new(start, text.len()));
        }
    }
}

/// Splitters one after the other: each cuts the pieces of the one before, and sees a piece as a
/// whole text. Hugging Face's `Sequence`.
///
/// Without any splitter the text is one piece.
pub struct Sequence {
    stages: Vec<Box<dyn Split>>,
}

impl Sequence {
    /// The splitters, in order.
    #[must_use]
    pub fn new(stages: Vec<Box<dyn Split>>) -> Self {
        Self { stages }
    }
}

impl Split for Sequence {
    fn split_into(&self, text: &str, spans: &mut Vec<Span>) {
        let Some((first, rest)) = self.stages.split_first() else {
            return Whole.split_into(text, spans);
        };
        let Some((last, middle)) = rest.split_last() else {
            return first.split_into(text, spans);
        };
        let mut pieces = first.split(text);
        let mut next = Vec::new();
        for stage in middle {
            split_pieces(stage.as_ref(), text, &pieces, &mut next);
            core::mem::swap(&mut pieces, &mut next);
            next.clear();
        }
        split_pieces(last.as_ref(), text, &pieces, spans);
    }
}

impl fmt::Debug for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sequence").field("stages", &self.stages.len()).finish_non_exhaustive()
    }
}

fn split_pieces(splitter: &dyn Split, text: &str, pieces: &[Span], spans: &mut Vec<Span>) {
    for piece in pieces {
        let new = spans.len();
        splitter.split_into(&text[piece.range()], spans);
        for span in &mut spans[new..] {
            *span = span.shifted(piece.start);
        }
    }
}

fn by_char(text: &str, is_match: impl Fn(char) -> bool, behavior: Behavior, spans: &mut Vec<Span>) {
    let mut cutter = Cutter::new(behavior, false, spans);
    for (at, c) in text.char_indices() {
        if is_match(c) {
            cutter.matched(Span::new(at, at + c.len_utf8()));
        }
    }
    cutter.finish(text.len());
}

fn before_every(text: &str, c: char, spans: &mut Vec<Span>) {
    let mut start = 0;
    for (at, _) in text.match_indices(c) {
        if start < at {
            spans.push(Span::new(start, at));
        }
        start = at;
    }
    if start < text.len() {
        spans.push(Span::new(start, text.len()));
    }
}
