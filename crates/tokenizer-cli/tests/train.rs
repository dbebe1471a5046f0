//! `tok train`: every algorithm to a file and back, worked examples, options, failures.

#![allow(clippy::unwrap_used)] // A test's unwrap is its assertion.

mod common;

#[cfg(unix)]
use common::killed_and_resumed;
use common::{Folder, corpus, run, run_with, words};
use serde_json::Value;

/// Trains, encodes every awkward text with the file, decodes, and gives the round trips that
/// failed.
#[track_caller]
fn round_trips(folder: &Folder, options: &str, out: &str) -> Vec<&'static str> {
    let text = folder.write("corpus.txt", corpus());
    let path = folder.at(out);
    let mut arguments = vec!["train".to_owned()];
    arguments.extend(words(options));
    arguments.extend([text, "-o".into(), path.clone(), "--json".into()]);
    let summary = run(&arguments).code(0).json();
    assert!(summary["models"][0]["compared_bytes"].as_u64() > Some(1000), "{summary}");
    let extra: &[&str] = if out.ends_with("tiktoken") { &["--pattern", "gpt2"] } else { &[] };
    let mut failed = Vec::new();
    for (name, awkward) in testkit::texts::AWKWARD {
        let mut encode = vec!["encode", "--model", &path, "--json"];
        encode.extend(extra);
        // No argument holds a NUL; that text is one line.
        let encoded = if awkward.contains('\0') {
            run_with(&encode, awkward.as_bytes()).code(0).json()
        } else {
            encode.extend(["--", awkward]);
            run(&encode).code(0).json()
        };
        let ids: Vec<String> =
            encoded["ids"].as_array().unwrap().iter().map(Value::to_string).collect();
        let offsets = encoded["offsets"].as_array().unwrap();
        assert_eq!(ids.len(), offsets.len());
        for offset in offsets {
            let (start, end) = (offset[0].as_u64().unwrap(), offset[1].as_u64().unwrap());
            assert!(awkward.get(start as usize..end as usize).is_some(), "{name}: {offset}");
        }
        let mut decode = vec!["decode", "--model", &path];
        decode.extend(extra);
        let decoded = run_with(&decode, ids.join(" ").as_bytes()).code(0);
        if decoded.stdout != awkward.as_bytes() {
            failed.push(*name);
        }
    }
    failed
}

#[test]
fn bpe_over_bytes_round_trips_every_text() {
    assert!(round_trips(&Folder::new(), "bpe --vocab-size 600", "t.json").is_empty());
}

#[test]
fn bpe_ranks_round_trip_every_text() {
    assert!(round_trips(&Folder::new(), "bpe --vocab-size 600", "t.tiktoken").is_empty());
}

#[test]
fn bpe_with_byte_fallback_round_trips_every_text() {
    let options = "bpe --unit char --byte-fallback --pretok metaspace --vocab-size 900";
    // `▁` is a space where spaces are marked.
    assert_eq!(round_trips(&Folder::new(), options, "t.json"), ["special_token_text"]);
}

#[test]
fn bpe_in_a_sentencepiece_model_round_trips_every_text() {
    let options = "bpe --unit char --byte-fallback --vocab-size 900";
    let failed = round_trips(&Folder::new(), options, "t.model");
    // `▁` is a space in every SentencePiece model.
    assert_eq!(failed, ["special_token_text"]);
}

#[test]
fn unigram_round_trips_every_text_with_byte_fallback() {
    let options = "unigram --byte-fallback --vocab-size 900";
    let failed = round_trips(&Folder::new(), options, "t.model");
    assert_eq!(failed, ["special_token_text"]);
}

#[test]
fn unigram_in_a_tokenizer_json_keeps_known_text() {
    let failed = round_trips(&Folder::new(), "unigram --vocab-size 600", "t.json");
    assert!(!failed.contains(&"spaces") && !failed.contains(&"run_of_one_letter"), "{failed:?}");
}

#[test]
fn bytes_round_trip_every_text() {
    assert!(round_trips(&Folder::new(), "byte", "t.json").is_empty());
}

#[test]
fn chars_round_trip_every_text_with_byte_fallback() {
    let options = "char --byte-fallback --vocab-size 400";
    assert_eq!(round_trips(&Folder::new(), options, "t.json"), Vec::<&str>::new());
}

