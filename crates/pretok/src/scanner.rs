//! One pass over the bytes for the pattern families of the published tokenizers.
//!
//! A [`Scanner`] cuts exactly as the regular expression that its [`Rules`] stand for: the tests
//! compare the two on every code point, on all pairs and triples of kinds of characters, and on
//! random text. What the alternatives of the expression do at a position depends only on the
//! classes of the next characters, so a step looks at one or two characters, decides which
//! alternative wins, and runs to its end.

use alloc::vec::Vec;

use tokenizer_core::{MAX_BATCH, Span, Split};

use crate::classes::{Class, Set, class_at, wide_class_at};
use crate::masks;
use crate::simd::Backend;

/// The parts in which the published patterns differ; together they stand for one regular
/// expression, which [`Rules::pattern`] writes down.
///
/// Start from a named constant and change fields; every combination has a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rules {
    /// English contractions.
    pub contractions: Contractions,
    /// Whether Han characters are runs of their own.
    pub han: Han,
    /// What may stand in front of a word and belong to it.
    pub prefix: Prefix,
    /// What a word is made of.
    pub letters: Letters,
    /// How numbers are cut.
    pub digits: Digits,
    /// What belongs to the end of a run of punctuation.
    pub tail: Tail,
    /// How white space is cut.
    pub white: White,
}

/// English contractions: `'s`, `'t`, `'re`, `'ve`, `'m`, `'ll`, `'d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contractions {
    /// Not treated.
    None,
    /// Pieces of their own, wherever a piece could start: "it's" gives "it" and "'s".
    Apart(Case),
    /// Part of the word in front: "it's" is one piece.
    Suffix(Case),
}

/// Which letters a contraction may be written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Lower case only.
    Sensitive,
    /// `(?i:..)`: also upper case, and U+017F (ſ) for s, to which it folds.
    Insensitive,
    /// `[sS]` and so on: also upper case, and no other character.
    AsciiInsensitive,
}

/// Whether Han characters are runs of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Han {
    /// They are letters, numbers and symbols like any other.
    Letters,
    /// `\p{Han}+` comes before all else, and words hold no Han.
    Apart,
}

/// What may stand in front of a word and belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// Nothing.
    None,
    /// One space: ` ?`.
    Space,
    /// Any one character but a letter, a number or a line break: `[^\r\n\p{L}\p{N}]?`.
    NotNewline,
}

/// What a word is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Letters {
    /// `\p{L}+`.
    Plain,
    /// `[\p{L}\p{M}]+`; marks are then no punctuation.
    Marked,
    /// Cut where lower case turns to upper case, marks belong to the word:
    /// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`, else the same with `+` and
    /// `*` exchanged.
    Cased,
}

/// How numbers are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digits {
    /// ` ?\p{N}+`: the whole number, with the space in front.
    SpacedRun,
    /// `\p{N}+`: the whole number.
    Run,
    /// `\p{N}{1,n}`: groups of at most this many from the left; 0 counts as 1.
    Groups(u8),
}

/// What belongs to the end of a run of punctuation, ` ?[^\s\p{L}\p{N}]+`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Nothing.
    None,
    /// `[\r\n]*`.
    Newlines,
    /// `[\r\n/]*`.
    NewlinesSlashes,
}

/// How white space is cut. The last space in front of a word is left to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum White {
    /// `\s+(?!\S)|\s+`.
    Runs,
    /// `\s*[\r\n]+|\s+(?!\S)|\s+`: cut after the last line break.
    Lines,
    /// `\s++$|\s*[\r\n]|\s+(?!\S)|\s`: as `Lines`, but white space at the end of the text is
    /// one piece.
    LinesOrEnd,
}

