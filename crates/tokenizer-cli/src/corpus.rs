//! Text to piece counts, with progress, within a bound of memory if one is given.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read as _, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use formats::counts::{self, CountReader, CountWriter, Merge, Positions};
use formats::{Format, detect};
use tokenizer::{CorpusCounter, CountingError, Run, Sentences, Spill};
use tokenizer_core::PieceCounts;

use crate::failure::Failure;
use crate::input::{self, InputOptions, Part};
use crate::model::chain;
use crate::output::{self, Progress, Unit};
use crate::text_rules::TextRules;

/// What trainers work on, and where it came from.
pub(crate) struct Counted {
    pub(crate) counts: PieceCounts,
    /// `None` where counts were given.
    pub(crate) documents: Option<u64>,
    pub(crate) bytes: Option<u64>,
    /// The first documents, to compare models on.
    pub(crate) sample: Vec<String>,
    /// Of lines that are read as SentencePiece reads them, the last one.
    pub(crate) last_line: Option<String>,
}

/// Which documents are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampling {
    /// The share of documents that are taken.
    pub(crate) share: f64,
    pub(crate) seed: u64,
}

impl Sampling {
    /// Every document.
    pub(crate) const ALL: Self = Self { share: 1.0, seed: 0 };

    /// Whether a document is taken: the same ones for any order of reading and number of threads.
    fn takes(self, document: u64) -> bool {
        // The first number of a generator for each document.
        let seed = self.seed ^ document.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.share >= 1.0 || tokenizer_core::Rng::new(seed).next_f64() < self.share
    }
}

/// How much text is kept to compare a written file with the trained model.
const SAMPLE: usize = 256 << 10;
/// What the program takes besides tables and text.
const PROGRAM: u64 = 48 << 20;
/// The least bound of memory that can be kept.
const LEAST_MEMORY: u64 = 128 << 20;

/// Counts the pieces of all documents, if the counts and `need` bytes (of their number and the
/// sum of their lengths) fit in `memory`.
pub(crate) fn count(
    paths: &[PathBuf],
    options: &InputOptions,
    sampling: Sampling,
    rules: &TextRules,
    memory: Option<u64>,
    need: &dyn Fn(u64, u64) -> u64,
    progress: Progress,
) -> Result<Counted, Failure> {
    let Some(memory) = memory else {
        let mut counter = rules.counter();
        let mut sentences = sentences(options, rules);
        let sample = read(paths, options, sampling, &mut counter, sentences.as_mut(), progress)?;
        let (documents, bytes) = (Some(counter.documents()), Some(counter.bytes()));
        let counts = counter.finish().map_err(counting)?;
        let last_line = last_line(sentences, progress);
        return Ok(Counted { counts, documents, bytes, sample, last_line });
    };
    let mut runs = Runs::default();
    let read = count_runs(paths, options, sampling, rules, memory, &mut runs, progress)?;
    let counts = runs.collect(read.bytes, memory, need)?;
    Ok(Counted {
        counts,
        documents: Some(read.documents),
        bytes: Some(read.bytes),
        sample: read.sample,
        last_line: read.last_line,
    })
}

/// Counts the pieces of all documents into a shard, within `memory`. Returns how many pieces there
/// are, distinct ones and in all.
pub(crate) fn count_into(
    paths: &[PathBuf],
    options: &InputOptions,
    rules: &TextRules,
    memory: u64,
    output: &mut dyn Write,
    progress: Progress,
) -> Result<(u64, u64), Failure> {
    let mut runs = Runs::default();
    let read = count_runs(paths, options, Sampling::ALL, rules, memory, &mut runs, progress)?;
    let readers = runs.readers()?;
    merge_shards(readers, &[], Positions::Shared, read.bytes, output)
}

/// What was read.
struct Read {
    documents: u64,
    bytes: u64,
    sample: Vec<String>,
    last_line: Option<String>,
}

