//! `instructions`: how many instructions fixed pieces of work take, held against a record.
//!
//! Times on shared machines are noise; instructions of one program on one text are the same every
//! time, to a few in ten thousand.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::run::{cargo, output, root, succeed, target};

pub(crate) const HELP: &str = "
usage: cargo xtask instructions [--record | --list] [ONLY..]

Builds the example `instructions` of the crate tokenizer, runs its pieces of work under Valgrind's
callgrind and compares the instructions with those in docs/benchmarks/instructions.md. Fails if one
takes over 3 % more. Says so and succeeds where Valgrind is not installed. Counts of another compiler
than the record's are shown and not held against it.

  --record    write what is counted into the record
  --list      print the pieces of work
  ONLY        only pieces whose name contains one of these, as cl100k_base or later

Example:
  cargo xtask instructions cl100k_base
";

/// Model, text, pass, as the example takes them.
const WORK: &[[&str; 3]] = &[
    ["cl100k_base", "english", "load"],
    ["cl100k_base", "english", "first"],
    ["cl100k_base", "english", "later"],
    ["cl100k_base", "english", "count"],
    ["cl100k_base", "english", "offsets"],
    ["cl100k_base", "code", "first"],
    ["cl100k_base", "code", "later"],
    ["cl100k_base", "languages", "first"],
    ["cl100k_base", "languages", "later"],
    ["o200k_base", "english", "load"],
    ["o200k_base", "english", "first"],
    ["o200k_base", "english", "later"],
    ["o200k_base", "languages", "first"],
    ["o200k_base", "languages", "later"],
    ["wordpiece", "english", "first"],
    ["wordpiece", "english", "later"],
    ["wordpiece", "english", "count"],
    ["sentencepiece", "english", "first"],
    ["sentencepiece", "english", "later"],
    ["unigram", "english", "first"],
    ["unigram", "english", "later"],
];

/// So much more than recorded is a failure: 3 %.
const TOLERANCE: f64 = 1.03;

const RECORD: &str = "docs/benchmarks/instructions.md";

/// What is in front of the compiler's version in the record.
const COMPILER: &str = "Compiler: ";

/// Why nothing was counted.
pub(crate) const SKIPPED: &str = "valgrind is not installed";

