//! The published encodings without a file.

#[cfg(images)]
use bpe::Bpe;
use encodings::Ranks;

use crate::lower::{RanksSetup, TiktokenEncoding};
use crate::pipeline::Tokenizer;
#[cfg(not(images))]
use crate::ranked;

impl TiktokenEncoding {
    /// The embedded ranks; encodings may share them.
    #[inline]
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
    /// The tokenizer of a published encoding, from the embedded tables; equal to loading its
    /// `.tiktoken` file.
    ///
    /// With the feature `images` tables are read where they lie in the program: this takes a small part of a
    /// millisecond, and memory that processes share. A program that names its encodings holds
    /// the tables of those alone.
    ///
    /// ```
    /// use tokenizer::{TiktokenEncoding, Tokenizer};
    ///
    /// let tokenizer = Tokenizer::from_encoding(TiktokenEncoding::R50kBase);
    /// assert_eq!(tokenizer.count("hello world"), 2);
    /// assert_eq!(tokenizer.ids("hello world")[0].0, 31373);
    /// ```
    // Inlined for the linker: it leaves out the images that no match can choose.
    #[inline]
    #[must_use]
    pub fn from_encoding(encoding: TiktokenEncoding) -> Self {
        #[cfg(images)]
        return Self::of_image(encoding, image(encoding.ranks()));
        #[cfg(not(images))]
        Self::of_ranks(encoding)
    }

    #[cfg(images)]
    fn of_image(encoding: TiktokenEncoding, image: &'static [u8]) -> Self {
        let model = Bpe::from_image(image).expect("the build script made the image");
        Self::from_ranked(model, &RanksSetup::from(encoding))
            .expect("the tests load every published encoding")
    }

    #[cfg(not(images))]
    fn of_ranks(encoding: TiktokenEncoding) -> Self {
        Self::from_ranked(ranked::model(encoding.ranks()), &RanksSetup::from(encoding))
            .expect("the tests load every published encoding")
    }
}

/// In lines of cache of its own.
#[cfg(images)]
#[repr(C, align(64))]
struct Lines<T: ?Sized>(T);

/// What the build script wrote for some ranks.
#[cfg(images)]
macro_rules! image {
    ($name:literal) => {{
        const FILE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".image"));
        static IMAGE: Lines<[u8; FILE.len()]> =
            Lines(*include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".image")));
        &IMAGE.0
    }};
}

/// The tables of the model of some ranks, as `Bpe::from_image` reads them.
#[cfg(images)]
#[inline]
fn image(ranks: Ranks) -> &'static [u8] {
    match ranks {
        Ranks::R50kBase => image!("r50k_base"),
        Ranks::P50kBase => image!("p50k_base"),
        Ranks::Cl100kBase => image!("cl100k_base"),
        Ranks::O200kBase => image!("o200k_base"),
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
    use crate::ranked;

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

    /// Made of the ranks, as where there are no images.
    fn ranked(encoding: TiktokenEncoding) -> Tokenizer {
        let model = ranked::model(encoding.ranks());
        Tokenizer::from_ranked(model, &RanksSetup::from(encoding)).unwrap()
    }

    /// A session that met much finds tokens in another way than one that met little, and one that reads an
    /// image finds them so from the first on.
    #[test]
    fn a_session_that_met_much_equals_a_fresh_one() {
        for encoding in [TiktokenEncoding::R50kBase, TiktokenEncoding::O200kBase] {
            // Each has a model of its own: sessions of one model share what it found worth building.
            let [busy, fresh] = [(); 2].map(|()| ranked(encoding));
            let embedded = Tokenizer::from_encoding(encoding);
            let mut rng = Rng::new(5);
            let (mut session, mut prepared) = (busy.session(), embedded.session());
            let mut texts: Vec<String> = (0..6_000).map(|_| random_text(&mut rng)).collect();
            texts.extend(testkit::texts::AWKWARD.iter().map(|(_, text)| text.to_string()));
            for text in texts.iter().chain(&texts[..500]) {
                let (mut ids, mut others) = (Vec::new(), Vec::new());
                session.ids_into(text, &mut ids);
                prepared.ids_into(text, &mut others);
                let expected = fresh.ids(text);
                assert_eq!(ids, expected, "{encoding:?} {text:?}");
                assert_eq!(others, expected, "{encoding:?} {text:?}");
                assert_eq!(embedded.ids(text), expected, "{encoding:?} {text:?}");
            }
        }
    }

    /// The image holds everything that the model has, so equal images are equal models.
    #[cfg(images)]
    #[test]
    fn images_are_those_of_the_models_of_the_ranks() {
        for &ranks in Ranks::ALL {
            let made = ranked::model(ranks).to_image().unwrap();
            assert!(made == image(ranks), "{ranks:?}");
            let read = Bpe::from_image(image(ranks)).unwrap();
            assert!(read.to_image().unwrap() == made, "{ranks:?}");
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
