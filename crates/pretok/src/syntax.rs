//! What a pattern says, as far as the faster engines need to know it.
//!
//! Patterns are parsed by `fancy-regex`, whose matches define what is right, so nothing is read
//! in two ways. Two rewritings, both proven from the tree, take away what only a backtracking
//! engine can do:
//!
//! - A possessive repeat of one character class is greedy where giving back could not help: what
//!   follows cannot fail, or cannot begin with a character of the class.
//! - `C+(?!D)` as a whole alternative, D being all characters outside of C, is `C+$`, else `C+C`
//!   without its last character: the run of C ends at the end of the text, or in front of a
//!   character of D, and then gives back one character, behind which C follows.

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use fancy_regex::internal::{FLAG_MULTI, FLAG_ONIGURUMA_MODE, FLAG_UNICODE};
use fancy_regex::{Assertion, Expr, LookAround};
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

use crate::{Dialect, oniguruma};

/// The top-level alternatives of a pattern, in order; `None` if some part is beyond the faster
/// engines.
pub(crate) fn alternatives(pattern: &str, dialect: Dialect) -> Option<Vec<Alternative>> {
    let (pattern, flags) = match dialect {
        Dialect::Rust => (Cow::Borrowed(pattern), FLAG_UNICODE),
        Dialect::Oniguruma => {
            (oniguruma::translate(pattern), FLAG_UNICODE | FLAG_ONIGURUMA_MODE | FLAG_MULTI)
        }
    };
    let tree = Expr::parse_tree_with_flags(&pattern, flags).ok()?;
    let mut branches = Vec::new();
    flatten_alt(tree.expr, &mut branches);
    branches.into_iter().map(alternative).collect()
}

/// One top-level alternative.
pub(crate) enum Alternative {
    /// Without look-around and possessive parts.
    Plain(Expr),
    /// `C+(?!D)`, D being all but C.
    RunButLast(ClassUnicode),
}

/// A part of a concatenation that the recogniser understands.
pub(crate) enum Item {
    /// From `min` to `max` characters of a class, greedy.
    Run { class: ClassUnicode, min: usize, max: usize },
    /// The end of the text.
    End,
    /// One of these strings, or nothing where `optional`; no string begins another.
    Strings { strings: BTreeSet<String>, optional: bool },
}

impl Alternative {
    /// Its parts in order; `None` if there are others than those of [`Item`].
    pub(crate) fn items(&self) -> Option<Vec<Item>> {
        let Self::Plain(expr) = self else { return None };
        if let Some(strings) = language(expr)
            && strings.iter().any(|s| s.chars().count() > 1)
        {
            return Some(vec![Item::Strings { strings, optional: false }]);
        }
        let mut parts = Vec::new();
        flatten_concat(expr.clone(), &mut parts);
        parts.iter().map(item).collect()
    }

    /// The regular expression of a plain alternative.
    pub(crate) fn regex(expr: &Expr) -> String {
        let mut regex = String::new();
        expr.to_str(&mut regex, 0);
        regex
    }
}

fn item(expr: &Expr) -> Option<Item> {
    if let Some(class) = class(expr) {
        return Some(Item::Run { class, min: 1, max: 1 });
    }
    match expr {
        Expr::Assertion(Assertion::EndText) => Some(Item::End),
        Expr::Repeat { child, lo, hi, greedy: true } => match class(child) {
            Some(class) => Some(Item::Run { class, min: *lo, max: *hi }),
            None if (*lo, *hi) == (0, 1) => {
                Some(Item::Strings { strings: language(child)?, optional: true })
            }
            None => None,
        },
        _ => Some(Item::Strings { strings: language(expr)?, optional: false }),
    }
}

fn flatten_alt(expr: Expr, branches: &mut Vec<Expr>) {
    match expr {
        Expr::Alt(children) => children.into_iter().for_each(|e| flatten_alt(e, branches)),
        Expr::Group(child) if matches!(*child, Expr::Alt(_)) => {
            flatten_alt((*child).clone(), branches);
        }
        other => branches.push(other),
    }
}

