//! `tok train --continue`: no id moves, texts without new tokens keep theirs, and what is refused.

#![allow(clippy::unwrap_used)] // A test's unwrap is its assertion.

mod common;

#[cfg(unix)]
use common::killed_and_resumed;
use common::{Folder, corpus, ids, run, run_with, words};
use serde_json::{Value, json};

/// The texts of two languages in a folder.
fn languages(folder: &Folder) -> (String, String) {
    let manifest = testkit::fixtures::manifest();
    let language = |name: &str| {
        let file = manifest.parallel("udhr", name).unwrap();
        folder.write(&format!("{name}.txt"), testkit::fixtures::text(&file.path))
    };
    (language("en"), language("de"))
}

/// The ids of all lines of a file.
fn lines(model: &str, text: &str) -> Vec<Vec<u32>> {
    let text = std::fs::read(text).unwrap();
    let output = run_with(["encode", "--model", model], &text).code(0);
    output
        .text()
        .lines()
        .map(|line| line.split_whitespace().map(|id| id.parse().unwrap()).collect())
        .collect()
}

/// Trains 500 tokens of English, then 700 with German on top; gives the folder and both files.
#[track_caller]
fn continued(options: &str, ending: &str) -> (Folder, [String; 2]) {
    let folder = Folder::new();
    let (english, german) = languages(&folder);
    let (old, new) = (folder.at(&format!("old.{ending}")), folder.at(&format!("new.{ending}")));
    let train = |out: &str, text: &str, size: &str, more: &[&str]| {
        let mut arguments = vec!["train".to_owned()];
        arguments.extend(words(options));
        arguments.extend([text, "-o", out, "--vocab-size", size, "--json"].map(str::to_owned));
        arguments.extend(more.iter().map(|&argument| argument.to_owned()));
        run(&arguments).code(0).json()
    };
    train(&old, &english, "500", &["--special", "[SEP]"]);
    let summary = train(&new, &german, "700", &["--continue", &old]);
    assert_eq!(summary["models"][0]["vocab_size"], 700, "{summary}");
    let (before, after) = (lines(&old, &english), lines(&new, &english));
    let kept = |ids: &&Vec<u32>| ids.iter().all(|&id| id < 500);
    assert!(after.iter().filter(kept).count() > 3, "{options}");
    for (before, after) in before.iter().zip(&after).filter(|(_, after)| kept(after)) {
        assert_eq!(before, after, "{options}");
    }
    let (before, after) = (lines(&old, &german), lines(&new, &german));
    assert!(after.iter().flatten().any(|&id| id >= 500), "{options}");
    let count = |lines: &[Vec<u32>]| lines.iter().map(Vec::len).sum::<usize>();
    // Of WordPiece the words that were unknown had one token each.
    if !options.starts_with("wordpiece") {
        assert!(count(&after) < count(&before), "{options}");
    }
    // The same training gives the same bytes, with any number of threads.
    let again = folder.at(&format!("again.{ending}"));
    train(&again, &german, "700", &["--continue", &old, "--threads", "1"]);
    assert_eq!(std::fs::read(&new).unwrap(), std::fs::read(again).unwrap());
    (folder, [old, new])
}

/// Every token of the old file is in the new one under its id.
#[track_caller]
fn moves_no_id(files: &[String; 2]) {
    let [old, new] = files.each_ref().map(|path| {
        let file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        (file["model"].clone(), file["added_tokens"].clone())
    });
    match (&old.0["vocab"], &new.0["vocab"]) {
        (Value::Object(old), new) => {
            assert!(old.iter().all(|(token, id)| &new[token] == id));
        }
        (Value::Array(old), Value::Array(new)) => {
            // Scores stay as they were, too.
            assert!(new.len() > old.len() && new.starts_with(old));
        }
        other => panic!("{other:?}"),
    }
    if let (Some(old), Some(new)) = (old.0["merges"].as_array(), new.0["merges"].as_array()) {
        assert!(new.len() > old.len() && new.starts_with(old));
    }
    assert!(new.1.as_array().unwrap().starts_with(old.1.as_array().unwrap()));
}

#[test]
fn bpe_goes_on_with_merges() {
    moves_no_id(&continued("bpe", "json").1);
    moves_no_id(&continued("bpe --unit char --pretok whitespace", "json").1);
    let (folder, [old, _]) = continued("bpe", "json");
    let german = folder.at("de.txt");
    let go_on = ["train", "bpe", &german, "--continue", &old];
    run(go_on.iter().chain(&["--vocab-size", "700", "--pretok", "o200k"]))
        .code(2)
        .says("another way");
    run(go_on.iter().chain(&["--vocab-size", "500"])).code(2).says("has 500 tokens already");
    run(go_on.iter().chain(&["--merges", "20"])).code(2).says("merges already");
}

