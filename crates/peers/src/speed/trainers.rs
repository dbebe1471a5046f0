//! Our trainers as contestants, with the settings that `python/adapters.py` gives the others.

use std::fs;
use std::io::{BufRead, BufReader};

use bpe::{BpeTrainer, ByteOrder, Goal, Ties};
use formats::Layout;
use serde_json::{Value, json};
use tokenizer::lift::{self, Learned, LiftError, Preparation, Spaces, Target};
use tokenizer::{CorpusCounter, Sentences};
use tokenizer_core::{Model, PieceCounts, PieceRules, Silent, TokenKind, Train};
use unigram::{Compat, SpecialToken, TrainCompat, Unigram, UnigramTrainer};
use wordpiece::{Criterion, WordPiece, WordPieceTrainer};

use super::child::Clock;

/// The algorithms that are trained.
pub const ALGORITHMS: [&str; 8] = [
    "bpe",
    "unigram",
    "unigram-json",
    "wordpiece",
    "wordpiece-pmi",
    "sentencepiece-bpe",
    "bpe-preset",
    "unigram-preset",
];

/// The longest line that presets read, in bytes: `max_sentence_length` of SentencePiece's adapter.
const MAX_SENTENCE: usize = 1_000_000;

/// A trained model, and how its text is prepared.
pub struct Trained {
    model: AnyModel,
    preparation: Preparation,
}

#[allow(clippy::large_enum_variant)] // There is one at a time.
enum AnyModel {
    Bpe(bpe::Bpe),
    Unigram(Unigram),
    WordPiece(WordPiece),
}

/// Trains on a text of which a line is a document; it is read as it is counted.
///
/// - `bpe`: bytes, GPT-2's splitter.
/// - `sentencepiece-bpe`: characters with byte fallback, SentencePiece's spaces.
/// - `unigram`: SentencePiece's settings and its rules `nmt_nfkc`, but white space is kept and bounds
///   pieces alone.
/// - `unigram-json`: the same as a tokenizer.json, for those who read no other file.
/// - `wordpiece`: by frequency, as BERT's trainers do, on BERT's uncased words; `wordpiece-pmi`: by
///   the score of its papers.
/// - `bpe-preset`, `unigram-preset`: as SentencePiece trains with its defaults, piece by piece.
///
/// # Errors
///
/// If the algorithm is none of these, the text cannot be read, or the trainer refuses it.
pub fn train(algorithm: &str, text: &mut dyn BufRead, vocab: usize) -> Result<Trained, String> {
    let (normalizer, splitter, target) = match algorithm {
        "bpe" => ("none", "gpt2", Target::TokenizerJson),
        "sentencepiece-bpe" => ("none", "metaspace", Target::SentencePiece),
        "unigram" | "bpe-preset" => ("nmt_nfkc", "metaspace", Target::SentencePiece),
        "unigram-preset" => ("nmt_nfkc", "none", Target::SentencePiece),
        "unigram-json" => ("nmt_nfkc", "metaspace", Target::TokenizerJson),
        "wordpiece" | "wordpiece-pmi" => ("bert", "bert", Target::TokenizerJson),
        other => return Err(format!("{other} is none of {}", ALGORITHMS.join(", "))),
    };
    let words = |error: LiftError| error.to_string();
    let mut preparation = Preparation::new(normalizer, splitter, target).map_err(words)?;
    if algorithm.ends_with("-preset") {
        preparation = preparation.with_marked_spaces(Spaces::Tidy).map_err(words)?;
    }
    let ends = match splitter {
        // SentencePiece's sentences end before the newline; it keeps a carriage return.
        _ if algorithm.ends_with("-preset") => "\n",
        "metaspace" | "none" => "\r\n",
        _ => "",
    };
    let sentences = algorithm
        .ends_with("-preset")
        .then(|| Sentences::new(preparation.normalizer()).with_max_len(MAX_SENTENCE));
    let counted = count(text, &preparation, ends, sentences)?;
    let model = learn(algorithm, &counted, vocab)?;
    Ok(Trained { model, preparation })
}

