//! Conversions keep the ids, or say what keeps them from it.

#![allow(clippy::unwrap_used)] // A test's unwrap is its assertion.

use formats::gguf::GgufVocab;
use formats::sentencepiece::{ModelType, NormalizerSpec, SentencePieceModel, TrainerSpec};
use formats::tokenizer_json as doc;
use formats::vocab_txt::VocabTxt;
use formats::{IdMap, tiktoken};
use tokenizer::convert::{ConvertOptions, Converted, Setting, Target, convert, prove};
use tokenizer::verify::{Texts, Verdict};
use tokenizer::{BertCase, Document, LoadOptions, RanksSetup, TiktokenEncoding, Tokenizer};
use tokenizer_core::TokenKind;

fn texts(document: &Document, load: &LoadOptions) -> Texts {
    let mut texts = Texts::builtin();
    texts.push_tokens(&document.lower(load).unwrap());
    texts
}

/// Converts and proves: the texts that differ, shrunk.
fn differences(
    document: &Document,
    converted: &Converted,
    options: &ConvertOptions,
) -> Vec<String> {
    let texts = texts(document, &options.load);
    let checks = prove(document, converted, options, &texts).unwrap();
    assert!(checks.iter().all(|check| check.cases > 0), "{checks:?}");
    let failed = checks.into_iter().filter(|check| check.verdict() != Verdict::Passed);
    failed.map(|check| format!("{}: {:?}", check.law, check.example)).collect()
}

#[track_caller]
fn same(document: &Document, target: Target, options: &ConvertOptions) -> Converted {
    let converted = convert(document, target, options).unwrap();
    assert_eq!(differences(document, &converted, options), [""; 0], "{target}");
    converted
}

/// To the target and back: the same ids on both ways.
#[track_caller]
fn there_and_back(document: &Document, target: Target, load: &LoadOptions) {
    let mut options = ConvertOptions::default();
    options.load = load.clone();
    let there = same(document, target, &options);
    let own = Target::ALL.into_iter().find(|own| {
        convert(document, *own, &options)
            .is_ok_and(|same| same.document.format() == document.format())
    });
    options.load = there.load.clone();
    same(&there.document, own.unwrap(), &options);
}

