//! The lane for splitters that throw white space away.
//!
//! # Why it is exact
//!
//! A *unit* is a longest run of bytes without a blank. Blanks are bytes at which the whole pipeline
//! falls apart, and which leave nothing themselves:
//!
//! - The splitter throws them away and cuts there ([`pretok::Bert`], [`pretok::WhitespaceSplit`]:
//!   both cut at every white space, look at one character at a time, and drop white space), and
//!   all later steps work on each piece alone. A model encodes pieces independently (a law).
//! - The normalizer leaves a blank as white space, and what it does on either side does not
//!   depend on the other: without a normalizer because nothing happens; in [`BertNormalizer`]
//!   because each character is cleaned, spaced, stripped and lowercased on its own, and marks
//!   change places only within a run of characters whose combining class is not 0, which no ASCII
//!   character is part of. In [`Precompiled`] a rule applies to a grapheme, and so a blank (there
//!   only the space itself) must neither be part of any rule, nor follow a character that makes
//!   one grapheme with it (class Prepend of UAX #29), nor stand before one that continues it. The
//!   last is no condition but a matter of context: a unit is normalized behind a space.
//!
//! With BERT's splitter ASCII punctuation is cut out, too: every such character is a piece of its own,
//! and of class 0. Some in a row are one unit, of which there are few different ones. Where the normalizer puts spaces round ideographs, those that are encoded in
//! three bytes can be cut out in the same way, and are where units are long.

use std::borrow::Cow;

use normalize::{BertNormalizer, Precompiled};
use piece_table::Key;
use pretok::{Met, Neighbours};
use tokenizer_core::{Encode, Span, Token, utf8};

use super::BLOCKS;
use crate::lower::Mark;
use crate::pipeline::{Parts, PieceStep};

pub(crate) struct Words {
    /// Blanks are flagged; every byte meets the one before it but where both belong to one unit.
    neighbours: Neighbours,
    /// Whether ASCII punctuation may be cut everywhere. Units are cut around runs of it.
    cuts_punctuation: bool,
    /// Whether ideographs may; only long units are cut at them.
    cuts_ideographs: bool,
    kind: Kind,
}

/// How a unit that was not met before is prepared.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// BERT's splitter alone or behind BERT's normalizer: ASCII by table.
    Bert { clean: bool, lowercase: bool },
    /// By the ordinary steps.
    Steps,
    /// By the ordinary steps, behind a space.
    Graphemes,
}

impl Words {
    /// The lane for these parts, if the proof holds for them.
    pub(crate) fn of(parts: &Parts) -> Option<Self> {
        let (PieceStep::Split(first), rest) = parts.steps.split_first()? else { return None };
        let first = first.as_any()?;
        let bert = first.is::<pretok::Bert>();
        if !bert && !first.is::<pretok::WhitespaceSplit>() {
            return None;
        }
        if !rest.iter().all(works_on_pieces_alone) {
            return None;
        }
        let mut ideographs = false;
        let plain = bert && rest.is_empty();
        let kind = match &parts.normalizer {
            None if plain => Kind::Bert { clean: false, lowercase: false },
            None => Kind::Steps,
            Some(normalizer) => {
                let normalizer = normalizer.as_any()?;
                if let Some(normalizer) = normalizer.downcast_ref::<BertNormalizer>() {
                    ideographs = normalizer.handle_chinese_chars;
                    let (clean, lowercase) = (normalizer.clean_text, normalizer.lowercase);
                    if plain { Kind::Bert { clean, lowercase } } else { Kind::Steps }
                } else if let Some(precompiled) = normalizer.downcast_ref::<Precompiled>() {
                    let mut reads_space = false;
                    let all = precompiled.charsmap().each_char(|step| reads_space |= step.c == ' ');
                    if !all || reads_space {
                        return None;
                    }
                    Kind::Graphemes
                } else {
                    return None;
                }
            }
        };
        let blanks: &[u8] = if kind == Kind::Graphemes { b" " } else { b" \t\n\r" };
        let cuts_punctuation = bert && kind != Kind::Graphemes;
        let cuts_ideographs = cuts_punctuation && ideographs;
        let neighbours = neighbours(blanks, cuts_punctuation);
        Some(Self { neighbours, cuts_punctuation, cuts_ideographs, kind })
    }

