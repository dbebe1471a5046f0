//! The lane for chains of normalizers in front of a splitter at spaces: what Hugging Face makes of
//! SentencePiece's models (T5, XLM-RoBERTa, ALBERT and their kin), and what its trainers write.
//!
//! # Why it is exact
//!
//! A unit begins with a space and goes up to the next space that may be cut at. Let `p` be the
//! character before such a space, `e` the last character of what a normalizer makes of the text
//! up to `p`. All of these must hold:
//!
//! 1. *Normalizers.* Each works on both sides as if the other was not there. Those that look at one
//!    character at a time do, and Unicode's forms, since a space neither combines nor changes places.
//!    [`Precompiled`] looks at graphemes: `e` must not be of those that make one with a space, and no
//!    rule may read a space. [`Replace`] must not match across: its text holds no space, or is one,
//!    or holds nothing but spaces. In the last case runs of spaces are read, and `e` must not be one.
//! 2. *Ends.* [`Prepend`] and [`Strip`] work at the ends of the text. So the first unit is always
//!    prepared as the beginning of a text, and must be something (visible, for [`Strip`]) before
//!    each of these steps; the last is prepared as the end of a text unless `e` is visible, as it must be before every cut,
//!    since white space may be all that is behind it.
//! 3. *Pieces.* What the space became begins a piece: it is the mark that the splitter cuts at, or
//!    white space for a splitter that cuts at all of it. A model encodes pieces independently.
//!
//! Where nothing but `p` decides `e` (one step of graphemes, before which nothing is changed), any
//! `p` that makes no grapheme with a space will do. Else `p` and the character before it must be
//! *calm*: of a set of letters, digits and punctuation of which it was tried out, when the lane was
//! built, that each becomes something visible at every step, whatever stands before it.

use std::borrow::Cow;

use normalize::{
    BertNormalizer, Lowercase, Metaspace, Nmt, Precompiled, Prepend, PrependScheme, Replace,
    Sequence, Strip, StripAccents, UnicodeForm,
};
use pretok::{Met, Neighbours};
use tokenizer_core::{Encode, Normalize, Span, Token};

use super::BLOCKS;
use super::marks::is_split_at_marks;
use super::words::{Scratch, last_char, works_on_pieces_alone};
use crate::lower::Mark;
use crate::pipeline::{Parts, PieceStep, run_steps};

const MARK: &str = "\u{2581}";

pub(crate) struct Spaces {
    /// Flags spaces.
    neighbours: Neighbours,
    /// What each step of the normalizer does to units.
    roles: Vec<Role>,
    /// Whether units end calmly.
    needs_calm: bool,
    /// Whether graphemes are read together.
    joins_graphemes: bool,
    calm: Calm,
}

/// Where a step of the normalizer has something to do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Everywhere,
    AtTheStart,
    Strip(Strip),
}

/// Where a unit stands.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// At the beginning of its stretch of text.
    pub first: bool,
    /// At its end.
    pub last: bool,
}

impl Place {
    pub(super) const INSIDE: Self = Self { first: false, last: false };
}

/// What spaces are when the normalizer is through with them.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Written {
    /// Every space is a mark.
    all_marks: bool,
    /// Some may be.
    some_marks: bool,
}

impl Spaces {
    /// The lane for these parts, if the proof holds for them.
    pub(crate) fn of(parts: &Parts) -> Option<Self> {
        let normalizer = parts.normalizer.as_ref()?;
        let steps = chain(normalizer.as_ref())?;
        let mut written = Written { all_marks: false, some_marks: false };
        let mut behind = [0; 129];
        behind[usize::from(b' ')] = Neighbours::FLAG;
        let mut lane = Self {
            neighbours: Neighbours::new(&[0; 129], &behind),
            roles: Vec::with_capacity(steps.len()),
            needs_calm: false,
            joins_graphemes: false,
            calm: Calm::default(),
        };
        for step in &steps {
            let role = lane.role(*step, &mut written)?;
            lane.roles.push(role);
        }
        begins_pieces(&parts.steps, written).then_some(())?;
        lane.calm = Calm::of(&steps, &lane.roles);
        lane.writes_visibly(&steps).then_some(lane)
    }

