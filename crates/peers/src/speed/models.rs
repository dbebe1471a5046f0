//! The model files that contestants load.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::contest::{NEXT, OURS_PREPARED};
use super::{crates, trainers};

/// A model, in the forms that contestants read.
#[derive(Clone, Debug)]
pub struct Model {
    /// Its name in reports.
    pub name: String,
    /// What `load` is given.
    pub value: Value,
    /// Who is asked, references included.
    pub contestants: Vec<&'static str>,
    /// Who must give the same ids: the library that defines what the file means.
    pub references: Vec<&'static str>,
    /// Whether hard texts are timed too.
    pub worst: bool,
    /// The files it stands in, with their names in the manifest.
    pub files: Vec<(String, PathBuf)>,
}

/// What is trained here: the algorithm, the file, and how the name of the published file begins in
/// whose place it stands.
const TRAINED: [(&str, &str, &str); 4] = [
    ("wordpiece", "wordpiece-uncased.json", "bert-base-uncased"),
    ("sentencepiece-bpe", "sentencepiece-bpe.model", "mistral"),
    ("unigram", "unigram.model", ""),
    ("unigram-json", "unigram.json", ""),
];

/// The published files that are taken from a folder of vocabularies. Another folder gives all.
const PUBLISHED: [&str; 6] = [
    "hf/bert-base-uncased.json",
    "sentencepiece/mistral01.model",
    "hf/mistral01.json",
    "sentencepiece/t5-base_spiece.model",
    "hf/t5-small.json",
    "sentencepiece/xlnet_base_cased.model",
];

/// The published encodings, the models of the folders of `data`, and those trained on `text`
/// here, all written into `folder`; models in whose place a published one stands are not trained.
///
/// # Errors
///
/// If a file cannot be written or read, or a training is refused.
pub fn all(
    folder: &Path,
    data: &[PathBuf],
    text: &str,
    vocab: usize,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Vec<Model>, String> {
    let mut models = Vec::new();
    for name in ["cl100k_base", "o200k_base"].into_iter().filter(|name| wanted(name)) {
        models.push(encoding(name, folder)?);
    }
    let mut published = Vec::new();
    for data in data {
        for (name, path) in published_files(data)? {
            published.extend(of_file(&name, &path)?);
        }
    }
    published.retain(|model| wanted(&model.name));
    for (algorithm, name, instead) in TRAINED {
        let stands = |model: &Model| !instead.is_empty() && model.name.starts_with(instead);
        if !wanted(name) || published.iter().any(stands) {
            continue;
        }
        let path = folder.join(name);
        let file = trainers::train(algorithm, &mut text.as_bytes(), vocab)?.file()?;
        fs::write(&path, file).map_err(|error| format!("{}: {error}", path.display()))?;
        models.extend(of_file(name, &path)?);
    }
    models.extend(published);
    Ok(models)
}

/// The models of a folder: of one that holds published vocabularies the known ones, else all.
fn published_files(data: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    let vocabs = data.join("vocabs");
    if vocabs.is_dir() {
        let known = PUBLISHED.iter().map(|name| (format!("vocabs/{name}"), vocabs.join(name)));
        return Ok(known.filter(|(_, path)| path.is_file()).collect());
    }
    let named = |path: PathBuf| {
        let name = path.strip_prefix(data).unwrap_or(&path).display().to_string();
        (name, path)
    };
    Ok(crate::fuzz::files(data)?.into_iter().map(named).collect())
}

fn encoding(name: &str, folder: &Path) -> Result<Model, String> {
    let tokens = crates::encoding(name)?.ranks().unpack();
    let ranks = formats::IdMap::from_pairs(tokens.iter().map(|(rank, token)| (token, rank)))
        .map_err(|error| error.to_string())?;
    let pattern = crates::pattern(name)?;
    let tiktoken = folder.join(format!("{name}.tiktoken"));
    let json = folder.join(format!("{name}.json"));
    let write = |path: &Path, text: &str| {
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    write(&tiktoken, &formats::tiktoken::to_text(&ranks))?;
    let by_token: HashMap<&[u8], u32> = tokens.iter().map(|(rank, token)| (token, rank)).collect();
    let mut merges = Vec::new();
    for (rank, token) in tokens.iter().filter(|(_, token)| token.len() > 1) {
        let (left, right) = parts(token, rank, &by_token)
            .ok_or_else(|| format!("{name}: token {rank} is no merge of two"))?;
        let spell = formats::byte_level::encode;
        merges.push(json!([spell(left), spell(right)]));
    }
    let spelled = |(rank, token): (u32, &[u8])| (formats::byte_level::encode(token), json!(rank));
    let vocab: Map<String, Value> = tokens.iter().map(spelled).collect();
    let level = |use_regex: bool| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex});
    let document = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": null,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": in_json(name, &pattern)}, "behavior": "Isolated", "invert": false},
            level(false),
        ]},
        "post_processor": null,
        "decoder": level(true),
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            "ignore_merges": true, "vocab": vocab, "merges": merges,
        },
    });
    write(&json, &document.to_string())?;
    let file = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        (format!("{FOLDER}/{name}"), path.to_owned())
    };
    Ok(Model {
        name: name.to_owned(),
        value: json!({"encoding": name, "pattern": pattern, "tiktoken": tiktoken, "json": json}),
        contestants: [
            OURS_PREPARED,
            "tiktoken",
            "crate tiktoken-rs",
            "crate tokenizers",
            NEXT,
            "crate bpe-openai",
            "crate toktok-rs",
            "crate fastokens",
            "crate splintr",
            "crate kitoken",
            "tokenizers",
            "gigatoken",
            "fastokens",
            "splintr-rs",
            "tokie",
            "quicktok-v1",
        ]
        .into_iter()
        .filter(|contestant| name == "cl100k_base" || !is_twin(contestant))
        .collect(),
        references: vec!["tiktoken", "crate tiktoken-rs"],
        worst: name == "cl100k_base",
        files: vec![file(&tiktoken), file(&json)],
    })
}

