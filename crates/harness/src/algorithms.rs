//! The algorithms of the workspace as contestants, by name.

use tokenizer_core::{
    Model, Normalize, PieceCounts, Silent, Token, TokenId, TokenKind, Train, Vocab, utf8,
};

use crate::contestant::{Contestant, Progress, RoundTrip, Trained, Watch};
use crate::report::{BytePolicy, Standing, Terms};

/// The names of [`by_name`], contenders first.
#[must_use]
pub fn names() -> &'static [&'static str] {
    &["bpe", "wordpiece", "wordpiece-freq", "unigram", "char", "word", "byte"]
}

/// The algorithm of this name.
#[must_use]
pub fn by_name(name: &str) -> Option<Box<dyn Contestant>> {
    Some(match name {
        "bpe" => Box::new(Bpe),
        "wordpiece" => Box::new(WordPiece { criterion: wordpiece::Criterion::Pmi }),
        "wordpiece-freq" => Box::new(WordPiece { criterion: wordpiece::Criterion::Frequency }),
        "unigram" => Box::new(Unigram),
        "char" => Box::new(Chars),
        "word" => Box::new(Words),
        "byte" => Box::new(Bytes),
        _ => return None,
    })
}

/// The names of [`normalizer`].
pub const NORMALIZERS: [&str; 7] =
    ["none", "nfc", "nfd", "nfkc", "nfkd", "lowercase", "strip-accents"];

/// The normalizer of this name, or of several with commas between, applied from left to right;
/// `none` is none.
///
/// # Errors
///
/// If a name is not known.
pub fn normalizer(names: &str) -> Result<Option<Box<dyn Normalize>>, String> {
    if names == "none" {
        return Ok(None);
    }
    let mut sequence = normalize::Sequence::new();
    for name in names.split(',') {
        let form = |form| normalize::UnicodeForm::new(form);
        sequence = match name {
            "nfc" => sequence.then(form(normalize::Form::Nfc)),
            "nfd" => sequence.then(form(normalize::Form::Nfd)),
            "nfkc" => sequence.then(form(normalize::Form::Nfkc)),
            "nfkd" => sequence.then(form(normalize::Form::Nfkd)),
            "lowercase" => sequence.then(normalize::Lowercase),
            "strip-accents" => sequence.then(normalize::StripAccents),
            other => {
                return Err(format!(
                    "there is no normalizer {other}; there are {}",
                    NORMALIZERS.join(", ")
                ));
            }
        };
    }
    Ok(Some(sequence.boxed()))
}

/// The share of characters that an alphabet of characters covers under [`BytePolicy::Unk`]: the
/// value that SentencePiece recommends for languages with many characters. The rest is unknown.
pub const COVERAGE: f64 = 0.9995;

/// The name of the unknown token.
const UNK: &str = "<unk>";

/// The name of an algorithm and the size that it needs, or its own words.
fn too_small(needed: Option<usize>, error: &dyn std::error::Error) -> Result<usize, String> {
    needed.ok_or_else(|| error.to_string())
}

struct Bpe;

impl Bpe {
    fn trainer(size: usize, terms: &Terms) -> bpe::BpeTrainer {
        let mut trainer = bpe::BpeTrainer::default();
        trainer.goal = bpe::Goal::VocabSize(size);
        trainer.special_tokens.clone_from(&terms.special_tokens);
        if terms.bytes == BytePolicy::Unk {
            trainer.unit = bpe::Alphabet::Char;
            trainer.character_coverage = COVERAGE;
            trainer.unk_token = Some(UNK.into());
        }
        trainer
    }
}

impl Contestant for Bpe {
    fn name(&self) -> &str {
        "bpe"
    }

    fn standing(&self) -> Standing {
        Standing::Contender
    }

    fn smallest(&self, counts: &PieceCounts, terms: &Terms) -> Result<usize, String> {
        match Self::trainer(0, terms).train(counts, &mut Silent) {
            Ok(_) => Ok(0),
            Err(error) => too_small(error.needed_vocab_size(), &error),
        }
    }

