//! A small JSON reader and writer.
//!
//! Why not serde_json: errors must carry the path as well as line and column; vocabularies go
//! straight into one arena; and a score must be rounded as Hugging Face tokenizers rounds it, which
//! is serde_json's *default* number parser. That parser may be off by a unit in the last place, so
//! its result is part of the ids that a Unigram model gives, while with the feature
//! `float_roundtrip` (which any crate of a build can switch on for all) it gives other scores. Here
//! the rule is fixed (see [`Reader::number`]); the tests compare both with serde_json.

use std::borrow::Cow;

use crate::error::quoted;
use crate::{ErrorKind, Format, Position, ReadError};

/// How deep arrays and objects may nest, as in serde_json.
pub(crate) const MAX_DEPTH: usize = 127;

pub(crate) type Result<T> = core::result::Result<T, Box<JsonError>>;

#[derive(Debug)]
pub(crate) struct JsonError {
    pub(crate) offset: usize,
    pub(crate) kind: ErrorKind,
    pub(crate) what: String,
    /// The way to the value, innermost first.
    path: Vec<Segment>,
}

impl JsonError {
    /// The error inside of the member `key`, where no [`Reader::object`] adds it.
    pub(crate) fn within(mut self: Box<Self>, key: &str) -> Box<Self> {
        self.path.push(Segment::Key(key.to_owned()));
        self
    }
}

#[derive(Debug)]
enum Segment {
    Key(String),
    Index(usize),
}

/// A number as serde_json sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Unsigned(u64),
    Negative(i64),
    Float(f64),
}

impl Number {
    pub(crate) fn as_f64(self) -> f64 {
        match self {
            Self::Unsigned(n) => n as f64,
            Self::Negative(n) => n as f64,
            Self::Float(n) => n,
        }
    }
}

/// Reads a whole document with `read`, and gives errors their position.
pub(crate) fn read<'a, T>(
    format: Format,
    bytes: &'a [u8],
    read: impl FnOnce(&mut Reader<'a>) -> Result<T>,
) -> core::result::Result<T, ReadError> {
    let text = match core::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let valid = core::str::from_utf8(&bytes[..error.valid_up_to()])
                .expect("valid up to here, says the error");
            let what = format!("invalid UTF-8 at byte {}", valid.len());
            return Err(ReadError::new(
                format,
                position(valid, valid.len()),
                ErrorKind::Syntax,
                what,
            ));
        }
    };
    let mut reader = Reader::new(text);
    let result = read(&mut reader).and_then(|value| {
        reader.end()?;
        Ok(value)
    });
    result.map_err(|error| {
        let mut path = String::from("$");
        for segment in error.path.iter().rev() {
            match segment {
                Segment::Index(i) => path.push_str(&format!("[{i}]")),
                Segment::Key(key) if is_plain(key) => path.push_str(&format!(".{key}")),
                Segment::Key(key) => path.push_str(&format!("[{}]", quoted(key))),
            }
        }
        ReadError::new(format, position(text, error.offset), error.kind, error.what).with_path(path)
    })
}

