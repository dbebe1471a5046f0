//! Piece counts in Parquet: what other engines write, what is refused.
#![cfg(feature = "parquet")]
#![allow(clippy::unwrap_used)] // A test's unwrap is its assertion.

use std::sync::Arc;

use ::parquet::basic::Compression;
use ::parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use ::parquet::file::properties::{WriterProperties, WriterVersion};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use formats::counts::parquet;
use formats::{ErrorKind, Format, detect};
use proptest::prelude::*;
use testkit::texts;
use tokenizer_core::{PieceCounts, Rng};

/// A column as it is written.
enum Column {
    Bytes(Vec<&'static [u8]>, Option<Vec<i16>>),
    Long(Vec<i64>, Option<Vec<i16>>),
    Int(Vec<i32>),
    Double(Vec<f64>),
}

fn file(schema: &str, properties: WriterProperties, groups: Vec<Vec<Column>>) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut file = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut file, schema, Arc::new(properties)).unwrap();
    for columns in groups {
        let mut group = writer.next_row_group().unwrap();
        for column in columns {
            let mut next = group.next_column().unwrap().unwrap();
            match column {
                Column::Bytes(values, levels) => {
                    let values: Vec<ByteArray> =
                        values.into_iter().map(|value| value.to_vec().into()).collect();
                    let next = next.typed::<ByteArrayType>();
                    next.write_batch(&values, levels.as_deref(), None).unwrap()
                }
                Column::Long(values, levels) => {
                    let next = next.typed::<Int64Type>();
                    next.write_batch(&values, levels.as_deref(), None).unwrap()
                }
                Column::Int(values) => {
                    next.typed::<Int32Type>().write_batch(&values, None, None).unwrap()
                }
                Column::Double(values) => {
                    next.typed::<DoubleType>().write_batch(&values, None, None).unwrap()
                }
            };
            next.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
    file
}

fn plain() -> WriterProperties {
    WriterProperties::builder().build()
}

const SCHEMA: &str =
    "message t { optional binary piece (STRING); optional int64 count; required double other; }";

/// A group of rows without nulls.
fn rows(pieces: &[&'static [u8]], counts: &[i64]) -> Vec<Column> {
    let levels = Some(vec![1; pieces.len()]);
    vec![
        Column::Bytes(pieces.to_vec(), levels.clone()),
        Column::Long(counts.to_vec(), levels),
        Column::Double(vec![0.5; pieces.len()]),
    ]
}

#[test]
fn tables_of_other_engines_are_read() {
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for compression in [Compression::UNCOMPRESSED, Compression::SNAPPY] {
            for dictionary in [true, false] {
                let properties = WriterProperties::builder()
                    .set_writer_version(version)
                    .set_compression(compression)
                    .set_dictionary_enabled(dictionary)
                    .build();
                let groups = vec![
                    rows(&[b" hug", "é".as_bytes(), b"pug"], &[10, 1 << 40, 5]),
                    rows(&[b" hug", b"bun"], &[7, 4]),
                    rows(&[], &[]),
                ];
                let file = file(SCHEMA, properties, groups);
                assert_eq!(detect(&file), Some(Format::CountsParquet));
                let counts = parquet::parse(file).unwrap();
                let expected = [
                    (" hug", 17),
                    ("é", 1 << 40),
                    ("pug", 5),
                    ("", 0), // A row that only adds to an earlier piece.
                    ("bun", 4),
                ];
                assert_eq!(counts.len(), 4);
                for (row, (piece, count)) in expected.into_iter().enumerate().filter(|e| e.1.1 > 0)
                {
                    let found = counts.get(piece.as_bytes()).unwrap();
                    assert_eq!((found.count, found.first_seen), (count, row as u64), "{piece}");
                }
            }
        }
    }
}

#[test]
fn many_groups_and_pages_are_one_table() {
    let names: Vec<&'static [u8]> =
        (0..20_000).map(|i| &*format!("piece {i}").into_bytes().leak()).collect();
    let counts: Vec<i64> = (1..=20_000).collect();
    let properties = WriterProperties::builder().set_data_page_row_count_limit(100).build();
    let groups = names.chunks(7000).zip(counts.chunks(7000)).map(|(n, c)| rows(n, c)).collect();
    let read = parquet::parse(file(SCHEMA, properties, groups)).unwrap();
    let pairs = names.iter().zip(&counts).map(|(name, &count)| (*name, count as u64));
    assert_eq!(read, PieceCounts::from_pairs(pairs).unwrap());
}

#[test]
fn faults_are_named() {
    let check = |file: Vec<u8>, kind: ErrorKind, what: &str| {
        let error = parquet::parse(file).unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (kind, what.to_owned()));
    };
    let of = |groups| file(SCHEMA, plain(), groups);
    let invalid = |rows, what: &str| {
        check(of(vec![rows]), ErrorKind::Invalid, &format!("piece counts in Parquet: {what}"));
    };
    invalid(rows(&[b"a", b"b"], &[1, -3]), "row 1: the count is -3");
    invalid(rows(&[b"a", b"b"], &[1, 0]), "row 1: an empty piece or a count of 0");
    invalid(rows(&[b"", b"b"], &[1, 1]), "row 0: an empty piece or a count of 0");
    let mut null = rows(&[b"a", b"b"], &[1, 2]);
    null[0] = Column::Bytes(vec![b"a"], Some(vec![1, 0]));
    check(
        of(vec![rows(&[b"x"], &[1]), null]),
        ErrorKind::Missing,
        "piece counts in Parquet: row 2: `piece` is null",
    );
    let mut null = rows(&[b"a"], &[1]);
    null[1] = Column::Long(vec![], Some(vec![0]));
    check(of(vec![null]), ErrorKind::Missing, "piece counts in Parquet: row 0: `count` is null");
    let most = i64::MAX;
    let many = of(vec![rows(&[b"a", b"b", b"a"], &[most, most, 2])]);
    assert_eq!(parquet::parse(many).unwrap_err().kind(), ErrorKind::Limit);

    let typed = |schema: &str, columns: Vec<Column>| file(schema, plain(), vec![columns]);
    check(
        typed(
            "message t { required binary piece; required int32 count; }",
            vec![Column::Bytes(vec![b"a"], None), Column::Int(vec![1])],
        ),
        ErrorKind::WrongType,
        "piece counts in Parquet: column `count` is of type INT32, but must be INT64",
    );
    check(
        typed(
            "message t { required int64 piece; required int64 count; }",
            vec![Column::Long(vec![1], None), Column::Long(vec![1], None)],
        ),
        ErrorKind::WrongType,
        "piece counts in Parquet: column `piece` is of type INT64, but must be BYTE_ARRAY, plain or a \
         string",
    );
    check(
        typed("message t { required int64 count; }", vec![Column::Long(vec![1], None)]),
        ErrorKind::Missing,
        "piece counts in Parquet: no column `piece` among count",
    );
    let timestamp = "message t { required binary piece; required int64 count (TIMESTAMP_MILLIS); }";
    let error = parquet::parse(typed(
        timestamp,
        vec![Column::Bytes(vec![b"a"], None), Column::Long(vec![1], None)],
    ));
    assert!(error.unwrap_err().to_string().contains("TIMESTAMP"));
}