#[test]
fn wordpiece_and_words_are_written_and_read() {
    let folder = Folder::new();
    round_trips(&folder, "wordpiece --vocab-size 600", "wordpiece.json");
    round_trips(&folder, "wordpiece --vocab-size 600 --normalizer bert-cased", "wordpiece.txt");
    round_trips(&folder, "word --vocab-size 600", "word.json");
}

#[test]
fn every_splitter_is_written_or_refused_in_words() {
    let folder = Folder::new();
    let awkward: String = testkit::texts::AWKWARD.iter().flat_map(|(_, t)| [t, "\n"]).collect();
    let text = folder.write("corpus.txt", awkward.repeat(2));
    for (name, _) in pretok::names() {
        let name = match name.strip_suffix("PATTERN") {
            Some(prefix) => format!(r"{prefix}\p{{L}}+|\p{{N}}{{1,2}}|\s+$"),
            None => name.replace('N', "3"),
        };
        for options in ["--merges 60", "--merges 60 --unit char"] {
            let mut arguments = words("train bpe --json");
            arguments.extend(words(options));
            let out = folder.at("t.json");
            arguments.extend(["--pretok".into(), name.clone(), text.clone(), "-o".into(), out]);
            // The program compares the file with the model by itself.
            let summary = run(&arguments).code(0).json();
            let compared = summary["models"][0]["compared_bytes"].as_u64();
            assert!(compared > Some(1000), "{name}: {summary}");
        }
    }
    let arguments = ["train", "bpe", &text, "--merges", "5", "-o", &folder.at("t.json")];
    for (pattern, why) in [
        ("regex:(?m)^a", "means something else"),
        (r"regex:\p{N}{1,3}+|.", "means something else"),
        ("regex:(", "not usable"),
        ("gpt3", "no splitter is called `gpt3`"),
        ("digits3,metaspace", "must be the first"),
    ] {
        run(arguments.iter().copied().chain(["--pretok", pattern])).code(2).says(why);
    }
}

fn trace(path: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn merged(step: &Value) -> String {
    let unhex = |text: &Value| {
        let text = text.as_str().unwrap();
        let bytes: Vec<u8> = (0..text.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap())
            .collect();
        String::from_utf8(bytes).unwrap()
    };
    format!("{} {}", unhex(&step["left"]), unhex(&step["right"]))
}

/// Sennrich, Haddow and Birch 2016, with ties by first occurrence.
#[test]
fn textbook_words_merge_as_the_paper_says() {
    let folder = Folder::new();
    let mut text = String::new();
    for (word, count) in [("low", 5), ("lower", 2), ("newest", 6), ("widest", 3)] {
        text.push_str(&format!("{word} ").repeat(count));
    }
    let text = folder.write("words.txt", text);
    let (out, steps) = (folder.at("t.json"), folder.at("steps.jsonl"));
    let mut arguments = words(
        "train bpe --merges 9 --unit char --end-of-word </w> --ties first-occurrence --quiet",
    );
    arguments.extend([text, "-o".into(), out.clone(), "--trace".into(), steps.clone()]);
    run(&arguments).code(0);
    let merges: Vec<String> = trace(&steps).iter().map(merged).collect();
    assert_eq!(
        merges,
        ["e s", "es t", "est </w>", "l o", "lo w", "n e", "ne w", "new est</w>", "low </w>"]
    );
    let encoded = run(["encode", "lowest", "--model", &out, "--json"]).code(0).json();
    assert_eq!(encoded["tokens"], serde_json::json!(["low", "est</w>"]));
    let decoded = run(["decode", "--model", &out]).code(0);
    assert_eq!(decoded.text(), "");
    let ids = run(["encode", "lowest newer low", "--model", &out]).code(0);
    let decoded = run_with(["decode", "--model", &out], ids.text().trim_end().as_bytes()).code(0);
    assert_eq!(decoded.text(), "lowest newer low");
}

#[test]
fn end_of_word_suffixes_are_glued_on_request() {
    let folder = Folder::new();
    let text = folder.write("words.txt", "low low low lower");
    let (out, steps) = (folder.at("t.json"), folder.at("steps.jsonl"));
    let mut arguments = words("train bpe --merges 2 --unit char --end-of-word </w> --quiet");
    arguments.extend(words("--end-of-word-as suffix --ties first-occurrence"));
    arguments.extend([text, "-o".into(), out.clone(), "--trace".into(), steps.clone()]);
    run(&arguments).code(0);
    let merges: Vec<String> = trace(&steps).iter().map(merged).collect();
    assert_eq!(merges, ["l o", "lo w</w>"]);
    let encoded = run(["encode", "low", "--model", &out, "--json"]).code(0).json();
    assert_eq!(encoded["tokens"], serde_json::json!(["low</w>"]));
}

#[test]
fn traces_have_the_form_that_scripts_read() {
    let folder = Folder::new();
    let text = folder.write("t.txt", "aaab aaab");
    let steps = folder.at("steps.jsonl");
    let arguments = ["train", "bpe", &text, "--merges", "1", "--pretok", "none", "--trace", &steps];
    run(arguments).code(0);
    let line = std::fs::read_to_string(&steps).unwrap();
    let expected = serde_json::json!({
        "step": 1, "left": "61", "right": "61", "token": "6161", "id": 256, "count": 4
    });
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), expected);

    let text = folder.write("corpus.txt", corpus());
    run(["train", "unigram", &text, "--vocab-size", "500", "--trace", &steps]).code(0);
    let rounds = trace(&steps);
    assert!(rounds.iter().all(|round| round["pieces_after"].is_u64()), "{rounds:?}");
}

