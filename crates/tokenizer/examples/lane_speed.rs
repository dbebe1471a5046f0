//! How fast a tokenizer gives ids, in MB/s of one thread (and of its processor time, where the
//! system tells it): of a whole text never seen before, of
//! the same again, and of documents of about 2 KB.
//!
//! ```sh
//! cargo run --release -p tokenizer --example lane_speed -- TOKENIZER TEXT [IDS]
//! ```
//!
//! `IDS` holds the right ids of the whole text as little-endian words of 32 bits; they are compared
//! before anything is measured. Without them the ids are compared with those of an encoding with
//! offsets.

use std::error::Error;
use std::time::Instant;

use testkit::clock::thread_seconds;
use tokenizer::{EncodeOptions, LoadOptions, Tokenizer};
use tokenizer_core::TokenId;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (tokenizer, text, ids) = match &arguments[..] {
        [tokenizer, text] => (tokenizer, text, None),
        [tokenizer, text, ids] => (tokenizer, text, Some(ids)),
        _ => return Err("usage: lane_speed TOKENIZER TEXT [IDS]".into()),
    };
    let started = Instant::now();
    let tokenizer = Tokenizer::from_file(&std::fs::read(tokenizer)?, &LoadOptions::default())?;
    let load = started.elapsed();
    let text = std::fs::read_to_string(text)?;
    let expected: Vec<TokenId> = match ids {
        Some(ids) => {
            let bytes = std::fs::read(ids)?;
            let (words, _) = bytes.as_chunks();
            words.iter().map(|word| TokenId(u32::from_le_bytes(*word))).collect()
        }
        None => tokenizer.encode(&text, &EncodeOptions::new())?.ids,
    };
    let found = tokenizer.ids(&text);
    if found != expected {
        let at = found.iter().zip(&expected).take_while(|(a, b)| a == b).count();
        let around = at.saturating_sub(3);
        return Err(format!(
            "{} ids and {} expected; from {around} on {:?} where {:?} should be",
            found.len(),
            expected.len(),
            &found[around..found.len().min(at + 5)],
            &expected[around..expected.len().min(at + 5)],
        )
        .into());
    }

    let megabytes = text.len() as f64 / 1e6;
    let documents = documents(&text);
    let mut rates = [vec![], vec![], vec![], vec![]];
    let mut ids = Vec::with_capacity(text.len() / 2);
    for _ in 0..5 {
        let mut session = tokenizer.session();
        let measure = |rates: &mut Vec<f64>, work: &mut dyn FnMut()| {
            let started = thread_seconds();
            work();
            rates.push(megabytes / (thread_seconds() - started));
        };
        for rates in &mut rates[..2] {
            ids.clear();
            measure(rates, &mut || session.ids_into(&text, &mut ids));
        }
        measure(&mut rates[2], &mut || {
            for document in &documents {
                ids.clear();
                session.ids_into(document, &mut ids);
            }
        });
        measure(&mut rates[3], &mut || {
            assert_eq!(session.count(&text), expected.len());
        });
    }
    let [first, later, short, count] = rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    });
    println!(
        "lane {}, load {:.1} ms; MB/s: first {first:.0}, later {later:.0}, 2 KB documents {short:.0}, count {count:.0}",
        tokenizer.has_lane(),
        load.as_secs_f64() * 1e3,
    );
    Ok(())
}

/// The text in pieces of about 2 KB, cut behind a line if there is one.
fn documents(text: &str) -> Vec<&str> {
    let mut documents = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut end = rest.len().min(2048);
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        if end < rest.len()
            && let Some(line) = rest[..end].rfind('\n')
            && line > 0
        {
            end = line + 1;
        }
        let (document, behind) = rest.split_at(end);
        documents.push(document);
        rest = behind;
    }
    documents
}
