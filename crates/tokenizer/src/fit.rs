//! Fitting encodings to a length: truncation and padding.

use std::fmt;

use tokenizer_core::TokenId;

use crate::encoding::Encoding;

/// Which end is cut or padded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Side {
    /// The beginning.
    Left,
    /// The end.
    #[default]
    Right,
}

/// Which text of a pair is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TruncationStrategy {
    /// The longer one, until both fit.
    #[default]
    LongestFirst,
    /// The first one.
    OnlyFirst,
    /// The second one.
    OnlySecond,
}

/// How long encodings are cut. Checked when a tokenizer is given it, never when it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncation {
    /// The most tokens that stay, those of the template included.
    pub max_length: usize,
    /// How many tokens two overflowing windows share.
    pub stride: usize,
    /// Which text of a pair is cut.
    pub strategy: TruncationStrategy,
    /// Which end is cut.
    pub side: Side,
}

impl Truncation {
    /// Cuts the end after `max_length` tokens, without overlap, the longest text first.
    #[must_use]
    pub fn new(max_length: usize) -> Self {
        Self {
            max_length,
            stride: 0,
            strategy: TruncationStrategy::default(),
            side: Side::default(),
        }
    }
}

/// How far encodings are padded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PadTo {
    /// To the longest of the batch.
    Longest,
    /// To this many tokens.
    Fixed(usize),
}

/// How short encodings are padded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Padding {
    /// To which length.
    pub to: PadTo,
    /// The length is rounded up to a multiple of this, where it is not 0.
    pub multiple_of: usize,
    /// On which end.
    pub side: Side,
    /// The id of the padding token.
    pub id: TokenId,
    /// The type id of padding.
    pub type_id: u32,
    /// The text of the padding token.
    pub token: String,
}

impl Padding {
    /// The length that `longest` is padded to.
    fn target(&self, longest: usize) -> usize {
        let length = match self.to {
            PadTo::Longest => longest,
            PadTo::Fixed(length) => length,
        };
        match self.multiple_of {
            0 => length,
            multiple => length.div_ceil(multiple).saturating_mul(multiple),
        }
    }

    /// Pads a batch in place, overflowing windows too.
    pub(crate) fn apply(&self, encodings: &mut [Encoding]) {
        let longest = encodings.iter().map(Encoding::len).max().unwrap_or(0);
        let target = self.target(longest);
        for encoding in encodings {
            self.pad(encoding, target);
        }
    }

    fn pad(&self, encoding: &mut Encoding, target: usize) {
        for window in &mut encoding.overflowing {
            self.pad(window, target);
        }
        let missing = target.saturating_sub(encoding.len());
        if missing == 0 {
            return;
        }
        let mut padding = Encoding::default();
        for _ in 0..missing {
            padding.push_added(self.id, self.type_id, false);
        }
        match self.side {
            Side::Right => encoding.extend(&padding),
            Side::Left => {
                padding.extend(encoding);
                padding.overflowing = std::mem::take(&mut encoding.overflowing);
                *encoding = padding;
            }
        }
    }
}

/// A truncation that cannot work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruncationError {
    pub(crate) truncation: Truncation,
    pub(crate) added: usize,
}

impl fmt::Display for TruncationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Truncation { max_length, stride, .. } = self.truncation;
        let added = self.added;
        if max_length < added {
            write!(
                f,
                "truncation to {max_length} tokens has no room for the {added} tokens that the template adds"
            )
        } else {
            write!(
                f,
                "a stride of {stride} is too long: truncation to {max_length} tokens leaves {} beside the template's {added}, and the stride must be less",
                max_length - added
            )
        }
    }
}

impl std::error::Error for TruncationError {}

impl Truncation {
    /// Refuses what could never be applied to texts whose template adds `added` tokens.
    pub(crate) fn check(&self, added: usize) -> Result<(), TruncationError> {
        let room = self.max_length.checked_sub(added);
        if room.is_some_and(|room| self.stride == 0 || self.stride < room) {
            return Ok(());
        }
        Err(TruncationError { truncation: *self, added })
    }

    /// Cuts one text, or the two of a pair, so that with `added` more tokens they fit.
    pub(crate) fn apply(&self, first: &mut Encoding, second: Option<&mut Encoding>, added: usize) {
        let max = self.max_length.saturating_sub(added);
        let total = first.len() + second.as_ref().map_or(0, |second| second.len());
        if total <= max {
            return;
        }
        if max == 0 {
            // No text has room: then the strategy does not matter.
            self.cut(first, 0);
            if let Some(second) = second {
                self.cut(second, 0);
            }
            return;
        }
        let excess = total - max;
        match (self.strategy, second) {
            (TruncationStrategy::LongestFirst, Some(second)) => {
                // The shorter text stays whole where the longer one alone can give enough;
                // otherwise both are cut to half, the first one the shorter half's larger share.
                let (mut a, mut b) = (first.len(), second.len());
                let swap = a > b;
                if swap {
                    std::mem::swap(&mut a, &mut b);
                }
                b = if a > max { a } else { a.max(max - a) };
                if a + b > max {
                    a = max / 2;
                    b = a + max % 2;
                }
                if swap {
                    std::mem::swap(&mut a, &mut b);
                }
                self.cut(first, a);
                self.cut(second, b);
            }
            (TruncationStrategy::OnlySecond, Some(second)) => {
                let keep = second.len().saturating_sub(excess);
                self.cut(second, keep);
            }
            (TruncationStrategy::OnlyFirst, _) | (_, None) => {
                let keep = first.len().saturating_sub(excess);
                self.cut(first, keep);
            }
        }
    }

    /// Keeps `keep` tokens; the rest becomes windows of that length.
    fn cut(&self, encoding: &mut Encoding, keep: usize) {
        let len = encoding.len();
        if keep >= len {
            return;
        }
        if keep == 0 {
            let all = std::mem::take(encoding);
            encoding.overflowing.push(all);
            return;
        }
        let step = keep.saturating_sub(self.stride).max(1);
        let mut windows = Vec::new();
        match self.side {
            Side::Right => {
                let mut start = 0;
                loop {
                    let end = (start + keep).min(len);
                    windows.push((start, end));
                    if end == len {
                        break;
                    }
                    start += step;
                }
            }
            Side::Left => {
                let mut end = len;
                loop {
                    let start = end.saturating_sub(keep);
                    windows.push((start, end));
                    if start == 0 {
                        break;
                    }
                    end -= step;
                }
            }
        }
        let mut windows = windows.into_iter().map(|(start, end)| encoding.window(start, end));
        let mut kept = windows.next().expect("the first window always exists");
        kept.overflowing = windows.collect();
        *encoding = kept;
    }
}
