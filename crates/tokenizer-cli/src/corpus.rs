//! Text to piece counts, with progress.

use std::path::{Path, PathBuf};

use formats::counts::{self, CountReader, Merge, Positions};
use formats::{Format, detect};
use tokenizer::CorpusCounter;
use tokenizer::lift::Preparation;
use tokenizer_core::PieceCounts;

use crate::failure::Failure;
use crate::input::{self, InputOptions};
use crate::model::chain;
use crate::output::{Progress, Unit};

/// What trainers work on, and where it came from.
pub(crate) struct Counted {
    pub(crate) counts: PieceCounts,
    /// `None` where counts were given.
    pub(crate) documents: Option<u64>,
    pub(crate) bytes: Option<u64>,
    /// The first documents, to compare models on.
    pub(crate) sample: Vec<String>,
}

/// Documents are counted in batches of about this many bytes.
const BATCH: usize = 32 << 20;
/// How much text is kept to compare a written file with the trained model.
const SAMPLE: usize = 256 << 10;

/// Counts the pieces of all documents.
pub(crate) fn count(
    paths: &[PathBuf],
    options: &InputOptions,
    preparation: &Preparation,
    progress: Progress,
) -> Result<Counted, Failure> {
    let sources = input::sources(paths)?;
    let bar = progress.bar("reading", sources.iter().map(|s| s.bytes).sum(), Unit::Bytes);
    let mut counter = CorpusCounter::new(preparation.normalizer(), preparation.splitter());
    let (mut batch, mut waiting): (Vec<String>, usize) = (Vec::new(), 0);
    let (mut sample, mut sampled) = (Vec::new(), 0);
    let overflow = |error: tokenizer_core::CountError| Failure::input(error);
    for source in &sources {
        input::documents(source, options, &bar, &mut |document| {
            if sampled < SAMPLE {
                let mut end = document.len().min(SAMPLE - sampled);
                while !document.is_char_boundary(end) {
                    end -= 1;
                }
                sampled += end.max(1);
                sample.push(document[..end].to_owned());
            }
            waiting += document.len();
            batch.push(document);
            if waiting >= BATCH {
                counter.add(&batch).map_err(overflow)?;
                batch.clear();
                waiting = 0;
            }
            Ok(())
        })?;
    }
    counter.add(&batch).map_err(overflow)?;
    bar.finish_and_clear();
    let (documents, bytes) = (counter.documents(), counter.bytes());
    Ok(Counted { counts: counter.finish(), documents: Some(documents), bytes: Some(bytes), sample })
}

/// Reads shards of counts, binary or text, as of texts that follow one another.
pub(crate) fn read_counts(paths: &[PathBuf]) -> Result<Counted, Failure> {
    let mut counts = PieceCounts::default();
    for path in paths {
        let shard = read_shard(path)?;
        counts.append(&shard).map_err(|error| Failure::file(path, error))?;
    }
    Ok(Counted { counts, documents: None, bytes: None, sample: Vec::new() })
}

/// Reads one shard.
pub(crate) fn read_shard(path: &Path) -> Result<PieceCounts, Failure> {
    let bytes = input::bytes(path)?;
    let is_tsv = path.extension().is_some_and(|ending| ending == "tsv");
    let result = match detect(&bytes) {
        Some(Format::Counts) => counts::read(&bytes[..]),
        _ if is_tsv || detect(&bytes) == Some(Format::CountsTsv) => counts::parse_tsv(&bytes),
        _ => return Err(Failure::file(path, "holds no piece counts")),
    };
    result.map_err(|error| Failure::file(path, chain(&error)))
}

/// Merges binary shards into `write`, a piece at a time.
pub(crate) fn merge_shards<R: std::io::Read>(
    shards: Vec<CountReader<R>>,
    paths: &[PathBuf],
    positions: Positions,
    output: &mut dyn std::io::Write,
) -> Result<(u64, u64), Failure> {
    let out = |error: std::io::Error| Failure::Input(format!("the output: {error}"));
    let mut merge = Merge::new(shards, positions).map_err(|error| Failure::input(chain(&error)))?;
    let mut writer = counts::CountWriter::new(output, merge.extent()).map_err(out)?;
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
                return Err(Failure::file(&paths[merge.failed_shard()], text));
            }
        }
    }
    writer.finish().map_err(out)?;
    Ok((pieces, total))
}
