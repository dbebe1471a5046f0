//! Training by everybody who can, on the same text, and how the vocabularies do on other text.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use tokenizer::{LoadOptions, Policy, RanksSetup, Stretch, Tokenizer};
use tokenizer_core::Model as _;
use unigram::Unigram;

use super::child::cut;
use super::contest::{Contest, memory};
use super::report::{Quality, Report, Training};

/// Longer than this no training takes.
const LIMIT: Duration = Duration::from_secs(900);
/// Who takes longer than this trains in one round only.
const PATIENCE: f64 = 20.0;

/// The algorithms, and who trains them.
const TRAINERS: [(&str, &[&str]); 6] = [
    ("bpe", &["ours", "gigabpe", "rustbpe", "tokenizers"]),
    ("bpe-preset", &["ours", "sentencepiece"]),
    ("unigram", &["ours", "sentencepiece", "tokenizers"]),
    ("unigram-preset", &["ours", "sentencepiece"]),
    ("wordpiece", &["ours", "tokenizers"]),
    ("wordpiece-pmi", &["ours"]),
];

/// What everybody is to train, and what is judged by.
#[derive(Clone, Debug)]
pub struct Task {
    /// The file to train on.
    pub file: PathBuf,
    /// Text of the same kind that is not in it.
    pub held_out: String,
    /// The number of tokens.
    pub vocab: usize,
    /// Where trained models are written.
    pub folder: PathBuf,
}

/// The learned tokens of every trainer, to be compared when all have trained.
#[derive(Debug, Default)]
pub struct Learned {
    tokens: BTreeMap<(usize, usize), Vec<String>>,
}

impl Learned {
    /// One round: every trainer of every algorithm in a fresh process.
    pub fn round(
        &mut self,
        contest: &Contest,
        task: &Task,
        round: usize,
        report: &mut Report,
        progress: &mut dyn FnMut(&str),
    ) {
        for (a, (algorithm, trainers)) in TRAINERS.iter().enumerate() {
            for (t, trainer) in trainers.iter().enumerate() {
                let at = row(report, algorithm, trainer);
                let slow =
                    report.training[at].seconds.rounds().is_some_and(|r| r.median > PATIENCE);
                if slow || report.training[at].failure.is_some() {
                    continue;
                }
                progress(&format!("round {}: training {algorithm}, {trainer}", round + 1));
                match once(contest, algorithm, trainer, task) {
                    Ok(measured) => {
                        report
                            .manifest
                            .versions
                            .entry((*trainer).to_owned())
                            .or_insert(measured.version);
                        let row = &mut report.training[at];
                        row.seconds.set(round, measured.seconds);
                        row.cpu.set(round, measured.cpu);
                        row.peak.set(round, measured.peak);
                        row.tokens = Some(measured.tokens.len());
                        if row.quality.is_none() {
                            row.quality = quality(&measured.tokenizer, &task.held_out);
                        }
                        self.tokens.insert((a, t), measured.tokens);
                    }
                    Err(why) => report.training[at].failure = Some(why),
                }
            }
        }
    }

    /// Says of every vocabulary how it stands to ours.
    pub fn judge(&self, report: &mut Report) {
        for (a, (algorithm, trainers)) in TRAINERS.iter().enumerate() {
            let Some(ours) = self.tokens.get(&(a, 0)) else { continue };
            for (t, trainer) in trainers.iter().enumerate().skip(1) {
                if let Some(theirs) = self.tokens.get(&(a, t)) {
                    let at = row(report, algorithm, trainer);
                    report.training[at].verdict = Some(verdict(ours, theirs));
                }
            }
        }
    }
}

fn row(report: &mut Report, algorithm: &str, trainer: &str) -> usize {
    let is = |row: &Training| row.algorithm == algorithm && row.trainer == trainer;
    report.training.iter().position(is).unwrap_or_else(|| {
        let (algorithm, trainer) = (algorithm.to_owned(), trainer.to_owned());
        report.training.push(Training { algorithm, trainer, ..Training::default() });
        report.training.len() - 1
    })
}

