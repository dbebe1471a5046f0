//! The project's tasks, as `cargo xtask TASK`. Standard library only; starts programs.
//!
//! - [`ci`]: every check of the project, one after the other, with the time of each.
//! - [`tidy`]: what a compiler does not check: who may depend on whom, what may be in a file.
//! - [`generate`]: the fixtures and their manifest.
//! - [`programs`]: `bench-all`, `compare` and `conformance` build a program and start it.
//! - [`instructions`]: counts the instructions of fixed pieces of work and compares with a record.
//! - [`browser`]: opens the report in a real browser.

mod browser;
mod ci;
mod generate;
mod instructions;
mod json;
mod programs;
mod run;
mod tidy;

use std::process::ExitCode;

/// A task: what it is called, what it says about itself, what it does with its arguments.
struct Task {
    name: &'static str,
    about: &'static str,
    help: &'static str,
    run: fn(&[String]) -> Result<ExitCode, String>,
}

const TASKS: &[Task] = &[
    Task {
        name: "ci",
        about: "run every check, and print the time of each",
        help: ci::HELP,
        run: ci::run,
    },
    Task {
        name: "tidy",
        about: "check the rules that no compiler checks",
        help: tidy::HELP,
        run: tidy::run,
    },
    Task {
        name: "gen",
        about: "make the generated fixtures and the manifest, or check them",
        help: generate::HELP,
        run: generate::run,
    },
    Task {
        name: "bench-all",
        about: "train, verify, measure and time everything; write the report",
        help: programs::BENCH_ALL_HELP,
        run: programs::bench_all,
    },
    Task {
        name: "peers-setup",
        about: "install the Python tokenizers that ours are compared with",
        help: programs::PEERS_SETUP_HELP,
        run: programs::peers_setup,
    },
    Task {
        name: "compare",
        about: "compare the algorithms on your own text",
        help: programs::COMPARE_HELP,
        run: programs::compare,
    },
    Task {
        name: "conformance",
        about: "compare ids with those of the reference libraries",
        help: programs::CONFORMANCE_HELP,
        run: programs::conformance,
    },
    Task {
        name: "instructions",
        about: "count the instructions of fixed work, and compare with the record",
        help: instructions::HELP,
        run: instructions::run,
    },
    Task {
        name: "browser-test",
        about: "open the report in a headless browser and look at it",
        help: browser::HELP,
        run: browser::run,
    },
];

/// Wrong use of a task; the same code as `tok` has for it.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(name) = args.first() else {
        eprint!("{}", overview());
        return ExitCode::from(USAGE);
    };
    if matches!(name.as_str(), "-h" | "--help" | "help") {
        print!("{}", overview());
        return ExitCode::SUCCESS;
    }
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        eprintln!("xtask: there is no task {name:?}\n");
        eprint!("{}", overview());
        return ExitCode::from(USAGE);
    };
    let args = &args[1..];
    // What stands behind `--` belongs to the program that the task starts.
    let own = args.split(|arg| arg == "--").next().unwrap_or_default();
    if own.iter().any(|arg| arg == "-h" || arg == "--help") {
        println!("{}", task.help.trim());
        return ExitCode::SUCCESS;
    }
    match (task.run)(args) {
        Ok(code) => code,
        Err(problem) => {
            eprintln!("xtask {name}: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn overview() -> String {
    let mut text = String::from("usage: cargo xtask TASK [OPTIONS]\n\n");
    for task in TASKS {
        text.push_str(&format!("  {:14}{}\n", task.name, task.about));
    }
    text.push_str("\n`cargo xtask TASK --help` says more and has an example.\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_says_how_it_is_used_and_has_an_example() {
        for task in TASKS {
            assert!(task.help.contains(&format!("cargo xtask {}", task.name)), "{}", task.name);
            assert!(task.help.contains("Example"), "{}", task.name);
            assert!(overview().contains(task.about), "{}", task.name);
        }
    }
}