pub(crate) fn run(args: &[String]) -> Result<ExitCode, String> {
    let (mut record, mut list, mut only) = (false, false, Vec::new());
    for arg in args {
        match arg.as_str() {
            "--record" => record = true,
            "--list" => list = true,
            _ if arg.starts_with('-') => {
                return Err(format!("unknown argument {arg:?}; see --help"));
            }
            _ => only.push(arg.as_str()),
        }
    }
    let work: Vec<&[&str; 3]> = WORK
        .iter()
        .filter(|work| only.is_empty() || only.iter().any(|only| work.join(" ").contains(only)))
        .collect();
    if work.is_empty() {
        return Err(format!("no piece of work is named like {only:?}; see --list"));
    }
    if list {
        work.iter().for_each(|work| println!("{}", work.join(" ")));
        return Ok(ExitCode::SUCCESS);
    }
    match check(&work, record)? {
        true => {}
        false => println!("instructions: SKIPPED: {SKIPPED}"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Counts everything and holds it against the record. Returns whether there was a Valgrind to do so.
pub(crate) fn check_all() -> Result<bool, String> {
    check(&WORK.iter().collect::<Vec<_>>(), false)
}

fn check(work: &[&[&str; 3]], record: bool) -> Result<bool, String> {
    if output(Command::new("valgrind").arg("--version")).is_err() {
        return Ok(false);
    }
    let build =
        ["build", "--release", "--quiet", "--package", "tokenizer", "--example", "instructions"];
    succeed(cargo(&build).current_dir(root()))?;
    let compiler = output(Command::new("rustc").arg("--version"))?.trim().to_owned();
    let recorded = fs::read_to_string(root().join(RECORD)).unwrap_or_default();
    let before = counts_of(&recorded);
    let comparable = recorded.contains(&format!("{COMPILER}{compiler}"));
    let (mut counted, mut worse) = (BTreeMap::new(), Vec::new());
    for work in work {
        let name = work.join(" ");
        let count = count(work)?;
        let ratio = before.get(&name).map(|&before| count.1 as f64 / before as f64);
        let shown =
            ratio.map_or("new".to_owned(), |ratio| format!("{:+.1} %", (ratio - 1.0) * 100.0));
        println!("{name:<32} {:>8} tokens {:>12} instructions {shown:>9}", count.0, count.1);
        if comparable && ratio.is_some_and(|ratio| ratio > TOLERANCE) {
            worse.push(name.clone());
        }
        counted.insert(name, count);
    }
    if record {
        if counted.len() != WORK.len() {
            return Err("a record has all pieces of work".to_owned());
        }
        let path = root().join(RECORD);
        fs::write(&path, page(&compiler, &counted))
            .map_err(|error| format!("{}: {error}", path.display()))?;
        println!("instructions: recorded in {RECORD}");
        return Ok(true);
    }
    if !comparable {
        println!("instructions: not held against {RECORD}, which another compiler made");
    }
    if worse.is_empty() {
        return Ok(true);
    }
    Err(format!(
        "over 3 % more instructions than in {RECORD}: {}; if there is a reason, --record and say it",
        worse.join(", ")
    ))
}

/// The tokens and the instructions of a piece of work.
fn count(work: &[&str; 3]) -> Result<(u64, u64), String> {
    let program: PathBuf = target().join("release/examples/instructions");
    let mut valgrind = Command::new("valgrind");
    valgrind.args([
        "--tool=callgrind",
        "--toggle-collect=*measured*",
        "--callgrind-out-file=/dev/null",
    ]);
    let ran = valgrind.arg(&program).args(work).output().map_err(|error| error.to_string())?;
    let words = String::from_utf8_lossy(&ran.stderr).into_owned();
    let tokens = String::from_utf8_lossy(&ran.stdout).trim().parse();
    let tokens = tokens.map_err(|_| format!("{}: no number of tokens\n{words}", work.join(" ")))?;
    let collected = collected(&words).filter(|&count| count > 0);
    let count =
        collected.ok_or_else(|| format!("{}: nothing was counted\n{words}", work.join(" ")))?;
    Ok((tokens, count))
}

/// What callgrind says that it collected.
fn collected(words: &str) -> Option<u64> {
    let (_, behind) = words.split_once("Collected :")?;
    behind.split_whitespace().next()?.parse().ok()
}

/// The counts in a record.
fn counts_of(record: &str) -> BTreeMap<String, u64> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [model, text, pass, _, count] = cells[..] else { return None };
        Some((format!("{model} {text} {pass}"), count.replace(',', "").parse().ok()?))
    };
    record.lines().filter_map(row).collect()
}

fn page(compiler: &str, counted: &BTreeMap<String, (u64, u64)>) -> String {
    let mut page = format!(
        "# Instruction counts\n\n\
         Instructions of fixed pieces of work on 100,000 bytes of fixtures, counted by Valgrind's callgrind \
         (which has AVX2\nand no AVX-512). `cargo xtask instructions` counts them again and fails over +3 %; \
         `--record` writes this page. The\nexample `instructions` of the crate tokenizer says what each \
         is. Counts of other compilers are not compared.\n\n{COMPILER}{compiler}\n\n\
         | model | text | pass | tokens | instructions |\n|---|---|---|--:|--:|\n"
    );
    for work in WORK {
        if let Some((tokens, count)) = counted.get(&work.join(" ")) {
            page += &format!("| {} | {tokens} | {} |\n", work.join(" | "), thousands(*count));
        }
    }
    page
}

/// A number with a comma before each three digits.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_back() {
        let counted = WORK.iter().zip(1u64..).map(|(work, n)| (work.join(" "), (n, n * 1_234_567)));
        let counted: BTreeMap<_, _> = counted.collect();
        let page = page("rustc 1", &counted);
        assert!(page.contains("Compiler: rustc 1\n"));
        let expected: BTreeMap<_, _> =
            counted.into_iter().map(|(name, (_, count))| (name, count)).collect();
        assert_eq!(counts_of(&page), expected);
    }

    #[test]
    fn callgrind_is_understood() {
        let words = "==1== Events    : Ir\n==1== Collected : 31712914\n==1==\n";
        assert_eq!(collected(words), Some(31_712_914));
        assert_eq!(collected("==1== nothing"), None);
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(thousands(123), "123");
    }
}