impl Rules {
    /// GPT-2, r50k_base, p50k_base.
    pub const GPT2: Self = Self {
        contractions: Contractions::Apart(Case::Sensitive),
        han: Han::Letters,
        prefix: Prefix::Space,
        letters: Letters::Plain,
        digits: Digits::SpacedRun,
        tail: Tail::None,
        white: White::Runs,
    };
    /// cl100k_base as tiktoken has it.
    pub const CL100K: Self = Self { white: White::LinesOrEnd, ..Self::LLAMA3 };
    /// Llama 3, and cl100k_base as exported for Hugging Face.
    pub const LLAMA3: Self = Self {
        contractions: Contractions::Apart(Case::Insensitive),
        han: Han::Letters,
        prefix: Prefix::NotNewline,
        letters: Letters::Plain,
        digits: Digits::Groups(3),
        tail: Tail::Newlines,
        white: White::Lines,
    };
    /// Qwen 2: as Llama 3, with single digits.
    pub const QWEN2: Self = Self { digits: Digits::Groups(1), ..Self::LLAMA3 };
    /// Qwen 3.5: as Qwen 2, with marks in words.
    pub const QWEN35: Self = Self { letters: Letters::Marked, ..Self::QWEN2 };
    /// o200k_base.
    pub const O200K: Self = Self {
        contractions: Contractions::Suffix(Case::Insensitive),
        han: Han::Letters,
        prefix: Prefix::NotNewline,
        letters: Letters::Cased,
        digits: Digits::Groups(3),
        tail: Tail::NewlinesSlashes,
        white: White::Lines,
    };
    /// Mistral's Tekken: as o200k_base, with single digits and no contractions.
    pub const TEKKEN: Self =
        Self { contractions: Contractions::None, digits: Digits::Groups(1), ..Self::O200K };
    /// Kimi K2: as o200k_base, with Han apart.
    pub const KIMI_K2: Self = Self { han: Han::Apart, tail: Tail::Newlines, ..Self::O200K };

    /// How many [`numbered`](Self::numbered) rules there are.
    pub const COUNT: usize = 7 * 2 * 3 * 3 * 5 * 3 * 3;

    /// Each combination of rules has a number below [`COUNT`](Self::COUNT); of groups of digits, those
    /// of one to three are counted. Greater numbers begin again. For tests that want any rules there are.
    #[must_use]
    pub const fn numbered(mut number: usize) -> Self {
        const fn digit(number: &mut usize, n: usize) -> usize {
            let digit = *number % n;
            *number /= n;
            digit
        }
        const CASES: [Case; 3] = [Case::Sensitive, Case::Insensitive, Case::AsciiInsensitive];
        Self {
            contractions: match digit(&mut number, 7) {
                0 => Contractions::None,
                n @ 1..=3 => Contractions::Apart(CASES[n - 1]),
                n => Contractions::Suffix(CASES[n - 4]),
            },
            han: [Han::Letters, Han::Apart][digit(&mut number, 2)],
            prefix: [Prefix::None, Prefix::Space, Prefix::NotNewline][digit(&mut number, 3)],
            letters: [Letters::Plain, Letters::Marked, Letters::Cased][digit(&mut number, 3)],
            digits: match digit(&mut number, 5) {
                0 => Digits::SpacedRun,
                1 => Digits::Run,
                n => Digits::Groups(n as u8 - 1),
            },
            tail: [Tail::None, Tail::Newlines, Tail::NewlinesSlashes][digit(&mut number, 3)],
            white: [White::Runs, White::Lines, White::LinesOrEnd][digit(&mut number, 3)],
        }
    }

    const fn words(self) -> Set {
        let letters = match self.letters {
            Letters::Plain => Set::LETTER,
            Letters::Marked | Letters::Cased => Set::LETTER.or(Set::MARK),
        };
        match self.han {
            Han::Letters => letters,
            Han::Apart => letters.without(Set::HAN),
        }
    }

    const fn punctuation(self) -> Set {
        let rest = Set::SPACE.or(Set::LETTER).or(Set::NUMBER).complement();
        match self.letters {
            Letters::Plain | Letters::Cased => rest,
            Letters::Marked => rest.without(Set::MARK),
        }
    }