#[track_caller]
fn refuses(document: &Document, target: Target, part: &str, words: &str) {
    let error = convert(document, target, &ConvertOptions::default()).unwrap_err();
    assert!(error.part().starts_with(part), "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

fn ranks() -> Document {
    let ranks = TiktokenEncoding::R50kBase.ranks().unpack();
    // A tenth of GPT-2's tokens, every one of whose parts is there.
    let pairs = ranks.iter().filter(|(rank, _)| *rank < 5000).map(|(rank, token)| (token, rank));
    Document::Tiktoken(IdMap::<[u8]>::from_pairs(pairs).unwrap())
}

fn gpt2_setup() -> LoadOptions {
    let mut load = LoadOptions::default();
    let pattern = pretok::Pattern::R50k.stages()[0].to_owned();
    let special_tokens = vec![("<|endoftext|>".to_owned(), 5000), ("<|pad|>".to_owned(), 5007)];
    load.ranks = Some(RanksSetup { pattern, special_tokens });
    load
}

fn bert(case: BertCase) -> Document {
    let mut lines = String::from("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n");
    for c in ('a'..='z').chain('0'..='9').chain("#.,'[]<>|éß海".chars()) {
        lines.push_str(&format!("{c}\n##{c}\n"));
    }
    lines.push_str("the\n##ing\nhug\n##s\n");
    if case == BertCase::Cased {
        lines.push_str("A\nThe\n");
    }
    Document::VocabTxt(VocabTxt::parse(lines.as_bytes()).unwrap())
}

/// A SentencePiece model with letters, a few longer pieces, control and byte pieces.
fn pieces(model_type: ModelType, byte_fallback: bool) -> SentencePieceModel {
    let mut model = SentencePieceModel::default();
    model.pieces.push("<unk>", 0.0, TokenKind::Unknown);
    model.pieces.push("<s>", 0.0, TokenKind::Control);
    model.pieces.push("</s>", 0.0, TokenKind::Control);
    if byte_fallback {
        for byte in 0..=255u8 {
            model.pieces.push(&format!("<0x{byte:02X}>"), 0.0, TokenKind::Byte);
        }
    }
    let long =
        ["\u{2581}t", "he", "\u{2581}the", "in", "ing", "\u{2581}a", "er", "\u{2581}\u{2581}"];
    let singles = ('a'..='z').chain("\u{2581}.,AT1é海".chars());
    let mut number = 0.0f32;
    let mut score = || {
        number += 1.0;
        match model_type {
            ModelType::Unigram => -3.0 - number.sqrt(),
            _ => -number,
        }
    };
    if model_type != ModelType::Char {
        for piece in long {
            // Long runs of equal scores are ties that 32-bit and 64-bit sums break otherwise.
            if piece == "\u{2581}\u{2581}" && model_type == ModelType::Unigram {
                continue;
            }
            model.pieces.push(piece, score(), TokenKind::Normal);
        }
    }
    for c in singles {
        model.pieces.push(c.encode_utf8(&mut [0; 4]), score(), TokenKind::Normal);
    }
    let mut trainer = TrainerSpec::default();
    trainer.set_model_type(model_type);
    trainer.byte_fallback = Some(byte_fallback);
    trainer.input = vec!["someone/private.txt".into()];
    model.trainer_spec = Some(trainer);
    model.normalizer_spec = Some(NormalizerSpec {
        add_dummy_prefix: Some(true),
        remove_extra_whitespaces: Some(false),
        escape_whitespaces: Some(true),
        ..NormalizerSpec::default()
    });
    model
}

fn spm(model: SentencePieceModel) -> Document {
    Document::SentencePiece(Box::new(model))
}

#[test]
fn ranks_become_a_tokenizer_json_and_come_back() {
    there_and_back(&ranks(), Target::TokenizerJson, &gpt2_setup());
    let mut options = ConvertOptions::default();
    options.load = gpt2_setup();
    let json = same(&ranks(), Target::TokenizerJson, &options).document;
    let back = same(&json, Target::Tiktoken, &ConvertOptions::default());
    let Document::Tiktoken(back) = &back.document else { panic!("ranks") };
    let Document::Tiktoken(original) = ranks() else { panic!("ranks") };
    assert_eq!(tiktoken::to_text(back), tiktoken::to_text(&original));
}

#[test]
fn a_published_encoding_keeps_the_ids_of_its_special_tokens() {
    let tokens = TiktokenEncoding::Cl100kBase.ranks().unpack();
    let ranks = IdMap::<[u8]>::from_pairs(tokens.iter().map(|(rank, token)| (token, rank)));
    let document = Document::Tiktoken(ranks.unwrap());
    let json = convert(&document, Target::TokenizerJson, &ConvertOptions::default()).unwrap();
    let json = json.document.lower(&LoadOptions::default()).unwrap();
    let original = Tokenizer::from_encoding(TiktokenEncoding::Cl100kBase);
    assert_eq!(json.token_id("<|endofprompt|>"), original.token_id("<|endofprompt|>"));
    let text = "It's 12345 tokens\r\n\r\n  xử lý\t!!! <|endoftext|>";
    assert_eq!(json.ids(text), original.ids(text));
}

#[test]
fn ranks_become_a_tekken_json_with_other_ids() {
    let mut options = ConvertOptions::default();
    options.load = gpt2_setup();
    let tekken = same(&ranks(), Target::Tekken, &options);
    assert!(tekken.ids_move);
    same(&tekken.document, Target::TokenizerJson, &ConvertOptions::default());
    same(&tekken.document, Target::Tiktoken, &ConvertOptions::default());
}

#[test]
fn gpt2_files_become_a_tokenizer_json_and_come_back() {
    let mut options = ConvertOptions::default();
    let mut load = gpt2_setup();
    load.ranks.as_mut().unwrap().special_tokens.truncate(1);
    options.load = load;
    let json = same(&ranks(), Target::TokenizerJson, &options).document;
    let files = same(&json, Target::Gpt2, &ConvertOptions::default());
    assert_eq!(files.document.to_files().unwrap().len(), 2);
    there_and_back(&files.document, Target::TokenizerJson, &LoadOptions::default());
    same(&files.document, Target::Tiktoken, &ConvertOptions::default());
}

#[test]
fn a_vocab_txt_becomes_a_tokenizer_json_and_comes_back() {
    for case in [BertCase::Cased, BertCase::Uncased] {
        let mut load = LoadOptions::default();
        load.case = Some(case);
        there_and_back(&bert(case), Target::TokenizerJson, &load);
    }
}

#[test]
fn sentencepiece_bpe_becomes_a_tokenizer_json_and_comes_back() {
    for byte_fallback in [false, true] {
        let document = spm(pieces(ModelType::Bpe, byte_fallback));
        there_and_back(&document, Target::TokenizerJson, &LoadOptions::default());
    }
}

#[test]
fn sentencepiece_unigram_becomes_a_tokenizer_json_and_comes_back() {
    for byte_fallback in [false, true] {
        let document = spm(pieces(ModelType::Unigram, byte_fallback));
        there_and_back(&document, Target::TokenizerJson, &LoadOptions::default());
    }
}

#[test]
fn sentencepiece_characters_become_a_tokenizer_json() {
    let document = spm(pieces(ModelType::Char, false));
    same(&document, Target::TokenizerJson, &ConvertOptions::default());
}

#[test]
fn spaces_are_removed_as_sentencepiece_removes_them() {
    for (dummy, escape) in [(true, true), (false, true), (true, false), (false, false)] {
        let mut model = pieces(ModelType::Bpe, true);
        let spec = model.normalizer_spec.as_mut().unwrap();
        spec.remove_extra_whitespaces = Some(true);
        spec.add_dummy_prefix = Some(dummy);
        spec.escape_whitespaces = Some(escape);
        let converted =
            convert(&spm(model.clone()), Target::TokenizerJson, &ConvertOptions::default())
                .unwrap();
        let found = differences(&spm(model), &converted, &ConvertOptions::default());
        // Decoding of texts that begin with a literal mark may differ; ids may not.
        let ids: Vec<&String> = found.iter().filter(|f| f.starts_with("same ids")).collect();
        assert_eq!(ids, [&""; 0], "{dummy} {escape}");
    }
}

#[test]
fn training_information_goes_on_request() {
    let document = spm(pieces(ModelType::Bpe, false));
    let kept = convert(&document, Target::SentencePiece, &ConvertOptions::default()).unwrap();
    let mut options = ConvertOptions::default();
    options.strip_training_info = true;
    let stripped = same(&document, Target::SentencePiece, &options);
    let holds = |document: &Document| {
        let bytes = &document.to_files().unwrap()[0].1;
        bytes.windows(7).any(|window| window == b"private")
    };
    assert!(holds(&kept.document) && !holds(&stripped.document));
}

#[test]
fn gguf_becomes_what_it_was_made_from() {
    let mut vocab = GgufVocab { model: "llama".into(), ..GgufVocab::default() };
    let mut kinds = Vec::new();
    let mut scores = Vec::new();
    for piece in pieces(ModelType::Bpe, false).pieces.iter() {
        vocab.tokens.push(piece.piece);
        kinds.push(piece.kind);
        scores.push(piece.score);
    }
    vocab.token_types = Some(kinds);
    vocab.scores = Some(scores);
    let document = Document::Gguf(Box::new(vocab));
    same(&document, Target::SentencePiece, &ConvertOptions::default());
    same(&document, Target::TokenizerJson, &ConvertOptions::default());
}

fn json_of(document: &Document, load: LoadOptions) -> doc::TokenizerJson {
    let mut options = ConvertOptions::default();
    options.load = load;
    match convert(document, Target::TokenizerJson, &options).unwrap().document {
        Document::TokenizerJson(json) => *json,
        other => panic!("{other:?}"),
    }
}

fn document(json: &doc::TokenizerJson) -> Document {
    Document::TokenizerJson(Box::new(json.clone()))
}

#[test]
fn what_ranks_cannot_say_is_refused_by_name() {
    let json = json_of(&ranks(), gpt2_setup());
    let check = |change: &dyn Fn(&mut doc::TokenizerJson), part: &str, words: &str| {
        let mut json = json.clone();
        change(&mut json);
        for target in [Target::Tiktoken, Target::Tekken] {
            refuses(&document(&json), target, part, words);
        }
    };
    check(&|json| json.normalizer = Some(doc::Normalizer::Nfc), "normalizer", "has none");
    check(&|json| json.pre_tokenizer = Some(doc::PreTokenizer::Bert), "pre_tokenizer", "bytes");
    check(&|json| json.added_tokens[0].lstrip = true, "added_tokens", "lstrip");
    check(&|json| json.added_tokens[0].special = false, "added_tokens", "special tokens alone");
    check(
        &|json| {
            json.truncation = Some(doc::Truncation {
                direction: doc::Direction::Right,
                max_length: 9,
                strategy: doc::TruncationStrategy::LongestFirst,
                stride: 0,
            });
        },
        "truncation",
        "left out on request",
    );
    let bpe = |json: &mut doc::TokenizerJson, change: &dyn Fn(&mut doc::Bpe)| {
        if let doc::Model::Bpe(model) = &mut json.model {
            change(model);
        }
    };
    check(&|json| bpe(json, &|model| model.dropout = Some(0.1)), "dropout", "cannot hold it");
    check(&|json| bpe(json, &|model| model.merges.swap(5, 6)), "model.merges", "order of ids");
    check(
        &|json| bpe(json, &|model| model.merges.truncate(700)),
        "model.merges",
        "which the file does not",
    );
    check(
        &|json| bpe(json, &|model| model.end_of_word_suffix = Some("</w>".into())),
        "model.end_of_word_suffix",
        "has none",
    );
}

#[test]
fn settings_are_left_out_on_request() {
    let mut json = json_of(&ranks(), gpt2_setup());
    if let doc::Model::Bpe(model) = &mut json.model {
        model.dropout = Some(0.5);
    }
    let mut options = ConvertOptions::default();
    options.drop = vec![Setting::Dropout];
    let converted = convert(&document(&json), Target::Tiktoken, &options).unwrap();
    assert!(converted.lost.iter().any(|lost| lost.contains("dropout")), "{:?}", converted.lost);
}

#[test]
fn what_a_vocab_txt_cannot_say_is_refused_by_name() {
    let json = json_of(&bert(BertCase::Uncased), LoadOptions::default());
    let check = |change: &dyn Fn(&mut doc::TokenizerJson), part: &str, words: &str| {
        let mut json = json.clone();
        change(&mut json);
        refuses(&document(&json), Target::VocabTxt, part, words);
    };
    check(&|json| json.normalizer = None, "normalizer", "BERT's normalizer");
    check(&|json| json.pre_tokenizer = None, "pre_tokenizer", "BERT's splitter");
    check(&|json| json.added_tokens[4].lstrip = true, "added_tokens", "\"[MASK]\" is lstrip");
    check(&|json| drop(json.added_tokens.remove(3)), "added_tokens", "[SEP] is none");
    let piece = |json: &mut doc::TokenizerJson, change: &dyn Fn(&mut doc::WordPiece)| {
        if let doc::Model::WordPiece(model) = &mut json.model {
            change(model);
        }
    };
    check(
        &|json| piece(json, &|model| model.max_input_chars_per_word = 7),
        "model.max_input_chars_per_word",
        "not 7",
    );
    refuses(&ranks_json(), Target::VocabTxt, "model", "not BPE");
}

fn ranks_json() -> Document {
    document(&json_of(&ranks(), gpt2_setup()))
}

#[test]
fn what_a_sentencepiece_model_cannot_say_is_refused_by_name() {
    refuses(&ranks_json(), Target::SentencePiece, "pre_tokenizer", "cuts nothing");
    refuses(&bert(BertCase::Cased), Target::SentencePiece, "normalizer", "rules for spaces");
    let json = json_of(&spm(pieces(ModelType::Bpe, false)), LoadOptions::default());
    let check = |change: &dyn Fn(&mut doc::TokenizerJson), part: &str, words: &str| {
        let mut json = json.clone();
        change(&mut json);
        refuses(&document(&json), Target::SentencePiece, part, words);
    };
    check(&|json| json.added_tokens[0].special = false, "added_tokens", "the whole text");
    let bpe = |json: &mut doc::TokenizerJson, change: &dyn Fn(&mut doc::Bpe)| {
        if let doc::Model::Bpe(model) = &mut json.model {
            change(model);
        }
    };
    check(&|json| bpe(json, &|model| model.fuse_unk = false), "model.fuse_unk", "in a row");
    check(&|json| bpe(json, &|model| model.ignore_merges = true), "model.ignore_merges", "merges");
    check(&|json| bpe(json, &|model| model.unk_token = None), "model.unk_token", "unknown piece");
}

/// What works character by character becomes rules of the charsmap.
#[test]
fn normalizers_of_single_characters_become_a_charsmap() {
    let replace = |from: &str, to: &str| {
        doc::Normalizer::Replace(doc::Replace {
            pattern: doc::Pattern::String(from.to_owned()),
            content: to.to_owned(),
        })
    };
    let charsmap = normalize::Charsmap::from_rules([("ﬁ", "FI"), ("é", "É")]);
    let charsmap = doc::Normalizer::Precompiled { charsmap: charsmap.unwrap().to_bytes() };
    let steps = [
        (false, vec![doc::Normalizer::Lowercase, replace("b", "AT")]),
        (true, vec![doc::Normalizer::Nmt, doc::Normalizer::Lowercase]),
        (true, vec![doc::Normalizer::StripAccents, replace("a", "")]),
    ];
    let model = |model_type, remove_extra| {
        let mut model = pieces(model_type, true);
        model.normalizer_spec.as_mut().unwrap().remove_extra_whitespaces = Some(remove_extra);
        json_of(&spm(model), LoadOptions::default())
    };
    for model_type in [ModelType::Bpe, ModelType::Unigram] {
        for (remove_extra, steps) in &steps {
            let mut json = model(model_type, *remove_extra);
            let spaces = json.normalizer.take().unwrap();
            let all = steps.iter().cloned().chain([spaces]).collect();
            json.normalizer = Some(doc::Normalizer::Sequence(all));
            let (original, options) = (document(&json), ConvertOptions::default());
            let converted = convert(&original, Target::SentencePiece, &options).unwrap();
            let mut found = differences(&original, &converted, &options);
            if *remove_extra {
                // As above: decoding of texts that begin with a literal mark.
                found.retain(|difference| difference.starts_with("same ids"));
            }
            assert_eq!(found, [""; 0], "{steps:?}");
        }
    }
    // What a charsmap writes goes through them too. (Of graphemes the two libraries differ.)
    let mut json = model(ModelType::Bpe, false);
    let spaces = json.normalizer.take().unwrap();
    let steps = vec![charsmap, doc::Normalizer::Lowercase, spaces.clone()];
    json.normalizer = Some(doc::Normalizer::Sequence(steps));
    let converted =
        convert(&document(&json), Target::SentencePiece, &ConvertOptions::default()).unwrap();
    let ids = |document: &Document| document.lower(&LoadOptions::default()).unwrap().ids("ﬁ éÉA");
    assert_eq!(ids(&converted.document), ids(&document(&json)));
    json.normalizer = Some(doc::Normalizer::Sequence(vec![doc::Normalizer::Nmt, spaces]));
    refuses(&document(&json), Target::SentencePiece, "normalizer", "deletes characters");
    // Behind the rules for spaces there is no place for them.
    let mut json = json_of(&spm(pieces(ModelType::Bpe, true)), LoadOptions::default());
    let spaces = json.normalizer.take().unwrap();
    let steps = vec![spaces, doc::Normalizer::Lowercase];
    json.normalizer = Some(doc::Normalizer::Sequence(steps));
    refuses(&document(&json), Target::SentencePiece, "normalizer", "behind these");
}

#[test]
fn what_a_tokenizer_json_cannot_say_is_refused_by_name() {
    let mut model = pieces(ModelType::Bpe, false);
    model.pieces.push("<sep>", 0.0, TokenKind::UserDefined);
    refuses(&spm(model), Target::TokenizerJson, "pieces", "user-defined");
    let mut model = pieces(ModelType::Unigram, false);
    model.pieces.push("gone", -9.0, TokenKind::Unused);
    refuses(&spm(model), Target::TokenizerJson, "pieces", "unused");
    let words = pieces(ModelType::Word, false);
    refuses(&spm(words), Target::TokenizerJson, "trainer_spec.model_type", "in a row");
}

#[test]
fn user_defined_symbols_become_added_tokens_where_no_space_is_put_in_front() {
    let mut model = pieces(ModelType::Bpe, true);
    model.pieces.push("<sep>", 0.0, TokenKind::UserDefined);
    model.normalizer_spec.as_mut().unwrap().add_dummy_prefix = Some(false);
    there_and_back(&spm(model), Target::TokenizerJson, &LoadOptions::default());
}

/// huggingface/tokenizers#1682: merges of a token with itself must be kept.
#[test]
fn merges_of_equal_halves_are_kept() {
    let json = json_of(&spm(pieces(ModelType::Bpe, false)), LoadOptions::default());
    let doc::Model::Bpe(model) = &json.model else { panic!("BPE") };
    let mark = model.vocab.get("\u{2581}").unwrap();
    assert!(model.merges.iter().any(|merge| merge.left == mark && merge.right == mark));
}

#[test]
fn a_difference_is_found_and_shown_in_the_shortest_text() {
    let document_of = |with_merge: bool| {
        let mut json = json_of(&spm(pieces(ModelType::Bpe, false)), LoadOptions::default());
        if let doc::Model::Bpe(model) = &mut json.model
            && !with_merge
        {
            let he = model.vocab.get("he").unwrap();
            model.merges.retain(|merge| merge.product != he);
        }
        document(&json)
    };
    let mut converted =
        convert(&document_of(true), Target::TokenizerJson, &ConvertOptions::default()).unwrap();
    converted.document = document_of(false);
    let found = differences(&document_of(true), &converted, &ConvertOptions::default());
    assert!(found[0].contains("text: Some(\"he\")"), "{found:?}");
}