/// hug x10, pug x5, pun x12, bun x4, hugs x5: the best score is 5 / (20 * 5).
#[test]
fn wordpiece_merges_by_score() {
    let folder = Folder::new();
    let shard = folder.write("c.tsv", "hug\t10\npug\t5\npun\t12\nbun\t4\nhugs\t5\n");
    let steps = folder.at("steps.jsonl");
    let mut arguments = words("train wordpiece --vocab-size 12 --quiet --counts");
    arguments.extend([shard, "--trace".into(), steps.clone()]);
    run(&arguments).code(0);
    assert_eq!(merged(&trace(&steps)[0]), "##g ##s");
}

#[test]
fn several_sizes_are_one_training_and_equal_their_own() {
    let folder = Folder::new();
    let text = folder.write("corpus.txt", corpus());
    for (algorithm, small, large) in [("bpe", "300", "400"), ("wordpiece", "300", "500")] {
        let both = format!("{small},{large}");
        let out = folder.at(&format!("{algorithm}.json"));
        run(["train", algorithm, &text, "-o", &out, "--vocab-size", &both]).code(0);
        for size in [small, large] {
            let alone = folder.at("alone.json");
            run(["train", algorithm, &text, "-o", &alone, "--vocab-size", size]).code(0);
            let cut = std::fs::read(folder.at(&format!("{algorithm}.{size}.json"))).unwrap();
            assert_eq!(cut, std::fs::read(alone).unwrap(), "{algorithm} {size}");
        }
    }
}

#[test]
fn special_and_reserved_tokens_get_the_first_ids() {
    let folder = Folder::new();
    let text = folder.write("corpus.txt", corpus());
    for algorithm in ["bpe", "wordpiece", "unigram", "char", "word", "byte"] {
        let out = folder.at("t.json");
        let mut arguments = words("train");
        arguments.extend([algorithm.to_owned(), text.clone(), "-o".into(), out.clone()]);
        arguments.extend(words("--special <s> </s> --reserved 2"));
        if algorithm != "byte" {
            arguments.extend(words("--vocab-size 500"));
        }
        run(&arguments).code(0);
        let parsed = run(["encode", "<s>", "--special", "parse", "--model", &out]).code(0);
        assert_eq!(common::ids(&parsed).len(), 1, "{algorithm}");
        assert!(common::ids(&parsed)[0] < 4, "{algorithm}");
        let plain = run(["encode", "<s>", "--model", &out]).code(0);
        assert_ne!(common::ids(&plain), common::ids(&parsed), "{algorithm}");
        run(["encode", "a <s>", "--special", "reject", "--model", &out]).code(3).says("<s>");
    }
}

