//! What kind of character this is: one table lookup for ASCII, two for the rest.

use core::ops::Range;

use crate::tables::{BLOCK, BLOCKS, INDEX_RUNS, LEGEND, SCRIPTS};

/// The class of a character. Every character is in exactly one.
///
/// Classes are as fine as the published patterns need: general category, cut where a pattern
/// names a character (`\r\n`, space, `'`, `/`) or a script (Han).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class(u8);

impl Class {
    /// `Lu` and `Lt`.
    pub(crate) const UPPER: Self = Self(0);
    /// `Ll`.
    pub(crate) const LOWER: Self = Self(1);
    /// `Lm` and `Lo`, except Han.
    pub(crate) const CASELESS: Self = Self(2);
    /// `M`, except Han.
    pub(crate) const MARK: Self = Self(3);
    /// `N`, except Han.
    pub(crate) const NUMBER: Self = Self(4);
    /// U+0020.
    pub(crate) const SPACE: Self = Self(5);
    /// `\r` and `\n`.
    pub(crate) const NEWLINE: Self = Self(6);
    /// The rest of `\s`.
    pub(crate) const WHITE: Self = Self(7);
    /// `'`.
    pub(crate) const APOSTROPHE: Self = Self(8);
    /// `/`.
    pub(crate) const SLASH: Self = Self(9);
    /// The rest of `P` and `S`, except Han.
    pub(crate) const SYMBOL: Self = Self(10);
    /// Controls, format characters, private use, unassigned. Rules reach it by complements only.
    #[cfg(test)]
    pub(crate) const OTHER: Self = Self(11);
    /// Han in `L`.
    pub(crate) const HAN_LETTER: Self = Self(12);
    /// Han in `N`.
    pub(crate) const HAN_NUMBER: Self = Self(13);
    /// Han in `M`.
    pub(crate) const HAN_MARK: Self = Self(14);
    /// Han in `P` or `S`: radicals and the like.
    pub(crate) const HAN_SYMBOL: Self = Self(15);

    /// Below 16.
    #[inline(always)]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Set(u16);

impl Set {
    pub(crate) const NONE: Self = Self(0);
    /// `\p{L}`.
    pub(crate) const LETTER: Self =
        Self::of(&[Class::UPPER, Class::LOWER, Class::CASELESS, Class::HAN_LETTER]);
    /// `\p{M}`.
    pub(crate) const MARK: Self = Self::of(&[Class::MARK, Class::HAN_MARK]);
    /// `\p{N}`.
    pub(crate) const NUMBER: Self = Self::of(&[Class::NUMBER, Class::HAN_NUMBER]);
    /// `\s`.
    pub(crate) const SPACE: Self = Self::of(&[Class::SPACE, Class::NEWLINE, Class::WHITE]);
    /// `[\p{P}\p{S}]`.
    pub(crate) const SYMBOL: Self =
        Self::of(&[Class::APOSTROPHE, Class::SLASH, Class::SYMBOL, Class::HAN_SYMBOL]);
    /// `\p{Han}`.
    pub(crate) const HAN: Self =
        Self::of(&[Class::HAN_LETTER, Class::HAN_NUMBER, Class::HAN_MARK, Class::HAN_SYMBOL]);

    pub(crate) const fn of(classes: &[Class]) -> Self {
        let (mut bits, mut i) = (0, 0);
        while i < classes.len() {
            bits |= 1 << classes[i].0;
            i += 1;
        }
        Self(bits)
    }

    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) const fn complement(self) -> Self {
        Self(!self.0)
    }

    #[inline(always)]
    pub(crate) const fn has(self, class: Class) -> bool {
        self.0 >> class.0 & 1 != 0
    }
}

/// Whether `c` is in `\w`.
#[inline]
pub(crate) fn is_word(c: char) -> bool {
    value(u32::from(c)) & 0x10 != 0
}

/// Whether `c` is punctuation to Hugging Face tokenizers: the ASCII symbols and the `P` of
/// Unicode 8.0.
#[inline]
pub(crate) fn is_punctuation(c: char) -> bool {
    value(u32::from(c)) & 0x20 != 0
}

/// Whether `c` is numeric to Hugging Face tokenizers: `N` of Unicode 17.0.
#[inline]
pub(crate) fn is_numeric(c: char) -> bool {
    value(u32::from(c)) & 0x40 != 0
}

