use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::ControlFlow;

use tokenizer_core::{Encode, Observe, PieceCounts, TokenId, Train, VocabError};

use crate::alphabet::{self, Corpus, Tokens, is_longer, units};
use crate::engine::Engine;
use crate::{BuildError, Options, Unit, WordPiece, extend};

/// Trains a [`WordPiece`] model by merging pairs of symbols.
///
/// Words begin as characters: the first spelled `h`, the others `##u`, `##g`. Again and again the
/// pair of adjacent symbols with the best score becomes one symbol, `h ##u` → `hu`, until the
/// vocabulary is full or no pair is left. See [`Criterion`] for the score and its pathology.
///
/// Every choice is a total order: higher score, then more frequent pair, then lower left id, then
/// lower right id. Scores are compared exactly. The same counts train the same model, in any order
/// and on any machine.
///
/// The vocabulary is: the special tokens, the word-initial characters, the continuations (each
/// sorted by bytes), then the merged tokens in the order in which they were made. A smaller
/// vocabulary of the same training is a prefix of a larger one ([`WordPiece::prefix`]).
///
/// Where two different merges spell the same token it keeps its first id, and both count for it.
/// A merge that would spell a special token is never made.
///
/// The cost is that of a BPE trainer: every merge touches only the places where its pair occurs
/// (also inside one enormous word), and pairs are kept in heaps, grouped so that few keys change
/// when a count does (docs/algorithms/wordpiece.md). Memory is 16 bytes for each character of the
/// distinct words, and 4 bytes for each place of a pair.
///
/// The struct may gain fields: begin with [`new`](Self::new) and set what differs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WordPieceTrainer {
    /// How many tokens to end with; fewer if no pair is left before.
    pub vocab_size: usize,
    /// The first tokens of the vocabulary, of kind `Control` ([`Options::unk`] of kind
    /// `Unknown`), which never match text. The unknown token is put first if it is not among
    /// them.
    pub special_tokens: Vec<Vec<u8>>,
    /// How the trained model reads words. [`Options::unit`] is also the unit of training: with
    /// [`Unit::Byte`] all 256 bytes and all 256 continuations are tokens, so nothing is unknown.
    pub options: Options,
    /// What makes a pair worth merging.
    pub criterion: Criterion,
    /// Pairs that occur less often are never merged; 0 is as 1. Default 1.
    ///
    /// Under [`Criterion::Pmi`] this is the most important setting: the best score a pair can
    /// have is 1 / its count, so the rarest pairs that are allowed come first.
    pub min_frequency: u64,
    /// The longest token in characters, the prefix not counted; default unlimited.
    pub max_token_len: Option<usize>,
    /// Words of more characters are skipped and counted in [`Report`]; default unlimited.
    pub max_word_len: Option<usize>,
    /// How many different characters the alphabet may have, the most frequent ones; default
    /// unlimited. A character outside of the alphabet is never merged and parts the symbols
    /// beside it. Not for [`Unit::Byte`].
    pub alphabet_limit: Option<usize>,
    /// What share of all characters of the text the alphabet must cover, by its most frequent
    /// characters; default 1. Not for [`Unit::Byte`].
    pub coverage: f64,
    /// Characters that are in the alphabet in both forms, whether they occur or not.
    pub initial_alphabet: Vec<Vec<u8>>,
}

impl WordPieceTrainer {
    /// The default trainer for a vocabulary of this size.
    #[must_use]
    pub fn new(vocab_size: usize) -> Self {
        Self {
            vocab_size,
            special_tokens: Vec::new(),
            options: Options::default(),
            criterion: Criterion::Pmi,
            min_frequency: 1,
            max_token_len: None,
            max_word_len: None,
            alphabet_limit: None,
            coverage: 1.0,
            initial_alphabet: Vec::new(),
        }
    }

    /// Trains, and says what happened besides. [`Train::train`] is this without the report.
    ///
    /// # Errors
    ///
    /// If the options are impossible ([`TrainError::needed_vocab_size`] is set if the vocabulary is
    /// smaller than special tokens and alphabet), if the characters of the text times their
    /// counts pass 64 bits, if the distinct words have 2^32 - 1 characters or more, or if `observe`
    /// stopped the training.
    pub fn train_reporting(
        &self,
        counts: &PieceCounts,
        observe: &mut dyn Observe<Merge>,
    ) -> Result<(WordPiece, Report), TrainError> {
        self.resume(&[], counts, observe)
    }

