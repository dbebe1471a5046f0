//! `tok compare`.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use harness::corpus::Corpus;
use harness::experiment::{Plan, Refused, compare};
use harness::morphology::Gold;
use harness::report::BytePolicy;

use crate::Mode;
use crate::failure::Failure;
use crate::input::{self, InputOptions, Source};
use crate::output::{self, AtomicFile, Progress, Unit};

#[derive(Args)]
#[command(after_help = "\
All algorithms get the same text, splitter, special tokens and byte policy; they are trained on one
part and measured on the held-out part. What is not on equal terms is refused.

Source code is told by the ending of its file, and measured for indentation and operators.

With --morph, token boundaries are held against those of morphs: a word, a tab and its morphs with a
space between them a line, and behind a second tab the language if there are several.

With --parallel every file is one language, named by its file name up to the first dot, and line n
of every file says the same.

Examples:
  tok compare corpus/ --vocab-size 4000,8000 --html report.html
  tok compare en.txt vi.txt zh.txt --parallel --baseline-language en --algo bpe,unigram")]
pub(crate) struct Compare {
    /// Text: files, directories (recursively), - for standard input
    #[arg(value_name = "FILES", required = true)]
    files: Vec<PathBuf>,
    /// The algorithms [default: all]
    #[arg(long, value_name = "NAME[,NAME..]", value_delimiter = ',')]
    algo: Vec<String>,
    /// The vocabulary sizes, special tokens included
    #[arg(long, value_name = "N[,N..]", value_delimiter = ',', default_value = "8000")]
    vocab_size: Vec<usize>,
    /// How text is cut into pieces
    #[arg(long, value_name = "SPEC", default_value = "gpt2")]
    pretok: String,
    /// How text is normalized
    #[arg(long, value_name = "NAME", default_value = "none")]
    normalizer: String,
    /// Special tokens that take a place in every vocabulary
    #[arg(long, value_name = "TOKEN", num_args = 1.., default_value = "<|endoftext|>")]
    special: Vec<String>,
    /// What becomes of text that the vocabulary does not hold: bytes for all, or unknown tokens
    #[arg(long, value_enum, default_value_t = Bytes::Bytes)]
    byte_policy: Bytes,
    /// The share of documents that is measured on and not trained on
    #[arg(long, value_name = "SHARE", default_value_t = 0.2)]
    held_out: f64,
    /// Every file is one language of the same lines
    #[arg(long)]
    parallel: bool,
    /// The language that premiums are relative to
    #[arg(long, value_name = "LANGUAGE", default_value = "en")]
    baseline_language: String,
    /// Resamples for the confidence intervals; 0 for none
    #[arg(long, value_name = "N", default_value_t = 1000)]
    bootstrap: usize,
    /// Decides the division of the documents and the resamples
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The width of the embedding matrix whose parameters are reported
    #[arg(long, value_name = "N", default_value_t = 768)]
    embedding_width: usize,
    /// Gold segmentations of words into morphs
    #[arg(long, value_name = "FILE")]
    morph: Option<PathBuf>,
    /// Write the report as one HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    input: InputOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Bytes {
    /// Every byte has a token: nothing is unknown
    Bytes,
    /// Alphabets of characters, and an unknown token
    Unk,
}

/// Endings of files of source code.
const CODE: [&str; 24] = [
    "c", "cc", "cpp", "cs", "cxx", "go", "h", "hpp", "java", "jl", "js", "jsx", "kt", "lua", "php",
    "py", "rb", "rs", "scala", "sh", "swift", "ts", "tsx", "zig",
];

