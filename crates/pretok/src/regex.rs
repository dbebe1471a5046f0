//! Splitting by any regular expression.

use alloc::borrow::{Cow, ToOwned};
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::error::Error;
use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::util::pool::Pool;
use regex_automata::{Anchored, Input, meta};
use tokenizer_core::{MAX_BATCH, Span, Split};

use crate::class_dfa::ClassDfa;
use crate::scanner::Batches;
use crate::syntax::{Alternative, alternatives};
use crate::{Pattern, Scanner, oniguruma, recognise};

/// Splits by a regular expression: every match is a piece, and so is what lies between matches.
/// (tiktoken drops what lies between; so does a [`PatternSplit`](crate::PatternSplit) with
/// [`Behavior::Removed`](crate::Behavior::Removed) and `invert`.)
///
/// Matches are leftmost-first, as Perl and the `regex` crate have them. The pattern may use
/// look-around, possessive quantifiers, atomic groups and backreferences. The fastest engine that
/// is proven to give the same matches is chosen from the pattern ([`engine`](Self::engine));
/// which one never changes the result. Character classes are those of Unicode 16.0.
///
/// ```
/// use pretok::{Engine, RegexSplitter};
/// use tokenizer_core::Split;
///
/// let splitter = RegexSplitter::new(r"\p{L}+|\p{N}{1,2}+|\s+(?!\S)|\s")?;
/// assert_eq!(splitter.engine(), Engine::Automaton);
/// let text = "ab1234 \n!";
/// let pieces: Vec<_> = splitter.split(text).iter().map(|s| &text[s.range()]).collect();
/// assert_eq!(pieces, ["ab", "12", "34", " ", "\n", "!"]);
/// # Ok::<(), pretok::RegexError>(())
/// ```
#[derive(Clone)]
pub struct RegexSplitter {
    pattern: String,
    options: RegexOptions,
    machine: Machine,
}

/// How a pattern is read and matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegexOptions {
    /// Whose syntax the pattern is written in.
    pub dialect: Dialect,
    /// The engine that must be used, where it can; `None` chooses the fastest.
    pub engine: Option<Engine>,
    /// How many times the backtracking engine may give back during the search for one match.
    pub backtrack_limit: usize,
}

impl Default for RegexOptions {
    /// Rust syntax, the fastest engine, and the limit that Oniguruma has, 10 million.
    fn default() -> Self {
        Self { dialect: Dialect::Rust, engine: None, backtrack_limit: 10_000_000 }
    }
}

impl RegexOptions {
    /// The defaults, for patterns of a `tokenizer.json`.
    #[must_use]
    pub fn oniguruma() -> Self {
        Self { dialect: Dialect::Oniguruma, ..Self::default() }
    }
}

/// Whose syntax a pattern is written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// That of the `regex` and `fancy-regex` crates, which tiktoken uses.
    #[default]
    Rust,
    /// That of Oniguruma with Ruby syntax, which Hugging Face tokenizers use. It differs in what
    /// some patterns mean: `^` and `$` are the ends of lines; `+` behind `{1,3}` repeats the group
    /// instead of making it possessive; `\w`, `\b` and POSIX brackets know other characters. Only
    /// that `(?i:ss)` also matches `ß` there is not done.
    Oniguruma,
}

/// What finds the matches, from the fastest to the slowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Engine {
    /// A hand-written [`Scanner`], for patterns of the published families. Linear.
    Scanner,
    /// The automata of `regex-automata`, for patterns without look-around except for `\s+(?!\S)`
    /// and its like. Linear in the text for each match.
    Automaton,
    /// The backtracking of `fancy-regex`, for everything else. Exponential at worst, so it has a
    /// limit.
    Backtracking,
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scanner => "scanner",
            Self::Automaton => "automaton",
            Self::Backtracking => "backtracking",
        })
    }
}

#[derive(Clone)]
enum Machine {
    Scanner(Scanner),
    Automaton(Box<Automaton>),
    Backtracking(Box<fancy_regex::Regex>),
}

impl RegexSplitter {
    /// Compiles `pattern` with the default options.
    ///
    /// # Errors
    ///
    /// If the pattern is not well formed, or too large to compile.
    pub fn new(pattern: &str) -> Result<Self, RegexError> {
        Self::with_options(pattern, RegexOptions::default())
    }

    /// Compiles `pattern`.
    ///
    /// # Errors
    ///
    /// If the pattern is not well formed, too large to compile, or the required engine is not
    /// proven to match it.
    pub fn with_options(pattern: &str, options: RegexOptions) -> Result<Self, RegexError> {
        let machine = Machine::new(pattern, options)?;
        Ok(Self { pattern: pattern.to_owned(), options, machine })
    }

