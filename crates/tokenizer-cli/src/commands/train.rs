//! `tok train`.

mod base;
mod checkpoint;
mod learn;
mod model;
mod options;
mod placing;
mod trace;
mod write;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tokenizer::lift::{Preparation, Spaces, Target};

use self::base::Base;
use self::checkpoint::Checkpoint;
use self::model::Model;
use self::options::{PieceOptions, Preset, RoleOptions};
use self::trace::Trace;
use crate::Mode;
use crate::corpus::{self, Counted};
use crate::failure::Failure;
use crate::input::InputOptions;
use crate::output::{self, Progress};
use crate::text_rules::TextRules;

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
The ending of FILE picks the format:
  .json      tokenizer.json, for all algorithms
  .model     SentencePiece, for unigram, and for bpe with --unit char
  .tiktoken  ranks, for bpe over bytes without special tokens
  .txt       vocab.txt, for wordpiece
What a format cannot say is refused. The file is read back and compared with the trained model
before it appears.

Splitters, unless --pretok says otherwise: gpt2 for bpe (whitespace with --end-of-word), bert for
wordpiece, metaspace for unigram and for .model files, words for word, none for char and byte.

Examples:
  tok train bpe corpus/ -o tokenizer.json --vocab-size 8000
  tok train unigram corpus.jsonl.zst -o sp.model --vocab-size 8000,16000 --normalizer nmt_nfkc
  tok train bpe words.txt --merges 9 --unit char --end-of-word '</w>' --ties first-occurrence \\
      --trace merges.jsonl -o words.json")]