/// What trainers work on, and of lines as SentencePiece reads them the last one.
struct Counted {
    counts: PieceCounts,
    last_line: Option<String>,
}

/// Counts the pieces of every line without these characters at its end.
fn count(
    text: &mut dyn BufRead,
    preparation: &Preparation,
    ends: &str,
    mut sentences: Option<Sentences<'_>>,
) -> Result<Counted, String> {
    let mut counter = CorpusCounter::new(preparation.normalizer(), preparation.splitter());
    let mut line = String::new();
    while text.read_line(&mut line).map_err(|error| error.to_string())? > 0 {
        let document = line.trim_end_matches(|c| ends.contains(c));
        let is_read = match &mut sentences {
            Some(sentences) => sentences.takes(document),
            None => !document.is_empty(),
        };
        if is_read {
            counter.add(&[document]).map_err(|error| error.to_string())?;
        }
        line.clear();
    }
    let counts = counter.finish().map_err(|error| error.to_string())?;
    Ok(Counted { counts, last_line: sentences.and_then(Sentences::finish) })
}

fn learn(algorithm: &str, counted: &Counted, vocab: usize) -> Result<AnyModel, String> {
    let counts = &counted.counts;
    match algorithm {
        "unigram" | "unigram-json" | "unigram-preset" => {
            let mut trainer = unigram(algorithm, vocab);
            trainer.last_line = counted.last_line.clone().map(String::into_bytes);
            let model = trainer.train(counts, &mut Silent).map_err(|error| error.to_string())?;
            if algorithm != "unigram-json" {
                return Ok(AnyModel::Unigram(model));
            }
            let mut options = model.options().clone();
            options.compat = Compat::HuggingFace;
            Unigram::new(model.vocab().clone(), model.scores().to_vec(), options)
                .map(AnyModel::Unigram)
                .map_err(|error| error.to_string())
        }
        "wordpiece" | "wordpiece-pmi" => {
            let mut trainer = WordPieceTrainer::new(vocab);
            if algorithm == "wordpiece" {
                trainer.criterion = Criterion::Frequency;
            }
            trainer.options.unk = Some(b"[UNK]".to_vec());
            let model = trainer.train(counts, &mut Silent).map_err(|error| error.to_string())?;
            Ok(AnyModel::WordPiece(model))
        }
        _ => {
            let trainer = bpe(algorithm, vocab);
            let model = trainer.train(counts, &mut Silent).map_err(|error| error.to_string())?;
            Ok(AnyModel::Bpe(model))
        }
    }
}

fn unigram(algorithm: &str, vocab: usize) -> UnigramTrainer {
    let mut trainer = UnigramTrainer::new(vocab);
    trainer.special_tokens = vec![SpecialToken::new("<unk>", TokenKind::Unknown)];
    if algorithm != "unigram-json" {
        trainer.special_tokens.push(SpecialToken::new("<s>", TokenKind::Control));
        trainer.special_tokens.push(SpecialToken::new("</s>", TokenKind::Control));
    }
    if algorithm == "unigram-preset" {
        let mut rules = PieceRules::default();
        rules.script = Some(pretok::script_of);
        trainer.rules = Some(rules);
        trainer.compat = TrainCompat::SentencePiece;
    }
    trainer.threads = 2;
    trainer
}

fn bpe(algorithm: &str, vocab: usize) -> BpeTrainer {
    if algorithm == "bpe-preset" {
        return BpeTrainer::sentencepiece(vocab, pretok::script_of);
    }
    let mut trainer = BpeTrainer::default();
    trainer.goal = Goal::VocabSize(vocab);
    trainer.byte_order = ByteOrder::Gpt2;
    if algorithm == "sentencepiece-bpe" {
        trainer.unit = bpe::Alphabet::Char;
        trainer.byte_order = ByteOrder::Value;
        trainer.ties = Ties::SentencePiece;
        trainer.character_coverage = 0.9995;
        trainer.byte_fallback = true;
        trainer.unk_token = Some("<unk>".to_owned());
        trainer.special_tokens = vec!["<s>".to_owned(), "</s>".to_owned()];
        trainer.fuse_unk = true;
    }
    trainer
}