    /// The pattern.
    #[must_use]
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The engine that finds the matches.
    #[must_use]
    pub fn engine(&self) -> Engine {
        match self.machine {
            Machine::Scanner(_) => Engine::Scanner,
            Machine::Automaton(_) => Engine::Automaton,
            Machine::Backtracking(_) => Engine::Backtracking,
        }
    }

    /// The scanner, if that is the engine.
    #[must_use]
    pub fn scanner(&self) -> Option<&Scanner> {
        match &self.machine {
            Machine::Scanner(scanner) => Some(scanner),
            _ => None,
        }
    }

    /// The scanner that cuts as `pattern` does, if the pattern is of the published families.
    ///
    /// It is recognised by its parts, not by its name: possessive or not, contractions in any
    /// spelling, any group size.
    #[must_use]
    pub fn recognise(pattern: &str, dialect: Dialect) -> Option<Scanner> {
        // The published strings mean the same in both dialects, except for possessive intervals.
        if let Some(rules) = Pattern::from_stages(&[pattern]).and_then(Pattern::rules)
            && (dialect == Dialect::Rust || !pattern.contains("}+") && !pattern.contains('$'))
        {
            return Some(Scanner::new(rules));
        }
        recognise::rules(&alternatives(pattern, dialect)?).map(Scanner::new)
    }

    /// Calls `found` with the matches in order.
    ///
    /// # Errors
    ///
    /// If the backtracking engine passes its limit. `found` has had all matches in front of that
    /// place.
    pub fn for_each_match(
        &self,
        text: &str,
        mut found: impl FnMut(Span),
    ) -> Result<(), MatchError> {
        match &self.machine {
            Machine::Scanner(scanner) => scanner.for_each_span(text, found),
            Machine::Automaton(automaton) => automaton.for_each_match(text, found)?,
            Machine::Backtracking(regex) => each_match(text, &mut found, |at| {
                let limit = self.options.backtrack_limit;
                match regex.find_from_pos(text, at) {
                    Ok(found) => Ok(found.map(|found| Span::new(found.start(), found.end()))),
                    Err(_) => Err(MatchError { at, limit }),
                }
            })?,
        }
        Ok(())
    }

    /// Appends the spans of the pieces, as [`Split::split_into`] does.
    ///
    /// # Errors
    ///
    /// If the backtracking engine passes its limit. What is left of the text from there is one
    /// piece then, so that the pieces tile the text all the same.
    pub fn try_split_into(&self, text: &str, spans: &mut Vec<Span>) -> Result<(), MatchError> {
        self.for_each_piece(text, |span| spans.push(span))
    }

    #[inline]
    fn for_each_piece(&self, text: &str, mut piece: impl FnMut(Span)) -> Result<(), MatchError> {
        let mut at = 0;
        let result = self.for_each_match(text, |found| {
            for span in [Span::new(at, found.start), found] {
                if !span.is_empty() {
                    piece(span);
                }
            }
            at = found.end;
        });
        if at < text.len() {
            piece(Span::new(at, text.len()));
        }
        result
    }
}

impl Split for RegexSplitter {
    /// If the backtracking engine passes its limit, what is left of the text is one piece;
    /// [`RegexSplitter::try_split_into`] says so.
    fn split_into(&self, text: &str, spans: &mut Vec<Span>) {
        if let Machine::Scanner(scanner) = &self.machine {
            return scanner.split_into(text, spans);
        }
        // The pieces tile the text in any case, which is what this method promises.
        let _ = self.try_split_into(text, spans);
    }

    fn split_batches(&self, text: &str, batch: &mut dyn FnMut(&[Span])) {
        match &self.machine {
            Machine::Scanner(scanner) => scanner.split_batches(text, batch),
            _ => {
                let mut room = [Span::default(); MAX_BATCH];
                let mut batches = Batches::new(&mut room, batch);
                // As in `split_into`.
                let _ = self.for_each_piece(text, |span| batches.push(span));
                batches.finish();
            }
        }
    }

    fn unsettled(&self) -> Option<usize> {
        self.scanner().and_then(Split::unsettled)
    }
}

impl fmt::Debug for RegexSplitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegexSplitter")
            .field("pattern", &self.pattern)
            .field("dialect", &self.options.dialect)
            .field("engine", &self.engine())
            .finish_non_exhaustive()
    }
}

