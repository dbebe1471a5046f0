//! Ids to text: a chain of steps, each of which works token by token.
//!
//! The chain is the same for a whole decode and for a stream: a full decode pushes every token and
//! finishes. So a stream equals the full decode by construction, whatever the steps.

use std::fmt;
use std::sync::Arc;

use formats::byte_level;
use pretok::{RegexError, RegexOptions, RegexSplitter};

/// One step of decoding, as Hugging Face's decoders define them. Steps run in order; each maps a
/// sequence of tokens to a sequence of tokens, and the texts of the last one are concatenated.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeStep {
    /// Tokens are bytes; nothing is changed. (The byte-to-character mapping of byte-level models is
    /// undone when the file is read.)
    Bytes,
    /// Tokens are spelled with the characters that byte-level models have for bytes: they become
    /// those bytes, all together one token. A token with any other character stays as it is.
    ByteLevel {
        /// How the model's vocabulary has its tokens; added tokens are always text.
        vocabulary: Spelling,
    },
    /// Tokens that read `<0x0A>` become that byte: a run of them that is not UTF-8 becomes one
    /// U+FFFD a byte.
    ByteFallback,
    /// As SentencePiece: in a run of byte tokens each ill-formed byte becomes U+FFFD, the rest is
    /// kept.
    SentencePieceBytes,
    /// All tokens become one, for the steps that follow.
    Fuse,
    /// Removes up to `start` and `stop` times `content` at the ends of every token.
    Strip {
        /// The character that is removed.
        content: char,
        /// How many at the beginning.
        start: usize,
        /// How many at the end.
        stop: usize,
    },
    /// Replaces `pattern` by `content` in every token.
    Replace {
        /// What is searched, not empty.
        pattern: String,
        /// What it becomes.
        content: String,
    },
    /// Replaces every match of a regular expression by `content` in every token.
    ReplaceMatches {
        /// What is searched.
        pattern: DecodePattern,
        /// What it becomes.
        content: String,
    },
    /// `replacement` becomes a space; those of the first token are dropped where `strip_first`.
    Metaspace {
        /// The character that stands for a space.
        replacement: char,
        /// Whether the first token loses its replacements.
        strip_first: bool,
    },
    /// SentencePiece's `▁`: becomes a space. Those at the beginning of the text go as
    /// [`LeadingSpace`] says.
    SentencePieceSpaces(LeadingSpace),
    /// Tokens without the prefix are preceded by a space, except the first; the prefix goes.
    WordPiece {
        /// What marks a continuation, `##`.
        prefix: String,
        /// Whether [`clean_up`] runs on every token.
        cleanup: bool,
    },
    /// The suffix becomes a space, except in the last token, where it goes.
    EndOfWord {
        /// What marks the end of a word, `</w>`.
        suffix: String,
    },
    /// Connectionist temporal classification: repeats and padding go.
    Ctc {
        /// The padding token.
        pad: String,
        /// What stands between words.
        word_delimiter: String,
        /// Whether [`clean_up`] runs on every token.
        cleanup: bool,
    },
    /// Tokens are joined with a space, as where a file names no decoder.
    Spaces,
    /// Tokens are joined with nothing.
    Concatenate,
}

/// A compiled regular expression of a decoder. Two are equal if their texts are.
#[derive(Clone)]
pub struct DecodePattern {
    text: String,
    regex: Arc<RegexSplitter>,
}

impl DecodePattern {
    /// Compiles a pattern of Oniguruma's syntax, as a tokenizer.json holds.
    ///
    /// # Errors
    ///
    /// If it cannot be compiled.
    pub fn new(text: &str) -> Result<Self, RegexError> {
        let regex = RegexSplitter::with_options(text, RegexOptions::oniguruma())?;
        Ok(Self { text: text.to_owned(), regex: Arc::new(regex) })
    }

    /// `text` with `content` in place of every match. Where the engine passes its limit, what
    /// follows stays.
    fn replace(&self, text: &str, content: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        let _ = self.regex.for_each_match(text, |found| {
            out.push_str(&text[at..found.start]);
            out.push_str(content);
            at = found.end;
        });
        out.push_str(&text[at..]);
        out
    }
}

impl fmt::Debug for DecodePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl PartialEq for DecodePattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for DecodePattern {}

