//! The model files that contestants load.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::child;

/// A model, as the forms that contestants read.
#[derive(Clone, Debug)]
pub struct Model {
    /// Its name in reports.
    pub name: String,
    /// What `load` is given.
    pub value: Value,
    /// Who is asked.
    pub contestants: Vec<&'static str>,
    /// The files it stands in.
    pub files: Vec<PathBuf>,
}

/// Writes the published encodings into `folder`, and finds the other models in `data`.
///
/// # Errors
///
/// If a file cannot be written or read.
pub fn all(folder: &Path, data: &[PathBuf]) -> Result<Vec<Model>, String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut models = Vec::new();
    for name in ["cl100k_base", "o200k_base"] {
        models.push(encoding(name, folder)?);
    }
    for data in data {
        for path in super::super::fuzz::files(data)? {
            models.extend(of_file(&path)?);
        }
    }
    Ok(models)
}

fn encoding(name: &str, folder: &Path) -> Result<Model, String> {
    let tokens = child::encoding(name)?.ranks().unpack();
    let ranks = formats::IdMap::from_pairs(tokens.iter().map(|(rank, token)| (token, rank)))
        .map_err(|error| error.to_string())?;
    let pattern = child::pattern(name)?;
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
            {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false},
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
    Ok(Model {
        name: name.to_owned(),
        value: json!({"encoding": name, "pattern": pattern, "tiktoken": tiktoken, "json": json}),
        contestants: vec![
            "crate tiktoken-rs",
            "crate tokenizers",
            "crate bpe-openai",
            "crate toktok-rs",
            "crate fastokens",
            "crate splintr",
            "crate kitoken",
            "tiktoken",
            "tokenizers",
            "gigatoken",
            "fastokens",
            "splintr-rs",
            "tokie",
            "quicktok-v1",
        ],
        files: vec![tiktoken, json],
    })
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
fn of_file(path: &Path) -> Result<Option<Model>, String> {
    let file_name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let (form, contestants) = match extension {
        "model" => ("spm", vec!["sentencepiece", "gigatoken"]),
        "json" => {
            let file = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
            if formats::detect(&file) != Some(formats::Format::TokenizerJson) {
                return Ok(None);
            }
            let document: Value = serde_json::from_slice(&file).map_err(|e| e.to_string())?;
            let mut contestants = vec![
                "crate tokenizers",
                "crate fastokens",
                "crate splintr",
                "crate kitoken",
                "tokenizers",
                "gigatoken",
                "splintr-rs",
                "tokie",
            ];
            if document["model"]["type"] == "WordPiece" {
                contestants.push("nanotoken");
            }
            ("json", contestants)
        }
        _ => return Ok(None),
    };
    Ok(Some(Model {
        name: file_name.to_owned(),
        value: json!({ form: path }),
        contestants,
        files: vec![path.to_owned()],
    }))
}
