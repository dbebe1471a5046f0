//! Pieces of any length and number of tokens, the newest of them.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use tokenizer_core::Token;

use crate::key::hash_bytes;

/// The newest pieces that other tables do not take: their bytes in one ring, their tokens in
/// another, and an index by hash. Bytes are compared, so a hash that two pieces share is no fault.
#[derive(Clone)]
pub(crate) struct Ring {
    capacity: usize,
    bytes: Store<u8>,
    tokens: Store<Token>,
    /// Empty until the first piece comes.
    index: Box<[Entry]>,
}

#[derive(Clone, Copy, Default)]
struct Entry {
    hash: u64,
    /// Where the piece begins in all bytes that ever were stored, and its tokens likewise.
    bytes_at: u64,
    tokens_at: u64,
    len: u32,
    /// One more than the number of tokens; 0 is an empty entry.
    count: u32,
}

/// Longer pieces are not worth remembering: finding their tokens again costs little more a byte
/// than comparing them.
const LONGEST: usize = 1024;

impl Ring {
    /// A ring for that many bytes of pieces, and as many tokens.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, bytes: Store::new(), tokens: Store::new(), index: Box::default() }
    }

    #[inline]
    pub(crate) fn get(&self, piece: &[u8]) -> Option<&[Token]> {
        if self.index.is_empty() || piece.len() > LONGEST {
            return None;
        }
        let hash = hash_bytes(piece);
        let entry = &self.index[hash as usize % self.index.len()];
        if entry.count == 0 || entry.hash != hash {
            return None;
        }
        let bytes = self.bytes.get(entry.bytes_at, entry.len as usize, self.capacity)?;
        let tokens = self.tokens.get(entry.tokens_at, entry.count as usize - 1, self.capacity)?;
        (bytes == piece).then_some(tokens)
    }

    pub(crate) fn put(&mut self, piece: &[u8], tokens: &[Token]) {
        let most = self.capacity / 4;
        if self.capacity == 0 || piece.len() > LONGEST.min(most) || tokens.len() > most {
            return;
        }
        if self.index.is_empty() {
            // A piece of the ring has 16 bytes and more, most often.
            self.index = vec![Entry::default(); self.capacity.div_ceil(16)].into();
        }
        let hash = hash_bytes(piece);
        self.index[hash as usize % self.index.len()] = Entry {
            hash,
            bytes_at: self.bytes.put(piece, self.capacity),
            tokens_at: self.tokens.put(tokens, self.capacity),
            len: piece.len() as u32,
            count: tokens.len() as u32 + 1,
        };
    }
}

/// The last `capacity` elements of all that were stored, fewer where a run would not lie in one
/// stretch.
#[derive(Clone)]
struct Store<T> {
    memory: Vec<T>,
    /// The elements stored so far, and those skipped to keep runs in one stretch.
    end: u64,
}

impl<T: Copy> Store<T> {
    fn new() -> Self {
        Self { memory: Vec::new(), end: 0 }
    }

    /// Stores a run, which is shorter than the capacity, and returns where.
    fn put(&mut self, run: &[T], capacity: usize) -> u64 {
        let lap = self.end % capacity as u64;
        if lap as usize + run.len() > capacity {
            self.end += capacity as u64 - lap;
        }
        let at = self.end;
        let start = (at % capacity as u64) as usize;
        let overwritten = (self.memory.len() - start.min(self.memory.len())).min(run.len());
        let (old, new) = run.split_at(overwritten);
        self.memory[start..start + overwritten].copy_from_slice(old);
        self.memory.extend_from_slice(new);
        self.end += run.len() as u64;
        at
    }

    /// The run of `len` elements stored at `at`, if nothing was stored over it.
    fn get(&self, at: u64, len: usize, capacity: usize) -> Option<&[T]> {
        let start = (at % capacity as u64) as usize;
        (self.end <= at + capacity as u64).then(|| &self.memory[start..start + len])
    }
}

#[cfg(test)]
mod tests {
    use tokenizer_core::TokenId;

    use super::*;

    #[test]
    fn gives_what_was_put_or_nothing() {
        let mut ring = Ring::new(256);
        assert_eq!(ring.get(b"x"), None);
        let piece = |i: usize| vec![i as u8; i * 7 % 64];
        let tokens = |i: usize| -> Vec<Token> {
            (0..i * 5 % 23).map(|at| Token::new(TokenId((i * 100 + at) as u32), at)).collect()
        };
        for i in 0..500 {
            ring.put(&piece(i), &tokens(i));
            // Equal pieces come again with i + 256 * 64 only.
            if !piece(i).is_empty() {
                assert_eq!(ring.get(&piece(i)), Some(&tokens(i)[..]), "the newest is there");
            }
            for old in 0..i {
                if piece(old).is_empty() || (old % 256 == i % 256) {
                    continue;
                }
                if let Some(found) = ring.get(&piece(old)) {
                    let same = (0..=i).filter(|&j| piece(j) == piece(old));
                    assert!(same.into_iter().any(|j| tokens(j) == found), "{old} after {i}");
                }
            }
        }
        assert!(ring.bytes.memory.len() <= 256 && ring.tokens.memory.len() <= 256);
    }

    #[test]
    fn what_is_too_large_is_not_kept() {
        let mut ring = Ring::new(64);
        ring.put(&[1; 17], &[]);
        assert_eq!(ring.get(&[1; 17]), None);
        ring.put(&[1; 16], &[Token::new(TokenId(1), 1); 17]);
        assert_eq!(ring.get(&[1; 16]), None);
        ring.put(&[1; 16], &[]);
        assert_eq!(ring.get(&[1; 16]), Some(&[][..]));
        let mut ring = Ring::new(1 << 16);
        ring.put(&[1; 1025], &[]);
        assert_eq!(ring.get(&[1; 1025]), None);
    }
}
