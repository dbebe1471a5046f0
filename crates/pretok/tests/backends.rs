//! Every back end against the scalar twin, which `scanners.rs` holds against the published
//! regular expressions. Texts here are longer than a block, and what is interesting in them falls
//! on every place of one.

use pretok::{Backend, Digits, Letters, Pattern, Prefix, Rules, Scanner};
use testkit::{laws, texts};
use tokenizer_core::{Rng, Span, Split};

/// The scalar twin and the back ends of this machine, for the same rules.
struct Scanners {
    rules: Rules,
    scalar: Scanner,
    others: Vec<Scanner>,
}

impl Scanners {
    fn new(rules: Rules) -> Self {
        let scanner = |backend| Scanner::with_backend(rules, backend);
        let scalar = scanner(Backend::Scalar).expect("every machine has the scalar twin");
        let others: Vec<Scanner> = Backend::ALL
            .into_iter()
            .filter(|b| *b != Backend::Scalar)
            .filter_map(scanner)
            .collect();
        let covered = rules.letters != Letters::Cased || rules.prefix != Prefix::None;
        assert_eq!(!others.is_empty(), covered, "{rules:?}");
        Self { rules, scalar, others }
    }

    #[track_caller]
    fn check(&self, text: &str) {
        let expected = self.scalar.split(text);
        for other in &self.others {
            let spans = other.split(text);
            if spans != expected {
                let wrong = spans.iter().zip(&expected).take_while(|(a, b)| a == b).count();
                let show = |spans: &[Span]| -> Vec<&str> {
                    let near = wrong.saturating_sub(2)..(wrong + 4).min(spans.len());
                    spans[near].iter().map(|s| &text[s.range()]).collect()
                };
                panic!(
                    "{:?} at piece {wrong}: {:?}, not {:?}, by {:?} in {:?}",
                    other.backend(),
                    show(&spans),
                    show(&expected),
                    self.rules,
                    &text[text.len().min(expected[wrong.saturating_sub(20)].start)..]
                        .chars()
                        .take(200)
                        .collect::<String>(),
                );
            }
        }
    }
}

/// Every rule that a published pattern has, and some that none has.
fn all_rules() -> Vec<Rules> {
    let mut all: Vec<Rules> = Vec::new();
    for rules in Pattern::ALL.iter().filter_map(|p| p.rules()) {
        if !all.contains(&rules) {
            all.push(rules);
        }
    }
    let mut rng = Rng::new(1);
    all.extend((0..20).map(|_| random_rules(&mut rng)));
    all
}

fn random_rules(rng: &mut Rng) -> Rules {
    let mut rules = Rules::numbered(rng.below(Rules::COUNT as u64) as usize);
    // Groups of other sizes, too.
    rules.digits = match rng.below(7) {
        0 => Digits::Groups(8),
        1 => Digits::Groups(0),
        _ => rules.digits,
    };
    rules
}

/// A character of every class, and the letters of contractions.
const KINDS: &[char] = &[
    'a',
    'A',
    ' ',
    '\n',
    '\'',
    's',
    'l',
    'L',
    '1',
    '!',
    '/',
    '\t',
    'é',
    'É',
    'ʰ',
    '中',
    '\u{301}',
    '\u{A0}',
    '\u{3000}',
    '。',
    '²',
    '〇',
    '⺀',
    '\u{16FF0}',
    'ſ',
    '😀',
    '\0',
    '\r',
    'e',
    'r',
    'v',
    'T',
    'ǅ',
    'あ',
    '１',
    '\u{FE0F}',
    '\u{200D}',
    '\u{85}',
    '\u{2028}',
    '𐐀',
    '𝟏',
    '\u{E0100}',
    'ß',
    'я',
    'Я',
    'ก',
    '\u{E31}',
];
const DISTINCT: usize = 26;

#[test]
fn all_triples_of_kinds_at_every_place_of_a_block() {
    let mut rng = Rng::new(2);
    let mut triples = String::new();
    for i in 0..DISTINCT.pow(3) {
        let of = |i: usize| KINDS[i % DISTINCT];
        triples.extend([of(i), of(i / DISTINCT), of(i / DISTINCT / DISTINCT)]);
        // So that each falls somewhere else.
        let pad = ["x", " y", "z ", "", "\n\n", "word and word ", "中", "A-B"];
        triples.push_str(pad[rng.below(8) as usize]);
    }
    for rules in all_rules() {
        let scanners = Scanners::new(rules);
        scanners.check(&triples);
        for (_, text) in texts::AWKWARD {
            for pad in 0..130 {
                scanners.check(&("b".repeat(pad) + text + &"c ".repeat(40)));
            }
        }
    }
}

