//! `conformance`: runs the reference vectors of a data folder, texts and the ids that the reference
//! libraries give them, and says which of them come out equal.
//!
//! A vector file is JSON lines. The first names the vocabulary (`vocab`, a path), and for ranks
//! the `pattern` and `special_tokens`; each other line is a case: `name`, `text`, `ids`, `special`
//! (`parse` or `ordinary`), `template`, and where known `offsets` (in characters) and `decoded`.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use serde::Deserialize;
use tokenizer::{
    DecodeOptions, EncodeOptions, LoadOptions, Policy, RanksSetup, TiktokenEncoding, Tokenizer,
};
use tokenizer_core::TokenId;

/// Runs every vector against every vocabulary: a row a vector file, exit code 1 if any case failed
///
/// Example: conformance --data ../data
#[derive(Parser)]
#[command(name = "conformance", version)]
struct Options {
    /// The folder with vocabs/ and vectors/conformance/*.jsonl
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// How many failures of a vector file are shown
    #[arg(long, value_name = "N", default_value_t = 3)]
    show: usize,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let (mut passed, mut total) = (0, 0);
    let result = run(&options.data, &mut |row| {
        println!("{row}");
        for failure in row.failures.iter().take(options.show) {
            eprintln!("  {failure}");
        }
        passed += row.passed;
        total += row.total;
    });
    if let Err(error) = result {
        eprintln!("conformance: {error}");
        return ExitCode::from(3);
    }
    println!("conformance: {passed} passed, {} failed", total - passed);
    ExitCode::from(u8::from(passed < total))
}

/// The result of one vector file.
#[derive(Debug)]
struct Row {
    /// The name of the vector file.
    name: String,
    /// The cases whose ids, and where known offsets and decoded text, are equal.
    passed: usize,
    /// All cases.
    total: usize,
    /// What went wrong first, for people.
    failures: Vec<String>,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.name, self.passed, self.total)
    }
}

/// A data folder that cannot be used at all.
#[derive(Debug)]
struct DataError(String);

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DataError {}

fn unreadable(path: &Path, error: impl fmt::Display) -> DataError {
    DataError(format!("{}: {error}", path.display()))
}

#[derive(Deserialize)]
struct Header {
    vocab: String,
    pattern: Option<String>,
    special_tokens: Option<BTreeMap<String, u32>>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    text: String,
    ids: Vec<u32>,
    special: String,
    #[serde(default)]
    template: bool,
    offsets: Option<Vec<(usize, usize)>>,
    decoded: Option<String>,
}

/// Runs every vector file of a data folder, in the order of their names.
///
/// # Errors
///
/// If the folder has no vectors or a vector file cannot be read: missing data never passes. A
/// vocabulary that cannot be loaded fails all its cases instead.
fn run(data: &Path, each: &mut dyn FnMut(&Row)) -> Result<(), DataError> {
    let vectors = data.join("vectors");
    let files = files_in(&vectors.join("conformance"), "jsonl")?;
    if files.is_empty() {
        return Err(unreadable(&vectors.join("conformance"), "holds no vector file"));
    }
    for file in files {
        each(&run_vectors(data, &file)?);
    }
    if let Ok(files) = files_in(&vectors.join("mlnet"), "json") {
        for file in files {
            each(&run_round_trip(data, &file)?);
        }
    }
    let plans = vectors.join("gpt_tokenizer_js").join("TestPlans.txt");
    if plans.exists() {
        for row in run_plans(data, &plans)? {
            each(&row);
        }
    }
    Ok(())
}

fn files_in(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, DataError> {
    let entries = fs::read_dir(folder).map_err(|error| unreadable(folder, error))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == ending))
        .collect();
    files.sort();
    Ok(files)
}

fn name_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn load(data: &Path, header: &Header) -> Result<Tokenizer, String> {
    let path = data.join("vocabs").join(&header.vocab);
    let mut options = LoadOptions::default();
    if let Some(pattern) = &header.pattern {
        let special_tokens =
            header.special_tokens.clone().unwrap_or_default().into_iter().collect();
        options.ranks = Some(RanksSetup { pattern: pattern.clone(), special_tokens });
    }
    let file = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Tokenizer::from_file(&file, &options).map_err(|error| error.to_string())
}

