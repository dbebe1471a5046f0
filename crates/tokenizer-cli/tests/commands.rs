//! Every other command: what it prints, in both forms, and how it fails.

#![allow(clippy::unwrap_used)] // A test's unwrap is its assertion.

mod common;

use common::{Folder, corpus, fixture, ids, run, run_with};

/// A small trained tokenizer.
fn model(folder: &Folder) -> String {
    let text = folder.write("corpus.txt", corpus());
    let out = folder.at("model.json");
    let arguments = ["train", "bpe", &text, "-o", &out, "--vocab-size", "500"];
    run(arguments.iter().copied().chain(["--special", "<|end|>", "--quiet"])).code(0);
    out
}

#[test]
fn encode_prints_a_line_an_input() {
    let folder = Folder::new();
    let model = model(&folder);
    let one = run(["encode", "Human rights", "--model", &model]).code(0);
    assert!(one.text().ends_with('\n') && one.text().lines().count() == 1);
    let lines = run_with(["encode", "--model", &model], b"Human rights\n\nHuman rights").code(0);
    let lines: Vec<&str> = lines.text().lines().collect();
    assert_eq!(lines, [one.text().trim_end(), "", one.text().trim_end()]);
    assert_eq!(run_with(["encode", "--model", &model], b"").code(0).text(), "");
    assert_eq!(run(["encode", "", "--model", &model]).code(0).text(), "\n");
}

#[test]
fn encode_gives_tokens_and_offsets_as_json() {
    let folder = Folder::new();
    let model = model(&folder);
    let text = "né 😀 x";
    let bytes = run(["encode", text, "--model", &model, "--json"]).code(0).json();
    let chars = ["--offset-unit", "char"];
    let chars =
        run(["encode", text, "--model", &model, "--json"].iter().chain(&chars)).code(0).json();
    assert_eq!(bytes["ids"], chars["ids"]);
    let last =
        |value: &serde_json::Value| value["offsets"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last(&bytes), serde_json::json!([8, 10]));
    assert_eq!(last(&chars), serde_json::json!([4, 6]));
    assert_eq!(bytes["tokens"].as_array().unwrap().last().unwrap(), " x");
    let lines = run_with(["encode", "--model", &model, "--json"], b"a\nb\n").code(0);
    assert_eq!(lines.text().lines().count(), 2);
}

#[test]
fn special_tokens_are_text_unless_asked_for() {
    let folder = Folder::new();
    let model = model(&folder);
    let plain = ids(&run(["encode", "a<|end|>", "--model", &model]).code(0));
    let parsed = ids(&run(["encode", "a<|end|>", "--model", &model, "--special", "parse"]).code(0));
    assert!(plain.len() > 2 && parsed.len() == 2 && parsed[1] == 0);
    run(["encode", "a<|end|>", "--model", &model, "--special", "reject"]).code(3).says("<|end|>");
    run(["encode", "a", "--model", &model, "--special", "maybe"]).code(2);
    let list = format!("{} {}", parsed[0], parsed[1]);
    assert_eq!(run(["decode", &list, "--model", &model]).code(0).text(), "a<|end|>");
    let skipped = run(["decode", &list, "--model", &model, "--skip-special"]).code(0);
    assert_eq!(skipped.text(), "a");
}

#[test]
fn templates_are_added_on_request() {
    let folder = Folder::new();
    let vocab = folder.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhug\n##s\n");
    assert_eq!(run(["encode", "HUGS", "--model", &vocab]).code(0).text(), "5 6\n");
    let with = run(["encode", "hugs", "--model", &vocab, "--template"]).code(0);
    assert_eq!(with.text(), "2 5 6 3\n");
    assert_eq!(run(["encode", "HUGS", "--model", &vocab, "--cased"]).code(0).text(), "1\n");
}

#[test]
fn decode_gives_raw_bytes() {
    let folder = Folder::new();
    let out = folder.at("bytes.json");
    run(["train", "byte", "-", "-o", &out]).code(0);
    // "ngữ" without its last byte.
    let cut = ["110", "103", "225", "187"];
    let decode = |options: &[&str]| {
        run(["decode", "--model", &out].iter().copied().chain(options.iter().copied()).chain(cut))
    };
    assert_eq!(decode(&[]).code(0).stdout, b"ng\xE1\xBB");
    assert_eq!(decode(&["--lossy"]).code(0).text(), "ng\u{FFFD}");
    decode(&["--strict"]).code(3).says("byte 2");
    assert_eq!(decode(&["--json"]).code(0).json()["utf8"], false);
    run(["decode", "256", "--model", &out]).code(3).says("256");
    run(["decode", "4294967296", "--model", &out]).code(3).says("no id");
    run(["decode", "x", "--model", &out]).code(3).says("no id");
    run_with(["decode", "--model", &out], b"1 2\nx\n").code(3).says("line 2");
    assert_eq!(run_with(["decode", "--model", &out], b"104 105\n104").code(0).text(), "hi\nh");
}