    /// Goes on with an interrupted training whose first merges were these: the model is the one
    /// that the whole training gives, from the same counts and options. The merges are made again,
    /// without being chosen.
    ///
    /// # Errors
    ///
    /// As [`train_reporting`](Self::train_reporting); also if a pair does not occur in the text when
    /// its turn comes.
    pub fn resume(
        &self,
        merges: &[(TokenId, TokenId)],
        counts: &PieceCounts,
        observe: &mut dyn Observe<Merge>,
    ) -> Result<(WordPiece, Report), TrainError> {
        let (tokens, corpus) = alphabet::prepare(self, counts, observe)?;
        self.learn(tokens, corpus, merges, observe)
    }

    /// Trains more tokens on top of a model, whose tokens all keep their ids: behind them come what
    /// the model lacks of special tokens and of characters, then merges, until the vocabulary is
    /// full. [`vocab_size`](Self::vocab_size) counts old and new together, the options are the
    /// model's.
    ///
    /// A word whose new encoding has no new token is encoded as before. The longest match among old
    /// and new tokens, where it is an old one, is the longest among the old; and where nothing old or
    /// new matches nothing old does. For that last step every character inside of an old
    /// continuation must be a continuation itself; one that is not is among what comes behind.
    ///
    /// A vocabulary does not tell how it was merged: the words begin as the model encodes them, not
    /// as its training left them. So this is not the same as training longer.
    ///
    /// # Errors
    ///
    /// As [`train_reporting`](Self::train_reporting); [`TrainError::needed_vocab_size`] counts the
    /// old tokens.
    pub fn extend(
        &self,
        model: &WordPiece,
        counts: &PieceCounts,
        observe: &mut dyn Observe<Merge>,
    ) -> Result<(WordPiece, Report), TrainError> {
        self.resume_extending(model, &[], counts, observe)
    }

    /// Goes on with an interrupted [`extend`](Self::extend) whose first merges were these, as
    /// [`resume`](Self::resume) does with a training.
    ///
    /// # Errors
    ///
    /// As [`extend`](Self::extend) and [`resume`](Self::resume).
    pub fn resume_extending(
        &self,
        model: &WordPiece,
        merges: &[(TokenId, TokenId)],
        counts: &PieceCounts,
        observe: &mut dyn Observe<Merge>,
    ) -> Result<(WordPiece, Report), TrainError> {
        let trainer = self.like(model);
        let segment = |reader: &WordPiece, word: &[u8], tokens: &mut _| {
            reader.session().encode_piece(word, tokens);
        };
        let (tokens, corpus) = extend::prepare(&trainer, model, counts, &segment, observe)?;
        trainer.learn(tokens, corpus, merges, observe)
    }

    /// This trainer with the options of a model.
    pub(crate) fn like(&self, model: &WordPiece) -> Self {
        Self { options: model.options().clone(), ..self.clone() }
    }

    fn learn(
        &self,
        tokens: Tokens,
        corpus: Corpus,
        merges: &[(TokenId, TokenId)],
        observe: &mut dyn Observe<Merge>,
    ) -> Result<(WordPiece, Report), TrainError> {
        let mut report = corpus.report.clone();
        let tokens = Engine::new(self, tokens, corpus).run(merges, observe, &mut report)?;
        let model =
            WordPiece::new(tokens.into_vocab(), self.options.clone()).map_err(TrainError::build)?;
        Ok((model, report))
    }

