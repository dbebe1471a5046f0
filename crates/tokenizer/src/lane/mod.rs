//! Fast lanes: from raw text to ids by one look-up for most words.
//!
//! For many tokenizers there are places in the *raw* text at which the whole pipeline (normalizer,
//! steps, model) falls apart into what is before and what is behind. The text between two such
//! places, a *unit*, becomes the same tokens wherever it stands; so units are looked up as they
//! came, and only what was not met lately is normalized, split and encoded, in the ordinary way.
//!
//! A lane is taken only where the parts of a tokenizer prove that it is exact, when it is built:
//! [`words`], [`marks`] and [`spaces`] say what they prove and how. It is never taken by name. Texts with
//! offsets, and tokenizers without a proof, take the ordinary pipeline.

mod direct;
mod marks;
mod spaces;
mod words;

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::sync::OnceLock;

use piece_table::{Key, PieceTable, Sink, Size};
use tokenizer_core::{Encode, Span, Token, TokenId, TokenKind};
use unigram::{Unigram, UnitSession};

use self::direct::Direct;
use self::marks::{Marks, Rewrite};
use self::spaces::{Place, Spaces};
use self::words::{Scratch, Words};
use crate::pipeline::Parts;

/// The lane of a tokenizer, proved for its parts.
pub(crate) struct Lane {
    kind: Kind,
    /// The units that are tokens of the model, and what becomes of them. Built when a session has met
    /// enough to make it worth it.
    known: OnceLock<piece_table::Words>,
}

enum Kind {
    Words(Box<Words>),
    Marks(Box<Marks>),
    Spaces(Box<Spaces>),
}

impl Lane {
    pub(crate) fn of(parts: &Parts) -> Option<Self> {
        let words = Words::of(parts).map(|words| Kind::Words(Box::new(words)));
        let marks = || Marks::of(parts).map(|marks| Kind::Marks(Box::new(marks)));
        let spaces = || Spaces::of(parts).map(|spaces| Kind::Spaces(Box::new(spaces)));
        let kind = words.or_else(marks).or_else(spaces)?;
        Some(Self { kind, known: OnceLock::new() })
    }

    /// The units that are tokens of the model, for the parts that the lane was proved for. The first
    /// call builds them.
    pub(crate) fn known(&self, parts: &Parts) -> &piece_table::Words {
        self.known.get_or_init(|| known_units(self, parts))
    }

    /// Places about every `size` bytes at which a stretch of text may be taken apart: the ids of the
    /// [`Part`]s are those of the whole. None where there is no such place nearby, and `None` where the
    /// lane is not one of words.
    pub(crate) fn places(&self, text: &str, size: NonZeroUsize) -> Option<Vec<usize>> {
        let Kind::Words(words) = &self.kind else { return None };
        let near = (size.get()..text.len()).step_by(size.get());
        let mut places: Vec<usize> =
            near.filter_map(|near| place_behind(words, text, near)).collect();
        places.dedup();
        Some(places)
    }
}

/// The first beginning of a unit behind the character at `near`, if it is not far.
fn place_behind(words: &Words, text: &str, near: usize) -> Option<usize> {
    const FAR: usize = 4096;
    let boundary = |at: usize| (at..text.len()).find(|&at| text.is_char_boundary(at));
    let near = boundary(near)?;
    let end = boundary(near + FAR).unwrap_or(text.len());
    let mut units = Vec::new();
    // The window begins and ends anywhere. What is cut between is cut whatever stands farther away.
    words.cut(&text.as_bytes()[near..end], 0, 2, &mut units);
    Some(near + units.get(1)?.start)
}

/// Which part of a stretch of text it is that goes through a lane.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    /// Whether the stretch begins with it.
    pub(crate) begins: bool,
}

impl Part {
    pub(crate) const WHOLE: Self = Self { begins: true };
}

