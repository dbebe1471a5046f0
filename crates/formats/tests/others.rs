//! All formats but `tokenizer.json`: what is read, what is refused and where, round trips.
//!
//! What the reference libraries do with the bad files was tried with tiktoken 0.14.0 and
//! sentencepiece 0.2.3.

#![allow(clippy::unwrap_used, reason = "the helpers of tests may unwrap as tests may")]

use formats::counts::{self, CountReader, CountWriter, Merge, Positions};
use formats::gpt2::Gpt2;
use formats::sentencepiece::{
    ModelType, NormalizerSpec, SentencePieceModel, TrainerSpec, byte_piece,
};
use formats::tekken::{SpecialToken, Tekken};
use formats::vocab_txt::VocabTxt;
use formats::{ErrorKind, Format, IdMap, Layout, Position, ReadError, detect, gguf, tiktoken};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use tokenizer_core::{PieceCount, PieceCounts, TokenKind};

fn check(error: &ReadError, kind: ErrorKind, expected: &str) {
    assert!(error.to_string().contains(expected), "{error}\nexpected {expected}");
    assert_eq!(error.kind(), kind, "{error}");
}

/// All single bytes, by id.
fn bytes() -> Vec<Vec<u8>> {
    (0..=255).map(|byte| vec![byte]).collect()
}

fn tiktoken_file() -> String {
    (0..=255u8).map(|byte| format!("{} {byte}\n", tiktoken::encode_token(&[byte]))).collect()
}

#[test]
fn tiktoken_files_survive_reading_and_writing() {
    let file = tiktoken_file() + "aHU= 300\naHVn 256\n";
    let ranks = tiktoken::parse(file.as_bytes()).unwrap();
    assert_eq!(
        (ranks.len(), ranks.get(b"hug"), ranks.token(300)),
        (258, Some(256), Some(&b"hu"[..]))
    );
    // Lines come out in order of rank.
    assert_eq!(tiktoken::to_text(&ranks), tiktoken_file() + "aHVn 256\naHU= 300\n");
    let crlf = file.replace('\n', "\r\n") + "\r\n";
    assert_eq!(tiktoken::parse(crlf.as_bytes()).unwrap(), ranks);
}