    /// This trainer with the highest [`min_frequency`](Self::min_frequency), to within 2 %, at which
    /// the vocabulary still fills; 1 if it fills at none.
    ///
    /// Under [`Criterion::Pmi`] this is usually close to the best setting for the size: lower, and
    /// the vocabulary is full of rare pairs before the frequent ones had their turn; higher, and
    /// tokens are left unused. A vocabulary of another size wants another value.
    ///
    /// Costs about ten trainings. `observe` hears of their progress as phase `fit`, of no steps.
    ///
    /// # Errors
    ///
    /// As [`train_reporting`](Self::train_reporting).
    pub fn fitted(
        &self,
        counts: &PieceCounts,
        observe: &mut dyn Observe<Merge>,
    ) -> Result<Self, TrainError> {
        let mut observe = Fit { observe, last_count: 0 };
        let mut fills = |trainer: &Self| -> Result<(bool, u64), TrainError> {
            let (tokens, corpus) = alphabet::prepare(trainer, counts, &mut observe)?;
            let mut report = Report::default();
            Engine::new(trainer, tokens, corpus).run(&[], &mut observe, &mut report)?;
            Ok((!report.ran_dry, observe.last_count))
        };
        let at = |min_frequency| Self { min_frequency, ..self.clone() };
        // By frequency the frequent pairs come first, so the count where it ends is a good guess.
        let (_, guess) = fills(&Self { criterion: Criterion::Frequency, ..at(1) })?;
        if guess == 0 {
            // Nothing is merged: the alphabet fills the vocabulary, or no pair is there.
            return Ok(at(1));
        }
        let step = |value: u64| value.div_ceil(8).max(1);
        // From the guess in growing strides to a value that fills and one above that does not.
        let (mut low, mut high) = (guess.max(1), guess.max(1));
        if fills(&at(low))?.0 {
            loop {
                high = low.saturating_add(step(low));
                if !fills(&at(high))?.0 {
                    break;
                }
                low = high;
            }
        } else {
            while low > 1 {
                high = low;
                low -= step(low).min(low - 1);
                if fills(&at(low))?.0 {
                    break;
                }
            }
        }
        while high - low > (low / 50).max(1) {
            let middle = low + (high - low) / 2;
            if fills(&at(middle))?.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(at(low))
    }

    /// Whether a piece is too long to be trained on.
    pub(crate) fn skips(&self, piece: &[u8]) -> bool {
        self.max_word_len.is_some_and(|max| is_longer(self.options.unit, piece, max))
    }

    pub(crate) fn check(&self) -> Result<(), TrainError> {
        let unit = self.options.unit;
        if unit == Unit::Byte && (self.alphabet_limit.is_some() || self.coverage < 1.0) {
            return Err(TrainError::new(Kind::LimitOfBytes));
        }
        if !(self.coverage > 0.0 && self.coverage <= 1.0) {
            return Err(TrainError::new(Kind::Coverage(alloc::format!("{}", self.coverage))));
        }
        for char in &self.initial_alphabet {
            let count = units(unit, char).count();
            if count != 1 {
                return Err(TrainError::new(Kind::NotACharacter { text: char.clone(), count }));
            }
        }
        if let Some(limit) = self.alphabet_limit
            && limit < self.initial_alphabet.len()
        {
            let required = self.initial_alphabet.len();
            return Err(TrainError::new(Kind::LimitBelowRequired { limit, required }));
        }
        Ok(())
    }
}

impl Default for WordPieceTrainer {
    /// As [`new`](Self::new), for 30,000 tokens.
    fn default() -> Self {
        Self::new(30_000)
    }
}

impl Train for WordPieceTrainer {
    type Model = WordPiece;
    type Step = Merge;
    type Error = TrainError;

    fn train(
        &self,
        counts: &PieceCounts,
        observe: &mut dyn Observe<Merge>,
    ) -> Result<WordPiece, TrainError> {
        self.train_reporting(counts, observe).map(|(model, _)| model)
    }
}

/// Tells of the progress of a search, and notes where each training ends.
struct Fit<'o> {
    observe: &'o mut dyn Observe<Merge>,
    last_count: u64,
}

impl Observe<Merge> for Fit<'_> {
    fn step(&mut self, merge: &Merge) -> ControlFlow<()> {
        self.last_count = merge.count;
        ControlFlow::Continue(())
    }

    fn progress(&mut self, _: &'static str, done: u64, total: u64) -> ControlFlow<()> {
        self.observe.progress("fit", done, total)
    }
}

/// What makes a pair of symbols worth merging.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Criterion {
    /// count(ab) / (count(a) * count(b)): how much more often the two stand together than chance
    /// would have it, the exponential of their pointwise mutual information up to a constant.
    /// Merging the best pair raises the likelihood of the text under a unigram model most, per
    /// occurrence (Schuster and Nakajima 2012).
    ///
    /// Rare symbols win: a pair that always occurs together, f times, has the score 1/f. Use
    /// [`min_frequency`](WordPieceTrainer::min_frequency).
    #[default]
    Pmi,
    /// count(ab), as in BPE. This is what Hugging Face's `WordPieceTrainer` does.
    Frequency,
}

/// A merge that the trainer made: the step that it reports.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Merge {
    /// The number of the merge, from 1.
    pub step: u64,
    /// The left part.
    pub left: TokenId,
    /// The right part.
    pub right: TokenId,
    /// What they became: the next new id, or that of an older token of the same spelling.
    pub id: TokenId,
    /// The spelling of the left part in the vocabulary.
    pub left_bytes: Vec<u8>,
    /// The spelling of the right part, prefix included.
    pub right_bytes: Vec<u8>,
    /// The spelling of the token.
    pub token: Vec<u8>,
    /// How often the pair occurred, overlaps included (`aaa` holds `a a` twice).
    pub count: u64,
    /// How often the left part occurred before the merge.
    pub left_count: u64,
    /// How often the right part occurred before the merge.
    pub right_count: u64,
}

/// What a training did besides the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// How many merges were made. At least the number of merged tokens.
    pub merges: u64,
    /// Distinct pieces longer than [`max_word_len`](WordPieceTrainer::max_word_len).
    pub skipped_pieces: u64,
    /// How often they occur.
    pub skipped_count: u64,
    /// Distinct characters outside of the alphabet.
    pub dropped_chars: u64,
    /// How often they occur.
    pub dropped_count: u64,
    /// Whether training ended because no pair was left, before the vocabulary was full.
    pub ran_dry: bool,
}

