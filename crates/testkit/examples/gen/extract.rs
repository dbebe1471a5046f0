//! Takes text out of unpacked packages. `dir` is the folder that holds `registry/name`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// A file of a package as it is.
pub(crate) fn verbatim(dir: &Path, package: &str, member: &str) -> Result<Vec<u8>, String> {
    let path = dir.join(package).join(member);
    fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// A text file of a package with every line end made `\n`.
pub(crate) fn text(dir: &Path, package: &str, member: &str) -> Result<String, String> {
    let bytes = verbatim(dir, package, member)?;
    let text = String::from_utf8(bytes).map_err(|error| format!("{member}: {error}"))?;
    Ok(text.replace("\r\n", "\n"))
}

/// Source files of a package in the order of their paths, one after the other, as many whole files
/// as fit into `max_bytes`.
pub(crate) fn sources(
    dir: &Path,
    package: &str,
    folder: &str,
    extension: &str,
    max_bytes: usize,
) -> Result<Vec<u8>, String> {
    let root = dir.join(package).join(folder);
    let mut paths = Vec::new();
    find(&root, extension, &mut paths)?;
    paths.sort();
    let mut joined = String::new();
    for path in paths {
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        if joined.len() + text.len() < max_bytes {
            joined.push_str(&text.replace("\r\n", "\n"));
            if !joined.ends_with('\n') {
                joined.push('\n');
            }
        }
    }
    Ok(joined.into_bytes())
}

fn find(folder: &Path, extension: &str, paths: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|e| format!("{}: {e}", folder.display()))?.path();
        if path.is_dir() {
            find(&path, extension, paths)?;
        } else if path.extension().is_some_and(|found| found == extension) {
            paths.push(path);
        }
    }
    Ok(())
}

/// The Universal Declaration in one of several languages: a paragraph of an article a line.
///
/// The title, the preamble and the headings are left out, for not every translation has all of
/// them. Where the translations do not divide an article into the same number of paragraphs, its
/// paragraphs make one line.
pub(crate) fn declaration(
    dir: &Path,
    package: &str,
    languages: &[(&str, &str)],
    wanted: &str,
) -> Result<Vec<u8>, String> {
    let mut all = BTreeMap::new();
    for &(member, _) in languages {
        let html = text(dir, package, &format!("declaration/{member}.html"))?;
        let articles = articles(&html);
        if articles.len() != 30 {
            return Err(format!("{member}: {} articles instead of 30", articles.len()));
        }
        all.insert(member, articles);
    }
    let mut lines = String::new();
    for (number, paragraphs) in all[wanted].iter().enumerate() {
        let same = all.values().all(|articles| articles[number].len() == paragraphs.len());
        let separator = if same { "\n" } else { " " };
        lines.push_str(&paragraphs.join(separator));
        lines.push('\n');
    }
    Ok(lines.into_bytes())
}

/// The paragraphs of each article of a declaration's page.
fn articles(html: &str) -> Vec<Vec<String>> {
    let articles = html.split("<article").skip(1);
    let article = |html: &str| {
        let paragraphs = html.split("<p>").skip(1);
        paragraphs.filter_map(|rest| rest.split("</p>").next()).map(plain).collect()
    };
    articles.map(article).collect()
}

/// HTML text without tags and references, its white space single spaces.
fn plain(html: &str) -> String {
    let mut text = String::new();
    let mut inside = false;
    for c in html.chars() {
        match c {
            '<' => inside = true,
            '>' if inside => inside = false,
            _ if !inside => text.push(c),
            _ => {}
        }
    }
    let references =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#x27;", "'"), ("&amp;", "&")];
    for (reference, character) in references {
        text = text.replace(reference, character);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The TypeScript compiler's messages in one language, one a line, in the order of their numbers:
/// those that every one of `languages` translates.
pub(crate) fn messages(
    dir: &Path,
    package: &str,
    languages: &[(&str, &str)],
    wanted: &str,
) -> Result<Vec<u8>, String> {
    let english = english_messages(&text(dir, package, "lib/typescript.js")?)?;
    let mut all = BTreeMap::new();
    for &(member, _) in languages.iter().filter(|(member, _)| *member != "en") {
        let path = format!("lib/{member}/diagnosticMessages.generated.json");
        let json = text(dir, package, &path)?;
        let messages: BTreeMap<String, String> =
            serde_json::from_str(&json).map_err(|error| format!("{path}: {error}"))?;
        all.insert(member, messages);
    }
    let mut lines = String::new();
    for (key, message) in english.values() {
        let in_all = all.values().all(|messages| messages.contains_key(key));
        let translation = if wanted == "en" { Some(message) } else { all[wanted].get(key) };
        if let (true, Some(translation)) = (in_all, translation) {
            lines.push_str(&translation.split_whitespace().collect::<Vec<_>>().join(" "));
            lines.push('\n');
        }
    }
    Ok(lines.into_bytes())
}

/// Number to key and English text, from the compiler's own table of calls
/// `diag(number, category, "key", "text"`.
fn english_messages(source: &str) -> Result<BTreeMap<u32, (String, String)>, String> {
    let mut messages = BTreeMap::new();
    for call in source.split(": diag(").skip(1) {
        let Some(number) = call.split(',').next().and_then(|text| text.parse().ok()) else {
            continue;
        };
        let Some(quote) = call.find('"') else { continue };
        let mut strings = serde_json::Deserializer::from_str(&call[quote..]).into_iter::<String>();
        let Some(Ok(key)) = strings.next() else { continue };
        let rest = &call[quote + strings.byte_offset()..];
        let Some(rest) = rest.strip_prefix(", ") else { continue };
        let mut strings = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        let Some(Ok(message)) = strings.next() else { continue };
        messages.insert(number, (key, message));
    }
    if messages.len() < 1000 {
        return Err(format!("only {} messages in the compiler's table", messages.len()));
    }
    Ok(messages)
}

/// The spoken names of emoji and symbols in one language, one a line, in the order of their code
/// points: those that every one of `languages` names.
pub(crate) fn emoji_names(
    dir: &Path,
    package: &str,
    languages: &[(&str, &str)],
    wanted: &str,
) -> Result<Vec<u8>, String> {
    let mut all = BTreeMap::new();
    for &(member, _) in languages {
        let path = format!("annotations/{member}/annotations.json");
        let json: Value = serde_json::from_str(&text(dir, package, &path)?)
            .map_err(|error| format!("{path}: {error}"))?;
        let annotations = json["annotations"]["annotations"]
            .as_object()
            .ok_or_else(|| format!("{path}: no annotations"))?;
        let names: BTreeMap<String, String> = annotations
            .iter()
            .filter_map(|(emoji, entry)| {
                let name = entry["tts"][0].as_str()?;
                Some((emoji.clone(), name.to_owned()))
            })
            .collect();
        all.insert(member, names);
    }
    let mut symbols: BTreeSet<&String> = all[wanted].keys().collect();
    symbols.retain(|symbol| all.values().all(|names| names.contains_key(*symbol)));
    let mut lines = String::new();
    for symbol in symbols {
        lines.push_str(&all[wanted][symbol]);
        lines.push('\n');
    }
    Ok(lines.into_bytes())
}
