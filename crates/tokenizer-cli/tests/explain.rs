//! `tok explain` and `tok diff` through the program.

#![allow(clippy::unwrap_used)] // A test's unwrap is its assertion.

mod common;

use std::fs;

use common::{Folder, corpus, run};

const BPE: &str = r#"{"model": {"type": "BPE",
    "vocab": {"h": 0, "u": 1, "g": 2, "s": 3, "ug": 4, "hug": 5, "hugs": 6},
    "merges": ["u g", "h ug"]}, "decoder": {"type": "Fuse"}}"#;

#[test]
fn bpe_shows_the_merges_with_their_ranks() {
    let folder = Folder::new();
    let model = folder.write("bpe.json", BPE);
    let shown = run(["explain", "hugs", "--model", &model]).code(0);
    for line in [
        "start   h|u|g|s",
        "rank 0       h|ug|s",
        "rank 1       hug|s",
        "tokens  hug|s  [5 3]",
        "ids 5 3",
    ] {
        assert!(shown.text().contains(line), "{}", shown.text());
    }
    let json = run(["explain", "hugs", "--model", &model, "--json"]).code(0).json();
    assert_eq!(json["ids"], serde_json::json!([5, 3]));
    let why = &json["stretches"][0]["pieces"][0]["why"];
    assert_eq!(why["algorithm"], "bpe");
    assert_eq!(why["merges"][1]["product"]["token"], "hug");
    assert_eq!(why["merges"][1]["symbols"], serde_json::json!(["hug", "s"]));
}

#[test]
fn wordpiece_shows_each_longest_match_and_what_ended_it() {
    let folder = Folder::new();
    let model = folder.write("vocab.txt", "[UNK]\nhug\n##s\nhuggin\n##g\n");
    let shown = run(["explain", "HUGGS hux", "--model", &model]).code(0);
    for line in [
        "the model sees \"huggs hux\"",
        "longest match \"hug\" [1], ended by: longer tokens begin with \"hugg\", but none of them ends here",
        "longest match \"##s\" [2], ended by: the end of the word",
        "no token matches at byte 0 of the word",
        "ids 1 4 2 0",
    ] {
        assert!(shown.text().contains(line), "{line} is not in {}", shown.text());
    }
    let json = run(["explain", "hugs", "--model", &model, "--json"]).code(0).json();
    let why = &json["stretches"][0]["pieces"][0]["why"];
    assert_eq!(why["matches"][0]["token"]["token"], "hug");
}

#[test]
fn unigram_shows_the_best_the_second_and_the_margin() {
    let folder = Folder::new();
    let file = r#"{"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0],
        ["h", -3.0], ["u", -3.0], ["g", -3.0], ["s", -2.5], ["hug", -4.0], ["ug", -5.0]]}}"#;
    let model = folder.write("unigram.json", file);
    let shown = run(["explain", "hugs", "--model", &model]).code(0);
    for line in
        ["best       -6.5000  hug|s", "second    -10.5000  h|ug|s", "margin      4.0000", "ids 5 4"]
    {
        assert!(shown.text().contains(line), "{line} is not in {}", shown.text());
    }
    let page = folder.at("why.html");
    let json =
        run(["explain", "hugs", "--model", &model, "--json", "--html", &page]).code(0).json();
    let why = &json["stretches"][0]["pieces"][0]["why"];
    assert_eq!((&why["margin"], &why["best"]["score"]), (&4.0.into(), &(-6.5).into()));
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("<svg") && page.contains("class=best") && page.contains("hug"));
    assert!(page.contains("prefers-color-scheme:dark") && page.contains("width=device-width"));
    assert!(!page.contains("<script") && !page.contains("http"));
}

#[test]
fn markup_in_the_text_is_text_on_the_page() {
    let folder = Folder::new();
    let text = folder.write("corpus.txt", corpus());
    let model = folder.at("model.json");
    run(["train", "bpe", &text, "-o", &model, "--vocab-size", "400", "--quiet"]).code(0);
    let page = folder.at("why.html");
    run(["explain", "<b>&", "--model", &model, "--html", &page]).code(0);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("&lt;b&gt;&amp;") && !page.contains("<b>&"));
}

#[test]
fn explain_fails_like_every_command() {
    run(["explain", "x"]).code(2).says("--model");
    run(["explain", "x", "--model", "missing.json"]).code(3).says("missing.json");
}

fn three(folder: &Folder) -> [String; 3] {
    let plain = BPE.replace(", \"h ug\"", "");
    [
        folder.write("a.json", BPE),
        folder.write("b.json", plain),
        folder.write("vocab.txt", "[UNK]\nhug\n##s\n"),
    ]
}

#[test]
fn a_diff_shows_what_differs_and_sums_it_up() {
    let folder = Folder::new();
    let [a, b, _] = three(&folder);
    let shown = run(["diff", &a, &b, "gshugs"]).code(1);
    for line in ["line 1, bytes 2..5", "  hug\n", "  h|ug\n", "3 of 4 shared by all (75.0 %)"] {
        assert!(shown.text().contains(line), "{line:?} is not in {}", shown.text());
    }
    assert!(!shown.text().contains('\x1b'), "no colour in a pipe");
    let json = run(["diff", &a, &b, "gshugs", "--json"]).code(1).json();
    assert_eq!(json["same"], false);
    assert_eq!(json["differences"][0]["span"], serde_json::json!([2, 5]));
    assert_eq!(json["tokenizers"][0]["only"], serde_json::json!(["hug"]));
    assert_eq!(json["tokenizers"][1]["only"], serde_json::json!(["h", "ug"]));
}

#[test]
fn equal_splits_are_no_difference() {
    let folder = Folder::new();
    let [a, b, c] = three(&folder);
    run(["diff", &a, &b, "gs"]).code(0);
    let same = run(["diff", &a, &a, &a, "hugs", "--json"]).code(0).json();
    assert_eq!((&same["agreement"], &same["differing"]), (&1.0.into(), &0.into()));
    // Other ids, other spelling, the same places.
    run(["diff", &a, &c, "hugs"]).code(0);
    run(["diff", &a, &c, ""]).code(0);
}

#[test]
fn any_number_of_tokenizers_on_a_file() {
    let folder = Folder::new();
    let [a, b, c] = three(&folder);
    let text = folder.write("text.txt", "hugs\nhug");
    let page = folder.at("diff.html");
    let json = run(["diff", &a, &b, &c, &text, "--json", "--html", &page]).code(1).json();
    assert_eq!(json["tokenizers"].as_array().unwrap().len(), 3);
    assert_eq!(json["differences"][0]["tokens"].as_array().unwrap().len(), 3);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("prefers-color-scheme:dark") && !page.contains("<script"));
    run(["diff", &a, "hugs"]).code(2);
    run(["diff", &a, &folder.at("none.json"), "hugs"]).code(3).says("none.json");
}
