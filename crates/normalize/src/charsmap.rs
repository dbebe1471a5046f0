//! SentencePiece's compiled rewrite rules: a double array over UTF-8 bytes and the texts that its
//! values point into.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use hashbrown::HashMap;
use tokenizer_core::utf8;

use crate::layout::{self, FAR, HAS_VALUE, VALUE};

/// Rules "these bytes become that text", as SentencePiece compiles them into the
/// `precompiled_charsmap` of a model.
///
/// The file form is the length of the trie in bytes (32 bits, little endian), the trie (units of
/// 32 bits, little endian, as darts-clone lays them out), and the texts, each ended by NUL.
///
/// Every lookup is checked, and so are all values once on loading: bytes of a hostile file can
/// make rules that no one wants, but nothing else.
///
/// ```
/// use normalize::Charsmap;
///
/// let rules = Charsmap::from_rules([("ﬁ", "fi"), ("\t", " "), ("\u{1}", "")])?;
/// assert_eq!(rules.longest_prefix("ﬁx".as_bytes()), Some((3, "fi")));
/// assert_eq!(Charsmap::from_bytes(&rules.to_bytes())?, rules);
/// # Ok::<(), normalize::CharsmapError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Charsmap {
    units: Box<[Unit]>,
    texts: Box<str>,
    /// The ASCII characters that no rule applies to unless another than ASCII follows.
    plain: [bool; 256],
}