#[test]
fn bad_tiktoken_lines_are_refused_with_their_number() {
    let cases: &[(&str, ErrorKind, &str)] = &[
        ("aHU=", ErrorKind::Syntax, r#"line 257: expected base64 and a rank, found "aHU=""#),
        ("a!U= 256", ErrorKind::Syntax, r#"line 257: invalid base64 "a!U=""#),
        ("aHU 256", ErrorKind::Syntax, r#"line 257: invalid base64 "aHU""#),
        ("aHV= 256", ErrorKind::Syntax, "invalid base64"),
        ("aHU= 2.5", ErrorKind::Syntax, r#"line 257: expected a rank, found "2.5""#),
        ("aHU= -1", ErrorKind::Syntax, "expected a rank"),
        ("aHU=  256", ErrorKind::Syntax, "expected a rank"),
        (" 256", ErrorKind::Syntax, "line 257: the token is empty"),
        ("aHU= 4294967295", ErrorKind::Limit, "has id 4294967295, but ids may not pass 16777215"),
        ("aHU= 99999999999", ErrorKind::Limit, "passes the limit of 16777215"),
        ("aHU= 256\naHU= 257", ErrorKind::Duplicate, "line 258: token \"hu\" has id 257"),
        (
            "aHU= 256\naHVn 256",
            ErrorKind::Duplicate,
            "line 258: token \"hug\" has id 256, but that is the id of token \"hu\"",
        ),
    ];
    for (line, kind, expected) in cases {
        let file = format!("{}{line}\n", tiktoken_file());
        check(&tiktoken::parse(file.as_bytes()).unwrap_err(), *kind, expected);
    }
    check(&tiktoken::parse(b"").unwrap_err(), ErrorKind::Missing, "the vocabulary is empty");
    let without = tiktoken_file().replace("/w== 255\n", "");
    check(
        &tiktoken::parse(without.as_bytes()).unwrap_err(),
        ErrorKind::Missing,
        "the single byte 0xFF has no rank",
    );
}

#[test]
fn tekken_sizes_and_special_tokens_follow_mistral_common() {
    let mut tekken = Tekken::new("p", bytes().into_iter().chain([b"hu".to_vec()]), 30).unwrap();
    assert_eq!((tekken.vocab_size(), tekken.tokens().count()), (287, 257));
    tekken.list_special_tokens(vec![SpecialToken { token_str: "<s>".into(), is_control: false }]);
    let file = tekken.to_json(Layout::Compact);
    assert_eq!(Tekken::parse(file.as_bytes()).unwrap(), tekken);
    assert_eq!(tekken.special_tokens()[0].token_str, "<s>");
    assert_eq!(tekken.special_tokens()[1].token_str, "<SPECIAL_1>");

    // A smaller vocabulary leaves the last ranks out; a file without list has the usual tokens.
    let file = file.replace(r#""default_vocab_size":287"#, r#""default_vocab_size":286"#);
    let (head, _) = file.split_once(r#","special_tokens""#).unwrap();
    let file = format!("{head},\"image\":{{\"x\": [1]}}}}");
    let tekken = Tekken::parse(file.as_bytes()).unwrap();
    assert_eq!((tekken.tokens().count(), tekken.all_tokens().len()), (256, 257));
    assert_eq!(tekken.special_tokens()[3].token_str, "[INST]");
    assert_eq!(tekken.special_tokens()[20].token_str, "<SPECIAL_20>");
    assert!(tekken.to_json(Layout::Compact).ends_with(r#""image":{"x": [1]}}"#));
}

#[test]
fn bad_tekken_files_are_refused_with_path_and_reason() {
    let file = Tekken::new("p", bytes(), 30).unwrap().to_json(Layout::Compact);
    let cases: &[(&str, &str, ErrorKind, &str)] = &[
        (r#""rank":7,"#, r#""rank":8,"#, ErrorKind::Invalid, "$.vocab[7]: rank 8 at place 7"),
        (
            r#""Bw==""#,
            r#""Bg==""#,
            ErrorKind::Invalid,
            "$.vocab[7]: token 7 must be the single byte 0x07",
        ),
        (r#""Bw==""#, r#""Bw=""#, ErrorKind::Syntax, "$.vocab[7].token_bytes: invalid base64"),
        (
            r#"special_tokens":30"#,
            r#"special_tokens":290"#,
            ErrorKind::Invalid,
            "$.config: 290 special tokens in a vocabulary of 286",
        ),
        (
            r#""default_vocab_size":286"#,
            r#""default_vocab_size":287"#,
            ErrorKind::Invalid,
            "but there are 256 tokens",
        ),
        (
            r#""special_tokens":[]"#,
            r#""special_tokens":[{"rank":1,"token_str":"x","is_control":true}]"#,
            ErrorKind::Invalid,
            "$.special_tokens[0]: rank 1 at place 0",
        ),
        (
            r#""special_tokens":[]"#,
            r#""special_tokens":[{"rank":0,"token_str":"<SPECIAL_1>","is_control":true}]"#,
            ErrorKind::Invalid,
            r#"special token "<SPECIAL_1>" is there twice"#,
        ),
        (r#""v3""#, r#""v11""#, ErrorKind::Syntax, ""),
        (r#""pattern":"p","#, "", ErrorKind::Missing, r#"$.config: field "pattern" is missing"#),
    ];
    for (from, to, kind, expected) in cases {
        let bad = file.replacen(from, to, 1);
        assert_ne!(bad, file, "{from}");
        match Tekken::parse(bad.as_bytes()) {
            Err(error) => check(&error, *kind, expected),
            // Versions after v7 are fine as long as they list their special tokens.
            Ok(tekken) => assert_eq!(tekken.version.as_deref(), Some("v11")),
        }
    }
    let unlisted = file.replace(r#","special_tokens":[]"#, "").replace(r#""v3""#, r#""v11""#);
    check(&Tekken::parse(unlisted.as_bytes()).unwrap_err(), ErrorKind::Invalid, "must list");
    let short = format!(
        r#"{{"config":{},"vocab":[]}}"#,
        r#"{"pattern":"","default_vocab_size":0,"default_num_special_tokens":0}"#
    );
    check(
        &Tekken::parse(short.as_bytes()).unwrap_err(),
        ErrorKind::Missing,
        "the 256 single bytes",
    );
}

/// Expected values from tokenizers 0.23.3, `WordPiece.from_file`.
#[test]
fn vocab_txt_lines_are_read_as_tokenizers_does() {
    let file = "[UNK]\r\nhug \n hug\n\nhug\u{3000}\n##s\n\u{2028}\nlast";
    let vocab = VocabTxt::parse(file.as_bytes()).unwrap();
    let tokens: Vec<_> = vocab.tokens().iter().collect();
    assert_eq!(tokens, ["[UNK]", "hug", " hug", "", "hug", "##s", "", "last"]);
    let ids = vocab.ids();
    assert_eq!((ids["hug"], ids[""], ids[" hug"], ids["last"]), (4, 6, 2, 7));
    assert_eq!(vocab.shadowed(), [1, 3]);
    let text = vocab.to_text().unwrap();
    assert_eq!(VocabTxt::parse(text.as_bytes()).unwrap(), vocab);

    check(&VocabTxt::parse(b"").unwrap_err(), ErrorKind::Missing, "the vocabulary is empty");
    let error = VocabTxt::parse(b"a\nb\xFF\n").unwrap_err();
    check(&error, ErrorKind::Syntax, "vocab.txt, line 2: invalid UTF-8 at byte 1 of the line");
    for token in ["a\nb", "a ", "\u{A0}"] {
        let vocab = VocabTxt::new([token].into_iter().collect());
        assert!(vocab.to_text().is_err(), "{token:?} would not be read back");
    }
}

#[test]
fn gpt2_files_are_read_as_tokenizers_does() {
    let vocab = br#"{"a": 0, "b": 1, "ab": 2, "\u0120": 3, "aab": 5}"#;
    let files = Gpt2::parse(vocab, b"#version: 0.2\r\na b\r\na ab\n").unwrap();
    assert_eq!(files.merges.len(), 2);
    assert_eq!(files.vocab_json(), r#"{"a":0,"b":1,"ab":2,"Ġ":3,"aab":5}"#);
    assert_eq!(files.merges_txt().unwrap(), "#version: 0.2\na b\na ab\n");

    let cases: &[(&[u8], ErrorKind, &str)] = &[
        (b"a b\n\n", ErrorKind::Syntax, "merges.txt, line 2: a merge is two tokens"),
        (b"a  b\n", ErrorKind::Syntax, "merges.txt, line 1: a merge is two tokens"),
        (b"#version\na c\n", ErrorKind::Dangling, "merges.txt, line 2: right token \"c\""),
        (b"b a\n", ErrorKind::Dangling, "merged token \"ba\""),
        (b"\xFF b\n", ErrorKind::Syntax, "merges.txt, line 1: invalid UTF-8"),
    ];
    for (merges, kind, expected) in cases {
        check(&Gpt2::parse(vocab, merges).unwrap_err(), *kind, expected);
    }
    check(&Gpt2::parse(b"[]", b"").unwrap_err(), ErrorKind::WrongType, "vocab.json, line 1");
    check(&Gpt2::parse(b"{}", b"").unwrap_err(), ErrorKind::Missing, "the vocabulary is empty");

    let vocab = IdMap::<str>::from_pairs([("a b", 0), ("c", 1), ("a bc", 2)]).unwrap();
    let merge = formats::tokenizer_json::Merge { left: 0, right: 1, product: 2 };
    let error = Gpt2 { vocab, merges: vec![merge] }.merges_txt().unwrap_err();
    assert_eq!(error.to_string(), "merges.txt cannot express this: merge 0 is of token \"a b\"");
}

fn model(
    pieces: &[(&str, f32, TokenKind)],
    change: impl FnOnce(&mut SentencePieceModel),
) -> SentencePieceModel {
    let mut model = SentencePieceModel::default();
    for &(piece, score, kind) in pieces {
        model.pieces.push(piece, score, kind);
    }
    change(&mut model);
    model
}

const UNK: (&str, f32, TokenKind) = ("<unk>", 0.0, TokenKind::Unknown);

/// The bytes of a model that is not checked first.
fn unchecked(model: &SentencePieceModel) -> Vec<u8> {
    // Pieces by hand; the specs are small enough for this.
    let mut out = Vec::new();
    for piece in model.pieces.iter() {
        let kind = match piece.kind {
            TokenKind::Normal => 1,
            TokenKind::Unknown => 2,
            TokenKind::Control => 3,
            TokenKind::UserDefined => 4,
            TokenKind::Unused => 5,
            TokenKind::Byte => 6,
        };
        let mut message = vec![0x0A, piece.piece.len() as u8];
        message.extend_from_slice(piece.piece.as_bytes());
        message.push(0x15);
        message.extend_from_slice(&piece.score.to_le_bytes());
        message.extend_from_slice(&[0x18, kind]);
        out.extend_from_slice(&[0x0A, message.len() as u8]);
        out.extend_from_slice(&message);
    }
    if model.trainer().byte_fallback() {
        out.extend_from_slice(&[0x12, 3, 0x98, 0x02, 1]);
    }
    if let Some(model_type) = model.trainer().model_type {
        out.extend_from_slice(&[0x12, 2, 0x18, model_type as u8]);
    }
    if !model.normalizer().charsmap().is_empty() {
        let charsmap = model.normalizer().charsmap();
        out.extend_from_slice(&[0x1A, charsmap.len() as u8 + 2, 0x12, charsmap.len() as u8]);
        out.extend_from_slice(charsmap);
    }
    out
}

#[test]
fn models_that_sentencepiece_refuses_are_refused() {
    use TokenKind::{Byte, Control, Normal, Unknown, Unused, UserDefined};
    let a = ("a", -1.0, Normal);
    let nothing = |_: &mut SentencePieceModel| {};
    let fallback = |model: &mut SentencePieceModel| {
        model.trainer_spec.get_or_insert_default().byte_fallback = Some(true);
    };
    let charsmap = |bytes: &'static [u8]| {
        move |model: &mut SentencePieceModel| {
            let spec = NormalizerSpec {
                precompiled_charsmap: Some(bytes.to_vec()),
                ..NormalizerSpec::default()
            };
            model.normalizer_spec = Some(spec);
        }
    };
    let cases = [
        (model(&[], nothing), ErrorKind::Missing, "the vocabulary is empty"),
        (model(&[a], nothing), ErrorKind::Missing, "no piece is of kind unknown"),
        (
            model(&[UNK, ("u", 0.0, Unknown)], nothing),
            ErrorKind::Duplicate,
            "byte 16: piece 1 is of kind unknown, and so is 0",
        ),
        (model(&[UNK, ("", -1.0, Normal)], nothing), ErrorKind::Missing, "piece 1 is empty"),
        (
            model(&[UNK, a, a], nothing),
            ErrorKind::Duplicate,
            "byte 28: piece 2 \"a\" repeats piece 1",
        ),
        (model(&[UNK, a, ("a", -1.0, Unused)], nothing), ErrorKind::Duplicate, "repeats piece 1"),
        (
            model(&[UNK, a, ("a", -1.0, UserDefined)], nothing),
            ErrorKind::Duplicate,
            "repeats piece 1",
        ),
        (
            model(&[UNK, ("c", 0.0, Control), ("c", 0.0, Control)], nothing),
            ErrorKind::Duplicate,
            "repeats piece 1",
        ),
        (
            model(&[UNK, ("a", f32::NAN, Normal)], nothing),
            ErrorKind::Invalid,
            "piece 1 \"a\" has score NaN",
        ),
        (
            model(&[UNK, ("a", f32::NEG_INFINITY, Normal)], nothing),
            ErrorKind::Invalid,
            "has score -inf",
        ),
        (model(&[UNK, ("a\0", 0.0, Normal)], nothing), ErrorKind::Invalid, "holds a NUL"),
        (
            model(&[UNK, ("<0x41>", 0.0, Byte)], nothing),
            ErrorKind::Invalid,
            "byte piece 1 \"<0x41>\", but byte_fallback is false",
        ),
        (
            model(&[UNK, ("<0x4g>", 0.0, Byte)], fallback),
            ErrorKind::Invalid,
            "byte piece 1 is \"<0x4g>\", not <0x00> to <0xFF>",
        ),
        (
            model(&[UNK, ("<0x00>", 0.0, Byte)], fallback),
            ErrorKind::Missing,
            "there is no piece <0x01>",
        ),
        (
            model(&[UNK, a], |m| m.trainer_spec.get_or_insert_default().model_type = Some(5)),
            ErrorKind::UnknownPart,
            "unknown model type 5",
        ),
        (
            model(&[UNK, a], charsmap(b"\0")),
            ErrorKind::Invalid,
            "a charsmap of 1 bytes has no length",
        ),
        (
            model(&[UNK, a], charsmap(b"\xFC\xFF\xFF\xFFab")),
            ErrorKind::Invalid,
            "is 4294967292 bytes, but 2 are there",
        ),
        (model(&[UNK, a], charsmap(b"\x03\0\0\0abc")), ErrorKind::Invalid, "no multiple of 4"),
        (model(&[UNK, a], charsmap(b"\0\0\0\0\xFF")), ErrorKind::Invalid, "not UTF-8"),
    ];
    for (model, kind, expected) in cases {
        let error = SentencePieceModel::parse(&unchecked(&model)).unwrap_err();
        check(&error, kind, expected);
        let written = model.to_bytes().unwrap_err().to_string();
        let what = expected.split_once(": ").map_or(expected, |(_, what)| what);
        assert!(written.contains(what), "{written}");
    }
    // These load: a control symbol may be spelled as a piece, an unused NUL marks a taken id.
    for pieces in
        [vec![UNK, a, ("a", 0.0, Control)], vec![UNK, ("\0", 0.0, Unused), ("\0", 0.0, Unused)]]
    {
        let model = model(&pieces, nothing);
        assert_eq!(SentencePieceModel::parse(&unchecked(&model)).unwrap(), model);
    }
}

#[test]
fn hostile_protobufs_are_refused() {
    let good = unchecked(&model(&[UNK, ("a", -1.0, TokenKind::Normal)], |_| {}));
    SentencePieceModel::parse(&good).unwrap();
    let cases: &[(&[u8], ErrorKind, &str)] = &[
        // A length of 2 GiB, then of almost 2^64.
        (
            b"\x0A\x80\x80\x80\x80\x08",
            ErrorKind::Truncated,
            "byte 29: a value of 2147483648 bytes where 0 are left",
        ),
        (
            b"\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01",
            ErrorKind::Truncated,
            "a value of 18446744073709551615 bytes",
        ),
        (b"\x0A\x05\x0A\x04a", ErrorKind::Truncated, "a value of 5 bytes where 3 are left"),
        (
            b"\x0A\x02\x0A\x7F",
            ErrorKind::Truncated,
            "byte 31: a value of 127 bytes where 0 are left",
        ),
        (b"\x0A", ErrorKind::Truncated, "ends in a varint"),
        (b"\x08\x05", ErrorKind::WrongType, "byte 28: field 1 is a varint, not bytes"),
        (b"\x0A\x02\x10\x01", ErrorKind::WrongType, "field 2 is a varint, not 32 bits"),
        (b"\x0A\x05\x0A\x01z\x18\x63", ErrorKind::UnknownPart, "a piece of type 99"),
        (b"\x0A\x03\x0A\x01\xFF", ErrorKind::Syntax, "field 1 is not UTF-8"),
        (b"\x12\x06\xC0\x02\xFF\xFF\xFF\xFF\x7F", ErrorKind::Truncated, "varint"),
        (
            b"\x12\x07\xC0\x02\xFF\xFF\xFF\xFF\x7F",
            ErrorKind::Limit,
            "field 40 is 34359738367, but must fit 32 bits",
        ),
        (b"\x13", ErrorKind::Syntax, "wire type 3"),
    ];
    for (tail, kind, expected) in cases {
        let file = [&good[..], tail].concat();
        check(&SentencePieceModel::parse(&file).unwrap_err(), *kind, expected);
    }
    for end in 0..good.len() {
        // Cut between its two pieces it is a model of one.
        assert_eq!(SentencePieceModel::parse(&good[..end]).is_ok(), end == 16, "{end}");
    }
}

#[test]
fn unknown_fields_survive_and_stripping_removes_them() {
    let mut file = unchecked(&model(&[UNK], |_| {}));
    // A piece with an extension (field 200), a trainer spec with field 99, samples, field 1000.
    file.extend_from_slice(b"\x0A\x0B\x0A\x01a\x15\x00\x00\x80\xBF\xC0\x0C\x07");
    file.extend_from_slice(b"\x12\x09\x0A\x04/x/y\x98\x06\x01");
    file.extend_from_slice(b"\x22\x03abc\xC2\x3E\x01z");
    let mut model = SentencePieceModel::parse(&file).unwrap();
    assert_eq!(model.to_bytes().unwrap(), file);
    let facts: Vec<String> = model.training_info().iter().map(ToString::to_string).collect();
    assert_eq!(
        facts,
        [
            "trainer_spec.input = /x/y",
            "trainer_spec.unknown = 3 bytes",
            "model.self_test_data = 3 bytes",
            "model.unknown = 4 bytes",
        ]
    );
    model.strip_training_info();
    let stripped = model.to_bytes().unwrap();
    assert!(model.training_info().is_empty());
    assert_eq!(SentencePieceModel::parse(&stripped).unwrap(), model);
    assert!(!stripped.windows(4).any(|bytes| bytes == b"/x/y"));
    assert_eq!(model.pieces.len(), 2);
}

#[test]
fn stripping_keeps_what_a_model_needs_to_run() {
    let mut model = model(&[UNK, ("▁a", -1.0, TokenKind::Normal)], |model| {
        model.trainer_spec = Some(TrainerSpec {
            input: vec!["/home/me/corpus.txt".into()],
            model_prefix: Some("/home/me/m".into()),
            num_threads: Some(8),
            character_coverage: Some(0.9995),
            unk_id: Some(0),
            pad_id: Some(-1),
            unk_surface: Some(" ?? ".into()),
            treat_whitespace_as_suffix: Some(true),
            user_defined_symbols: vec!["<sep>".into()],
            ..TrainerSpec::default()
        });
        model.normalizer_spec = Some(NormalizerSpec {
            name: Some("identity".into()),
            add_dummy_prefix: Some(false),
            normalization_rule_tsv: Some("/home/me/rules.tsv".into()),
            ..NormalizerSpec::default()
        });
    });
    model.trainer_spec.as_mut().unwrap().set_model_type(ModelType::Bpe);
    let facts = model.training_info();
    let private: Vec<_> = facts.iter().filter(|fact| !fact.needed).map(|fact| fact.field).collect();
    assert_eq!(
        private,
        ["input", "model_prefix", "character_coverage", "num_threads", "normalization_rule_tsv"]
    );
    model.strip_training_info();
    let kept = facts.into_iter().filter(|fact| fact.needed).collect::<Vec<_>>();
    assert_eq!(model.training_info(), kept);
    assert_eq!(model.model_type().unwrap(), ModelType::Bpe);
    let (trainer, normalizer) = (model.trainer(), model.normalizer());
    assert_eq!((trainer.unk_surface(), trainer.treat_whitespace_as_suffix()), (" ?? ", true));
    assert!(!normalizer.add_dummy_prefix() && normalizer.remove_extra_whitespaces());
    assert_eq!((trainer.bos_piece(), trainer.pad_piece()), ("<s>", "<pad>"));
}

#[test]
fn byte_pieces_are_told_and_made() {
    let pieces = std::iter::once(UNK.0.to_owned()).chain((0..=255).map(byte_piece));
    let mut full = SentencePieceModel::default();
    for (id, piece) in pieces.enumerate() {
        full.pieces.push(&piece, 0.0, if id == 0 { TokenKind::Unknown } else { TokenKind::Byte });
    }
    full.trainer_spec.get_or_insert_default().byte_fallback = Some(true);
    let read = SentencePieceModel::parse(&full.to_bytes().unwrap()).unwrap();
    assert_eq!(read, full);
    assert_eq!(read.pieces.first_of_kind(TokenKind::Byte), Some(1));
}

// GGUF files, built by hand.

struct GgufFile {
    pairs: Vec<u8>,
    count: u64,
}

impl GgufFile {
    fn new() -> Self {
        Self { pairs: Vec::new(), count: 0 }
    }

    fn pair(mut self, key: &str, kind: u32, value: &[u8]) -> Self {
        self.pairs.extend(gguf_string(key));
        self.pairs.extend(kind.to_le_bytes());
        self.pairs.extend_from_slice(value);
        self.count += 1;
        self
    }

    fn strings(self, key: &str, items: &[&str]) -> Self {
        let items: Vec<u8> = items.iter().flat_map(|item| gguf_string(item)).collect();
        let count = self.array_header(8, items_len(&items));
        self.pair(key, 9, &[&count[..], &items].concat())
    }

    fn array_header(&self, kind: u32, count: u64) -> Vec<u8> {
        [&kind.to_le_bytes()[..], &count.to_le_bytes()].concat()
    }

    fn file(&self) -> Vec<u8> {
        let mut file = b"GGUF\x03\0\0\0\0\0\0\0\0\0\0\0".to_vec();
        file.extend(self.count.to_le_bytes());
        file.extend_from_slice(&self.pairs);
        file
    }
}

fn items_len(items: &[u8]) -> u64 {
    let (mut at, mut count) = (0, 0);
    while at < items.len() {
        at += 8 + u64::from_le_bytes(items[at..at + 8].try_into().unwrap()) as usize;
        count += 1;
    }
    count
}

fn gguf_string(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

fn gguf() -> GgufFile {
    let floats: Vec<u8> = [-1.0f32, -2.0, -3.0].iter().flat_map(|f| f.to_le_bytes()).collect();
    let types: Vec<u8> = [1i32, 1, 3].iter().flat_map(|t| t.to_le_bytes()).collect();
    let header = |kind: u32| [&kind.to_le_bytes()[..], &3u64.to_le_bytes()].concat();
    GgufFile::new()
        .pair("general.architecture", 8, &gguf_string("llama"))
        .pair("llama.context_length", 4, &[0, 16, 0, 0])
        .pair("tokenizer.ggml.model", 8, &gguf_string("gpt2"))
        .pair("tokenizer.ggml.pre", 8, &gguf_string("llama-bpe"))
        .strings("tokenizer.ggml.tokens", &["a", "b", "ab"])
        .pair("tokenizer.ggml.scores", 9, &[header(6), floats].concat())
        .pair("tokenizer.ggml.token_type", 9, &[header(5), types].concat())
        .strings("tokenizer.ggml.merges", &["a b"])
        .pair("tokenizer.ggml.bos_token_id", 4, &[2, 0, 0, 0])
        .pair("tokenizer.ggml.add_bos_token", 7, &[1])
        .pair("tokenizer.chat_template", 8, &gguf_string("{{ messages }}"))
        .pair("tokenizer.other", 10, &[0; 8])
}

#[test]
fn gguf_vocabularies_are_read() {
    let vocab = gguf::parse(&gguf().file()).unwrap();
    assert_eq!((vocab.version, vocab.architecture.as_deref()), (3, Some("llama")));
    assert_eq!((vocab.model.as_str(), vocab.pre.as_deref()), ("gpt2", Some("llama-bpe")));
    assert_eq!(vocab.tokens.iter().collect::<Vec<_>>(), ["a", "b", "ab"]);
    assert_eq!(vocab.scores.as_deref(), Some(&[-1.0, -2.0, -3.0][..]));
    assert_eq!(vocab.token_types.as_ref().map(|types| types[2]), Some(TokenKind::Control));
    assert_eq!(vocab.resolve_merges().unwrap()[0].product, 2);
    assert_eq!((vocab.special_ids["bos"], vocab.flags["add_bos_token"]), (2, true));
    assert_eq!(vocab.chat_template.as_deref(), Some("{{ messages }}"));
    assert_eq!(vocab.other_keys, ["tokenizer.other"]);
    // What follows is the model's; it need not be there.
    let more = [gguf().file(), vec![7; 100]].concat();
    assert_eq!(gguf::parse(&more).unwrap(), vocab);
}

#[test]
fn gguf_prefixes_say_that_they_are_cut() {
    let file = gguf().file();
    for end in 0..file.len() {
        let error = gguf::parse(&file[..end]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Truncated, "{end}: {error}");
        assert!(matches!(error.position(), Position::Byte(at) if at <= end as u64));
    }
}

#[test]
fn hostile_gguf_files_are_refused() {
    let huge = u64::MAX.to_le_bytes();
    let nested = {
        let mut value = Vec::new();
        for _ in 0..100 {
            value.extend([&9u32.to_le_bytes()[..], &1u64.to_le_bytes()].concat());
        }
        value.extend([&0u32.to_le_bytes()[..], &0u64.to_le_bytes()].concat());
        value
    };
    let array = |kind: u32| [&kind.to_le_bytes()[..], &huge].concat();
    let cases = [
        (
            gguf().pair("tokenizer.ggml.model", 8, &gguf_string("x")),
            ErrorKind::Duplicate,
            "key \"tokenizer.ggml.model\" is there twice",
        ),
        (
            GgufFile::new().pair("x", 8, &huge),
            ErrorKind::Truncated,
            "a value of 18446744073709551615 bytes where 0 are left",
        ),
        (GgufFile::new().pair("x", 9, &array(12)), ErrorKind::Truncated, "bytes where 0 are left"),
        (
            GgufFile::new().pair("tokenizer.ggml.tokens", 9, &array(8)),
            ErrorKind::Truncated,
            "bytes where 0 are left",
        ),
        (
            GgufFile::new().pair("tokenizer.ggml.scores", 9, &array(6)),
            ErrorKind::Truncated,
            "bytes where 0 are left",
        ),
        (GgufFile::new().pair("x", 9, &nested), ErrorKind::Limit, "arrays nest deeper than 8"),
        (
            GgufFile::new().pair("x", 13, &[]),
            ErrorKind::UnknownPart,
            "value type 13, known are 0 to 12",
        ),
        (
            GgufFile::new().pair("tokenizer.ggml.model", 4, &[0; 4]),
            ErrorKind::WrongType,
            "expected a string, found U32",
        ),
        (
            GgufFile::new().pair("tokenizer.ggml.x", 7, &[2]),
            ErrorKind::Invalid,
            "a boolean of value 2",
        ),
        (
            GgufFile::new().pair("x", 0, &[1]),
            ErrorKind::Missing,
            "key tokenizer.ggml.model is missing",
        ),
        (
            GgufFile::new().pair("tokenizer.ggml.model", 8, &gguf_string("gpt2")),
            ErrorKind::Missing,
            "key tokenizer.ggml.tokens is missing",
        ),
        (
            GgufFile::new()
                .pair("tokenizer.ggml.model", 8, &gguf_string("gpt2"))
                .strings("tokenizer.ggml.tokens", &[]),
            ErrorKind::Missing,
            "the vocabulary is empty",
        ),
        (
            gguf().pair("tokenizer.ggml.eos_token_id", 4, &[3, 0, 0, 0]),
            ErrorKind::Dangling,
            "the id of eos is 3, but there are 3 tokens",
        ),
        (
            gguf().pair("tokenizer.ggml.eos_token_id", 5, &[255; 4]),
            ErrorKind::Dangling,
            "the id of eos is 4294967295",
        ),
        (
            gguf().pair("tokenizer.ggml.precompiled_charsmap", 9, &array(0)),
            ErrorKind::Truncated,
            "where 0 are left",
        ),
    ];
    for (file, kind, expected) in cases {
        check(&gguf::parse(&file.file()).unwrap_err(), kind, expected);
    }
    let with_version = |version: [u8; 4]| {
        let mut file = gguf().file();
        file[4..8].copy_from_slice(&version);
        gguf::parse(&file).unwrap_err()
    };
    check(&with_version([1, 0, 0, 0]), ErrorKind::UnknownPart, "version 1, known are 2 and 3");
    check(&with_version([0, 0, 0, 3]), ErrorKind::UnknownPart, "big-endian");
    check(&gguf::parse(b"GGML\0\0\0\0").unwrap_err(), ErrorKind::Syntax, "not \"GGUF\"");
    // A file that claims 2^64 pairs ends where its bytes do.
    let mut file = gguf().file();
    file[16..24].copy_from_slice(&huge);
    assert_eq!(gguf::parse(&file).unwrap_err().kind(), ErrorKind::Truncated);
}

// Piece counts.

fn shard(counts: &PieceCounts) -> Vec<u8> {
    let mut file = Vec::new();
    counts::write(counts, &mut file).unwrap();
    file
}

/// The bytes of this shard are the format; a change of them is a new version.
#[test]
fn the_bytes_of_a_shard_are_fixed() {
    let counts = PieceCounts::from_pairs([("hugs", 300), ("hug", 1)]).unwrap();
    let mut expected = b"\x89PCNT\r\n\x1A\x01\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0".to_vec();
    expected.extend_from_slice(b"\x00\x03hug\x01\x01");
    expected.extend_from_slice(b"\x03\x01s\xAC\x02\x00");
    expected.extend_from_slice(b"\x00\x00\x02\0\0\0\0\0\0\0\x2D\x01\0\0\0\0\0\0");
    let file = shard(&counts);
    assert_eq!(file[..file.len() - 4], expected);
    // zlib.crc32 of Python.
    assert_eq!(file[file.len() - 4..], 0x00AA_07E5u32.to_le_bytes());
}

#[test]
fn bad_shards_are_refused_with_their_offset() {
    let counts = PieceCounts::from_pairs([("hugs", 300), ("hug", 1)]).unwrap();
    let good = shard(&counts);
    for end in 0..good.len() {
        let error = counts::read(&good[..end]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Truncated, "{end}: {error}");
    }
    let more = [&good[..], b"\0"].concat();
    check(&counts::read(&more[..]).unwrap_err(), ErrorKind::Syntax, "more bytes behind the end");
    for (at, kind, expected) in [
        (0, ErrorKind::Syntax, "piece counts, byte 0: the first bytes are not a shard's"),
        (8, ErrorKind::UnknownPart, "byte 8: version"),
        (13, ErrorKind::UnknownPart, "byte 12: reserved bytes"),
        (27, ErrorKind::Corrupt, "the checksum is"),
        (good.len() - 1, ErrorKind::Corrupt, "the checksum is"),
        (good.len() - 20, ErrorKind::Corrupt, "the checksum is"),
    ] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        check(&counts::read(&bad[..]).unwrap_err(), kind, expected);
    }
    let header = b"\x89PCNT\r\n\x1A\x01\0\0\0\0\0\0\0\x64\0\0\0\0\0\0\0";
    let cases: &[(&[u8], ErrorKind, &str)] = &[
        (
            b"\x01\x01a\x01\x00",
            ErrorKind::Invalid,
            "byte 24: piece 0: shares 1 bytes with a piece of 0",
        ),
        (
            b"\x00\x01b\x01\x00\x00\x01a\x01\x00",
            ErrorKind::Invalid,
            "byte 29: piece 1: does not sort behind",
        ),
        (b"\x00\x01b\x01\x00\x00\x01b\x01\x00", ErrorKind::Invalid, "does not sort behind"),
        (b"\x00\x01b\x01\x00\x01\x00\x01\x00", ErrorKind::Invalid, "0 bytes follow 1"),
        (b"\x00\x01a\x00\x00", ErrorKind::Invalid, "its count is 0"),
        (b"\x00\x01a\x01\x64", ErrorKind::Invalid, "1 bytes at 100 end beyond extent 100"),
        (
            b"\x00\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01a",
            ErrorKind::Invalid,
            "the limit is 4294967295",
        ),
        (b"\x00\xFF\xFF\xFF\xFF\x0Fa", ErrorKind::Truncated, "the file ends in the middle"),
        (&[0xFF; 12], ErrorKind::Syntax, "a number of more than 64 bits"),
        (
            b"\x00\x01a\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01\x00\x00\x01b\x01\x00",
            ErrorKind::Invalid,
            "the sum of the counts passes 64 bits",
        ),
    ];
    for (tail, kind, expected) in cases {
        let file = [&header[..], tail].concat();
        check(&counts::read(&file[..]).unwrap_err(), *kind, expected);
    }
}

#[test]
fn writers_refuse_what_readers_would() {
    let mut writer = CountWriter::new(Vec::new(), 10).unwrap();
    let piece = |piece: &'static [u8], count, first_seen| PieceCount { piece, count, first_seen };
    writer.push(piece(b"b", 1, 0)).unwrap();
    for bad in [
        piece(b"a", 1, 0),
        piece(b"b", 1, 0),
        piece(b"c", 0, 0),
        piece(b"c", 1, 10),
        piece(b"c", u64::MAX, 0),
    ] {
        let error = writer.push(bad).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    }
    writer.push(piece(b"c", 1, 9)).unwrap();
    assert_eq!(counts::read(&writer.finish().unwrap()[..]).unwrap().len(), 2);
}

#[test]
fn failing_readers_and_writers_are_reported() {
    struct Broken;
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is on fire"))
        }
    }
    impl std::io::Write for Broken {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is full"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let error = counts::read(Broken).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(source, "the disk is on fire");
    assert!(counts::write(&PieceCounts::default(), Broken).is_err());
}

#[test]
fn counts_as_text_keep_the_order_and_add_up() {
    let counts = counts::parse_tsv(b"b\t2\n\\ta\\x00\\\\\t1\r\nb\t3\n\\xFF\t1").unwrap();
    let seen: Vec<_> = counts.by_first_seen().iter().map(|p| (p.piece.to_vec(), p.count)).collect();
    assert_eq!(seen, [(b"b".to_vec(), 5), (b"\ta\0\\".to_vec(), 1), (b"\xFF".to_vec(), 1)]);
    assert_eq!(counts::to_tsv(&counts), "b\t5\n\\ta\\x00\\\\\t1\n\\xFF\t1\n");
    let cases: &[(&[u8], ErrorKind, &str)] = &[
        (b"a 1\n", ErrorKind::Syntax, "piece counts as text, line 1: no tab in \"a 1\""),
        (b"a\t1\na\tx\n", ErrorKind::Syntax, "line 2: no count behind the tab"),
        (b"a\t1\t2\n", ErrorKind::Syntax, "no count behind the tab"),
        (b"\t1\n", ErrorKind::Invalid, "an empty piece or a count of 0"),
        (b"a\t0\n", ErrorKind::Invalid, "an empty piece or a count of 0"),
        (b"a\\q\t1\n", ErrorKind::Syntax, "an unknown escape"),
        (b"a\\x4\t1\n", ErrorKind::Syntax, "an unknown escape"),
        (b"a\t18446744073709551616\n", ErrorKind::Limit, "passes 64 bits"),
        (b"a\t18446744073709551615\nb\t1\n", ErrorKind::Limit, "line 2: a piece count"),
        (b"\n", ErrorKind::Syntax, "no tab"),
    ];
    for (file, kind, expected) in cases {
        check(&counts::parse_tsv(file).unwrap_err(), *kind, expected);
    }
    assert!(counts::parse_tsv(b"").unwrap().is_empty());
}

#[test]
fn formats_are_told_apart_by_content_and_by_prefix() {
    let tokenizer_json = br#"{"version": "1.0", "truncation": null, "added_tokens": [], "model": {"vocab": {"a": 0}, "merges": []}}"#;
    let old = br#"{"model": {"vocab": {"a": 0}, "merges": []}}"#;
    let tekken = Tekken::new("p", bytes(), 4).unwrap().to_json(Layout::Pretty);
    let model = unchecked(&model(&[UNK, ("a", -1.0, TokenKind::Normal)], |_| {}));
    let merges = "x y\n".repeat(20);
    let shard = shard(&PieceCounts::default());
    let gguf = gguf().file();
    let tiktoken = tiktoken_file();
    let cases: &[(&[u8], Option<Format>)] = &[
        (tokenizer_json, Some(Format::TokenizerJson)),
        (old, Some(Format::TokenizerJson)),
        (tekken.as_bytes(), Some(Format::Tekken)),
        (&tekken.as_bytes()[..100], None),
        (&tekken.as_bytes()[..300], Some(Format::Tekken)),
        (tiktoken.as_bytes(), Some(Format::Tiktoken)),
        (&model, Some(Format::SentencePiece)),
        (&gguf, Some(Format::Gguf)),
        (&shard, Some(Format::Counts)),
        (b"{\"a\": 0, \"\xC4\xA0\": 1}", Some(Format::VocabJson)),
        (b"{\"a\": 0, \"b\": 1", Some(Format::VocabJson)),
        (b"{\"a\": 0, \"\xC4", Some(Format::VocabJson)),
        (b"#version: 0.2\na b\n", Some(Format::MergesTxt)),
        (merges.as_bytes(), Some(Format::MergesTxt)),
        (b"[PAD]\n[unused0]\n", Some(Format::VocabTxt)),
        (b"a\t1\nb c\t20\n", Some(Format::CountsTsv)),
        (b"PAR1\x15\0", Some(Format::CountsParquet)),
        (b"", None),
        (b"\n\n", None),
        (b"{}", None),
        (b"{\"a\": \"b\"}", None),
        (b"[1, 2]", None),
        (b"Call me Ishmael.\nSome years ago", None),
        (b"\xFF\xFE\0\0", None),
        (b"\n\x05\n\x03abc", Some(Format::SentencePiece)),
        (b"\n\nabc", None),
    ];
    for (file, expected) in cases {
        assert_eq!(detect(file), *expected, "{:?}", String::from_utf8_lossy(file));
    }
}

fn piece_counts() -> impl Strategy<Value = PieceCounts> {
    let piece = vec(prop_oneof![3 => Just(b'a'), 2 => Just(b'b'), 1 => any::<u8>()], 1..6);
    (btree_map(piece, (1u64..1 << 40, 0u64..1 << 50), 0..20), 0u64..1 << 50).prop_map(
        |(pieces, extent)| {
            let mut counter = PieceCounts::counter();
            for (piece, (count, position)) in pieces {
                counter.add(&piece, count, position).expect("small counts");
            }
            counter.extend_to(extent);
            counter.finish()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_counts_survive_as_shard_and_as_text(counts in piece_counts()) {
        prop_assert_eq!(&counts::read(&shard(&counts)[..]).unwrap(), &counts);
        let read = counts::parse_tsv(counts::to_tsv(&counts).as_bytes()).unwrap();
        let order = |counts: &PieceCounts| -> Vec<(Vec<u8>, u64)> {
            counts.by_first_seen().iter().map(|p| (p.piece.to_vec(), p.count)).collect()
        };
        prop_assert_eq!(order(&read), order(&counts));
    }

    #[test]
    fn merging_shards_is_merging_tables(tables in vec(piece_counts(), 0..5)) {
        for positions in [Positions::Shared, Positions::Consecutive] {
            let mut expected = PieceCounts::default();
            for table in &tables {
                match positions {
                    Positions::Shared => expected.merge(table).unwrap(),
                    Positions::Consecutive => expected.append(table).unwrap(),
                }
            }
            let files: Vec<Vec<u8>> = tables.iter().map(shard).collect();
            let readers = files.iter().map(|file| CountReader::new(&file[..]).unwrap());
            let mut merge = Merge::new(readers, positions).unwrap();
            let mut writer = CountWriter::new(Vec::new(), merge.extent()).unwrap();
            while let Some(piece) = merge.next().unwrap() {
                writer.push(piece).unwrap();
            }
            let merged = writer.finish().unwrap();
            prop_assert_eq!(&merged, &shard(&expected), "byte for byte");
        }
    }

    #[test]
    fn reads_in_parts_of_any_size_are_alike(counts in piece_counts(), size in 1usize..9) {
        struct Slow<'f>(&'f [u8], usize);
        impl std::io::Read for Slow<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                let n = self.1.min(self.0.len()).min(buffer.len());
                buffer[..n].copy_from_slice(&self.0[..n]);
                self.0 = &self.0[n..];
                Ok(n)
            }
        }
        prop_assert_eq!(counts::read(Slow(&shard(&counts), size)).unwrap(), counts);
    }

    #[test]
    fn any_sentencepiece_model_survives(
        pieces in btree_map("[a-c▁]{1,4}", (-99.0f32..0.0, 0usize..4), 1..12),
        ids in any::<[Option<i32>; 4]>(),
        flags in any::<[Option<bool>; 5]>(),
        inputs in vec(testkit::strategies::mixed_text(), 0..3),
        size in any::<Option<u64>>(),
    ) {
        use TokenKind::{Control, Normal, Unused, UserDefined};
        let mut model = model(&[UNK], |_| {});
        for (piece, (score, kind)) in &pieces {
            model.pieces.push(piece, *score, [Normal, Control, Unused, UserDefined][*kind]);
        }
        model.trainer_spec = Some(TrainerSpec {
            input: inputs.clone(),
            input_sentence_size: size,
            unk_id: ids[0],
            bos_id: ids[1],
            eos_id: ids[2],
            pad_id: ids[3],
            split_digits: flags[0],
            hard_vocab_limit: flags[1],
            shrinking_factor: size.map(|size| size as f32),
            unk_surface: inputs.first().cloned(),
            ..TrainerSpec::default()
        });
        model.normalizer_spec = Some(NormalizerSpec {
            add_dummy_prefix: flags[2],
            escape_whitespaces: flags[3],
            precompiled_charsmap: flags[4].map(|_| Vec::new()),
            ..NormalizerSpec::default()
        });
        let file = model.to_bytes().unwrap();
        let read = SentencePieceModel::parse(&file).unwrap();
        prop_assert_eq!(read.to_bytes().unwrap(), file);
        prop_assert_eq!(read, model);
    }

    #[test]
    fn any_tokens_survive_as_tiktoken_and_tekken(tokens in proptest::collection::btree_set(vec(any::<u8>(), 2..6), 0..20)) {
        let tokens: Vec<Vec<u8>> = bytes().into_iter().chain(tokens).collect();
        let ranks = IdMap::<[u8]>::from_pairs(tokens.iter().zip(0..)).unwrap();
        prop_assert_eq!(&tiktoken::parse(tiktoken::to_text(&ranks).as_bytes()).unwrap(), &ranks);
        let tekken = Tekken::new(r"\s+", tokens, 25).unwrap();
        for layout in [Layout::Compact, Layout::Pretty] {
            let read = Tekken::parse(tekken.to_json(layout).as_bytes());
            prop_assert_eq!(&read.unwrap(), &tekken);
        }
    }

    #[test]
    fn any_lines_survive_as_vocab_txt(tokens in vec(testkit::strategies::mixed_text(), 1..8)) {
        let vocab = VocabTxt::new(tokens.into_iter().collect());
        if let Ok(text) = vocab.to_text() {
            prop_assert_eq!(VocabTxt::parse(text.as_bytes()).unwrap(), vocab);
        }
    }
}
