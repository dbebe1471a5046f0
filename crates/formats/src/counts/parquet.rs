//! Piece counts in Parquet, which any distributed engine can write: a table with a column `piece` (byte
//! arrays or strings) and a column `count` (64-bit integers). Behind the feature `parquet`.
//!
//! Other columns are passed over. Counts of a piece in several rows add up; a piece's position is the
//! number of its first row, as in the text form. Pages may be plain or compressed by Snappy.
//!
//! The crate `parquet` takes the file apart. A damaged file is an error as everywhere, but that crate may
//! panic on the way: the panic is caught, and only the program's panic hook sees it. And a page can claim
//! up to 2 GB, which are asked for before it is found out.
//!
//! ```
//! use formats::counts::parquet;
//! use tokenizer_core::PieceCounts;
//!
//! let counts = PieceCounts::from_pairs([(" hugs", 5), (" hug", 10)])?;
//! let mut file = Vec::new();
//! parquet::write(&counts, &mut file)?;
//! let read = parquet::parse(file)?;
//! assert_eq!(read.get(b" hug").map(|piece| (piece.count, piece.first_seen)), Some((10, 1)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use ::parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical};
use ::parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::reader::{ChunkReader, FileReader, RowGroupReader, SerializedFileReader};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::{ColumnDescriptor, SchemaDescriptor, Type};
use tokenizer_core::{PieceCounter, PieceCounts};

use crate::{ErrorKind, Format, Position, ReadError};

/// The first bytes of a Parquet file.
pub const MAGIC: [u8; 4] = *b"PAR1";

const PIECE: &str = "piece";
const COUNT: &str = "count";
/// Rows that are taken at once.
const BATCH: usize = 4096;
/// Rows of a group that is written.
const GROUP: usize = 1 << 17;

/// Reads a file: an open one, or whatever else the crate `parquet` reads in chunks. Besides the table,
/// memory is a page of each of the two columns.
///
/// # Errors
///
/// If the file is not whole, has no such columns or ones of other types, a value is null, a piece is
/// empty, a count is not from 1, a sum passes 64 bits, or pages are compressed otherwise.
pub fn read(file: impl ChunkReader + 'static) -> Result<PieceCounts, ReadError> {
    from_chunks(file)
}

/// Reads a file that is in memory.
///
/// # Errors
///
/// As [`read`].
pub fn parse(file: Vec<u8>) -> Result<PieceCounts, ReadError> {
    from_chunks(bytes::Bytes::from(file))
}

/// Writes a table, the pieces in the order in which they first occurred, compressed by Snappy.
///
/// # Errors
///
/// If `output` fails.
pub fn write(counts: &PieceCounts, output: impl io::Write + Send) -> io::Result<()> {
    let column = |name, physical, logical| {
        let column = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(logical);
        column.build().map(Arc::new)
    };
    // Pieces may be any bytes, so they are not marked as text.
    let columns = vec![
        column(PIECE, Physical::BYTE_ARRAY, None)?,
        column(COUNT, Physical::INT64, Some(LogicalType::integer(64, false)))?,
    ];
    let schema = Type::group_type_builder("counts").with_fields(columns).build()?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = SerializedFileWriter::new(output, Arc::new(schema), Arc::new(properties))?;
    for rows in counts.by_first_seen().chunks(GROUP) {
        let pieces: Vec<ByteArray> = rows.iter().map(|row| row.piece.to_vec().into()).collect();
        let numbers: Vec<i64> = rows.iter().map(|row| row.count as i64).collect();
        let mut group = writer.next_row_group()?;
        if let Some(mut column) = group.next_column()? {
            column.typed::<ByteArrayType>().write_batch(&pieces, None, None)?;
            column.close()?;
        }
        if let Some(mut column) = group.next_column()? {
            column.typed::<Int64Type>().write_batch(&numbers, None, None)?;
            column.close()?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

fn fault(kind: ErrorKind, what: impl Into<String>) -> ReadError {
    ReadError::new(Format::CountsParquet, Position::Whole, kind, what)
}

fn broken(error: ParquetError) -> ReadError {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => ReadError::io(Format::CountsParquet, Position::Whole, *error),
            Err(error) => fault(ErrorKind::Syntax, error.to_string()),
        },
        ParquetError::EOF(what) => fault(ErrorKind::Truncated, what),
        ParquetError::General(what) => fault(ErrorKind::Syntax, what),
        error => fault(ErrorKind::Syntax, error.to_string()),
    }
}

/// Reads a file, and takes a panic for what it is: the crate below does not check all that a damaged
/// file can say. Nothing that it was working on is used afterwards.
fn from_chunks<R: ChunkReader + 'static>(chunks: R) -> Result<PieceCounts, ReadError> {
    let read = std::panic::catch_unwind(AssertUnwindSafe(|| table(chunks)));
    read.unwrap_or_else(|panic| {
        let what = panic.downcast_ref::<String>().map(String::as_str);
        let what = what.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        Err(fault(ErrorKind::Corrupt, format!("the file contradicts itself: {what}")))
    })
}

fn table<R: ChunkReader + 'static>(chunks: R) -> Result<PieceCounts, ReadError> {
    let file = SerializedFileReader::new(chunks).map_err(broken)?;
    let columns = Columns::of(file.metadata().file_metadata().schema_descr())?;
    let mut counter = PieceCounts::counter();
    let mut row = 0;
    for group in 0..file.num_row_groups() {
        let group = file.get_row_group(group).map_err(broken)?;
        columns.check_pages(&*group)?;
        columns.add(&*group, &mut row, &mut counter)?;
    }
    Ok(counter.finish())
}

