//! The commands of docs/tutorial.md, run as they stand there, give what stands below them.

mod common;

use common::{Folder, fixture};

/// A command of the tutorial.
struct Step {
    line: usize,
    arguments: Vec<String>,
    /// What it prints.
    shown: String,
}

/// The blocks that begin with `$ tok`.
fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(command) = line.strip_prefix("$ tok ") else { continue };
        let shown = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```");
        let shown = shown.collect::<Vec<_>>().join("\n");
        steps.push(Step { line: number + 1, arguments: words(command), shown });
    }
    steps
}

/// A command line cut as a shell does, with double quotes alone.
fn words(command: &str) -> Vec<String> {
    let parts = command.split('"').enumerate();
    let mut words = Vec::new();
    for (i, part) in parts {
        if i % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// The words of an output, for lines end where the terminal does. Seconds differ from run to run.
fn steady(output: &str) -> Vec<&str> {
    let words: Vec<&str> = output.split_whitespace().collect();
    let mut steady = words.clone();
    for (i, word) in words.iter().enumerate().skip(1) {
        if matches!(*word, "s" | "s,") && words[i - 1].parse::<f64>().is_ok() {
            steady[i - 1] = "0";
        }
    }
    steady
}

/// Whether the words are those that are shown; `...` stands for any.
fn matches(found: &[&str], shown: &[&str]) -> bool {
    match shown.split_first() {
        None => found.is_empty(),
        Some((&"...", rest)) => (0..=found.len()).any(|skipped| matches(&found[skipped..], rest)),
        Some((first, rest)) => found.first() == Some(first) && matches(&found[1..], rest),
    }
}

#[test]
fn every_command_prints_what_the_tutorial_shows() {
    let page = testkit::fixtures::root().join("../docs/tutorial.md");
    let page = std::fs::read_to_string(page).expect("the tutorial is there");
    let steps = steps(&page);
    assert!(steps.len() >= 6, "{} commands", steps.len());
    let folder = Folder::new();
    let texts = folder.path().join("texts");
    std::fs::create_dir(&texts).expect("the folder can be written");
    for file in std::fs::read_dir(fixture("corpora/prose")).expect("the prose is there") {
        let file = file.expect("an entry");
        std::fs::copy(file.path(), texts.join(file.file_name())).expect("it can be copied");
    }
    for step in steps {
        let output = common::tok()
            .args(&step.arguments)
            .current_dir(folder.path())
            .output()
            .expect("the program starts");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "line {}: {words}", step.line);
        let printed = [output.stderr.as_slice(), output.stdout.as_slice()].concat();
        let printed = String::from_utf8(printed).expect("text");
        assert!(
            matches(&steady(&printed), &steady(&step.shown)),
            "line {}: `tok {}` prints\n{printed}\nbut the tutorial shows\n{}",
            step.line,
            step.arguments.join(" "),
            step.shown
        );
    }
    assert!(folder.path().join("report.html").exists(), "the comparison wrote its page");
}

#[test]
fn seconds_are_not_compared_and_everything_else_is() {
    let check = |found: &str| matches(&steady(found), &steady("a 0.24 s, b 0.17 s\n...\nlast 5"));
    assert!(check("a 9.1 s, b 2 s\nx\ny\nlast 5"));
    assert!(check("a 9.1 s,\nb 2 s\nlast 5"));
    assert!(!check("a 9.1 s, b 2 s\nlast 6"));
    assert!(!check("a 9.1 s, c 2 s\nlast 5"));
    assert_eq!(words("encode \"a b\" --json"), ["encode", "a b", "--json"]);
}