#[test]
fn counts_train_as_their_text_does() {
    let folder = Folder::new();
    let text = folder.write("corpus.txt", corpus());
    let half = corpus().len() / 2;
    let half = corpus()[..half].rfind('\n').unwrap() + 1;
    let parts =
        [folder.write("1.txt", &corpus()[..half]), folder.write("2.txt", &corpus()[half..])];
    let shards = [folder.at("1.counts"), folder.at("2.counts")];
    for (part, shard) in parts.iter().zip(&shards) {
        run(["counts", "write", part, "-o", shard]).code(0);
    }
    let merged = folder.at("all.counts");
    run(["counts", "merge", &shards[0], &shards[1], "-o", &merged]).code(0);
    let (a, b) = (folder.at("a.json"), folder.at("b.json"));
    let options = ["--vocab-size", "400", "--ties", "first-occurrence"];
    run(["train", "bpe", &parts[0], &parts[1], "-o", &a].into_iter().chain(options)).code(0);
    run(["train", "bpe", "--counts", &merged, "-o", &b].into_iter().chain(options)).code(0);
    assert_eq!(std::fs::read(&a).unwrap(), std::fs::read(&b).unwrap());
    let shown = run(["counts", "show", &merged, "--json"]).code(0).json();
    assert_eq!(shown["extent"].as_u64(), Some(std::fs::metadata(text).unwrap().len()));
    let tsv = folder.at("all.tsv");
    run(["counts", "merge", &merged, "-o", &tsv]).code(0);
    assert!(run(["counts", "show", &tsv]).code(0).text().contains("distinct pieces"));
}

#[test]
fn packed_text_and_json_lines_train_as_plain_text() {
    use std::io::Write;
    let folder = Folder::new();
    let lines: Vec<String> = corpus().lines().take(40).map(str::to_owned).collect();
    let plain = folder.write("plain.txt", lines.join("\n") + "\n");
    let json: String =
        lines.iter().map(|l| serde_json::json!({"body": l, "id": 1}).to_string() + "\n").collect();
    let json_lines = folder.write("lines.jsonl", &json);
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(json.as_bytes()).unwrap();
    let gz = folder.write("lines.jsonl.gz", packer.finish().unwrap());
    let zst = folder
        .write("plain.txt.zst", zstd::encode_all(std::fs::File::open(&plain).unwrap(), 1).unwrap());
    let train = |input: &[&str]| {
        let out = folder.at("t.json");
        let mut arguments = vec!["train", "bpe", "--vocab-size", "300", "-o", &out];
        arguments.extend(input);
        run(&arguments).code(0);
        std::fs::read(out).unwrap()
    };
    let expected = train(&[&plain, "--lines"]);
    assert_eq!(train(&[&zst, "--lines"]), expected);
    assert_eq!(train(&[&json_lines, "--field", "body"]), expected);
    assert_eq!(train(&[&gz, "--field", "body"]), expected);
    run(["train", "bpe", &json_lines, "--vocab-size", "300"]).code(3).says("no field \"text\"");
    let broken = folder.write("broken.jsonl", "{\"text\": \"a\"}\n{\"text\": \n");
    run(["train", "bpe", &broken, "--vocab-size", "300"]).code(3).says("broken.jsonl:2");
}

#[test]
fn sizes_that_cannot_be_say_what_is_needed() {
    let folder = Folder::new();
    let alphabet: String = (0..300).filter_map(|i| char::from_u32(0x4E00 + i)).collect();
    let text = folder.write("t.txt", &alphabet);
    let char_unit = ["train", "bpe", &text, "--unit", "char", "--vocab-size"];
    run(char_unit.iter().copied().chain(["100"])).code(2).says("301");
    let exactly = run(char_unit.iter().copied().chain(["301", "--json"])).code(0).json();
    assert_eq!(exactly["models"][0]["vocab_size"], 301);
    run(["train", "wordpiece", &text, "--vocab-size", "100"]).code(2).says("at least");
    run(["train", "unigram", &text, "--vocab-size", "100"]).code(2).says("need");
    run(["train", "bpe", &text, "--vocab-size", "100"]).code(2).says("256");
    run(["train", "bpe", &text, "--vocab-size", "100,400"]).code(2).says("256");
}

#[test]
fn tiny_and_odd_inputs_do_not_panic() {
    let folder = Folder::new();
    let inputs: [(&str, &[u8]); 5] = [
        ("empty", b""),
        ("one", b"a"),
        ("emoji", "\u{1F600}".as_bytes()),
        ("nul", b"\0"),
        ("crlf", b"\r\n"),
    ];
    for (name, bytes) in inputs {
        let text = folder.write(name, bytes);
        for algorithm in ["bpe", "wordpiece", "unigram", "char", "word", "byte"] {
            let size: &[&str] = if algorithm == "byte" { &[] } else { &["--vocab-size", "300"] };
            let out = folder.at("t.json");
            let arguments = ["train", algorithm, &text, "-o", &out];
            let result = run(arguments.iter().chain(size));
            assert!(!result.stderr.contains("panicked"), "{name} {algorithm}: {}", result.stderr);
            assert!(
                [Some(0), Some(2)].contains(&result.code),
                "{name} {algorithm}: {}",
                result.stderr
            );
        }
    }
    let bad = folder.write("bad.txt", b"ok \xFF");
    run(["train", "bpe", &bad, "--vocab-size", "300"]).code(3).says("byte 3 is not UTF-8");
    run(["train", "bpe", &bad, "--vocab-size", "300", "--lossy"]).code(0);
}