/// Changes a file.
fn edit(path: &str, change: impl FnOnce(&mut Value)) {
    let mut file = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    change(&mut file);
    std::fs::write(path, file.to_string()).unwrap();
}

/// Continues a file whose parts are others than this program's own, which all stay: how Hugging
/// Face's files of GPT-2, T5 and BERT are.
#[track_caller]
fn keeps_other_parts(algorithm: &str, options: &str, change: impl FnOnce(&mut Value)) {
    let folder = Folder::new();
    let (english, german) = languages(&folder);
    let (old, new) = (folder.at("old.json"), folder.at("new.json"));
    let train = format!("train {algorithm} {english} -o {old} --vocab-size 500 {options}");
    run(words(&train)).code(0);
    edit(&old, change);
    let go_on = format!("train {algorithm} {german} -o {new} --vocab-size 700 --continue {old}");
    let summary = run(words(&format!("{go_on} --json"))).code(0).json();
    assert_eq!(summary["models"][0]["vocab_size"], 700, "{summary}");
    assert!(summary["models"][0]["compared_bytes"].as_u64().unwrap() > 1000, "{summary}");
    moves_no_id(&[old.clone(), new.clone()]);
    let read = |path: &str| -> Value {
        let mut file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let model = file["model"].as_object_mut().unwrap();
        model.retain(|key, _| !["vocab", "merges"].contains(&key.as_str()));
        file
    };
    assert_eq!(read(&old), read(&new));
    // Counting elsewhere makes no difference.
    let (counts, again) = (folder.at("c.counts"), folder.at("again.json"));
    run(words(&format!("counts write {german} -o {counts} --model {old}"))).code(0);
    let from_counts = go_on.replace(&german, &format!("--counts {counts}")).replace(&new, &again);
    run(words(&from_counts)).code(0);
    assert_eq!(std::fs::read(&new).unwrap(), std::fs::read(again).unwrap());
    // What has only old tokens is as it was, with special tokens, too.
    let of = |model: &str, text: &str| {
        let encode = ["encode", "--template", "--model", model, "--", text];
        ids(&run(encode).code(0))
    };
    for text in ["All human beings are born free", " and  equal in dignity"] {
        assert_eq!(of(&old, text), of(&new, text), "{text:?}");
    }
}

#[test]
fn a_tokenizer_json_stays_as_it_is_but_for_its_model() {
    let template = |start: &str, id: u32| {
        json!({
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": start, "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}}
            ],
            "pair": [
                {"Sequence": {"id": "A", "type_id": 0}},
                {"Sequence": {"id": "B", "type_id": 1}}
            ],
            "special_tokens": {start: {"id": start, "ids": [id], "tokens": [start]}}
        })
    };
    keeps_other_parts("bpe", "--special [SEP]", |file| {
        file["pre_tokenizer"]["trim_offsets"] = true.into();
        file["post_processor"] = template("[SEP]", 0);
        file["model"]["ignore_merges"] = true.into();
        file["truncation"] = json!({
            "direction": "Right", "max_length": 512, "strategy": "LongestFirst", "stride": 0
        });
    });
    // Words with a mark in front, as T5 cuts them.
    keeps_other_parts("unigram", "--special </s> --pretok metaspace", |file| {
        file["normalizer"] = json!({"type": "Sequence", "normalizers": [{"type": "NFKC"}]});
        file["pre_tokenizer"] = json!({
            "type": "Sequence",
            "pretokenizers": [
                {"type": "WhitespaceSplit"},
                {"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "always",
                 "split": true}
            ]
        });
        let special = file["added_tokens"][0].clone();
        let id = special["id"].as_u64().unwrap() as u32;
        file["post_processor"] = template(special["content"].as_str().unwrap(), id);
    });
    keeps_other_parts("wordpiece", "--normalizer bert --special [SEP]", |file| {
        file["decoder"] = json!({"type": "WordPiece", "prefix": "##", "cleanup": true});
        file["normalizer"]["strip_accents"] = false.into();
        file["post_processor"] = template("[SEP]", 1);
    });
}