#[test]
fn counts_without_a_sign_use_all_64_bits() {
    let schema = "message t { required binary piece; required int64 count (INTEGER(64,false)); }";
    let columns = vec![Column::Bytes(vec![b"a"], None), Column::Long(vec![-2], None)];
    let counts = parquet::parse(file(schema, plain(), vec![columns])).unwrap();
    assert_eq!(counts.total(), u64::MAX - 1);
}

#[test]
fn what_is_written_is_read_back() {
    let awkward = texts::all_bytes().map(|(_, text)| text).filter(|text| !text.is_empty());
    let counts = PieceCounts::from_pairs(awkward.zip(1..)).unwrap();
    let mut file = Vec::new();
    parquet::write(&counts, &mut file).unwrap();
    assert_eq!(parquet::parse(file).unwrap(), counts);
    let mut file = Vec::new();
    parquet::write(&PieceCounts::default(), &mut file).unwrap();
    assert!(parquet::parse(file).unwrap().is_empty());
}

proptest! {
    #[test]
    fn damaged_files_are_errors_or_tables(seed in any::<u64>(), cut in any::<prop::sample::Index>()) {
        let mut rng = Rng::new(seed);
        let mut file = file(SCHEMA, plain(), vec![rows(&[b" hug", b"pug", b"bun"], &[10, 5, 4])]);
        for _ in 0..1 + rng.below(4) {
            let at = rng.below(file.len() as u64) as usize;
            file[at] = rng.next_u64() as u8;
        }
        let end = if rng.below(4) == 0 { cut.index(file.len()) } else { file.len() };
        file.truncate(end);
        let _ = parquet::parse(file);
    }
}