    const fn prefixes(self) -> Set {
        match self.prefix {
            Prefix::None => Set::NONE,
            Prefix::Space => Set::of(&[Class::SPACE]),
            Prefix::NotNewline => {
                Set::of(&[Class::NEWLINE]).or(Set::LETTER).or(Set::NUMBER).complement()
            }
        }
    }

    const fn tail(self) -> Set {
        match self.tail {
            Tail::None => Set::NONE,
            Tail::Newlines => Set::of(&[Class::NEWLINE]),
            Tail::NewlinesSlashes => Set::of(&[Class::NEWLINE, Class::SLASH]),
        }
    }

    /// The regular expression that these rules stand for, as `fancy-regex` reads it.
    #[must_use]
    pub fn pattern(self) -> alloc::string::String {
        let case = |case, [sensitive, insensitive, ascii]: [&'static str; 3]| match case {
            Case::Sensitive => sensitive,
            Case::Insensitive => insensitive,
            Case::AsciiInsensitive => ascii,
        };
        let contraction = [
            "'(?:[sdmt]|ll|ve|re)",
            "'(?i:[sdmt]|ll|ve|re)",
            "'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])",
        ];
        let suffix = [
            "(?:'s|'t|'re|'ve|'m|'ll|'d)?",
            "(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?",
        ];
        let not_han = match self.han {
            Han::Letters => "",
            Han::Apart => r"&&[^\p{Han}]",
        };
        let prefix = match self.prefix {
            Prefix::None => "",
            Prefix::Space => " ?",
            Prefix::NotNewline => r"[^\r\n\p{L}\p{N}]?",
        };
        let mut arms = Vec::new();
        if self.han == Han::Apart {
            arms.push(r"[\p{Han}]+".into());
        }
        let mut word_end = "";
        match self.contractions {
            Contractions::None => {}
            Contractions::Apart(which) => arms.push(case(which, contraction).into()),
            Contractions::Suffix(which) => word_end = case(which, suffix),
        }
        match self.letters {
            Letters::Plain => arms.push(alloc::format!(r"{prefix}[\p{{L}}{not_han}]+{word_end}")),
            Letters::Marked => {
                arms.push(alloc::format!(r"{prefix}[\p{{L}}\p{{M}}{not_han}]+{word_end}"));
            }
            Letters::Cased => {
                for [upper, lower] in [["*", "+"], ["+", "*"]] {
                    arms.push(alloc::format!(
                        r"{prefix}[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}{not_han}]{upper}[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}{not_han}]{lower}{word_end}"
                    ));
                }
            }
        }
        arms.push(match self.digits {
            Digits::SpacedRun => r" ?\p{N}+".into(),
            Digits::Run => r"\p{N}+".into(),
            Digits::Groups(0 | 1) => r"\p{N}".into(),
            Digits::Groups(n) => alloc::format!(r"\p{{N}}{{1,{n}}}"),
        });
        let marks = if self.letters == Letters::Marked { r"\p{M}" } else { "" };
        let tail = match self.tail {
            Tail::None => "",
            Tail::Newlines => r"[\r\n]*",
            Tail::NewlinesSlashes => r"[\r\n/]*",
        };
        arms.push(alloc::format!(r" ?[^\s\p{{L}}{marks}\p{{N}}]+{tail}"));
        arms.push(
            match self.white {
                White::Runs => r"\s+(?!\S)|\s+",
                White::Lines => r"\s*[\r\n]+|\s+(?!\S)|\s+",
                White::LinesOrEnd => r"\s++$|\s*[\r\n]|\s+(?!\S)|\s",
            }
            .into(),
        );
        arms.join("|")
    }
}

