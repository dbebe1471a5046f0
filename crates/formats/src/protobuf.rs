//! The wire format of protocol buffers, as much as SentencePiece models need: no groups, no maps.
//!
//! A message is a list of fields; a field is a varint key (number and wire type) and a value. See
//! <https://protobuf.dev/programming-guides/encoding/>.

use crate::ErrorKind;

pub(crate) type Result<T> = core::result::Result<T, WireError>;

#[derive(Debug)]
pub(crate) struct WireError {
    /// From the beginning of the file.
    pub(crate) offset: usize,
    pub(crate) kind: ErrorKind,
    pub(crate) what: String,
}

impl WireError {
    pub(crate) fn new(offset: usize, kind: ErrorKind, what: impl Into<String>) -> Self {
        Self { offset, kind, what: what.into() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

/// A field of a message.
pub(crate) struct Field<'a> {
    pub(crate) number: u32,
    pub(crate) value: Value<'a>,
    /// Key and value as they are in the file.
    pub(crate) raw: &'a [u8],
    /// Where the field begins, from the beginning of the file.
    pub(crate) offset: usize,
}

impl<'a> Field<'a> {
    fn wrong_type(&self, expected: &str) -> WireError {
        let found = match self.value {
            Value::Varint(_) => "a varint",
            Value::Fixed64(_) => "64 bits",
            Value::Bytes(_) => "bytes",
            Value::Fixed32(_) => "32 bits",
        };
        let what = format!("field {} is {found}, not {expected}", self.number);
        WireError::new(self.offset, ErrorKind::WrongType, what)
    }

    pub(crate) fn varint(&self) -> Result<u64> {
        match self.value {
            Value::Varint(value) => Ok(value),
            _ => Err(self.wrong_type("a varint")),
        }
    }

    pub(crate) fn int32(&self) -> Result<i32> {
        let value = self.varint()? as i64;
        i32::try_from(value).map_err(|_| {
            let what = format!("field {} is {value}, but must fit 32 bits", self.number);
            WireError::new(self.offset, ErrorKind::Limit, what)
        })
    }

    pub(crate) fn float(&self) -> Result<f32> {
        match self.value {
            Value::Fixed32(bits) => Ok(f32::from_bits(bits)),
            _ => Err(self.wrong_type("32 bits")),
        }
    }

    pub(crate) fn bytes(&self) -> Result<&'a [u8]> {
        match self.value {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(self.wrong_type("bytes")),
        }
    }

    pub(crate) fn string(&self) -> Result<&'a str> {
        core::str::from_utf8(self.bytes()?).map_err(|error| {
            let what = format!("field {} is not UTF-8: {error}", self.number);
            WireError::new(self.offset, ErrorKind::Syntax, what)
        })
    }

    /// The fields of a message that is the value of this field.
    pub(crate) fn message(&self) -> Result<Fields<'a>> {
        let bytes = self.bytes()?;
        let base = self.offset + self.raw.len() - bytes.len();
        Ok(Fields { bytes, at: 0, base })
    }
}

