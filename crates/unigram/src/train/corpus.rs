//! The text that is trained on: what is left of the counted pieces when special tokens and rare
//! characters are taken out.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;

use tokenizer_core::{Observe, PieceCounts, TokenKind, utf8};

use super::error::{Kind, TrainError};
use super::{Report, Round, UnigramTrainer, stop_if};
use crate::trie::DoubleArray;

/// Longer stretches of text are cut.
pub(super) const MAX_UNIT: usize = 16_384;

/// Distinct stretches of text, each of alphabet characters only, with their counts; sorted.
pub(super) struct Corpus {
    arena: Vec<u8>,
    units: Vec<Unit>,
    /// The characters that every vocabulary must have, with their counts, by code point.
    pub(super) alphabet: BTreeMap<char, u64>,
    /// The characters of all units times their counts.
    pub(super) chars: u64,
}

#[derive(Clone, Copy)]
struct Unit {
    start: u64,
    len: u32,
    chars: u32,
    count: u64,
}

impl Corpus {
    pub(super) fn new(
        trainer: &UnigramTrainer,
        counts: &PieceCounts,
        observe: &mut dyn Observe<Round>,
        report: &mut Report,
    ) -> Result<Self, TrainError> {
        let cutter = Cutter::new(trainer)?;
        let total = counts.len() as u64;
        let mut progress = |done: usize, of: u64| match done % (1 << 16) {
            0 => stop_if(observe.progress("prepare", done as u64, of)),
            _ => Ok(()),
        };

        let mut chars = CharCounts::default();
        for (done, counted) in counts.iter().enumerate() {
            progress(done, 2 * total)?;
            cutter.stretches(counted.piece, |stretch| chars.add(stretch, counted.count))?;
        }
        let alphabet = chars.alphabet(trainer, report)?;
        report.alphabet = alphabet.len();

        let mut corpus = Self { arena: Vec::new(), units: Vec::new(), alphabet, chars: 0 };
        for (done, counted) in counts.iter().enumerate() {
            progress(counts.len() + done, 2 * total)?;
            cutter.stretches(counted.piece, |stretch| {
                corpus.push_known(stretch, counted.count, report);
                Ok(())
            })?;
        }
        corpus.merge_equal();
        let known = corpus.alphabet.values().try_fold(0u64, |sum, &n| sum.checked_add(n));
        corpus.chars = known.ok_or_else(|| TrainError::new(Kind::Overflow))?;
        Ok(corpus)
    }

    pub(super) fn len(&self) -> usize {
        self.units.len()
    }

    /// The bytes and the count of a unit.
    #[inline]
    pub(super) fn unit(&self, i: usize) -> (&[u8], u64) {
        let unit = &self.units[i];
        let start = unit.start as usize;
        (&self.arena[start..start + unit.len as usize], unit.count)
    }

    /// The length of a unit in characters, and its count.
    #[inline]
    pub(super) fn chars_of(&self, i: usize) -> (usize, u64) {
        (self.units[i].chars as usize, self.units[i].count)
    }

    /// Cuts the units into runs of about the same number of bytes, small enough to be shared out
    /// evenly. Returns where each run begins, and the end of the last one.
    pub(super) fn runs(&self) -> Vec<usize> {
        let size = (self.arena.len() / 512).clamp(1 << 12, 1 << 17);
        let mut runs = vec![0];
        let mut bytes = 0;
        for (i, unit) in self.units.iter().enumerate() {
            bytes += unit.len as usize;
            if bytes >= size || i + 1 == self.units.len() {
                runs.push(i + 1);
                bytes = 0;
            }
        }
        runs
    }

    /// The bytes of all units.
    pub(super) fn bytes(&self) -> usize {
        self.arena.len()
    }

    /// Adds the parts of a stretch between characters outside of the alphabet.
    fn push_known(&mut self, stretch: &[u8], count: u64, report: &mut Report) {
        let (mut from, mut at, mut is_cut) = (0, 0, false);
        while at < stretch.len() {
            let (char, len) = utf8::decode(&stretch[at..]);
            if !char.is_some_and(|c| self.alphabet.contains_key(&c)) {
                self.push(&stretch[from..at], count);
                from = at + len;
            } else if at + len - from > MAX_UNIT {
                self.push(&stretch[from..at], count);
                from = at;
                is_cut = true;
            }
            at += len;
        }
        self.push(&stretch[from..], count);
        report.cut_pieces += usize::from(is_cut);
    }

    fn push(&mut self, text: &[u8], count: u64) {
        if !text.is_empty() {
            let start = self.arena.len() as u64;
            let (len, chars) = (text.len() as u32, utf8::chars(text).count() as u32);
            self.units.push(Unit { start, len, chars, count });
            self.arena.extend_from_slice(text);
        }
    }

