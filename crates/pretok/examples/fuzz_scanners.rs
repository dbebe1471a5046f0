//! The long mode of the scanner tests: `cargo run --release -p pretok --example fuzz_scanners N
//! [SEED]` compares every back end of the scanners, and automata, with `fancy-regex` on N random
//! strings. With the seed 0, the default, it also compares them on every code point in several
//! surroundings.

use std::process::ExitCode;

use pretok::{
    Backend, Contractions, Digits, Han, Letters, Prefix, Tail, White, naive::Backtracking,
};
use pretok::{Engine, Pattern, RegexOptions, RegexSplitter, Rules, Scanner, Sequence};
use tokenizer_core::{Rng, Span, Split};

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let mut number = |default| match args.next() {
        Some(arg) => arg.parse::<u64>().map_err(|e| format!("{arg}: {e}")),
        None => Ok(default),
    };
    let (n, seed) = match (number(1_000_000), number(0)) {
        (Ok(n), Ok(seed)) => (n, seed),
        (Err(message), _) | (_, Err(message)) => {
            eprintln!("usage: fuzz_scanners [N [SEED]]: {message}");
            return ExitCode::from(2);
        }
    };
    let contestants = contestants();
    let mut state = State { buffers: [Vec::new(), Vec::new()], strings: 0, bytes: 0 };
    for contestant in contestants.iter().filter(|_| seed == 0) {
        if !every_code_point(contestant, &mut state) {
            return ExitCode::FAILURE;
        }
    }
    let mut rng = Rng::new(seed);
    let mut text = String::new();
    let mut general = general(&mut rng);
    for i in 0..n {
        random_text(&mut rng, &mut text);
        let which = rng.below(contestants.len() as u64 + 1) as usize;
        if i % 10_000 == 0 {
            general = self::general(&mut rng);
        }
        if !state.agrees(contestants.get(which).unwrap_or(&general), &text) {
            return ExitCode::FAILURE;
        }
    }
    println!("{} strings of {} bytes: no difference", state.strings, state.bytes);
    ExitCode::SUCCESS
}

/// What must cut alike.
struct Contestant {
    name: String,
    fast: Vec<(String, Box<dyn Split>)>,
    slow: Sequence,
}

/// Every pattern that cuts differently: its scanner with every back end, and its stages as automata.
fn contestants() -> Vec<Contestant> {
    let mut all: Vec<Contestant> = Vec::new();
    let mut seen = Vec::new();
    for &pattern in Pattern::ALL {
        if seen.contains(&pattern.stages()) {
            continue;
        }
        seen.push(pattern.stages());
        let stage = |regex: &&str| {
            let splitter = Backtracking::new(regex).expect("published patterns are well formed");
            Box::new(splitter) as Box<dyn Split>
        };
        let slow = Sequence::new(pattern.stages().iter().map(stage).collect());
        let mut options = RegexOptions::default();
        options.engine = Some(Engine::Automaton);
        let automaton = |regex: &&str| {
            let splitter = RegexSplitter::with_options(regex, options);
            Box::new(splitter.expect("published patterns have automata")) as Box<dyn Split>
        };
        let mut fast = match pattern.rules() {
            Some(rules) => back_ends(rules),
            None => vec![("scanner".into(), pattern.splitter())],
        };
        // Automata look at no table of ours, but are compared on every code point all the same.
        let automata = Sequence::new(pattern.stages().iter().map(automaton).collect());
        fast.push(("automata".into(), Box::new(automata)));
        all.push(Contestant { name: pattern.to_string(), fast, slow });
    }
    all
}

fn back_ends(rules: Rules) -> Vec<(String, Box<dyn Split>)> {
    let scanner = |backend: Backend| {
        let scanner = Scanner::with_backend(rules, backend)?;
        Some((format!("{backend:?}"), Box::new(scanner) as Box<dyn Split>))
    };
    Backend::ALL.into_iter().filter_map(scanner).collect()
}

