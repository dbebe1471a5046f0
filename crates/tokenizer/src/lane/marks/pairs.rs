//! Cuts next to characters beyond ASCII.

use hashbrown::HashMap;
use normalize::Charsmap;
use tokenizer_core::utf8;

use super::MARK_CHAR;
use super::classes::{BLANK, Classes, ODD};
use super::proof::{Rewrite, Shape, Tokens};

/// Between which characters a text may be cut, where at least one of them is not ASCII.
pub(super) enum Pairs {
    /// By what they become and which characters stand next to each other in tokens.
    Tokens(Box<Joined>),
    /// In front of blanks alone, behind anything but a mark; a splitter cuts there.
    Spaces,
}

/// The pairs of characters that stand next to each other in a token, as text spells them or as it may
/// be normalized to them. A space stands for the mark.
pub(super) struct Joined {
    filter: Filter,
    /// Which characters of the basic plane have no rule, and a token if it matters that they have
    /// one: a bit each.
    plain: Box<[u64; 1024]>,
    /// Which characters rules change.
    ruled: CharFilter,
    special: HashMap<char, Special>,
    /// Whether two unknown characters side by side are as good as apart.
    unknown_apart: bool,
}

/// What is to be known of a character that rules read.
#[derive(Clone, Copy)]
struct Special {
    /// What it becomes ends so; `None` if nothing is cut behind it.
    end: Option<char>,
    /// What it becomes begins so; `None` if nothing is cut in front of it.
    start: Option<char>,
    /// It may become something else together with what follows.
    is_vague: bool,
}

impl Pairs {
    /// `None` if there is a token that is no text. `matching` are the tokens that match text.
    pub(super) fn new(
        shape: &Shape<'_>,
        tokens: &Tokens<'_>,
        matching: &[&[u8]],
        classes: &Classes,
    ) -> Option<Self> {
        if !tokens.inside {
            return Some(Self::Spaces);
        }
        Some(Self::Tokens(Box::new(Joined::new(shape, tokens, matching, classes)?)))
    }
}

impl Joined {
    fn new(
        shape: &Shape<'_>,
        tokens: &Tokens<'_>,
        matching: &[&[u8]],
        classes: &Classes,
    ) -> Option<Self> {
        let mut special = HashMap::new();
        special.insert(MARK_CHAR, Special::CLOSED);
        for byte in (0..128u8).filter(|&byte| byte != b' ') {
            match classes.class(byte) {
                ODD => special.insert(char::from(byte), Special::CLOSED),
                BLANK => special.insert(char::from(byte), Special::copied(' ')),
                _ => None,
            };
        }
        let charsmap = match shape.rewrite {
            Rewrite::SentencePiece(normalizer) => normalizer.charsmap(),
            Rewrite::None => None,
        };
        let become_others = charsmap.map_or_else(HashMap::new, |map| read_rules(map, &mut special));
        let mut joined = Self {
            filter: Filter::new(matching.iter().map(|token| pairs_beyond_ascii(token)).sum()),
            plain: Box::new([if tokens.unknown_apart { !0 } else { 0 }; 1024]),
            ruled: CharFilter::none(),
            special,
            unknown_apart: tokens.unknown_apart,
        };
        if shape.strip {
            joined.filter.add(' ', ' ');
        }
        let mut become_one = CharFilter::none();
        become_others.keys().for_each(|&c| become_one.add(c));
        for token in matching {
            let Ok(token) = str::from_utf8(token) else {
                // A byte alone stands next to nothing.
                if token.len() > 1 {
                    return None;
                }
                continue;
            };
            joined.add(token, shape.split, |c| {
                become_one.may_hold(c.into()).then(|| become_others.get(&c)).flatten()
            });
            let mut chars = token.chars();
            if let (Some(c), None) = (chars.next(), chars.next())
                && c != ' '
                && tokens.knows(token.as_bytes())
            {
                // No text that is encoded holds a space: a token of one is none for it.
                joined.set_plain(if c == MARK_CHAR { ' ' } else { c }, true);
            }
        }
        let special = std::mem::take(&mut joined.special);
        for (&c, what) in &special {
            if (what.end, what.start) != (Some(c), Some(c)) {
                joined.set_plain(c, false);
                joined.ruled.add(c);
            }
        }
        joined.special = special;
        Some(joined)
    }

