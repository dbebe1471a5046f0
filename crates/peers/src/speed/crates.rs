//! The contestants that are crates, ours first.

use serde_json::Value;
use tokenizer::{
    Batch, Document, LoadOptions, RanksSetup, Session, SessionOptions, TiktokenEncoding, Tokenizer,
};

use super::child::{Contestants, Loaded, Native};
use super::contest::{OURS_PREPARED, is_ours};

/// What this program answers as.
pub const CONTESTANTS: Contestants = Contestants { load, train: super::trainers::answer };

/// The crates of other projects that can be built in, with the feature that they need.
pub const CRATES: &[&str] = &[
    "crate tiktoken-rs",
    "crate tokenizers",
    #[cfg(feature = "natives")]
    "crate bpe-openai",
    #[cfg(feature = "natives")]
    "crate toktok-rs",
    #[cfg(feature = "natives")]
    "crate fastokens",
    #[cfg(feature = "natives")]
    "crate splintr",
    #[cfg(feature = "natives")]
    "crate kitoken",
];

/// Loads a contestant; gives its version too.
///
/// # Errors
///
/// If it is not built in, or in its words why it cannot load the model.
pub fn load(peer: &str, model: &Value) -> Result<Loaded, String> {
    let path = |name: &str| model[name].as_str().ok_or_else(|| format!("the model has no {name}"));
    let file = |name: &str| std::fs::read(path(name)?).map_err(|error| error.to_string());
    let text = |name: &str| std::fs::read_to_string(path(name)?).map_err(|e| e.to_string());
    let native: Box<dyn Native> = match peer {
        name if is_ours(name) => {
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
            let mut options = SessionOptions::new();
            if name == OURS_PREPARED {
                tokenizer.prepare();
                options = options.memory(64 << 20);
            }
            Box::new(Ours {
                session: tokenizer.session_with(&options),
                batch: tokenizer.batch_with(&options),
            })
        }
        "crate tokenizers" => {
            let mut tokenizer = tokenizers::Tokenizer::from_bytes(text("json")?)
                .map_err(|error| error.to_string())?;
            tokenizer.set_encode_special_tokens(true);
            Box::new(HuggingFace(tokenizer))
        }
        "crate tiktoken-rs" => {
            let bpe = match path("encoding")? {
                "cl100k_base" => tiktoken_rs::cl100k_base(),
                "o200k_base" => tiktoken_rs::o200k_base(),
                other => return Err(format!("has no {other}")),
            };
            Box::new(Tiktoken(bpe.map_err(|error| error.to_string())?))
        }
        #[cfg(feature = "natives")]
        "crate bpe-openai" => Box::new(BpeOpenai(match path("encoding")? {
            "cl100k_base" => bpe_openai::cl100k_base(),
            "o200k_base" => bpe_openai::o200k_base(),
            other => return Err(format!("has no {other}")),
        })),
        #[cfg(feature = "natives")]
        "crate toktok-rs" => {
            let tokenizer = toktok::Tokenizer::builtin(path("encoding")?);
            Box::new(Toktok(tokenizer.map_err(|error| format!("{error:?}"))?))
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
            Box::new(Fastokens(tokenizer.map_err(|error| error.to_string())?))
        }
        #[cfg(feature = "natives")]
        "crate splintr" => {
            let tokenizer = splintr::core::from_json_bytes(&file("json")?);
            Box::new(Splintr(tokenizer.map_err(|error| error.to_string())?))
        }
        #[cfg(feature = "natives")]
        "crate kitoken" => {
            let tokenizer = match file("spm") {
                Ok(file) => kitoken::Kitoken::from_sentencepiece_slice(&file),
                Err(_) => kitoken::Kitoken::from_tokenizers_slice(&file("json")?),
            };
            Box::new(Kitoken(tokenizer.map_err(|error| format!("{error:?}"))?))
        }
        other => return Err(format!("{other} is not built in (feature `natives`)")),
    };
    Ok((version(peer), native))
}

/// A crate and the version that is locked.
fn version(peer: &str) -> String {
    let Some(name) = peer.strip_prefix("crate ") else { return peer.to_owned() };
    let version = locked(include_str!("../../../../Cargo.lock"), name);
    format!("{name} {}", version.unwrap_or("of an unknown version"))
}

/// The version of a crate in a lock file.
fn locked<'l>(lock: &'l str, name: &str) -> Option<&'l str> {
    let head = format!("name = \"{name}\"");
    let mut lines = lock.lines().skip_while(|line| *line != head);
    lines.nth(1)?.strip_prefix("version = \"")?.strip_suffix('"')
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
    session: Session<'static>,
    batch: Batch<'static>,
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
        Some(self.batch.ids(texts).iter().map(Vec::len).sum())
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
struct Toktok(toktok::Tokenizer);

#[cfg(feature = "natives")]
impl Native for Toktok {
    fn ids(&mut self, text: &str) -> Vec<u32> {
        self.0.encode(text.as_bytes())
    }

    fn count(&mut self, text: &str) -> Option<usize> {
        Some(self.0.count(text.as_bytes()))
    }

    fn batch(&mut self, texts: &[&str]) -> Option<usize> {
        let texts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
        Some(self.0.encode_batch(&texts, 2, false).iter().map(Vec::len).sum())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_lock_file() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.2.3\"\n\n[[package]]\nname = \"b\"\n\
                    version = \"0.1.0\"\n";
        assert_eq!(locked(lock, "a"), Some("1.2.3"));
        assert_eq!(locked(lock, "c"), None);
        for name in CRATES {
            assert!(!version(name).contains("unknown"), "{name}: {}", version(name));
        }
        assert_eq!(version("ours"), "ours");
    }

    #[test]
    fn ours_answers_with_the_ids_of_the_encoding() {
        let model = serde_json::json!({"encoding": "cl100k_base"});
        let (name, mut ours) = load("ours", &model).expect("it is built in");
        assert_eq!((name.as_str(), ours.ids("hello world")), ("ours", vec![15339, 1917]));
        assert_eq!(
            (ours.count("hello world"), ours.batch(&["hello", "world"])),
            (Some(2), Some(2))
        );
        assert!(load("nobody", &model).is_err());
    }
}
