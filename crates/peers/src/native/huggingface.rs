//! The crate `tokenizers`.

use std::collections::HashSet;

use tokenizers::tokenizer::normalizer::Range;
use tokenizers::{
    EncodeInput, Encoding, Model, NormalizedString, Normalizer, NormalizerWrapper,
    OffsetReferential, OffsetType, PostProcessor, PostProcessorWrapper, Tokenizer,
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
    /// Refuses those with two of which it leaves the same: which one 0.23 takes is left to the order
    /// of a hash table with random keys. And those with one to which [`writes_from_nothing`]
    /// happens.
    #[must_use]
    pub fn load(file: &[u8]) -> Outcome<Self> {
        Outcome::of(|| {
            let special = Tokenizer::from_bytes(file)?;
            if let Some(normalizer) = special.get_normalizer() {
                let added = special.get_added_tokens_decoder();
                let mut seen = HashSet::new();
                for token in added.values().filter(|token| token.normalized) {
                    let mut text = NormalizedString::from(token.content.as_str());
                    normalizer.normalize(&mut text)?;
                    if text.get().is_empty() {
                        return Err("an added token normalizes to nothing".into());
                    }
                    if stands_for_nothing(&text) {
                        return Err("an added token's normalized text stands for none".into());
                    }
                    if !seen.insert(text.get().to_owned()) {
                        return Err("two added tokens normalize to one text".into());
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

    /// Refuses what takes the template's tokens from a maximal length that is less: 0.23 panics, or
    /// cuts nothing where it is built without overflow checks.
    fn encode(&mut self, request: &Request<'_>) -> Outcome<Encoded> {
        Outcome::of(|| {
            if request.template
                && let Some(truncation) = self.special.get_truncation()
                && let Some(processor) = self.special.get_post_processor()
                && processor.added_tokens(request.second.is_some()) > truncation.max_length
            {
                return Err("the template has more tokens than the maximal length".into());
            }
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

    fn excuse(&mut self, request: &Request<'_>) -> Option<String> {
        let tokenizer = match (&self.plain, request.special) {
            (Some(plain), true) => &plain.0,
            (Some(plain), false) => &plain.1,
            (None, true) => &self.special,
            (None, false) => &self.ordinary,
        };
        let any = |fault: &dyn Fn(&str) -> bool| {
            std::iter::once(request.first).chain(request.second).any(fault)
        };
        if any(&|text| self.model_makes_special(tokenizer, text)) {
            return Some("its model makes a special token of ordinary text".to_owned());
        }
        if any(&|text| writes_from_nothing(tokenizer, text)) {
            return Some("its normalizer writes text that stands for none".to_owned());
        }
        self.shares_ids().then(|| SHARED.to_owned())
    }

    fn excuse_decoding(&mut self, _request: &DecodeRequest<'_>) -> Option<String> {
        self.shares_ids().then(|| SHARED.to_owned())
    }

    fn decode(&mut self, request: &DecodeRequest<'_>) -> Outcome<String> {
        Outcome::of(|| self.special.decode(request.ids, request.skip_special))
    }
}

/// Added tokens are numbered on from the *number* of the model's tokens: where ids have gaps, two
/// tokens can have one id, and 0.23 keeps the normalized text of the one for the other. Ours, which
/// goes by ids where it trims offsets, takes one for the other.
const SHARED: &str = "an added token has the id of another token";

impl HuggingFace {
    fn shares_ids(&self) -> bool {
        self.special.get_added_tokens_decoder().iter().any(|(id, token)| {
            let in_model = self.special.get_model().id_to_token(*id);
            in_model.is_some_and(|text| text != token.content)
        })
    }

    /// Ours never makes a control token of text unless it is told to, and then by matching the
    /// text of the token. Theirs lets the model make it too, where its vocabulary has it.
    fn model_makes_special(&self, tokenizer: &Tokenizer, text: &str) -> bool {
        let is_special = |id: &u32| self.special_in_model.contains(id);
        let Ok(encoding) = tokenizer.encode(text, false) else { return false };
        let ids = encoding.get_ids().iter().zip(encoding.get_special_tokens_mask());
        let made = ids.filter(|&(id, added)| *added == 0 && is_special(id)).count();
        let matched = tokenizer
            .get_added_vocabulary()
            .extract_and_normalize(tokenizer.get_normalizer(), text);
        let matched = matched
            .get_splits(OffsetReferential::Original, OffsetType::Byte)
            .into_iter()
            .filter_map(|(_, _, tokens)| tokens.as_ref())
            .flatten()
            .filter(|token| is_special(&token.id))
            .count();
        made > matched
    }
}

/// Whether a pattern of `Replace` matches the empty text in front of a stretch. What it writes
/// there has no place in the original, and splitting it off doubles it or goes out of bounds.
fn writes_from_nothing(tokenizer: &Tokenizer, text: &str) -> bool {
    let Some(normalizer) = tokenizer.get_normalizer() else { return false };
    let stretches =
        tokenizer.get_added_vocabulary().extract_and_normalize(None::<&NormalizerWrapper>, text);
    let stretches = stretches.get_splits(OffsetReferential::Original, OffsetType::Byte);
    stretches.into_iter().filter(|(_, _, tokens)| tokens.is_none()).any(|(stretch, _, _)| {
        let mut text = NormalizedString::from(stretch);
        normalizer.normalize(&mut text).is_ok() && stands_for_nothing(&text)
    })
}

/// Whether the first character of a normalized text stands for no character of the original.
fn stands_for_nothing(text: &NormalizedString) -> bool {
    let first = text.get().chars().next().map_or(0, char::len_utf8);
    let original = text.convert_offsets(Range::Normalized(0..first));
    first > 0 && original.is_some_and(|original| original.is_empty())
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
