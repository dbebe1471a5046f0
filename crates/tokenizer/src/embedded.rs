//! The published encodings without a file.

use encodings::Ranks;
use tokenizer_core::{TokenId, Vocab};

use crate::lower::{LowerError, RanksSetup, TiktokenEncoding};
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
        let (bytes, mut bounds, merges) = encoding.ranks().unpack().into_parts();
        for gap in merges.gaps() {
            // Tokens of no bytes are ids that are not used.
            let at = gap.start as usize;
            let begin = bounds[at];
            bounds.splice(at..at, gap.map(|_| begin));
        }
        let merges =
            merges.iter().map(|(left, right, rank)| (TokenId(left), TokenId(right), TokenId(rank)));
        Vocab::from_distinct(bytes, bounds)
            .map_err(|error| LowerError::caused("ranks", error))
            .and_then(|vocab| Self::from_merged_ranks(vocab, merges, &RanksSetup::from(encoding)))
            .expect("the tests load every published encoding")
    }
}

#[cfg(test)]
mod tests {
    use formats::{IdMap, tiktoken};
    use tokenizer_core::Rng;

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

    /// Texts of a few words of letters from several scripts, spaces and signs.
    fn random_text(rng: &mut Rng) -> String {
        const LETTERS: [&str; 5] =
            ["aeinorst", "bcdfghlmpuvwyEST", "абвеиност", "的一是不了人在有", "กขคงจชดตน้ำ"];
        let mut text = String::new();
        for _ in 0..1 + rng.below(12) {
            let letters: Vec<char> = LETTERS[rng.below(5) as usize].chars().collect();
            let most = if rng.below(40) == 0 { 300 } else { 12 };
            let len = 1 + rng.below(most);
            text.extend((0..len).map(|_| letters[rng.below(letters.len() as u64) as usize]));
            text.push_str([" ", "  ", "\n", "-", "1", "'s "][rng.below(6) as usize]);
        }
        text
    }

    /// A session that met much finds tokens in another way than one that met little.
    #[test]
    fn a_session_that_met_much_equals_a_fresh_one() {
        for encoding in [TiktokenEncoding::R50kBase, TiktokenEncoding::O200kBase] {
            // Each has a model of its own: sessions of one model share what it found worth building.
            let [busy, fresh] = [(); 2].map(|()| Tokenizer::from_encoding(encoding));
            let mut rng = Rng::new(5);
            let mut session = busy.session();
            let mut texts: Vec<String> = (0..6_000).map(|_| random_text(&mut rng)).collect();
            texts.extend(testkit::texts::AWKWARD.iter().map(|(_, text)| text.to_string()));
            for text in texts.iter().chain(&texts[..500]) {
                let mut ids = Vec::new();
                session.ids_into(text, &mut ids);
                assert_eq!(ids, fresh.ids(text), "{encoding:?} {text:?}");
            }
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
