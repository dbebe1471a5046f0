//! A model read from its image is the model that the image was made of.

#![allow(clippy::unwrap_used)] // A test's unwrap is its assertion.

use bpe::naive::NaiveEncoder;
use bpe::{Alphabet, Bpe, BpeOptions, Rules};
use tokenizer_core::{Decode, Encode, Model, Rng, Span, TokenId, TokenKind, Vocab};

/// Bytes for as long as the program runs, aligned.
fn kept(image: &[u8]) -> &'static [u8] {
    assert_eq!(image.len() % 64, 0, "arrays are padded");
    let (words, _) = image.as_chunks();
    let words: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    bytemuck::cast_slice(words.leak())
}

fn letters(rng: &mut Rng, most: u64) -> Vec<u8> {
    (0..1 + rng.below(most)).map(|_| b"ab \xC3\xA9"[rng.below(5) as usize]).collect()
}

/// Ranks over all bytes: most tokens are two earlier ones joined, some of them long, some are any letters,
/// which merging need not make, and some ids are not used.
fn random_ranks(rng: &mut Rng) -> Vocab {
    let mut builder = Vocab::builder();
    let first = rng.below(256) as u8;
    for byte in 0..=255u8 {
        builder.push(&[byte.wrapping_add(first)], TokenKind::Normal).unwrap();
    }
    let mut tokens: Vec<Vec<u8>> = b"ab \xC3\xA9".iter().map(|&byte| vec![byte]).collect();
    for _ in 0..rng.below(120) {
        let token = match rng.below(20) {
            0 => letters(rng, 40),
            1 => {
                builder.push(b"", TokenKind::Unused).unwrap();
                continue;
            }
            _ => {
                let mut pick = || tokens[rng.below(tokens.len() as u64) as usize].clone();
                [pick(), pick()].concat()
            }
        };
        if token.len() <= 60 && builder.push(&token, TokenKind::Normal).is_ok() {
            tokens.push(token);
        }
    }
    builder.build()
}

#[test]
fn a_model_read_from_its_image_is_the_model() {
    let mut rng = Rng::new(11);
    let (mut read, mut longer, mut alone, mut gaps) = (0, 0, 0, 0);
    for round in 0..100 {
        let model = Bpe::from_ranks(random_ranks(&mut rng), BpeOptions::default()).unwrap();
        let Some(image) = model.to_image() else { continue };
        let from_image = Bpe::from_image(kept(&image)).unwrap();
        assert!(from_image.to_image() == Some(image), "round {round}");
        assert!(from_image.vocab() == model.vocab());
        assert_eq!(from_image.rules(), &Rules::Ranks);
        assert_eq!(from_image.options(), model.options());
        assert_eq!(from_image.vocab().max_token_len(), model.vocab().max_token_len());
        assert_eq!(from_image.unreachable_tokens(), model.unreachable_tokens());
        assert_eq!(from_image.recover_merges(), model.recover_merges());
        read += 1;
        longer += usize::from(model.vocab().max_token_len() > 16);
        alone += usize::from(!model.unreachable_tokens().is_empty());
        gaps += usize::from(model.vocab().kinds().contains(&TokenKind::Unused));
        let text: Vec<u8> = (0..60).flat_map(|_| letters(&mut rng, 30)).collect();
        let mut spans: Vec<Span> = (0..60)
            .map(|_| {
                let start = rng.below(text.len() as u64 - 1) as usize;
                let len = 1 + rng.below((text.len() - start) as u64).min(70) as usize;
                Span::new(start, (start + len).min(text.len()))
            })
            .collect();
        spans.push(Span::new(0, text.len()));
        let naive = NaiveEncoder::new(&model);
        let mut session = from_image.session();
        let (mut ids, mut expected) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            session.encode_ids_into(&text, &spans, &mut ids);
            for span in &spans {
                let tokens = naive.encode_piece(&text[span.range()]);
                expected.extend(tokens.iter().map(|token| token.id));
                let mut alone = Vec::new();
                session.merge_piece(&text[span.range()], &mut alone);
                match session.whole_piece(&text[span.range()]) {
                    Some(id) => assert_eq!(tokens[0].id, id),
                    None => assert_eq!(alone, tokens),
                }
            }
            assert_eq!(ids, expected, "round {round}");
        }
        let mut bytes = Vec::new();
        from_image.decode_into(&ids, &mut bytes).unwrap();
        let joined: Vec<u8> = spans.iter().flat_map(|span| &text[span.range()]).copied().collect();
        assert!(bytes == joined.repeat(2));
    }
    assert!(read > 50 && longer > 20 && alone > 10 && gaps > 20, "{read} {longer} {alone} {gaps}");
}

