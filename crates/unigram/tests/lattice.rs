//! n-best, sampling, likelihood and explanation against enumeration of all segmentations.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

use std::collections::BTreeMap;

use proptest::prelude::*;
use testkit::texts;
use tokenizer_core::{Rng, Token, TokenId, TokenKind, Vocab, utf8};
use unigram::{Compat, Segmentation, Unigram, UnigramOptions};

const COMPATS: [Compat; 3] = [Compat::SentencePiece, Compat::SentencePiece021, Compat::HuggingFace];

fn model(pieces: &[(String, f64)], compat: Compat) -> Unigram {
    let mut vocab = Vocab::builder();
    vocab.push(b"?", TokenKind::Unknown).unwrap();
    for (piece, _) in pieces {
        vocab.push(piece.as_bytes(), TokenKind::Normal).unwrap();
    }
    let mut options = UnigramOptions::default();
    options.compat = compat;
    options.fuse_unk = false;
    let scores = std::iter::once(0.0).chain(pieces.iter().map(|piece| piece.1)).collect();
    Unigram::new(vocab.build(), scores, options).unwrap()
}

/// Every segmentation, by trying every token at every place.
fn all(model: &Unigram, text: &[u8]) -> Vec<Segmentation> {
    fn extend(
        model: &Unigram,
        text: &[u8],
        at: usize,
        tokens: &mut Vec<Token>,
        score: f64,
        found: &mut Vec<Segmentation>,
    ) {
        if at == text.len() {
            return found.push(Segmentation { tokens: tokens.clone(), score });
        }
        let rest = &text[at..];
        let char_len = utf8::char_len(rest);
        let mut has_char = false;
        for len in 1..=rest.len() {
            use tokenizer_core::Model;
            let Some(id) = model.vocab().get(&rest[..len]) else { continue };
            if id == TokenId(0) && model.options().compat != Compat::HuggingFace {
                continue;
            }
            has_char |= len == char_len;
            tokens.push(Token::new(id, len));
            let token_score = match model.options().compat {
                Compat::HuggingFace => model.scores()[id.index()],
                _ => f64::from(model.scores()[id.index()] as f32),
            };
            extend(model, text, at + len, tokens, score + token_score, found);
            tokens.pop();
        }
        if !has_char {
            tokens.push(Token::new(TokenId(0), char_len));
            extend(model, text, at + char_len, tokens, score + model.unknown_score(), found);
            tokens.pop();
        }
    }
    let mut found = Vec::new();
    extend(model, text, 0, &mut Vec::new(), 0.0, &mut found);
    found
}

fn pieces() -> impl Strategy<Value = Vec<(String, f64)>> {
    let score = prop_oneof![(-40i32..0).prop_map(|s| f64::from(s) / 4.0), -8.0f64..0.0,];
    prop::collection::btree_map("[abé]{1,4}", score, 0..14)
        .prop_map(|pieces| pieces.into_iter().collect())
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn nbest_is_the_head_of_all_segmentations(
        pieces in pieces(), compat in 0usize..3, text in "[abéz]{0,9}", n in 0usize..40,
    ) {
        let model = model(&pieces, COMPATS[compat]);
        let nbest = model.nbest(text.as_bytes(), n);
        let mut expected = all(&model, text.as_bytes());
        expected.sort_by(|a, b| b.score.total_cmp(&a.score));
        prop_assert_eq!(nbest.len(), n.min(expected.len()));
        for (found, expected) in nbest.iter().zip(&expected) {
            // Sums of 32 bits may put the first path before an equal one.
            prop_assert!((found.score - expected.score).abs() < 1e-4, "{found:?} {expected:?}");
        }
        for found in &nbest {
            let twin = expected.iter().find(|e| e.tokens == found.tokens);
            prop_assert!(twin.is_some_and(|twin| close(twin.score, found.score)), "{found:?}");
        }
        let mut distinct: Vec<_> = nbest.iter().map(|s| s.tokens.iter().map(|t| (t.id, t.len)).collect::<Vec<_>>()).collect();
        distinct.sort();
        distinct.dedup();
        prop_assert_eq!(distinct.len(), nbest.len());
        if n > 0 {
            prop_assert_eq!(&nbest[0].tokens, &model.encode(text.as_bytes()));
            prop_assert!(close(nbest[0].score, model.best_score(text.as_bytes())));
        }
    }

    #[test]
    fn likelihood_is_the_sum_over_all_segmentations(
        pieces in pieces(), compat in 0usize..3, text in "[abéz]{0,9}",
    ) {
        let model = model(&pieces, COMPATS[compat]);
        let expected = all(&model, text.as_bytes()).iter().map(|s| s.score.exp()).sum::<f64>().ln();
        prop_assert!(close(model.log_likelihood(text.as_bytes()), expected));
    }

    #[test]
    fn explanation_agrees_with_enumeration(
        pieces in pieces(), compat in 0usize..3, text in "[abéz]{1,8}",
    ) {
        let model = model(&pieces, COMPATS[compat]);
        let text = text.as_bytes();
        let explanation = model.explain(text);
        let paths = all(&model, text);
        let total: f64 = paths.iter().map(|s| s.score.exp()).sum();
        prop_assert!(close(explanation.log_likelihood, total.ln()));
        prop_assert_eq!(&explanation.best.tokens, &model.encode(text));
        prop_assert_eq!(explanation.second.is_some(), paths.len() > 1);
        let best_covers: usize = explanation.edges.iter().filter(|e| e.is_best).map(|e| e.span.len()).sum();
        prop_assert_eq!(best_covers, text.len());
        for edge in &explanation.edges {
            let through: Vec<&Segmentation> = paths.iter().filter(|path| {
                let mut at = 0;
                path.tokens.iter().any(|token| {
                    let here = at == edge.span.start
                        && token.len as usize == edge.span.len()
                        && edge.id.unwrap_or(TokenId(0)) == token.id;
                    at += token.len as usize;
                    here
                })
            }).collect();
            let best = through.iter().map(|s| s.score).fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = through.iter().map(|s| s.score.exp()).sum();
            prop_assert!(close(edge.best_through, best), "{edge:?} {best}");
            prop_assert!((edge.posterior - sum / total).abs() < 1e-9, "{edge:?} {}", sum / total);
        }
    }
}

