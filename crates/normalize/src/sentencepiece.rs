use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use tokenizer_core::{Edit, Normalize, Span, utf8};

use crate::Charsmap;

/// The normalizer of SentencePiece (Kudo and Richardson, 2018), as of its version 0.2.3: rules of
/// a [`Charsmap`], and the rules for spaces.
///
/// At each position the longest user-defined symbol is copied as it is; else the longest rule is
/// applied; else one character is copied. `O(n)` for n bytes.
///
/// Offsets are SentencePiece's: what is deleted belongs to the character before it, what is put
/// in front or behind belongs to nothing, and of several characters that one rule writes the last
/// stands for all that the rule read.
///
/// ```
/// use normalize::SentencePieceNormalizer;
/// use tokenizer_core::Normalize;
///
/// let identity = SentencePieceNormalizer::default();
/// assert_eq!(identity.normalize("  low   er "), "▁low▁er");
/// ```
#[derive(Clone)]
pub struct SentencePieceNormalizer {
    charsmap: Option<Charsmap>,
    spaces: SpaceOptions,
    user_defined: Symbols,
    /// The visible ASCII characters that are copied where ASCII follows.
    plain: [bool; 256],
}

impl Default for SentencePieceNormalizer {
    /// The rule set `identity`, and SentencePiece's default treatment of spaces.
    fn default() -> Self {
        Self::new(None)
    }
}

impl fmt::Debug for SentencePieceNormalizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SentencePieceNormalizer")
            .field("charsmap", &self.charsmap)
            .field("spaces", &self.spaces)
            .field("user_defined", &self.user_defined.as_slice().len())
            .finish()
    }
}

/// What SentencePiece does to spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SpaceOptions {
    /// Puts a space in front (or behind, see below) of a text that is not empty.
    pub add_dummy_prefix: bool,
    /// Removes spaces at the ends, and of several spaces all but one.
    pub remove_extra_whitespaces: bool,
    /// Writes `▁` (U+2581) for a space.
    pub escape_whitespaces: bool,
    /// Puts the space of `add_dummy_prefix` behind. (An option of the trainer in the file.)
    pub treat_whitespace_as_suffix: bool,
}

impl Default for SpaceOptions {
    /// SentencePiece's own defaults: a space in front, none twice, all escaped.
    fn default() -> Self {
        Self {
            add_dummy_prefix: true,
            remove_extra_whitespaces: true,
            escape_whitespaces: true,
            treat_whitespace_as_suffix: false,
        }
    }
}

impl SpaceOptions {
    /// Leaves spaces as they are.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            add_dummy_prefix: false,
            remove_extra_whitespaces: false,
            escape_whitespaces: false,
            treat_whitespace_as_suffix: false,
        }
    }
}

impl SentencePieceNormalizer {
    /// The normalizer with these rules (`None`: `identity`), SentencePiece's default treatment of
    /// spaces, and no user-defined symbols.
    #[must_use]
    pub fn new(charsmap: Option<Charsmap>) -> Self {
        Self {
            charsmap,
            spaces: SpaceOptions::default(),
            user_defined: Symbols::default(),
            plain: [false; 256],
        }
        .with_table()
    }

    /// The same with another treatment of spaces.
    #[must_use]
    pub fn with_spaces(self, spaces: SpaceOptions) -> Self {
        Self { spaces, ..self }
    }

    /// The same with symbols that are copied as they are. (Spaces in them are treated like
    /// others.)
    #[must_use]
    pub fn with_user_defined(self, user_defined: Symbols) -> Self {
        Self { user_defined, ..self }.with_table()
    }

    /// The rules; `None` is the rule set `identity`.
    #[must_use]
    pub fn charsmap(&self) -> Option<&Charsmap> {
        self.charsmap.as_ref()
    }

    /// What is done to spaces.
    #[must_use]
    pub fn spaces(&self) -> SpaceOptions {
        self.spaces
    }