/// How another vocabulary stands to ours.
fn verdict(ours: &[String], theirs: &[String]) -> String {
    let known: HashSet<&String> = ours.iter().collect();
    let shared = theirs.iter().filter(|token| known.contains(token)).count();
    match ours.iter().zip(theirs).position(|(ours, theirs)| ours != theirs) {
        None if ours.len() == theirs.len() => "identical, in order".to_owned(),
        None => format!("identical as far as both go ({} and {})", ours.len(), theirs.len()),
        Some(_) if shared == theirs.len() && ours.len() == theirs.len() => {
            "the same tokens in another order".to_owned()
        }
        Some(at) => {
            format!("{shared} of {} tokens shared, token {at} is the first other", theirs.len())
        }
    }
}

struct Measured {
    version: String,
    seconds: f64,
    cpu: f64,
    peak: f64,
    tokens: Vec<String>,
    tokenizer: Tokenizer,
}

fn once(
    contest: &Contest,
    algorithm: &str,
    trainer: &str,
    task: &Task,
) -> Result<Measured, String> {
    let ending = match (algorithm, trainer) {
        (_, "sentencepiece") | ("unigram" | "unigram-preset" | "bpe-preset", "ours") => "model",
        _ => "json",
    };
    let out = task.folder.join(format!("trained-{algorithm}-{trainer}.{ending}"));
    let mut runner = contest.spawn(trainer)?;
    let before = memory(&mut runner, "now").unwrap_or(0.0);
    let request = json!({"op": "train", "trainer": trainer, "algorithm": algorithm,
        "file": task.file, "vocab": task.vocab, "out": out});
    let answer = runner.ask_within(&request, LIMIT)?;
    let peak = memory(&mut runner, "peak").ok_or("no peak of memory")? - before;
    let number = |name: &str| answer[name].as_f64().ok_or_else(|| format!("no {name}"));
    let (tokens, tokenizer) = match answer["tokens"].as_array() {
        Some(merged) => {
            let hex = merged.iter().map(|token| token.as_str().map(str::to_owned));
            let tokens = hex.collect::<Option<Vec<String>>>().ok_or("a token is no text")?;
            let tokenizer = of_merged(&tokens)?;
            (tokens, tokenizer)
        }
        None => {
            let file = fs::read(&out).map_err(|error| format!("{}: {error}", out.display()))?;
            let tokenizer = Tokenizer::from_file(&file, &LoadOptions::default())
                .map_err(|error| format!("its file cannot be read: {error}"))?;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let tokens = tokenizer.vocab().iter().map(|(_, bytes, _)| text(bytes)).collect();
            (tokens, tokenizer)
        }
    };
    Ok(Measured {
        version: answer["version"].as_str().unwrap_or(trainer).to_owned(),
        seconds: number("seconds")?,
        cpu: number("cpu")?,
        peak,
        tokens,
        tokenizer,
    })
}

/// A tokenizer of merged tokens, in order, behind the 256 bytes. That ranks and merges agree was
/// checked nowhere, and need not be: this judges the vocabulary.
fn of_merged(tokens: &[String]) -> Result<Tokenizer, String> {
    let mut seen = HashSet::new();
    let mut all: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    for token in tokens.iter().filter(|token| seen.insert(*token)) {
        let digits = (0..token.len()).step_by(2).map(|at| token.get(at..at + 2));
        let bytes = digits.map(|pair| u8::from_str_radix(pair?, 16).ok());
        let bytes = bytes.collect::<Option<Vec<u8>>>();
        all.push(bytes.ok_or_else(|| format!("{token:?} is no hex"))?);
    }
    let pairs = all.iter().zip(0u32..).map(|(token, rank)| (token.as_slice(), rank));
    let ranks = formats::IdMap::from_pairs(pairs).map_err(|error| error.to_string())?;
    let pattern = pretok::Pattern::Gpt2.stages()[0].to_owned();
    let mut options = LoadOptions::default();
    options.ranks = Some(RanksSetup { pattern, special_tokens: Vec::new() });
    Tokenizer::from_file(formats::tiktoken::to_text(&ranks).as_bytes(), &options)
        .map_err(|error| error.to_string())
}