/// Cuts text as one regular expression of the published families does, without a regular
/// expression engine: one pass, no allocation but the spans.
///
/// The pieces tile the text. Time is linear in the text for any text.
///
/// ```
/// use pretok::{Rules, Scanner};
/// use tokenizer_core::Split;
///
/// let scanner = Scanner::new(Rules::GPT2);
/// let text = "it's  12 o'clock";
/// let pieces: Vec<_> = scanner.split(text).iter().map(|s| &text[s.range()]).collect();
/// assert_eq!(pieces, ["it", "'s", " ", " 12", " o", "'", "clock"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scanner {
    rules: Rules,
    backend: Backend,
}

impl Scanner {
    /// The scanner of these rules, with the fastest back end that this machine has.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        let backend = if masks::covers(rules) { Backend::best() } else { Backend::Scalar };
        Self { rules, backend }
    }

    /// The scanner of these rules with this back end; `None` if this machine has it not, or it
    /// does not cover the rules: [`Digits::Groups`] of more than eight, and [`Letters::Cased`] with
    /// [`Prefix::None`], are for [`Backend::Scalar`] alone.
    #[must_use]
    pub fn with_backend(rules: Rules, backend: Backend) -> Option<Self> {
        let covers = backend == Backend::Scalar || masks::covers(rules);
        (backend.is_available() && covers).then_some(Self { rules, backend })
    }

    /// The rules of this scanner.
    #[must_use]
    pub fn rules(&self) -> Rules {
        self.rules
    }

    /// What does the work.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// Calls `piece` with the spans in order; what [`Split::split_into`] collects.
    ///
    /// A scan keeps nothing from one piece to the next: scanning the rest of a text from any
    /// boundary gives the rest of the spans.
    pub fn for_each_span(&self, text: &str, mut piece: impl FnMut(Span)) {
        self.split_batches(text, &mut |batch| batch.iter().for_each(|&span| piece(span)));
    }

    fn scan(&self, text: &str, mut batches: Batches<'_>) {
        match self.backend {
            Backend::Scalar => scan(self.rules, text, &mut batches),
            _ => {
                let rules = &self.rules;
                self.backend.run(masks::Scan { rules, text, batches: &mut batches });
            }
        }
        batches.finish();
    }

    /// Where the piece that starts at `at` ends; `None` at the end of the text.
    ///
    /// # Panics
    ///
    /// If `at` is not a character boundary of `text`.
    #[must_use]
    pub fn next_end(&self, text: &str, at: usize) -> Option<usize> {
        assert!(text.is_char_boundary(at), "{at} is not a character boundary of the text");
        (at < text.len()).then(|| step(self.rules, text.as_bytes(), at))
    }
}

impl Split for Scanner {
    fn split_into(&self, text: &str, spans: &mut Vec<Span>) {
        // Pieces of real text are about five bytes long.
        spans.reserve(text.len() / 5);
        self.split_batches(text, &mut |batch| spans.extend_from_slice(batch));
    }

    fn split_batches(&self, text: &str, batch: &mut dyn FnMut(&[Span])) {
        // Clearing room for a batch takes as long as scanning some hundred bytes.
        if text.len() < 512 {
            self.scan(text, Batches::new(&mut [Span::default(); 96], batch));
        } else {
            self.scan(text, Batches::new(&mut [Span::default(); MAX_BATCH], batch));
        }
    }

    /// Two pieces for the published patterns, three for a [`Contractions::Suffix`] that is no
    /// word's prefix.
    ///
    /// What follows can change a piece only if the step that made it looked at the end of the
    /// text. Steps look ahead behind a piece in three places: white space, of which all but the
    /// part behind its last line break is one piece ("\n" and "  "); words of [`Letters::Cased`],
    /// which give back what has no lower case ("ʰ" and "AB"); contractions, up to three characters
    /// of which the apostrophe may be a piece and the letter another.
    fn unsettled(&self) -> Option<usize> {
        let apart = matches!(self.rules.contractions, Contractions::Suffix(_))
            && self.rules.prefix != Prefix::NotNewline;
        Some(if apart { 3 } else { 2 })
    }
}

