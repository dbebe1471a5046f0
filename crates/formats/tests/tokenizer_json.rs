//! `tokenizer.json`: what is read, what is refused and where, and that writing loses nothing.
//!
//! What tokenizers 0.23.3 does with each file of `ACCEPTED` and `REFUSED` was tried with its Python
//! package; where we differ the case says so.

#![allow(clippy::unwrap_used, reason = "the helpers of tests may unwrap as tests may")]

use formats::tokenizer_json::*;
use formats::{ErrorKind, IdMap, Layout, Strings};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

fn parse(file: &str) -> TokenizerJson {
    TokenizerJson::parse(file.as_bytes()).unwrap_or_else(|error| panic!("{file}\n{error}"))
}

/// A file with one part beside a small model.
fn with(key: &str, part: &str) -> String {
    let model = r#"{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}"#;
    format!(r#"{{"{key}":{part},"model":{model}}}"#)
}

/// What the part is written as.
fn rewritten(key: &str, part: &str) -> String {
    let document = parse(&with(key, part));
    let json = document.to_json(Layout::Compact).unwrap();
    assert_eq!(parse(&json), document, "{json}");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    json[key].to_string()
}

/// A part as a file may hold it, and as tokenizers writes it; empty where that is the same.
const ACCEPTED: &[(&str, &str, &str)] = &[
    (
        "normalizer",
        r#"{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":false,"strip_accents":null,"lowercase":true}"#,
        "",
    ),
    (
        "normalizer",
        r#"{"type":"Bert","clean_text":true,"handle_chinese_chars":true,"lowercase":true}"#,
        r#"{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true}"#,
    ),
    (
        "normalizer",
        r#"{"clean_text":true,"handle_chinese_chars":true,"strip_accents":false,"lowercase":true}"#,
        r#"{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":false,"lowercase":true}"#,
    ),
    ("normalizer", r#"{"type":"Strip","strip_left":true,"strip_right":false}"#, ""),
    (
        "normalizer",
        r#"{"strip_left":true,"strip_right":false,"more":[{}]}"#,
        r#"{"type":"Strip","strip_left":true,"strip_right":false}"#,
    ),
    ("normalizer", r#"{"type":"StripAccents"}"#, ""),
    ("normalizer", r#"{"type":"NFC","unknown_field":1}"#, r#"{"type":"NFC"}"#),
    ("normalizer", r#"{"type":"NFD"}"#, ""),
    ("normalizer", r#"{"type":"NFKC"}"#, ""),
    ("normalizer", r#"{"type":"NFKD"}"#, ""),
    ("normalizer", r#"{"type":"Lowercase"}"#, ""),
    ("normalizer", r#"{"type":"Nmt"}"#, ""),
    ("normalizer", r#"{"type":"ByteLevel"}"#, ""),
    ("normalizer", r#"{"type":"Precompiled","precompiled_charsmap":"BAAAAAAAAAB4AA=="}"#, ""),
    (
        "normalizer",
        r#"{"type":"Replace","pattern":{"String":" "},"content":"\u2581"}"#,
        r#"{"type":"Replace","pattern":{"String":" "},"content":"▁"}"#,
    ),
    (
        "normalizer",
        r#"{"pattern":{"Regex":" {2,}"},"content":""}"#,
        r#"{"type":"Replace","pattern":{"Regex":" {2,}"},"content":""}"#,
    ),
    ("normalizer", r#"{"type":"Prepend","prepend":"▁"}"#, ""),
    (
        "normalizer",
        r#"{"normalizers":[{"prepend":"x"},{"type":"Sequence","normalizers":[]}]}"#,
        r#"{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"x"},{"type":"Sequence","normalizers":[]}]}"#,
    ),
    ("pre_tokenizer", r#"{"type":"BertPreTokenizer"}"#, ""),
    (
        "pre_tokenizer",
        r#"{"add_prefix_space":false,"type":"ByteLevel","trim_offsets":true}"#,
        r#"{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true}"#,
    ),
    ("pre_tokenizer", r#"{"type":"CharDelimiterSplit","delimiter":"é"}"#, ""),
    (
        "pre_tokenizer",
        r#"{"type":"Metaspace","replacement":"▁","add_prefix_space":true}"#,
        r#"{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true}"#,
    ),
    (
        "pre_tokenizer",
        r#"{"type":"Metaspace","replacement":"▁","str_rep":"_","add_prefix_space":true,"prepend_scheme":"first","split":false}"#,
        r#"{"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":false}"#,
    ),
    (
        "pre_tokenizer",
        r#"{"type":"Metaspace","replacement":"▁","add_prefix_space":true,"prepend_scheme":"never"}"#,
        r#"{"type":"Metaspace","replacement":"▁","prepend_scheme":"never","split":true}"#,
    ),
    // tokenizers 0.23 refuses this one, which older versions wrote and read as here.
    (
        "pre_tokenizer",
        r#"{"type":"Metaspace","replacement":"▁","add_prefix_space":false}"#,
        r#"{"type":"Metaspace","replacement":"▁","prepend_scheme":"never","split":true}"#,
    ),
    ("pre_tokenizer", r#"{"type":"Whitespace"}"#, ""),
    ("pre_tokenizer", r#"{"type":"WhitespaceSplit"}"#, ""),
    ("pre_tokenizer", r#"{"type":"UnicodeScripts"}"#, ""),
    (
        "pre_tokenizer",
        r#"{"type":"Split","pattern":{"Regex":"\\s+(?!\\S)|\\s+"},"behavior":"MergedWithPrevious","invert":true}"#,
        "",
    ),
    (
        "pre_tokenizer",
        r#"{"type":"Punctuation"}"#,
        r#"{"type":"Punctuation","behavior":"Isolated"}"#,
    ),
    ("pre_tokenizer", r#"{"type":"Punctuation","behavior":"Contiguous"}"#, ""),
    ("pre_tokenizer", r#"{"type":"Digits","individual_digits":true}"#, ""),
    ("pre_tokenizer", r#"{"type":"FixedLength"}"#, r#"{"type":"FixedLength","length":5}"#),
    (
        "pre_tokenizer",
        r#"{"type":"Sequence","pretokenizers":[{"type":"Whitespace"},{"type":"Digits","individual_digits":false}]}"#,
        "",
    ),
    ("post_processor", r#"{"type":"BertProcessing","sep":["[SEP]",102],"cls":["[CLS]",101]}"#, ""),
    (
        "post_processor",
        r#"{"sep":["[SEP]",102],"cls":["[CLS]",101]}"#,
        r#"{"type":"BertProcessing","sep":["[SEP]",102],"cls":["[CLS]",101]}"#,
    ),
    (
        "post_processor",
        r#"{"sep":["</s>",2],"cls":["<s>",0],"trim_offsets":true,"add_prefix_space":false}"#,
        r#"{"type":"RobertaProcessing","sep":["</s>",2],"cls":["<s>",0],"trim_offsets":true,"add_prefix_space":false}"#,
    ),
    (
        "post_processor",
        r#"{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":false}"#,
        r#"{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":false,"use_regex":true}"#,
    ),
    (
        "post_processor",
        r#"{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[Z]","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[{"Sequence":{"id":"B","type_id":1}}],"special_tokens":{"[Z]":{"id":"[Z]","ids":[1,2],"tokens":["x","y"]},"[A]":{"id":"q","ids":[],"tokens":[]}}}"#,
        r#"{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[Z]","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[{"Sequence":{"id":"B","type_id":1}}],"special_tokens":{"[A]":{"id":"q","ids":[],"tokens":[]},"[Z]":{"id":"[Z]","ids":[1,2],"tokens":["x","y"]}}}"#,
    ),
    (
        "post_processor",
        r#"{"type":"Sequence","processors":[{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":false,"use_regex":false}]}"#,
        "",
    ),
    ("decoder", r#"{"suffix":"</w>"}"#, r#"{"type":"BPEDecoder","suffix":"</w>"}"#),
    (
        "decoder",
        r###"{"prefix":"##","cleanup":true}"###,
        r###"{"type":"WordPiece","prefix":"##","cleanup":true}"###,
    ),
    (
        "decoder",
        r#"{"type":"CTC","pad_token":"<pad>","word_delimiter_token":"|","cleanup":false}"#,
        "",
    ),
    (
        "decoder",
        r#"{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0},{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true},{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true}]}"#,
        "",
    ),
    (
        "truncation",
        r#"{"max_length":512,"strategy":"LongestFirst","stride":0}"#,
        r#"{"direction":"Right","max_length":512,"strategy":"LongestFirst","stride":0}"#,
    ),
    ("truncation", r#"{"direction":"Left","max_length":1,"strategy":"OnlySecond","stride":9}"#, ""),
    (
        "padding",
        r#"{"strategy":"BatchLongest","direction":"Right","pad_id":0,"pad_type_id":0,"pad_token":"[PAD]"}"#,
        r#"{"strategy":"BatchLongest","direction":"Right","pad_to_multiple_of":null,"pad_id":0,"pad_type_id":0,"pad_token":"[PAD]"}"#,
    ),
    (
        "padding",
        r#"{"strategy":{"Fixed":128},"direction":"Left","pad_to_multiple_of":8,"pad_id":3,"pad_type_id":1,"pad_token":""}"#,
        "",
    ),
    (
        "added_tokens",
        r#"[{"id":7,"special":true,"content":"<x>","single_word":true,"lstrip":true,"rstrip":false,"normalized":false,"old":null}]"#,
        r#"[{"id":7,"content":"<x>","single_word":true,"lstrip":true,"rstrip":false,"normalized":false,"special":true}]"#,
    ),
    ("normalizer", "null", ""),
    ("version", r#""1.0""#, ""),
    ("something_else", "[1, {}]", "null"),
];

#[test]
fn every_part_is_read_and_written_as_tokenizers_does() {
    for (key, part, expected) in ACCEPTED {
        let expected = if expected.is_empty() { part } else { expected };
        let expected: serde_json::Value = serde_json::from_str(expected).unwrap();
        assert_eq!(rewritten(key, part), expected.to_string());
    }
}

/// A part that is refused, the kind of error, and what it says.
const REFUSED: &[(&str, &str, ErrorKind, &str)] = &[
    (
        "version",
        r#""2.0""#,
        ErrorKind::UnknownPart,
        r#"$.version: unknown version "2.0", only "1.0" is known"#,
    ),
    (
        "normalizer",
        r#"{"type":"Morse"}"#,
        ErrorKind::UnknownPart,
        r#"$.normalizer.type: unknown normalizer "Morse""#,
    ),
    // tokenizers looks at the fields of a type that it does not know, and takes this for Strip.
    (
        "normalizer",
        r#"{"type":"Morse","strip_left":true,"strip_right":true}"#,
        ErrorKind::UnknownPart,
        r#"unknown normalizer "Morse""#,
    ),
    (
        "normalizer",
        r#"{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Foo"}]}"#,
        ErrorKind::UnknownPart,
        r#"$.normalizer.normalizers[1].type: unknown normalizer "Foo""#,
    ),
    (
        "normalizer",
        r#"{"trim_offsets":true,"add_prefix_space":true}"#,
        ErrorKind::UnknownPart,
        "$.normalizer: a normalizer without type",
    ),
    (
        "normalizer",
        r#"{"type":3}"#,
        ErrorKind::WrongType,
        "$.normalizer.type: expected a string, found a number",
    ),
    (
        "normalizer",
        r#"{"type":"Sequence","prepend_scheme":"always"}"#,
        ErrorKind::Missing,
        r#"$.normalizer: field "normalizers" is missing"#,
    ),
    (
        "normalizer",
        r#"{"type":"Replace","pattern":"x","content":""}"#,
        ErrorKind::WrongType,
        "$.normalizer.pattern: expected an object, found a string",
    ),
    (
        "normalizer",
        r#"{"type":"Replace","pattern":{"Glob":"x"},"content":""}"#,
        ErrorKind::UnknownPart,
        r#"unknown pattern "Glob""#,
    ),
    (
        "normalizer",
        r#"{"type":"Precompiled","precompiled_charsmap":"!!"}"#,
        ErrorKind::Syntax,
        "invalid base64",
    ),
    (
        "normalizer",
        r#"{"type":"Precompiled","precompiled_charsmap":""}"#,
        ErrorKind::Invalid,
        "a charsmap of 0 bytes",
    ),
    (
        "normalizer",
        r#"{"type":"Precompiled","precompiled_charsmap":"/P///wAA"}"#,
        ErrorKind::Invalid,
        "4294967292 bytes, but 2 are there",
    ),
    (
        "pre_tokenizer",
        r#"{"type":"Delimiter","delimiter":"x"}"#,
        ErrorKind::UnknownPart,
        r#"unknown pre-tokenizer "Delimiter""#,
    ),
    (
        "pre_tokenizer",
        r#"{"type":"CharDelimiterSplit","delimiter":"ab"}"#,
        ErrorKind::WrongType,
        "expected one character",
    ),
    (
        "pre_tokenizer",
        r#"{"type":"ByteLevel"}"#,
        ErrorKind::Missing,
        r#"field "add_prefix_space" is missing"#,
    ),
    (
        "pre_tokenizer",
        r#"{"type":"ByteLevel","add_prefix_space":1,"trim_offsets":true}"#,
        ErrorKind::WrongType,
        "expected a boolean, found a number",
    ),
    (
        "pre_tokenizer",
        r#"{"type":"Digits"}"#,
        ErrorKind::Missing,
        r#"field "individual_digits" is missing"#,
    ),
    (
        "pre_tokenizer",
        r#"{"type":"Split","pattern":{"Regex":"x"},"behavior":"isolated","invert":false}"#,
        ErrorKind::UnknownPart,
        r#"$.pre_tokenizer.behavior: unknown behavior "isolated""#,
    ),
    (
        "pre_tokenizer",
        r#"{"type":"FixedLength","length":0}"#,
        ErrorKind::Limit,
        "pieces of 0 characters",
    ),
    (
        "pre_tokenizer",
        r#"{"type":"Metaspace","replacement":"▁","add_prefix_space":false,"prepend_scheme":"always"}"#,
        ErrorKind::Invalid,
        "add_prefix_space is false",
    ),
    (
        "pre_tokenizer",
        r#"{"type":"Sequence","pretokenizers":[{"type":"Whitespace"},{"type":"Foo"}]}"#,
        ErrorKind::UnknownPart,
        r#"$.pre_tokenizer.pretokenizers[1].type: unknown pre-tokenizer "Foo""#,
    ),
    (
        "post_processor",
        r#"{"type":"BertProcessing","sep":["a",1],"cls":["b",2],"trim_offsets":true,"add_prefix_space":true}"#,
        ErrorKind::Invalid,
        "BertProcessing with the fields of RobertaProcessing",
    ),
    (
        "post_processor",
        r#"{"type":"RobertaProcessing","sep":["a",1],"cls":["b",2]}"#,
        ErrorKind::Missing,
        r#"field "trim_offsets" is missing"#,
    ),
    (
        "post_processor",
        r#"{"type":"BertProcessing","sep":["a",1,2],"cls":["b",2]}"#,
        ErrorKind::WrongType,
        "$.post_processor.sep[2]: an array of 2 holds more",
    ),
    (
        "post_processor",
        r#"{"type":"BertProcessing","sep":["a"],"cls":["b",2]}"#,
        ErrorKind::WrongType,
        "$.post_processor.sep: an array of 2 holds less",
    ),
    (
        "post_processor",
        r#"{"type":"TemplateProcessing","single":"[CLS] $A","pair":[],"special_tokens":{}}"#,
        ErrorKind::WrongType,
        "$.post_processor.single: expected an array",
    ),
    (
        "post_processor",
        r#"{"type":"TemplateProcessing","single":["$A"],"pair":[],"special_tokens":{}}"#,
        ErrorKind::WrongType,
        "$.post_processor.single[0]: expected an object",
    ),
    (
        "post_processor",
        r#"{"type":"TemplateProcessing","single":[{"Sequence":{"id":"C","type_id":0}}],"pair":[],"special_tokens":{}}"#,
        ErrorKind::UnknownPart,
        r#"unknown sequence "C", not "A" or "B""#,
    ),
    // tokenizers loads these two and panics or misbehaves when it uses them.
    (
        "post_processor",
        r#"{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"Q","type_id":0}}],"pair":[],"special_tokens":{}}"#,
        ErrorKind::Dangling,
        r#"names "Q", which special_tokens lacks"#,
    ),
    (
        "post_processor",
        r#"{"type":"TemplateProcessing","single":[],"pair":[],"special_tokens":{"Q":{"id":"Q","ids":[1],"tokens":[]}}}"#,
        ErrorKind::Invalid,
        "1 ids for 0 tokens",
    ),
    (
        "decoder",
        r#"{"type":"Foo"}"#,
        ErrorKind::UnknownPart,
        r#"$.decoder.type: unknown decoder "Foo""#,
    ),
    (
        "decoder",
        r###"{"type":"WordPiece","prefix":"##"}"###,
        ErrorKind::Missing,
        r#"field "cleanup" is missing"#,
    ),
    (
        "decoder",
        r#"{"type":"Strip","content":"","start":0,"stop":0}"#,
        ErrorKind::WrongType,
        r#"expected one character, found """#,
    ),
    (
        "truncation",
        r#"{"max_length":5,"strategy":"longest_first","stride":1}"#,
        ErrorKind::UnknownPart,
        "unknown truncation strategy",
    ),
    (
        "truncation",
        r#"{"max_length":-5,"strategy":"OnlyFirst","stride":1}"#,
        ErrorKind::Limit,
        "-5 is not between 0 and",
    ),
    (
        "truncation",
        r#"{"max_length":1e3,"strategy":"OnlyFirst","stride":1}"#,
        ErrorKind::WrongType,
        "expected a whole number",
    ),
    (
        "padding",
        r#"{"strategy":{"Fixed":5,"Fixed":6},"direction":"Right","pad_id":0,"pad_type_id":0,"pad_token":""}"#,
        ErrorKind::Duplicate,
        "here twice",
    ),
    (
        "padding",
        r#"{"strategy":{},"direction":"Right","pad_id":0,"pad_type_id":0,"pad_token":""}"#,
        ErrorKind::Missing,
        "an empty padding strategy",
    ),
    ("added_tokens", "null", ErrorKind::WrongType, "$.added_tokens: expected an array, found null"),
    (
        "added_tokens",
        r#"[{"id":0,"content":"x","lstrip":false,"rstrip":false,"normalized":true,"special":false}]"#,
        ErrorKind::Missing,
        r#"$.added_tokens[0]: field "single_word" is missing"#,
    ),
    (
        "added_tokens",
        r#"[{"id":4294967295,"content":"x","single_word":false,"lstrip":false,"rstrip":false,"normalized":true,"special":false}]"#,
        ErrorKind::Limit,
        "4294967295 is not between 0 and 16777215",
    ),
    ("model", "{}", ErrorKind::Duplicate, "$.model: this field is here twice"),
];

#[test]
fn bad_parts_are_refused_with_path_and_reason() {
    for (key, part, kind, expected) in REFUSED {
        let file = match *key {
            "model" => r#"{"model":{"vocab":{"a":0},"merges":[]},"model":{}}"#.to_owned(),
            _ => with(key, part),
        };
        let error = TokenizerJson::parse(file.as_bytes()).expect_err(part);
        assert!(error.to_string().contains(expected), "{part}\n{error}");
        assert_eq!(error.kind(), *kind, "{part}\n{error}");
        assert!(error.path().is_some());
    }
}

/// A model that is refused.
const BAD_MODELS: &[(&str, &str, ErrorKind, &str)] = &[
    (
        "unknown_type",
        r#"{"type":"Morse","vocab":{"a":0},"merges":[]}"#,
        ErrorKind::UnknownPart,
        r#"$.model.type: unknown model "Morse""#,
    ),
    (
        "no_type_and_no_known_fields",
        r#"{"vocab":{"a":0}}"#,
        ErrorKind::UnknownPart,
        "a model without type",
    ),
    (
        "missing_merges",
        r#"{"type":"BPE","vocab":{"a":0}}"#,
        ErrorKind::Missing,
        r#"field "merges" is missing"#,
    ),
    (
        "empty_vocabulary",
        r#"{"type":"BPE","vocab":{},"merges":[]}"#,
        ErrorKind::Missing,
        "$.model.vocab: the vocabulary is empty",
    ),
    (
        "empty_unigram",
        r#"{"type":"Unigram","unk_id":null,"vocab":[]}"#,
        ErrorKind::Missing,
        "$.model.vocab: the vocabulary is empty",
    ),
    (
        "duplicate_token",
        r#"{"type":"BPE","vocab":{"a":0,"b":1,"a":2},"merges":[]}"#,
        ErrorKind::Duplicate,
        r#"$.model.vocab.a: token "a" has id 2, but it has id 0 already"#,
    ),
    (
        "duplicate_id",
        r#"{"type":"BPE","vocab":{"a":1,"b":0,"c":1},"merges":[]}"#,
        ErrorKind::Duplicate,
        r#"token "c" has id 1, but that is the id of token "a""#,
    ),
    (
        "id_4294967295",
        r#"{"type":"BPE","vocab":{"a":4294967295},"merges":[]}"#,
        ErrorKind::Limit,
        r#"$.model.vocab.a: token "a" has id 4294967295, but ids may not pass 16777215"#,
    ),
    (
        "id_beyond_32_bits",
        r#"{"type":"BPE","vocab":{"a":4294967296},"merges":[]}"#,
        ErrorKind::Limit,
        "4294967296 is not between 0 and 4294967295",
    ),
    (
        "negative_id",
        r#"{"type":"BPE","vocab":{"a":-1},"merges":[]}"#,
        ErrorKind::Limit,
        "-1 is not between 0",
    ),
    (
        "fractional_id",
        r#"{"type":"BPE","vocab":{"a":1.0},"merges":[]}"#,
        ErrorKind::WrongType,
        "expected a whole number",
    ),
    (
        "merge_of_an_absent_token",
        r#"{"type":"BPE","vocab":{"a":0,"aa":1},"merges":["a a","a b"]}"#,
        ErrorKind::Dangling,
        r#"$.model.merges[1]: right token "b" is not among the 2 of the vocabulary"#,
    ),
    (
        "merge_pair_of_an_absent_token",
        r#"{"type":"BPE","vocab":{"a":0,"aa":1},"merges":[["a","a"],["b","a"]]}"#,
        ErrorKind::Dangling,
        r#"$.model.merges[1]: left token "b" is not"#,
    ),
    (
        "merge_of_an_absent_product",
        r#"{"type":"BPE","vocab":{"a":0,"b":1},"merges":["a b"]}"#,
        ErrorKind::Dangling,
        r#"$.model.merges[0]: merged token "ab" is not"#,
    ),
    (
        "merges_in_front_of_the_vocabulary",
        r#"{"type":"BPE","merges":["a b"],"vocab":{"a":0,"b":1}}"#,
        ErrorKind::Dangling,
        r#"$.model.merges[0]: merged token "ab" is not"#,
    ),
    (
        "merge_of_three",
        r#"{"type":"BPE","vocab":{"a":0},"merges":["a a "]}"#,
        ErrorKind::Syntax,
        r#"a merge is two tokens with one space between, not "a a ""#,
    ),
    (
        "merge_of_one",
        r#"{"type":"BPE","vocab":{"a":0},"merges":["aa"]}"#,
        ErrorKind::Syntax,
        "a merge is two tokens",
    ),
    (
        "merges_of_both_forms",
        r#"{"type":"BPE","vocab":{"a":0,"aa":1},"merges":["a a",["a","a"]]}"#,
        ErrorKind::WrongType,
        "merges as strings and as pairs",
    ),
    // tokenizers panics here.
    (
        "prefix_longer_than_the_token",
        r#"{"type":"BPE","continuing_subword_prefix":"@@@@@@","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}"#,
        ErrorKind::Invalid,
        r#"continuing_subword_prefix "@@@@@@" of 6 bytes cannot be cut from token "b" of 1"#,
    ),
    (
        "prefix_that_ends_within_a_character",
        r#"{"type":"BPE","continuing_subword_prefix":"x","vocab":{"a":0,"é":1,"aé":2},"merges":["a é"]}"#,
        ErrorKind::Invalid,
        "cannot be cut from token",
    ),
    (
        "dropout_above_1",
        r#"{"type":"BPE","dropout":1.5,"vocab":{"a":0},"merges":[]}"#,
        ErrorKind::Limit,
        "a dropout of 1.5 is not between 0 and 1",
    ),
    (
        "null_unk_token",
        r#"{"type":"WordLevel","vocab":{"a":0},"unk_token":null}"#,
        ErrorKind::WrongType,
        "expected a string, found null",
    ),
    (
        "missing_unk_token",
        r###"{"type":"WordPiece","continuing_subword_prefix":"##","max_input_chars_per_word":100,"vocab":{"a":0}}"###,
        ErrorKind::Missing,
        r#"field "unk_token" is missing"#,
    ),
    (
        "unk_id_beyond_the_pieces",
        r#"{"type":"Unigram","unk_id":5,"vocab":[["a",-1]]}"#,
        ErrorKind::Dangling,
        "$.model.unk_id: unk_id is 5, but there are 1 pieces",
    ),
    (
        "piece_of_three",
        r#"{"type":"Unigram","unk_id":0,"vocab":[["a",-1,2]]}"#,
        ErrorKind::WrongType,
        "$.model.vocab[0][2]: an array of 2 holds more",
    ),
    (
        "infinite_score",
        r#"{"type":"Unigram","unk_id":0,"vocab":[["a",-1e999]]}"#,
        ErrorKind::Limit,
        "$.model.vocab[0][1]: number out of range",
    ),
    (
        "vocabulary_of_another_model",
        r#"{"type":"Unigram","vocab":{"a":0}}"#,
        ErrorKind::WrongType,
        "$.model.vocab: expected an array, found an object",
    ),
];

#[test]
fn bad_models_are_refused_with_path_and_reason() {
    for (name, model, kind, expected) in BAD_MODELS {
        let file = format!("{{\n \"model\": {model}\n}}");
        let error = TokenizerJson::parse(file.as_bytes()).expect_err(name);
        assert!(error.to_string().contains(expected), "{name}\n{error}");
        assert_eq!(error.kind(), *kind, "{name}\n{error}");
        assert!(error.to_string().starts_with("tokenizer.json, line 2 column "), "{name}\n{error}");
    }
    let error = TokenizerJson::parse(b"{}").unwrap_err();
    assert_eq!(error.to_string(), "tokenizer.json, line 1 column 1, $: field \"model\" is missing");
}

#[test]
fn a_duplicate_id_is_shown_where_it_is() {
    let file = "{\"model\": {\"type\": \"WordLevel\", \"unk_token\": \"a\", \"vocab\": {\n\"b\": 5,\n\"a\": 0,\n\"c\": 5}}}";
    let error = TokenizerJson::parse(file.as_bytes()).unwrap_err();
    assert_eq!(error.position(), formats::Position::LineColumn { line: 4, column: 6 }, "{error}");
}

#[test]
fn truncated_files_are_refused_everywhere() {
    let file =
        with("normalizer", r#"{"type":"Replace","pattern":{"String":"é"},"content":"\u00e9"}"#);
    for end in 0..file.len() {
        TokenizerJson::parse(&file.as_bytes()[..end]).expect_err("a prefix is no document");
    }
    parse(&file);
}

#[test]
fn deep_nesting_is_refused_not_followed() {
    let depth = 100_000;
    let open = r#"{"type":"Sequence","normalizers":["#;
    let file = with("normalizer", &(open.repeat(depth) + &"]}".repeat(depth)));
    let error = TokenizerJson::parse(file.as_bytes()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(error.to_string().ends_with("arrays and objects nest deeper than 127"), "{error}");
    let file = with("unknown", &("[".repeat(depth) + &"]".repeat(depth)));
    assert_eq!(TokenizerJson::parse(file.as_bytes()).unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn files_without_model_type_are_told_by_their_fields() {
    let cases = [
        (
            "BPE",
            r#"{"vocab":{"a":0},"merges":[],"unk_token":"a","continuing_subword_prefix":"","max_input_chars_per_word":1}"#,
        ),
        (
            "WordPiece",
            r#"{"max_input_chars_per_word":100,"vocab":{"a":0},"unk_token":"z","continuing_subword_prefix":""}"#,
        ),
        ("WordLevel", r#"{"unk_token":"z","vocab":{"a":0}}"#),
        ("Unigram", r#"{"vocab":[["a",0.5]],"unk_token":"z"}"#),
    ];
    for (expected, model) in cases {
        let document = parse(&format!(r#"{{"model":{model}}}"#));
        assert_eq!(document.model.type_name(), expected);
    }
}

#[test]
fn merges_are_read_as_strings_and_as_pairs() {
    let strings = parse(
        r##"{"model":{"type":"BPE","merges":["#version: 0.2","a b","ab c"],"vocab":{"a":0,"b":1,"c":2,"ab":3,"abc":4}}}"##,
    );
    let pairs = parse(
        r#"{"model":{"type":"BPE","vocab":{"a":0,"b":1,"c":2,"ab":3,"abc":4},"merges":[["a","b"],["ab","c"]]}}"#,
    );
    assert_eq!(strings, pairs);
    let Model::Bpe(bpe) = pairs.model else { panic!("BPE") };
    let merge = |left, right, product| Merge { left, right, product };
    assert_eq!(bpe.merges, [merge(0, 1, 3), merge(3, 2, 4)]);
    // Only pairs can hold tokens with a space.
    let spaced = parse(r#"{"model":{"vocab":{"a":0," b":1,"a b":2},"merges":[["a"," b"]]}}"#);
    assert!(spaced.to_json(Layout::Compact).unwrap().ends_with(r#""merges":[["a"," b"]]}}"#));
}

#[test]
fn a_continuing_prefix_is_cut_wherever_the_field_is() {
    let fields = [
        r###""continuing_subword_prefix":"##""###,
        r###""vocab":{"a":0,"##b":1,"ab":2}"###,
        r###""merges":["a ##b"]"###,
    ];
    let mut documents = Vec::new();
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let fields: Vec<_> = order.iter().map(|&i| fields[i]).collect();
        documents.push(parse(&format!(r#"{{"model":{{{}}}}}"#, fields.join(","))));
    }
    assert!(documents.windows(2).all(|pair| pair[0] == pair[1]));
    let Model::Bpe(bpe) = &documents[0].model else { panic!("BPE") };
    assert_eq!(bpe.merges[0].product, 2);
}

#[test]
fn ids_with_gaps_are_kept() {
    let document =
        parse(r#"{"model":{"type":"BPE","vocab":{"b":7,"a":0,"ab":3},"merges":["a b"]}}"#);
    let vocab = document.model.map().unwrap();
    assert_eq!((vocab.len(), vocab.id_bound(), vocab.first_gap()), (3, 8, Some(1)));
    assert!(document.to_json(Layout::Compact).unwrap().contains(r#"{"a":0,"ab":3,"b":7}"#));
}

fn added(id: u32, content: &str) -> AddedToken {
    AddedToken {
        id,
        content: content.into(),
        single_word: false,
        lstrip: false,
        rstrip: false,
        normalized: true,
        special: false,
    }
}

/// Expected values from tokenizers 0.23.3, `get_added_tokens_decoder`.
#[test]
fn added_tokens_get_the_ids_that_tokenizers_gives_them() {
    let check = |vocab: &[(&str, u32)], tokens: &[(u32, &str)], expected: &[(u32, &str)]| {
        let vocab = IdMap::<str>::from_pairs(vocab.iter().copied()).unwrap();
        let mut document = TokenizerJson::new(Model::Bpe(Bpe { vocab, ..Bpe::default() }));
        document.added_tokens = tokens.iter().map(|&(id, content)| added(id, content)).collect();
        let resolved = document.resolved_added_tokens();
        let resolved: Vec<_> =
            resolved.iter().map(|(id, token)| (*id, token.content.as_str())).collect();
        assert_eq!(resolved, expected);
        document.canonicalize();
        let canonical: Vec<_> =
            document.added_tokens.iter().map(|token| (token.id, token.content.as_str())).collect();
        assert_eq!(canonical, expected);
    };
    let dense = [("a", 0), ("b", 1), ("ab", 2)];
    check(&dense, &[(3, "x"), (4, "y")], &[(3, "x"), (4, "y")]);
    // Ids of the file do not count: gaps close, and tokens of the vocabulary keep its ids.
    check(&dense, &[(20, "x"), (1, "a")], &[(0, "a"), (3, "x")]);
    check(&dense, &[(4, "y"), (3, "x"), (4, "y")], &[(3, "y"), (4, "x")]);
    check(&dense, &[(3, ""), (4, "x")], &[(3, "x")]);
    // New ids count from the number of tokens, and so may meet an id of the vocabulary.
    check(&[("a", 0), ("b", 1), ("ab", 3)], &[(20, "x"), (1, "ab")], &[(3, "ab")]);
}

#[test]
fn four_hundred_thousand_added_tokens_are_read() {
    use std::fmt::Write as _;
    let mut tokens = String::from("[");
    for i in 0..400_000 {
        let comma = if i == 0 { "" } else { "," };
        write!(tokens, r#"{comma}{{"id":{},"content":"<{i}>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}}"#, i + 3).unwrap();
    }
    tokens.push(']');
    let document = parse(&with("added_tokens", &tokens));
    let resolved = document.resolved_added_tokens();
    assert_eq!(resolved.len(), 400_000);
    assert!(resolved.iter().all(|(id, token)| *id == token.id));
}

#[test]
fn a_unigram_piece_may_be_there_twice() {
    let document = parse(
        r#"{"model":{"type":"Unigram","unk_id":0,"vocab":[["u",0],["a",-1],["a",-2]]},"added_tokens":[{"id":2,"content":"a","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}]}"#,
    );
    assert_eq!(document.resolved_added_tokens()[0].0, 2, "the last one's id counts");
}

#[test]
fn documents_made_by_hand_are_checked_before_they_are_written() {
    let bpe = |change: fn(&mut Bpe)| {
        let vocab = IdMap::<str>::from_pairs([("a", 0), ("b", 1), ("ab", 2)]).unwrap();
        let mut bpe = Bpe { vocab, ..Bpe::default() };
        change(&mut bpe);
        TokenizerJson::new(Model::Bpe(bpe))
    };
    let unigram = |change: fn(&mut Unigram)| {
        let mut unigram = Unigram {
            pieces: ["a"].into_iter().collect(),
            scores: vec![-1.0],
            ..Default::default()
        };
        change(&mut unigram);
        TokenizerJson::new(Model::Unigram(unigram))
    };
    let merge = |left, right, product| Merge { left, right, product };
    let cases = [
        (bpe(|m| m.vocab = IdMap::new()), "the vocabulary is empty"),
        (bpe(|m| m.dropout = Some(f32::NAN)), "a dropout of NaN"),
        (unigram(|m| m.scores.clear()), "0 scores for 1 pieces"),
        (unigram(|m| m.scores[0] = f64::NAN), "piece 0 has score NaN"),
        (unigram(|m| m.unk_id = Some(1)), "unk_id is 1, but there are 1 pieces"),
    ];
    for (document, expected) in cases {
        let error = document.to_json(Layout::Compact).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    for (merges, expected) in [
        (vec![merge(0, 9, 2)], "merge 0 names id 9, which has no token"),
        (vec![merge(0, 1, 1)], "merge 0 makes token 1, but its texts make 2"),
        (vec![merge(0, 1, 2), merge(0, 0, 2)], "merge 1: merged token \"aa\" is not"),
    ] {
        let mut document = bpe(|_| {});
        let Model::Bpe(bpe) = &mut document.model else { panic!("BPE") };
        bpe.merges = merges;
        let error = document.to_json(Layout::Compact).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

// Random documents.

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-c▁#Ġ ]{0,4}",
        1 => testkit::strategies::mixed_text(),
    ]
}

fn pattern() -> impl Strategy<Value = Pattern> {
    prop_oneof![text().prop_map(Pattern::String), text().prop_map(Pattern::Regex)]
}

fn replace() -> impl Strategy<Value = Replace> {
    (pattern(), text()).prop_map(|(pattern, content)| Replace { pattern, content })
}

fn normalizer() -> impl Strategy<Value = Normalizer> {
    let leaf = prop_oneof![
        any::<(bool, bool, Option<bool>, bool)>().prop_map(|(a, b, c, d)| {
            Normalizer::Bert(BertNormalizer {
                clean_text: a,
                handle_chinese_chars: b,
                strip_accents: c,
                lowercase: d,
            })
        }),
        any::<(bool, bool)>().prop_map(|(left, right)| Normalizer::Strip { left, right }),
        proptest::sample::select(vec![
            Normalizer::StripAccents,
            Normalizer::Nfc,
            Normalizer::Nfd,
            Normalizer::Nfkc,
            Normalizer::Nfkd,
            Normalizer::Lowercase,
            Normalizer::Nmt,
            Normalizer::ByteLevel,
        ]),
        (0u8..8, text()).prop_map(|(units, text)| {
            let trie = vec![0; 4 * usize::from(units)];
            let size = (trie.len() as u32).to_le_bytes();
            Normalizer::Precompiled { charsmap: [&size[..], &trie, text.as_bytes()].concat() }
        }),
        replace().prop_map(Normalizer::Replace),
        text().prop_map(|prepend| Normalizer::Prepend { prepend }),
    ];
    leaf.prop_recursive(3, 8, 3, |part| vec(part, 0..3).prop_map(Normalizer::Sequence))
}

fn byte_level() -> impl Strategy<Value = ByteLevel> {
    any::<(bool, bool, bool)>().prop_map(|(add_prefix_space, trim_offsets, use_regex)| ByteLevel {
        add_prefix_space,
        trim_offsets,
        use_regex,
    })
}

fn metaspace() -> impl Strategy<Value = Metaspace> {
    let scheme = proptest::sample::select(vec![
        PrependScheme::First,
        PrependScheme::Never,
        PrependScheme::Always,
    ]);
    (any::<char>(), scheme, any::<bool>()).prop_map(|(replacement, prepend_scheme, split)| {
        Metaspace { replacement, prepend_scheme, split }
    })
}

fn behavior() -> impl Strategy<Value = SplitBehavior> {
    proptest::sample::select(vec![
        SplitBehavior::Removed,
        SplitBehavior::Isolated,
        SplitBehavior::MergedWithPrevious,
        SplitBehavior::MergedWithNext,
        SplitBehavior::Contiguous,
    ])
}

fn pre_tokenizer() -> impl Strategy<Value = PreTokenizer> {
    let leaf = prop_oneof![
        proptest::sample::select(vec![
            PreTokenizer::Bert,
            PreTokenizer::Whitespace,
            PreTokenizer::WhitespaceSplit,
            PreTokenizer::UnicodeScripts,
        ]),
        byte_level().prop_map(PreTokenizer::ByteLevel),
        any::<char>().prop_map(|delimiter| PreTokenizer::CharDelimiterSplit { delimiter }),
        metaspace().prop_map(PreTokenizer::Metaspace),
        (pattern(), behavior(), any::<bool>()).prop_map(|(pattern, behavior, invert)| {
            PreTokenizer::Split { pattern, behavior, invert }
        }),
        behavior().prop_map(|behavior| PreTokenizer::Punctuation { behavior }),
        any::<bool>().prop_map(|individual_digits| PreTokenizer::Digits { individual_digits }),
        (1usize..).prop_map(|length| PreTokenizer::FixedLength { length }),
    ];
    leaf.prop_recursive(3, 8, 3, |part| vec(part, 0..3).prop_map(PreTokenizer::Sequence))
}

fn template() -> impl Strategy<Value = Template> {
    let token = (text(), vec((any::<u32>(), text()), 0..3)).prop_map(|(id, tokens)| {
        let (ids, tokens) = tokens.into_iter().unzip();
        TemplateToken { id, ids, tokens }
    });
    btree_map(text(), token, 1..4).prop_flat_map(|special_tokens| {
        let names: Vec<String> = special_tokens.keys().cloned().collect();
        let piece = prop_oneof![
            (any::<bool>(), any::<u32>()).prop_map(|(a, type_id)| {
                let id = if a { TemplateSequence::A } else { TemplateSequence::B };
                TemplatePiece::Sequence { id, type_id }
            }),
            (proptest::sample::select(names), any::<u32>())
                .prop_map(|(id, type_id)| TemplatePiece::SpecialToken { id, type_id }),
        ];
        let piece = piece.boxed();
        (vec(piece.clone(), 0..4), vec(piece, 0..4), Just(special_tokens))
            .prop_map(|(single, pair, special_tokens)| Template { single, pair, special_tokens })
    })
}

fn post_processor() -> impl Strategy<Value = PostProcessor> {
    let token = || (text(), any::<u32>());
    let leaf = prop_oneof![
        (token(), token()).prop_map(|(sep, cls)| PostProcessor::Bert { sep, cls }),
        (token(), token(), any::<(bool, bool)>()).prop_map(|(sep, cls, flags)| {
            PostProcessor::Roberta { sep, cls, trim_offsets: flags.0, add_prefix_space: flags.1 }
        }),
        byte_level().prop_map(PostProcessor::ByteLevel),
        template().prop_map(PostProcessor::Template),
    ];
    leaf.prop_recursive(3, 8, 3, |part| vec(part, 0..3).prop_map(PostProcessor::Sequence))
}

fn decoder() -> impl Strategy<Value = Decoder> {
    let leaf = prop_oneof![
        text().prop_map(|suffix| Decoder::Bpe { suffix }),
        byte_level().prop_map(Decoder::ByteLevel),
        (text(), any::<bool>())
            .prop_map(|(prefix, cleanup)| Decoder::WordPiece { prefix, cleanup }),
        metaspace().prop_map(Decoder::Metaspace),
        (text(), text(), any::<bool>()).prop_map(|(pad_token, word_delimiter_token, cleanup)| {
            Decoder::Ctc { pad_token, word_delimiter_token, cleanup }
        }),
        replace().prop_map(Decoder::Replace),
        Just(Decoder::Fuse),
        any::<(char, usize, usize)>().prop_map(|(content, start, stop)| Decoder::Strip {
            content,
            start,
            stop
        }),
        Just(Decoder::ByteFallback),
    ];
    leaf.prop_recursive(3, 8, 3, |part| vec(part, 0..3).prop_map(Decoder::Sequence))
}

/// Distinct tokens with ids in order and some gaps.
fn id_map() -> impl Strategy<Value = IdMap<str>> {
    btree_map(text(), 0u32..5, 1..12).prop_map(|steps| {
        let mut next = 0;
        let pairs = steps.into_iter().map(|(token, step)| {
            let id = next;
            next += 1 + step / 4;
            (token, id)
        });
        IdMap::from_pairs(pairs).expect("distinct tokens and ids")
    })
}

fn bpe() -> impl Strategy<Value = Bpe> {
    let options = (
        proptest::option::of(0.0f32..=1.0),
        proptest::option::of(text()),
        proptest::option::of(text()),
        any::<(bool, bool, bool)>(),
    );
    (vec("[ab]{1,3}", 1..6), options).prop_map(|(merged, options)| {
        let mut tokens: Vec<String> = vec!["a".into(), "b".into()];
        let mut merges = Vec::new();
        for token in merged.iter().filter(|token| token.len() > 1) {
            for end in 2..=token.len() {
                let id = |tokens: &mut Vec<String>, part: &str| {
                    tokens.iter().position(|t| t == part).unwrap_or_else(|| {
                        tokens.push(part.to_owned());
                        tokens.len() - 1
                    }) as u32
                };
                let left = id(&mut tokens, &token[..end - 1]);
                let right = id(&mut tokens, &token[end - 1..end]);
                merges.push(Merge { left, right, product: id(&mut tokens, &token[..end]) });
            }
        }
        let (dropout, unk_token, end_of_word_suffix, flags) = options;
        Bpe {
            dropout,
            unk_token,
            end_of_word_suffix,
            fuse_unk: flags.0,
            byte_fallback: flags.1,
            ignore_merges: flags.2,
            vocab: IdMap::from_pairs(tokens.into_iter().zip(0..)).expect("distinct"),
            merges,
            ..Bpe::default()
        }
    })
}

fn model() -> impl Strategy<Value = Model> {
    let piece = (text(), prop_oneof![-50.0..0.0, any::<f32>().prop_map(f64::from)]);
    prop_oneof![
        bpe().prop_map(Model::Bpe),
        (id_map(), text(), text(), any::<usize>()).prop_map(|(vocab, unk_token, prefix, max)| {
            Model::WordPiece(WordPiece {
                unk_token,
                continuing_subword_prefix: prefix,
                max_input_chars_per_word: max,
                vocab,
            })
        }),
        (id_map(), text())
            .prop_map(|(vocab, unk_token)| Model::WordLevel(WordLevel { vocab, unk_token })),
        (vec(piece, 1..8), any::<Option<u8>>(), any::<bool>()).prop_map(
            |(pieces, unk, fallback)| {
                let (texts, scores): (Vec<String>, Vec<f64>) = pieces
                    .into_iter()
                    .map(|(text, score): (String, f64)| {
                        (text, if score.is_finite() { score } else { 0.0 })
                    })
                    .unzip();
                let unk_id = unk.map(|unk| u32::from(unk) % texts.len() as u32);
                let pieces: Strings = texts.into_iter().collect();
                Model::Unigram(Unigram { unk_id, pieces, scores, byte_fallback: fallback })
            }
        ),
    ]
}

fn document() -> impl Strategy<Value = TokenizerJson> {
    let side = || proptest::sample::select(vec![Direction::Left, Direction::Right]);
    let truncation = (side(), any::<usize>(), any::<usize>(), 0usize..3).prop_map(
        |(direction, max_length, stride, strategy)| Truncation {
            direction,
            max_length,
            stride,
            strategy: [
                TruncationStrategy::LongestFirst,
                TruncationStrategy::OnlyFirst,
                TruncationStrategy::OnlySecond,
            ][strategy],
        },
    );
    let padding =
        (side(), any::<Option<usize>>(), any::<Option<usize>>(), any::<(u32, u32)>(), text())
            .prop_map(|(direction, fixed, pad_to_multiple_of, ids, pad_token)| Padding {
                strategy: fixed.map_or(PaddingStrategy::BatchLongest, PaddingStrategy::Fixed),
                direction,
                pad_to_multiple_of,
                pad_id: ids.0,
                pad_type_id: ids.1,
                pad_token,
            });
    let added =
        (0..=formats::MAX_ID, text(), any::<[bool; 5]>()).prop_map(|(id, content, f)| AddedToken {
            id,
            content,
            single_word: f[0],
            lstrip: f[1],
            rstrip: f[2],
            normalized: f[3],
            special: f[4],
        });
    use proptest::option::of;
    (
        (of(truncation), of(padding), vec(added, 0..4)),
        (of(normalizer()), of(pre_tokenizer()), of(post_processor()), of(decoder())),
        model(),
    )
        .prop_map(|(outer, parts, model)| TokenizerJson {
            truncation: outer.0,
            padding: outer.1,
            added_tokens: outer.2,
            normalizer: parts.0,
            pre_tokenizer: parts.1,
            post_processor: parts.2,
            decoder: parts.3,
            model,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_document_survives_writing_and_reading(mut document in document()) {
        document.canonicalize();
        for layout in [Layout::Compact, Layout::Pretty] {
            let json = document.to_json(layout).unwrap();
            let read = TokenizerJson::parse(json.as_bytes());
            prop_assert_eq!(read.as_ref().ok(), Some(&document), "{:?}\n{}", read, json);
            // Canonical documents stay so. Not where the vocabulary has gaps: added tokens are
            // numbered on from its number of tokens, into ids that tokens behind the gap have, and
            // tokenizers itself reads less than it wrote.
            let gap = document.model.map().and_then(formats::IdMap::first_gap);
            if gap.is_none() {
                let mut again = read.unwrap();
                again.canonicalize();
                prop_assert_eq!(&again, &document);
            }
        }
    }

    #[test]
    fn both_layouts_are_what_serde_json_makes_of_the_same_value(document in document()) {
        let compact = document.to_json(Layout::Compact).unwrap();
        let pretty = document.to_json(Layout::Pretty).unwrap();
        let (a, b): (serde_json::Value, serde_json::Value) =
            (serde_json::from_str(&compact).unwrap(), serde_json::from_str(&pretty).unwrap());
        prop_assert_eq!(a, b);
        let head = "{\n  \"version\": \"1.0\",\n  \"truncation\": ";
        prop_assert_eq!(pretty.get(..head.len()), Some(head));
    }
}
