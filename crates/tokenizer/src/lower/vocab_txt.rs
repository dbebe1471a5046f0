//! BERT's vocab.txt, with the pipeline of BERT around it.

use formats::vocab_txt::VocabTxt;
use tokenizer_core::{TokenId, TokenKind, Vocab};
use wordpiece::WordPiece;

use super::LowerError;
use crate::added::AddedToken;
use crate::decoder::DecodeStep;
use crate::pipeline::{Parts, PieceStep, Tokenizer};
use crate::post::{PostProcessor, Template, TemplatePart};

/// Whether a BERT vocabulary is of lower-cased text; its file does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BertCase {
    /// Text keeps its case and its accents.
    Cased,
    /// Text is made lower case and loses its accents.
    Uncased,
}

impl BertCase {
    /// What the tokens say: a vocabulary of lower-cased text has no token that lower case would
    /// change but its special ones. (Letters like `ℝ` are upper case and stay so.)
    #[must_use]
    pub fn of(document: &VocabTxt) -> Self {
        let is_special = |token: &str| token.starts_with('[') && token.ends_with(']');
        let has_upper = |token: &str| token.chars().any(|c| !c.to_lowercase().eq([c]));
        match document.tokens().iter().any(|token| has_upper(token) && !is_special(token)) {
            true => Self::Cased,
            false => Self::Uncased,
        }
    }
}

const SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];

impl Tokenizer {
    /// The tokenizer of a vocab.txt with BERT's normalization, splitting and template.
    ///
    /// # Errors
    ///
    /// If the vocabulary has no `[UNK]`.
    pub fn from_vocab_txt(document: &VocabTxt, case: BertCase) -> Result<Self, LowerError> {
        let ids = document.ids();
        let mut vocab = Vocab::builder();
        for (id, token) in document.tokens().iter().enumerate() {
            // A token that is there twice has the last id.
            let kind = if ids.get(token) != Some(&(id as u32)) || token.is_empty() {
                TokenKind::Unused
            } else if token == "[UNK]" {
                TokenKind::Unknown
            } else if SPECIAL.contains(&token) {
                TokenKind::Control
            } else {
                TokenKind::Normal
            };
            vocab
                .push(token.as_bytes(), kind)
                .map_err(|error| LowerError::caused("vocabulary", error))?;
        }
        let model = WordPiece::new(vocab.build(), wordpiece::Options::default())
            .map_err(|error| LowerError::caused("vocabulary", error))?;
        let mut parts = Parts::new(Box::new(model));
        parts.normalizer = Some(super::normalizers::bert(case == BertCase::Uncased));
        parts.steps = vec![PieceStep::Split(Box::new(pretok::Bert))];
        parts.added_tokens = SPECIAL
            .iter()
            .filter_map(|&token| Some(AddedToken::special(token, TokenId(*ids.get(token)?))))
            .collect();
        if let (Some(&cls), Some(&sep)) = (ids.get("[CLS]"), ids.get("[SEP]")) {
            let added = |id, type_id| TemplatePart::Added { ids: vec![TokenId(id)], type_id };
            let first = TemplatePart::First { type_id: 0 };
            parts.post_processor = PostProcessor::Template(Template {
                single: vec![added(cls, 0), first.clone(), added(sep, 0)],
                pair: vec![
                    added(cls, 0),
                    first,
                    added(sep, 0),
                    TemplatePart::Second { type_id: 1 },
                    added(sep, 1),
                ],
            });
        }
        parts.decoder = vec![DecodeStep::WordPiece { prefix: "##".into(), cleanup: false }];
        parts.build().map_err(|error| LowerError::caused("vocabulary", error))
    }
}