impl Machine {
    fn new(pattern: &str, options: RegexOptions) -> Result<Self, RegexError> {
        let wants = |engine| options.engine.is_none_or(|wanted| wanted == engine);
        if wants(Engine::Scanner)
            && let Some(scanner) = RegexSplitter::recognise(pattern, options.dialect)
        {
            return Ok(Self::Scanner(scanner));
        }
        // Compiled in any case: it says what is wrong with a pattern, in the pattern's own terms.
        let (in_rust, is_oniguruma) = match options.dialect {
            Dialect::Rust => (Cow::Borrowed(pattern), false),
            Dialect::Oniguruma => (oniguruma::translate(pattern), true),
        };
        let slow = fancy_regex::RegexBuilder::new(&in_rust)
            .oniguruma_mode(is_oniguruma)
            .multi_line(is_oniguruma)
            .backtrack_limit(options.backtrack_limit)
            .build()
            .map_err(|source| RegexError::new(pattern, Kind::Pattern(Box::new(source))))?;
        if wants(Engine::Automaton)
            && let Some(automaton) = Automaton::new(pattern, options.dialect)
        {
            return Ok(Self::Automaton(Box::new(automaton)));
        }
        match options.engine {
            None | Some(Engine::Backtracking) => Ok(Self::Backtracking(Box::new(slow))),
            Some(engine) => Err(RegexError::new(pattern, Kind::Engine(engine))),
        }
    }
}

/// The alternatives of a pattern as an ordered set of automaton patterns, some of which match one
/// character more than they should.
struct Automaton {
    /// Finds a match at a place, which in most patterns there is, if all that the pattern looks at
    /// is characters.
    by_class: Option<ClassDfa>,
    /// The same for any pattern: one pass, and few states.
    anchored: DFA,
    caches: CachePool,
    /// Finds the next match where there is none at the place.
    anywhere: meta::Regex,
    /// For each pattern: whether its last character is to be given back.
    gives_back: Vec<bool>,
}

type CachePool = Pool<Cache, Box<dyn Fn() -> Cache + Send + Sync + UnwindSafe + RefUnwindSafe>>;

/// Memory for the states of an automaton, in bytes. Large Unicode classes need about 2 MB; when
/// it is full the states are made anew, which is slow but right.
const CACHE: usize = 16 << 20;

impl Automaton {
    fn new(pattern: &str, dialect: Dialect) -> Option<Self> {
        let mut regexes = Vec::new();
        let mut gives_back = Vec::new();
        for alternative in alternatives(pattern, dialect)? {
            match alternative {
                Alternative::Plain(expr) => {
                    regexes.push(Alternative::regex(&expr));
                    gives_back.push(false);
                }
                Alternative::RunButLast(class) => {
                    let class = class_regex(&class);
                    regexes.push(alloc::format!(r"{class}+\z"));
                    regexes.push(alloc::format!("{class}+{class}"));
                    gives_back.extend([false, true]);
                }
            }
        }
        let anywhere = meta::Regex::new_many(&regexes).ok()?;
        let anchored = DFA::builder()
            .configure(DFA::config().cache_capacity(CACHE).unicode_word_boundary(true))
            .build_many(&regexes)
            .ok()?;
        let by_class = ClassDfa::new(&regexes, &gives_back);
        Some(Self::from_parts(by_class, anchored, anywhere, gives_back))
    }

    fn from_parts(
        by_class: Option<ClassDfa>,
        anchored: DFA,
        anywhere: meta::Regex,
        gives_back: Vec<bool>,
    ) -> Self {
        let dfa = anchored.clone();
        let caches = Pool::new(Box::new(move || dfa.create_cache()) as Box<_>);
        Self { by_class, anchored, caches, anywhere, gives_back }
    }

    fn for_each_match(&self, text: &str, mut found: impl FnMut(Span)) -> Result<(), MatchError> {
        if let Some(by_class) = &self.by_class {
            let find = |at| {
                let here = by_class.find(text, at).map(|(end, which)| (Span::new(at, end), which));
                here.or_else(|| self.find_anywhere(text, at)).map(|m| self.give_back(text, m))
            };
            let (mut at, mut last_end) = (0, None);
            loop {
                let mut begin = at;
                at = by_class.find_run(text, at, |end| {
                    found(Span::new(begin, end));
                    begin = end;
                    last_end = Some(end);
                });
                match find(at) {
                    Some(span) => at = after_match(text, span, &mut last_end, &mut found),
                    None => return Ok(()),
                }
                if at > text.len() {
                    return Ok(());
                }
            }
        }
        let mut cache = self.caches.get();
        each_match(text, found, |at| {
            let anchored = Input::new(text).span(at..text.len()).anchored(Anchored::Yes);
            // The automaton gives up on a Unicode word boundary behind ASCII, and the other takes
            // over.
            let found = match self.anchored.try_search_fwd(&mut cache, &anchored) {
                Ok(Some(end)) => Some((Span::new(at, end.offset()), end.pattern().as_usize())),
                Ok(None) | Err(_) => self.find_anywhere(text, at),
            };
            Ok(found.map(|m| self.give_back(text, m)))
        })
    }

