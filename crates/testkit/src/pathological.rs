//! Texts that tokenizers find hard, at any size: worst cases for splitters, caches and encoders.
//!
//! The same kind and size give the same text on every machine, for ever: a text of this module is
//! named by its kind and its size alone. Small ones are committed under
//! `fixtures/corpora/pathological`; larger ones are made when they are needed.
//!
//! ```
//! let text = testkit::pathological::kind("one_letter").expect("a known kind").text(5);
//! assert_eq!(text, "aaaaa");
//! ```
//!
//! Making n bytes takes O(n) time and memory.

use std::fmt::Write as _;

use tokenizer_core::Rng;

/// A way in which text can be hard.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The name, in snake case; also the name of the committed file.
    pub name: &'static str,
    /// What it is hard for.
    pub shows: &'static str,
    /// Appends the next unit. Called until the text is long enough; `usize` is the unit's number.
    unit: fn(&mut String, &mut Rng, usize),
}

impl Kind {
    /// The text of this kind, cut to at most `max_bytes` on a character boundary: it is at most
    /// three bytes shorter.
    #[must_use]
    pub fn text(&self, max_bytes: usize) -> String {
        let mut rng = Rng::new(SEED);
        let mut text = String::with_capacity(max_bytes.saturating_add(LONGEST_UNIT));
        for number in 0.. {
            if text.len() >= max_bytes {
                break;
            }
            (self.unit)(&mut text, &mut rng, number);
        }
        let end = (0..=max_bytes.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
        text.truncate(end.expect("0 is a boundary"));
        text
    }
}

/// The kind of this name.
#[must_use]
pub fn kind(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

const SEED: u64 = 1;
/// A generous bound of what one call of a unit appends, for the reservation alone.
const LONGEST_UNIT: usize = 64;

/// Every kind.
pub const KINDS: &[Kind] = &[
    Kind {
        name: "one_letter",
        shows: "one enormous piece, every pair equal",
        unit: |text, _, _| text.push('a'),
    },
    Kind {
        name: "two_letters",
        shows: "one enormous piece that merges in halves again and again",
        unit: |text, _, _| text.push_str("ab"),
    },
    Kind {
        name: "fibonacci_word",
        shows: "one enormous piece, aperiodic, in which each merge makes the next",
        unit: |text, _, number| text.push(fibonacci_letter(number)),
    },
    Kind {
        name: "four_letters",
        shows: "one enormous piece with a tiny alphabet, as DNA has",
        unit: |text, rng, _| text.push(pick(rng, &['A', 'C', 'G', 'T'])),
    },
    Kind {
        name: "random_letters",
        shows: "one enormous piece without structure",
        unit: |text, rng, _| text.push(char_in(rng, 'a', 'z')),
    },
    Kind {
        name: "all_different",
        shows: "no word twice: every cache misses",
        unit: |text, rng, number| {
            let _ = write!(text, "{number:x}");
            for _ in 0..4 {
                text.push(char_in(rng, 'g', 'z'));
            }
            text.push(' ');
        },
    },
    Kind {
        name: "spaces",
        shows: "one run of spaces: look-ahead at white space backtracks",
        unit: |text, _, _| text.push(' '),
    },
    Kind {
        name: "newlines",
        shows: "one run of line ends, two kinds",
        unit: |text, _, number| text.push_str(if number.is_multiple_of(2) { "\n" } else { "\r\n" }),
    },
    Kind {
        name: "blank_mix",
        shows: "all kinds of white space, now and then a letter",
        unit: |text, rng, _| {
            let blanks = [
                " ", " ", " ", "  ", "\n", "\r\n", "\t", "\u{A0}", "\u{3000}", "\u{2028}",
                "\u{85}", "\u{B}", "x",
            ];
            text.push_str(pick(rng, &blanks));
        },
    },
    Kind {
        name: "digits",
        shows: "one enormous number",
        unit: |text, rng, _| text.push(char_in(rng, '0', '9')),
    },
    Kind {
        name: "apostrophes",
        shows: "contractions that start, stop and start again",
        unit: |text, rng, _| {
            let parts = ["'", "'s", "'t", "'ll", "'S", "'re", "x", " ", "\u{17F}", "\u{2019}s"];
            text.push_str(pick(rng, &parts));
        },
    },
    Kind {
        name: "markup_soup",
        shows: "special-token look-alikes, word-boundary marks and brackets",
        unit: |text, rng, _| {
            let parts = [
                ">",
                "<",
                "/",
                "\u{2581}",
                "\u{2039}",
                "|",
                "##",
                "</w>",
                "<s>",
                "</s>",
                "<unk>",
                "[CLS]",
                "<0x0A>",
                "<|endoftext|>",
                "<|",
                "|>",
                "\u{120}",
                "\u{10A}",
                "&",
                ";",
            ];
            text.push_str(pick(rng, &parts));
        },
    },
    Kind {
        name: "zwj_emoji",
        shows: "long emoji sequences without spaces: joiners, selectors, skin tones",
        unit: |text, rng, _| {
            let parts = [
                "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}\u{200D}\u{1F466}",
                "\u{1F469}\u{1F3FD}\u{200D}\u{1F4BB}",
                "\u{1F3F3}\u{FE0F}\u{200D}\u{1F308}",
                "\u{2764}\u{FE0F}\u{200D}\u{1F525}",
                "\u{1F44D}\u{1F3FF}",
                "\u{1F600}",
                "1\u{FE0F}\u{20E3}",
            ];
            text.push_str(pick(rng, &parts));
        },
    },
    Kind {
        name: "regional_indicators",
        shows: "a run of flag letters whose pairing depends on where it starts",
        unit: |text, rng, _| text.push(char_in(rng, '\u{1F1E6}', '\u{1F1FF}')),
    },
    Kind {
        name: "han_without_punctuation",
        shows: "one enormous piece of three-byte characters, most pairs new",
        unit: |text, rng, _| text.push(char_in(rng, '\u{4E00}', '\u{62FF}')),
    },
    Kind {
        name: "thai_without_spaces",
        shows: "one enormous piece of letters and marks",
        unit: |text, rng, _| {
            text.push(char_in(rng, '\u{E01}', '\u{E2E}'));
            if rng.below(3) == 0 {
                text.push(char_in(rng, '\u{E34}', '\u{E37}'));
            }
        },
    },
    Kind {
        name: "combining_marks",
        shows: "letters under piles of marks; normalization must sort them",
        unit: |text, rng, _| {
            text.push(char_in(rng, 'a', 'e'));
            for _ in 0..rng.below(12) {
                text.push(char_in(rng, '\u{300}', '\u{36F}'));
            }
        },
    },
    Kind {
        name: "lossy_bytes",
        shows: "random bytes decoded with replacement characters",
        unit: |text, rng, _| {
            let bytes = rng.next_u64().to_le_bytes();
            text.push_str(&String::from_utf8_lossy(&bytes));
        },
    },
    Kind {
        name: "any_characters",
        shows: "random scalar values, assigned or not: nearly every character once",
        unit: |text, rng, _| {
            let value = u32::try_from(rng.below(0x11_0000)).expect("below 0x11_0000");
            text.push(char::from_u32(value).unwrap_or('\u{FFFD}'));
        },
    },
];

/// Letter `number` of the infinite Fibonacci word: 'a' where the golden-ratio sequence steps by 2.
///
/// `number` in Zeckendorf form ends in 1 exactly where the word has 'b'; computed by taking away
/// the largest Fibonacci number until nothing is left.
fn fibonacci_letter(number: usize) -> char {
    let mut pair = (1usize, 2usize);
    while pair.1 <= number {
        pair = (pair.1, pair.0 + pair.1);
    }
    let (mut rest, mut ends_in_one) = (number, false);
    // The pairs go down from (F(k), F(k+1)) to (1, 2); each step tries the lower number.
    loop {
        if pair.0 <= rest {
            rest -= pair.0;
            ends_in_one = pair.0 == 1;
        }
        if pair.0 == 1 {
            break;
        }
        pair = (pair.1 - pair.0, pair.0);
    }
    if ends_in_one { 'b' } else { 'a' }
}

/// One of the items, each as likely as the others.
pub(crate) fn pick<T: Copy>(rng: &mut Rng, items: &[T]) -> T {
    items[rng.below(items.len() as u64) as usize]
}

/// A character of `first..=last`, a range without surrogates.
fn char_in(rng: &mut Rng, first: char, last: char) -> char {
    let (first, last) = (u32::from(first), u32::from(last));
    let offset = rng.below(u64::from(last - first) + 1);
    let value = first + u32::try_from(offset).expect("within a range of characters");
    char::from_u32(value).expect("the ranges hold no surrogates")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_the_asked_size_and_is_the_same_each_time() {
        for kind in KINDS {
            assert_eq!(kind.text(0), "", "{}", kind.name);
            for size in [1, 7, 1000, 10_000] {
                let text = kind.text(size);
                assert!(text.len() <= size && text.len() + 3 >= size, "{}: {size}", kind.name);
                assert_eq!(text, kind.text(size), "{}", kind.name);
            }
        }
    }

    #[test]
    fn a_longer_text_starts_with_the_shorter_one() {
        for kind in KINDS {
            assert!(kind.text(3000).starts_with(&kind.text(900)), "{}", kind.name);
        }
    }

    #[test]
    fn names_are_unique_and_found() {
        for (index, one) in KINDS.iter().enumerate() {
            assert_eq!(kind(one.name).map(|found| found.name), Some(one.name));
            assert!(KINDS[..index].iter().all(|other| other.name != one.name), "{}", one.name);
        }
        assert!(kind("no_such_kind").is_none());
    }

    #[test]
    fn fibonacci_word_is_the_fixed_point_of_its_morphism() {
        let word = kind("fibonacci_word").expect("it exists").text(987);
        let mut expected = String::from("a");
        while expected.len() < 987 {
            expected =
                expected.chars().map(|c| if c == 'a' { "ab" } else { "a" }).collect::<String>();
        }
        assert_eq!(word, expected[..987]);
    }
}
