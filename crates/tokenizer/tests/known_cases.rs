//! Cases of the reference libraries that need more than one part of the pipeline: what the model
//! crates cannot test alone. Expected values are those of tokenizers 0.23.3, tiktoken 0.14 and
//! SentencePiece 0.2.3, as each case says.

#![allow(clippy::unwrap_used)] // A test's unwrap is its assertion.

use formats::sentencepiece::{ModelType, SentencePieceModel, TrainerSpec};
use formats::tokenizer_json::TokenizerJson;
use serde_json::{Value, json};
use tokenizer::{DecodeOptions, Policy, TiktokenEncoding, Tokenizer};
use tokenizer_core::{TokenId, TokenKind};

fn load(document: &Value) -> Tokenizer {
    let document = TokenizerJson::parse(document.to_string().as_bytes()).unwrap();
    Tokenizer::from_tokenizer_json(&document).unwrap()
}

/// The tokens of a text, special ones too, with `|` between.
#[track_caller]
fn check(tokenizer: &Tokenizer, text: &str, expected: &str) {
    let mut ids = Vec::new();
    tokenizer.session().ids_with_policy_into(text, &Policy::AllowAll, &mut ids).unwrap();
    let names: Vec<String> = ids
        .iter()
        .map(|&id| String::from_utf8_lossy(&tokenizer.token_bytes(id).unwrap()).into_owned())
        .collect();
    assert_eq!(names.join("|"), expected, "{text:?}");
}

fn special(id: u32, content: &str) -> Value {
    json!({
        "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
        "normalized": false, "special": true,
    })
}

/// tokenizers 0.23.3.
#[test]
fn metaspace_by_every_scheme_split_or_not() {
    let pieces =
        ["?", "a", "b", "▁", "▁a", "▁b", "▁a▁", "▁a▁▁b", "▁a▁b", "a▁", "a▁▁b", "a▁b", "<s>"];
    let vocab: serde_json::Map<String, Value> =
        pieces.iter().enumerate().map(|(id, piece)| ((*piece).to_owned(), json!(id))).collect();
    let texts = [" a", "▁a", "a ", " ", "a  b", "a b", "", "a<s>b", "<s>a"];
    let all = ["▁a", "▁a", "▁a|▁", "▁", "▁a|▁|▁b", "▁a|▁b", "", "▁a|<s>|▁b", "<s>|▁a"];
    let first = ["▁a", "▁a", "▁a|▁", "▁", "▁a|▁|▁b", "▁a|▁b", "", "▁a|<s>|b", "<s>|a"];
    let never = ["▁a", "▁a", "a|▁", "▁", "a|▁|▁b", "a|▁b", "", "a|<s>|b", "<s>|a"];
    let whole_all = ["▁a", "▁a", "▁a▁", "▁", "▁a▁▁b", "▁a▁b", "", "▁a|<s>|▁b", "<s>|▁a"];
    let whole_first = ["▁a", "▁a", "▁a▁", "▁", "▁a▁▁b", "▁a▁b", "", "▁a|<s>|b", "<s>|a"];
    let whole_never = ["▁a", "▁a", "a▁", "▁", "a▁▁b", "a▁b", "", "a|<s>|b", "<s>|a"];
    for (scheme, split, expected) in [
        ("always", true, all),
        ("first", true, first),
        ("never", true, never),
        ("always", false, whole_all),
        ("first", false, whole_first),
        ("never", false, whole_never),
    ] {
        let tokenizer = load(&json!({
            "added_tokens": [special(12, "<s>")],
            "pre_tokenizer": {
                "type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split,
            },
            "model": {"type": "WordLevel", "unk_token": "?", "vocab": vocab},
        }));
        for (text, expected) in texts.iter().zip(expected) {
            check(&tokenizer, text, expected);
        }
    }
}

