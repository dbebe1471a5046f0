use alloc::string::String;
use core::fmt;

/// Which strings may become pieces: the conditions of SentencePiece (Kudo and Richardson 2018), as
/// its trainers 0.2.3 have them. A trainer that is given rules learns no token that they forbid.
///
/// `▁` (U+2581) stands for a space. It may only be the first character of a piece, so that pieces
/// do not reach over the beginning of a word.
///
/// ```
/// use tokenizer_core::PieceRules;
///
/// let rules = PieceRules::default();
/// assert!(rules.allow("▁hug"));
/// assert!(!rules.allow("hug▁"));
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct PieceRules {
    /// The longest piece, in characters; default 16.
    pub max_chars: usize,
    /// The script of a character as a number, `None` where it is that of the character in front
    /// (combining marks). Pieces do not mix scripts. Default: no function, scripts mix. The
    /// algorithm crates hold no tables of Unicode, so the caller gives them.
    pub script: Option<fn(char) -> Option<u8>>,
    /// Whether digits (`0` to `9`, `０` to `９`) have a script like other characters; without it they
    /// go with any. Default true.
    pub split_by_number: bool,
    /// Whether `▁` may be the first character alone. Without it a piece may hold more of them, but
    /// not end with one. Default true.
    pub split_by_whitespace: bool,
    /// Whether digits stand alone. Default false.
    pub split_digits: bool,
    /// Whether pieces of nothing but `▁` may be as long as others. Default false.
    pub whitespace_only: bool,
}

impl Default for PieceRules {
    fn default() -> Self {
        Self {
            max_chars: 16,
            script: None,
            split_by_number: true,
            split_by_whitespace: true,
            split_digits: false,
            whitespace_only: false,
        }
    }
}

impl PieceRules {
    /// The space within pieces.
    pub const SPACE: char = '\u{2581}';
    /// SentencePiece puts it in the place of characters without a token, so no piece holds it.
    pub const UNKNOWN: char = '\u{2585}';
    /// SentencePiece puts it in the place of special tokens in the text, so no piece holds it.
    pub const BOUNDARY: char = '\u{1F}';

    /// Whether the rules allow a piece. `O(n)`; no piece is empty.
    #[must_use]
    pub fn allow(&self, piece: &str) -> bool {
        let len = piece.chars().take(self.max_chars.saturating_add(1)).count();
        if len == 0 || len > self.max_chars {
            return false;
        }
        let may_repeat = self.whitespace_only && piece.chars().all(|c| c == Self::SPACE);
        let mut before = None;
        for (at, c) in piece.chars().enumerate() {
            match c {
                Self::UNKNOWN | Self::BOUNDARY | '\0' | ' ' => return false,
                Self::SPACE => {
                    let is_misplaced =
                        if self.split_by_whitespace { at > 0 } else { at > 0 && at == len - 1 };
                    if is_misplaced && !may_repeat {
                        return false;
                    }
                    continue;
                }
                _ => {}
            }
            let is_digit = matches!(c, '0'..='9' | '\u{FF10}'..='\u{FF19}');
            if self.split_digits && is_digit && len > 1 {
                return false;
            }
            let Some(script_of) = self.script else { continue };
            let script = match script_of(c) {
                _ if is_digit && !self.split_by_number => None,
                Some(script) => Some(script),
                None => before,
            };
            if let (Some(script), Some(before)) = (script, before)
                && script != before
            {
                return false;
            }
            before = script;
        }
        true
    }

    /// Whether the rules allow the concatenation of two pieces, which `text` is the scratch for.
    /// What is not UTF-8 is no piece.
    #[must_use]
    pub fn allow_pair(&self, left: &[u8], right: &[u8], text: &mut String) -> bool {
        let (Ok(left), Ok(right)) = (core::str::from_utf8(left), core::str::from_utf8(right))
        else {
            return false;
        };
        text.clear();
        text.push_str(left);
        text.push_str(right);
        self.allow(text)
    }
}

impl PartialEq for PieceRules {
    /// Functions are equal if they are the same one in this program.
    fn eq(&self, other: &Self) -> bool {
        let scripts = match (self.script, other.script) {
            (Some(a), Some(b)) => core::ptr::fn_addr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        scripts
            && self.max_chars == other.max_chars
            && self.split_by_number == other.split_by_number
            && self.split_by_whitespace == other.split_by_whitespace
            && self.split_digits == other.split_digits
            && self.whitespace_only == other.whitespace_only
    }
}

impl fmt::Debug for PieceRules {
    /// Without the address of the function, so that the same options print the same.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PieceRules")
            .field("max_chars", &self.max_chars)
            .field("splits_scripts", &self.script.is_some())
            .field("split_by_number", &self.split_by_number)
            .field("split_by_whitespace", &self.split_by_whitespace)
            .field("split_digits", &self.split_digits)
            .field("whitespace_only", &self.whitespace_only)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(c: char) -> Option<u8> {
        match c {
            '\u{300}'..='\u{36F}' => None,
            'a'..='z' => Some(2),
            'а'..='я' => Some(3),
            _ => Some(1),
        }
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut PieceRules), allowed: &[&str], forbidden: &[&str]) {
        let mut rules = PieceRules { script: Some(script), ..PieceRules::default() };
        change(&mut rules);
        for piece in allowed {
            assert!(rules.allow(piece), "{piece} should be allowed");
        }
        for piece in forbidden {
            assert!(!rules.allow(piece), "{piece} should be forbidden");
        }
    }

    #[test]
    fn scripts_spaces_and_lengths_part_pieces() {
        let long = "a".repeat(16);
        check(
            |_| {},
            &["▁", "▁a", "ab", "a\u{301}b", "▁12", "1.2", "１２", &long],
            &["", "a▁", "▁▁", "a▁b", "a1", "aб", "a.", "▁a1", &"a".repeat(17), "a\0", "a\u{2585}"],
        );
    }

    #[test]
    fn what_is_inherited_has_the_script_in_front() {
        check(|_| {}, &["\u{301}a", "1\u{301}2", "а\u{301}б"], &["1\u{301}a"]);
    }

    #[test]
    fn digits_may_go_with_any_script() {
        // As in SentencePiece a digit forgets the script in front of it.
        check(|r| r.split_by_number = false, &["a1", "1a", "a1б", "１a"], &["aб", "a.1"]);
    }

    #[test]
    fn digits_may_stand_alone() {
        check(|r| r.split_digits = true, &["1", "ab", "９"], &["12", "▁1", "a1"]);
    }

    #[test]
    fn spaces_may_be_inside() {
        check(|r| r.split_by_whitespace = false, &["a▁b", "▁a▁b", "▁"], &["a▁", "▁a▁", "▁▁"]);
    }

    #[test]
    fn runs_of_spaces_may_be_pieces() {
        check(|r| r.whitespace_only = true, &["▁▁", "▁▁▁", "▁a"], &["▁▁a", "a▁"]);
    }

    #[test]
    fn scripts_mix_without_a_function() {
        check(|r| r.script = None, &["aб", "a1", "a."], &["a▁"]);
    }
}
