//! Where a training stands, as bytes: to go on after an interrupt.

use alloc::vec::Vec;
use core::fmt;

use super::corpus::MAX_UNIT;
use super::pieces::Pieces;
use super::{Report, Round};

/// A training between two rounds: the pieces that are left, the models that are done.
///
/// With [`to_bytes`](Self::to_bytes) and [`from_bytes`](Self::from_bytes) it outlives the program.
/// Scores are kept bit by bit, so that a resumed training differs in nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub(super) pieces: Pieces,
    /// The length in characters of the longest piece that there ever was; 1 for SentencePiece's
    /// trainer, which asks for none.
    pub(super) longest: usize,
    pub(super) report: Report,
    /// Of the sizes that are done, in the order in which they were.
    pub(super) fitted: Vec<(Pieces, Report)>,
}

const MAGIC: [u8; 8] = *b"UNIGRST2";

impl State {
    /// Before the first round.
    pub(super) fn empty() -> Self {
        Self { pieces: Pieces::empty(), longest: 1, report: Report::default(), fitted: Vec::new() }
    }

    /// How many rounds were made.
    #[must_use]
    pub fn rounds(&self) -> usize {
        self.report.rounds.len()
    }

    /// The state as bytes: all numbers in 8 bytes, little endian.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::from(MAGIC);
        put(&mut out, self.longest as u64);
        put_pieces(&mut out, &self.pieces);
        put_report(&mut out, &self.report);
        put(&mut out, self.fitted.len() as u64);
        for (pieces, report) in &self.fitted {
            put_pieces(&mut out, pieces);
            put_report(&mut out, report);
        }
        out
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    ///
    /// If the bytes are not a whole state.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, StateError> {
        let mut input = Input(bytes.strip_prefix(&MAGIC).ok_or(StateError { _private: () })?);
        let longest = input.number()? as usize;
        let (pieces, report) = (input.pieces()?, input.report()?);
        let mut fitted = Vec::new();
        for _ in 0..input.number()? {
            fitted.push((input.pieces()?, input.report()?));
        }
        match input.0 {
            [] if (1..=MAX_UNIT).contains(&longest) => Ok(Self { pieces, longest, report, fitted }),
            _ => Err(StateError { _private: () }),
        }
    }
}

fn put(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn put_pieces(out: &mut Vec<u8>, pieces: &Pieces) {
    put(out, pieces.len() as u64);
    for i in 0..pieces.len() {
        let flags = u64::from(pieces.is_required(i)) | u64::from(pieces.is_fixed(i)) << 1;
        put(out, (pieces.bytes(i).len() as u64) << 2 | flags);
        out.extend_from_slice(pieces.bytes(i));
        put(out, pieces.score(i).to_bits());
    }
}

fn put_report(out: &mut Vec<u8>, report: &Report) {
    for number in [report.alphabet, report.cut_pieces, report.seeds] {
        put(out, number as u64);
    }
    for number in [report.coverage, report.log_likelihood] {
        put(out, number.to_bits());
    }
    put(out, report.rounds.len() as u64);
    for round in &report.rounds {
        for number in [round.round, round.pieces_before, round.pieces_after] {
            put(out, number as u64);
        }
        put(out, round.log_likelihood.to_bits());
        put(out, round.tokens);
    }
}

struct Input<'b>(&'b [u8]);

impl<'b> Input<'b> {
    fn take(&mut self, len: u64) -> Result<&'b [u8], StateError> {
        let len = usize::try_from(len).ok().filter(|&len| len <= self.0.len());
        let (taken, rest) = self.0.split_at(len.ok_or(StateError { _private: () })?);
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u64, StateError> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().expect("8 bytes")))
    }

    fn float(&mut self) -> Result<f64, StateError> {
        Ok(f64::from_bits(self.number()?))
    }

    fn pieces(&mut self) -> Result<Pieces, StateError> {
        let mut pieces = Pieces::empty();
        for _ in 0..self.number()? {
            let head = self.number()?;
            let bytes = self.take(head >> 2)?;
            match head & 3 {
                3 => pieces.push_fixed(bytes, self.float()?),
                2 => return Err(StateError { _private: () }),
                flags => pieces.push_scored(bytes, self.float()?, flags == 1),
            }
        }
        Ok(pieces)
    }

    fn report(&mut self) -> Result<Report, StateError> {
        let mut report = Report {
            alphabet: self.number()? as usize,
            cut_pieces: self.number()? as usize,
            seeds: self.number()? as usize,
            coverage: self.float()?,
            log_likelihood: self.float()?,
            rounds: Vec::new(),
        };
        for _ in 0..self.number()? {
            report.rounds.push(Round {
                round: self.number()? as usize,
                pieces_before: self.number()? as usize,
                pieces_after: self.number()? as usize,
                log_likelihood: self.float()?,
                tokens: self.number()?,
            });
        }
        Ok(report)
    }
}

/// Bytes that are not a whole [`State`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateError {
    _private: (),
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not the state of a training, or not the whole of it")
    }
}

impl core::error::Error for StateError {}
