//! Pieces that were met before those of the tables, in a few bytes each.

use alloc::vec::Vec;

use tokenizer_core::{Token, TokenId};

use crate::Records;

/// Pieces of up to [`LONGEST`] bytes and their tokens: about 20 bytes where tables take 32 or 64. In
/// exchange they take two looks at memory, one after the other, and are unpacked.
///
/// A record holds the length of the piece and how lengths of tokens are said, in one byte or three; the
/// piece; and for each token two bytes of its id, or three, and its length where it is said.
#[derive(Clone, Debug)]
pub(crate) struct Archive {
    records: Records,
    /// What is put next.
    record: Vec<u8>,
}

/// Longer pieces are not worth remembering: finding their tokens again costs little more a byte
/// than comparing them.
const LONGEST: usize = 1024;

/// Lengths below are said in the first byte.
const SHORT: usize = 63;

/// How many bytes a record has on average, in any of many languages.
const USUAL: usize = 17;

/// An id of more than 15 bits has this bit, and its others in a third byte.
const WIDE: u16 = 1 << 15;

/// Which tokens have their length said.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    /// None: one alone has that of the piece, others have none.
    None = 0,
    /// The first; others have none.
    First = 1,
    All = 2,
}

const SAID_BITS: u32 = 2;

impl Archive {
    /// Of at most about so many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self { records: Records::new(bytes, USUAL), record: Vec::new() }
    }

    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u64) {
        self.records.prefetch(hash);
    }

    /// The place where a piece of this hash may be, which is asked for.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u64) -> Option<usize> {
        self.records.find(hash)
    }

    /// Appends the tokens of a piece if it is the one at a place that [`find`](Self::find) gave.
    #[inline]
    pub(crate) fn read(&self, place: usize, piece: &[u8], tokens: &mut Vec<Token>) -> bool {
        let Some((&head, mut rest)) = self.records.at(place).split_first() else { return false };
        let mut len = usize::from(head >> SAID_BITS);
        if len == SHORT {
            let Some((&told, others)) = rest.split_first_chunk() else { return false };
            (len, rest) = (u16::from_le_bytes(told).into(), others);
        }
        if len != piece.len() {
            return false;
        }
        let Some(mut rest) = rest.strip_prefix(piece) else { return false };
        let said = head & ((1 << SAID_BITS) - 1);
        let first = tokens.len();
        while let Some((&low, others)) = rest.split_first_chunk() {
            rest = others;
            let low = u16::from_le_bytes(low);
            let mut id = u32::from(low);
            if low & WIDE != 0 {
                let Some((&high, others)) = rest.split_first() else { break };
                rest = others;
                id = u32::from(low & !WIDE) | u32::from(high) << 15;
            }
            let mut len = 0;
            if said == Said::All as u8 || said == Said::First as u8 && tokens.len() == first {
                let Some((&told, others)) = rest.split_first() else { break };
                rest = others;
                len = told.into();
            }
            tokens.push(Token { id: TokenId(id), len });
        }
        if said == Said::None as u8
            && let [only] = &mut tokens[first..]
        {
            only.len = piece.len() as u32;
        }
        true
    }

    /// Remembers a piece. `false` if it does not fit: it is too long, or has too many tokens, too great ids
    /// or lengths.
    pub(crate) fn put(&mut self, hash: u64, piece: &[u8], tokens: &[Token]) -> bool {
        let said = said(piece.len(), tokens);
        let has_room = |len: u32| said == Said::None || len <= u8::MAX.into();
        let fits = |token: &Token| token.id.0 < 1 << 23 && has_room(token.len);
        if piece.len().max(tokens.len()) > LONGEST || !tokens.iter().all(fits) {
            return false;
        }
        let record = &mut self.record;
        record.clear();
        record.push((piece.len().min(SHORT) as u8) << SAID_BITS | said as u8);
        if piece.len() >= SHORT {
            record.extend_from_slice(&(piece.len() as u16).to_le_bytes());
        }
        record.extend_from_slice(piece);
        for (i, token) in tokens.iter().enumerate() {
            let id = token.id.0;
            let low = id as u16;
            if id < WIDE.into() {
                record.extend_from_slice(&low.to_le_bytes());
            } else {
                record.extend_from_slice(&(low | WIDE).to_le_bytes());
                record.push((id >> 15) as u8);
            }
            if said == Said::All || said == Said::First && i == 0 {
                record.push(token.len as u8);
            }
        }
        if self.records.wants_to_grow() {
            self.records.grow();
        }
        self.records.put(hash, record)
    }
}

