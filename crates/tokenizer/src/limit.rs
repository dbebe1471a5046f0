//! Questions about length that need not encode everything.

use tokenizer_core::{Span, TokenId};

use crate::fit::Side;
use crate::pipeline::{Session, Tokenizer};

impl Tokenizer {
    /// The number of tokens of `text` if it is at most `limit`, else `None`. Stops encoding as
    /// soon as the limit is passed.
    #[must_use]
    pub fn count_till_limit(&self, text: &str, limit: usize) -> Option<usize> {
        self.session().count_till_limit(text, limit)
    }

    /// Whether `text` has at most `limit` tokens.
    #[must_use]
    pub fn is_within(&self, text: &str, limit: usize) -> bool {
        self.count_till_limit(text, limit).is_some()
    }

    /// The longest stretch at one end of `text` that this method can prove to encode to at most
    /// `limit` tokens: what is left after cutting the [`Side`] given. Always cut on a character
    /// boundary.
    ///
    /// Cutting changes how the text at the cut encodes, sometimes to more tokens; so the part is
    /// encoded again and shortened until it fits. Encodes the text once and the part once or
    /// twice.
    ///
    /// ```
    /// use tokenizer::{Side, Tokenizer};
    ///
    /// let tokenizer = Tokenizer::bytes();
    /// assert_eq!(tokenizer.cut("añb", 2, Side::Right), "a"); // ñ is two bytes
    /// assert_eq!(tokenizer.cut("añb", 3, Side::Left), "ñb");
    /// ```
    #[must_use]
    pub fn cut<'t>(&self, text: &'t str, limit: usize, side: Side) -> &'t str {
        self.session().cut(text, limit, side)
    }
}

impl Session<'_> {
    /// As [`Tokenizer::count_till_limit`].
    pub fn count_till_limit(&mut self, text: &str, limit: usize) -> Option<usize> {
        let count = self.count_while(text, limit);
        (count <= limit).then_some(count)
    }

    /// As [`Tokenizer::cut`].
    pub fn cut<'t>(&mut self, text: &'t str, limit: usize, side: Side) -> &'t str {
        let offsets = self.plain_offsets(text);
        if offsets.len() <= limit {
            return text;
        }
        // Candidate cuts, best first: the text up to the start of token `limit`, `limit - 1`, …
        // (or from the end of the token that many from the end). Steps double, so that a text
        // whose parts encode badly costs a logarithmic number of trials.
        let mut dropped = 0;
        let mut step = 1;
        loop {
            let keep = limit.saturating_sub(dropped);
            let part = match side {
                Side::Right => {
                    let mut end = offsets[keep].start;
                    while !text.is_char_boundary(end) {
                        end -= 1;
                    }
                    &text[..end]
                }
                Side::Left => {
                    let mut start = match keep {
                        0 => text.len(),
                        _ => offsets[offsets.len() - keep - 1].end,
                    };
                    while !text.is_char_boundary(start) {
                        start += 1;
                    }
                    &text[start..]
                }
            };
            if self.count_till_limit(part, limit).is_some() {
                return part;
            }
            if keep == 0 {
                return "";
            }
            dropped += step;
            step *= 2;
        }
    }

    /// Where each token of the text begins and ends: byte offsets in the original text, outward
    /// to whole characters, never decreasing.
    fn plain_offsets(&mut self, text: &str) -> Vec<Span> {
        let encoding = self.encode_plain(text);
        let (ids, mut offsets): (Vec<TokenId>, Vec<Span>) = (encoding.ids, encoding.offsets);
        debug_assert_eq!(ids.len(), offsets.len());
        // Offsets of odd normalizations may step back; a cut only needs a monotone bound.
        let mut least = usize::MAX;
        for span in offsets.iter_mut().rev() {
            least = least.min(span.start);
            span.start = least;
        }
        let mut most = 0;
        for span in &mut offsets {
            most = most.max(span.end);
            span.end = most;
        }
        offsets
    }
}