/// Encodes every token of the vocabulary that is a unit when it stands in a text. `O(n)` for n
/// tokens; five to fifteen milliseconds for the usual ones.
fn known_units(lane: &Lane, parts: &Parts) -> piece_table::Words {
    let vocab = parts.model.vocab();
    let mut known = piece_table::Words::builder(vocab.len());
    let mut engine = Engine::new(lane, parts);
    let mut encoder = parts.model.encoder();
    let (mut units, mut tokens) = (Vec::new(), Vec::new());
    for (_, bytes, token) in vocab.iter() {
        let is_text = matches!(token, TokenKind::Normal | TokenKind::UserDefined);
        let Ok(text) = str::from_utf8(bytes) else { continue };
        let text = match &lane.kind {
            Kind::Words(_) => Cow::Borrowed(text),
            Kind::Marks(_) | Kind::Spaces(_) => Cow::Owned(text.replace('\u{2581}', " ")),
        };
        if !is_text || text.len() > Key::MAX_LEN {
            continue;
        }
        units.clear();
        match &lane.kind {
            Kind::Words(lane) => lane.cut(text.as_bytes(), 0, usize::MAX, &mut units),
            Kind::Marks(lane) => lane.cut(text.as_bytes(), 0, usize::MAX, &mut units),
            Kind::Spaces(lane) => lane.cut(text.as_bytes(), 0, usize::MAX, &mut units),
        };
        if units[..] == [Span::new(0, text.len())] {
            tokens.clear();
            engine.encode(&text, encoder.as_mut(), &mut tokens);
            known.add(text.as_bytes(), &tokens);
        }
    }
    known.build()
}

/// A lane and its memory.
pub(crate) struct LaneSession<'t> {
    engine: Engine<'t>,
    /// What encodes units in place of the session's encoder.
    direct: Option<Box<Direct<'t>>>,
    table: PieceTable<'t>,
    units: Vec<Span>,
    tokens: Vec<Token>,
    lead: String,
    /// Text in lower case.
    lower: Vec<u8>,
    /// The last token was an unknown one, which goes on into the next unit.
    after_unknown: bool,
    /// For each unit that goes on with the sum of those before a header, and its steps.
    steps: Vec<Token>,
    novelty: Novelty,
}

/// Whether the units that come lately are short and nearly all new, as in random characters: then
/// encoding many of them together costs less than looking for each.
#[derive(Default)]
struct Novelty {
    /// Batches in a row of which that was true.
    new: u32,
    /// So many batches are not looked for.
    skips: u32,
}

impl Novelty {
    /// So many batches in a row must be new.
    const PATIENCE: u32 = 4;
    /// So many are not looked for then, before the next one is.
    const SKIPS: u32 = 15;
    /// Bytes of a short unit, on average.
    const SHORT: usize = 6;

    /// Whether the next batch is not to be looked for.
    fn skips(&mut self) -> bool {
        let skips = self.skips > 0;
        self.skips = self.skips.saturating_sub(1);
        skips
    }

    /// Takes note of a batch that was looked for, of which so many units were not found.
    fn note(&mut self, units: &[Span], asked: usize) {
        let (Some(first), Some(last)) = (units.first(), units.last()) else { return };
        let are_short = last.end - first.start <= Self::SHORT * units.len();
        let is_new = are_short && units.len() >= UNITS / 2 && asked * 16 > units.len() * 15;
        self.new = if is_new { (self.new + 1).min(Self::PATIENCE) } else { 0 };
        if self.new == Self::PATIENCE {
            self.skips = Self::SKIPS;
        }
    }
}

/// Where a part of a text ends that is encoded as it stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Inside,
    /// Where spaces are removed.
    OfText,
}

/// How many blocks of 64 bytes are looked at together.
const BLOCKS: usize = 8;

/// So many units are cut before they are looked up.
const UNITS: usize = 512;

/// A session that asked for so many units has those built that are tokens: that costs as much as
/// asking for some ten thousand, and a program that encodes a short text never pays for it.
const ASKED_BEFORE_KNOWN: usize = 4096;

impl<'t> LaneSession<'t> {
    pub(crate) fn new(lane: &'t Lane, parts: &'t Parts, memory: usize) -> Self {
        let direct = match lane.kind {
            Kind::Words(_) | Kind::Spaces(_) => None,
            Kind::Marks(_) => Direct::of(parts).map(Box::new),
        };
        let size = Size::archived(memory);
        Self {
            engine: Engine::new(lane, parts),
            direct,
            table: PieceTable::with_size(lane.known.get(), size),
            units: Vec::new(),
            tokens: Vec::new(),
            lead: String::new(),
            lower: Vec::new(),
            after_unknown: false,
            steps: Vec::new(),
            novelty: Novelty::default(),
        }
    }