fn run_vectors(data: &Path, file: &Path) -> Result<Row, DataError> {
    let text = fs::read_to_string(file).map_err(|error| unreadable(file, error))?;
    let mut lines = text.lines().enumerate();
    let (_, header) = lines.next().ok_or_else(|| unreadable(file, "is empty"))?;
    let header: Header = serde_json::from_str(header)
        .map_err(|error| unreadable(file, format!("line 1: {error}")))?;
    let mut cases = Vec::new();
    for (i, line) in lines {
        let case: Case = serde_json::from_str(line)
            .map_err(|error| unreadable(file, format!("line {}: {error}", i + 1)))?;
        cases.push(case);
    }
    let mut row = Row { name: name_of(file), passed: 0, total: cases.len(), failures: Vec::new() };
    match load(data, &header) {
        Err(error) => row.failures.push(format!("cannot load {}: {error}", header.vocab)),
        Ok(tokenizer) => {
            for case in &cases {
                match check(&tokenizer, case) {
                    Ok(()) => row.passed += 1,
                    Err(what) => row.failures.push(format!("{}: {what}", case.name)),
                }
            }
        }
    }
    Ok(row)
}

fn check(tokenizer: &Tokenizer, case: &Case) -> Result<(), String> {
    let policy = match case.special.as_str() {
        "parse" => Policy::AllowAll,
        "ordinary" => Policy::Ordinary,
        other => return Err(format!("{other:?} is neither parse nor ordinary")),
    };
    let options = EncodeOptions::new().policy(policy.clone()).template(case.template);
    let encoding = tokenizer.encode(&case.text, &options).map_err(|error| error.to_string())?;
    let ids: Vec<u32> = encoding.ids.iter().map(|id| id.0).collect();
    if ids != case.ids {
        return Err(difference("ids", &case.ids, &ids));
    }
    if !case.template {
        let mut alone = Vec::new();
        let run = tokenizer.session().ids_with_policy_into(&case.text, &policy, &mut alone);
        run.map_err(|error| error.to_string())?;
        if alone != encoding.ids {
            return Err("the ids alone differ from the ids with offsets".into());
        }
        if tokenizer.session().count_with_policy(&case.text, &policy) != Ok(alone.len()) {
            return Err("the count differs from the number of ids".into());
        }
    }
    if let Some(expected) = &case.offsets {
        let offsets: Vec<(usize, usize)> =
            encoding.char_offsets(&case.text).iter().map(|span| (span.start, span.end)).collect();
        if offsets != *expected {
            return Err(difference("offsets", expected, &offsets));
        }
    }
    if let Some(expected) = &case.decoded {
        let ids: Vec<TokenId> = case.ids.iter().map(|&id| TokenId(id)).collect();
        let decoded =
            tokenizer.decode(&ids, DecodeOptions::default()).map_err(|error| error.to_string())?;
        if decoded != *expected {
            return Err(format!("decoded {decoded:?}, expected {expected:?}"));
        }
        let mut stream = tokenizer.decode_stream(DecodeOptions::default());
        let mut text = String::new();
        for id in ids {
            text.push_str(&stream.push(id).map_err(|error| error.to_string())?);
        }
        text.push_str(&stream.finish());
        if text != decoded {
            return Err("the stream differs from the decode".into());
        }
    }
    Ok(())
}

fn difference<T: PartialEq + fmt::Debug>(what: &str, expected: &[T], got: &[T]) -> String {
    let at = expected.iter().zip(got).take_while(|(a, b)| a == b).count();
    let window = |list: &[T]| format!("{:?}", &list[at.min(list.len())..list.len().min(at + 8)]);
    format!("{what} differ at index {at}: expected {}, got {}", window(expected), window(got))
}