fn is_plain(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn position(text: &str, offset: usize) -> Position {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    Position::LineColumn {
        line: 1 + before.bytes().filter(|&b| b == b'\n').count(),
        column: 1 + before[line_start..].chars().count(),
    }
}

/// A cursor over the text of a document. Every method reads one value and leaves the cursor
/// behind it.
pub(crate) struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0 }
    }

    /// An error at the next value.
    pub(crate) fn error(&mut self, kind: ErrorKind, what: impl Into<String>) -> Box<JsonError> {
        self.space();
        self.error_at(self.at, kind, what)
    }

    pub(crate) fn error_at(
        &self,
        offset: usize,
        kind: ErrorKind,
        what: impl Into<String>,
    ) -> Box<JsonError> {
        Box::new(JsonError { offset, kind, what: what.into(), path: Vec::new() })
    }

    /// Where the next value begins; [`rewind`](Self::rewind) goes back there.
    pub(crate) fn mark(&mut self) -> usize {
        self.space();
        self.at
    }

    pub(crate) fn rewind(&mut self, mark: usize) {
        self.at = mark;
    }

    /// The first byte of the next value or punctuation.
    #[inline]
    pub(crate) fn peek(&mut self) -> Result<u8> {
        self.space();
        match self.text.as_bytes().get(self.at) {
            Some(&byte) => Ok(byte),
            None => {
                Err(self.error_at(self.at, ErrorKind::Truncated, "the file ends in the middle"))
            }
        }
    }

    #[inline]
    fn space(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = bytes.get(self.at) {
            self.at += 1;
        }
    }

    fn end(&mut self) -> Result<()> {
        self.space();
        if self.at == self.text.len() {
            return Ok(());
        }
        Err(self.error_at(self.at, ErrorKind::Syntax, "more text behind the end of the document"))
    }

    fn punctuation(&mut self, expected: u8) -> Result<()> {
        if self.peek()? == expected {
            self.at += 1;
            return Ok(());
        }
        let what = format!("expected '{}'", char::from(expected));
        Err(self.error_at(self.at, ErrorKind::Syntax, what))
    }

    /// An object; `member` reads each value. Errors get the key put in front of their path.
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &Cow<'a, str>) -> Result<()>,
    ) -> Result<()> {
        self.open(b'{', "an object")?;
        let mut first = true;
        while self.next_item(b'}', &mut first)? {
            if self.peek()? != b'"' {
                return Err(self.error_at(self.at, ErrorKind::Syntax, "expected a quoted key"));
            }
            let key = self.string()?;
            self.punctuation(b':')?;
            member(self, &key).map_err(|mut error| {
                error.path.push(Segment::Key(key.into_owned()));
                error
            })?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// An array; `item` reads each value. Errors get the index put in front of their path.
    pub(crate) fn array(
        &mut self,
        mut item: impl FnMut(&mut Self, usize) -> Result<()>,
    ) -> Result<()> {
        self.open(b'[', "an array")?;
        let mut first = true;
        let mut index = 0;
        while self.next_item(b']', &mut first)? {
            item(self, index).map_err(|mut error| {
                error.path.push(Segment::Index(index));
                error
            })?;
            index += 1;
        }
        self.depth -= 1;
        Ok(())
    }

    fn open(&mut self, bracket: u8, name: &str) -> Result<()> {
        if self.peek()? != bracket {
            return Err(self.wrong_type(name));
        }
        if self.depth == MAX_DEPTH {
            let what = format!("arrays and objects nest deeper than {MAX_DEPTH}");
            return Err(self.error_at(self.at, ErrorKind::Limit, what));
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    /// Whether another item follows in an array or object.
    fn next_item(&mut self, close: u8, first: &mut bool) -> Result<bool> {
        let next = self.peek()?;
        if next == close {
            self.at += 1;
            return Ok(false);
        }
        if !std::mem::replace(first, false) {
            self.punctuation(b',')?;
            if self.peek()? == close {
                return Err(self.error_at(
                    self.at,
                    ErrorKind::Syntax,
                    "a comma with nothing behind",
                ));
            }
        }
        Ok(true)
    }

    /// An error that says what is there instead of `expected`.
    pub(crate) fn wrong_type(&mut self, expected: &str) -> Box<JsonError> {
        let found = match self.peek() {
            Err(error) => return error,
            Ok(b'{') => "an object",
            Ok(b'[') => "an array",
            Ok(b'"') => "a string",
            Ok(b't' | b'f') => "a boolean",
            Ok(b'n') => "null",
            Ok(b'-' | b'0'..=b'9') => "a number",
            Ok(_) => {
                return self.error_at(self.at, ErrorKind::Syntax, "expected a value");
            }
        };
        self.error_at(self.at, ErrorKind::WrongType, format!("expected {expected}, found {found}"))
    }

    /// A string, borrowed where it holds no escape.
    pub(crate) fn string(&mut self) -> Result<Cow<'a, str>> {
        if self.peek()? != b'"' {
            return Err(self.wrong_type("a string"));
        }
        let start = self.at + 1;
        let bytes = self.text.as_bytes();
        let plain = |from: usize| {
            bytes[from..]
                .iter()
                .position(|&b| b == b'"' || b == b'\\' || b < 0x20)
                .map(|length| from + length)
        };
        let mut end = plain(start);
        if let Some(end) = end
            && bytes[end] == b'"'
        {
            self.at = end + 1;
            return Ok(Cow::Borrowed(&self.text[start..end]));
        }
        let mut string = String::new();
        let mut from = start;
        loop {
            let Some(at) = end else {
                let what = "the file ends in the middle of a string";
                return Err(self.error_at(bytes.len(), ErrorKind::Truncated, what));
            };
            string.push_str(&self.text[from..at]);
            match bytes[at] {
                b'"' => {
                    self.at = at + 1;
                    return Ok(Cow::Owned(string));
                }
                b'\\' => {
                    let (c, next) = self.escape(at)?;
                    string.push(c);
                    from = next;
                    end = plain(from);
                }
                control => {
                    let what = format!("control character U+{control:04X} must be escaped");
                    return Err(self.error_at(at, ErrorKind::Syntax, what));
                }
            }
        }
    }

    /// The character of the escape at `at` and where it ends.
    fn escape(&self, at: usize) -> Result<(char, usize)> {
        let bytes = self.text.as_bytes();
        let simple = match bytes.get(at + 1) {
            None => {
                let what = "the file ends in the middle of a string";
                return Err(self.error_at(at, ErrorKind::Truncated, what));
            }
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{C}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(at),
            Some(_) => return Err(self.error_at(at, ErrorKind::Syntax, "unknown escape")),
        };
        Ok((simple, at + 2))
    }

    fn unicode_escape(&self, at: usize) -> Result<(char, usize)> {
        let unit = |at: usize| -> Option<u32> {
            let digits = self.text.as_bytes().get(at..at + 6)?;
            let digits = digits.strip_prefix(b"\\u")?;
            digits.iter().try_fold(0, |unit, &b| Some(unit * 16 + char::from(b).to_digit(16)?))
        };
        let fault = |what: &str| Err(self.error_at(at, ErrorKind::Syntax, what));
        let Some(first) = unit(at) else {
            return fault("\\u needs four hexadecimal digits");
        };
        if let Some(c) = char::from_u32(first) {
            return Ok((c, at + 6));
        }
        match unit(at + 6) {
            Some(second @ 0xDC00..=0xDFFF) if first < 0xDC00 => {
                let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                Ok((char::from_u32(code).expect("a surrogate pair is a character"), at + 12))
            }
            _ => fault("a surrogate without its other half"),
        }
    }

    /// One character, as a string.
    pub(crate) fn char(&mut self) -> Result<char> {
        let mark = self.mark();
        let string = self.string()?;
        let mut chars = string.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) => Ok(c),
            _ => {
                let what = format!("expected one character, found {}", quoted(&string));
                Err(self.error_at(mark, ErrorKind::WrongType, what))
            }
        }
    }

    pub(crate) fn bool(&mut self) -> Result<bool> {
        match self.peek()? {
            b't' => self.word("true").map(|()| true),
            b'f' => self.word("false").map(|()| false),
            _ => Err(self.wrong_type("a boolean")),
        }
    }

    /// `null` as `None`, anything else as `read` reads it.
    pub(crate) fn optional<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<Option<T>> {
        if self.peek()? == b'n' { self.word("null").map(|()| None) } else { read(self).map(Some) }
    }

    fn word(&mut self, word: &str) -> Result<()> {
        if self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(());
        }
        Err(self.error_at(self.at, ErrorKind::Syntax, format!("expected {word}")))
    }

    /// A whole number from 0 to `max`, written without fraction or exponent.
    pub(crate) fn unsigned(&mut self, max: u64) -> Result<u64> {
        let mark = self.mark();
        if !matches!(self.peek()?, b'-' | b'0'..=b'9') {
            return Err(self.wrong_type("a whole number"));
        }
        let number = self.number()?;
        match number {
            Number::Unsigned(n) if n <= max => Ok(n),
            Number::Unsigned(_) | Number::Negative(_) => {
                let what = format!("{} is not between 0 and {max}", &self.text[mark..self.at]);
                Err(self.error_at(mark, ErrorKind::Limit, what))
            }
            Number::Float(_) => {
                let text = quoted(&self.text[mark..self.at]);
                let what = format!("expected a whole number up to {max}, found {text}");
                Err(self.error_at(mark, ErrorKind::WrongType, what))
            }
        }
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.unsigned(u64::from(u32::MAX)).map(|n| n as u32)
    }

    pub(crate) fn usize(&mut self) -> Result<usize> {
        // Lossless: on every supported target usize is at most 64 bits.
        self.unsigned(usize::MAX as u64).map(|n| n as usize)
    }

    pub(crate) fn f64(&mut self) -> Result<f64> {
        match self.peek()? {
            b'-' | b'0'..=b'9' => Ok(self.number()?.as_f64()),
            _ => Err(self.wrong_type("a number")),
        }
    }

    /// A number, rounded as serde_json does by default: up to 19 or 20 digits are gathered in 64
    /// bits, those behind are dropped, the integer is rounded to `f64` and then multiplied or
    /// divided by a rounded power of ten.
    pub(crate) fn number(&mut self) -> Result<Number> {
        self.space();
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut at = start;
        let positive = bytes.get(at) != Some(&b'-');
        at += usize::from(!positive);
        let syntax = |at: usize| self.error_at(at, ErrorKind::Syntax, "not a number");
        let digit = |at: usize| bytes.get(at).filter(|b| b.is_ascii_digit()).map(|b| b - b'0');

        let mut significand: u64 = 0;
        let mut exponent: i32 = 0;
        let mut overflowed = false;
        let first = at;
        while let Some(d) = digit(at) {
            match significand.checked_mul(10).and_then(|n| n.checked_add(u64::from(d))) {
                Some(next) if !overflowed => significand = next,
                _ => {
                    overflowed = true;
                    exponent = exponent.saturating_add(1);
                }
            }
            at += 1;
        }
        if at == first || (at > first + 1 && bytes[first] == b'0') {
            return Err(syntax(first));
        }
        let mut integer = !overflowed;
        if bytes.get(at) == Some(&b'.') {
            integer = false;
            at += 1;
            let fraction = at;
            // The integer part may have been cut; the fraction is tried again from there.
            let mut cut = false;
            while let Some(d) = digit(at) {
                match significand.checked_mul(10).and_then(|n| n.checked_add(u64::from(d))) {
                    Some(next) if !cut => {
                        significand = next;
                        exponent = exponent.saturating_sub(1);
                    }
                    _ => cut = true,
                }
                at += 1;
            }
            if at == fraction {
                return Err(syntax(at));
            }
        }
        if let Some(b'e' | b'E') = bytes.get(at) {
            integer = false;
            at += 1;
            let negative = bytes.get(at) == Some(&b'-');
            at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
            let digits = at;
            let mut value: i32 = 0;
            while let Some(d) = digit(at) {
                value = value.saturating_mul(10).saturating_add(i32::from(d));
                at += 1;
            }
            if at == digits {
                return Err(syntax(at));
            }
            exponent = if negative {
                exponent.saturating_sub(value)
            } else {
                exponent.saturating_add(value)
            };
        }
        let number = if integer && positive {
            Number::Unsigned(significand)
        } else if integer && significand != 0 && significand <= 1 << 63 {
            Number::Negative((significand as i64).wrapping_neg())
        } else {
            match scale(significand as f64, exponent) {
                Some(value) => Number::Float(if positive { value } else { -value }),
                None => return Err(self.error_at(start, ErrorKind::Limit, "number out of range")),
            }
        };
        self.at = at;
        Ok(number)
    }

    /// Any value, checked but not kept; returns its text.
    pub(crate) fn skip(&mut self) -> Result<&'a str> {
        let mark = self.mark();
        match self.peek()? {
            b'{' => self.object(|reader, _| reader.skip().map(|_| ()))?,
            b'[' => self.array(|reader, _| reader.skip().map(|_| ()))?,
            b'"' => self.skip_string()?,
            b't' | b'f' => self.bool().map(|_| ())?,
            b'n' => self.word("null")?,
            b'-' | b'0'..=b'9' => self.number().map(|_| ())?,
            _ => return Err(self.error_at(self.at, ErrorKind::Syntax, "expected a value")),
        }
        Ok(&self.text[mark..self.at])
    }

    fn skip_string(&mut self) -> Result<()> {
        self.string().map(|_| ())
    }

    /// A field of an object, which may be there only once.
    pub(crate) fn field<T>(
        &mut self,
        slot: &mut Option<T>,
        read: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<()> {
        if slot.is_some() {
            return Err(self.error(ErrorKind::Duplicate, "this field is here twice"));
        }
        *slot = Some(read(self)?);
        Ok(())
    }

    /// The value of a field that must be there; `object` is where its object began.
    pub(crate) fn require<T>(&self, slot: Option<T>, name: &str, object: usize) -> Result<T> {
        slot.ok_or_else(|| {
            self.error_at(object, ErrorKind::Missing, format!("field \"{name}\" is missing"))
        })
    }

    /// The string member `name` of the next object, without moving the cursor. Stops reading as
    /// soon as it is found.
    pub(crate) fn look_ahead(&mut self, name: &str) -> Result<Option<(Cow<'a, str>, usize)>> {
        let (mark, depth) = (self.mark(), self.depth);
        let mut found = None;
        let result = self.object(|reader, key| {
            if *key != name {
                return reader.skip().map(|_| ());
            }
            let at = reader.mark();
            found = Some((reader.string()?, at));
            // Any error ends the search; it is dropped below.
            Err(reader.error_at(at, ErrorKind::Invalid, ""))
        });
        self.at = mark;
        self.depth = depth;
        match found {
            Some(found) => Ok(Some(found)),
            None => result.map(|()| None),
        }
    }
}

