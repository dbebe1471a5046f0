//! The tokenizer that a command works with: `--model FILE` or `--encoding NAME`.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use formats::gpt2::Gpt2;
use formats::{Format, detect};
use tokenizer::{
    BertCase, Document, LoadError, LoadOptions, Policy, RanksSetup, SpecialSet, TiktokenEncoding,
    Tokenizer, lift,
};

use crate::failure::Failure;
use crate::input;

/// Which tokenizer.
#[derive(Args, Clone, Debug)]
pub(crate) struct ModelOptions {
    /// A vocabulary file of any format: tokenizer.json, .model, .tiktoken, tekken.json, vocab.txt,
    /// vocab.json with merges.txt beside it, GGUF
    #[arg(long, short, value_name = "FILE", help_heading = "Tokenizer")]
    pub(crate) model: Option<PathBuf>,
    /// A published encoding by name, as cl100k_base
    #[arg(long, value_name = "NAME", conflicts_with = "model", help_heading = "Tokenizer")]
    pub(crate) encoding: Option<String>,
    #[command(flatten)]
    pub(crate) file: FileOptions,
}

/// What some vocabulary files leave unsaid, and what special tokens mean.
#[derive(Args, Clone, Debug)]
pub(crate) struct FileOptions {
    /// How text is cut, for a .tiktoken file of no published encoding: a name of `tok splitters`
    /// that is one pattern, or regex:PATTERN
    #[arg(long, value_name = "NAME|regex:PATTERN", help_heading = "Tokenizer")]
    pub(crate) pattern: Option<String>,
    /// What special tokens in the text mean (ordinary: plain text, parse: the token, reject: an
    /// error), or a special token of a .tiktoken file as NAME=ID. May be given several times
    #[arg(long, value_name = "ordinary|parse|reject|NAME=ID", help_heading = "Tokenizer")]
    special: Vec<SpecialOption>,
    /// Take a vocab.txt for text with its case
    #[arg(long, conflicts_with = "uncased", help_heading = "Tokenizer")]
    cased: bool,
    /// Take a vocab.txt for lower-cased text
    #[arg(long, help_heading = "Tokenizer")]
    uncased: bool,
}

#[derive(Clone, Debug)]
enum SpecialOption {
    Policy(Policy),
    Token(String, u32),
}

impl FromStr for SpecialOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "ordinary" => Self::Policy(Policy::Ordinary),
            "parse" => Self::Policy(Policy::AllowAll),
            "reject" => Self::Policy(Policy::Reject(SpecialSet::all())),
            _ => match text.rsplit_once('=').map(|(name, id)| (name, id.parse())) {
                Some((name, Ok(id))) if !name.is_empty() => Self::Token(name.to_owned(), id),
                _ => return Err("must be ordinary, parse, reject, or NAME=ID".to_owned()),
            },
        })
    }
}

impl ModelOptions {
    /// What the text of special tokens means.
    pub(crate) fn policy(&self) -> Policy {
        self.file.policy()
    }

    /// Loads the tokenizer.
    pub(crate) fn load(&self) -> Result<Tokenizer, Failure> {
        match (&self.model, &self.encoding) {
            (Some(path), _) => load(path, &self.file.load_options()?),
            (None, Some(name)) => encoding(name),
            (None, None) => {
                Err(Failure::usage("no tokenizer: give --model FILE or --encoding NAME"))
            }
        }
    }
}

impl FileOptions {
    /// The tokenizer that a command line names by one word: a file, else a published encoding.
    pub(crate) fn named(&self, name: &str) -> Result<Tokenizer, Failure> {
        let path = Path::new(name);
        if !path.exists() && TiktokenEncoding::from_name(name).is_some() {
            return encoding(name);
        }
        load(path, &self.load_options()?)
    }

    /// What the text of special tokens means: the last word on it, by default plain text.
    pub(crate) fn policy(&self) -> Policy {
        let mut policies = self.special.iter().filter_map(|option| match option {
            SpecialOption::Policy(policy) => Some(policy),
            SpecialOption::Token(..) => None,
        });
        policies.next_back().cloned().unwrap_or_default()
    }

