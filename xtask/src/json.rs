//! A small JSON reader: enough for what Cargo prints and for the manifest of the fixtures.

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(f64),
    String(String),
    Array(Vec<Json>),
    /// In the order of the text.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// The value of a text.
    ///
    /// # Errors
    ///
    /// If the text is not JSON: what was expected and at which byte.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut reader = Reader { text, at: 0, depth: 0 };
        let value = reader.value()?;
        reader.blank();
        if reader.at < text.len() { reader.fail("the end") } else { Ok(value) }
    }

    /// The value of a key; null where there is none.
    pub(crate) fn get(&self, key: &str) -> &Json {
        let Json::Object(entries) = self else { return &Json::Null };
        entries.iter().find(|(name, _)| name == key).map_or(&Json::Null, |(_, value)| value)
    }

    /// The text of a string.
    pub(crate) fn str(&self) -> Option<&str> {
        if let Json::String(text) = self { Some(text) } else { None }
    }

    /// The items of an array; none of anything else.
    pub(crate) fn items(&self) -> &[Json] {
        if let Json::Array(items) = self { items } else { &[] }
    }

    /// The entries of an object; none of anything else.
    pub(crate) fn entries(&self) -> &[(String, Json)] {
        if let Json::Object(entries) = self { entries } else { &[] }
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

/// Deeper nesting is refused, so that no text can exhaust the stack.
const MAX_DEPTH: usize = 100;

impl Reader<'_> {
    fn value(&mut self) -> Result<Json, String> {
        self.blank();
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => self.string().map(Json::String),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            _ => self.number(),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Json, String>) -> Result<Json, String> {
        if self.depth == MAX_DEPTH {
            return self.fail("at most 100 levels");
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Result<Json, String> {
        let mut entries = Vec::new();
        self.blank();
        if self.take(b'}') {
            return Ok(Json::Object(entries));
        }
        loop {
            self.blank();
            let key = self.string()?;
            self.blank();
            if !self.take(b':') {
                return self.fail("a colon");
            }
            entries.push((key, self.value()?));
            self.blank();
            if self.take(b'}') {
                return Ok(Json::Object(entries));
            }
            if !self.take(b',') {
                return self.fail("a comma or the end of the object");
            }
        }
    }

    fn array(&mut self) -> Result<Json, String> {
        let mut items = Vec::new();
        self.blank();
        if self.take(b']') {
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value()?);
            self.blank();
            if self.take(b']') {
                return Ok(Json::Array(items));
            }
            if !self.take(b',') {
                return self.fail("a comma or the end of the array");
            }
        }
    }

    fn string(&mut self) -> Result<String, String> {
        if !self.take(b'"') {
            return self.fail("a string");
        }
        let mut string = String::new();
        loop {
            let Some(c) = self.text[self.at..].chars().next() else {
                return self.fail("the end of the string");
            };
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(string),
                '\\' => string.push(self.escape()?),
                '\0'..='\u{1F}' => return self.fail("no control character in a string"),
                _ => string.push(c),
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        let Some(escape) = self.peek() else { return self.fail("an escape") };
        self.at += 1;
        Ok(match escape {
            b'"' | b'\\' | b'/' => char::from(escape),
            b'b' => '\u{8}',
            b'f' => '\u{C}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let high = self.four_digits()?;
                let value = if (0xD800..0xDC00).contains(&high) {
                    if !(self.take(b'\\') && self.take(b'u')) {
                        return self.fail("the second half of a pair");
                    }
                    let low = self.four_digits()?;
                    if !(0xDC00..0xE000).contains(&low) {
                        return self.fail("the second half of a pair");
                    }
                    0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)
                } else {
                    high
                };
                match char::from_u32(value) {
                    Some(c) => c,
                    None => return self.fail("a character"),
                }
            }
            _ => return self.fail("an escape"),
        })
    }

    fn four_digits(&mut self) -> Result<u32, String> {
        let digits = self.text.get(self.at..self.at + 4).unwrap_or_default();
        if digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            self.at += 4;
            return Ok(u32::from_str_radix(digits, 16).expect("four hexadecimal digits"));
        }
        self.fail("four hexadecimal digits")
    }

    fn number(&mut self) -> Result<Json, String> {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'));
        let digits = &rest[..end.unwrap_or(rest.len())];
        match digits.parse::<f64>() {
            Ok(number) if number.is_finite() => {
                self.at += digits.len();
                Ok(Json::Number(number))
            }
            _ => self.fail("a value"),
        }
    }

    fn word(&mut self, word: &str, value: Json) -> Result<Json, String> {
        if self.text[self.at..].starts_with(word) {
            self.at += word.len();
            return Ok(value);
        }
        self.fail("a value")
    }

    fn blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn fail<T>(&self, expected: &str) -> Result<T, String> {
        Err(format!("expected {expected} at byte {} of the JSON text", self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_kind_of_value() {
        let json = Json::parse(
            r#" { "a": [1, -2.5e3, true, false, null], "b": {"c": "x\"\\\/\n\u00e9\ud83d\ude00é"} , "d": [] } "#,
        )
        .unwrap();
        let numbers = json.get("a").items();
        assert_eq!(numbers[..2], [Json::Number(1.0), Json::Number(-2500.0)]);
        assert_eq!(numbers[2..], [Json::Bool(true), Json::Bool(false), Json::Null]);
        assert_eq!(json.get("b").get("c").str(), Some("x\"\\/\né\u{1F600}é"));
        assert_eq!(json.get("d").items(), &[]);
        assert_eq!(json.entries().len(), 3);
        assert_eq!(json.get("none").get("none"), &Json::Null);
    }

    #[test]
    fn refuses_what_is_not_json() {
        let nested = "[".repeat(101);
        let texts = [
            "",
            "{",
            "[1,]",
            "{\"a\"}",
            "{\"a\":1,}",
            "tru",
            "1 2",
            "\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\ud800\"",
            "\"\\ud800\\u0041\"",
            "\"\\udc00\"",
            "\"\n\"",
            "nan",
            "-",
            "1e999",
            "\"\\u12é4\"",
            &nested,
        ];
        for text in texts {
            assert!(Json::parse(text).is_err(), "{text:?}");
        }
    }
}