#[test]
fn new_tokens_go_behind_added_ones() {
    let folder = Folder::new();
    let (english, german) = languages(&folder);
    let (old, new) = (folder.at("old.json"), folder.at("new.json"));
    for algorithm in ["bpe", "wordpiece", "unigram"] {
        run(["train", algorithm, &english, "-o", &old, "--vocab-size", "400"]).code(0);
        edit(&old, |file| {
            let added = file["added_tokens"].as_array_mut().unwrap();
            for (id, special) in [(400, true), (401, false)] {
                added.push(json!({
                    "id": id, "content": format!("<|{id}|>"), "single_word": false,
                    "lstrip": false, "rstrip": false, "normalized": false, "special": special
                }));
            }
        });
        let go_on =
            ["train", algorithm, &german, "-o", &new, "--vocab-size", "500", "--continue", &old];
        if algorithm == "unigram" {
            run(go_on).code(3).says("\"<|400|>\" has id 400, behind the 400 pieces");
            continue;
        }
        run(go_on).code(0);
        moves_no_id(&[old.clone(), new.clone()]);
        let text = "all<|401|><|400|>Menschen";
        let parse = ["--special", "parse", "--", text];
        let of = |model: &str| ids(&run(["encode", "--model", model].iter().chain(&parse)).code(0));
        let (before, after) = (of(&old), of(&new));
        assert!(before.contains(&401) && before.contains(&400), "{before:?}");
        assert!(after.contains(&401) && after.contains(&400), "{after:?}");
        let file: Value = serde_json::from_slice(&std::fs::read(&new).unwrap()).unwrap();
        let vocab = file["model"]["vocab"].as_object().unwrap();
        let new_ids = vocab.values().map(|id| id.as_u64().unwrap()).filter(|&id| id >= 400);
        assert_eq!(new_ids.count(), 100, "{algorithm}");
    }
}

#[test]
fn wordpiece_goes_on_with_merges() {
    for criterion in ["pmi", "frequency"] {
        moves_no_id(&continued(&format!("wordpiece --criterion {criterion}"), "json").1);
    }
    let (folder, [old, new]) = continued("wordpiece --criterion frequency", "txt");
    let read = |path| String::from_utf8(std::fs::read(path).unwrap()).unwrap();
    assert!(read(&new).starts_with(&read(&old)));
    // A vocab.txt is continued as tokenizer.json just as well.
    let german = folder.at("de.txt");
    let json = folder.at("new.json");
    let train = ["train", "wordpiece", &german, "-o", &json, "--vocab-size", "700", "--criterion"];
    let more = ["frequency", "--continue", &old];
    let train = train.iter().chain(&more);
    run(train.clone()).code(2).says("another way");
    run(train.chain(&["--normalizer", "bert-cased"])).code(0);
    assert_eq!(lines(&json, &german), lines(&new, &german));
}

#[test]
fn unigram_goes_on_with_pieces() {
    moves_no_id(&continued("unigram", "json").1);
    moves_no_id(&continued("unigram --byte-fallback", "json").1);
    let (folder, [old, new]) = continued("unigram --normalizer nmt_nfkc", "model");
    let pieces = |path: &str| {
        let file = std::fs::read(path).unwrap();
        let model = formats::sentencepiece::SentencePieceModel::parse(&file).unwrap();
        let all = model.pieces.iter();
        all.map(|p| (p.piece.to_owned(), p.score, p.kind)).collect::<Vec<_>>()
    };
    assert!(pieces(&new).starts_with(&pieces(&old)));
    let german = folder.at("de.txt");
    let train = ["train", "unigram", &german, "--vocab-size", "700", "--continue", &old];
    run(train.iter().chain(&["--normalizer", "nfkc"])).code(2).says("another way");
    // Without a name the rules are those of the file.
    let same = folder.at("same.model");
    run(train.iter().chain(&["-o", &same])).code(0);
    assert_eq!(std::fs::read(&new).unwrap(), std::fs::read(same).unwrap());
    let json = folder.at("new.json");
    run(train.iter().chain(&["-o", &json, "--normalizer", "nmt_nfkc"]))
        .code(2)
        .says("write a .model");
}

#[test]
fn what_sentencepiece_trained_is_continued_with_its_spaces() {
    let folder = Folder::new();
    let (english, german) = languages(&folder);
    let (old, new) = (folder.at("old.model"), folder.at("new.model"));
    let preset = ["train", "unigram", &english, "-o", &old, "--vocab-size", "400", "--preset"];
    run(preset.iter().chain(&["sentencepiece"])).code(0);
    let go_on =
        ["train", "unigram", &german, "-o", &new, "--vocab-size", "600", "--continue", &old];
    run(go_on.iter().chain(&["--normalizer", "nmt_nfkc"])).code(0);
    let named = std::fs::read(&new).unwrap();
    run(go_on).code(0);
    assert_eq!(std::fs::read(&new).unwrap(), named);
    // Spaces that are doubled are one, as in the old model.
    for text in ["Menschen  und   Rechte", " all  human beings "] {
        let single: Vec<&str> = text.split_whitespace().collect();
        let encode = |text: &str| ids(&run(["encode", "--model", &new, "--", text]).code(0));
        assert_eq!(encode(text), encode(&single.join(" ")));
    }
    run(go_on.iter().chain(&["--preset", "sentencepiece"])).code(2).says("knows no model");
}

