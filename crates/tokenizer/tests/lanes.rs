//! The short way from raw text to ids is the long way: on the tokenizers that models ship, and on
//! random ones made to break its proofs.
//!
//! A whole encoding with offsets never takes a lane, so its ids are what is right.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

use std::num::NonZeroUsize;

use bpe::{Alphabet, Bpe, BpeOptions};
use normalize::{
    BertNormalizer, Charsmap, Find, Form, Lowercase, Metaspace, Nmt, Precompiled, Prepend,
    PrependScheme, Replace, SentencePieceNormalizer, Sequence, SpaceOptions, Strip, StripAccents,
    UnicodeForm,
};
use pretok::{Behavior, Delimiter, PatternSplit};
use tokenizer::{
    AddedToken, EncodeOptions, Parts, PieceStep, Policy, Session, SessionOptions, Tokenizer,
};
use tokenizer_core::{Model, Normalize, Rng, Span, TokenId, TokenKind, Vocab};
use unigram::{Compat, Unigram, UnigramOptions};
use wordpiece::WordPiece;

/// Ids, count and the ids of an encoding agree. If not, fails with a text that is as short as
/// taking characters away makes it.
#[track_caller]
fn check(session: &mut Session<'_>, text: &str) {
    let Some(mut wrong) = difference(session, text) else { return };
    let mut text = text.to_owned();
    while let Some((shorter, difference)) = text.char_indices().find_map(|(at, c)| {
        let shorter = [&text[..at], &text[at + c.len_utf8()..]].concat();
        difference(session, &shorter).map(|difference| (shorter, difference))
    }) {
        (text, wrong) = (shorter, difference);
    }
    panic!("{text:?}: {wrong}");
}

fn difference(session: &mut Session<'_>, text: &str) -> Option<String> {
    let options = EncodeOptions::new().policy(Policy::AllowAll);
    let expected = session.encode(text, &options).unwrap().ids;
    let mut ids = Vec::new();
    session.ids_with_policy_into(text, &Policy::AllowAll, &mut ids).unwrap();
    let count = session.count_with_policy(text, &Policy::AllowAll).unwrap();
    (ids != expected || count != ids.len())
        .then(|| format!("{ids:?}, {count} of them, and not {expected:?}"))
}

/// A text of what lanes have to be careful with.
fn hostile_text(rng: &mut Rng, alphabet: &[&str], len: u64) -> String {
    let mut text = String::new();
    let few: Vec<&str> =
        (0..4).map(|_| alphabet[rng.below(alphabet.len() as u64) as usize]).collect();
    for _ in 0..rng.below(len) {
        let part = match rng.below(3) {
            0 => alphabet[rng.below(alphabet.len() as u64) as usize],
            _ => few[rng.below(4) as usize],
        };
        // Now and then a run.
        let times = if rng.below(100) == 0 { 1 + rng.below(150) } else { 1 };
        (0..times).for_each(|_| text.push_str(part));
        if rng.below(5) == 0 {
            text.push(' ');
        }
    }
    text
}

/// Spaces, marks, what normalizers turn into spaces or delete, marks that combine, ideographs,
/// characters of every length, parts of words.
const HOSTILE: &[&str] = &[
    " ",
    "  ",
    "   ",
    "\t",
    "\n",
    "\r\n",
    "\u{b}",
    "\u{c}",
    "\0",
    "\u{1}",
    "\u{7f}",
    "\u{85}",
    "\u{a0}",
    "\u{ad}",
    "\u{200b}",
    "\u{2581}",
    "\u{2581}\u{2581}",
    "\u{3000}",
    "\u{2028}",
    "\u{feff}",
    "\u{fffd}",
    "\u{301}",
    "\u{300}",
    "\u{308}",
    "\u{345}",
    "\u{20e3}",
    "\u{302e}",
    "\u{600}",
    "\u{d4e}",
    "\u{110bd}",
    "\u{200d}",
    "\u{fe0f}",
    "a",
    "b",
    "c",
    "ab",
    "ba",
    "abc",
    "aa",
    "A",
    "B",
    "É",
    "e",
    "é",
    "ﬁ",
    "Ａ",
    "①",
    "½",
    "İ",
    "ß",
    "Σ",
    "的",
    "中",
    "文",
    "㐀",
    "\u{20000}",
    "カ",
    "が",
    "가",
    "か",
    "\u{3099}",
    "ｶ",
    "ﾞ",
    "，",
    "。",
    "ก",
    "ำ",
    "д",
    "дa",
    "😀",
    "👨\u{200d}👩",
    "1",
    "12",
    "0",
    ".",
    ",",
    "...",
    "!",
    "-",
    "--",
    "(",
    ")",
    "$",
    "+",
    "`",
    "~",
    "##",
    "#a",
    "'s",
    "_",
    "<s>",
    "<x>",
    "<0x41>",
    "</s>",
    "[UNK]",
    "[MASK]",
];

