//! What a text is, apart from any tokenizer: computed once, shared by all contestants.

use tokenizer_core::Span;
use unicode_segmentation::UnicodeSegmentation;

use super::{code, emoji};

/// What the metrics need to know of one document before any tokenizer has touched it.
///
/// Cost: one walk over the characters and one over the grapheme clusters; memory one byte per byte
/// of text plus a span per word, number and emoji.
#[derive(Clone, Debug, Default)]
pub struct TextFacts {
    pub(super) bytes: u64,
    pub(super) chars: u64,
    pub(super) graphemes: u64,
    pub(super) words: u64,
    pub(super) spaced: bool,
    /// Words without the punctuation around them, as byte spans.
    pub(super) cores: Vec<Span>,
    /// Maximal runs of decimal digits, as byte spans with the number of digits.
    pub(super) numbers: Vec<(Span, u32)>,
    pub(super) emoji: Vec<Span>,
    /// Only of code.
    pub(super) code: Option<CodeFacts>,
    /// One entry per byte: the class of the character it belongs to, and [`START`] on its first.
    pub(super) classes: Vec<u8>,
}

/// Indentations and operators, as byte spans.
#[derive(Clone, Debug, Default)]
pub(super) struct CodeFacts {
    pub(super) indentations: Vec<Span>,
    pub(super) operators: Vec<Span>,
}

/// White space.
pub(super) const SPACE: u8 = 1;
/// Letters and numbers.
pub(super) const WORD: u8 = 2;
/// Everything else: punctuation, symbols, controls.
pub(super) const PUNCTUATION: u8 = 4;
/// Set on the first byte of a character.
pub(super) const START: u8 = 8;

impl TextFacts {
    /// The facts of `text`, which is the text that is encoded (after normalization).
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut facts =
            Self { bytes: text.len() as u64, classes: vec![0; text.len()], ..Self::default() };
        let (mut letters, mut unspaced) = (0u64, 0u64);
        let mut word: Option<Word> = None;
        let mut number: Option<(Span, u32)> = None;
        for (start, c) in text.char_indices() {
            let end = start + c.len_utf8();
            facts.chars += 1;
            let class = class(c);
            facts.classes[start..end].fill(class);
            facts.classes[start] |= START;
            if c.is_alphabetic() {
                letters += 1;
                unspaced += u64::from(is_unspaced(c));
            }
            if class == SPACE {
                facts.end_word(word.take());
            } else {
                let word = word.get_or_insert_with(Word::default);
                if class == WORD {
                    let core = word.core.get_or_insert(Span::new(start, end));
                    core.end = end;
                } else if class == 0 {
                    // A mark belongs to what it stands on: it prolongs a core that it follows.
                    if let Some(core) = word.core.as_mut().filter(|core| core.end == start) {
                        core.end = end;
                    }
                }
            }
            if is_digit(c) {
                let (span, digits) = number.get_or_insert((Span::new(start, end), 0));
                span.end = end;
                *digits += 1;
            } else {
                facts.numbers.extend(number.take());
            }
        }
        facts.end_word(word);
        facts.numbers.extend(number);
        facts.spaced = 2 * unspaced <= letters;
        for (start, cluster) in text.grapheme_indices(true) {
            facts.graphemes += 1;
            if emoji::is_emoji(cluster) {
                facts.emoji.push(Span::new(start, start + cluster.len()));
            }
        }
        facts
    }

    /// The facts of `text` in a language that is known (a BCP-47 tag): in Chinese, Japanese, Thai,
    /// Lao, Khmer, Burmese and Tibetan no document separates words, even one that is mostly
    /// foreign names.
    #[must_use]
    pub fn in_language(text: &str, language: &str) -> Self {
        let mut facts = Self::new(text);
        let language = language.split(['-', '_']).next().unwrap_or(language);
        facts.spaced &= !["zh", "ja", "th", "lo", "km", "my", "bo", "yue"].contains(&language);
        facts
    }

    /// These facts of `text` with its indentations and operators: for source code.
    #[must_use]
    pub fn with_code(self, text: &str) -> Self {
        let (indentations, operators) = (code::indentations(text), code::operators(text));
        Self { code: Some(CodeFacts { indentations, operators }), ..self }
    }

    /// The length of the text in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the text separates words by white space. False where most letters belong to a
    /// script that is written without spaces (Han, kana, Thai, Lao, Khmer, Myanmar, Tibetan):
    /// metrics that divide by words leave such documents out.
    #[must_use]
    pub fn spaced(&self) -> bool {
        self.spaced
    }

    fn end_word(&mut self, word: Option<Word>) {
        if let Some(word) = word {
            self.words += 1;
            self.cores.extend(word.core);
        }
    }
}

