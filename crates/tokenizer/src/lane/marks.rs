//! The lane for models that keep white space as `▁` and need no splitter: SentencePiece's, and
//! those of Hugging Face that imitate it.
//!
//! # Why it is exact
//!
//! The text is treated as if a space stood in front where the tokenizer puts one there, and cut
//! into units. A cut between two characters is legal if neither the normalizer nor the model looks
//! across it. `p` stands before a cut, `b` behind it. All of these must hold:
//!
//! 1. *Rules.* No rule of the charsmap, and no user-defined symbol, reads across. So `b` is no
//!    character that a rule reads behind another (most often a combining mark); symbols are looked at
//!    as tokens, below.
//! 2. *Spaces.* Where the normalizer removes spaces behind spaces, what it does to `b` depends on
//!    whether `p` became one. So no cut stands between two blanks (characters that become spaces),
//!    and none behind a character beyond ASCII whose rule writes nothing or ends in a space (or a
//!    mark: the normalized text must not tell the two cases apart either). Instead, of a run of
//!    blanks at the beginning of a unit all but the last are left out.
//! 3. *Tokens.* No token holds what `p` becomes and what `b` becomes next to each other. Then no
//!    merge of BPE crosses the cut: its product would be such a token. (Merges on both sides do
//!    not touch each other, so their order does not matter.) And every path of a unigram lattice
//!    goes through the cut. If `b` may become something else together with a combining mark behind
//!    it, the same must hold for that.
//! 4. *Unknown characters* in a row are one token, so in BPE `p` or `b` must be a character that has a
//!    token, or all bytes must have one and characters fall back to them. The unknown tokens of two
//!    neighbouring units of a unigram model are made one when they are given out.
//!
//! Two ASCII characters are compared by classes ([`classes`]: letters, digits, white space, and each
//! other character by itself), 64 bytes of text at a time: if any letter stands before any digit in any
//! token, no letter is cut from a digit. Where one of them is not ASCII the characters themselves are
//! looked for in a set of pairs ([`pairs`]), so that text without spaces falls into short units, too.
//!
//! A space has a token (the mark), and tokens that hold a mark behind another character are rare,
//! so spaces are cut at nearly always; with a splitter at the mark they are by definition.
//!
//! The recogniser refuses what it cannot prove: marks in user-defined symbols' middle, unused
//! pieces of BPE (which are split by what was looked at last, anywhere in the text), unknown
//! characters that are dropped (their neighbours become neighbours), the mark as a suffix, spaces
//! that are not escaped, affixes of BPE, `ignore_merges`.
//!
//! At the end of a text SentencePiece removes spaces: a last unit that does not end in plain ASCII
//! is not looked up, but normalized with what follows: nothing.
//!
//! Unigram models of SentencePiece add scores from the beginning of the text; see
//! [`unigram::UnitSession`] for how a unit's path is kept all the same. Those of Hugging Face are
//! cut only at marks where a splitter does so: then each piece is a sum of its own.

mod classes;
mod pairs;
mod proof;

use pretok::{Met, Neighbours};
use tokenizer_core::{Encode, Span, Token};

use self::classes::{BLANK, Classes, ODD};
use self::pairs::{LastChar, Pairs};
pub(super) use self::proof::{Rewrite, is_split_at_marks};
use self::proof::{Shape, Tokens};
use super::BLOCKS;
use crate::pipeline::Parts;

const MARK: &str = "\u{2581}";
const MARK_CHAR: char = '\u{2581}';

pub(crate) struct Marks {
    lead: Lead,
    /// Spaces behind spaces and at the ends are removed.
    strip: bool,
    /// Every mark begins a piece of its own.
    split: bool,
    /// Whether units go on with the sum of those before.
    pub(super) sums: bool,
    /// Cuts between ASCII characters.
    neighbours: Neighbours,
    /// Cuts next to other characters.
    pairs: Pairs,
    /// ASCII characters that are copied if ASCII follows.
    plain: [bool; 128],
    /// ASCII characters that may end a text, and be there what they are elsewhere.
    plain_ends: [bool; 128],
}

/// Where a mark is put in front of a stretch of text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lead {
    Always,
    /// Unless the text begins with a space or a mark.
    Unmarked,
    /// The same, where the stretch is the beginning of the whole text.
    UnmarkedFirst,
    Never,
}

impl Marks {
    /// The lane for these parts, if the proof holds for them.
    pub(crate) fn of(parts: &Parts) -> Option<Self> {
        let shape = Shape::of(parts)?;
        let tokens = Tokens::of(parts.model.as_ref(), &shape)?;
        let matching: Vec<&[u8]> = tokens.matching().collect();
        let classes = Classes::new(&shape, &tokens, &matching)?;
        let pairs = Pairs::new(&shape, &tokens, &matching, &classes)?;
        Some(Self {
            lead: shape.lead,
            strip: shape.strip,
            split: shape.split,
            sums: tokens.sums,
            neighbours: classes.neighbours(),
            pairs,
            plain: classes.plain,
            plain_ends: std::array::from_fn(|byte| {
                !matches!(classes.class(byte as u8), ODD | BLANK)
            }),
        })
    }

    /// Whether a space is to be thought in front of a stretch of text.
    pub(super) fn leads(&self, text: &str, is_first: bool) -> bool {
        let unmarked = !text.starts_with([' ', MARK_CHAR]);
        match self.lead {
            Lead::Always => true,
            Lead::Unmarked => unmarked,
            Lead::UnmarkedFirst => unmarked && is_first,
            Lead::Never => false,
        }
    }

