//! The checks that a trained tokenizer must pass before anything of it is measured.

use std::collections::HashSet;
use std::thread;

use tokenizer_core::{Rng, Span, Token, TokenId, TokenKind};

use crate::contestant::{RoundTrip, Trained};
use crate::metrics::Placed;
use crate::report::{BytePolicy, Check};

/// A held-out text with its pieces.
#[derive(Clone, Copy, Debug)]
pub struct Split<'t> {
    /// The text that is encoded.
    pub text: &'t str,
    /// Its pieces.
    pub pieces: &'t [Span],
}

/// What is promised of a tokenizer.
#[derive(Clone, Copy, Debug)]
pub struct Promise {
    /// Of decoding.
    pub round_trip: RoundTrip,
    /// The vocabulary size, if it must be exactly that.
    pub size: Option<usize>,
    /// Whether nothing may be unknown.
    pub bytes: BytePolicy,
}

/// How many distinct pieces are held against the naive twin.
const NAIVE_PIECES: usize = 1500;
/// Longer pieces are not: naive encoders may be cubic.
const NAIVE_BYTES: usize = 400;

/// Inputs that encoders get wrong, beside the held-out text.
const AWKWARD: [&[u8]; 16] = [
    b"",
    b"a",
    b"\xF0\x9F\x98\x80",
    b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    b" ",
    b"                 ",
    b"\r\n\r\n\n",
    "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}\u{200D}\u{1F466}".as_bytes(),
    "e\u{301}\u{327}Z\u{361}\u{35C}".as_bytes(),
    "\u{6D77}\u{6C34}\u{6F6E}\u{6F6E}\u{6F6E}".as_bytes(),
    b"##ing",
    "\u{2581}\u{2581}x<0x0A><unk>".as_bytes(),
    b"\0\x01\x7F",
    // Not UTF-8: a lone continuation, a cut character, a surrogate, an impossible byte.
    b"a\x80b",
    b"ng\xE1\xBB",
    b"\xED\xA0\x80\xFF\xFE",
];

