//! The crate `tiktoken-rs`, which carries OpenAI's own code.

use ::tiktoken_rs::CoreBPE;
use tokenizer::TiktokenEncoding;

use crate::contestant::{Contestant, DecodeRequest, Encoded, Outcome, Request};

/// What runs here, for reports.
pub const VERSION: &str = "tiktoken-rs 0.12.1";

/// One encoding. It knows ids and text, no offsets.
pub struct Tiktoken {
    bpe: &'static CoreBPE,
    /// Special tokens that tiktoken 0.14 has and this crate lacks.
    lacks: &'static [&'static str],
}

impl Tiktoken {
    /// Builds an encoding from the ranks that the crate carries.
    #[must_use]
    pub fn new(encoding: TiktokenEncoding) -> Option<Self> {
        let bpe = match encoding {
            TiktokenEncoding::R50kBase => tiktoken_rs::r50k_base_singleton(),
            TiktokenEncoding::P50kBase => tiktoken_rs::p50k_base_singleton(),
            TiktokenEncoding::P50kEdit => tiktoken_rs::p50k_edit_singleton(),
            TiktokenEncoding::Cl100kBase => tiktoken_rs::cl100k_base_singleton(),
            TiktokenEncoding::O200kBase => tiktoken_rs::o200k_base_singleton(),
            TiktokenEncoding::O200kHarmony => tiktoken_rs::o200k_harmony_singleton(),
            _ => return None,
        };
        let lacks: &[&str] = match encoding {
            TiktokenEncoding::O200kHarmony => &["<|endofprompt|>"],
            _ => &[],
        };
        Some(Self { bpe, lacks })
    }
}

impl Contestant for Tiktoken {
    fn name(&self) -> &str {
        VERSION
    }

    fn encode(&mut self, request: &Request<'_>) -> Outcome<Encoded> {
        let lacking = self.lacks.iter().find(|token| request.first.contains(**token));
        if let Some(token) = lacking.filter(|_| request.special) {
            return Outcome::Refused(format!("it lacks {token}"));
        }
        Outcome::of(|| {
            let ids = if request.special {
                self.bpe.encode_with_special_tokens(request.first)
            } else {
                self.bpe.encode_ordinary(request.first)
            };
            Ok::<_, String>(Encoded { ids, ..Encoded::default() })
        })
    }

    fn decode(&mut self, request: &DecodeRequest<'_>) -> Outcome<String> {
        if !self.lacks.is_empty() && request.ids.contains(&200_018) {
            return Outcome::Refused("it names <|endofprompt|> otherwise".to_owned());
        }
        Outcome::of(|| {
            let bytes = self.bpe.decode_bytes(request.ids).map_err(|error| format!("{error:?}"))?;
            Ok::<_, String>(String::from_utf8_lossy(&bytes).into_owned())
        })
    }
}
