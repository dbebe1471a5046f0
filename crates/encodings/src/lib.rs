//! The byte ranks of OpenAI's published encodings, embedded and compressed. Data only.
//!
//! ```
//! use encodings::Ranks;
//!
//! let tokens = Ranks::Cl100kBase.unpack();
//! assert_eq!(tokens.len(), 100_256);
//! assert_eq!(tokens.iter().nth(9906), Some((9906, &b"Hello"[..])));
//! // "Hello" is merged from "H" and "ello".
//! assert!(tokens.merges().iter().any(|merge| merge == (39, 4896, 9906)));
//! ```
//!
//! A token of byte-pair encoding is two earlier tokens joined, so the data are pairs of ranks, each
//! in as many bits as the number of earlier tokens needs: 1.6 MB for all four encodings, where the
//! published files have 7 MB. Unpacking copies every token once; it takes a few milliseconds and as
//! much memory as the tokens have bytes, with 4 bytes a token beside them.
//!
//! [`Tokens::unpack`] documents the format. `examples/pack.rs` makes the data from the published
//! files; the tests rebuild those files and compare their SHA-256.
//!
//! What is not here: the patterns that cut text and the special tokens, which are known by whoever
//! runs an encoding, and `p50k_edit` and `o200k_harmony`, which have the ranks of
//! [`P50kBase`](Ranks::P50kBase) and [`O200kBase`](Ranks::O200kBase).

#![no_std]

extern crate alloc;

mod unpack;

pub use unpack::{Merges, Tokens, UnpackError};

/// The ranks of a published encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ranks {
    /// GPT-2 and GPT-3: `r50k_base`, 50,256 tokens.
    R50kBase,
    /// Codex: `p50k_base`, 50,280 tokens. No token has rank 50256.
    P50kBase,
    /// GPT-3.5 and GPT-4: `cl100k_base`, 100,256 tokens.
    Cl100kBase,
    /// GPT-4o: `o200k_base`, 199,998 tokens.
    O200kBase,
}

impl Ranks {
    /// All of them.
    pub const ALL: &'static [Self] =
        &[Self::R50kBase, Self::P50kBase, Self::Cl100kBase, Self::O200kBase];

    /// The published name, as `cl100k_base`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::R50kBase => "r50k_base",
            Self::P50kBase => "p50k_base",
            Self::Cl100kBase => "cl100k_base",
            Self::O200kBase => "o200k_base",
        }
    }

    /// The SHA-256 of the published `.tiktoken` file, as tiktoken's `openai_public.py` gives it.
    #[must_use]
    pub const fn sha256(self) -> &'static str {
        match self {
            Self::R50kBase => "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
            Self::P50kBase => "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
            Self::Cl100kBase => "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
            Self::O200kBase => "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        }
    }

    /// The embedded data, in the format of [`Tokens::unpack`].
    #[must_use]
    pub const fn packed(self) -> &'static [u8] {
        match self {
            Self::R50kBase => include_bytes!("../data/r50k_base.ranks"),
            Self::P50kBase => include_bytes!("../data/p50k_base.ranks"),
            Self::Cl100kBase => include_bytes!("../data/cl100k_base.ranks"),
            Self::O200kBase => include_bytes!("../data/o200k_base.ranks"),
        }
    }

    /// The tokens. `O(n)` for n bytes of all tokens.
    #[must_use]
    pub fn unpack(self) -> Tokens<'static> {
        Tokens::unpack(self.packed()).expect("the tests unpack every embedded encoding")
    }
}
