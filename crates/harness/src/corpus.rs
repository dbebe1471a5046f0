//! Texts, cut into documents, and their division into a training and a held-out part.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use sha2::{Digest, Sha256};

/// A document: the unit of splitting and of the bootstrap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doc {
    /// The text.
    pub text: String,
    /// The language, a BCP-47 tag: `zxx` for none, `und` where it is not known.
    pub language: String,
    /// In a parallel corpus: which content this is, the same number in every language.
    pub line: Option<usize>,
}

/// A named set of documents.
#[derive(Clone, Debug, PartialEq)]
pub struct Corpus {
    /// The name.
    pub name: String,
    /// What kind of text it is: `parallel`, `prose`, `code`, ..
    pub role: String,
    /// The documents, in order.
    pub documents: Vec<Doc>,
    /// The share of documents to hold out, where it differs from the plan's.
    pub held_out: Option<f64>,
}

/// About how long a document is that is cut from a longer text, in bytes.
pub const DOCUMENT_BYTES: usize = 2048;

impl Corpus {
    /// A corpus without documents.
    #[must_use]
    pub fn new(name: &str, role: &str) -> Self {
        let (name, role) = (name.to_owned(), role.to_owned());
        Self { name, role, documents: Vec::new(), held_out: None }
    }

    /// Adds `text`, cut after the first line end behind every [`DOCUMENT_BYTES`]. The documents
    /// concatenate to the text.
    pub fn push_text(&mut self, language: &str, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let end = match rest.as_bytes().get(DOCUMENT_BYTES..) {
                Some(tail) => tail.iter().position(|&b| b == b'\n').map(|i| DOCUMENT_BYTES + i + 1),
                None => None,
            };
            let (document, tail) = rest.split_at(end.unwrap_or(rest.len()));
            self.push(language, document, None);
            rest = tail;
        }
    }

    /// Adds every line that is not empty as a document, without its end.
    pub fn push_lines(&mut self, language: &str, text: &str) {
        for line in text.lines().filter(|line| !line.is_empty()) {
            self.push(language, line, None);
        }
    }

    /// Adds one document.
    pub fn push(&mut self, language: &str, text: &str, line: Option<usize>) {
        let (text, language) = (text.to_owned(), language.to_owned());
        self.documents.push(Doc { text, language, line });
    }

    /// A parallel corpus: line n of every text has the same content. Lines that are empty in some
    /// language are left out of it.
    ///
    /// # Errors
    ///
    /// If the texts have different numbers of lines.
    pub fn parallel<L: AsRef<str>, T: AsRef<str>>(
        name: &str,
        texts: &[(L, T)],
    ) -> Result<Self, CorpusError> {
        let mut corpus = Self::new(name, "parallel");
        let mut first: Option<(&str, usize)> = None;
        for (language, text) in texts {
            let (language, text) = (language.as_ref(), text.as_ref());
            let lines = text.lines().count();
            let &mut (other, expected) = first.get_or_insert((language, lines));
            if lines != expected {
                return Err(CorpusError::new(format!(
                    "{name} is not parallel: {language} has {lines} lines, {other} has {expected}"
                )));
            }
            for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
                corpus.push(language, line, Some(n));
            }
        }
        Ok(corpus)
    }

    /// Whether a document is held out, for a share of all documents and a seed: decided by the
    /// SHA-256 of its text, so that repeated documents stay together; in a parallel corpus by its
    /// line, so that translations do.
    #[must_use]
    pub fn holds_out(&self, document: &Doc, share: f64, seed: u64) -> bool {
        let share = self.held_out.unwrap_or(share);
        let mut hash = Sha256::new();
        hash.update(seed.to_le_bytes());
        match document.line {
            Some(line) => {
                hash.update(self.name.as_bytes());
                hash.update([0]);
                hash.update((line as u64).to_le_bytes());
            }
            None => hash.update(document.text.as_bytes()),
        }
        let digest = hash.finalize();
        let mut head = [0; 8];
        head.copy_from_slice(&digest[..8]);
        (u64::from_be_bytes(head) as f64) < share * 18_446_744_073_709_551_616.0
    }
}

/// A text or manifest that makes no corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorpusError {
    message: String,
}

impl CorpusError {
    fn new(message: String) -> Self {
        Self { message }
    }
}

impl fmt::Display for CorpusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CorpusError {}

/// `MANIFEST.json` of a folder of fixtures, as far as it matters here.
#[derive(Clone, Debug, Deserialize)]
pub struct FixtureManifest {
    /// The files.
    pub files: Vec<FixtureFile>,
}

/// A file of a [`FixtureManifest`].
#[derive(Clone, Debug, Deserialize)]
pub struct FixtureFile {
    /// The path relative to the manifest.
    pub path: String,
    /// `parallel`, `sentences`, `prose`, `code`, `data`, `generated`, `pathological`; others are no
    /// corpora.
    pub role: String,
    /// The set that it belongs to.
    #[serde(default)]
    pub set: String,
    /// A BCP-47 tag.
    #[serde(default)]
    pub language: String,
    /// The hash of its bytes.
    pub sha256: String,
}

impl FixtureManifest {
    /// The manifest of its JSON text.
    ///
    /// # Errors
    ///
    /// If the text does not have this form.
    pub fn parse(json: &[u8]) -> Result<Self, CorpusError> {
        serde_json::from_slice(json)
            .map_err(|error| CorpusError::new(format!("the manifest of the fixtures: {error}")))
    }

