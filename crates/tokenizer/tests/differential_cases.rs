//! Differences that the differential fuzz of `crates/peers` found, each with the shortest input.
//!
//! Expected values are those of tokenizers 0.23.2, SentencePiece 0.2.3 and tiktoken 0.14, as each
//! case says.

use formats::tokenizer_json::TokenizerJson;
use serde_json::{Value, json};
use tokenizer::{DecodeOptions, EncodeOptions, Encoding, Policy, Tokenizer};
use tokenizer_core::TokenId;

/// The tokenizer of a tokenizer.json with these parts; what is left out is null.
fn load(parts: &Value) -> Tokenizer {
    try_load(parts).expect("a document that can be run")
}

fn try_load(parts: &Value) -> Result<Tokenizer, String> {
    let document = TokenizerJson::parse(parts.to_string().as_bytes()).map_err(|e| e.to_string())?;
    Tokenizer::from_tokenizer_json(&document).map_err(|error| error.to_string())
}

fn encode(parts: &Value, text: &str) -> Encoding {
    let options = EncodeOptions::new().policy(Policy::AllowAll);
    load(parts).encode(text, &options).expect("nothing is refused")
}

fn ids(parts: &Value, text: &str) -> Vec<u32> {
    encode(parts, text).ids.iter().map(|id| id.0).collect()
}

fn offsets(parts: &Value, text: &str) -> Vec<(usize, usize)> {
    encode(parts, text).offsets.iter().map(|span| (span.start, span.end)).collect()
}

fn decode(parts: &Value, ids: &[u32]) -> String {
    let ids: Vec<TokenId> = ids.iter().copied().map(TokenId).collect();
    load(parts).decode(&ids, DecodeOptions::default()).expect("known ids")
}

fn word_level(vocab: Value) -> Value {
    json!({"type": "WordLevel", "unk_token": "[UNK]", "vocab": vocab})
}

fn added(id: u32, content: &str, flags: &[&str]) -> Value {
    let has = |flag: &str| flags.contains(&flag);
    json!({
        "id": id, "content": content, "single_word": has("single_word"), "lstrip": has("lstrip"),
        "rstrip": has("rstrip"), "normalized": has("normalized"), "special": has("special"),
    })
}

fn byte_level() -> Value {
    json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false})
}

/// A BPE model of the 256 bytes, as byte-level files spell them, in the order of the bytes.
fn byte_level_bpe() -> Value {
    let vocab: serde_json::Map<String, Value> = (0..=255u8)
        .map(|byte| (formats::byte_level::to_char(byte).to_string(), json!(byte)))
        .collect();
    json!({"type": "BPE", "vocab": vocab, "merges": []})
}

// tokenizers 0.23.2: byte-level models.

#[test]
fn byte_level_without_its_decoder_shows_the_spelling() {
    let parts = json!({"pre_tokenizer": byte_level(), "model": byte_level_bpe()});
    assert_eq!(ids(&parts, " \u{B1}"), [32, 0xC2, 0xB1]);
    assert_eq!(decode(&parts, &[32, 0xB1]), "\u{120} \u{B1}");
}

#[test]
fn byte_level_spells_for_models_that_are_not_bpe() {
    let model = json!({"type": "Unigram", "unk_id": 0, "vocab": [["\u{2581}", -1.0], [" ", -4.0], ["\u{120}", -2.0]]});
    assert_eq!(ids(&json!({"pre_tokenizer": byte_level(), "model": model}), " "), [2]);
    let model = json!({
        "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "",
        "max_input_chars_per_word": 4, "vocab": {"[UNK]": 0, "a": 1, "\u{120}": 2},
    });
    let mut part = byte_level();
    part["add_prefix_space"] = json!(true);
    assert_eq!(ids(&json!({"pre_tokenizer": part, "model": model}), "a"), [2, 1]);
}

#[test]
fn normalizer_that_spells_bytes_comes_before_the_splitter() {
    let model = word_level(json!({"[UNK]": 0}));
    let split = json!({"type": "Split", "pattern": {"String": "\n"}, "behavior": "Isolated", "invert": false});
    let parts =
        json!({"normalizer": {"type": "ByteLevel"}, "pre_tokenizer": split, "model": model});
    assert_eq!(ids(&parts, "a\n"), [0]);
    let split = json!({"type": "WhitespaceSplit"});
    let parts =
        json!({"normalizer": {"type": "ByteLevel"}, "pre_tokenizer": split, "model": model});
    assert_eq!(offsets(&parts, " a"), [(0, 2)]);
}

