//! Fast lanes: from raw text to ids by one look-up for most words.
//!
//! For many tokenizers there are places in the *raw* text at which the whole pipeline (normalizer,
//! steps, model) falls apart into what is before and what is behind. The text between two such
//! places, a *unit*, becomes the same tokens wherever it stands; so units are looked up as they
//! came, and only what was not met lately is normalized, split and encoded, in the ordinary way.
//!
//! A lane is taken only where the parts of a tokenizer prove that it is exact, when it is built:
//! [`words`] and [`marks`] say what they prove and how. It is never taken by name. Texts with
//! offsets, and tokenizers without a proof, take the ordinary pipeline.

mod marks;
mod masks;
mod words;

use normalize::SentencePieceNormalizer;
use piece_table::{PieceTable, Sink};
use tokenizer_core::{Encode, Span, Token, TokenId};
use unigram::{Unigram, UnitSession};

use self::marks::Marks;
use self::words::{Scratch, Words};
use crate::pipeline::Parts;

/// The lane of a tokenizer, proved for its parts.
pub(crate) enum Lane {
    Words(Box<Words>),
    Marks(Box<Marks>),
}

impl Lane {
    pub(crate) fn of(parts: &Parts) -> Option<Self> {
        let words = Words::of(parts).map(|words| Self::Words(Box::new(words)));
        words.or_else(|| Marks::of(parts).map(|marks| Self::Marks(Box::new(marks))))
    }
}

/// A lane and its memory.
pub(crate) struct LaneSession<'t> {
    lane: &'t Lane,
    parts: &'t Parts,
    table: PieceTable<'t>,
    units: Vec<Span>,
    tokens: Vec<Token>,
    scratch: Scratch,
    text: String,
    lead: String,
    /// For units that go on with the sum of those before.
    sums: Option<Sums<'t>>,
    normalizer: Option<&'t SentencePieceNormalizer>,
}

struct Sums<'t> {
    session: UnitSession<'t>,
    /// For each unit a header, and its steps.
    steps: Vec<Token>,
}

/// So many units are cut before they are looked up.
const UNITS: usize = 512;

impl<'t> LaneSession<'t> {
    pub(crate) fn new(lane: &'t Lane, parts: &'t Parts) -> Self {
        let sums = match lane {
            Lane::Marks(marks) if marks.sums => {
                let model = parts.model.as_any().and_then(|model| model.downcast_ref::<Unigram>());
                let session = model.and_then(UnitSession::new);
                let session = session.expect("the lane was proved for this model");
                Some(Sums { session, steps: Vec::new() })
            }
            _ => None,
        };
        let normalizer = parts.normalizer.as_ref().and_then(|normalizer| normalizer.as_any());
        Self {
            lane,
            parts,
            table: PieceTable::new(None),
            units: Vec::new(),
            tokens: Vec::new(),
            scratch: Scratch::default(),
            text: String::new(),
            lead: String::new(),
            sums,
            normalizer: normalizer.and_then(|normalizer| normalizer.downcast_ref()),
        }
    }

    /// Gives `out` the tokens of a stretch of text, or the first of them if `enough` says so on
    /// the way. `is_first` says that the whole text begins with it.
    pub(crate) fn run<S: Sink>(
        &mut self,
        text: &str,
        is_first: bool,
        encoder: &mut dyn Encode,
        out: &mut S,
        enough: impl Fn(&S) -> bool,
    ) {
        match self.lane {
            Lane::Words(lane) => self.run_words(lane, text, encoder, out, enough),
            Lane::Marks(lane) => self.run_marks(lane, text, is_first, encoder, out, enough),
        }
    }

    fn run_words<S: Sink>(
        &mut self,
        lane: &'t Words,
        text: &str,
        encoder: &mut dyn Encode,
        out: &mut S,
        enough: impl Fn(&S) -> bool,
    ) {
        let Self { parts, table, units, tokens, scratch, .. } = self;
        let bytes = text.as_bytes();
        let mut at = 0;
        if lane.is_special_first(bytes) {
            units.clear();
            lane.cut(bytes, 0, 1, units);
            if let Some(first) = units.first() {
                tokens.clear();
                lane.encode(parts, scratch, &text[first.range()], false, encoder, tokens);
                out.extend(tokens);
                at = first.end;
            }
        }
        let mut miss = |unit: &[u8], tokens: &mut Vec<Token>| {
            lane.encode(parts, scratch, as_text(unit), true, encoder, tokens);
            forget_lengths(unit, tokens);
        };
        while at < bytes.len() && !enough(out) {
            units.clear();
            at = lane.cut(bytes, at, UNITS, units);
            table.encode(bytes, units, &mut miss, out);
        }
    }

