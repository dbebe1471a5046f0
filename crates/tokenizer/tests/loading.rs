//! Files as their own libraries run them, and files that nobody should run.

#![allow(clippy::unwrap_used)] // A test's unwrap is its assertion.

use formats::sentencepiece::{ModelType, SentencePieceModel, TrainerSpec};
use formats::vocab_txt::VocabTxt;
use tokenizer::{BertCase, Tokenizer};
use tokenizer_core::TokenKind;

fn ids(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    tokenizer.ids(text).iter().map(|id| id.0).collect()
}

fn whole_pieces(model_type: ModelType, pieces: &[&str]) -> Tokenizer {
    let mut model = SentencePieceModel::default();
    model.pieces.push("<unk>", 0.0, TokenKind::Unknown);
    for piece in pieces {
        model.pieces.push(piece, 0.0, TokenKind::Normal);
    }
    let mut trainer = TrainerSpec::default();
    trainer.set_model_type(model_type);
    model.trainer_spec = Some(trainer);
    Tokenizer::from_sentencepiece(&model).unwrap()
}

/// Expected by sentencepiece 0.2.3.
#[test]
fn unknown_characters_in_a_row_are_one_token_of_a_character_model() {
    let tokenizer = whole_pieces(ModelType::Char, &["\u{2581}", "a"]);
    assert_eq!(
        ids(&tokenizer, "\u{2603}\u{2603} xyz \u{2603} a\u{2603}\u{2603} q"),
        [1, 0, 1, 0, 1, 0, 1, 2, 0, 1, 0]
    );
    let encoding = tokenizer.encode("\u{2603}\u{2603} xyz", &Default::default()).unwrap();
    assert_eq!((encoding.offsets[1].start, encoding.offsets[1].end), (0, 6));
}

/// Expected by sentencepiece 0.2.3.
#[test]
fn unknown_words_in_a_row_are_one_token_of_a_word_model() {
    let tokenizer = whole_pieces(ModelType::Word, &["\u{2581}low", "\u{2581}a"]);
    assert_eq!(ids(&tokenizer, "xyz low"), [0, 1]);
    assert_eq!(ids(&tokenizer, "\u{2603}\u{2603} xyz q"), [0]);
    assert_eq!(ids(&tokenizer, "a x y low z"), [2, 0, 1, 0]);
}

/// BERT's own uncased vocabulary holds `ℝ`, which is upper case and has no lower case.
#[test]
fn letters_without_lower_case_do_not_make_a_vocabulary_cased() {
    let case = |file: &str| BertCase::of(&VocabTxt::parse(file.as_bytes()).unwrap());
    assert_eq!(case("[UNK]\nhug\n\u{211D}\n##\u{211D}\n"), BertCase::Uncased);
    assert_eq!(case("[UNK]\nhug\n\u{C9}\n"), BertCase::Cased);
}