#[test]
fn rstrip_sees_no_white_space_in_spelled_text() {
    let parts = json!({
        "added_tokens": [added(256, "eB", &["normalized", "rstrip"])],
        "normalizer": {"type": "ByteLevel"}, "model": byte_level_bpe(), "decoder": byte_level(),
    });
    assert_eq!(ids(&parts, "eB "), [256, 32]);
}

#[test]
fn byte_level_decodes_tokens_of_any_model() {
    let parts = json!({"model": word_level(json!({"[UNK]": 0, "\u{E9}": 1, "\u{120}": 2})), "decoder": byte_level()});
    assert_eq!(decode(&parts, &[1]), "\u{FFFD}");
    assert_eq!(decode(&parts, &[2]), " ");
}

#[test]
fn byte_level_decodes_added_tokens_too() {
    let parts = json!({
        "added_tokens": [added(256, "\u{E9}a", &[]), added(257, "\u{4E2D}", &[])],
        "pre_tokenizer": byte_level(), "model": byte_level_bpe(), "decoder": byte_level(),
    });
    assert_eq!(decode(&parts, &[256, 257]), "\u{FFFD}a\u{4E2D}");
}

#[test]
fn byte_level_decoder_gives_one_token_to_what_follows() {
    let parts = json!({
        "model": word_level(json!({"[UNK]": 0, "a": 1, "b": 2})),
        "decoder": {"type": "Sequence", "decoders": [
            byte_level(), {"type": "WordPiece", "prefix": "##", "cleanup": false},
        ]},
    });
    assert_eq!(decode(&parts, &[1, 2]), "ab");
}

/// `Ä` is how byte 0xC4 is spelled; as text it is the bytes 0xC3 and 0x84.
#[test]
fn special_token_that_spells_a_byte_is_that_byte() {
    let mut model = byte_level_bpe();
    model["ignore_merges"] = json!(true);
    let parts = json!({
        "added_tokens": [added(0xC4, "\u{C4}", &["special"])],
        "pre_tokenizer": byte_level(), "model": model, "decoder": byte_level(),
    });
    let ordinary = |text: &str| load(&parts).ids(text).iter().map(|id| id.0).collect::<Vec<_>>();
    assert_eq!(ordinary("\u{C4}"), [0xC3, 0x84]);
    assert_eq!(ordinary("\u{110}"), [0xC4, 0x90]);
    assert_eq!(ids(&parts, "\u{C4}"), [0xC4]);
}

/// `ÃĦ` is how the text `Ä` is spelled: two tokens of the same bytes, one of them special.
#[test]
fn special_token_may_have_the_bytes_of_an_ordinary_one() {
    let mut model = byte_level_bpe();
    model["vocab"]["\u{C3}\u{126}"] = json!(256);
    model["vocab"]["\u{C4}\u{C4}"] = json!(257);
    model["vocab"]["\u{C3}\u{126}\u{C3}\u{126}"] = json!(258);
    model["merges"] = json!(["\u{C3} \u{126}", "\u{C3}\u{126} \u{C3}\u{126}"]);
    let parts = json!({
        "added_tokens": [added(257, "\u{C4}\u{C4}", &["special"])],
        "pre_tokenizer": byte_level(), "model": model, "decoder": byte_level(),
    });
    let ordinary = load(&parts).ids("\u{C4}\u{C4}");
    assert_eq!(ordinary, [TokenId(258)]);
    assert_eq!(ids(&parts, "\u{C4}\u{C4}"), [257]);
}

// tokenizers 0.23.2: decoding.

#[test]
fn normalized_added_token_decodes_to_its_normalized_text() {
    for (normalizer, content, text) in [
        (json!({"type": "Lowercase"}), "[CLS]", "[cls]"),
        (json!({"type": "Prepend", "prepend": "ab"}), "\u{FB01}", "ab\u{FB01}"),
        (json!({"type": "StripAccents"}), "e\u{301}", "e"),
        (json!({"type": "ByteLevel"}), "\n", "\u{10A}"),
    ] {
        let parts = json!({
            "added_tokens": [added(1, content, &["normalized"])], "normalizer": normalizer,
            "model": word_level(json!({"[UNK]": 0})),
        });
        assert_eq!(decode(&parts, &[1]), text);
    }
}

