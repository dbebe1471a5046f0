//! The bodies of the fuzz targets: each takes any bytes and panics where a fast path is wrong.
//!
//! They are ordinary functions, so that `crates/tokenizer/tests/fuzz_bodies.rs` runs them on random
//! bytes with every compiler, and they cannot rot.

pub mod lattice;
pub mod merges;
pub mod scanner;
pub mod table;
pub mod trie;

use tokenizer_core::Span;

/// Reads an input from the front; zeros behind its end.
pub struct Input<'d>(pub &'d [u8]);

impl<'d> Input<'d> {
    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        byte
    }

    /// A number below `n`, which is at most 256.
    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n
    }

    /// Whether anything is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Up to `n` bytes.
    pub fn bytes(&mut self, n: usize) -> &'d [u8] {
        let (bytes, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    /// A word of 1 to `most` letters, most of them from the first few of the alphabet, some of two and
    /// three bytes.
    pub fn word(&mut self, most: usize) -> String {
        const LETTERS: [char; 8] = ['a', 'b', 'c', ' ', 'd', '\u{E9}', '\u{4E2D}', '\u{2581}'];
        let len = 1 + self.below(most);
        (0..len).map(|_| LETTERS[[0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7][self.below(11)]]).collect()
    }
}

/// Words end to end, and where each is.
pub fn joined<T: AsRef<[u8]>>(words: &[T]) -> (Vec<u8>, Vec<Span>) {
    let (mut text, mut spans) = (Vec::new(), Vec::new());
    for word in words {
        spans.push(Span::new(text.len(), text.len() + word.as_ref().len()));
        text.extend_from_slice(word.as_ref());
    }
    (text, spans)
}