    fn train(
        &self,
        counts: &PieceCounts,
        size: usize,
        terms: &Terms,
        progress: &mut Progress<'_>,
    ) -> Result<Trained, String> {
        let model = Self::trainer(size, terms)
            .train(counts, &mut Watch(progress))
            .map_err(|error| error.to_string())?;
        Ok(Trained::new(model, |model: &bpe::Bpe| {
            let naive = bpe::naive::NaiveEncoder::new(model);
            Box::new(move |piece| naive.encode_piece(piece))
        }))
    }

    fn notes(&self, terms: &Terms) -> Vec<String> {
        let alphabet = match terms.bytes {
            BytePolicy::Bytes => "from bytes",
            BytePolicy::Unk => "from characters",
        };
        vec![format!("merges {alphabet} by frequency, ties by lowest ids")]
    }

    fn round_trip(&self, terms: &Terms) -> RoundTrip {
        promised(terms)
    }
}

fn promised(terms: &Terms) -> RoundTrip {
    match terms.bytes {
        BytePolicy::Bytes => RoundTrip::Always,
        BytePolicy::Unk => RoundTrip::UnlessUnknown,
    }
}

struct WordPiece {
    criterion: wordpiece::Criterion,
}

impl WordPiece {
    fn trainer(&self, size: usize, terms: &Terms) -> wordpiece::WordPieceTrainer {
        let mut trainer = wordpiece::WordPieceTrainer::new(size);
        trainer.criterion = self.criterion;
        trainer.special_tokens = special_tokens(terms);
        trainer.options = match terms.bytes {
            BytePolicy::Bytes => {
                let mut options = wordpiece::Options::bytes();
                // A literal "##" at the beginning of a piece would be taken for the mark of a
                // continuation and lost in decoding. No text holds this byte.
                options.continuing_prefix = b"\xFF##".to_vec();
                options
            }
            BytePolicy::Unk => {
                trainer.coverage = COVERAGE;
                let mut options = wordpiece::Options::default();
                options.unk = Some(UNK.into());
                options.max_chars = usize::MAX;
                options.unknown = wordpiece::Unknown::Character;
                options
            }
        };
        // The pieces keep their white space.
        trainer.options.word_separator.clear();
        trainer
    }
}

impl Contestant for WordPiece {
    fn name(&self) -> &str {
        match self.criterion {
            wordpiece::Criterion::Frequency => "wordpiece-freq",
            _ => "wordpiece",
        }
    }

    fn standing(&self) -> Standing {
        Standing::Contender
    }

    fn smallest(&self, counts: &PieceCounts, terms: &Terms) -> Result<usize, String> {
        match self.trainer(0, terms).train(counts, &mut Silent) {
            Ok(_) => Ok(0),
            Err(error) => too_small(error.needed_vocab_size(), &error),
        }
    }

    fn train(
        &self,
        counts: &PieceCounts,
        size: usize,
        terms: &Terms,
        progress: &mut Progress<'_>,
    ) -> Result<Trained, String> {
        let mut trainer = self.trainer(size, terms);
        if self.criterion == wordpiece::Criterion::Pmi {
            // With rare pairs allowed, this criterion fills the vocabulary with them.
            trainer =
                trainer.fitted(counts, &mut Watch(progress)).map_err(|error| error.to_string())?;
        }
        let model =
            trainer.train(counts, &mut Watch(progress)).map_err(|error| error.to_string())?;
        Ok(Trained::new(model, |model: &wordpiece::WordPiece| {
            Box::new(move |piece| wordpiece::naive::encode(model, piece))
        }))
    }

    fn notes(&self, _: &Terms) -> Vec<String> {
        match self.criterion {
            wordpiece::Criterion::Frequency => {
                vec!["merges by frequency, as the trainers of BERT vocabularies do".into()]
            }
            _ => vec![
                "merges by count(ab) / (count(a) count(b)), with the highest minimum frequency at \
                 which the vocabulary still fills; finding that takes about ten trainings, which \
                 its training time includes"
                    .into(),
            ],
        }
    }

    fn round_trip(&self, terms: &Terms) -> RoundTrip {
        promised(terms)
    }
}

