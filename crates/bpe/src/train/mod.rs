//! The trainer.

mod arena;
mod counts;
mod error;
mod merges;
mod order;
mod plan;
mod sentencepiece;
mod weights;

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::ControlFlow;

pub use error::TrainError;
pub use order::Ties;
pub(crate) use plan::{GAP, Plan};
use tokenizer_core::{Model, Observe, PieceCounts, PieceRules, TokenId, Train};

use crate::{Alphabet, Bpe, BpeOptions, EndOfWord, Rules};

/// Trains a [`Bpe`] from piece counts: again and again the most frequent pair of neighbours
/// becomes one token (Gage 1994; Sennrich et al. 2016).
///
/// A pair's count is the number of windows in which it occurs, so `aaa` counts (a, a) twice;
/// merging goes from left to right and makes of it `aa` and `a`. Pairs never reach over the end
/// of a piece. [`Ties`] says which of several most frequent pairs comes first. Training ends when
/// the goal is reached or no pair occurs [`min_frequency`](Self::min_frequency) times any more;
/// then the model is smaller than asked, and its vocabulary's length says so.
///
/// Nothing is rescanned: each merge touches the places where its pair occurs. For pieces of n
/// symbols together and m merges that is `O(n log n)` steps in practice; memory is about 12 bytes
/// a symbol and 60 a distinct pair. There are at most 16,777,215 tokens.
///
/// ```
/// use bpe::{BpeTrainer, Goal};
/// use tokenizer_core::{Decode, Encode, Model, PieceCounts, Silent, Train};
///
/// let counts = PieceCounts::from_pairs([("hug", 10), ("pug", 5), ("hugs", 5)])?;
/// let mut trainer = BpeTrainer::default();
/// trainer.goal = Goal::Merges(2); // ug, hug
/// let model = trainer.train(&counts, &mut Silent)?;
/// let mut tokens = Vec::new();
/// model.session().encode_piece(b"hugs", &mut tokens);
/// let ids: Vec<_> = tokens.iter().map(|token| token.id).collect();
/// assert_eq!(model.decode(&ids[..1])?, b"hug");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BpeTrainer {
    /// When to stop.
    pub goal: Goal,
    /// Pairs that occur less often are not merged. 0 is the same as 1, but for
    /// [`Compat::SentencePiece`].
    pub min_frequency: u64,
    /// Keeps tokens shorter than this, in bytes or characters by [`unit`](Self::unit): a pair
    /// counts only if both parts are single units or their lengths add up to less (strictly, as
    /// Hugging Face's `max_token_length` has it).
    pub max_token_len: Option<usize>,
    /// What tokens are made of before anything is merged.
    pub unit: Alphabet,
    /// Which of several equally frequent pairs is merged.
    pub ties: Ties,
    /// Which tokens may be made at all; pairs that would make another one do not count. Needs units
    /// of characters.
    pub rules: Option<PieceRules>,
    /// Whose loop is followed where trainers differ in more than ties.
    pub compat: Compat,
    /// Tokens of kind `Control` that get the first ids, in this order. Repeats are left out.
    pub special_tokens: Vec<String>,
    /// Tokens of kind `UserDefined`, behind the special ones. Only models with
    /// [`Compat::SentencePiece`] know them.
    pub user_defined: Vec<String>,
    /// The token that stands for unknown characters, of kind `Unknown`. Where it stands among the
    /// special tokens, or else behind them.
    pub unk_token: Option<String>,
    /// How many ids are taken for later use: tokens `<|reserved_0|>`.. of kind `Unused`.
    pub reserved_tokens: usize,
    /// With units of bytes: which bytes are tokens even if the corpus lacks them.
    pub bytes: InitialBytes,
    /// With units of bytes: in which order they get their ids.
    pub byte_order: ByteOrder,
    /// With units of characters: characters that are tokens even if the corpus lacks them or a
    /// limit would drop them.
    pub initial_alphabet: String,
    /// With units of characters: at most this many are tokens, the most frequent and then the
    /// smallest; those of [`initial_alphabet`](Self::initial_alphabet) count.
    pub alphabet_limit: Option<usize>,
    /// With units of characters: the most frequent are tokens until they cover this share of the
    /// text, more than 0 and up to 1.
    pub character_coverage: f64,
    /// The mark of the end of a word.
    pub end_of_word: Option<EndOfWord>,
    /// Goes in front of every character but the first of a word (`##`).
    pub continuing_prefix: Option<String>,
    /// With units of characters: 256 tokens of kind `Byte` express what is no token. They come
    /// after the reserved tokens and count in the vocabulary size.
    pub byte_fallback: bool,
    /// Unknown characters in a row are one token; passed on to the model.
    pub fuse_unk: bool,
}