fn count_runs(
    paths: &[PathBuf],
    options: &InputOptions,
    sampling: Sampling,
    rules: &TextRules,
    memory: u64,
    runs: &mut Runs,
    progress: Progress,
) -> Result<Read, Failure> {
    if memory < LEAST_MEMORY {
        return Err(Failure::usage("--max-memory must be 128M or more"));
    }
    // The rest is for waiting text and what the allocator cannot give back at once.
    let tables = (memory - PROGRAM) / 10 * 8;
    let tables = usize::try_from(tables).unwrap_or(usize::MAX);
    let mut counter = rules.counter().with_limit(tables, runs);
    let mut sentences = sentences(options, rules);
    let sample = read(paths, options, sampling, &mut counter, sentences.as_mut(), progress)?;
    let documents = counter.documents();
    let bytes = counter.finish_runs().map_err(counting)?;
    Ok(Read { documents, bytes, sample, last_line: last_line(sentences, progress) })
}

/// For lines that are read as SentencePiece reads them.
fn sentences<'r>(options: &InputOptions, rules: &'r TextRules) -> Option<Sentences<'r>> {
    let (bytes, preparation) = options.sentences.zip(rules.tidy())?;
    Some(Sentences::new(preparation.normalizer()).with_max_len(bytes))
}

/// The last one of these lines. Says which lines were left out.
fn last_line(sentences: Option<Sentences<'_>>, progress: Progress) -> Option<String> {
    let sentences = sentences?;
    if sentences.too_long() > 0 {
        progress.warn(format!(
            "left out {} lines that are longer than --max-sentence-length",
            sentences.too_long()
        ));
    }
    if sentences.marked() > 0 {
        progress.warn(format!(
            "left out {} lines with U+2585, which SentencePiece does not read",
            sentences.marked()
        ));
    }
    sentences.finish()
}

fn counting(error: CountingError) -> Failure {
    let hint = match error {
        CountingError::TooLongDocument(_) => " (--lines makes every line a document)",
        _ => "",
    };
    Failure::input(format!("{}{hint}", chain(&error)))
}

/// Hands all documents to a counter; returns the first ones.
fn read(
    paths: &[PathBuf],
    options: &InputOptions,
    sampling: Sampling,
    counter: &mut CorpusCounter<'_>,
    mut sentences: Option<&mut Sentences<'_>>,
    progress: Progress,
) -> Result<Vec<String>, Failure> {
    let sources = input::sources(paths)?;
    let bar = progress.bar("reading", sources.iter().map(|s| s.bytes).sum(), Unit::Bytes);
    let (mut sample, mut sampled) = (vec![String::new()], 0);
    let (mut document, mut takes) = (0, sampling.takes(0));
    for source in &sources {
        input::parts(source, options, &bar, &mut |part| match part {
            Part::Text(_) if !takes => Ok(()),
            Part::Text(text) => {
                // Such a text is a whole line.
                if let Some(sentences) = &mut sentences
                    && !sentences.takes(text)
                {
                    takes = false;
                    return Ok(());
                }
                if sampled < SAMPLE {
                    let mut end = text.len().min(SAMPLE - sampled);
                    while !text.is_char_boundary(end) {
                        end -= 1;
                    }
                    sampled += end.max(1);
                    sample.last_mut().expect("it is never empty").push_str(&text[..end]);
                }
                counter.push(text).map_err(counting)
            }
            Part::End => {
                document += 1;
                if !std::mem::replace(&mut takes, sampling.takes(document)) {
                    return Ok(());
                }
                if sampled < SAMPLE {
                    sampled += 1;
                    sample.push(String::new());
                }
                counter.end_document().map_err(counting)
            }
        })?;
    }
    bar.finish_and_clear();
    Ok(sample)
}

/// Sorted runs in temporary files that have no name: nothing can be left behind.
#[derive(Default)]
struct Runs {
    files: Vec<File>,
}

impl Spill for Runs {
    fn run(&mut self, run: &Run<'_>) -> io::Result<()> {
        let file = tempfile::tempfile()?;
        let mut writer = CountWriter::new(BufWriter::new(file), run.extent())?;
        run.try_for_each(|piece| writer.push(piece))?;
        let file = writer.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        self.files.push(file);
        Ok(())
    }
}

impl Runs {
    fn readers(&self) -> Result<Vec<CountReader<BufReader<File>>>, Failure> {
        let mut readers = Vec::with_capacity(self.files.len());
        for file in &self.files {
            let fail = |error: io::Error| Failure::input(format!("a temporary file: {error}"));
            let mut file = file.try_clone().map_err(fail)?;
            file.seek(SeekFrom::Start(0)).map_err(fail)?;
            readers.push(reader(file).map_err(|e| Failure::input(chain(&e)))?);
        }
        Ok(readers)
    }

