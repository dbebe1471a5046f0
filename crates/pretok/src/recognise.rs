//! From a pattern to the rules of a scanner, by its parts.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::slice;

use regex_syntax::hir::ClassUnicode;

use crate::syntax::{Alternative, Item, class_of};
use crate::{Case, Contractions, Digits, Han, Letters, Prefix, Rules, Tail, White};

/// The rules whose scanner cuts as `alternatives` do, if there are some: every part must be one
/// that a rule stands for, class for class and in this order.
pub(crate) fn rules(alternatives: &[Alternative]) -> Option<Rules> {
    let known = Known::new();
    let mut arms = Arms { rest: alternatives.iter() };

    let han = match arms.items()?.as_slice() {
        [Item::Run { class, min: 1, max: usize::MAX }] if *class == known.han => {
            arms.advance();
            Han::Apart
        }
        _ => Han::Letters,
    };

    let mut contractions = Contractions::None;
    let mut apart = BTreeSet::new();
    while let Some(Item::Strings { strings, optional: false }) = only(arms.items()?) {
        apart.extend(strings);
        arms.advance();
    }
    if !apart.is_empty() {
        contractions = Contractions::Apart(case(&apart)?);
    }

    let (prefix, letters, suffix) = words(&known, han, &mut arms)?;
    match (suffix, contractions) {
        (Some(suffix), Contractions::None) => {
            contractions = Contractions::Suffix(case(&suffix)?);
        }
        (Some(_), _) => return None,
        (None, _) => {}
    }

    let digits = match arms.take()?.as_slice() {
        [space, Item::Run { class, min: 1, max: usize::MAX }]
            if known.is_optional_space(space) && *class == known.number =>
        {
            Digits::SpacedRun
        }
        [Item::Run { class, min: 1, max: usize::MAX }] if *class == known.number => Digits::Run,
        [Item::Run { class, min: 1, max }] if *class == known.number => {
            Digits::Groups(u8::try_from(*max).ok()?)
        }
        _ => return None,
    };

    let punctuation = match letters {
        Letters::Plain | Letters::Cased => &known.punctuation,
        Letters::Marked => &known.punctuation_but_marks,
    };
    let is_punctuation = |item: &Item| matches!(item, Item::Run { class, min: 1, max: usize::MAX } if class == punctuation);
    let tail = match arms.take()?.as_slice() {
        [space, run] if known.is_optional_space(space) && is_punctuation(run) => Tail::None,
        [space, run, Item::Run { class, min: 0, max: usize::MAX }]
            if known.is_optional_space(space) && is_punctuation(run) =>
        {
            if *class == known.newline {
                Tail::Newlines
            } else if *class == known.newline_slash {
                Tail::NewlinesSlashes
            } else {
                return None;
            }
        }
        _ => return None,
    };

    let white = white(&known, &mut arms)?;
    Some(Rules { contractions, han, prefix, letters, digits, tail, white })
}

/// The alternatives that are left.
struct Arms<'a> {
    rest: slice::Iter<'a, Alternative>,
}

impl<'a> Arms<'a> {
    /// The parts of the next alternative.
    fn items(&self) -> Option<Vec<Item>> {
        self.rest.as_slice().first()?.items()
    }

    fn advance(&mut self) {
        self.rest.next();
    }

    fn take(&mut self) -> Option<Vec<Item>> {
        self.rest.next()?.items()
    }

    fn next(&mut self) -> Option<&'a Alternative> {
        self.rest.next()
    }
}

/// The classes that rules stand for.
struct Known {
    letter: ClassUnicode,
    mark: ClassUnicode,
    number: ClassUnicode,
    han: ClassUnicode,
    upper: ClassUnicode,
    lower: ClassUnicode,
    space: ClassUnicode,
    white: ClassUnicode,
    newline: ClassUnicode,
    newline_slash: ClassUnicode,
    not_newline: ClassUnicode,
    punctuation: ClassUnicode,
    punctuation_but_marks: ClassUnicode,
}