#[derive(Default)]
struct Word {
    core: Option<Span>,
}

/// The class of a character; 0 for marks and joiners, which belong to the character before them.
fn class(c: char) -> u8 {
    if c.is_whitespace() {
        SPACE
    } else if c.is_alphanumeric() {
        WORD
    } else if !c.is_ascii() && extends(c) {
        0
    } else {
        PUNCTUATION
    }
}

/// Whether a character joins the grapheme cluster before it: combining marks, joiners, variation
/// selectors.
fn extends(c: char) -> bool {
    let mut pair = String::with_capacity(5);
    pair.push('a');
    pair.push(c);
    pair.graphemes(true).count() == 1
}

/// Decimal digits of the scripts that number their digits in a row from zero. `char::is_numeric`
/// also holds for fractions, Roman numerals and Han numerals, which have no digit groups.
fn is_digit(c: char) -> bool {
    const ZEROS: [u32; 16] = [
        0x30, 0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66,
        0xE50, 0xED0, 0xFF10,
    ];
    let c = u32::from(c);
    ZEROS.iter().any(|&zero| (zero..zero + 10).contains(&c))
        || (0x17E0..0x17EA).contains(&c)
        || (0x1040..0x104A).contains(&c)
}

/// Letters of scripts that are written without spaces between words.
fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0FFF // Thai, Lao, Tibetan
        | 0x1000..=0x109F // Myanmar
        | 0x1780..=0x17FF | 0x1950..=0x1AAF // Khmer, Tai Le, New Tai Lue, Tai Tham
        | 0x3005..=0x3007 | 0x3040..=0x30FF | 0x31F0..=0x31FF // kana
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF // Han
        | 0xFF66..=0xFF9F // halfwidth kana
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices<'t>(text: &'t str, spans: &[Span]) -> Vec<&'t str> {
        spans.iter().map(|span| &text[span.range()]).collect()
    }

    #[test]
    fn words_are_separated_by_white_space_and_cores_lose_outer_punctuation() {
        let text = "\"Hello,\u{A0}world!\"  don't -- (1,000)";
        let facts = TextFacts::new(text);
        assert_eq!(facts.words, 5);
        assert_eq!(slices(text, &facts.cores), ["Hello", "world", "don't", "1,000"]);
    }

    #[test]
    fn marks_prolong_the_core_before_them() {
        let text = "नमस्ते। e\u{301}";
        let facts = TextFacts::new(text);
        assert_eq!(slices(text, &facts.cores), ["नमस्ते", "e\u{301}"]);
    }

    #[test]
    fn numbers_are_runs_of_digits() {
        let text = "3.14159, 1,000 ٣٤٥ x12y ½";
        let facts = TextFacts::new(text);
        let spans: Vec<Span> = facts.numbers.iter().map(|n| n.0).collect();
        assert_eq!(slices(text, &spans), ["3", "14159", "1", "000", "٣٤٥", "12"]);
        assert_eq!(facts.numbers[4].1, 3);
    }

    #[test]
    fn scripts_without_spaces_are_recognised() {
        for (text, spaced) in [
            ("人人生而自由", false),
            ("มนุษย์ทั้งหลายเกิดมามีอิสระ", false),
            ("すべての人間は", false),
            ("모든 인간은 태어날 때부터", true),
            ("Mọi người sinh ra đều tự do", true),
            ("12345 !?", true),
            ("", true),
            ("see 人 here", true),
        ] {
            assert_eq!(TextFacts::new(text).spaced(), spaced, "{text:?}");
        }
    }

    #[test]
    fn languages_without_spaces_are_known() {
        assert!(TextFacts::in_language("TypeScript 5", "en").spaced());
        assert!(TextFacts::in_language("TypeScript 5", "und").spaced());
        assert!(!TextFacts::in_language("TypeScript 5", "zh-Hans").spaced());
        assert!(!TextFacts::in_language("人人生而自由", "en").spaced());
    }

    #[test]
    fn awkward_texts_are_counted_without_surprise() {
        for (name, text) in testkit::texts::AWKWARD {
            let facts = TextFacts::new(text);
            assert_eq!(facts.bytes, text.len() as u64, "{name}");
            assert_eq!(facts.chars, text.chars().count() as u64, "{name}");
            assert_eq!(facts.words, text.split_whitespace().count() as u64, "{name}");
            let starts = facts.classes.iter().filter(|&&class| class & START != 0).count();
            assert_eq!(starts as u64, facts.chars, "{name}");
        }
    }
}