    /// All runs as one table. They are read twice: first to see whether it fits.
    fn collect(
        &self,
        extent: u64,
        memory: u64,
        need: &dyn Fn(u64, u64) -> u64,
    ) -> Result<PieceCounts, Failure> {
        let name = |_| "a temporary file".to_owned();
        let size = measure(self.readers()?, Positions::Shared, &name)?;
        fits(size, memory, need)?;
        let mut counts = gather(self.readers()?, Positions::Shared, size, &name)?;
        counts.extend_to(extent);
        Ok(counts)
    }
}

fn reader(file: File) -> Result<CountReader<BufReader<File>>, formats::ReadError> {
    CountReader::new(BufReader::with_capacity(1 << 16, file))
}

/// How many pieces shards have together, and how many bytes these have.
fn measure(
    shards: Vec<CountReader<BufReader<File>>>,
    positions: Positions,
    name: &dyn Fn(usize) -> String,
) -> Result<(u64, u64), Failure> {
    let (mut pieces, mut bytes) = (0, 0);
    each(shards, positions, name, &mut |piece| {
        pieces += 1;
        bytes += piece.piece.len() as u64;
        Ok(())
    })?;
    Ok((pieces, bytes))
}

fn gather(
    shards: Vec<CountReader<BufReader<File>>>,
    positions: Positions,
    size: (u64, u64),
    name: &dyn Fn(usize) -> String,
) -> Result<PieceCounts, Failure> {
    let mut counts = PieceCounts::with_capacity(size.0 as usize, size.1 as usize);
    let extent = each(shards, positions, name, &mut |piece| {
        counts.push_sorted(piece).map_err(|error| Failure::input(chain(&error)))
    })?;
    counts.extend_to(extent);
    Ok(counts)
}

