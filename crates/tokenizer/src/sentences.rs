use std::borrow::Cow;
use std::collections::VecDeque;

use tokenizer_core::{Normalize, PieceRules};

/// Which lines of a text SentencePiece's trainers (0.2.3) read, and which of them is the last.
///
/// They leave out empty lines, lines that are longer than a limit, and lines with the mark that they
/// put in the place of unknown characters ([`PieceRules::UNKNOWN`]). Lines of which nothing is left
/// when they are normalized go later: their places are filled with lines from the end. So of n lines
/// that stay the last is the first one from place n - 1 on. It decides seeds of Unigram
/// (`UnigramTrainer::last_line`).
///
/// Memory is one line more than there were lines that went.
///
/// ```
/// use tokenizer::Sentences;
///
/// let mut sentences = Sentences::new(None).with_max_len(8);
/// let lines = ["hug", "", "hug pug pun", "\u{2585}", "pug"];
/// let read: Vec<&str> = lines.into_iter().filter(|line| sentences.takes(line)).collect();
/// assert_eq!(read, ["hug", "pug"]);
/// assert_eq!((sentences.too_long(), sentences.marked()), (1, 1));
/// assert_eq!(sentences.finish().as_deref(), Some("pug"));
/// ```
pub struct Sentences<'n> {
    normalizer: Option<&'n dyn Normalize>,
    max_len: usize,
    too_long: u64,
    marked: u64,
    /// How many lines were taken.
    taken: u64,
    /// How many of them are not empty when they are normalized.
    stay: u64,
    /// Lines that may be the last one, with their places.
    candidates: VecDeque<(u64, String)>,
}

impl<'n> Sentences<'n> {
    /// The longest line that is read by default, in bytes (`max_sentence_length`).
    pub const MAX_LEN: usize = 4192;

    /// For lines that this normalizer, if any, prepares for the trainer.
    #[must_use]
    pub fn new(normalizer: Option<&'n dyn Normalize>) -> Self {
        Self {
            normalizer,
            max_len: Self::MAX_LEN,
            too_long: 0,
            marked: 0,
            taken: 0,
            stay: 0,
            candidates: VecDeque::new(),
        }
    }

    /// Takes lines of up to so many bytes, before they are normalized.
    #[must_use]
    pub fn with_max_len(mut self, bytes: usize) -> Self {
        self.max_len = bytes;
        self
    }

    /// Whether a line is read. Lines are asked for in their order, without the newline; a carriage
    /// return in front of it is part of the line.
    pub fn takes(&mut self, line: &str) -> bool {
        if line.is_empty() {
            return false;
        }
        if line.len() > self.max_len {
            self.too_long += 1;
            return false;
        }
        if line.contains(PieceRules::UNKNOWN) {
            self.marked += 1;
            return false;
        }
        let place = self.taken;
        self.taken += 1;
        // Hardly a line needs to be normalized to see that something of it stays.
        if line.bytes().any(|b| b.is_ascii_alphanumeric()) || !self.normalized(line).is_empty() {
            self.stay += 1;
            self.candidates.push_back((place, line.to_owned()));
        }
        while self.candidates.front().is_some_and(|&(place, _)| place + 1 < self.stay) {
            self.candidates.pop_front();
        }
        true
    }

    /// How many lines were left out because they are longer than the limit.
    #[must_use]
    pub fn too_long(&self) -> u64 {
        self.too_long
    }

    /// How many lines were left out because they hold the mark for unknown characters.
    #[must_use]
    pub fn marked(&self) -> u64 {
        self.marked
    }

    /// The last line, normalized; `None` if no line stays.
    #[must_use]
    pub fn finish(self) -> Option<String> {
        let (_, line) = self.candidates.front()?;
        Some(self.normalized(line).into_owned())
    }

    fn normalized<'t>(&self, line: &'t str) -> Cow<'t, str> {
        match self.normalizer {
            Some(normalizer) => normalizer.normalize(line),
            None => Cow::Borrowed(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use normalize::SentencePieceNormalizer;

    use super::*;

    /// As SentencePiece does it: with the lines in an array.
    fn naive(lines: &[&str], normalizer: &dyn Normalize) -> Option<String> {
        let taken = lines.iter().filter(|line| !line.is_empty());
        let mut lines: Vec<String> =
            taken.map(|line| normalizer.normalize(line).into_owned()).collect();
        let mut at = 0;
        while at < lines.len() {
            if lines[at].is_empty() {
                lines.swap_remove(at);
            } else {
                at += 1;
            }
        }
        lines.pop()
    }

    #[test]
    fn lines_that_become_empty_move_the_last_one() {
        let normalizer = SentencePieceNormalizer::new(None);
        let parts = ["a", " ", "", "\u{2581}", "b c", "é"];
        for case in 0..6usize.pow(6) {
            let digits = (0..6).map(|i| case / 6usize.pow(i) % 6);
            let lines: Vec<&str> = digits.map(|i| parts[i]).collect();
            let mut sentences = Sentences::new(Some(&normalizer));
            for line in &lines {
                assert_eq!(sentences.takes(line), !line.is_empty());
            }
            assert_eq!(sentences.finish(), naive(&lines, &normalizer), "{lines:?}");
        }
    }

    #[test]
    fn the_limit_counts_bytes_and_is_reached() {
        let mut sentences = Sentences::new(None);
        assert!(sentences.takes(&"é".repeat(2096)));
        assert!(!sentences.takes(&"a".repeat(4193)));
        assert_eq!(sentences.too_long(), 1);
    }
}