    /// Gives `out` the tokens of a part of a stretch of text, or the first of them if `enough` says so
    /// on the way. `is_first` says that the whole text begins with it. Parts are those between
    /// [`places`](Lane::places).
    pub(crate) fn run<S: Sink>(
        &mut self,
        text: &str,
        is_first: bool,
        part: Part,
        encoder: &mut dyn Encode,
        out: &mut S,
        enough: impl Fn(&S) -> bool,
    ) {
        let mut direct = self.direct.take();
        match (&mut direct, &self.engine.lane.kind) {
            (_, Kind::Words(lane)) => self.run_words(lane, text, part, encoder, out, enough),
            (_, Kind::Spaces(lane)) => self.run_spaces(lane, text, encoder, out, enough),
            (None, Kind::Marks(lane)) => self.run_marks(lane, text, is_first, encoder, out, enough),
            (Some(direct), Kind::Marks(lane)) => {
                self.run_marks(lane, text, is_first, direct.as_mut(), out, enough);
            }
        }
        self.direct = direct;
    }

    fn run_words<S: Sink>(
        &mut self,
        lane: &'t Words,
        text: &str,
        part: Part,
        encoder: &mut dyn Encode,
        out: &mut S,
        enough: impl Fn(&S) -> bool,
    ) {
        let Self { engine, table, units, tokens, lower, .. } = self;
        let bytes = text.as_bytes();
        let mut at = 0;
        if part.begins && lane.is_special_first(bytes) {
            units.clear();
            lane.cut(bytes, 0, 1, units);
            if let Some(first) = units.first() {
                tokens.clear();
                let (parts, scratch) = (engine.parts, &mut engine.scratch);
                lane.encode(parts, scratch, &text[first.range()], false, encoder, tokens);
                out.extend(tokens);
                at = first.end;
            }
        }
        while at < bytes.len() && !enough(out) {
            engine.know_more(table);
            let mut miss = |unit: &[u8], tokens: &mut Vec<Token>| {
                engine.encode(as_text(unit), encoder, tokens);
            };
            units.clear();
            let start = at;
            at = lane.cut(bytes, at, UNITS, units);
            if lane.lowercases() {
                // What is lowercased anyway is looked up so: then a word is the same wherever it stands.
                lower.clear();
                lower.extend(bytes[start..at].iter().map(u8::to_ascii_lowercase));
                for unit in units.iter_mut() {
                    *unit = Span::new(unit.start - start, unit.end - start);
                }
                table.encode(lower, units, &mut miss, out);
            } else {
                table.encode(bytes, units, &mut miss, out);
            }
        }
    }