    /// What the command line says about a file that does not say all itself.
    pub(crate) fn load_options(&self) -> Result<LoadOptions, Failure> {
        let tokens = self.special.iter().filter_map(|option| match option {
            SpecialOption::Token(name, id) => Some((name.clone(), *id)),
            SpecialOption::Policy(_) => None,
        });
        let special_tokens: Vec<_> = tokens.collect();
        let mut options = LoadOptions::default();
        match &self.pattern {
            Some(spec) => {
                let pattern = lift::single_pattern(spec)
                    .map_err(|error| Failure::usage(format!("--pattern: {error}")))?;
                options.ranks = Some(RanksSetup { pattern, special_tokens });
            }
            None if !special_tokens.is_empty() => {
                return Err(Failure::usage(
                    "--special NAME=ID is for a .tiktoken file with --pattern",
                ));
            }
            None => {}
        }
        options.case = match (self.cased, self.uncased) {
            (true, _) => Some(BertCase::Cased),
            (_, true) => Some(BertCase::Uncased),
            _ => None,
        };
        Ok(options)
    }
}

/// The tokenizer of a published encoding, from the embedded ranks.
fn encoding(name: &str) -> Result<Tokenizer, Failure> {
    let encoding = TiktokenEncoding::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = TiktokenEncoding::ALL.iter().map(|known| known.name()).collect();
        Failure::usage(format!("there is no encoding {name}; there are {}", names.join(", ")))
    })?;
    Ok(Tokenizer::from_encoding(encoding))
}

/// Reads a vocabulary file; a vocab.json or merges.txt with the other one from the same folder.
pub(crate) fn read(path: &Path) -> Result<(Vec<u8>, Document), Failure> {
    let bytes = input::bytes(path)?;
    let document = match detect(&bytes) {
        Some(Format::VocabJson) => {
            gpt2(path, &bytes, &input::bytes(&beside(path, "vocab.json", "merges.txt")?)?)?
        }
        Some(Format::MergesTxt) => {
            gpt2(path, &input::bytes(&beside(path, "merges.txt", "vocab.json")?)?, &bytes)?
        }
        _ => Document::parse(&bytes).map_err(|e| Failure::file(path, chain(&e)))?,
    };
    Ok((bytes, document))
}

fn load(path: &Path, options: &LoadOptions) -> Result<Tokenizer, Failure> {
    let document = read(path)?.1;
    document.lower(options).map_err(|error| load_failure(path, &document, &error))
}

/// Why a document does not load; ranks lack what the command line may say.
pub(crate) fn load_failure(path: &Path, document: &Document, error: &LoadError) -> Failure {
    match error {
        LoadError::Incomplete(what) if matches!(document, Document::Tiktoken(_)) => Failure::usage(
            format!("{}: {what} (--pattern NAME or --pattern regex:PATTERN)", path.display()),
        ),
        error => Failure::file(path, chain(error)),
    }
}

/// The path with another ending of its name: `x-vocab.json` as `x-merges.txt`.
pub(crate) fn renamed(path: &Path, own: &str, other: &str) -> Option<PathBuf> {
    let prefix = path.file_name()?.to_str()?.strip_suffix(own)?;
    Some(path.with_file_name(format!("{prefix}{other}")))
}

/// The other file of a pair: `x-vocab.json` has `x-merges.txt` beside it.
fn beside(path: &Path, own: &str, other: &str) -> Result<PathBuf, Failure> {
    let candidates = [renamed(path, own, other), Some(path.with_file_name(other))];
    let found = candidates.into_iter().flatten().find(|path| path.is_file());
    found.ok_or_else(|| {
        Failure::file(path, format!("is half of a vocabulary: {other} must stand beside it"))
    })
}

fn gpt2(path: &Path, vocab: &[u8], merges: &[u8]) -> Result<Document, Failure> {
    let files = Gpt2::parse(vocab, merges).map_err(|error| Failure::file(path, chain(&error)))?;
    Ok(Document::Gpt2(Box::new(files)))
}

/// An error with its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
