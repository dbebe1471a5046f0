//! How fast a published encoding encodes a text on one thread, in MB (1,000,000 bytes) a second of
//! processor time.
//!
//! ```sh
//! cargo run --release -p tokenizer --example speed -- cl100k_base TEXT [IDS] [ROUNDS] [OTHER] [MEMORY]
//! ```
//!
//! IDS is a file of the ids that the text has, as little-endian numbers of 4 bytes; nothing is
//! measured before ours equal them. MEMORY is how many MB a session remembers. `-` leaves the check, or
//! OTHER, out. The figures are
//!
//! - first: a session that has seen 950,000 characters of another text, OTHER, encodes the whole text
//!   once; without OTHER it has seen the first ones of the text, each line backwards, which no memory
//!   is made for;
//! - later: the same session encodes it again;
//! - reused: again, into the vector that already holds the ids, so that no page of it is new;
//! - docs: a session encodes the text once more in documents of about 2,000 bytes;
//! - count, offsets, encoding: as later, for the number of tokens alone, for ids with offsets, and
//!   for whole encodings.

use std::time::Instant;

use testkit::clock::thread_seconds;
use tokenizer::{EncodeOptions, Policy, Session, SessionOptions, TiktokenEncoding, Tokenizer};
use tokenizer_core::TokenId;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [encoding, path, rest @ ..] = &args[..] else {
        panic!("usage: speed ENCODING TEXT [IDS] [ROUNDS]");
    };
    let encoding = TiktokenEncoding::from_name(encoding).expect("a published encoding");
    let text = std::fs::read_to_string(path).expect("a text that can be read");
    let rounds: usize = rest.get(1).map_or(5, |rounds| rounds.parse().expect("a number of rounds"));
    let start = Instant::now();
    let tokenizer = Tokenizer::from_encoding(encoding);
    let built = start.elapsed();
    let first_ids = tokenizer.ids("hello world").len();
    println!(
        "{{\"load_ms\": {:.2}, \"first_token_ms\": {:.2}, \"tokens\": {first_ids}}}",
        built.as_secs_f64() * 1e3,
        start.elapsed().as_secs_f64() * 1e3
    );
    let ids = tokenizer.ids(&text);
    if let Some(reference) = rest.first().filter(|path| *path != "-") {
        let reference = std::fs::read(reference).expect("ids that can be read");
        let (words, _) = reference.as_chunks::<4>();
        let expected = words.iter().map(|&word| TokenId(u32::from_le_bytes(word)));
        if let Some(at) = ids.iter().copied().zip(expected).position(|(a, b)| a != b) {
            panic!("ids differ from place {at} on");
        }
        assert_eq!(ids.len(), words.len(), "as many ids");
    }
    let documents = documents(&text);
    let mut options = SessionOptions::new();
    if let Some(megabytes) = rest.get(3) {
        options = options.memory(megabytes.parse::<usize>().expect("a number of MB") << 20);
    }
    let other: String = match rest.get(2).filter(|path| *path != "-") {
        Some(path) => {
            let other = std::fs::read_to_string(path).expect("another text that can be read");
            other.chars().take(WARM).collect()
        }
        None => {
            let head: String = text.chars().take(WARM).collect();
            head.lines().rev().map(|line| line.chars().rev().collect::<String>()).collect()
        }
    };
    for _ in 0..rounds {
        let session = tokenizer.session_with(&options);
        measure(session, &text, &documents, &other, ids.len());
    }
}

/// So many characters are encoded before anything is measured.
const WARM: usize = 950_000;

fn measure(mut session: Session<'_>, text: &str, documents: &[&str], other: &str, count: usize) {
    let megabytes = text.len() as f64 / 1e6;
    let speed = |work: &mut dyn FnMut() -> usize, expected: usize| {
        let start = thread_seconds();
        let got = work();
        let speed = megabytes / (thread_seconds() - start);
        assert_eq!(got, expected, "every round gives as many tokens");
        speed
    };
    session.ids_into(other, &mut Vec::new());
    let mut fresh = || {
        let mut ids = Vec::new();
        session.ids_into(text, &mut ids);
        ids.len()
    };
    let first = speed(&mut fresh, count);
    let later = speed(&mut fresh, count);
    let mut ids: Vec<TokenId> = Vec::new();
    session.ids_into(text, &mut ids);
    let reused = speed(
        &mut || {
            ids.clear();
            session.ids_into(text, &mut ids);
            ids.len()
        },
        count,
    );
    let mut docs_count = 0;
    let docs = speed(
        &mut || {
            for document in documents {
                let mut ids = Vec::new();
                session.ids_into(document, &mut ids);
                docs_count += ids.len();
            }
            0
        },
        0,
    );
    let counted = speed(&mut || session.count(text), count);
    let mut offsets_of = || {
        let (mut ids, mut offsets) = (Vec::new(), Vec::new());
        let run = session.ids_with_offsets_into(text, &Policy::Ordinary, &mut ids, &mut offsets);
        run.map_or(0, |()| offsets.len())
    };
    let offsets = speed(&mut offsets_of, count);
    let options = EncodeOptions::new();
    let tokens =
        speed(&mut || session.encode(text, &options).map_or(0, |encoding| encoding.len()), count);
    println!(
        "{{\"first\": {first:.1}, \"later\": {later:.1}, \"reused\": {reused:.1}, \"docs\": {docs:.1}, \
         \"count\": {counted:.1}, \"offsets\": {offsets:.1}, \"encoding\": {tokens:.1}}}"
    );
}

/// Pieces of at least 2,000 bytes that end with a line.
fn documents(text: &str) -> Vec<&str> {
    let mut documents = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices('\n') {
        if at + 1 - start >= 2000 {
            documents.push(&text[start..=at]);
            start = at + 1;
        }
    }
    documents.push(&text[start..]);
    documents
}
