//! A contestant that is a crate, as a process that answers requests.

use std::io::{BufRead, Write};
use std::time::Instant;

use serde_json::{Value, json};
use tokenizer::{Document, LoadOptions, RanksSetup, Session, TiktokenEncoding, Tokenizer};
use tokenizer_core::{Silent, TokenId, Train};

/// Answers requests from standard input until it ends.
///
/// # Errors
///
/// If standard output is gone.
pub fn serve() -> std::io::Result<()> {
    let mut loaded: Option<Box<dyn Native>> = None;
    let mut text = String::new();
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let answer = serde_json::from_str(&line?)
            .map_err(|error| error.to_string())
            .and_then(|request: Value| answer(&request, &mut loaded, &mut text));
        let answer = match answer {
            Ok(mut answer) => {
                answer["ok"] = json!(true);
                answer
            }
            Err(error) => json!({"ok": false, "error": error}),
        };
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

/// A tokenizer of this process. Ids of ordinary text, without anything added.
trait Native {
    fn ids(&mut self, text: &str) -> Vec<u32>;

    fn count(&mut self, _text: &str) -> Option<usize> {
        None
    }

    /// The number of ids of all texts, made with two threads.
    fn batch(&mut self, _texts: &[&str]) -> Option<usize> {
        None
    }
}

fn answer(
    request: &Value,
    loaded: &mut Option<Box<dyn Native>>,
    text: &mut String,
) -> Result<Value, String> {
    const UNLOADED: &str = "nothing is loaded";
    let string = |name: &str| request[name].as_str().ok_or_else(|| format!("no {name}"));
    match string("op")? {
        "load" => {
            let start = Instant::now();
            let (version, mut native) = load(string("peer")?, &request["model"])?;
            native.ids("x");
            *loaded = Some(native);
            Ok(json!({"version": version, "seconds": start.elapsed().as_secs_f64()}))
        }
        "encode" => {
            let native = loaded.as_mut().ok_or(UNLOADED)?;
            let texts: Vec<String> =
                serde_json::from_value(request["texts"].clone()).map_err(|e| e.to_string())?;
            let ids: Vec<Vec<u32>> = texts.iter().map(|text| native.ids(text)).collect();
            Ok(json!({"ids": ids, "bytes": null}))
        }
        "texts" => {
            *text = std::fs::read_to_string(string("file")?).map_err(|e| e.to_string())?;
            Ok(json!({"bytes": text.len(), "documents": cut(text).len()}))
        }
        "time" => {
            let native = loaded.as_mut().ok_or(UNLOADED)?;
            let documents = cut(text);
            let what = string("what")?;
            let start = Instant::now();
            let done = match what {
                "whole" => Some(native.ids(text).len()),
                "documents" => Some(documents.iter().map(|text| native.ids(text).len()).sum()),
                "count" => native.count(text),
                "batch" => native.batch(&documents),
                other => return Err(format!("unknown time {other}")),
            };
            let seconds = start.elapsed().as_secs_f64();
            let tokens = done.ok_or_else(|| format!("has no {what}"))?;
            Ok(json!({"seconds": seconds, "tokens": tokens}))
        }
        "memory" => memory(),
        "train" => train(string("file")?, request["vocab"].as_u64().ok_or("no vocab")? as usize),
        other => Err(format!("unknown op {other}")),
    }
}

/// Documents of about 2 KB, at line ends where there are some.
#[must_use]
pub fn cut(text: &str) -> Vec<&str> {
    let mut documents = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut end = rest.len().min(2048);
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        if end < rest.len()
            && let Some(line) = rest[..end].rfind('\n').filter(|&line| line > 0)
        {
            end = line + 1;
        }
        let (document, after) = rest.split_at(end);
        documents.push(document);
        rest = after;
    }
    documents
}

fn memory() -> Result<Value, String> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(|e| e.to_string())?;
    let size = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes =
            line.and_then(|line| line.trim_matches([':', '\t', ' ', 'k', 'B']).parse().ok());
        kilobytes.map(|kilobytes: u64| kilobytes * 1024)
    };
    Ok(json!({"peak": size("VmHWM"), "now": size("VmRSS")}))
}