/// One character at a time. Every arm is the same loop, compiled for rules that the compiler
/// knows, which makes it branch-free on them.
fn scan(rules: Rules, text: &str, batches: &mut Batches<'_>) {
    match rules {
        Rules::GPT2 => scan_by(Rules::GPT2, text, batches),
        Rules::CL100K => scan_by(Rules::CL100K, text, batches),
        Rules::LLAMA3 => scan_by(Rules::LLAMA3, text, batches),
        Rules::QWEN2 => scan_by(Rules::QWEN2, text, batches),
        Rules::O200K => scan_by(Rules::O200K, text, batches),
        _ => scan_by(rules, text, batches),
    }
}

#[inline(always)]
fn scan_by(rules: Rules, text: &str, batches: &mut Batches<'_>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let end = step_by(rules, bytes, at);
        batches.push(Span::new(at, end));
        at = end;
    }
}

/// Collects spans and hands them over when there are enough.
pub(crate) struct Batches<'f> {
    /// More than 64, at most [`MAX_BATCH`].
    spans: &'f mut [Span],
    len: usize,
    batch: &'f mut dyn FnMut(&[Span]),
}

impl<'f> Batches<'f> {
    pub(crate) fn new(spans: &'f mut [Span], batch: &'f mut dyn FnMut(&[Span])) -> Self {
        Self { spans, len: 0, batch }
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, span: Span) {
        self.spans[self.len] = span;
        self.len += 1;
        if self.len == self.spans.len() {
            self.hand_over();
        }
    }

    /// Pushes the spans of pieces of which the first begins at `start`, and that end at the bits of
    /// `ends`, counted from `base`.
    #[inline(always)]
    pub(crate) fn push_ends(&mut self, mut start: usize, base: usize, mut ends: u64) {
        if self.len + 64 > self.spans.len() {
            self.hand_over();
        }
        let count = ends.count_ones() as usize;
        // Eight at a time, so that the number of turns is mostly the same; what is written behind
        // the last is overwritten.
        for spans in self.spans[self.len..].chunks_exact_mut(8).take(count.div_ceil(8)) {
            for span in spans {
                let end = base + ends.trailing_zeros() as usize;
                *span = Span::new(start, end);
                start = end;
                ends &= ends.wrapping_sub(1);
            }
        }
        self.len += count;
    }

    #[cold]
    #[inline(never)]
    fn hand_over(&mut self) {
        (self.batch)(&self.spans[..self.len]);
        self.len = 0;
    }

    pub(crate) fn finish(mut self) {
        if self.len > 0 {
            self.hand_over();
        }
    }
}

/// As [`step_by`], compiled once for all rules.
#[inline(never)]
pub(crate) fn step(rules: Rules, bytes: &[u8], at: usize) -> usize {
    step_by(rules, bytes, at)
}

/// Where the piece at `at` ends. `bytes` is UTF-8, `at` a character boundary before its end.
#[inline(always)]
fn step_by(rules: Rules, bytes: &[u8], at: usize) -> usize {
    let (class, len) = class_at(bytes, at);
    let next = at + len;
    if rules.han == Han::Apart && Set::HAN.has(class) {
        return run(Set::HAN, bytes, next);
    }
    if rules.words().has(class) {
        return word(rules, bytes, at);
    }
    if class == Class::APOSTROPHE
        && let Contractions::Apart(case) = rules.contractions
        && let Some(end) = contraction(case, bytes, at)
    {
        return end;
    }
    if Set::NUMBER.has(class) {
        return number(rules.digits, bytes, next);
    }
    // What may go in front of a word or of punctuation looks at the character behind it.
    if next < bytes.len() && rules.prefixes().or(Set::of(&[Class::SPACE])).has(class) {
        let (behind, behind_len) = class_at(bytes, next);
        if rules.words().has(behind) && rules.prefixes().has(class) {
            return word(rules, bytes, next);
        }
        if class == Class::SPACE {
            if rules.punctuation().has(behind) {
                return punctuation(rules, bytes, next + behind_len);
            }
            if rules.digits == Digits::SpacedRun && Set::NUMBER.has(behind) {
                return run(Set::NUMBER, bytes, next + behind_len);
            }
        }
    }
    if rules.punctuation().has(class) {
        return punctuation(rules, bytes, next);
    }
    // What is no letter, number or punctuation is white space; with marks counted as letters and
    // Han apart, a Han mark is none of them, but was taken by the Han run above.
    white(rules.white, bytes, at)
}

