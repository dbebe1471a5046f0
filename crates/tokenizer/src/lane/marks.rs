//! The lane for models that keep white space as `▁` and need no splitter: SentencePiece's, and
//! those of Hugging Face that imitate it.
//!
//! # Why it is exact
//!
//! The text is treated as if a space stood in front where the tokenizer puts one there, and cut
//! into units. A cut between two characters is legal if neither the normalizer nor the model looks
//! across it. Cuts are decided by classes of bytes (letters, digits, white space, and each other
//! ASCII character by itself), from tables that are made from the charsmap and the vocabulary; `p`
//! stands before a cut, `b` behind it. All of these must hold:
//!
//! 1. *Rules.* No rule of the charsmap, and no user-defined symbol, reads across. `b` is ASCII, and
//!    no rule reads an ASCII character but as its first; symbols are looked at as tokens, below.
//! 2. *Spaces.* Where the normalizer removes spaces behind spaces, what it does to `b` depends on
//!    whether `p` became one. So no cut stands between two blanks (characters that become spaces),
//!    and none behind a character whose rule writes nothing or ends in a space (or a mark: the
//!    normalized text must not tell the two cases apart either).
//! 3. *Tokens.* No token holds what `p` becomes and what `b` becomes next to each other. Then no
//!    merge of BPE crosses the cut: its product would be such a token. (Merges on both sides do
//!    not touch each other, so their order does not matter.) And every path of a unigram lattice
//!    goes through the cut. What is compared is classes: if any letter stands before any digit in
//!    any token, no letter is cut from a digit. If `b` may become something else together with a
//!    combining mark behind it, no token may hold `p` before a character that is not ASCII either.
//! 4. *Unknown characters* in a row are one token, so `p` or `b` must be a character that has a
//!    token, or all bytes must have one and characters fall back to them.
//!
//! A space has a token (the mark), and tokens that hold a mark behind another character are rare,
//! so spaces are cut at nearly always; with a splitter at the mark they are by definition.
//!
//! The recogniser refuses what it cannot prove: marks in user-defined symbols' middle, unused
//! pieces of BPE (which are split by what was looked at last, anywhere in the text), unknown
//! characters that are dropped (their neighbours become neighbours), the mark as a suffix, spaces
//! that are not escaped, affixes of BPE, `ignore_merges`.
//!
//! At the end of a text SentencePiece removes spaces: a last unit that does not end in plain ASCII
//! is not looked up, but normalized with what follows: nothing.
//!
//! Unigram models of SentencePiece add scores from the beginning of the text; see
//! [`unigram::UnitSession`] for how a unit's path is kept all the same. Those of Hugging Face are
//! cut only at marks where a splitter does so: then each piece is a sum of its own.

use bpe::{Alphabet, Bpe, Rules};
use normalize::{Metaspace, Prepend, PrependScheme, Replace, SentencePieceNormalizer, Sequence};
use pretok::{Behavior, Delimiter, PatternSplit};
use tokenizer_core::{Encode, Model, Normalize, Span, Token, TokenKind, Vocab};
use unigram::{Compat, Unigram};

use super::masks::{self, BLOCK};
use super::words::last_char;
use crate::lower::Mark;
use crate::pipeline::{Parts, PieceStep};

const MARK: &str = "\u{2581}";

pub(crate) struct Marks {
    lead: Lead,
    /// Spaces behind spaces and at the ends are removed.
    strip: bool,
    /// Every mark begins a piece of its own.
    split: bool,
    /// Whether units go on with the sum of those before.
    pub(super) sums: bool,
    classes: [u8; 256],
    /// For each class, the classes that are cut from it.
    cuts: [u64; 64],
    /// ASCII characters that are copied if ASCII follows.
    plain: [bool; 128],
    /// What may stand before a cut.
    ends: Ends,
}

/// Where a mark is put in front of a stretch of text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lead {
    Always,
    /// Unless the text begins with a space or a mark.
    Unmarked,
    /// The same, where the stretch is the beginning of the whole text.
    UnmarkedFirst,
    Never,
}

