//! Token counts and metrics against libraries that are not ours. `independent/make.py` made the
//! models and the expected values, and says with which versions.

use std::collections::BTreeMap;
use std::path::PathBuf;

use harness::metrics::{Document, Placed, Profile, Ratio, Tally, TextFacts, TokenCosts, premium};
use harness::stats::{gini, renyi_efficiency, renyi_entropy};
use serde::Deserialize;
use tokenizer::{LoadOptions, Tokenizer};
use tokenizer_core::{Span, Vocab};

#[derive(Deserialize)]
struct Expected {
    made_by: BTreeMap<String, String>,
    groups: BTreeMap<String, Group>,
    premiums: BTreeMap<String, f64>,
    gini: f64,
    unigram_tokens: BTreeMap<String, Vec<usize>>,
}

#[derive(Deserialize)]
struct Group {
    documents: u64,
    bytes: u64,
    tokens: u64,
    tokens_of_documents: Vec<usize>,
    renyi_over_observed: f64,
    renyi_over_vocabulary: f64,
    shannon_entropy_bits: f64,
    vocab_use: f64,
    length_quantiles: [usize; 4],
    digit_consistency: Option<f64>,
    digit_alignment: Option<f64>,
    /// The rest: ratios by their names in JSON.
    #[serde(flatten)]
    ratios: BTreeMap<String, f64>,
}

fn file(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/independent").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn expected() -> Expected {
    serde_json::from_slice(&file("expected.json")).expect("the form that make.py writes")
}

fn tokenizer(name: &str) -> Tokenizer {
    Tokenizer::from_file(&file(name), &LoadOptions::default()).expect("a model of its library")
}

/// The documents of a group, as make.py takes them.
fn documents(group: &str) -> Vec<String> {
    let lines = |path: &str, most: usize| -> Vec<String> {
        let text = testkit::fixtures::text(path);
        text.split('\n').filter(|line| !line.is_empty()).take(most).map(str::to_owned).collect()
    };
    match group {
        "code" => {
            let text = testkit::fixtures::text("corpora/code/python/attrs.py");
            let end = 20_000 + text[20_000..].find('\n').expect("it is longer") + 1;
            vec![text[..end].to_owned()]
        }
        "emoji" | "arithmetic" => lines(&format!("corpora/generated/{group}.txt"), 300),
        language => lines(&format!("corpora/parallel/udhr/{language}.txt"), usize::MAX),
    }
}

/// The tokens of a byte-level model, which cover every byte.
fn placed(tokenizer: &Tokenizer, text: &str) -> Vec<Placed> {
    let mut end = 0;
    let mut place = |id| {
        let len = tokenizer.vocab().bytes(id).expect("it gave the id").len();
        end += len;
        Placed { id, span: Span::new(end - len, end) }
    };
    let tokens: Vec<Placed> = tokenizer.ids(text).into_iter().map(&mut place).collect();
    assert_eq!(end, text.len(), "the tokens tile {text:?}");
    tokens
}

fn measured(tokenizer: &Tokenizer, group: &str, costs: &TokenCosts) -> (Profile, Vec<usize>) {
    let vocab: &Vocab = tokenizer.vocab();
    let mut profile = Profile::new(vocab.len());
    let mut counts = Vec::new();
    for text in documents(group) {
        let tokens = placed(tokenizer, &text);
        let facts = TextFacts::in_language(&text, group);
        let facts = if group == "code" { facts.with_code(&text) } else { facts };
        let pieces = [Span::new(0, text.len())];
        let document = Document { text: &text, pieces: &pieces, tokens: &tokens };
        let tally = Tally::of(&document, &facts, vocab).priced(costs.of(&document, vocab), None);
        profile.add_counted(&document, &facts, &tally);
        counts.push(tokens.len());
    }
    (profile, counts)
}

#[track_caller]
fn close(found: f64, expected: f64, what: &str) {
    // Costs are kept in millionths of a bit.
    let tolerance = if what.ends_with("bits_per_byte") { 1e-6 } else { 1e-9 };
    assert!(
        (found - expected).abs() <= tolerance * expected.abs().max(1.0),
        "{what}: {found}, expected {expected}"
    );
}

#[test]
fn every_metric_is_what_other_libraries_compute() {
    let expected = expected();
    assert!(expected.made_by.contains_key("tokenization-scorer"));
    let bpe = tokenizer("bpe.json");
    let vocab_len = bpe.vocab().len();
    // The distribution of the English text.
    let mut seen = vec![0u64; vocab_len];
    for text in documents("en") {
        placed(&bpe, &text).iter().for_each(|token| seen[token.id.index()] += 1);
    }
    let costs = TokenCosts::estimate(&seen, bpe.vocab());
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    let mut compared = 0;
    for (name, group) in &expected.groups {
        let (profile, counts) = measured(&bpe, name, &costs);
        let tally = profile.tally;
        assert_eq!(counts, group.tokens_of_documents, "{name}");
        assert_eq!(
            (tally.documents, tally.bytes, tally.tokens),
            (group.documents, group.bytes, group.tokens),
            "{name}"
        );
        for (key, &value) in &group.ratios {
            let ratio = Ratio::ALL.iter().find(|ratio| ratio.key() == key);
            let ratio = ratio.unwrap_or_else(|| panic!("there is no ratio {key}"));
            let found = ratio.of(&tally).unwrap_or_else(|| panic!("{name} has no {key}"));
            close(found, value, &format!("{name} {key}"));
            compared += 1;
        }
        let counts = || profile.occurrences.iter().copied();
        let used = counts().filter(|&n| n > 0).count();
        let observed = renyi_efficiency(counts(), 2.5, used).expect("some tokens");
        close(observed, group.renyi_over_observed, name);
        let whole = profile.renyi_efficiency().expect("some tokens");
        close(whole, group.renyi_over_vocabulary, name);
        let bits = renyi_entropy(counts(), 1.0) / std::f64::consts::LN_2;
        close(bits, group.shannon_entropy_bits, name);
        close(profile.vocab_use().expect("some tokens"), group.vocab_use, name);
        let quantiles = [0.05, 0.5, 0.95, 1.0].map(|q| profile.lengths.quantile(q).unwrap());
        assert_eq!(quantiles, group.length_quantiles, "{name}");
        for (found, expected) in [
            (profile.digits.consistency(), group.digit_consistency),
            (profile.digits.right_aligned(), group.digit_alignment),
        ] {
            assert_eq!(found.is_some(), expected.is_some(), "{name}");
            close(found.unwrap_or(0.0), expected.unwrap_or(0.0), name);
        }
        tallies.insert(name, tally);
    }
    assert!(compared >= 90, "{compared} ratios were compared");
    for (language, &expected) in &expected.premiums {
        let found = premium(&tallies[language.as_str()], &tallies["en"]).expect("English has text");
        close(found, expected, language);
    }
    let sums: Vec<f64> =
        expected.premiums.keys().map(|l| tallies[l.as_str()].tokens as f64).collect();
    close(gini(&sums).expect("some tokens"), expected.gini, "Gini coefficient");
}

#[test]
fn tokens_of_a_unigram_model_are_as_many_as_its_library_counts() {
    let unigram = tokenizer("unigram.model");
    for (language, expected) in &expected().unigram_tokens {
        let counts: Vec<usize> =
            documents(language).iter().map(|line| unigram.count(line)).collect();
        assert_eq!(counts, *expected, "{language}");
    }
}
