//! Random texts that tokenizers find hard. A text is a function of the seed, its number and the
//! fragments that the tokenizer under test suggests.

use testkit::{pathological, texts};
use tokenizer_core::Rng;

/// Makes texts.
pub struct Texts {
    rng: Rng,
    /// Texts of added tokens and of the vocabulary: what is near them is hit often.
    hints: Vec<String>,
    /// Lines of corpora, which are mutated.
    lines: Vec<String>,
}

impl Texts {
    /// Texts of this seed.
    #[must_use]
    pub fn new(seed: u64, lines: Vec<String>) -> Self {
        Self { rng: Rng::new(seed), hints: Vec::new(), lines }
    }

    /// Fragments of the tokenizer that comes next.
    pub fn set_hints(&mut self, hints: Vec<String>) {
        self.hints = hints;
    }

    /// The next text: mostly short, sometimes of a few thousand bytes.
    pub fn next_text(&mut self) -> String {
        let most = match self.rng.below(100) {
            0..60 => 6,
            60..90 => 16,
            90..99 => 60,
            _ => 300,
        };
        let mut text = String::new();
        for _ in 0..self.rng.below(most + 1) {
            self.fragment(&mut text);
        }
        if self.rng.below(8) == 0 {
            mutate(&mut text, &mut self.rng);
        }
        text
    }

    fn fragment(&mut self, text: &mut String) {
        let rng = &mut self.rng;
        match rng.below(24) {
            0..3 => letters(text, rng),
            3 => from_ranges(text, rng, SCRIPTS),
            4 => mixed_scripts(text, rng),
            5..8 => white_space(text, rng),
            8 => punctuation(text, rng),
            9 => digits(text, rng),
            10 => marks(text, rng),
            11 => text.push_str(choose(rng, EMOJI)),
            12 => any_chars(text, rng),
            13 => controls(text, rng),
            14 => byte_piece(text, rng),
            15 => text.push_str(choose(rng, SPECIAL_LOOKS)),
            16 => text.push_str(choose(rng, ODD)),
            17 => run(text, rng),
            18 => {
                let (_, awkward) = texts::AWKWARD[rng.below(texts::AWKWARD.len() as u64) as usize];
                text.push_str(part(awkward, rng));
            }
            19 if !self.lines.is_empty() => {
                let line = &self.lines[rng.below(self.lines.len() as u64) as usize];
                let mut line = part(line, rng).to_owned();
                if rng.below(2) == 0 {
                    mutate(&mut line, rng);
                }
                text.push_str(&line);
            }
            20 => {
                let kinds = pathological::KINDS;
                let kind = &kinds[rng.below(kinds.len() as u64) as usize];
                text.push_str(&kind.text(rng.below(40) as usize));
            }
            _ if !self.hints.is_empty() => {
                let hint = &self.hints[rng.below(self.hints.len() as u64) as usize];
                match rng.below(6) {
                    0 => {
                        let mut near = hint.clone();
                        mutate(&mut near, rng);
                        text.push_str(&near);
                    }
                    1 => text.push_str(part(hint, rng)),
                    _ => text.push_str(hint),
                }
            }
            _ => letters(text, rng),
        }
    }
}

const SCRIPTS: &[(u32, u32)] = &[
    (0xC0, 0x24F),
    (0x370, 0x3FF),
    (0x400, 0x4FF),
    (0x530, 0x58F),
    (0x590, 0x5FF),
    (0x600, 0x6FF),
    (0x900, 0x97F),
    (0xE00, 0xE7F),
    (0x1100, 0x11FF),
    (0x1E00, 0x1FFF),
    (0x2000, 0x206F),
    (0x2100, 0x218F),
    (0x3040, 0x30FF),
    (0x3400, 0x3410),
    (0x4E00, 0x4F00),
    (0xAC00, 0xAD00),
    (0xF900, 0xFAFF),
    (0xFB00, 0xFDFF),
    (0xFF00, 0xFFEF),
    (0x1D400, 0x1D7FF),
    (0x1F300, 0x1F6FF),
    (0x20000, 0x20040),
    (0x2F800, 0x2FA1D),
];