/// Whether `c` is in `\s`.
#[inline]
pub(crate) fn is_space(c: char) -> bool {
    Set::SPACE.has(class(c))
}

/// The class of `c`.
#[inline]
pub(crate) fn class(c: char) -> Class {
    Class(value(u32::from(c)) & 15)
}

/// The script of `c`, as a number (0 is none), and the code points around `c` that have the same:
/// from the first to the one behind the last. `O(log n)` in the number of script runs.
pub(crate) fn script(c: char) -> (u8, Range<u32>) {
    let after = SCRIPTS.partition_point(|&(start, _)| start <= u32::from(c));
    // The first run starts at 0, so at least one run starts at or before `c`.
    let (start, script) = SCRIPTS[after - 1];
    (script, start..SCRIPTS.get(after).map_or(0x11_0000, |&(end, _)| end))
}

/// The script of a character, as SentencePiece's trainers part text by it: a number; `None` for
/// combining marks, which have the script of what is in front of them. What Unicode 9.0 gives no
/// script counts as common to all, with digits, punctuation and symbols; Hiragana and Katakana count
/// as Han.
///
/// ```
/// use pretok::script_of;
///
/// assert_eq!(script_of('か'), script_of('漢'));
/// assert_ne!(script_of('a'), script_of('я'));
/// assert_eq!(script_of('\u{301}'), None);
/// ```
#[must_use]
pub fn script_of(c: char) -> Option<u8> {
    match script(c).0 {
        NO_SCRIPT => Some(COMMON),
        INHERITED => None,
        script => Some(script),
    }
}

const NO_SCRIPT: u8 = 0;
/// The script of U+0000.
const COMMON: u8 = 1;
/// The script of U+0300.
const INHERITED: u8 = 39;

/// The class of the character at `at`, and its length in bytes. `bytes` is UTF-8 and `at` a
/// character boundary before its end.
#[inline(always)]
pub(crate) fn class_at(bytes: &[u8], at: usize) -> (Class, usize) {
    let byte = bytes[at];
    if byte < 0x80 { (Class(ASCII[usize::from(byte)]), 1) } else { wide_class_at(bytes, at) }
}

/// As [`class_at`] for a character of two or more bytes.
#[inline]
pub(crate) fn wide_class_at(bytes: &[u8], at: usize) -> (Class, usize) {
    let lead = u32::from(bytes[at]);
    let tail = |i: usize| u32::from(bytes[at + i]) << (8 * i);
    if lead < 0xE0 {
        (class_of_two(lead | tail(1)), 2)
    } else if lead < 0xF0 {
        (class_of_three(lead | tail(1) | tail(2)), 3)
    } else {
        (class_of_four(lead | tail(1) | tail(2) | tail(3)), 4)
    }
}

/// The length of a character of two or more bytes by its first.
#[inline(always)]
pub(crate) fn utf8_len(lead: u8) -> usize {
    2 + usize::from(lead >= 0xE0) + usize::from(lead >= 0xF0)
}

/// The class of a character of two bytes, which are the lowest of `word`.
#[inline(always)]
pub(crate) fn class_of_two(word: u32) -> Class {
    Class(value((word & 0x1F) << 6 | word >> 8 & 0x3F) & 15)
}

/// As [`class_of_two`], of three bytes.
#[inline(always)]
pub(crate) fn class_of_three(word: u32) -> Class {
    Class(value((word & 0x0F) << 12 | (word >> 8 & 0x3F) << 6 | word >> 16 & 0x3F) & 15)
}

/// As [`class_of_two`], of four bytes.
#[inline(always)]
pub(crate) fn class_of_four(word: u32) -> Class {
    let c = (word & 0x07) << 18
        | (word >> 8 & 0x3F) << 12
        | (word >> 16 & 0x3F) << 6
        | word >> 24 & 0x3F;
    Class(value(c) & 15)
}

/// Class in the low four bits, flags above.
#[inline(always)]
fn value(c: u32) -> u8 {
    let block = usize::from(INDEX[c as usize / BLOCK]);
    VALUES[block * BLOCK + c as usize % BLOCK]
}

static ASCII: [u8; 128] = {
    let mut classes = [0; 128];
    let mut i = 0;
    while i < 128 {
        classes[i] = VALUES[INDEX[i / BLOCK] as usize * BLOCK + i % BLOCK] & 15;
        i += 1;
    }
    classes
};