/// How a vocabulary has the tokens of a byte-level model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// As the bytes that they stand for.
    Bytes,
    /// With a printable character for each byte, as files have them.
    Characters,
}

/// What SentencePiece drops at the beginning of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeadingSpace {
    /// Nothing: the model adds no dummy prefix and keeps all white space.
    Keep,
    /// One `▁`, which the dummy prefix put there.
    DropOne,
    /// The first `▁` of every token until there is text: extra white space is removed anyway.
    DropAll,
}

/// The clean-up of English text that some files ask for: no space before punctuation and
/// contractions. It corrupts code ("x != y"), so it is off unless the file says so.
#[must_use]
pub fn clean_up(text: &str) -> String {
    const RULES: [(&str, &str); 10] = [
        (" .", "."),
        (" ?", "?"),
        (" !", "!"),
        (" ,", ","),
        (" ' ", "'"),
        (" n't", "n't"),
        (" 'm", "'m"),
        (" do not", " don't"),
        (" 's", "'s"),
        (" 've", "'ve"),
    ];
    let mut text = text.to_owned();
    for (from, to) in RULES {
        text = text.replace(from, to);
    }
    text.replace(" 're", "'re")
}

/// A token on its way through the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) bytes: Vec<u8>,
    /// The token is of kind `Byte`.
    pub(crate) is_byte: bool,
    /// The text is as it shall be: no step reads marks in it.
    pub(crate) is_verbatim: bool,
    /// The bytes are an ordinary token's of the model, as its vocabulary has them.
    pub(crate) is_model: bool,
}

impl Piece {
    pub(crate) fn text(bytes: Vec<u8>) -> Self {
        Self { bytes, is_byte: false, is_verbatim: false, is_model: false }
    }

    pub(crate) fn verbatim(bytes: Vec<u8>) -> Self {
        Self { is_verbatim: true, ..Self::text(bytes) }
    }
}

/// The running state of a chain.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    steps: Vec<State>,
}

#[derive(Clone, Debug)]
struct State {
    step: DecodeStep,
    /// No token came yet.
    first: bool,
    /// What is held back: a byte run, the fused text, the token whose successor decides.
    held: Vec<u8>,
    holding: bool,
    previous: Option<Vec<u8>>,
    /// A `Strip` that works on the fused text, not token by token.
    fused: bool,
    /// How many characters a fused `Strip` has removed at the beginning.
    stripped: usize,
}

impl Chain {
    /// The chain of these steps.
    ///
    /// `Fuse` would hold back the whole text. Where nothing follows it, it changes nothing; where a
    /// last `Strip` follows, that can work on the text as it comes. Only other steps need the hold.
    pub(crate) fn new(steps: &[DecodeStep]) -> Self {
        let mut states: Vec<State> = Vec::with_capacity(steps.len());
        for (i, step) in steps.iter().enumerate() {
            let after_fuse = i > 0 && steps[i - 1] == DecodeStep::Fuse && i + 1 == steps.len();
            let next = steps.get(i + 1);
            let is_streamed = match next {
                None => true,
                Some(next) => matches!(next, DecodeStep::Strip { .. }) && i + 2 == steps.len(),
            };
            if *step == DecodeStep::Fuse && is_streamed {
                continue;
            }
            states.push(State {
                step: step.clone(),
                first: true,
                held: Vec::new(),
                holding: false,
                previous: None,
                fused: after_fuse && matches!(step, DecodeStep::Strip { .. }),
                stripped: 0,
            });
        }
        Self { steps: states }
    }

    /// Sends one token through; appends what comes out at the end.
    pub(crate) fn push(&mut self, piece: Piece, out: &mut Vec<u8>) {
        run(&mut self.steps, piece, out);
    }

    /// Sends through what was held back. The chain is as new afterwards.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        for i in 0..self.steps.len() {
            let (head, tail) = self.steps.split_at_mut(i + 1);
            let state = &mut head[i];
            state.finish(&mut |piece| run(tail, piece, out));
        }
    }
}

/// Sends a piece through `steps` in order. A step gives at most a few pieces for one, so the
/// recursion is as deep as the chain is long.
fn run(steps: &mut [State], piece: Piece, out: &mut Vec<u8>) {
    match steps.split_first_mut() {
        None => out.extend_from_slice(&piece.bytes),
        Some((state, rest)) => state.push(piece, &mut |piece| run(rest, piece, out)),
    }
}