const EMOJI: &[&str] = &[
    "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}",
    "\u{1F44D}\u{1F3FD}",
    "\u{1F1E9}\u{1F1EA}",
    "1\u{FE0F}\u{20E3}",
    "\u{2764}\u{FE0F}",
    "\u{1F600}",
    "\u{1F3F4}\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
];

const SPECIAL_LOOKS: &[&str] = &[
    "<|endoftext|>",
    "<|endofprompt|>",
    "<|fim_prefix|>",
    "<|im_start|>",
    "<|endoftext",
    "<s>",
    "</s>",
    "<unk>",
    "<pad>",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "[UNK]",
    "[PAD]",
    "[ CLS ]",
    "<mask>",
    "<extra_id_0>",
    "<|",
    "|>",
    "<",
    ">",
    "##",
    "##ing",
    "</w>",
    "@@",
];

const ODD: &[&str] = &[
    "\u{2581}",
    "\u{2581}\u{2581}",
    " \u{2581}",
    "\u{2581} ",
    "\u{120}",
    "\u{10A}",
    "\u{C0}",
    "\u{2047}",
    " \u{2047} ",
    "\u{FFFD}",
    "\u{FEFF}",
    "\u{130}",
    "\u{131}",
    "\u{DF}",
    "\u{1E9E}",
    "\u{149}",
    "\u{1F0}",
    "\u{3A3}",
    "\u{3C2}",
    "\u{FB01}",
    "\u{FB03}",
    "\u{FDFA}",
    "\u{2126}",
    "\u{212B}",
    "\u{344}",
    "\u{390}",
    "\u{958}",
    "\u{1FB7}",
    "\u{17F}",
    "'\u{17F}",
    "\u{AD}",
    "\u{34F}",
    "\u{180E}",
    "\u{2028}",
    "\u{2029}",
    "\u{3164}",
    "\u{FF21}",
    "\u{FF5E}",
    "\u{2026}",
    "\u{BD}",
    "\u{2460}",
    "\u{3300}",
    "\u{AC01}",
    "\u{1100}\u{1161}\u{11A8}",
    "'s",
    "'LL",
    "n't",
];

fn choose<'a>(rng: &mut Rng, from: &[&'a str]) -> &'a str {
    from[rng.below(from.len() as u64) as usize]
}

fn push_code(text: &mut String, code: u32) {
    text.extend(char::from_u32(code));
}

fn letters(text: &mut String, rng: &mut Rng) {
    let case = rng.below(4);
    for i in 0..rng.below(7) + 1 {
        let letter = b'a' + if rng.below(2) == 0 { rng.below(4) } else { rng.below(26) } as u8;
        let upper = case == 0 || (case == 1 && i == 0) || (case == 2 && rng.below(3) == 0);
        text.push(char::from(if upper { letter.to_ascii_uppercase() } else { letter }));
    }
}

fn from_ranges(text: &mut String, rng: &mut Rng, ranges: &[(u32, u32)]) {
    let (start, end) = ranges[rng.below(ranges.len() as u64) as usize];
    for _ in 0..rng.below(6) + 1 {
        push_code(text, start + rng.below(u64::from(end - start + 1)) as u32);
    }
}

fn mixed_scripts(text: &mut String, rng: &mut Rng) {
    for _ in 0..rng.below(6) + 1 {
        let (start, end) = SCRIPTS[rng.below(SCRIPTS.len() as u64) as usize];
        push_code(text, start + rng.below(u64::from(end - start + 1)) as u32);
    }
}

fn white_space(text: &mut String, rng: &mut Rng) {
    const BLANKS: &[char] = &[
        ' ', ' ', ' ', ' ', ' ', ' ', '\n', '\n', '\r', '\t', '\u{A0}', '\u{3000}', '\u{85}',
        '\u{200B}', '\u{2003}', '\u{2028}', '\u{1680}', '\u{C}', '\u{B}', '\u{1C}', '\u{202F}',
    ];
    for _ in 0..if rng.below(3) == 0 { rng.below(6) + 1 } else { 1 } {
        text.push(BLANKS[rng.below(BLANKS.len() as u64) as usize]);
    }
}

