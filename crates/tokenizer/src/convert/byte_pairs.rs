//! Byte-level BPE: tokenizer.json, tiktoken's ranks, tekken.json, vocab.json with merges.txt.

use std::collections::{HashMap, HashSet};

use bpe::{Bpe, BpeOptions};
use formats::gpt2::Gpt2;
use formats::tekken::{SpecialToken, Tekken};
use formats::tokenizer_json as doc;
use formats::{IdMap, byte_level, tiktoken};
use tokenizer_core::{TokenId, TokenKind, Vocab};

use super::{
    ConvertError, ConvertOptions, Converted, Setting, Target, refuse_flags, refuse_setting,
    refuse_settings,
};
use crate::lift::splitters;
use crate::load::Document;
use crate::lower::{RanksSetup, fill_to, gpt2_as_tokenizer_json};

/// The model of tokens in order of rank, and with it the merges that the ranks amount to.
fn rank_model<'t>(tokens: impl Iterator<Item = (u32, &'t [u8])>) -> Result<Bpe, ConvertError> {
    let fail = |error: &dyn std::fmt::Display| ConvertError::new("ranks", error.to_string());
    let mut vocab = Vocab::builder();
    for (id, token) in tokens {
        fill_to(&mut vocab, id, "ranks")?;
        vocab.push(token, TokenKind::Normal).map_err(|error| fail(&error))?;
    }
    Bpe::from_ranks(vocab.build(), BpeOptions::default()).map_err(|error| fail(&error))
}

/// The tokenizer.json of ranks with a pattern and special tokens.
///
/// Special tokens stand in the vocabulary, for tokenizers takes over no other ids. A piece that is
/// a token is that token (`ignore_merges`), as with tiktoken.
pub(super) fn from_ranks<'t>(
    tokens: impl Iterator<Item = (u32, &'t [u8])>,
    pattern: &str,
    special: &[(String, u32)],
    part: &str,
) -> Result<doc::TokenizerJson, ConvertError> {
    let model = rank_model(tokens)?;
    let vocab = tokenizer_core::Model::vocab(&model);
    let ordinary = vocab.iter().filter(|(_, _, kind)| *kind == TokenKind::Normal);
    let mut pairs: Vec<(String, u32)> =
        ordinary.map(|(id, token, _)| (byte_level::encode(token), id.0)).collect();
    pairs.extend(special.iter().cloned());
    pairs.sort_by_key(|pair| pair.1);
    let ids = IdMap::<str>::from_pairs(pairs).map_err(|error| {
        ConvertError::new(part, format!("a tokenizer.json holds every token once: {error}"))
    })?;
    let merges = model.recover_merges().into_iter().filter_map(|(left, right)| {
        let bytes = |id: TokenId| vocab.bytes(id).unwrap_or_default();
        let product = vocab.get(&[bytes(left), bytes(right)].concat())?;
        Some(doc::Merge { left: left.0, right: right.0, product: product.0 })
    });
    let bpe = doc::Bpe {
        merges: merges.collect(),
        vocab: ids,
        ignore_merges: true,
        ..doc::Bpe::default()
    };
    let mut json = doc::TokenizerJson::new(doc::Model::Bpe(bpe));
    let byte_level =
        doc::ByteLevel { add_prefix_space: false, trim_offsets: true, use_regex: false };
    let mut steps = splitters::of_rust_pattern(pattern)
        .map_err(|error| ConvertError::new("pattern", error.to_string()))?;
    steps.push(doc::PreTokenizer::ByteLevel(byte_level));
    json.pre_tokenizer = Some(doc::PreTokenizer::Sequence(steps));
    json.decoder = Some(doc::Decoder::ByteLevel(byte_level));
    json.added_tokens = special.iter().map(|(content, id)| special_token(content, *id)).collect();
    Ok(json)
}

fn special_token(content: &str, id: u32) -> doc::AddedToken {
    doc::AddedToken {
        id,
        content: content.to_owned(),
        single_word: false,
        lstrip: false,
        rstrip: false,
        normalized: false,
        special: true,
    }
}

/// What ranks and a pattern say.
struct Ranks {
    tokens: Vec<(u32, Vec<u8>)>,
    special: Vec<(String, u32)>,
    pattern: String,
}

fn bpe_of(json: &doc::TokenizerJson, target: Target) -> Result<&doc::Bpe, ConvertError> {
    match &json.model {
        doc::Model::Bpe(model) => Ok(model),
        other => Err(ConvertError::new(
            "model",
            format!("a {target} holds byte-level BPE, not {}", other.type_name()),
        )),
    }
}

