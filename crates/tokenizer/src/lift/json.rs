//! Trained models as tokenizer.json.

use bpe::{Alphabet, Bpe, EndOfWord, Rules};
use formats::tokenizer_json as doc;
use formats::{IdMap, Strings, byte_level};
use tokenizer_core::{Model, TokenId, TokenKind, Vocab};
use unigram::{Compat, Unigram};
use wordpiece::{Unit, Unknown, WordPiece};

use super::preparation::MARK;
use super::{Learned, LiftError, Preparation, Target, splitters};

/// The tokenizer.json of a trained model.
///
/// Control, unknown and unused tokens become special added tokens. A model of characters or of
/// bytes is written as BPE without merges, which is the same thing.
///
/// # Errors
///
/// If the format cannot say what the model does; the words name what. Or if two tokens would be
/// written alike.
pub fn tokenizer_json(
    model: Learned<'_>,
    preparation: &Preparation,
) -> Result<doc::TokenizerJson, LiftError> {
    if preparation.target != Target::TokenizerJson {
        return Err(LiftError::new("the text was prepared for another format"));
    }
    let mut parts = DocumentParts::new(preparation)?;
    let (written, vocab) = match model {
        Learned::Bpe(model) => (lift_bpe(model, &mut parts)?, model.vocab()),
        Learned::Bytes(model) => {
            parts.bytes = true;
            (unmerged(model.vocab(), None, Spelling::Bytes)?, model.vocab())
        }
        Learned::Chars(model) => {
            parts.byte_fallback = model.vocab().first_of_kind(TokenKind::Byte).is_some();
            (unmerged(model.vocab(), model.unk(), Spelling::Text)?, model.vocab())
        }
        Learned::Words(model) => {
            parts.joins_with_spaces = splitters::drops_white_space(parts.splitter);
            (lift_words(model)?, model.vocab())
        }
        Learned::WordPiece(model) => {
            parts.prefix = Some(text(&model.options().continuing_prefix)?);
            (lift_wordpiece(model)?, model.vocab())
        }
        Learned::Unigram(model) => {
            parts.byte_fallback = model.options().byte_fallback;
            (lift_unigram(model)?, model.vocab())
        }
    };
    let mut document = doc::TokenizerJson::new(written);
    document.added_tokens = added_tokens(vocab)?;
    document.normalizer = one_or_sequence(parts.normalizers(), doc::Normalizer::Sequence);
    document.pre_tokenizer = one_or_sequence(parts.pre_tokenizers(), doc::PreTokenizer::Sequence);
    document.decoder = one_or_sequence(parts.decoders(), doc::Decoder::Sequence);
    // What other readers make of the file must be what this program makes of it.
    document.canonicalize();
    document.validate().map_err(|error| LiftError::new(error.to_string()))?;
    Ok(document)
}

/// How the tokens of a vocabulary are spelled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spelling {
    /// As they are; byte tokens by their names.
    Text,
    /// Every byte as a character of the byte alphabet.
    Bytes,
}

/// What the parts of the document around the model depend on.
struct DocumentParts<'p> {
    splitter: &'p str,
    normalizers: Vec<doc::Normalizer>,
    splits: Vec<doc::PreTokenizer>,
    marks_spaces: bool,
    /// The model works on bytes.
    bytes: bool,
    byte_fallback: bool,
    joins_with_spaces: bool,
    /// What continues a word.
    prefix: Option<String>,
    /// What ends a word.
    suffix: Option<String>,
}

impl<'p> DocumentParts<'p> {
    fn new(preparation: &'p Preparation) -> Result<Self, LiftError> {
        let splitter = preparation.splitter().spec();
        let mut normalizers = preparation.documents();
        if preparation.marks_spaces {
            normalizers.push(doc::Normalizer::Prepend { prepend: MARK.to_owned() });
            normalizers.push(replace(" ", MARK));
        }
        Ok(Self {
            splitter,
            normalizers,
            splits: splitters::lift(splitter)?,
            marks_spaces: preparation.marks_spaces,
            bytes: false,
            byte_fallback: false,
            joins_with_spaces: false,
            prefix: None,
            suffix: None,
        })
    }

    fn normalizers(&mut self) -> Vec<doc::Normalizer> {
        std::mem::take(&mut self.normalizers)
    }

    fn pre_tokenizers(&mut self) -> Vec<doc::PreTokenizer> {
        let mut steps = std::mem::take(&mut self.splits);
        if self.bytes {
            let use_regex = splitters::is_gpt2(self.splitter);
            if use_regex {
                steps.clear();
            }
            steps.push(doc::PreTokenizer::ByteLevel(byte_level_part(use_regex)));
        }
        steps
    }