/// tokenizers 0.23.3: a trained special token that merging makes too is cut out before.
#[test]
fn special_token_that_merging_makes_comes_first() {
    let tokenizer = load(&json!({
        "added_tokens": [special(1, "ab")],
        "model": {
            "type": "BPE", "vocab": {"a": 0, "ab": 1, "b": 2, "c": 3, "abc": 4},
            "merges": ["a b", "ab c"],
        },
    }));
    check(&tokenizer, "abc", "ab|c");
    // Where special tokens are text, merging goes on.
    assert_eq!(tokenizer.ids("abc"), [TokenId(4)]);
}

/// tiktoken 0.14: what a pattern looks ahead to ends at a special token.
#[test]
fn white_space_before_a_special_token_ends_its_text() {
    let tokenizer = Tokenizer::from_encoding(TiktokenEncoding::Cl100kBase);
    check(&tokenizer, "a  b", "a| | b");
    check(&tokenizer, "a  <|endoftext|>b", "a|  |<|endoftext|>|b");
    check(&tokenizer, "a \n  <|endoftext|>b", "a| \n|  |<|endoftext|>|b");
    check(&tokenizer, "a \n  b", "a| \n| | b");
}

/// Tables of short pieces are padded with zeros, and spans of a block are short numbers.
#[test]
fn zero_bytes_and_very_long_pieces_keep_their_length() {
    for encoding in [TiktokenEncoding::R50kBase, TiktokenEncoding::Cl100kBase] {
        let tokenizer = Tokenizer::from_encoding(encoding);
        let mut session = tokenizer.session();
        let mut tokens_of = |text: &str| {
            let mut ids = Vec::new();
            session.ids_into(text, &mut ids);
            assert_eq!(tokenizer.decode(&ids, DecodeOptions::default()).unwrap(), text);
            ids
        };
        // One session, so that what a table keeps of one is there for the next.
        let texts = ["a", "a\0", "a\0\0", "\0a", "\0", "\0\0", "a"];
        let all: Vec<_> = texts.iter().map(|text| tokens_of(text)).collect();
        assert_eq!(all[0], all[6]);
        for i in 0..6 {
            assert!((i + 1..6).all(|j| all[i] != all[j]), "{:?}", texts[i]);
        }
        for unit in ["a", "\u{FFFD}", "\0", "é", "😀"] {
            tokens_of(&unit.repeat(70_000));
        }
    }
}

fn sentencepiece(pieces: &[(&str, f32, TokenKind)]) -> Tokenizer {
    let mut model = SentencePieceModel::default();
    let mut trainer = TrainerSpec::default();
    trainer.set_model_type(ModelType::Unigram);
    model.trainer_spec = Some(trainer);
    for &(piece, score, kind) in pieces {
        model.pieces.push(piece, score, kind);
    }
    Tokenizer::from_sentencepiece(&model).unwrap()
}

/// SentencePiece 0.2.3.
#[test]
fn sentencepiece_at_the_edges_of_a_text() {
    let tokenizer = sentencepiece(&[
        ("<unk>", 0.0, TokenKind::Unknown),
        ("<s>", 0.0, TokenKind::Control),
        ("▁foo", 0.0, TokenKind::UserDefined),
        ("▁", -2.0, TokenKind::Normal),
        ("a", -1.0, TokenKind::Normal),
        ("f", -1.0, TokenKind::Normal),
        ("o", -1.0, TokenKind::Normal),
    ]);
    for nothing in ["", " ", "   "] {
        check(&tokenizer, nothing, "");
    }
    check(&tokenizer, "a", "▁|a");
    check(&tokenizer, "▁a", "▁|▁|a");
    // The dummy prefix is there before user-defined symbols are looked for.
    check(&tokenizer, "foo", "▁foo");
    check(&tokenizer, "a foo", "▁|a|▁foo");
    check(&tokenizer, "afoo", "▁|a|f|o|o");
    // The text of a control piece is text.
    assert_eq!(tokenizer.ids("<s>"), [TokenId(3), TokenId(0)]);
}
