//! Piece counts in files: shards that any number of machines write and one merges.
//!
//! The binary form is sorted, compressed and checksummed, and is read and written as a stream: a
//! merge of any number of shards keeps one piece of each in memory. The text form, `piece<TAB>count`,
//! is what any other engine can write; with the feature `parquet` tables in Parquet are read, too.
//!
//! ```
//! use formats::counts;
//! use tokenizer_core::PieceCounts;
//!
//! let counts = PieceCounts::from_pairs([(" hugs", 5), (" hug", 10)])?;
//! let mut file = Vec::new();
//! counts::write(&counts, &mut file)?;
//! assert_eq!(counts::read(&file[..])?, counts);
//!
//! // Two machines counted two halves of a text, in this order.
//! let shards = [counts::CountReader::new(&file[..])?, counts::CountReader::new(&file[..])?];
//! let mut merge = counts::Merge::new(shards, counts::Positions::Consecutive)?;
//! let first = merge.next()?.expect("two pieces");
//! assert_eq!((first.piece, first.count), (&b" hug"[..], 20));
//!
//! assert_eq!(counts::to_tsv(&counts), " hugs\t5\n hug\t10\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Layout of the binary form
//!
//! All numbers are little endian; a varint is seven bits a byte, the lowest first, the eighth bit
//! set on all but the last.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | magic: `89 50 43 4E 54 0D 0A 1A` (`\x89PCNT\r\n\x1A`) |
//! | 4 | version, 1 |
//! | 4 | zero |
//! | 8 | extent: the length of the counted text in positions |
//! | | for every piece, ascending by bytes: |
//! | varint | bytes that it shares with the piece before, as many as possible |
//! | varint | bytes that follow, at least 1 |
//! | .. | those bytes |
//! | varint | count, at least 1 |
//! | varint | position of its first occurrence |
//! | | at the end: |
//! | 2 | zeros (a piece without bytes) |
//! | 8 | number of pieces |
//! | 8 | sum of the counts |
//! | 4 | CRC-32 (as in gzip) of all bytes before |

#[cfg(feature = "parquet")]
pub mod parquet;

use std::io;

use tokenizer_core::{PieceCount, PieceCounter, PieceCounts};

use crate::crc32::Crc32;
use crate::error::quoted_bytes;
use crate::lines::lines;
use crate::{ErrorKind, Format, Position, ReadError};

/// The first bytes of a shard.
pub const MAGIC: [u8; 8] = *b"\x89PCNT\r\n\x1A";

const VERSION: u32 = 1;
const FORMAT: Format = Format::Counts;
const BUFFER: usize = 1 << 16;

/// Reads a whole shard into a table.
///
/// # Errors
///
/// As [`CountReader::next`].
pub fn read(input: impl io::Read) -> Result<PieceCounts, ReadError> {
    let mut reader = CountReader::new(input)?;
    let mut counts = PieceCounts::default();
    while let Some(piece) = reader.next()? {
        counts.push_sorted(piece).expect("the reader checks lengths, positions and the total");
    }
    counts.extend_to(reader.extent());
    Ok(counts)
}

/// Writes a table as a shard.
///
/// # Errors
///
/// If `output` fails.
pub fn write(counts: &PieceCounts, output: impl io::Write) -> io::Result<()> {
    let mut writer = CountWriter::new(output, counts.extent())?;
    for piece in counts.iter() {
        writer.push(piece)?;
    }
    writer.finish().map(|_| ())
}

/// Reads a shard piece by piece. Memory is one piece and a buffer of 64 KiB.
pub struct CountReader<R> {
    input: Input<R>,
    extent: u64,
    piece: Vec<u8>,
    pieces: u64,
    total: u64,
    done: bool,
}

impl<R: io::Read> CountReader<R> {
    /// Reads the header.
    ///
    /// # Errors
    ///
    /// If the input fails, ends early, or is no shard of a known version.
    pub fn new(input: R) -> Result<Self, ReadError> {
        let mut input = Input::new(input);
        if input.array()? != MAGIC {
            return Err(input.error(0, ErrorKind::Syntax, "the first bytes are not a shard's"));
        }
        let version = u32::from_le_bytes(input.array()?);
        if version != VERSION {
            let what = format!("version {version}, only {VERSION} is known");
            return Err(input.error(8, ErrorKind::UnknownPart, what));
        }
        if input.array()? != [0; 4] {
            return Err(input.error(12, ErrorKind::UnknownPart, "reserved bytes are not zero"));
        }
        let extent = u64::from_le_bytes(input.array()?);
        Ok(Self { input, extent, piece: Vec::new(), pieces: 0, total: 0, done: false })
    }

