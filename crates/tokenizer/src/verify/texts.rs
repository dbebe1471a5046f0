//! The differential corpus: texts on which tokenizers are known to differ.

use std::collections::HashSet;

use tokenizer_core::{Rng, TokenKind};

use crate::pipeline::Tokenizer;
use crate::stream::DecodeOptions;

/// Texts to check tokenizers on, each once, in a fixed order.
///
/// ```
/// use tokenizer::verify::Texts;
///
/// let mut texts = Texts::builtin();
/// texts.push("a line of one's own");
/// assert!(texts.iter().count() > 1000);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Texts {
    texts: Vec<String>,
    seen: HashSet<String>,
}

/// What awkward texts are made of. Every ordered pair of these is a text of the corpus.
const ATOMS: &[&str] = &[
    "a",
    "A",
    "s",
    "the",
    "ing",
    "\u{E9}",
    "e\u{301}",
    "\u{DF}",
    "\u{130}",
    "\u{17F}",
    "\u{FB01}",
    "\u{FF21}",
    "1",
    "23",
    "\u{FF11}",
    "\u{B2}",
    "\u{BD}",
    " ",
    "  ",
    "\t",
    "\n",
    "\r\n",
    "\u{85}",
    "\u{A0}",
    "\u{3000}",
    "\u{200B}",
    "\u{200D}",
    "\u{FEFF}",
    "\u{2581}",
    "'",
    "'s",
    "'LL",
    "\u{2019}",
    "\"",
    "-",
    "_",
    ".",
    "...",
    "\u{2026}",
    "<",
    ">",
    "|",
    "##",
    "/",
    "[",
    "]",
    "\u{6D77}",
    "\u{65E5}\u{672C}",
    "\u{3042}",
    "\u{30AC}",
    "\u{FF8A}\u{FF9F}",
    "\u{D55C}",
    "\u{E01}\u{E33}",
    "\u{905}\u{902}",
    "\u{639}",
    "\u{1EED}",
    "\u{1F600}",
    "\u{1F468}\u{200D}\u{1F469}",
    "\0",
    "\u{7F}",
    "\u{FFFD}",
    "\u{10FFFF}",
    "<s>",
    "</s>",
    "<unk>",
    "[UNK]",
    "<0x0A>",
    "<|endoftext|>",
];

/// Sentences of several scripts, code, numbers, and runs of white space.
const SENTENCES: &[&str] = &[
    "The quick brown fox jumps over the lazy dog.",
    "It's what we'd call \"state of the art\", isn't it? They've said so; I'M not SURE.",
    "  leading,  double   and trailing spaces   ",
    "one\r\ntwo\r\n\r\n\r\nthree\n\n\n\nfour\n",
    "\tif x:\n\t\treturn y\n\n    def f(self, *args, **kw) -> None:  # four spaces\n        pass\n",
    "fn main() {\n    println!(\"{}\", a<=5 && b!=6);\n}\n",
    "https://example.org/a/b?c=d&e=%20#frag me@example.org v1.2.3-rc.4",
    "1234567890 3.14159 1,000,000 0xDEADBEEF 1e-9 \u{FF11}\u{FF12}\u{FF13} x\u{B2} \u{BC}",
    "Stra\u{DF}e STRASSE \u{1E9E} \u{130}stanbul \u{E9}\u{C9}\u{E9} na\u{EF}ve co\u{F6}perate",
    "e\u{301}a\u{301}\u{327} Z\u{361}\u{35C}a\u{321}l\u{322}g\u{34C}o\u{33B}",
    "X\u{1EED} l\u{FD} ng\u{F4}n ng\u{1EEF} t\u{1EF1} nhi\u{EA}n v\u{1EDB}i c\u{E1}c m\u{F4} h\u{EC}nh",
    "\u{6D77}\u{6C34}\u{6F6E}\u{6F6E}\u{6F6E}\u{FF0C}\u{6D6E}\u{4E91}\u{957F}\u{957F}\u{6D88}\u{3002}",
    "\u{543E}\u{8F29}\u{306F}\u{732B}\u{3067}\u{3042}\u{308B}\u{3002}\u{540D}\u{524D}\u{306F}\u{307E}\u{3060}\u{7121}\u{3044}\u{3002}\u{FF8A}\u{FF9D}\u{FF76}\u{FF78}",
    "\u{BAA8}\u{B4E0} \u{C778}\u{AC04}\u{C740} \u{D0DC}\u{C5B4}\u{B0A0} \u{B54C}\u{BD80}\u{D130}",
    "\u{E21}\u{E19}\u{E38}\u{E29}\u{E22}\u{E4C}\u{E17}\u{E31}\u{E49}\u{E07}\u{E2B}\u{E25}\u{E32}\u{E22}",
    "\u{64A}\u{648}\u{644}\u{62F} \u{62C}\u{645}\u{64A}\u{639} \u{627}\u{644}\u{646}\u{627}\u{633} \u{623}\u{62D}\u{631}\u{627}\u{631}\u{64B}\u{627}",
    "\u{938}\u{92D}\u{940} \u{92E}\u{928}\u{941}\u{937}\u{94D}\u{92F}\u{94B}\u{902} \u{915}\u{94B}",
    "\u{41F}\u{440}\u{438}\u{432}\u{435}\u{442}, \u{43C}\u{438}\u{440}! \u{401}\u{43B}\u{43A}\u{430}",
    "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}\u{200D}\u{1F466} \u{1F3F3}\u{FE0F}\u{200D}\u{1F308} \u{1F44D}\u{1F3FD} \u{1F1E9}\u{1F1EA}",
    "<|endoftext|> [CLS] <s></s> <0x0A> ##ing \u{2581}x \u{2581}\u{2581} <unk>[MASK] <mask>",
    "a\0b\u{1}c\u{7F}d\u{85}e a\u{A0}b\u{2028}c\u{3000}d\u{200B}e\u{FEFF}f",
    "\u{FFFD}\u{FFFF}\u{10FFFF}\u{E000}\u{378}",
    "HTTPServer XMLHttpRequest camelCase snake_case SCREAMING_CASE AxxB iOS",
    "(a[b]{c}<d>)--\u{2014}**bold**__x__ `code` $$ ~~ != == => <= >= ... ?! ;;",
];

