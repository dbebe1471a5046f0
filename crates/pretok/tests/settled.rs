//! What a splitter says of the end of a text, tried on all short texts over characters that steps
//! look ahead for.

use pretok::{Pattern, Rules, Scanner};
use testkit::texts;
use tokenizer_core::{Rng, Span, Split};

/// One character of every class, and the letters of a contraction.
const FEW: [char; 15] =
    ['s', 'l', 'L', 'ʰ', '\u{301}', '中', '1', ' ', '\n', '\t', '\'', '/', '!', '〇', '\0'];

/// All strings over `alphabet` of exactly `len` characters.
fn each_string(alphabet: &[char], len: u32, mut check: impl FnMut(&str)) {
    let mut text = String::new();
    for mut i in 0..alphabet.len().pow(len) {
        text.clear();
        for _ in 0..len {
            text.push(alphabet[i % alphabet.len()]);
            i /= alphabet.len();
        }
        check(&text);
    }
}

/// Checks every way to cut `text` into what came and what follows; gives the most pieces at the
/// end of the first that the second changed.
fn changed(split: &dyn Split, text: &str) -> usize {
    let whole = split.split(text);
    let mut most = 0;
    for (at, _) in text.char_indices() {
        let front = split.split(&text[..at]);
        let same = front.iter().zip(&whole).take_while(|(a, b)| a == b).count();
        most = most.max(front.len() - same);
    }
    most
}

/// The text behind any piece must split alone as it does behind it.
fn check_behind_each_piece(split: &dyn Split, text: &str) {
    let whole = split.split(text);
    for (i, piece) in whole.iter().enumerate() {
        let rest: Vec<Span> =
            split.split(&text[piece.end..]).iter().map(|s| s.shifted(piece.end)).collect();
        assert_eq!(rest, whole[i + 1..], "behind piece {i} of {text:?}");
    }
}

#[test]
fn one_or_two_pieces_are_unsettled() {
    for &pattern in Pattern::ALL {
        if Pattern::from_stages(pattern.stages()) != Some(pattern) {
            continue; // The same as one before.
        }
        let splitter = pattern.splitter();
        let mut most = 0;
        each_string(&FEW, 4, |text| {
            check_behind_each_piece(splitter.as_ref(), text);
            most = most.max(changed(splitter.as_ref(), text));
        });
        // Fewer characters, longer strings.
        each_string(&['l', 'L', 'ʰ', ' ', '\n', '\''], 6, |text| {
            most = most.max(changed(splitter.as_ref(), text));
        });
        for (_, text) in texts::AWKWARD {
            most = most.max(changed(splitter.as_ref(), text));
        }
        assert_eq!(splitter.unsettled(), Some(2), "{pattern}");
        // cl100k keeps white space at the end of a text together, and its apostrophes with the
        // letter: nothing there changes two pieces.
        assert_eq!(most, if pattern == Pattern::Cl100k { 1 } else { 2 }, "{pattern}");
    }
}

#[test]
fn splitters_without_a_pattern_keep_their_promise() {
    let mut few = FEW;
    few[3] = '▁';
    for name in ["chars", "fixed2", "whitespace", "words", "bert", "metaspace", "space-prefix"] {
        let splitter = pretok::from_spec(name).unwrap();
        let most = splitter.unsettled().expect(name);
        let mut seen = 0;
        each_string(&few, 4, |text| {
            check_behind_each_piece(&splitter, text);
            seen = seen.max(changed(&splitter, text));
        });
        assert_eq!(seen, most, "{name}");
        // Several, of which some promise nothing.
        assert_eq!(pretok::from_spec(&format!("{name},digits")).unwrap().unsettled(), None);
    }
}

#[test]
fn no_rules_promise_too_much() {
    let mut rng = Rng::new(1);
    for _ in 0..100 {
        let rules = Rules::numbered(rng.below(Rules::COUNT as u64) as usize);
        let scanner = Scanner::new(rules);
        let most = scanner.unsettled().expect("a scanner knows");
        each_string(&FEW, 3, |text| assert!(changed(&scanner, text) <= most, "{text:?} {rules:?}"));
        each_string(&['l', 'L', 'ʰ', ' ', '\n', '\''], 5, |text| {
            check_behind_each_piece(&scanner, text);
            assert!(changed(&scanner, text) <= most, "{text:?} {rules:?}");
        });
    }
}