/// What a vocabulary makes of held-out text.
fn quality(tokenizer: &Tokenizer, text: &str) -> Option<Quality> {
    let mut counts = vec![0u64; tokenizer.vocab_len()];
    for document in cut(text) {
        for id in tokenizer.ids(document) {
            *counts.get_mut(id.index())? += 1;
        }
    }
    let tokens: u64 = counts.iter().sum();
    (tokens > 0).then(|| Quality {
        bytes_per_token: text.len() as f64 / tokens as f64,
        renyi: harness::stats::renyi_efficiency(counts.iter().copied(), 2.5, counts.len()),
        used: counts.iter().filter(|&&n| n > 0).count() as f64 / counts.len() as f64,
        likelihood: likelihood(tokenizer, text),
    })
}

/// Of a Unigram model: the logarithms of what is probable, in nats a byte of text as the model
/// reads it, summed over all segmentations and of the best one. Text is parted at characters that
/// are no token, so that what a model asks for an unknown character does not count.
fn likelihood(tokenizer: &Tokenizer, text: &str) -> Option<[f64; 2]> {
    let model: &Unigram = tokenizer.model().as_any()?.downcast_ref()?;
    let is_known = |c: char| model.vocab().get(c.encode_utf8(&mut [0; 4]).as_bytes()).is_some();
    let mut session = tokenizer.session();
    let (mut bytes, mut sums) = (0, [0.0; 2]);
    for document in cut(text) {
        let trace = session.trace(document, &Policy::Ordinary).ok()?;
        for stretch in &trace.stretches {
            let Stretch::Text(text) = stretch else { continue };
            let pieces = text.pieces.iter().map(|piece| &text.text[piece.span.range()]);
            let known = pieces.flat_map(|piece| piece.split(|c| !is_known(c)));
            for part in known.map(str::as_bytes) {
                bytes += part.len();
                sums[0] += model.log_likelihood(part);
                sums[1] += model.best_score(part);
            }
        }
    }
    (bytes > 0).then(|| sums.map(|sum| sum / bytes as f64))
}

#[cfg(test)]
mod tests {
    use tokenizer_core::TokenKind;
    use unigram::UnigramOptions;

    use super::*;

    #[test]
    fn verdicts_tell_order_from_content() {
        let list = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let ours = list("a b c d");
        assert_eq!(verdict(&ours, &ours), "identical, in order");
        assert_eq!(verdict(&ours, &list("a b")), "identical as far as both go (4 and 2)");
        assert_eq!(verdict(&ours, &list("a c b d")), "the same tokens in another order");
        assert_eq!(
            verdict(&ours, &list("a b x d")),
            "3 of 4 tokens shared, token 2 is the first other"
        );
    }

    #[test]
    fn quality_by_hand() {
        // The bytes, and `ab`: abab is two tokens of one kind.
        let tokenizer = of_merged(&["6162".to_owned()]).expect("two bytes");
        let quality = quality(&tokenizer, "abab").expect("there are tokens");
        assert_eq!(quality.bytes_per_token, 2.0);
        assert_eq!(quality.used, 1.0 / 257.0);
        assert_eq!(quality.likelihood, None);
        assert!(of_merged(&["6".to_owned()]).is_err());
    }

    #[test]
    fn likelihood_by_hand() {
        let mut vocab = tokenizer_core::Vocab::builder();
        let kinds = [TokenKind::Unknown, TokenKind::Normal, TokenKind::Normal, TokenKind::Normal];
        for (token, kind) in ["<unk>", "a", "b", "ab"].into_iter().zip(kinds) {
            vocab.push(token.as_bytes(), kind).expect("it is new");
        }
        let scores = vec![0.0, -1.0, -1.5, -2.0];
        let model = Unigram::new(vocab.build(), scores, UnigramOptions::default());
        let model = model.expect("a score each");
        let tokenizer = tokenizer::Parts::new(Box::new(model)).build().expect("a model alone");
        // The unknown letter parts the text: a|b, ab, and b alone.
        let [all, best] = likelihood(&tokenizer, "abzb").expect("it is known");
        assert!((best - (-2.0 - 1.5) / 3.0).abs() < 1e-12, "{best}");
        let ab = ((-2.5f64).exp() + (-2.0f64).exp()).ln();
        assert!((all - (ab - 1.5) / 3.0).abs() < 1e-12, "{all}");
    }
}