/// A scanner of random rules, against the pattern that they stand for.
fn general(rng: &mut Rng) -> Contestant {
    let mut pick = |n: u64| rng.below(n) as usize;
    let cases =
        [pretok::Case::Sensitive, pretok::Case::Insensitive, pretok::Case::AsciiInsensitive];
    let mut rules = Rules::GPT2;
    rules.contractions = match pick(3) {
        0 => Contractions::None,
        1 => Contractions::Apart(cases[pick(3)]),
        _ => Contractions::Suffix(cases[pick(3)]),
    };
    rules.han = [Han::Letters, Han::Apart][pick(2)];
    rules.prefix = [Prefix::None, Prefix::Space, Prefix::NotNewline][pick(3)];
    rules.letters = [Letters::Plain, Letters::Marked, Letters::Cased][pick(3)];
    rules.digits = [Digits::SpacedRun, Digits::Run, Digits::Groups(1), Digits::Groups(2)][pick(4)];
    rules.tail = [Tail::None, Tail::Newlines, Tail::NewlinesSlashes][pick(3)];
    rules.white = [White::Runs, White::Lines, White::LinesOrEnd][pick(3)];
    let slow = Backtracking::new(&rules.pattern()).expect("the pattern of rules is well formed");
    Contestant {
        name: rules.pattern(),
        fast: back_ends(rules),
        slow: Sequence::new(vec![Box::new(slow)]),
    }
}

struct State {
    buffers: [Vec<Span>; 2],
    strings: u64,
    bytes: u64,
}

impl State {
    fn agrees(&mut self, contestant: &Contestant, text: &str) -> bool {
        let [fast, slow] = &mut self.buffers;
        slow.clear();
        contestant.slow.split_into(text, slow);
        self.strings += 1;
        self.bytes += text.len() as u64;
        for (name, splitter) in &contestant.fast {
            fast.clear();
            splitter.split_into(text, fast);
            if fast != slow {
                let show = |spans: &[Span]| -> Vec<String> {
                    spans.iter().map(|s| text[s.range()].to_owned()).collect()
                };
                eprintln!("{} by {name} on {text:?}", contestant.name);
                eprintln!("  fast {:?}\n  slow {:?}", show(fast), show(slow));
                return false;
            }
        }
        true
    }
}

fn every_code_point(contestant: &Contestant, state: &mut State) -> bool {
    let mut text = String::new();
    let points: Vec<char> = ('\0'..=char::MAX).collect();
    for surroundings in [["", "a "], [" ", "'s"], ["!", "A\u{301}"], ["1", "\n"], ["中", "  "]] {
        for chunk in points.chunks(1024) {
            text.clear();
            for &c in chunk {
                text.push_str(surroundings[0]);
                text.push(c);
                text.push_str(surroundings[1]);
            }
            if !state.agrees(contestant, &text) {
                return false;
            }
        }
    }
    true
}

/// Characters of every kind that some pattern tells apart.
const KINDS: &[char] = &[
    'a',
    's',
    'e',
    'l',
    'v',
    'r',
    'd',
    'm',
    't',
    'A',
    'S',
    'E',
    'L',
    'V',
    'R',
    'Z',
    'ǅ',
    'é',
    'É',
    'ſ',
    'K',
    'ʰ',
    'あ',
    '中',
    '々',
    '〇',
    '⺀',
    '\u{16FF0}',
    '\u{301}',
    '\u{93F}',
    '\u{20DD}',
    '1',
    '9',
    '²',
    '１',
    '\u{0E52}',
    ' ',
    ' ',
    '\n',
    '\r',
    '\t',
    '\u{A0}',
    '\u{85}',
    '\u{2028}',
    '\u{3000}',
    '\'',
    '\'',
    '/',
    '!',
    '$',
    '_',
    '\u{200B}',
    '\u{FEFF}',
    '\0',
    '😀',
    '・',
    '\u{3099}',
    '\u{E000}',
    '\u{378}',
];

fn random_text(rng: &mut Rng, text: &mut String) {
    text.clear();
    let kinds = 1 + rng.below(8);
    let few: [char; 8] = std::array::from_fn(|_| KINDS[rng.below(KINDS.len() as u64) as usize]);
    // Some are longer than a block of 64 bytes.
    let most = if rng.below(4) == 0 { 200 } else { 40 };
    for _ in 0..rng.below(most) {
        if rng.below(64) == 0 {
            text.extend(char::from_u32(rng.below(0x11_0000) as u32));
        } else {
            text.push(few[rng.below(kinds) as usize]);
        }
    }
}