impl Charsmap {
    /// Reads the file form, as leniently as Hugging Face does. (SentencePiece 0.2.3 also wants
    /// the trie in blocks of 1024 bytes and the last text ended by NUL.) `O(n)` for n bytes, and
    /// as much memory.
    ///
    /// # Errors
    ///
    /// If the bytes are cut short, the trie is not whole units, the texts are not UTF-8, or a
    /// value does not point to the start of a character among the texts.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CharsmapError> {
        let (size, rest) = bytes
            .split_first_chunk()
            .ok_or(CharsmapError::new(Kind::Short { len: bytes.len() }))?;
        let size = u32::from_le_bytes(*size) as usize;
        if size == 0 || !size.is_multiple_of(4) {
            return Err(CharsmapError::new(Kind::TrieSize { size }));
        }
        let Some((trie, texts)) = rest.split_at_checked(size) else {
            return Err(CharsmapError::new(Kind::TrieEnd { size, len: rest.len() }));
        };
        let texts = core::str::from_utf8(texts).map_err(|error| {
            CharsmapError::new(Kind::Utf8 { at: 4 + size + error.valid_up_to() })
        })?;
        let units = trie.chunks_exact(4).map(|unit| {
            let bytes = unit.try_into().expect("a chunk of exactly four bytes");
            Unit(u32::from_le_bytes(bytes))
        });
        Self::new(units.collect(), texts.into())
    }

    /// Compiles rules. The order does not matter; of two rules with the same source the last
    /// counts.
    ///
    /// # Errors
    ///
    /// If there is no rule, a source is empty or holds NUL, a target holds NUL, or the rules do
    /// not fit the format (about half a million units).
    pub fn from_rules<S: AsRef<str>, T: AsRef<str>>(
        rules: impl IntoIterator<Item = (S, T)>,
    ) -> Result<Self, CharsmapError> {
        let mut sorted = BTreeMap::new();
        for (i, (source, target)) in rules.into_iter().enumerate() {
            let (source, target) = (source.as_ref(), target.as_ref());
            if source.is_empty() || source.contains('\0') || target.contains('\0') {
                return Err(CharsmapError::new(Kind::Rule { rule: i }));
            }
            sorted.insert(source.to_owned(), target.to_owned());
        }
        let sorted: Vec<(String, String)> = sorted.into_iter().collect();
        Self::from_sorted(&sorted)
    }

    /// Compiles rules that are in order of their distinct sources; neither these nor the targets hold
    /// NUL.
    pub(crate) fn from_sorted(rules: &[(String, String)]) -> Result<Self, CharsmapError> {
        let mut places: HashMap<&str, u32> =
            rules.iter().map(|(_, target)| (target.as_str(), 0)).collect();
        let mut targets: Vec<&str> = places.keys().copied().collect();
        targets.sort_unstable();
        let mut texts = String::new();
        let too_large = || CharsmapError::new(Kind::TooLarge);
        for target in targets {
            places.insert(target, u32::try_from(texts.len()).map_err(|_| too_large())?);
            texts.push_str(target);
            texts.push('\0');
        }
        let keys: Vec<(&[u8], u32)> = rules
            .iter()
            .map(|(source, target)| (source.as_bytes(), places[target.as_str()]))
            .collect();
        if keys.is_empty() {
            return Err(CharsmapError::new(Kind::NoRule));
        }
        let units = layout::units(&keys).ok_or_else(too_large)?;
        Self::new(units.into_iter().map(Unit).collect(), texts.into())
    }

    /// The file form.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let size = u32::try_from(self.units.len() * 4).expect("the length came from 32 bits");
        let mut bytes = size.to_le_bytes().to_vec();
        bytes.extend(self.units.iter().flat_map(|unit| unit.0.to_le_bytes()));
        bytes.extend_from_slice(self.texts.as_bytes());
        bytes
    }

    /// The longest rule whose source `bytes` begins with: the length of its source, and its
    /// target. SentencePiece applies this one.
    #[must_use]
    pub fn longest_prefix(&self, bytes: &[u8]) -> Option<(usize, &str)> {
        let (len, value) = self.prefixes(bytes).take(MAX_PREFIXES).last()?;
        Some((len, self.text(value)))
    }

    /// The target of the shortest rule whose source `bytes` begins with. Hugging Face applies
    /// this one to all of `bytes`.
    #[must_use]
    pub fn shortest_prefix(&self, bytes: &[u8]) -> Option<&str> {
        // Hugging Face stops at NUL; here no path leads through one that a rule could be on.
        let (_, value) = self.prefixes(bytes).next()?;
        Some(self.text(value))
    }

    /// Whether `byte` is ASCII and no rule applies to it where the end or ASCII follows. (Where a
    /// combining mark follows, one may.)
    #[inline]
    #[must_use]
    pub fn is_plain(&self, byte: u8) -> bool {
        self.plain[usize::from(byte)]
    }

    /// All rules in the order of their sources' bytes. Sources need not be UTF-8 in a hostile
    /// file, and of sources longer than 1000 bytes (a cycle) nothing is said.
    #[must_use]
    pub fn rules(&self) -> Vec<(Vec<u8>, &str)> {
        let mut rules = Vec::new();
        // A node, and the label that leads to the child to visit next.
        let mut path = vec![(0, 1)];
        let (mut source, mut visited): (Vec<u8>, usize) = (Vec::new(), 0);
        while let Some(&mut (at, ref mut label)) = path.last_mut() {
            let base = self.unit(at).map_or(0, |unit| at ^ unit.offset());
            let Ok(byte) = u8::try_from(*label) else {
                path.pop();
                source.pop();
                continue;
            };
            *label += 1;
            let child = base ^ usize::from(byte);
            let Some(unit) = self.unit(child).filter(|unit| unit.label() == u32::from(byte)) else {
                continue;
            };
            // Nodes are shared, so there are more paths than units; but a hostile file could have
            // paths without end.
            if source.len() == MAX_DEPTH || visited == MAX_SHARING * self.units.len() {
                continue;
            }
            visited += 1;
            source.push(byte);
            path.push((child, 1));
            if let Some(value) = self.value_below(child, unit) {
                rules.push((source.clone(), self.text(value)));
            }
        }
        rules
    }

    /// Calls `each` with every character that some rule reads, wherever in its source, once for
    /// each place in the trie; equal ends of rules share their places. Cheap: `O(n)` for n units,
    /// where listing the rules takes a step for every byte of every rule.
    ///
    /// Returns whether that was all: `false` if sources are not UTF-8, as in a hostile file.
    pub fn each_char<'a>(&'a self, mut each: impl FnMut(CharStep<'a>)) -> bool {
        let children = self.children();
        let mut visited = vec![false; self.units.len()];
        // A base, how many bytes of a character led to it and which, and whether that character is
        // the first of a source.
        let mut open = vec![(self.root(), 0usize, [0u8; 4], true)];
        let mut all = true;
        while let Some((base, len, bytes, is_first)) = open.pop() {
            for (at, unit) in children.of(base) {
                let (mut bytes, len) = (bytes, len + 1);
                bytes[len - 1] = unit.label() as u8;
                if unit.label() == 0 {
                    continue; // No rule reads NUL; that is where values are.
                }
                let below = at ^ unit.offset();
                let target = self.value_below(at, unit).map(|value| self.text(value));
                if let Some(c) = utf8::decode(&bytes[..len]).0 {
                    let goes_on = children.of(below).any(|child| child.1.label() != 0);
                    each(CharStep { c, is_first, goes_on, target });
                    if goes_on && visited.get(below) == Some(&false) {
                        visited[below] = true;
                        open.push((below, 0, [0; 4], false));
                    }
                } else if len < 4 && target.is_none() {
                    open.push((below, len, bytes, is_first));
                } else {
                    all = false;
                }
            }
        }
        all
    }

    /// Calls `each` with every character that rules of several characters begin with, and with the
    /// first characters of what those rules write: each once, `None` for nothing. In place of all
    /// stands `None` where there are too many to tell.
    ///
    /// `O(n)` for n units, and some steps for every byte of a rule of several characters.
    pub fn each_extended(&self, mut each: impl FnMut(char, Option<&[Option<char>]>)) {
        let children = self.children();
        let mut steps = MAX_STEPS;
        let mut firsts = Vec::new();
        let mut open = vec![(self.root(), 0usize, [0u8; 4])];
        while let Some((base, len, bytes)) = open.pop() {
            for (at, unit) in children.of(base).filter(|child| child.1.label() != 0) {
                let mut bytes = bytes;
                bytes[len] = unit.label() as u8;
                let below = at ^ unit.offset();
                if let Some(c) = utf8::decode(&bytes[..=len]).0 {
                    firsts.clear();
                    let all = self.firsts_below(&children, below, &mut steps, &mut firsts);
                    if !all || !firsts.is_empty() {
                        each(c, all.then_some(&firsts[..]));
                    }
                } else if len < 3 {
                    open.push((below, len + 1, bytes));
                }
            }
        }
    }

    /// Appends the first characters of what is written by rules below a base. `false` if those are
    /// too many, or to be found in too many steps.
    fn firsts_below(
        &self,
        children: &Children<'_>,
        base: usize,
        steps: &mut usize,
        firsts: &mut Vec<Option<char>>,
    ) -> bool {
        let mut open = vec![base];
        while let Some(base) = open.pop() {
            for (at, unit) in children.of(base).filter(|child| child.1.label() != 0) {
                if *steps == 0 || firsts.len() > MAX_FIRSTS {
                    return false;
                }
                *steps -= 1;
                open.push(at ^ unit.offset());
                let first = self.value_below(at, unit).map(|value| self.text(value).chars().next());
                if let Some(first) = first.filter(|first| !firsts.contains(first)) {
                    firsts.push(first);
                }
            }
        }
        true
    }

    fn children(&self) -> Children<'_> {
        let mut starts = vec![0u32; self.units.len() + 257];
        let base = |at: usize, unit: Unit| at ^ unit.label() as usize;
        let nodes = || self.units.iter().copied().enumerate().filter(|unit| !unit.1.is_value());
        for (at, unit) in nodes() {
            starts[base(at, unit) + 1] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut by_base = vec![0u32; self.units.len()];
        let mut next = starts.clone();
        for (at, unit) in nodes() {
            let place = &mut next[base(at, unit)];
            by_base[*place as usize] = at as u32;
            *place += 1;
        }
        Children { units: &self.units, starts, by_base }
    }

    fn new(units: Box<[Unit]>, texts: Box<str>) -> Result<Self, CharsmapError> {
        let mut charsmap = Self { units, texts, plain: [false; 256] };
        for (at, &unit) in charsmap.units.iter().enumerate() {
            if unit.is_value() || !unit.has_value() {
                continue;
            }
            let value = charsmap.value_below(at, unit);
            let valid = |value: usize| {
                value < charsmap.texts.len() && charsmap.texts.is_char_boundary(value)
            };
            if !value.is_some_and(valid) {
                return Err(CharsmapError::new(Kind::Value { unit: at, value }));
            }
        }
        for byte in 0..0x80 {
            let applies = charsmap.child(charsmap.root(), byte).is_some_and(|(at, unit)| {
                let base = at ^ unit.offset();
                unit.has_value() || (0..0x80).any(|next| charsmap.child(base, next).is_some())
            });
            charsmap.plain[usize::from(byte)] = !applies;
        }
        Ok(charsmap)
    }

    /// The lengths and values of all rules whose source `bytes` begins with, the shortest first.
    fn prefixes<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = (usize, usize)> + 'a {
        let (mut base, mut len) = (self.root(), 0);
        core::iter::from_fn(move || {
            while let Some(&byte) = bytes.get(len) {
                let (at, unit) = self.child(base, byte)?;
                base = at ^ unit.offset();
                len += 1;
                if let Some(value) = self.value_below(at, unit) {
                    return Some((len, value));
                }
            }
            None
        })
    }

    fn root(&self) -> usize {
        self.unit(0).map_or(0, Unit::offset)
    }

    fn child(&self, base: usize, byte: u8) -> Option<(usize, Unit)> {
        let at = base ^ usize::from(byte);
        let unit = self.unit(at)?;
        (unit.label() == u32::from(byte)).then_some((at, unit))
    }

    fn value_below(&self, at: usize, unit: Unit) -> Option<usize> {
        let leaf = if unit.has_value() { self.unit(at ^ unit.offset())? } else { return None };
        leaf.is_value().then(|| leaf.value())
    }

    fn unit(&self, at: usize) -> Option<Unit> {
        self.units.get(at).copied()
    }

    fn text(&self, value: usize) -> &str {
        let text = self.texts.get(value..).unwrap_or_default();
        // Most texts are a character or two, for which a search by words costs more.
        let end = text.bytes().position(|byte| byte == 0).unwrap_or(text.len());
        &text[..end]
    }
}