    /// Appends about `most` units of `text` from `at` on, or all, and returns where to go on.
    pub(super) fn cut(&self, text: &[u8], at: usize, most: usize, units: &mut Vec<Span>) -> usize {
        if self.kind == Kind::Graphemes {
            return self.cut_between_graphemes(text, at, most, units);
        }
        let first = units.len();
        let behind = self.cut_at_blanks(text, at, most, units);
        let is_long = |unit: &Span| unit.len() > Key::MAX_LEN;
        if self.cuts_punctuation
            && let Some(long) = units[first..].iter().position(is_long)
        {
            for unit in units.split_off(first + long) {
                self.push(text, unit, units);
            }
        }
        behind
    }

    /// The same; long units are whole.
    ///
    /// Where units begin and where they end are two lists, which are written one after the other: so
    /// nothing depends on what stands between two units.
    fn cut_at_blanks(
        &self,
        text: &[u8],
        mut at: usize,
        most: usize,
        units: &mut Vec<Span>,
    ) -> usize {
        // How many units are begun, and ended: one less where one reaches into a block.
        let (mut begun, mut ended) = (units.len(), units.len());
        let enough = begun.saturating_add(most);
        let mut beginning = 1;
        // Whether the byte before the block is a blank, or none.
        let mut after_blank = 1;
        let mut found = [Met::default(); BLOCKS];
        while at < text.len() {
            let few = enough.saturating_sub(ended).clamp(1, BLOCKS);
            let blocks = self.neighbours.look_into(text, at, &mut found[..few]);
            units.resize(begun + (64 * blocks).min(text.len() - at), Span::default());
            let slots = &mut units[..];
            for met in &found[..blocks] {
                let mut places = met.met | beginning;
                if places == 0 && self.cuts_punctuation && text[at].is_ascii_punctuation() {
                    places = 1; // A run that is longer than a block.
                }
                beginning = 0;
                let mut begins = places & !met.flagged;
                let mut ends = places & !(met.flagged << 1 | after_blank);
                after_blank = met.flagged >> 63;
                while begins != 0 {
                    slots[begun].start = at + begins.trailing_zeros() as usize;
                    begun += 1;
                    begins &= begins - 1;
                }
                while ends != 0 {
                    slots[ended].end = at + ends.trailing_zeros() as usize;
                    ended += 1;
                    ends &= ends - 1;
                }
                at += 64;
            }
            if ended >= enough && at < text.len() {
                let behind = if ended < begun { units[ended].start } else { at };
                units.truncate(ended);
                return behind;
            }
        }
        if ended < begun {
            units[ended].end = text.len();
        }
        units.truncate(begun);
        text.len()
    }

    /// The same where what stands round a blank decides whether it is one.
    fn cut_between_graphemes(
        &self,
        text: &[u8],
        mut at: usize,
        most: usize,
        units: &mut Vec<Span>,
    ) -> usize {
        // Where the unit began that reaches into this block.
        let mut open = None;
        let mut beginning = 1;
        let mut found = [Met::default(); BLOCKS];
        while at < text.len() {
            let few = most.saturating_sub(units.len()).clamp(1, BLOCKS);
            let blocks = self.neighbours.look_into(text, at, &mut found[..few]);
            for met in &found[..blocks] {
                let mut places = met.met | beginning;
                beginning = 0;
                while places != 0 {
                    let bit = places.trailing_zeros();
                    places &= places - 1;
                    let place = at + bit as usize;
                    if let Some(start) = open {
                        if self.goes_on(text, start, place) {
                            continue;
                        }
                        units.push(Span::new(start, place));
                    }
                    open = (met.flagged >> bit & 1 == 0).then_some(place);
                }
                at += 64;
            }
            if units.len() >= most && at < text.len() {
                return open.unwrap_or(at);
            }
        }
        if let Some(start) = open {
            units.push(Span::new(start, text.len()));
        }
        text.len()
    }