/// Reads the fields of a message one by one.
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    base: usize,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, base: 0 }
    }

    /// The next field, or `None` at the end of the message.
    pub(crate) fn next(&mut self) -> Result<Option<Field<'a>>> {
        if self.at == self.bytes.len() {
            return Ok(None);
        }
        let start = self.at;
        let key = self.varint()?;
        let number = key >> 3;
        if number == 0 || number > (1 << 29) - 1 {
            let what = format!("field number {number} is not between 1 and 536870911");
            return Err(self.error(start, ErrorKind::Syntax, what));
        }
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let at = self.at;
                let length = self.varint()?;
                let left = self.bytes.len() - self.at;
                match usize::try_from(length).ok().filter(|&length| length <= left) {
                    Some(length) => Value::Bytes(self.take(length)?),
                    None => {
                        let what = format!("a value of {length} bytes where {left} are left");
                        return Err(self.error(at, ErrorKind::Truncated, what));
                    }
                }
            }
            5 => Value::Fixed32(u32::from_le_bytes(self.array()?)),
            wire => {
                let what = format!("field {number} has wire type {wire}, which has no use here");
                return Err(self.error(start, ErrorKind::Syntax, what));
            }
        };
        let raw = &self.bytes[start..self.at];
        // A number was checked to have 29 bits.
        Ok(Some(Field { number: number as u32, value, raw, offset: self.base + start }))
    }

    fn error(&self, at: usize, kind: ErrorKind, what: impl Into<String>) -> WireError {
        WireError::new(self.base + at, kind, what)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        match self.bytes[self.at..].get(..length) {
            Some(bytes) => {
                self.at += length;
                Ok(bytes)
            }
            None => Err(self.error(self.at, ErrorKind::Truncated, "the message ends in a value")),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        Ok(self.take(N)?.try_into().expect("as many bytes as were taken"))
    }

    fn varint(&mut self) -> Result<u64> {
        let start = self.at;
        let mut value = 0;
        for i in 0..10 {
            let Some(&byte) = self.bytes.get(self.at) else {
                return Err(self.error(
                    start,
                    ErrorKind::Truncated,
                    "the message ends in a varint",
                ));
            };
            self.at += 1;
            if i == 9 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7F) << (7 * i);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.error(start, ErrorKind::Syntax, "a varint of more than 64 bits"))
    }
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn put_value(out: &mut Vec<u8>, number: u32, value: Value<'_>) {
    let wire = match value {
        Value::Varint(_) => 0,
        Value::Fixed64(_) => 1,
        Value::Bytes(_) => 2,
        Value::Fixed32(_) => 5,
    };
    put_varint(out, u64::from(number << 3 | wire));
    match value {
        Value::Varint(value) => put_varint(out, value),
        Value::Fixed64(bits) => out.extend_from_slice(&bits.to_le_bytes()),
        Value::Bytes(bytes) => {
            put_varint(out, bytes.len() as u64);
            out.extend_from_slice(bytes);
        }
        Value::Fixed32(bits) => out.extend_from_slice(&bits.to_le_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(bytes: &[u8]) -> Result<Option<Field<'_>>> {
        Fields::new(bytes).next()
    }

    #[test]
    fn values_survive_writing_and_reading() {
        let values = [
            Value::Varint(0),
            Value::Varint(300),
            Value::Varint(u64::MAX),
            Value::Fixed32(0x3F80_0000),
            Value::Fixed64(1 << 63),
            Value::Bytes(b""),
            Value::Bytes(&[7; 300]),
        ];
        for value in values {
            for number in [1, 15, 16, 200, (1 << 29) - 1] {
                let mut out = Vec::new();
                put_value(&mut out, number, value);
                let field = first(&out).unwrap().unwrap();
                assert_eq!((field.number, field.value, field.raw), (number, value, &out[..]));
            }
        }
    }

    #[test]
    fn hostile_bytes_are_refused() {
        let cases: &[(&[u8], ErrorKind, &str)] = &[
            (b"\x80", ErrorKind::Truncated, "ends in a varint"),
            (b"\x08\x80\x80", ErrorKind::Truncated, "ends in a varint"),
            (&[0xFF; 11], ErrorKind::Syntax, "more than 64 bits"),
            (b"\x00\x01", ErrorKind::Syntax, "field number 0"),
            (b"\x0B", ErrorKind::Syntax, "wire type 3"),
            (b"\x0F", ErrorKind::Syntax, "wire type 7"),
            (b"\x15\x00\x00", ErrorKind::Truncated, "ends in a value"),
            (
                b"\x0A\x80\x80\x80\x80\x08",
                ErrorKind::Truncated,
                "a value of 2147483648 bytes where 0 are left",
            ),
        ];
        for (bytes, kind, what) in cases {
            let error = first(bytes).err().expect("hostile");
            assert_eq!(error.kind, *kind, "{bytes:?}");
            assert!(error.what.contains(what), "{}", error.what);
        }
    }
}