#[test]
fn count_adds_up_and_checks_a_limit() {
    let folder = Folder::new();
    let model = model(&folder);
    let a = folder.write("a.txt", "Human rights");
    let b = folder.write("b.txt", "rights\n");
    let counted = run(["count", &a, &b, "--model", &model]).code(0);
    let lines: Vec<&str> = counted.text().lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].ends_with(&a) && lines[2].ends_with(" total"), "{lines:?}");
    let json = run(["count", &a, &b, "--model", &model, "--json"]).code(0).json();
    let tokens: u64 =
        json["files"].as_array().unwrap().iter().map(|f| f["tokens"].as_u64().unwrap()).sum();
    assert_eq!(json["tokens"].as_u64(), Some(tokens));
    assert_eq!(json["bytes"], 19);
    let expected = ids(&run(["encode", "Human rights", "--model", &model]).code(0)).len();
    assert_eq!(json["files"][0]["tokens"].as_u64(), Some(expected as u64));
    run(["count", &a, &b, "--model", &model, "--limit", "1"]).code(1);
    run(["count", &a, &b, "--model", &model, "--limit", &tokens.to_string()]).code(0);
    run(["count", &folder.at("missing"), "--model", &model]).code(3).says("missing");
    let from_stdin = run_with(["count", "--model", &model, "--json"], b"rights\n").code(0).json();
    assert_eq!(from_stdin["files"][0]["path"], "-");
}

#[test]
fn inspect_says_what_is_in_a_file() {
    let folder = Folder::new();
    let model = model(&folder);
    let facts = run(["inspect", &model, "--json"]).code(0).json();
    assert_eq!(facts["format"], "tokenizer.json");
    assert_eq!((&facts["model"], &facts["vocab_size"]), (&"BPE".into(), &500.into()));
    assert_eq!(facts["splitters"][0]["engine"], "scanner");
    assert_eq!(facts["added_tokens"][0]["content"], "<|end|>");
    assert!(run(["inspect", &model]).code(0).text().contains("vocab_size: 500"));
    let text = folder.at("corpus.txt");
    let sp = folder.at("sp.model");
    run(["train", "unigram", &text, "-o", &sp, "--vocab-size", "500"]).code(0);
    let facts = run(["inspect", &sp, "--json"]).code(0).json();
    assert_eq!(facts["model"], "Unigram");
    assert!(facts["training_info"].as_array().is_some_and(|info| !info.is_empty()));
    let odd = folder.write("odd.bin", b"nothing that anyone knows");
    run(["inspect", &odd]).code(3).says("not a vocabulary file");
    run(["inspect", &folder.at("missing")]).code(3);
    run(["inspect", folder.path().to_str().unwrap()]).code(3).says("is a directory");
}

