//! The tokens of a piece in a table.

use tokenizer_core::{Token, TokenId};

/// Tokens of a piece, each in a word: the id in the low 24 bits, the length in the next 4. The
/// first word has their number in its upper 4 bits.
///
/// Of one token alone the length is that of the piece, whatever its bits say; so pieces longer than
/// 15 bytes that are one token fit, too.
pub(crate) type Word = u32;

/// The most tokens that tables of short pieces hold.
pub(crate) const MOST: usize = 8;

const ID: Word = 0x00FF_FFFF;
const LEN: u32 = 24;
const COUNT: u32 = 28;

#[inline(always)]
pub(crate) fn count(first: Word) -> usize {
    (first >> COUNT) as usize
}

#[inline(always)]
pub(crate) fn ids(words: [Word; 4]) -> [TokenId; 4] {
    words.map(|word| TokenId(word & ID))
}

/// The four tokens; if the first is alone, it covers the piece of `piece_len` bytes.
#[inline(always)]
pub(crate) fn tokens(words: [Word; 4], piece_len: usize) -> [Token; 4] {
    let mut tokens = words.map(|word| Token { id: TokenId(word & ID), len: word >> LEN & 15 });
    if count(words[0]) == 1 {
        tokens[0].len = piece_len as u32;
    }
    tokens
}

/// Where each of the four tokens ends if the first begins at 0, by the lengths in the words: what
/// [`tokens`] knows of a token alone they do not say.
#[inline(always)]
pub(crate) fn ends([a, b, c, d]: [Word; 4]) -> [u32; 4] {
    // A length in each byte; then the product has their running sums, of at most 4 * 15.
    let lens = a >> 24 & 15 | b >> 16 & 15 << 8 | c >> 8 & 15 << 16 | d & 15 << 24;
    lens.wrapping_mul(0x0101_0101).to_le_bytes().map(u32::from)
}

/// The tokens of a piece of `piece_len` bytes as words, with zeros behind them. `None` where they
/// do not fit: too many tokens, too large an id, too long a token.
pub(crate) fn pack(tokens: &[Token], piece_len: usize) -> Option<[Word; MOST]> {
    if tokens.len() > MOST {
        return None;
    }
    let mut words = [0; MOST];
    for (word, token) in words.iter_mut().zip(tokens) {
        let len = match tokens.len() {
            1 if token.len as usize == piece_len => 0,
            1 => return None,
            _ => token.len,
        };
        if token.id.0 > ID || len > 15 {
            return None;
        }
        *word = token.id.0 | len << LEN;
    }
    words[0] |= (tokens.len() as u32) << COUNT;
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tokens: &[(u32, usize)], piece_len: usize, fits: bool) {
        let tokens: alloc::vec::Vec<_> =
            tokens.iter().map(|&(id, len)| Token::new(TokenId(id), len)).collect();
        let packed = pack(&tokens, piece_len);
        assert_eq!(packed.is_some(), fits, "{tokens:?}");
        let Some(words) = packed else { return };
        let n = count(words[0]);
        assert_eq!(n, tokens.len());
        let (halves, _) = words.as_chunks::<4>();
        let back = halves.iter().flat_map(|&four| self::tokens(four, piece_len));
        // Only a run of one looks at its count; the second half has none.
        assert!(back.take(n).eq(tokens.iter().copied()), "{tokens:?}");
        let ids = halves.iter().flat_map(|&four| self::ids(four));
        assert!(ids.take(n).eq(tokens.iter().map(|token| token.id)));
    }

    #[test]
    fn what_fits_comes_back() {
        check(&[], 3, true);
        check(&[(0, 1)], 1, true);
        check(&[(0xFF_FFFF, 31)], 31, true);
        check(&[(0, 15), (7, 0)], 15, true);
        check(&[(9, 1); 8], 8, true);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        check(&[(0x100_0000, 1)], 1, false);
        check(&[(1, 2)], 3, false);
        check(&[(1, 16), (2, 1)], 17, false);
        check(&[(9, 1); 9], 9, false);
    }
}
