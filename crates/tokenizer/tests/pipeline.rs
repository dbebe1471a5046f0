//! The pipeline around a model: added tokens, policies, limits, streams.

#![allow(clippy::unwrap_used)] // A test's unwrap is its assertion.

use proptest::prelude::*;
use testkit::{strategies, texts};
use tokenizer::{
    AddedToken, DecodeOptions, DecodeStep, EncodeOptions, Parts, PieceStep, Policy, PostProcessor,
    Side, SpecialSet, Template, Tokenizer, Truncation,
};
use tokenizer_core::{Span, Split, TokenId};

/// Runs of white space, of alphanumeric characters, and of the rest.
struct Runs;

impl Split for Runs {
    fn split_into(&self, text: &str, spans: &mut Vec<Span>) {
        let class = |c: char| (c.is_whitespace(), c.is_alphanumeric());
        let mut start = 0;
        let mut chars = text.char_indices().peekable();
        while let Some((_, c)) = chars.next() {
            let end = chars.peek().map_or(text.len(), |&(i, _)| i);
            if chars.peek().is_none_or(|&(_, next)| class(next) != class(c)) {
                spans.push(Span::new(start, end));
                start = end;
            }
        }
    }

    fn unsettled(&self) -> Option<usize> {
        Some(1)
    }
}

fn tokenizer(added: Vec<AddedToken>) -> Tokenizer {
    let mut parts = Tokenizer::bytes().into_parts();
    parts.steps = vec![PieceStep::Split(Box::new(Runs))];
    parts.added_tokens = added;
    parts.build().unwrap()
}

fn token(content: &str, id: u32) -> AddedToken {
    AddedToken::special(content, TokenId(id))
}

fn ids(tokenizer: &Tokenizer, text: &str, policy: Policy) -> Vec<u32> {
    let encoding = tokenizer.encode(text, &EncodeOptions::new().policy(policy)).unwrap();
    encoding.ids.iter().map(|id| id.0).collect()
}

fn bytes(text: &str) -> Vec<u32> {
    text.bytes().map(u32::from).collect()
}

#[test]
fn user_text_never_becomes_a_control_token() {
    let tokenizer = tokenizer(vec![token("<|endoftext|>", 256)]);
    let text = "a<|endoftext|>b";
    assert_eq!(ids(&tokenizer, text, Policy::Ordinary), bytes(text));
    assert_eq!(tokenizer.count("<|endoftext|>"), 13);
    assert_eq!(ids(&tokenizer, text, Policy::AllowAll), [97, 256, 98]);
    let allow = Policy::Allow(SpecialSet::of(["<|endoftext|>"]));
    assert_eq!(ids(&tokenizer, text, allow), [97, 256, 98]);
    assert_eq!(ids(&tokenizer, text, Policy::Allow(SpecialSet::of(["<s>"]))), bytes(text));
    let reject = EncodeOptions::new().policy(Policy::Reject(SpecialSet::all()));
    let error = tokenizer.encode(text, &reject).unwrap_err();
    assert_eq!((error.token(), error.span()), ("<|endoftext|>", Span::new(1, 14)));
    assert_eq!(
        error.to_string(),
        "the text contains the special token \"<|endoftext|>\" at byte 1; allow it, or encode it as ordinary text"
    );
}

#[test]
fn added_token_flags_decide_what_they_take() {
    let check = |added: AddedToken, text: &str, expected: &[(u32, &str)]| {
        let tokenizer = tokenizer(vec![added]);
        let options = EncodeOptions::new().policy(Policy::AllowAll);
        let encoding = tokenizer.encode(text, &options).unwrap();
        let got: Vec<(u32, &str)> = encoding
            .ids
            .iter()
            .zip(&encoding.offsets)
            .map(|(id, span)| (id.0, &text[span.range()]))
            .collect();
        assert_eq!(got, expected, "{text:?}");
    };
    let m = || token("<m>", 256);
    check(m(), "a <m> b", &[(97, "a"), (32, " "), (256, "<m>"), (32, " "), (98, "b")]);
    let left = AddedToken { lstrip: true, ..m() };
    check(
        left.clone(),
        "a \u{3000}<m> b",
        &[(97, "a"), (256, " \u{3000}<m>"), (32, " "), (98, "b")],
    );
    // A zero-width space is no white space.
    check(
        left,
        "\u{200B}<m>",
        &[(226, "\u{200B}"), (128, "\u{200B}"), (139, "\u{200B}"), (256, "<m>")],
    );
    let right = AddedToken { rstrip: true, ..m() };
    check(right.clone(), "<m>  b", &[(256, "<m>  "), (98, "b")]);
    check(right, "<m>b", &[(256, "<m>"), (98, "b")]);
    let word = AddedToken { single_word: true, ..token("an", 256) };
    check(word, "an a_an", &[(256, "an"), (32, " "), (97, "a"), (95, "_"), (97, "a"), (110, "n")]);
}

