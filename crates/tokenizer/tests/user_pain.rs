//! What people report again and again about tokenizers, each with the thread that tells it.

#![allow(clippy::unwrap_used)] // A test's unwrap is its assertion.

use std::time::{Duration, Instant};

use formats::sentencepiece::{ModelType, NormalizerSpec, SentencePieceModel, TrainerSpec};
use formats::tokenizer_json::TokenizerJson;
use formats::vocab_txt::VocabTxt;
use tokenizer::convert::{ConvertOptions, Target, convert, prove};
use tokenizer::verify::{Texts, Verdict};
use tokenizer::{
    AddedToken, BertCase, DecodeOptions, Document, EncodeOptions, LoadOptions, Policy, Side,
    SpecialSet, TiktokenEncoding, Tokenizer, Truncation,
};
use tokenizer_core::{TokenId, TokenKind};

fn r50k() -> Tokenizer {
    Tokenizer::from_encoding(TiktokenEncoding::R50kBase)
}

fn json(file: &str) -> Tokenizer {
    Tokenizer::from_file(file.as_bytes(), &LoadOptions::default()).unwrap()
}

fn ids(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    tokenizer.ids(text).iter().map(|id| id.0).collect()
}

fn parsed(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    let options = EncodeOptions::new().policy(Policy::AllowAll);
    tokenizer.encode(text, &options).unwrap().ids.iter().map(|id| id.0).collect()
}

fn decode(tokenizer: &Tokenizer, ids: &[u32]) -> String {
    let ids: Vec<TokenId> = ids.iter().copied().map(TokenId).collect();
    tokenizer.decode(&ids, DecodeOptions::default()).unwrap()
}

/// openai/tiktoken#195, #15, #245; n8n#16769: quadratic time on one enormous piece. Twice the
/// text may take little more than twice the time; the bound leaves room for a busy machine.
#[test]
fn one_enormous_piece_takes_linear_time() {
    let tokenizer = r50k();
    for unit in ["a", "^", " "] {
        let time = |n: usize| {
            let text = unit.repeat(n);
            let run = || {
                let start = Instant::now();
                assert!(tokenizer.count(&text) > 0);
                start.elapsed()
            };
            (0..3).map(|_| run()).min().unwrap_or(Duration::ZERO)
        };
        let (short, long) = (time(50_000), time(200_000));
        assert!(long < short * 16 + Duration::from_millis(50), "{unit:?}: {short:?} then {long:?}");
    }
}

/// llama.cpp#27783, #21113: regular expressions that recurse overflow the stack.
#[test]
fn long_runs_do_not_grow_the_stack() {
    let run = || {
        for encoding in [TiktokenEncoding::R50kBase, TiktokenEncoding::Cl100kBase] {
            let tokenizer = Tokenizer::from_encoding(encoding);
            for text in ["x".repeat(36_000), "Z".repeat(131_072), "\n".repeat(30_000)] {
                let ids = tokenizer.ids(&text);
                assert_eq!(tokenizer.decode(&ids, DecodeOptions::default()).unwrap(), text);
            }
        }
    };
    std::thread::Builder::new().stack_size(512 << 10).spawn(run).unwrap().join().unwrap();
}

/// llama.cpp#7193; rten#453: with `ignore_merges` a whole piece of the vocabulary is looked up
/// before anything merges, and merges with odd spaces load.
#[test]
fn ignore_merges_takes_whole_pieces_first() {
    let file = |flag: &str| {
        json(&format!(
            r#"{{"model": {{"type": "BPE", "ignore_merges": {flag},
                "vocab": {{"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4, "bc": 5, "Ġ": 6, "ĠĠ": 7, "ĠĠĠ": 8}},
                "merges": [["b", "c"], ["Ġ", "ĠĠ"], ["ab", "c"]]}},
                "pre_tokenizer": {{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true}},
                "decoder": {{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true}}}}"#
        ))
    };
    assert_eq!(ids(&file("true"), "abc"), [4]);
    assert_eq!(ids(&file("false"), "abc"), [0, 5]);
}