#[test]
fn special_token_is_known_by_its_text_when_it_is_skipped() {
    let parts = json!({
        "added_tokens": [added(1, "[CLS]", &["normalized", "special"])],
        "normalizer": {"type": "Lowercase"}, "model": word_level(json!({"[UNK]": 0})),
    });
    let text = load(&parts).decode(&[TokenId(1)], DecodeOptions::skip_special()).unwrap();
    assert_eq!(text, "[cls]");
}

#[test]
fn byte_fallback_reads_tokens_that_look_like_bytes_in_any_model() {
    let parts = json!({
        "model": word_level(json!({"[UNK]": 0, "<0x41>": 1, "<0xAF>": 2})),
        "decoder": {"type": "ByteFallback"},
    });
    assert_eq!(decode(&parts, &[1]), "A");
    assert_eq!(decode(&parts, &[2]), "\u{FFFD}");
}

#[test]
fn ill_formed_bytes_are_a_token_each() {
    let parts = json!({
        "model": word_level(json!({"[UNK]": 0, "<0xAF>": 1})),
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "ByteFallback"}, {"type": "WordPiece", "prefix": "##", "cleanup": false},
        ]},
    });
    assert_eq!(decode(&parts, &[1, 1]), "\u{FFFD} \u{FFFD}");
}

#[test]
fn byte_tokens_are_text_to_other_decoders() {
    let model = json!({
        "type": "Unigram", "unk_id": 0, "byte_fallback": true,
        "vocab": [["<unk>", 0.0], ["<0xF9>", -6.0], ["<0xE6>", -6.0]],
    });
    let parts = json!({"model": model, "decoder": {"type": "Sequence", "decoders": [
        {"type": "WordPiece", "prefix": "##", "cleanup": false},
        {"type": "Strip", "content": " ", "start": 1, "stop": 2},
    ]}});
    assert_eq!(decode(&parts, &[1, 2]), "<0xF9><0xE6>");
}

#[test]
fn ctc_behind_byte_level_sees_text_and_no_bytes() {
    let parts = json!({
        "model": word_level(json!({"[UNK]": 0, " ": 1, ".": 2, "\u{E9}": 3})),
        "decoder": {"type": "Sequence", "decoders": [
            byte_level(),
            {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "b", "cleanup": true},
        ]},
    });
    assert_eq!(decode(&parts, &[1, 2, 3]), ".\u{FFFD}");
}

#[test]
fn fused_text_stays_fused_behind_a_strip() {
    let parts = json!({
        "model": word_level(json!({"[UNK]": 0, "ab": 1})),
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 2, "stop": 2},
            {"type": "CTC", "pad_token": "x", "word_delimiter_token": "|", "cleanup": false},
        ]},
    });
    assert_eq!(decode(&parts, &[1, 1]), "abab");
}

/// As many as there are: a file may name any number, which is no number of steps.
#[test]
fn strip_takes_no_longer_than_what_it_strips() {
    let parts = json!({
        "model": word_level(json!({"[UNK]": 0, "  a ": 1})),
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Strip", "content": " ", "start": u64::MAX, "stop": 1},
            {"type": "Replace", "pattern": {"String": "x"}, "content": ""},
        ]},
    });
    assert_eq!(decode(&parts, &[1, 1]), "aa");
}

#[test]
fn id_that_the_vocabulary_leaves_out_gives_no_text() {
    let parts = json!({"model": word_level(json!({"[UNK]": 0, "a": 5}))});
    assert_eq!(decode(&parts, &[3, 5, 4, 5]), "a a");
}

// tokenizers 0.23.2: offsets.