/// Characters that are not ASCII and stand before a cut, in the basic plane a bit each.
struct Ends {
    /// Before a blank.
    blank: Box<[u64; 1024]>,
    /// Before another ASCII character: those that no rule ends with.
    other: Box<[u64; 1024]>,
    /// The same for all characters beyond.
    beyond: [bool; 2],
}

/// Classes of characters. From `OTHER` on, each stands for one character.
const ODD: u8 = 0;
const LETTER: u8 = 1;
const DIGIT: u8 = 2;
const BLANK: u8 = 3;
const HIGH: u8 = 4;
const OTHER: u8 = 5;

impl Marks {
    /// The lane for these parts, if the proof holds for them.
    pub(crate) fn of(parts: &Parts) -> Option<Self> {
        let shape = Shape::of(parts)?;
        let model = parts.model.as_any()?;
        let tokens = if let Some(model) = model.downcast_ref::<Bpe>() {
            bpe_tokens(model)?
        } else {
            unigram_tokens(model.downcast_ref::<Unigram>()?, shape.split)?
        };
        let (classes, cuts, plain, ends) = Tables::new(&shape, &tokens)?.finish();
        let Shape { lead, strip, split, .. } = shape;
        let sums = model.is::<Unigram>() && !split;
        Some(Self { lead, strip, split, sums, classes, cuts, plain, ends })
    }

    /// Whether a space is to be thought in front of a stretch of text.
    pub(super) fn leads(&self, text: &str, is_first: bool) -> bool {
        let unmarked = !text.starts_with([' ', '\u{2581}']);
        match self.lead {
            Lead::Always => true,
            Lead::Unmarked => unmarked,
            Lead::UnmarkedFirst => unmarked && is_first,
            Lead::Never => false,
        }
    }

    /// Appends about `most` units of `text` from `at` on, or all, and returns where to go on.
    pub(super) fn cut(&self, text: &[u8], at: usize, most: usize, units: &mut Vec<Span>) -> usize {
        let mut start = at;
        let mut block_start = at;
        // Nothing is cut at the beginning.
        let (mut before, mut after_high) = (ODD, false);
        while block_start < text.len() {
            let mut padded = [0; BLOCK];
            let block = match text[block_start..].first_chunk::<BLOCK>() {
                Some(block) => block,
                None => {
                    padded[..text.len() - block_start].copy_from_slice(&text[block_start..]);
                    &padded
                }
            };
            let mut cuts = 0u64;
            for (i, &byte) in block.iter().enumerate() {
                let class = self.classes[usize::from(byte)] & 63;
                cuts |= (self.cuts[usize::from(before)] >> class & 1) << i;
                before = class;
            }
            let high = masks::high_bytes(block);
            let behind_high = high << 1 | u64::from(after_high);
            after_high = high >> (BLOCK - 1) == 1;
            let mut left = cuts;
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                let place = block_start + bit as usize;
                if behind_high >> bit & 1 == 1
                    && !self.ends.allow(text, place, self.classes[usize::from(text[place])])
                {
                    continue;
                }
                units.push(Span::new(start, place));
                start = place;
            }
            block_start += BLOCK;
            if units.len() >= most && block_start < text.len() {
                return start;
            }
        }
        if start < text.len() {
            units.push(Span::new(start, text.len()));
        }
        text.len()
    }

    /// Whether a unit at the end of a text is there what it is elsewhere.
    pub(super) fn is_plain_end(&self, text: &[u8]) -> bool {
        let class = text.last().map_or(ODD, |&byte| self.classes[usize::from(byte)]);
        !self.strip || !matches!(class, ODD | BLANK | HIGH)
    }

    /// Writes the normalized text of a unit.
    pub(super) fn normalize(
        &self,
        normalizer: Option<&SentencePieceNormalizer>,
        unit: &str,
        out: &mut String,
    ) {
        out.clear();
        let is_plain =
            |&byte: &u8| byte == b' ' || byte.is_ascii() && self.plain[usize::from(byte)];
        if let Some(normalizer) = normalizer
            && !unit.as_bytes().iter().all(is_plain)
        {
            normalizer.normalize_inside_into(unit, out);
            return;
        }
        let mut rest = unit;
        while let Some(at) = rest.find(' ') {
            out.push_str(&rest[..at]);
            out.push_str(MARK);
            rest = &rest[at + 1..];
            if self.strip {
                rest = rest.trim_start_matches(' ');
            }
        }
        out.push_str(rest);
    }

    /// Takes away the spaces at the end of a text.
    pub(super) fn strip_end(&self, text: &mut String) {
        if self.strip {
            let len = text.trim_end_matches('\u{2581}').len();
            text.truncate(len);
        }
    }

    /// Appends the tokens of a normalized unit.
    pub(super) fn encode(
        &self,
        text: &str,
        encoder: &mut dyn Encode,
        pieces: &mut Vec<Span>,
        tokens: &mut Vec<Token>,
    ) {
        if !self.split {
            if !text.is_empty() {
                encoder.encode_piece(text.as_bytes(), tokens);
            }
            return;
        }
        pieces.clear();
        let mut start = 0;
        for (at, _) in text.match_indices(MARK) {
            if start < at {
                pieces.push(Span::new(start, at));
            }
            start = at;
        }
        if start < text.len() {
            pieces.push(Span::new(start, text.len()));
        }
        encoder.encode_pieces(text.as_bytes(), pieces, tokens);
    }
}

