//! SentencePiece models, as the library 0.2.3 runs them.

use bpe::{Alphabet, Bpe, BpeOptions};
use formats::sentencepiece::{ModelType, SentencePieceModel, parse_byte_piece};
use tokenizer_core::{Model, TokenId, TokenKind, Vocab};
use unigram::{Unigram, UnigramOptions};

use super::LowerError;
use super::spm_pieces::WholePieces;
use crate::decoder::{DecodeStep, LeadingSpace};
use crate::pipeline::{ByteOffsets, Parts, Tokenizer};
use crate::post::{PostProcessor, Template};

impl Tokenizer {
    /// The tokenizer of a SentencePiece model.
    ///
    /// Control symbols of the model become special tokens: the text `<s>` is text unless a policy
    /// allows it. The template adds the beginning and the end of a sentence where the model has
    /// such symbols, as the library's options `bos` and `eos` do; which of them a language model
    /// wants, the file does not say.
    ///
    /// # Errors
    ///
    /// If the normalization cannot be understood, a piece repeats, or there is no unknown piece.
    pub fn from_sentencepiece(document: &SentencePieceModel) -> Result<Self, LowerError> {
        let trainer = document.trainer();
        let model_type =
            document.model_type().map_err(|error| LowerError::caused("trainer_spec", error))?;
        let mut vocab = Vocab::builder();
        let bytes = document.pieces.iter().map(|piece| piece.piece.len()).sum();
        vocab.reserve(document.pieces.len(), bytes);
        let mut scores = Vec::with_capacity(document.pieces.len());
        for piece in document.pieces.iter() {
            let fail = |error| LowerError::caused("pieces", error);
            if piece.kind == TokenKind::Byte {
                let byte = parse_byte_piece(piece.piece).ok_or_else(|| {
                    LowerError::new("pieces", format!("{:?} is no byte piece", piece.piece))
                })?;
                vocab.push(&[byte], TokenKind::Byte).map_err(fail)?;
            } else {
                vocab.push(piece.piece.as_bytes(), piece.kind).map_err(fail)?;
            }
            scores.push(piece.score);
        }
        let vocab = vocab.build();
        let unk = vocab
            .first_of_kind(TokenKind::Unknown)
            .ok_or_else(|| LowerError::new("pieces", "there is no unknown piece"))?;
        let user_defined: Vec<&str> = document
            .pieces
            .iter()
            .filter(|piece| piece.kind == TokenKind::UserDefined)
            .map(|piece| piece.piece)
            .collect();
        let control = |name: &str| {
            let id = vocab.get(name.as_bytes())?;
            (vocab.kind(id) == Some(TokenKind::Control)).then_some(id)
        };
        let bos: Vec<TokenId> = control(trainer.bos_piece()).into_iter().collect();
        let eos: Vec<TokenId> = control(trainer.eos_piece()).into_iter().collect();
        let normalizer = super::spm_normalizer::lower(document, &user_defined)?;
        let spec = document.normalizer();
        let leading = match (spec.add_dummy_prefix(), spec.remove_extra_whitespaces()) {
            (_, true) => LeadingSpace::DropAll,
            (true, false) => LeadingSpace::DropOne,
            (false, false) => LeadingSpace::Keep,
        };
        let special = document
            .pieces
            .iter()
            .enumerate()
            .filter(|(_, piece)| piece.kind == TokenKind::Control)
            .map(|(id, piece)| crate::added::AddedToken::special(piece.piece, TokenId(id as u32)))
            .collect();
        let model: Box<dyn Model> = match model_type {
            ModelType::Bpe => {
                let mut options = BpeOptions::default();
                options.alphabet = Alphabet::Char;
                options.byte_fallback = trainer.byte_fallback();
                options.unk = Some(unk);
                options.fuse_unk = true;
                let model = Bpe::from_scores(vocab, scores, options);
                Box::new(model.map_err(|error| LowerError::caused("pieces", error))?)
            }
            ModelType::Unigram => {
                let mut options = UnigramOptions::default();
                options.byte_fallback = trainer.byte_fallback();
                let scores = scores.into_iter().map(f64::from).collect();
                let model = Unigram::new(vocab, scores, options);
                Box::new(model.map_err(|error| LowerError::caused("pieces", error))?)
            }
            ModelType::Char | ModelType::Word => Box::new(WholePieces {
                vocab,
                unk,
                byte_fallback: trainer.byte_fallback(),
                cut: match model_type {
                    ModelType::Char => super::spm_normalizer::characters(&user_defined),
                    _ => super::spm_normalizer::words(trainer.treat_whitespace_as_suffix()),
                },
            }),
        };
        let mut parts = Parts::new(model);
        parts.normalizer = Some(normalizer);
        parts.added_tokens = special;
        parts.post_processor = PostProcessor::Template(Template::around(&bos, &eos));
        parts.byte_offsets = ByteOffsets::LastOfCharacter;
        parts.decoder =
            vec![DecodeStep::SentencePieceBytes, DecodeStep::SentencePieceSpaces(leading)];
        parts.unknown_surface = Some(trainer.unk_surface().to_owned());
        parts.control_is_silent = true;
        parts.build().map_err(|error| LowerError::caused("pieces", error))
    }
}