fn vocab(tokens: &[(String, TokenKind)]) -> Vocab {
    let mut vocab = Vocab::builder();
    for (token, kind) in tokens {
        let bytes = token.as_bytes();
        let _ = match kind {
            TokenKind::Byte => vocab.push(&[bytes[0]], TokenKind::Byte),
            _ => vocab.push(bytes, *kind),
        };
    }
    vocab.build()
}

/// Cuts in front of every mark.
fn split_at_marks() -> PieceStep {
    PieceStep::Split(Box::new(PatternSplit {
        delimiter: Delimiter::Literal("\u{2581}".to_owned()),
        behavior: Behavior::MergedWithNext,
        invert: false,
    }))
}

/// A few of the hostile parts, so that they meet in tokens, rules and texts.
fn few(rng: &mut Rng) -> Vec<&'static str> {
    let len = [6, 12, HOSTILE.len() as u64][rng.below(3) as usize];
    let pick = |_| HOSTILE[rng.below(HOSTILE.len() as u64) as usize];
    (0..len).map(pick).collect()
}

fn random_word(rng: &mut Rng, alphabet: &[&str]) -> String {
    (0..1 + rng.below(3)).map(|_| alphabet[rng.below(alphabet.len() as u64) as usize]).collect()
}

/// Random tokens over the hostile alphabet; now and then one that holds a space or a mark inside.
fn random_tokens(rng: &mut Rng, alphabet: &[&str]) -> Vec<(String, TokenKind)> {
    let mut tokens = vec![("<unk>".to_owned(), TokenKind::Unknown)];
    if rng.below(8) > 0 {
        tokens.push(("\u{2581}".to_owned(), TokenKind::Normal));
    }
    for &part in alphabet {
        if rng.below(2) == 0 {
            tokens.push((part.to_owned(), TokenKind::Normal));
        }
    }
    let careless = rng.below(4) == 0;
    let mixes = rng.below(2) == 0;
    for _ in 0..rng.below(60) {
        let mut word = random_word(rng, alphabet);
        if !careless {
            word = word.replace([' ', '\u{2581}'], "");
            // Most vocabularies do not mix letters and punctuation.
            if !mixes && rng.below(20) > 0 {
                word.retain(|c| c.is_alphanumeric());
            }
        }
        if rng.below(2) == 0 {
            word.insert(0, '\u{2581}');
        }
        if word.is_empty() {
            continue;
        }
        let kind = match rng.below(24) {
            0 => TokenKind::UserDefined,
            1 => TokenKind::Unused,
            2 => TokenKind::Control,
            _ => TokenKind::Normal,
        };
        tokens.push((word, kind));
    }
    tokens
}

fn random_charsmap(rng: &mut Rng, alphabet: &[&str]) -> Option<Charsmap> {
    let fixed = [
        ("\t", " "),
        ("\n", " "),
        ("\u{1}", ""),
        ("\u{3000}", " "),
        ("\u{200b}", " "),
        ("ﬁ", "fi"),
        ("Ａ", "A"),
        ("①", "1"),
        ("e\u{301}", "é"),
        ("a\u{300}", "à"),
        ("½", "1\u{2044}2"),
        ("\u{2581}", " "),
        ("A", "a"),
        ("\u{fffd}", ""),
        ("が", "カ\u{3000}"),
        ("가", " x "),
        ("\u{308}", " \u{308}"),
        ("д", "\u{2581}"),
        ("か\u{3099}", "が"),
        ("ｶ", "カ"),
        ("ｶﾞ", "が"),
        ("，", ","),
        ("中", "中 "),
        ("文\u{3099}", ""),
    ];
    match rng.below(4) {
        0 => return None,
        1 => return Charsmap::from_rules(fixed).ok(),
        _ => {}
    }
    let mut rules = Vec::new();
    for _ in 0..1 + rng.below(12) {
        if rng.below(2) > 0 {
            let (source, target) = fixed[rng.below(fixed.len() as u64) as usize];
            rules.push((source.to_owned(), target.to_owned()));
        } else {
            let word = random_word(rng, alphabet).replace('\0', "x");
            let target = random_word(rng, alphabet).replace('\0', "x");
            rules.push((word, if rng.below(3) == 0 { String::new() } else { target }));
        }
    }
    Charsmap::from_rules(rules).ok()
}

