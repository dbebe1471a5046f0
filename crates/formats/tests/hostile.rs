//! Damaged files: each format's small valid files with bytes flipped, cut out, doubled and put in,
//! thousands of times. Whatever comes out must be a document or an error, never a panic, and a
//! document must survive writing and reading.

#![allow(clippy::unwrap_used, reason = "the helpers of tests may unwrap as tests may")]

use formats::counts;
use formats::gpt2::Gpt2;
use formats::sentencepiece::SentencePieceModel;
use formats::tekken::Tekken;
use formats::tokenizer_json::TokenizerJson;
use formats::vocab_txt::VocabTxt;
use formats::{Layout, detect, gguf, tiktoken};
use tokenizer_core::{PieceCounts, Rng, TokenKind};

const ROUNDS: usize = 4000;

/// Calls `read` with damaged forms of `file`.
fn damage(name: &str, file: &[u8], mut read: impl FnMut(&[u8])) {
    let mut rng = Rng::new(name.len() as u64);
    let mut below = |bound: usize| (rng.next_u64() % bound.max(1) as u64) as usize;
    for _ in 0..ROUNDS {
        let mut bad = file.to_vec();
        for _ in 0..1 + below(3) {
            let (at, other) = (below(bad.len()), below(bad.len()));
            let (start, end) = (at.min(other), at.max(other).min(at.min(other) + 40));
            match below(7) {
                0 if !bad.is_empty() => bad[at] ^= 1 << below(8),
                1 if !bad.is_empty() => {
                    bad[at] = [0, 0x7F, 0x80, 0xFF, b'"', b'\\', b'\n'][below(7)];
                }
                2 => bad.truncate(at),
                3 => drop(bad.drain(start..end)),
                4 => {
                    let copy = bad[start..end].to_vec();
                    bad.splice(at..at, copy);
                }
                5 => drop(bad.splice(at..at, [0xFF; 9])),
                _ => {
                    let interesting: &[&[u8]] = &[
                        b"4294967295",
                        b"-1",
                        b"1e999",
                        b"null",
                        b"[[[[",
                        b"{",
                        b"\\ud800",
                        b"\t",
                        b" ",
                    ];
                    bad.splice(at..at, interesting[below(interesting.len())].iter().copied());
                }
            }
        }
        read(&bad);
    }
}

#[test]
fn tokenizer_json() {
    let files: [&str; 3] = [
        r###"{"version":"1.0","truncation":{"direction":"Left","max_length":5,"strategy":"OnlyFirst","stride":1},"padding":{"strategy":{"Fixed":5},"direction":"Right","pad_to_multiple_of":8,"pad_id":0,"pad_type_id":0,"pad_token":"x"},"added_tokens":[{"id":3,"content":"<é>","single_word":false,"lstrip":true,"rstrip":false,"normalized":true,"special":true}],"normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},{"type":"Replace","pattern":{"String":" "},"content":"▁"},{"type":"Precompiled","precompiled_charsmap":"BAAAAAAAAAB4AA=="}]},"pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":false},"decoder":{"type":"Sequence","decoders":[{"type":"ByteFallback"},{"type":"Strip","content":" ","start":1,"stop":0}]},"model":{"type":"BPE","dropout":0.1,"unk_token":"a","continuing_subword_prefix":"##","fuse_unk":true,"vocab":{"a":0,"##b":1,"ab":2},"merges":[["a","##b"]]}}"###,
        r#"{"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[Z]","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[{"Sequence":{"id":"B","type_id":1}}],"special_tokens":{"[Z]":{"id":"[Z]","ids":[1,2],"tokens":["x","y"]}}},"model":{"unk_id":0,"vocab":[["<unk>",0.0],["\u2581a",-13.50357723236084],["b",-2.5e-3]],"byte_fallback":false}}"#,
        r###"{"model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,"vocab":{"[UNK]":0,"a":1,"##b":9}}}"###,
    ];
    let mut accepted = 0;
    for file in files {
        damage("tokenizer.json", file.as_bytes(), |bad| {
            if let Ok(mut document) = TokenizerJson::parse(bad) {
                let json = document.to_json(Layout::Pretty).expect("what was read can be written");
                assert_eq!(TokenizerJson::parse(json.as_bytes()).expect("and read"), document);
                document.canonicalize();
                accepted += 1;
            }
        });
    }
    assert!(accepted > 100, "the damage must not be so bad that nothing is left: {accepted}");
}

#[test]
fn tekken() {
    let file = Tekken::new("p", (0..=255).map(|byte| vec![byte]), 21).unwrap();
    let file = file.to_json(Layout::Compact);
    damage("tekken", file.as_bytes(), |bad| {
        if let Ok(tekken) = Tekken::parse(bad) {
            let json = tekken.to_json(Layout::Compact);
            assert_eq!(Tekken::parse(json.as_bytes()).expect("what was written"), tekken);
            assert_eq!(tekken.special_tokens().len(), tekken.num_special_tokens() as usize);
        }
    });
}