#[test]
fn several_sizes_are_made_on_top() {
    let folder = Folder::new();
    let (english, german) = languages(&folder);
    for algorithm in ["bpe", "wordpiece", "unigram"] {
        let old = folder.at("old.json");
        run(["train", algorithm, &english, "-o", &old, "--vocab-size", "400"]).code(0);
        let new = folder.at("new.json");
        let sizes = ["train", algorithm, &german, "-o", &new, "--vocab-size", "500,600"];
        let summary = run(sizes.iter().chain(&["--json", "--continue", &old])).code(0).json();
        let made: Vec<_> = summary["models"].as_array().unwrap().iter().collect();
        assert_eq!((&made[0]["vocab_size"], &made[1]["vocab_size"]), (&500.into(), &600.into()));
        for size in ["500", "600"] {
            moves_no_id(&[old.clone(), folder.at(&format!("new.{size}.json"))]);
        }
        let sizes = ["train", algorithm, &german, "--vocab-size", "400,600", "--continue", &old];
        run(sizes).code(2).says("leaves nothing to train");
    }
}

#[test]
fn what_contradicts_the_model_is_refused() {
    let folder = Folder::new();
    let (english, german) = languages(&folder);
    let old = folder.at("old.json");
    let train = "train wordpiece --vocab-size 400 --special [CLS] [SEP] -o".to_owned();
    run(words(&train).into_iter().chain([old.clone(), english])).code(0);
    let check = |algorithm: &str, options: &str, says: &str| {
        let mut arguments = words(&format!("train {algorithm} --vocab-size 600 {options}"));
        arguments.extend(["--continue".to_owned(), old.clone(), german.clone()]);
        let code = if options.is_empty() { 3 } else { 2 };
        run(&arguments).code(code).says(says);
    };
    check("bpe", "", "is a wordpiece tokenizer, which `tok train bpe` cannot continue");
    check("unigram", "", "is a wordpiece tokenizer, which `tok train unigram` cannot continue");
    check("wordpiece", "--unk <unk>", "--unk is not what it has: [UNK]");
    check("wordpiece", "--continuing-prefix @@", "--continuing-prefix is not what it has: ##");
    check("wordpiece", "--unit byte", "give --unit char");
    check("wordpiece", "--normalizer lowercase", "another way");
    check("wordpiece", "--bos [CLS] --bos-id 7", "[CLS] has id 0, which stays: 7 is not possible");
    check("wordpiece", "--bos <s> --bos-id 7", "a new token gets the next id");
    // What is the same may be said.
    let same = "train wordpiece --vocab-size 600 --unk [UNK] --continuing-prefix ## --bos [CLS] \
                --bos-id 0 --reserved 2 --json --continue";
    let summary = run(words(same).into_iter().chain([old, german])).code(0).json();
    assert_eq!(summary["models"][0]["vocab_size"], 600);
}

#[test]
#[cfg(unix)]
fn an_extension_killed_at_any_moment_resumes_to_the_same_bytes() {
    let folder = Folder::new();
    let (english, _) = languages(&folder);
    for (algorithm, ending) in [("bpe", "json"), ("wordpiece", "json"), ("unigram", "model")] {
        let old = folder.at(&format!("{algorithm}.{ending}"));
        run(["train", algorithm, &english, "-o", &old, "--vocab-size", "400"]).code(0);
        let more: &[&str] =
            if algorithm == "unigram" { &["--shrinking-factor", "0.95"] } else { &[] };
        let train = [algorithm, "--vocab-size", "1200", "--continue", &old];
        killed_and_resumed(&[&train, more].concat(), ending);
    }
}

#[test]
fn a_changed_base_is_another_training() {
    let folder = Folder::new();
    let text = folder.write("corpus.txt", corpus());
    let (old, checkpoint) = (folder.at("old.json"), folder.at("c"));
    let base = |size| run(["train", "unigram", &text, "-o", &old, "--vocab-size", size]).code(0);
    let train = |size| {
        let arguments = ["train", "unigram", &text, "--vocab-size", size, "--checkpoint"];
        run(arguments.iter().chain(&[&checkpoint[..], "--resume", "--continue", &old]))
    };
    base("400");
    // A limit that only an impossible size passes leaves the checkpoint behind.
    train("900000").code(2).says("at most");
    base("401");
    train("900000").code(2).says("other options or files");
}
