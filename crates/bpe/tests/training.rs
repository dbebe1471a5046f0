//! Training: worked examples, tie rules against the naive trainer, options and their limits.

#![allow(clippy::unwrap_used)] // The whole file is tests; helpers unwrap for them.
#![cfg(feature = "train")]

use std::ops::ControlFlow;

use bpe::{
    Alphabet, Bpe, BpeTrainer, ByteOrder, Compat, EndOfWord, Goal, InitialBytes, MergeStep, Rules,
    Ties, naive,
};
use proptest::prelude::*;
use testkit::{laws, strategies};
use tokenizer_core::{Encode, Model, Observe, PieceCounts, Silent, TokenId, TokenKind, Train};

const ALL_TIES: [Ties; 4] =
    [Ties::LowestIds, Ties::FirstOccurrence, Ties::GreatestBytes, Ties::SentencePiece];

fn counts(pairs: &[(&str, u64)]) -> PieceCounts {
    PieceCounts::from_pairs(pairs.iter().copied()).unwrap()
}

fn merges_of(goal: usize, unit: Alphabet, ties: Ties) -> BpeTrainer {
    let mut trainer = BpeTrainer::default();
    trainer.goal = Goal::Merges(goal);
    trainer.unit = unit;
    trainer.ties = ties;
    trainer
}

/// The merges as `left right`, and their counts.
fn learn(trainer: &BpeTrainer, counts: &PieceCounts) -> (Bpe, Vec<(String, u64)>) {
    #[derive(Default)]
    struct Steps(Vec<(String, u64)>);
    impl Observe<MergeStep> for Steps {
        fn step(&mut self, step: &MergeStep) -> ControlFlow<()> {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert_eq!(step.step, self.0.len() as u64 + 1);
            let name = format!("{} {}", text(&step.left_bytes), text(&step.right_bytes));
            self.0.push((name, step.count));
            ControlFlow::Continue(())
        }
    }
    let mut steps = Steps::default();
    let model = trainer.train(counts, &mut steps).unwrap();
    (model, steps.0)
}

fn check(trainer: &BpeTrainer, corpus: &[(&str, u64)], expected: &[(&str, u64)]) -> Bpe {
    let (model, steps) = learn(trainer, &counts(corpus));
    let steps: Vec<(&str, u64)> = steps.iter().map(|(name, count)| (&name[..], *count)).collect();
    assert_eq!(steps, expected);
    assert_eq!(naive::train(trainer, &counts(corpus)).unwrap().rules(), model.rules());
    model
}

#[test]
fn low_lower_newest_widest() {
    // Sennrich et al. 2016, with the counts that textbooks use.
    let mut trainer = merges_of(9, Alphabet::Char, Ties::FirstOccurrence);
    trainer.end_of_word = Some(EndOfWord::Symbol("</w>".into()));
    let model = check(
        &trainer,
        &[("low", 5), ("lower", 2), ("newest", 6), ("widest", 3)],
        &[
            ("e s", 9),
            ("es t", 9),
            ("est </w>", 9),
            ("l o", 7),
            ("lo w", 7),
            ("n e", 6),
            ("ne w", 6),
            ("new est</w>", 6),
            ("low </w>", 5),
        ],
    );
    let mut tokens = Vec::new();
    model.session().encode_piece(b"lowest", &mut tokens);
    let names: Vec<&[u8]> = tokens.iter().map(|t| model.vocab().bytes(t.id).unwrap()).collect();
    assert_eq!(names, [&b"low"[..], b"est</w>"]);
}

#[test]
fn hai_shui_chao() {
    let text = "海水潮潮潮潮潮潮落,浮云长长长长长长长消";
    assert_eq!(text.chars().count(), 20);
    let trainer = merges_of(3, Alphabet::Char, Ties::FirstOccurrence);
    let model = check(&trainer, &[(text, 1)], &[("长 长", 6), ("潮 潮", 5), ("潮潮 潮潮", 2)]);
    assert_eq!(model.vocab().len(), 9 + 3);
}

