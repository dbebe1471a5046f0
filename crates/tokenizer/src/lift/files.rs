//! Trained models in the other formats.

use bpe::{Alphabet, Bpe, BpeOptions, Rules};
use formats::sentencepiece::{ModelType, NormalizerSpec, SentencePieceModel, TrainerSpec};
use formats::vocab_txt::VocabTxt;
use formats::{IdMap, Strings};
use normalize::Charsmap;
use tokenizer_core::{Model, TokenId, TokenKind, Vocab};
use unigram::Compat;
use wordpiece::Unit;

use super::json::spelled;
use super::preparation::Rule;
use super::{Learned, LiftError, Preparation, Target};
use crate::lower::BertCase;

/// The SentencePiece model of a trained Unigram model or of BPE over characters.
///
/// A merge's score is minus its number, as SentencePiece writes them.
///
/// # Errors
///
/// If the algorithm is another one, there is no unknown token, or the model reads text in a way
/// that SentencePiece does not.
pub fn sentencepiece(
    model: Learned<'_>,
    preparation: &Preparation,
) -> Result<SentencePieceModel, LiftError> {
    if preparation.target != Target::SentencePiece {
        return Err(LiftError::new("the text was prepared for another format"));
    }
    let (vocab, model_type, scores, byte_fallback) = match model {
        Learned::Unigram(model) => {
            if model.options().compat == Compat::HuggingFace {
                return Err(LiftError::new(
                    "a .model is read with SentencePiece's arithmetic, the model has Hugging Face's",
                ));
            }
            let scores = model.scores().iter().map(|&score| score as f32).collect();
            (model.vocab(), ModelType::Unigram, scores, model.options().byte_fallback)
        }
        Learned::Bpe(model) => {
            check_for_scores(model)?;
            (model.vocab(), ModelType::Bpe, merge_scores(model), model.options().byte_fallback)
        }
        other => {
            return Err(LiftError::new(format!(
                "a .model holds Unigram or BPE over characters, not {}",
                other.name()
            )));
        }
    };
    let unk = vocab
        .first_of_kind(TokenKind::Unknown)
        .ok_or_else(|| LiftError::new("a SentencePiece model needs an unknown token"))?;
    let mut document = SentencePieceModel::default();
    for ((_, bytes, kind), &score) in vocab.iter().zip(&scores) {
        document.pieces.push(&spelled(bytes, kind)?, score, kind);
    }
    document.trainer_spec = Some(trainer_spec(vocab, unk, model_type, byte_fallback)?);
    let charsmap = preparation.charsmap().map_or_else(Vec::new, Charsmap::to_bytes);
    document.normalizer_spec = Some(NormalizerSpec {
        name: Some(preparation.name.clone()),
        precompiled_charsmap: Some(charsmap),
        add_dummy_prefix: Some(preparation.marks_spaces),
        remove_extra_whitespaces: Some(preparation.tidies_spaces),
        escape_whitespaces: Some(preparation.marks_spaces),
        ..NormalizerSpec::default()
    });
    Ok(document)
}

fn trainer_spec(
    vocab: &Vocab,
    unk: TokenId,
    model_type: ModelType,
    byte_fallback: bool,
) -> Result<TrainerSpec, LiftError> {
    let mut trainer = TrainerSpec::default();
    trainer.set_model_type(model_type);
    trainer.vocab_size = i32::try_from(vocab.len()).ok();
    trainer.byte_fallback = Some(byte_fallback);
    trainer.unk_id = Some(unk.0 as i32);
    trainer.unk_piece = Some(spelled(vocab.bytes(unk).unwrap_or_default(), TokenKind::Unknown)?);
    let id_of = |name: &str| {
        let id = vocab.get(name.as_bytes())?;
        (vocab.kind(id) == Some(TokenKind::Control)).then_some(id.0 as i32)
    };
    trainer.bos_id = Some(id_of("<s>").unwrap_or(-1));
    trainer.eos_id = Some(id_of("</s>").unwrap_or(-1));
    trainer.pad_id = Some(id_of("<pad>").unwrap_or(-1));
    for (_, bytes, kind) in vocab.iter() {
        if kind == TokenKind::Control && ![&b"<s>"[..], b"</s>", b"<pad>"].contains(&bytes) {
            trainer.control_symbols.push(spelled(bytes, kind)?);
        }
    }
    Ok(trainer)
}

fn check_for_scores(model: &Bpe) -> Result<(), LiftError> {
    let options = model.options();
    let fail = |what: &str| Err(LiftError::new(format!("SentencePiece's BPE {what}")));
    if options.alphabet == Alphabet::Byte {
        return fail("works on characters, not on bytes (--unit char)");
    }
    if options.end_of_word.is_some() || options.continuing_prefix.is_some() {
        return fail("has no mark of the end or the inside of words");
    }
    if !options.fuse_unk {
        return fail("takes unknown characters in a row as one");
    }
    Ok(())
}

