//! `tok train --preset`: what the other libraries learn from the same text, recorded in
//! `fixtures/vectors/training.json` (by `training_vectors.py` beside this file).

#![allow(clippy::unwrap_used)] // A test's unwrap is its assertion.

mod common;

#[cfg(unix)]
use common::killed_and_resumed;
use common::{Folder, run, words};
use formats::sentencepiece::SentencePieceModel;
use serde_json::Value;

fn cases(trainer: &str) -> Vec<Value> {
    let vectors: Value =
        serde_json::from_str(&testkit::fixtures::text("vectors/training.json")).unwrap();
    let all = vectors.as_array().unwrap().iter();
    all.filter(|case| case["trainer"] == trainer).cloned().collect()
}

fn lines(case: &Value) -> String {
    if let Some(file) = case["file"].as_str() {
        return testkit::fixtures::text(file);
    }
    case["text"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| format!("{}\n", line.as_str().unwrap()))
        .collect()
}

/// The options of `tok` for those of SentencePiece.
fn options(case: &Value) -> Vec<String> {
    let mut options = Vec::new();
    for (name, value) in case["options"].as_object().unwrap() {
        match name.as_str() {
            "byte_fallback" => options.push("--byte-fallback".to_owned()),
            "user_defined_symbols" | "control_symbols" => {
                options.push(format!("--{}", name.replace('_', "-")));
                options.extend(
                    value.as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned()),
                );
            }
            "character_coverage" => {
                options.extend(["--character-coverage".into(), value.to_string()]);
            }
            "max_sentencepiece_length" => {
                options.extend(["--max-token-length".into(), value.to_string()]);
            }
            name => options.push(format!("--{}={value}", name.replace('_', "-"))),
        }
    }
    options
}

#[test]
fn bpe_gives_the_pieces_of_sentencepiece_in_their_order() {
    let folder = Folder::new();
    let cases = cases("sentencepiece");
    assert!(cases.len() >= 60);
    for case in &cases {
        let (text, out) = (folder.write("text.txt", lines(case)), folder.at("t.model"));
        let mut arguments = words("train bpe --preset sentencepiece --normalizer none");
        arguments.extend(words("--vocab-limit soft --quiet --vocab-size"));
        arguments.extend([case["size"].to_string(), text, "-o".into(), out.clone()]);
        arguments.extend(options(case));
        run(&arguments).code(0);
        let model = SentencePieceModel::parse(&std::fs::read(out).unwrap()).unwrap();
        let pieces: Vec<&str> = model.pieces.iter().map(|piece| piece.piece).collect();
        assert_eq!(Value::from(pieces), case["pieces"], "{case}");
    }
}

#[test]
fn unigram_gives_the_pieces_and_scores_of_sentencepiece() {
    let folder = Folder::new();
    let cases = cases("sentencepiece-unigram");
    assert!(cases.len() >= 82);
    for (i, case) in cases.iter().enumerate() {
        let (text, out) = (folder.write("text.txt", lines(case)), folder.at("t.model"));
        let mut arguments = words("train unigram --preset sentencepiece --normalizer none");
        arguments.extend(words("--vocab-limit soft --quiet --threads"));
        // The number of threads decides nothing.
        arguments.extend([(i % 3 + 1).to_string(), "--vocab-size".into()]);
        arguments.extend([case["size"].to_string(), text, "-o".into(), out.clone()]);
        arguments.extend(options(case));
        run(&arguments).code(0);
        let model = SentencePieceModel::parse(&std::fs::read(out).unwrap()).unwrap();
        let pieces: Vec<&str> = model.pieces.iter().map(|piece| piece.piece).collect();
        assert_eq!(Value::from(pieces), case["pieces"], "{case}");
        // Every bit of them.
        let scores: Vec<f32> = model.pieces.iter().map(|piece| piece.score).collect();
        let theirs = case["scores"].as_array().unwrap();
        let theirs: Vec<f32> = theirs.iter().map(|score| score.as_f64().unwrap() as f32).collect();
        assert_eq!(scores, theirs, "{case}");
    }
}

#[test]
fn bpe_gives_the_merges_of_subword_nmt_in_their_order() {
    let folder = Folder::new();
    let cases = cases("subword-nmt");
    assert!(cases.len() >= 20);
    for case in &cases {
        let (text, trace) = (folder.write("text.txt", lines(case)), folder.at("trace.jsonl"));
        let mut arguments = words("train bpe --preset subword-nmt --quiet --merges");
        arguments.extend([case["size"].to_string(), "--min-frequency".into()]);
        arguments.extend([case["options"]["min_frequency"].to_string(), text]);
        arguments.extend(["--trace".into(), trace.clone()]);
        run(&arguments).code(0);
        let side = |step: &Value, side: &str| {
            let hex = step[side].as_str().unwrap();
            let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
            String::from_utf8((0..hex.len()).step_by(2).map(byte).collect()).unwrap()
        };
        let merges: Vec<String> = std::fs::read_to_string(&trace)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .map(|step| format!("{} {}", side(&step, "left"), side(&step, "right")))
            .collect();
        assert_eq!(Value::from(merges), case["pieces"], "{case}");
    }
}