/// llama.cpp#3502; ollama#17698; transformers#42131: a splitter that cannot be run is an error
/// that names it, never another splitter.
#[test]
fn an_unknown_splitter_is_an_error_and_no_fallback() {
    let with = |pre: &str| {
        let file = format!(
            r#"{{"model": {{"type": "BPE", "vocab": {{"a": 0}}, "merges": []}}, "pre_tokenizer": {pre}}}"#
        );
        Tokenizer::from_file(file.as_bytes(), &LoadOptions::default()).unwrap_err().to_string()
    };
    assert!(with(r#"{"type": "Split2"}"#).contains("Split2"));
    let broken =
        r#"{"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated", "invert": false}"#;
    assert!(with(broken).contains("pre_tokenizer.pattern"), "{}", with(broken));
}

/// openai/tiktoken#290; ttok#13; Roo#7539; huggingface/tokenizers#1419: the text of a special token
/// counts without an error and stays text.
#[test]
fn counting_special_token_text_never_fails() {
    let tokenizer = r50k();
    assert_eq!(tokenizer.count("<|endoftext|>"), 7);
    assert!(!ids(&tokenizer, "a<|endoftext|>").contains(&50256));
    assert_eq!(parsed(&tokenizer, "a<|endoftext|>"), [64, 50256]);
    let reject = EncodeOptions::new().policy(Policy::Reject(SpecialSet::all()));
    let error = tokenizer.encode("a<|endoftext|>", &reject).unwrap_err();
    assert_eq!((error.token(), error.span().start), ("<|endoftext|>", 1));
}

fn with_added(tokens: Vec<AddedToken>) -> Tokenizer {
    let mut parts = Tokenizer::bytes().into_parts();
    parts.added_tokens = tokens;
    parts.build().unwrap()
}

/// transformers#33371; iree#23805: a token that takes the white space behind it matches where none
/// is, and neighbours that both take white space leave none over.
#[test]
fn tokens_that_strip_match_without_white_space_too() {
    let token = |content: &str, id, lstrip, rstrip| AddedToken {
        lstrip,
        rstrip,
        ..AddedToken::special(content, TokenId(id))
    };
    let tokenizer = with_added(vec![
        token("<|user|>", 256, false, true),
        token("<|startoftranscript|>", 257, true, true),
        token("<|en|>", 258, true, true),
        token("<mask>", 259, true, false),
    ]);
    assert_eq!(parsed(&tokenizer, "<|user|>Hi"), [256, 72, 105]);
    assert_eq!(parsed(&tokenizer, "<|user|>  Hi"), [256, 72, 105]);
    assert_eq!(parsed(&tokenizer, "   <|startoftranscript|> <|en|>   "), [257, 258]);
    assert_eq!(parsed(&tokenizer, "a\u{3000} <mask>"), [97, 259]);
    assert_eq!(parsed(&tokenizer, "\u{200B}<mask>"), [0xE2, 0x80, 0x8B, 259]);
}

/// huggingface/tokenizers#174, #944, #1269: a truncation that cannot work fails when it is set,
/// never when it is used.
#[test]
fn impossible_truncation_is_refused_when_it_is_set() {
    let vocab = VocabTxt::parse(b"[UNK]\n[CLS]\n[SEP]\n,\n.\n").unwrap();
    let bert = || Tokenizer::from_vocab_txt(&vocab, BertCase::Uncased).unwrap();
    let truncation = |max_length, stride| Truncation { stride, ..Truncation::new(max_length) };
    for (max_length, stride) in [(10, 8), (1, 0)] {
        let error = bert().with_truncation(Some(truncation(max_length, stride))).unwrap_err();
        assert!(error.to_string().contains(&max_length.to_string()), "{error}");
    }
    let tokenizer = bert().with_truncation(Some(truncation(128, 0))).unwrap();
    let options = EncodeOptions::new().template(true);
    let (first, second) = (",".repeat(125), ".".repeat(130));
    let pair = tokenizer.encode_pair(&first, &second, &options).unwrap();
    assert_eq!(pair.len(), 128);
    assert!(pair.offsets.iter().all(|span| span.end <= 130));
    assert!(pair.overflowing.iter().all(|window| window.len() <= 128));
}

/// dotnet/machinelearning#7391; jtokkit#124: is it over n tokens, and cut at n tokens, without
/// encoding again and again; the cut is between characters and encodes to at most n.
#[test]
fn cuts_at_n_tokens_encode_to_at_most_n() {
    let tokenizer = r50k();
    let text = "Xử lý ngôn ngữ 😀 tự nhiên — it's 12345 tokens\n".repeat(3);
    let count = tokenizer.count(&text);
    for limit in 0..=count {
        let expected = (count <= limit).then_some(count);
        assert_eq!(tokenizer.count_till_limit(&text, limit), expected);
        for side in [Side::Left, Side::Right] {
            let part = tokenizer.cut(&text, limit, side);
            assert!(tokenizer.count(part) <= limit, "{limit} {side:?}: {part:?}");
        }
    }
    assert_eq!(tokenizer.cut(&text, count, Side::Right), text);
}

/// google-research/bert#763; tensorflow/text#73; FastBertTokenizer#102: a word that cannot be
/// spelled is one unknown token of the whole word, and so is one of more than 100 characters.
#[test]
fn unknown_words_are_one_token_that_covers_them() {
    let vocab = VocabTxt::parse(b"[UNK]\nun\n##want\n##ed\na\n##a\n##en\n").unwrap();
    let tokenizer = Tokenizer::from_vocab_txt(&vocab, BertCase::Cased).unwrap();
    let encoding = tokenizer.encode("unwanted unwantedX", &EncodeOptions::new()).unwrap();
    assert_eq!(encoding.ids.iter().map(|id| id.0).collect::<Vec<_>>(), [1, 2, 3, 0]);
    assert_eq!((encoding.offsets[3].start, encoding.offsets[3].end), (9, 18));
    assert_eq!(ids(&tokenizer, &"a".repeat(100)).len(), 100);
    assert_eq!(ids(&tokenizer, &"a".repeat(101)), [0]);
    // A continuation at the beginning keeps nothing of a word before it.
    assert_eq!(decode(&tokenizer, &[6]), "##en");
}

/// huggingface/tokenizers#1174, #826; transformers#24511: text around added tokens keeps its spaces.
#[test]
fn added_tokens_neither_eat_nor_add_spaces() {
    let plain = |content: &str, id| AddedToken {
        special: false,
        ..AddedToken::special(content, TokenId(id))
    };
    let tokenizer = with_added(vec![plain("abc", 256), plain("<=", 257)]);
    for text in ["my abcs and defs", "a<=5", "a <= 5", "abc abc", " abc"] {
        let ids: Vec<u32> = ids(&tokenizer, text);
        assert!(ids.iter().any(|&id| id > 255));
        assert_eq!(decode(&tokenizer, &ids), text);
    }
}

/// transformers#44915, #3846, #16438; mlx-lm#1347: decoding cleans nothing up unless the file says so.
#[test]
fn decoding_does_not_clean_up() {
    let tokenizer = r50k();
    for text in ["x != y", "do not", "a , b . c ? ' s", "I 'm we 've"] {
        assert_eq!(decode(&tokenizer, &ids(&tokenizer, text)), text);
    }
    let file = |cleanup: bool| {
        json(&format!(
            r###"{{"model": {{"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100, "vocab": {{"[UNK]": 0, "do": 1, "not": 2, "!": 3}}}},
                "pre_tokenizer": {{"type": "BertPreTokenizer"}},
                "decoder": {{"type": "WordPiece", "prefix": "##", "cleanup": {cleanup}}}}}"###
        ))
    };
    assert_eq!(decode(&file(false), &[1, 2, 3]), "do not !");
    assert_eq!(decode(&file(true), &[1, 2, 3]), "do not!");
}