impl Ends {
    /// Whether the character before `place` may stand before a cut.
    #[inline]
    fn allow(&self, text: &[u8], place: usize, class: u8) -> bool {
        let Some(c) = last_char(&text[..place]) else { return false };
        let is_blank = class == BLANK;
        let table = if is_blank { &self.blank } else { &self.other };
        match table.get(c as usize >> 6) {
            Some(word) => word >> (c as u32 & 63) & 1 == 1,
            None => self.beyond[usize::from(is_blank)],
        }
    }
}

/// What the steps around the model do.
struct Shape<'p> {
    lead: Lead,
    strip: bool,
    split: bool,
    normalizer: Option<&'p SentencePieceNormalizer>,
}

impl<'p> Shape<'p> {
    fn of(parts: &'p Parts) -> Option<Self> {
        let Some(normalizer) = &parts.normalizer else { return Self::of_metaspace(&parts.steps) };
        if !parts.steps.is_empty() {
            return None;
        }
        let normalizer = normalizer.as_any()?;
        if let Some(sequence) = normalizer.downcast_ref::<Sequence>() {
            let steps: Vec<_> = sequence.steps().map(Normalize::as_any).collect();
            let [Some(prepend), Some(replace)] = steps[..] else { return None };
            let prepend = prepend.downcast_ref::<Prepend>()?;
            let replace = replace.downcast_ref::<Replace>()?;
            let is_it = prepend.prefix() == MARK
                && replace.literal_pattern() == Some(" ")
                && replace.content() == MARK;
            let shape = Self { lead: Lead::Always, strip: false, split: false, normalizer: None };
            return is_it.then_some(shape);
        }
        let normalizer = normalizer.downcast_ref::<SentencePieceNormalizer>()?;
        let spaces = normalizer.spaces();
        let strip = spaces.remove_extra_whitespaces;
        let is_it = spaces.escape_whitespaces
            && !spaces.treat_whitespace_as_suffix
            && (spaces.add_dummy_prefix || !strip);
        let lead = if spaces.add_dummy_prefix { Lead::Always } else { Lead::Never };
        is_it.then_some(Self { lead, strip, split: false, normalizer: Some(normalizer) })
    }