#[test]
fn presets_refuse_what_they_decide() {
    let folder = Folder::new();
    let text = folder.write("text.txt", "low lower lowest\n");
    let refuse = |options: &str, why: &str| {
        let mut arguments = words("train");
        arguments.extend(words(options));
        arguments.push(text.clone());
        run(&arguments).code(2).says(why);
    };
    refuse("bpe --preset sentencepiece --vocab-size 20 --ties lowest-ids", "decides --ties");
    refuse("bpe --preset sentencepiece --vocab-size 20 --unit byte", "decides --unit");
    refuse("bpe --preset sentencepiece --merges 20", "decides --merges");
    refuse("bpe --preset subword-nmt --merges 20 --pretok gpt2", "decides --pretok");
    refuse("unigram --preset sentencepiece --vocab-size 200", "supports at most");
    refuse("unigram --preset sentencepiece --vocab-size 5", "characters need");
    refuse("unigram --preset sentencepiece --vocab-size 20 --pretok words", "decides --pretok");
    refuse("wordpiece --preset sentencepiece --vocab-size 20", "no --preset sentencepiece");
    refuse("unigram --preset subword-nmt --vocab-size 20", "no --preset subword-nmt");
    refuse("bpe --preset sentencepiece --vocab-size 20 -o x.json", "writes a .model");
    refuse("bpe --preset sentencepiece --vocab-size 200", "supports 2");
}

fn pieces_of(folder: &Folder, options: &str) -> Vec<(String, f32)> {
    let text = folder.write("text.txt", "aб a1 12 abc abc abc1 a  b   c\n".repeat(20));
    let out = folder.at("t.model");
    let mut arguments = words("train --vocab-limit soft --quiet --lines");
    arguments.splice(1..1, words(options));
    arguments.extend([text, "-o".into(), out.clone()]);
    run(&arguments).code(0);
    let model = SentencePieceModel::parse(&std::fs::read(out).unwrap()).unwrap();
    model.pieces.iter().map(|piece| (piece.piece.to_owned(), piece.score)).collect()
}

#[test]
fn tokens_with_a_role_get_the_ids_that_were_chosen() {
    let folder = Folder::new();
    for algorithm in ["bpe --unit char", "unigram"] {
        let roles = "--vocab-size 25 --bos [B] --eos [E] --unk [U] --pad-id 0 --unk-id 3 --bos-id 1 --eos-id 2 --special [X]";
        let pieces = pieces_of(&folder, &format!("{algorithm} {roles}"));
        let first: Vec<&str> = pieces.iter().take(5).map(|(piece, _)| piece.as_str()).collect();
        assert_eq!(first, ["<pad>", "[B]", "[E]", "[U]", "[X]"], "{algorithm}");
        let model =
            SentencePieceModel::parse(&std::fs::read(folder.at("t.model")).unwrap()).unwrap();
        let trainer = model.trainer_spec.unwrap();
        assert_eq!((trainer.unk_id, trainer.bos_id, trainer.eos_id), (Some(3), Some(1), Some(2)));
        assert_eq!(trainer.bos_piece.as_deref(), Some("[B]"));
    }
    let text = folder.write("text.txt", "a b");
    for (options, why) in [
        ("--bos-id 7", "--bos-id needs --bos"),
        ("--bos [B] --bos-id 70", "70 is not possible"),
        ("--bos [B] --bos-id 1 --eos [E] --eos-id 1", "is another token's, too"),
        ("--bos [B] --eos [B]", "is another token's, too"),
        ("--bos [B] --bos-id -2", "is no id"),
    ] {
        let mut arguments = words("train bpe --unit char --vocab-size 20");
        arguments.extend(words(options));
        arguments.push(text.clone());
        run(&arguments).code(2).says(why);
    }
    run(["train", "char", &text, "--vocab-size", "20", "--bos", "x"]).code(2).says("has no --bos");
}