    /// The length of the counted text in positions.
    #[must_use]
    pub fn extent(&self) -> u64 {
        self.extent
    }

    /// The next piece, or `None` at the end, where count, total and checksum are compared.
    ///
    /// # Errors
    ///
    /// If the input fails or ends early, pieces are not ascending, a number is out of range, or
    /// what was read does not match the trailer.
    #[expect(clippy::should_implement_trait, reason = "the piece borrows from the reader")]
    pub fn next(&mut self) -> Result<Option<PieceCount<'_>>, ReadError> {
        if self.done {
            return Ok(None);
        }
        let at = self.input.offset();
        let (shared, suffix) = (self.input.varint()?, self.input.varint()?);
        if (shared, suffix) == (0, 0) {
            self.trailer()?;
            self.done = true;
            return Ok(None);
        }
        let before = self.piece.len();
        let fault = |this: &Self, what: String| {
            Err(this.input.error(at, ErrorKind::Invalid, format!("piece {}: {what}", this.pieces)))
        };
        if shared > before as u64 {
            let what = format!("shares {shared} bytes with a piece of {before}");
            return fault(self, what);
        }
        if suffix == 0 || shared.checked_add(suffix).is_none_or(|len| len > u64::from(u32::MAX)) {
            let what = format!("{suffix} bytes follow {shared}, the limit is {}", u32::MAX);
            return fault(self, what);
        }
        let shared = shared as usize;
        let replaced = self.piece.get(shared).copied();
        self.piece.truncate(shared);
        self.input.append(suffix, &mut self.piece)?;
        if replaced.is_some_and(|byte| self.piece[shared] <= byte) {
            return fault(self, "does not sort behind the piece before".to_owned());
        }
        let (count, first_seen) = (self.input.varint()?, self.input.varint()?);
        if count == 0 {
            return fault(self, "its count is 0".to_owned());
        }
        let Some(total) = self.total.checked_add(count) else {
            return fault(self, "the sum of the counts passes 64 bits".to_owned());
        };
        let end = first_seen.checked_add(self.piece.len() as u64);
        if end.is_none_or(|end| end > self.extent) {
            let (len, extent) = (self.piece.len(), self.extent);
            return fault(self, format!("{len} bytes at {first_seen} end beyond extent {extent}"));
        }
        self.total = total;
        self.pieces += 1;
        Ok(Some(PieceCount { piece: &self.piece, count, first_seen }))
    }

    fn trailer(&mut self) -> Result<(), ReadError> {
        let at = self.input.offset();
        let (pieces, total) =
            (u64::from_le_bytes(self.input.array()?), u64::from_le_bytes(self.input.array()?));
        let computed = self.input.checksum();
        let stored = u32::from_le_bytes(self.input.array()?);
        if computed != stored {
            let what = format!("the checksum is {computed:08X}, the file says {stored:08X}");
            return Err(self.input.error(at, ErrorKind::Corrupt, what));
        }
        if (pieces, total) != (self.pieces, self.total) {
            let what = format!(
                "{} pieces of total {}, the file says {pieces} of {total}",
                self.pieces, self.total
            );
            return Err(self.input.error(at, ErrorKind::Corrupt, what));
        }
        if self.input.has_more()? {
            let what = "more bytes behind the end of the shard";
            return Err(self.input.error(self.input.offset(), ErrorKind::Syntax, what));
        }
        Ok(())
    }
}

/// Buffered input that knows its offset and checksum.
struct Input<R> {
    input: R,
    buffer: Vec<u8>,
    at: usize,
    /// Bytes before the buffer.
    base: u64,
    crc: Crc32,
    /// Up to where the buffer is in `crc`.
    summed: usize,
}

impl<R: io::Read> Input<R> {
    fn new(input: R) -> Self {
        Self { input, buffer: Vec::new(), at: 0, base: 0, crc: Crc32::default(), summed: 0 }
    }

    fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    fn error(&self, at: u64, kind: ErrorKind, what: impl Into<String>) -> ReadError {
        ReadError::new(FORMAT, Position::Byte(at), kind, what)
    }

    /// The checksum of all that was consumed.
    fn checksum(&mut self) -> u32 {
        self.crc.update(&self.buffer[self.summed..self.at]);
        self.summed = self.at;
        self.crc.value()
    }