#[test]
fn what_a_format_cannot_say_is_refused_before_the_work() {
    let folder = Folder::new();
    let text = folder.write("t.txt", corpus());
    for (options, out, why) in [
        ("bpe --vocab-size 300", "t.model", "--unit char"),
        ("bpe --vocab-size 300 --unit char", "t.tiktoken", "bpe over bytes"),
        ("bpe --special <s> --vocab-size 300", "t.tiktoken", "no special"),
        ("bpe --vocab-size 300 --pretok digits3,gpt2", "t.tiktoken", "one regular expression"),
        ("bpe --vocab-size 300", "t.txt", "wordpiece"),
        ("unigram --vocab-size 300", "t.txt", "wordpiece"),
        ("unigram --vocab-size 300 --pretok gpt2", "t.model", "metaspace or none"),
        ("wordpiece --vocab-size 300 --unit byte", "t.json", "no file format"),
        ("wordpiece --vocab-size 300 --pretok whitespace", "t.txt", "as BERT does"),
        ("wordpiece --special <s> --vocab-size 300", "t.txt", "[CLS]"),
        (
            "bpe --vocab-size 300 --end-of-word </w> --pretok gpt2 --unit char",
            "t.json",
            "whitespace",
        ),
        ("bpe --vocab-size 300 --end-of-word </w>", "t.json", "suffix"),
        ("bpe --vocab-size 300", "t.bin", "ending"),
        ("bpe --vocab-size 300 --normalizer nfx", "t.json", "no normalizer `nfx`"),
        ("bpe", "t.json", "--vocab-size N or --merges N"),
        ("unigram --vocab-size 300 --ties lowest-ids", "t.json", "unigram has no --ties"),
        ("word --vocab-size 300 --byte-fallback", "t.json", "word has no --byte-fallback"),
    ] {
        let mut arguments = words("train");
        arguments.extend(words(options));
        arguments.extend([text.clone(), "-o".into(), folder.at(out)]);
        run(&arguments).code(2).says(why);
    }
    assert_eq!(folder.names(), ["t.txt"]);
}

#[test]
fn places_that_cannot_be_written_fail_and_leave_nothing() {
    let folder = Folder::new();
    let text = folder.write("t.txt", "some text");
    let train = |out: &str| run(["train", "bpe", &text, "--vocab-size", "260", "-o", out]);
    std::fs::create_dir(folder.path().join("d.json")).unwrap();
    train(&folder.at("d.json")).code(3).says("is a directory");
    train(&folder.at("no/such/folder/t.json")).code(3).says("t.json");
    run(["train", "bpe", &folder.at("missing.txt"), "--vocab-size", "260"]).code(3).says("missing");
    run(["train", "bpe", "--vocab-size", "260"]).code(2);
    assert_eq!(folder.names(), ["d.json", "t.txt"]);
    #[cfg(target_os = "linux")]
    {
        let link = folder.path().join("full.json");
        std::os::unix::fs::symlink("/dev/full", &link).unwrap();
        train(link.to_str().unwrap()).code(3).says("No space left");
    }
}

#[test]
fn normalizers_are_part_of_the_file() {
    let folder = Folder::new();
    let text = folder.write("t.txt", corpus());
    for (normalizer, out) in [
        ("nfd,strip-accents,lowercase", "t.json"),
        ("nfkc", "t.json"),
        ("bert", "t.json"),
        ("nmt_nfkc", "t.model"),
        ("nmt_nfkc", "t.json"),
    ] {
        let out = folder.at(out);
        let arguments = ["train", "unigram", &text, "--vocab-size", "400", "-o", &out];
        run(arguments.iter().copied().chain(["--normalizer", normalizer])).code(0);
        let plain = run(["encode", "Free", "--model", &out]).code(0);
        let full_width = run(["encode", "Ｆｒｅｅ", "--model", &out]).code(0);
        assert_eq!(plain.stdout == full_width.stdout, normalizer.contains("nfkc"), "{normalizer}");
    }
    let uncased = folder.at("uncased.txt");
    let arguments = ["train", "wordpiece", &text, "--vocab-size", "400", "-o", &uncased];
    run(arguments.iter().copied().chain(["--normalizer", "bert"])).code(0);
    let upper = run(["encode", "FREEDOM", "--model", &uncased]).code(0);
    assert_eq!(upper.stdout, run(["encode", "freedom", "--model", &uncased]).code(0).stdout);
}

