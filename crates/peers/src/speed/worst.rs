//! Hard texts: how long a text without a place to cut takes, and whether twice the text takes
//! twice as long.

use std::fs;
use std::path::Path;
use std::time::Duration;

use testkit::pathological::{self, Kind};

use super::contest::{Contest, read, time};
use super::models::Model;
use super::report::{Report, Worst};
use crate::runner::Runner;

/// Longer than this no hard text takes.
const LIMIT: Duration = Duration::from_secs(30);

/// The kinds of texts.
pub const KINDS: &[&str] = &[
    "one_letter",
    "random_letters",
    "spaces",
    "newlines",
    "blank_mix",
    "digits",
    "zwj_emoji",
    "han_without_punctuation",
    "thai_without_spaces",
    "markup_soup",
    "lossy_bytes",
    "any_characters",
];

/// Bytes of the texts that everybody is given.
pub const COMMON: usize = 1 << 20;
/// Bytes of the texts of a quick run.
pub const QUICK: usize = 1 << 17;
/// Bytes of the texts that ours is given as well.
pub const LARGE: usize = 1 << 24;

/// All hard texts of one size to one contestant in a fresh process; one that fails is started anew
/// for the next text.
pub fn measure(
    contest: &Contest,
    model: &Model,
    folder: &Path,
    name: &str,
    bytes: usize,
    round: usize,
    report: &mut Report,
) {
    let mut running: Option<Runner> = None;
    for kind in KINDS.iter().filter_map(|name| pathological::kind(name)) {
        let row = row(report, &model.name, kind.name, name, bytes);
        if row.failure.is_some() {
            continue;
        }
        let runner = match running.take().map_or_else(|| contest.start(name, &model.value), Ok) {
            Ok(runner) => running.insert(runner),
            Err(why) => {
                row.failure = Some(why);
                continue;
            }
        };
        let mut of = |bytes: usize| {
            let file = text(folder, kind, bytes)?;
            read(runner, &file)?;
            time(runner, "whole", LIMIT)
        };
        match of(bytes / 2).and_then(|half| Ok((half, of(bytes)?))) {
            Ok(((_, half), (_, whole))) => {
                row.seconds.set(round, whole);
                row.doubling.set(round, whole / half);
            }
            Err(why) => {
                row.failure = Some(why);
                running = None;
            }
        }
    }
}

/// The file of a hard text, written when it is first asked for.
fn text(folder: &Path, kind: &Kind, bytes: usize) -> Result<std::path::PathBuf, String> {
    let file = folder.join(format!("worst-{}-{bytes}.txt", kind.name));
    if !file.exists() {
        fs::write(&file, kind.text(bytes)).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    Ok(file)
}

/// Removes the files of the hard texts, which are large and can be made again.
pub fn clean(folder: &Path) {
    for kind in KINDS {
        for bytes in [COMMON, LARGE, QUICK].into_iter().flat_map(|bytes| [bytes / 2, bytes]) {
            // It may never have been made.
            let _ = fs::remove_file(folder.join(format!("worst-{kind}-{bytes}.txt")));
        }
    }
}

fn row<'r>(
    report: &'r mut Report,
    model: &str,
    text: &str,
    name: &str,
    bytes: usize,
) -> &'r mut Worst {
    let is = |row: &Worst| {
        (row.model.as_str(), row.text.as_str(), row.contestant.as_str(), row.bytes)
            == (model, text, name, bytes)
    };
    let at = report.worst.iter().position(is).unwrap_or_else(|| {
        report.worst.push(Worst {
            model: model.to_owned(),
            text: text.to_owned(),
            contestant: name.to_owned(),
            bytes,
            ..Worst::default()
        });
        report.worst.len() - 1
    });
    &mut report.worst[at]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_exists() {
        for name in KINDS {
            assert!(pathological::kind(name).is_some(), "{name}");
        }
    }
}
