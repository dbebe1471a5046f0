//! `--checkpoint` and `--resume`: what a training needs to go on after a crash.
//!
//! Three files, each of which appears whole: `FILE.counts` and `FILE.text` hold what counting found,
//! and `FILE`, which is there only when they are, how far the training is. A finished training
//! removes them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use formats::counts;
use serde_json::{Value, json};
use tokenizer_core::TokenId;
use unigram::State;

use crate::corpus::{self, Counted};
use crate::failure::Failure;
use crate::output::AtomicFile;

/// How far a training is.
#[derive(Default)]
pub(super) enum Stage {
    /// The text is counted.
    #[default]
    Counted,
    /// So many merges are made.
    Merges(Vec<(TokenId, TokenId)>),
    /// So many rounds are made.
    Rounds(Box<State>),
}

/// The files of a training.
pub(super) struct Checkpoint {
    path: PathBuf,
    /// All that decides what is trained.
    training: String,
    every: Duration,
    saved: Instant,
    /// How many merges were saved.
    progress: usize,
}

impl Checkpoint {
    pub(super) fn new(path: &Path, training: String, every: Duration) -> Self {
        Self { path: path.to_owned(), training, every, saved: Instant::now(), progress: 0 }
    }

    fn beside(&self, what: &str) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(what);
        name.into()
    }

    /// Keeps what was counted.
    pub(super) fn counted(&mut self, counted: &Counted) -> Result<(), Failure> {
        // What is there of another training must not be taken for this one's.
        self.remove()?;
        let path = self.beside(".counts");
        let mut file = AtomicFile::create(&path)?;
        counts::write(&counted.counts, &mut file).map_err(|e| Failure::file(&path, e))?;
        file.commit()?;
        let text = json!({
            "documents": counted.documents,
            "bytes": counted.bytes,
            "sample": counted.sample,
            "last_line": counted.last_line,
        });
        AtomicFile::write(&self.beside(".text"), text.to_string().as_bytes())?;
        self.write("counted", &[])
    }

    /// What was kept, if there is anything.
    pub(super) fn load(&mut self) -> Result<Option<(Counted, Stage)>, Failure> {
        let path = &self.path;
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::file(path, error)),
        };
        let broken = || Failure::file(path, "is no checkpoint of a training");
        let end = bytes.iter().position(|&byte| byte == b'\n').ok_or_else(broken)?;
        let header: Value = serde_json::from_slice(&bytes[..end]).map_err(|_| broken())?;
        let stage = header["tok_checkpoint"].as_str().ok_or_else(broken)?;
        if header["training"] != self.training.as_str() {
            return Err(Failure::usage(format!(
                "{} is the checkpoint of a training with other options or files",
                path.display()
            )));
        }
        let data = &bytes[end + 1..];
        let stage = match stage {
            "counted" => Stage::Counted,
            "merges" if data.len().is_multiple_of(8) => {
                let id =
                    |bytes: &[u8]| TokenId(u32::from_le_bytes(bytes.try_into().expect("4 bytes")));
                let merges = data.chunks(8).map(|pair| (id(&pair[..4]), id(&pair[4..])));
                Stage::Merges(merges.collect())
            }
            "rounds" => Stage::Rounds(Box::new(State::from_bytes(data).map_err(|_| broken())?)),
            _ => return Err(broken()),
        };
        self.progress = match &stage {
            Stage::Merges(merges) => merges.len(),
            Stage::Counted | Stage::Rounds(_) => 0,
        };
        let text_path = self.beside(".text");
        let text = std::fs::read(&text_path).map_err(|e| Failure::file(&text_path, e))?;
        let text: Value =
            serde_json::from_slice(&text).map_err(|e| Failure::file(&text_path, e))?;
        let sample = text["sample"].as_array().into_iter().flatten();
        let counted = Counted {
            counts: corpus::read_shard(&self.beside(".counts"))?,
            documents: text["documents"].as_u64(),
            bytes: text["bytes"].as_u64(),
            sample: sample.filter_map(|text| text.as_str().map(str::to_owned)).collect(),
            last_line: text["last_line"].as_str().map(str::to_owned),
        };
        Ok(Some((counted, stage)))
    }

    /// Keeps the merges so far, if it is time.
    pub(super) fn merges(&mut self, merges: &[(TokenId, TokenId)]) -> Result<(), Failure> {
        if merges.len() <= self.progress || self.saved.elapsed() < self.every {
            return Ok(());
        }
        self.progress = merges.len();
        let ids = merges.iter().flat_map(|(left, right)| [left.0, right.0]);
        let bytes: Vec<u8> = ids.flat_map(u32::to_le_bytes).collect();
        self.write("merges", &bytes)
    }

    /// Keeps the state after a round, if it is time.
    pub(super) fn round(&mut self, state: &State) -> Result<(), Failure> {
        if self.saved.elapsed() < self.every {
            return Ok(());
        }
        self.write("rounds", &state.to_bytes())
    }

    /// Removes all files: the training is done, or another one begins.
    pub(super) fn remove(&self) -> Result<(), Failure> {
        for path in [self.path.clone(), self.beside(".counts"), self.beside(".text")] {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Failure::file(&path, error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn write(&mut self, stage: &str, data: &[u8]) -> Result<(), Failure> {
        let header = json!({ "tok_checkpoint": stage, "training": self.training });
        let mut file = AtomicFile::create(&self.path)?;
        let written = file.write_all(format!("{header}\n").as_bytes());
        written.and_then(|()| file.write_all(data)).map_err(|e| Failure::file(&self.path, e))?;
        file.commit()?;
        self.saved = Instant::now();
        Ok(())
    }
}
