use std::collections::BTreeSet;
use std::fmt;

use tokenizer_core::Span;

/// What the text of a special token in the input means.
///
/// User text never becomes a control token unless the caller says so: the default is
/// [`Ordinary`](Policy::Ordinary), under which encoding and counting cannot fail.
///
/// The policy governs special tokens alone. Added tokens that are not special are part of the
/// vocabulary and always recognised.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// It is text like any other.
    #[default]
    Ordinary,
    /// Every special token is recognised.
    AllowAll,
    /// These special tokens are recognised, all others are text.
    Allow(SpecialSet),
    /// The input is refused if it contains one of these; all others are text.
    Reject(SpecialSet),
}

/// A set of special tokens, by their text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecialSet(Members);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Members {
    All,
    Some(BTreeSet<String>),
}

impl SpecialSet {
    /// Every special token of the tokenizer.
    #[must_use]
    pub fn all() -> Self {
        Self(Members::All)
    }

    /// The named special tokens. Names that the tokenizer does not have match nothing.
    pub fn of<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        Self(Members::Some(names.into_iter().map(Into::into).collect()))
    }

    /// Whether `name` is in the set.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        match &self.0 {
            Members::All => true,
            Members::Some(names) => names.contains(name),
        }
    }
}

/// What to do with one special token that was found in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Text,
    Token,
    Refuse,
}

impl Policy {
    pub(crate) fn judge(&self, name: &str) -> Verdict {
        match self {
            Self::Ordinary => Verdict::Text,
            Self::AllowAll => Verdict::Token,
            Self::Allow(set) if set.contains(name) => Verdict::Token,
            Self::Reject(set) if set.contains(name) => Verdict::Refuse,
            Self::Allow(_) | Self::Reject(_) => Verdict::Text,
        }
    }
}

/// The input contains a special token that the policy refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecialTokenError {
    pub(crate) token: String,
    pub(crate) span: Span,
}

impl SpecialTokenError {
    /// The text of the special token.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Where it stands: byte offsets in the input.
    #[must_use]
    pub fn span(&self) -> Span {
        self.span
    }
}

impl fmt::Display for SpecialTokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the text contains the special token {:?} at byte {}; allow it, or encode it as ordinary text",
            self.token, self.span.start
        )
    }
}

impl std::error::Error for SpecialTokenError {}
