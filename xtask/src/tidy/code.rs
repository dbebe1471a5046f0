//! Rules about Rust source.

use super::Problem;

/// Folders of the crates that take bytes, readers and iterators, and leave files to programs.
const LIBRARIES: &[&str] = &[
    "crates/tokenizer-core/src/",
    "crates/piece-table/src/",
    "crates/pretok/src/",
    "crates/normalize/src/",
    "crates/formats/src/",
    "crates/encodings/src/",
    "crates/bpe/src/",
    "crates/wordpiece/src/",
    "crates/unigram/src/",
    "crates/baseline/src/",
    "crates/tokenizer/src/",
    "crates/harness/src/",
];

/// Parts of the standard library that reach outside of the process.
const OUTSIDE: &[&str] = &["fs", "env", "net", "process"];

/// What a source file is part of, which decides what it may do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    Library,
    Program,
    Tests,
}

impl Place {
    /// From the path alone; the root files of programs are for Cargo to tell.
    pub(super) fn of(path: &str) -> Self {
        if path.contains("/tests/") || path.ends_with("/tests.rs") {
            Self::Tests
        } else if LIBRARIES.iter().any(|folder| path.starts_with(folder))
            && !["/src/bin/", "/src/program/", "/src/program.rs"].iter().any(|p| path.contains(p))
        {
            Self::Library
        } else {
            Self::Program
        }
    }
}

/// All rules about a source file.
pub(super) fn check(path: &str, text: &str, place: Place) -> Vec<Problem> {
    let code = without_tests(&without_text(text));
    let mut problems = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let number = number + 1;
        for unfinished in ["todo!", "unimplemented!", "dbg!"] {
            if has_word(line, unfinished) {
                problems.push(Problem::at(path, number, format!("{unfinished} is left")));
            }
        }
        if place != Place::Tests && line.contains(".unwrap()") {
            problems.push(Problem::at(path, number, "unwrap outside tests: expect says the proof"));
        }
    }
    if place == Place::Library {
        problems.extend(reaches_outside(path, &code));
    }
    problems
}

/// Uses of `std::fs` and its like, also within `use std::{..}`.
fn reaches_outside(path: &str, code: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (at, _) in code.match_indices("std::") {
        if code[..at].ends_with(is_word) {
            continue;
        }
        let rest = &code[at + "std::".len()..];
        let names = match rest.strip_prefix('{') {
            Some(group) => heads(group),
            None => vec![&rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())]],
        };
        for name in names.into_iter().filter(|name| OUTSIDE.contains(name)) {
            let line = code[..at].matches('\n').count() + 1;
            problems.push(Problem::at(path, line, format!("std::{name} in a library")));
        }
    }
    problems
}

/// The first names of a `use` group: `fs::{self, File}, io}` has `fs` and `io`.
fn heads(group: &str) -> Vec<&str> {
    let mut heads = Vec::new();
    let mut depth = 0;
    let mut start = 0;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' | ',' if depth == 0 => {
                let head = group[start..at].trim();
                heads.push(&head[..head.find(|c| !is_word(c)).unwrap_or(head.len())]);
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    heads
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Whether `word` stands in `line` and not at the end of a longer name.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| !line[..at].ends_with(is_word))
}

/// Source with the insides of comments, strings and character literals made spaces; line ends stay.
fn without_text(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skipped = match c {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => 1 + string(&rest[1..]),
            'r' | 'b' | 'c' if !code.ends_with(is_word) => prefixed_string(rest),
            '\'' => character(rest),
            _ => 0,
        };
        if skipped == 0 {
            code.push(c);
            rest = &rest[c.len_utf8()..];
        } else {
            code.extend(rest[..skipped].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            rest = &rest[skipped..];
        }
    }
    code
}

/// The length of a block comment, which may hold others.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while let Some(found) = text[at..].find(['/', '*']) {
        at += found;
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// The length of a string with escapes, its last quote included; `text` starts behind the first.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of a string such as `r#".."#`, `b".."` or `br".."`; 0 if there is none.
fn prefixed_string(text: &str) -> usize {
    let letters = text.len() - text.trim_start_matches(['b', 'c', 'r']).len();
    let raw = text[..letters].ends_with('r');
    let hashes = text[letters..].len() - text[letters..].trim_start_matches('#').len();
    let quote = letters + hashes;
    if letters > 2 || !text[quote..].starts_with('"') || (hashes > 0 && !raw) {
        return 0;
    }
    let start = quote + 1;
    if !raw {
        return start + string(&text[start..]);
    }
    let end = format!("\"{}", "#".repeat(hashes));
    text[start..].find(&end).map_or(text.len(), |found| start + found + end.len())
}

/// The length of a character literal; 0 for a lifetime.
fn character(text: &str) -> usize {
    let inside = &text[1..];
    if let Some(escape) = inside.strip_prefix('\\') {
        // The escaped character may itself be a quote.
        let first = escape.chars().next().map_or(0, char::len_utf8);
        return escape[first..].find('\'').map_or(text.len(), |at| 2 + first + at + 1);
    }
    let Some(c) = inside.chars().next() else { return 0 };
    if inside[c.len_utf8()..].starts_with('\'') { c.len_utf8() + 2 } else { 0 }
}

