//! An automaton over classes of characters instead of bytes.
//!
//! A pattern tells few kinds of characters apart: cl100k 15, o200k 27. Characters that every class
//! of the pattern has, or has not, together are one letter of a small alphabet; over it the whole
//! automaton is made in advance, where one over the bytes of UTF-8 has so many states that they must
//! be made on the way.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use regex_automata::Anchored;
use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_syntax::hir::{
    Class, ClassBytes, ClassBytesRange, ClassUnicode, Hir, HirKind, Look, Repetition,
};

use crate::classes::utf8_len;

/// Finds matches that begin at a place, of the first of several patterns that has one.
///
/// A state is where its row begins in `next`. The first is that from which nothing leads to a
/// match; those in which something has matched come last.
#[derive(Clone)]
pub(crate) struct ClassDfa {
    /// For each state and letter the next state.
    next: Vec<u16>,
    /// The states in front of the first character of a text, and in front of another.
    starts: [u16; 2],
    /// The first state in which something has matched.
    first_match: u16,
    /// The number of letters, rounded up to a power of two: 1 << `shift` entries a row.
    shift: u32,
    /// Of each state, by row, the pattern that has matched, and 1; or 0.
    matched: Vec<u16>,
    /// Of each state, by row, the pattern that has matched if the text ends there, and 1; or 0.
    at_end: Vec<u16>,
    letters: LetterTable,
    /// As `next`, but where a match ends in front of the letter, the state of the next match behind the letter,
    /// with [`CUT`]; 0 where that cannot be told from state and letter.
    steps: Vec<u32>,
}

/// A match ends in front of the letter.
const CUT: u32 = 1 << 31;
/// So many bytes at a time are looked through for the ends of matches.
const RUN: usize = 256;

/// The letter of each character.
#[derive(Clone)]
struct LetterTable {
    ascii: [u8; 128],
    /// For each 128 characters where their block begins in `blocks`.
    index: Box<[u32; N_BLOCKS]>,
    blocks: Vec<u8>,
}

const BLOCK: usize = 128;
const N_BLOCKS: usize = 0x11_0000 / BLOCK;
/// The most memory of an automaton, in bytes.
const SIZE: usize = 1 << 20;

impl ClassDfa {
    /// `None` if the patterns look at more than characters and the ends of the text, tell more than
    /// 256 kinds of characters apart, or need too large an automaton. `gives_back` says of each pattern
    /// whether its last character is no part of the match.
    pub(crate) fn new(patterns: &[String], gives_back: &[bool]) -> Option<Self> {
        let parsed: Vec<Hir> =
            patterns.iter().map(|p| regex_syntax::parse(p).ok()).collect::<Option<_>>()?;
        let mut classes = BTreeSet::new();
        for hir in &parsed {
            collect(hir, &mut classes)?;
        }
        let alphabet = Alphabet::new(classes.into_iter().collect())?;
        let rewritten: Vec<Hir> =
            parsed.iter().map(|hir| alphabet.rewrite(hir)).collect::<Option<_>>()?;
        let config = thompson::Config::new()
            .utf8(false)
            .which_captures(WhichCaptures::None)
            .nfa_size_limit(Some(SIZE));
        let nfa =
            thompson::Compiler::new().configure(config).build_many_from_hir(&rewritten).ok()?;
        let config = dense::Config::new()
            .start_kind(StartKind::Anchored)
            .accelerate(false)
            .dfa_size_limit(Some(SIZE))
            .determinize_size_limit(Some(4 * SIZE));
        let dfa = dense::Builder::new().configure(config).build_from_nfa(&nfa).ok()?;
        let start = |behind| {
            let config = start::Config::new().anchored(Anchored::Yes).look_behind(behind);
            dfa.start_state(&config).ok()
        };
        // Which letter is in front says nothing: only the beginning of the text is looked for.
        let mut table = Self::flatten(&dfa, [start(None)?, start(Some(0))?], alphabet.letters())?;
        table.find_cuts(gives_back);
        Some(table)
    }