/// The one pattern that cuts text before the bytes of its pieces are merged.
fn pattern_of(json: &doc::TokenizerJson, target: Target) -> Result<String, ConvertError> {
    let refuse = |what: String| Err(ConvertError::new("pre_tokenizer", what));
    if json.normalizer.is_some() {
        return Err(ConvertError::new("normalizer", format!("a {target} has none")));
    }
    let mut steps = Vec::new();
    if let Some(pre_tokenizer) = &json.pre_tokenizer {
        flatten(pre_tokenizer, &mut steps);
    }
    let Some((doc::PreTokenizer::ByteLevel(byte_level), before)) = steps.split_last() else {
        return refuse(format!("a {target} works on bytes, but the last step is not ByteLevel"));
    };
    if byte_level.add_prefix_space {
        return refuse(format!("a {target} puts no space in front of the text"));
    }
    let mut patterns: Vec<&str> = Vec::new();
    for step in before {
        match step {
            doc::PreTokenizer::Split {
                pattern: doc::Pattern::Regex(pattern),
                behavior: doc::SplitBehavior::Isolated,
                invert: false,
            }
            | doc::PreTokenizer::Split {
                pattern: doc::Pattern::Regex(pattern),
                behavior: doc::SplitBehavior::Removed,
                invert: true,
            } => patterns.push(pattern),
            other => {
                return refuse(format!("a {target} cuts with one pattern, not with {other:?}"));
            }
        }
    }
    if byte_level.use_regex {
        patterns.extend(pretok::Pattern::Gpt2.stages());
    }
    match patterns[..] {
        [] => Ok("(?s:.+)".to_owned()),
        [pattern] => Ok(splitters::as_rust_pattern(pattern)),
        _ => refuse(format!(
            "a {target} cuts with one pattern, the file with {} one after the other",
            patterns.len()
        )),
    }
}

fn flatten<'d>(pre_tokenizer: &'d doc::PreTokenizer, steps: &mut Vec<&'d doc::PreTokenizer>) {
    match pre_tokenizer {
        doc::PreTokenizer::Sequence(inner) => inner.iter().for_each(|step| flatten(step, steps)),
        other => steps.push(other),
    }
}

/// What the post-processor does beside trimming offsets.
fn adds_tokens(post: &doc::PostProcessor) -> bool {
    match post {
        doc::PostProcessor::ByteLevel(_) => false,
        doc::PostProcessor::Template(template) => !template.special_tokens.is_empty(),
        doc::PostProcessor::Sequence(steps) => steps.iter().any(adds_tokens),
        doc::PostProcessor::Bert { .. } | doc::PostProcessor::Roberta { .. } => true,
    }
}

pub(super) fn trims_offsets(post: &doc::PostProcessor) -> bool {
    match post {
        doc::PostProcessor::ByteLevel(byte_level) => byte_level.trim_offsets,
        doc::PostProcessor::Roberta { trim_offsets, .. } => *trim_offsets,
        doc::PostProcessor::Sequence(steps) => steps.iter().any(trims_offsets),
        doc::PostProcessor::Bert { .. } | doc::PostProcessor::Template(_) => false,
    }
}

/// Takes a tokenizer.json for ranks, or says what ranks cannot express.
fn ranks_of(
    json: &doc::TokenizerJson,
    target: Target,
    converted: &mut Converted,
    options: &ConvertOptions,
) -> Result<Ranks, ConvertError> {
    let model = bpe_of(json, target)?;
    refuse_settings(json, target, converted, options)?;
    let pattern = pattern_of(json, target)?;
    refuse_affixes(model, target)?;
    if model.byte_fallback {
        return Err(ConvertError::new("model.byte_fallback", format!("a {target} has none")));
    }
    refuse_flags(json, target, false)?;
    let added = json.resolved_added_tokens();
    for (_, token) in &added {
        if !token.special {
            return Err(ConvertError::new(
                "added_tokens",
                format!(
                    "{:?} is recognised in every text, but a {target} has special tokens alone",
                    token.content
                ),
            ));
        }
    }
    if let Some(post) = &json.post_processor {
        refuse_setting(adds_tokens(post), Setting::Template, target, converted, options)?;
        if trims_offsets(post) {
            converted.lost.push("offsets without the white space of tokens".to_owned());
        }
    }
    let special: Vec<(String, u32)> =
        added.iter().map(|(id, token)| (token.content.clone(), *id)).collect();
    let is_special: HashSet<u32> = special.iter().map(|(_, id)| *id).collect();
    let mut tokens = Vec::with_capacity(model.vocab.len());
    for (id, token) in model.vocab.iter().filter(|(id, _)| !is_special.contains(id)) {
        let bytes = byte_level::decode(token).map_err(|error| {
            ConvertError::new("model.vocab", format!("token {id} {token:?}: {error}"))
        })?;
        tokens.push((id, bytes));
    }
    check_merges(model, &tokens, &is_special)?;
    Ok(Ranks { tokens, special, pattern })
}

