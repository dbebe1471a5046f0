//! This workspace's tokenizer as a contestant.

use tokenizer::{DecodeOptions, EncodeOptions, Encoding, Policy, Session, Tokenizer};
use tokenizer_core::TokenId;

use crate::contestant::{Contestant, DecodeRequest, Encoded, Outcome, Request};

/// Ours.
pub struct Ours<'t> {
    tokenizer: &'t Tokenizer,
    session: Session<'t>,
    /// Whether the file pads: then texts go through a batch, as padding is a batch's.
    pads: bool,
}

impl<'t> Ours<'t> {
    /// A session of `tokenizer`.
    #[must_use]
    pub fn new(tokenizer: &'t Tokenizer, pads: bool) -> Self {
        Self { tokenizer, session: tokenizer.session(), pads }
    }
}

impl Contestant for Ours<'_> {
    fn name(&self) -> &str {
        "ours"
    }

    fn encode(&mut self, request: &Request<'_>) -> Outcome<Encoded> {
        let policy = if request.special { Policy::AllowAll } else { Policy::Ordinary };
        let options = EncodeOptions::new().policy(policy).template(request.template);
        Outcome::of(|| {
            let encoding = match request.second {
                None if self.pads => {
                    let mut batch = self.tokenizer.encode_batch(&[request.first], &options)?;
                    Ok(batch.remove(0))
                }
                None => self.session.encode(request.first, &options),
                Some(second) => self.session.encode_pair(request.first, second, &options),
            };
            let text = request.second.is_none().then_some(request.first);
            encoding.map(|encoding| encoded(&encoding, text))
        })
    }

    fn decode(&mut self, request: &DecodeRequest<'_>) -> Outcome<String> {
        let ids: Vec<TokenId> = request.ids.iter().copied().map(TokenId).collect();
        let options = if request.skip_special {
            DecodeOptions::skip_special()
        } else {
            DecodeOptions::default()
        };
        Outcome::of(|| self.tokenizer.decode(&ids, options))
    }
}

fn encoded(encoding: &Encoding, text: Option<&str>) -> Encoded {
    let chars = |text| encoding.char_offsets(text).iter().map(|s| (s.start, s.end)).collect();
    let flags = |flags: &[bool]| Some(flags.iter().copied().map(u32::from).collect());
    Encoded {
        ids: encoding.ids.iter().map(|id| id.0).collect(),
        bytes: Some(encoding.offsets.iter().map(|span| (span.start, span.end)).collect()),
        chars: text.map(chars),
        words: Some(encoding.words.clone()),
        types: Some(encoding.type_ids.clone()),
        special: flags(&encoding.special),
        attention: flags(&encoding.attention),
        overflowing: encoding.overflowing.iter().map(|window| encoded(window, text)).collect(),
    }
}
