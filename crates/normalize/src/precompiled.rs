use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use tokenizer_core::{Edit, Normalize};
use unicode_segmentation::UnicodeSegmentation;

use crate::Charsmap;
use crate::rewrite::Rewriter;

/// Applies a [`Charsmap`] as Hugging Face does, grapheme by grapheme (UAX #29). Hugging Face
/// `Precompiled`.
///
/// A grapheme of less than 6 bytes is looked up as a whole, else (or if nothing is found) each of
/// its characters; and a lookup takes the *shortest* rule that the bytes begin with, for all of
/// them. So `Ａ` with an accent loses the accent where SentencePiece keeps it. Models of
/// SentencePiece that Hugging Face serves are used with this; the library itself is
/// [`SentencePieceNormalizer`](crate::SentencePieceNormalizer).
///
/// Offsets are Hugging Face's too: when the very first characters are deleted, all that follows
/// stands for what lies one deletion before it.
///
/// ```
/// use normalize::{Charsmap, Precompiled};
/// use tokenizer_core::Normalize;
///
/// let rules = Charsmap::from_rules([("Ａ", "A"), ("™", "TM")])?;
/// let precompiled = Precompiled::new(rules);
/// assert_eq!(precompiled.normalize("™Ａ\u{301}"), "TMA");
/// # Ok::<(), normalize::CharsmapError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Precompiled {
    charsmap: Charsmap,
}

/// The length in bytes from which a grapheme is not looked up as a whole.
const LONG_GRAPHEME: usize = 6;

impl Precompiled {
    /// Applies these rules.
    #[must_use]
    pub fn new(charsmap: Charsmap) -> Self {
        Self { charsmap }
    }

    /// The rules.
    #[must_use]
    pub fn charsmap(&self) -> &Charsmap {
        &self.charsmap
    }

    /// Whether a space behind `c` may belong to the same grapheme, so that what becomes of one
    /// depends on the other: for the class Prepend of UAX #29, and for all characters beyond the
    /// basic plane, which are not told apart.
    #[inline]
    #[must_use]
    pub fn joins_space(c: char) -> bool {
        matches!(
            c,
            '\u{600}'..='\u{605}'
                | '\u{6DD}'
                | '\u{70F}'
                | '\u{890}'..='\u{891}'
                | '\u{8E2}'
                | '\u{D4E}'
                | '\u{10000}'..
        )
    }

    /// Calls `each` with every stretch of `text` that is looked up (or copied) as one, and what
    /// becomes of it if a rule is found.
    pub(crate) fn each_part<'a>(
        &'a self,
        text: &'a str,
        mut each: impl FnMut(&'a str, Option<&'a str>),
    ) {
        let mut rest = text;
        while !rest.is_empty() {
            let run = self.plain_prefix(rest.as_bytes());
            let (plain, more) = rest.split_at(run);
            if run > 0 {
                each(plain, None);
            }
            let Some(grapheme) = more.graphemes(true).next() else { return };
            rest = &more[grapheme.len()..];
            if grapheme.len() < LONG_GRAPHEME
                && let Some(target) = self.charsmap.shortest_prefix(grapheme.as_bytes())
            {
                each(grapheme, Some(target));
                continue;
            }
            let mut rest = grapheme;
            while let Some(c) = rest.chars().next() {
                let (c, more) = rest.split_at(c.len_utf8());
                each(c, self.charsmap.shortest_prefix(c.as_bytes()));
                rest = more;
            }
        }
    }

    /// The number of bytes at the start that are graphemes of one byte each without a rule.
    fn plain_prefix(&self, bytes: &[u8]) -> usize {
        // A visible ASCII character is a grapheme of its own if ASCII follows.
        let visible = |byte: &u8| matches!(byte, b' '..=b'~') && self.charsmap.is_plain(*byte);
        let run = bytes.iter().take_while(|byte| visible(byte)).count();
        match bytes.get(run) {
            Some(byte) if !byte.is_ascii() => run.saturating_sub(1),
            _ => run,
        }
    }
}

impl Normalize for Precompiled {
    fn normalize<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut out: Option<String> = None;
        let mut at = 0;
        self.each_part(text, |source, target| {
            match (target, &mut out) {
                (None, None) => {}
                (None, Some(out)) => out.push_str(source),
                (Some(target), Some(out)) => out.push_str(target),
                (Some(target), None) if source == target => {}
                (Some(target), None) => {
                    let mut changed = String::with_capacity(text.len() + target.len());
                    changed.push_str(&text[..at]);
                    changed.push_str(target);
                    out = Some(changed);
                }
            }
            at += source.len();
        });
        out.map_or(Cow::Borrowed(text), Cow::Owned)
    }

    fn normalize_with_edits<'t>(&self, text: &'t str, edits: &mut Vec<Edit>) -> Cow<'t, str> {
        let mut out = Rewriter::new(text, Some(edits));
        // A deletion is a change of the character written last, so that one waits.
        let mut waiting: Option<(char, isize)> = None;
        // Before any character there is nothing to change, and Hugging Face forgets the deletion:
        // from there on, what is read lies behind what is looked up.
        let mut at = 0;
        self.each_part(text, |source, target| {
            let start = at;
            at += source.len();
            let Some(target) = target else {
                if let Some((c, change)) = waiting.take() {
                    out.push(c, change);
                }
                let last = source.chars().next_back();
                let copied = source.len() - last.map_or(0, char::len_utf8);
                if out.at() != start {
                    source[..copied].chars().for_each(|c| out.push(c, 0));
                } else {
                    out.keep(copied);
                }
                waiting = last.map(|c| (c, 0));
                return;
            };
            let (old, new) = (source.chars().count(), target.chars().count());
            for (i, c) in target.chars().enumerate() {
                if let Some((c, change)) = waiting.replace((c, isize::from(i >= old))) {
                    out.push(c, change);
                }
            }
            if let Some((_, change)) = &mut waiting {
                *change -= old.saturating_sub(new) as isize;
            }
        });
        if let Some((c, change)) = waiting {
            out.push(c, change);
        }
        // What was forgotten is left over at the end.
        out.delete(text.len() - out.at());
        out.finish()
    }

    fn as_any(&self) -> Option<&dyn core::any::Any> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn spaces_are_joined_by_no_other_character() {
        for c in ('\0'..=char::MAX).filter(|&c| !Precompiled::joins_space(c)) {
            let text = format!("{c} ");
            assert_eq!(text.graphemes(true).next_back(), Some(" "), "{c:?}");
        }
    }
}