    /// Notes which characters stand next to each other. If text is split at marks, nothing goes on into
    /// one. `others` says what becomes a character together with what follows.
    fn add<'o>(
        &mut self,
        token: &str,
        split: bool,
        others: impl Fn(char) -> Option<&'o Vec<char>>,
    ) {
        let mut before = None;
        for c in token.chars() {
            let c = if c == MARK_CHAR { ' ' } else { c };
            if let Some(before) = before.filter(|_| !(split && c == ' ')) {
                self.filter.add(before, c);
                for &other in others(c).into_iter().flatten() {
                    self.filter.add(before, other);
                }
            }
            before = Some(c);
        }
    }

    /// A character beyond the basic plane is never told to be plain.
    fn set_plain(&mut self, c: char, is_plain: bool) {
        match self.plain.get_mut(c as usize >> 6) {
            Some(word) if is_plain => *word |= 1 << (c as u32 & 63),
            Some(word) => *word &= !(1 << (c as u32 & 63)),
            None => {}
        }
    }

    #[inline]
    fn is_plain(&self, c: u32) -> bool {
        self.plain.get(c as usize >> 6).is_some_and(|word| word >> (c & 63) & 1 == 1)
    }

    /// Where a text may be cut, of places in a block of 64 bytes, a bit for each: all those in front of
    /// characters that are not ASCII, and those of ASCII behind them. `last` is the last character before the block
    /// that is not ASCII.
    ///
    /// No branch depends on what the set of pairs holds, nor on how long characters are: neighbouring
    /// characters are looked up while earlier ones are waited for.
    pub(super) fn cuts(
        &self,
        text: &[u8],
        block_start: usize,
        mut places: u64,
        last: &mut LastChar,
    ) -> u64 {
        let mut cuts = 0;
        while places != 0 {
            let bit = places.trailing_zeros();
            places &= places - 1;
            let place = block_start + bit as usize;
            let c = char_at(text, place);
            let byte = text[place - 1];
            let before = if byte < 0x80 { byte.into() } else { last.0 };
            last.0 = if c < 0x80 { last.0 } else { c };
            let may_cut = if self.is_plain(before) & self.is_plain(c) {
                !self.filter.may_hold(before, c)
            } else {
                self.may_cut_next_to_other(before, c)
            };
            cuts |= u64::from(may_cut) << bit;
        }
        cuts
    }

    /// Whether a text may be cut between two characters of which one is not plain.
    fn may_cut_next_to_other(&self, before: u32, behind: u32) -> bool {
        if !self.ruled.may_hold(before) && !self.ruled.may_hold(behind) {
            if self.unknown_apart || self.is_plain(before) {
                return !self.filter.may_hold(before, behind);
            }
            if !self.is_plain(behind) {
                // Both are unknown, and no rule says anything else.
                return false;
            }
        }
        self.may_cut_special(before, behind)
    }

    #[cold]
    #[inline(never)]
    fn may_cut_special(&self, before: u32, behind: u32) -> bool {
        let special = |c: u32| char::from_u32(c).map(|c| (c, self.special.get(&c).copied()));
        let (Some((before, ends)), Some((behind, starts))) = (special(before), special(behind))
        else {
            return false;
        };
        let ends = ends.unwrap_or(Special::copied(before));
        let starts = starts.unwrap_or(Special::copied(behind));
        let (Some(end), Some(start)) = (ends.end, starts.start) else { return false };
        let is_known = |c: char| (c as usize) < 0x1_0000 && self.is_plain(c.into());
        if !self.unknown_apart && !is_known(end) && (starts.is_vague || !is_known(start)) {
            return false;
        }
        // Symbols are copied and not normalized, so either may stand for itself.
        let mut pairs = [before, end].into_iter().flat_map(|p| [(p, behind), (p, start)]);
        !pairs.any(|(p, b)| self.filter.may_hold(p.into(), b.into()))
    }
}

impl Special {
    /// Nothing is cut next to it.
    const CLOSED: Self = Self { end: None, start: None, is_vague: false };

    /// It becomes this character.
    const fn copied(c: char) -> Self {
        Self { end: Some(c), start: Some(c), is_vague: false }
    }
}

/// Notes what rules do to characters beyond ASCII (and to ASCII if something follows). Returns for
/// characters that rules of several characters write first what those rules read first.
fn read_rules(
    charsmap: &Charsmap,
    special: &mut HashMap<char, Special>,
) -> HashMap<char, Vec<char>> {
    charsmap.each_char(|step| {
        let entry = special.entry(step.c).or_insert(Special::copied(step.c));
        if !step.is_first {
            *entry = Special::CLOSED;
        } else if let Some(target) = step.target
            && !step.c.is_ascii()
        {
            // A rule may be read at one place of the trie before it is known that another reads on.
            let is_closed = entry.end.is_none() && entry.start.is_none();
            let open = |c: &char| *c != MARK_CHAR && !is_closed;
            entry.end = target.chars().next_back().filter(|c| *c != ' ').filter(open);
            entry.start = target.chars().next().filter(open);
        }
    });
    let mut become_others: HashMap<char, Vec<char>> = HashMap::new();
    charsmap.each_extended(|c, firsts| {
        let Some(entry) = special.get_mut(&c) else { return };
        entry.is_vague = true;
        let closes = |first: &Option<char>| matches!(first, None | Some(' ' | MARK_CHAR));
        match firsts {
            Some(firsts) if entry.start == Some(c) && !firsts.iter().any(closes) => {
                for &first in firsts.iter().flatten().filter(|&&first| first != c) {
                    become_others.entry(first).or_default().push(c);
                }
            }
            _ => entry.start = None,
        }
    });
    become_others
}