/// What this thread has run so far, where the system says it: other programs do not count.
fn cpu_time() -> Option<Duration> {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(times.split_whitespace().next()?.parse().ok()?))
}

/// huggingface/tokenizers#1635, #853, #914; transformers#31134: many added tokens load in linear time.
#[test]
fn four_hundred_thousand_added_tokens_load_at_once() {
    let mut file = String::from(
        r#"{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}, "added_tokens": ["#,
    );
    for i in 0..400_000 {
        let comma = if i == 0 { "" } else { "," };
        file.push_str(&format!(
            r#"{comma}{{"id": {}, "content": "<extra_{i}>", "single_word": false, "lstrip": false,
            "rstrip": false, "normalized": false, "special": false}}"#,
            i + 2
        ));
    }
    file.push_str("]}");
    let (wall, cpu) = (Instant::now(), cpu_time());
    let document = TokenizerJson::parse(file.as_bytes()).unwrap();
    let tokenizer = Tokenizer::from_tokenizer_json(&document).unwrap();
    let elapsed = match (cpu, cpu_time()) {
        (Some(before), Some(after)) => after - before,
        _ => wall.elapsed(),
    };
    println!("{elapsed:?}");
    // Without optimizations it takes some times as long; in quadratic time it would take hours.
    let limit = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 1 });
    assert!(elapsed < limit, "{elapsed:?}");
    assert_eq!(ids(&tokenizer, "a<extra_399999>b<extra_7>"), [0, 400_001, 1, 9]);
}

