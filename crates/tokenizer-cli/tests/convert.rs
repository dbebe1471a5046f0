//! `tok convert` through the program.

#![allow(clippy::unwrap_used)] // A test's unwrap is its assertion.

mod common;

use std::fs;
use std::path::Path;

use common::{Folder, corpus, run, words};

fn train(folder: &Folder, line: &str, out: &str) -> String {
    let text = folder.write("corpus.txt", corpus());
    let out = folder.at(out);
    let arguments = words(line).into_iter().chain([text, "-o".into(), out.clone()]);
    run(["train".to_owned()].into_iter().chain(arguments).chain(["--quiet".into()])).code(0);
    out
}

#[test]
fn trained_files_of_every_format_are_converted_and_proved() {
    let folder = Folder::new();
    for (line, from, to) in [
        ("bpe --vocab-size 400", "b.json", "b.tiktoken"),
        ("bpe --vocab-size 400", "c.json", "c-tekken.json"),
        ("bpe --vocab-size 400", "d.json", "d-vocab.json"),
        ("bpe --vocab-size 600 --unit char --pretok metaspace", "e.model", "e.json"),
        ("bpe --vocab-size 600 --unit char --pretok metaspace", "f.model", "f2.model"),
        ("unigram --vocab-size 600 --pretok metaspace", "g.model", "g.json"),
        ("wordpiece --vocab-size 600 --pretok bert --normalizer bert", "h.txt", "h.json"),
    ] {
        let from = train(&folder, line, from);
        let to = folder.at(to);
        let shown = run(["convert", &from, &to]).code(0);
        assert!(shown.text().starts_with("wrote "), "{}", shown.text());
        assert!(shown.text().contains("passed  same "), "{}", shown.text());
        assert!(Path::new(&to).is_file(), "{to}");
    }
    // Both files of the pair.
    let vocab = folder.at("d-vocab.json");
    assert!(Path::new(&folder.at("d-merges.txt")).is_file());
    let encode = |model: &str| run(["encode", "human rights", "--model", model]).code(0);
    assert_eq!(encode(&vocab).text(), encode(&folder.at("d.json")).text());
}

#[test]
fn training_information_is_stripped() {
    let folder = Folder::new();
    let from = train(&folder, "bpe --vocab-size 600 --unit char --pretok metaspace", "a.model");
    let to = folder.at("b.model");
    let json = run(["convert", &from, &to, "--strip-training-info", "--json"]).code(0).json();
    assert_eq!((&json["same"], &json["format"]), (&true.into(), &"SentencePiece model".into()));
    run(["inspect", &to]).code(0);
}

#[test]
fn what_cannot_be_expressed_is_refused_and_nothing_is_written() {
    let folder = Folder::new();
    let from =
        train(&folder, "wordpiece --vocab-size 600 --pretok bert --normalizer bert", "a.txt");
    for (to, words) in [
        ("b.model", "cannot become a SentencePiece model: normalizer"),
        ("b.tiktoken", "cannot become a .tiktoken file: model"),
    ] {
        let to = folder.at(to);
        run(["convert", &from, &to]).code(3).says(words);
        assert!(!Path::new(&to).exists());
    }
    run(["convert", &from, &folder.at("b.xyz")]).code(2).says("--to FORMAT");
    run(["convert", &from, &folder.at("b.xyz"), "--to", "tokenizer.json"]).code(0);
    run(["convert", &folder.at("none.json"), &folder.at("b.json")]).code(3).says("none.json");
}

/// A merge list in whose file two pairs make one token: SentencePiece merges the leftmost of them.
#[test]
fn a_conversion_that_differs_is_not_written() {
    let folder = Folder::new();
    let file = r#"{"model": {"type": "BPE", "fuse_unk": true, "unk_token": "<unk>",
        "vocab": {"<unk>": 0, "a": 1, "aa": 2, "aaa": 3, "b": 4, "ab": 5, "aab": 6},
        "merges": ["a a", "a b", "a ab"]},
        "decoder": {"type": "Fuse"}}"#;
    let from = folder.write("a.json", file);
    let to = folder.at("a.model");
    let shown = run(["convert", &from, &to]).code(1);
    assert!(shown.text().starts_with("nothing written"), "{}", shown.text());
    assert!(shown.text().contains("FAILED  same ids"), "{}", shown.text());
    assert!(shown.text().contains("\"aaa\": "), "{}", shown.text());
    assert!(!Path::new(&to).exists());
    run(["convert", &from, &to, "--force"]).code(1);
    assert!(fs::metadata(&to).unwrap().len() > 0);
    // The two files differ where the conversion said so.
    run(["verify", &from, &to]).code(1);
}