    /// The same automaton in one table, and told at once: states of `dfa` say that there was a match
    /// in front of the last letter, which here the state in front of that letter does.
    fn flatten(
        dfa: &dense::DFA<Vec<u32>>,
        starts: [StateID; 2],
        letters: LetterTable,
    ) -> Option<Self> {
        let n_letters = letters.blocks.iter().max().map_or(1, |&last| last as usize + 1);
        let shift = n_letters.next_power_of_two().trailing_zeros();
        let next = |state, letter: usize| dfa.next_state(state, letter as u8);
        // A pattern's number and 1, or 0.
        let pattern = |state| match dfa.is_match_state(state) {
            true => u16::try_from(dfa.match_pattern(state, 0).as_usize() + 1).ok(),
            false => Some(0),
        };
        // What has matched in a state, whatever letter comes; none could tell it otherwise.
        let matched = |state| {
            let matched = pattern(next(state, 0))?;
            let same = |letter| pattern(next(state, letter)) == Some(matched);
            (1..n_letters).all(same).then_some(matched)
        };
        let is_dead = |state| {
            let leads_on = |letter| !dfa.is_dead_state(next(state, letter));
            dfa.is_dead_state(state)
                || !(0..n_letters).any(leads_on) && !dfa.is_match_state(dfa.next_eoi_state(state))
        };

        let mut reached = BTreeSet::from(starts);
        let mut open = Vec::from(starts);
        while let Some(state) = open.pop() {
            for letter in 0..n_letters {
                let next = next(state, letter);
                if reached.insert(next) {
                    open.push(next);
                }
            }
        }
        let mut states = Vec::new();
        for state in reached.into_iter().filter(|&state| !is_dead(state)) {
            states.push((matched(state)?, state));
        }
        states.sort_by_key(|&(matched, _)| matched > 0);
        let numbers: BTreeMap<StateID, usize> =
            states.iter().enumerate().map(|(i, &(_, state))| (state, i + 1)).collect();
        let row = |state: StateID| {
            u16::try_from(numbers.get(&state).map_or(0, |number| number << shift)).ok()
        };
        let n_without = states.iter().filter(|&&(matched, _)| matched == 0).count();
        let mut table = Self {
            next: vec![0; 1 << shift],
            starts: [row(starts[0])?, row(starts[1])?],
            first_match: u16::try_from((n_without + 1) << shift).ok()?,
            shift,
            matched: vec![0],
            at_end: vec![0],
            letters,
            steps: Vec::new(),
        };
        for (matched, state) in states {
            for letter in 0..1 << shift {
                // Letters that no character has lead nowhere.
                table.next.push(if letter < n_letters { row(next(state, letter))? } else { 0 });
            }
            table.matched.push(matched);
            table.at_end.push(pattern(dfa.next_eoi_state(state))?);
        }
        Some(table)
    }

    /// Makes `steps`. Where a match may be empty, matches do not simply follow each other, and no step is
    /// known.
    fn find_cuts(&mut self, gives_back: &[bool]) {
        let start = usize::from(self.starts[1]);
        let is_simple = self.starts.iter().all(|&start| start != 0 && start < self.first_match);
        let ends_here = |state: usize| {
            let pattern = self.matched[state >> self.shift].checked_sub(1);
            pattern.is_some_and(|pattern| gives_back.get(usize::from(pattern)) == Some(&false))
        };
        let n_letters = 1 << self.shift;
        let step = |at: usize| {
            let (state, letter) = (at & !(n_letters - 1), at & (n_letters - 1));
            match (self.next[at], self.next[start + letter]) {
                _ if !is_simple => 0,
                (0, behind) if behind > 0 && ends_here(state) => CUT | u32::from(behind),
                (next, _) => u32::from(next),
            }
        };
        self.steps = (0..self.next.len()).map(step).collect();
    }