    fn has_more(&mut self) -> Result<bool, ReadError> {
        if self.at < self.buffer.len() {
            return Ok(true);
        }
        self.checksum();
        self.base += self.buffer.len() as u64;
        (self.at, self.summed) = (0, 0);
        self.buffer.resize(BUFFER, 0);
        let length = loop {
            match self.input.read(&mut self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        match length {
            Ok(length) => {
                self.buffer.truncate(length);
                Ok(length > 0)
            }
            Err(error) => {
                self.buffer.clear();
                Err(ReadError::io(FORMAT, Position::Byte(self.base), error))
            }
        }
    }

    fn fill(&mut self) -> Result<&[u8], ReadError> {
        if !self.has_more()? {
            let what = "the file ends in the middle";
            return Err(self.error(self.offset(), ErrorKind::Truncated, what));
        }
        Ok(&self.buffer[self.at..])
    }

    fn byte(&mut self) -> Result<u8, ReadError> {
        let byte = match self.buffer.get(self.at) {
            Some(&byte) => byte,
            None => self.fill()?[0],
        };
        self.at += 1;
        Ok(byte)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let mut array = [0; N];
        for byte in &mut array {
            *byte = self.byte()?;
        }
        Ok(array)
    }

    fn varint(&mut self) -> Result<u64, ReadError> {
        let at = self.offset();
        let mut value = 0;
        for i in 0..10 {
            let byte = self.byte()?;
            if i == 9 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7F) << (7 * i);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.error(at, ErrorKind::Syntax, "a number of more than 64 bits"))
    }

    /// Appends so many bytes; `out` grows as they come, not as they are announced.
    fn append(&mut self, mut length: u64, out: &mut Vec<u8>) -> Result<(), ReadError> {
        while length > 0 {
            let bytes = self.fill()?;
            let part = bytes.len().min(usize::try_from(length).unwrap_or(usize::MAX));
            out.extend_from_slice(&bytes[..part]);
            self.at += part;
            length -= part as u64;
        }
        Ok(())
    }
}

/// Writes a shard piece by piece.
pub struct CountWriter<W> {
    output: W,
    buffer: Vec<u8>,
    crc: Crc32,
    extent: u64,
    last: Vec<u8>,
    pieces: u64,
    total: u64,
}

impl<W: io::Write> CountWriter<W> {
    /// Begins a shard of a text of `extent` positions.
    ///
    /// # Errors
    ///
    /// If `output` fails.
    pub fn new(output: W, extent: u64) -> io::Result<Self> {
        let mut buffer = Vec::with_capacity(BUFFER + 64);
        buffer.extend_from_slice(&MAGIC);
        buffer.extend_from_slice(&VERSION.to_le_bytes());
        buffer.extend_from_slice(&[0; 4]);
        buffer.extend_from_slice(&extent.to_le_bytes());
        let (crc, last) = (Crc32::default(), Vec::new());
        Ok(Self { output, buffer, crc, extent, last, pieces: 0, total: 0 })
    }

    /// Writes a piece, which must sort behind the one before.
    ///
    /// # Errors
    ///
    /// If `output` fails; of kind `InvalidInput` if [`CountReader`] would refuse the piece.
    pub fn push(&mut self, piece: PieceCount<'_>) -> io::Result<()> {
        let PieceCount { piece, count, first_seen } = piece;
        let invalid = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        if piece.is_empty() || piece <= &self.last[..] {
            return invalid("pieces must be written in ascending order and not be empty");
        }
        if u32::try_from(piece.len()).is_err() {
            return invalid("a piece is 4 GiB or longer");
        }
        let end = first_seen.checked_add(piece.len() as u64);
        if count == 0 || end.is_none_or(|end| end > self.extent) {
            return invalid("a count is 0, or a piece ends beyond the extent");
        }
        let Some(total) = self.total.checked_add(count) else {
            return invalid("the sum of the counts passes 64 bits");
        };
        let shared = piece.iter().zip(&self.last).take_while(|(a, b)| a == b).count();
        self.varint(shared as u64);
        self.varint((piece.len() - shared) as u64);
        self.buffer.extend_from_slice(&piece[shared..]);
        self.varint(count);
        self.varint(first_seen);
        self.last.truncate(shared);
        self.last.extend_from_slice(&piece[shared..]);
        self.total = total;
        self.pieces += 1;
        if self.buffer.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    /// Ends the shard, flushes, and gives the output back.
    ///
    /// # Errors
    ///
    /// If `output` fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.buffer.extend_from_slice(&[0, 0]);
        self.buffer.extend_from_slice(&self.pieces.to_le_bytes());
        self.buffer.extend_from_slice(&self.total.to_le_bytes());
        self.flush()?;
        self.output.write_all(&self.crc.value().to_le_bytes())?;
        self.output.flush()?;
        Ok(self.output)
    }