    /// The steps from tokens to text. Where pieces keep white space, tokens are put together as
    /// they are; else a space goes between words.
    fn decoders(&self) -> Vec<doc::Decoder> {
        let mut steps = Vec::new();
        let drops = splitters::drops_white_space(self.splitter);
        let removed = |affix: &str| {
            doc::Decoder::Replace(doc::Replace {
                pattern: doc::Pattern::String(affix.to_owned()),
                content: String::new(),
            })
        };
        match (&self.prefix, &self.suffix) {
            (_, Some(suffix)) if drops => {
                steps.push(doc::Decoder::Bpe { suffix: suffix.clone() });
            }
            (Some(prefix), None) if drops => {
                steps.push(doc::Decoder::WordPiece { prefix: prefix.clone(), cleanup: false });
            }
            (prefix, suffix) => {
                steps.extend(prefix.iter().chain(suffix).map(|affix| removed(affix)));
            }
        }
        if self.marks_spaces {
            steps.push(doc::Decoder::Replace(doc::Replace {
                pattern: doc::Pattern::String(MARK.to_owned()),
                content: " ".to_owned(),
            }));
        }
        if self.byte_fallback {
            steps.push(doc::Decoder::ByteFallback);
        }
        if self.bytes {
            steps.push(doc::Decoder::ByteLevel(byte_level_part(true)));
        } else if !self.joins_with_spaces {
            steps.push(doc::Decoder::Fuse);
        }
        if self.marks_spaces {
            if self.bytes {
                steps.push(doc::Decoder::Fuse);
            }
            steps.push(doc::Decoder::Strip { content: ' ', start: 1, stop: 0 });
        }
        steps
    }
}

fn byte_level_part(use_regex: bool) -> doc::ByteLevel {
    doc::ByteLevel { add_prefix_space: false, trim_offsets: false, use_regex }
}

fn replace(from: &str, to: &str) -> doc::Normalizer {
    doc::Normalizer::Replace(doc::Replace {
        pattern: doc::Pattern::String(from.to_owned()),
        content: to.to_owned(),
    })
}

fn one_or_sequence<T>(mut parts: Vec<T>, sequence: fn(Vec<T>) -> T) -> Option<T> {
    if parts.len() > 1 { Some(sequence(parts)) } else { parts.pop() }
}

pub(super) fn text(bytes: &[u8]) -> Result<String, LiftError> {
    String::from_utf8(bytes.to_vec()).map_err(|_| {
        LiftError::new(format!(
            "the token {:?} is not UTF-8, which the format cannot hold",
            String::from_utf8_lossy(bytes)
        ))
    })
}

/// A token of a vocabulary as text; a byte token by its name.
pub(super) fn spelled(bytes: &[u8], kind: TokenKind) -> Result<String, LiftError> {
    match kind {
        TokenKind::Byte => Ok(format!("<0x{:02X}>", bytes[0])),
        _ => text(bytes),
    }
}

fn vocabulary(vocab: &Vocab, spelling: Spelling) -> Result<IdMap<str>, LiftError> {
    let mut tokens = Vec::with_capacity(vocab.len());
    for (id, bytes, kind) in vocab.iter() {
        let token = match (spelling, kind) {
            (Spelling::Bytes, TokenKind::Normal) => byte_level::encode(bytes),
            _ => spelled(bytes, kind)?,
        };
        tokens.push((token, id.0));
    }
    IdMap::from_pairs(tokens)
        .map_err(|error| LiftError::new(format!("two tokens would be written alike: {error}")))
}

pub(super) fn added_tokens(vocab: &Vocab) -> Result<Vec<doc::AddedToken>, LiftError> {
    let mut added = Vec::new();
    for (id, bytes, kind) in vocab.iter() {
        let special = match kind {
            TokenKind::Control | TokenKind::Unknown | TokenKind::Unused => true,
            TokenKind::UserDefined => false,
            TokenKind::Normal | TokenKind::Byte => continue,
        };
        added.push(doc::AddedToken {
            id: id.0,
            content: text(bytes)?,
            single_word: false,
            lstrip: false,
            rstrip: false,
            normalized: false,
            special,
        });
    }
    Ok(added)
}

fn token_text(vocab: &Vocab, id: TokenId) -> Result<String, LiftError> {
    text(vocab.bytes(id).unwrap_or_default())
}