    /// The symbols that are copied as they are.
    #[must_use]
    pub fn user_defined(&self) -> &Symbols {
        &self.user_defined
    }

    fn with_table(mut self) -> Self {
        for byte in b'!'..=b'~' {
            let no_rule = self.charsmap.as_ref().is_none_or(|charsmap| charsmap.is_plain(byte));
            self.plain[usize::from(byte)] = no_rule && !self.user_defined.begin_with(byte);
        }
        self
    }

    /// Normalizes bytes that need not be UTF-8: an ill-formed byte becomes U+FFFD. Appends what
    /// was changed to `edits`, if given.
    #[must_use]
    pub fn normalize_bytes(&self, bytes: &[u8], edits: Option<&mut Vec<Edit>>) -> String {
        let mut writer = Writer::new(bytes.len(), edits.is_some());
        let kept = self.write(bytes, &mut writer);
        let Writer { text, starts, .. } = writer;
        if let (Some(edits), Some(starts)) = (edits, starts) {
            record(bytes, &text, &starts, kept, edits);
        }
        text
    }

    /// Appends what becomes of a text that stands inside of a longer one, behind something that is
    /// no space: nothing is put in front, nothing removed at the ends.
    pub fn normalize_inside_into(&self, text: &str, out: &mut String) {
        let mut writer = Writer { text: core::mem::take(out), starts: None };
        self.write_inside(text.as_bytes(), &mut 0, false, &mut writer);
        *out = writer.text;
    }

    /// What is written for a space.
    fn mark(&self) -> &'static str {
        if self.spaces.escape_whitespaces { "\u{2581}" } else { " " }
    }

    /// Writes the normalized text, and returns the position in the input where the last character
    /// that was kept ends.
    fn write(&self, bytes: &[u8], out: &mut Writer) -> usize {
        let spaces = self.spaces;
        let mark = self.mark();
        let mut at = 0;
        if spaces.remove_extra_whitespaces {
            while let Some((" ", read)) = self.next(&bytes[at..]) {
                at += read;
            }
        }
        if at == bytes.len() {
            return at;
        }
        if spaces.add_dummy_prefix && !spaces.treat_whitespace_as_suffix {
            out.push(mark, at);
        }
        self.write_inside(bytes, &mut at, spaces.remove_extra_whitespaces, out);
        if spaces.remove_extra_whitespaces {
            while out.text.ends_with(mark) {
                at = out.pop(mark.len()).unwrap_or(at);
            }
        }
        if spaces.add_dummy_prefix && spaces.treat_whitespace_as_suffix {
            out.push(mark, at);
        }
        at
    }

    /// Writes `bytes` from `at` on, without what is done at the ends of a text.
    fn write_inside(&self, bytes: &[u8], at: &mut usize, after_space: bool, out: &mut Writer) {
        let spaces = self.spaces;
        let mark = self.mark();
        let mut after_space = after_space;
        while *at < bytes.len() {
            let run = self.plain_prefix(&bytes[*at..]);
            if run > 0 {
                out.push_run(&bytes[*at..*at + run], *at);
                *at += run;
                after_space = false;
                continue;
            }
            let Some((mut part, read)) = self.next(&bytes[*at..]) else { break };
            if after_space {
                part = part.trim_start_matches(' ');
            }
            let mut buffer = [0; 4];
            for c in part.chars() {
                out.push(if c == ' ' { mark } else { c.encode_utf8(&mut buffer) }, *at);
            }
            if !part.is_empty() {
                after_space = part.ends_with(' ') && spaces.remove_extra_whitespaces;
            }
            *at += read;
        }
    }

    /// What the bytes begin with becomes, and how many bytes that is.
    fn next<'a>(&'a self, bytes: &'a [u8]) -> Option<(&'a str, usize)> {
        if bytes.is_empty() {
            return None;
        }
        if let Some(symbol) = self.user_defined.longest_prefix(bytes) {
            return Some((symbol, symbol.len()));
        }
        let rule = self.charsmap.as_ref().and_then(|charsmap| charsmap.longest_prefix(bytes));
        if let Some((read, target)) = rule {
            return Some((target, read));
        }
        let len = utf8::char_len(bytes);
        let c = core::str::from_utf8(&bytes[..len]).unwrap_or("\u{FFFD}");
        Some((c, len))
    }

    /// The number of visible ASCII bytes at the start that are copied.
    fn plain_prefix(&self, bytes: &[u8]) -> usize {
        let run = bytes.iter().take_while(|&&byte| self.plain[usize::from(byte)]).count();
        match bytes.get(run) {
            // A rule may read the last one together with what follows.
            Some(byte) if !byte.is_ascii() => run.saturating_sub(1),
            _ => run,
        }
    }
}

