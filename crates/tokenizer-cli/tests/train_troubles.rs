//! What people report about other trainers, as cases for this one.

#![allow(clippy::unwrap_used)] // A test's unwrap is its assertion.

mod common;

use common::{Folder, corpus, run, words};
use serde_json::Value;

fn train(folder: &Folder, options: &str, path: &str) -> Value {
    let mut arguments = words("train --json");
    arguments.extend(words(options));
    arguments.extend([path.to_owned(), "--trace".into(), folder.at("trace.jsonl")]);
    run(&arguments).code(0).json()
}

fn steps(folder: &Folder) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.at("trace.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn tokens(text: &str, model: &str) -> Vec<String> {
    let json = run(["encode", text, "--model", model, "--json"]).code(0).json();
    let tokens = json["tokens"].as_array().unwrap();
    tokens.iter().map(|token| token.as_str().unwrap().to_owned()).collect()
}

/// Pair counts of 32 bits overflow, and frequent pairs never merge.
#[test]
fn counts_above_32_bits_come_first() {
    let folder = Folder::new();
    let shard = folder.write("c.tsv", "ab\t3000000000\ncd\t5\nab2\t3000000000\n");
    for algorithm in ["bpe --merges 1", "wordpiece --criterion frequency --vocab-size 8"] {
        let mut arguments = words("train --quiet");
        arguments.extend(words(algorithm));
        arguments.extend(["--trace".into(), folder.at("trace.jsonl"), "--counts".into()]);
        run(arguments.iter().chain([&shard])).code(0);
        let first = &steps(&folder)[0];
        assert_eq!(first["token"], "6162", "{algorithm}");
        assert_eq!(first["count"], 6_000_000_000u64, "{algorithm}");
    }
}

/// DNA in one line: hours elsewhere, since every merge looks at the whole line again.
#[test]
fn one_line_without_spaces_does_not_stall() {
    let folder = Folder::new();
    let mut rng = tokenizer_core::Rng::new(4);
    let text: Vec<u8> = (0..200_000).map(|_| b"ACGT"[rng.below(4) as usize]).collect();
    let path = folder.write("dna.txt", text);
    let start = std::time::Instant::now();
    for options in
        ["bpe --vocab-size 512", "wordpiece --vocab-size 512", "unigram --vocab-size 512"]
    {
        let summary = train(&folder, options, &path);
        assert_eq!(summary["models"][0]["vocab_size"], 512, "{options}");
    }
    // Linear work takes a second or so unoptimized; looking at all places for every merge an hour.
    assert!(start.elapsed().as_secs() < 120, "{:?}", start.elapsed());
}

/// Two runs give two vocabularies, for hash tables decide ties.
#[test]
fn runs_and_threads_and_the_order_of_lines_do_not_matter() {
    let folder = Folder::new();
    let line = "Wel come to the 🤗 Tok en izers libr ary.\n";
    let forward = folder.write("a.txt", format!("{line}{}", corpus()));
    let backward: String =
        format!("{line}{}", corpus()).lines().rev().map(|line| format!("{line}\n")).collect();
    let backward = folder.write("b.txt", backward);
    for algorithm in ["bpe", "wordpiece", "unigram"] {
        let mut files = Vec::new();
        for (i, (path, threads)) in
            [(&forward, "1"), (&forward, "3"), (&backward, "2")].into_iter().enumerate()
        {
            let out = folder.at(&format!("{algorithm}{i}.json"));
            let fixed = ["train", algorithm, path, "--lines", "--vocab-size", "600", "-o", &out];
            run(fixed.iter().chain(&["--threads", threads])).code(0);
            files.push(std::fs::read(out).unwrap());
        }
        assert!(files.windows(2).all(|pair| pair[0] == pair[1]), "{algorithm}");
    }
}

/// Vocabularies larger or smaller than asked for, errors even where the size is just right.
#[test]
fn sizes_below_the_alphabet_name_the_least_and_the_least_is_accepted() {
    let folder = Folder::new();
    let text: String = (0x4E00..0x4E00 + 300).filter_map(char::from_u32).collect();
    let path = folder.write("chars.txt", text);
    for options in ["bpe --unit char", "wordpiece --character-coverage 1", "unigram"] {
        let mut arguments = words("train --vocab-size 100");
        arguments.extend(words(options));
        arguments.push(path.clone());
        let said = run(&arguments).code(2).stderr;
        let numbers = said.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok());
        let least = numbers.max().unwrap_or(0u64);
        assert!(least >= 300, "{said}");
        let summary = train(&folder, &format!("{options} --vocab-size {least}"), &path);
        assert_eq!(summary["models"][0]["vocab_size"].as_u64(), Some(least), "{options}");
    }
}