#[test]
fn other_models_have_no_image() {
    let bytes: Vec<[u8; 1]> = (0..=255).map(|byte| [byte]).collect();
    let vocab = || Vocab::from_tokens(&bytes).unwrap();
    assert!(Bpe::from_ranks(vocab(), BpeOptions::default()).unwrap().to_image().is_some());
    assert!(
        Bpe::from_merges(vocab(), Vec::new(), BpeOptions::default()).unwrap().to_image().is_none()
    );
    let scores = Bpe::from_scores(vocab(), vec![0.0; 256], BpeOptions::default());
    assert!(scores.unwrap().to_image().is_none());
    let mut chars = BpeOptions::default();
    chars.alphabet = Alphabet::Char;
    assert!(Bpe::from_ranks(vocab(), chars).unwrap().to_image().is_none());
    let mut unk = BpeOptions::default();
    unk.unk = Some(TokenId(0));
    assert!(Bpe::from_ranks(vocab(), unk).unwrap().to_image().is_none());
    let few = Vocab::from_tokens(["a", "b", "ab"]).unwrap();
    assert!(Bpe::from_ranks(few, BpeOptions::default()).unwrap().to_image().is_none());
    let mut special = Vocab::builder();
    for byte in &bytes {
        special.push(byte, TokenKind::Normal).unwrap();
    }
    special.push(b"<s>", TokenKind::Control).unwrap();
    let special = Bpe::from_ranks(special.build(), BpeOptions::default());
    assert!(special.unwrap().to_image().is_none());
}

/// The lengths stand in front: each is one of an array.
#[test]
fn an_image_whose_arrays_do_not_fit_each_other_is_refused() {
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    tokens.extend([b"ab".to_vec(), b"abab".repeat(5)]);
    let model = Bpe::from_ranks(Vocab::from_tokens(&tokens).unwrap(), BpeOptions::default());
    let image = model.unwrap().to_image().unwrap();
    assert!(Bpe::from_image(kept(&image)).is_ok());
    let n_arrays = u64::from_le_bytes(image[8..16].try_into().unwrap()) as usize;
    assert!(n_arrays > 20);
    // Empty, half, twice as long, or endless.
    for array in 0..n_arrays {
        let at = 16 + 8 * array;
        let len = u64::from_le_bytes(image[at..at + 8].try_into().unwrap());
        let name = |error: bpe::ImageError| format!("{error}");
        let mut refused = 0;
        for other in [0, len / 2, len * 2 + 64, u64::MAX] {
            let mut broken = image.clone();
            broken[at..at + 8].copy_from_slice(&other.to_le_bytes());
            match Bpe::from_image(kept(&broken)).map_err(name) {
                Err(error) => refused += usize::from(!error.is_empty()),
                Ok(_) => continue,
            }
        }
        assert!(refused >= 1, "array {array} of {len} bytes");
    }
    let words: &'static [u8] = kept(&image);
    assert!(Bpe::from_image(&words[1..]).is_err(), "no longer an image");
    for len in (0..image.len()).step_by(61) {
        assert!(Bpe::from_image(&words[..len]).is_err(), "{len}");
    }
    let shifted = [&[0; 4][..], &image, &[0; 60]].concat();
    let error = Bpe::from_image(&kept(&shifted)[4..]).unwrap_err().to_string();
    assert!(error.contains("cannot be read"), "{error}");
}
