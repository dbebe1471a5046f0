//! How a command normalizes and cuts text for a trainer.

use std::path::Path;

use tokenizer::lift::{Frame, Preparation, Spaces, Target};
use tokenizer::{CorpusCounter, Document, Tokenizer};
use tokenizer_core::Model;

use crate::failure::Failure;
use crate::model::read;

/// What the command line names, or what a file says.
pub(crate) enum TextRules {
    /// A normalizer and a splitter by their names.
    Named(Box<Preparation>),
    /// Those of a tokenizer.json.
    File(Box<Frame>),
}

impl TextRules {
    /// Those that have names.
    pub(crate) fn named(preparation: Preparation) -> Self {
        Self::Named(Box::new(preparation))
    }

    /// Those of a tokenizer.json.
    pub(crate) fn of_file(path: &Path) -> Result<Self, Failure> {
        match read(path)?.1 {
            Document::TokenizerJson(document) => {
                let frame = Frame::of(*document).map_err(|error| Failure::file(path, error))?;
                Ok(Self::File(Box::new(frame)))
            }
            other => Err(Failure::file(
                path,
                format!("is {}: only a tokenizer.json says how text is cut", other.format()),
            )),
        }
    }

    /// Counts the pieces of text.
    pub(crate) fn counter(&self) -> CorpusCounter<'_> {
        match self {
            Self::Named(named) => CorpusCounter::new(named.normalizer(), named.splitter()),
            Self::File(frame) => frame.counter(),
        }
    }

    /// The format of a model that is trained with them.
    pub(crate) fn target(&self) -> Target {
        match self {
            Self::Named(named) => named.target(),
            Self::File(_) => Target::TokenizerJson,
        }
    }

    /// Those that make one space of many, as SentencePiece does.
    pub(crate) fn tidy(&self) -> Option<&Preparation> {
        match self {
            Self::Named(named) if named.spaces() == Some(Spaces::Tidy) => Some(named),
            Self::Named(_) | Self::File(_) => None,
        }
    }

    /// What a summary says of the splitter.
    pub(crate) fn splitter_name(&self) -> &str {
        match self {
            Self::Named(named) => named.splitter().spec(),
            Self::File(_) => "that of the file",
        }
    }

    /// A trained model with these rules.
    pub(crate) fn tokenizer(&self, model: Box<dyn Model>) -> Result<Tokenizer, Failure> {
        match self {
            Self::Named(named) => named.tokenizer(model),
            Self::File(frame) => frame.tokenizer_with(model),
        }
        .map_err(Failure::usage)
    }
}