/// huggingface/tokenizers#1311, #1682, #759; transformers#24233, #25316; sentencepiece#1042: "thermal"
/// is one token of the .model and three of the converted file, as merges are missing or in another
/// order. Pieces with a space inside and merges of two equal halves stay, and the way back exists.
#[test]
fn a_converted_sentencepiece_model_merges_alike() {
    let pieces = [
        "▁t",
        "he",
        "▁a",
        "▁b",
        "er",
        "▁the",
        "al",
        "▁▁",
        "mal",
        "▁ther",
        "▁▁▁▁",
        "▁a▁b",
        "rm",
        "▁therm",
        "▁thermal",
        "▁",
        "t",
        "h",
        "e",
        "r",
        "m",
        "a",
        "l",
        "b",
    ];
    let mut model = SentencePieceModel::default();
    model.pieces.push("<unk>", 0.0, TokenKind::Unknown);
    model.pieces.push("<s>", 0.0, TokenKind::Control);
    for (piece, score) in pieces.iter().zip(0u16..) {
        model.pieces.push(piece, -f32::from(score), TokenKind::Normal);
    }
    let mut trainer = TrainerSpec::default();
    trainer.set_model_type(ModelType::Bpe);
    model.trainer_spec = Some(trainer);
    model.normalizer_spec =
        Some(NormalizerSpec { remove_extra_whitespaces: Some(false), ..Default::default() });
    let original = Document::SentencePiece(Box::new(model));
    let options = ConvertOptions::default();
    let json = convert(&original, Target::TokenizerJson, &options).unwrap();
    let back = convert(&json.document, Target::SentencePiece, &options).unwrap();
    let lowered = |document: &Document| document.lower(&LoadOptions::default()).unwrap();
    let (first, second) = (lowered(&original), lowered(&json.document));
    let third = lowered(&back.document);
    let id = |piece: &str| 2 + pieces.iter().position(|p| *p == piece).unwrap() as u32;
    for (text, expected) in [
        ("thermal", vec!["▁thermal"]),
        ("therma", vec!["▁therm", "a"]),
        ("   thermal", vec!["▁▁", "▁", "▁thermal"]),
        ("a b", vec!["▁a▁b"]),
    ] {
        let expected: Vec<u32> = expected.into_iter().map(id).collect();
        for tokenizer in [&first, &second, &third] {
            assert_eq!(ids(tokenizer, text), expected, "{text:?}");
        }
    }
    let mut texts = Texts::builtin();
    texts.push_tokens(&first);
    for converted in [&json, &back] {
        let checks = prove(&original, converted, &options, &texts).unwrap();
        assert!(checks.iter().all(|check| check.verdict() == Verdict::Passed), "{checks:?}");
    }
}

