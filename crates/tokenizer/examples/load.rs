//! What a tokenizer costs until the first token, and in memory, in a process of its own.
//!
//! ```sh
//! cargo run --release -p tokenizer --example load -- o200k_base [TEXT]
//! cargo run --release -p tokenizer --example load -- path/to/tokenizer.json [TEXT]
//! ```
//!
//! Prints one line of JSON: the wall time and the processor time from nothing, or from a file that
//! was read, to the ids of "hello world", the resident memory that this added, and with a TEXT what a
//! session added that has encoded all of it. Repeat it: the first process pays for reading the program
//! from disk. Valgrind counts the same work with `--toggle-collect='*load_and_encode*'`.

use std::time::Instant;

use testkit::clock::process_seconds;
use tokenizer::{LoadOptions, Session, TiktokenEncoding, Tokenizer};
use tokenizer_core::TokenId;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, rest @ ..] = &args[..] else { panic!("usage: load ENCODING|FILE [TEXT]") };
    let encoding = TiktokenEncoding::from_name(name);
    let file = match encoding {
        Some(_) => Vec::new(),
        None => std::fs::read(name).expect("a published encoding or a readable file"),
    };
    let text = rest.first().map(|path| std::fs::read_to_string(path).expect("a readable text"));
    let mut ids: Vec<TokenId> = Vec::with_capacity(text.as_ref().map_or(16, String::len));

    let (resident, cpu, start) = (resident_kb(), process_seconds(), Instant::now());
    let mut loaded = None;
    let (tokenizer, mut session) = load_and_encode(encoding, &file, &mut loaded, &mut ids);
    let (wall, cpu_after) = (start.elapsed().as_secs_f64() * 1e3, process_seconds());
    assert!(encoding.is_none() || ids.len() == 2, "two words");
    let resident_loaded = resident_kb();
    print!("{{\"wall_ms\": {wall:.2}, \"cpu_ms\": {:.2}", (cpu_after - cpu) * 1e3);
    let print_memory = |name: &str, before: Option<u64>, after: Option<u64>| {
        if let (Some(before), Some(after)) = (before, after) {
            print!(", \"{name}_mb\": {:.1}", after.saturating_sub(before) as f64 / 1024.0);
        }
    };
    print_memory("loaded", resident, resident_loaded);
    if let Some(text) = text {
        // Batches of ids, so that those of the whole text are no part of what is measured.
        for line in text.split_inclusive('\n') {
            ids.clear();
            session.ids_into(line, &mut ids);
        }
        let encoded = resident_kb();
        print_memory("loaded_and_used", resident, encoded);
        let mut second = tokenizer.session();
        for line in text.split_inclusive('\n') {
            ids.clear();
            second.ids_into(line, &mut ids);
        }
        print_memory("second_session", encoded, resident_kb());
    }
    println!("}}");
}

/// What is measured.
#[inline(never)]
fn load_and_encode<'t>(
    encoding: Option<TiktokenEncoding>,
    file: &[u8],
    loaded: &'t mut Option<Tokenizer>,
    ids: &mut Vec<TokenId>,
) -> (&'t Tokenizer, Session<'t>) {
    let tokenizer = loaded.insert(match encoding {
        Some(encoding) => Tokenizer::from_encoding(encoding),
        None => Tokenizer::from_file(file, &LoadOptions::default()).expect("a vocabulary"),
    });
    let mut session = tokenizer.session();
    session.ids_into("hello world", ids);
    (tokenizer, session)
}

/// The resident memory of this process in kilobytes, where the kernel tells.
fn resident_kb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