/// A long training is interrupted: it ends with the shell's code for that and leaves nothing.
#[cfg(unix)]
#[test]
fn an_interrupt_leaves_no_half_written_file() {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};
    let folder = Folder::new();
    // Letters without repeats to keep the trainer busy.
    let mut random = 1u64;
    let text: String = (0..4_000_000)
        .map(|_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'a' + (random >> 33) as u8 % 26)
        })
        .collect();
    let text = folder.write("t.txt", text);
    let mut child = common::tok()
        .args(["train", "bpe", &text, "--vocab-size", "100000", "--pretok", "none"])
        .args(["-o", &folder.at("t.json"), "--trace", &folder.at("steps.jsonl")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    // The trace is open when its temporary file is there.
    while folder.names().len() < 2 {
        assert!(start.elapsed() < Duration::from_secs(60), "the training does not begin");
        assert!(child.try_wait().unwrap().is_none(), "the training ended before the interrupt");
        std::thread::sleep(Duration::from_millis(5));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(folder.names(), ["t.txt"]);
}

/// The greatest amount of memory that a run had, in kilobytes.
#[cfg(target_os = "linux")]
fn peak_kilobytes(arguments: &[&str]) -> u64 {
    // A shell that becomes the program cannot look at it; GNU time may be missing. The kernel keeps
    // the peak of a process until its parent has waited for it.
    let mut child = common::tok()
        .args(arguments)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::inherit())
        .spawn()
        .unwrap();
    let path = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        let status = std::fs::read_to_string(&path).unwrap_or_default();
        if let Some(line) = status.lines().find(|line| line.starts_with("VmHWM:")) {
            peak = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        }
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            return peak;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// Issues of other trainers: 20 GB of text take more than 1.5 TB. Here distinct strings of 40 letters.
#[test]
#[cfg(target_os = "linux")]
fn distinct_strings_are_counted_within_the_memory_that_is_given() {
    let folder = Folder::new();
    let mut rng = tokenizer_core::Rng::new(5);
    let mut text = Vec::new();
    for _ in 0..1_500_000 {
        text.extend((0..39).map(|_| b'a' + rng.below(26) as u8));
        text.push(b'\n');
    }
    let text = folder.write("strings.txt", text);
    let (small, large) = (folder.at("small.counts"), folder.at("large.counts"));
    let common = ["counts", "write", &text, "-o"];
    let mut arguments = common.to_vec();
    arguments.extend([&small, "--max-memory", "128M", "--threads", "2"]);
    let bounded = peak_kilobytes(&arguments);
    assert!(bounded < 128 << 10, "{bounded} KB");
    let mut arguments = common.to_vec();
    arguments.extend([&large, "--threads", "2"]);
    let free = peak_kilobytes(&arguments);
    assert!(free > 160 << 10, "{free} KB: the bound was no bound");
    assert_eq!(std::fs::read(&small).unwrap(), std::fs::read(&large).unwrap());
    // What cannot be trained on within the bound is refused early, in words.
    let train = ["train", "bpe", "--counts", &small, "--vocab-size", "300", "--max-memory", "128M"];
    run(train).code(3).says("1500001 distinct pieces").says("--max-memory is 128 MB");
    run(["train", "bpe", &text, "--vocab-size", "300", "--max-memory", "1M"]).code(2);
}

#[test]
fn counting_within_a_bound_trains_the_same() {
    let folder = Folder::new();
    let text = folder.write("corpus.txt", corpus());
    let (free, bounded) = (folder.at("free.json"), folder.at("bounded.json"));
    run(["train", "bpe", &text, "-o", &free, "--vocab-size", "400"]).code(0);
    let memory = ["--max-memory", "0.25G", "--threads", "3"];
    let train = ["train", "bpe", &text, "-o", &bounded, "--vocab-size", "400"];
    run(train.iter().chain(&memory)).code(0);
    assert_eq!(std::fs::read(free).unwrap(), std::fs::read(bounded).unwrap());
}

/// Counting on two machines and merging is counting on one.
#[test]
fn shards_merge_to_the_bytes_of_one_machine() {
    let folder = Folder::new();
    let text = String::from_utf8(corpus().into()).unwrap();
    let half = (text.len() / 2..).find(|&at| text.is_char_boundary(at)).unwrap();
    let paths = [folder.write("a.txt", &text[..half]), folder.write("b.txt", &text[half..])];
    let (a, b) = (folder.at("a.counts"), folder.at("b.counts"));
    let (merged, one) = (folder.at("merged.counts"), folder.at("one.counts"));
    run(["counts", "write", &paths[0], "-o", &a]).code(0);
    run(["counts", "write", &paths[1], "-o", &b]).code(0);
    run(["counts", "merge", &a, &b, "-o", &merged]).code(0);
    run(["counts", "write", &paths[0], &paths[1], "-o", &one, "--max-memory", "128M"]).code(0);
    assert_eq!(std::fs::read(&merged).unwrap(), std::fs::read(&one).unwrap());
    let (from_text, from_shards) = (folder.at("t.json"), folder.at("s.json"));
    run(["train", "bpe", &paths[0], &paths[1], "-o", &from_text, "--vocab-size", "400"]).code(0);
    let shards = ["--counts", &a, &b];
    let train = ["train", "bpe", "--max-memory", "1G", "-o", &from_shards, "--vocab-size", "400"];
    run(train.iter().chain(&shards)).code(0);
    assert_eq!(std::fs::read(from_text).unwrap(), std::fs::read(from_shards).unwrap());
}

#[test]
fn characters_at_the_ends_of_blocks_are_whole() {
    let folder = Folder::new();
    // Blocks of 1 MiB end within a character of three bytes, whatever comes first.
    for ahead in ["", "a", "ab"] {
        let text = format!("{ahead}{}", "日本語 ".repeat(150_000));
        let path = folder.write("text.txt", &text);
        let shown = run(["counts", "write", &path, "-o", &folder.at("t.counts")]).code(0);
        assert!(shown.text().contains(" in all"), "{}", shown.text());
        let json = run(["counts", "show", &folder.at("t.counts"), "--json"]).code(0).json();
        assert_eq!(json["extent"].as_u64(), Some(text.len() as u64));
        assert_eq!(json["pieces"].as_u64(), Some(150_001), "{json}");
    }
    let mut bytes = vec![b'a'; (1 << 20) - 1];
    bytes.extend("é".as_bytes());
    bytes[7] = 0xFF;
    let path = folder.write("bad.txt", &bytes);
    let out = folder.at("bad.counts");
    run(["counts", "write", &path, "-o", &out]).code(3).says("byte 7 is not UTF-8");
    run(["counts", "write", &path, "-o", &out, "--lossy"]).code(0);
    bytes[7] = b'a';
    bytes.truncate(1 << 20);
    let path = folder.write("cut.txt", &bytes);
    run(["counts", "write", &path, "-o", &out]).code(3).says("byte 1048575 is not UTF-8");
}

#[test]
fn unigram_sizes_are_taken_on_the_way_down_of_one_training() {
    let folder = Folder::new();
    let text = folder.write("corpus.txt", corpus());
    let (out, steps) = (folder.at("u.model"), folder.at("rounds.jsonl"));
    let sizes = "300,500,800";
    let mut arguments = words("train unigram --json --vocab-size");
    arguments.extend([
        sizes.into(),
        text.clone(),
        "-o".into(),
        out,
        "--trace".into(),
        steps.clone(),
    ]);
    let summary = run(&arguments).code(0).json();
    let made: Vec<_> =
        summary["models"].as_array().unwrap().iter().map(|m| m["vocab_size"].as_u64()).collect();
    assert_eq!(made, [Some(300), Some(500), Some(800)]);
    assert!(trace(&steps).len() >= 3);
    let alone = folder.at("alone.model");
    run(["train", "unigram", &text, "-o", &alone, "--vocab-size", "800"]).code(0);
    let largest = std::fs::read(folder.at("u.800.model")).unwrap();
    assert_eq!(largest, std::fs::read(alone).unwrap());
}

#[test]
#[cfg(unix)]
fn bpe_killed_at_any_moment_resumes_to_the_same_bytes() {
    killed_and_resumed(&["bpe", "--vocab-size", "1500"], "json");
    killed_and_resumed(&["bpe", "--merges", "900", "--ties", "first-occurrence"], "json");
}

#[test]
#[cfg(unix)]
fn wordpiece_killed_at_any_moment_resumes_to_the_same_bytes() {
    killed_and_resumed(&["wordpiece", "--vocab-size", "1500"], "json");
}

#[test]
#[cfg(unix)]
fn unigram_killed_at_any_moment_resumes_to_the_same_bytes() {
    killed_and_resumed(&["unigram", "--vocab-size", "1200", "--shrinking-factor", "0.95"], "model");
}

#[test]
fn checkpoints_of_other_trainings_are_refused() {
    let folder = Folder::new();
    let text = folder.write("corpus.txt", corpus());
    let checkpoint = folder.at("c");
    // A limit that only an impossible size passes leaves the checkpoint behind.
    let train = |size: &'static str| {
        let arguments = ["train", "unigram", &text, "--vocab-size", size];
        let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        arguments.into_iter().chain(["--checkpoint".into(), checkpoint.clone()])
    };
    run(train("900000")).code(2).says("at most");
    assert!(folder.names().contains(&"c.counts".to_owned()), "{:?}", folder.names());
    run(train("900000").chain(["--resume".into()])).code(2).says("at most");
    run(train("400").chain(["--resume".into()])).code(2).says("other options");
    run(train("400")).code(0);
    run(train("400").chain(["--resume".into()])).code(0).says("from the beginning");
    std::fs::write(&checkpoint, "nothing\n").unwrap();
    run(train("400").chain(["--resume".into()])).code(3).says("no checkpoint of a training");
}

/// A full disk is an error in words and leaves the older file.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_leaves_the_old_file() {
    let folder = Folder::new();
    let text = folder.write("corpus.txt", corpus());
    let (out, checkpoint) = (folder.write("t.json", "old"), folder.at("c"));
    let program = env!("CARGO_BIN_EXE_tok");
    // Files may have 4 KB; the signal that would end the program is ignored.
    for more in ["", " --checkpoint"] {
        let tail = if more.is_empty() { String::new() } else { format!("{more} {checkpoint}") };
        let line = format!(
            "trap '' XFSZ; ulimit -f 4; exec {program} train bpe {text} --vocab-size 600 -o {out}{tail}"
        );
        let output = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{stderr}");
        let name = if more.is_empty() { "t.json" } else { "c.counts" };
        assert!(stderr.contains(name) && stderr.contains("large"), "{stderr}");
        assert_eq!(std::fs::read(&out).unwrap(), b"old");
    }
    assert_eq!(folder.names(), ["corpus.txt", "t.json"]);
}

