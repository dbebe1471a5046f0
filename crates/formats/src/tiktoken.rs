//! `.tiktoken`: the byte ranks of an OpenAI encoding.
//!
//! A line is a token in base64, a space and its rank. Pattern and special tokens are not in the
//! file; they come from whoever knows the encoding.
//!
//! ```
//! use formats::tiktoken;
//!
//! let mut file = String::new();
//! for byte in 0..=255u8 {
//!     file += &format!("{} {byte}\n", tiktoken::encode_token(&[byte]));
//! }
//! file += "aHU= 256\n";
//! let ranks = tiktoken::parse(file.as_bytes())?;
//! assert_eq!(ranks.get(b"hu"), Some(256));
//! assert_eq!(tiktoken::to_text(&ranks), file);
//!
//! let error = tiktoken::parse(b"aHU= 256\naHU= 257\n").unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "tiktoken ranks, line 2: token \"hu\" has id 257, but it has id 256 already"
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::quoted_bytes;
use crate::id_map::{Fault, IdMapError};
use crate::lines::lines;
use crate::{ErrorKind, Format, IdMap, Position, ReadError};

const FORMAT: Format = Format::Tiktoken;

/// Reads a file: tokens and their ranks, which are their ids. Gaps are allowed (p50k_base has one
/// for its special token).
///
/// # Errors
///
/// If a line is not `base64 rank`, a token is empty, a token or a rank occurs twice, a rank passes
/// [`MAX_ID`](crate::MAX_ID), or one of the 256 single bytes has no rank (tiktoken loads such a
/// file and panics when it meets the byte).
pub fn parse(file: &[u8]) -> Result<IdMap<[u8]>, ReadError> {
    let mut ranks: IdMap<[u8]> = IdMap::new();
    let mut token = Vec::new();
    for (number, line) in lines(file) {
        // The readers of tiktoken skip empty lines.
        if line.is_empty() {
            continue;
        }
        let fault = |kind, what| ReadError::new(FORMAT, Position::Line(number), kind, what);
        let rank = parse_line(line, &mut token).map_err(|(kind, what)| fault(kind, what))?;
        ranks.push(&token, rank).map_err(|error| fault(fault_kind(&error), error.to_string()))?;
    }
    if let Err(error) = ranks.finish() {
        // Only a rank that occurs twice is found this late: look for its line once more.
        let line = lines(file).find(|(_, line)| {
            !line.is_empty() && parse_line(line, &mut token).is_ok() && token == error.token
        });
        let position = line.map_or(Position::Whole, |(number, _)| Position::Line(number));
        return Err(ReadError::new(FORMAT, position, fault_kind(&error), error.to_string()));
    }
    let whole = |what: String| ReadError::new(FORMAT, Position::Whole, ErrorKind::Missing, what);
    if ranks.is_empty() {
        return Err(whole("the vocabulary is empty".to_owned()));
    }
    match missing_byte(&ranks) {
        Some(byte) => Err(whole(format!("the single byte 0x{byte:02X} has no rank"))),
        None => Ok(ranks),
    }
}

fn parse_line(line: &[u8], token: &mut Vec<u8>) -> Result<u32, (ErrorKind, String)> {
    let syntax = |what: String| (ErrorKind::Syntax, what);
    let Some(space) = line.iter().position(|&b| b == b' ') else {
        return Err(syntax(format!("expected base64 and a rank, found {}", quoted_bytes(line))));
    };
    let (base64, rank) = (&line[..space], &line[space + 1..]);
    token.clear();
    STANDARD
        .decode_vec(base64, token)
        .map_err(|error| syntax(format!("invalid base64 {}: {error}", quoted_bytes(base64))))?;
    if token.is_empty() {
        return Err(syntax("the token is empty".to_owned()));
    }
    let digits = core::str::from_utf8(rank)
        .ok()
        .filter(|rank| !rank.is_empty() && rank.bytes().all(|b| b.is_ascii_digit()));
    let Some(digits) = digits else {
        return Err(syntax(format!("expected a rank, found {}", quoted_bytes(rank))));
    };
    digits.parse().map_err(|_| {
        let what = format!("rank {digits} passes the limit of {}", crate::MAX_ID);
        (ErrorKind::Limit, what)
    })
}

pub(crate) fn fault_kind(error: &IdMapError) -> ErrorKind {
    match error.fault {
        Fault::IdLimit { .. } | Fault::ByteLimit => ErrorKind::Limit,
        Fault::RepeatedToken { .. } | Fault::RepeatedId { .. } => ErrorKind::Duplicate,
    }
}

/// The first single byte that has no token.
#[must_use]
pub fn missing_byte(ranks: &IdMap<[u8]>) -> Option<u8> {
    (0..=255).find(|&byte| ranks.get(&[byte]).is_none())
}

/// The text of a file, lines in order of rank.
#[must_use]
pub fn to_text(ranks: &IdMap<[u8]>) -> String {
    let mut text = String::new();
    for (rank, token) in ranks.iter() {
        STANDARD.encode_string(token, &mut text);
        text.push_str(&format!(" {rank}\n"));
    }
    text
}

/// A token as the file writes it.
#[must_use]
pub fn encode_token(token: &[u8]) -> String {
    STANDARD.encode(token)
}