    fn of_metaspace(steps: &'p [PieceStep]) -> Option<Self> {
        let (PieceStep::Edit(edit), rest) = steps.split_first()? else { return None };
        let edit = edit.as_any()?;
        let (metaspace, knows_first) = match edit.downcast_ref::<Mark>() {
            Some(mark) => (mark.0, true),
            None => (*edit.downcast_ref::<Metaspace>()?, false),
        };
        let Metaspace { replacement, scheme, .. } = metaspace;
        let split = match rest {
            [] => false,
            [PieceStep::Split(split)] => {
                let split = split.as_any()?.downcast_ref::<PatternSplit>()?;
                let is_it = matches!(&split.delimiter, Delimiter::Literal(mark) if mark == MARK)
                    && split.behavior == Behavior::MergedWithNext
                    && !split.invert;
                is_it.then_some(true)?
            }
            _ => return None,
        };
        let lead = match scheme {
            PrependScheme::First if knows_first => Lead::UnmarkedFirst,
            PrependScheme::Always | PrependScheme::First => Lead::Unmarked,
            PrependScheme::Never => Lead::Never,
        };
        let shape = Self { lead, strip: false, split, normalizer: None };
        (replacement == '\u{2581}').then_some(shape)
    }
}

/// What is to be known of a model's tokens.
struct Tokens<'m> {
    vocab: &'m Vocab,
    /// Whether tokens of a kind match text or are merged.
    counts: fn(TokenKind) -> bool,
    /// Whether a character is known that is a token of this kind.
    knows: fn(TokenKind) -> bool,
    /// Whether two unknown characters side by side are as good as apart.
    unknown_apart: bool,
    /// Whether cuts are legal inside of what the splitter at marks leaves.
    inside: bool,
}

fn bpe_tokens(model: &Bpe) -> Option<Tokens<'_>> {
    let options = model.options();
    let vocab = model.vocab();
    let from_scores = match model.rules() {
        Rules::Scores(_) => true,
        Rules::Merges(_) => false,
        _ => return None,
    };
    let is_plain = options.alphabet == Alphabet::Char
        && options.end_of_word.is_none()
        && options.continuing_prefix.is_none()
        && !options.ignore_merges;
    let splits_unused = from_scores && vocab.iter().any(|(_, _, kind)| kind == TokenKind::Unused);
    let all_bytes = (0..=255).all(|byte| vocab.byte(byte).is_some());
    let falls_back = options.byte_fallback && all_bytes;
    let keeps_unknown = from_scores || falls_back || options.unk.is_some();
    if !is_plain || splits_unused || !keeps_unknown {
        return None;
    }
    Some(Tokens {
        vocab,
        counts: match from_scores {
            true => |kind| {
                matches!(kind, TokenKind::Normal | TokenKind::UserDefined | TokenKind::Unused)
            },
            // A listed merge may make a token of any kind.
            false => |_| true,
        },
        knows: |_| true,
        unknown_apart: falls_back || !options.fuse_unk,
        inside: true,
    })
}

fn unigram_tokens(model: &Unigram, split: bool) -> Option<Tokens<'_>> {
    let options = model.options();
    let vocab = model.vocab();
    match options.compat {
        Compat::SentencePiece if !split => Some(Tokens {
            vocab,
            counts: |kind| matches!(kind, TokenKind::Normal | TokenKind::UserDefined),
            knows: |kind| matches!(kind, TokenKind::Normal | TokenKind::UserDefined),
            unknown_apart: options.byte_fallback || !options.fuse_unk,
            inside: true,
        }),
        Compat::HuggingFace if split => {
            let any = |_| true;
            Some(Tokens { vocab, counts: any, knows: any, unknown_apart: false, inside: false })
        }
        _ => None,
    }
}

/// What a charsmap does to ASCII characters.
struct AsciiRules<'a> {
    /// What is written for the character alone, if a rule says so.
    single: [Option<&'a str>; 128],
    /// Whether a rule reads on behind the character.
    extended: [bool; 128],
    /// The first characters of what all rules of several characters write.
    written: Vec<Option<char>>,
}

impl Default for AsciiRules<'_> {
    fn default() -> Self {
        Self { single: [None; 128], extended: [false; 128], written: Vec::new() }
    }
}

