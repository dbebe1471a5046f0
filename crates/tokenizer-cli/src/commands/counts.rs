//! `tok counts`.

use std::fmt::Write;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use formats::counts::{self, CountReader, Positions};
use serde_json::json;
use tokenizer::lift::{Preparation, Target};
use tokenizer_core::PieceCounts;

use crate::Mode;
use crate::corpus;
use crate::failure::Failure;
use crate::input::InputOptions;
use crate::model::chain;
use crate::output::{self, AtomicFile, Progress};
use crate::text_rules::TextRules;

#[derive(Subcommand)]
#[command(after_help = "\
A shard holds each distinct piece of a text with how often it occurs and where it is first. Many
machines count a part each, one merges and trains. Files that end in .tsv are text: piece, tab,
count. Files that end in .parquet are tables with the columns piece (bytes or strings) and count
(64-bit integers), where the program is built with them.

Example:
  tok counts write part1/ -o part1.counts --pretok gpt2
  tok counts merge part1.counts part2.counts -o all.counts
  tok train bpe --counts all.counts --pretok gpt2 -o tokenizer.json --vocab-size 32000")]
pub(crate) enum Counts {
    /// Count the pieces of text
    Write(WriteCounts),
    /// Merge shards into one
    Merge(MergeCounts),
    /// Show what a shard holds
    Show(ShowCounts),
}

#[derive(Args)]
#[command(after_help = "Example:\n  tok counts write corpus/ -o corpus.counts --pretok gpt2")]
pub(crate) struct WriteCounts {
    /// Text: files, directories (recursively), - for standard input
    #[arg(value_name = "FILES", required = true)]
    files: Vec<PathBuf>,
    /// Where the shard goes; as text where it ends in .tsv, as a table where it ends in .parquet
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// How text is cut into pieces
    #[arg(long, value_name = "SPEC", default_value = "gpt2")]
    pretok: String,
    /// How text is normalized
    #[arg(long, value_name = "NAME", default_value = "none")]
    normalizer: String,
    /// Normalize and cut text as this tokenizer.json does, for `tok train --continue`
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["pretok", "normalizer"])]
    model: Option<PathBuf>,
    /// Memory that is never passed, as 512M or 2G: what does not fit waits in temporary files
    #[arg(long, value_name = "SIZE", value_parser = crate::input::size)]
    max_memory: Option<u64>,
    /// Threads [default: as many as there are processors]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten)]
    input: InputOptions,
}

#[derive(Args)]
#[command(after_help = "Example:\n  tok counts merge a.counts b.counts -o all.counts")]
pub(crate) struct MergeCounts {
    /// The shards, in the order of their texts
    #[arg(value_name = "FILES", required = true)]
    files: Vec<PathBuf>,
    /// Where the merged shard goes; as text where it ends in .tsv, as a table where it ends in .parquet
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// The shards count parts of one text with positions of the whole text, not texts that follow
    /// one another
    #[arg(long)]
    shared_positions: bool,
}

#[derive(Args)]
#[command(after_help = "Example:\n  tok counts show corpus.counts --top 20")]
pub(crate) struct ShowCounts {
    /// The shard
    file: PathBuf,
    /// How many of the most frequent pieces to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
}

impl Counts {
    pub(crate) fn run(self, mode: Mode, progress: Progress) -> Result<(), Failure> {
        match self {
            Self::Write(command) => command.run(mode, progress),
            Self::Merge(command) => command.run(mode),
            Self::Show(command) => command.run(mode),
        }
    }
}

impl WriteCounts {
    fn run(self, mode: Mode, progress: Progress) -> Result<(), Failure> {
        let rules = match &self.model {
            Some(file) => TextRules::of_file(file)?,
            None => TextRules::named(
                Preparation::new(&self.normalizer, &self.pretok, Target::TokenizerJson)
                    .map_err(Failure::usage)?,
            ),
        };
        output::use_threads(self.threads);
        if let Some(memory) = self.max_memory.filter(|_| Form::of(&self.out) == Form::Binary) {
            let mut out = AtomicFile::create(&self.out)?;
            let (pieces, total) =
                corpus::count_into(&self.files, &self.input, &rules, memory, &mut out, progress)?;
            out.commit()?;
            return report(&self.out, pieces, total, mode);
        }
        // The other forms are in the order of the text, for which all pieces must be at hand.
        let need = |pieces: u64, bytes: u64| 48 * pieces + 2 * bytes;
        let counted = corpus::count(
            &self.files,
            &self.input,
            corpus::Sampling::ALL,
            &rules,
            self.max_memory,
            &need,
            progress,
        )?;
        write(&self.out, &counted.counts)?;
        report(&self.out, counted.counts.len() as u64, counted.counts.total(), mode)
    }
}

