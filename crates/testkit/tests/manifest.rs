//! The fixtures are what their manifest says, and hold together.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use testkit::fixtures;

/// Languages that the comparison must be able to show in parallel text.
const LANGUAGES: &[&str] = &[
    "am", "ar", "de", "en", "es", "fi", "fr", "hi", "ja", "km", "ko", "ru", "th", "tr", "vi",
    "zh-Hans",
];

#[test]
fn every_listed_file_is_there_with_its_size_lines_and_hash() {
    for file in fixtures::manifest().files {
        let bytes = fixtures::bytes(&file.path);
        let lines = bytes.iter().filter(|&&byte| byte == b'\n').count();
        let found = (bytes.len() as u64, lines as u64, fixtures::sha256(&bytes));
        assert_eq!(found, (file.bytes, file.lines, file.sha256), "{}", file.path);
    }
}

#[test]
fn every_file_is_listed_once_in_order() {
    let manifest = fixtures::manifest();
    let listed: Vec<&str> = manifest.files.iter().map(|file| file.path.as_str()).collect();
    let mut sorted = listed.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(listed, sorted);
    let mut found = BTreeSet::new();
    walk(&fixtures::root(), "", &mut found);
    assert!(found.remove("MANIFEST.json"));
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), listed);
}

#[test]
fn every_source_is_known_and_brings_its_licence() {
    let manifest = fixtures::manifest();
    let used: BTreeSet<&String> = manifest.files.iter().map(|file| &file.source).collect();
    assert_eq!(used, manifest.sources.keys().collect());
    for (name, source) in &manifest.sources {
        let texts = [&source.licence, &source.text_licence, &source.about];
        assert!(texts.iter().all(|text| !text.is_empty()), "{name}");
        if source.registry == "project" {
            assert!(source.version.is_none() && source.licence_file.is_none(), "{name}");
        } else {
            assert!(source.version.is_some(), "{name}");
            let licence = source.licence_file.as_ref().expect("a package has a licence");
            assert!(fixtures::text(licence).len() > 100, "{name}: {licence}");
        }
    }
}

#[test]
fn files_are_small_and_together_under_the_limit() {
    let manifest = fixtures::manifest();
    for file in &manifest.files {
        assert!(file.bytes <= 2_000_000, "{} has {} bytes", file.path, file.bytes);
    }
    let total: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    assert!(total <= 12_000_000, "{total} bytes");
}

#[test]
fn parallel_files_agree_line_by_line() {
    let mut sets: BTreeMap<String, Vec<(String, Vec<String>)>> = BTreeMap::new();
    let manifest = fixtures::manifest();
    for file in manifest.with_role("parallel") {
        let lines = fixtures::lines(&file.path);
        for (number, line) in lines.iter().enumerate() {
            assert!(!line.trim().is_empty(), "{} line {} is empty", file.path, number + 1);
        }
        sets.entry(file.set.clone()).or_default().push((file.language.clone(), lines));
    }
    for (set, languages) in &sets {
        let expected = languages[0].1.len();
        for (language, lines) in languages {
            assert_eq!(lines.len(), expected, "{set}: {language} and {}", languages[0].0);
        }
        for (index, (language, lines)) in languages.iter().enumerate() {
            for (other, same) in &languages[..index] {
                assert_ne!(lines, same, "{set}: {language} is a copy of {other}");
            }
        }
    }
    for language in LANGUAGES {
        assert!(manifest.parallel("udhr", language).is_some(), "{language}");
    }
}

#[test]
fn pretokenizer_vectors_cover_their_inputs() {
    let vectors: serde_json::Value =
        serde_json::from_str(&fixtures::text("vectors/pretok.json")).unwrap();
    let cases = vectors["cases"].as_array().unwrap();
    assert!(cases.len() >= 40);
    let mut names = BTreeSet::new();
    for case in cases {
        let name = case["name"].as_str().unwrap();
        assert!(names.insert(name), "{name} twice");
        for pattern in ["gpt2", "cl100k", "o200k"] {
            let pieces = case["expected"][pattern].as_array().unwrap();
            let joined: String = pieces.iter().map(|piece| piece.as_str().unwrap()).collect();
            assert_eq!(joined, case["input"].as_str().unwrap(), "{name} {pattern}");
        }
    }
}

#[test]
fn samples_have_names_languages_and_texts() {
    let samples: serde_json::Value = serde_json::from_str(&fixtures::text("samples.json")).unwrap();
    let samples = samples["samples"].as_array().unwrap();
    for sample in samples {
        for key in ["name", "language", "text"] {
            assert!(sample[key].as_str().is_some_and(|value| !value.is_empty()), "{sample}");
        }
    }
    for name in ["English", "Vietnamese", "Chinese", "Japanese", "Arabic", "Numbers", "Emoji"] {
        assert!(samples.iter().any(|sample| sample["name"] == name), "{name}");
    }
}

fn walk(root: &Path, folder: &str, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(root.join(folder)).expect("a folder") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("a UTF-8 name");
        let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
        if entry.path().is_dir() {
            walk(root, &path, found);
        } else {
            found.insert(path);
        }
    }
}
