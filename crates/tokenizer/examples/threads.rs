//! What a second thread is worth: for many documents, for one long text, and at most.
//!
//! ```sh
//! cargo run --release -p tokenizer --example threads -- cl100k_base TEXT [ROUNDS]
//! cargo run --release -p tokenizer --example threads -- path/to/tokenizer.json TEXT
//! ```
//!
//! Prints the time of one thread over that of two, in each case the least of some rounds that take
//! turns:
//!
//! - documents: a batch of texts of about 2,000 bytes;
//! - one text: the whole text at once;
//! - apart: two threads that encode the whole text each and share nothing but the tokenizer, over twice
//!   one that does so alone. What the machine has of two processors is this ratio; no division of
//!   the work can do better.
//!
//! Sessions are kept from round to round. Results are checked before anything is timed.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use rayon::{ThreadPool, ThreadPoolBuilder};
use tokenizer::{LoadOptions, TiktokenEncoding, Tokenizer};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, path, rest @ ..] = &args[..] else {
        return Err("usage: threads TOKENIZER TEXT [ROUNDS]".into());
    };
    let tokenizer = match TiktokenEncoding::from_name(name) {
        Some(encoding) => Tokenizer::from_encoding(encoding),
        None => Tokenizer::from_file(&std::fs::read(name)?, &LoadOptions::default())?,
    };
    let text = std::fs::read_to_string(path)?;
    let rounds: usize = rest.first().map_or(Ok(9), |rounds| rounds.parse())?;
    let documents = documents(&text, 2000);
    let pool = |n| ThreadPoolBuilder::new().num_threads(n).build();
    let pools = [pool(1)?, pool(2)?];

    let mut of_documents = Ratio::new(&pools, |_| {
        let mut batch = tokenizer.batch();
        let documents = &documents;
        let expected: Vec<_> = documents.iter().map(|text| tokenizer.ids(text)).collect();
        assert!(batch.ids(documents) == expected, "the same ids");
        Box::new(move || drop(black_box(batch.ids(documents))))
    });
    let mut of_one_text = Ratio::new(&pools, |_| {
        let mut batch = tokenizer.batch();
        let text = &text;
        assert!(batch.ids_of_one(text) == tokenizer.ids(text), "the same ids");
        Box::new(move || drop(black_box(batch.ids_of_one(text))))
    });
    let mut apart = Ratio::new(&pools, |n| {
        let mut sessions: Vec<_> = (0..n).map(|_| (tokenizer.session(), Vec::new())).collect();
        let text = &text;
        Box::new(move || {
            rayon::scope(|scope| {
                for (session, ids) in &mut sessions {
                    scope.spawn(|_| {
                        ids.clear();
                        session.ids_into(text, ids);
                    });
                }
            });
        })
    });
    for _ in 0..rounds {
        of_documents.round();
        of_one_text.round();
        apart.round();
    }
    let megabytes = text.len() as f64 / 1e6;
    println!("| {name}, {path} | one thread, MB/s | two, MB/s | ratio |");
    println!("|---|--:|--:|--:|");
    for (what, ratio, work) in [
        ("documents", &of_documents, [1.0, 1.0]),
        ("one text", &of_one_text, [1.0, 1.0]),
        ("apart", &apart, [1.0, 2.0]),
    ] {
        let [one, two] = [0, 1].map(|i| work[i] * megabytes / ratio.best[i]);
        println!("| {what} | {one:.0} | {two:.0} | {:.2} |", two / one);
    }
    Ok(())
}

/// The same work by one thread and by two, and the best time of each.
struct Ratio<'a> {
    pools: &'a [ThreadPool; 2],
    work: [Box<dyn FnMut() + Send + 'a>; 2],
    best: [f64; 2],
}

impl<'a> Ratio<'a> {
    /// `make` is told the number of threads.
    fn new(
        pools: &'a [ThreadPool; 2],
        make: impl Fn(usize) -> Box<dyn FnMut() + Send + 'a>,
    ) -> Self {
        Self { pools, work: [make(1), make(2)], best: [f64::INFINITY; 2] }
    }

    fn round(&mut self) {
        for ((pool, work), best) in self.pools.iter().zip(&mut self.work).zip(&mut self.best) {
            let start = Instant::now();
            pool.install(work);
            *best = best.min(start.elapsed().as_secs_f64());
        }
    }
}

fn documents(mut text: &str, size: usize) -> Vec<&str> {
    let mut documents = Vec::new();
    while !text.is_empty() {
        let end = (size..text.len()).find(|&at| text.is_char_boundary(at));
        let (document, rest) = text.split_at(end.unwrap_or(text.len()));
        documents.push(document);
        text = rest;
    }
    documents
}