fn flatten_concat(expr: Expr, parts: &mut Vec<Expr>) {
    match expr {
        Expr::Concat(children) => children.into_iter().for_each(|e| flatten_concat(e, parts)),
        Expr::Group(child) => flatten_concat((*child).clone(), parts),
        Expr::Empty => {}
        other => parts.push(other),
    }
}

fn alternative(branch: Expr) -> Option<Alternative> {
    let mut parts = Vec::new();
    flatten_concat(branch, &mut parts);
    if let [run, Expr::LookAround(ahead, LookAround::LookAheadNeg)] = parts.as_slice() {
        let run = match run {
            Expr::AtomicGroup(_) => return None,
            Expr::Repeat { child, lo: 1, hi: usize::MAX, greedy: true } => class(child)?,
            _ => return None,
        };
        let mut rest = class(ahead)?;
        rest.negate();
        return (run == rest).then_some(Alternative::RunButLast(run));
    }
    // From the right, so that what follows a possessive part is known.
    let mut follow = Follow::nothing();
    let mut relaxed = Vec::new();
    for part in parts.into_iter().rev() {
        let part = match part {
            Expr::AtomicGroup(inner) => match *inner {
                Expr::Repeat { child, lo, hi, greedy: true } => {
                    if !follow.cannot_fail && !follow.cannot_begin_with(&class(&child)?) {
                        return None;
                    }
                    Expr::Repeat { child, lo, hi, greedy: true }
                }
                _ => return None,
            },
            other => other,
        };
        if !is_plain(&part) {
            return None;
        }
        follow = follow.after(&part);
        relaxed.push(part);
    }
    relaxed.reverse();
    Some(Alternative::Plain(Expr::Concat(relaxed)))
}

/// What is known of the parts behind a place in a concatenation.
struct Follow {
    /// Whether they match whatever comes.
    cannot_fail: bool,
    /// With which characters they can begin, if that is known.
    first: Option<ClassUnicode>,
    /// Whether they can match nothing.
    nullable: bool,
}

impl Follow {
    fn nothing() -> Self {
        Self { cannot_fail: true, first: Some(ClassUnicode::empty()), nullable: true }
    }

    /// With `part` in front.
    fn after(self, part: &Expr) -> Self {
        let (first, nullable, cannot_fail) = match part {
            // It matches no character, and fails in front of any.
            Expr::Assertion(Assertion::EndText) => (Some(ClassUnicode::empty()), false, false),
            Expr::Repeat { child, lo: 0, .. } => (class(child), true, true),
            Expr::Repeat { child, .. } => (class(child), false, false),
            other => (class(other), false, false),
        };
        let first = match (first, self.first) {
            (Some(mut first), Some(rest)) => {
                if nullable {
                    first.union(&rest);
                }
                Some(first)
            }
            (Some(first), None) if !nullable => Some(first),
            _ => None,
        };
        Self {
            cannot_fail: cannot_fail && self.cannot_fail,
            first,
            nullable: nullable && self.nullable,
        }
    }

    fn cannot_begin_with(&self, class: &ClassUnicode) -> bool {
        let Some(first) = &self.first else { return false };
        let mut common = first.clone();
        common.intersect(class);
        !self.nullable && common.ranges().is_empty()
    }
}

/// Whether the `regex` crates can match `expr` too.
fn is_plain(expr: &Expr) -> bool {
    match expr {
        Expr::Empty
        | Expr::Any { .. }
        | Expr::Literal { .. }
        | Expr::Delegate { .. }
        | Expr::Assertion(
            Assertion::StartText
            | Assertion::EndText
            | Assertion::StartLine { .. }
            | Assertion::EndLine { .. }
            | Assertion::WordBoundary
            | Assertion::NotWordBoundary,
        ) => true,
        Expr::Concat(children) | Expr::Alt(children) => children.iter().all(is_plain),
        Expr::Group(child) => is_plain(child),
        Expr::Repeat { child, .. } => is_plain(child),
        _ => false,
    }
}