impl State {
    fn push(&mut self, mut piece: Piece, emit: &mut dyn FnMut(Piece)) {
        let first = std::mem::replace(&mut self.first, false);
        match &self.step {
            DecodeStep::Bytes | DecodeStep::Concatenate => emit(piece),
            DecodeStep::ByteLevel { vocabulary } => {
                if !(piece.is_model && *vocabulary == Spelling::Bytes)
                    && let Ok(text) = std::str::from_utf8(&piece.bytes)
                    && let Ok(bytes) = byte_level::decode(text)
                {
                    piece.bytes = bytes;
                }
                emit(piece);
            }
            DecodeStep::ByteFallback | DecodeStep::SentencePieceBytes => {
                if self.step == DecodeStep::ByteFallback
                    && let Some(byte) = spelled_byte(&piece.bytes)
                {
                    piece.bytes = vec![byte];
                    piece.is_byte = true;
                }
                if piece.is_byte {
                    self.held.extend_from_slice(&piece.bytes);
                    self.holding = true;
                    return;
                }
                self.end_run(emit);
                emit(piece);
            }
            DecodeStep::Fuse => {
                self.holding = true;
                self.held.extend_from_slice(&piece.bytes);
            }
            DecodeStep::Strip { content, start, stop } if self.fused => {
                let mut buffer = [0; 4];
                let content = content.encode_utf8(&mut buffer).as_bytes();
                let mut bytes = &piece.bytes[..];
                while self.stripped < *start {
                    match bytes.strip_prefix(content) {
                        Some(shorter) => {
                            bytes = shorter;
                            self.stripped += 1;
                        }
                        None if bytes.is_empty() => break,
                        None => self.stripped = *start,
                    }
                }
                // What may be the end of the text is held back, as far as it would be stripped.
                self.held.extend_from_slice(bytes);
                let tail = strip(&self.held, content, 0, *stop).len();
                let rest = self.held.split_off(tail);
                let head = std::mem::replace(&mut self.held, rest);
                if !head.is_empty() {
                    emit(Piece::text(head));
                }
            }
            DecodeStep::ReplaceMatches { pattern, content } => {
                if let Ok(text) = std::str::from_utf8(&piece.bytes) {
                    piece.bytes = pattern.replace(text, content).into_bytes();
                }
                emit(piece);
            }
            DecodeStep::Strip { content, start, stop } => {
                let mut buffer = [0; 4];
                let content = content.encode_utf8(&mut buffer).as_bytes();
                piece.bytes = strip(&piece.bytes, content, *start, *stop).to_vec();
                emit(piece);
            }
            DecodeStep::Replace { pattern, content } => {
                piece.bytes = replace(&piece.bytes, pattern.as_bytes(), content.as_bytes());
                emit(piece);
            }
            DecodeStep::Metaspace { replacement, strip_first } => {
                let mut buffer = [0; 4];
                let mark = replacement.encode_utf8(&mut buffer).as_bytes();
                let space: &[u8] = if first && *strip_first { b"" } else { b" " };
                piece.bytes = replace(&piece.bytes, mark, space);
                emit(piece);
            }
            DecodeStep::SentencePieceSpaces(leading) => {
                const MARK: &[u8] = "\u{2581}".as_bytes();
                let mut bytes = &piece.bytes[..];
                if !piece.is_verbatim {
                    if first
                        && *leading != LeadingSpace::Keep
                        && let Some(rest) = bytes.strip_prefix(MARK)
                    {
                        bytes = rest;
                        self.stripped = 1;
                    }
                    piece.bytes = replace(bytes, MARK, b" ");
                }
                let dropped = self.stripped > 0 && *leading == LeadingSpace::DropOne;
                // Control tokens are no text: the text begins with the first byte.
                self.first = first && piece.bytes.is_empty() && !dropped;
                emit(piece);
            }
            DecodeStep::WordPiece { prefix, cleanup } => {
                let mut bytes = piece.bytes.clone();
                if !first {
                    bytes = match piece.bytes.strip_prefix(prefix.as_bytes()) {
                        Some(rest) => rest.to_vec(),
                        None => [b" ", &piece.bytes[..]].concat(),
                    };
                }
                if *cleanup {
                    bytes = cleaned(bytes);
                }
                piece.bytes = bytes;
                emit(piece);
            }
            DecodeStep::EndOfWord { suffix } => {
                let previous = self.previous.replace(piece.bytes);
                if let Some(previous) = previous {
                    emit(Piece::text(replace(&previous, suffix.as_bytes(), b" ")));
                }
            }
            DecodeStep::Ctc { pad, word_delimiter, cleanup } => {
                if self.previous.as_deref() == Some(&piece.bytes[..]) {
                    return;
                }
                self.previous = Some(piece.bytes.clone());
                let mut bytes = replace(&piece.bytes, pad.as_bytes(), b"");
                if *cleanup {
                    bytes = replace(&cleaned(bytes), word_delimiter.as_bytes(), b" ");
                }
                if !bytes.is_empty() {
                    piece.bytes = bytes;
                    emit(piece);
                }
            }
            DecodeStep::Spaces => {
                if !first {
                    piece.bytes.insert(0, b' ');
                }
                emit(piece);
            }
        }
    }