impl Trained {
    fn learned(&self) -> Learned<'_> {
        match &self.model {
            AnyModel::Bpe(model) => Learned::Bpe(model),
            AnyModel::Unigram(model) => Learned::Unigram(model),
            AnyModel::WordPiece(model) => Learned::WordPiece(model),
        }
    }

    /// The file in the format of its kind: a SentencePiece model or a tokenizer.json.
    ///
    /// # Errors
    ///
    /// If the format cannot say it.
    pub fn file(&self) -> Result<Vec<u8>, String> {
        let text = |error: &dyn std::error::Error| error.to_string();
        match self.preparation.target() {
            Target::SentencePiece => lift::sentencepiece(self.learned(), &self.preparation)
                .map_err(|error| text(&error))?
                .to_bytes()
                .map_err(|error| text(&error)),
            _ => lift::tokenizer_json(self.learned(), &self.preparation)
                .map_err(|error| text(&error))?
                .to_json(Layout::Pretty)
                .map(String::into_bytes)
                .map_err(|error| text(&error)),
        }
    }

    /// Of BPE over bytes the merged tokens in order, as hex; of the others none, for the file has
    /// them.
    fn merged(&self) -> Option<Vec<String>> {
        match (&self.model, self.preparation.target()) {
            (AnyModel::Bpe(model), Target::TokenizerJson) => {
                let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                Some(model.vocab().iter().skip(256).map(|(_, bytes, _)| hex(bytes)).collect())
            }
            _ => None,
        }
    }
}

/// Answers the request `train`, as `python/runner.py` says.
///
/// # Errors
///
/// As [`train`], and if files cannot be read or written.
pub fn answer(request: &Value) -> Result<Value, String> {
    let string = |name: &str| request[name].as_str().ok_or_else(|| format!("no {name}"));
    let vocab = request["vocab"].as_u64().ok_or("no vocab")? as usize;
    // Every trainer reads the file within its time.
    let clock = Clock::start();
    let path = string("file")?;
    let file = fs::File::open(path).map_err(|error| format!("{path}: {error}"))?;
    let mut text = BufReader::with_capacity(1 << 20, file);
    let trained = train(string("algorithm")?, &mut text, vocab)?;
    let mut answer = clock.stop(json!({"version": "ours", "tokens": null}));
    match trained.merged() {
        Some(tokens) => answer["tokens"] = json!(tokens),
        None => {
            let out = string("out")?;
            fs::write(out, trained.file()?).map_err(|error| format!("{out}: {error}"))?;
        }
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokenizer::{LoadOptions, Tokenizer};

    #[test]
    fn every_algorithm_trains_and_its_file_is_read_back() {
        let text = "the rabbit was late and the rabbit ran\nthe late hat was on the cat\n";
        let text = text.repeat(50);
        for algorithm in ALGORITHMS {
            let vocab = match algorithm {
                "bpe" => 280,
                "sentencepiece-bpe" => 300,
                "unigram" | "unigram-json" => 25,
                "unigram-preset" => 20,
                _ => 40,
            };
            let trained = train(algorithm, &mut text.as_bytes(), vocab)
                .unwrap_or_else(|error| panic!("{algorithm}: {error}"));
            let file = trained.file().unwrap_or_else(|error| panic!("{algorithm}: {error}"));
            let tokenizer =
                Tokenizer::from_file(&file, &LoadOptions::default()).expect("it is a file of ours");
            let ids = tokenizer.ids("the rabbit");
            assert!(!ids.is_empty() && ids.len() < 10, "{algorithm}: {ids:?}");
        }
        assert!(train("sorting", &mut text.as_bytes(), 300).is_err());
    }
}