#[test]
fn every_pair_at_every_distance_from_the_end_of_a_block() {
    for rules in all_rules() {
        let scanners = Scanners::new(rules);
        let mut text = String::new();
        for &a in &KINDS[..DISTINCT] {
            for &b in &KINDS[..DISTINCT] {
                for &filler in &["a", " ", "中", "!", "é ", "1", "\n"] {
                    text.clear();
                    while text.len() < 70 {
                        text.push_str(filler);
                    }
                    text.extend([a, b]);
                    while text.len() < 150 {
                        text.push_str(filler);
                    }
                    // From each of these on, the pair is one byte further on in the first block.
                    for from in (0..12).map(|i| text.ceil_char_boundary(i)) {
                        scanners.check(&text[from..]);
                    }
                }
            }
        }
    }
}

#[test]
fn every_code_point() {
    // The planes without characters in them are sampled.
    let sampled = (0x3_2000..0x11_0000u32).filter(|c| c % 0x400 < 4 || *c >> 9 == 0xE_0000 >> 9);
    let points = || (0..0x3_2000).chain(sampled.clone()).filter_map(char::from_u32);
    let texts: Vec<String> = [["", "a "], ["!", ""], [" ", "B"], ["1", "1"]]
        .map(|[before, behind]| points().map(|c| format!("{before}{c}{behind}")).collect())
        .into();
    for rules in all_rules().iter().take(16) {
        let scanners = Scanners::new(*rules);
        for text in &texts {
            scanners.check(text);
        }
    }
}

/// Text of few kinds, so that runs and repeats happen, with stretches of a real alphabet.
fn random_text(rng: &mut Rng) -> String {
    let mut text = String::new();
    for _ in 0..rng.below(6) {
        let few: Vec<char> =
            (0..1 + rng.below(7)).map(|_| KINDS[rng.below(KINDS.len() as u64) as usize]).collect();
        for _ in 0..rng.below(120) {
            text.push(few[rng.below(few.len() as u64) as usize]);
        }
        let words = ["it's ", "don't", "HTTPServer", "  \n", "12345", "中文，", "Привет, ", "\n\t"];
        for _ in 0..rng.below(12) {
            text.push_str(words[rng.below(8) as usize]);
        }
    }
    text
}

#[test]
fn random_texts() {
    let mut rng = Rng::new(3);
    let all: Vec<Scanners> = all_rules().into_iter().map(Scanners::new).collect();
    for i in 0..12_000 {
        let text = random_text(&mut rng);
        all[i % all.len()].check(&text);
    }
}

#[test]
fn long_runs() {
    for rules in all_rules() {
        let scanners = Scanners::new(rules);
        for run in [
            "a", "A", "中", "aA", "中A", "中a", " ", "\n", " \n", "1", "1 ", "!", "!\n", "'s",
            "\u{301}",
        ] {
            for behind in ["", "x", " x", "X", "'ll", "中", "\u{301}", "!", "１"] {
                for len in [60, 64, 70, 127, 128, 129, 200] {
                    let text = run.repeat(len) + behind;
                    scanners.check(&text);
                    scanners.check(&(text + &"the rest of it. ".repeat(6)));
                }
            }
        }
    }
}

#[test]
fn batches_are_the_spans() {
    for backend in Backend::ALL {
        let Some(scanner) = Scanner::with_backend(Rules::O200K, backend) else { continue };
        for text in
            ["a b ".repeat(5000), "1".repeat(3000), "word! ".repeat(300) + &"中".repeat(999)]
        {
            laws::splits_losslessly(&scanner, &text);
        }
    }
}

#[test]
fn rules_that_no_back_end_covers_are_scanned_all_the_same() {
    let mut rules = Rules::LLAMA3;
    rules.digits = Digits::Groups(9);
    assert_eq!(Scanner::with_backend(rules, Backend::Portable), None);
    let scanner = Scanner::new(rules);
    assert_eq!(scanner.backend(), Backend::Scalar);
    assert_eq!(scanner.split(&"1".repeat(100)).len(), 12);
}