/// Runs every check. `documents` is held-out text; `seed` picks the sample for the naive twin.
#[must_use]
pub fn verify(
    trained: &Trained,
    promise: Promise,
    documents: &[Split<'_>],
    seed: u64,
) -> Vec<Check> {
    let mut encoded = Vec::with_capacity(documents.len());
    let mut session = trained.model().encoder();
    for document in documents {
        let mut tokens = Vec::new();
        session.encode_pieces(document.text.as_bytes(), document.pieces, &mut tokens);
        encoded.push(tokens);
    }
    let vocab_len = trained.model().vocab().len();
    let mut checks = vec![
        law("lengths tile the pieces", documents.iter().zip(&encoded), |(document, tokens)| {
            Placed::place_into(document.pieces, tokens, &mut Vec::new())
                .err()
                .map(|error| format!("{error} in {}", show(document.text.as_bytes())))
        }),
        law("ids are in the vocabulary", encoded.iter().flatten(), |token| {
            (token.id.index() >= vocab_len)
                .then(|| format!("id {} in a vocabulary of {vocab_len}", token.id))
        }),
        round_trip(trained, promise.round_trip, documents, &encoded),
        naive(trained, documents, seed),
        awkward(trained, promise),
        parallel(trained, documents, &encoded),
        paths(trained, documents, &encoded),
    ];
    if promise.bytes == BytePolicy::Bytes && promise.round_trip == RoundTrip::Always {
        checks.push(law("nothing is unknown", encoded.iter().flatten(), |token| {
            let kind = trained.model().vocab().kind(token.id);
            (kind == Some(TokenKind::Unknown))
                .then(|| format!("an unknown token of {} bytes", token.len))
        }));
    }
    if let Some(size) = promise.size {
        checks.push(law("the vocabulary has the asked size", [vocab_len], |len| {
            (len != size).then(|| format!("it has {len} tokens, asked were {size}"))
        }));
    }
    checks
}

/// Looks at all cases until one fails.
fn law<C>(
    name: &str,
    cases: impl IntoIterator<Item = C>,
    mut breaks: impl FnMut(C) -> Option<String>,
) -> Check {
    let mut looked_at = 0;
    let mut failure = None;
    for case in cases {
        looked_at += 1;
        failure = breaks(case);
        if failure.is_some() {
            break;
        }
    }
    Check { law: name.to_owned(), cases: looked_at, failure }
}

fn round_trip(
    trained: &Trained,
    promise: RoundTrip,
    documents: &[Split<'_>],
    encoded: &[Vec<Token>],
) -> Check {
    let name = match promise {
        RoundTrip::Always => "decode(encode(x)) = x",
        RoundTrip::UnlessUnknown => "decode(encode(x)) = x where nothing is unknown",
    };
    let vocab = trained.model().vocab();
    let mut session = trained.model().encoder();
    law(name, documents.iter().zip(encoded), |(document, tokens)| {
        let unknown = |token: &Token| vocab.kind(token.id) == Some(TokenKind::Unknown);
        if promise == RoundTrip::Always || !tokens.iter().any(unknown) {
            let pieces: Vec<u8> = document
                .pieces
                .iter()
                .flat_map(|piece| &document.text.as_bytes()[piece.range()])
                .copied()
                .collect();
            return decodes_to(trained, tokens, &pieces);
        }
        // Piece by piece where the document as a whole promises nothing.
        document.pieces.iter().find_map(|piece| {
            let piece = &document.text.as_bytes()[piece.range()];
            let mut tokens = Vec::new();
            session.encode_piece(piece, &mut tokens);
            if tokens.iter().any(unknown) { None } else { decodes_to(trained, &tokens, piece) }
        })
    })
}

fn decodes_to(trained: &Trained, tokens: &[Token], expected: &[u8]) -> Option<String> {
    let ids: Vec<TokenId> = tokens.iter().map(|token| token.id).collect();
    match trained.decode(&ids) {
        Err(error) => Some(error.to_string()),
        Ok(bytes) if bytes == expected => None,
        Ok(bytes) => {
            let at = bytes.iter().zip(expected).take_while(|(a, b)| a == b).count();
            let start = at.saturating_sub(8);
            Some(format!(
                "byte {at} differs: {} instead of {}",
                show(&bytes[start.min(bytes.len())..]),
                show(&expected[start.min(expected.len())..])
            ))
        }
    }
}

fn naive(trained: &Trained, documents: &[Split<'_>], seed: u64) -> Check {
    let mut seen: HashSet<&[u8]> = HashSet::new();
    let mut pieces: Vec<&[u8]> = Vec::new();
    for document in documents {
        for piece in document.pieces {
            let piece = &document.text.as_bytes()[piece.range()];
            if piece.len() <= NAIVE_BYTES && seen.insert(piece) {
                pieces.push(piece);
            }
        }
    }
    let mut rng = Rng::new(seed);
    let n = pieces.len().min(NAIVE_PIECES);
    for i in 0..n {
        let other = i + rng.below((pieces.len() - i) as u64) as usize;
        pieces.swap(i, other);
    }
    pieces.truncate(n);
    pieces.extend(AWKWARD);
    let mut session = trained.model().encoder();
    trained.with_naive(|naive| {
        law("fast encoder = naive encoder", pieces, |piece| {
            let mut fast = Vec::new();
            session.encode_piece(piece, &mut fast);
            let slow = naive(piece);
            let say = || format!("{}: {} against {}", show(piece), ids(&fast), ids(&slow));
            (fast != slow).then(say)
        })
    })
}

fn awkward(trained: &Trained, promise: Promise) -> Check {
    let mut session = trained.model().encoder();
    law("awkward and ill-formed inputs", AWKWARD, |piece| {
        let mut tokens = Vec::new();
        session.encode_piece(piece, &mut tokens);
        let covered: usize = tokens.iter().map(|token| token.len as usize).sum();
        if covered != piece.len() {
            return Some(format!("{}: tokens cover {covered} bytes", show(piece)));
        }
        let always = promise.round_trip == RoundTrip::Always;
        always.then(|| decodes_to(trained, &tokens, piece)).flatten()
    })
}

fn parallel(trained: &Trained, documents: &[Split<'_>], encoded: &[Vec<Token>]) -> Check {
    let threads = 3;
    let model = trained.model();
    let results: Vec<Vec<(usize, Vec<Token>)>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                scope.spawn(move || {
                    // A session of its own, and documents in another order than the serial run.
                    let mut session = model.encoder();
                    let mine = (0..documents.len()).rev().filter(|i| i % threads == worker);
                    mine.map(|i| {
                        let mut tokens = Vec::new();
                        let Split { text, pieces } = documents[i];
                        session.encode_pieces(text.as_bytes(), pieces, &mut tokens);
                        (i, tokens)
                    })
                    .collect()
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or_default()).collect()
    });
    let done: usize = results.iter().map(Vec::len).sum();
    let mut check = law("serial = parallel", results.iter().flatten(), |(i, tokens)| {
        (*tokens != encoded[*i]).then(|| format!("document {i} differs"))
    });
    if check.passed() && done != documents.len() {
        check.failure = Some("a thread panicked".into());
    }
    check
}

/// Ids alone, counts, and piece by piece in a fresh session: the same as the tokens.
fn paths(trained: &Trained, documents: &[Split<'_>], encoded: &[Vec<Token>]) -> Check {
    let mut session = trained.model().encoder();
    let every = (documents.len() / 100).max(1);
    let cases = documents.iter().zip(encoded).step_by(every);
    law("ids alone, counts, single pieces = tokens", cases, |(document, tokens)| {
        let (text, pieces) = (document.text.as_bytes(), document.pieces);
        let expected: Vec<TokenId> = tokens.iter().map(|token| token.id).collect();
        let mut ids = Vec::new();
        session.encode_ids_into(text, pieces, &mut ids);
        if ids != expected {
            return Some(format!("ids alone differ on {}", show(text)));
        }
        let count = session.count_pieces(text, pieces);
        if count != tokens.len() {
            return Some(format!("the count is {count}, not {}, on {}", tokens.len(), show(text)));
        }
        let mut fresh = trained.model().encoder();
        let mut single = Vec::new();
        for piece in pieces {
            fresh.encode_piece(&text[piece.range()], &mut single);
        }
        (single != *tokens).then(|| format!("pieces one by one differ on {}", show(text)))
    })
}

fn ids(tokens: &[Token]) -> String {
    let ids: Vec<String> = tokens.iter().take(12).map(|token| token.id.to_string()).collect();
    let more = if tokens.len() > 12 { " .." } else { "" };
    format!("[{}{more}]", ids.join(" "))
}

/// The beginning of some bytes, readable.
fn show(bytes: &[u8]) -> String {
    let head = &bytes[..bytes.len().min(40)];
    let more = if bytes.len() > 40 { ".." } else { "" };
    format!("\"{}{more}\"", head.escape_ascii())
}

#[cfg(test)]
mod tests {
    use tokenizer_core::{Decode, DecodeError, Encode, Model, Vocab};

    use super::*;

    /// A byte tokenizer that can be broken in one place.
    struct Bytes {
        vocab: Vocab,
        fault: Fault,
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Fault {
        None,
        Length,
        Id,
        Decode,
        Memory,
        Count,
        Unknown,
    }

    struct Session<'m> {
        model: &'m Bytes,
        pieces: u64,
    }

    impl Model for Bytes {
        fn vocab(&self) -> &Vocab {
            &self.vocab
        }

        fn encoder(&self) -> Box<dyn Encode + '_> {
            Box::new(Session { model: self, pieces: 0 })
        }
    }

    impl Encode for Session<'_> {
        fn encode_piece(&mut self, piece: &[u8], tokens: &mut Vec<Token>) {
            self.pieces += 1;
            let start = tokens.len();
            tokens.extend(piece.iter().map(|&b| Token::new(TokenId(u32::from(b)), 1)));
            let fault = self.model.fault;
            if let Some(token) = tokens.get_mut(start) {
                match fault {
                    Fault::Length => token.len = 2,
                    Fault::Id => token.id = TokenId(700),
                    Fault::Unknown => token.id = TokenId(256),
                    // A session that remembers gives other results when used otherwise.
                    Fault::Memory if self.pieces.is_multiple_of(7) => token.id = TokenId(1),
                    _ => {}
                }
            }
        }

        fn count_pieces(&mut self, _: &[u8], pieces: &[Span]) -> usize {
            let extra = usize::from(self.model.fault == Fault::Count);
            pieces.iter().map(|piece| piece.len()).sum::<usize>() + extra
        }
    }

    impl Decode for Bytes {
        fn decode_into(&self, ids: &[TokenId], bytes: &mut Vec<u8>) -> Result<(), DecodeError> {
            bytes.extend(ids.iter().map(|id| id.0 as u8));
            if self.fault == Fault::Decode {
                bytes.pop();
            }
            Ok(())
        }
    }

    fn failures(fault: Fault) -> Vec<String> {
        let mut vocab = Vocab::builder();
        for byte in 0..=255u8 {
            vocab.push(&[byte], TokenKind::Normal).unwrap();
        }
        vocab.push(b"<unk>", TokenKind::Unknown).unwrap();
        let trained = Trained::new(Bytes { vocab: vocab.build(), fault }, |_| {
            Box::new(|piece| piece.iter().map(|&b| Token::new(TokenId(u32::from(b)), 1)).collect())
        });
        let text = "one two three four five six seven eight";
        let pieces: Vec<Span> = (0..text.len()).step_by(3).map(|i| Span::new(i, i + 3)).collect();
        let documents = [Split { text, pieces: &pieces }; 5];
        let promise =
            Promise { round_trip: RoundTrip::Always, size: Some(257), bytes: BytePolicy::Bytes };
        let checks = verify(&trained, promise, &documents, 1);
        assert_eq!(checks.len(), 9);
        assert!(checks.iter().all(|check| check.cases > 0), "{checks:?}");
        checks.into_iter().filter(|check| !check.passed()).map(|check| check.law).collect()
    }

    #[test]
    fn a_sound_tokenizer_passes() {
        assert_eq!(failures(Fault::None), [""; 0]);
    }

    #[test]
    fn every_fault_is_found() {
        for (fault, law) in [
            (Fault::Length, "lengths tile the pieces"),
            (Fault::Id, "ids are in the vocabulary"),
            (Fault::Decode, "decode(encode(x)) = x"),
            (Fault::Memory, "serial = parallel"),
            (Fault::Memory, "fast encoder = naive encoder"),
            (Fault::Count, "ids alone, counts, single pieces = tokens"),
            (Fault::Unknown, "nothing is unknown"),
        ] {
            let found = failures(fault);
            assert!(found.iter().any(|found| found == law), "{law}: {found:?}");
        }
    }

    #[test]
    fn a_wrong_size_is_found() {
        let trained = Trained::new(
            Bytes { vocab: Vocab::from_tokens(["a"]).unwrap(), fault: Fault::None },
            |_| Box::new(|_| Vec::new()),
        );
        let promise =
            Promise { round_trip: RoundTrip::UnlessUnknown, size: Some(2), bytes: BytePolicy::Unk };
        let checks = verify(&trained, promise, &[], 1);
        let last = checks.last().unwrap();
        assert_eq!(last.failure.as_deref(), Some("it has 1 tokens, asked were 2"));
    }
}
