//! Cuts between two ASCII characters.

use normalize::SentencePieceNormalizer;
use pretok::Neighbours;

use super::MARK;
use super::proof::{Rewrite, Shape, Tokens};

/// What of ASCII is told apart: letters, digits, white space, and each other character by itself. From
/// `OTHER` on, a class is one character.
pub(super) const ODD: u8 = 0;
const LETTER: u8 = 1;
const DIGIT: u8 = 2;
pub(super) const BLANK: u8 = 3;
const HIGH: u8 = 4;
const OTHER: u8 = 5;

/// What a charsmap does to ASCII characters.
struct AsciiRules<'a> {
    /// What is written for the character alone, if a rule says so.
    single: [Option<&'a str>; 128],
    /// Whether a rule reads on behind the character.
    extended: [bool; 128],
    /// Whether the character is part of a symbol, which is copied before any rule.
    in_symbol: [bool; 128],
    /// The first characters of what all rules of several characters write.
    written: Vec<Option<char>>,
    /// No rule reads an ASCII character but as its first, and all can be told.
    are_provable: bool,
}

impl<'a> AsciiRules<'a> {
    fn of(rewrite: Rewrite<'a>) -> Self {
        let mut rules = Self {
            single: [None; 128],
            extended: [false; 128],
            in_symbol: [false; 128],
            written: Vec::new(),
            are_provable: true,
        };
        if let Rewrite::SentencePiece(normalizer) = rewrite {
            let symbols = normalizer.user_defined().as_slice();
            for byte in symbols.iter().flat_map(|symbol| symbol.bytes()) {
                if let Some(in_symbol) = rules.in_symbol.get_mut(usize::from(byte)) {
                    *in_symbol = true;
                }
            }
        }
        let charsmap = match rewrite {
            Rewrite::None => None,
            Rewrite::SentencePiece(normalizer) => normalizer.charsmap(),
        };
        let Some(charsmap) = charsmap else { return rules };
        let all = charsmap.each_char(|step| {
            if step.c.is_ascii() {
                let at = step.c as usize;
                rules.are_provable &= step.is_first && step.c != ' ';
                if step.is_first {
                    rules.extended[at] |= step.goes_on;
                    rules.single[at] = step.target;
                }
            }
            if let (Some(target), false) = (step.target, step.is_first) {
                rules.written.push(target.chars().next());
            }
        });
        rules.are_provable &= all;
        rules
    }
}

/// The classes of ASCII characters, and which of them are cut from which.
pub(super) struct Classes {
    of: [u8; 128],
    /// Which classes stand before which in tokens.
    seen: [u64; 64],
    /// For each class before a place, the classes behind that are cut from it.
    cuts: [u64; 64],
    /// The characters that are copied if ASCII follows.
    pub(super) plain: [bool; 128],
}

impl Classes {
    /// `None` if the rules do not allow a proof. `matching` are the tokens that match text.
    pub(super) fn new(shape: &Shape<'_>, tokens: &Tokens<'_>, matching: &[&[u8]]) -> Option<Self> {
        let rules = AsciiRules::of(shape.rewrite);
        if !rules.are_provable {
            return None;
        }
        let mut classes = Self {
            of: classify(&rules),
            seen: [0; 64],
            cuts: [0; 64],
            plain: plain(shape.rewrite),
        };
        if tokens.inside {
            matching.iter().for_each(|token| classes.see(token));
            let unknown = classes.unknown(tokens, &rules);
            classes.decide(shape.strip, unknown, &rules);
        }
        if shape.split {
            classes.cuts[1..].iter_mut().for_each(|behind| *behind |= 1 << BLANK);
        }
        Some(classes)
    }

    /// The class of an ASCII character.
    pub(super) fn class(&self, byte: u8) -> u8 {
        self.of.get(usize::from(byte)).copied().unwrap_or(HIGH)
    }