/// Byte-level BPE with GPT-2's splitter, as `python/adapters.py` asks others.
fn train(path: &str, vocab: usize) -> Result<Value, String> {
    let splitter = pretok::Pattern::Gpt2.splitter();
    let mut trainer = bpe::BpeTrainer::default();
    trainer.goal = bpe::Goal::VocabSize(vocab);
    trainer.byte_order = bpe::ByteOrder::Gpt2;
    let start = Instant::now();
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let mut counter = tokenizer::CorpusCounter::new(None, splitter.as_ref());
    // Others take a line for a document; a line's end belongs to it.
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    counter.add(&lines).map_err(|error| error.to_string())?;
    let counts = counter.finish().map_err(|error| error.to_string())?;
    let model = trainer.train(&counts, &mut Silent).map_err(|error| error.to_string())?;
    let seconds = start.elapsed().as_secs_f64();
    let vocab = tokenizer_core::Model::vocab(&model);
    let hex = |id: u32| {
        let bytes = vocab.bytes(TokenId(id)).unwrap_or_default();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let tokens: Vec<String> = (256..vocab.len() as u32).map(hex).collect();
    Ok(json!({"version": "ours", "seconds": seconds, "tokens": tokens}))
}

fn load(peer: &str, model: &Value) -> Result<(&'static str, Box<dyn Native>), String> {
    let path = |name: &str| model[name].as_str().ok_or_else(|| format!("the model has no {name}"));
    let file = |name: &str| std::fs::read(path(name)?).map_err(|error| error.to_string());
    match peer {
        "ours" => {
            let tokenizer = match model["encoding"].as_str() {
                Some(name) => Tokenizer::from_encoding(encoding(name)?),
                None => {
                    let file = file("spm").or_else(|_| file("json"))?;
                    let document = Document::parse(&file).map_err(|e| e.to_string())?;
                    document.lower(&LoadOptions::default()).map_err(|e| e.to_string())?
                }
            };
            // The process ends with it; a session borrows it for ever.
            let tokenizer: &'static Tokenizer = Box::leak(Box::new(tokenizer));
            Ok(("ours", Box::new(Ours { tokenizer, session: tokenizer.session() })))
        }
        "crate tokenizers" => {
            let mut tokenizer =
                tokenizers::Tokenizer::from_bytes(file("json")?).map_err(|e| e.to_string())?;
            tokenizer.set_encode_special_tokens(true);
            Ok((crate::native::huggingface::VERSION, Box::new(HuggingFace(tokenizer))))
        }
        "crate tiktoken-rs" => {
            let bpe = match path("encoding")? {
                "cl100k_base" => tiktoken_rs::cl100k_base(),
                "o200k_base" => tiktoken_rs::o200k_base(),
                other => return Err(format!("has no {other}")),
            };
            let bpe = bpe.map_err(|error| error.to_string())?;
            Ok((crate::native::tiktoken::VERSION, Box::new(Tiktoken(bpe))))
        }
        #[cfg(feature = "natives")]
        "crate bpe-openai" => {
            let tokenizer = match path("encoding")? {
                "cl100k_base" => bpe_openai::cl100k_base(),
                "o200k_base" => bpe_openai::o200k_base(),
                other => return Err(format!("has no {other}")),
            };
            Ok(("bpe-openai 0.3.2", Box::new(BpeOpenai(tokenizer))))
        }
        #[cfg(feature = "natives")]
        "crate toktok-rs" => {
            let tokenizer = toktok_rs::Tokenizer::builtin(path("encoding")?);
            Ok(("toktok-rs 0.3.0", Box::new(Toktok(tokenizer.map_err(|e| format!("{e:?}"))?))))
        }
        #[cfg(feature = "natives")]
        "crate fastokens" => {
            let config = match path("encoding") {
                Ok("cl100k_base") => Some(fastokens::TiktokenConfig::cl100k_base()),
                Ok("o200k_base") => Some(fastokens::TiktokenConfig::o200k_base()),
                _ => None,
            };
            let tokenizer = match config {
                Some(config) => {
                    fastokens::Tokenizer::from_tiktoken_file(path("tiktoken")?.as_ref(), config)
                }
                None => fastokens::Tokenizer::from_file(path("json")?.as_ref()),
            };
            Ok(("fastokens 0.3.5", Box::new(Fastokens(tokenizer.map_err(|e| e.to_string())?))))
        }
        #[cfg(feature = "natives")]
        "crate splintr" => {
            let tokenizer = splintr::core::from_json_bytes(&file("json")?);
            Ok(("splintr 0.22.0", Box::new(Splintr(tokenizer.map_err(|e| e.to_string())?))))
        }
        #[cfg(feature = "natives")]
        "crate kitoken" => {
            let tokenizer = kitoken::Kitoken::from_tokenizers_slice(&file("json")?);
            Ok(("kitoken 0.11.0", Box::new(Kitoken(tokenizer.map_err(|e| format!("{e:?}"))?))))
        }
        other => Err(format!("{other} is not built in (feature `natives`)")),
    }
}

/// A published encoding by its name.
///
/// # Errors
///
/// If it is none of the two that contestants have.
pub fn encoding(name: &str) -> Result<TiktokenEncoding, String> {
    match name {
        "cl100k_base" => Ok(TiktokenEncoding::Cl100kBase),
        "o200k_base" => Ok(TiktokenEncoding::O200kBase),
        other => Err(format!("unknown encoding {other}")),
    }
}

/// The pattern of a published encoding, for contestants that are to be told.
///
/// # Errors
///
/// As [`encoding`].
pub fn pattern(name: &str) -> Result<String, String> {
    Ok(RanksSetup::from(encoding(name)?).pattern)
}

struct Ours {
    tokenizer: &'static Tokenizer,
    session: Session<'static>,
}

impl Native for Ours {
    fn ids(&mut self, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        self.session.ids_into(text, &mut ids);
        ids.into_iter().map(|id| id.0).collect()
    }

    fn count(&mut self, text: &str) -> Option<usize> {
        Some(self.session.count(text))
    }

    fn batch(&mut self, texts: &[&str]) -> Option<usize> {
        Some(self.tokenizer.ids_batch(texts).iter().map(Vec::len).sum())
    }
}

struct HuggingFace(tokenizers::Tokenizer);

impl Native for HuggingFace {
    fn ids(&mut self, text: &str) -> Vec<u32> {
        self.0.encode_fast(text, false).map(|e| e.get_ids().to_vec()).unwrap_or_default()
    }

    fn batch(&mut self, texts: &[&str]) -> Option<usize> {
        let encodings = self.0.encode_batch_fast(texts.to_vec(), false).ok()?;
        Some(encodings.iter().map(|encoding| encoding.get_ids().len()).sum())
    }
}

struct Tiktoken(tiktoken_rs::CoreBPE);

impl Native for Tiktoken {
    fn ids(&mut self, text: &str) -> Vec<u32> {
        self.0.encode_ordinary(text)
    }
}

#[cfg(feature = "natives")]
struct BpeOpenai(&'static bpe_openai::Tokenizer);

#[cfg(feature = "natives")]
impl Native for BpeOpenai {
    fn ids(&mut self, text: &str) -> Vec<u32> {
        self.0.encode(text)
    }

    fn count(&mut self, text: &str) -> Option<usize> {
        Some(self.0.count(text))
    }
}

#[cfg(feature = "natives")]
struct Toktok(toktok_rs::Tokenizer);

#[cfg(feature = "natives")]
impl Native for Toktok {
    fn ids(&mut self, text: &str) -> Vec<u32> {
        self.0.encode(text.as_bytes())
    }

    fn count(&mut self, text: &str) -> Option<usize> {
        Some(self.0.count(text.as_bytes()))
    }
}

#[cfg(feature = "natives")]
struct Fastokens(fastokens::Tokenizer);

#[cfg(feature = "natives")]
impl Native for Fastokens {
    fn ids(&mut self, text: &str) -> Vec<u32> {
        self.0.encode_ordinary(text).unwrap_or_default()
    }

    fn batch(&mut self, texts: &[&str]) -> Option<usize> {
        Some(self.0.encode_batch(texts, false).ok()?.iter().map(Vec::len).sum())
    }
}

#[cfg(feature = "natives")]
struct Splintr(splintr::core::AnyTokenizer);

#[cfg(feature = "natives")]
impl Native for Splintr {
    fn ids(&mut self, text: &str) -> Vec<u32> {
        self.0.encode_raw(text)
    }

    fn batch(&mut self, texts: &[&str]) -> Option<usize> {
        Some(self.0.encode_batch(texts).iter().map(Vec::len).sum())
    }
}

#[cfg(feature = "natives")]
struct Kitoken(kitoken::Kitoken);

#[cfg(feature = "natives")]
impl Native for Kitoken {
    fn ids(&mut self, text: &str) -> Vec<u32> {
        self.0.encode(text, false).unwrap_or_default()
    }
}