    /// Calls `found` with the ends of matches that follow each other without a gap, the first of which
    /// begins at `at`, as long as each letter tells whether a match ends in front of it. Gives where the first
    /// match begins that was not found: `find` it.
    ///
    /// A byte costs two look-ups and no branch that cannot be foreseen.
    #[inline]
    pub(crate) fn find_run(&self, text: &str, at: usize, mut found: impl FnMut(usize)) -> usize {
        let bytes = text.as_bytes();
        let mut state = u32::from(self.starts[usize::from(at > 0)]);
        let (mut i, mut begin) = (at, at);
        let mut goes_on = true;
        while goes_on && i < bytes.len() {
            let mut ends = [0; RUN];
            let mut n_ends = 0;
            let stop = bytes.len().min(i + RUN);
            while i < stop {
                let (letter, next) = self.letters.at(text, i);
                let step = self.steps[(state as u16) as usize + usize::from(letter)];
                if step == 0 {
                    goes_on = false;
                    break;
                }
                ends[n_ends % RUN] = i;
                n_ends += (step >> 31) as usize;
                state = step;
                i = next;
            }
            for &end in &ends[..n_ends] {
                found(end);
                begin = end;
            }
        }
        begin
    }

    /// How many kinds of characters the patterns tell apart.
    #[cfg(test)]
    pub(crate) fn n_letters(&self) -> usize {
        self.letters.blocks.iter().collect::<BTreeSet<_>>().len()
    }

    /// The end of the match at `at`, and which pattern it is.
    #[inline]
    pub(crate) fn find(&self, text: &str, at: usize) -> Option<(usize, usize)> {
        let bytes = text.as_bytes();
        let mut state = self.starts[usize::from(at > 0)];
        // Where the last match ended, and in which state.
        let (mut end, mut said) = (at, if state >= self.first_match { state } else { 0 });
        let mut i = at;
        while i < bytes.len() {
            let (letter, next) = self.letters.at(text, i);
            state = self.next[usize::from(state) + usize::from(letter)];
            if state == 0 {
                return self.matched(&self.matched, end, said);
            }
            i = next;
            if state >= self.first_match {
                (end, said) = (i, state);
            }
        }
        self.matched(&self.at_end, i, state).or_else(|| self.matched(&self.matched, end, said))
    }

    #[inline(always)]
    fn matched(&self, patterns: &[u16], end: usize, state: u16) -> Option<(usize, usize)> {
        match patterns[usize::from(state >> self.shift)] {
            0 => None,
            pattern => Some((end, usize::from(pattern - 1))),
        }
    }
}

impl LetterTable {
    /// The letter of the character at `at`, and where the next one begins.
    #[inline(always)]
    fn at(&self, text: &str, at: usize) -> (u8, usize) {
        let byte = text.as_bytes()[at];
        if let Some(&letter) = self.ascii.get(usize::from(byte)) {
            return (letter, at + 1);
        }
        // `at` is a character boundary before the end.
        let c = text[at..].chars().next().unwrap_or_default();
        let block = self.index[c as usize / BLOCK] as usize;
        (self.blocks[block + c as usize % BLOCK], at + utf8_len(byte))
    }
}

/// Adds the classes of `hir`; a character that stands for itself is one. `None` if `hir` has
/// something else than the automaton knows.
fn collect(hir: &Hir, classes: &mut BTreeSet<Vec<(char, char)>>) -> Option<()> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(Look::Start | Look::End) => {}
        HirKind::Look(_) => return None,
        HirKind::Literal(literal) => {
            classes.extend(core::str::from_utf8(&literal.0).ok()?.chars().map(|c| vec![(c, c)]));
        }
        HirKind::Class(class) => {
            classes.insert(ranges(&unicode(class)?));
        }
        HirKind::Repetition(repetition) => collect(&repetition.sub, classes)?,
        HirKind::Capture(capture) => collect(&capture.sub, classes)?,
        HirKind::Concat(subs) | HirKind::Alternation(subs) => {
            subs.iter().try_for_each(|sub| collect(sub, classes))?;
        }
    }
    Some(())
}