    /// Notes which classes stand next to each other in a token.
    fn see(&mut self, token: &[u8]) {
        // Of what stands behind odd characters nothing is asked.
        let mut before = ODD;
        let mut at = 0;
        while let Some(&byte) = token.get(at) {
            let is_mark = byte == MARK.as_bytes()[0] && token[at..].starts_with(MARK.as_bytes());
            let class = if is_mark { BLANK } else { self.class(byte) };
            at += if is_mark { MARK.len() } else { 1 };
            self.seen[usize::from(before)] |= 1 << class;
            before = class;
        }
    }

    /// The classes with a character that has no token, or may become one that has none.
    fn unknown(&self, tokens: &Tokens<'_>, rules: &AsciiRules<'_>) -> u64 {
        if tokens.unknown_apart {
            return 0;
        }
        let blank = u64::from(!tokens.knows(MARK.as_bytes())) << BLANK;
        let bytes =
            (0..128u8).filter(|&byte| rules.extended[usize::from(byte)] || !tokens.knows(&[byte]));
        bytes.fold(blank, |unknown, byte| match self.class(byte) {
            BLANK => unknown,
            class => unknown | 1 << class,
        })
    }

    fn decide(&mut self, strip: bool, unknown: u64, rules: &AsciiRules<'_>) {
        let mut extended = 0u64;
        for (byte, _) in rules.extended.iter().enumerate().filter(|byte| *byte.1) {
            extended |= 1 << self.of[byte];
        }
        // What rules of several characters write first; 0 stands for what is not provable.
        let written = rules.written.iter().fold(0u64, |written, first| {
            let class = first.map_or(ODD, |first| match first {
                '\u{2581}' => ODD,
                _ if first.is_ascii() => self.of[first as usize],
                _ => HIGH,
            });
            written | 1 << if class == BLANK { ODD } else { class }
        });
        let is_in = |set: u64, class: u8| set >> class & 1 == 1;
        for before in (1..64u8).filter(|&class| class != HIGH) {
            let seen = self.seen[usize::from(before)];
            for behind in (1..64u8).filter(|&class| class != HIGH) {
                let is_seen = is_in(seen, behind) || strip && (before, behind) == (BLANK, BLANK);
                let legal = !is_seen
                    && !(is_in(extended, behind) && (is_in(written, ODD) || seen & written != 0))
                    && !(is_in(unknown, before) && is_in(unknown, behind));
                self.cuts[usize::from(before)] |= u64::from(legal) << behind;
            }
        }
    }

    /// The cuts as tables: seven sets of classes before and behind a place, of which each of the ones
    /// is cut from each of the others. They do not hold all cuts if seven sets are too few; a cut that
    /// is left out costs nothing but time. The flag says what is a blank.
    pub(super) fn neighbours(&self) -> Neighbours {
        let (mut before, mut behind) = ([0; 129], [0; 129]);
        for (bit, (left, right)) in rectangles(&self.cuts).into_iter().enumerate() {
            for (byte, &class) in self.of.iter().enumerate() {
                before[byte] |= ((left >> class & 1) as u8) << bit;
                behind[byte] |= ((right >> class & 1) as u8) << bit;
            }
        }
        for (behind, &class) in behind.iter_mut().zip(&self.of) {
            *behind |= if class == BLANK { Neighbours::FLAG } else { 0 };
        }
        Neighbours::new(&before, &behind)
    }
}

fn classify(rules: &AsciiRules<'_>) -> [u8; 128] {
    let mut next = OTHER;
    std::array::from_fn(|byte| {
        let c = byte as u8;
        match (c, rules.single[byte]) {
            (b' ', _) => BLANK,
            (_, Some(" ")) if !rules.extended[byte] && !rules.in_symbol[byte] => BLANK,
            (_, Some(_)) => ODD,
            (b'a'..=b'z' | b'A'..=b'Z', None) => LETTER,
            (b'0'..=b'9', None) => DIGIT,
            (b'\n' | b'\t' | b'!'..=b'~', None) => {
                next += 1;
                next - 1
            }
            _ => ODD,
        }
    })
}

