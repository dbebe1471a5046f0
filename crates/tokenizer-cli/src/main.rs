//! `tok`: train, run and compare subword tokenizers.
//!
//! Exit codes: 0 success, 1 a check said no, 2 usage, 3 bad input, file or IO error.

// Doc comments are help texts here, for terminals: `</w>` and `[UNK]` are what they say.
#![allow(rustdoc::invalid_html_tags, rustdoc::broken_intra_doc_links)]

mod commands;
mod corpus;
mod failure;
mod input;
mod model;
mod output;
mod text_rules;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::commands::{
    compare, completions, convert, count, counts, decode, diff, encode, explain, inspect,
    splitters, train, verify,
};
use crate::failure::Failure;
use crate::output::Progress;

#[derive(Parser)]
#[command(
    name = "tok",
    version,
    about = "Trains, runs and compares subword tokenizers",
    after_help = "Exit codes: 0 success, 1 a check said no, 2 usage, 3 bad input, file or IO error.\n\n\
        Example:\n  tok train bpe corpus.txt -o tokenizer.json --vocab-size 8000\n  \
        tok encode \"Hello, world\" --model tokenizer.json",
    propagate_version = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    mode: Mode,
}

/// What every command takes.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct Mode {
    /// Print JSON on standard output: one document, or one a line for commands on many inputs
    #[arg(long, global = true, help_heading = "Output")]
    pub(crate) json: bool,
    /// No progress, remarks or warnings on standard error
    #[arg(long, short, global = true, help_heading = "Output")]
    pub(crate) quiet: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Train a tokenizer on text and write it to a file
    Train(Box<train::Train>),
    /// Text to ids
    Encode(encode::Encode),
    /// Ids to text
    Decode(decode::Decode),
    /// Count the tokens of files
    Count(count::Count),
    /// Compare algorithms side by side on the same text, on equal terms
    Compare(compare::Compare),
    /// Write, merge and show counts of pieces, which trainers take instead of text
    #[command(subcommand)]
    Counts(counts::Counts),
    /// Say what a vocabulary file contains
    Inspect(inspect::Inspect),
    /// Show why a text splits as it does
    Explain(explain::Explain),
    /// Show where tokenizers differ on a text
    Diff(diff::Diff),
    /// Write a vocabulary file in another format, and prove that it does the same
    Convert(convert::Convert),
    /// Check a tokenizer, or two against each other
    Verify(verify::Verify),
    /// List the splitters and normalizers by name
    Splitters(splitters::Splitters),
    /// Print a completion script for a shell
    Completions(completions::Completions),
}

fn main() -> ExitCode {
    let Cli { command, mode } = Cli::parse();
    output::clean_up_on_interrupt();
    let progress = Progress::new(mode.quiet);
    let result = match command {
        Command::Train(command) => command.run(mode, progress),
        Command::Encode(command) => command.run(mode),
        Command::Decode(command) => command.run(mode),
        Command::Count(command) => command.run(mode, progress),
        Command::Compare(command) => command.run(mode, progress),
        Command::Counts(command) => command.run(mode, progress),
        Command::Inspect(command) => command.run(mode),
        Command::Explain(command) => command.run(mode),
        Command::Diff(command) => command.run(mode),
        Command::Convert(command) => command.run(mode, progress),
        Command::Verify(command) => command.run(mode, progress),
        Command::Splitters(command) => command.run(mode),
        Command::Completions(command) => command.run::<Cli>(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            match &failure {
                Failure::Usage(message) | Failure::Input(message) => {
                    output::complain(message);
                }
                Failure::Check | Failure::OutputClosed => {}
            }
            ExitCode::from(failure.code())
        }
    }
}