fn refuse_affixes(model: &doc::Bpe, target: Target) -> Result<(), ConvertError> {
    for (affix, name) in [
        (&model.continuing_subword_prefix, "continuing_subword_prefix"),
        (&model.end_of_word_suffix, "end_of_word_suffix"),
    ] {
        if affix.as_deref().is_some_and(|affix| !affix.is_empty()) {
            return Err(ConvertError::new(format!("model.{name}"), format!("a {target} has none")));
        }
    }
    Ok(())
}

/// Whether merging by the ids of products is merging by this list.
///
/// It is if the list is in the order of its products, and holds for every token the pair that the
/// lower ranks leave of it: two neighbours that make a token are then always that pair, for nothing
/// but lower ranks has merged within them. Further pairs of the list never meet. A token of which
/// lower ranks leave more than two parts comes out as a whole piece alone, as `ignore_merges` says.
fn check_merges(
    model: &doc::Bpe,
    tokens: &[(u32, Vec<u8>)],
    is_special: &HashSet<u32>,
) -> Result<(), ConvertError> {
    let refuse = |what: String| Err(ConvertError::new("model.merges", what));
    let name = |id: u32| model.vocab.token(id).unwrap_or_default();
    let by_rank = rank_model(tokens.iter().map(|(id, bytes)| (*id, bytes.as_slice())))?;
    let mut last: HashMap<(u32, u32), usize> = HashMap::new();
    for (rank, merge) in model.merges.iter().enumerate() {
        if is_special.contains(&merge.product) {
            return refuse(format!(
                "merge {rank} makes the special token {:?}",
                name(merge.product)
            ));
        }
        last.insert((merge.left, merge.right), rank);
    }
    let mut product = 0;
    for (rank, merge) in model.merges.iter().enumerate() {
        if last[&(merge.left, merge.right)] != rank {
            continue;
        }
        if merge.product < product {
            return refuse(format!(
                "merge {rank} makes {:?} behind {:?}, whose id is greater: ranks merge in the order of ids",
                name(merge.product),
                name(product)
            ));
        }
        product = merge.product;
    }
    let recovered = by_rank.recover_merges();
    for (left, right) in &recovered {
        if !last.contains_key(&(left.0, right.0)) {
            return refuse(format!(
                "ranks would merge {:?} and {:?}, which the file does not",
                name(left.0),
                name(right.0)
            ));
        }
    }
    if !model.ignore_merges {
        let mut made: HashSet<u32> = HashSet::new();
        let vocab = tokenizer_core::Model::vocab(&by_rank);
        for (left, right) in &recovered {
            let bytes = |id: &TokenId| vocab.bytes(*id).unwrap_or_default();
            made.extend(vocab.get(&[bytes(left), bytes(right)].concat()).map(|id| id.0));
        }
        let whole = tokens.iter().find(|(id, bytes)| bytes.len() > 1 && !made.contains(id));
        if let Some((id, _)) = whole {
            return refuse(format!(
                "no merges make {:?}, but with ranks a piece that is a token is that token",
                name(*id)
            ));
        }
    }
    Ok(())
}

pub(super) fn to_tiktoken(
    json: &doc::TokenizerJson,
    options: &ConvertOptions,
) -> Result<Converted, ConvertError> {
    let mut converted = Converted::new(Document::Tiktoken(IdMap::new()));
    let ranks = ranks_of(json, Target::Tiktoken, &mut converted, options)?;
    let map = IdMap::<[u8]>::from_pairs(ranks.tokens.iter().map(|(id, bytes)| (bytes, *id)))
        .map_err(|error| ConvertError::new("model.vocab", error.to_string()))?;
    if let Some(byte) = tiktoken::missing_byte(&map) {
        return Err(ConvertError::new(
            "model.vocab",
            format!("the single byte 0x{byte:02X} has no token, but every rank file has all"),
        ));
    }
    converted.lost.push(format!(
        "the pattern and the {} special tokens, which whoever loads ranks must name",
        ranks.special.len()
    ));
    converted.load.ranks =
        Some(RanksSetup { pattern: ranks.pattern, special_tokens: ranks.special });
    converted.document = Document::Tiktoken(map);
    Ok(converted)
}