fn unicode(class: &Class) -> Option<ClassUnicode> {
    match class {
        Class::Unicode(class) => Some(class.clone()),
        Class::Bytes(class) => class.to_unicode_class(),
    }
}

fn ranges(class: &ClassUnicode) -> Vec<(char, char)> {
    class.iter().map(|range| (range.start(), range.end())).collect()
}

/// The letters of some classes: two characters have the same if the same classes have them.
struct Alphabet {
    /// From which code point on characters have which letter, up to the next.
    runs: Vec<(u32, u8)>,
}

impl Alphabet {
    /// `None` if there are more than 256.
    fn new(classes: Vec<Vec<(char, char)>>) -> Option<Self> {
        let mut cuts = BTreeSet::from([0]);
        for &(first, last) in classes.iter().flatten() {
            cuts.extend([u32::from(first), u32::from(last) + 1]);
        }
        let has = |class: &[(char, char)], c: u32| {
            let after = class.partition_point(|&(first, _)| u32::from(first) <= c);
            after > 0 && c <= u32::from(class[after - 1].1)
        };
        let mut letters = BTreeMap::new();
        let mut runs = Vec::new();
        for cut in cuts {
            let members: Vec<bool> = classes.iter().map(|class| has(class, cut)).collect();
            let new = letters.len();
            let letter = u8::try_from(*letters.entry(members).or_insert(new)).ok()?;
            runs.push((cut, letter));
        }
        Some(Self { runs })
    }