#[test]
fn bytes_of_an_unknown_run_share_its_offsets() {
    let model = json!({
        "type": "Unigram", "unk_id": 0, "byte_fallback": true,
        "vocab": [["<unk>", 0.0], ["<0x22>", -1.0], ["<0x5D>", -1.0], ["<0x47>", -1.0]],
    });
    let parts = json!({"model": model});
    assert_eq!(offsets(&parts, "\"\""), [(0, 2), (0, 2)]);
    // The text of a byte token is a piece of its own, which ends the run.
    assert_eq!(offsets(&parts, "]<0x47>"), [(0, 1), (1, 7)]);
}

fn trimming(add_prefix_space: bool) -> Value {
    json!({"type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": true, "use_regex": false})
}

#[test]
fn trimming_takes_any_white_space_of_tokens_that_are_text() {
    let model = word_level(json!({"[UNK]": 0, "\n": 1, "\t a": 2}));
    let parts = json!({"model": model, "post_processor": trimming(false)});
    assert_eq!(offsets(&parts, "\n"), [(1, 1)]);
    assert_eq!(offsets(&parts, "\t a"), [(2, 3)]);
}

#[test]
fn trimming_takes_what_an_added_token_stripped() {
    let model = word_level(json!({"[UNK]": 0, "a": 3}));
    let tokens = json!([added(4, "<mask>", &["lstrip", "special"]), added(5, "1", &["rstrip"])]);
    let parts = json!({"added_tokens": tokens, "model": model, "post_processor": trimming(false)});
    assert_eq!(offsets(&parts, " <mask>"), [(1, 7)]);
    assert_eq!(offsets(&parts, "1 "), [(0, 1)]);
    // As its character offsets say; its byte offsets would be 2 and 10.
    assert_eq!(offsets(&parts, "\u{3000} <mask>"), [(4, 10)]);
}

/// Twice in a sequence of processors, by what the token is spelled with each time.
#[test]
fn trimming_twice_takes_what_a_token_stripped_twice() {
    let model = word_level(json!({"[UNK]": 0}));
    let tokens = json!([added(1, " a", &["rstrip"])]);
    let processors = json!({"type": "Sequence", "processors": [trimming(false), trimming(false)]});
    let parts = json!({"added_tokens": tokens, "model": model, "post_processor": processors});
    assert_eq!(offsets(&parts, " a"), [(2, 2)]);
}

#[test]
fn trimming_keeps_one_added_space_and_takes_two() {
    let model = word_level(json!({"[UNK]": 0, " a": 1, "  a": 2}));
    let parts = json!({"model": model, "post_processor": trimming(true)});
    assert_eq!(offsets(&parts, " a"), [(0, 2)]);
    assert_eq!(offsets(&parts, "  a"), [(2, 3)]);
}

// tokenizers 0.23.2: the rest.

#[test]
fn four_characters_keep_the_script_of_unicode_9() {
    let parts = json!({"pre_tokenizer": {"type": "UnicodeScripts"}, "model": word_level(json!({"[UNK]": 0}))});
    for text in ["\u{61C}\u{17}", "\u{589}\u{17}", "\u{953}\u{915}", "\u{954}\u{915}"] {
        assert_eq!(ids(&parts, text), [0], "{text:?}");
    }
}

#[test]
fn windows_of_a_pair_follow_the_order_of_the_template() {
    let sequence = |id| json!({"Sequence": {"id": id, "type_id": 0}});
    let parts = json!({
        "model": word_level(json!({"[UNK]": 0, "a": 1, "b": 2, "c": 3, "d": 4})),
        "pre_tokenizer": {"type": "FixedLength", "length": 1},
        "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0},
        "post_processor": {
            "type": "TemplateProcessing", "single": [sequence("A")],
            "pair": [sequence("B"), sequence("A")], "special_tokens": {},
        },
    });
    let encoding = load(&parts).encode_pair("ab", "cd", &EncodeOptions::new()).unwrap();
    let ids = |e: &Encoding| e.ids.iter().map(|id| id.0).collect::<Vec<_>>();
    assert_eq!(ids(&encoding), [3, 1]);
    let windows: Vec<_> = encoding.overflowing.iter().map(ids).collect();
    assert_eq!(windows, [[4, 1], [4, 2], [3, 2]]);
}