/// The tables in the making.
struct Tables {
    classes: [u8; 256],
    /// Which classes stand before which in tokens.
    seen: [u64; 64],
    cuts: [u64; 64],
    plain: [bool; 128],
    ends: Ends,
}

impl Tables {
    fn new(shape: &Shape<'_>, tokens: &Tokens<'_>) -> Option<Self> {
        let vocab = tokens.vocab;
        let knows = |c: &[u8]| vocab.get(c).and_then(|id| vocab.kind(id)).is_some_and(tokens.knows);
        let has_token: [bool; 256] = std::array::from_fn(|byte| knows(&[byte as u8]));
        // Behind a splitter the mark need not be a token: a piece begins there anyway.
        let has_mark = knows(MARK.as_bytes());
        if !has_mark && !shape.split {
            return None;
        }
        let mut tables = Self {
            classes: [ODD; 256],
            seen: [0; 64],
            cuts: [0; 64],
            plain: [true; 128],
            ends: Ends {
                blank: Box::new([!0; 1024]),
                other: Box::new([!0; 1024]),
                beyond: [true; 2],
            },
        };
        let mut rules = AsciiRules::default();
        if let Some(normalizer) = shape.normalizer {
            if !tables.read_rules(normalizer, &mut rules) {
                return None;
            }
            let symbols = normalizer.user_defined().as_slice();
            // Symbols are copied before any rule, so they must be seen as the tokens they are.
            let is_token = |symbol: &String| {
                let kind = vocab.get(symbol.as_bytes()).and_then(|id| vocab.kind(id));
                kind.is_some_and(tokens.counts) && !symbol.contains(' ')
            };
            if !symbols.iter().all(is_token) {
                return None;
            }
        }
        tables.classify(&rules);
        tables.forbid_end('\u{2581}', true, true);
        for (_, bytes, kind) in vocab.iter() {
            if (tokens.counts)(kind) {
                tables.see(bytes);
            }
        }
        let unknown = tables.unknown_classes(&has_token, has_mark, tokens.unknown_apart);
        tables.decide(shape, tokens, unknown, &rules);
        Some(tables)
    }

