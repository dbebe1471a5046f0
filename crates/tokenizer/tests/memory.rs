//! How much memory bad files take: an allocator that counts says it. A file may claim what it
//! likes; what is allocated goes by what it holds.

#![allow(clippy::unwrap_used)] // A test's unwrap is its assertion.
#![allow(unsafe_code)] // An allocator that counts has to be one.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use formats::sentencepiece::SentencePieceModel;
use formats::tiktoken;
use tokenizer::{LoadOptions, RanksSetup, Tokenizer};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: everything is passed on to the system's allocator as it came; the counters are atomic.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller keeps to the contract of `alloc`, which is the same one.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the pointer came from `System.alloc` with this layout, as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// The most bytes that are allocated at a time while `run` runs, beside those before. The only test
/// of this file calls it, so that no other thread allocates.
fn peak_of<T>(run: impl FnOnce() -> T) -> (usize, T) {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = run();
    (PEAK.load(Ordering::Relaxed).saturating_sub(before), result)
}

fn varint(mut n: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while n >= 0x80 {
        bytes.push(n as u8 | 0x80);
        n >>= 7;
    }
    bytes.push(n as u8);
    bytes
}

fn gguf(value: &[&[u8]]) -> Vec<u8> {
    let key = b"tokenizer.ggml.tokens";
    let head = [&b"GGUF"[..], &3u32.to_le_bytes(), &0u64.to_le_bytes(), &1u64.to_le_bytes()];
    [head.concat(), (key.len() as u64).to_le_bytes().to_vec(), key.to_vec(), value.concat()]
        .concat()
}

fn model(more: &str) -> Vec<u8> {
    format!(r#"{{"model": {{"type": "BPE", "vocab": {{"a": 0}}, "merges": []}}{more}}}"#).into()
}

fn ranks(last: &str) -> Vec<u8> {
    let bytes = (0..=255u8).map(|byte| format!("{} {byte}\n", tiktoken::encode_token(&[byte])));
    (bytes.collect::<String>() + last).into()
}

/// Files that claim a great deal, what the error says of it, and nothing that they hold.
fn hostile() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let piece_of_2_gigabytes = [vec![0x0A], varint((1 << 31) - 1), b"\x0A\x01a".to_vec()].concat();
    let piece_of_a_terabyte = [vec![0x0A], varint(1 << 40), b"\x0A\x01a".to_vec()].concat();
    let charsmap = [
        b"\x0A\x0E\x0A\x05<unk>\x15\0\0\0\0\x18\x02".to_vec(),
        [vec![0x1A, 0x0C, 0x12, 0x0A], u32::MAX.to_le_bytes().to_vec(), vec![0; 6]].concat(),
    ]
    .concat();
    let strings = 8u32.to_le_bytes();
    let array = 9u32.to_le_bytes();
    let nested = r#"{"type": "Sequence", "normalizers": ["#.repeat(40_000);
    let regex = |pattern: &str| {
        model(&format!(
            r#", "pre_tokenizer": {{"type": "Split", "pattern": {{"Regex": "{pattern}"}}, "behavior": "Isolated", "invert": false}}"#
        ))
    };
    let padding = |fields: &str| {
        model(&format!(
            r#", "padding": {{"direction": "Right", "pad_id": 0, "pad_type_id": 0, "pad_token": "a", {fields}}}"#
        ))
    };
    vec![
        ("protobuf: a piece of 2 GB", piece_of_2_gigabytes, "2147483647"),
        ("protobuf: a piece of 1 TB", piece_of_a_terabyte, "1099511627776"),
        ("protobuf: a charsmap of 4 GB", charsmap, "4294967295"),
        (
            "GGUF: 2^40 tokens",
            gguf(&[&array, &strings, &(1u64 << 40).to_le_bytes(), &1u64.to_le_bytes(), b"a"]),
            "byte",
        ),
        (
            "GGUF: a token of 2^60 bytes",
            gguf(&[&array, &strings, &1u64.to_le_bytes(), &(1u64 << 60).to_le_bytes(), b"a"]),
            "1152921504606846976",
        ),
        ("JSON: brackets", model(&format!(", \"more\": {}", "[".repeat(400_000))), "127"),
        ("JSON: normalizers in normalizers", model(&format!(", \"normalizer\": {nested}")), "127"),
        ("JSON: an id", replaced(&model(""), b": 0", b": 4294967295"), "16777215"),
        ("JSON: a gap of ids", replaced(&model(""), b": 0}", b": 0, \"b\": 16777215}"), "1048576"),
        ("JSON: a pattern of 10^9 repeats", regex("(?:a{1000}){1000}{1000}"), "pattern"),
        ("JSON: padding to a length", padding(r#""strategy": {"Fixed": 1000000000000}"#), "1048576"),
        ("JSON: padding to a multiple", padding(r#""strategy": "BatchLongest", "pad_to_multiple_of": 1000000000000"#), "1048576"),
        ("ranks: the last rank", ranks("YWI= 4294967295\n"), "line 257"),
        ("ranks: a gap", ranks("YWI= 16777215\n"), "1048576"),
        (
            "tekken.json: sizes",
            br#"{"config": {"pattern": "a", "num_vocab_tokens": 4294967295, "default_vocab_size": 4294967295, "default_num_special_tokens": 4294967000}, "vocab": [{"rank": 0, "token_bytes": "AA=="}], "special_tokens": []}"#.to_vec(),
            "line 1",
        ),
    ]
}

fn replaced(file: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = file.windows(from.len()).position(|bytes| bytes == from).unwrap();
    [&file[..at], to, &file[at + from.len()..]].concat()
}

#[test]
fn memory_goes_by_what_a_file_holds_and_not_by_what_it_claims() {
    let mut options = LoadOptions::default();
    options.ranks = Some(RanksSetup { pattern: r"\w+|\W".to_owned(), special_tokens: Vec::new() });
    for (name, file, words) in hostile() {
        let read = || match name.split_once(':') {
            // What the format is cannot be told of so broken a file.
            Some(("protobuf", _)) => {
                let model = SentencePieceModel::parse(&file).map_err(|error| error.to_string())?;
                Tokenizer::from_sentencepiece(&model).map_err(|error| error.to_string())
            }
            _ => Tokenizer::from_file(&file, &options).map_err(|error| error.to_string()),
        };
        let (peak, result) = peak_of(read);
        println!("{name}: {peak} bytes for a file of {}: {result:?}", file.len());
        let error = result.err().unwrap_or_else(|| panic!("{name} loads"));
        assert!(error.contains(words), "{name}: {error:?} does not say {words:?}");
        // Compilers of regular expressions have limits of their own.
        let limit = if words == "pattern" { 32 << 20 } else { (1 << 20) + 8 * file.len() };
        assert!(peak < limit, "{name}: {peak} bytes, more than {limit}");
    }
    // What is held in earnest takes a few times its bytes.
    let tokens: Vec<String> = (0..50_000)
        .map(|i| {
            format!(
                r#"{{"id": {}, "content": "<extra_{i}>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": false}}"#,
                i + 1
            )
        })
        .collect();
    let file = model(&format!(r#", "added_tokens": [{}]"#, tokens.join(",")));
    let (peak, tokenizer) = peak_of(|| Tokenizer::from_file(&file, &options).unwrap());
    println!("50,000 added tokens: {peak} bytes for a file of {}", file.len());
    assert_eq!(tokenizer.vocab_len(), 50_001);
    assert!(peak < 8 * file.len(), "{peak} bytes for a file of {}", file.len());
}