pub(crate) struct Train {
    /// The algorithm
    #[arg(value_enum)]
    pub(crate) algorithm: Algorithm,
    /// Text: files, directories (recursively), - for standard input
    #[arg(value_name = "FILES", required_unless_present = "counts")]
    files: Vec<PathBuf>,
    /// Where the tokenizer goes; without it only the summary and the trace are made
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The number of tokens, special tokens included. Several with commas between: one file each,
    /// with the size in front of its ending. (byte has 256 and the special ones at every size)
    #[arg(long, value_name = "N[,N..]", value_delimiter = ',', conflicts_with = "merges")]
    pub(crate) vocab_size: Vec<usize>,
    /// The number of merges (bpe) instead of a vocabulary size
    #[arg(long, value_name = "N")]
    pub(crate) merges: Option<usize>,
    /// Trains as another library does, with its defaults and, piece for piece, its result:
    /// sentencepiece (bpe, unigram) reads a sentence a line and writes a .model, subword-nmt (bpe)
    /// reads words between spaces. The documentation says where a result can differ
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) preset: Option<Preset>,
    /// Lines of more bytes are left out, with --preset sentencepiece [default: 4192]
    #[arg(long, value_name = "BYTES", conflicts_with = "counts", help_heading = "Text")]
    pub(crate) max_sentence_length: Option<usize>,
    /// How text is cut into pieces: a name of `tok splitters`, regex:PATTERN, or a list with commas
    #[arg(long, value_name = "SPEC", help_heading = "Text")]
    pub(crate) pretok: Option<String>,
    /// How text is normalized: a name of `tok splitters`, or a list with commas [default: none;
    /// for .txt bert-cased]
    #[arg(long, value_name = "NAME", help_heading = "Text")]
    normalizer: Option<String>,
    /// Shards of piece counts (`tok counts write`) instead of text
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "files", help_heading = "Text")]
    counts: Vec<PathBuf>,
    #[command(flatten)]
    input: InputOptions,
    /// What tokens are made of (bpe, wordpiece) [default: byte for bpe, char for wordpiece]
    #[arg(long, value_enum, help_heading = "Algorithm")]
    pub(crate) unit: Option<Unit>,
    /// Marks the end of words (bpe), as </w>
    #[arg(long, value_name = "SUFFIX", help_heading = "Algorithm")]
    pub(crate) end_of_word: Option<String>,
    /// Whether the end of a word is a symbol of its own behind the last character (the textbook
    /// algorithm), or glued to it (subword-nmt, Hugging Face) [default: symbol]
    #[arg(long, value_enum, requires = "end_of_word", help_heading = "Algorithm")]
    pub(crate) end_of_word_as: Option<EndOfWordAs>,
    /// Goes in front of what continues a word (bpe, wordpiece) [default: none for bpe, ## for
    /// wordpiece]
    #[arg(long, value_name = "PREFIX", help_heading = "Algorithm")]
    pub(crate) continuing_prefix: Option<String>,
    /// Which of several equally frequent pairs is merged (bpe) [default: lowest-ids; for .model
    /// sentencepiece]
    #[arg(long, value_enum, help_heading = "Algorithm")]
    pub(crate) ties: Option<TieRule>,
    /// How bytes are numbered (bpe over bytes), which decides ties by lowest ids [default: gpt2 for
    /// .json as Hugging Face has it, value for other files and where the text is not cut]
    #[arg(long, value_enum, help_heading = "Algorithm")]
    pub(crate) byte_order: Option<ByteNumbers>,
    /// What makes a pair worth merging (wordpiece) [default: pmi]
    #[arg(long, value_enum, help_heading = "Algorithm")]
    pub(crate) criterion: Option<Criterion>,
    /// Pairs that occur less often are not merged (bpe, wordpiece) [default: 1]
    #[arg(long, value_name = "N", help_heading = "Algorithm")]
    pub(crate) min_frequency: Option<u64>,
    /// The longest token, in units (bpe, wordpiece, unigram) [default: 16 for unigram]
    #[arg(long, value_name = "N", help_heading = "Algorithm")]
    pub(crate) max_token_length: Option<usize>,
    /// At most so many characters are tokens (bpe and wordpiece over characters)
    #[arg(long, value_name = "N", help_heading = "Algorithm")]
    pub(crate) alphabet_limit: Option<usize>,
    /// The share of the text's characters that are tokens (bpe and wordpiece over characters,
    /// unigram) [default: 0.9995 for unigram, else 1]
    #[arg(long, value_name = "SHARE", help_heading = "Algorithm")]
    pub(crate) character_coverage: Option<f64>,
    /// Characters without a token become bytes (bpe over characters, unigram, char)
    #[arg(long, help_heading = "Algorithm")]
    pub(crate) byte_fallback: bool,
    /// Special tokens (control symbols), which get the first ids
    #[arg(long, visible_alias = "control-symbols", value_name = "TOKEN", num_args = 1.., help_heading = "Tokens")]
    pub(crate) special: Vec<String>,
    /// The token for what is unknown (all but byte and bpe over bytes) [default: [UNK] for
    /// wordpiece, else <unk>]
    #[arg(long, value_name = "TOKEN", help_heading = "Tokens")]
    pub(crate) unk: Option<String>,
    /// So many ids are kept for later, as <|reserved_0|> and on
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Tokens")]
    pub(crate) reserved: usize,
    /// User-defined tokens (unigram, bpe with --preset sentencepiece): pieces that are always whole,
    /// behind the special tokens
    #[arg(long, visible_alias = "user-defined-symbols", value_name = "TOKEN", num_args = 1.., help_heading = "Tokens")]
    pub(crate) user_defined: Vec<String>,
    /// Rounds the vocabulary sizes up to the next multiple of N, as 128 for fast matrices; the text
    /// gives the additional tokens
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Tokens")]
    pub(crate) pad_to: Option<u32>,
    /// Characters that are tokens in any case, whether they occur or not, and whatever a limit or
    /// coverage says (bpe and wordpiece over characters, unigram)
    #[arg(
        long,
        visible_alias = "required-chars",
        value_name = "CHARS",
        help_heading = "Algorithm"
    )]
    pub(crate) initial_alphabet: Option<String>,
    /// What happens if the text supports fewer tokens than asked for: hard is an error that names
    /// the true maximum, soft gives what there is [default: hard for unigram, else soft]
    #[arg(long, value_enum, help_heading = "Algorithm")]
    pub(crate) vocab_limit: Option<Limit>,
    /// The share of pieces that stay in a round of pruning (unigram) [default: 0.75]
    #[arg(long, value_name = "SHARE", help_heading = "Algorithm")]
    pub(crate) shrinking_factor: Option<f64>,
    /// How often EM runs before each pruning (unigram) [default: 2]
    #[arg(long, value_name = "N", help_heading = "Algorithm")]
    pub(crate) sub_iterations: Option<usize>,
    /// How many seed pieces to begin with (unigram) [default: 8 times the largest size, at least
    /// 100000; with --preset sentencepiece 1000000]
    #[arg(long, value_name = "N", help_heading = "Algorithm")]
    pub(crate) seed_size: Option<usize>,
    /// Trains more tokens on top of this tokenizer (bpe with merges, wordpiece, unigram): no id of it
    /// moves, and texts without new tokens keep their ids. Sizes count old and new tokens. A
    /// tokenizer.json stays as it is but for its model, and text is normalized and cut as it says; a
    /// .model says how it is normalized; else give the splitter and the normalizer of the file
    #[arg(long = "continue", value_name = "FILE", help_heading = "Algorithm")]
    pub(crate) base: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) pieces: PieceOptions,
    #[command(flatten)]
    pub(crate) roles: RoleOptions,
    /// Takes this share of the documents only, chosen by --seed
    #[arg(long, value_name = "SHARE", conflicts_with = "counts", help_heading = "Text")]
    sample: Option<f64>,
    /// Keeps what is needed to go on after a crash in FILE, FILE.counts and FILE.text (bpe,
    /// wordpiece, unigram); a finished training removes them
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Seconds between checkpoints
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, requires = "checkpoint")]
    checkpoint_every: f64,
    /// Goes on from the checkpoint, if there is one; the options must be the same. The result is
    /// that of an undisturbed training, byte for byte
    #[arg(long, requires = "checkpoint")]
    resume: bool,
    /// A JSON line for each merge (bpe, wordpiece) or pruning round (unigram)
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Memory that counting never passes, as 512M or 2G: what does not fit waits in temporary files.
    /// A training that would pass it is refused before it begins
    #[arg(long, value_name = "SIZE", value_parser = crate::input::size)]
    max_memory: Option<u64>,
    /// Threads [default: as many as there are processors]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Chooses the documents of --sample; nothing else depends on it, for every trainer here is
    /// deterministic
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Algorithm {
    /// Byte-pair encoding
    Bpe,
    /// WordPiece
    Wordpiece,
    /// Unigram language model
    Unigram,
    /// Characters
    Char,
    /// Whole words
    Word,
    /// Bytes
    Byte,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Unit {
    Byte,
    Char,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EndOfWordAs {
    Symbol,
    Suffix,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TieRule {
    FirstOccurrence,
    LowestIds,
    GreatestBytes,
    #[value(name = "sentencepiece")]
    SentencePiece,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ByteNumbers {
    /// 0 to 255
    Value,
    /// The printable ones first
    Gpt2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Limit {
    Hard,
    Soft,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Criterion {
    Pmi,
    Frequency,
}

impl Algorithm {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bpe => "bpe",
            Self::Wordpiece => "wordpiece",
            Self::Unigram => "unigram",
            Self::Char => "char",
            Self::Word => "word",
            Self::Byte => "byte",
        }
    }
}

impl Train {
    pub(crate) fn run(self, mode: Mode, progress: Progress) -> Result<(), Failure> {
        let train = self.with_preset()?;
        train.check()?;
        train.check_pieces()?;
        train.run_checked(mode, progress)
    }

    fn run_checked(mut self, mode: Mode, progress: Progress) -> Result<(), Failure> {
        output::use_threads(self.threads);
        let target = self.target()?;
        self.check_target(target)?;
        let start = Instant::now();
        let (rules, base) = match self.base(target)? {
            Some(Base { model, rules }) => (rules, Some(model)),
            None => (TextRules::named(self.preparation(target)?), None),
        };
        if let Some(model) = &base {
            self.unit = Some(unit_of(model));
        }
        let mut checkpoint = self.checkpoint()?;
        let kept = match &mut checkpoint {
            Some(checkpoint) if self.resume => checkpoint.load()?,
            _ => None,
        };
        if self.resume && kept.is_none() {
            progress.note("no checkpoint yet: training from the beginning");
        }
        let (kept, stage) = kept.unzip();
        let is_kept = kept.is_some();
        let counted = if let Some(kept) = kept {
            kept
        } else if self.counts.is_empty() {
            let need = |pieces, bytes| self.memory_need(pieces, bytes);
            let (files, input, memory) = (&self.files, &self.input, self.max_memory);
            let sampling = corpus::Sampling {
                share: self.sample.unwrap_or(1.0),
                seed: self.seed.unwrap_or(0),
            };
            corpus::count(files, input, sampling, &rules, memory, &need, progress)?
        } else {
            let need = |pieces, bytes| self.memory_need(pieces, bytes);
            corpus::read_counts(&self.counts, self.max_memory, &need)?
        };
        if let Some(checkpoint) = checkpoint.as_mut().filter(|_| !is_kept) {
            checkpoint.counted(&counted)?;
        }
        let counting = start.elapsed().as_secs_f64();
        if counted.counts.is_empty() && self.algorithm != Algorithm::Byte {
            progress.warn("the input holds no text");
        }
        let sizes = self.sizes();
        let resume = checkpoint.as_mut().map(|checkpoint| (checkpoint, stage.unwrap_or_default()));
        let learned = self.learn(&counted, &sizes, target, base.as_ref(), resume, progress)?;
        let training = start.elapsed().as_secs_f64() - counting;

        let mut models = Vec::new();
        for learned in learned {
            let mut summary = json!({
                "vocab_size": learned.model.vocab_len(),
                self.steps_name(): learned.steps,
            });
            if let Some(asked) = learned.asked
                && learned.model.vocab_len() < asked
                && self.algorithm != Algorithm::Byte
            {
                summary["asked"] = asked.into();
                if self.vocab_limit == Some(Limit::Hard) {
                    return Err(Failure::usage(format!(
                        "a vocabulary of {asked} tokens was asked for, but the text supports {} at \
                         most (--vocab-limit soft gives these)",
                        learned.model.vocab_len()
                    )));
                }
                progress.warn(format!(
                    "the text supports {} tokens only, {asked} were asked for",
                    learned.model.vocab_len()
                ));
            }
            if let Some(out) = &self.out {
                let path = match learned.asked {
                    Some(asked) if sizes.len() > 1 => with_size(out, asked),
                    _ => out.clone(),
                };
                let written = self.write(learned.model, &path, &rules, &counted.sample)?;
                summary["file"] = path.display().to_string().into();
                summary["format"] = written.format.into();
                summary["file_bytes"] = written.bytes.into();
                summary["compared_bytes"] = written.compared.into();
            }
            models.push(summary);
        }
        if let Some(checkpoint) = &checkpoint {
            checkpoint.remove()?;
        }
        let summary = json!({
            "algorithm": self.algorithm.name(),
            "splitter": rules.splitter_name(),
            "normalizer": match (&rules, &self.normalizer, &base, target) {
                (TextRules::File(_), ..) | (_, None, Some(_), Target::SentencePiece) => {
                    "that of the file"
                }
                _ => self.normalizer_name(target),
            },
            "documents": counted.documents,
            "bytes": counted.bytes,
            "distinct_pieces": counted.counts.len(),
            "pieces": counted.counts.total(),
            "counting_seconds": counting,
            "training_seconds": training,
            "seconds": start.elapsed().as_secs_f64(),
            "models": models,
            "trace": self.trace.as_ref().map(|path| path.display().to_string()),
        });
        if mode.json {
            return output::print_json(&summary);
        }
        if !mode.quiet {
            output::print(describe(&summary, &counted, self.steps_name()).as_bytes())?;
        }
        Ok(())
    }

    /// The sizes that are trained, in ascending order.
    fn sizes(&self) -> Vec<usize> {
        let multiple = self.pad_to.unwrap_or(1) as usize;
        let mut sizes: Vec<usize> =
            self.vocab_size.iter().map(|size| size.div_ceil(multiple) * multiple).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    fn checkpoint(&self) -> Result<Option<Checkpoint>, Failure> {
        let Some(path) = &self.checkpoint else { return Ok(None) };
        let every = Duration::try_from_secs_f64(self.checkpoint_every)
            .map_err(|_| Failure::usage("--checkpoint-every is no number of seconds"))?;
        // What does not change the result may differ.
        let deciding = Self {
            out: self.out.as_ref().and_then(|out| out.extension().map(PathBuf::from)),
            max_memory: None,
            trace: None,
            checkpoint: None,
            checkpoint_every: 0.0,
            resume: false,
            threads: None,
            ..self.clone()
        };
        let mut training = format!("{deciding:?}");
        let inputs = if self.counts.is_empty() { &self.files } else { &self.counts };
        let inputs: Vec<PathBuf> = inputs.iter().chain(&self.base).cloned().collect();
        for source in crate::input::sources(&inputs)? {
            training += &format!(" {} {}", source.path.display(), source.bytes);
        }
        Ok(Some(Checkpoint::new(path, training, every)))
    }

    /// About how many bytes a training takes besides its counts, for so many distinct pieces of so
    /// many bytes together: an estimate from the arrays that each trainer keeps, for refusing early
    /// what cannot fit. Only counting is held to the bound exactly.
    fn memory_need(&self, pieces: u64, bytes: u64) -> u64 {
        let symbols = pieces + bytes;
        match self.algorithm {
            Algorithm::Bpe => 40 * pieces + 16 * symbols,
            Algorithm::Wordpiece => 40 * pieces + 40 * symbols,
            Algorithm::Unigram => 24 * pieces + 48 * symbols,
            Algorithm::Char | Algorithm::Word | Algorithm::Byte => 64 * pieces,
        }
    }

    /// The format that the ending of the output names; without output the one that says most.
    fn target(&self) -> Result<Target, Failure> {
        let Some(out) = &self.out else {
            let continued = self.base.as_ref().and_then(|base| base.extension());
            let is_model = continued.is_some_and(|ending| ending == "model");
            return Ok(match self.follows_sentencepiece() || is_model {
                true => Target::SentencePiece,
                false => Target::TokenizerJson,
            });
        };
        let ending = out.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if self.follows_sentencepiece() && ending != "model" {
            return Err(Failure::usage(format!(
                "{}: --preset sentencepiece writes a .model (`tok convert` makes others of it)",
                out.display()
            )));
        }
        Ok(match ending {
            "json" => Target::TokenizerJson,
            "model" => Target::SentencePiece,
            "tiktoken" => Target::Tiktoken,
            "txt" => Target::VocabTxt,
            _ => {
                return Err(Failure::usage(format!(
                    "{}: the ending of the output picks its format: .json, .model, .tiktoken or .txt",
                    out.display()
                )));
            }
        })
    }

    /// Refuses what no trained model of this kind could be written as, before the work.
    fn check_target(&self, target: Target) -> Result<(), Failure> {
        let refuse = |what: &str| Err(Failure::usage(what));
        let by_chars = self.units() == Unit::Char;
        match (target, self.algorithm) {
            (Target::TokenizerJson, Algorithm::Wordpiece) if !by_chars && self.out.is_some() => {
                refuse("WordPiece over bytes has no file format: use --unit char, or no --out")
            }
            (Target::TokenizerJson, _) => Ok(()),
            (Target::SentencePiece, Algorithm::Unigram) => Ok(()),
            (Target::SentencePiece, Algorithm::Bpe) if by_chars => Ok(()),
            (Target::SentencePiece, _) => refuse("a .model holds unigram, or bpe with --unit char"),
            (Target::Tiktoken, Algorithm::Bpe | Algorithm::Byte) if !by_chars => {
                if self.special.is_empty() && self.reserved == 0 {
                    return Ok(());
                }
                refuse(
                    "a .tiktoken file holds no special or reserved tokens: they are named when it \
                     is loaded (--special NAME=ID)",
                )
            }
            (Target::Tiktoken, _) => refuse("a .tiktoken file holds bpe over bytes"),
            (Target::VocabTxt, Algorithm::Wordpiece) if by_chars => Ok(()),
            (Target::VocabTxt, _) => refuse("a .txt file holds wordpiece with --unit char"),
        }
    }

    fn preparation(&self, target: Target) -> Result<Preparation, Failure> {
        let splitter = self.pretok.as_deref().unwrap_or_else(|| match self.algorithm {
            _ if self.pieces.needs_whole_text() => "none",
            _ if target == Target::SentencePiece => "metaspace",
            Algorithm::Bpe if self.end_of_word.is_some() => "whitespace",
            Algorithm::Bpe => "gpt2",
            Algorithm::Wordpiece => "bert",
            Algorithm::Unigram => "metaspace",
            Algorithm::Word => "words",
            Algorithm::Char | Algorithm::Byte => "none",
        });
        let preparation = Preparation::new(self.normalizer_name(target), splitter, target)
            .map_err(Failure::usage)?;
        let spaces = match (self.follows_sentencepiece(), self.pieces.needs_whole_text()) {
            (true, _) => Spaces::Tidy,
            (false, true) => Spaces::Kept,
            (false, false) => return Ok(preparation),
        };
        preparation.with_marked_spaces(spaces).map_err(Failure::usage)
    }

    fn normalizer_name(&self, target: Target) -> &str {
        self.normalizer.as_deref().unwrap_or(match target {
            Target::VocabTxt => "bert-cased",
            _ => "none",
        })
    }

    /// What tokens are made of.
    pub(crate) fn units(&self) -> Unit {
        self.unit.unwrap_or(match self.algorithm {
            Algorithm::Bpe | Algorithm::Byte => Unit::Byte,
            _ => Unit::Char,
        })
    }

    fn steps_name(&self) -> &'static str {
        if self.algorithm == Algorithm::Unigram { "rounds" } else { "merges" }
    }

    /// Refuses options that the algorithm does not have: an option without effect is a mistake.
    fn check(&self) -> Result<(), Failure> {
        use Algorithm::{Bpe, Char, Unigram, Word, Wordpiece};
        let options: [(&str, bool, &[Algorithm]); 21] = [
            ("--byte-order", self.byte_order.is_some(), &[Bpe]),
            ("--merges", self.merges.is_some(), &[Bpe]),
            ("--unit", self.unit.is_some(), &[Bpe, Wordpiece]),
            ("--end-of-word", self.end_of_word.is_some(), &[Bpe]),
            ("--continuing-prefix", self.continuing_prefix.is_some(), &[Bpe, Wordpiece]),
            ("--ties", self.ties.is_some(), &[Bpe]),
            ("--criterion", self.criterion.is_some(), &[Wordpiece]),
            ("--min-frequency", self.min_frequency.is_some(), &[Bpe, Wordpiece]),
            ("--max-token-length", self.max_token_length.is_some(), &[Bpe, Wordpiece, Unigram]),
            ("--alphabet-limit", self.alphabet_limit.is_some(), &[Bpe, Wordpiece]),
            ("--character-coverage", self.character_coverage.is_some(), &[Bpe, Wordpiece, Unigram]),
            ("--byte-fallback", self.byte_fallback, &[Bpe, Unigram, Char]),
            ("--unk", self.unk.is_some(), &[Bpe, Wordpiece, Unigram, Char, Word]),
            ("--trace", self.trace.is_some(), &[Bpe, Wordpiece, Unigram]),
            ("--checkpoint", self.checkpoint.is_some(), &[Bpe, Wordpiece, Unigram]),
            ("--continue", self.base.is_some(), &[Bpe, Wordpiece, Unigram]),
            ("--initial-alphabet", self.initial_alphabet.is_some(), &[Bpe, Wordpiece, Unigram]),
            ("--user-defined", !self.user_defined.is_empty(), &[Bpe, Unigram]),
            ("--shrinking-factor", self.shrinking_factor.is_some(), &[Unigram]),
            ("--sub-iterations", self.sub_iterations.is_some(), &[Unigram]),
            ("--seed-size", self.seed_size.is_some(), &[Unigram]),
        ];
        for (option, is_given, algorithms) in options {
            if is_given && !algorithms.contains(&self.algorithm) {
                let name = self.algorithm.name();
                return Err(Failure::usage(format!("{name} has no {option}")));
            }
        }
        if !self.user_defined.is_empty() && self.algorithm == Bpe && !self.follows_sentencepiece() {
            return Err(Failure::usage("bpe has --user-defined with --preset sentencepiece only"));
        }
        if self.sample.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
            return Err(Failure::usage("--sample is a share above 0 and up to 1"));
        }
        if self.vocab_size.is_empty() && self.merges.is_none() && self.algorithm != Algorithm::Byte
        {
            return Err(Failure::usage(match self.algorithm {
                Bpe => "give --vocab-size N or --merges N",
                _ => "give --vocab-size N",
            }));
        }
        if self.unk.is_some() && self.algorithm == Bpe && self.units() == Unit::Byte {
            return Err(Failure::usage("bpe over bytes has no unknown token: nothing is unknown"));
        }
        Ok(())
    }

    fn open_trace(&self) -> Result<Option<Trace>, Failure> {
        self.trace.as_deref().map(Trace::create).transpose()
    }
}

/// What the tokens of a model are made of.
fn unit_of(model: &Model) -> Unit {
    let by_bytes = match model {
        Model::Bpe(model) => model.options().alphabet == bpe::Alphabet::Byte,
        Model::WordPiece(model) => model.options().unit == wordpiece::Unit::Byte,
        Model::Bytes(_) => true,
        Model::Unigram(_) | Model::Chars(_) | Model::Words(_) => false,
    };
    if by_bytes { Unit::Byte } else { Unit::Char }
}

/// The path with the size in front of its ending: `name.8000.json`.
fn with_size(path: &Path, size: usize) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(ending) => format!("{stem}.{size}.{}", ending.to_string_lossy()),
        None => format!("{stem}.{size}"),
    };
    path.with_file_name(name)
}

fn describe(summary: &Value, counted: &Counted, steps: &str) -> String {
    let text = |key: &str| summary[key].as_str().unwrap_or_default().to_owned();
    let source = match (counted.documents, counted.bytes) {
        (Some(documents), Some(bytes)) => format!("{documents} documents, {bytes} bytes, "),
        _ => String::new(),
    };
    let mut out = format!(
        "{}: {source}{} pieces, {} distinct (splitter {}, normalizer {})\n",
        text("algorithm"),
        counted.counts.total(),
        counted.counts.len(),
        text("splitter"),
        text("normalizer"),
    );
    for model in summary["models"].as_array().into_iter().flatten() {
        out += &format!("{} tokens, {} {steps}", model["vocab_size"], model[steps]);
        if let Some(file) = model["file"].as_str() {
            let format = model["format"].as_str().unwrap_or_default();
            out += &format!(" -> {file} ({format}, {} bytes", model["file_bytes"]);
            match model["compared_bytes"].as_u64() {
                Some(0) | None => out += ")",
                Some(bytes) => {
                    out +=
                        &format!("; encodes {bytes} bytes of the text as the trained model does)");
                }
            }
        }
        out.push('\n');
    }
    let seconds = |key: &str| summary[key].as_f64().unwrap_or_default();
    out += &format!(
        "counted in {:.2} s, trained in {:.2} s\n",
        seconds("counting_seconds"),
        seconds("training_seconds")
    );
    out
}