fn punctuation(text: &mut String, rng: &mut Rng) {
    const MARKS: &str = "'.,!?-_/\\\"#$%&()[]{}<>|=+*^~`@;:\u{2019}\u{AB}\u{BF}\u{3002}\u{FF0C}\u{2014}\u{20AC}\u{D7}";
    for _ in 0..rng.below(4) + 1 {
        text.extend(MARKS.chars().nth(rng.below(MARKS.chars().count() as u64) as usize));
    }
}

fn digits(text: &mut String, rng: &mut Rng) {
    for _ in 0..rng.below(8) + 1 {
        let zero =
            if rng.below(10) == 0 { [0x660, 0x966, 0xFF10][rng.below(3) as usize] } else { 0x30 };
        push_code(text, zero + rng.below(10) as u32);
    }
}

fn marks(text: &mut String, rng: &mut Rng) {
    text.push(['a', 'e', 'o', ' ', '\u{E9}', '\u{1EC7}', '\u{915}'][rng.below(7) as usize]);
    for _ in 0..rng.below(4) + 1 {
        let (start, len) =
            [(0x300, 0x70), (0x300, 0x70), (0x1AB0, 0x10), (0x20D0, 0x20), (0x93C, 2)]
                [rng.below(5) as usize];
        push_code(text, start + rng.below(len) as u32);
    }
}

fn any_chars(text: &mut String, rng: &mut Rng) {
    for _ in 0..rng.below(4) + 1 {
        let top = if rng.below(2) == 0 { 0x1_0000 } else { 0x11_0000 };
        push_code(text, rng.below(top) as u32);
    }
}

fn controls(text: &mut String, rng: &mut Rng) {
    for _ in 0..rng.below(3) + 1 {
        let code = match rng.below(4) {
            0 => 0x80 + rng.below(0x20),
            1 => [0x200C, 0x200D, 0x200E, 0x2060, 0xFEFF, 0xFFF9, 0x61C, 0xE0001]
                [rng.below(8) as usize],
            _ => rng.below(0x20),
        };
        push_code(text, code as u32);
    }
}

fn byte_piece(text: &mut String, rng: &mut Rng) {
    for _ in 0..rng.below(3) + 1 {
        let byte = rng.below(256);
        text.push_str(&match rng.below(5) {
            0 => format!("<0x{byte:02x}>"),
            1 => format!("<0x{byte:X}"),
            2 => format!("0x{byte:02X}>"),
            _ => format!("<0x{byte:02X}>"),
        });
    }
}

fn run(text: &mut String, rng: &mut Rng) {
    let unit = choose(
        rng,
        &[
            "a",
            "ab",
            " ",
            "\n",
            "1",
            "!",
            "\u{E9}",
            "\u{4E00}",
            "\u{301}",
            "=",
            "\u{2581}",
            "\u{1F600}",
        ],
    );
    let longest = if rng.below(20) == 0 { 400 } else { 24 };
    for _ in 0..rng.below(longest) + 2 {
        text.push_str(unit);
    }
}

/// A part of a text on character boundaries, of at most 60 characters.
fn part<'t>(text: &'t str, rng: &mut Rng) -> &'t str {
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let start = rng.below(starts.len() as u64) as usize;
    let most = (starts.len() - start).min(60) as u64;
    let end = start + rng.below(most) as usize;
    &text[starts[start]..starts[end]]
}

/// Changes a few characters: drops, doubles, swaps, replaces, changes case, inserts.
fn mutate(text: &mut String, rng: &mut Rng) {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..rng.below(3) + 1 {
        if chars.is_empty() {
            break;
        }
        let at = rng.below(chars.len() as u64) as usize;
        match rng.below(6) {
            0 => drop(chars.remove(at)),
            1 => chars.insert(at, chars[at]),
            2 => {
                let other = rng.below(chars.len() as u64) as usize;
                chars.swap(at, other);
            }
            3 => chars[at] = char::from_u32(rng.below(0x3000) as u32).unwrap_or(' '),
            4 => {
                let c = chars[at];
                let flipped: Vec<char> = if c.is_lowercase() {
                    c.to_uppercase().collect()
                } else {
                    c.to_lowercase().collect()
                };
                chars.splice(at..=at, flipped);
            }
            _ => chars.insert(at, [' ', '\n', '\u{301}', '\u{200D}', 'a'][rng.below(5) as usize]),
        }
    }
    *text = chars.into_iter().collect();
}
