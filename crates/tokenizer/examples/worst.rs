//! Texts that are hard to cut or to merge, at doubling sizes, on one thread.
//!
//! ```sh
//! cargo run --release -p tokenizer --example worst -- cl100k_base [MEGABYTES] [KIND]
//! cargo run --release -p tokenizer --example worst -- path/to/tokenizer.json
//! ```
//!
//! For each pathological kind of the testkit: MB/s of MEGABYTES (16 if not said) for ids in a new session,
//! the time of that over the time of half as much, and the memory that the process had at most, in
//! bytes for a byte of text. Times are the least of five that take turns; memory is of the first.

use std::error::Error;
use std::time::Instant;

use testkit::pathological::KINDS;
use tokenizer::{LoadOptions, TiktokenEncoding, Tokenizer};

const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, rest @ ..] = &args[..] else {
        return Err("usage: worst TOKENIZER [MEGABYTES] [KIND]".into());
    };
    let tokenizer = match TiktokenEncoding::from_name(name) {
        Some(encoding) => Tokenizer::from_encoding(encoding),
        None => Tokenizer::from_file(&std::fs::read(name)?, &LoadOptions::default())?,
    };
    let megabytes: usize = rest.first().map_or(Ok(16), |megabytes| megabytes.parse())?;
    let only = rest.get(1);
    println!("| {name} | tokens | MB/s | time(2n) / time(n) | bytes a byte |");
    println!("|---|--:|--:|--:|--:|");
    for kind in KINDS.iter().filter(|kind| only.is_none_or(|only| only == kind.name)) {
        let text = kind.text(megabytes * 1_000_000);
        let half = &text[..boundary(&text, text.len() / 2)];
        let before = resident("VmRSS:");
        reset_peak();
        let (mut half_time, _) = measured(&tokenizer, half);
        let (mut time, count) = measured(&tokenizer, &text);
        let peak = before.zip(resident("VmHWM:"));
        let memory = peak.map_or("?".to_owned(), |(before, peak)| {
            format!("{:.1}", peak.saturating_sub(before) as f64 * 1024.0 / text.len() as f64)
        });
        for _ in 1..ROUNDS {
            half_time = half_time.min(measured(&tokenizer, half).0);
            time = time.min(measured(&tokenizer, &text).0);
        }
        let speed = text.len() as f64 / 1e6 / time;
        let ratio = time / half_time;
        println!("| {} | {count} | {speed:.1} | {ratio:.2} | {memory} |", kind.name);
    }
    Ok(())
}

/// The last place up to `at` where a character begins or the text ends.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// The seconds for the ids of a text, and their number. There is room for them, since a list that grows is
/// copied at sizes that have nothing to do with the tokenizer.
fn measured(tokenizer: &Tokenizer, text: &str) -> (f64, usize) {
    let mut session = tokenizer.session();
    let mut ids = Vec::with_capacity(text.len());
    let start = Instant::now();
    session.ids_into(text, &mut ids);
    (start.elapsed().as_secs_f64(), ids.len())
}

/// A line of the kernel's on this process's memory, in kilobytes.
fn resident(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find(|line| line.starts_with(name))?.split_whitespace().nth(1)?.parse().ok()
}

/// The greatest memory so far is forgotten, where the kernel does that.
fn reset_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}