fn each(
    shards: Vec<CountReader<BufReader<File>>>,
    positions: Positions,
    name: &dyn Fn(usize) -> String,
    found: &mut dyn FnMut(tokenizer_core::PieceCount<'_>) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let mut merge = Merge::new(shards, positions).map_err(|error| Failure::input(chain(&error)))?;
    loop {
        match merge.next() {
            Ok(Some(piece)) => found(piece)?,
            Ok(None) => return Ok(merge.extent()),
            Err(error) => {
                let text = chain(&error);
                return Err(Failure::Input(format!("{}: {text}", name(merge.failed_shard()))));
            }
        }
    }
}

/// Refuses a training that would pass the bound, before it begins.
fn fits(
    (pieces, bytes): (u64, u64),
    memory: u64,
    need: &dyn Fn(u64, u64) -> u64,
) -> Result<(), Failure> {
    let need = PROGRAM + pieces.saturating_mul(32) + bytes + need(pieces, bytes);
    if need <= memory {
        return Ok(());
    }
    let megabytes = |bytes: u64| bytes.div_ceil(1 << 20);
    Err(Failure::input(format!(
        "training on {pieces} distinct pieces of {bytes} bytes together needs about {} MB of memory, \
         --max-memory is {} MB",
        megabytes(need),
        megabytes(memory)
    )))
}

/// Reads shards of counts, of any form, as of texts that follow one another.
pub(crate) fn read_counts(
    paths: &[PathBuf],
    memory: Option<u64>,
    need: &dyn Fn(u64, u64) -> u64,
) -> Result<Counted, Failure> {
    let mut counts = PieceCounts::default();
    if let (Some(memory), Some(readers)) = (memory, binary_shards(paths)?) {
        let name = |shard: usize| paths[shard].display().to_string();
        let size = measure(readers, Positions::Consecutive, &name)?;
        fits(size, memory, need)?;
        let readers = binary_shards(paths)?.unwrap_or_default();
        counts = gather(readers, Positions::Consecutive, size, &name)?;
    } else {
        for path in paths {
            let shard = read_shard(path)?;
            if counts.is_empty() && counts.extent() == 0 {
                counts = shard;
                continue;
            }
            counts.append(&shard).map_err(|error| Failure::file(path, error))?;
        }
        if let Some(memory) = memory {
            fits((counts.len() as u64, counts.piece_bytes() as u64), memory, need)?;
        }
    }
    Ok(Counted { counts, documents: None, bytes: None, sample: Vec::new(), last_line: None })
}

/// Whether a file begins as a table in Parquet does. What is no regular file does not: nothing of it
/// is taken.
fn is_parquet(path: &Path) -> Result<bool, Failure> {
    if !path.is_file() {
        return Ok(false);
    }
    let (mut file, mut start) = (output::open(path)?, [0; 4]);
    match file.read_exact(&mut start) {
        Ok(()) => Ok(detect(&start) == Some(Format::CountsParquet)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(Failure::file(path, error)),
    }
}

/// Reads a table in Parquet, group by group, without the whole file in memory.
#[cfg(feature = "parquet")]
fn read_parquet(path: &Path) -> Result<PieceCounts, Failure> {
    let file = output::open(path)?;
    // What a damaged file makes the reader panic about is in its error.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let counts = counts::parquet::read(file);
    std::panic::set_hook(hook);
    counts.map_err(|error| Failure::file(path, chain(&error)))
}

/// Writes a table in Parquet.
#[cfg(feature = "parquet")]
pub(crate) fn write_parquet(path: &Path, counts: &PieceCounts) -> Result<(), Failure> {
    let mut file = output::AtomicFile::create(path)?;
    counts::parquet::write(counts, &mut file).map_err(|error| Failure::file(path, error))?;
    file.commit()
}

#[cfg(not(feature = "parquet"))]
fn read_parquet(path: &Path) -> Result<PieceCounts, Failure> {
    Err(without_parquet(path))
}

#[cfg(not(feature = "parquet"))]
pub(crate) fn write_parquet(path: &Path, _: &PieceCounts) -> Result<(), Failure> {
    Err(without_parquet(path))
}

#[cfg(not(feature = "parquet"))]
fn without_parquet(path: &Path) -> Failure {
    Failure::file(path, "this program was built without Parquet (cargo's --features parquet)")
}

/// Readers of the shards, if all of them are binary and not packed.
fn binary_shards(paths: &[PathBuf]) -> Result<Option<Vec<CountReader<BufReader<File>>>>, Failure> {
    let mut readers = Vec::with_capacity(paths.len());
    for path in paths {
        match reader(output::open(path)?) {
            Ok(reader) => readers.push(reader),
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(readers))
}

/// Reads one shard of any form.
pub(crate) fn read_shard(path: &Path) -> Result<PieceCounts, Failure> {
    if is_parquet(path)? {
        return read_parquet(path);
    }
    let bytes = input::bytes(path)?;
    let is_tsv = path.extension().is_some_and(|ending| ending == "tsv");
    let result = match detect(&bytes) {
        Some(Format::Counts) => counts::read(&bytes[..]),
        _ if is_tsv || detect(&bytes) == Some(Format::CountsTsv) => counts::parse_tsv(&bytes),
        _ => return Err(Failure::file(path, "holds no piece counts")),
    };
    result.map_err(|error| Failure::file(path, chain(&error)))
}

/// Merges binary shards into `write`, a piece at a time. The merged text has at least `extent`
/// positions.
pub(crate) fn merge_shards<R: io::Read>(
    shards: Vec<CountReader<R>>,
    paths: &[PathBuf],
    positions: Positions,
    extent: u64,
    output: &mut dyn Write,
) -> Result<(u64, u64), Failure> {
    let out = |error: io::Error| Failure::Input(format!("the output: {error}"));
    let mut merge = Merge::new(shards, positions).map_err(|error| Failure::input(chain(&error)))?;
    let mut writer = CountWriter::new(output, merge.extent().max(extent)).map_err(out)?;
    let (mut pieces, mut total) = (0, 0);
    loop {
        match merge.next() {
            Ok(Some(piece)) => {
                pieces += 1;
                total += piece.count;
                writer.push(piece).map_err(out)?;
            }
            Ok(None) => break,
            Err(error) => {
                let text = chain(&error);
                return Err(match paths.get(merge.failed_shard()) {
                    Some(path) => Failure::file(path, text),
                    None => Failure::Input(format!("a temporary file: {text}")),
                });
            }
        }
    }
    writer.finish().map_err(out)?;
    Ok((pieces, total))
}