    fn varint(&mut self, value: u64) {
        crate::protobuf::put_varint(&mut self.buffer, value);
    }

    fn flush(&mut self) -> io::Result<()> {
        self.crc.update(&self.buffer);
        self.output.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// What the positions of several shards mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Positions {
    /// All shards count the same text (shares of one machine, spilled runs): positions stay, as in
    /// [`PieceCounts::merge`].
    Shared,
    /// Each shard counts the text that follows the one before: positions are moved behind it, as in
    /// [`PieceCounts::append`].
    Consecutive,
}

/// Merges shards piece by piece. A piece costs `O(log k)` comparisons for k shards.
pub struct Merge<R> {
    sources: Vec<Source<R>>,
    /// A heap of sources that have a piece, the smallest piece first.
    heap: Vec<usize>,
    /// Sources whose piece was given out, to be moved on.
    used: Vec<usize>,
    piece: Vec<u8>,
    extent: u64,
    total: u64,
    failed: usize,
}

struct Source<R> {
    reader: CountReader<R>,
    shift: u64,
    count: u64,
    first_seen: u64,
}

impl<R> Source<R> {
    fn piece(&self) -> &[u8] {
        &self.reader.piece
    }
}

impl<R: io::Read> Merge<R> {
    /// Begins a merge, with the first piece of each shard.
    ///
    /// # Errors
    ///
    /// As [`CountReader::next`]; also if positions pass 64 bits.
    pub fn new(
        shards: impl IntoIterator<Item = CountReader<R>>,
        positions: Positions,
    ) -> Result<Self, ReadError> {
        let mut merge = Self {
            sources: Vec::new(),
            heap: Vec::new(),
            used: Vec::new(),
            piece: Vec::new(),
            extent: 0,
            total: 0,
            failed: 0,
        };
        for (i, reader) in shards.into_iter().enumerate() {
            let shift = match positions {
                Positions::Shared => 0,
                Positions::Consecutive => merge.extent,
            };
            let Some(extent) = shift.checked_add(reader.extent()) else {
                let what = format!("with shard {i} the positions pass 64 bits");
                return Err(ReadError::new(FORMAT, Position::Byte(16), ErrorKind::Limit, what));
            };
            merge.extent = merge.extent.max(extent);
            merge.sources.push(Source { reader, shift, count: 0, first_seen: 0 });
            merge.used.push(i);
        }
        Ok(merge)
    }

    /// The length of the whole counted text in positions; known from the beginning.
    #[must_use]
    pub fn extent(&self) -> u64 {
        self.extent
    }

    /// Which shard an error was about, by its place.
    #[must_use]
    pub fn failed_shard(&self) -> usize {
        self.failed
    }

    /// The next piece of all shards, with the sum of its counts and its first position.
    ///
    /// # Errors
    ///
    /// As [`CountReader::next`]; also if the sum of all counts passes 64 bits.
    #[expect(clippy::should_implement_trait, reason = "the piece borrows from the merge")]
    pub fn next(&mut self) -> Result<Option<PieceCount<'_>>, ReadError> {
        while let Some(i) = self.used.pop() {
            self.failed = i;
            let source = &mut self.sources[i];
            if let Some(PieceCount { count, first_seen, .. }) = source.reader.next()? {
                source.count = count;
                // Within the extent, which was checked.
                source.first_seen = first_seen + source.shift;
                self.heap.push(i);
                self.sift_up(self.heap.len() - 1);
            }
        }
        let Some(&least) = self.heap.first() else { return Ok(None) };
        self.piece.clear();
        self.piece.extend_from_slice(self.sources[least].piece());
        let (mut count, mut first_seen) = (0, u64::MAX);
        while let Some(&i) = self.heap.first()
            && self.sources[i].piece() == self.piece
        {
            self.failed = i;
            let source = &self.sources[i];
            let Some(total) = self.total.checked_add(source.count) else {
                let what = format!("with shard {i} the sum of the counts passes 64 bits");
                return Err(ReadError::new(FORMAT, Position::Whole, ErrorKind::Limit, what));
            };
            self.total = total;
            count += source.count;
            first_seen = first_seen.min(source.first_seen);
            self.heap.swap_remove(0);
            self.sift_down(0);
            self.used.push(i);
        }
        Ok(Some(PieceCount { piece: &self.piece, count, first_seen }))
    }