static INDEX: [u8; 0x11_0000 / BLOCK] = {
    let mut index = [0; 0x11_0000 / BLOCK];
    let (mut at, mut run) = (0, 0);
    while run < INDEX_RUNS.len() {
        let (count, block) = INDEX_RUNS[run];
        let mut i = 0;
        while i < count {
            index[at] = block;
            at += 1;
            i += 1;
        }
        run += 1;
    }
    assert!(at == index.len(), "the runs cover every code point");
    index
};

/// The blocks one after the other, and room for as many as [`INDEX`] can name, so that no lookup
/// needs a check.
static VALUES: [u8; 256 * BLOCK] = {
    let mut meaning = [0; 256];
    let mut i = 0;
    while i < LEGEND.len() {
        meaning[LEGEND[i].0 as usize] = LEGEND[i].1;
        i += 1;
    }
    let mut values = [0; 256 * BLOCK];
    let mut i = 0;
    while i < BLOCKS.len() * BLOCK {
        values[i] = meaning[BLOCKS[i / BLOCK][i % BLOCK] as usize];
        i += 1;
    }
    values
};

#[cfg(test)]
#[allow(dead_code, reason = "its main is not called here")]
#[path = "../examples/gen_tables.rs"]
mod gen_tables;

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec;

    use super::*;

    #[test]
    fn tables_are_what_the_generator_writes() {
        let current = include_str!("tables.rs");
        assert!(
            current == gen_tables::generate(),
            "run `cargo run -p pretok --example gen_tables > crates/pretok/src/tables.rs`"
        );
    }

    /// For every code point: `holds` is membership in the class `pattern`.
    fn check(pattern: &str, holds: impl Fn(char) -> bool) {
        let mut members = vec![false; 0x11_0000];
        for c in gen_tables::code_points(pattern) {
            members[c] = true;
        }
        for c in '\0'..=char::MAX {
            assert_eq!(holds(c), members[c as usize], "U+{:04X} and {pattern}", u32::from(c));
        }
    }

    #[test]
    fn classes_agree_with_the_properties_at_every_code_point() {
        let in_set = |set: Set| move |c| set.has(class(c));
        let in_class = |one: Class| move |c| class(c) == one;
        check(r"\p{L}", in_set(Set::LETTER));
        check(r"\p{M}", in_set(Set::MARK));
        check(r"\p{N}", in_set(Set::NUMBER));
        check(r"\s", in_set(Set::SPACE));
        check(r"\s", is_space);
        check(r"[\p{P}\p{S}]", in_set(Set::SYMBOL));
        check(r"\p{Han}", in_set(Set::HAN));
        check(r"[\p{Lu}\p{Lt}]", in_class(Class::UPPER));
        check(r"\p{Ll}", in_class(Class::LOWER));
        check(
            r"[\p{Lm}\p{Lo}]",
            in_set(Set::LETTER.without(Set::of(&[Class::UPPER, Class::LOWER]))),
        );
        check(r"[\r\n]", in_class(Class::NEWLINE));
        check(r"[^\s\p{L}\p{M}\p{N}\p{P}\p{S}]", in_class(Class::OTHER));
        check(r"\w", is_word);
    }

    #[test]
    fn classes_of_bytes_are_the_classes_of_their_characters() {
        let mut text = String::new();
        for c in '\0'..=char::MAX {
            text.clear();
            text.push(c);
            text.push('a');
            assert_eq!(class_at(text.as_bytes(), 0), (class(c), c.len_utf8()), "{c:?}");
        }
    }

    #[test]
    fn scripts_are_those_of_unicode_9() {
        let script = |c| script(c).0;
        assert_eq!(script('a'), script('\u{E9}'));
        assert_ne!(script('a'), script('я'));
        assert_eq!(script('京'), script('い'));
        assert_eq!(script('京'), script('グ'));
        assert_eq!(script('京'), script('ー'));
        assert_eq!(script('0'), script('$'));
        assert_eq!(script(' '), 0);
        assert_eq!(script('\u{E000}'), 0);
        // Georgian Mtavruli came with Unicode 11.
        assert_eq!(script('\u{1C90}'), 0);
        assert_eq!(script('\u{10FFFF}'), 0);
        assert_eq!(script('\0'), COMMON);
        assert_eq!(script('\u{300}'), INHERITED);
        assert_eq!(script_of('\u{E000}'), script_of('1'));
    }
}
