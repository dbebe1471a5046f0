//! Rules about Markdown.

use super::{Problem, Source};

/// Links to files of this repository are relative and lead somewhere, and so do their anchors.
pub(super) fn links(path: &str, text: &str, sources: &[Source]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (number, target) in targets(text) {
        let mut fail = |what: String| problems.push(Problem::at(path, number, what));
        if target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        if target.starts_with('/') {
            fail(format!("the link {target} is absolute"));
            continue;
        }
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let Some(file) = (if file.is_empty() { Some(path.to_owned()) } else { join(path, file) })
        else {
            fail(format!("the link {target} leaves the repository"));
            continue;
        };
        let folder = format!("{}/", file.trim_end_matches('/'));
        let source = sources.iter().find(|source| source.path == file);
        if source.is_none() && !sources.iter().any(|source| source.path.starts_with(&folder)) {
            fail(format!("the link {target} leads nowhere"));
            continue;
        }
        let linked = source.and_then(|source| source.text.as_deref()).unwrap_or_default();
        let is_markdown = file.ends_with(".md");
        if is_markdown && !anchor.is_empty() && !anchors(linked).any(|found| found == anchor) {
            fail(format!("{file} has no heading #{anchor}"));
        }
    }
    problems
}

/// Line and target of every link and picture outside of code.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut targets = Vec::new();
    for (number, line) in outside_of_blocks(text) {
        // Every other part of a line cut at backticks is code.
        for part in line.split('`').step_by(2) {
            for (at, _) in part.match_indices("](") {
                let rest = &part[at + 2..];
                let end = rest.find([')', ' ']).unwrap_or(rest.len());
                targets.push((number, rest[..end].trim_matches(['<', '>'])));
            }
            // A reference: `[name]: target`.
            if let Some((name, target)) = part.split_once("]: ")
                && name.starts_with('[')
                && !name.starts_with("[^")
            {
                targets.push((number, target.split(' ').next().unwrap_or_default()));
            }
        }
    }
    targets
}

/// The anchors of the headings, as hosts of repositories make them.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    let headings = outside_of_blocks(text).map(|(_, line)| line).filter(|l| l.starts_with('#'));
    headings.map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

/// Lines outside of fenced code, with their numbers from 1.
fn outside_of_blocks(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        (!inside && !fence).then_some((number + 1, line))
    })
}

/// The path of `target` seen from the file `path`; none if it leaves the repository.
fn join(path: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Vec<String> {
        let source = |path: &str, text: &str| Source {
            path: path.to_owned(),
            bytes: text.len() as u64,
            text: Some(text.to_owned()),
        };
        let sources = [
            source("README.md", "# Top\n## Using `one` crate, alone\n"),
            source("docs/a.md", text),
            source("docs/deep/b.md", "# B\n"),
        ];
        links("docs/a.md", text, &sources).into_iter().map(|problem| problem.what).collect()
    }

    #[test]
    fn links_that_lead_somewhere_are_fine() {
        let text = "# Title here\n[a](../README.md) ![b](deep/b.md) [c](deep) [d](deep/) [e](#title-here)\n\
            [f](https://example.org/x) [g](../README.md#using-one-crate-alone) `[h](none.md)`\n\
            ```\n[i](none.md)\n```\n[j]: deep/b.md\n[k](deep/b.md \"title\")\n";
        assert_eq!(check(text), Vec::<String>::new());
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        for text in [
            "[a](none.md)",
            "[a](/README.md)",
            "[a](../../README.md)",
            "[a](#none)",
            "[a](../README.md#none)",
            "[a]: none.md",
            "![a](deep/none.png)",
            "[a](dee)",
        ] {
            assert_eq!(check(text).len(), 1, "{text}");
        }
    }
}