#[test]
fn windows_overlap_when_counted_but_not_when_merged() {
    let trainer = merges_of(9, Alphabet::Byte, Ties::LowestIds);
    check(&trainer, &[("aaa", 1), ("ab", 1)], &[("a a", 2), ("a b", 1), ("aa a", 1)]);
    check(&trainer, &[("aaaa", 3)], &[("a a", 9), ("aa aa", 3)]);
}

#[test]
fn each_tie_rule_takes_its_own_pair() {
    let corpus = &[("cd", 5), ("xyz", 5), ("abq", 2), ("ab", 3)];
    let first = |ties| {
        let (_, steps) = learn(&merges_of(1, Alphabet::Byte, ties), &counts(corpus));
        steps[0].0.clone()
    };
    assert_eq!(first(Ties::LowestIds), "a b");
    assert_eq!(first(Ties::FirstOccurrence), "c d");
    assert_eq!(first(Ties::GreatestBytes), "y z");
    assert_eq!(first(Ties::SentencePiece), "a b");
}

#[test]
fn first_occurrence_is_the_first_that_still_stands() {
    // (a, b) stands first in the beginning, but after the first merge (c, d) does: a b is part
    // of x a b.
    let mut trainer = merges_of(4, Alphabet::Byte, Ties::FirstOccurrence);
    check(
        &trainer,
        &[("xab", 9), ("cd", 3), ("ab", 3), ("xa", 1)],
        &[("a b", 12), ("x ab", 9), ("c d", 3), ("x a", 1)],
    );
    trainer.goal = Goal::Merges(3);
    // (b, c) stands before (c, d) until (a, b) takes its b away; then its first place is later.
    check(
        &trainer,
        &[("abc", 4), ("cd", 3), ("bc", 3), ("ab", 6)],
        &[("a b", 10), ("ab c", 4), ("c d", 3)],
    );
}

#[test]
fn the_order_of_the_text_decides_first_occurrence() {
    // karpathy/minbpe issue 90.
    let trainer = merges_of(1, Alphabet::Byte, Ties::FirstOccurrence);
    check(&trainer, &[("bbbaaaddddcccc", 1)], &[("d d", 3)]);
    check(&trainer, &[("aaabbbccccdddd", 1)], &[("c c", 3)]);
}

#[test]
fn counts_pass_32_bits() {
    // huggingface/tokenizers issue 2058.
    let trainer = merges_of(2, Alphabet::Byte, Ties::LowestIds);
    let billions = 3_000_000_000;
    check(&trainer, &[("ab", billions), ("cd", 5)], &[("a b", billions), ("c d", 5)]);
    let huge = &[("ab", 1 << 62), ("cdabcdab", 1)];
    check(&trainer, huge, &[("a b", (1 << 62) + 2), ("c d", 2)]);
    let error = trainer.train(&counts(&[("aaa", 1 << 63)]), &mut Silent).unwrap_err();
    assert_eq!(error.to_string(), "the counts of all pairs together pass 18446744073709551615");
}

#[test]
fn two_merges_can_make_one_token() {
    // "abc" comes from a|bc and from ab|c; the vocabulary holds it once.
    let trainer = merges_of(20, Alphabet::Byte, Ties::LowestIds);
    let corpus = &[("abx", 9), ("bcy", 9), ("abc", 1), ("zbcabc", 8), ("abcabcabc", 3)];
    let (model, _) = learn(&trainer, &counts(corpus));
    assert_eq!(naive::train(&trainer, &counts(corpus)).unwrap().rules(), model.rules());
}

#[test]
fn a_special_token_that_equals_a_product_keeps_its_id() {
    // tokenizers 0.23.3.
    let mut trainer = merges_of(1, Alphabet::Char, Ties::LowestIds);
    trainer.special_tokens = vec!["<s>".into(), "ab".into()];
    let model = check(&trainer, &[("abc", 3), ("ab", 2)], &[("a b", 5)]);
    let ab = model.vocab().get(b"ab").unwrap();
    assert_eq!(ab.0, 1);
    assert_eq!(model.vocab().kind(ab), Some(TokenKind::Control));
    assert_eq!(model.vocab().len(), 5);
}

