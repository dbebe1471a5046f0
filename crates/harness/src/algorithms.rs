//! The algorithms of the workspace as contestants, by name.

use std::ops::ControlFlow;
use std::time::Instant;

use tokenizer_core::{
    Model, Normalize, Observe, PieceCounts, Silent, Token, TokenId, TokenKind, Train, Vocab, utf8,
};

use crate::contestant::{Contestant, Progress, RoundTrip, Rung, Trained, Watch, each_by_itself};
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

    fn trained(model: bpe::Bpe) -> Trained {
        Trained::new(model, |model: &bpe::Bpe| {
            let naive = bpe::naive::NaiveEncoder::new(model);
            Box::new(move |piece| naive.encode_piece(piece))
        })
    }
}

/// The first `len` tokens of a vocabulary.
fn beginning(vocab: &Vocab, len: usize) -> Result<Vocab, String> {
    let mut builder = Vocab::builder();
    for (_, bytes, kind) in vocab.iter().take(len) {
        builder.push(bytes, kind).map_err(|error| error.to_string())?;
    }
    Ok(builder.build())
}

/// Watches one training by merges up to the largest of several sizes, and notes when it passes
/// each of them.
struct Ladder<'s, 'w, 'p> {
    sizes: &'s [usize],
    /// For each size that was passed, the number of merges and the seconds.
    passed: Vec<(usize, f64)>,
    n_merges: usize,
    start: Instant,
    progress: &'w mut Progress<'p>,
}

impl<'s, 'w, 'p> Ladder<'s, 'w, 'p> {
    fn new(sizes: &'s [usize], progress: &'w mut Progress<'p>) -> Self {
        Self { sizes, passed: Vec::new(), n_merges: 0, start: Instant::now(), progress }
    }

    /// A merge made the token `id` (a new one or not).
    fn merged(&mut self, id: TokenId) {
        self.n_merges += 1;
        let len = id.index() + 1;
        while self.sizes.get(self.passed.len()).is_some_and(|&size| size <= len) {
            self.passed.push((self.n_merges, self.start.elapsed().as_secs_f64()));
        }
    }

    /// The tokenizer of every size. `part` makes that of a model's first tokens; it is told how
    /// many merges lead there, if the training went on behind them.
    fn rungs<M: Model, E: std::error::Error>(
        self,
        model: Result<M, E>,
        part: impl Fn(&M, usize, Option<usize>) -> Result<Trained, String>,
    ) -> Vec<Rung> {
        let seconds = self.start.elapsed().as_secs_f64();
        let model = model.map_err(|error| error.to_string());
        let rung = |(i, &size): (usize, &usize)| {
            let passed = self.passed.get(i);
            let trained = model.as_ref().map_err(Clone::clone).and_then(|model| {
                part(model, size.min(model.vocab().len()), passed.map(|passed| passed.0))
            });
            Rung { trained, seconds: passed.map_or(seconds, |passed| passed.1) }
        };
        self.sizes.iter().enumerate().map(rung).collect()
    }
}

impl Observe<bpe::MergeStep> for Ladder<'_, '_, '_> {
    fn step(&mut self, step: &bpe::MergeStep) -> ControlFlow<()> {
        self.merged(step.id);
        ControlFlow::Continue(())
    }

    fn progress(&mut self, phase: &'static str, done: u64, total: u64) -> ControlFlow<()> {
        (self.progress)(phase, done, total)
    }
}

