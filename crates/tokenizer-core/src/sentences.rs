//! How SentencePiece's trainers (Kudo and Richardson 2018; 0.2.3) prepare their lines: special tokens
//! are taken out of them, and the most frequent characters are the alphabet.

use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;

use hashbrown::HashMap;

use crate::PieceRules;

/// Special tokens, to be found in text.
///
/// ```
/// use tokenizer_core::sentences::SpecialTexts;
///
/// let special = SpecialTexts::new([b"<s>".as_slice()], false);
/// assert_eq!(special.replaced(b"a<s>b"), b"a\x1Fb");
/// ```
#[derive(Clone, Debug)]
pub struct SpecialTexts {
    /// The longest first.
    texts: Vec<Vec<u8>>,
    firsts: [bool; 256],
}

impl SpecialTexts {
    /// These tokens, and with `byte_fallback` the 256 names of bytes, `<0x00>` to `<0xFF>`.
    pub fn new<'t>(tokens: impl IntoIterator<Item = &'t [u8]>, byte_fallback: bool) -> Self {
        let mut texts: Vec<Vec<u8>> = tokens.into_iter().map(<[u8]>::to_vec).collect();
        if byte_fallback {
            texts.extend((0..=u8::MAX).map(|byte| alloc::format!("<0x{byte:02X}>").into_bytes()));
        }
        texts.retain(|token| !token.is_empty());
        texts.sort_unstable_by_key(|token| Reverse(token.len()));
        let mut firsts = [false; 256];
        for token in &texts {
            firsts[usize::from(token[0])] = true;
        }
        Self { texts, firsts }
    }

    /// The length of the longest token that a text, which is not empty, begins with.
    fn longest(&self, text: &[u8]) -> Option<usize> {
        let may_begin = self.firsts[usize::from(text[0])];
        let mut texts = self.texts.iter();
        may_begin.then(|| texts.find(|token| text.starts_with(token)))?.map(Vec::len)
    }

    /// Whether a token is in the text.
    #[must_use]
    pub fn are_in(&self, text: &[u8]) -> bool {
        (0..text.len()).any(|start| self.longest(&text[start..]).is_some())
    }

    /// The text with [`PieceRules::BOUNDARY`] for each token, from left to right the longest.
    #[must_use]
    pub fn replaced(&self, text: &[u8]) -> Vec<u8> {
        let mut replaced = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some(&byte) = rest.first() {
            let token = self.longest(rest);
            replaced.push(if token.is_some() { PieceRules::BOUNDARY as u8 } else { byte });
            rest = &rest[token.unwrap_or(1)..];
        }
        replaced
    }
}

/// The characters that become tokens, with their counts, most frequent first, then by code point:
/// those that are required, and the most frequent ones until they cover their share of the text.
///
/// Texts come with how often they occur. Spaces and NUL do not count, and neither
/// [`PieceRules::BOUNDARY`] nor [`PieceRules::UNKNOWN`] is in the alphabet. Counts saturate.
pub fn covering_alphabet<'t>(
    texts: impl IntoIterator<Item = (&'t [u8], u64)>,
    required: &str,
    coverage: f64,
) -> Vec<(char, u64)> {
    let mut seen: HashMap<char, (bool, u64)> = HashMap::new();
    for c in required.chars() {
        seen.entry(c).or_default().0 = true;
    }
    let mut total = 0u64;
    for (text, times) in texts {
        for c in String::from_utf8_lossy(text).chars().filter(|&c| c != '\0' && c != ' ') {
            let count = &mut seen.entry(c).or_default().1;
            *count = count.saturating_add(times);
            total = total.saturating_add(times);
        }
    }
    seen.retain(|&c, _| c != '\0');
    let mut found: Vec<(char, (bool, u64))> = seen.into_iter().collect();
    found.sort_unstable_by_key(|&(c, (is_required, count))| (Reverse((is_required, count)), c));
    let mut covered = 0u64;
    let mut alphabet: Vec<(char, u64)> = Vec::new();
    for (c, (_, count)) in found {
        // In single precision, as there.
        if (covered as f64 / total as f64) as f32 >= coverage as f32 {
            break;
        }
        covered = covered.saturating_add(count);
        if c != PieceRules::BOUNDARY && c != PieceRules::UNKNOWN {
            alphabet.push((c, count));
        }
    }
    alphabet.sort_unstable_by_key(|&(c, count)| (Reverse(count), c));
    alphabet
}