impl Default for BpeTrainer {
    /// 32,000 tokens from bytes, ties as Hugging Face has them, every pair that occurs.
    fn default() -> Self {
        Self {
            goal: Goal::VocabSize(32_000),
            min_frequency: 1,
            max_token_len: None,
            unit: Alphabet::Byte,
            ties: Ties::LowestIds,
            rules: None,
            compat: Compat::Standard,
            special_tokens: Vec::new(),
            user_defined: Vec::new(),
            unk_token: None,
            reserved_tokens: 0,
            bytes: InitialBytes::All,
            byte_order: ByteOrder::Value,
            initial_alphabet: String::new(),
            alphabet_limit: None,
            character_coverage: 1.0,
            end_of_word: None,
            continuing_prefix: None,
            byte_fallback: false,
            fuse_unk: false,
        }
    }
}

/// Whose loop is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compat {
    /// A pair whose concatenation is a token already becomes that token; training ends with the
    /// last pair that occurs. Hugging Face, subword-nmt and the textbook agree on this.
    #[default]
    Standard,
    /// The trainer of SentencePiece 0.2.3, whose list of pieces this gives, in its order:
    ///
    /// - a pair whose concatenation is a token already is never merged;
    /// - when no pair occurs any more, those that once did are merged, though nothing in the text
    ///   changes, until the vocabulary is full;
    /// - special and user-defined tokens in the text part it;
    /// - ids are the special tokens, then the merges, then the characters by frequency, and the
    ///   model merges by score ([`Rules::Scores`]).
    ///
    /// The steps that an observer sees have the ids of training, characters first. SentencePiece
    /// leaves open which of two equally frequent pairs comes first that spell the same piece
    /// (`a bc` and `ab c`); here it is the one with the lowest ids.
    SentencePiece,
}

/// When training stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Goal {
    /// When the vocabulary has this many tokens, all kinds counted. An error if special tokens
    /// and alphabet alone are more.
    VocabSize(usize),
    /// After this many merges. Two merges can make the same token (`a bc` and `ab c`), so the
    /// vocabulary may grow by fewer.
    Merges(usize),
}

/// Which bytes are tokens from the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum InitialBytes {
    /// All 256: nothing is ever unknown.
    #[default]
    All,
    /// Those that occur.
    Seen,
}

/// The order of byte tokens, which decides their ids and so [`Ties::LowestIds`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// 0 to 255.
    #[default]
    Value,
    /// As GPT-2 numbers them: `!` to `~`, `¡` to `¬`, `®` to `ÿ` (Latin-1), then the others.
    Gpt2,
}

/// One merge, as the observer of a training sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergeStep {
    /// The number of the merge, from 1.
    pub step: u64,
    /// The left part.
    pub left: TokenId,
    /// The right part.
    pub right: TokenId,
    /// The bytes of the left part, affixes included.
    pub left_bytes: Vec<u8>,
    /// The bytes of the right part, affixes included.
    pub right_bytes: Vec<u8>,
    /// The bytes of what they become.
    pub token: Vec<u8>,
    /// The id of what they become: the next one, or that of a token with the same bytes.
    pub id: TokenId,
    /// How often the pair occurred.
    pub count: u64,
}

impl BpeTrainer {
    /// SentencePiece's trainer (0.2.3) with its defaults, for text in which `▁` stands for spaces and
    /// begins each piece: the same pieces in the same order, from the lines that it reads
    /// (`tokenizer::Sentences` takes them). `script` gives the script of a character
    /// (`pretok::script_of`).
    #[must_use]
    pub fn sentencepiece(vocab_size: usize, script: fn(char) -> Option<u8>) -> Self {
        let mut rules = PieceRules::default();
        rules.script = Some(script);
        Self {
            goal: Goal::VocabSize(vocab_size),
            min_frequency: 0,
            unit: Alphabet::Char,
            ties: Ties::SentencePiece,
            rules: Some(rules),
            compat: Compat::SentencePiece,
            special_tokens: ["<unk>", "<s>", "</s>"].map(String::from).to_vec(),
            unk_token: Some("<unk>".into()),
            character_coverage: 0.9995,
            fuse_unk: true,
            ..Self::default()
        }
    }

    /// subword-nmt's `learn-bpe` (Sennrich et al. 2016; 0.3.8) with its defaults, for pieces that are
    /// words without spaces: the same merges in the same order.
    #[must_use]
    pub fn subword_nmt(merges: usize) -> Self {
        Self {
            goal: Goal::Merges(merges),
            min_frequency: 2,
            unit: Alphabet::Char,
            ties: Ties::GreatestBytes,
            end_of_word: Some(EndOfWord::Suffix("</w>".into())),
            unk_token: Some("<unk>".into()),
            ..Self::default()
        }
    }