    /// What a step is for units, if the proof holds for it.
    fn role(&mut self, step: &dyn Normalize, written: &mut Written) -> Option<Role> {
        let step = step.as_any()?;
        if let Some(strip) = step.downcast_ref::<Strip>() {
            self.needs_calm |= strip.right;
            return Some(Role::Strip(*strip));
        }
        if step.is::<Prepend>() {
            return Some(Role::AtTheStart);
        }
        if let Some(replace) = step.downcast_ref::<Replace>() {
            return self.replace(replace, written);
        }
        // No other step after spaces have become something else.
        if written.some_marks {
            return None;
        }
        if let Some(precompiled) = step.downcast_ref::<Precompiled>() {
            self.joins_graphemes = true;
            self.needs_calm |= !self.roles.is_empty();
            let mut reads_space = false;
            let all = precompiled.charsmap().each_char(|step| reads_space |= step.c == ' ');
            return (all && !reads_space).then_some(Role::Everywhere);
        }
        let is_local = step.is::<UnicodeForm>()
            || step.is::<Lowercase>()
            || step.is::<StripAccents>()
            || step.is::<Nmt>()
            || step.is::<BertNormalizer>();
        is_local.then_some(Role::Everywhere)
    }

    fn replace(&mut self, replace: &Replace, written: &mut Written) -> Option<Role> {
        match (replace.literal_pattern(), replace.regex_pattern()) {
            (Some(""), _) => return None,
            (Some(" "), _) => {}
            (Some(literal), _) if !literal.contains([' ', '\u{2581}']) => {
                let is_other = ![" ", MARK].contains(&replace.content());
                return is_other.then_some(Role::Everywhere);
            }
            (Some(literal), _) if literal.bytes().all(|byte| byte == b' ') => {
                self.needs_calm = true;
            }
            (None, Some(regex)) if reads_runs_of_spaces(regex) => {
                self.needs_calm = true;
            }
            _ => return None,
        }
        match replace.content() {
            MARK => {
                written.all_marks |= replace.literal_pattern() == Some(" ");
                written.some_marks = true;
            }
            " " => {}
            _ => return None,
        }
        Some(Role::Everywhere)
    }

    /// Whether what replaces other text than spaces is visible to the end.
    fn writes_visibly(&self, steps: &[&dyn Normalize]) -> bool {
        steps.iter().enumerate().all(|(at, step)| {
            let replace = step.as_any().and_then(|step| step.downcast_ref::<Replace>());
            let written = replace.filter(|replace| ![" ", MARK].contains(&replace.content()));
            written.is_none_or(|replace| {
                let behind = at + 1;
                let stays = |c| is_calm(c, &steps[behind..], &self.roles[behind..]);
                !replace.content().is_empty()
                    && replace.content().chars().all(|c| c.is_ascii_graphic() && stays(c))
            })
        })
    }

