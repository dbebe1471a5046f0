//! The documents that a command works on: files, directories, standard input; plain, gzip or
//! Zstandard; a document a file, a line, or a JSON line.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::ProgressBar;

use crate::failure::Failure;
use crate::output;

/// How inputs become documents.
#[derive(Args, Clone, Debug)]
pub(crate) struct InputOptions {
    /// The field of a .jsonl line that holds the text
    #[arg(long, value_name = "NAME", default_value = "text")]
    pub(crate) field: String,
    /// Every line is a document of its own (its line end is not part of it)
    #[arg(long)]
    pub(crate) lines: bool,
    /// Replace bytes that are not UTF-8 by U+FFFD instead of refusing the file
    #[arg(long)]
    pub(crate) lossy: bool,
    /// Lines are read as SentencePiece's trainers read them, those of up to so many bytes: a carriage
    /// return is part of a line, and some lines are left out
    #[arg(skip)]
    pub(crate) sentences: Option<usize>,
}

/// A number of bytes with an optional `K`, `M`, `G` or `T` (powers of 1024).
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let upper = text.trim().to_ascii_uppercase();
    let upper = upper.strip_suffix("IB").or(upper.strip_suffix('B')).unwrap_or(&upper);
    let (digits, power) = match upper.char_indices().next_back() {
        Some((at, unit)) if !unit.is_ascii_digit() => {
            let power = "KMGT".find(unit).ok_or("a size is a number and K, M, G or T")?;
            (&upper[..at], 10 * (power as u32 + 1))
        }
        _ => (upper, 0),
    };
    let number: f64 = digits.trim().parse().map_err(|_| "a size is a number and K, M, G or T")?;
    if !(number >= 0.0 && number.is_finite()) {
        return Err("a size is not negative".to_owned());
    }
    Ok((number * (1u64 << power) as f64) as u64)
}

/// One input file.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Where it is; `-` is standard input.
    pub(crate) path: PathBuf,
    /// Its size on disk, where known.
    pub(crate) bytes: u64,
}

/// Finds the files behind the arguments: directories are walked in the order of their names.
pub(crate) fn sources(paths: &[PathBuf]) -> Result<Vec<Source>, Failure> {
    let mut found = Vec::new();
    for path in paths {
        if path == Path::new("-") {
            found.push(Source { path: path.clone(), bytes: 0 });
            continue;
        }
        let metadata = fs::metadata(path).map_err(|e| Failure::file(path, e))?;
        if metadata.is_dir() {
            walk(path, &mut found)?;
        } else {
            found.push(Source { path: path.clone(), bytes: metadata.len() });
        }
    }
    if found.is_empty() && !paths.is_empty() {
        return Err(Failure::input("the directories hold no file"));
    }
    Ok(found)
}

/// Adds the files of a directory, in the order of their names. Links to directories are not
/// followed, so the walk ends.
fn walk(root: &Path, found: &mut Vec<Source>) -> Result<(), Failure> {
    let mut waiting = vec![root.to_owned()];
    while let Some(path) = waiting.pop() {
        let metadata = fs::symlink_metadata(&path).map_err(|e| Failure::file(&path, e))?;
        if metadata.is_dir() {
            let entries = fs::read_dir(&path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
            let entries = entries.map_err(|e| Failure::file(&path, e))?;
            let mut inside: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
            inside.sort_unstable_by(|a, b| b.cmp(a));
            waiting.append(&mut inside);
        } else if let Ok(metadata) = fs::metadata(&path)
            && metadata.is_file()
        {
            found.push(Source { path, bytes: metadata.len() });
        }
    }
    Ok(())
}

/// Calls `each` with every document of a source, in order; `bar` moves by the bytes of the file.
pub(crate) fn documents(
    source: &Source,
    options: &InputOptions,
    bar: &ProgressBar,
    each: &mut dyn FnMut(String) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let path = &source.path;
    let mut reader = open(path, bar)?;
    let is_json_lines = inner_extension(path).is_some_and(|ending| ending == "jsonl");
    if !is_json_lines && !options.lines {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).map_err(|e| Failure::file(path, e))?;
        return each(text(bytes, path, 0, options)?);
    }
    let (mut line, mut number, mut offset) = (Vec::new(), 0u64, 0u64);
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line).map_err(|e| Failure::file(path, e))?;
        if read == 0 {
            return Ok(());
        }
        number += 1;
        if line.last() == Some(&b'\n') {
            line.pop();
            if line.last() == Some(&b'\r') && options.sentences.is_none() {
                line.pop();
            }
        }
        let line_text = text(std::mem::take(&mut line), path, offset, options)?;
        offset += read as u64;
        if !is_json_lines {
            each(line_text)?;
        } else if !line_text.trim().is_empty() {
            each(field(&line_text, path, number, &options.field)?)?;
        }
    }
}

