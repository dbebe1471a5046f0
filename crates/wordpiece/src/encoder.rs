use alloc::vec::Vec;

use tokenizer_core::{Encode, Span, Token, TokenId, utf8};

use crate::matcher::STUCK;
use crate::{Unit, Unknown, WordPiece};

/// A session of a [`WordPiece`] model: LinMaxMatch (Song et al. 2021).
///
/// `O(n)` for a word of n bytes, except for [`Unknown::Character`]. Holds no scratch.
#[derive(Clone, Copy, Debug)]
pub struct Encoder<'m> {
    model: &'m WordPiece,
}

impl<'m> Encoder<'m> {
    pub(crate) fn new(model: &'m WordPiece) -> Self {
        Self { model }
    }

    fn encode<S: Sink>(self, word: &[u8], out: &mut S) {
        let Self { model } = self;
        if is_too_long(model, word) {
            self.unknown(word.len(), out);
            return;
        }
        let matcher = &model.matcher;
        let first = out.len();
        let mut node = matcher.initial;
        // `at`: how far was read; `covered`: how far the tokens reach. The node spells the rest.
        let (mut at, mut covered) = (0, 0);
        loop {
            while let Some(next) = word.get(at).and_then(|&byte| matcher.child(node, byte)) {
                node = next;
                at += 1;
            }
            if at == word.len() && covered == at {
                return;
            }
            let start = out.len();
            for (id, len) in matcher.pops(node) {
                out.push(TokenId(id), len as usize);
                covered += len as usize;
            }
            out.reverse(start);
            node = matcher.fail(node);
            if node != STUCK {
                continue;
            }
            match model.options().unknown {
                Unknown::Word => {
                    out.truncate(first);
                    self.unknown(word.len(), out);
                    return;
                }
                Unknown::Rest => {
                    self.unknown(word.len() - covered, out);
                    return;
                }
                Unknown::Character => {
                    let len = char_len(model.options().unit, &word[covered..]);
                    self.unknown(len, out);
                    covered += len;
                    at = covered;
                    node = matcher.continuation;
                }
            }
        }
    }

    fn unknown<S: Sink>(self, len: usize, out: &mut S) {
        if let Some(unk) = self.model.unk() {
            out.push(unk, len);
        }
    }
}

/// Whether the word has more characters than the model takes.
pub(crate) fn is_too_long(model: &WordPiece, word: &[u8]) -> bool {
    let max = model.options().max_chars;
    // A character has at least one byte, so most words need no counting.
    word.len() > max
        && match model.options().unit {
            Unit::Byte => true,
            Unit::Char => utf8::chars(word).nth(max).is_some(),
        }
}

/// The length of the first character of `bytes`, which are not empty.
pub(crate) fn char_len(unit: Unit, bytes: &[u8]) -> usize {
    match unit {
        Unit::Byte => 1,
        Unit::Char => utf8::char_len(bytes),
    }
}

impl Encode for Encoder<'_> {
    fn encode_piece(&mut self, piece: &[u8], tokens: &mut Vec<Token>) {
        self.encode(piece, tokens);
    }

    fn encode_pieces(&mut self, text: &[u8], pieces: &[Span], tokens: &mut Vec<Token>) {
        for piece in pieces {
            self.encode(&text[piece.range()], tokens);
        }
    }

    fn encode_ids_into(&mut self, text: &[u8], pieces: &[Span], ids: &mut Vec<TokenId>) {
        for piece in pieces {
            self.encode(&text[piece.range()], ids);
        }
    }

    fn count_pieces(&mut self, text: &[u8], pieces: &[Span]) -> usize {
        let mut count = Count(0);
        for piece in pieces {
            self.encode(&text[piece.range()], &mut count);
        }
        count.0
    }
}

/// Where tokens go: whole tokens, ids alone, or only their number.
trait Sink {
    fn push(&mut self, id: TokenId, len: usize);
    fn len(&self) -> usize;
    fn truncate(&mut self, len: usize);
    fn reverse(&mut self, from: usize);
}

impl Sink for Vec<Token> {
    #[inline]
    fn push(&mut self, id: TokenId, len: usize) {
        self.push(Token::new(id, len));
    }
    #[inline]
    fn len(&self) -> usize {
        self.len()
    }
    #[inline]
    fn truncate(&mut self, len: usize) {
        self.truncate(len);
    }
    #[inline]
    fn reverse(&mut self, from: usize) {
        if self.len() - from > 1 {
            self[from..].reverse();
        }
    }
}

impl Sink for Vec<TokenId> {
    #[inline]
    fn push(&mut self, id: TokenId, _: usize) {
        self.push(id);
    }
    #[inline]
    fn len(&self) -> usize {
        self.len()
    }
    #[inline]
    fn truncate(&mut self, len: usize) {
        self.truncate(len);
    }
    #[inline]
    fn reverse(&mut self, from: usize) {
        if self.len() - from > 1 {
            self[from..].reverse();
        }
    }
}

struct Count(usize);

impl Sink for Count {
    #[inline]
    fn push(&mut self, _: TokenId, _: usize) {
        self.0 += 1;
    }
    #[inline]
    fn len(&self) -> usize {
        self.0
    }
    #[inline]
    fn truncate(&mut self, len: usize) {
        self.0 = len;
    }
    #[inline]
    fn reverse(&mut self, _: usize) {}
}