    /// Appends about `most` units of `text` from `at` on, or all, and returns where to go on. The
    /// text at `at` begins a unit.
    pub(super) fn cut(&self, text: &[u8], at: usize, most: usize, units: &mut Vec<Span>) -> usize {
        let (mut start, mut block_start) = (at, at);
        let mut found = [Met::default(); BLOCKS];
        while block_start < text.len() {
            let few = most.saturating_sub(units.len()).clamp(1, BLOCKS);
            let blocks = self.neighbours.look_into(text, block_start, &mut found[..few]);
            for met in &found[..blocks] {
                let mut left = met.flagged;
                while left != 0 {
                    let place = block_start + left.trailing_zeros() as usize;
                    left &= left - 1;
                    if place > at && self.ends(text, place) {
                        units.push(Span::new(start, place));
                        start = place;
                    }
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

    /// Whether a unit may end before the space at `place`, which is not the first byte.
    #[inline]
    fn ends(&self, text: &[u8], place: usize) -> bool {
        if self.needs_calm {
            return self.calm.ends(&text[..place]);
        }
        text[place - 1].is_ascii()
            || !self.joins_graphemes
            || last_char(&text[..place]).is_some_and(|c| !Precompiled::joins_space(c))
    }

    /// The first unit, if it is to be told from others: all of the text, where it has no other.
    pub(super) fn first(&self, parts: &Parts, text: &str) -> Span {
        if self.roles.iter().all(|&role| role == Role::Everywhere) {
            return Span::new(0, 0);
        }
        // Each try is twice as long as the one before, so that all cost little more than the last.
        let mut end = 0;
        while end < text.len() {
            let least = (2 * end).max(1);
            let spaces = text.as_bytes().iter().enumerate().skip(least);
            let mut places = spaces.filter(|space| *space.1 == b' ').map(|space| space.0);
            end = places.find(|&at| self.ends(text.as_bytes(), at)).unwrap_or(text.len());
            if self.is_something(parts, &text[..end]) {
                break;
            }
        }
        Span::new(0, end)
    }

    /// Whether each step that works at the beginning of a text finds the beginning in this one.
    fn is_something(&self, parts: &Parts, text: &str) -> bool {
        let mut is_something = true;
        self.normalize(parts, text, Place::INSIDE, |role, text| {
            is_something &= match role {
                Role::Everywhere => true,
                Role::AtTheStart => !text.is_empty(),
                Role::Strip(_) => !text.trim().is_empty(),
            };
        });
        is_something
    }

    /// Whether a unit at the end of a text is there what it is elsewhere.
    pub(super) fn is_plain_end(&self, text: &[u8]) -> bool {
        let strips = |role: &Role| matches!(role, Role::Strip(strip) if strip.right);
        !self.roles.iter().any(strips) || self.calm.ends(text)
    }

    /// Appends the tokens of a unit.
    pub(super) fn encode(
        &self,
        parts: &Parts,
        scratch: &mut Scratch,
        unit: &str,
        place: Place,
        encoder: &mut dyn Encode,
        tokens: &mut Vec<Token>,
    ) {
        let normalized = self.normalize(parts, unit, place, |_, _| {});
        if normalized.is_empty() {
            return;
        }
        let Scratch { pieces, spare, .. } = scratch;
        pieces.clear();
        pieces.push(Span::new(0, normalized.len()));
        let text = run_steps(&parts.steps, normalized, pieces, spare);
        encoder.encode_pieces(text.as_bytes(), pieces, tokens);
    }

    /// What the steps make of a unit; `before` is told what each step is to find.
    fn normalize<'u>(
        &self,
        parts: &Parts,
        unit: &'u str,
        place: Place,
        mut before: impl FnMut(Role, &str),
    ) -> Cow<'u, str> {
        let steps = parts.normalizer.as_ref().and_then(|normalizer| chain(normalizer.as_ref()));
        let mut text = Cow::Borrowed(unit);
        for (step, &role) in steps.iter().flatten().zip(&self.roles) {
            before(role, &text);
            let strip = match role {
                Role::Strip(strip) => {
                    Strip::new(strip.left && place.first, strip.right && place.last)
                }
                _ => Strip::new(false, false),
            };
            let step: &dyn Normalize = match role {
                Role::Everywhere => *step,
                Role::AtTheStart if place.first => *step,
                Role::AtTheStart => continue,
                Role::Strip(_) => &strip,
            };
            let changed = match step.normalize(&text) {
                Cow::Borrowed(_) => None,
                Cow::Owned(changed) => Some(changed),
            };
            if let Some(changed) = changed {
                text = Cow::Owned(changed);
            }
        }
        text
    }
}

/// The steps of a normalizer.
fn chain(normalizer: &dyn Normalize) -> Option<Vec<&dyn Normalize>> {
    match normalizer.as_any()?.downcast_ref::<Sequence>() {
        Some(sequence) => Some(sequence.steps().collect()),
        None => Some(vec![normalizer]),
    }
}

/// Whether a regular expression matches runs of spaces and nothing else: spaces that may be repeated.
fn reads_runs_of_spaces(regex: &str) -> bool {
    let mut rest = regex;
    let mut is_run = !regex.is_empty();
    while is_run && !rest.is_empty() {
        let Some(behind) = rest.strip_prefix(' ') else { return false };
        rest = behind;
        if let Some(behind) = rest.strip_prefix('+') {
            rest = behind;
        } else if let Some(behind) = rest.strip_prefix('{') {
            let (range, behind) = behind.split_once('}').unwrap_or(("", ""));
            let (least, most) = range.split_once(',').unwrap_or((range, range));
            let at_least_one = least.parse::<u32>().is_ok_and(|least| least > 0);
            is_run = at_least_one && (most.is_empty() || most.parse::<u32>().is_ok());
            rest = behind;
        }
    }
    is_run
}

/// Whether each space begins a piece.
fn begins_pieces(steps: &[PieceStep], written: Written) -> bool {
    // What asks where the text begins is left to the ordinary way.
    let marks_spaces = |step: &PieceStep| match step {
        PieceStep::Split(_) => false,
        PieceStep::Edit(edit) => edit.as_any().is_some_and(|edit| {
            let mark = edit.downcast_ref::<Mark>().map(|mark| mark.0);
            let metaspace = mark.or_else(|| edit.downcast_ref::<Metaspace>().copied());
            metaspace.is_some_and(|metaspace| {
                metaspace.replacement == '\u{2581}' && metaspace.scheme != PrependScheme::First
            })
        }),
    };
    match steps {
        [split] if written.all_marks => is_split_at_marks(split),
        [marks, split] if marks_spaces(marks) => is_split_at_marks(split),
        [PieceStep::Split(split), rest @ ..] if !written.some_marks => {
            let split = split.as_any();
            split.is_some_and(|split| split.is::<pretok::WhitespaceSplit>())
                && rest.iter().all(works_on_pieces_alone)
        }
        _ => false,
    }
}

/// Characters that become something visible at every step, whatever stands before them.
struct Calm([u64; Calm::WORDS]);

impl Default for Calm {
    fn default() -> Self {
        Self([0; Self::WORDS])
    }
}

impl Calm {
    const WORDS: usize = 0x700 / 64;

    /// Candidates are alphabets without characters that continue a grapheme or combine with one
    /// before them.
    fn of(steps: &[&dyn Normalize], roles: &[Role]) -> Self {
        let candidates = ('!'..='~')
            .chain('\u{C0}'..='\u{24F}')
            .chain('\u{386}'..='\u{481}')
            .chain('\u{48A}'..='\u{52F}')
            .chain('\u{5D0}'..='\u{5EA}')
            .chain('\u{620}'..='\u{64A}')
            .chain('\u{66E}'..='\u{6D3}')
            .filter(|&c| c.is_ascii() || c.is_alphabetic() && c != '\u{670}');
        let mut calm = Self::default();
        for c in candidates.filter(|&c| is_calm(c, steps, roles)) {
            calm.0[c as usize >> 6] |= 1 << (c as u32 & 63);
        }
        calm
    }

    #[inline]
    fn has(&self, c: char) -> bool {
        self.0.get(c as usize >> 6).is_some_and(|word| word >> (c as u32 & 63) & 1 == 1)
    }

    /// Whether a text ends in a calm character, and the one before it is calm or a space, if there
    /// is one.
    #[inline]
    fn ends(&self, text: &[u8]) -> bool {
        let Some((last, before)) = split_last(text) else { return false };
        self.has(last) && split_last(before).is_none_or(|(c, _)| c == ' ' || self.has(c))
    }
}

/// Whether a character alone becomes something visible at every step that works everywhere.
fn is_calm(c: char, steps: &[&dyn Normalize], roles: &[Role]) -> bool {
    let starts = |c: char| c.is_ascii_graphic() || c.is_alphanumeric();
    let ends = |c: char| !c.is_whitespace() && !Precompiled::joins_space(c);
    let mut text = String::from(c);
    let mut steps = steps.iter().zip(roles).filter(|(_, role)| **role == Role::Everywhere);
    steps.all(|(step, _)| {
        let changed = match step.normalize(&text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(changed) => Some(changed),
        };
        if let Some(changed) = changed {
            text = changed;
        }
        text.starts_with(starts) && text.ends_with(ends)
    })
}

/// The last character, and the text before it.
#[inline]
fn split_last(text: &[u8]) -> Option<(char, &[u8])> {
    let (&byte, before) = text.split_last()?;
    if byte.is_ascii() {
        return Some((char::from(byte), before));
    }
    let c = last_char(text)?;
    Some((c, &text[..text.len() - c.len_utf8()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_runs_of_spaces_are_runs_of_spaces() {
        for regex in [" ", " +", " {2,}", "  +", " {1,3} ", " {2}"] {
            assert!(reads_runs_of_spaces(regex), "{regex:?}");
        }
        for regex in
            ["", " *", " {0,}", " {,2}", " 2", "\\s+", " |a", " +?a", " {2,", " {2,}?", "(  )"]
        {
            assert!(!reads_runs_of_spaces(regex), "{regex:?}");
        }
    }
}