fn random_bpe(rng: &mut Rng, alphabet: &[&str], from_scores: bool) -> Option<Bpe> {
    let mut tokens = random_tokens(rng, alphabet);
    let mut options = BpeOptions::default();
    options.alphabet = Alphabet::Char;
    options.unk = (rng.below(4) > 0).then_some(TokenId(0));
    options.fuse_unk = rng.below(2) == 0;
    options.byte_fallback = rng.below(2) == 0;
    options.ignore_merges = rng.below(8) == 0;
    let mut vocab = vocab(&tokens);
    if options.byte_fallback {
        let mut builder = Vocab::builder();
        for (_, bytes, kind) in vocab.iter() {
            builder.push(bytes, kind).unwrap();
        }
        for byte in 0..=255 {
            builder.push(&[byte], TokenKind::Byte).unwrap();
        }
        vocab = builder.build();
    }
    if from_scores {
        let scores = (0..vocab.len()).map(|_| -(rng.below(20) as f32)).collect();
        return Bpe::from_scores(vocab, scores, options).ok();
    }
    // Every split of every token into two tokens, in random order.
    tokens.retain(|token| token.1 == TokenKind::Normal);
    let mut merges = Vec::new();
    for (token, _) in &tokens {
        for (at, _) in token.char_indices().skip(1) {
            let (left, right) = token.as_bytes().split_at(at);
            let pair = (vocab.get(left), vocab.get(right));
            let listed = |id: &TokenId| vocab.kind(*id) == Some(TokenKind::Normal);
            if let (Some(left), Some(right)) = pair
                && listed(&left)
                && listed(&right)
            {
                merges.insert(rng.below(merges.len() as u64 + 1) as usize, (left, right));
            }
        }
    }
    Bpe::from_merges(vocab, merges, options).ok()
}

fn random_unigram(rng: &mut Rng, alphabet: &[&str], compat: Compat) -> Option<Unigram> {
    let tokens = random_tokens(rng, alphabet);
    let mut options = UnigramOptions::default();
    options.compat = compat;
    options.byte_fallback = rng.below(3) == 0;
    options.fuse_unk = compat == Compat::HuggingFace || rng.below(4) > 0;
    let mut builder = Vocab::builder();
    for (_, bytes, kind) in vocab(&tokens).iter() {
        builder.push(bytes, kind).unwrap();
    }
    if options.byte_fallback {
        for byte in 0..=255 {
            builder.push(&[byte], TokenKind::Byte).unwrap();
        }
    }
    let vocab = builder.build();
    let near = [0.0, 1e-6, 1e-4, 0.01][rng.below(4) as usize];
    let scores = vocab
        .iter()
        .map(|(_, bytes, _)| -(bytes.len() as f64) * 2.0 - 3.0 + near * rng.below(9) as f64)
        .collect();
    Unigram::new(vocab, scores, options).ok()
}

fn added(rng: &mut Rng) -> Vec<AddedToken> {
    let mut tokens = Vec::new();
    if rng.below(2) == 0 {
        tokens.push(AddedToken::special("<x>", TokenId(900)));
        tokens.push(AddedToken::special("<s>", TokenId(901)));
    }
    tokens
}

/// Shows a tokenizer when a test fails with it.
struct Shown<'t>(&'t Tokenizer);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for (id, bytes, kind) in self.0.vocab().iter().filter(|t| t.2 != TokenKind::Byte) {
                eprintln!("{id:?} {:?} {kind:?}", String::from_utf8_lossy(bytes));
            }
        }
    }
}

/// Builds and compares on random texts. Returns whether there was a lane.
fn try_out(mut parts: Parts, rng: &mut Rng, alphabet: &[&str]) -> bool {
    parts.added_tokens = added(rng);
    let tokenizer = parts.build().unwrap();
    // What sessions build that met much.
    if rng.below(2) == 0 {
        tokenizer.prepare();
    }
    let mut session = tokenizer.session();
    let _on_failure = Shown(&tokenizer);
    let mut batch = tokenizer.batch();
    for len in [3, 12, 12, 60, 60, 400] {
        let text = hostile_text(rng, alphabet, len);
        check(&mut session, &text);
        let expected = tokenizer.ids(&text);
        for chunk in [1, 7] {
            let ids = batch.ids_of_one_in(&text, NonZeroUsize::new(chunk).unwrap());
            assert_eq!(ids, expected, "in chunks of {chunk} bytes: {text:?}");
        }
    }
    if rng.below(16) == 0 {
        // More units than lines have room for, more than once.
        let mut session = tokenizer.session_with(&SessionOptions::new().memory(1 << 15));
        let text = hostile_text(rng, alphabet, 6000);
        (0..3).for_each(|_| check(&mut session, &text));
    }
    tokenizer.has_lane()
}

