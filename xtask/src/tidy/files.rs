//! Rules about files of any kind.

use std::collections::BTreeSet;

use crate::json::Json;

use super::{Problem, Source};

/// The most bytes that a file may have.
const MAX_BYTES: u64 = 2_000_000;

/// Folders that exist on one machine alone. A path is found where no name stands in front of it.
const MACHINE_FOLDERS: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/Us", "ers/"),
    concat!("/wo", "rk/"),
    concat!("/tm", "p/"),
    concat!("/va", "r/"),
    concat!("C:", "\\"),
];

/// How the path of a made-up person goes on, for examples in documentation.
const MADE_UP: &[&str] = &["me/", "user/"];

/// A file is small enough to be kept in git.
pub(super) fn size(source: &Source) -> Option<Problem> {
    let too_large = source.bytes > MAX_BYTES;
    too_large.then(|| {
        Problem::new(&source.path, format!("has {} bytes; {MAX_BYTES} are allowed", source.bytes))
    })
}

/// No white space at the ends of lines, one line end at the end, no carriage returns.
pub(super) fn blanks(path: &str, text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (number, line) in text.split('\n').enumerate() {
        if line.ends_with('\r') {
            problems.push(Problem::at(path, number + 1, "a carriage return"));
        } else if line.ends_with([' ', '\t']) {
            problems.push(Problem::at(path, number + 1, "white space at the end of the line"));
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        problems.push(Problem::new(path, "no line end at the end"));
    }
    if text.ends_with("\n\n") {
        problems.push(Problem::new(path, "empty lines at the end"));
    }
    problems
}

/// No absolute paths of a machine.
pub(super) fn machine_paths(path: &str, text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for folder in MACHINE_FOLDERS {
            let starts_there = |at: usize| {
                let before = line[..at].chars().next_back();
                let behind = &line[at + folder.len()..];
                !before.is_some_and(|c| c.is_alphanumeric() || "._-/~*{}$)".contains(c))
                    && !MADE_UP.iter().any(|person| behind.starts_with(person))
            };
            if line.match_indices(folder).any(|(at, _)| starts_there(at)) {
                problems.push(Problem::at(path, number + 1, format!("a path below {folder}")));
            }
        }
    }
    problems
}

/// Every fixture is in the manifest, and everything in the manifest is there.
pub(super) fn fixtures(sources: &[Source]) -> Result<Vec<Problem>, String> {
    let manifest = sources.iter().find(|source| source.path == "fixtures/MANIFEST.json");
    let Some(manifest) = manifest.and_then(|source| source.text.as_deref()) else {
        return Ok(vec![Problem::new("fixtures/MANIFEST.json", "is missing")]);
    };
    let manifest = Json::parse(manifest)?;
    let paths = manifest.get("files").items().iter();
    let listed: BTreeSet<&str> = paths.filter_map(|file| file.get("path").str()).collect();
    let present = sources.iter().filter_map(|source| source.path.strip_prefix("fixtures/"));
    let present: BTreeSet<&str> = present.filter(|path| *path != "MANIFEST.json").collect();
    let problem = |path: &&str, what| Problem::new(format!("fixtures/{path}"), what);
    let unlisted = present.difference(&listed).map(|path| problem(path, "is not in the manifest"));
    let missing = listed.difference(&present).map(|path| problem(path, "is in the manifest alone"));
    Ok(unlisted.chain(missing).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), bytes: text.len() as u64, text: Some(text.to_owned()) }
    }

    #[test]
    fn large_files_are_found() {
        let mut file = source("a", "");
        assert_eq!(size(&file), None);
        file.bytes = MAX_BYTES + 1;
        assert!(size(&file).is_some());
    }

    #[test]
    fn blanks_in_the_wrong_place_are_found() {
        assert_eq!(blanks("a", "one\n\n two\n"), []);
        assert_eq!(blanks("a", ""), []);
        for text in ["one \n", "one\t\ntwo\n", "one\r\n", "one", "one\n\n"] {
            assert_eq!(blanks("a", text).len(), 1, "{text:?}");
        }
        assert_eq!(blanks("a", "one\ntwo \n")[0].place, "a:2");
    }

    #[test]
    fn paths_of_a_machine_are_found() {
        for folder in MACHINE_FOLDERS {
            for text in [format!("cd {folder}x"), format!("\"{folder}x\""), format!("{folder}x")] {
                assert_eq!(machine_paths("a", &text).len(), 1, "{text:?}");
            }
            let relative = format!("target{folder}x and https://example.org{folder}x");
            let made_up = format!("{folder}me/x.txt");
            for text in [relative, made_up] {
                assert_eq!(machine_paths("a", &text), [], "{text:?}");
            }
        }
    }

    #[test]
    fn fixtures_outside_of_the_manifest_are_found() {
        let manifest = r#"{"files": [{"path": "a.txt"}, {"path": "b.txt"}]}"#;
        let manifest = || source("fixtures/MANIFEST.json", manifest);
        let (a, b) = (|| source("fixtures/a.txt", "a"), || source("fixtures/b.txt", "b"));
        let c = source("fixtures/c.txt", "c");
        assert_eq!(fixtures(&[manifest(), a(), b()]).unwrap(), []);
        assert_eq!(fixtures(&[manifest(), a()]).unwrap()[0].place, "fixtures/b.txt");
        assert_eq!(fixtures(&[manifest(), a(), b(), c]).unwrap()[0].place, "fixtures/c.txt");
        assert_eq!(fixtures(&[a()]).unwrap()[0].what, "is missing");
        assert!(fixtures(&[source("fixtures/MANIFEST.json", "{")]).is_err());
    }
}