/// Which lengths tokens of a piece of `piece_len` bytes must say.
fn said(piece_len: usize, tokens: &[Token]) -> Said {
    match tokens {
        [] => Said::None,
        [only] if only.len as usize == piece_len => Said::None,
        [first, rest @ ..] if rest.iter().all(|token| token.len == 0) => {
            if first.len == 0 && !rest.is_empty() { Said::None } else { Said::First }
        }
        _ => Said::All,
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn check(piece: &[u8], tokens: &[(u32, u32)], fits: bool) {
        let tokens: Vec<Token> =
            tokens.iter().map(|&(id, len)| Token { id: TokenId(id), len }).collect();
        let mut archive = Archive::new(1 << 18);
        assert_eq!(archive.put(9, piece, &tokens), fits, "{piece:?} {tokens:?}");
        // What stands before the tokens stays.
        let mut found = vec![Token { id: TokenId(1), len: 1 }];
        let place = archive.find(9);
        assert_eq!(place.is_some(), fits);
        let Some(place) = place else { return };
        assert!(archive.read(place, piece, &mut found));
        assert_eq!(found[1..], tokens, "{piece:?}");
        let longer = [piece, b"x"].concat();
        assert!(!archive.read(place, &longer, &mut found));
        let other: Vec<u8> = piece.iter().map(|byte| byte ^ 1).collect();
        assert_eq!(archive.read(place, &other, &mut found), piece.is_empty());
        if let Some((_, shorter)) = piece.split_last() {
            assert!(!archive.read(place, shorter, &mut found));
        }
    }

    #[test]
    fn gives_back_tokens_of_any_lengths() {
        check(b"piece", &[(7, 5)], true);
        check(b"piece", &[(7, 4)], true);
        check(b"piece", &[(7, 0)], true);
        check(b"piece", &[(7, 2), (8, 3)], true);
        check(b"piece", &[(7, 0), (8, 0)], true);
        check(b"piece", &[(7, 3), (8, 0), (9, 0), (10, 0)], true);
        check(b"piece", &[(7, 0), (8, 3)], true);
        check(b"piece", &[], true);
        check(b"", &[], true);
        check(b"", &[(3, 0)], true);
        for len in [62, 63, 64, 255, 1024] {
            check(&vec![b'x'; len], &[(9, len as u32)], true);
        }
        check(&[b'x'; 63], &[(1 << 15, 255); 48], true);
        check(&[b'x'; 70], &[(1 << 15, 35); 1024], true);
        check(&[b'x'; 1024], &[(1, 0); 1024], true);
    }

    #[test]
    fn gives_back_ids_of_two_and_three_bytes() {
        for id in [0, 255, 256, (1 << 15) - 1, 1 << 15, (1 << 23) - 1] {
            check(b"a", &[(id, 1)], true);
            check(b"abc", &[(id, 1), (id, 2), (3, 0)], true);
        }
    }

    #[test]
    fn what_does_not_fit_is_not_kept() {
        check(&[b'x'; 1025], &[(1, 1025)], false);
        check(b"abc", &[(1 << 23, 3)], false);
        check(b"abc", &[(1, 256), (2, 1)], false);
        check(b"abc", &[(1, 1), (2, 256)], false);
        check(b"abc", &[(1, 0); 1025], false);
    }
}
