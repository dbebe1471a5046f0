//! The published patterns, by name.

use alloc::boxed::Box;
use core::fmt;

use tokenizer_core::Split;

use crate::{DeepSeekV3, Rules, Scanner};

/// A pre-tokenization pattern that a published tokenizer uses.
///
/// The strings are kept as published ([`stages`](Self::stages)); the splitter
/// ([`splitter`](Self::splitter)) is a hand-written scanner that is tested to cut as they do.
///
/// ```
/// use pretok::Pattern;
///
/// let pattern = Pattern::from_name("o200k").unwrap();
/// let text = "HTTPServer don't";
/// let pieces: Vec<_> = pattern.splitter().split(text).iter().map(|s| &text[s.range()]).collect();
/// assert_eq!(pieces, ["HTTPServer", " don't"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Pattern {
    /// GPT-2 as released, and Hugging Face's `ByteLevel`.
    Gpt2,
    /// tiktoken's r50k_base: cuts as [`Gpt2`](Self::Gpt2) does.
    R50k,
    /// tiktoken's p50k_base and p50k_edit: the string of r50k_base.
    P50k,
    /// tiktoken's cl100k_base. White space at the end of the text is one piece, line breaks or
    /// not, which the exports of this pattern have lost.
    Cl100k,
    /// cl100k_base as exported for Hugging Face.
    Cl100kHf,
    /// tiktoken's o200k_base and o200k_harmony.
    O200k,
    /// Llama 3: the string of [`Cl100kHf`](Self::Cl100kHf).
    Llama3,
    /// Qwen 2 and 2.5: as Llama 3 with single digits.
    Qwen2,
    /// Qwen 3.5: as Qwen 2 with marks in words.
    Qwen35,
    /// DeepSeek-V3 and R1: three patterns, each on the pieces of the one before.
    DeepSeekV3,
    /// Mistral's Tekken.
    Tekken,
    /// Kimi K2: Han apart.
    KimiK2,
}

/// tiktoken 0.14.0, `tiktoken_ext/openai_public.py`, in the comment above `r50k_pat_str`; Hugging
/// Face tokenizers, `ByteLevel`, has it without the square brackets.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
/// tiktoken 0.14.0, `tiktoken_ext/openai_public.py`, `r50k_pat_str`.
const R50K: &str =
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s";
/// tiktoken 0.14.0, `tiktoken_ext/openai_public.py`, `cl100k_base`.
const CL100K: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s";
/// `tokenizer.json` of Llama 3, and of the cl100k_base exports.
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// tiktoken 0.14.0, `tiktoken_ext/openai_public.py`, `o200k_base`.
const O200K: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// `tokenizer.json` of Qwen 2.
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// `tokenizer.json` of Qwen 3.5, as llama.cpp's `llama-vocab.cpp` quotes it.
const QWEN35: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// `tokenizer.json` of DeepSeek-V3: three `Split` pre-tokenizers, all `Isolated`; llama.cpp's
/// `llama-vocab.cpp` has the same three.
const DEEPSEEK_V3: [&str; 3] = [
    r"\p{N}{1,3}",
    r"[一-龥぀-ゟ゠-ヿ]+",
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##,
];
/// `tekken.json` of Mistral Nemo, as llama.cpp's `llama-vocab.cpp` quotes it.
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// `tokenization_kimi.py` of Kimi K2.
const KIMI_K2: &str = r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

impl Pattern {
    /// Every pattern.
    pub const ALL: &'static [Self] = &[
        Self::Gpt2,
        Self::R50k,
        Self::P50k,
        Self::Cl100k,
        Self::Cl100kHf,
        Self::O200k,
        Self::Llama3,
        Self::Qwen2,
        Self::Qwen35,
        Self::DeepSeekV3,
        Self::Tekken,
        Self::KimiK2,
    ];

    /// The name, as [`from_name`](Self::from_name) takes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gpt2 => "gpt2",
            Self::R50k => "r50k",
            Self::P50k => "p50k",
            Self::Cl100k => "cl100k",
            Self::Cl100kHf => "cl100k-hf",
            Self::O200k => "o200k",
            Self::Llama3 => "llama3",
            Self::Qwen2 => "qwen2",
            Self::Qwen35 => "qwen3.5",
            Self::DeepSeekV3 => "deepseek-v3",
            Self::Tekken => "tekken",
            Self::KimiK2 => "kimi-k2",
        }
    }

    /// The pattern of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|pattern| pattern.name() == name)
    }

    /// The regular expressions as published. There is one, except for DeepSeek-V3's three, each of
    /// which cuts the pieces of the one before.
    #[must_use]
    pub const fn stages(self) -> &'static [&'static str] {
        match self {
            Self::Gpt2 => &[GPT2],
            Self::R50k | Self::P50k => &[R50K],
            Self::Cl100k => &[CL100K],
            Self::Cl100kHf | Self::Llama3 => &[LLAMA3],
            Self::O200k => &[O200K],
            Self::Qwen2 => &[QWEN2],
            Self::Qwen35 => &[QWEN35],
            Self::DeepSeekV3 => &DEEPSEEK_V3,
            Self::Tekken => &[TEKKEN],
            Self::KimiK2 => &[KIMI_K2],
        }
    }

    /// The first pattern that is published as exactly these regular expressions.
    #[must_use]
    pub fn from_stages(stages: &[&str]) -> Option<Self> {
        Self::ALL.iter().copied().find(|pattern| pattern.stages() == stages)
    }

    /// The rules of the scanner, for all but DeepSeek-V3, which has a scanner of its own.
    #[must_use]
    pub const fn rules(self) -> Option<Rules> {
        Some(match self {
            Self::Gpt2 | Self::R50k | Self::P50k => Rules::GPT2,
            Self::Cl100k => Rules::CL100K,
            Self::Cl100kHf | Self::Llama3 => Rules::LLAMA3,
            Self::O200k => Rules::O200K,
            Self::Qwen2 => Rules::QWEN2,
            Self::Qwen35 => Rules::QWEN35,
            Self::Tekken => Rules::TEKKEN,
            Self::KimiK2 => Rules::KIMI_K2,
            Self::DeepSeekV3 => return None,
        })
    }

    /// The splitter. What its pieces leave out of the text: nothing.
    #[must_use]
    pub fn splitter(self) -> Box<dyn Split> {
        match self.rules() {
            Some(rules) => Box::new(Scanner::new(rules)),
            None => Box::new(DeepSeekV3),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