    /// The letters of the characters from `first` to `last`.
    fn of(&self, first: char, last: char) -> impl Iterator<Item = u8> + '_ {
        let run = |c: char| self.runs.partition_point(|&(start, _)| start <= u32::from(c)) - 1;
        self.runs[run(first)..=run(last)].iter().map(|&(_, letter)| letter)
    }

    /// `hir` with letters, which are bytes, for characters.
    fn rewrite(&self, hir: &Hir) -> Option<Hir> {
        Some(match hir.kind() {
            HirKind::Empty => Hir::empty(),
            HirKind::Look(look) => Hir::look(*look),
            HirKind::Literal(literal) => {
                let chars = core::str::from_utf8(&literal.0).ok()?.chars();
                Hir::literal(chars.flat_map(|c| self.of(c, c)).collect::<Vec<u8>>())
            }
            HirKind::Class(class) => {
                let letters = ranges(&unicode(class)?)
                    .into_iter()
                    .flat_map(|(first, last)| self.of(first, last))
                    .map(|letter| ClassBytesRange::new(letter, letter));
                Hir::class(Class::Bytes(ClassBytes::new(letters)))
            }
            HirKind::Repetition(repetition) => Hir::repetition(Repetition {
                sub: Box::new(self.rewrite(&repetition.sub)?),
                ..repetition.clone()
            }),
            HirKind::Capture(capture) => self.rewrite(&capture.sub)?,
            HirKind::Concat(subs) => Hir::concat(self.rewrite_all(subs)?),
            HirKind::Alternation(subs) => Hir::alternation(self.rewrite_all(subs)?),
        })
    }

    fn rewrite_all(&self, subs: &[Hir]) -> Option<Vec<Hir>> {
        subs.iter().map(|sub| self.rewrite(sub)).collect()
    }

    fn letters(&self) -> LetterTable {
        let mut blocks: Vec<u8> = Vec::new();
        let mut known = BTreeMap::new();
        let mut run = 0;
        let mut letter = |c: u32| {
            while self.runs.get(run + 1).is_some_and(|&(start, _)| start <= c) {
                run += 1;
            }
            self.runs[run].1
        };
        let mut index = Box::new([0; N_BLOCKS]);
        for (first, at) in (0..).step_by(BLOCK).zip(index.iter_mut()) {
            let block: [u8; BLOCK] = core::array::from_fn(|i| letter(first + i as u32));
            *at = *known.entry(block).or_insert_with(|| {
                blocks.extend(block);
                (blocks.len() - BLOCK) as u32
            });
        }
        LetterTable { ascii: core::array::from_fn(|i| blocks[i]), index, blocks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(patterns: &[&str], text: &str, at: usize, expected: Option<(usize, usize)>) {
        let patterns: Vec<String> = patterns.iter().map(|&p| p.into()).collect();
        let dfa =
            ClassDfa::new(&patterns, &vec![false; patterns.len()]).expect("the patterns are plain");
        assert_eq!(dfa.find(text, at), expected, "{patterns:?} at {at} of {text:?}");
    }

    #[test]
    fn the_first_pattern_that_matches_wins() {
        check(&["a", "ab"], "ab", 0, Some((1, 0)));
        check(&["ab", "a"], "ab", 0, Some((2, 0)));
        check(&["ac", "a+", "aab"], "aab", 0, Some((2, 1)));
        check(&[r"\p{L}+", r"\s"], "né ", 0, Some((3, 0)));
        check(&[r"\p{L}+", r"\s"], "né ", 3, Some((4, 1)));
        check(&[r"\p{L}+", r"\s"], "1", 0, None);
        check(&["x*"], "", 0, Some((0, 0)));
        check(&["(?i)'s"], "'ſ", 0, Some((3, 0)));
        check(&["[😀-😂]+?"], "😀😁", 0, Some((4, 0)));
    }

    #[test]
    fn ends_of_the_text_are_seen() {
        check(&[r"\Aa", "a"], "aa", 0, Some((1, 0)));
        check(&[r"\Aa", "a"], "aa", 1, Some((2, 1)));
        check(&[r"a\z", "a"], "aa", 0, Some((1, 1)));
        check(&[r"a\z", "a"], "aa", 1, Some((2, 0)));
    }

    #[test]
    fn runs_of_matches_end_where_single_ones_do() {
        let check = |patterns: &[&str], gives_back: &[bool], text: &str, expected: &[usize]| {
            let patterns: Vec<String> = patterns.iter().map(|&p| p.into()).collect();
            let dfa = ClassDfa::new(&patterns, gives_back).expect("the patterns are plain");
            for start in [0, 1] {
                let text = &alloc::format!("{}{text}", &"a"[..start]);
                let mut ends = Vec::new();
                let begin = dfa.find_run(text, start, |end| ends.push(end - start));
                assert_eq!(ends, expected, "{patterns:?} {text:?}");
                assert_eq!(begin, ends.last().map_or(start, |end| end + start));
            }
        };
        let words = &[r" ?\p{L}+", r"\s+", r"[^\s\p{L}]+"];
        check(words, &[false; 3], "né été!? x", &[3, 9, 11]);
        // Two spaces and a letter: the match gives one of them back.
        check(words, &[false, true, false], "a b  c d", &[1, 3]);
        check(words, &[false; 3], "a b  c d", &[1, 3, 5, 6]);
        // `ab` does not become `abc`, so the match ended two characters ago.
        check(&["a", "abc"], &[false; 2], "aaababc", &[1, 2]);
        check(&["a*"], &[false], "aab", &[]);
        check(&["a"], &[false], "", &[]);
        let long = "é ".repeat(400);
        let ends: Vec<usize> = (1..800).map(|i| i / 2 * 3 + i % 2 * 2).collect();
        check(&[r"\p{L}", r"\s"], &[false; 2], &long, &ends);
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for pattern in [r"\ba", "(?m)^a", "(?m)a$", "("] {
            assert!(ClassDfa::new(&[pattern.into()], &[false]).is_none(), "{pattern}");
        }
        let many: String = (0..300).map(|i| char::from_u32(0x4E00 + i).unwrap()).collect();
        assert!(ClassDfa::new(&[many], &[false]).is_none());
    }
}