impl Normalize for SentencePieceNormalizer {
    fn normalize<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let normalized = self.normalize_bytes(text.as_bytes(), None);
        if normalized == text { Cow::Borrowed(text) } else { Cow::Owned(normalized) }
    }

    fn normalize_with_edits<'t>(&self, text: &'t str, edits: &mut Vec<Edit>) -> Cow<'t, str> {
        let before = edits.len();
        let normalized = self.normalize_bytes(text.as_bytes(), Some(edits));
        // Borrowed means unchanged, offsets too.
        match normalized == text && edits.len() == before {
            true => Cow::Borrowed(text),
            false => Cow::Owned(normalized),
        }
    }

    fn as_any(&self) -> Option<&dyn core::any::Any> {
        Some(self)
    }
}

/// The text being written and, if wanted, where in the input each of its characters began:
/// SentencePiece's `norm_to_orig`, by runs.
struct Writer {
    text: String,
    starts: Option<Vec<Start>>,
}

/// From `target` on in the written text, characters come from `source` on in the input: all from
/// there if `run` is false, byte for byte if it is true.
#[derive(Clone, Copy)]
struct Start {
    target: usize,
    source: usize,
    run: bool,
}

impl Writer {
    fn new(len: usize, with_starts: bool) -> Self {
        let text = String::with_capacity(len + len / 2 + 3);
        Self { text, starts: with_starts.then(Vec::new) }
    }

    fn push(&mut self, c: &str, source: usize) {
        if let Some(starts) = &mut self.starts {
            starts.push(Start { target: self.text.len(), source, run: false });
        }
        self.text.push_str(c);
    }

    /// Appends ASCII bytes as they are.
    fn push_run(&mut self, bytes: &[u8], source: usize) {
        if let Some(starts) = &mut self.starts {
            starts.push(Start { target: self.text.len(), source, run: true });
        }
        let run = core::str::from_utf8(bytes).expect("ASCII bytes are UTF-8");
        self.text.push_str(run);
    }

    /// Takes back the last character, and says where it began if that is known.
    fn pop(&mut self, len: usize) -> Option<usize> {
        self.text.truncate(self.text.len() - len);
        Some(self.starts.as_mut()?.pop()?.source)
    }
}

/// Appends the edits that say what `starts` say. Each character reaches from where it began to
/// where the next one did; the last one to `kept`.
fn record(bytes: &[u8], text: &str, starts: &[Start], kept: usize, edits: &mut Vec<Edit>) {
    let first = starts.first().map_or(kept, |start| start.source);
    let mut push = |source: Span, target: Span| {
        let unchanged = bytes[source.range()] == text.as_bytes()[target.range()];
        if !unchanged {
            edits.push(Edit { source, target });
        }
    };
    push(Span::new(0, first), Span::new(0, 0));
    for (i, start) in starts.iter().enumerate() {
        let next = starts.get(i + 1);
        let target_end = next.map_or(text.len(), |next| next.target);
        let source_end = next.map_or(kept, |next| next.source);
        let (mut source, mut target) = (start.source, start.target);
        if start.run {
            // Only the last byte of a run can reach further than itself.
            (source, target) = (source + (target_end - 1 - target), target_end - 1);
        }
        push(Span::new(source, source_end), Span::new(target, target_end));
    }
    push(Span::new(kept, bytes.len()), Span::new(text.len(), text.len()));
}