/// A random model of SentencePiece with its normalizer.
fn sentencepiece_parts(rng: &mut Rng, alphabet: &[&str], is_bpe: bool) -> Option<Parts> {
    let model: Box<dyn Model> = if is_bpe {
        Box::new(random_bpe(rng, alphabet, true)?)
    } else {
        Box::new(random_unigram(rng, alphabet, Compat::SentencePiece)?)
    };
    let mut spaces = SpaceOptions::default();
    spaces.add_dummy_prefix = rng.below(4) > 0;
    spaces.remove_extra_whitespaces = rng.below(2) == 0;
    spaces.escape_whitespaces = rng.below(8) > 0;
    spaces.treat_whitespace_as_suffix = rng.below(8) == 0;
    let user_defined: Vec<String> = model
        .vocab()
        .iter()
        .filter(|token| token.2 == TokenKind::UserDefined && rng.below(8) > 0)
        .map(|token| String::from_utf8(token.1.to_vec()).unwrap())
        .collect();
    let normalizer = SentencePieceNormalizer::new(random_charsmap(rng, alphabet))
        .with_spaces(spaces)
        .with_user_defined(user_defined.into_iter().collect());
    let mut parts = Parts::new(model);
    parts.normalizer = Some(Box::new(normalizer));
    Some(parts)
}

#[test]
fn sentencepiece_models() {
    let mut rng = Rng::new(101);
    let mut lanes = [0, 0];
    for round in 0..1500 {
        let alphabet = few(&mut rng);
        let parts = sentencepiece_parts(&mut rng, &alphabet, round % 2 == 0);
        let Some(parts) = parts else { continue };
        lanes[round % 2] += usize::from(try_out(parts, &mut rng, &alphabet));
    }
    assert!(lanes.iter().all(|&n| n > 80), "{lanes:?} lanes");
}

/// A lane gives up looking for units where nearly all are new.
#[test]
fn characters_that_are_new_are_encoded_together() {
    let mut rng = Rng::new(108);
    let mut lanes = 0;
    for round in 0..240 {
        let alphabet = few(&mut rng);
        let parts = sentencepiece_parts(&mut rng, &alphabet, round % 2 == 0);
        let Some(tokenizer) = parts.map(|parts| parts.build().unwrap()) else { continue };
        if !tokenizer.has_lane() {
            continue;
        }
        lanes += 1;
        let mut text = String::new();
        for _ in 0..8_000 {
            if rng.below(16) == 0 {
                text.push_str(alphabet[rng.below(alphabet.len() as u64) as usize]);
            } else {
                text.extend(char::from_u32(rng.below(0x11_0000) as u32));
            }
        }
        check(&mut tokenizer.session(), &text);
    }
    assert!(lanes > 20, "{lanes} lanes");
}

/// What Hugging Face's files do to mark spaces: by normalizers, or by Metaspace; and a splitter at
/// marks.
fn marking_parts(model: Box<dyn Model>, kind: u32, rng: &mut Rng, alphabet: &[&str]) -> Parts {
    let mut parts = Parts::new(model);
    let rules = if kind >= 3 { random_charsmap(rng, alphabet) } else { None };
    let mut splits = kind >= 2 || rng.below(2) == 0;
    if kind == 0 || kind == 3 {
        let mut normalizer = Sequence::new();
        if let Some(rules) = rules {
            normalizer = normalizer.then(Precompiled::new(rules));
        }
        normalizer =
            normalizer.then(Prepend::new("\u{2581}")).then(Replace::literal(" ", "\u{2581}"));
        parts.normalizer = Some(Box::new(normalizer));
        splits = kind == 3;
    } else {
        parts.normalizer = rules.map(|rules| Box::new(Precompiled::new(rules)) as _);
        let schemes = [PrependScheme::Always, PrependScheme::Never];
        let scheme = schemes[rng.below(2) as usize];
        parts.steps.push(PieceStep::Edit(Box::new(Metaspace::new('\u{2581}', scheme))));
    }
    if splits {
        parts.steps.push(split_at_marks());
    }
    parts
}

