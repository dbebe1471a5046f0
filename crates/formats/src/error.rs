use core::fmt;

use crate::Format;

/// Why a file could not be read: which format, where, what, and the limit that was passed.
///
/// ```
/// use formats::{ErrorKind, tokenizer_json::TokenizerJson};
///
/// let error = TokenizerJson::parse(br#"{"model": {"type": "Morse", "vocab": {}}}"#).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::UnknownPart);
/// assert_eq!(
///     error.to_string(),
///     "tokenizer.json, line 1 column 20, $.model.type: unknown model \"Morse\""
/// );
/// ```
#[derive(Debug)]
pub struct ReadError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    format: Format,
    position: Position,
    path: Option<String>,
    kind: ErrorKind,
    what: String,
    source: Option<std::io::Error>,
}

/// Where in a file a fault lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Position {
    /// Line and column, both from 1; columns count characters.
    LineColumn {
        /// The line, from 1.
        line: usize,
        /// The character of the line, from 1.
        column: usize,
    },
    /// A line of a text file, from 1.
    Line(usize),
    /// A byte offset from the beginning of the file.
    Byte(u64),
    /// The file as a whole.
    Whole,
}

/// What kind of fault a file has; what callers branch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The bytes do not follow the grammar of the format.
    Syntax,
    /// The file ends in the middle. For formats that are read from a prefix of the file, more
    /// bytes may help.
    Truncated,
    /// A value is of another type than the format says.
    WrongType,
    /// A part, version or variant that this format does not define.
    UnknownPart,
    /// Something that must be there is not.
    Missing,
    /// Something that must be unique is there twice.
    Duplicate,
    /// A name or id points to nothing.
    Dangling,
    /// A number or size is beyond what is allowed.
    Limit,
    /// Well-formed, but contradicts itself or a rule of the format.
    Invalid,
    /// The checksum does not match the content.
    Corrupt,
    /// The reader that the caller passed failed.
    Io,
}

impl ReadError {
    pub(crate) fn new(
        format: Format,
        position: Position,
        kind: ErrorKind,
        what: impl Into<String>,
    ) -> Self {
        Self(Box::new(Inner {
            format,
            position,
            path: None,
            kind,
            what: what.into(),
            source: None,
        }))
    }

    pub(crate) fn with_path(mut self, path: String) -> Self {
        self.0.path = Some(path);
        self
    }

    pub(crate) fn io(format: Format, position: Position, error: std::io::Error) -> Self {
        let mut this = Self::new(format, position, ErrorKind::Io, "cannot read");
        this.0.source = Some(error);
        this
    }

    /// The format that the file was read as.
    #[must_use]
    pub fn format(&self) -> Format {
        self.0.format
    }

    /// Where the fault lies.
    #[must_use]
    pub fn position(&self) -> Position {
        self.0.position
    }

    /// The kind of the fault.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// For JSON files the path of the value at fault: `$.pre_tokenizer.pretokenizers[1].type`.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        self.0.path.as_deref()
    }

    /// What is wrong, without format and position.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.0.what
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.format)?;
        match self.0.position {
            Position::LineColumn { line, column } => write!(f, ", line {line} column {column}")?,
            Position::Line(line) => write!(f, ", line {line}")?,
            Position::Byte(offset) => write!(f, ", byte {offset}")?,
            Position::Whole => {}
        }
        if let Some(path) = &self.0.path {
            write!(f, ", {path}")?;
        }
        write!(f, ": {}", self.0.what)
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|error| error as _)
    }
}

/// Why a document cannot be written in a format that cannot express it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteError {
    format: Format,
    what: String,
}

impl WriteError {
    pub(crate) fn new(format: Format, what: impl Into<String>) -> Self {
        Self { format, what: what.into() }
    }

    /// The format is one that is read only.
    #[must_use]
    pub fn unsupported(format: Format) -> Self {
        Self::new(format, "files of this format are read, not written")
    }

    /// The format that cannot express the document.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// What cannot be expressed.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.what
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot express this: {}", self.format, self.what)
    }
}

impl std::error::Error for WriteError {}

/// A text for an error message: quoted, escaped, and cut to 60 characters.
pub(crate) fn quoted(text: &str) -> String {
    const MAX: usize = 60;
    match text.char_indices().nth(MAX) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}...", &text[..end]),
    }
}

/// As [`quoted`], for bytes that need not be UTF-8.
pub(crate) fn quoted_bytes(bytes: &[u8]) -> String {
    quoted(&String::from_utf8_lossy(&bytes[..bytes.len().min(240)]))
}