    fn run_marks<S: Sink>(
        &mut self,
        lane: &'t Marks,
        text: &str,
        is_first: bool,
        encoder: &mut dyn Encode,
        out: &mut S,
        enough: impl Fn(&S) -> bool,
    ) {
        if text.is_empty() {
            return;
        }
        let bytes = text.as_bytes();
        let mut sum = 0.0;
        let mut at = 0;
        let mut units = std::mem::take(&mut self.units);
        units.clear();
        if lane.leads(text, is_first) {
            lane.cut(bytes, 0, 1, &mut units);
            at = units[0].end;
            let mut lead = std::mem::take(&mut self.lead);
            lead.clear();
            lead.push(' ');
            lead.push_str(&text[..at]);
            if at == text.len() && !lane.is_plain_end(bytes) {
                self.last_of_marks(lane, &lead, &mut sum, encoder, out);
            } else {
                let unit = Span::new(0, lead.len());
                self.look_up(lane, &lead, &[unit], &mut sum, encoder, out);
            }
            self.lead = lead;
        }
        while at < bytes.len() && !enough(out) {
            units.clear();
            at = lane.cut(bytes, at, UNITS, &mut units);
            let last =
                if at == bytes.len() && !lane.is_plain_end(bytes) { units.pop() } else { None };
            self.look_up(lane, text, &units, &mut sum, encoder, out);
            if let Some(last) = last {
                self.last_of_marks(lane, &text[last.range()], &mut sum, encoder, out);
            }
        }
        self.units = units;
    }

    /// Gives out the tokens of units of `text`. `sum` is that of the scores so far, if it counts.
    fn look_up<S: Sink>(
        &mut self,
        lane: &'t Marks,
        text: &str,
        units: &[Span],
        sum: &mut f32,
        encoder: &mut dyn Encode,
        out: &mut S,
    ) {
        let Self { table, tokens, scratch, text: buffer, sums, normalizer, .. } = self;
        let Some(Sums { session, steps }) = sums else {
            let mut miss = |unit: &[u8], tokens: &mut Vec<Token>| {
                lane.normalize(*normalizer, as_text(unit), buffer);
                lane.encode(buffer, encoder, &mut scratch.pieces, tokens);
                forget_lengths(unit, tokens);
            };
            return table.encode(text.as_bytes(), units, &mut miss, out);
        };
        // First the certified paths of all units, each behind a header with its limit, then those
        // that the sum allows.
        steps.clear();
        let mut miss = |unit: &[u8], steps: &mut Vec<Token>| {
            lane.normalize(*normalizer, as_text(unit), buffer);
            let at = steps.len();
            steps.push(Token { id: TokenId(0), len: 0 });
            let limit = session.certify(buffer.as_bytes(), steps);
            let len = (steps.len() - at - 1) as u32;
            if len > 0 {
                steps[at] = Token { id: header(limit), len };
            }
        };
        table.encode(text.as_bytes(), units, &mut miss, steps);
        let mut rest = &steps[..];
        for unit in units {
            let (head, behind) = rest.split_first().expect("every unit has a header");
            // A token alone has the length of its piece.
            let len = if head.id.0 == 0 { 0 } else { head.len as usize };
            let (path, behind) = behind.split_at(len);
            rest = behind;
            if sum.abs() < limit(head.id) {
                out.extend(path);
                *sum = session.replay(*sum, path);
            } else {
                lane.normalize(*normalizer, &text[unit.range()], buffer);
                tokens.clear();
                *sum = session.encode(buffer.as_bytes(), *sum, tokens);
                out.extend(tokens);
            }
        }
    }

    /// Gives out the tokens of a unit at the end of the text, where spaces are removed.
    fn last_of_marks<S: Sink>(
        &mut self,
        lane: &'t Marks,
        unit: &str,
        sum: &mut f32,
        encoder: &mut dyn Encode,
        out: &mut S,
    ) {
        lane.normalize(self.normalizer, unit, &mut self.text);
        lane.strip_end(&mut self.text);
        self.tokens.clear();
        match &mut self.sums {
            Some(sums) => {
                *sum = sums.session.encode(self.text.as_bytes(), *sum, &mut self.tokens);
            }
            None => lane.encode(&self.text, encoder, &mut self.scratch.pieces, &mut self.tokens),
        }
        out.extend(&self.tokens);
    }
}

/// A unit of text. Checked again, which costs little beside a miss.
fn as_text(unit: &[u8]) -> &str {
    str::from_utf8(unit).expect("units are cut between characters")
}

/// Lengths are those of normalized text, and only ids come out of a lane; tables keep best what has
/// lengths as a piece of the text itself would.
fn forget_lengths(unit: &[u8], tokens: &mut [Token]) {
    let only = if tokens.len() == 1 { unit.len() as u32 } else { 0 };
    tokens.iter_mut().for_each(|token| token.len = only);
}

/// A limit as an id of 24 bits: rounded towards 0.
fn header(limit: f32) -> TokenId {
    TokenId(limit.to_bits() >> 8)
}

fn limit(header: TokenId) -> f32 {
    f32::from_bits(header.0 << 8)
}