#[test]
fn hugging_face_models_with_marks() {
    let mut rng = Rng::new(102);
    let mut lanes = [0; 5];
    for round in 0..1500 {
        let alphabet = few(&mut rng);
        let kind = round % 5;
        let is_bpe = kind < 2 || kind > 2 && rng.below(3) == 0;
        let model: Box<dyn Model> = if is_bpe {
            let Some(model) = random_bpe(&mut rng, &alphabet, false) else { continue };
            Box::new(model)
        } else {
            let Some(model) = random_unigram(&mut rng, &alphabet, Compat::HuggingFace) else {
                continue;
            };
            Box::new(model)
        };
        let parts = marking_parts(model, kind, &mut rng, &alphabet);
        lanes[kind as usize] += usize::from(try_out(parts, &mut rng, &alphabet));
    }
    assert!(lanes.iter().all(|&n| n > 50), "{lanes:?} lanes");
}

fn random_wordpiece(rng: &mut Rng) -> WordPiece {
    let mut tokens = vec![("[UNK]".to_owned(), TokenKind::Unknown)];
    for &part in HOSTILE {
        for text in [part.to_owned(), format!("##{part}"), part.to_lowercase()] {
            if rng.below(2) == 0 && !tokens.iter().any(|token| token.0 == text) {
                tokens.push((text, TokenKind::Normal));
            }
        }
    }
    let mut options = wordpiece::Options::default();
    options.max_chars = [3, 8, 100][rng.below(3) as usize];
    WordPiece::new(vocab(&tokens), options).unwrap()
}

#[test]
fn models_of_words() {
    let mut rng = Rng::new(103);
    let mut lanes = 0;
    for _ in 0..600 {
        let alphabet = few(&mut rng);
        let mut parts = Parts::new(Box::new(random_wordpiece(&mut rng)));
        let bit = |rng: &mut Rng| rng.below(2) == 0;
        let normalizer: Option<Box<dyn Normalize>> = match rng.below(4) {
            0 => None,
            1 => Some(Box::new(Precompiled::new(match random_charsmap(&mut rng, &alphabet) {
                Some(charsmap) => charsmap,
                None => continue,
            }))),
            _ => {
                let accents = [None, Some(true), Some(false)][rng.below(3) as usize];
                let (clean, chinese, lower) = (bit(&mut rng), bit(&mut rng), bit(&mut rng));
                Some(Box::new(BertNormalizer::new(clean, chinese, accents, lower)))
            }
        };
        parts.normalizer = normalizer;
        if rng.below(3) > 0 {
            parts.steps.push(PieceStep::Split(Box::new(pretok::Bert)));
        } else {
            parts.steps.push(PieceStep::Split(Box::new(pretok::WhitespaceSplit)));
        }
        if rng.below(4) == 0 {
            let metaspace = Metaspace::new('\u{2581}', PrependScheme::Always);
            parts.steps.push(PieceStep::Edit(Box::new(metaspace)));
        }
        lanes += usize::from(try_out(parts, &mut rng, &alphabet));
    }
    assert!(lanes > 300, "{lanes} lanes");
}

/// ` {2,}`, without an engine.
struct Runs;

impl Find for Runs {
    fn find(&self, text: &str, each: &mut dyn FnMut(Span)) {
        let mut at = 0;
        while let Some(start) = text[at..].find("  ") {
            let start = at + start;
            at = text.len() - text[start..].trim_start_matches(' ').len();
            each(Span::new(start, at));
        }
    }

    fn regex(&self) -> Option<&str> {
        Some(" {2,}")
    }
}

fn random_step(rng: &mut Rng, alphabet: &[&str]) -> Option<Box<dyn Normalize>> {
    let forms = [Form::Nfc, Form::Nfd, Form::Nfkc, Form::Nfkd];
    Some(match rng.below(12) {
        0 | 1 => Box::new(Precompiled::new(random_charsmap(rng, alphabet)?)),
        2 => Box::new(UnicodeForm::new(forms[rng.below(4) as usize])),
        3 => Box::new(StripAccents),
        4 => Box::new(Lowercase),
        5 => Box::new(Nmt),
        6 => Box::new(BertNormalizer::new(true, rng.below(2) == 0, None, rng.below(2) == 0)),
        7 => Box::new(Strip::new(rng.below(2) == 0, rng.below(2) == 0)),
        8 => Box::new(Prepend::new(["\u{2581}", " ", "a"][rng.below(3) as usize])),
        9 => {
            let pattern = ["``", "a", "ab", ".", "  ", "a ", "\u{2581}"][rng.below(7) as usize];
            let content = ["\"", "", "b", " ", "x ", "\u{301}"][rng.below(6) as usize];
            Box::new(Replace::literal(pattern, content))
        }
        10 => Box::new(Replace::matches(Runs, [" ", "\u{2581}"][rng.below(2) as usize])),
        _ => Box::new(Replace::literal(" ", ["\u{2581}", " "][rng.below(2) as usize])),
    })
}