#[test]
fn template_that_takes_all_room_leaves_nothing_of_either_text() {
    let part = |id: &str| json!({"Sequence": {"id": id, "type_id": 0}});
    let special = json!({"SpecialToken": {"id": "Y", "type_id": 0}});
    let parts = json!({
        "model": word_level(json!({"[UNK]": 0, "a": 1, "b": 2})),
        "truncation": {"direction": "Left", "max_length": 6, "strategy": "OnlySecond", "stride": 2},
        "post_processor": {
            "type": "TemplateProcessing", "single": [part("A")],
            "pair": [part("A"), special, special, special, part("B")],
            "special_tokens": {"Y": {"id": "Y", "ids": [3, 4], "tokens": ["Y", "Z"]}},
        },
    });
    let options = EncodeOptions::new().template(true);
    let encoding = load(&parts).encode_pair("a", "b", &options).unwrap();
    let ids = |e: &Encoding| e.ids.iter().map(|id| id.0).collect::<Vec<_>>();
    assert_eq!(ids(&encoding), [3, 4, 3, 4, 3, 4]);
    let windows: Vec<_> = encoding.overflowing.iter().map(ids).collect();
    assert_eq!(
        windows,
        [vec![1, 3, 4, 3, 4, 3, 4], vec![1, 3, 4, 3, 4, 3, 4, 2], vec![3, 4, 3, 4, 3, 4, 2]]
    );
}

/// tokenizers runs both over what the first one made; that is no template of ours, and a guess
/// would be a silent difference.
#[test]
fn two_processors_that_add_tokens_are_refused() {
    let bert = json!({"type": "BertProcessing", "sep": ["[SEP]", 1], "cls": ["[CLS]", 2]});
    let parts = json!({
        "model": word_level(json!({"[UNK]": 0})),
        "post_processor": {"type": "Sequence", "processors": [bert, bert]},
    });
    let error = try_load(&parts).err().unwrap();
    assert!(error.contains("post_processor"), "{error}");
}

/// tokenizers tells the first token of a text by its place in the list, in which `[CLS]` stands too.
#[test]
fn trimming_behind_added_tokens_is_refused() {
    let bert = json!({"type": "BertProcessing", "sep": ["[SEP]", 1], "cls": ["[CLS]", 2]});
    let load = |processors: Value| {
        try_load(&json!({
            "model": word_level(json!({"[UNK]": 0})),
            "post_processor": {"type": "Sequence", "processors": processors},
        }))
    };
    let error = load(json!([bert, trimming(true)])).err().unwrap();
    assert!(error.contains("trims offsets behind"), "{error}");
    assert!(load(json!([trimming(true), bert])).is_ok());
    assert!(load(json!([bert, trimming(false)])).is_ok());
}

// SentencePiece 0.2.3.

/// A BPE model with byte fallback, of pieces that no text becomes but by bytes.
fn sentencepiece() -> Tokenizer {
    use formats::sentencepiece::{ModelType, SentencePieceModel, TrainerSpec, byte_piece};
    use tokenizer_core::TokenKind;
    let mut model = SentencePieceModel::default();
    let mut trainer = TrainerSpec::default();
    trainer.set_model_type(ModelType::Bpe);
    trainer.byte_fallback = Some(true);
    model.trainer_spec = Some(trainer);
    let mut push = |text: &str, kind| model.pieces.push(text, 0.0, kind);
    push("<unk>", TokenKind::Unknown);
    push("<s>", TokenKind::Control);
    push("</s>", TokenKind::Control);
    for byte in 0..=255u8 {
        push(&byte_piece(byte), TokenKind::Byte);
    }
    push("\u{2581}", TokenKind::Normal);
    Tokenizer::from_sentencepiece(&model).expect("a whole model")
}

#[test]
fn last_byte_of_a_character_stands_for_it() {
    let encoding = sentencepiece().encode("\u{1680}", &EncodeOptions::new()).unwrap();
    let offsets: Vec<_> = encoding.offsets.iter().map(|span| (span.start, span.end)).collect();
    assert_eq!(offsets, [(0, 0), (0, 0), (0, 0), (0, 3)]);
}

#[test]
fn control_piece_ends_a_run_of_bytes() {
    let ids = [3 + 0xC4, 2, 3 + 0x99].map(TokenId);
    let text = sentencepiece().decode(&ids, DecodeOptions::skip_special()).unwrap();
    assert_eq!(text, "\u{FFFD}\u{FFFD}");
}
