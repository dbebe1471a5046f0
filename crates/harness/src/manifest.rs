//! What a report was made from, so that it can be checked and repeated.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Inputs, options, versions and machine of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// When the report was made, UTC, as `2026-01-31T23:59:59Z`.
    pub created: String,
    /// The git commit of the working tree, with `+changes` behind it where files differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Options by name, as given or by default.
    pub options: BTreeMap<String, String>,
    /// [`Manifest::options_digest`] of the options.
    pub options_sha256: String,
    /// Versions of programs and crates.
    pub versions: BTreeMap<String, String>,
    /// The machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// Seconds that it took.
    #[serde(default)]
    pub seconds: u64,
    /// The files that were read.
    pub files: Vec<FileHash>,
    /// SHA-256 over the JSON text with this value as 64 zeros; see [`seal`].
    #[serde(default)]
    pub report_sha256: String,
}

/// The machine that measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The name of the processor.
    pub cpu: String,
    /// Logical processors that the process may use.
    pub threads: usize,
    /// Memory in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Operating system and architecture.
    pub system: String,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHash {
    /// Its path, relative to the folder of the inputs.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// SHA-256, in lower-case hexadecimal.
    pub sha256: String,
}

/// What a manifest check found to be different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The file or part of the report.
    pub what: String,
    /// What the manifest says.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, expected, found } = self;
        write!(f, "{what}: the report says {expected}, but it is {found}")
    }
}

impl Manifest {
    /// Records a file.
    pub fn add_file(&mut self, path: &str, bytes: &[u8]) {
        self.files.push(FileHash {
            path: path.to_owned(),
            bytes: bytes.len() as u64,
            sha256: sha256(bytes),
        });
    }

    /// SHA-256 over the lines `name=value` of the options.
    #[must_use]
    pub fn options_digest(&self) -> String {
        let lines: String = self.options.iter().map(|(k, v)| format!("{k}={v}\n")).collect();
        sha256(lines.as_bytes())
    }

    /// Holds the options and files against their hashes. `read` gives the bytes of a file of the
    /// manifest, or says why it cannot.
    pub fn check(&self, mut read: impl FnMut(&str) -> Result<Vec<u8>, String>) -> Vec<Mismatch> {
        let mut mismatches = Vec::new();
        let mut compare = |what: &str, expected: &str, found: String| {
            if expected != found {
                let expected = expected.to_owned();
                mismatches.push(Mismatch { what: what.to_owned(), expected, found });
            }
        };
        compare("options", &self.options_sha256, self.options_digest());
        for file in &self.files {
            let found = match read(&file.path) {
                Ok(bytes) => sha256(&bytes),
                Err(problem) => problem,
            };
            compare(&file.path, &file.sha256, found);
        }
        mismatches
    }
}

/// SHA-256 of bytes, in lower-case hexadecimal.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

const SEAL: &str = "\"report_sha256\": \"";
const UNSEALED: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Puts into the JSON text of a report the SHA-256 of that text, in which the place of the hash
/// holds 64 zeros or nothing. Any later change to the text breaks the seal.
///
/// `None` if the text has no `"report_sha256": ".."` to put it in.
#[must_use]
pub fn seal(json: &str) -> Option<String> {
    let blank = blank(json)?;
    let hash = sha256(blank.text.as_bytes());
    Some(blank.text.replacen(&format!("{SEAL}{UNSEALED}"), &format!("{SEAL}{hash}"), 1))
}

/// Checks the seal of [`seal`]; `None` if it holds.
#[must_use]
pub fn broken_seal(json: &str) -> Option<Mismatch> {
    let what = "report".to_owned();
    match blank(json) {
        None => Some(Mismatch { what, expected: "a seal".into(), found: "without one".into() }),
        Some(Blank { text, value }) => {
            let found = sha256(text.as_bytes());
            (found != value).then_some(Mismatch { what, expected: value, found })
        }
    }
}

struct Blank {
    text: String,
    value: String,
}

/// The text with zeros in the place of the hash, and the hash that was there.
fn blank(json: &str) -> Option<Blank> {
    let start = json.find(SEAL)? + SEAL.len();
    let end = start + json[start..].find('"')?;
    let text = format!("{}{UNSEALED}{}", &json[..start], &json[end..]);
    Some(Blank { text, value: json[start..end].to_owned() })
}

/// The UTC date and time of seconds since 1970, as `2026-01-31T23:59:59Z`. Proleptic Gregorian
/// calendar (Hinnant 2013, "chrono-compatible low-level date algorithms").
#[must_use]
pub fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days from 0000-03-01, in eras of 400 years.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_known_seconds() {
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_000_000_000, "2001-09-09T01:46:40Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds), date);
        }
    }

    #[test]
    fn a_seal_breaks_when_anything_changes() {
        let json = "{\n  \"a\": 1.25,\n  \"report_sha256\": \"\"\n}";
        let sealed = seal(json).unwrap();
        assert_eq!(broken_seal(&sealed), None);
        assert_eq!(
            seal(&sealed).as_deref(),
            Some(sealed.as_str()),
            "sealing twice changes nothing"
        );
        assert!(broken_seal(&sealed.replace("1.25", "1.26")).is_some());
        assert!(broken_seal(json).is_some());
        assert!(broken_seal("{}").is_some());
        assert_eq!(seal("{}"), None);
    }

    #[test]
    fn changed_and_missing_files_and_options_are_found() {
        let mut manifest = Manifest::default();
        manifest.options.insert("seed".into(), "1".into());
        manifest.options_sha256 = manifest.options_digest();
        manifest.add_file("a.txt", b"abc");
        manifest.add_file("b.txt", b"");
        let read = |path: &str| match path {
            "a.txt" => Ok(b"abc".to_vec()),
            _ => Ok(Vec::new()),
        };
        assert_eq!(manifest.check(read), []);
        let found = manifest.check(|path| match path {
            "a.txt" => Ok(b"abd".to_vec()),
            _ => Err("missing".to_owned()),
        });
        let names: Vec<&str> = found.iter().map(|m| m.what.as_str()).collect();
        assert_eq!(names, ["a.txt", "b.txt"]);
        manifest.options.insert("seed".into(), "2".into());
        assert_eq!(manifest.check(read)[0].what, "options");
    }
}