#[test]
fn special_reserved_byte_and_alphabet_tokens_come_in_this_order() {
    let mut trainer = merges_of(1, Alphabet::Char, Ties::LowestIds);
    trainer.special_tokens = vec!["<s>".into(), "<unk>".into()];
    trainer.unk_token = Some("<unk>".into());
    trainer.reserved_tokens = 2;
    trainer.byte_fallback = true;
    trainer.initial_alphabet = "zé".into();
    let model = check(&trainer, &[("ba", 1)], &[("b a", 1)]);
    let vocab = model.vocab();
    let kinds: Vec<TokenKind> = vocab.iter().map(|(_, _, kind)| kind).collect();
    use TokenKind::{Byte, Control, Normal, Unknown, Unused};
    assert_eq!(kinds[..4], [Control, Unknown, Unused, Unused]);
    assert!(kinds[4..260].iter().all(|&kind| kind == Byte));
    assert!(kinds[260..].iter().all(|&kind| kind == Normal));
    let units: Vec<&[u8]> = vocab.iter().skip(260).map(|(_, bytes, _)| bytes).collect();
    assert_eq!(units, [&b"a"[..], b"b", b"z", "é".as_bytes(), b"ba"]);
    assert_eq!(model.options().unk.map(|id| id.0), Some(1));
}

#[test]
fn gpt2_numbers_printable_bytes_first() {
    let mut trainer = merges_of(0, Alphabet::Byte, Ties::LowestIds);
    trainer.byte_order = ByteOrder::Gpt2;
    let model = check(&trainer, &[("a", 1)], &[]);
    let id = |byte: u8| model.vocab().get(&[byte]).unwrap().0;
    // From GPT-2's vocabulary: "!" 0, "~" 93, "¡" 94, "ÿ" 187, NUL 188, space 220, DEL 221.
    assert_eq!([b'!', b'~', 0xA1, 0xFF, 0, b' ', 0x7F].map(id), [0, 93, 94, 187, 188, 220, 221]);
}

#[test]
fn the_vocabulary_size_must_hold_the_alphabet() {
    let text: String = (0..300).filter_map(|i| char::from_u32(0x4E00 + i)).collect();
    let corpus = counts(&[(&text, 1)]);
    let mut trainer = BpeTrainer::default();
    trainer.unit = Alphabet::Char;
    trainer.special_tokens = vec!["<s>".into()];
    trainer.goal = Goal::VocabSize(100);
    let error = trainer.train(&corpus, &mut Silent).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a vocabulary of 100 tokens was asked for, but special tokens and alphabet alone need 301"
    );
    assert_eq!(error.needed_vocab_size(), Some(301));
    trainer.goal = Goal::VocabSize(301);
    let model = trainer.train(&corpus, &mut Silent).unwrap();
    assert_eq!(model.vocab().len(), 301, "exactly the alphabet is enough");
    trainer.goal = Goal::VocabSize(100);
    trainer.alphabet_limit = Some(90);
    let model = trainer.train(&corpus, &mut Silent).unwrap();
    assert_eq!(model.vocab().len(), 100, "91 tokens to begin with and 9 merges");
    trainer.reserved_tokens = 1 << 40;
    let error = trainer.train(&corpus, &mut Silent).unwrap_err();
    assert_eq!(error.needed_vocab_size(), Some((1 << 40) + 91));
}

#[test]
fn coverage_keeps_the_most_frequent_characters() {
    let mut trainer = merges_of(0, Alphabet::Char, Ties::LowestIds);
    trainer.character_coverage = 0.9;
    let corpus = &[("aaaaaaaaabbbbbbbbbb", 1), ("c", 1)];
    // 9 a, 10 b, 1 c: b and a cover 19 of 20.
    assert_eq!(check(&trainer, corpus, &[]).vocab().len(), 2);
    trainer.initial_alphabet = "c".into();
    assert_eq!(check(&trainer, corpus, &[]).vocab().len(), 3);
}

#[test]
fn dropped_characters_join_their_neighbours_and_unknown_ones_part_them() {
    let mut trainer = merges_of(1, Alphabet::Char, Ties::LowestIds);
    trainer.alphabet_limit = Some(2);
    let corpus = &[("azb", 2), ("aazb", 1), ("ayb", 1)];
    check(&trainer, corpus, &[("a b", 4)]);
    trainer.unk_token = Some("<unk>".into());
    check(&trainer, corpus, &[("a a", 1)]);
}

