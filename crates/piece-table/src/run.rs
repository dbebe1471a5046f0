//! The tokens of a piece in a table.

use tokenizer_core::{Token, TokenId};

/// Tokens of a piece, each in a word: the id in the low 24 bits, and above it where the token ends,
/// counted from the beginning of the piece. The first word has the number of tokens in its upper 4
/// bits, and 4 bits of an end.
///
/// Ends, not lengths: then where all four tokens of a short piece are takes no sum. Of one token alone
/// in a piece of more than 15 bytes the end is that of the piece, whatever the bits say.
pub(crate) type Word = u32;

/// The most tokens that tables of short pieces hold.
pub(crate) const MOST: usize = 8;

const ID: Word = 0x00FF_FFFF;
const END: u32 = 24;
const COUNT: u32 = 28;
/// The greatest ends that fit: of the first token, and of the others.
const FIRST_END: u32 = 15;
const LAST_END: u32 = 255;

#[inline(always)]
pub(crate) fn count(first: Word) -> usize {
    (first >> COUNT) as usize
}

#[inline(always)]
pub(crate) fn halves(words: [Word; MOST]) -> [[Word; 4]; 2] {
    let [a, b, c, d, e, f, g, h] = words;
    [[a, b, c, d], [e, f, g, h]]
}

#[inline(always)]
pub(crate) fn whole([[a, b, c, d], [e, f, g, h]]: [[Word; 4]; 2]) -> [Word; MOST] {
    [a, b, c, d, e, f, g, h]
}

#[inline(always)]
pub(crate) fn ids(words: &[Word; 4]) -> [TokenId; 4] {
    words.map(|word| TokenId(word & ID))
}

/// Where each of the first four tokens ends.
#[inline(always)]
pub(crate) fn ends(words: &[Word; 4]) -> [u32; 4] {
    let [a, b, c, d] = words.map(|word| word >> END);
    [a & FIRST_END, b, c, d]
}

/// The first four tokens.
#[inline(always)]
pub(crate) fn tokens(words: &[Word; 4]) -> [Token; 4] {
    let [a, b, c, d] = ends(words);
    // Behind the last token words are zero, and what is made of them is not used.
    let lens = [a, b.wrapping_sub(a), c.wrapping_sub(b), d.wrapping_sub(c)];
    core::array::from_fn(|i| Token { id: TokenId(words[i] & ID), len: lens[i] })
}

/// All tokens of a piece of `piece_len` bytes.
#[inline]
pub(crate) fn all_tokens(words: &[Word; MOST], piece_len: usize) -> impl Iterator<Item = Token> {
    let n = count(words[0]);
    let mut start = 0;
    words.iter().take(n).enumerate().map(move |(i, &word)| {
        let end = match i {
            0 if n == 1 => piece_len as u32,
            0 => word >> END & FIRST_END,
            _ => word >> END,
        };
        let len = end - start;
        start = end;
        Token { id: TokenId(word & ID), len }
    })
}

/// The tokens of a piece of `piece_len` bytes as words, with zeros behind them. `None` where they
/// do not fit: too many tokens, too large an id, too long a token.
pub(crate) fn pack(tokens: &[Token], piece_len: usize) -> Option<[Word; MOST]> {
    if tokens.len() > MOST {
        return None;
    }
    let mut words = [0; MOST];
    let mut end = 0u32;
    for (i, (word, token)) in words.iter_mut().zip(tokens).enumerate() {
        end = end.checked_add(token.len)?;
        let most = if i == 0 { FIRST_END } else { LAST_END };
        let told = match tokens.len() {
            1 if end as usize != piece_len => return None,
            1 if end > most => 0,
            _ => end,
        };
        if token.id.0 > ID || told > most {
            return None;
        }
        *word = token.id.0 | told << END;
    }
    words[0] |= (tokens.len() as u32) << COUNT;
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(list: &[(u32, usize)], piece_len: usize, fits: bool) {
        let list: alloc::vec::Vec<_> =
            list.iter().map(|&(id, len)| Token::new(TokenId(id), len)).collect();
        let packed = pack(&list, piece_len);
        assert_eq!(packed.is_some(), fits, "{list:?}");
        let Some(words) = packed else { return };
        let n = count(words[0]);
        assert_eq!(n, list.len());
        assert!(all_tokens(&words, piece_len).eq(list.iter().copied()), "{list:?}");
        let (halves, _) = words.as_chunks::<4>();
        let back = halves.iter().flat_map(self::ids);
        assert!(back.take(n).eq(list.iter().map(|token| token.id)));
        if piece_len <= 15 {
            assert!(tokens(&halves[0]).into_iter().take(n).eq(list.iter().copied().take(4)));
        }
    }

    #[test]
    fn what_fits_comes_back() {
        check(&[], 3, true);
        check(&[(0, 1)], 1, true);
        check(&[(0xFF_FFFF, 31)], 31, true);
        check(&[(0, 15), (7, 0)], 15, true);
        check(&[(9, 1); 8], 8, true);
        check(&[(1, 15), (2, 100), (3, 140)], 31, true);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        check(&[(0x100_0000, 1)], 1, false);
        check(&[(1, 2)], 3, false);
        check(&[(1, 16), (2, 1)], 17, false);
        check(&[(1, 15), (2, 241)], 17, false);
        check(&[(1, u32::MAX as usize), (2, 1)], 17, false);
        check(&[(9, 1); 9], 9, false);
    }
}
