//! Makes the files under `fixtures/` and their manifest.
//!
//! `cargo xtask gen` starts this:
//!
//! - without arguments: makes the generated files again and writes the manifest of all files;
//! - `--check`: changes nothing; fails if a generated file differs from what its generator makes,
//!   or if the manifest differs from the files;
//! - `--packages`: prints the packages that the other files are taken from, one a line:
//!   registry, name, version;
//! - `--from DIR`: also takes those files anew from packages unpacked as `DIR/registry/name`.

mod extract;
mod recipes;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use testkit::fixtures::{self, File, Manifest, sha256};

use recipes::{Make, PACKAGES, Recipe};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args.as_slice() {
        [] => write(None),
        ["--check"] => check(),
        ["--packages"] => {
            for package in PACKAGES {
                println!("{} {} {}", package.registry, package.name, package.version);
            }
            Ok(())
        }
        ["--from", dir] => write(Some(Path::new(dir))),
        _ => Err(vec!["usage: gen [--check | --packages | --from DIR]".to_owned()]),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problems) => {
            for problem in &problems {
                eprintln!("gen: {problem}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Makes files and the manifest.
fn write(packages: Option<&Path>) -> Result<(), Vec<String>> {
    let root = fixtures::root();
    let mut problems = Vec::new();
    for recipe in recipes::all() {
        let bytes = match (&recipe.make, packages) {
            (Make::Generate(generate), _) => generate(),
            (Make::Extract(extract), Some(dir)) => match extract(dir) {
                Ok(bytes) => bytes,
                Err(problem) => {
                    problems.push(format!("{}: {problem}", recipe.path));
                    continue;
                }
            },
            (Make::Extract(_), None) | (Make::Keep, _) => continue,
        };
        let path = root.join(&recipe.path);
        let folder = path.parent().expect("a file lies in a folder");
        let done = fs::create_dir_all(folder).and_then(|()| fs::write(&path, bytes));
        if let Err(error) = done {
            problems.push(format!("{}: {error}", recipe.path));
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let text = to_text(&describe(&root)?);
    fs::write(root.join("MANIFEST.json"), text)
        .map_err(|error| vec![format!("MANIFEST.json: {error}")])
}

/// Compares generated files with their generators, and the manifest with the files.
fn check() -> Result<(), Vec<String>> {
    let root = fixtures::root();
    let mut problems = Vec::new();
    let mut generated = 0;
    for recipe in recipes::all() {
        let Make::Generate(generate) = &recipe.make else { continue };
        generated += 1;
        match fs::read(root.join(&recipe.path)) {
            Ok(bytes) if bytes == generate() => {}
            Ok(_) => problems.push(format!(
                "{} differs from what {} makes; run `cargo xtask gen`",
                recipe.path, recipe.from
            )),
            Err(error) => problems.push(format!("{}: {error}", recipe.path)),
        }
    }
    let manifest = describe(&root).map_err(|more| [problems.clone(), more].concat())?;
    match fs::read_to_string(root.join("MANIFEST.json")) {
        Ok(text) if text == to_text(&manifest) => {}
        Ok(text) => {
            problems.push("MANIFEST.json differs from the files; run `cargo xtask gen`".to_owned());
            problems.extend(differences(&text, &manifest));
        }
        Err(error) => problems.push(format!("MANIFEST.json: {error}")),
    }
    if problems.is_empty() {
        let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
        println!(
            "gen: {} fixtures of {bytes} bytes are as the manifest says; {generated} are made anew \
             and equal",
            manifest.files.len()
        );
        return Ok(());
    }
    Err(problems)
}

/// Which files differ between a manifest's text and the files as they are.
fn differences(text: &str, now: &Manifest) -> Vec<String> {
    let Ok(then) = serde_json::from_str::<Manifest>(text) else {
        return vec!["MANIFEST.json does not have its form".to_owned()];
    };
    let then: BTreeMap<&str, &File> = then.files.iter().map(|f| (f.path.as_str(), f)).collect();
    let changed = now.files.iter().filter(|file| then.get(file.path.as_str()) != Some(file));
    changed.map(|file| format!("{} is not as the manifest says", file.path)).collect()
}

/// The manifest of the files as they are.
fn describe(root: &Path) -> Result<Manifest, Vec<String>> {
    let mut problems = Vec::new();
    let mut files = Vec::new();
    for recipe in recipes::all() {
        match fs::read(root.join(&recipe.path)) {
            Ok(bytes) => files.push(file(recipe, &bytes)),
            Err(error) => problems.push(format!(
                "{}: {error}; `cargo xtask gen fixtures` takes it from its package",
                recipe.path
            )),
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let known: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    for path in walk(root, Path::new("")) {
        if path != "MANIFEST.json" && !known.contains(path.as_str()) {
            problems.push(format!("{path} is in no recipe of the generator"));
        }
    }
    if problems.is_empty() {
        Ok(Manifest { sources: recipes::sources(), files })
    } else {
        Err(problems)
    }
}

fn file(recipe: Recipe, bytes: &[u8]) -> File {
    File {
        path: recipe.path,
        role: recipe.role.to_owned(),
        set: recipe.set,
        language: recipe.language.to_owned(),
        source: recipe.source,
        from: recipe.from,
        bytes: bytes.len() as u64,
        lines: bytes.iter().filter(|&&byte| byte == b'\n').count() as u64,
        sha256: sha256(bytes),
    }
}

/// Every file below `root/folder`, as paths under `root` with forward slashes.
fn walk(root: &Path, folder: &Path) -> Vec<String> {
    let mut paths = Vec::new();
    let Ok(entries) = fs::read_dir(root.join(folder)) else { return paths };
    for entry in entries.flatten() {
        let path = folder.join(entry.file_name());
        if entry.path().is_dir() {
            paths.extend(walk(root, &path));
        } else {
            paths.push(path.to_string_lossy().replace('\\', "/"));
        }
    }
    paths
}

fn to_text(manifest: &Manifest) -> String {
    let mut text = serde_json::to_string_pretty(manifest).expect("a manifest is plain data");
    text.push('\n');
    text
}
