//! Exact tables from short byte strings to their tokens: the fast path that all models share.
//!
//! Most pieces of real text are tokens of the vocabulary or were met a moment ago. A
//! [`PieceTable`] gives such a piece's tokens with one look at one cache line, and asks the
//! algorithm ([`Miss`]) only for the others. It never guesses: whole pieces are compared, not
//! hashes of them, so what comes out is what the algorithm says, always.
//!
//! ```
//! use piece_table::{PieceTable, Words};
//! use tokenizer_core::{Span, Token, TokenId};
//!
//! // What the model knows: " cat" is token 7.
//! let mut words = Words::builder(1);
//! words.add(b" cat", &[Token::new(TokenId(7), 4)]);
//! let words = words.build();
//!
//! // What the algorithm does with everything else: here, a token for each byte.
//! let mut asked = 0;
//! let mut miss = |piece: &[u8], tokens: &mut Vec<Token>| {
//!     asked += 1;
//!     tokens.extend(piece.iter().map(|&byte| Token::new(TokenId(byte.into()), 1)));
//! };
//!
//! let mut table = PieceTable::new(Some(&words));
//! let text = b"at cat at";
//! let spans = [Span::new(0, 2), Span::new(2, 6), Span::new(7, 9)];
//! let mut ids: Vec<TokenId> = Vec::new();
//! table.encode(text, &spans, &mut miss, &mut ids);
//! assert_eq!(ids.iter().map(|id| id.0).collect::<Vec<_>>(), [97, 116, 7, 97, 116]);
//! assert_eq!(asked, 1); // The second "at" is the first one again.
//! ```
//!
//! # Parts
//!
//! - [`Words`] belongs to a model: immutable, shared by all sessions, built once from the strings
//!   whose tokens are known.
//! - [`PieceTable`] belongs to a session: what was met lately, and the driver that takes a batch of
//!   spans. It begins empty, grows with what it meets up to a fixed size, then forgets
//!   ([`Size`]).
//! - [`Sink`] is where tokens go: `Vec<TokenId>`, `Vec<Token>`, `usize`, which counts, and
//!   [`Apart`], which keeps pieces apart, and [`Located`], which says where tokens are. The driver is compiled for each, so callers that want ids alone do not pay for lengths.
//! - [`Records`] are what the archive is made of, for other short things that are found by a hash.
//! - [`Key`] is a short piece as a number, and its hash, for tables of other things by the same key
//!   (counts of pieces, say).
//!
//! # What the caller promises
//!
//! That a piece encodes to the same tokens every time: the tokens depend on its bytes alone, not on
//! what stands around it. Models that encode pieces independently do. The keys need not be pieces
//! of the model's own text: a table from raw text to the tokens of its normalized form works as
//! well, as long as raw bytes decide the tokens.
//!
//! # Cost
//!
//! A known piece of up to 15 bytes costs one unaligned load, two multiplications, one line of the
//! table, which was prefetched while earlier spans were looked at, and one store of four tokens, of
//! which as many count as there are. Longer pieces, and those of many tokens, take slower but
//! bounded ways; pieces of more than 1024 bytes go to the algorithm each time.
//!
//! The two loops, over what is read ahead and over what is given out, are compiled for several machines
//! ([`Backend`]) and chosen when a table is made. Which one never changes the tokens. Without the
//! feature `std` (on by default) the choice is made by what the program was compiled for.
//!
//! A session's memory is at most about 4 MB, a few KB at first. Of pieces that its lines have no room for, an archive
//! ([`Size::archived`]) remembers the bytes and the tokens in some 20 bytes each. [`Words`] takes 32 bytes a string,
//! with room to spare 32 to 64.

#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod archive;
mod batch;
mod key;
mod memory;
mod recent;
mod records;
mod ring;
mod run;
mod simd;
mod sink;
mod table;
mod words;

pub use key::{Key, hash_bytes};
pub use memory::prefetch;
pub use recent::Size;
pub use records::Records;
pub use simd::Backend;
pub use sink::{Apart, Located, Sink};
pub use table::{Miss, PieceTable};
pub use words::{Words, WordsBuilder};