/// Where the two columns are.
struct Columns {
    piece: usize,
    count: usize,
    /// Whether counts have no sign.
    is_unsigned: bool,
}

impl Columns {
    fn of(schema: &SchemaDescriptor) -> Result<Self, ReadError> {
        let find = |name: &str| {
            let is_it = |column: &ColumnDescriptor| column.path().parts() == [name];
            let at = (0..schema.num_columns()).find(|&i| is_it(&schema.column(i)));
            at.ok_or_else(|| {
                let names: Vec<String> =
                    schema.columns().iter().map(|column| column.path().string()).collect();
                let what = format!("no column `{name}` among {}", names.join(", "));
                fault(ErrorKind::Missing, what)
            })
        };
        let (piece, count) = (find(PIECE)?, find(COUNT)?);
        let wrong = |at: usize, wanted: &str| {
            let column = schema.column(at);
            let logical = match column.logical_type_ref() {
                Some(logical) => format!(" ({logical:?})"),
                None if column.converted_type() == ConvertedType::NONE => String::new(),
                None => format!(" ({})", column.converted_type()),
            };
            let what = format!(
                "column `{}` is of type {}{logical}, but must be {wanted}",
                column.name(),
                column.physical_type()
            );
            Err(fault(ErrorKind::WrongType, what))
        };
        let column = schema.column(piece);
        let is_bytes = column.physical_type() == Physical::BYTE_ARRAY;
        let is_text = matches!(column.converted_type(), ConvertedType::NONE | ConvertedType::UTF8);
        if !is_bytes || !is_text || column.max_rep_level() > 0 {
            return wrong(piece, "BYTE_ARRAY, plain or a string");
        }
        let column = schema.column(count);
        let is_unsigned = column.converted_type() == ConvertedType::UINT_64;
        let is_number = is_unsigned
            || matches!(column.converted_type(), ConvertedType::NONE | ConvertedType::INT_64);
        if column.physical_type() != Physical::INT64 || !is_number || column.max_rep_level() > 0 {
            return wrong(count, "INT64");
        }
        Ok(Self { piece, count, is_unsigned })
    }

    /// Refuses compression that is not compiled in, by name.
    fn check_pages(&self, group: &dyn RowGroupReader) -> Result<(), ReadError> {
        for at in [self.piece, self.count] {
            let column = group.metadata().column(at);
            match column.compression() {
                Compression::UNCOMPRESSED | Compression::SNAPPY => {}
                other => {
                    let name = other.to_string();
                    let what = format!(
                        "column `{}` is compressed by {}, but only Snappy or none can be read",
                        column.column_path().string(),
                        name.split('(').next().unwrap_or(&name)
                    );
                    return Err(fault(ErrorKind::UnknownPart, what));
                }
            }
        }
        Ok(())
    }

    /// Adds the rows of a group; the first one has the number `row`.
    fn add(
        &self,
        group: &dyn RowGroupReader,
        row: &mut u64,
        counter: &mut PieceCounter,
    ) -> Result<(), ReadError> {
        let pieces = group.get_column_reader(self.piece).map_err(broken)?;
        let counts = group.get_column_reader(self.count).map_err(broken)?;
        let mut pieces = Values::new(PIECE, get_typed_column_reader::<ByteArrayType>(pieces));
        let mut counts = Values::new(COUNT, get_typed_column_reader::<Int64Type>(counts));
        loop {
            let (read, other) = (pieces.next(*row)?, counts.next(*row)?);
            if read != other {
                let what = format!("from row {row} on the columns have {read} and {other} values");
                return Err(fault(ErrorKind::Invalid, what));
            }
            if read == 0 {
                return Ok(());
            }
            for (piece, &count) in pieces.values.iter().zip(&counts.values) {
                let at_row = |kind, what: String| Err(fault(kind, format!("row {row}: {what}")));
                if count < 0 && !self.is_unsigned {
                    return at_row(ErrorKind::Invalid, format!("the count is {count}"));
                }
                if piece.data().is_empty() || count == 0 {
                    return at_row(ErrorKind::Invalid, "an empty piece or a count of 0".to_owned());
                }
                if let Err(error) = counter.add(piece.data(), count as u64, *row) {
                    return at_row(ErrorKind::Limit, error.to_string());
                }
                *row += 1;
            }
        }
    }
}

/// A column, some rows at a time.
struct Values<T: DataType> {
    name: &'static str,
    reader: ColumnReaderImpl<T>,
    levels: Vec<i16>,
    values: Vec<T::T>,
}

impl<T: DataType> Values<T> {
    fn new(name: &'static str, reader: ColumnReaderImpl<T>) -> Self {
        Self { name, reader, levels: Vec::new(), values: Vec::new() }
    }

    /// Reads the next rows, of which the first has the number `row`; gives their number.
    fn next(&mut self, row: u64) -> Result<usize, ReadError> {
        self.levels.clear();
        self.values.clear();
        let read = self.reader.read_records(BATCH, Some(&mut self.levels), None, &mut self.values);
        let (records, values, _) = read.map_err(broken)?;
        if values < records {
            let greatest = self.levels.iter().max();
            let null = self.levels.iter().position(|level| Some(level) < greatest).unwrap_or(0);
            let what = format!("row {}: `{}` is null", row + null as u64, self.name);
            return Err(fault(ErrorKind::Missing, what));
        }
        Ok(records)
    }
}