/// The end of the word whose first letter is at `at`.
#[inline(always)]
fn word(rules: Rules, bytes: &[u8], at: usize) -> usize {
    let end = match rules.letters {
        Letters::Plain | Letters::Marked => letters(rules.words(), bytes, at),
        Letters::Cased => cased(rules.words(), bytes, at),
    };
    match rules.contractions {
        Contractions::Suffix(case) => contraction(case, bytes, end).unwrap_or(end),
        Contractions::None | Contractions::Apart(_) => end,
    }
}

/// The end of the run of `set` from `at`, where `set` has all ASCII letters and nothing else of
/// ASCII.
#[inline(always)]
fn letters(set: Set, bytes: &[u8], mut at: usize) -> usize {
    loop {
        at = ascii_run(bytes, at, letter_bits, |byte| byte.is_ascii_alphabetic());
        if at == bytes.len() || bytes[at] < 0x80 {
            return at;
        }
        let (class, len) = wide_class_at(bytes, at);
        if !set.has(class) {
            return at;
        }
        at += len;
    }
}

/// The end of `U*l+`, else of `U+l*`, from `at`, where U is upper case, l is lower case and both
/// have the caseless and the marks of `set`. There is such a word at `at`.
///
/// Both begin with the longest run of U. Lower case behind it goes on as far as l does. Otherwise
/// `U*` gives back until what follows is in l: the word ends behind the last caseless letter or
/// mark of the run. If it has none, `U+` takes the whole run.
#[inline(always)]
fn cased(set: Set, bytes: &[u8], mut at: usize) -> usize {
    let upper = Set::of(&[Class::UPPER]);
    let lower = set.without(upper);
    let both = set.without(upper).without(Set::of(&[Class::LOWER]));
    let mut last_of_both = None;
    loop {
        while bytes.get(at).is_some_and(u8::is_ascii_uppercase) {
            at += 1;
        }
        let Some(&byte) = bytes.get(at) else { return last_of_both.unwrap_or(at) };
        if byte < 0x80 {
            if !byte.is_ascii_lowercase() {
                return last_of_both.unwrap_or(at);
            }
            break;
        }
        let (class, len) = wide_class_at(bytes, at);
        if both.has(class) {
            last_of_both = Some(at + len);
        } else if class == Class::LOWER {
            break;
        } else if class != Class::UPPER {
            return last_of_both.unwrap_or(at);
        }
        at += len;
    }
    loop {
        at = ascii_run(bytes, at, lower_bits, |byte| byte.is_ascii_lowercase());
        if at == bytes.len() || bytes[at] < 0x80 {
            return at;
        }
        let (class, len) = wide_class_at(bytes, at);
        if !lower.has(class) {
            return at;
        }
        at += len;
    }
}

