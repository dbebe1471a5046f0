//! A contestant that is a crate, as a process that answers requests.
//!
//! The package `next` includes this file: it knows nothing of the crates.

use std::io::{BufRead, Write};
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// A tokenizer of this process. Ids of ordinary text, without anything added.
pub trait Native {
    /// The ids.
    fn ids(&mut self, text: &str) -> Vec<u32>;

    /// The number of ids, if there is a way to have it without the ids.
    fn count(&mut self, _text: &str) -> Option<usize> {
        None
    }

    /// The number of ids of all texts, made with two threads in one call.
    fn batch(&mut self, _texts: &[&str]) -> Option<usize> {
        None
    }
}

/// A contestant's name with its version, and the contestant.
pub type Loaded = (String, Box<dyn Native>);

/// What the contestants of a program are.
#[derive(Clone, Copy)]
pub struct Contestants {
    /// Loads one by its name with a model.
    pub load: fn(&str, &Value) -> Result<Loaded, String>,
    /// Answers the request `train`.
    pub train: fn(&Value) -> Result<Value, String>,
}

/// Answers requests from standard input until it ends.
///
/// # Errors
///
/// If standard output is gone.
pub fn serve(contestants: Contestants) -> std::io::Result<()> {
    let mut loaded: Option<Box<dyn Native>> = None;
    let mut text = String::new();
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let answer = serde_json::from_str(&line?)
            .map_err(|error| error.to_string())
            .and_then(|request: Value| answer(contestants, &request, &mut loaded, &mut text));
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

fn answer(
    contestants: Contestants,
    request: &Value,
    loaded: &mut Option<Box<dyn Native>>,
    text: &mut String,
) -> Result<Value, String> {
    const UNLOADED: &str = "nothing is loaded";
    let string = |name: &str| request[name].as_str().ok_or_else(|| format!("no {name}"));
    match string("op")? {
        "load" => {
            let clock = Clock::start();
            let (version, mut native) = (contestants.load)(string("peer")?, &request["model"])?;
            native.ids("x");
            *loaded = Some(native);
            Ok(clock.stop(json!({"version": version})))
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
            let clock = Clock::start();
            let done = match what {
                "whole" => Some(native.ids(text).len()),
                "documents" => Some(documents.iter().map(|text| native.ids(text).len()).sum()),
                "count" => native.count(text),
                "batch" => native.batch(&documents),
                other => return Err(format!("unknown time {other}")),
            };
            let answer = clock.stop(json!({}));
            done.map(|_| answer).ok_or_else(|| format!("has no {what}"))
        }
        "memory" => memory(),
        "train" => (contestants.train)(request),
        other => Err(format!("unknown op {other}")),
    }
}

/// Wall and processor time since it was started.
pub struct Clock {
    wall: Instant,
    cpu: f64,
}

impl Clock {
    /// Starts it.
    #[must_use]
    pub fn start() -> Self {
        Self { wall: Instant::now(), cpu: processor_seconds() }
    }

    /// Puts `seconds` and `cpu` into an answer.
    #[must_use]
    pub fn stop(&self, mut answer: Value) -> Value {
        let (wall, cpu) = (self.wall.elapsed().as_secs_f64(), processor_seconds() - self.cpu);
        answer["seconds"] = json!(wall);
        answer["cpu"] = json!(cpu);
        answer
    }
}

/// Seconds that all threads of this process have had a processor.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_the_text_and_end_at_lines() {
        let line = "0123456789 word \u{4E00}\n";
        let text = line.repeat(1000);
        let documents = cut(&text);
        assert_eq!(documents.concat(), text);
        assert!(documents.iter().all(|document| document.len() <= 2048));
        assert!(documents.iter().all(|document| document.ends_with('\n')));
        // Without a line end, on a character boundary behind 2 KB.
        let han = "\u{4E00}".repeat(2000);
        assert_eq!(cut(&han)[0].len(), 2049);
        assert_eq!(cut(&han).concat(), han);
        assert!(cut("").is_empty());
    }

    /// A token a byte.
    struct Bytes;

    impl Native for Bytes {
        fn ids(&mut self, text: &str) -> Vec<u32> {
            text.bytes().map(u32::from).collect()
        }
    }

    #[test]
    fn requests_are_answered_and_faults_are_answers() {
        let contestants = Contestants {
            load: |peer, _| match peer {
                "bytes" => Ok(("bytes 1".to_owned(), Box::new(Bytes))),
                other => Err(format!("there is no {other}")),
            },
            train: |_| Err("it cannot".to_owned()),
        };
        let (mut loaded, mut text) = (None, "a b".to_owned());
        let mut ask = |request| answer(contestants, &request, &mut loaded, &mut text);
        assert_eq!(ask(json!({"op": "encode", "texts": []})), Err("nothing is loaded".to_owned()));
        let load = |peer: &str| json!({"op": "load", "peer": peer, "model": {}});
        assert_eq!(ask(load("nobody")), Err("there is no nobody".to_owned()));
        let answer = ask(load("bytes")).expect("it is there");
        assert_eq!(answer["version"], "bytes 1");
        assert!(answer["seconds"].as_f64().is_some_and(|seconds| seconds >= 0.0));
        let ids = ask(json!({"op": "encode", "texts": ["ab", ""]})).expect("it is loaded");
        assert_eq!(ids["ids"], json!([[97, 98], []]));
        assert!(ask(json!({"op": "time", "what": "whole"})).is_ok());
        let count = ask(json!({"op": "time", "what": "count"}));
        assert_eq!(count, Err("has no count".to_owned()));
        assert!(ask(json!({"op": "train"})).is_err());
        assert!(ask(json!({"op": "dance"})).is_err());
    }
}