/// A set of symbols to find the longest of at the start of a text.
///
/// A trie over bytes, its children sorted. Empty symbols are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbols {
    symbols: Vec<String>,
    /// Node 0 is the root; none if there are no symbols.
    nodes: Vec<Node>,
    /// Labels and children of all nodes.
    children: Vec<(u8, u32)>,
    first_bytes: Option<ByteSet>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    first_child: u32,
    end_child: u32,
    symbol: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ByteSet([bool; 256]);

/// SentencePiece looks at no more symbols that one position begins with.
const MAX_SYMBOLS: usize = 64;

impl<S: Into<String>> FromIterator<S> for Symbols {
    fn from_iter<I: IntoIterator<Item = S>>(symbols: I) -> Self {
        let mut symbols: Vec<String> = symbols.into_iter().map(Into::into).collect();
        symbols.retain(|symbol| !symbol.is_empty());
        symbols.sort_unstable();
        symbols.dedup();
        if symbols.is_empty() {
            return Self::default();
        }
        let mut set = Self::default();
        // Breadth first, so that the children of a node lie side by side. A node is the range of
        // symbols below it and the number of bytes that lead to it.
        let mut below = vec![(0..symbols.len(), 0)];
        let mut next = 0;
        while let Some((mut range, depth)) = below.get(next).cloned() {
            next += 1;
            let ends_here = symbols[range.start].len() == depth;
            let symbol = ends_here.then_some(range.start as u32);
            range.start += usize::from(ends_here);
            let first_child = set.children.len() as u32;
            while !range.is_empty() {
                let byte = symbols[range.start].as_bytes()[depth];
                let same = |symbol: &String| symbol.as_bytes()[depth] == byte;
                let end = range.start + symbols[range.clone()].partition_point(same);
                set.children.push((byte, below.len() as u32));
                below.push((range.start..end, depth + 1));
                range.start = end;
            }
            set.nodes.push(Node { first_child, end_child: set.children.len() as u32, symbol });
        }
        let mut first_bytes = ByteSet([false; 256]);
        for symbol in &symbols {
            first_bytes.0[usize::from(symbol.as_bytes()[0])] = true;
        }
        set.first_bytes = Some(first_bytes);
        set.symbols = symbols;
        set
    }
}

impl Symbols {
    /// The symbols, sorted by their bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[String] {
        &self.symbols
    }

    /// Whether a symbol begins with `byte`.
    #[inline]
    #[must_use]
    pub fn begin_with(&self, byte: u8) -> bool {
        self.first_bytes.as_ref().is_some_and(|set| set.0[usize::from(byte)])
    }

    /// The longest symbol that `bytes` begin with. (Of more than 64 that they begin with, the
    /// longest of the 64 shortest, as SentencePiece has it.)
    #[must_use]
    pub fn longest_prefix(&self, bytes: &[u8]) -> Option<&str> {
        if !self.begin_with(*bytes.first()?) {
            return None;
        }
        let mut node = self.nodes.first()?;
        let (mut longest, mut found) = (None, 0);
        for byte in bytes {
            let children = &self.children[node.first_child as usize..node.end_child as usize];
            let Ok(child) = children.binary_search_by_key(byte, |&(label, _)| label) else { break };
            node = &self.nodes[children[child].1 as usize];
            if let Some(symbol) = node.symbol {
                longest = Some(symbol);
                found += 1;
                if found == MAX_SYMBOLS {
                    break;
                }
            }
        }
        longest.map(|symbol| self.symbols[symbol as usize].as_str())
    }
}