impl Observe<wordpiece::Merge> for Ladder<'_, '_, '_> {
    fn step(&mut self, step: &wordpiece::Merge) -> ControlFlow<()> {
        self.merged(step.id);
        ControlFlow::Continue(())
    }

    fn progress(&mut self, phase: &'static str, done: u64, total: u64) -> ControlFlow<()> {
        (self.progress)(phase, done, total)
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
        Ok(Self::trained(model))
    }

    /// Merges come one by one, and a smaller vocabulary is where the list ends earlier.
    fn train_each(
        &self,
        counts: &PieceCounts,
        sizes: &[usize],
        terms: &Terms,
        progress: &mut Progress<'_>,
    ) -> Vec<Rung> {
        let mut ladder = Ladder::new(sizes, progress);
        let largest = sizes.last().copied().unwrap_or(0);
        let model = Self::trainer(largest, terms).train(counts, &mut ladder);
        ladder.rungs(model, |model, len, n_merges| {
            let bpe::Rules::Merges(merges) = model.rules() else {
                return Err("its rules are no merges".into());
            };
            let n_merges = n_merges.unwrap_or(merges.len());
            let vocab = beginning(model.vocab(), len)?;
            bpe::Bpe::from_merges(vocab, merges[..n_merges].to_vec(), model.options().clone())
                .map(Self::trained)
                .map_err(|error| error.to_string())
        })
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

    fn trained(model: wordpiece::WordPiece) -> Trained {
        Trained::new(model, |model: &wordpiece::WordPiece| {
            Box::new(move |piece| wordpiece::naive::encode(model, piece))
        })
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
        Ok(Self::trained(model))
    }

    /// By frequency, a smaller vocabulary is the beginning of a larger one. By PMI it is not: each
    /// size has a minimum frequency of its own.
    fn train_each(
        &self,
        counts: &PieceCounts,
        sizes: &[usize],
        terms: &Terms,
        progress: &mut Progress<'_>,
    ) -> Vec<Rung> {
        if self.criterion == wordpiece::Criterion::Pmi {
            return each_by_itself(self, counts, sizes, terms, progress);
        }
        let mut ladder = Ladder::new(sizes, progress);
        let largest = sizes.last().copied().unwrap_or(0);
        let model = self.trainer(largest, terms).train(counts, &mut ladder);
        ladder.rungs(model, |model, len, _| {
            model.prefix(len).map(Self::trained).map_err(|error| error.to_string())
        })
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
        Ok(Trained::with_bits(
            model,
            |model| Box::new(move |piece| unigram::naive::encode(model, piece)),
            unigram_bits,
        ))
    }

    fn notes(&self, _: &Terms) -> Vec<String> {
        let coverage = COVERAGE * 100.0;
        vec![format!("its alphabet covers {coverage} % of the characters; one training thread")]
    }

    fn round_trip(&self, terms: &Terms) -> RoundTrip {
        promised(terms)
    }
}

/// What a piece costs under a Unigram model, summed over all its segmentations. A character
/// outside of the alphabet costs its unknown score and, because that does not say which
/// character it is, 8 bits for each of its bytes.
fn unigram_bits(model: &unigram::Unigram, piece: &[u8]) -> f64 {
    let is_outside = |token: &Token| {
        matches!(model.vocab().kind(token.id), Some(TokenKind::Byte | TokenKind::Unknown))
    };
    let escaped: usize =
        model.encode(piece).iter().filter(|token| is_outside(token)).map(|t| t.len as usize).sum();
    8.0 * escaped as f64 - model.log_likelihood(piece) / std::f64::consts::LN_2
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
    fn the_unigram_price_is_that_of_a_distribution() {
        let text = "the cat sat on the mat while the dog that ate the hat sat still ".repeat(9);
        let pieces = text.split_inclusive(' ').map(|word| (word, 1));
        let counts = PieceCounts::from_pairs(pieces).unwrap();
        let terms = Terms {
            normalizer: "none".into(),
            splitter: "gpt2".into(),
            special_tokens: Vec::new(),
            bytes: BytePolicy::Bytes,
            train_set: String::new(),
        };
        let model = Unigram::trainer(280, &terms).train(&counts, &mut Silent).unwrap();
        let vocab = model.vocab();
        let mass: f64 = vocab
            .iter()
            .filter(|&(_, _, kind)| kind == TokenKind::Normal)
            .map(|(id, _, _)| model.score(id).unwrap().exp())
            .sum();
        // The M-step takes digammas, which are below logarithms, so the scores add up to less
        // than 1; on this little text by much.
        assert!((0.9..1.0001).contains(&mass), "{mass}");
        // By hand: one segmentation, of tokens whose scores are known.
        let t = model.score(vocab.get(b"t").unwrap()).unwrap();
        let by_hand = -t / std::f64::consts::LN_2;
        assert!((unigram_bits(&model, b"t") - by_hand).abs() < 1e-9);
        // A character that is not in the text: the unknown score and its two bytes.
        let by_hand = 16.0 - model.unknown_score() / std::f64::consts::LN_2;
        assert!((unigram_bits(&model, "\u{E9}".as_bytes()) - by_hand).abs() < 1e-9);
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
