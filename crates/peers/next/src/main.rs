//! Hugging Face's tokenizers 1.0 as a contestant: a process that answers requests, as
//! `python/runner.py` says.

// The server is the one of the crates that the workspace can hold.
#[path = "../../src/speed/child.rs"]
mod child;

use child::{Contestants, Loaded, Native};
use serde_json::Value;
use tokenizers::pipeline::{EncodeOptions, PipelineTokenizer};

fn main() -> std::io::Result<()> {
    child::serve(Contestants { load, train: |_| Err("it does not train".to_owned()) })
}

struct Next(PipelineTokenizer, EncodeOptions);

fn load(_: &str, model: &Value) -> Result<Loaded, String> {
    let path = model["json"].as_str().ok_or("the model has no json")?;
    // It reads files of its own version alone; converting is part of loading.
    let json = tokenizers::canonicalize_file(path).map_err(|error| error.to_string())?;
    let tokenizer = tokenizers::from_json(&json).map_err(|error| error.to_string())?;
    let mut options = EncodeOptions::no_specials();
    options.encode_special_tokens = true;
    Ok(("tokenizers 1.0.0-rc.3".to_owned(), Box::new(Next(tokenizer, options))))
}

impl Native for Next {
    fn ids(&mut self, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        match self.0.encode_into(text, &self.1, &mut ids) {
            Ok(()) => ids.into_iter().map(u32::from).collect(),
            Err(_) => Vec::new(),
        }
    }

    fn batch(&mut self, texts: &[&str]) -> Option<usize> {
        let encodings = self.0.encode(texts, &self.1).wait().ok()?;
        Some(encodings.iter().map(|encoding| encoding.len()).sum())
    }
}
