//! What differs between two answers.

use std::fmt;

use crate::contestant::{Encoded, Outcome};

/// The part of an answer that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// Ids.
    Ids,
    /// Byte offsets.
    Bytes,
    /// Character offsets.
    Chars,
    /// Word indices.
    Words,
    /// Type ids.
    Types,
    /// Which tokens the template or padding added.
    Special,
    /// Which tokens are padding.
    Attention,
    /// The number of overflowing windows.
    Windows,
    /// The text of ids.
    Text,
    /// The reference answers, ours does not.
    OursFails,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ids => "ids",
            Self::Bytes => "byte offsets",
            Self::Chars => "character offsets",
            Self::Words => "word ids",
            Self::Types => "type ids",
            Self::Special => "special tokens mask",
            Self::Attention => "attention mask",
            Self::Windows => "overflowing windows",
            Self::Text => "decoded text",
            Self::OursFails => "ours fails",
        })
    }
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing differs.
    Same,
    /// The reference gave no answer: nothing to compare with.
    Skipped(String),
    /// Something differs: what, ours, theirs.
    Differs {
        /// The part.
        part: Part,
        /// What ours says.
        ours: String,
        /// What the reference says.
        theirs: String,
    },
}

impl Verdict {
    /// The part that differs.
    #[must_use]
    pub fn part(&self) -> Option<Part> {
        match self {
            Self::Differs { part, .. } => Some(*part),
            _ => None,
        }
    }
}

/// Compares two encodings, what overflowed too.
#[must_use]
pub fn encodings(ours: &Outcome<Encoded>, theirs: &Outcome<Encoded>) -> Verdict {
    answers(ours, theirs, first_difference)
}

/// Compares two decoded texts.
#[must_use]
pub fn decodings(ours: &Outcome<String>, theirs: &Outcome<String>) -> Verdict {
    answers(ours, theirs, |ours, theirs| difference(Part::Text, ours, theirs))
}

fn answers<T>(
    ours: &Outcome<T>,
    theirs: &Outcome<T>,
    compare: impl FnOnce(&T, &T) -> Option<Verdict>,
) -> Verdict {
    match (ours, theirs) {
        (_, Outcome::Refused(why)) => Verdict::Skipped(format!("refuses: {why}")),
        (_, Outcome::Crashed(why)) => Verdict::Skipped(format!("crashes: {why}")),
        (Outcome::Value(ours), Outcome::Value(theirs)) => {
            compare(ours, theirs).unwrap_or(Verdict::Same)
        }
        (Outcome::Refused(why) | Outcome::Crashed(why), Outcome::Value(_)) => Verdict::Differs {
            part: Part::OursFails,
            ours: why.clone(),
            theirs: "an answer".to_owned(),
        },
    }
}

fn first_difference(ours: &Encoded, theirs: &Encoded) -> Option<Verdict> {
    difference(Part::Ids, &ours.ids, &theirs.ids)
        .or_else(|| known(Part::Bytes, &ours.bytes, &theirs.bytes))
        .or_else(|| known(Part::Chars, &ours.chars, &theirs.chars))
        .or_else(|| known(Part::Words, &ours.words, &theirs.words))
        .or_else(|| known(Part::Types, &ours.types, &theirs.types))
        .or_else(|| known(Part::Special, &ours.special, &theirs.special))
        .or_else(|| known(Part::Attention, &ours.attention, &theirs.attention))
        .or_else(|| difference(Part::Windows, &ours.overflowing.len(), &theirs.overflowing.len()))
        .or_else(|| {
            let windows = ours.overflowing.iter().zip(&theirs.overflowing);
            windows.into_iter().find_map(|(ours, theirs)| first_difference(ours, theirs))
        })
}

/// A part that only those compare who both know it.
fn known<T: PartialEq + fmt::Debug>(
    part: Part,
    ours: &Option<T>,
    theirs: &Option<T>,
) -> Option<Verdict> {
    difference(part, ours.as_ref()?, theirs.as_ref()?)
}

fn difference<T: PartialEq + fmt::Debug + ?Sized>(
    part: Part,
    ours: &T,
    theirs: &T,
) -> Option<Verdict> {
    if ours == theirs {
        return None;
    }
    Some(Verdict::Differs { part, ours: format!("{ours:?}"), theirs: format!("{theirs:?}") })
}