/// Code without the items that are compiled for tests alone; line ends stay.
fn without_tests(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = rest.find("#[cfg(") {
        let condition_at = at + "#[cfg(".len();
        let condition_end = condition_at + closing(&rest[condition_at..], '(', ')');
        let condition = &rest[condition_at..condition_end];
        let needs_tests =
            condition == "test" || (condition.starts_with("all(") && has_word(condition, "test"));
        if !needs_tests || condition.contains("not(") {
            kept.push_str(&rest[..condition_end]);
            rest = &rest[condition_end..];
            continue;
        }
        kept.push_str(&rest[..at]);
        let item = &rest[condition_end..];
        let end = match item.find(['{', ';']) {
            Some(brace) if item[brace..].starts_with('{') => {
                brace + 1 + closing(&item[brace + 1..], '{', '}') + 1
            }
            Some(semicolon) => semicolon + 1,
            None => item.len(),
        };
        let end = end.min(item.len());
        kept.extend(rest[at..condition_end + end].chars().filter(|c| *c == '\n'));
        rest = &item[end..];
    }
    kept.push_str(rest);
    kept
}

/// Where the bracket closes that was opened just before `text`.
fn closing(text: &str, open: char, close: char) -> usize {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        if c == open {
            depth += 1;
        } else if c == close {
            if depth == 0 {
                return at;
            }
            depth -= 1;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        check(path, text, Place::of(path)).into_iter().map(|problem| problem.to_string()).collect()
    }

    #[test]
    fn what_is_left_to_do_is_found() {
        assert_eq!(found("a.rs", "fn f() {\n    todo!()\n}\n"), ["a.rs:2: todo! is left"]);
        assert_eq!(found("a.rs", "unimplemented!(\"x\")").len(), 1);
        assert_eq!(found("a.rs", "let a = dbg!(b);").len(), 1);
        assert_eq!(found("a.rs", "#[cfg(test)]\nmod tests { fn f() { g() } }\ntodo!()").len(), 1);
        assert_eq!(found("a.rs", "my_todo!()"), Vec::<String>::new());
    }

    #[test]
    fn unwrap_is_found_outside_tests_alone() {
        assert_eq!(found("crates/a/src/lib.rs", "a\n.unwrap()").len(), 1);
        assert_eq!(found("crates/a/tests/b.rs", "a.unwrap()"), Vec::<String>::new());
        assert_eq!(found("crates/a/src/train/tests.rs", "a.unwrap()"), Vec::<String>::new());
        let module = "fn f() {}\n#[cfg(test)]\nmod tests {\n    fn g() { a.unwrap() }\n}\n";
        assert_eq!(found("a.rs", module), Vec::<String>::new());
        let all = module.replace("cfg(test)", "cfg(all(test, feature = \"std\"))");
        assert_eq!(found("a.rs", &all), Vec::<String>::new());
        let not = module.replace("cfg(test)", "cfg(not(test))");
        assert_eq!(found("a.rs", &not).len(), 1);
        let any = module.replace("cfg(test)", "cfg(any(test, unix))");
        assert_eq!(found("a.rs", &any).len(), 1);
        let behind = format!("{module}fn h() {{ b.unwrap() }}\n");
        assert_eq!(found("a.rs", &behind).len(), 1);
        assert_eq!(check("a.rs", &behind, Place::Program)[0].place, "a.rs:6");
        assert_eq!(found("a.rs", "#[cfg(test)]\nmod tests;\nb.unwrap();").len(), 1);
        assert_eq!(found("a.rs", "a.unwrap_or(b)"), Vec::<String>::new());
    }

    #[test]
    fn comments_strings_and_characters_are_no_code() {
        let texts = [
            "// .unwrap()\n",
            "/// ```\n/// a.unwrap()\n/// ```\n",
            "/* todo!() /* nested */ .unwrap() */",
            "let a = \"todo!() \\\" .unwrap()\";",
            "let a = r#\"todo!() \" .unwrap()\"#;",
            "let a = b\"todo!()\"; let b = br\"todo!()\"; let c = c\"todo!()\";",
            "let a = '\"'; // todo!()\nlet b = '\\''; /* todo!() */ let c = '\\\\'; // todo!()",
        ];
        for text in texts {
            assert_eq!(found("a.rs", text), Vec::<String>::new(), "{text}");
        }
        let code = ["fn f<'a>(x: &'a str) { todo!() }", "let r#type = \"\"; todo!()"];
        for text in code.into_iter().chain(["for c in [b'\"', b'x'] {} todo!()"]) {
            assert_eq!(found("a.rs", text).len(), 1, "{text}");
        }
    }

    #[test]
    fn libraries_that_reach_outside_are_found() {
        let library = "crates/bpe/src/model.rs";
        let cases = [
            "use std::fs;",
            "use std::fs::File;",
            "fn f() { std::env::var(\"A\"); }",
            "use std::{io, fs::{self, File}};",
            "use std::{\n    collections::{BTreeMap, HashMap},\n    env,\n};",
            "use ::std::process;",
        ];
        for case in cases {
            assert_eq!(found(library, case).len(), 1, "{case}");
        }
        let allowed = [
            "use std::io;",
            "use std::{collections::BTreeMap, fmt};",
            "use std::collections::{btree_map::Entry, fs_like};",
            "#[cfg(test)]\nmod tests { use std::fs; }",
            "my_std::fs();",
            "// std::fs\n",
        ];
        for case in allowed {
            assert_eq!(found(library, case), Vec::<String>::new(), "{case}");
        }
        for program in [
            "crates/harness/src/bin/harness.rs",
            "crates/harness/src/program/output.rs",
            "crates/tokenizer-cli/src/input.rs",
        ] {
            assert_eq!(found(program, cases[0]), Vec::<String>::new(), "{program}");
        }
        assert_eq!(check("crates/harness/src/a.rs", cases[0], Place::Program), []);
    }
}
