//! Access to the fixtures of this repository, by their path under `fixtures/`.
//!
//! A missing fixture fails the test that wanted it, with its path and how to get it: a test that
//! is skipped because its data is gone proves nothing.
//!
//! ```
//! use testkit::fixtures;
//!
//! let manifest = fixtures::manifest();
//! let vietnamese = manifest.parallel("udhr", "vi").expect("a language of this set");
//! let english = manifest.parallel("udhr", "en").expect("a language of this set");
//! assert_eq!(fixtures::lines(&vietnamese.path).len(), fixtures::lines(&english.path).len());
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The folder that holds the fixtures.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// The bytes of a fixture.
///
/// # Panics
///
/// If it cannot be read: the words name the path and how to get it.
#[must_use]
pub fn bytes(path: &str) -> Vec<u8> {
    read(&root(), path).unwrap_or_else(|problem| panic!("{problem}"))
}

/// The text of a fixture.
///
/// # Panics
///
/// If it cannot be read or is not UTF-8.
#[must_use]
pub fn text(path: &str) -> String {
    match String::from_utf8(bytes(path)) {
        Ok(text) => text,
        Err(error) => panic!("fixture {path} is not UTF-8: {error}"),
    }
}

/// The lines of a fixture, without their ends.
///
/// # Panics
///
/// If it cannot be read or is not UTF-8.
#[must_use]
pub fn lines(path: &str) -> Vec<String> {
    text(path).lines().map(str::to_owned).collect()
}

/// `MANIFEST.json`.
///
/// # Panics
///
/// If it cannot be read or does not have the form of [`Manifest`].
#[must_use]
pub fn manifest() -> Manifest {
    match serde_json::from_str(&text("MANIFEST.json")) {
        Ok(manifest) => manifest,
        Err(error) => panic!("fixture MANIFEST.json does not have its form: {error}"),
    }
}

/// The SHA-256 of bytes, in lower-case hexadecimal.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read(root: &Path, path: &str) -> Result<Vec<u8>, String> {
    let place = root.join(path);
    fs::read(&place).map_err(|error| {
        format!(
            "fixture {path} is missing: {}: {error}. It is part of the repository: get it back \
             with `git checkout -- fixtures/{path}`, or make all fixtures anew with `cargo xtask \
             gen fixtures`",
            place.display()
        )
    })
}

/// What the fixtures are, where they come from, and under which licences.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Where files come from, by the name that [`File::source`] uses.
    pub sources: BTreeMap<String, Source>,
    /// Every file under `fixtures/` but the manifest, sorted by path.
    pub files: Vec<File>,
}

/// Where files come from.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// `npm`, `pypi`, `crates`, or `project` for what this project wrote or generates.
    pub registry: String,
    /// The package's name in its registry; the crate that generates the file for `project`.
    pub package: String,
    /// The package's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The package's licence, an SPDX expression.
    pub licence: String,
    /// The licence or status of the text itself, where it is not the package's own.
    pub text_licence: String,
    /// The file with the package's licence, under `fixtures/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub licence_file: Option<String>,
    /// What the text is and what was done to it.
    pub about: String,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The path under `fixtures/`, with forward slashes.
    pub path: String,
    /// What it is for: `parallel`, `sentences`, `prose`, `code`, `data`, `generated`,
    /// `pathological`, `vectors`, `samples`, `licence` or `about`.
    pub role: String,
    /// The corpus that it belongs to: files of one `parallel` set agree line by line.
    pub set: String,
    /// The language, a BCP-47 tag: `zxx` for what is not in a language, `mul` for several.
    pub language: String,
    /// A key of [`Manifest::sources`].
    pub source: String,
    /// The file or files of the package, or the call that generates this one.
    pub from: String,
    /// Bytes.
    pub bytes: u64,
    /// Line ends.
    pub lines: u64,
    /// The SHA-256 of the bytes, in lower-case hexadecimal.
    pub sha256: String,
}

impl Manifest {
    /// The files of a role, in order of path.
    pub fn with_role<'m>(&'m self, role: &'m str) -> impl Iterator<Item = &'m File> {
        self.files.iter().filter(move |file| file.role == role)
    }

    /// The file of a parallel set in a language.
    #[must_use]
    pub fn parallel(&self, set: &str, language: &str) -> Option<&File> {
        self.with_role("parallel").find(|file| file.set == set && file.language == language)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_fixture_says_which_and_how_to_get_it() {
        let problem = read(&root(), "corpora/no-such-file.txt").unwrap_err();
        assert!(problem.contains("corpora/no-such-file.txt is missing"), "{problem}");
        assert!(problem.contains("cargo xtask gen fixtures"), "{problem}");
    }

    #[test]
    #[should_panic(expected = "no-such-file.txt is missing")]
    fn missing_fixture_fails_the_test_that_wants_it() {
        let _ = bytes("corpora/no-such-file.txt");
    }

    #[test]
    fn sha256_equals_the_published_value() {
        // FIPS 180-4, example "abc".
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), expected);
    }
}