impl Compare {
    pub(crate) fn run(self, mode: Mode, progress: Progress) -> Result<(), Failure> {
        let mut plan = Plan {
            vocab_sizes: self.vocab_size.clone(),
            splitter: self.pretok.clone(),
            normalizer: self.normalizer.clone(),
            special_tokens: self.special.clone(),
            bytes: match self.byte_policy {
                Bytes::Bytes => BytePolicy::Bytes,
                Bytes::Unk => BytePolicy::Unk,
            },
            held_out: self.held_out,
            seed: self.seed,
            bootstrap: self.bootstrap,
            reference: self.baseline_language.clone(),
            embedding_width: self.embedding_width,
            ..Plan::default()
        };
        if !(self.held_out > 0.0 && self.held_out < 1.0) {
            return Err(Failure::usage(format!(
                "--held-out is {}, but must be above 0 and below 1",
                self.held_out
            )));
        }
        if !self.algo.is_empty() {
            plan.algorithms.clone_from(&self.algo);
        }
        let gold = self.gold()?;
        let sources = input::sources(&self.files)?;
        let corpora = match self.parallel {
            true => vec![self.parallel_corpus(&sources, progress)?],
            false => self.corpora(&sources, progress)?,
        };
        let bar = progress.bar("comparing", 0, Unit::Things);
        let mut report = compare(&plan, corpora, gold.as_ref(), &mut |what: &str| {
            bar.set_prefix(what.to_owned());
        })
        .map_err(|refused: Refused| Failure::usage(refused))?;
        bar.finish_and_clear();
        let files = sources.iter().map(|source| &source.path).chain(&self.morph);
        for path in files.filter(|path| path.is_file()) {
            let bytes = std::fs::read(path).map_err(|error| Failure::file(path, error))?;
            report.manifest.add_file(&path.display().to_string(), &bytes);
        }
        if let Some(path) = &self.html {
            AtomicFile::write(path, report.to_html().as_bytes())?;
        }
        if mode.json {
            let mut json = report.to_json();
            if !json.ends_with('\n') {
                json.push('\n');
            }
            output::print(json.as_bytes())?;
        } else {
            output::print(report.to_terminal(width()).as_bytes())?;
        }
        if report.passed() { Ok(()) } else { Err(Failure::Check) }
    }

    /// The words of the gold file, if one is given.
    fn gold(&self) -> Result<Option<Gold>, Failure> {
        let Some(path) = &self.morph else { return Ok(None) };
        let text = String::from_utf8(input::bytes(path)?).map_err(|e| Failure::file(path, e))?;
        Gold::parse(&text).map(Some).map_err(|error| Failure::file(path, error))
    }

    /// A corpus for every file.
    fn corpora(&self, sources: &[Source], progress: Progress) -> Result<Vec<Corpus>, Failure> {
        let bar = progress.bar("reading", sources.iter().map(|s| s.bytes).sum(), Unit::Bytes);
        let mut corpora = Vec::new();
        for source in sources {
            let ending = source.path.extension().and_then(|ending| ending.to_str());
            let role = if ending.is_some_and(|e| CODE.contains(&e)) { "code" } else { "text" };
            let mut corpus = Corpus::new(&source.path.display().to_string(), role);
            input::documents(source, &self.input, &bar, &mut |document| {
                match self.input.lines {
                    true => corpus.push("und", &document, None),
                    false => corpus.push_text("und", &document),
                }
                Ok(())
            })?;
            corpora.push(corpus);
        }
        bar.finish_and_clear();
        Ok(corpora)
    }

    /// All files as languages of one corpus.
    fn parallel_corpus(&self, sources: &[Source], progress: Progress) -> Result<Corpus, Failure> {
        let bar = progress.bar("reading", sources.iter().map(|s| s.bytes).sum(), Unit::Bytes);
        let mut texts: Vec<(String, String)> = Vec::new();
        let whole = InputOptions { lines: false, ..self.input.clone() };
        for source in sources {
            let name = source.path.file_name().unwrap_or_default().to_string_lossy();
            let language = name.split('.').next().unwrap_or_default().to_owned();
            let mut text = String::new();
            input::documents(source, &whole, &bar, &mut |document| {
                text.push_str(&document);
                Ok(())
            })?;
            texts.push((language, text));
        }
        bar.finish_and_clear();
        if !texts.iter().any(|(language, _)| *language == self.baseline_language) {
            let languages: Vec<&str> =
                texts.iter().map(|(language, _)| language.as_str()).collect();
            return Err(Failure::usage(format!(
                "no file is of the baseline language {}; there are {}",
                self.baseline_language,
                languages.join(", ")
            )));
        }
        Corpus::parallel("parallel", &texts).map_err(Failure::input)
    }
}

/// The columns of the terminal, or enough for every table.
fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    match columns {
        Some(columns) => columns,
        None if std::io::stdout().is_terminal() => 100,
        None => 160,
    }
}