    fn less(&self, a: usize, b: usize) -> bool {
        self.sources[self.heap[a]].piece() < self.sources[self.heap[b]].piece()
    }

    fn sift_up(&mut self, mut at: usize) {
        while at > 0 && self.less(at, (at - 1) / 2) {
            self.heap.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let least = [2 * at + 1, 2 * at + 2]
                .into_iter()
                .filter(|&child| child < self.heap.len())
                .fold(at, |least, child| if self.less(child, least) { child } else { least });
            if least == at {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }
}

/// Reads the text form: a line is a piece, a tab and its count. Counts of a piece on several lines
/// add up; a piece's position is the number of its first line, so that pieces keep the order of
/// the file.
///
/// In a piece `\t`, `\n`, `\r`, `\\` and `\xHH` stand for a tab, a line feed, a carriage return, a
/// backslash and any byte.
///
/// # Errors
///
/// If a line has no tab, more than one, an unknown escape, an empty piece or no count from 1, or a
/// sum passes 64 bits.
pub fn parse_tsv(file: &[u8]) -> Result<PieceCounts, ReadError> {
    let mut counter: PieceCounter = PieceCounts::counter();
    let mut piece = Vec::new();
    for (number, line) in lines(file) {
        let fault = |kind, what: String| {
            ReadError::new(Format::CountsTsv, Position::Line(number), kind, what)
        };
        let syntax =
            |what: &str| fault(ErrorKind::Syntax, format!("{what} in {}", quoted_bytes(line)));
        let Some(tab) = line.iter().position(|&b| b == b'\t') else {
            return Err(syntax("no tab"));
        };
        piece.clear();
        if !unescape(&line[..tab], &mut piece) {
            return Err(syntax("an unknown escape"));
        }
        let count = core::str::from_utf8(&line[tab + 1..])
            .ok()
            .filter(|count| !count.is_empty() && count.bytes().all(|b| b.is_ascii_digit()));
        let Some(count) = count else {
            return Err(syntax("no count behind the tab"));
        };
        let Ok(count) = count.parse::<u64>() else {
            return Err(fault(ErrorKind::Limit, format!("count {count} passes 64 bits")));
        };
        if piece.is_empty() || count == 0 {
            return Err(fault(ErrorKind::Invalid, "an empty piece or a count of 0".to_owned()));
        }
        let position = number as u64 - 1;
        counter
            .add(&piece, count, position)
            .map_err(|error| fault(ErrorKind::Limit, error.to_string()))?;
    }
    Ok(counter.finish())
}

fn unescape(text: &[u8], out: &mut Vec<u8>) -> bool {
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let (byte, length) = match rest {
            [b't', ..] => (b'\t', 1),
            [b'n', ..] => (b'\n', 1),
            [b'r', ..] => (b'\r', 1),
            [b'\\', ..] => (b'\\', 1),
            [b'x', high, low, ..] => {
                let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
                match (digit(*high), digit(*low)) {
                    (Some(high), Some(low)) => (high << 4 | low, 3),
                    _ => return false,
                }
            }
            _ => return false,
        };
        out.push(byte);
        rest = &rest[length..];
    }
    true
}

/// The text form of a table, pieces in the order in which they first occurred, so that reading it
/// back keeps that order.
#[must_use]
pub fn to_tsv(counts: &PieceCounts) -> String {
    let mut text = String::new();
    for PieceCount { piece, count, .. } in counts.by_first_seen() {
        for chunk in piece.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\t' => text.push_str("\\t"),
                    '\n' => text.push_str("\\n"),
                    '\r' => text.push_str("\\r"),
                    '\\' => text.push_str("\\\\"),
                    '\0'..' ' | '\u{7F}' => text.push_str(&format!("\\x{:02X}", u32::from(c))),
                    _ => text.push(c),
                }
            }
            for byte in chunk.invalid() {
                text.push_str(&format!("\\x{byte:02X}"));
            }
        }
        text.push_str(&format!("\t{count}\n"));
    }
    text
}
