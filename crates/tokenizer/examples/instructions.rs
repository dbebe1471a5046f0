//! One piece of work on a fixed text, for counting its instructions.
//!
//! ```sh
//! valgrind --tool=callgrind --toggle-collect='*measured*' --callgrind-out-file=/dev/null \
//!     target/release/examples/instructions cl100k_base english later
//! ```
//!
//! `cargo xtask instructions` runs all of them and holds the counts against recorded ones. Models are
//! `cl100k_base` and `o200k_base`, and three that are made here from the words of the text:
//! `wordpiece` (BERT, uncased), `sentencepiece` (BPE by scores) and `unigram`. Texts are `english`,
//! `code` and `languages`; all are fixtures. Passes are
//!
//! - load: the model is made;
//! - first: a new session gives the ids of the text;
//! - later: the same session does so again;
//! - count, offsets: as later, for the number of tokens and for ids with offsets.
//!
//! Prints how many tokens there were, so that a count is of work that was done.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

use bpe::{Alphabet, Bpe, BpeOptions};
use normalize::{BertNormalizer, SentencePieceNormalizer};
use tokenizer::{Parts, PieceStep, Policy, TiktokenEncoding, Tokenizer};
use tokenizer_core::{Model, TokenId, TokenKind, Vocab};
use unigram::{Unigram, UnigramOptions};
use wordpiece::WordPiece;

/// So many bytes of each text are encoded.
const BYTES: usize = 100_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, text, pass] = &arguments[..] else {
        return Err("usage: instructions MODEL TEXT PASS".into());
    };
    let text = read_text(text)?;
    let mut made = Ok(None);
    let mut make = || made = make_tokenizer(model, &text).map(Some);
    if pass == "load" {
        measured(&mut make);
    } else {
        make();
    }
    let tokenizer = made?.ok_or("a tokenizer was made")?;

    // Memory that is touched already: what the system does is not counted, but should not differ.
    let mut ids = vec![TokenId(0); text.len()];
    let mut offsets = vec![Default::default(); text.len()];
    ids.clear();
    offsets.clear();
    let mut session = tokenizer.session();
    let mut count = 0;
    if matches!(&pass[..], "later" | "count" | "offsets") {
        session.ids_into(&text, &mut ids);
        ids.clear();
    }
    let mut work: Box<dyn FnMut()> = match &pass[..] {
        "load" => Box::new(|| session.ids_into(&text, &mut ids)),
        "first" | "later" => Box::new(|| session.ids_into(&text, &mut ids)),
        "count" => Box::new(|| count = session.count(&text)),
        "offsets" => Box::new(|| {
            let run =
                session.ids_with_offsets_into(&text, &Policy::Ordinary, &mut ids, &mut offsets);
            assert!(run.is_ok(), "a short text without special tokens");
        }),
        _ => return Err(format!("no pass {pass:?}").into()),
    };
    if pass == "load" {
        work();
    } else {
        measured(&mut work);
    }
    drop(work);
    println!("{}", count.max(ids.len()));
    Ok(())
}

/// What is counted.
#[inline(never)]
fn measured(work: &mut dyn FnMut()) {
    work();
}

fn read_text(name: &str) -> Result<String, Box<dyn Error>> {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/corpora");
    let mut files = match name {
        "english" => vec![corpora.join("prose/alice.txt")],
        "code" => vec![corpora.join("code/python/requests.py")],
        "languages" => fs::read_dir(corpora.join("parallel/udhr"))?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?,
        _ => return Err(format!("no text {name:?}").into()),
    };
    files.sort();
    // As much of each file, to have all languages.
    let share = BYTES / files.len();
    let mut all = String::new();
    for file in files {
        let text = fs::read_to_string(file)?;
        let share = (0..=share.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
        all += &text[..share.unwrap_or(0)];
    }
    Ok(all)
}

fn make_tokenizer(name: &str, text: &str) -> Result<Tokenizer, Box<dyn Error>> {
    if let Some(encoding) = TiktokenEncoding::from_name(name) {
        return Ok(Tokenizer::from_encoding(encoding));
    }
    let parts = match name {
        "wordpiece" => {
            let text = text.to_lowercase();
            let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
            let parts = counted(words.clone(), |word, add| {
                for (at, _) in word.char_indices() {
                    let prefix = if at == 0 { "" } else { "##" };
                    let end = word[at..].chars().next().map_or(0, char::len_utf8) + at;
                    add(&format!("{prefix}{}", &word[at..]));
                    add(&format!("{prefix}{}", &word[at..end]));
                }
            });
            let mut tokens = vec!["[UNK]".to_owned()];
            let marks = text.chars().filter(|c| c.is_ascii_punctuation());
            tokens.extend(counted(marks, |c, add| add(&c.to_string())).into_keys());
            tokens.extend(frequent(parts, 4).into_iter().map(|(token, _)| token));
            let vocab = Vocab::from_tokens(tokens)?;
            let model = WordPiece::new(vocab, wordpiece::Options::default())?;
            let mut parts = Parts::new(Box::new(model));
            parts.normalizer = Some(Box::new(BertNormalizer::new(true, true, None, true)));
            parts.steps = vec![PieceStep::Split(Box::new(pretok::Bert))];
            parts
        }
        "sentencepiece" | "unigram" => {
            let words = text.split_ascii_whitespace();
            let beginnings = counted(words, |word, add| {
                let word = format!("\u{2581}{word}");
                for (at, c) in word.char_indices() {
                    add(&word[..at + c.len_utf8()]);
                    add(&word[at..at + c.len_utf8()]);
                }
            });
            let tokens = frequent(beginnings, 4);
            let mut vocab = Vocab::builder();
            vocab.push(b"<unk>", TokenKind::Unknown)?;
            for (token, _) in &tokens {
                vocab.push(token.as_bytes(), TokenKind::Normal)?;
            }
            let vocab = vocab.build();
            let model: Box<dyn Model> = if name == "unigram" {
                let scores = tokens.iter().map(|&(_, count)| (count as f64 / 1e6).ln());
                let scores = std::iter::once(0.0).chain(scores).collect();
                Box::new(Unigram::new(vocab, scores, UnigramOptions::default())?)
            } else {
                let mut options = BpeOptions::default();
                options.alphabet = Alphabet::Char;
                options.unk = Some(TokenId(0));
                options.fuse_unk = true;
                let scores = (0..vocab.len()).map(|id| -(id as f32)).collect();
                Box::new(Bpe::from_scores(vocab, scores, options)?)
            };
            let mut parts = Parts::new(model);
            parts.normalizer = Some(Box::new(SentencePieceNormalizer::new(None)));
            parts
        }
        _ => return Err(format!("no model {name:?}").into()),
    };
    let tokenizer = parts.build()?;
    assert!(tokenizer.has_lane(), "{name} is measured in its lane");
    Ok(tokenizer)
}

/// How often what `parts` adds of all items was added.
fn counted<T>(
    items: impl Iterator<Item = T>,
    parts: impl Fn(T, &mut dyn FnMut(&str)),
) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for item in items {
        parts(item, &mut |part| *counts.entry(part.to_owned()).or_default() += 1);
    }
    counts
}

/// Those that were counted so often or are one character, the most frequent ones first.
fn frequent(counts: BTreeMap<String, u64>, least: u64) -> Vec<(String, u64)> {
    let is_short = |token: &str| token.trim_start_matches("##").chars().nth(1).is_none();
    let mut tokens: Vec<_> =
        counts.into_iter().filter(|(token, count)| *count >= least || is_short(token)).collect();
    tokens.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    tokens
}