/// The units of a trie by the base that they would be a child of.
struct Children<'a> {
    units: &'a [Unit],
    starts: Vec<u32>,
    by_base: Vec<u32>,
}

impl Children<'_> {
    /// The units whose base it is, and their places.
    fn of(&self, base: usize) -> impl Iterator<Item = (usize, Unit)> + '_ {
        let range = self.starts.get(base).zip(self.starts.get(base + 1));
        let (&from, &to) = range.unwrap_or((&0, &0));
        let places = &self.by_base[from as usize..to as usize];
        places.iter().map(|&at| (at as usize, self.units[at as usize]))
    }
}

/// A character that some rule reads; see [`Charsmap::each_char`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CharStep<'a> {
    /// The character.
    pub c: char,
    /// Whether it is the first that the rule reads.
    pub is_first: bool,
    /// Whether some rule reads on behind it.
    pub goes_on: bool,
    /// What a rule writes that ends with it.
    pub target: Option<&'a str>,
}

/// SentencePiece looks at no more prefixes than these.
const MAX_PREFIXES: usize = 32;

/// How many times more paths than units are followed. SentencePiece's own rules need 5.
const MAX_SHARING: usize = 64;

/// How many first characters are told apart, and how many steps are made to find those of all
/// characters.
const MAX_FIRSTS: usize = 64;
const MAX_STEPS: usize = 1 << 18;

