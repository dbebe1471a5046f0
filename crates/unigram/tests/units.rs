//! A text unit by unit, with paths that are kept, is the text at once.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

use std::collections::HashMap;

use tokenizer_core::{Rng, Token, TokenId, TokenKind, Vocab};
use unigram::{Compat, Unigram, UnigramOptions, UnitSession, naive};

/// A model over `_` (which only begins tokens), a, b, c and é, with scores of a few values, so
/// that sums are often equal or nearly so.
fn random_model(rng: &mut Rng) -> Unigram {
    let mut vocab = Vocab::builder();
    let mut scores = vec![0.0];
    vocab.push(b"<unk>", TokenKind::Unknown).unwrap();
    let byte_fallback = rng.below(3) == 0;
    if byte_fallback {
        for byte in 0..=255 {
            vocab.push(&[byte], TokenKind::Byte).unwrap();
            scores.push(0.0);
        }
    }
    let near = [0.0, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01][rng.below(7) as usize];
    let mut push = |text: &str, kind, rng: &mut Rng| {
        if vocab.push(text.as_bytes(), kind).is_ok() {
            let len = text.chars().count() as f64;
            let noise = (rng.below(7) as f64 - 3.0) * near;
            scores.push(-(1.0 + rng.below(2) as f64) * len / 3.0 + noise);
        }
    };
    push("_", TokenKind::Normal, rng);
    for _ in 0..rng.below(40) {
        let mut text = String::new();
        if rng.below(3) == 0 {
            text.push('_');
        }
        for _ in 0..1 + rng.below(3) {
            text.push(['a', 'b', 'c', 'é'][rng.below(4) as usize]);
        }
        let kind = if rng.below(12) == 0 { TokenKind::UserDefined } else { TokenKind::Normal };
        push(&text, kind, rng);
    }
    let mut options = UnigramOptions::default();
    options.byte_fallback = byte_fallback;
    options.fuse_unk = rng.below(4) > 0;
    Unigram::new(vocab.build(), scores, options).unwrap()
}

fn random_unit(rng: &mut Rng) -> String {
    let mut unit = String::from("_");
    for _ in 0..rng.below(9) {
        unit.push(['a', 'b', 'c', 'é', 'z'][rng.below(5) as usize]);
    }
    unit
}

/// The ids of all units, with the certified paths kept from unit to unit; and how many times a
/// kept path was taken and was refused.
fn by_units(model: &Unigram, units: &[String]) -> (Vec<TokenId>, usize, usize) {
    let mut session = UnitSession::new(model).unwrap();
    let mut kept: HashMap<&str, (f32, Vec<Token>)> = HashMap::new();
    let (mut ids, mut sum, mut taken, mut refused) = (Vec::new(), 0.0f32, 0, 0);
    for unit in units {
        let (limit, steps) = kept.entry(unit).or_insert_with(|| {
            let mut steps = Vec::new();
            (session.certify(unit.as_bytes(), &mut steps), steps)
        });
        if sum.abs() < *limit {
            ids.extend(steps.iter().map(|step| step.id));
            sum = session.replay(sum, steps);
            taken += 1;
        } else {
            let mut tokens = Vec::new();
            sum = session.encode(unit.as_bytes(), sum, &mut tokens);
            ids.extend(tokens.iter().map(|token| token.id));
            refused += 1;
        }
    }
    (ids, taken, refused)
}

fn check(model: &Unigram, units: &[String]) -> (usize, usize) {
    let text = units.concat();
    let expected: Vec<TokenId> =
        naive::encode(model, text.as_bytes()).iter().map(|token| token.id).collect();
    let (ids, taken, refused) = by_units(model, units);
    assert_eq!(ids, expected, "{text}");
    (taken, refused)
}

#[test]
fn units_with_scores_near_ties_are_the_whole_text() {
    let mut rng = Rng::new(17);
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..400 {
        let model = random_model(&mut rng);
        let few: Vec<String> = (0..6).map(|_| random_unit(&mut rng)).collect();
        let units: Vec<String> = (0..rng.below(400))
            .map(|_| match rng.below(3) {
                0 => random_unit(&mut rng),
                _ => few[rng.below(6) as usize].clone(),
            })
            .collect();
        let (t, r) = check(&model, &units);
        taken += t;
        refused += r;
    }
    // Both ways are well trodden.
    assert!(taken > 10_000 && refused > 5_000, "{taken} taken, {refused} refused");
}

/// The sum goes far from 0, where a unit splits otherwise than at the beginning, and passes the
/// place where it is moved back.
#[test]
fn long_texts_split_as_the_sum_says() {
    let mut rng = Rng::new(23);
    for round in 0..6 {
        let mut vocab = Vocab::builder();
        let mut scores = vec![0.0];
        vocab.push(b"<unk>", TokenKind::Unknown).unwrap();
        for (text, score) in [
            ("_", -40.0),
            ("_a", -41.0),
            ("a", -11.5),
            ("b", -9.25),
            ("ab", -20.7512),
            ("ba", -20.7499),
            ("_ab", -50.251),
            ("aba", -32.251),
        ] {
            vocab.push(text.as_bytes(), TokenKind::Normal).unwrap();
            scores.push(score + rng.below(3) as f64 * 1e-4);
        }
        let model = Unigram::new(vocab.build(), scores, UnigramOptions::default()).unwrap();
        let units: Vec<String> = (0..3000)
            .map(|_| {
                let mut unit = String::from("_");
                (0..rng.below(7)).for_each(|_| unit.push(['a', 'b'][rng.below(2) as usize]));
                unit
            })
            .collect();
        let (taken, refused) = check(&model, &units);
        assert!(taken > 100 && refused > 100, "round {round}: {taken} taken, {refused} refused");
    }
}

#[test]
fn one_unit_splits_otherwise_far_from_zero() {
    let mut vocab = Vocab::builder();
    vocab.push(b"<unk>", TokenKind::Unknown).unwrap();
    // "ab|c" is better than "a|bc" by 0.0001.
    let tokens = [("_", -1.0), ("a", -5.0), ("bc", -5.0001), ("ab", -4.0), ("c", -6.0)];
    for (text, _) in tokens {
        vocab.push(text.as_bytes(), TokenKind::Normal).unwrap();
    }
    let scores = std::iter::once(0.0).chain(tokens.map(|token| token.1)).collect();
    let model = Unigram::new(vocab.build(), scores, UnigramOptions::default()).unwrap();
    let mut session = UnitSession::new(&model).unwrap();
    let mut steps = Vec::new();
    let limit = session.certify(b"_abc", &mut steps);
    assert_eq!(steps.iter().map(|step| step.id.0).collect::<Vec<_>>(), [1, 4, 5]);
    // 0.0001 / (8 * 2^-24), less the worst candidate (with "b" as an unknown character).
    assert!((170.0..200.0).contains(&limit), "{limit}");
    let mut tokens = Vec::new();
    session.encode(b"_abc", 90_000.0, &mut tokens);
    assert_eq!(tokens.iter().map(|token| token.id.0).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn other_modes_have_no_units() {
    for compat in [Compat::SentencePiece021, Compat::HuggingFace] {
        let mut options = UnigramOptions::default();
        options.compat = compat;
        let model = Unigram::new(Vocab::builder().build(), Vec::new(), options).unwrap();
        assert!(UnitSession::new(&model).is_none());
    }
}