fn decoder(part: &str) -> Tokenizer {
    json(&format!(
        r#"{{"model": {{"type": "WordLevel", "unk_token": "u", "vocab": {{"u": 0, "a1b22": 1, "3": 2, "x": 3}}}},
        "pre_tokenizer": {{"type": "WhitespaceSplit"}}, "decoder": {part}}}"#
    ))
}

/// A decoder may replace a regular expression, token by token; a stream equals the whole.
#[test]
fn decoders_replace_regular_expressions() {
    let part = r##"{"type": "Replace", "pattern": {"Regex": "[0-9]+"}, "content": "#"}"##;
    let tokenizer = decoder(part);
    assert_eq!(decode(&tokenizer, &[1, 2, 3]), "a#b##x");
    let mut stream = tokenizer.decode_stream(DecodeOptions::default());
    assert_eq!(stream.push(TokenId(1)).unwrap(), "a#b#");
    assert_eq!(stream.push(TokenId(2)).unwrap(), "#");
    assert_eq!(stream.finish(), "");
    // Behind `Fuse` the whole text is one token.
    let fused = format!(r#"{{"type": "Sequence", "decoders": [{{"type": "Fuse"}}, {part}]}}"#);
    assert_eq!(decode(&decoder(&fused), &[1, 2, 3]), "a#b#x");
    let broken = r##"{"type": "Replace", "pattern": {"Regex": "(a"}, "content": "#"}"##;
    let file = format!(
        r#"{{"model": {{"type": "WordLevel", "unk_token": "u", "vocab": {{"u": 0}}}}, "decoder": {broken}}}"#
    );
    let error = Tokenizer::from_file(file.as_bytes(), &LoadOptions::default()).unwrap_err();
    assert!(error.to_string().contains("decoder.pattern"), "{error}");
}

/// Dropout of a file is random with tokenizers; here it takes a seed, and 1 merges nothing.
#[test]
fn dropout_takes_a_seed() {
    let file = |dropout: &str| {
        json(&format!(
            r#"{{"model": {{"type": "BPE", "dropout": {dropout}, "vocab": {{"a": 0, "b": 1, "ab": 2, "abab": 3}},
            "merges": ["a b", "ab ab"]}}}}"#
        ))
    };
    let text = "abababababab";
    let plain = file("null");
    assert_eq!((plain.dropout(), ids(&plain, text)), (None, vec![3, 3, 3]));
    let half = file("0.5");
    assert_eq!((half.dropout(), ids(&half, text)), (Some(0.5), vec![3, 3, 3]));
    let drawn = |seed| {
        let mut ids = Vec::new();
        half.session_with_dropout(0.5, seed).unwrap().ids_into(text, &mut ids);
        ids
    };
    assert_eq!(drawn(3), drawn(3));
    assert!((0..20).any(|seed| drawn(seed).len() > 3));
    assert_eq!(ids(&file("1.0"), "abab"), [0, 1, 0, 1]);
    assert!(Tokenizer::bytes().session_with_dropout(0.5, 1).is_none());
}

/// Unigram without an unknown piece: tokenizers fails where one is needed; here such characters
/// give no token, so that encoding cannot fail, and the others keep their offsets.
#[test]
fn unigram_without_an_unknown_piece_drops_what_it_cannot_spell() {
    let tokenizer = json(
        r#"{"model": {"type": "Unigram", "unk_id": null, "vocab": [["a", -1.0], ["b", -2.0]]}}"#,
    );
    assert_eq!(ids(&tokenizer, "ab"), [0, 1]);
    let encoding = tokenizer.encode("a\u{2603}b", &EncodeOptions::new()).unwrap();
    assert_eq!(encoding.ids, [TokenId(0), TokenId(1)]);
}