/// `Vocabulary size too high`, and files and pipes that disagree on it.
#[test]
fn sizes_above_the_text_name_the_most_and_the_most_is_accepted() {
    let folder = Folder::new();
    let path = folder.write("small.txt", "a b c d a b c");
    for algorithm in ["bpe", "wordpiece", "unigram"] {
        let hard = |size: &str| {
            let arguments = ["train", algorithm, "--vocab-limit", "hard", "--vocab-size", size];
            let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
            arguments
        };
        let from_file = run(hard("4000").iter().chain([&path])).code(2).stderr;
        let from_pipe = common::run_with(
            hard("4000").iter().map(String::as_str).chain(["-"]),
            b"a b c d a b c",
        );
        assert_eq!(from_file, from_pipe.code(2).stderr, "{algorithm}");
        let numbers = from_file.split(|c: char| !c.is_ascii_digit());
        let most = numbers.filter_map(|n| n.parse::<u64>().ok()).find(|&n| n != 4000).unwrap();
        run(hard(&most.to_string()).iter().chain([&path])).code(0);
        run(hard(&(most + 1).to_string()).iter().chain([&path])).code(2);
    }
}

/// A likelihood that is not a number.
#[test]
fn a_long_line_among_short_ones_has_finite_scores() {
    let folder = Folder::new();
    let mut text = corpus().split_whitespace().collect::<String>();
    text.truncate((0..=10_000).rev().find(|&at| text.is_char_boundary(at)).unwrap());
    for word in ["low", "lower", "newest"] {
        text.push_str(&format!("\n{word}"));
    }
    let path = folder.write("lines.txt", text);
    train(&folder, "unigram --lines --vocab-size 150", &path);
    for round in steps(&folder) {
        assert!(round["log_likelihood"].as_f64().unwrap().is_finite(), "{round}");
    }
}

/// Lines of 64 KB are asserted away, or skipped without a word.
#[test]
fn a_line_of_70000_words_is_trained_on() {
    let folder = Folder::new();
    let path = folder.write("line.txt", "ab ".repeat(70_000));
    for options in ["bpe --vocab-size 258", "wordpiece --vocab-size 4", "unigram --vocab-size 5"] {
        let summary = train(&folder, options, &path);
        let pieces = summary["pieces"].as_u64().unwrap();
        assert!((70_000..=70_001).contains(&pieces), "{options}: {pieces}");
    }
}

/// A byte alphabet that leaves characters unknown, since the `##` forms are missing.
#[test]
fn a_byte_alphabet_knows_every_text() {
    let folder = Folder::new();
    let path = folder.write("corpus.txt", corpus());
    let model = folder.at("t.json");
    run(["train", "bpe", &path, "-o", &model, "--vocab-size", "300"]).code(0);
    for text in ["\u{739}\u{741}", "漢字カナ", "👩‍👩‍👧"] {
        let ids = run(["encode", text, "--model", &model]).code(0);
        let back = common::run_with(["decode", "--model", &model], ids.text().trim().as_bytes());
        assert_eq!(back.code(0).text(), text);
        assert!(!tokens(text, &model).contains(&"<unk>".to_owned()));
    }
    // WordPiece over bytes has both forms of all 256 (it has no file format).
    let summary = train(&folder, "wordpiece --unit byte --vocab-size 520", &path);
    assert_eq!(summary["models"][0]["vocab_size"], 520);
    run(["train", "wordpiece", &path, "--unit", "byte", "--vocab-size", "511"]).code(2).says("512");
}

/// Training from counts of words, and counting on many machines.
#[test]
fn counts_train_as_the_text_they_stand_for() {
    let folder = Folder::new();
    let text = folder.write("t.txt", format!("{}lower lower", "low ".repeat(5)));
    let shard = folder.write("c.tsv", "low\t5\nlower\t2\n");
    for algorithm in
        ["bpe --unit char --vocab-size 9", "wordpiece --criterion frequency --vocab-size 10"]
    {
        let mut arguments = words("train --quiet --pretok whitespace");
        arguments.extend(words(algorithm));
        arguments.extend(["--trace".into(), folder.at("trace.jsonl")]);
        run(arguments.iter().chain([&text])).code(0);
        let from_text = steps(&folder);
        run(arguments.iter().map(String::as_str).chain(["--counts", &shard])).code(0);
        assert_eq!(steps(&folder), from_text, "{algorithm}");
        // The trace gives the frequencies back.
        assert_eq!(from_text[0]["count"], 7);
    }
}