#[test]
fn max_token_len_is_strict_but_for_single_units() {
    // tokenizers 0.23.3.
    for (max, longest) in [(0, 2), (1, 2), (2, 2), (3, 2), (4, 3), (5, 3)] {
        let mut trainer = merges_of(100, Alphabet::Char, Ties::LowestIds);
        trainer.max_token_len = Some(max);
        let (model, _) = learn(&trainer, &counts(&[("abc", 3)]));
        assert_eq!(model.vocab().max_token_len(), longest, "max_token_len {max}");
    }
}

#[test]
fn min_frequency_ends_the_training() {
    let mut trainer = merges_of(100, Alphabet::Byte, Ties::LowestIds);
    trainer.min_frequency = 3;
    check(&trainer, &[("ab", 3), ("cd", 2)], &[("a b", 3)]);
    trainer.min_frequency = 0;
    check(&trainer, &[("ab", 3), ("cd", 2)], &[("a b", 3), ("c d", 2)]);
}

#[test]
fn an_empty_corpus_gives_the_alphabet_alone() {
    let empty = PieceCounts::default();
    let mut trainer = BpeTrainer::default();
    assert_eq!(trainer.train(&empty, &mut Silent).unwrap().vocab().len(), 256);
    trainer.bytes = InitialBytes::Seen;
    assert_eq!(trainer.train(&empty, &mut Silent).unwrap().vocab().len(), 0);
    trainer.unit = Alphabet::Char;
    trainer.special_tokens = vec!["<s>".into()];
    trainer.initial_alphabet = "é".into();
    assert_eq!(trainer.train(&empty, &mut Silent).unwrap().vocab().len(), 2);
}

#[test]
fn ill_formed_bytes_are_no_characters() {
    let trainer = merges_of(9, Alphabet::Char, Ties::LowestIds);
    let corpus = PieceCounts::from_pairs([(&b"a\xFFb"[..], 2), (b"\xE2\x82", 1)]).unwrap();
    let (model, steps) = learn(&trainer, &corpus);
    assert_eq!(steps, [("a b".to_string(), 2)]);
    assert_eq!(model.vocab().len(), 3);
}

#[test]
fn affixed_characters_get_ids_in_a_fixed_order() {
    // huggingface/tokenizers issue 1794: there they come in the order of a hash map.
    let mut trainer = merges_of(2, Alphabet::Char, Ties::LowestIds);
    trainer.continuing_prefix = Some("##".into());
    trainer.end_of_word = Some(EndOfWord::Suffix("</w>".into()));
    let model = check(&trainer, &[("aba", 2), ("b", 1)], &[("a ##b", 2), ("ab ##a</w>", 2)]);
    let names: Vec<String> = model
        .vocab()
        .iter()
        .map(|(_, bytes, _)| String::from_utf8(bytes.to_vec()).unwrap())
        .collect();
    assert_eq!(names, ["a", "b", "##a</w>", "##b", "b</w>", "ab", "aba</w>"]);
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let refused = |change: &dyn Fn(&mut BpeTrainer)| {
        let mut trainer = BpeTrainer::default();
        change(&mut trainer);
        trainer.train(&PieceCounts::default(), &mut Silent).unwrap_err().to_string()
    };
    assert_eq!(
        refused(&|t| t.byte_fallback = true),
        "byte fallback needs units of characters, but the units are bytes"
    );
    assert_eq!(
        refused(&|t| t.character_coverage = f64::NAN),
        "the character coverage must be more than 0 and at most 1"
    );
    assert_eq!(
        refused(&|t| t.special_tokens = vec!["a".into(), "".into()]),
        "special token 1 is empty"
    );
    refused(&|t| t.alphabet_limit = Some(1));
    refused(&|t| t.initial_alphabet = "a".into());
    refused(&|t| t.continuing_prefix = Some(String::new()));
    refused(&|t| t.end_of_word = Some(EndOfWord::Suffix(String::new())));
    refused(&|t| t.unk_token = Some(String::new()));
}