/// `value * 10^exponent` in two roundings, or `None` where that is infinite.
fn scale(mut value: f64, mut exponent: i32) -> Option<f64> {
    while exponent.unsigned_abs() > 308 {
        if value == 0.0 {
            return Some(value);
        }
        if exponent > 0 {
            return None;
        }
        value /= 1e308;
        exponent += 308;
    }
    let power = power_of_ten(exponent.unsigned_abs());
    let scaled = if exponent < 0 { value / power } else { value * power };
    scaled.is_finite().then_some(scaled)
}

/// `10^n` rounded to nearest, for n up to 308.
fn power_of_ten(n: u32) -> f64 {
    /// Exact up to 10^22.
    const EXACT: [f64; 23] = {
        let mut table = [1.0; 23];
        let mut n = 1;
        while n < 23 {
            table[n] = table[n - 1] * 10.0;
            n += 1;
        }
        table
    };
    match EXACT.get(n as usize) {
        Some(&power) => power,
        None => format!("1e{n}").parse().expect("a power of ten up to 308 is a number"),
    }
}

/// How a JSON document is laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Layout {
    /// On one line without spaces.
    Compact,
    /// A line for every value, indented by two spaces.
    #[default]
    Pretty,
}

/// Writes JSON with the escapes, the numbers and the layout of serde_json.
pub(crate) struct Writer {
    out: String,
    layout: Layout,
    depth: usize,
    /// Whether the innermost array or object holds something already.
    filled: bool,
}