    fn find_anywhere(&self, text: &str, at: usize) -> Option<(Span, usize)> {
        let found = self.anywhere.search(&Input::new(text).span(at..text.len()))?;
        Some((Span::new(found.start(), found.end()), found.pattern().as_usize()))
    }

    /// The match without its last character, if its pattern matches one too many.
    #[inline]
    fn give_back(&self, text: &str, (mut span, pattern): (Span, usize)) -> Span {
        if self.gives_back[pattern]
            && let Some(last) = text[span.range()].chars().next_back()
        {
            span.end -= last.len_utf8();
        }
        span
    }
}

impl Clone for Automaton {
    fn clone(&self) -> Self {
        let Self { by_class, anchored, anywhere, gives_back, .. } = self;
        Self::from_parts(by_class.clone(), anchored.clone(), anywhere.clone(), gives_back.clone())
    }
}

/// A class as a regular expression.
fn class_regex(class: &regex_syntax::hir::ClassUnicode) -> String {
    regex_syntax::hir::Hir::class(regex_syntax::hir::Class::Unicode(class.clone())).to_string()
}

/// Calls `found` with the matches that `find` finds from left to right. An empty match right
/// behind a match does not count, as in Perl and in Oniguruma's `scan`.
fn each_match(
    text: &str,
    mut found: impl FnMut(Span),
    mut find: impl FnMut(usize) -> Result<Option<Span>, MatchError>,
) -> Result<(), MatchError> {
    let (mut at, mut last_end) = (0, None);
    while at <= text.len()
        && let Some(span) = find(at)?
    {
        at = after_match(text, span, &mut last_end, &mut found);
    }
    Ok(())
}

/// Gives a match out, unless it is empty and right behind the last one, and says where to search on: past the
/// end of the text at last.
#[inline]
fn after_match(
    text: &str,
    span: Span,
    last_end: &mut Option<usize>,
    found: &mut impl FnMut(Span),
) -> usize {
    if span.is_empty() && *last_end == Some(span.end) {
        return span.end + text[span.end..].chars().next().map_or(1, char::len_utf8);
    }
    found(span);
    *last_end = Some(span.end);
    span.end
}

/// Why a pattern cannot be used.
#[derive(Debug, Clone)]
pub struct RegexError {
    pattern: String,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Pattern(Box<fancy_regex::Error>),
    Engine(Engine),
}

impl RegexError {
    fn new(pattern: &str, kind: Kind) -> Self {
        Self { pattern: pattern.to_owned(), kind }
    }

    /// The pattern.
    #[must_use]
    pub fn pattern(&self) -> &str {
        &self.pattern
    }
}

impl fmt::Display for RegexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pattern = &self.pattern;
        match self.kind {
            Kind::Pattern(_) => write!(f, "the pattern `{pattern}` cannot be compiled"),
            Kind::Engine(engine) => {
                write!(f, "the {engine} engine is not proven to match the pattern `{pattern}`")
            }
        }
    }
}

impl Error for RegexError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            Kind::Pattern(source) => Some(source.as_ref()),
            Kind::Engine(_) => None,
        }
    }
}

/// The backtracking engine gave up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchError {
    at: usize,
    limit: usize,
}

impl MatchError {
    /// Where the search began that was given up: a byte offset in the text.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }
}

impl fmt::Display for MatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, limit } = self;
        write!(
            f,
            "the search from byte {at} takes more than {limit} steps back or a million places to remember"
        )
    }
}

impl Error for MatchError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn automata_of_published_patterns_are_over_classes() {
        let mut letters = Vec::new();
        for pattern in Pattern::ALL {
            for stage in pattern.stages() {
                let automaton = Automaton::new(stage, Dialect::Rust).expect(stage);
                letters.push(automaton.by_class.expect(stage).n_letters());
            }
        }
        assert!(letters.iter().all(|n| (2..32).contains(n)), "{letters:?}");
        let automaton = Automaton::new(r"\b\w+", Dialect::Rust).expect("it is plain");
        assert!(automaton.by_class.is_none());
    }
}