    /// The corpora: each parallel set, each generated and data set by its name, and all files of
    /// the other roles together under the name of the role. `read` gives the bytes of a file.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, does not have the hash of the manifest, or is not UTF-8; or if
    /// there is no corpus at all.
    pub fn corpora(
        &self,
        mut read: impl FnMut(&str) -> Result<Vec<u8>, String>,
    ) -> Result<Vec<Corpus>, CorpusError> {
        let mut parallel: BTreeMap<&str, Vec<(&str, String)>> = BTreeMap::new();
        let mut others: BTreeMap<&str, Corpus> = BTreeMap::new();
        for file in &self.files {
            let FixtureFile { path, role, set, language, sha256 } = file;
            let name = match role.as_str() {
                "parallel" | "generated" | "data" => set.as_str(),
                "sentences" | "prose" | "code" | "pathological" => role.as_str(),
                _ => continue,
            };
            let fail = |problem: String| CorpusError::new(format!("fixture {path}: {problem}"));
            let bytes = read(path).map_err(fail)?;
            let found = crate::manifest::sha256(&bytes);
            if found != *sha256 {
                return Err(fail(format!("its hash is {found}, the manifest says {sha256}")));
            }
            let text = String::from_utf8(bytes).map_err(|error| fail(error.to_string()))?;
            if role == "parallel" {
                parallel.entry(name).or_default().push((language, text));
                continue;
            }
            let corpus = others.entry(name).or_insert_with(|| Corpus::new(name, role));
            match role.as_str() {
                "sentences" => corpus.push_lines(language, &text),
                _ => corpus.push_text(language, &text),
            }
        }
        let mut corpora = Vec::new();
        for (name, texts) in &parallel {
            corpora.push(Corpus::parallel(name, texts)?);
        }
        corpora.extend(others.into_values());
        if corpora.is_empty() {
            return Err(CorpusError::new("the manifest of the fixtures names no corpus".into()));
        }
        Ok(corpora)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_concatenate_to_the_text() {
        let mut text = "a line of text\r\n".repeat(700);
        text.push_str(&"x".repeat(5000));
        let mut corpus = Corpus::new("t", "prose");
        corpus.push_text("en", &text);
        assert!(corpus.documents.len() >= 5);
        let joined: String = corpus.documents.iter().map(|d| d.text.as_str()).collect();
        assert_eq!(joined, text);
        assert!(corpus.documents[..4].iter().all(|d| d.text.ends_with('\n')));
        let mut empty = Corpus::new("t", "prose");
        empty.push_text("en", "");
        assert!(empty.documents.is_empty());
    }

    #[test]
    fn characters_are_never_cut() {
        // Position 2048 falls inside of a character; the cut is at the line end behind it.
        let text = format!("{}\n{}", "\u{6D77}".repeat(900), "\u{6D77}".repeat(900));
        let mut corpus = Corpus::new("t", "prose");
        corpus.push_text("zh", &text);
        assert_eq!(corpus.documents.len(), 2);
    }

    #[test]
    fn translations_stay_together_and_the_share_is_kept() {
        let lines = |word: &str| (0..400).map(|i| format!("{word} {i}\n")).collect::<String>();
        let texts = [("en", lines("word")), ("vi", lines("từ"))];
        let corpus = Corpus::parallel("p", &texts).unwrap();
        let held: Vec<bool> =
            corpus.documents.iter().map(|d| corpus.holds_out(d, 0.25, 1)).collect();
        assert_eq!(held[..400], held[400..]);
        let n = held[..400].iter().filter(|&&h| h).count();
        assert!((70..130).contains(&n), "{n}");
        let other: Vec<bool> =
            corpus.documents.iter().map(|d| corpus.holds_out(d, 0.25, 2)).collect();
        assert_ne!(held, other);
        assert!(!corpus.holds_out(&corpus.documents[0], 0.0, 1));
        assert!(corpus.holds_out(&corpus.documents[0], 1.0, 1));
    }

    #[test]
    fn unequal_lines_are_not_parallel() {
        let error = Corpus::parallel("p", &[("en", "a\nb\n"), ("vi", "a\n")]).unwrap_err();
        assert_eq!(error.to_string(), "p is not parallel: vi has 1 lines, en has 2");
    }

    #[test]
    fn manifests_are_checked() {
        let json = |sha: &str| {
            format!(
                r#"{{"files":[{{"path":"a.txt","role":"prose","set":"a","language":"en","sha256":"{sha}"}}]}}"#
            )
        };
        let good = crate::manifest::sha256(b"text\n");
        let manifest = FixtureManifest::parse(json(&good).as_bytes()).unwrap();
        let corpora = manifest.corpora(|_| Ok(b"text\n".to_vec())).unwrap();
        assert_eq!((corpora[0].name.as_str(), corpora[0].documents.len()), ("prose", 1));
        let changed = manifest.corpora(|_| Ok(b"texts\n".to_vec())).unwrap_err();
        assert!(changed.to_string().contains("a.txt: its hash is"), "{changed}");
        assert!(manifest.corpora(|_| Err("gone".into())).is_err());
        assert!(FixtureManifest::parse(b"{}").is_err());
        assert!(FixtureManifest { files: vec![] }.corpora(|_| Ok(vec![])).is_err());
    }
}