#[test]
fn text_formats() {
    let ranks: String =
        (0..=255u8).map(|byte| format!("{} {byte}\n", tiktoken::encode_token(&[byte]))).collect();
    damage("tiktoken", ranks.as_bytes(), |bad| {
        if let Ok(ranks) = tiktoken::parse(bad) {
            assert_eq!(tiktoken::parse(tiktoken::to_text(&ranks).as_bytes()).unwrap(), ranks);
        }
    });
    damage("vocab.txt", "[UNK]\n##ing\r\nhé\n\n".as_bytes(), |bad| {
        if let Ok(vocab) = VocabTxt::parse(bad) {
            assert!(vocab.shadowed().len() < vocab.tokens().len());
        }
    });
    let (vocab, merges) = (br#"{"a": 0, "b": 1, "ab": 2}"#, b"#version: 0.2\na b\n");
    damage("merges.txt", merges, |bad| drop(Gpt2::parse(vocab, bad)));
    damage("vocab.json", vocab, |bad| {
        if let Ok(files) = Gpt2::parse(bad, merges) {
            assert_eq!(Gpt2::parse(files.vocab_json().as_bytes(), merges).unwrap(), files);
        }
    });
    damage("tsv", b"a\t1\n\\xFF\\t\t20\n", |bad| {
        if let Ok(counts) = counts::parse_tsv(bad) {
            let again = counts::parse_tsv(counts::to_tsv(&counts).as_bytes()).unwrap();
            assert_eq!((again.total(), again.len()), (counts.total(), counts.len()));
        }
    });
}

#[test]
fn binary_formats() {
    let mut model = SentencePieceModel::default();
    model.pieces.push("<unk>", 0.0, TokenKind::Unknown);
    model.pieces.push("▁a", -1.5, TokenKind::Normal);
    model.pieces.push("<s>", 0.0, TokenKind::Control);
    let trainer = model.trainer_spec.get_or_insert_default();
    trainer.input = vec!["/a".into(), "/b".into()];
    trainer.pad_id = Some(-1);
    trainer.character_coverage = Some(0.9995);
    model.normalizer_spec.get_or_insert_default().precompiled_charsmap =
        Some(b"\x04\0\0\0\0\0\0\0x\0".to_vec());
    damage("sentencepiece", &model.to_bytes().unwrap(), |bad| {
        if let Ok(mut model) = SentencePieceModel::parse(bad) {
            let file = model.to_bytes().expect("what was read can be written");
            // Compared as bytes: a number of the specs may be NaN.
            let again = SentencePieceModel::parse(&file).expect("and read");
            assert_eq!(again.to_bytes().unwrap(), file);
            assert!(model.training_info().iter().all(|fact| !fact.field.is_empty()));
            model.strip_training_info();
            SentencePieceModel::parse(&model.to_bytes().unwrap()).expect("stripped");
        }
    });

    let counts = PieceCounts::from_pairs([("hug", 5u64), ("hugs", 1), ("pug", 300)]).unwrap();
    let mut file = Vec::new();
    counts::write(&counts, &mut file).unwrap();
    damage("counts", &file, |bad| {
        if let Ok(read) = counts::read(bad) {
            assert_eq!(read, counts, "the checksum must notice");
        }
    });

    let mut file = b"GGUF\x03\0\0\0\0\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0".to_vec();
    let string = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    file.extend([string("tokenizer.ggml.model"), vec![8, 0, 0, 0], string("gpt2")].concat());
    file.extend([string("tokenizer.ggml.tokens"), vec![9, 0, 0, 0, 8, 0, 0, 0]].concat());
    file.extend([2u64.to_le_bytes().to_vec(), string("h"), string("u")].concat());
    file.extend([string("x"), vec![9, 0, 0, 0, 5, 0, 0, 0], 1u64.to_le_bytes().to_vec()].concat());
    file.extend([7, 0, 0, 0]);
    gguf::parse(&file).unwrap();
    damage("gguf", &file, |bad| {
        if let Ok(vocab) = gguf::parse(bad) {
            drop(vocab.resolve_merges());
        }
    });
}

#[test]
fn any_bytes_are_detected_or_not() {
    for (name, bytes) in testkit::texts::all_bytes() {
        let _ = detect(bytes);
        let readers: [(&str, bool); 6] = [
            ("tokenizer.json", TokenizerJson::parse(bytes).is_ok()),
            ("tekken.json", Tekken::parse(bytes).is_ok()),
            ("tiktoken", tiktoken::parse(bytes).is_ok()),
            ("sentencepiece", SentencePieceModel::parse(bytes).is_ok()),
            ("gguf", gguf::parse(bytes).is_ok()),
            ("counts", counts::read(bytes).is_ok()),
        ];
        for (format, accepted) in readers {
            assert!(!accepted, "{name} is no {format}");
        }
    }
    for file in [&b"{\"model\": {}}"[..], b"IQ== 0\n", b"GGUF", b"\n\x05\n\x03abc", b"a\t1\n"] {
        damage("detect", file, |bad| {
            let _ = detect(bad);
        });
    }
}