impl Writer {
    pub(crate) fn new(layout: Layout) -> Self {
        Self { out: String::new(), layout, depth: 0, filled: false }
    }

    pub(crate) fn finish(self) -> String {
        self.out
    }

    pub(crate) fn object(&mut self, members: impl FnOnce(&mut Self)) {
        self.nested('{', '}', members);
    }

    pub(crate) fn array(&mut self, items: impl FnOnce(&mut Self)) {
        self.nested('[', ']', items);
    }

    fn nested(&mut self, open: char, close: char, content: impl FnOnce(&mut Self)) {
        self.out.push(open);
        self.depth += 1;
        let outer = std::mem::replace(&mut self.filled, false);
        content(self);
        self.depth -= 1;
        if std::mem::replace(&mut self.filled, outer) {
            self.line();
        }
        self.out.push(close);
    }

    /// A member of an object.
    pub(crate) fn member(&mut self, key: &str, value: impl FnOnce(&mut Self)) {
        self.separate();
        self.string(key);
        self.out.push(':');
        if self.layout == Layout::Pretty {
            self.out.push(' ');
        }
        value(self);
    }

    /// An item of an array.
    pub(crate) fn item(&mut self, value: impl FnOnce(&mut Self)) {
        self.separate();
        value(self);
    }

    fn separate(&mut self) {
        if std::mem::replace(&mut self.filled, true) {
            self.out.push(',');
        }
        self.line();
    }