/// Whether a Python package stands beside its crate, which is built in: it is asked with one model
/// only, to show what the way through Python costs.
fn is_twin(contestant: &str) -> bool {
    cfg!(feature = "natives") && matches!(contestant, "tokenizers" | "fastokens" | "splintr-rs")
}

/// The folder of the files that are made here, beside the report.
pub const FOLDER: &str = "peers-files";

/// A published pattern as files of tokenizer.json have it. That of `cl100k_base` has possessive
/// quantifiers, of which Oniguruma, which reads it there, takes one for two quantifiers; files
/// everywhere have the form that tiktoken had before, which matches the same.
fn in_json<'p>(name: &str, pattern: &'p str) -> &'p str {
    match name {
        "cl100k_base" => {
            "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}\
             | ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
        }
        _ => pattern,
    }
}

/// The two tokens that are left when a token is encoded with the ranks below its own.
fn parts<'t>(
    token: &'t [u8],
    rank: u32,
    ranks: &HashMap<&[u8], u32>,
) -> Option<(&'t [u8], &'t [u8])> {
    let mut ends: Vec<usize> = (0..=token.len()).collect();
    while ends.len() > 3 {
        let (_, at) = ends
            .windows(3)
            .enumerate()
            .filter_map(|(i, ends)| Some((*ranks.get(&token[ends[0]..ends[2]])?, i + 1)))
            .filter(|&(found, _)| found < rank)
            .min()?;
        ends.remove(at);
    }
    Some(token.split_at(ends[1]))
}

/// The model of a file, if contestants can do something with it.
fn of_file(name: &str, path: &Path) -> Result<Option<Model>, String> {
    let file_name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let file = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let is_made_here = path.parent().is_some_and(|folder| folder.ends_with(FOLDER));
    let (form, contestants, references, worst) = match formats::detect(&file) {
        Some(formats::Format::SentencePiece) if extension == "model" => {
            let contestants = vec!["sentencepiece", "gigatoken", "crate kitoken"];
            let worst = is_made_here || file_name.starts_with("mistral");
            ("spm", contestants, vec!["sentencepiece"], worst)
        }
        Some(formats::Format::TokenizerJson) => {
            let document: Value = serde_json::from_slice(&file).map_err(|e| e.to_string())?;
            let mut contestants = vec![
                "crate tokenizers",
                NEXT,
                "crate fastokens",
                "crate splintr",
                "crate kitoken",
                "tokenizers",
                "gigatoken",
                "splintr-rs",
                "tokie",
            ];
            contestants.retain(|contestant| !is_twin(contestant));
            let is_wordpiece = document["model"]["type"] == "WordPiece";
            if is_wordpiece {
                contestants.push("nanotoken");
            }
            ("json", contestants, vec!["crate tokenizers", "tokenizers"], is_wordpiece)
        }
        _ => return Ok(None),
    };
    let listed = if is_made_here { format!("{FOLDER}/{name}") } else { name.to_owned() };
    Ok(Some(Model {
        name: file_name.to_owned(),
        value: json!({ form: path }),
        contestants,
        references,
        worst,
        files: vec![(listed, path.to_owned())],
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_merges_of_two() {
        let ranks: HashMap<&[u8], u32> = [("a", 0), ("b", 1), ("c", 2), ("ab", 3), ("abc", 4)]
            .map(|(t, r)| (t.as_bytes(), r))
            .into();
        let of = |token: &'static str, rank| parts(token.as_bytes(), rank, &ranks);
        assert_eq!(of("ab", 3), Some((&b"a"[..], &b"b"[..])));
        assert_eq!(of("abc", 4), Some((&b"ab"[..], &b"c"[..])));
        assert_eq!(of("cba", 5), None);
    }
}