    /// Notes what rules there are. `false` if they cannot be cut at.
    fn read_rules<'a>(
        &mut self,
        normalizer: &'a SentencePieceNormalizer,
        rules: &mut AsciiRules<'a>,
    ) -> bool {
        for symbol in normalizer.user_defined().as_slice() {
            if let Some(plain) = self.plain.get_mut(usize::from(symbol.as_bytes()[0])) {
                *plain = false;
            }
        }
        let Some(charsmap) = normalizer.charsmap() else { return true };
        let mut provable = true;
        let all = charsmap.each_char(|step| {
            if step.c.is_ascii() {
                let at = step.c as usize;
                provable &= step.is_first && step.c != ' ';
                rules.extended[at] |= step.goes_on;
                rules.single[at] = step.target;
            }
            if let (Some(target), false) = (step.target, step.is_first) {
                rules.written.push(target.chars().next());
            }
            if let Some(target) = step.target {
                let is_blank = target.is_empty() || target.ends_with([' ', '\u{2581}']);
                self.forbid_end(step.c, is_blank, true);
            }
        });
        for byte in 0..128 {
            self.plain[usize::from(byte)] &= charsmap.is_plain(byte);
        }
        provable && all
    }

    /// Forbids cuts behind a character: before blanks, before others.
    fn forbid_end(&mut self, c: char, before_blank: bool, before_other: bool) {
        if c.is_ascii() {
            return;
        }
        let (word, bit) = (c as usize >> 6, 1u64 << (c as u32 & 63));
        let tables = [(before_other, &mut self.ends.other), (before_blank, &mut self.ends.blank)];
        for (i, (forbid, table)) in tables.into_iter().enumerate() {
            match table.get_mut(word) {
                _ if !forbid => {}
                Some(word) => *word &= !bit,
                None => self.ends.beyond[i] = false,
            }
        }
    }

    fn classify(&mut self, rules: &AsciiRules<'_>) {
        let mut next = OTHER;
        for byte in 0..128u8 {
            let class = match (byte, rules.single[usize::from(byte)]) {
                (b' ', _) => BLANK,
                (_, Some(" ")) if !rules.extended[usize::from(byte)] => BLANK,
                (_, Some(_)) => ODD,
                (b'a'..=b'z' | b'A'..=b'Z', None) => LETTER,
                (b'0'..=b'9', None) => DIGIT,
                (b'\n' | b'\t' | b'!'..=b'~', None) => {
                    next += 1;
                    next - 1
                }
                _ => ODD,
            };
            self.classes[usize::from(byte)] = class;
        }
        self.classes[128..].fill(HIGH);
        debug_assert!(next <= 64);
    }

    /// Notes which classes stand next to each other in a token.
    fn see(&mut self, token: &[u8]) {
        let mut before = None;
        let mut rest = token;
        while !rest.is_empty() {
            let (class, len) = match rest.strip_prefix(MARK.as_bytes()) {
                Some(_) => (BLANK, MARK.len()),
                None => (self.classes[usize::from(rest[0])], 1),
            };
            if let Some(before) = before {
                self.seen[usize::from(before)] |= 1 << class;
            }
            before = Some(class);
            rest = &rest[len..];
        }
    }

    /// The classes with a character that has no token.
    fn unknown_classes(&self, has_token: &[bool; 256], has_mark: bool, unknown_apart: bool) -> u64 {
        if unknown_apart {
            return 0;
        }
        let blank = u64::from(!has_mark) << BLANK;
        let bytes = (0..=255u8).filter(|&byte| !has_token[usize::from(byte)]);
        bytes.fold(blank, |unknown, byte| match self.classes[usize::from(byte)] {
            BLANK => unknown,
            class => unknown | 1 << class,
        })
    }

    fn decide(
        &mut self,
        shape: &Shape<'_>,
        tokens: &Tokens<'_>,
        unknown: u64,
        rules: &AsciiRules<'_>,
    ) {
        let mut extended = 0u64;
        for (byte, _) in rules.extended.iter().enumerate().filter(|byte| *byte.1) {
            extended |= 1 << self.classes[byte];
        }
        // What rules of several characters write first; 0 stands for what is not provable.
        let written = rules.written.iter().fold(0u64, |written, first| {
            let class = first.map_or(ODD, |first| match first {
                '\u{2581}' => ODD,
                _ if first.is_ascii() => self.classes[first as usize],
                _ => HIGH,
            });
            written | 1 << if class == BLANK { ODD } else { class }
        });
        let is_in = |set: u64, class: u8| set >> class & 1 == 1;
        // A character that is not ASCII may become one of any class before a blank. (Before others
        // it must be one without a rule.)
        let not_blank = (1..64).filter(|&class| class != usize::from(BLANK));
        let before_blank = not_blank.fold(0, |all, class| all | self.seen[class]) & 1 << BLANK;
        for before in 1..64u8 {
            let seen = match before {
                HIGH => self.seen[usize::from(HIGH)] | before_blank,
                _ => self.seen[usize::from(before)],
            };
            for behind in 1..64u8 {
                let legal = if behind == BLANK && shape.split {
                    before != BLANK
                } else {
                    tokens.inside
                        && behind != HIGH
                        && (before, behind) != (BLANK, BLANK)
                        && !is_in(seen, behind)
                        && !(is_in(extended, behind)
                            && (is_in(written, ODD) || seen & written != 0))
                        && !(is_in(unknown, before) && is_in(unknown, behind))
                };
                self.cuts[usize::from(before)] |= u64::from(legal) << behind;
            }
        }
    }

    fn finish(self) -> ([u8; 256], [u64; 64], [bool; 128], Ends) {
        (self.classes, self.cuts, self.plain, self.ends)
    }
}