/// BPE without merges: characters, or bytes.
fn unmerged(
    vocab: &Vocab,
    unk: Option<TokenId>,
    spelling: Spelling,
) -> Result<doc::Model, LiftError> {
    Ok(doc::Model::Bpe(doc::Bpe {
        unk_token: unk.map(|unk| token_text(vocab, unk)).transpose()?,
        byte_fallback: vocab.first_of_kind(TokenKind::Byte).is_some(),
        vocab: vocabulary(vocab, spelling)?,
        ..doc::Bpe::default()
    }))
}

/// A merge as it is written: with the token that it makes.
pub(super) fn written_merge(
    model: &Bpe,
    (left, right): (TokenId, TokenId),
) -> Result<doc::Merge, LiftError> {
    let vocab = model.vocab();
    let prefix = model.options().continuing_prefix.as_deref().unwrap_or("").as_bytes();
    let bytes = |id| vocab.bytes(id).unwrap_or_default();
    let behind = bytes(right).strip_prefix(prefix).unwrap_or(bytes(right));
    let joined = [bytes(left), behind].concat();
    let product = vocab.get(&joined).ok_or_else(|| {
        LiftError::new(format!("a merge makes no token: {:?}", String::from_utf8_lossy(&joined)))
    })?;
    Ok(doc::Merge { left: left.0, right: right.0, product: product.0 })
}

fn lift_bpe(model: &Bpe, parts: &mut DocumentParts<'_>) -> Result<doc::Model, LiftError> {
    let Rules::Merges(merges) = model.rules() else {
        return Err(LiftError::new("a tokenizer.json holds a list of merges, not ranks or scores"));
    };
    let options = model.options();
    let spelling = match options.alphabet {
        Alphabet::Byte => Spelling::Bytes,
        Alphabet::Char => Spelling::Text,
    };
    parts.bytes = spelling == Spelling::Bytes;
    parts.byte_fallback = options.byte_fallback;
    parts.prefix.clone_from(&options.continuing_prefix);
    parts.suffix = options.end_of_word.as_ref().map(|mark| mark.mark().to_owned());
    for affix in parts.prefix.iter().chain(&parts.suffix) {
        if parts.bytes && byte_level::encode(affix.as_bytes()) != *affix {
            return Err(LiftError::new(format!(
                "{affix:?} cannot be told from bytes of text in a byte-level vocabulary; letters, \
                 digits and ASCII punctuation can"
            )));
        }
    }
    let mut vocab = vocabulary(model.vocab(), spelling)?;
    let mut written = Vec::with_capacity(merges.len());
    for &pair in merges {
        written.push(written_merge(model, pair)?);
    }
    let mut suffix = None;
    match &options.end_of_word {
        Some(EndOfWord::Symbol(mark)) => {
            let marked = end_symbol(mark, model, parts)?;
            vocab = marked.vocab;
            written.splice(0..0, marked.merges);
        }
        Some(EndOfWord::Suffix(mark)) => suffix = Some(mark.clone()),
        None => {}
    }
    Ok(doc::Model::Bpe(doc::Bpe {
        dropout: None,
        unk_token: options.unk.map(|unk| token_text(model.vocab(), unk)).transpose()?,
        continuing_subword_prefix: options.continuing_prefix.clone(),
        end_of_word_suffix: suffix,
        fuse_unk: options.fuse_unk,
        byte_fallback: options.byte_fallback,
        ignore_merges: options.ignore_merges,
        vocab,
        merges: written,
    }))
}

/// A vocabulary whose words end in a symbol, and the merges that make the symbol.
struct EndSymbol {
    vocab: IdMap<str>,
    merges: Vec<doc::Merge>,
}