    /// Goes on with an interrupted training whose first merges were these: the model is the one
    /// that the whole training gives, from the same counts and options.
    ///
    /// The merges are made again, without being chosen, which takes about half of the time.
    ///
    /// # Errors
    ///
    /// As [`train`](Train::train); also if a merge names a token that was not made yet.
    pub fn resume(
        &self,
        merges: &[(TokenId, TokenId)],
        counts: &PieceCounts,
        observe: &mut dyn Observe<MergeStep>,
    ) -> Result<Bpe, TrainError> {
        let parted = self.parted(counts)?;
        let counts = parted.as_ref().unwrap_or(counts);
        let mut plan = Plan::new(self, counts)?;
        plan.first_merges = merges.to_vec();
        self.learn(plan, counts, observe)
    }

    /// Trains more merges on top of a model: its tokens keep their ids, its merges their ranks.
    /// New units of the text, then new merges come behind them, until the [`goal`](Self::goal) is
    /// reached, which counts old and new together.
    ///
    /// A text whose new encoding has no new token is encoded as before: old merges come first, no
    /// new token takes part in one, and no new merge makes an old token.
    ///
    /// Of the trainer's options those that say how text becomes symbols are the model's (units,
    /// marks, byte fallback, unknown token). Special and reserved tokens that the model lacks are
    /// added.
    ///
    /// # Errors
    ///
    /// As [`train`](Train::train); also if the model has no list of merges.
    pub fn extend(
        &self,
        model: &Bpe,
        counts: &PieceCounts,
        observe: &mut dyn Observe<MergeStep>,
    ) -> Result<Bpe, TrainError> {
        self.resume_extending(model, &[], counts, observe)
    }

    /// Goes on with an interrupted [`extend`](Self::extend) whose first merges were these, those of
    /// the model among them, as [`resume`](Self::resume) does with a training.
    ///
    /// # Errors
    ///
    /// As [`extend`](Self::extend) and [`resume`](Self::resume); also if the merges are not those of
    /// the model as far as these go.
    pub fn resume_extending(
        &self,
        model: &Bpe,
        merges: &[(TokenId, TokenId)],
        counts: &PieceCounts,
        observe: &mut dyn Observe<MergeStep>,
    ) -> Result<Bpe, TrainError> {
        let trainer = self.like(model);
        let mut plan = Plan::extending(&trainer, model, counts)?;
        let shared = merges.len().min(plan.first_merges.len());
        if merges[..shared] != plan.first_merges[..shared] {
            return Err(TrainError::option(
                "the given merges do not begin with those of the model",
            ));
        }
        plan.first_merges.extend_from_slice(&merges[shared..]);
        let trained = trainer.learn(plan, counts, observe)?;
        let Rules::Merges(merges) = trained.rules() else { return Ok(trained) };
        let options = BpeOptions {
            ignore_merges: model.options().ignore_merges,
            ..trained.options().clone()
        };
        Ok(Bpe::from_merges(trained.vocab().clone(), merges.clone(), options)
            .expect("the same model was built before"))
    }

    /// This trainer with the units and marks of a model.
    pub(crate) fn like(&self, model: &Bpe) -> Self {
        let options = model.options();
        Self {
            unit: options.alphabet,
            end_of_word: options.end_of_word.clone(),
            continuing_prefix: options.continuing_prefix.clone(),
            byte_fallback: options.byte_fallback,
            fuse_unk: options.fuse_unk,
            ..self.clone()
        }
    }

    fn learn(
        &self,
        plan: Plan,
        counts: &PieceCounts,
        observe: &mut dyn Observe<MergeStep>,
    ) -> Result<Bpe, TrainError> {
        match observe.progress("pairs", 0, 1) {
            ControlFlow::Continue(()) => {}
            ControlFlow::Break(()) => return Err(TrainError::stopped()),
        }
        let (vocab, merges) = merges::learn(self, plan.clone(), counts, observe)?;
        Ok(match self.compat {
            Compat::Standard => plan.model(vocab, merges, self),
            Compat::SentencePiece => plan.model_by_scores(&vocab, self),
        })
    }
}

impl Train for BpeTrainer {
    type Model = Bpe;
    type Step = MergeStep;
    type Error = TrainError;

    fn train(
        &self,
        counts: &PieceCounts,
        observe: &mut dyn Observe<MergeStep>,
    ) -> Result<Bpe, TrainError> {
        self.resume(&[], counts, observe)
    }
}
