//! How fast scanners are: `cargo run --release -p pretok --example measure FILE [PATTERN [BACKEND
//! [ROUNDS]]]` prints MB/s of the best of some rounds for every pattern and back end, or for one of
//! them; what is timed is handing the spans over in batches. One round under callgrind, with
//! `--toggle-collect='*timed*'`, counts instructions.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use pretok::{Backend, Pattern, Scanner};
use tokenizer_core::Split;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let file = args.first().ok_or("usage: measure FILE [PATTERN [BACKEND [ROUNDS]]]")?;
    let text = std::fs::read_to_string(file)?;
    let rounds: u32 = args.get(3).map_or(Ok(7), |n| n.parse())?;
    for &pattern in Pattern::ALL {
        let Some(rules) = pattern.rules() else { continue };
        if args.get(1).is_some_and(|name| name != pattern.name() && name != "all") {
            continue;
        }
        for backend in Backend::ALL {
            let name = format!("{backend:?}").to_lowercase();
            if args.get(2).is_some_and(|wanted| *wanted != name && wanted != "all") {
                continue;
            }
            let Some(scanner) = Scanner::with_backend(rules, backend) else { continue };
            let (mut best, mut pieces) = (f64::INFINITY, 0);
            for _ in 0..rounds {
                let start = Instant::now();
                pieces = timed(&scanner, &text);
                best = best.min(start.elapsed().as_secs_f64());
            }
            let speed = text.len() as f64 / best / 1e6;
            println!("{:10} {name:8} {pieces:9} pieces {speed:7.0} MB/s", pattern.name());
        }
    }
    Ok(())
}

#[inline(never)]
fn timed(scanner: &Scanner, text: &str) -> usize {
    let mut pieces = 0;
    scanner.split_batches(text, &mut |batch| pieces += black_box(batch).len());
    pieces
}