/// Writes the end-of-word symbol of the textbooks, which the format does not know, with what it
/// does know: a normalizer puts the mark behind every word, and the first merges put it together.
///
/// That is exact where no text can begin the mark by itself. So the mark's first character must
/// not be in the alphabet; in texts it is made a noncharacter, which is as unknown as it was. The
/// characters and beginnings of the mark that are no tokens get ids behind the vocabulary.
fn end_symbol(
    mark: &str,
    model: &Bpe,
    parts: &mut DocumentParts<'_>,
) -> Result<EndSymbol, LiftError> {
    const NOWHERE: char = '\u{10FFFF}';
    let refuse = |why: String| {
        Err(LiftError::new(format!(
            "a tokenizer.json has no end-of-word symbol, and {why}; an end-of-word suffix can be \
             written"
        )))
    };
    if parts.splitter != "whitespace" {
        let splitter = parts.splitter;
        return refuse(format!(
            "putting one behind every word needs the splitter whitespace, not {splitter}"
        ));
    }
    if parts.bytes {
        return refuse("the bytes of one cannot be told from text".to_owned());
    }
    let mut tokens: Vec<(String, u32)> = Vec::with_capacity(model.vocab().len() + 8);
    for (id, bytes, kind) in model.vocab().iter() {
        tokens.push((spelled(bytes, kind)?, id.0));
    }
    let mut merges = Vec::new();
    let known = |text: &str| model.vocab().get(text.as_bytes()).map(|id| id.0);
    let first = mark.chars().next().unwrap_or(NOWHERE);
    if mark.chars().count() > 1 {
        if known(first.encode_utf8(&mut [0; 4])).is_some() {
            return refuse(format!("the text holds {first:?}, with which the mark begins"));
        }
        if known(NOWHERE.encode_utf8(&mut [0; 4])).is_some() {
            return refuse("the text holds U+10FFFF".to_owned());
        }
        let mut added: Vec<(String, u32)> = Vec::new();
        let mut id_of = |text: &str| {
            let older = || added.iter().find(|(token, _)| token == text).map(|(_, id)| *id);
            if let Some(id) = known(text).or_else(older) {
                return id;
            }
            let id = (model.vocab().len() + added.len()) as u32;
            added.push((text.to_owned(), id));
            id
        };
        let mut left = id_of(first.encode_utf8(&mut [0; 4]));
        for (at, c) in mark.char_indices().skip(1) {
            let right = id_of(c.encode_utf8(&mut [0; 4]));
            let product = id_of(&mark[..at + c.len_utf8()]);
            merges.push(doc::Merge { left, right, product });
            left = product;
        }
        // Characters that are tokens only for the mark's sake stay unknown in texts.
        for (token, _) in added.iter().filter(|(token, _)| token.chars().count() == 1) {
            parts.normalizers.push(replace(token, NOWHERE.encode_utf8(&mut [0; 4])));
        }
        tokens.append(&mut added);
    }
    parts.normalizers.push(doc::Normalizer::Replace(doc::Replace {
        pattern: doc::Pattern::Regex(r"(?<=\S)(?!\S)".to_owned()),
        content: mark.to_owned(),
    }));
    let vocab = IdMap::from_pairs(tokens)
        .map_err(|error| LiftError::new(format!("two tokens would be written alike: {error}")))?;
    Ok(EndSymbol { vocab, merges })
}

fn lift_words(model: &baseline::Words) -> Result<doc::Model, LiftError> {
    let unk = model
        .unk()
        .ok_or_else(|| LiftError::new("a tokenizer.json of whole words needs an unknown token"))?;
    Ok(doc::Model::WordLevel(doc::WordLevel {
        unk_token: token_text(model.vocab(), unk)?,
        vocab: vocabulary(model.vocab(), Spelling::Text)?,
    }))
}

fn lift_wordpiece(model: &WordPiece) -> Result<doc::Model, LiftError> {
    let options = model.options();
    if options.unit == Unit::Byte {
        return Err(LiftError::new(
            "WordPiece over bytes has no file format: readers of a tokenizer.json take its tokens \
             for characters",
        ));
    }
    if options.unknown != Unknown::Word {
        return Err(LiftError::new(
            "in a tokenizer.json a word with an unknown part is unknown as a whole",
        ));
    }
    let unk = model
        .unk()
        .ok_or_else(|| LiftError::new("a tokenizer.json of WordPiece needs an unknown token"))?;
    Ok(doc::Model::WordPiece(doc::WordPiece {
        unk_token: token_text(model.vocab(), unk)?,
        continuing_subword_prefix: text(&options.continuing_prefix)?,
        max_input_chars_per_word: options.max_chars,
        vocab: vocabulary(model.vocab(), Spelling::Text)?,
    }))
}

fn lift_unigram(model: &Unigram) -> Result<doc::Model, LiftError> {
    if model.options().compat != Compat::HuggingFace {
        return Err(LiftError::new(
            "a tokenizer.json is read with Hugging Face's arithmetic, the model has SentencePiece's",
        ));
    }
    let mut pieces = Strings::new();
    for (_, bytes, kind) in model.vocab().iter() {
        pieces.push(&spelled(bytes, kind)?);
    }
    Ok(doc::Model::Unigram(doc::Unigram {
        unk_id: model.unknown().map(|unk| unk.0),
        pieces,
        scores: model.scores().to_vec(),
        byte_fallback: model.options().byte_fallback,
    }))
}