fn special_tokens(terms: &Terms) -> Vec<Vec<u8>> {
    terms.special_tokens.iter().map(|token| token.as_bytes().to_vec()).collect()
}

/// The token that encoders produce for exactly these bytes, if there is one.
fn ordinary(vocab: &Vocab, bytes: &[u8]) -> Option<TokenId> {
    vocab.get(bytes).filter(|&id| vocab.kind(id) == Some(TokenKind::Normal))
}

struct Unigram;

impl Unigram {
    fn trainer(size: usize, terms: &Terms) -> unigram::UnigramTrainer {
        let mut trainer = unigram::UnigramTrainer::new(size);
        let special =
            |token: &String| unigram::SpecialToken::new(token.as_bytes(), TokenKind::Control);
        trainer.special_tokens = terms.special_tokens.iter().map(special).collect();
        trainer.coverage = COVERAGE;
        // All trainers work on one thread, so that their times compare.
        trainer.threads = 1;
        match terms.bytes {
            BytePolicy::Bytes => trainer.options.byte_fallback = true,
            BytePolicy::Unk => {
                trainer.special_tokens.push(unigram::SpecialToken::new(UNK, TokenKind::Unknown));
            }
        }
        trainer
    }
}

impl Contestant for Unigram {
    fn name(&self) -> &str {
        "unigram"
    }

    fn standing(&self) -> Standing {
        Standing::Contender
    }

    fn smallest(&self, counts: &PieceCounts, terms: &Terms) -> Result<usize, String> {
        match Self::trainer(1, terms).train(counts, &mut Silent) {
            Ok(_) => Ok(1),
            Err(error) => too_small(error.needed_vocab_size(), &error),
        }
    }

    fn train(
        &self,
        counts: &PieceCounts,
        size: usize,
        terms: &Terms,
        progress: &mut Progress<'_>,
    ) -> Result<Trained, String> {
        let model = Self::trainer(size, terms)
            .train(counts, &mut Watch(progress))
            .map_err(|error| error.to_string())?;
        Ok(Trained::new(model, |model: &unigram::Unigram| {
            Box::new(move |piece| unigram::naive::encode(model, piece))
        }))
    }

    fn notes(&self, _: &Terms) -> Vec<String> {
        let coverage = COVERAGE * 100.0;
        vec![format!("its alphabet covers {coverage} % of the characters; one training thread")]
    }

    fn round_trip(&self, terms: &Terms) -> RoundTrip {
        promised(terms)
    }
}

struct Chars;

impl Chars {
    fn trainer(size: usize, terms: &Terms) -> baseline::CharsTrainer {
        let mut trainer = baseline::CharsTrainer::new(size);
        trainer.special_tokens = special_tokens(terms);
        trainer.fallback = match terms.bytes {
            BytePolicy::Bytes => baseline::Fallback::Bytes,
            BytePolicy::Unk => baseline::Fallback::Unknown(UNK.into()),
        };
        trainer
    }
}

impl Contestant for Chars {
    fn name(&self) -> &str {
        "char"
    }

    fn standing(&self) -> Standing {
        Standing::Baseline
    }

    fn smallest(&self, counts: &PieceCounts, terms: &Terms) -> Result<usize, String> {
        match Self::trainer(0, terms).train(counts, &mut Silent) {
            Ok(_) => Ok(0),
            Err(error) => too_small(error.needed_vocab_size(), &error),
        }
    }

    fn train(
        &self,
        counts: &PieceCounts,
        size: usize,
        terms: &Terms,
        progress: &mut Progress<'_>,
    ) -> Result<Trained, String> {
        let model = Self::trainer(size, terms)
            .train(counts, &mut Watch(progress))
            .map_err(|error| error.to_string())?;
        Ok(Trained::new(model, |model: &baseline::Chars| {
            Box::new(move |piece| {
                let vocab = model.vocab();
                let mut tokens = Vec::new();
                for char in utf8::chars(piece) {
                    match (ordinary(vocab, char), model.unk()) {
                        (Some(id), _) => tokens.push(Token::new(id, char.len())),
                        (None, Some(unk)) => tokens.push(Token::new(unk, char.len())),
                        (None, None) => {
                            let bytes = char.iter().filter_map(|&byte| vocab.byte(byte));
                            tokens.extend(bytes.map(|id| Token::new(id, 1)));
                        }
                    }
                }
                tokens
            })
        }))
    }