fn pieces(model: &Bpe) -> Vec<String> {
    model.vocab().iter().map(|(_, bytes, _)| String::from_utf8_lossy(bytes).into_owned()).collect()
}

fn any_script(_: char) -> Option<u8> {
    Some(0)
}

#[test]
fn sentencepiece_goes_on_with_pairs_that_occur_no_more() {
    // ▁h, then ▁hu, then ▁hug; `hu`, `ug` occurred in the beginning and are made at the end, with the
    // pair (hu, g) never: it never stood in the text.
    let model =
        BpeTrainer::sentencepiece(20, any_script).train(&counts(&[("▁hug", 3)]), &mut Silent);
    let expected =
        ["<unk>", "<s>", "</s>", "hu", "ug", "▁h", "▁hu", "hug", "▁hug", "g", "h", "u", "▁"];
    let mut found = pieces(&model.unwrap());
    found[3..9].sort();
    let mut sorted = expected.to_vec();
    sorted[3..9].sort_unstable();
    assert!(found.iter().all(|piece| sorted.contains(&piece.as_str())), "{found:?}");
    assert_eq!(found[..3], sorted[..3]);
}

#[test]
fn sentencepiece_refuses_what_it_does_not_have() {
    let refuse = |change: fn(&mut BpeTrainer), why: &str| {
        let mut trainer = BpeTrainer::sentencepiece(20, any_script);
        change(&mut trainer);
        let error = trainer.train(&counts(&[("▁a", 1)]), &mut Silent).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    };
    refuse(|t| t.unit = Alphabet::Byte, "units of characters");
    refuse(|t| t.ties = Ties::LowestIds, "ties of its own");
    refuse(|t| t.unk_token = None, "unknown token");
    refuse(|t| t.end_of_word = Some(EndOfWord::Suffix("</w>".into())), "no mark");
    refuse(|t| t.alphabet_limit = Some(3), "coverage alone");
    refuse(|t| (t.compat, t.user_defined) = (Compat::Standard, vec!["x".into()]), "user-defined");
}