/// What [`parts`] finds.
pub(crate) enum Part<'a> {
    /// Text of the document.
    Text(&'a str),
    /// The end of the document.
    End,
}

/// How much of a file is read at once.
const BLOCK: usize = 1 << 20;

/// Calls `each` with the text of every document of a source, in parts, so that no document needs
/// to fit into memory; `bar` moves by the bytes of the file.
pub(crate) fn parts(
    source: &Source,
    options: &InputOptions,
    bar: &ProgressBar,
    each: &mut dyn FnMut(Part<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let path = &source.path;
    let is_json_lines = inner_extension(path).is_some_and(|ending| ending == "jsonl");
    if is_json_lines || options.lines {
        return documents(source, options, bar, &mut |document| {
            each(Part::Text(&document))?;
            each(Part::End)
        });
    }
    let mut reader = open(path, bar)?;
    let mut block = Vec::with_capacity(BLOCK);
    let mut offset = 0;
    loop {
        let room = (BLOCK - block.len()) as u64;
        let read = reader.by_ref().take(room).read_to_end(&mut block);
        let is_end = read.map_err(|e| Failure::file(path, e))? < room as usize;
        let mut done = 0;
        for chunk in block.utf8_chunks() {
            if !chunk.valid().is_empty() {
                each(Part::Text(chunk.valid()))?;
            }
            done += chunk.valid().len();
            let invalid = chunk.invalid();
            if !is_end && !invalid.is_empty() && done + invalid.len() == block.len() {
                // Perhaps a character that goes on in the next block: it is seen again.
                break;
            }
            done += invalid.len();
            if !invalid.is_empty() {
                if !options.lossy {
                    return Err(not_utf8(path, offset + (done - invalid.len()) as u64));
                }
                each(Part::Text("\u{FFFD}"))?;
            }
        }
        offset += done as u64;
        block.drain(..done);
        if is_end {
            return each(Part::End);
        }
    }
}

/// The whole of a file as bytes, unpacked; for models and ids.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    open(path, &ProgressBar::hidden())?
        .read_to_end(&mut bytes)
        .map_err(|e| Failure::file(path, e))?;
    Ok(bytes)
}

fn open(path: &Path, bar: &ProgressBar) -> Result<Box<dyn BufRead>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    if path.is_dir() {
        return Err(Failure::file(path, "is a directory"));
    }
    let file = bar.wrap_read(output::open(path)?);
    Ok(match path.extension().and_then(OsStr::to_str) {
        Some("gz") => Box::new(BufReader::with_capacity(
            1 << 16,
            flate2::read::MultiGzDecoder::new(BufReader::new(file)),
        )),
        Some("zst") => {
            let decoder = zstd::Decoder::new(file).map_err(|e| Failure::file(path, e))?;
            Box::new(BufReader::with_capacity(1 << 16, decoder))
        }
        _ => Box::new(BufReader::with_capacity(1 << 16, file)),
    })
}

/// The ending of a file's name, without that of its packing.
fn inner_extension(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name);
    Path::new(name).extension().map(|ending| ending.to_string_lossy().into_owned())
}

fn text(
    bytes: Vec<u8>,
    path: &Path,
    offset: u64,
    options: &InputOptions,
) -> Result<String, Failure> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) if options.lossy => Ok(String::from_utf8_lossy(error.as_bytes()).into_owned()),
        Err(error) => Err(not_utf8(path, offset + error.utf8_error().valid_up_to() as u64)),
    }
}

fn not_utf8(path: &Path, at: u64) -> Failure {
    let what = format!("byte {at} is not UTF-8 (--lossy replaces such bytes by U+FFFD)");
    Failure::file(path, what)
}

fn field(line: &str, path: &Path, number: u64, name: &str) -> Result<String, Failure> {
    let at = |what: String| Failure::Input(format!("{}:{number}: {what}", path.display()));
    let value: serde_json::Value =
        serde_json::from_str(line).map_err(|e| at(format!("not JSON: {e}")))?;
    match value.get(name) {
        Some(serde_json::Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(at(format!("the field {name:?} is not a string"))),
        None => Err(at(format!("no field {name:?} (--field NAME picks another)"))),
    }
}