    /// Whether the unit from `start` to `end` does not end there, but belongs together with the
    /// blank behind it, and then with the word behind that.
    #[inline]
    fn goes_on(&self, text: &[u8], start: usize, end: usize) -> bool {
        text[end - 1] == b' ' || last_char(&text[start..end]).is_some_and(Precompiled::joins_space)
    }

    /// Appends a unit, in parts if it is long and may be cut.
    #[inline]
    fn push(&self, text: &[u8], unit: Span, units: &mut Vec<Span>) {
        let is_short = unit.len() <= Key::MAX_LEN;
        let is_punctuation = text[unit.start].is_ascii_punctuation();
        if is_short || !is_punctuation && !self.cuts_ideographs {
            units.push(unit);
        } else if is_punctuation {
            let starts = unit.range().step_by(Key::MAX_LEN);
            let part = |start: usize| Span::new(start, unit.end.min(start + Key::MAX_LEN));
            units.extend(starts.map(part));
        } else {
            push_between_ideographs(text, unit, units);
        }
    }

    /// Whether what a unit becomes depends on where the text begins: if it is the first of a text
    /// and is not behind a space.
    pub(super) fn is_special_first(&self, text: &[u8]) -> bool {
        self.kind == Kind::Graphemes && text.first().is_some_and(|byte| !byte.is_ascii())
    }

    /// Whether ASCII letters may be lowercased beforehand.
    pub(super) fn lowercases(&self) -> bool {
        matches!(self.kind, Kind::Bert { lowercase: true, .. })
    }

    /// Appends the tokens of a unit. `behind_space` says that a space stands before it, or might.
    pub(super) fn encode(
        &self,
        parts: &Parts,
        scratch: &mut Scratch,
        unit: &str,
        behind_space: bool,
        encoder: &mut dyn Encode,
        tokens: &mut Vec<Token>,
    ) {
        let Scratch { text, pieces, spare } = scratch;
        pieces.clear();
        match self.kind {
            Kind::Bert { clean, lowercase } if unit.is_ascii() => {
                prepare_ascii(unit.as_bytes(), clean, lowercase, text, pieces);
                encoder.encode_pieces(text, pieces, tokens);
            }
            kind => {
                let mut unit = Cow::Borrowed(unit);
                if kind == Kind::Graphemes && behind_space {
                    unit = Cow::Owned(format!(" {unit}"));
                }
                let normalized = match &parts.normalizer {
                    None => unit,
                    Some(normalizer) => match normalizer.normalize(&unit) {
                        Cow::Borrowed(_) => unit,
                        Cow::Owned(changed) => Cow::Owned(changed),
                    },
                };
                if normalized.is_empty() {
                    return;
                }
                pieces.push(Span::new(0, normalized.len()));
                let text = crate::pipeline::run_steps(&parts.steps, normalized, pieces, spare);
                encoder.encode_pieces(text.as_bytes(), pieces, tokens);
            }
        }
    }
}

/// Appends the parts of a unit before, of and behind its ideographs.
fn push_between_ideographs(text: &[u8], unit: Span, units: &mut Vec<Span>) {
    let (mut start, mut at) = (unit.start, unit.start);
    while at < unit.end {
        if !matches!(text[at], 0xE3..=0xE9) || !is_ideograph(&text[at..unit.end]) {
            at += 1;
            continue;
        }
        if start < at {
            units.push(Span::new(start, at));
        }
        units.push(Span::new(at, at + 3));
        at += 3;
        start = at;
    }
    if start < unit.end {
        units.push(Span::new(start, unit.end));
    }
}