#[test]
fn the_longest_of_the_leftmost_added_tokens_wins() {
    let tokenizer = tokenizer(vec![token("<a>", 256), token("<a><b>", 257), token("<b>", 258)]);
    assert_eq!(ids(&tokenizer, "<a><b><b><a>", Policy::AllowAll), [257, 258, 256]);
}

#[test]
fn contradicting_added_tokens_are_refused() {
    let build = |added| {
        let mut parts = Tokenizer::bytes().into_parts();
        parts.added_tokens = added;
        parts.build().map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(build(vec![token("", 256)]), Err("added token 256 is empty".into()));
    let twice = build(vec![token("x", 256), token("x", 257)]);
    assert_eq!(twice, Err("added token \"x\" stands twice in the list".into()));
}

#[test]
fn truncation_is_checked_when_it_is_configured() {
    let build = |max_length, stride| {
        let mut parts = Tokenizer::bytes().into_parts();
        parts.post_processor =
            PostProcessor::Template(Template::around(&[TokenId(1)], &[TokenId(2)]));
        let tokenizer = parts.build().unwrap();
        let mut truncation = Truncation::new(max_length);
        truncation.stride = stride;
        tokenizer.with_truncation(Some(truncation)).map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(build(10, 7), Ok(()));
    let error = build(10, 8).unwrap_err();
    assert!(error.contains("a stride of 8 is too long") && error.contains("leaves 8"), "{error}");
    let error = build(1, 0).unwrap_err();
    assert!(error.contains("no room for the 2 tokens"), "{error}");
}

#[test]
fn truncation_leaves_windows_that_overlap_by_the_stride() {
    let mut truncation = Truncation::new(4);
    truncation.stride = 1;
    let tokenizer = tokenizer(vec![]).with_truncation(Some(truncation)).unwrap();
    let encoding = tokenizer.encode("abcdefghi", &EncodeOptions::new()).unwrap();
    let text =
        |e: &tokenizer::Encoding| -> String { e.ids.iter().map(|i| i.0 as u8 as char).collect() };
    assert_eq!(text(&encoding), "abcd");
    let rest: Vec<String> = encoding.overflowing.iter().map(text).collect();
    assert_eq!(rest, ["defg", "ghi"]);
}

#[test]
fn a_pair_longer_than_the_limit_on_both_sides_fits() {
    let tokenizer = tokenizer(vec![]).with_truncation(Some(Truncation::new(128))).unwrap();
    let (first, second) = (",".repeat(125), ".".repeat(130));
    let encoding = tokenizer.encode_pair(&first, &second, &EncodeOptions::new()).unwrap();
    assert_eq!(encoding.len(), 128);
    assert_eq!(encoding.type_ids.iter().filter(|&&t| t == 1).count(), 64);
}

#[test]
fn offsets_are_on_character_boundaries() {
    let tokenizer = tokenizer(vec![token("<s>", 256)]);
    for (name, text) in texts::AWKWARD {
        let encoding = tokenizer.encode(text, &EncodeOptions::new()).unwrap();
        for span in &encoding.offsets {
            assert!(text.get(span.range()).is_some(), "{name}: {span:?}");
        }
        let chars = encoding.char_offsets(text);
        for (byte, char) in encoding.offsets.iter().zip(&chars) {
            assert_eq!(text[..byte.start].chars().count(), char.start, "{name}");
            assert_eq!(text[..byte.end].chars().count(), char.end, "{name}");
        }
    }
}

#[test]
fn a_decode_stream_gives_whole_characters() {
    let tokenizer = Tokenizer::bytes();
    for (name, input) in texts::all_bytes() {
        let ids: Vec<TokenId> = input.iter().map(|&b| TokenId(b.into())).collect();
        let mut stream = tokenizer.decode_stream(DecodeOptions::default());
        let mut text = String::new();
        for &id in &ids {
            text.push_str(&stream.push(id).unwrap());
        }
        text.push_str(&stream.finish());
        assert_eq!(text, String::from_utf8_lossy(input), "{name}");
        assert_eq!(text, tokenizer.decode(&ids, DecodeOptions::default()).unwrap(), "{name}");
    }
    let mut stream = tokenizer.decode_stream(DecodeOptions::default());
    assert!(stream.push(TokenId(70_000)).is_err());
}

/// What the steps of a decoder do to a list of tokens, the way their definitions read.
fn decode_list(steps: &[DecodeStep], tokens: &[&str]) -> String {
    let mut tokens: Vec<String> = tokens.iter().map(|t| (*t).to_owned()).collect();
    for step in steps {
        tokens = match step {
            DecodeStep::Fuse => vec![tokens.concat()],
            DecodeStep::Strip { content, start, stop } => tokens
                .iter()
                .map(|token| {
                    let mut rest = &token[..];
                    for _ in 0..*start {
                        rest = rest.strip_prefix(*content).unwrap_or(rest);
                    }
                    for _ in 0..*stop {
                        rest = rest.strip_suffix(*content).unwrap_or(rest);
                    }
                    rest.to_owned()
                })
                .collect(),
            DecodeStep::Replace { pattern, content } => {
                tokens.iter().map(|t| t.replace(pattern.as_str(), content)).collect()
            }
            DecodeStep::EndOfWord { suffix } => {
                let last = tokens.len().wrapping_sub(1);
                let space = |i| if i == last { "" } else { " " };
                tokens.iter().enumerate().map(|(i, t)| t.replace(suffix, space(i))).collect()
            }
            DecodeStep::WordPiece { prefix, .. } => tokens
                .iter()
                .enumerate()
                .map(|(i, t)| match t.strip_prefix(prefix.as_str()) {
                    _ if i == 0 => t.clone(),
                    Some(rest) => rest.to_owned(),
                    None => format!(" {t}"),
                })
                .collect(),
            _ => tokens,
        };
    }
    tokens.concat()
}

proptest! {
    #[test]
    fn decoding_by_steps_equals_decoding_the_list(
        tokens in proptest::collection::vec("[ab#_ ]{0,4}", 0..8),
        start in 0usize..3,
        stop in 0usize..3,
        fuse in any::<bool>(),
    ) {
        let tokens: Vec<&str> = tokens.iter().map(String::as_str).filter(|t| !t.is_empty()).collect();
        let mut steps = vec![DecodeStep::Replace { pattern: "_".into(), content: " ".into() }];
        if fuse {
            steps.push(DecodeStep::Fuse);
        }
        steps.push(DecodeStep::Strip { content: ' ', start, stop });
        let chains = [
            steps,
            vec![DecodeStep::EndOfWord { suffix: "_".into() }],
            vec![DecodeStep::WordPiece { prefix: "##".into(), cleanup: false }],
        ];
        for steps in chains {
            let mut vocabulary: Vec<&str> = tokens.clone();
            vocabulary.sort_unstable();
            vocabulary.dedup();
            let added: Vec<AddedToken> = vocabulary
                .iter()
                .enumerate()
                .map(|(i, t)| AddedToken { special: false, ..token(t, 256 + i as u32) })
                .collect();
            let mut parts = Tokenizer::bytes().into_parts();
            parts.added_tokens = added;
            parts.decoder = steps.clone();
            let tokenizer = parts.build().unwrap();
            let ids: Vec<TokenId> =
                tokens.iter().map(|t| tokenizer.token_id(t).expect("added")).collect();
            let expected = decode_list(&steps, &tokens);
            prop_assert_eq!(tokenizer.decode(&ids, DecodeOptions::default()).unwrap(), expected.clone());
            let mut stream = tokenizer.decode_stream(DecodeOptions::default());
            let mut text = String::new();
            for &id in &ids {
                text.push_str(&stream.push(id).unwrap());
            }
            text.push_str(&stream.finish());
            prop_assert_eq!(text, expected);
        }
    }

    #[test]
    fn a_stream_of_chunks_encodes_like_the_whole(
        text in "[ab<> |\\p{Greek}]{0,40}",
        cuts in proptest::collection::vec(0usize..50, 0..6),
        allow in any::<bool>(),
    ) {
        let word = AddedToken { single_word: true, ..token("a<b", 258) };
        let strip = AddedToken { lstrip: true, rstrip: true, ..token("<|a|>", 256) };
        let tokenizer = tokenizer(vec![strip, token("<|a|><b", 257), word]);
        let policy = if allow { Policy::AllowAll } else { Policy::Ordinary };
        let mut cuts: Vec<usize> =
            cuts.into_iter().filter(|&c| c < text.len() && text.is_char_boundary(c)).collect();
        cuts.sort_unstable();
        cuts.push(text.len());
        let mut stream = tokenizer.encode_stream(policy.clone());
        let (mut got, mut at) = (Vec::new(), 0);
        for cut in cuts {
            stream.push(&text[at..cut], &mut got).unwrap();
            at = cut;
        }
        stream.finish(&mut got).unwrap();
        let mut expected = Vec::new();
        tokenizer.session().ids_with_policy_into(&text, &policy, &mut expected).unwrap();
        prop_assert_eq!(got, expected);
    }

    #[test]
    fn limits_agree_with_the_count(text in strategies::mixed_text(), limit in 0usize..80) {
        let tokenizer = tokenizer(vec![token("<s>", 256)]);
        let count = tokenizer.count(&text);
        prop_assert_eq!(count, tokenizer.ids(&text).len());
        let expected = (count <= limit).then_some(count);
        prop_assert_eq!(tokenizer.count_till_limit(&text, limit), expected);
        prop_assert_eq!(tokenizer.is_within(&text, limit), count <= limit);
        for side in [Side::Left, Side::Right] {
            let part = tokenizer.cut(&text, limit, side);
            prop_assert!(tokenizer.count(part) <= limit);
            match side {
                Side::Right => prop_assert!(text.starts_with(part)),
                Side::Left => prop_assert!(text.ends_with(part)),
            }
            prop_assert!(count > limit || part == text);
            // Bytes are tokens here, so only a character cut in half is lost.
            prop_assert!(tokenizer.count(part) + 3 >= limit.min(count));
        }
    }

    #[test]
    fn a_batch_equals_one_by_one(texts in proptest::collection::vec(strategies::mixed_text(), 0..8)) {
        let tokenizer = tokenizer(vec![token("<s>", 256)]);
        let options = EncodeOptions::new().policy(Policy::AllowAll);
        let batch = tokenizer.encode_batch(&texts, &options).unwrap();
        let single: Vec<_> = texts.iter().map(|t| tokenizer.encode(t, &options).unwrap()).collect();
        prop_assert_eq!(batch, single);
        let ids: Vec<_> = texts.iter().map(|t| tokenizer.ids(t)).collect();
        prop_assert_eq!(tokenizer.ids_batch(&texts), ids);
    }
}

#[test]
fn four_hundred_thousand_added_tokens_load_in_time() {
    let added = (0..400_000).map(|i| token(&format!("<extra_{i}>"), 256 + i)).collect();
    let start = std::time::Instant::now();
    let tokenizer = tokenizer(added);
    // A second on a fast build; tests are built with little optimisation and share the machine.
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    assert_eq!(ids(&tokenizer, "<extra_399999>", Policy::AllowAll), [256 + 399_999]);
}

#[test]
fn parts_can_be_taken_apart_and_built_again() {
    let parts: Parts = tokenizer(vec![token("<s>", 256)]).into_parts();
    assert_eq!(parts.added_tokens.len(), 1);
    assert_eq!(parts.build().unwrap().vocab_len(), 257);
}