/// The depth at which SentencePiece gives up listing rules.
const MAX_DEPTH: usize = 1000;

impl fmt::Debug for Charsmap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Charsmap")
            .field("units", &self.units.len())
            .field("texts", &self.texts.len())
            .finish_non_exhaustive()
    }
}

/// A cell of the double array: a node (label in bits 0 to 7, whether a value hangs below in bit 8,
/// where its children are in bits 10 to 30, times 256 if bit 9 is set) or a value (bit 31).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unit(u32);

impl Unit {
    /// The label; of a value, a number that is no byte.
    fn label(self) -> u32 {
        self.0 & (VALUE | 0xFF)
    }

    fn is_value(self) -> bool {
        self.0 & VALUE != 0
    }

    fn has_value(self) -> bool {
        self.0 & HAS_VALUE != 0
    }

    fn value(self) -> usize {
        (self.0 & !VALUE) as usize
    }

    /// What its own position is combined with (exclusive or) to find its children.
    fn offset(self) -> usize {
        ((self.0 >> 10) << ((self.0 & FAR) >> 6)) as usize
    }
}

/// Why a charsmap could not be read or compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CharsmapError {
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Short { len: usize },
    TrieSize { size: usize },
    TrieEnd { size: usize, len: usize },
    Utf8 { at: usize },
    Value { unit: usize, value: Option<usize> },
    Rule { rule: usize },
    NoRule,
    TooLarge,
}

impl CharsmapError {
    fn new(kind: Kind) -> Self {
        Self { kind }
    }
}

impl fmt::Display for CharsmapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Short { len } => write!(f, "a charsmap of {len} bytes is cut short"),
            Kind::TrieSize { size } => {
                write!(f, "the trie of the charsmap claims {size} bytes, not a multiple of 4")
            }
            Kind::TrieEnd { size, len } => {
                write!(f, "the trie of the charsmap claims {size} bytes, but {len} are left")
            }
            Kind::Utf8 { at } => {
                write!(f, "the texts of the charsmap are not UTF-8 at byte {at}")
            }
            Kind::Value { unit, value: Some(value) } => {
                write!(f, "unit {unit} of the charsmap points to text {value}, where none begins")
            }
            Kind::Value { unit, value: None } => {
                write!(f, "unit {unit} of the charsmap has a value outside of the trie")
            }
            Kind::Rule { rule } => {
                write!(f, "rule {rule} of the charsmap has an empty source or holds NUL")
            }
            Kind::NoRule => write!(f, "there is no rule to compile"),
            Kind::TooLarge => write!(f, "the rules pass the limits of the charsmap format"),
        }
    }
}

impl core::error::Error for CharsmapError {}