/// The class, if `expr` matches exactly one character of one.
fn class(expr: &Expr) -> Option<ClassUnicode> {
    let regex = match expr {
        Expr::Literal { val, casei } => {
            let mut chars = val.chars();
            let (c, None) = (chars.next()?, chars.next()) else { return None };
            return Some(one(c, *casei));
        }
        Expr::Any { .. } | Expr::Delegate { .. } => {
            let mut regex = String::new();
            expr.to_str(&mut regex, 3);
            regex
        }
        Expr::Group(child) => return class(child),
        Expr::Alt(children) => {
            let mut all = ClassUnicode::empty();
            for child in children {
                all.union(&class(child)?);
            }
            return Some(all);
        }
        _ => return None,
    };
    class_of(&regex)
}

/// The class that a regular expression for one character matches.
pub(crate) fn class_of(regex: &str) -> Option<ClassUnicode> {
    match regex_syntax::parse(regex).ok()?.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class),
        // A byte class that is a class of ASCII characters.
        HirKind::Class(Class::Bytes(class)) => class.to_unicode_class(),
        HirKind::Literal(literal) => {
            let text = core::str::from_utf8(&literal.0).ok()?;
            let mut chars = text.chars();
            let (c, None) = (chars.next()?, chars.next()) else { return None };
            Some(one(c, false))
        }
        _ => None,
    }
}

fn one(c: char, fold: bool) -> ClassUnicode {
    let mut class = ClassUnicode::new([ClassUnicodeRange::new(c, c)]);
    if fold {
        class.case_fold_simple();
    }
    class
}

/// All strings that `expr` matches, if there are few and none begins another (so that their order
/// says nothing).
fn language(expr: &Expr) -> Option<BTreeSet<String>> {
    let strings = words(expr)?;
    // Sorted, a string comes right before the first that it begins.
    let prefix_free = strings.iter().zip(strings.iter().skip(1)).all(|(a, b)| !b.starts_with(a));
    (prefix_free && !strings.contains("")).then_some(strings)
}

const MOST_STRINGS: usize = 128;

fn words(expr: &Expr) -> Option<BTreeSet<String>> {
    let words = match expr {
        Expr::Literal { val, casei } => {
            let mut strings = BTreeSet::from([String::new()]);
            for c in val.chars() {
                strings = product(&strings, &chars(&one(c, *casei))?)?;
            }
            strings
        }
        Expr::Delegate { .. } => chars(&class(expr)?)?,
        Expr::Concat(children) => {
            let mut strings = BTreeSet::from([String::new()]);
            for child in children {
                strings = product(&strings, &words(child)?)?;
            }
            strings
        }
        Expr::Alt(children) => {
            let mut strings = BTreeSet::new();
            for child in children {
                strings.extend(words(child)?);
            }
            strings
        }
        Expr::Group(child) => words(child)?,
        _ => return None,
    };
    (words.len() <= MOST_STRINGS).then_some(words)
}

fn product(left: &BTreeSet<String>, right: &BTreeSet<String>) -> Option<BTreeSet<String>> {
    (left.len() * right.len() <= MOST_STRINGS)
        .then(|| left.iter().flat_map(|l| right.iter().map(move |r| l.clone() + r)).collect())
}

fn chars(class: &ClassUnicode) -> Option<BTreeSet<String>> {
    let count: u64 =
        class.iter().map(|r| u64::from(u32::from(r.end()) - u32::from(r.start())) + 1).sum();
    (count <= MOST_STRINGS as u64).then(|| {
        class.iter().flat_map(|range| range.start()..=range.end()).map(|c| c.to_string()).collect()
    })
}