#[test]
fn sizes_are_padded_and_limits_are_hard_on_request() {
    let folder = Folder::new();
    let text = folder.write("corpus.txt", corpus());
    for algorithm in ["bpe", "wordpiece", "unigram"] {
        let train = ["train", algorithm, &text, "--vocab-size", "500,600", "--pad-to", "128"];
        let summary = run(train.iter().chain(&["--json"])).code(0).json();
        let made: Vec<_> = summary["models"].as_array().unwrap().iter().collect();
        assert_eq!(made[0]["vocab_size"], 512, "{algorithm}");
        assert_eq!(made[1]["vocab_size"], 640, "{algorithm}");
    }
    let small = folder.write("small.txt", "a b c d a b c");
    for (algorithm, most) in [("bpe", "260"), ("unigram", "9"), ("wordpiece", "5")] {
        let train = ["train", algorithm, &small, "--vocab-size", "4000", "--vocab-limit"];
        run(train.iter().chain(&["hard"])).code(2).says(most);
        let summary = run(train.iter().chain(&["soft", "--json"])).code(0).json();
        assert_eq!(summary["models"][0]["vocab_size"].to_string(), most, "{algorithm}");
    }
}

#[test]
fn samples_are_chosen_by_the_seed_alone() {
    let folder = Folder::new();
    let text = folder.write("corpus.txt", corpus());
    let train = |seed: &'static str, threads: &'static str| {
        let arguments = ["train", "bpe", &text, "--lines", "--vocab-size", "300", "--json"];
        let sample = ["--sample", "0.3", "--seed", seed, "--threads", threads];
        run(arguments.iter().chain(&sample)).code(0).json()
    };
    let (a, b, other) = (train("7", "1"), train("7", "3"), train("8", "1"));
    assert_eq!((&a["documents"], &a["pieces"]), (&b["documents"], &b["pieces"]));
    assert_ne!(a["pieces"], other["pieces"]);
    let all = corpus().lines().count() as f64;
    let share = a["documents"].as_f64().unwrap() / all;
    assert!((0.2..0.4).contains(&share), "{share}");
}