impl MergeCounts {
    fn run(self, mode: Mode) -> Result<(), Failure> {
        let positions = match self.shared_positions {
            true => Positions::Shared,
            false => Positions::Consecutive,
        };
        let is_binary = |path: &Path| Form::of(path) == Form::Binary;
        if !is_binary(&self.out) || !self.files.iter().all(|path| is_binary(path)) {
            let mut counts = PieceCounts::default();
            for path in &self.files {
                let shard = corpus::read_shard(path)?;
                let merged = match positions {
                    Positions::Shared => counts.merge(&shard),
                    Positions::Consecutive => counts.append(&shard),
                };
                merged.map_err(|error| Failure::file(path, error))?;
            }
            write(&self.out, &counts)?;
            return report(&self.out, counts.len() as u64, counts.total(), mode);
        }
        let mut shards = Vec::with_capacity(self.files.len());
        for path in &self.files {
            let reader: BufReader<File> = BufReader::new(output::open(path)?);
            shards.push(CountReader::new(reader).map_err(|e| Failure::file(path, chain(&e)))?);
        }
        let mut out = AtomicFile::create(&self.out)?;
        let (pieces, total) = corpus::merge_shards(shards, &self.files, positions, 0, &mut out)
            .map_err(|failure| match failure {
                Failure::Input(what) if what.starts_with("the output") => {
                    Failure::file(&self.out, what)
                }
                other => other,
            })?;
        out.commit()?;
        report(&self.out, pieces, total, mode)
    }
}

impl ShowCounts {
    fn run(self, mode: Mode) -> Result<(), Failure> {
        let counts = corpus::read_shard(&self.file)?;
        let mut pieces: Vec<_> = counts.iter().collect();
        pieces.sort_by(|a, b| b.count.cmp(&a.count).then(a.piece.cmp(b.piece)));
        pieces.truncate(self.top);
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if mode.json {
            let top: Vec<_> = pieces
                .iter()
                .map(|p| json!({"piece": shown(p.piece), "count": p.count, "first_seen": p.first_seen}))
                .collect();
            return output::print_json(&json!({
                "path": self.file.display().to_string(),
                "distinct_pieces": counts.len(),
                "pieces": counts.total(),
                "extent": counts.extent(),
                "top": top,
            }));
        }
        let mut text = format!(
            "{} distinct pieces, {} in all, of {} bytes of text\n",
            counts.len(),
            counts.total(),
            counts.extent()
        );
        for piece in pieces {
            let _ = writeln!(text, "{:>12}  {:?}", piece.count, shown(piece.piece));
        }
        output::print(text.as_bytes())
    }
}

/// What a shard is written as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Binary,
    Text,
    Table,
}

impl Form {
    /// The form that the ending of a path says.
    fn of(path: &Path) -> Self {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("tsv") => Self::Text,
            Some("parquet") => Self::Table,
            _ => Self::Binary,
        }
    }
}

/// Writes a shard in the form that the path says.
fn write(path: &Path, counts: &PieceCounts) -> Result<(), Failure> {
    match Form::of(path) {
        Form::Text => return AtomicFile::write(path, counts::to_tsv(counts).as_bytes()),
        Form::Table => return corpus::write_parquet(path, counts),
        Form::Binary => {}
    }
    let mut file = AtomicFile::create(path)?;
    counts::write(counts, &mut file).map_err(|error| Failure::file(path, error))?;
    file.commit()
}

fn report(path: &Path, distinct: u64, total: u64, mode: Mode) -> Result<(), Failure> {
    if mode.json {
        return output::print_json(&json!({
            "file": path.display().to_string(),
            "distinct_pieces": distinct,
            "pieces": total,
        }));
    }
    if mode.quiet {
        return Ok(());
    }
    output::print(
        format!("{distinct} distinct pieces, {total} in all -> {}\n", path.display()).as_bytes(),
    )
}