    fn run_spaces<S: Sink>(
        &mut self,
        lane: &'t Spaces,
        text: &str,
        encoder: &mut dyn Encode,
        out: &mut S,
        enough: impl Fn(&S) -> bool,
    ) {
        let Self { engine, table, units, tokens, .. } = self;
        let bytes = text.as_bytes();
        let first = lane.first(engine.parts, text);
        let mut apart =
            |engine: &mut Engine<'_>, unit: Span, encoder: &mut dyn Encode, out: &mut S| {
                let place = Place { first: unit.start == 0, last: unit.end == text.len() };
                let (parts, scratch) = (engine.parts, &mut engine.scratch);
                tokens.clear();
                lane.encode(parts, scratch, &text[unit.range()], place, encoder, tokens);
                out.extend(tokens);
            };
        if !first.is_empty() {
            apart(engine, first, encoder, out);
        }
        let mut at = first.end;
        while at < bytes.len() && !enough(out) {
            units.clear();
            at = lane.cut(bytes, at, UNITS, units);
            let last = units.pop_if(|_| at == bytes.len() && !lane.is_plain_end(bytes));
            engine.know_more(table);
            let mut miss = |unit: &[u8], tokens: &mut Vec<Token>| {
                engine.encode(as_text(unit), encoder, tokens);
            };
            table.encode(bytes, units, &mut miss, out);
            if let Some(last) = last {
                apart(engine, last, encoder, out);
            }
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
        self.after_unknown = false;
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
                self.encode_part(lane, &lead, End::OfText, &mut sum, encoder, out);
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
            match (units.first(), units.last()) {
                (Some(first), Some(last)) if self.novelty.skips() => {
                    // What may be cut between needs not be.
                    let part = &text[first.start..last.end];
                    self.encode_part(lane, part, End::Inside, &mut sum, encoder, out);
                }
                _ => {
                    let asked = self.engine.asked;
                    self.look_up(lane, text, &units, &mut sum, encoder, out);
                    self.novelty.note(&units, self.engine.asked - asked);
                }
            }
            if let Some(last) = last {
                let last = &text[last.range()];
                self.encode_part(lane, last, End::OfText, &mut sum, encoder, out);
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
        let Self { engine, table, tokens, steps, after_unknown, .. } = self;
        engine.know_more(table);
        let mut miss =
            |unit: &[u8], tokens: &mut Vec<Token>| engine.encode(as_text(unit), encoder, tokens);
        if !lane.sums {
            return table.encode(text.as_bytes(), units, &mut miss, out);
        }
        // First the certified paths of all units, then those of them that the sum allows.
        steps.clear();
        table.encode(text.as_bytes(), units, &mut miss, steps);
        let Engine { rewrite, sums: Some(sums), text: buffer, .. } = engine else {
            unreachable!("a lane with sums has a session for them")
        };
        let mut rest = &steps[..];
        for units in units.chunks(TOGETHER) {
            tokens.clear();
            if let Some((behind, others)) = certain(sums, units.len(), rest, *sum, tokens) {
                (*sum, rest, *after_unknown) = (behind, others, false);
                out.extend(tokens);
                continue;
            }
            for unit in units {
                let (head, behind) = rest.split_first().expect("every unit has a header");
                let len = if head.id == NOTHING_CERTAIN { 0 } else { head.len as usize };
                let (path, behind) = behind.split_at(len);
                rest = behind;
                if sum.abs() < limit(head.id) {
                    out.extend(fuse(sums, after_unknown, path));
                    *sum = sums.replay(*sum, path);
                } else {
                    lane.normalize(*rewrite, &text[unit.range()], buffer);
                    tokens.clear();
                    *sum = sums.encode(buffer.as_bytes(), *sum, tokens);
                    out.extend(fuse(sums, after_unknown, tokens));
                }
            }
        }
    }

    /// Gives out the tokens of a part of the text from the beginning of a unit to the end of one,
    /// without looking for it.
    fn encode_part<S: Sink>(
        &mut self,
        lane: &'t Marks,
        part: &str,
        end: End,
        sum: &mut f32,
        encoder: &mut dyn Encode,
        out: &mut S,
    ) {
        let Self { engine, tokens, after_unknown, .. } = self;
        let Engine { rewrite, sums, text, scratch, .. } = engine;
        lane.normalize(*rewrite, part, text);
        if end == End::OfText {
            lane.strip_end(text);
        }
        tokens.clear();
        match sums {
            Some(sums) => {
                *sum = sums.encode(text.as_bytes(), *sum, tokens);
                out.extend(fuse(sums, after_unknown, tokens));
            }
            None => {
                lane.encode(text, encoder, &mut scratch.pieces, tokens);
                out.extend(tokens);
            }
        }
    }
}

/// What encodes a unit that was not met lately.
struct Engine<'t> {
    lane: &'t Lane,
    parts: &'t Parts,
    /// What lanes of marks do to characters.
    rewrite: Rewrite<'t>,
    /// For units that go on with the sum of those before.
    sums: Option<UnitSession<'t>>,
    scratch: Scratch,
    text: String,
    /// How many units were encoded.
    asked: usize,
}

impl<'t> Engine<'t> {
    fn new(lane: &'t Lane, parts: &'t Parts) -> Self {
        let sums = match &lane.kind {
            Kind::Marks(marks) if marks.sums => {
                let model = parts.model.as_any().and_then(|model| model.downcast_ref::<Unigram>());
                let session = model.and_then(UnitSession::new);
                Some(session.expect("the lane was proved for this model"))
            }
            _ => None,
        };
        Self {
            lane,
            parts,
            rewrite: Rewrite::of(parts),
            sums,
            scratch: Scratch::default(),
            text: String::new(),
            asked: 0,
        }
    }

    /// Puts the units that are tokens behind the table, once that is worth it.
    #[inline]
    fn know_more(&self, table: &mut PieceTable<'t>) {
        if self.asked > ASKED_BEFORE_KNOWN && !table.has_words() {
            table.set_words(self.lane.known(self.parts));
        }
    }