fn plain(rewrite: Rewrite<'_>) -> [bool; 128] {
    let mut plain = [true; 128];
    match rewrite {
        Rewrite::None => {}
        Rewrite::SentencePiece(normalizer) => {
            for (byte, plain) in (0..128).zip(&mut plain) {
                *plain = normalizer.charsmap().is_none_or(|charsmap| charsmap.is_plain(byte));
            }
            begin_symbols(normalizer, &mut plain);
        }
    }
    plain
}

/// What symbols begin with is not plain.
fn begin_symbols(normalizer: &SentencePieceNormalizer, plain: &mut [bool; 128]) {
    for symbol in normalizer.user_defined().as_slice() {
        if let Some(plain) = plain.get_mut(usize::from(symbol.as_bytes()[0])) {
            *plain = false;
        }
    }
}

/// Of a relation between classes, up to seven pairs of sets that are related as wholes, those first
/// that add most.
fn rectangles(cuts: &[u64; 64]) -> Vec<(u64, u64)> {
    let members = |set: u64| (0..64).filter(move |class| set >> class & 1 == 1);
    let weight = |set: u64| -> u64 { members(set).map(|class| COMMON[class]).sum() };
    let mut left = *cuts;
    // All that is cut from every one of a set behind, and then all that it is cut from.
    let closed = |behind: u64| {
        let before = (0..64).filter(|&class| cuts[class] & behind == behind);
        before.fold((0, !0), |(set, behind), class| (set | 1 << class, behind & cuts[class]))
    };
    let mut found = Vec::new();
    while found.len() < SETS {
        let gain = |(before, behind): (u64, u64)| -> u64 {
            members(before).map(|class| COMMON[class] * weight(behind & left[class])).sum()
        };
        let better = |best: (u64, (u64, u64)), behind: u64| {
            let set = if behind == 0 { (0, 0) } else { closed(behind) };
            let gain = gain(set);
            if gain > best.0 { (gain, set) } else { best }
        };
        let mut best = left.iter().fold((0, (0, 0)), |best, &behind| better(best, behind));
        loop {
            // More before may be worth less behind.
            let (gain, (_, behind)) = best;
            best = cuts.iter().fold(best, |best, &other| better(best, behind & other));
            if best.0 == gain {
                break;
            }
        }
        let (gain, (before, behind)) = best;
        if gain == 0 {
            break;
        }
        members(before).for_each(|class| left[class] &= !behind);
        found.push((before, behind));
    }
    found
}

const SETS: usize = 7;

/// How often, roughly, characters of a class stand in a text.
const COMMON: [u64; 64] = {
    let mut common = [1; 64];
    common[LETTER as usize] = 8;
    common[DIGIT as usize] = 3;
    common[BLANK as usize] = 6;
    common
};

#[cfg(test)]
mod tests {
    use tokenizer_core::Rng;

    use super::*;

    #[test]
    fn rectangles_hold_nothing_but_the_relation() {
        let mut rng = Rng::new(8);
        for round in 0..300u32 {
            let mut cuts = [0u64; 64];
            for row in &mut cuts {
                // Sparse, dense, and of few different rows.
                let bits = rng.below(u64::MAX) & rng.below(u64::MAX);
                *row = [bits, !bits, (bits & 7).wrapping_mul(0x9249_2492_4924_9249)]
                    [round as usize % 3];
            }
            let found = rectangles(&cuts);
            assert!(found.len() <= SETS);
            let mut held = [0u64; 64];
            for &(before, behind) in &found {
                for (class, held) in held.iter_mut().enumerate() {
                    *held |= if before >> class & 1 == 1 { behind } else { 0 };
                }
            }
            assert!(held.iter().zip(&cuts).all(|(held, cuts)| held & !cuts == 0));
            if found.len() < SETS {
                assert_eq!(held, cuts, "nothing is left out while there is room");
            }
        }
    }
}