/// Why a training failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainError {
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    VocabTooSmall { size: usize, special: usize, alphabet: usize },
    NoRoom { size: usize, old: usize, new: usize },
    Vocab(VocabError),
    SpecialInAlphabet { id: TokenId, text: Vec<u8> },
    Build(BuildError),
    TooManyCharacters,
    CorpusTooLarge { length: u64 },
    LimitOfBytes,
    Coverage(String),
    NotACharacter { text: Vec<u8>, count: usize },
    LimitBelowRequired { limit: usize, required: usize },
    UnknownMerge,
    Stopped,
}

impl TrainError {
    fn new(kind: Kind) -> Self {
        Self { kind }
    }

    pub(crate) fn vocab(error: VocabError) -> Self {
        Self::new(Kind::Vocab(error))
    }

    pub(crate) fn special_in_alphabet(id: TokenId, text: Vec<u8>) -> Self {
        Self::new(Kind::SpecialInAlphabet { id, text })
    }

    pub(crate) fn build(error: BuildError) -> Self {
        Self::new(Kind::Build(error))
    }

    pub(crate) fn no_room(size: usize, old: usize, new: usize) -> Self {
        Self::new(Kind::NoRoom { size, old, new })
    }

    pub(crate) fn vocab_too_small(size: usize, special: usize, alphabet: usize) -> Self {
        Self::new(Kind::VocabTooSmall { size, special, alphabet })
    }

    pub(crate) fn too_many_characters() -> Self {
        Self::new(Kind::TooManyCharacters)
    }

    pub(crate) fn corpus_too_large(length: u64) -> Self {
        Self::new(Kind::CorpusTooLarge { length })
    }

    pub(crate) fn unknown_merge() -> Self {
        Self::new(Kind::UnknownMerge)
    }

    pub(crate) fn stopped() -> Self {
        Self::new(Kind::Stopped)
    }

    /// The least vocabulary size that is possible, if the one asked for is smaller.
    #[must_use]
    pub fn needed_vocab_size(&self) -> Option<usize> {
        match self.kind {
            Kind::VocabTooSmall { special, alphabet, .. } => Some(special + alphabet),
            Kind::NoRoom { old, new, .. } => Some(old + new),
            _ => None,
        }
    }

    /// Whether the observer stopped the training.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.kind == Kind::Stopped
    }
}

impl fmt::Display for TrainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::VocabTooSmall { size, special, alphabet } => write!(
                f,
                "a vocabulary of {size} is too small: {special} special tokens and an alphabet \
                 of {alphabet} need at least {}",
                special + alphabet
            ),
            Kind::NoRoom { size, old, new } => write!(
                f,
                "a vocabulary of {size} is too small: the model has {old} tokens, and special \
                 tokens and characters that it lacks are {new}"
            ),
            Kind::Vocab(_) => write!(f, "the special tokens or the merged tokens do not fit"),
            Kind::SpecialInAlphabet { id, text } => write!(
                f,
                "special token {id} ({:?}) is also a character of the text",
                String::from_utf8_lossy(text)
            ),
            Kind::Build(_) => write!(f, "the trained vocabulary does not make a model"),
            Kind::TooManyCharacters => {
                write!(f, "the text has more than 18446744073709551615 characters")
            }
            Kind::CorpusTooLarge { length } => write!(
                f,
                "the distinct words have {length} characters together, but at most 4294967294 \
                 are possible: skip long words or count less text"
            ),
            Kind::LimitOfBytes => write!(
                f,
                "an alphabet limit or coverage is not possible with bytes as units, of which all \
                 256 are kept"
            ),
            Kind::Coverage(coverage) => {
                write!(f, "the coverage is {coverage}, but must be above 0 and at most 1")
            }
            Kind::NotACharacter { text, count } => write!(
                f,
                "{:?} in the initial alphabet has {count} characters, but must have 1",
                String::from_utf8_lossy(text)
            ),
            Kind::LimitBelowRequired { limit, required } => write!(
                f,
                "the alphabet is limited to {limit} characters, but the initial alphabet has \
                 {required}"
            ),
            Kind::UnknownMerge => {
                write!(f, "a given merge is of two symbols that do not stand together in the text")
            }
            Kind::Stopped => write!(f, "the training was stopped"),
        }
    }
}

impl core::error::Error for TrainError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.kind {
            Kind::Vocab(error) => Some(error),
            Kind::Build(error) => Some(error),
            _ => None,
        }
    }
}