/// Lists of ids whose text is theirs: decoded and encoded again they are the same.
fn run_round_trip(data: &Path, file: &Path) -> Result<Row, DataError> {
    let mut row =
        Row { name: format!("mlnet_{}", name_of(file)), passed: 0, total: 1, failures: vec![] };
    let encoding = match name_of(file).as_str() {
        "tokens" => TiktokenEncoding::Cl100kBase,
        "tokens_gpt4o" => TiktokenEncoding::O200kBase,
        "tokens_r50k_base" => TiktokenEncoding::R50kBase,
        other => return Err(unreadable(file, format!("no encoding is known for {other:?}"))),
    };
    let text = fs::read_to_string(file).map_err(|error| unreadable(file, error))?;
    let ids: Vec<u32> = serde_json::from_str(&text).map_err(|error| unreadable(file, error))?;
    let ids: Vec<TokenId> = ids.into_iter().map(TokenId).collect();
    match load_encoding(data, encoding) {
        Err(error) => row.failures.push(error),
        Ok(tokenizer) => match tokenizer.decode(&ids, DecodeOptions::default()) {
            Err(error) => row.failures.push(error.to_string()),
            Ok(text) => {
                let again = tokenizer.ids(&text);
                if again == ids {
                    row.passed = 1;
                } else {
                    row.failures.push(difference("ids", &ids, &again));
                }
            }
        },
    }
    Ok(row)
}

fn load_encoding(data: &Path, encoding: TiktokenEncoding) -> Result<Tokenizer, String> {
    let ranks = match encoding {
        TiktokenEncoding::O200kHarmony => TiktokenEncoding::O200kBase,
        TiktokenEncoding::P50kEdit => TiktokenEncoding::P50kBase,
        other => other,
    };
    let path = data.join("vocabs/tiktoken").join(format!("{}.tiktoken", ranks.name()));
    if !path.exists() {
        return Ok(Tokenizer::from_encoding(encoding));
    }
    let file = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut options = LoadOptions::default();
    options.ranks = Some(encoding.into());
    Tokenizer::from_file(&file, &options).map_err(|error| error.to_string())
}

/// Published plans: triples of lines `EncodingName:`, `Sample:`, `Encoded:`.
fn run_plans(data: &Path, file: &Path) -> Result<Vec<Row>, DataError> {
    let text = fs::read_to_string(file).map_err(|error| unreadable(file, error))?;
    let mut rows: BTreeMap<String, (Result<Tokenizer, String>, Row)> = BTreeMap::new();
    for plan in text.split("EncodingName: ").skip(1) {
        let parts = plan
            .split_once("\nSample: ")
            .and_then(|(name, rest)| Some((name, rest.rsplit_once("\nEncoded: ")?)));
        let Some((name, (sample, encoded))) = parts else {
            return Err(unreadable(file, format!("not a plan: {plan:?}")));
        };
        let ids: Vec<u32> =
            serde_json::from_str(encoded.trim()).map_err(|error| unreadable(file, error))?;
        let (tokenizer, row) = rows.entry(name.to_owned()).or_insert_with(|| {
            let tokenizer = TiktokenEncoding::from_name(name)
                .ok_or_else(|| format!("no encoding is called {name:?}"))
                .and_then(|encoding| load_encoding(data, encoding));
            let row = Row {
                name: format!("gpt_tokenizer_js_{name}"),
                passed: 0,
                total: 0,
                failures: Vec::new(),
            };
            (tokenizer, row)
        });
        row.total += 1;
        match tokenizer {
            Err(error) if row.failures.is_empty() => row.failures.push(error.clone()),
            Err(_) => {}
            Ok(tokenizer) => {
                let got: Vec<u32> = tokenizer.ids(sample).iter().map(|id| id.0).collect();
                if got == ids {
                    row.passed += 1;
                } else {
                    row.failures.push(format!("{sample:?}: {}", difference("ids", &ids, &got)));
                }
            }
        }
    }
    Ok(rows.into_values().map(|(_, row)| row).collect())
}