/// How many pairs of neighbours a token has that are not both ASCII, at most.
fn pairs_beyond_ascii(token: &[u8]) -> usize {
    let token = token.strip_prefix(MARK_CHAR.encode_utf8(&mut [0; 4]).as_bytes()).unwrap_or(token);
    2 * token.iter().filter(|&&byte| byte >= 0xC0).count()
}

/// A set of characters that may hold more than it was given: of the basic plane each has a bit, beyond
/// it 64 share one.
struct CharFilter {
    basic: Box<[u64; 1024]>,
    beyond: [u64; 256],
}

impl CharFilter {
    fn none() -> Self {
        Self { basic: Box::new([0; 1024]), beyond: [0; 256] }
    }

    fn add(&mut self, c: char) {
        let c = c as u32;
        match self.basic.get_mut(c as usize >> 6) {
            Some(word) => *word |= 1 << (c & 63),
            None => self.beyond[(c >> 12) as usize - 16] |= 1 << (c >> 6 & 63),
        }
    }

    /// What is no character may be held.
    #[inline]
    fn may_hold(&self, c: u32) -> bool {
        if let Some(word) = self.basic.get(c as usize >> 6) {
            return word >> (c & 63) & 1 == 1;
        }
        let word = self.beyond.get((c >> 12) as usize - 16);
        word.is_none_or(|word| word >> (c >> 6 & 63) & 1 == 1)
    }
}

/// A set of pairs that may hold more than it was given.
struct Filter {
    bits: Vec<u64>,
    shift: u32,
}

impl Filter {
    /// For about so many pairs, besides those of ASCII, which are few.
    fn new(pairs: usize) -> Self {
        let log = pairs.saturating_mul(8).clamp(1 << 16, 1 << 21).next_power_of_two().ilog2();
        Self { bits: vec![0; 1 << (log - 6)], shift: 64 - log }
    }

    #[inline]
    fn place(&self, before: u32, behind: u32) -> (usize, u32) {
        let pair = u64::from(before) << 32 | u64::from(behind);
        let place = pair.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift;
        ((place >> 6) as usize, place as u32 & 63)
    }

    fn add(&mut self, before: char, behind: char) {
        let (word, bit) = self.place(before.into(), behind.into());
        self.bits[word] |= 1 << bit;
    }

    #[inline]
    fn may_hold(&self, before: u32, behind: u32) -> bool {
        let (word, bit) = self.place(before, behind);
        self.bits[word] >> bit & 1 == 1
    }
}

/// The character that was read last of those that are not ASCII.
pub(super) struct LastChar(u32);

impl LastChar {
    /// What stands at the beginning of a text from `at` on, where nothing is cut.
    pub(super) fn at(text: &[u8], at: usize) -> Self {
        Self(if at < text.len() { char_at(text, at) } else { 0 })
    }
}

/// The character of valid UTF-8 that begins at `at`.
#[inline(always)]
fn char_at(text: &[u8], at: usize) -> u32 {
    let Some(bytes) = text[at..].first_chunk::<4>() else {
        return utf8::decode(&text[at..]).0.map_or(u32::MAX, u32::from);
    };
    let [a, b, c, d] = bytes.map(u32::from);
    // As many bits as the character has bytes, if it is not ASCII.
    let len = bytes[0].leading_ones();
    let bits = (a & 0x7F >> len) << 18 | (b & 0x3F) << 12 | (c & 0x3F) << 6 | d & 0x3F;
    // Those of the bytes behind it go.
    bits >> (6 * (4 - len.clamp(1, 4)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_character() {
        for c in '\0'..=char::MAX {
            let text = format!("é{c}");
            assert_eq!(char_at(text.as_bytes(), 2), u32::from(c));
            let text = format!("é{c}\u{FFFF}");
            assert_eq!(char_at(text.as_bytes(), 2), u32::from(c));
        }
    }
}
