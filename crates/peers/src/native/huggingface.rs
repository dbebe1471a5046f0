//! The crate `tokenizers`.

use tokenizers::{
    EncodeInput, Encoding, NormalizedString, Normalizer, PostProcessorWrapper, Tokenizer,
};

use crate::contestant::{Contestant, DecodeRequest, Encoded, Outcome, Request};

/// What runs here, for reports.
pub const VERSION: &str = "tokenizers 0.23.2";

/// Hugging Face's tokenizer. It knows special tokens of the text either always or never: so there
/// are two.
///
/// Where a file truncates, 0.23 stops encoding as soon as there are enough tokens: then windows
/// that should overflow are missing, and with truncation on the left words are numbered from the
/// wrong place. What it cuts a whole encoding to is right, and is what is asked for here: the texts
/// are encoded without truncation and then given to its own `post_process`.
pub struct HuggingFace {
    special: Tokenizer,
    ordinary: Tokenizer,
    /// The same without truncation, post-processor and padding, if the file truncates.
    plain: Option<Box<(Tokenizer, Tokenizer)>>,
    /// The ids of special tokens that the model's own vocabulary holds.
    special_in_model: Vec<u32>,
}

impl HuggingFace {
    /// Loads a tokenizer.json. Refuses those with a normalized added token of which normalization
    /// leaves nothing: that matches everywhere, and 0.23 collects matches until the memory ends.
    #[must_use]
    pub fn load(file: &[u8]) -> Outcome<Self> {
        Outcome::of(|| {
            let special = Tokenizer::from_bytes(file)?;
            if let Some(normalizer) = special.get_normalizer() {
                let added = special.get_added_tokens_decoder();
                for token in added.values().filter(|token| token.normalized) {
                    let mut text = NormalizedString::from(token.content.as_str());
                    normalizer.normalize(&mut text)?;
                    if text.get().is_empty() {
                        return Err("an added token normalizes to nothing".into());
                    }
                }
            }
            let mut ordinary = special.clone();
            ordinary.set_encode_special_tokens(true);
            let plain = |tokenizer: &Tokenizer| {
                let mut plain = tokenizer.clone();
                plain.with_truncation(None)?;
                plain.with_padding(None);
                plain.with_post_processor(None::<PostProcessorWrapper>);
                Ok::<_, tokenizers::Error>(plain)
            };
            let plain = match special.get_truncation() {
                Some(_) => Some(Box::new((plain(&special)?, plain(&ordinary)?))),
                None => None,
            };
            let model = special.get_vocab(false);
            let special_in_model = special
                .get_added_tokens_decoder()
                .values()
                .filter(|token| token.special)
                .filter_map(|token| model.get(&token.content).copied())
                .collect();
            Ok::<_, tokenizers::Error>(Self { special, ordinary, plain, special_in_model })
        })
    }
}

impl Contestant for HuggingFace {
    fn name(&self) -> &str {
        VERSION
    }

    fn encode(&mut self, request: &Request<'_>) -> Outcome<Encoded> {
        Outcome::of(|| {
            let bytes = self.whole(request, Offsets::Bytes)?;
            let chars = match request.second {
                None => Some(self.whole(request, Offsets::Chars)?),
                Some(_) => None,
            };
            let mut answer = encoded(&bytes, chars.as_ref());
            drop_wrong_bytes(&mut answer, request);
            Ok::<_, tokenizers::Error>(answer)
        })
    }

    /// Ours never makes a control token of text unless it is told to. Theirs leaves the added
    /// tokens alone and lets the model make it, where its vocabulary has it.
    fn excuse(&mut self, request: &Request<'_>) -> Option<String> {
        let makes_special = |text: &str| {
            let plain = self.plain.as_ref().map_or(&self.ordinary, |plain| &plain.1);
            let encoding = plain.encode(text, false);
            encoding.is_ok_and(|encoding| {
                encoding.get_ids().iter().any(|id| self.special_in_model.contains(id))
            })
        };
        let any = makes_special(request.first) || request.second.is_some_and(makes_special);
        any.then(|| "its model makes a special token of ordinary text".to_owned())
    }

    fn decode(&mut self, request: &DecodeRequest<'_>) -> Outcome<String> {
        Outcome::of(|| self.special.decode(request.ids, request.skip_special))
    }
}

/// Where offsets are trimmed, the number of white-space characters is taken off byte offsets as if
/// it were bytes. Byte offsets that contradict the character offsets, or lie inside of a character,
/// are not given.
fn drop_wrong_bytes(encoded: &mut Encoded, request: &Request<'_>) {
    let Some(bytes) = &encoded.bytes else { return };
    let texts = || std::iter::once(request.first).chain(request.second);
    let right = match &encoded.chars {
        Some(chars) => {
            let mut starts: Vec<usize> = request.first.char_indices().map(|(at, _)| at).collect();
            starts.push(request.first.len());
            let byte = |char: usize| starts.get(char).copied();
            bytes.iter().zip(chars).all(|(bytes, chars)| {
                byte(chars.0) == Some(bytes.0) && byte(chars.1) == Some(bytes.1)
            })
        }
        None => texts().all(str::is_ascii),
    };
    if !right {
        encoded.bytes = None;
    }
    encoded.overflowing.iter_mut().for_each(|window| drop_wrong_bytes(window, request));
}

#[derive(Clone, Copy)]
enum Offsets {
    Bytes,
    Chars,
}

impl HuggingFace {
    fn whole(&self, request: &Request<'_>, offsets: Offsets) -> tokenizers::Result<Encoding> {
        let full = if request.special { &self.special } else { &self.ordinary };
        let encode = |tokenizer: &Tokenizer, input: EncodeInput<'_>, template| match offsets {
            Offsets::Bytes => tokenizer.encode(input, template),
            Offsets::Chars => tokenizer.encode_char_offsets(input, template),
        };
        let single = |text: &str| EncodeInput::Single(text.to_owned().into());
        match &self.plain {
            None => {
                let input = match request.second {
                    None => single(request.first),
                    Some(second) => {
                        EncodeInput::Dual(request.first.to_owned().into(), second.to_owned().into())
                    }
                };
                encode(full, input, request.template)
            }
            Some(plain) => {
                let plain = if request.special { &plain.0 } else { &plain.1 };
                let first = encode(plain, single(request.first), false)?;
                let mut second =
                    request.second.map(|text| encode(plain, single(text), false)).transpose()?;
                if let Some(second) = &mut second {
                    second.set_type_ids(vec![1; second.len()]);
                }
                full.post_process(first, second, request.template)
            }
        }
    }
}

/// Windows that overflow are given without two things that 0.23 does not mean: their own windows,
/// and type ids, which templates set on the kept part alone.
fn encoded(encoding: &Encoding, chars: Option<&Encoding>) -> Encoded {
    let windows = encoding.get_overflowing();
    let window = |i: usize| Encoded {
        types: None,
        overflowing: Vec::new(),
        ..encoded(&windows[i], chars.and_then(|c| c.get_overflowing().get(i)))
    };
    Encoded {
        ids: encoding.get_ids().to_vec(),
        bytes: Some(encoding.get_offsets().to_vec()),
        chars: chars.map(|chars| chars.get_offsets().to_vec()),
        words: Some(encoding.get_word_ids().to_vec()),
        types: Some(encoding.get_type_ids().to_vec()),
        special: Some(encoding.get_special_tokens_mask().to_vec()),
        attention: Some(encoding.get_attention_mask().to_vec()),
        overflowing: (0..windows.len()).map(window).collect(),
    }
}
