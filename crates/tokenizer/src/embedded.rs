//! The published encodings without a file.

use encodings::Ranks;
use tokenizer_core::TokenId;

use crate::lower::{RanksSetup, TiktokenEncoding};
use crate::pipeline::Tokenizer;

impl TiktokenEncoding {
    /// The embedded ranks; encodings may share them.
    #[must_use]
    pub const fn ranks(self) -> Ranks {
        match self {
            Self::R50kBase => Ranks::R50kBase,
            Self::P50kBase | Self::P50kEdit => Ranks::P50kBase,
            Self::Cl100kBase => Ranks::Cl100kBase,
            Self::O200kBase | Self::O200kHarmony => Ranks::O200kBase,
        }
    }
}

impl Tokenizer {
    /// The tokenizer of a published encoding, from the embedded ranks; equal to loading its
    /// `.tiktoken` file.
    ///
    /// ```
    /// use tokenizer::{TiktokenEncoding, Tokenizer};
    ///
    /// let tokenizer = Tokenizer::from_encoding(TiktokenEncoding::R50kBase);
    /// assert_eq!(tokenizer.count("hello world"), 2);
    /// assert_eq!(tokenizer.ids("hello world")[0].0, 31373);
    /// ```
    #[must_use]
    pub fn from_encoding(encoding: TiktokenEncoding) -> Self {
        let tokens = encoding.ranks().unpack();
        let merges: Vec<_> = tokens
            .iter()
            .filter_map(|(rank, _)| {
                let (left, right) = tokens.merge_of(rank)?;
                Some((TokenId(left), TokenId(right), TokenId(rank)))
            })
            .collect();
        Self::from_tokens(tokens.iter(), Some(&merges), &RanksSetup::from(encoding))
            .expect("the tests load every published encoding")
    }
}

#[cfg(test)]
mod tests {
    use formats::{IdMap, tiktoken};

    use super::*;
    use crate::load::LoadOptions;
    use crate::pipeline::EncodeOptions;
    use crate::policy::Policy;

    fn check(encoding: TiktokenEncoding) {
        let embedded = Tokenizer::from_encoding(encoding);
        let ranks = IdMap::from_pairs(encoding.ranks().unpack().iter().map(|(r, t)| (t, r)));
        let options = LoadOptions { ranks: Some(encoding.into()), ..LoadOptions::default() };
        let file = tiktoken::to_text(&ranks.unwrap());
        let loaded = Tokenizer::from_file(file.as_bytes(), &options).unwrap();
        assert!(embedded.vocab().iter().eq(loaded.vocab().iter()), "{encoding:?}");
        assert_eq!(embedded.added_tokens(), loaded.added_tokens());
        assert_eq!(embedded.vocab_len(), loaded.vocab_len());
        let options = EncodeOptions::new().policy(Policy::AllowAll);
        for (_, text) in testkit::texts::AWKWARD {
            let text = format!("{text}<|endoftext|>  {text}");
            assert_eq!(embedded.encode(&text, &options), loaded.encode(&text, &options));
        }
    }

    #[test]
    fn embedded_r50k_base_equals_its_file() {
        check(TiktokenEncoding::R50kBase);
    }

    #[test]
    fn embedded_p50k_base_equals_its_file() {
        check(TiktokenEncoding::P50kBase);
    }

    #[test]
    fn embedded_p50k_edit_equals_its_file() {
        check(TiktokenEncoding::P50kEdit);
    }

    #[test]
    fn embedded_cl100k_base_equals_its_file() {
        check(TiktokenEncoding::Cl100kBase);
    }

    #[test]
    fn embedded_o200k_base_equals_its_file() {
        check(TiktokenEncoding::O200kBase);
    }

    #[test]
    fn embedded_o200k_harmony_equals_its_file() {
        check(TiktokenEncoding::O200kHarmony);
    }
}
