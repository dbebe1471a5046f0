use core::fmt;

use crate::json::{Number, Reader};
use crate::{ErrorKind, counts, gguf, gpt2, protobuf};

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// [`tokenizer_json`](crate::tokenizer_json).
    TokenizerJson,
    /// [`tiktoken`](crate::tiktoken).
    Tiktoken,
    /// [`tekken`](crate::tekken).
    Tekken,
    /// [`vocab_txt`](crate::vocab_txt).
    VocabTxt,
    /// The `vocab.json` of [`gpt2`].
    VocabJson,
    /// The `merges.txt` of [`gpt2`].
    MergesTxt,
    /// [`sentencepiece`](crate::sentencepiece).
    SentencePiece,
    /// [`gguf`].
    Gguf,
    /// The binary form of [`counts`].
    Counts,
    /// The text form of [`counts`].
    CountsTsv,
    /// [`counts`] as a Parquet table, which the feature `parquet` reads.
    CountsParquet,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TokenizerJson => "tokenizer.json",
            Self::Tiktoken => "tiktoken ranks",
            Self::Tekken => "tekken.json",
            Self::VocabTxt => "vocab.txt",
            Self::VocabJson => "vocab.json",
            Self::MergesTxt => "merges.txt",
            Self::SentencePiece => "SentencePiece model",
            Self::Gguf => "GGUF",
            Self::Counts => "piece counts",
            Self::CountsTsv => "piece counts as text",
            Self::CountsParquet => "piece counts in Parquet",
        })
    }
}

/// Recognises a format by content, from the whole file or a prefix of some kilobytes. `None` where
/// nothing fits; what is recognised need not be valid.
///
/// Reads until it is sure: usually a line or a JSON key, at most the whole of a JSON file. Text is
/// taken for a `vocab.txt` only with one of the special tokens that BERT's have on a line of its
/// own.
///
/// ```
/// use formats::{Format, detect};
///
/// assert_eq!(detect(b"{\"model\": {\"type\": \"BPE\""), Some(Format::TokenizerJson));
/// assert_eq!(detect(b"IQ== 0\n"), Some(Format::Tiktoken));
/// assert_eq!(detect(b"#version: 0.2\n"), Some(Format::MergesTxt));
/// assert_eq!(detect(b"[PAD]\n[UNK]\n"), Some(Format::VocabTxt));
/// assert_eq!(detect(b"Hello, world"), None);
/// ```
#[must_use]
pub fn detect(file: &[u8]) -> Option<Format> {
    if file.starts_with(&gguf::MAGIC) {
        return Some(Format::Gguf);
    }
    if file.starts_with(&counts::MAGIC) {
        return Some(Format::Counts);
    }
    if file.starts_with(b"PAR1") {
        return Some(Format::CountsParquet);
    }
    if is_sentencepiece(file) {
        return Some(Format::SentencePiece);
    }
    // A prefix may end within a character.
    let text = match core::str::from_utf8(file) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            core::str::from_utf8(&file[..error.valid_up_to()]).ok()?
        }
        // The pieces of counts may be any bytes.
        Err(_) => "",
    };
    if text.trim_start().starts_with('{') {
        return detect_json(text);
    }
    let mut lines = text.lines().filter(|line| !line.is_empty());
    let first = lines.next()?;
    if is_rank_line(first) {
        return Some(Format::Tiktoken);
    }
    if first.starts_with("#version") {
        return Some(Format::MergesTxt);
    }
    const BERT: [&str; 6] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<unk>"];
    if text.lines().any(|line| BERT.contains(&line.trim_end())) {
        return Some(Format::VocabTxt);
    }
    let all = |is: fn(&str) -> bool| {
        // The last line may be cut.
        let end = text.rfind('\n').map_or(text.len(), |end| end + 1);
        text[..end].lines().take(1000).all(is)
    };
    if all(|line| line.split_once('\t').is_some_and(|(_, count)| is_number(count))) {
        return Some(Format::CountsTsv);
    }
    // Two words on each of so many lines are no prose.
    (text.lines().count() > 16 && all(gpt2::is_merge_line)).then_some(Format::MergesTxt)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_rank_line(line: &str) -> bool {
    let base64 = |text: &str| {
        text.len() >= 4
            && text.len().is_multiple_of(4)
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b))
    };
    line.split_once(' ').is_some_and(|(token, rank)| base64(token) && is_number(rank))
}

/// Whether the first field is a piece: a message of a string, a float and a type.
fn is_sentencepiece(file: &[u8]) -> bool {
    // A prefix may end in the middle of a model, but not of its first piece.
    let piece = || -> protobuf::Result<bool> {
        let Some(field) = protobuf::Fields::new(file).next()? else { return Ok(false) };
        if field.number != 1 {
            return Ok(false);
        }
        let mut fields = field.message()?;
        let (mut text, mut others) = (0, true);
        while let Some(field) = fields.next()? {
            match field.number {
                1 => {
                    field.string()?;
                    text += 1;
                }
                2 => drop(field.float()?),
                3 => drop(field.varint()?),
                number => others &= number >= 200,
            }
        }
        Ok(text == 1 && others)
    };
    piece().unwrap_or(false)
}

/// Tells JSON files by their first telling member.
fn detect_json(text: &str) -> Option<Format> {
    let mut reader = Reader::new(text);
    let (mut found, mut config, mut members, mut numbers) = (None, false, 0, 0);
    let result = reader.object(|r, key| {
        let next = r.peek()?;
        found = match (&**key, next) {
            ("model", b'{') | ("added_tokens", b'[') => Some(Format::TokenizerJson),
            ("truncation" | "padding", b'n' | b'{') => Some(Format::TokenizerJson),
            ("vocab", b'[') if config => Some(Format::Tekken),
            _ => None,
        };
        if found.is_some() {
            // Any error ends the reading.
            return Err(r.error(ErrorKind::Invalid, ""));
        }
        config |= key == "config" && next == b'{' && r.look_ahead("pattern")?.is_some();
        members += 1;
        if next.is_ascii_digit() {
            numbers += usize::from(matches!(r.number()?, Number::Unsigned(_)));
            return Ok(());
        }
        r.skip().map(|_| ())
    });
    let cut = result.is_err();
    if found.is_some() {
        return found;
    }
    if config && !cut {
        return Some(Format::Tekken);
    }
    // Of a prefix the last number may be cut, but is a number all the same.
    (members > 0 && members == numbers).then_some(Format::VocabJson)
}