impl Known {
    fn new() -> Self {
        let class = |regex| class_of(regex).expect("a constant class is well formed");
        Self {
            letter: class(r"\p{L}"),
            mark: class(r"\p{M}"),
            number: class(r"\p{N}"),
            han: class(r"\p{Han}"),
            upper: class(r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"),
            lower: class(r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"),
            space: class(" "),
            white: class(r"\s"),
            newline: class(r"[\r\n]"),
            newline_slash: class(r"[\r\n/]"),
            not_newline: class(r"[^\r\n\p{L}\p{N}]"),
            punctuation: class(r"[^\s\p{L}\p{N}]"),
            punctuation_but_marks: class(r"[^\s\p{L}\p{M}\p{N}]"),
        }
    }

    fn is_optional_space(&self, item: &Item) -> bool {
        matches!(item, Item::Run { class, min: 0, max: 1 } if *class == self.space)
    }
}

type Words = (Prefix, Letters, Option<BTreeSet<String>>);

/// The alternatives for words: prefix, letters, and the contractions at the end.
fn words(known: &Known, han: Han, arms: &mut Arms<'_>) -> Option<Words> {
    let in_words = |class: &ClassUnicode| {
        let mut class = class.clone();
        if han == Han::Apart {
            class.difference(&known.han);
        }
        class
    };
    let (prefix, word, suffix) = word(known, arms.take()?)?;
    match word.as_slice() {
        [(class, 1)] => {
            let mut marked = known.letter.clone();
            marked.union(&known.mark);
            if *class == in_words(&known.letter) {
                Some((prefix, Letters::Plain, suffix))
            } else if *class == in_words(&marked) {
                Some((prefix, Letters::Marked, suffix))
            } else {
                None
            }
        }
        [_, _] => {
            let (upper, lower) = (in_words(&known.upper), in_words(&known.lower));
            let again = self::word(known, arms.take()?)?;
            let expected =
                |min_upper, min_lower| [(upper.clone(), min_upper), (lower.clone(), min_lower)];
            let same = word.as_slice() == expected(0, 1) && again.1.as_slice() == expected(1, 0);
            (same && (prefix, &suffix) == (again.0, &again.2)).then_some((
                prefix,
                Letters::Cased,
                suffix,
            ))
        }
        _ => None,
    }
}

type Word = (Prefix, Vec<(ClassUnicode, usize)>, Option<BTreeSet<String>>);

/// One alternative for words, taken apart: prefix, classes with their least number, contractions.
fn word(known: &Known, mut items: Vec<Item>) -> Option<Word> {
    let prefix = match items.first()? {
        item if known.is_optional_space(item) => Prefix::Space,
        Item::Run { class, min: 0, max: 1 } if *class == known.not_newline => Prefix::NotNewline,
        _ => Prefix::None,
    };
    if prefix != Prefix::None {
        items.remove(0);
    }
    let suffix = match items.pop()? {
        Item::Strings { strings, optional: true } => Some(strings),
        other => {
            items.push(other);
            None
        }
    };
    let runs = items
        .into_iter()
        .map(|item| match item {
            Item::Run { class, min, max: usize::MAX } => Some((class, min)),
            _ => None,
        })
        .collect::<Option<_>>()?;
    Some((prefix, runs, suffix))
}

/// The alternatives for white space, which must be the last.
fn white(known: &Known, arms: &mut Arms<'_>) -> Option<White> {
    let is_white = |item: &Item, least: usize| matches!(item, Item::Run { class, min, max: usize::MAX } if *class == known.white && *min == least);
    let at_end = |items: &[Item]| matches!(items, [run, Item::End] if is_white(run, 1));
    let lines = |items: &[Item]| {
        matches!(items, [run, Item::Run { class, min: 1, max: 1 | usize::MAX }]
            if is_white(run, 0) && *class == known.newline)
    };
    let mut white = White::Runs;
    let mut end_first = false;
    if arms.items().is_some_and(|items| at_end(&items)) {
        arms.advance();
        end_first = true;
    }
    if arms.items().is_some_and(|items| lines(&items)) {
        arms.advance();
        white = if end_first { White::LinesOrEnd } else { White::Lines };
    }
    // Without the alternative for lines, `\s++$` is what `\s+(?!\S)` does at the end anyway.
    match arms.next()? {
        Alternative::RunButLast(class) if *class == known.white => {}
        _ => return None,
    }
    match arms.take()?.as_slice() {
        [Item::Run { class, min: 1, max: 1 | usize::MAX }] if *class == known.white => {}
        _ => return None,
    }
    arms.next().is_none().then_some(white)
}

fn only(mut items: Vec<Item>) -> Option<Item> {
    let last = items.pop();
    if items.is_empty() { last } else { None }
}

/// With which letters these contractions are written, if they are the seven.
fn case(strings: &BTreeSet<String>) -> Option<Case> {
    let sensitive = ["s", "t", "re", "ve", "m", "ll", "d"];
    let variants = |fold: &dyn Fn(char) -> Vec<char>| -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        for word in sensitive {
            let mut words = Vec::from([String::from("'")]);
            for c in word.chars() {
                words = words
                    .iter()
                    .flat_map(|w| fold(c).into_iter().map(move |c| format!("{w}{c}")))
                    .collect();
            }
            all.extend(words);
        }
        all
    };
    let ascii = |c: char| Vec::from([c, c.to_ascii_uppercase()]);
    let unicode = |c: char| {
        let mut folded = ascii(c);
        // The one other character that simple case folding maps to one of these letters.
        if c == 's' {
            folded.push('\u{17F}');
        }
        folded
    };
    if *strings == variants(&|c| Vec::from([c])) {
        Some(Case::Sensitive)
    } else if *strings == variants(&unicode) {
        Some(Case::Insensitive)
    } else if *strings == variants(&ascii) {
        Some(Case::AsciiInsensitive)
    } else {
        None
    }
}