pub(super) fn to_tekken(
    json: &doc::TokenizerJson,
    options: &ConvertOptions,
) -> Result<Converted, ConvertError> {
    let mut converted = Converted::new(Document::Tiktoken(IdMap::new()));
    let mut ranks = ranks_of(json, Target::Tekken, &mut converted, options)?;
    // Single bytes come first, in order; they merge nothing, so their order is free.
    ranks.tokens.sort_by_key(|(id, bytes)| match bytes[..] {
        [byte] => (0, u32::from(byte)),
        _ => (1, *id),
    });
    let singles = ranks.tokens.iter().take_while(|(_, bytes)| bytes.len() == 1).count();
    if singles != 256 {
        return Err(ConvertError::new(
            "model.vocab",
            format!("{singles} of the 256 single bytes have a token, but a tekken.json has all"),
        ));
    }
    let fail = |error: formats::IdMapError| ConvertError::new("model.vocab", error.to_string());
    let special = ranks.special.into_iter().map(|(token_str, _)| token_str);
    let special: Vec<SpecialToken> =
        special.map(|token_str| SpecialToken { token_str, is_control: true }).collect();
    let tokens = ranks.tokens.into_iter().map(|(_, bytes)| bytes);
    let mut tekken = Tekken::new(&ranks.pattern, tokens, special.len() as u32).map_err(fail)?;
    tekken.list_special_tokens(special);
    converted.lost.push("the ids: those of special tokens come first".to_owned());
    converted.ids_move = true;
    converted.document = Document::Tekken(Box::new(tekken));
    Ok(converted)
}

pub(super) fn to_gpt2(
    json: &doc::TokenizerJson,
    options: &ConvertOptions,
) -> Result<Converted, ConvertError> {
    let target = Target::Gpt2;
    let model = bpe_of(json, target)?;
    let files = Gpt2 { vocab: model.vocab.clone(), merges: model.merges.clone() };
    let mut converted = Converted::new(Document::Gpt2(Box::new(files.clone())));
    refuse_settings(json, target, &mut converted, options)?;
    let pattern = pattern_of(json, target)?;
    let is_gpt2 = pretok::Pattern::from_stages(&[&pattern]).is_some_and(|pattern| {
        use pretok::Pattern::{Gpt2, P50k, R50k};
        matches!(pattern, Gpt2 | R50k | P50k)
    });
    if !is_gpt2 {
        return Err(ConvertError::new(
            "pre_tokenizer",
            format!("a {target} is cut as GPT-2 cuts, not with {pattern:?}"),
        ));
    }
    refuse_affixes(model, target)?;
    if model.byte_fallback {
        return Err(ConvertError::new("model.byte_fallback", format!("a {target} has none")));
    }
    if model.ignore_merges {
        refuse_ignore_merges(json, model, target)?;
    }
    refuse_flags(json, target, false)?;
    let read_back = gpt2_as_tokenizer_json(&files);
    let (ours, theirs) = (json.resolved_added_tokens(), read_back.resolved_added_tokens());
    let names = |tokens: &[(u32, &doc::AddedToken)]| {
        tokens
            .iter()
            .map(|(id, token)| (*id, token.content.clone(), token.special))
            .collect::<Vec<_>>()
    };
    if names(&ours) != names(&theirs) {
        let unsaid = ours.iter().find(|(id, token)| {
            !theirs.iter().any(|(other, known)| {
                (other, &known.content, known.special) == (id, &token.content, token.special)
            })
        });
        let what = match unsaid {
            Some((_, token)) => {
                format!("{:?} is one, but only <|endoftext|> is known to be", token.content)
            }
            None => "<|endoftext|> would be taken for one".to_owned(),
        };
        return Err(ConvertError::new("added_tokens", what));
    }
    if let Some(post) = &json.post_processor {
        refuse_setting(adds_tokens(post), Setting::Template, target, &mut converted, options)?;
    }
    if !json.post_processor.as_ref().is_some_and(trims_offsets) {
        converted.lost.push("offsets with the white space of tokens".to_owned());
    }
    Ok(converted)
}

/// `ignore_merges` changes nothing where merging makes every token of its own text.
fn refuse_ignore_merges(
    json: &doc::TokenizerJson,
    model: &doc::Bpe,
    target: Target,
) -> Result<(), ConvertError> {
    let merged = model.merges.iter().map(|merge| merge.product);
    let added = json.resolved_added_tokens().into_iter().map(|(id, _)| id);
    let made: HashSet<u32> = merged.chain(added).collect();
    let whole = model.vocab.iter().find(|(id, token)| {
        !made.contains(id) && token.chars().count() > 1 && byte_level::decode(token).is_ok()
    });
    match whole {
        None => Ok(()),
        Some((_, token)) => Err(ConvertError::new(
            "model.ignore_merges",
            format!("no merges make {token:?}, so that with a {target} it would never come out"),
        )),
    }
}