/// Blanks are flagged, and meet what is before and behind them. Where punctuation is cut, it meets all but
/// punctuation.
fn neighbours(blanks: &[u8], cuts_punctuation: bool) -> Neighbours {
    const BEFORE_BLANK: u8 = 1;
    const BEHIND_BLANK: u8 = 2;
    const BEFORE_PUNCTUATION: u8 = 4;
    const BEHIND_PUNCTUATION: u8 = 8;
    let mut before = [BEFORE_BLANK | BEFORE_PUNCTUATION; 129];
    let mut behind = [BEHIND_BLANK | BEHIND_PUNCTUATION; 129];
    for byte in 0..128u8 {
        let at = usize::from(byte);
        if blanks.contains(&byte) {
            before[at] = BEFORE_BLANK | BEHIND_BLANK;
            behind[at] = BEFORE_BLANK | BEHIND_BLANK | Neighbours::FLAG;
        } else if cuts_punctuation && byte.is_ascii_punctuation() {
            before[at] = BEFORE_BLANK | BEHIND_PUNCTUATION;
            behind[at] = BEHIND_BLANK | BEFORE_PUNCTUATION;
        }
    }
    Neighbours::new(&before, &behind)
}

/// Memory for the preparation of units.
#[derive(Default)]
pub(super) struct Scratch {
    text: Vec<u8>,
    pub(super) pieces: Vec<Span>,
    pub(super) spare: Vec<Span>,
}

/// What BERT's normalizer and splitter do to ASCII without blanks: control characters are deleted
/// (or, not cleaned, a few of them are white space), letters lowercased, punctuation cut out.
fn prepare_ascii(
    unit: &[u8],
    clean: bool,
    lowercase: bool,
    text: &mut Vec<u8>,
    pieces: &mut Vec<Span>,
) {
    text.clear();
    let mut start = 0;
    for &byte in unit {
        let punctuation = byte.is_ascii_punctuation();
        // Without cleaning VT and FF are white space.
        let space = matches!(byte, 0x0B | 0x0C);
        if byte < b' ' || byte == 0x7F {
            if clean {
                continue;
            }
        } else if punctuation && start < text.len() {
            pieces.push(Span::new(start, text.len()));
            start = text.len();
        }
        if space && start < text.len() {
            pieces.push(Span::new(start, text.len()));
        }
        text.push(if lowercase { byte.to_ascii_lowercase() } else { byte });
        if punctuation {
            pieces.push(Span::new(start, text.len()));
        }
        if punctuation || space {
            start = text.len();
        }
    }
    if start < text.len() {
        pieces.push(Span::new(start, text.len()));
    }
}

/// Whether the bytes begin with an ideograph of three bytes that BERT's normalizer sets apart.
#[inline]
fn is_ideograph(bytes: &[u8]) -> bool {
    let Some(&[a, b, c]) = bytes.first_chunk::<3>() else { return false };
    let c = u32::from(a & 0xF) << 12 | u32::from(b & 0x3F) << 6 | u32::from(c & 0x3F);
    matches!(c, 0x4E00..=0x9FFF | 0x3400..=0x4DBF)
}

/// The last character of a text; `None` for an ASCII character.
#[inline]
pub(super) fn last_char(text: &[u8]) -> Option<char> {
    if text.last()?.is_ascii() {
        return None;
    }
    let window = &text[text.len().saturating_sub(4)..];
    let start = window.iter().rposition(|&byte| byte & 0xC0 != 0x80)?;
    utf8::decode(&window[start..]).0
}

/// Whether a step does the same to a piece wherever it stands.
pub(super) fn works_on_pieces_alone(step: &PieceStep) -> bool {
    match step {
        PieceStep::Split(_) => true,
        PieceStep::Edit(edit) => edit.as_any().is_some_and(|edit| {
            use normalize::{ByteLevel, Metaspace, PrefixSpace, PrependScheme};
            let mark = edit.downcast_ref::<Mark>();
            mark.is_some_and(|mark| mark.0.scheme != PrependScheme::First)
                || edit.is::<Metaspace>()
                || edit.is::<PrefixSpace>()
                || edit.is::<ByteLevel>()
        }),
    }
}
