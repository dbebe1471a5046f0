//! `tok verify` through the program.

#![allow(clippy::unwrap_used)] // A test's unwrap is its assertion.

mod common;

use common::{Folder, corpus, run};

fn train(folder: &Folder, out: &str, size: &str) -> String {
    let text = folder.write("corpus.txt", corpus());
    let out = folder.at(out);
    run(["train", "bpe", &text, "-o", &out, "--vocab-size", size, "--quiet"]).code(0);
    out
}

#[test]
fn a_trained_tokenizer_passes() {
    let folder = Folder::new();
    let model = train(&folder, "model.json", "500");
    let text = folder.at("corpus.txt");
    let shown = run(["verify", &model, "--text", &text]).code(0);
    assert!(shown.text().contains("passed  decode(encode(x)) = x"), "{}", shown.text());
    let json = run(["verify", &model, "--json", "--strict"]).code(0).json();
    assert_eq!(json["passed"], true);
    assert_eq!(json["reachability"]["unreachable"].as_array().unwrap().len(), 0);
    assert!(json["texts"].as_u64().unwrap() > 4000);
}

#[test]
fn two_that_differ_show_the_shortest_text() {
    let folder = Folder::new();
    let small = train(&folder, "small.json", "300");
    let large = train(&folder, "large.json", "301");
    run(["verify", &small, &small]).code(0);
    let differ = run(["verify", &small, &large, "--json"]).code(1).json();
    assert_eq!(differ["passed"], false);
    let plain = &differ["checks"][1];
    assert_eq!((&plain["law"], &plain["verdict"]), (&"same ids".into(), &"failed".into()));
    // The text of the last token of the larger one, and nothing more.
    let last = run(["decode", "300", "--model", &large]).code(0);
    assert_eq!(plain["example"]["text"], last.text());
    assert!(run(["verify", &small, &large]).code(1).text().contains("FAILED  same ids"));
}

#[test]
fn notes_fail_on_request() {
    let folder = Folder::new();
    let vocab = folder.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhug\n##s\n");
    let noted = run(["verify", &vocab]).code(0);
    assert!(noted.text().contains("noted   decode(encode(x)) = x"), "{}", noted.text());
    run(["verify", &vocab, "--strict"]).code(1);
}

#[test]
fn an_encoding_is_named_like_a_file() {
    run(["verify", "r50k_base", "r50k_base", "--by", "tokens"]).code(0);
}

#[test]
fn bad_input_is_no_verdict() {
    let folder = Folder::new();
    run(["verify", &folder.at("missing.json")]).code(3).says("missing.json");
    let broken = folder.write("broken.json", "{\"model\": {");
    run(["verify", &broken]).code(3).says("line 1");
    run(["verify"]).code(2);
    let vocab = folder.write("vocab.txt", "[UNK]\nhug\n");
    run(["verify", &vocab, "--text", &folder.at("missing.txt")]).code(3).says("missing.txt");
}
