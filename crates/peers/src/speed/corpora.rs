//! The texts: what is encoded, and what is trained on.

use std::fs;
use std::path::{Path, PathBuf};

use super::child::cut;

/// A text, and the file that contestants read it from.
#[derive(Clone, Debug)]
pub struct Corpus {
    /// Its name in reports.
    pub name: String,
    /// The text.
    pub text: String,
    /// The same as a file.
    pub file: PathBuf,
}

impl Corpus {
    /// Writes a text into `folder`.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn write(folder: &Path, name: &str, text: String) -> Result<Self, String> {
        let file = folder.join(format!("{name}.txt"));
        fs::write(&file, &text).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(Self { name: name.to_owned(), text, file })
    }
}

/// At most `bytes` of the text of a file or of all files under folders: of each an equal share from
/// its beginning, in turns of one document of about 2 KB, so that no part of the result is of one
/// file alone.
///
/// # Errors
///
/// If a file cannot be read or is not UTF-8.
pub fn mixed(paths: &[PathBuf], bytes: usize) -> Result<String, String> {
    let mut texts = Vec::new();
    for path in paths {
        let files = if path.is_dir() { crate::fuzz::files(path)? } else { vec![path.clone()] };
        for file in files {
            let text = fs::read_to_string(&file);
            texts.push(text.map_err(|error| format!("{}: {error}", file.display()))?);
        }
    }
    Ok(interleaved(&texts, bytes))
}

fn interleaved(texts: &[String], bytes: usize) -> String {
    let mut documents: Vec<_> = texts.iter().map(|text| cut(text).into_iter()).collect();
    let mut mixed = String::new();
    while mixed.len() < bytes {
        let before = mixed.len();
        for documents in &mut documents {
            let Some(document) = documents.next() else { continue };
            let room = document.len().min(bytes - mixed.len());
            let end = (0..=room).rev().find(|&end| document.is_char_boundary(end));
            mixed.push_str(&document[..end.unwrap_or(0)]);
        }
        if mixed.len() == before {
            break;
        }
    }
    mixed
}

/// A text in two: for training, and every tenth document of about 2 KB for judging what was
/// trained.
#[must_use]
pub fn divided(text: &str) -> (String, String) {
    let (mut train, mut held_out) = (String::new(), String::new());
    for (i, document) in cut(text).into_iter().enumerate() {
        if i % 10 == 9 { held_out.push_str(document) } else { train.push_str(document) }
    }
    (train, held_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_equal_shares() {
        let texts = ["a\n".repeat(5000), "b\n".repeat(100_000), "\u{4E00}\n".repeat(100_000)];
        let mixed = interleaved(&texts, 30_000);
        assert!(mixed.len() <= 30_000 && mixed.len() > 29_990, "{}", mixed.len());
        for c in ['a', 'b'] {
            let share = mixed.matches(c).count() * 2;
            assert!((8_000..=12_300).contains(&share), "{c}: {share}");
        }
        assert_eq!(interleaved(&texts[..1], usize::MAX), texts[0]);
        assert_eq!(interleaved(&[], 10), "");
    }

    #[test]
    fn a_tenth_is_held_out_and_nothing_is_lost() {
        let text = "0123456789abcde\n".repeat(12_800);
        let (train, held_out) = divided(&text);
        assert_eq!(train.len() + held_out.len(), text.len());
        assert_eq!(held_out.len(), text.len() / 10);
    }
}
