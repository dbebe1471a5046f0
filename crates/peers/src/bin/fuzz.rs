//! The differential fuzz against the tokenizers of other projects.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use peers::fuzz::{self, Options};

/// Compares this workspace's tokenizers with those of other projects on random texts.
#[derive(Parser)]
#[command(name = "fuzz")]
struct Args {
    /// Folder with tokenizer.json and SentencePiece .model files
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// How many texts altogether
    #[arg(long, default_value_t = 20_000)]
    texts: u64,
    /// Where the random numbers begin
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Python with the package sentencepiece; without it SentencePiece is not compared
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// How many differences are shrunk and shown for each model
    #[arg(long, default_value_t = 5)]
    show: usize,
    /// Only models whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// Print the table as JSON
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if args.python.is_none() {
        eprintln!("skipped: SentencePiece (give --python PATH)");
    }
    let options = Options {
        data: args.data,
        texts: args.texts,
        seed: args.seed,
        python: args.python,
        show: args.show,
        only: args.only,
    };
    match fuzz::run(&options, &mut |line| eprintln!("{line}")) {
        Ok(rows) => {
            if args.json {
                println!("{}", serde_json::to_string_pretty(&rows).expect("rows are plain data"));
            } else {
                print!("{}", fuzz::table(&rows));
            }
            let differences: u64 = rows.iter().map(|row| row.differences).sum();
            if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}
