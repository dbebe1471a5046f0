//! `tok count`.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use rayon::prelude::*;
use serde::Serialize;
use tokenizer::{Policy, Tokenizer};

use crate::Mode;
use crate::failure::Failure;
use crate::input::{self, InputOptions};
use crate::model::ModelOptions;
use crate::output::{self, Progress, Unit};

#[derive(Args)]
#[command(after_help = "Examples:\n  tok count README.md src/ --model tokenizer.json\n  \
    tok count --limit 8000 prompt.txt --model tokenizer.json")]
pub(crate) struct Count {
    /// Text: files, directories (recursively), - for standard input
    #[arg(value_name = "FILES", default_value = "-")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    model: ModelOptions,
    /// Exit with 1 if there are more tokens in all
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    #[command(flatten)]
    input: InputOptions,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Counts {
    files: Vec<FileCount>,
    bytes: u64,
    tokens: u64,
}

#[derive(Serialize)]
struct FileCount {
    path: String,
    bytes: u64,
    tokens: u64,
}

/// Documents are counted in parallel, in batches of about this many bytes.
const BATCH: usize = 8 << 20;

impl Count {
    pub(crate) fn run(self, mode: Mode, progress: Progress) -> Result<(), Failure> {
        let tokenizer = self.model.load()?;
        let policy = self.model.policy();
        let sources = input::sources(&self.files)?;
        let bar = progress.bar("counting", sources.iter().map(|s| s.bytes).sum(), Unit::Bytes);
        let mut counts = Counts { files: Vec::new(), bytes: 0, tokens: 0 };
        for source in &sources {
            let mut file =
                FileCount { path: source.path.display().to_string(), bytes: 0, tokens: 0 };
            let (mut batch, mut waiting): (Vec<String>, usize) = (Vec::new(), 0);
            let mut flush = |batch: &mut Vec<String>| -> Result<(), Failure> {
                file.bytes += batch.iter().map(|text| text.len() as u64).sum::<u64>();
                file.tokens += count(&tokenizer, batch, &policy)
                    .map_err(|error| Failure::file(&source.path, error))?;
                batch.clear();
                Ok(())
            };
            input::documents(source, &self.input, &bar, &mut |document| {
                waiting += document.len();
                batch.push(document);
                if waiting < BATCH {
                    return Ok(());
                }
                waiting = 0;
                flush(&mut batch)
            })?;
            flush(&mut batch)?;
            counts.bytes += file.bytes;
            counts.tokens += file.tokens;
            counts.files.push(file);
        }
        bar.finish_and_clear();
        if mode.json {
            output::print_json(&serde_json::to_value(&counts).map_err(std::io::Error::from)?)?;
        } else {
            let mut text = String::new();
            for file in &counts.files {
                let _ = writeln!(text, "{} {}", file.tokens, file.path);
            }
            let _ = writeln!(text, "{} total", counts.tokens);
            output::print(text.as_bytes())?;
        }
        match self.limit {
            Some(limit) if counts.tokens > limit => {
                progress.note(format!(
                    "{} tokens are {} over the limit of {limit}",
                    counts.tokens,
                    counts.tokens - limit
                ));
                Err(Failure::Check)
            }
            _ => Ok(()),
        }
    }
}

fn count(
    tokenizer: &Tokenizer,
    documents: &[String],
    policy: &Policy,
) -> Result<u64, tokenizer::SpecialTokenError> {
    documents
        .par_iter()
        .map_init(
            || tokenizer.session(),
            |session, text| session.count_with_policy(text, policy).map(|count| count as u64),
        )
        .try_reduce(|| 0, |a, b| Ok(a + b))
}