    /// Sorts the units and makes equal ones one.
    fn merge_equal(&mut self) {
        let mut units = core::mem::take(&mut self.units);
        let text = |unit: &Unit| {
            let start = unit.start as usize;
            &self.arena[start..start + unit.len as usize]
        };
        // Counted pieces come sorted, so that this mostly confirms it.
        units.sort_by(|a, b| text(a).cmp(text(b)));
        units.dedup_by(|next, unit| {
            let equal = text(next) == text(unit);
            if equal {
                // No count passes the sum of the characters' counts, which was checked.
                unit.count += next.count;
            }
            equal
        });
        self.units = units;
    }
}

/// Cuts pieces at special tokens.
struct Cutter {
    special: Option<DoubleArray>,
}

impl Cutter {
    fn new(trainer: &UnigramTrainer) -> Result<Self, TrainError> {
        let texts: BTreeSet<&[u8]> = trainer
            .special_tokens
            .iter()
            .filter(|token| token.kind != TokenKind::Unused && !token.bytes.is_empty())
            .map(|token| token.bytes.as_slice())
            .collect();
        if texts.is_empty() {
            return Ok(Self { special: None });
        }
        let keys: Vec<(&[u8], u32)> = texts.into_iter().map(|text| (text, 0)).collect();
        let too_many = |_| TrainError::new(Kind::TooManyPieces { pieces: keys.len() });
        Ok(Self { special: Some(DoubleArray::build(&keys).map_err(too_many)?) })
    }

    fn stretches(
        &self,
        piece: &[u8],
        mut found: impl FnMut(&[u8]) -> Result<(), TrainError>,
    ) -> Result<(), TrainError> {
        let Some(special) = &self.special else { return found(piece) };
        let (mut from, mut at) = (0, 0);
        while at < piece.len() {
            let mut len = 0;
            special.prefixes(&piece[at..], |longest, _| len = longest);
            if len > 0 {
                found(&piece[from..at])?;
                at += len;
                from = at;
            } else {
                at += utf8::char_len(&piece[at..]);
            }
        }
        found(&piece[from..])
    }
}

/// How often each character occurs.
struct CharCounts {
    ascii: [u64; 128],
    others: BTreeMap<char, u64>,
    total: u64,
}

impl Default for CharCounts {
    fn default() -> Self {
        Self { ascii: [0; 128], others: BTreeMap::new(), total: 0 }
    }
}

impl CharCounts {
    fn add(&mut self, text: &[u8], count: u64) -> Result<(), TrainError> {
        let mut at = 0;
        let mut chars = 0u64;
        while at < text.len() {
            let (char, len) = utf8::decode(&text[at..]);
            at += len;
            let Some(char) = char.filter(|&c| c != '\0') else { continue };
            chars += 1;
            // Sums are checked below, before they can wrap twice.
            match self.ascii.get_mut(char as usize) {
                Some(sum) => *sum = sum.wrapping_add(count),
                None => {
                    let sum = self.others.entry(char).or_default();
                    *sum = sum.wrapping_add(count);
                }
            }
        }
        let total = count.checked_mul(chars).and_then(|n| self.total.checked_add(n));
        self.total = total.ok_or_else(|| TrainError::new(Kind::Overflow))?;
        Ok(())
    }

    fn alphabet(
        self,
        trainer: &UnigramTrainer,
        report: &mut Report,
    ) -> Result<BTreeMap<char, u64>, TrainError> {
        let mut counts = self.others;
        for (byte, &count) in self.ascii.iter().enumerate().filter(|(_, count)| **count > 0) {
            counts.insert(char::from(byte as u8), count);
        }
        let mut alphabet = BTreeMap::new();
        let mut covered = 0;
        for char in trainer.required_chars.chars().filter(|&c| c != '\0') {
            // One that is given twice is counted once.
            alphabet.entry(char).or_insert_with(|| {
                let count = counts.remove(&char).unwrap_or(0);
                covered += count;
                count
            });
        }
        let mut rest: Vec<(char, u64)> = counts.into_iter().collect();
        // Stable, so that equally frequent characters stay in order of code point.
        rest.sort_by_key(|&(_, count)| core::cmp::Reverse(count));
        for (char, count) in rest {
            if covered as f64 / self.total as f64 >= trainer.coverage {
                break;
            }
            covered += count;
            alphabet.insert(char, count);
        }
        report.coverage = if self.total == 0 { 1.0 } else { covered as f64 / self.total as f64 };
        Ok(alphabet)
    }
}