    fn notes(&self, _: &Terms) -> Vec<String> {
        vec!["has as many tokens as the text has characters, if that is fewer than asked".into()]
    }

    fn round_trip(&self, terms: &Terms) -> RoundTrip {
        promised(terms)
    }
}

struct Words;

impl Words {
    fn trainer(size: usize, terms: &Terms) -> baseline::WordsTrainer {
        let mut trainer = baseline::WordsTrainer::new(size);
        trainer.special_tokens = special_tokens(terms);
        trainer.unk = UNK.into();
        trainer
    }
}

impl Contestant for Words {
    fn name(&self) -> &str {
        "word"
    }

    fn standing(&self) -> Standing {
        Standing::Baseline
    }

    fn smallest(&self, counts: &PieceCounts, terms: &Terms) -> Result<usize, String> {
        match Self::trainer(0, terms).train(counts, &mut Silent) {
            Ok(_) => Ok(0),
            Err(error) => too_small(error.needed_vocab_size(), &error),
        }
    }

    fn train(
        &self,
        counts: &PieceCounts,
        size: usize,
        terms: &Terms,
        progress: &mut Progress<'_>,
    ) -> Result<Trained, String> {
        let model = Self::trainer(size, terms)
            .train(counts, &mut Watch(progress))
            .map_err(|error| error.to_string())?;
        Ok(Trained::new(model, |model: &baseline::Words| {
            Box::new(move |piece| {
                let id = ordinary(model.vocab(), piece).or(model.unk());
                let token = id.filter(|_| !piece.is_empty()).map(|id| Token::new(id, piece.len()));
                token.into_iter().collect()
            })
        }))
    }

    fn notes(&self, _: &Terms) -> Vec<String> {
        vec!["has <unk> under every byte policy: rare words are lost".into()]
    }

    fn round_trip(&self, _: &Terms) -> RoundTrip {
        RoundTrip::UnlessUnknown
    }
}

struct Bytes;

impl Contestant for Bytes {
    fn name(&self) -> &str {
        "byte"
    }

    fn standing(&self) -> Standing {
        Standing::Baseline
    }

    fn smallest(&self, _: &PieceCounts, _: &Terms) -> Result<usize, String> {
        // The size is not asked for but given: as `notes` says, it has the same at any.
        Ok(0)
    }

    fn train(
        &self,
        _: &PieceCounts,
        _: usize,
        terms: &Terms,
        _: &mut Progress<'_>,
    ) -> Result<Trained, String> {
        let specials = terms.special_tokens.iter().map(|token| (token, TokenKind::Control));
        let model = baseline::Bytes::new(specials).map_err(|error| error.to_string())?;
        Ok(Trained::new(model, |model: &baseline::Bytes| {
            Box::new(move |piece| piece.iter().map(|&b| Token::new(model.id(b), 1)).collect())
        }))
    }

    fn notes(&self, _: &Terms) -> Vec<String> {
        vec!["has 256 tokens and the special ones at every size".into()]
    }

    fn round_trip(&self, _: &Terms) -> RoundTrip {
        RoundTrip::Always
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_known() {
        for name in names() {
            assert_eq!(
                by_name(name).map(|contestant| contestant.name().to_owned()).as_deref(),
                Some(*name)
            );
        }
        assert!(by_name("no-such").is_none());
    }

    #[test]
    fn normalizers_are_known_by_name_and_in_sequence() {
        for name in NORMALIZERS {
            assert!(normalizer(name).is_ok(), "{name}");
        }
        let both = normalizer("nfkc,lowercase").unwrap().unwrap();
        assert_eq!(both.normalize("\u{FB01}X"), "fix");
        let error = normalizer("nfc,no-such").err().unwrap();
        assert!(error.contains("no-such"), "{error}");
    }
}
