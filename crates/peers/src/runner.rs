//! Python packages as contestants: a small program speaks JSON, a line a message, over a pipe.
//!
//! The protocol is written down at the head of `python/runner.py`.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::contestant::{Contestant, DecodeRequest, Encoded, Outcome, Request};

/// A Python process that runs one peer.
pub struct Runner {
    child: Child,
    requests: ChildStdin,
    answers: Receiver<String>,
    name: String,
    /// Seconds from the request to the first ids, imports included.
    pub load_seconds: f64,
    /// Longer than this no answer is waited for: then the process is ended.
    pub limit: Duration,
    offsets: bool,
}

/// The folder of the Python programs.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("python")
}

impl Runner {
    /// Starts `python` and loads a peer; `model` says with what, as `python/adapters.py` reads it.
    ///
    /// # Errors
    ///
    /// If the program cannot be started, or the peer cannot be loaded: in its words.
    pub fn start(python: &Path, peer: &str, model: &Value, offsets: bool) -> Result<Self, String> {
        let mut command = Command::new(python);
        command.arg("-X").arg("utf8").arg(folder().join("runner.py"));
        let mut runner = Self::spawn(command, peer)?;
        runner.offsets = offsets;
        let answer = runner.ask(&json!({"op": "load", "peer": peer, "model": model}))?;
        runner.loaded(&answer);
        Ok(runner)
    }

    /// Starts a program that speaks the protocol, without loading anything.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub fn spawn(mut command: Command, name: &str) -> Result<Self, String> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        let requests = child.stdin.take().expect("it is piped");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let (sender, answers) = channel();
        // A thread waits for lines, so that waiting for an answer can end without one.
        std::thread::spawn(move || {
            lines.map_while(Result::ok).try_for_each(|line| sender.send(line).ok())
        });
        let name = name.to_owned();
        let limit = Duration::from_secs(600);
        Ok(Self { child, requests, answers, name, load_seconds: 0.0, limit, offsets: false })
    }

    /// Takes name and time from the answer to `load`.
    pub fn loaded(&mut self, answer: &Value) {
        if let Some(version) = answer["version"].as_str() {
            version.clone_into(&mut self.name);
        }
        self.load_seconds = answer["seconds"].as_f64().unwrap_or(f64::NAN);
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    ///
    /// If the process is gone, or says that it could not do it.
    pub fn ask(&mut self, request: &Value) -> Result<Value, String> {
        self.ask_within(request, self.limit)
    }

    /// As [`ask`](Self::ask), but after `limit` the process is ended.
    ///
    /// # Errors
    ///
    /// As [`ask`](Self::ask), and if the answer takes longer.
    pub fn ask_within(&mut self, request: &Value, limit: Duration) -> Result<Value, String> {
        let gone = |error: std::io::Error| format!("the process is gone: {error}");
        let mut line = request.to_string();
        line.push('\n');
        self.requests.write_all(line.as_bytes()).map_err(gone)?;
        self.requests.flush().map_err(gone)?;
        let line = match self.answers.recv_timeout(limit) {
            Ok(line) => line,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                let _ = self.child.kill();
                return Err(format!("no answer within {} s", limit.as_secs()));
            }
            Err(_) => return Err("the process ended".to_owned()),
        };
        let answer: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        if answer["ok"] == true {
            return Ok(answer);
        }
        Err(answer["error"].as_str().unwrap_or("no reason given").to_owned())
    }

    fn encode_batch(&mut self, texts: &[&str]) -> Result<Vec<Encoded>, String> {
        let answer = self.ask(&json!({"op": "encode", "texts": texts, "offsets": self.offsets}))?;
        let ids: Vec<Vec<u32>> =
            serde_json::from_value(answer["ids"].clone()).map_err(|error| error.to_string())?;
        let bytes: Option<Vec<Vec<(usize, usize)>>> =
            serde_json::from_value(answer["bytes"].clone()).map_err(|error| error.to_string())?;
        let mut bytes = bytes.map(Vec::into_iter);
        let encoded = |ids| Encoded {
            ids,
            bytes: bytes.as_mut().and_then(Iterator::next),
            ..Encoded::default()
        };
        Ok(ids.into_iter().map(encoded).collect())
    }
}

impl Contestant for Runner {
    fn name(&self) -> &str {
        &self.name
    }

    fn encode(&mut self, request: &Request<'_>) -> Outcome<Encoded> {
        match self.encode_batch(&[request.first]) {
            Ok(mut encoded) => Outcome::Value(encoded.remove(0)),
            Err(why) => Outcome::Refused(why),
        }
    }

    fn encode_all(&mut self, requests: &[Request<'_>]) -> Vec<Outcome<Encoded>> {
        let texts: Vec<&str> = requests.iter().map(|request| request.first).collect();
        match self.encode_batch(&texts) {
            Ok(encoded) => encoded.into_iter().map(Outcome::Value).collect(),
            Err(_) => requests.iter().map(|request| self.encode(request)).collect(),
        }
    }

    fn decode(&mut self, request: &DecodeRequest<'_>) -> Outcome<String> {
        self.decode_all(std::slice::from_ref(request)).remove(0)
    }

    fn decode_all(&mut self, requests: &[DecodeRequest<'_>]) -> Vec<Outcome<String>> {
        let Some(first) = requests.first() else {
            return Vec::new();
        };
        let ids: Vec<&[u32]> = requests.iter().map(|request| request.ids).collect();
        let skip = first.skip_special;
        let answer = self.ask(&json!({"op": "decode", "ids": ids, "skip_special": skip}));
        let texts = answer.and_then(|answer| {
            serde_json::from_value::<Vec<String>>(answer["texts"].clone())
                .map_err(|error| error.to_string())
        });
        match texts {
            Ok(texts) => texts.into_iter().map(Outcome::Value).collect(),
            Err(why) if requests.len() == 1 => vec![Outcome::Refused(why)],
            Err(_) => requests.iter().map(|request| self.decode(request)).collect(),
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        // Its input ends with us; a process that does not notice must not outlive us.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