#[test]
fn chains_of_normalizers() {
    let mut rng = Rng::new(104);
    let mut lanes = [0; 3];
    for round in 0..6000 {
        let alphabet = few(&mut rng);
        let Some(model) = random_unigram(&mut rng, &alphabet, Compat::HuggingFace) else {
            continue;
        };
        let kind = round % 3;
        let mut parts = Parts::new(Box::new(model));
        let mut chain: Vec<Box<dyn Normalize>> =
            (0..rng.below(4)).filter_map(|_| random_step(&mut rng, &alphabet)).collect();
        if kind == 0 {
            chain.push(Box::new(Replace::literal(" ", "\u{2581}")));
        }
        if chain.is_empty() {
            continue;
        }
        parts.normalizer = Some(Box::new(chain.into_iter().collect::<Sequence>()));
        if kind == 2 {
            parts.steps.push(PieceStep::Split(Box::new(pretok::WhitespaceSplit)));
        }
        if kind != 0 {
            let schemes = [PrependScheme::Always, PrependScheme::Never];
            let scheme = schemes[rng.below(2) as usize];
            parts.steps.push(PieceStep::Edit(Box::new(Metaspace::new('\u{2581}', scheme))));
        }
        if kind != 2 {
            parts.steps.push(split_at_marks());
        }
        lanes[kind] += usize::from(try_out(parts, &mut rng, &alphabet));
    }
    assert!(lanes.iter().all(|&n| n > 300), "{lanes:?} lanes");
}

/// A grapheme is looked up as a whole, so a letter behind a character of the class Prepend may become
/// a space.
#[test]
fn letters_behind_prepended_characters_are_not_calm() {
    let mut tokens = vec![("<unk>".to_owned(), TokenKind::Unknown)];
    for text in ["\u{2581}", "\u{2581}b", "\u{2581}x", "a", "b", "x"] {
        tokens.push((text.to_owned(), TokenKind::Normal));
    }
    let mut options = UnigramOptions::default();
    options.compat = Compat::HuggingFace;
    let model = Unigram::new(vocab(&tokens), vec![-1.0; 7], options).unwrap();
    let mut parts = Parts::new(Box::new(model));
    let charsmap = Charsmap::from_rules([("\u{600}", " ")]).unwrap();
    let chain =
        Sequence::new().then(Precompiled::new(charsmap)).then(Replace::matches(Runs, "\u{2581}"));
    parts.normalizer = Some(Box::new(chain));
    let metaspace = Metaspace::new('\u{2581}', PrependScheme::Always);
    parts.steps.push(PieceStep::Edit(Box::new(metaspace)));
    parts.steps.push(split_at_marks());
    let tokenizer = parts.build().unwrap();
    assert!(tokenizer.has_lane());
    check(&mut tokenizer.session(), "x x\u{600}a b x  \u{600}a  b");
}

/// Text never holds a space when it comes to the model, so a token of a space does not make it known.
#[test]
fn a_token_of_a_space_is_no_mark() {
    let mut builder = Vocab::builder();
    builder.push(b"<unk>", TokenKind::Unknown).unwrap();
    for token in [" ", "a"] {
        builder.push(token.as_bytes(), TokenKind::Normal).unwrap();
    }
    let mut options = BpeOptions::default();
    options.alphabet = Alphabet::Char;
    options.unk = Some(TokenId(0));
    options.fuse_unk = true;
    let model = Bpe::from_merges(builder.build(), Vec::new(), options).unwrap();
    let mut parts = Parts::new(Box::new(model));
    let metaspace = Metaspace::new('\u{2581}', PrependScheme::Never);
    parts.steps.push(PieceStep::Edit(Box::new(metaspace)));
    parts.steps.push(split_at_marks());
    let tokenizer = parts.build().unwrap();
    assert!(tokenizer.has_lane());
    check(&mut tokenizer.session(), "a \u{a0}a a\u{a0} \u{a0}");
}