    /// Appends what the table keeps of a unit: its tokens (their lengths say nothing), or where
    /// sums count a header and the steps of its path.
    fn encode(&mut self, unit: &str, encoder: &mut dyn Encode, tokens: &mut Vec<Token>) {
        self.asked += 1;
        let first = tokens.len();
        match &self.lane.kind {
            Kind::Words(lane) => {
                lane.encode(self.parts, &mut self.scratch, unit, true, encoder, tokens);
                forget_lengths(unit, &mut tokens[first..]);
            }
            Kind::Spaces(lane) => {
                let (parts, scratch) = (self.parts, &mut self.scratch);
                lane.encode(parts, scratch, unit, Place::INSIDE, encoder, tokens);
                forget_lengths(unit, &mut tokens[first..]);
            }
            Kind::Marks(lane) => {
                lane.normalize(self.rewrite, unit, &mut self.text);
                match &mut self.sums {
                    Some(sums) => certify(sums, unit, &self.text, tokens),
                    None => {
                        lane.encode(&self.text, encoder, &mut self.scratch.pieces, tokens);
                        forget_lengths(unit, &mut tokens[first..]);
                    }
                }
            }
        }
    }
}

/// The header of a unit without a certified path.
const NOTHING_CERTAIN: TokenId = TokenId(0);

/// So many units are given out together if all their paths are certain.
const TOGETHER: usize = 16;

/// Appends the tokens of `n` units behind the sum `sum`, if no path of theirs is uncertain or has unknown
/// characters; else any. `steps` are theirs and those of others. Returns the sum behind the units and the
/// others' steps.
fn certain<'s>(
    sums: &UnitSession<'_>,
    n: usize,
    mut steps: &'s [Token],
    sum: f32,
    tokens: &mut Vec<Token>,
) -> Option<(f32, &'s [Token])> {
    let mut least = f32::INFINITY;
    for _ in 0..n {
        let (head, behind) = steps.split_first()?;
        if head.id == NOTHING_CERTAIN {
            return None;
        }
        least = least.min(limit(head.id));
        let len = head.len as usize;
        // Most have few steps, and four are copied in the time of one.
        match behind.first_chunk::<4>() {
            Some(four) if len <= 4 => {
                let end = tokens.len() + len;
                tokens.extend_from_slice(four);
                tokens.truncate(end);
            }
            _ => tokens.extend_from_slice(behind.get(..len)?),
        }
        steps = &behind[len..];
    }
    let (behind, greatest) = sums.replay_known(sum, tokens)?;
    (greatest < least).then_some((behind, steps))
}

/// Appends a header, with the limit as its id and the number of steps as its length, and the steps.
fn certify(sums: &mut UnitSession<'_>, unit: &str, normalized: &str, steps: &mut Vec<Token>) {
    let at = steps.len();
    // A token alone has the length of its piece, in the table.
    steps.push(Token { id: NOTHING_CERTAIN, len: unit.len() as u32 });
    let limit = sums.certify(normalized.as_bytes(), steps);
    let len = (steps.len() - at - 1) as u32;
    if len > 0 {
        steps[at] = Token { id: header(limit), len };
        if steps[at].id == NOTHING_CERTAIN {
            steps.truncate(at + 1);
            steps[at].len = unit.len() as u32;
        }
    }
}

/// The tokens of a unit (or its steps) without the first, if that is unknown as the last one before it
/// was: unknown characters in a row are one token.
#[inline]
fn fuse<'a>(sums: &UnitSession<'_>, after_unknown: &mut bool, tokens: &'a [Token]) -> &'a [Token] {
    let is_unknown = |token: &Token| Some(token.id) == sums.fused_unknown();
    let Some(last) = tokens.last() else { return tokens };
    let goes_on = *after_unknown && is_unknown(&tokens[0]);
    *after_unknown = is_unknown(last);
    &tokens[usize::from(goes_on)..]
}

/// A unit of text. Checked again, which costs little beside a miss.
fn as_text(unit: &[u8]) -> &str {
    str::from_utf8(unit).expect("units are cut between characters")
}

/// Lengths are those of normalized text, and only ids come out of a lane; tables keep best what has
/// lengths as a piece of the text itself would.
fn forget_lengths(unit: &str, tokens: &mut [Token]) {
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