/// Minus the number of the merge that makes it for each token, then the others in order.
fn merge_scores(model: &Bpe) -> Vec<f32> {
    if let Rules::Scores(scores) = model.rules() {
        return scores.clone();
    }
    let vocab = model.vocab();
    let mut scores: Vec<Option<f32>> = vec![None; vocab.len()];
    let mut next = 0u32;
    if let Rules::Merges(merges) = model.rules() {
        for &(left, right) in merges {
            let bytes = |id| vocab.bytes(id).unwrap_or_default();
            let product = vocab.get(&[bytes(left), bytes(right)].concat());
            if let Some(score) = product.and_then(|id| scores.get_mut(id.index()))
                && score.is_none()
            {
                *score = Some(-(next as f32));
                next += 1;
            }
        }
    }
    vocab
        .iter()
        .map(|(id, _, kind)| match (scores[id.index()], kind) {
            (Some(score), _) => score,
            (None, TokenKind::Normal | TokenKind::Unused) => {
                next += 1;
                -((next - 1) as f32)
            }
            (None, _) => 0.0,
        })
        .collect()
}

/// tiktoken's ranks of a trained byte-level BPE model.
///
/// The file holds neither the pattern nor special tokens: whoever loads it must say them.
///
/// # Errors
///
/// If the model is no byte-level BPE model, has special or reserved tokens, or if the ranks alone
/// would merge otherwise than its merges do.
pub fn tiktoken(model: Learned<'_>, preparation: &Preparation) -> Result<IdMap<[u8]>, LiftError> {
    if preparation.target != Target::Tiktoken {
        return Err(LiftError::new("the text was prepared for another format"));
    }
    let bytes;
    let model = match model {
        Learned::Bpe(model) => model,
        Learned::Bytes(model) => {
            bytes = Bpe::from_merges(model.vocab().clone(), Vec::new(), BpeOptions::default())
                .map_err(|error| LiftError::new(error.to_string()))?;
            &bytes
        }
        other => {
            return Err(LiftError::new(format!(
                "a .tiktoken file holds byte-level BPE, not {}",
                other.name()
            )));
        }
    };
    let options = model.options();
    if options.alphabet != Alphabet::Byte {
        return Err(LiftError::new("a .tiktoken file holds BPE over bytes, not over characters"));
    }
    if options.end_of_word.is_some() || options.continuing_prefix.is_some() {
        return Err(LiftError::new("tiktoken has no mark of the end or the inside of words"));
    }
    if let Some((_, token, _)) = model.vocab().iter().find(|t| t.2 != TokenKind::Normal) {
        return Err(LiftError::new(format!(
            "a .tiktoken file holds no special tokens, as {:?} is one: they are named when the \
             file is loaded",
            String::from_utf8_lossy(token)
        )));
    }
    let by_rank = Bpe::from_ranks(model.vocab().clone(), BpeOptions::default())
        .map_err(|error| LiftError::new(error.to_string()))?;
    if by_rank.recover_merges() != model.recover_merges() {
        return Err(LiftError::new(
            "tiktoken merges by the ranks of tokens alone, which would not give these merges",
        ));
    }
    IdMap::from_pairs(model.vocab().iter().map(|(id, bytes, _)| (bytes, id.0)))
        .map_err(|error| LiftError::new(error.to_string()))
}

/// The `vocab.txt` of a trained WordPiece model over characters.
///
/// # Errors
///
/// If the algorithm is another one, or the model differs from what every reader of a `vocab.txt`
/// takes for granted: `##`, `[UNK]`, words of 100 characters at most, no special tokens but BERT's
/// five, and letters that tell whether the text was made lower case.
pub fn vocab_txt(model: Learned<'_>, preparation: &Preparation) -> Result<VocabTxt, LiftError> {
    const SPECIAL: [&[u8]; 5] = [b"[PAD]", b"[UNK]", b"[CLS]", b"[SEP]", b"[MASK]"];
    let refuse = |what: String| Err(LiftError::new(format!("a vocab.txt {what}")));
    let model = match model {
        Learned::WordPiece(model) => model,
        other => return refuse(format!("holds WordPiece, not {}", other.name())),
    };
    let expected = wordpiece::Options::default();
    let options = model.options();
    if options.unit != Unit::Char {
        return refuse("holds WordPiece over characters, not over bytes".to_owned());
    }
    if (&options.continuing_prefix, &options.unk, options.max_chars, options.unknown)
        != (&expected.continuing_prefix, &expected.unk, expected.max_chars, expected.unknown)
    {
        return refuse(
            "is read with the prefix ##, the unknown token [UNK] and words of 100 characters at \
             most"
                .to_owned(),
        );
    }
    let mut tokens = Strings::new();
    for (_, bytes, kind) in model.vocab().iter() {
        let is_special = SPECIAL.contains(&bytes);
        if is_special != matches!(kind, TokenKind::Control | TokenKind::Unknown) {
            return refuse(format!(
                "knows no special tokens but [PAD], [UNK], [CLS], [SEP] and [MASK]: {:?} differs",
                String::from_utf8_lossy(bytes)
            ));
        }
        tokens.push(&spelled(bytes, kind)?);
    }
    let document = VocabTxt::new(tokens);
    let is_uncased = preparation.rules[..] == [Rule::Bert { lowercase: true }];
    match (BertCase::of(&document), is_uncased) {
        (BertCase::Uncased, false) => refuse(
            "without an upper-case letter is taken for lower-cased text; the normalizer bert makes \
             it that"
                .to_owned(),
        ),
        (BertCase::Cased, true) => {
            refuse("with an upper-case letter is taken for text with its case".to_owned())
        }
        _ => Ok(document),
    }
}
