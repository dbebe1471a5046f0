//! `tidy`: the rules that no compiler checks. Every rule is a function from text to problems, and
//! has a test on a text that breaks it.

mod code;
mod docs;
mod files;
mod graph;

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::json::Json;
use crate::run::{cargo, output, root};

pub(crate) const HELP: &str = "
usage: cargo xtask tidy

Checks what no compiler checks:

  graph   dependencies point one way; serde, clap and criterion stay where they belong; every
          dependency on another project's crate is listed; the algorithm crates stay lean, and the
          README shows their tree; every crate has a description and takes the workspace's lints
  code    libraries open no files and read no environment; nothing is left to be done; no unwrap
          outside tests
  files   no trailing white space, no absolute paths of a machine, at most 2 MB, every fixture in
          the manifest
  docs    links are relative and lead somewhere

The lists are constants in xtask/src/tidy: to add a dependency is to change one of them.

Example:
  cargo xtask tidy
";

/// What breaks a rule, and where.
#[derive(Debug, PartialEq, Eq)]
struct Problem {
    /// A path with a line, or the name of a crate.
    place: String,
    what: String,
}

impl Problem {
    fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into() }
    }

    /// At a line, counted from 1.
    fn at(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self::new(format!("{path}:{line}"), what)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode, String> {
    if !args.is_empty() {
        return Err(format!("takes no arguments, found {args:?}; see --help"));
    }
    check()?;
    Ok(ExitCode::SUCCESS)
}

/// All rules hold.
pub(crate) fn check() -> Result<(), String> {
    let mut problems = Vec::new();
    let sources = tracked()?;
    let metadata = cargo(&["metadata", "--format-version", "1", "--no-deps"]);
    let metadata = Json::parse(&output(&mut { metadata })?)?;
    let packages = graph::packages(&metadata)?;
    problems.extend(graph::layers(&packages));
    problems.extend(graph::others(&packages));
    problems.extend(graph::facts(&packages, &metadata));
    problems.extend(graph::manifests(&packages, &sources));
    problems.extend(lean(&sources)?);
    for source in &sources {
        problems.extend(files::size(source));
        if source.path.starts_with("fixtures/") {
            continue;
        }
        let Some(text) = &source.text else { continue };
        problems.extend(files::blanks(&source.path, text));
        problems.extend(files::machine_paths(&source.path, text));
        if source.path.ends_with(".rs") {
            let is_program = packages.iter().any(|package| package.programs.contains(&source.path));
            let place =
                if is_program { code::Place::Program } else { code::Place::of(&source.path) };
            problems.extend(code::check(&source.path, text, place));
        }
        if source.path.ends_with(".md") {
            problems.extend(docs::links(&source.path, text, &sources));
        }
    }
    problems.extend(files::fixtures(&sources)?);
    for problem in &problems {
        eprintln!("tidy: {problem}");
    }
    match problems.len() {
        0 => {
            println!("tidy: {} crates and {} files obey the rules", packages.len(), sources.len());
            Ok(())
        }
        n => Err(format!("{n} problems")),
    }
}

/// A file of the repository.
struct Source {
    /// Under the workspace's folder, with forward slashes.
    path: String,
    bytes: u64,
    /// None if it is not UTF-8.
    text: Option<String>,
}

/// The files that git tracks or would track.
fn tracked() -> Result<Vec<Source>, String> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let list = output(git.current_dir(root()))?;
    let mut paths: Vec<&str> = list.split('\0').filter(|path| !path.is_empty()).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut sources = Vec::new();
    for path in paths {
        // A file that was deleted but not yet committed is still listed.
        let Ok(bytes) = fs::read(root().join(path)) else { continue };
        sources.push(Source {
            path: path.to_owned(),
            bytes: bytes.len() as u64,
            text: String::from_utf8(bytes).ok(),
        });
    }
    Ok(sources)
}

/// The trees of the lean crates, as Cargo sees them and as the README shows them.
fn lean(sources: &[Source]) -> Result<Vec<Problem>, String> {
    let mut problems = Vec::new();
    let readme = sources.iter().find(|source| source.path == "README.md");
    let readme = readme.and_then(|source| source.text.as_deref());
    for name in graph::LEAN {
        if !Path::new(&root()).join("crates").join(name).exists() {
            problems.push(Problem::new(*name, "this crate does not exist"));
            continue;
        }
        let tree = cargo(&["tree", "--package", name, "--edges", "normal", "--charset", "utf8"]);
        let tree = output({ tree }.current_dir(root()))?;
        problems.extend(graph::lean(name, &tree, readme));
    }
    Ok(problems)
}