#[test]
fn tokenizers_are_found_or_the_reason_is_said() {
    let folder = Folder::new();
    run(["encode", "x"]).code(2).says("--model FILE or --encoding NAME");
    run(["encode", "x", "--encoding", "none_such"]).code(2).says("cl100k_base");
    run(["encode", "x", "--model", &folder.at("none.json")]).code(3);
    let vocab = folder.write("vocab.json", r#"{"h":0,"u":1,"hu":2}"#);
    run(["encode", "hu", "--model", &vocab]).code(3).says("merges.txt");
    folder.write("merges.txt", "#version: 0.2\nh u\n");
    assert_eq!(run(["encode", "hu", "--model", &vocab]).code(0).text(), "2\n");
    assert_eq!(run(["encode", "hu", "--model", &folder.at("merges.txt")]).code(0).text(), "2\n");
    let text = folder.write("t.txt", "hug hug hug");
    let ranks = folder.at("t.tiktoken");
    run(["train", "bpe", &text, "-o", &ranks, "--vocab-size", "258"]).code(0);
    run(["encode", "hug", "--model", &ranks]).code(2).says("--pattern");
    let with = ["--pattern", "gpt2", "--special", "<e>=300", "--special", "parse"];
    let encoded = run(["encode", "hug<e>", "--model", &ranks].iter().chain(&with)).code(0);
    assert_eq!(encoded.text(), "257 300\n");
    let clash = ["--pattern", "gpt2", "--special", "<e>=5"];
    run(["encode", "x", "--model", &ranks].iter().chain(&clash)).code(3).says("rank");
}

#[test]
fn compare_reports_and_refuses_unequal_terms() {
    let folder = Folder::new();
    let mut languages = Vec::new();
    for language in ["en", "vi"] {
        let manifest = testkit::fixtures::manifest();
        let file = manifest.parallel("udhr", language).unwrap();
        let text = std::fs::read(fixture(&file.path)).unwrap();
        languages.push(folder.write(&format!("{language}.txt"), text));
    }
    let html = folder.at("report.html");
    let arguments = ["compare", &languages[0], &languages[1], "--parallel", "--html", &html];
    let options = ["--algo", "bpe,byte", "--vocab-size", "400", "--bootstrap", "50", "--json"];
    let report = run(arguments.iter().chain(&options)).code(0).json();
    assert_eq!(report["experiments"][0]["rows"].as_array().map(Vec::len), Some(2));
    assert_eq!(report["manifest"]["files"].as_array().map(Vec::len), Some(2));
    let html = std::fs::read_to_string(html).unwrap();
    assert!(html.contains("<html") && html.contains("</html>"));
    let human = ["compare", &languages[0], "--algo", "bpe", "--vocab-size", "400", "--lines"];
    assert!(run(human).code(0).text().contains("BPE"));
    let gold = folder.write("gold.tsv", "rights\tright s\n");
    let morphs = human.iter().copied().chain(["--morph", &gold, "--json"]);
    let report = run(morphs).code(0).json();
    let morphology = &report["experiments"][0]["rows"][0]["morphology"];
    assert_eq!(morphology["overall"]["words"].as_u64(), Some(1), "{report}");
    assert_eq!(report["manifest"]["files"].as_array().map(Vec::len), Some(2));
    let wrong = folder.write("wrong.tsv", "running\trun ing\n");
    run(human.iter().copied().chain(["--morph", &wrong])).code(3).says("line 1: the morphs make");
    let source = folder.write("code.py", "def f(a):\n    return a == 1\n".repeat(900));
    let code = ["compare", &source, "--algo", "bpe", "--vocab-size", "270", "--json"];
    let report = run(code).code(0).json();
    let ratios = &report["experiments"][0]["rows"][0]["overall"]["ratios"];
    assert!(ratios["merged_indentations"]["value"].is_number(), "{report}");
    let small = ["compare", &languages[0], "--algo", "bpe", "--vocab-size", "100", "--lines"];
    run(small).code(2).says("at least 257");
    let unknown = ["compare", &languages[0], "--algo", "lzw", "--lines"];
    run(unknown).code(2).says("no algorithm lzw");
    let reference = ["--parallel", "--baseline-language", "xx"];
    run(["compare", &languages[0]].iter().chain(&reference)).code(2).says("xx");
}

#[test]
fn lists_help_and_completions() {
    let list = run(["splitters", "--json"]).code(0).json();
    assert_eq!(list["splitters"].as_array().map(Vec::len), Some(pretok::names().len()));
    assert!(run(["splitters"]).code(0).text().contains("nmt_nfkc"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(run(["completions", shell]).code(0).text().contains("tok"));
    }
    let commands = [
        "train",
        "encode",
        "decode",
        "count",
        "compare",
        "counts",
        "inspect",
        "splitters",
        "completions",
    ];
    for command in commands {
        assert!(run([command, "--help"]).code(0).text().contains("Example"), "{command}");
    }
    run(["--version"]).code(0);
    run(["nonsense"]).code(2);
    run(Vec::<String>::new()).code(2);
}

/// Whoever reads our output may leave early.
#[cfg(unix)]
#[test]
fn a_closed_pipe_is_no_error() {
    use std::process::Stdio;
    let folder = Folder::new();
    let out = folder.at("bytes.json");
    run(["train", "byte", "-", "-o", &out]).code(0);
    let text = folder.write("t.txt", "long line of text\n".repeat(100_000));
    let mut child = common::tok()
        .args(["encode", "--model", &out])
        .stdin(std::fs::File::open(text).unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
