//! Files that nobody should load: each is a typed error that says what, where and the limit.

#![allow(clippy::unwrap_used)] // A test's unwrap is its assertion.

use formats::sentencepiece::SentencePieceModel;
use formats::tokenizer_json::TokenizerJson;
use formats::vocab_txt::VocabTxt;
use formats::{ErrorKind, ReadError, tiktoken};
use tokenizer::{Document, LoadOptions, Tokenizer};

fn bpe(vocab: &str, merges: &str, more: &str) -> String {
    format!(r#"{{"model": {{"type": "BPE", {more} "vocab": {vocab}, "merges": {merges}}}}}"#)
}

#[track_caller]
fn refused(error: &ReadError, kind: ErrorKind, words: &[&str]) {
    assert_eq!(error.kind(), kind, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "{error} does not say {word}");
    }
}

#[track_caller]
fn json_refused(file: &str, kind: ErrorKind, words: &[&str]) {
    refused(&TokenizerJson::parse(file.as_bytes()).unwrap_err(), kind, words);
    assert!(Tokenizer::from_file(file.as_bytes(), &LoadOptions::default()).is_err());
}

fn ranks(lines: &str) -> String {
    let bytes = (0..=255u8).map(|byte| format!("{} {byte}\n", tiktoken::encode_token(&[byte])));
    bytes.collect::<String>() + lines
}

#[test]
fn truncated() {
    let whole = bpe(r#"{"a": 0}"#, "[]", "");
    for end in 1..whole.len() {
        assert!(Document::parse(&whole.as_bytes()[..end]).is_err(), "{end}");
        let error = TokenizerJson::parse(&whole.as_bytes()[..end]).unwrap_err();
        refused(&error, ErrorKind::Truncated, &["line 1 column", "middle"]);
    }
}

#[test]
fn wrong_types() {
    json_refused(&bpe("[]", "[]", ""), ErrorKind::WrongType, &["line 1", "vocab"]);
    json_refused(&bpe(r#"{"a": "0"}"#, "[]", ""), ErrorKind::WrongType, &["line 1"]);
}

#[test]
fn ids_with_gaps_load_unless_the_gap_is_huge() {
    let small = bpe(r#"{"a": 0, "b": 900}"#, "[]", "");
    let tokenizer = Tokenizer::from_file(small.as_bytes(), &LoadOptions::default()).unwrap();
    assert_eq!(tokenizer.ids("ab").iter().map(|id| id.0).collect::<Vec<_>>(), [0, 900]);
    let huge = bpe(r#"{"a": 0, "b": 16000000}"#, "[]", "");
    let error = Tokenizer::from_file(huge.as_bytes(), &LoadOptions::default()).unwrap_err();
    assert!(error.to_string().contains("1048576"), "{error}");
}

#[test]
fn duplicate_ids() {
    json_refused(&bpe(r#"{"a": 0, "b": 0}"#, "[]", ""), ErrorKind::Duplicate, &["line 1", "id 0"]);
    let error = tiktoken::parse(ranks("YWI= 7\n").as_bytes()).unwrap_err();
    refused(&error, ErrorKind::Duplicate, &["line 257"]);
}

#[test]
fn id_4294967295() {
    json_refused(&bpe(r#"{"a": 4294967295}"#, "[]", ""), ErrorKind::Limit, &["16777215"]);
    let error = tiktoken::parse(ranks("YWI= 4294967295\n").as_bytes()).unwrap_err();
    refused(&error, ErrorKind::Limit, &["line 257", "16777215"]);
}

#[test]
fn a_merge_that_names_an_absent_token() {
    let file = bpe(r#"{"a": 0, "b": 1}"#, r#"["a b"]"#, "");
    json_refused(&file, ErrorKind::Dangling, &["$.model.merges[0]"]);
    let file = bpe(r#"{"a": 0, "b": 1}"#, r#"["a c"]"#, "");
    json_refused(&file, ErrorKind::Dangling, &["\"c\"", "2 of the vocabulary"]);
}

#[test]
fn a_prefix_longer_than_the_token() {
    let prefix = r####""continuing_subword_prefix": "##abc","####;
    let file = bpe(r#"{"a": 0, "b": 1, "ab": 2}"#, r#"["a b"]"#, prefix);
    let words = ["line 1 column", "$.model.merges[0]", "##abc"];
    refused(&TokenizerJson::parse(file.as_bytes()).unwrap_err(), ErrorKind::Invalid, &words);
}

#[test]
fn missing_single_bytes() {
    let file = ranks("").lines().skip(1).map(|line| format!("{line}\n")).collect::<String>();
    let error = tiktoken::parse(file.as_bytes()).unwrap_err();
    refused(&error, ErrorKind::Missing, &["0x00"]);
}

#[test]
fn huge_nesting() {
    let deep = format!("{}{}", r#"{"unknown": "#, "[".repeat(100_000));
    let error = TokenizerJson::parse(deep.as_bytes()).unwrap_err();
    refused(&error, ErrorKind::Limit, &["127"]);
    let mut sequence = r#"{"type": "NFC"}"#.to_owned();
    for _ in 0..200 {
        sequence = format!(r#"{{"type": "Sequence", "normalizers": [{sequence}]}}"#);
    }
    let file = format!(
        r#"{{"normalizer": {sequence}, "model": {{"type": "BPE", "vocab": {{"a": 0}}, "merges": []}}}}"#
    );
    json_refused(&file, ErrorKind::Limit, &["127"]);
}

#[test]
fn a_length_of_two_gigabytes_in_a_protocol_buffer() {
    // Field 1, then the length 2^31 - 1 as a varint, then nothing.
    let file = [0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0x07, 0x0A, 0x01, b'a'];
    let error = SentencePieceModel::parse(&file).unwrap_err();
    assert!(
        error.to_string().contains("byte 1: a value of 2147483647 bytes where 3 are left"),
        "{error}"
    );
    assert!(matches!(error.kind(), ErrorKind::Truncated | ErrorKind::Limit), "{error}");
}

#[test]
fn invalid_base64() {
    let error = tiktoken::parse(ranks("YWI 256\n").as_bytes()).unwrap_err();
    refused(&error, ErrorKind::Syntax, &["line 257", "base64"]);
}

#[test]
fn invalid_utf8() {
    let error = VocabTxt::parse(b"[UNK]\nhu\xFFg\n").unwrap_err();
    refused(&error, ErrorKind::Syntax, &["line 2", "byte 2"]);
    let mut file = bpe(r#"{"a": 0}"#, "[]", "").into_bytes();
    let at = file.iter().position(|&byte| byte == b'a').unwrap();
    file[at] = 0xFF;
    let words = [&format!("column {}", at + 1)[..], "UTF-8"];
    refused(&TokenizerJson::parse(&file).unwrap_err(), ErrorKind::Syntax, &words);
}

#[test]
fn an_empty_vocabulary() {
    json_refused(&bpe("{}", "[]", ""), ErrorKind::Missing, &["empty"]);
    refused(&tiktoken::parse(b"").unwrap_err(), ErrorKind::Missing, &["empty"]);
    refused(&VocabTxt::parse(b"").unwrap_err(), ErrorKind::Missing, &["empty"]);
    refused(&SentencePieceModel::parse(b"").unwrap_err(), ErrorKind::Missing, &["empty"]);
}