    fn line(&mut self) {
        if self.layout == Layout::Pretty {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n("  ", self.depth));
        }
    }

    pub(crate) fn string(&mut self, string: &str) {
        self.out.push('"');
        let mut from = 0;
        for (at, byte) in string.bytes().enumerate() {
            let short = match byte {
                b'"' => "\\\"",
                b'\\' => "\\\\",
                0x08 => "\\b",
                0x0C => "\\f",
                b'\n' => "\\n",
                b'\r' => "\\r",
                b'\t' => "\\t",
                0..0x20 => "",
                _ => continue,
            };
            self.out.push_str(&string[from..at]);
            from = at + 1;
            if short.is_empty() {
                self.out.push_str(&format!("\\u{byte:04x}"));
            } else {
                self.out.push_str(short);
            }
        }
        self.out.push_str(&string[from..]);
        self.out.push('"');
    }

    pub(crate) fn bool(&mut self, value: bool) {
        self.out.push_str(if value { "true" } else { "false" });
    }

    pub(crate) fn null(&mut self) {
        self.out.push_str("null");
    }

    pub(crate) fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        match value {
            Some(value) => write(self, value),
            None => self.null(),
        }
    }

    pub(crate) fn number(&mut self, value: impl Into<u64>) {
        self.out.push_str(&value.into().to_string());
    }

    /// What is read where `value` was written: itself if it was read before, else perhaps a unit in
    /// the last place beside it.
    pub(crate) fn reread(value: f64) -> f64 {
        let mut writer = Self::new(Layout::Compact);
        writer.float(value);
        Reader::new(&writer.out).number().map_or(value, Number::as_f64)
    }

    /// A float, as the shortest digits that give it back under the rule of [`Reader::number`]; the
    /// shortest that give it back under exact rounding, which serde_json writes, need not.
    /// `null` for what is not finite, which JSON cannot express.
    pub(crate) fn float(&mut self, value: f64) {
        let mark = self.out.len();
        self.digits(value.is_finite(), &format!("{value:e}"));
        let stable = |text: &str| {
            let read = Reader::new(text).number().map(Number::as_f64);
            read.is_ok_and(|read| read.to_bits() == value.to_bits())
        };
        if !value.is_finite() || stable(&self.out[mark..]) {
            return;
        }
        // Digits that are a number of 53 bits are rounded once, by the division, and so exactly if
        // the power of ten is exact. Every float of a usual size that was ever read has such digits:
        // those that its own digits were rounded to. About one in ten others has none. Where the
        // power is rounded too (scores below 1e-5 or so), digits that are read as this float may
        // exactly be another; they serve if there are no better ones.
        let shortest = self.out.split_off(mark);
        for (exact, decimals) in [(true, 16..=19), (false, 0..=19)] {
            for decimals in decimals {
                let scientific = format!("{value:.decimals$e}");
                let (digits, exponent) =
                    scientific.split_once('e').expect("{:e} writes an exponent");
                let sign = if digits.starts_with('-') { "-" } else { "" };
                let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
                let Ok(digits) = digits.parse::<u64>() else { break };
                let spacing = 1 << (11 - digits.leading_zeros().min(11));
                for step in [0, 1, -1, 2, -2, 3, -3, 4, -4] {
                    let near = (digits as f64 as u64).saturating_add_signed(step * spacing);
                    let near = near.to_string();
                    let (first, rest) = near.split_at(1);
                    self.digits(true, &format!("{sign}{first}.{rest}e{exponent}"));
                    let text = &self.out[mark..];
                    let good = near.len() == decimals + 1 && stable(text);
                    if good && (!exact || text.parse() == Ok(value)) {
                        return;
                    }
                    self.out.truncate(mark);
                }
            }
        }
        self.out.push_str(&shortest);
    }

    pub(crate) fn float32(&mut self, value: f32) {
        self.digits(value.is_finite(), &format!("{value:e}"));
    }

    /// Lays out `d.ddde-n`: plain from 1e-5 up to 1e16, else with an exponent.
    fn digits(&mut self, finite: bool, scientific: &str) {
        if !finite {
            return self.null();
        }
        let (digits, exponent) = scientific.split_once('e').expect("{:e} writes an exponent");
        let exponent: i32 = exponent.parse().expect("{:e} writes a decimal exponent");
        let (sign, digits) = match digits.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", digits),
        };
        let digits: String = digits.chars().filter(|&c| c != '.').collect();
        let length = digits.len() as i32;
        self.out.push_str(sign);
        match exponent {
            0..16 if length <= exponent + 1 => {
                self.out.push_str(&digits);
                self.out.extend(std::iter::repeat_n('0', (exponent + 1 - length) as usize));
                self.out.push_str(".0");
            }
            0..16 => {
                let (whole, fraction) = digits.split_at((exponent + 1) as usize);
                self.out.push_str(whole);
                self.out.push('.');
                self.out.push_str(fraction);
            }
            -5..0 => {
                self.out.push_str("0.");
                self.out.extend(std::iter::repeat_n('0', (-exponent - 1) as usize));
                self.out.push_str(&digits);
            }
            _ => {
                let (first, rest) = digits.split_at(1);
                self.out.push_str(first);
                if !rest.is_empty() {
                    self.out.push('.');
                    self.out.push_str(rest);
                }
                self.out.push_str(&format!("e{exponent:+}"));
            }
        }
    }

    /// A value that is JSON text already.
    pub(crate) fn raw(&mut self, json: &str) {
        self.out.push_str(json);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(text: &str) -> Result<Number> {
        let mut reader = Reader::new(text);
        let number = reader.number()?;
        reader.end()?;
        Ok(number)
    }

    /// The same number as serde_json in its default configuration, or both none.
    fn check_number(text: &str) {
        let theirs: Option<serde_json::Number> = serde_json::from_str(text).ok();
        match (number(text), theirs) {
            (Ok(Number::Unsigned(ours)), Some(theirs)) => {
                assert_eq!(Some(ours), theirs.as_u64(), "{text}");
            }
            (Ok(Number::Negative(ours)), Some(theirs)) => {
                assert_eq!(Some(ours), theirs.as_i64(), "{text}");
                assert!(!theirs.is_u64(), "{text}");
            }
            (Ok(Number::Float(ours)), Some(theirs)) => {
                assert!(theirs.is_f64(), "{text}");
                let theirs = theirs.as_f64().unwrap();
                assert_eq!(ours.to_bits(), theirs.to_bits(), "{text}: {ours} {theirs}");
            }
            (Err(_), None) => {}
            (ours, theirs) => panic!("{text}: {ours:?} {theirs:?}"),
        }
    }

    fn written(value: f64) -> String {
        let mut writer = Writer::new(Layout::Compact);
        writer.float(value);
        writer.finish()
    }

    #[test]
    fn numbers_are_rounded_as_serde_json_rounds_them() {
        let cases = [
            "0",
            "-0",
            "0.0",
            "-0.0",
            "1",
            "-1",
            "00",
            "01",
            "-",
            "",
            "1.",
            ".5",
            "1.e5",
            "1e",
            "1e+",
            "1e+5",
            "1E-5",
            "-1e5",
            "18446744073709551615",
            "18446744073709551616",
            "-9223372036854775808",
            "-9223372036854775809",
            "9223372036854775808",
            "99999999999999999999.5",
            "184467440737095516150.5",
            "0.1",
            "0.3",
            "1e16",
            "1e22",
            "1e23",
            "1.7976931348623157e308",
            "1.8e308",
            "1e309",
            "-1e309",
            "1e-308",
            "5e-324",
            "1e-400",
            "123456789e-400",
            "0e999999999999",
            "1e999999999999",
            "1e-999999999999",
            "-13.503577232360840",
            "-3.4534835815429688",
            "0.000000000000000000000000000001234",
            "12345678901234567890123456789012345678901234567890",
            "1e2147483647",
            "1e-2147483648",
            "0.00000000000000000000000000000000000000000000000000000000001e60",
            "1x",
            "1 2",
        ];
        cases.into_iter().for_each(check_number);
    }

    #[test]
    fn floats_are_written_as_serde_json_writes_them_where_that_is_stable() {
        let cases = [
            0.0,
            -0.0,
            1.0,
            -1.5,
            0.1,
            1e15,
            1e16,
            1.5e16,
            1e17,
            123456789012345680.0,
            1e-4,
            1e-5,
            1.5e-5,
            1e-6,
            1.25e-7,
            5e-324,
            f64::MAX,
            f64::MIN_POSITIVE,
            100.0,
            12345.678,
        ];
        for value in cases {
            assert_eq!(written(value), serde_json::to_string(&value).unwrap());
        }
        assert_eq!(written(f64::NAN), "null");
        for value in [0.1f32, 0.3, 1.0, 1e-5, 1e10, f32::MAX] {
            let mut writer = Writer::new(Layout::Compact);
            writer.float32(value);
            assert_eq!(writer.finish(), serde_json::to_string(&value).unwrap());
        }
    }

    #[test]
    fn errors_have_position_and_path() {
        let cases: &[(&str, &str)] = &[
            ("", "line 1 column 1, $: the file ends in the middle"),
            ("{\n\"a\": [1, tru]}", "line 2 column 10, $.a[1]: expected true"),
            ("{\"é\": \"\u{1}\"}", "line 1 column 8, $[\"é\"]: control character U+0001"),
            ("{\"a\": {\"b c\": 1 2}}", "line 1 column 17, $.a: expected ','"),
            ("[1,]", "line 1 column 4, $: a comma with nothing behind"),
            ("[1] x", "line 1 column 5, $: more text behind the end"),
            ("{\"a\" 1}", "line 1 column 6, $: expected ':'"),
            ("{a: 1}", "line 1 column 2, $: expected a quoted key"),
            ("\"\\ud800x\"", "line 1 column 2, $: a surrogate without its other half"),
            ("\"\\q\"", "line 1 column 2, $: unknown escape"),
            ("\"abc", "line 1 column 5, $: the file ends in the middle of a string"),
        ];
        for (text, expected) in cases {
            let result = read(Format::VocabJson, text.as_bytes(), |r| r.skip().map(|_| ()));
            let error = result.unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
        let error = read(Format::VocabJson, b"[\n \"\xFF\"]", |r| r.skip().map(|_| ()));
        let error = error.unwrap_err().to_string();
        assert_eq!(error, "vocab.json, line 2 column 3: invalid UTF-8 at byte 4");
    }

    #[test]
    fn nesting_is_limited_as_in_serde_json() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        for depth in [1, 127, 128, 129, 100_000] {
            let text = nested(depth);
            let ours = read(Format::VocabJson, text.as_bytes(), |r| r.skip().map(|_| ()));
            let theirs: core::result::Result<serde_json::Value, _> = serde_json::from_str(&text);
            assert_eq!(ours.is_ok(), depth <= MAX_DEPTH, "{depth}");
            assert_eq!(ours.is_ok(), theirs.is_ok(), "{depth}");
        }
    }

    proptest! {
        #[test]
        fn any_number_is_rounded_as_serde_json_rounds_it(
            text in "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,24})?([eE][+-]?[0-9]{1,3})?"
        ) {
            check_number(&text);
        }

        #[test]
        fn any_float_that_was_read_survives_writing(
            text in "-?[1-9]\\.[0-9]{0,18}[0-9]e-?[0-2]?[0-9]",
            score in -100.0..0.0f64,
        ) {
            let read = number(&text).unwrap().as_f64();
            let again = number(&written(read)).unwrap().as_f64();
            prop_assert_eq!(again.to_bits(), read.to_bits(), "{} {}", text, written(read));
            for value in [score, f64::from(score as f32)] {
                let read = Writer::reread(value);
                prop_assert!(value.to_bits().abs_diff(read.to_bits()) <= 1);
                let text = written(read);
                prop_assert_eq!(number(&text).unwrap().as_f64().to_bits(), read.to_bits());
                if score < -1e-4 {
                    prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), read.to_bits());
                }
            }
        }

        #[test]
        fn strings_survive_as_in_serde_json(string: String) {
            let mut writer = Writer::new(Layout::Compact);
            writer.string(&string);
            let text = writer.finish();
            prop_assert_eq!(&text, &serde_json::to_string(&string).unwrap());
            prop_assert_eq!(&*Reader::new(&text).string().unwrap(), &string);
        }

        #[test]
        fn accepts_what_serde_json_accepts(
            text in r#"([\[\]{},: ]|"a"|"\\u00e9"|"\\ud83d\\ude00"|1|-2\.5e3|true|false|null){0,12}"#
        ) {
            let ours = read(Format::VocabJson, text.as_bytes(), |r| r.skip().map(|_| ()));
            let theirs: core::result::Result<serde_json::Value, _> = serde_json::from_str(&text);
            prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{}", text);
        }
    }
}