fn hug() -> Unigram {
    let pieces = [("h", -2.0), ("u", -2.0), ("g", -2.0), ("hu", -3.0), ("ug", -2.5), ("hug", -4.0)];
    model(&pieces.map(|(p, s)| (p.to_owned(), s)), Compat::SentencePiece)
}

#[test]
fn margin_is_the_distance_to_the_runner_up() {
    // hug -4; h|ug -4.5; hu|g -5; h|u|g -6.
    let explanation = hug().explain(b"hug");
    assert_eq!(explanation.edges.len(), 6);
    assert_eq!(explanation.margin, Some(0.5));
    let second = explanation.second.unwrap();
    assert_eq!(second.score, -4.5);
    assert_eq!(second.tokens.iter().map(|t| t.len).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(hug().explain(b"h").margin, None);
    assert_eq!(hug().explain(b"").edges, []);
}

#[test]
fn samples_follow_the_distribution() {
    let model = hug();
    for alpha in [0.0, 0.5, 1.0, 2.0] {
        let paths = all(&model, b"hug");
        let total: f64 = paths.iter().map(|s| (alpha * s.score).exp()).sum();
        let mut rng = Rng::new(42);
        let n = 20_000;
        let mut seen: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
        for _ in 0..n {
            let sample = model.sample(b"hug", alpha, &mut rng);
            *seen.entry(sample.tokens.iter().map(|t| t.id.0).collect()).or_default() += 1;
        }
        for path in &paths {
            let ids: Vec<u32> = path.tokens.iter().map(|t| t.id.0).collect();
            let expected = (alpha * path.score).exp() / total;
            let found = f64::from(seen.get(&ids).copied().unwrap_or(0)) / f64::from(n);
            let deviation = (expected * (1.0 - expected) / f64::from(n)).sqrt();
            assert!((found - expected).abs() < 4.5 * deviation, "{ids:?}: {found} {expected}");
        }
    }
}

#[test]
fn samples_repeat_with_their_seed() {
    let model = hug();
    let draw = |seed| {
        let mut rng = Rng::new(seed);
        (0..20).map(|_| model.sample(b"hughughug", 0.3, &mut rng).tokens).collect::<Vec<_>>()
    };
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
}

#[test]
fn a_large_alpha_gives_the_best_and_odd_ones_give_something() {
    let model = hug();
    let best = model.encode(b"hug hug z");
    let mut rng = Rng::new(1);
    assert_eq!(model.sample(b"hug hug z", f64::INFINITY, &mut rng).tokens, best);
    for alpha in [f64::NAN, f64::NEG_INFINITY, -1.0, 1e300] {
        let sample = model.sample(b"hug hug z", alpha, &mut rng);
        assert_eq!(sample.tokens.iter().map(|t| t.len).sum::<u32>(), 9);
        assert!(sample.score.is_finite());
    }
}

#[test]
fn everything_is_finite_on_any_input() {
    let extreme = model(
        &[("a".into(), -1e27), ("b".into(), 1e27), ("ab".into(), 0.0)],
        Compat::SentencePiece,
    );
    for model in [hug(), extreme] {
        for (name, text) in texts::all_bytes().chain([("letters", &b"abababbbaaab"[..])]) {
            assert!(model.best_score(text).is_finite(), "{name}");
            assert!(model.log_likelihood(text).is_finite(), "{name}");
            let explanation = model.explain(text);
            for edge in &explanation.edges {
                assert!(edge.best_through.is_finite() && edge.posterior.is_finite(), "{name}");
            }
            let mut rng = Rng::new(5);
            assert!(model.sample(text, 0.7, &mut rng).score.is_finite(), "{name}");
            assert!(model.nbest(text, 5).iter().all(|s| s.score.is_finite()), "{name}");
        }
    }
}