    fn finish(&mut self, emit: &mut dyn FnMut(Piece)) {
        self.first = true;
        self.stripped = 0;
        let previous = self.previous.take();
        match &self.step {
            DecodeStep::EndOfWord { suffix } => {
                if let Some(previous) = previous {
                    emit(Piece::text(replace(&previous, suffix.as_bytes(), b"")));
                }
            }
            DecodeStep::SentencePieceSpaces(_) => {}
            DecodeStep::Strip { content, stop, .. } => {
                let mut buffer = [0; 4];
                let content = content.encode_utf8(&mut buffer).as_bytes();
                let held = std::mem::take(&mut self.held);
                let rest = strip(&held, content, 0, *stop);
                if !rest.is_empty() {
                    emit(Piece::text(rest.to_vec()));
                }
            }
            _ => self.end_run(emit),
        }
    }

    /// Gives what a run of bytes, or the fused text, becomes.
    fn end_run(&mut self, emit: &mut dyn FnMut(Piece)) {
        if !std::mem::replace(&mut self.holding, false) {
            return;
        }
        let held = std::mem::take(&mut self.held);
        match self.step {
            DecodeStep::ByteFallback if std::str::from_utf8(&held).is_err() => {
                for _ in held {
                    emit(Piece::text("\u{FFFD}".into()));
                }
            }
            DecodeStep::SentencePieceBytes => {
                let mut text = String::with_capacity(held.len());
                for c in tokenizer_core::utf8::chars(&held) {
                    text.push_str(std::str::from_utf8(c).unwrap_or("\u{FFFD}"));
                }
                emit(Piece::verbatim(text.into_bytes()));
            }
            // The bytes of a byte-level model become text here, for the steps that follow.
            _ => emit(Piece::text(String::from_utf8_lossy(&held).into_owned().into_bytes())),
        }
    }
}

/// The byte that a token `<0x0A>` stands for, as Hugging Face reads it: a sign counts as a digit.
fn spelled_byte(token: &[u8]) -> Option<u8> {
    let digits = token.strip_prefix(b"<0x")?.strip_suffix(b">")?;
    let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.len() == 2)?;
    u8::from_str_radix(digits, 16).ok()
}

fn cleaned(bytes: Vec<u8>) -> Vec<u8> {
    match String::from_utf8(bytes) {
        Ok(text) => clean_up(&text).into_bytes(),
        Err(error) => error.into_bytes(),
    }
}

fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    if !from.is_empty() {
        for found in memchr::memmem::find_iter(bytes, from) {
            out.extend_from_slice(&bytes[at..found]);
            out.extend_from_slice(to);
            at = found + from.len();
        }
    }
    out.extend_from_slice(&bytes[at..]);
    out
}

fn strip<'b>(bytes: &'b [u8], content: &[u8], start: usize, stop: usize) -> &'b [u8] {
    let mut rest = bytes;
    for _ in 0..start {
        let Some(shorter) = rest.strip_prefix(content) else { break };
        rest = shorter;
    }
    for _ in 0..stop {
        let Some(shorter) = rest.strip_suffix(content) else { break };
        rest = shorter;
    }
    rest
}