#[test]
fn the_observer_can_stop() {
    struct StopAt(u64);
    impl Observe<MergeStep> for StopAt {
        fn step(&mut self, step: &MergeStep) -> ControlFlow<()> {
            if step.step == self.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    struct StopProgress;
    impl Observe<MergeStep> for StopProgress {
        fn progress(&mut self, _: &'static str, _: u64, _: u64) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    let trainer = BpeTrainer::default();
    let corpus = counts(&[("abcabc", 2)]);
    let error = trainer.train(&corpus, &mut StopAt(2)).unwrap_err();
    assert!(error.is_stopped());
    assert_eq!(error.to_string(), "training was stopped");
    assert!(trainer.train(&corpus, &mut StopProgress).unwrap_err().is_stopped());
}

#[test]
fn one_enormous_piece_does_not_stall() {
    // Pseudo-random letters of DNA, and a run of one letter.
    let mut state = 1u32;
    let dna: Vec<u8> = (0..200_000)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            b"ACGT"[(state >> 30) as usize]
        })
        .collect();
    for piece in [dna, vec![b'a'; 200_000]] {
        for ties in ALL_TIES {
            let corpus = PieceCounts::from_pairs([(&piece, 1)]).unwrap();
            let model = merges_of(256, Alphabet::Byte, ties).train(&corpus, &mut Silent).unwrap();
            assert!(model.vocab().len() > 256 + 10);
        }
    }
}

/// Options of all kinds, sized for tiny corpora.
fn any_trainer() -> impl Strategy<Value = BpeTrainer> {
    let sizes = (0usize..60, 0u64..4, proptest::option::of(0usize..7), 0usize..3);
    let affixes = (
        proptest::option::of(prop_oneof![
            Just(EndOfWord::Suffix("</w>".into())),
            Just(EndOfWord::Symbol("</w>".into())),
            // One that is also text.
            Just(EndOfWord::Suffix("b".into())),
        ]),
        proptest::option::of(proptest::sample::select(vec!["##", "a"])),
    );
    let rest = (0usize..4, any::<[bool; 7]>());
    (sizes, affixes, rest).prop_map(|(sizes, affixes, (ties, flags))| {
        let [byte, by_size, special, unk, seen, fallback, limit] = flags;
        let mut t = BpeTrainer::default();
        t.goal = if by_size { Goal::VocabSize(sizes.0 * 8) } else { Goal::Merges(sizes.0) };
        t.min_frequency = sizes.1;
        t.max_token_len = sizes.2;
        t.reserved_tokens = sizes.3;
        t.end_of_word = affixes.0;
        t.continuing_prefix = affixes.1.map(Into::into);
        t.ties = ALL_TIES[ties];
        t.unit = if byte { Alphabet::Byte } else { Alphabet::Char };
        t.bytes = if seen { InitialBytes::Seen } else { InitialBytes::All };
        t.byte_order = if limit { ByteOrder::Gpt2 } else { ByteOrder::Value };
        t.unk_token = unk.then(|| "<unk>".into());
        if special {
            t.special_tokens = vec!["ab".into(), "<s>".into(), "ab".into()];
        }
        if !byte {
            t.byte_fallback = fallback;
            t.alphabet_limit = limit.then_some(2);
        }
        t
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn fast_equals_naive(trainer in any_trainer(), corpus in strategies::tiny_corpus()) {
        let counts = PieceCounts::from_pairs(corpus.iter().map(|(p, n)| (p, *n))).unwrap();
        match (trainer.train(&counts, &mut Silent), naive::train(&trainer, &counts)) {
            (Ok(fast), Ok(slow)) => {
                prop_assert_eq!(fast.rules(), slow.rules());
                prop_assert!(fast.vocab() == slow.vocab());
                prop_assert!(matches!(fast.rules(), Rules::Merges(_)));
            }
            (fast, slow) => prop_assert_eq!(fast.err(), slow.err()),
        }
    }

    #[test]
    fn sentencepiece_equals_naive(
        corpus in prop::collection::vec(("▁?[ab1é▁]{0,9}(<s>)?[ab]{0,3}", 1u64..5), 0..8),
        size in 3usize..60,
        flags in any::<[bool; 6]>(),
    ) {
        let mut trainer = BpeTrainer::sentencepiece(size, |c| Some(u8::from(c.is_ascii_digit())));
        let rules = trainer.rules.as_mut().unwrap();
        rules.split_by_whitespace = flags[0];
        rules.split_digits = flags[1];
        rules.whitespace_only = flags[2];
        if flags[3] {
            rules.max_chars = 3;
        }
        if flags[4] {
            trainer.character_coverage = 0.9;
        }
        if flags[5] {
            trainer.user_defined = vec!["ba".into()];
        }
        let counts = PieceCounts::from_pairs(corpus.iter().map(|(p, n)| (p, *n))).unwrap();
        match (trainer.train(&counts, &mut Silent), naive::train(&trainer, &counts)) {
            (Ok(fast), Ok(slow)) => {
                prop_assert_eq!(fast.rules(), slow.rules());
                prop_assert!(fast.vocab() == slow.vocab());
                prop_assert!(matches!(fast.rules(), Rules::Scores(_)));
            }
            (fast, slow) => prop_assert_eq!(fast.err(), slow.err()),
        }
    }

    #[test]
    fn order_does_not_matter(trainer in any_trainer(), corpus in strategies::tiny_corpus()) {
        laws::trains_from_any_order(&trainer, &corpus);
    }

    #[test]
    fn trained_models_encode_as_the_naive_encoder(
        trainer in any_trainer(),
        corpus in strategies::tiny_corpus(),
        text in "[abcé]{0,12}",
    ) {
        let counts = PieceCounts::from_pairs(corpus.iter().map(|(p, n)| (p, *n))).unwrap();
        if let Ok(model) = trainer.train(&counts, &mut Silent) {
            let naive = naive::NaiveEncoder::new(&model);
            let mut session = model.session();
            for piece in counts.iter().map(|p| p.piece).chain([text.as_bytes()]) {
                let mut tokens = Vec::new();
                session.encode_piece(piece, &mut tokens);
                prop_assert_eq!(&tokens, &naive.encode_piece(piece));
            }
        }
    }

    /// Every merge that was reported has the greatest count of its moment, with the rank that the
    /// tie rule gives it: replayed on the words, merge by merge.
    #[test]
    fn every_merge_is_the_best_of_its_moment(
        trainer in any_trainer(),
        corpus in strategies::tiny_corpus(),
    ) {
        let counts = PieceCounts::from_pairs(corpus.iter().map(|(p, n)| (p, *n))).unwrap();
        let mut steps: Vec<MergeStep> = Vec::new();
        let Ok(model) = trainer.train(&counts, &mut Steps(&mut steps)) else { return Ok(()) };
        let Rules::Merges(merges) = model.rules() else { unreachable!() };
        prop_assert_eq!(merges.len(), steps.len());
        for (i, step) in steps.iter().enumerate() {
            prop_assert_eq!((step.left, step.right), merges[i]);
            // One merge more than the naive twin makes of the same beginning.
            let mut one_more = trainer.clone();
            one_more.goal = Goal::Merges(i + 1);
            let expected = naive::train(&one_more, &counts).unwrap();
            let Rules::Merges(expected) = expected.rules() else { unreachable!() };
            prop_assert_eq!(expected.get(i), Some(&(step.left, step.right)));
        }
    }

    #[test]
    fn a_resumed_training_is_the_whole_one(
        trainer in any_trainer(),
        corpus in strategies::tiny_corpus(),
        at in 0usize..40,
    ) {
        let counts = PieceCounts::from_pairs(corpus.iter().map(|(p, n)| (p, *n))).unwrap();
        let Ok(whole) = trainer.train(&counts, &mut Silent) else { return Ok(()) };
        let Rules::Merges(merges) = whole.rules() else { unreachable!() };
        let first = &merges[..at.min(merges.len())];
        let resumed = trainer.resume(first, &counts, &mut Silent).unwrap();
        prop_assert_eq!(resumed.rules(), whole.rules());
        prop_assert!(resumed.vocab() == whole.vocab());
    }

    #[test]
    fn extending_moves_no_id_and_equals_the_naive_twin(
        trainer in any_trainer(),
        old in strategies::tiny_corpus(),
        new in strategies::tiny_corpus(),
        more in 0usize..30,
        limit in proptest::option::of(0usize..7),
        text in "[abcé]{0,12}",
    ) {
        let [old, new] = [old, new]
            .map(|corpus| PieceCounts::from_pairs(corpus.iter().map(|(p, n)| (p, *n))).unwrap());
        let Ok(model) = trainer.train(&old, &mut Silent) else { return Ok(()) };
        let mut longer = trainer.clone();
        let Rules::Merges(merges) = model.rules() else { unreachable!() };
        longer.goal = Goal::Merges(merges.len() + more);
        longer.max_token_len = limit;
        let extended = longer.extend(&model, &new, &mut Silent).unwrap();
        let naive = naive::extend(&longer, &model, &new).unwrap();
        prop_assert_eq!(extended.rules(), naive.rules());
        prop_assert!(extended.vocab() == naive.vocab());
        let Rules::Merges(all) = extended.rules() else { unreachable!() };
        prop_assert_eq!(&all[..merges.len()], &merges[..]);
        for (id, bytes, kind) in model.vocab().iter() {
            prop_assert_eq!(extended.vocab().bytes(id), Some(bytes));
            prop_assert_eq!(extended.vocab().kind(id), Some(kind));
        }
        // A text without new tokens keeps its ids.
        for piece in new.iter().map(|p| p.piece).chain([text.as_bytes()]) {
            let (mut before, mut after) = (Vec::new(), Vec::new());
            model.session().encode_piece(piece, &mut before);
            extended.session().encode_piece(piece, &mut after);
            if after.iter().all(|token| token.id.index() < model.vocab().len()) {
                prop_assert_eq!(before, after);
            }
        }
    }
}

struct Steps<'s>(&'s mut Vec<MergeStep>);

impl Observe<MergeStep> for Steps<'_> {
    fn step(&mut self, step: &MergeStep) -> ControlFlow<()> {
        self.0.push(step.clone());
        ControlFlow::Continue(())
    }
}

/// The merges of the model are made whatever the limits of the extension are; new ones obey them.
#[test]
fn old_merges_are_made_beyond_the_limits_of_an_extension() {
    let old = counts(&[("abcd", 9), ("abc", 9)]);
    let model = merges_of(3, Alphabet::Char, Ties::LowestIds).train(&old, &mut Silent).unwrap();
    assert_eq!(model.vocab().bytes(TokenId(6)), Some(&b"abcd"[..]));
    let mut trainer = merges_of(5, Alphabet::Char, Ties::LowestIds);
    trainer.max_token_len = Some(3);
    // Only `xy` is short enough, since `abcd` swallows all pairs beside it.
    let new = counts(&[("abcdxy", 5), ("abcdab", 7)]);
    let extended = trainer.extend(&model, &new, &mut Silent).unwrap();
    let ids = |text: &str| {
        let mut tokens = Vec::new();
        extended.session().encode_piece(text.as_bytes(), &mut tokens);
        tokens.iter().map(|token| token.id.0).collect::<Vec<_>>()
    };
    assert_eq!(ids("abcdxy"), [6, extended.vocab().get(b"xy").unwrap().0]);
    assert_eq!(extended.vocab().len(), model.vocab().len() + 3, "x, y and xy");
    assert!(extended.rules() == naive::extend(&trainer, &model, &new).unwrap().rules());
}

/// The same counts, in the same run and in two: more merges on top are the merges of one training.
#[test]
fn extending_on_the_same_text_is_training_longer() {
    let counts = counts(&[("hug", 10), ("pug", 5), ("pun", 12), ("bun", 4), ("hugs", 5)]);
    for unit in [Alphabet::Byte, Alphabet::Char] {
        let short = merges_of(3, unit, Ties::LowestIds).train(&counts, &mut Silent).unwrap();
        let long = merges_of(6, unit, Ties::LowestIds);
        let extended = long.extend(&short, &counts, &mut Silent).unwrap();
        let whole = long.train(&counts, &mut Silent).unwrap();
        assert_eq!(extended.rules(), whole.rules());
        assert!(extended.vocab() == whole.vocab());
    }
}

#[test]
fn a_resumed_extension_is_the_whole_one() {
    let (first, second) = (counts(&[("hug", 10), ("pug", 5)]), counts(&[("hugs", 7), ("bugs", 4)]));
    let trainer = |merges| merges_of(merges, Alphabet::Byte, Ties::LowestIds);
    let short = trainer(2).train(&first, &mut Silent).unwrap();
    let mut steps = Vec::new();
    let whole = trainer(5).extend(&short, &second, &mut Steps(&mut steps)).unwrap();
    let made: Vec<_> = steps.iter().map(|step| (step.left, step.right)).collect();
    assert_eq!(made.len(), 5);
    for at in 0..=made.len() {
        let resumed = trainer(5).resume_extending(&short, &made[..at], &second, &mut Silent);
        assert_eq!(resumed.unwrap().rules(), whole.rules(), "{at}");
    }
    let other = [(TokenId(1), TokenId(1))];
    let error = trainer(5).resume_extending(&short, &other, &second, &mut Silent).unwrap_err();
    assert_eq!(error.to_string(), "the given merges do not begin with those of the model");
}

#[test]
fn only_lists_of_merges_are_extended() {
    let counts = counts(&[("ab", 3)]);
    let ranks = Bpe::from_ranks(
        BpeTrainer::default().train(&counts, &mut Silent).unwrap().vocab().clone(),
        bpe::BpeOptions::default(),
    );
    let error = BpeTrainer::default().extend(&ranks.unwrap(), &counts, &mut Silent).unwrap_err();
    assert!(error.to_string().contains("list of merges"), "{error}");
    let error = merges_of(9, Alphabet::Byte, Ties::LowestIds)
        .resume(&[(TokenId(900), TokenId(1))], &counts, &mut Silent)
        .unwrap_err();
    assert!(error.to_string().contains("not made yet"), "{error}");
}