/// The end of the contraction at `at`, if there is one.
#[inline(always)]
pub(crate) fn contraction(case: Case, bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at) != Some(&b'\'') {
        return None;
    }
    let fold = match case {
        Case::Sensitive => 0,
        Case::Insensitive | Case::AsciiInsensitive => 0x20,
    };
    // Setting the bit 0x20 makes ASCII letters lower case and makes no other byte a letter.
    match bytes.get(at + 1)? | fold {
        b's' | b't' | b'm' | b'd' => Some(at + 2),
        b'r' | b'v' if bytes.get(at + 2)? | fold == b'e' => Some(at + 3),
        b'l' if bytes.get(at + 2)? | fold == b'l' => Some(at + 3),
        // U+017F, the long s. (0xC5 has the bit 0x20 unset; ask for the true bytes.)
        _ if case == Case::Insensitive && bytes[at + 1..].starts_with("\u{17F}".as_bytes()) => {
            Some(at + 3)
        }
        _ => None,
    }
}

/// The end of a number whose first digit ends at `at`.
#[inline(always)]
fn number(digits: Digits, bytes: &[u8], mut at: usize) -> usize {
    let Digits::Groups(most) = digits else { return run(Set::NUMBER, bytes, at) };
    for _ in 1..most {
        if at == bytes.len() {
            break;
        }
        let (class, len) = class_at(bytes, at);
        if !Set::NUMBER.has(class) {
            break;
        }
        at += len;
    }
    at
}

/// The end of a run of punctuation of which one character ends at `at`, with its tail.
#[inline(always)]
fn punctuation(rules: Rules, bytes: &[u8], at: usize) -> usize {
    let end = run(rules.punctuation(), bytes, at);
    match rules.tail {
        Tail::None => end,
        Tail::Newlines | Tail::NewlinesSlashes => run(rules.tail(), bytes, end),
    }
}

/// The end of the white space at `at` that is one piece; there is some.
#[inline(always)]
pub(crate) fn white(white: White, bytes: &[u8], at: usize) -> usize {
    let (mut end, mut last, mut after_newline) = (at, at, None);
    while end < bytes.len() {
        let (class, len) = class_at(bytes, end);
        if !Set::SPACE.has(class) {
            break;
        }
        last = end;
        end += len;
        if class == Class::NEWLINE {
            after_newline = Some(end);
        }
    }
    let at_end = end == bytes.len();
    match (white, after_newline) {
        (White::LinesOrEnd, _) if at_end => end,
        (White::Lines | White::LinesOrEnd, Some(newline)) => newline,
        // All but the last, which is left to what follows; unless it is the only one.
        _ if at_end || last == at => end,
        _ => last,
    }
}

/// The end of the run of `set` from `at`.
#[inline(always)]
pub(crate) fn run(set: Set, bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        let (class, len) = class_at(bytes, at);
        if !set.has(class) {
            break;
        }
        at += len;
    }
    at
}

/// The end of a run of ASCII bytes from `at`, eight bytes at a time: `members` marks the bytes of
/// a word that are in the run, `is_member` says the same of one byte.
#[inline(always)]
fn ascii_run(
    bytes: &[u8],
    mut at: usize,
    members: impl Fn(u64) -> u64,
    is_member: impl Fn(u8) -> bool,
) -> usize {
    while let Some(chunk) = bytes[at..].first_chunk::<8>() {
        let others = !members(u64::from_le_bytes(*chunk)) & HIGH;
        if others != 0 {
            return at + others.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while at < bytes.len() && is_member(bytes[at]) {
        at += 1;
    }
    at
}

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// The high bit of every byte that is an ASCII letter.
#[inline(always)]
fn letter_bits(word: u64) -> u64 {
    // Setting 0x20 makes letters lower case and no other ASCII byte a lower case letter; a byte
    // of 0x80 or more stays so.
    lower_bits(word | (LOW * 0x20))
}

/// The high bit of every byte that is an ASCII lower case letter.
#[inline(always)]
fn lower_bits(word: u64) -> u64 {
    // Of the low seven bits, so that no addition carries into the next byte.
    let low = word & !HIGH;
    let from_a = low + LOW * u64::from(0x80 - b'a');
    let past_z = low + LOW * u64::from(0x7F - b'z');
    from_a & !past_z & !word & HIGH
}