const RANDOM: usize = 600;

impl Texts {
    /// No text.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Some five thousand texts: sentences of many scripts, runs of one character, all pairs of
    /// awkward characters and marks, and random mixes of them. The same on every machine.
    #[must_use]
    pub fn builtin() -> Self {
        let mut texts = Self::new();
        texts.push("");
        for sentence in SENTENCES {
            texts.push(*sentence);
        }
        for unit in ["a", " ", "\n", "ab", "1", ".", "\u{E9}", "\u{6D77}", "\u{1F600}", "\r\n", "A"]
        {
            for times in [2, 3, 5, 17, 64, 300] {
                texts.push(unit.repeat(times));
            }
        }
        for atom in ATOMS {
            texts.push(*atom);
        }
        for left in ATOMS {
            for right in ATOMS {
                texts.push(format!("{left}{right}"));
            }
        }
        let mut rng = Rng::new(1);
        for _ in 0..RANDOM {
            let atoms = 3 + rng.below(28);
            texts.push(
                (0..atoms)
                    .map(|_| ATOMS[rng.below(ATOMS.len() as u64) as usize])
                    .collect::<String>(),
            );
        }
        texts
    }

    /// Adds a text, unless it is there.
    pub fn push(&mut self, text: impl Into<String>) {
        let text = text.into();
        if self.seen.insert(text.clone()) {
            self.texts.push(text);
        }
    }

    /// Adds what every token of the tokenizer decodes to, by itself and, for the added ones, within
    /// text: files of one vocabulary that differ do so on its tokens.
    pub fn push_tokens(&mut self, tokenizer: &Tokenizer) {
        for (id, _, kind) in tokenizer.vocab().iter() {
            if matches!(kind, TokenKind::Unused | TokenKind::Byte) {
                continue;
            }
            if let Ok(text) = tokenizer.decode(&[id], DecodeOptions::default())
                && !text.contains('\u{FFFD}')
            {
                self.push(text);
            }
        }
        for token in tokenizer.added_tokens() {
            let content = &token.content;
            self.push(content.clone());
            self.push(format!("a{content}b"));
            self.push(format!(" {content} b"));
            self.push(format!("{content}{content}"));
        }
    }

    /// The texts.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> + Clone + '_ {
        self.texts.iter().map(String::as_str)
    }

    /// The number of texts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The bytes of all texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.texts.iter().map(String::len).sum()
    }
}

impl<T: Into<String>> Extend<T> for Texts {
    fn extend<I: IntoIterator<Item = T>>(&mut self, texts: I) {
        texts.into_iter().for_each(|text| self.push(text));
    }
}