#[test]
fn ids_beyond_the_special_tokens_can_be_chosen() {
    let folder = Folder::new();
    let roles = "--bos [B] --bos-id 30 --eos [E] --pad-id 7 --special [X]";
    for (algorithm, ending) in [
        ("bpe", "json"),
        ("bpe --unit char --pretok whitespace", "json"),
        ("bpe --unit char", "model"),
        ("bpe --preset sentencepiece --eos-id 2", "model"),
        ("wordpiece", "json"),
        ("unigram", "json"),
        ("unigram", "model"),
        ("unigram --preset sentencepiece --eos-id 2", "model"),
    ] {
        let text = folder.write("text.txt", testkit::fixtures::text("corpora/prose/alice.txt"));
        let sizes = if algorithm.starts_with("bpe") { ["400", "500"] } else { ["200", "300"] };
        let (out, trace) = (folder.at(&format!("t.{ending}")), folder.at("trace.jsonl"));
        let mut arguments = words("train --quiet");
        arguments.splice(1..1, words(&format!("{algorithm} {roles}")));
        arguments.extend(["--vocab-size".into(), sizes.join(","), text, "-o".into(), out]);
        arguments.extend(["--trace".into(), trace.clone()]);
        run(&arguments).code(0);
        for size in sizes {
            let path = folder.at(&format!("t.{size}.{ending}"));
            let inspected = |id: &str| {
                let decode = ["decode", "--model", &path, "--", id];
                String::from_utf8(run(decode).code(0).stdout).unwrap()
            };
            assert_eq!(inspected("30").trim(), "[B]", "{algorithm} {size}");
            assert_eq!(inspected("7").trim(), "<pad>", "{algorithm} {size}");
            for id in ["6", "8", "29", "31"] {
                assert!(!["[B]", "<pad>"].contains(&inspected(id).trim()), "{algorithm} {size}");
            }
        }
        // The trace tells the ids of the file.
        if algorithm == "bpe" || algorithm == "wordpiece" {
            let path = folder.at(&format!("t.{}.{ending}", sizes[1]));
            let file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
            let vocab = file["model"]["vocab"].as_object().unwrap();
            let ids: Vec<u64> = std::fs::read_to_string(&trace)
                .unwrap()
                .lines()
                .map(|line| serde_json::from_str::<Value>(line).unwrap())
                .filter(|step| {
                    step["token"].as_str().is_some_and(|hex| {
                        // Letters alone are spelled alike in every vocabulary.
                        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
                        let token: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
                        let token = String::from_utf8_lossy(&token).into_owned();
                        token.bytes().all(|byte| byte.is_ascii_alphabetic())
                            && vocab.get(&token) != Some(&step["id"])
                    })
                })
                .map(|step| step["id"].as_u64().unwrap())
                .collect();
            assert_eq!(ids, Vec::<u64>::new(), "{algorithm}");
        }
    }
}

#[test]
#[cfg(unix)]
fn a_preset_killed_at_any_moment_resumes_to_the_same_bytes() {
    let preset = ["unigram", "--preset", "sentencepiece", "--shrinking-factor", "0.9"];
    killed_and_resumed(&[&preset[..], &["--vocab-size", "600"]].concat(), "model");
    killed_and_resumed(&["bpe", "--preset", "sentencepiece", "--vocab-size", "900"], "model");
    killed_and_resumed(&["bpe", "--preset", "subword-nmt", "--merges", "900"], "json");
}

#[test]
fn pieces_keep_to_scripts_digits_and_spaces() {
    let folder = Folder::new();
    let has = |pieces: &[(String, f32)], text: &str| pieces.iter().any(|(piece, _)| piece == text);
    for algorithm in ["bpe --unit char", "unigram"] {
        let of =
            |options: &str| pieces_of(&folder, &format!("{algorithm} --vocab-size 60 {options}"));
        let free = of("--split-digits=false");
        assert!(has(&free, "▁aб") && has(&free, "▁a1") && has(&free, "▁12"), "{free:?}");
        let scripts = of("--split-by-script");
        assert!(!has(&scripts, "▁aб") && !has(&scripts, "▁a1") && has(&scripts, "▁12"));
        let numbers = of("--split-by-script --split-by-number=false");
        assert!(!has(&numbers, "▁aб") && has(&numbers, "▁a1"), "{numbers:?}");
        let digits = of("--split-digits");
        assert!(has(&digits, "▁aб") && !has(&digits, "▁a1") && !has(&digits, "12"));
        let spaces = of("--whitespace-pieces");
        assert!(has(&spaces, "▁▁") && !has(&free, "▁▁"), "{algorithm}: {spaces:?}");
        let sentences = of("--split-by-whitespace=false");
        assert!(sentences.iter().any(|(piece, _)| piece.chars().skip(1).any(|c| c == '▁')));
    }
    let text = folder.write("text.txt", "a b");
    for (options, why) in [
        ("bpe --split-digits", "with --unit char"),
        ("wordpiece --split-digits", "with --unit char"),
        ("bpe --unit char --split-digits", "take ▁ for the space"),
        ("unigram --whitespace-pieces", "need a .model"),
        ("unigram --split-by-number", "needs --split-by-script"),
        ("unigram --whitespace-pieces --pretok metaspace", "need --pretok none"),
    ] {
        let mut arguments = words("train --vocab-size 20");
        arguments.splice(1..1, words(options));
        arguments.push(text.clone());
        run(&arguments).code(2).says(why);
    }
}