    /// Appends about `most` units of `text` from `at` on, or all, and returns where to go on.
    pub(super) fn cut(&self, text: &[u8], at: usize, most: usize, units: &mut Vec<Span>) -> usize {
        let mut start = at;
        let mut block_start = at;
        // Nothing is cut at the beginning.
        let (mut beginning, mut after_high, mut after_blank) = (1, 0, 0);
        let mut found = [Met::default(); BLOCKS];
        let mut last = LastChar::at(text, at);
        while block_start < text.len() {
            let few = most.saturating_sub(units.len()).clamp(1, BLOCKS);
            let blocks = self.neighbours.look_into(text, block_start, &mut found[..few]);
            for met in &found[..blocks] {
                let behind_high = met.high << 1 | after_high;
                after_high = met.high >> 63;
                let mut next_to_high = match self.pairs {
                    Pairs::Tokens(_) => met.leads | behind_high & !met.high,
                    Pairs::Spaces => behind_high & met.flagged,
                } & !beginning;
                let inside = text.len() - block_start;
                if inside < 64 {
                    next_to_high &= (1 << inside) - 1;
                }
                // Of a run of blanks at the beginning of a unit the last one is as good as all.
                let mut repeated = met.flagged & (met.flagged << 1 | after_blank);
                after_blank = met.flagged >> 63;
                if !self.strip {
                    repeated = 0;
                }
                let cuts = match &self.pairs {
                    Pairs::Tokens(joined) => {
                        joined.cuts(text, block_start, next_to_high, &mut last)
                    }
                    Pairs::Spaces => cuts_behind_others(text, block_start, next_to_high),
                };
                repeated &= !next_to_high | cuts;
                let mut places = met.met & !beginning & !next_to_high | cuts | repeated;
                beginning = 0;
                if repeated == 0 {
                    let first = units.len();
                    units.resize(first + places.count_ones() as usize, Span::default());
                    for unit in &mut units[first..] {
                        let place = block_start + places.trailing_zeros() as usize;
                        places &= places - 1;
                        *unit = Span::new(start, place);
                        start = place;
                    }
                    block_start += 64;
                    continue;
                }
                while places != 0 {
                    let bit = places.trailing_zeros();
                    places &= places - 1;
                    let place = block_start + bit as usize;
                    if repeated >> bit & 1 == 1 {
                        start += usize::from(start + 1 == place);
                        continue;
                    }
                    units.push(Span::new(start, place));
                    start = place;
                }
                block_start += 64;
            }
            if units.len() >= most && block_start < text.len() {
                return start;
            }
        }
        if start < text.len() {
            units.push(Span::new(start, text.len()));
        }
        text.len()
    }

    /// Whether a unit at the end of a text is there what it is elsewhere.
    pub(super) fn is_plain_end(&self, text: &[u8]) -> bool {
        let is_plain = |&byte: &u8| self.plain_ends.get(usize::from(byte)) == Some(&true);
        !self.strip || text.last().is_some_and(is_plain)
    }

    /// Writes the normalized text of a unit.
    pub(super) fn normalize(&self, rewrite: Rewrite<'_>, unit: &str, out: &mut String) {
        out.clear();
        let is_plain = |&byte: &u8| self.plain.get(usize::from(byte)) == Some(&true);
        let is_copied = unit.as_bytes().iter().all(|byte| *byte == b' ' || is_plain(byte));
        match rewrite {
            Rewrite::SentencePiece(normalizer) if !is_copied => {
                normalizer.normalize_inside_into(unit, out);
            }
            _ => self.mark_spaces(unit, out),
        }
    }

    fn mark_spaces(&self, mut text: &str, out: &mut String) {
        while let Some(at) = text.find(' ') {
            out.push_str(&text[..at]);
            out.push_str(MARK);
            text = &text[at + 1..];
            if self.strip {
                text = text.trim_start_matches(' ');
            }
        }
        out.push_str(text);
    }

    /// Takes away the spaces at the end of a text.
    pub(super) fn strip_end(&self, text: &mut String) {
        if self.strip {
            let len = text.trim_end_matches('\u{2581}').len();
            text.truncate(len);
        }
    }

    /// Appends the tokens of a normalized unit.
    pub(super) fn encode(
        &self,
        text: &str,
        encoder: &mut dyn Encode,
        pieces: &mut Vec<Span>,
        tokens: &mut Vec<Token>,
    ) {
        if !self.split {
            if !text.is_empty() {
                encoder.encode_piece(text.as_bytes(), tokens);
            }
            return;
        }
        pieces.clear();
        let mut start = 0;
        for (at, _) in text.match_indices(MARK) {
            if start < at {
                pieces.push(Span::new(start, at));
            }
            start = at;
        }
        if start < text.len() {
            pieces.push(Span::new(start, text.len()));
        }
        encoder.encode_pieces(text.as_bytes(), pieces, tokens);
    }
}

/// Of places behind characters that are not ASCII, a bit for each in a block of 64 bytes, those that do not
/// stand behind a mark.
fn cuts_behind_others(text: &[u8], block_start: usize, places: u64) -> u64 {
    let mut cuts = places;
    let mut left = places;
    while left != 0 {
        let bit = left.trailing_zeros();
        left &= left - 1;
        if text[..block_start + bit as usize].ends_with(MARK.as_bytes()) {
            cuts &= !(1 << bit);
        }
    }
    cuts
}
