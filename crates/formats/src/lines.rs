//! The lines of a text file, as Rust's and Hugging Face's readers see them.

use crate::{ErrorKind, Format, Position, ReadError};

/// The lines with their numbers from 1. A line ends at a line feed, which with a carriage return in
/// front of it is left out; behind the last line feed nothing is no line.
pub(crate) fn lines(file: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut rest = file;
    (1..).map_while(move |number| {
        if rest.is_empty() {
            return None;
        }
        let line = match rest.iter().position(|&b| b == b'\n') {
            Some(end) => {
                let (line, tail) = rest.split_at(end);
                rest = &tail[1..];
                line.strip_suffix(b"\r").unwrap_or(line)
            }
            None => std::mem::take(&mut rest),
        };
        Some((number, line))
    })
}

/// A line that must be UTF-8.
pub(crate) fn utf8(format: Format, number: usize, line: &[u8]) -> Result<&str, ReadError> {
    core::str::from_utf8(line).map_err(|error| {
        let what = format!("invalid UTF-8 at byte {} of the line", error.valid_up_to());
        ReadError::new(format, Position::Line(number), ErrorKind::Syntax, what)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_as_buf_read_lines_does() {
        for file in ["", "a", "a\n", "a\nb", "a\r\nb\r\n", "\n\n", "a\r", "\r\n", "a\rb\n", "\n"] {
            let ours: Vec<String> = lines(file.as_bytes())
                .map(|(_, line)| String::from_utf8(line.to_vec()).unwrap())
                .collect();
            let theirs: Vec<String> =
                std::io::BufRead::lines(file.as_bytes()).map(|line| line.unwrap()).collect();
            assert_eq!(ours, theirs, "{file:?}");
        }
    }
}
