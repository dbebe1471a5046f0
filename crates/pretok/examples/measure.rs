//! How fast splitting is: `cargo run --release -p pretok --example measure FILE [PATTERN [BACKEND
//! [ROUNDS [BYTES]]]]` prints MB/s of the best of some rounds for every pattern and back end of the scanners,
//! and for the engines `automaton` and `backtracking`, or for one of each; what is timed is handing the spans over in batches. One round under callgrind, with
//! `--toggle-collect='*timed*'`, counts instructions.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use pretok::{Backend, Engine, Pattern, RegexOptions, RegexSplitter, Scanner};
use tokenizer_core::Split;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let file = args.first().ok_or("usage: measure FILE [PATTERN [BACKEND [ROUNDS [BYTES]]]]")?;
    let text = std::fs::read_to_string(file)?;
    let rounds: u32 = args.get(3).map_or(Ok(7), |n| n.parse())?;
    // Documents of about this many bytes; without it, the whole text.
    let size: usize = args.get(4).map_or(Ok(usize::MAX), |n| n.parse())?;
    let documents = documents(&text, size);
    let wanted = |at: usize, name: &str| {
        args.get(at).is_none_or(|wanted: &String| wanted == name || wanted == "all")
    };
    for &pattern in Pattern::ALL {
        let Some(rules) = pattern.rules().filter(|_| wanted(1, pattern.name())) else { continue };
        let mut splitters: Vec<(String, Box<dyn Split>)> = Vec::new();
        for backend in Backend::ALL {
            let name = format!("{backend:?}").to_lowercase();
            if let Some(scanner) = Scanner::with_backend(rules, backend)
                && wanted(2, &name)
            {
                splitters.push((name, Box::new(scanner)));
            }
        }
        for engine in [Engine::Automaton, Engine::Backtracking] {
            if wanted(2, &engine.to_string()) {
                let mut options = RegexOptions::default();
                options.engine = Some(engine);
                let splitter = RegexSplitter::with_options(pattern.stages()[0], options)?;
                splitters.push((engine.to_string(), Box::new(splitter)));
            }
        }
        let mut best = vec![(f64::INFINITY, 0); splitters.len()];
        // All of them in each round, so that a busy machine is as busy for all.
        for _ in 0..rounds {
            for ((_, splitter), best) in splitters.iter().zip(&mut best) {
                let start = Instant::now();
                let pieces = timed(splitter.as_ref(), &documents);
                *best = (best.0.min(start.elapsed().as_secs_f64()), pieces);
            }
        }
        for ((name, _), (seconds, pieces)) in splitters.iter().zip(best) {
            let speed = text.len() as f64 / seconds / 1e6;
            println!("{:10} {name:12} {pieces:9} pieces {speed:7.0} MB/s", pattern.name());
        }
    }
    Ok(())
}

#[inline(never)]
fn timed(splitter: &dyn Split, documents: &[&str]) -> usize {
    let mut pieces = 0;
    for text in documents {
        splitter.split_batches(text, &mut |batch| pieces += black_box(batch).len());
    }
    pieces
}

fn documents(mut text: &str, size: usize) -> Vec<&str> {
    let mut documents = Vec::new();
    while !text.is_empty() {
        let wanted = size.clamp(1, text.len());
        let end = (wanted..=text.len()).find(|&at| text.is_char_boundary(at));
        let (document, rest) = text.split_at(end.unwrap_or(text.len()));
        documents.push(document);
        text = rest;
    }
    documents
}
