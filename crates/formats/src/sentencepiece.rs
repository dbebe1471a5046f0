//! SentencePiece's `.model`: a protocol buffer of pieces, training parameters and normalizer.
//!
//! Reading keeps every field, known or not, so that writing gives the same bytes back (for files
//! whose fields are in order, as all writers put them). What SentencePiece 0.2.3 refuses to load is
//! refused here, with the byte offset.
//!
//! A model also tells how it was trained: the paths of the corpus, the parameters, sometimes
//! samples of the text. Running it needs none of that.
//!
//! ```
//! use formats::sentencepiece::{ModelType, SentencePieceModel};
//! use tokenizer_core::TokenKind;
//!
//! let mut model = SentencePieceModel::default();
//! model.pieces.push("<unk>", 0.0, TokenKind::Unknown);
//! model.pieces.push("▁hug", -1.5, TokenKind::Normal);
//! let trainer = model.trainer_spec.get_or_insert_default();
//! trainer.input = vec!["/home/me/secret.txt".into()];
//! trainer.set_model_type(ModelType::Unigram);
//!
//! let file = model.to_bytes()?;
//! let mut model = SentencePieceModel::parse(&file)?;
//! assert_eq!(model.pieces.get(1).map(|piece| piece.piece), Some("▁hug"));
//! assert_eq!(model.training_info()[0].to_string(), "trainer_spec.input = /home/me/secret.txt");
//!
//! model.strip_training_info();
//! assert!(model.trainer().input.is_empty());
//! assert_eq!(model.model_type()?, ModelType::Unigram);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use core::fmt;

use hashbrown::HashMap;
use tokenizer_core::TokenKind;

use crate::error::quoted;
use crate::id_map::MAX_ID;
use crate::protobuf::{Field, Fields, Result, Value, WireError, put_value};
use crate::{ErrorKind, Format, Position, ReadError, Strings, WriteError};

/// The longest piece that SentencePiece 0.2.3 loads, in bytes.
pub const MAX_PIECE_LEN: usize = 7999;

/// A whole `.model` file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SentencePieceModel {
    /// The vocabulary: piece i has id i.
    pub pieces: Pieces,
    /// How the model was trained, and what of that matters for running it.
    pub trainer_spec: Option<TrainerSpec>,
    /// How text is normalized in front of the model.
    pub normalizer_spec: Option<NormalizerSpec>,
    /// Samples of text with their expected encoding, undecoded. Written by versions before 0.2.2.
    pub self_test_data: Option<Vec<u8>>,
    /// How text is changed behind the model.
    pub denormalizer_spec: Option<NormalizerSpec>,
    /// Fields that are not known here, as they are in the file.
    pub unknown: Vec<u8>,
}

/// The pieces of a model: text, score and kind.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    texts: Strings,
    scores: Vec<f32>,
    kinds: Vec<TokenKind>,
    /// Whether the file spells out score and kind: both have defaults (0 and normal).
    spelled: Vec<(bool, bool)>,
    /// Fields of a piece that are not known here.
    unknown: HashMap<usize, Vec<u8>>,
}

/// One piece.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece<'m> {
    /// The text; `▁` for a space, `<0xHH>` for a piece of kind `Byte`.
    pub piece: &'m str,
    /// The score: log-probability for Unigram, minus the rank of the merge for BPE.
    pub score: f32,
    /// What the piece stands for.
    pub kind: TokenKind,
}

/// The algorithm of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModelType {
    /// Unigram language model.
    Unigram = 1,
    /// Byte-pair encoding.
    Bpe = 2,
    /// Whole words.
    Word = 3,
    /// Single characters.
    Char = 4,
}

impl Pieces {
    /// Appends a piece.
    pub fn push(&mut self, piece: &str, score: f32, kind: TokenKind) {
        self.texts.push(piece);
        self.scores.push(score);
        self.kinds.push(kind);
        self.spelled.push((true, kind != TokenKind::Normal));
    }

    /// The number of pieces.
    #[must_use]
    pub fn len(&self) -> usize {
        self.scores.len()
    }

    /// Whether there is no piece.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.scores.is_empty()
    }

    /// The piece of an id.
    #[must_use]
    pub fn get(&self, id: usize) -> Option<Piece<'_>> {
        let piece = self.texts.get(id)?;
        Some(Piece { piece, score: self.scores[id], kind: self.kinds[id] })
    }

    /// The pieces in order of id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Piece<'_>> + Clone + '_ {
        (0..self.len()).map(|id| self.get(id).expect("the id is below the length"))
    }

    /// The first piece of a kind.
    #[must_use]
    pub fn first_of_kind(&self, kind: TokenKind) -> Option<usize> {
        self.kinds.iter().position(|&k| k == kind)
    }

    fn read(&mut self, field: &Field<'_>) -> Result<()> {
        let id = self.len();
        let (mut piece, mut score, mut kind) = ("", None, None);
        let mut fields = field.message()?;
        while let Some(field) = fields.next()? {
            match field.number {
                1 => piece = field.string()?,
                2 => score = Some(field.float()?),
                3 => kind = Some(kind_of(&field)?),
                _ => self.unknown.entry(id).or_default().extend_from_slice(field.raw),
            }
        }
        self.texts.push(piece);
        self.scores.push(score.unwrap_or(0.0));
        self.kinds.push(kind.unwrap_or(TokenKind::Normal));
        self.spelled.push((score.is_some(), kind.is_some()));
        Ok(())
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut message = Vec::new();
        for (id, piece) in self.iter().enumerate() {
            message.clear();
            let (score_spelled, kind_spelled) = self.spelled[id];
            put_value(&mut message, 1, Value::Bytes(piece.piece.as_bytes()));
            if score_spelled {
                put_value(&mut message, 2, Value::Fixed32(piece.score.to_bits()));
            }
            if kind_spelled {
                put_value(&mut message, 3, Value::Varint(number_of(piece.kind)));
            }
            if let Some(unknown) = self.unknown.get(&id) {
                message.extend_from_slice(unknown);
            }
            put_value(out, 1, Value::Bytes(&message));
        }
    }
}

/// Pieces are equal when their texts, scores and kinds are.
impl PartialEq for Pieces {
    fn eq(&self, other: &Self) -> bool {
        self.texts == other.texts && self.scores == other.scores && self.kinds == other.kinds
    }
}

fn kind_of(field: &Field<'_>) -> Result<TokenKind> {
    Ok(match field.varint()? {
        1 => TokenKind::Normal,
        2 => TokenKind::Unknown,
        3 => TokenKind::Control,
        4 => TokenKind::UserDefined,
        5 => TokenKind::Unused,
        6 => TokenKind::Byte,
        other => {
            let what = format!("a piece of type {other}, but types are 1 to 6");
            return Err(WireError::new(field.offset, ErrorKind::UnknownPart, what));
        }
    })
}

fn number_of(kind: TokenKind) -> u64 {
    match kind {
        TokenKind::Normal => 1,
        TokenKind::Unknown => 2,
        TokenKind::Control => 3,
        TokenKind::UserDefined => 4,
        TokenKind::Unused => 5,
        TokenKind::Byte => 6,
    }
}

/// How a field of one of the specs is kept, read, written and shown.
trait Slot {
    const EMPTY: Self;
    fn read(&mut self, field: &Field<'_>) -> Result<()>;
    fn write(&self, number: u32, out: &mut Vec<u8>);
    /// The values as text; empty where the field is not there.
    fn show(&self) -> Vec<String>;
}

impl Slot for Option<String> {
    const EMPTY: Self = None;

    fn read(&mut self, field: &Field<'_>) -> Result<()> {
        *self = Some(field.string()?.to_owned());
        Ok(())
    }

    fn write(&self, number: u32, out: &mut Vec<u8>) {
        if let Some(value) = self {
            put_value(out, number, Value::Bytes(value.as_bytes()));
        }
    }

    fn show(&self) -> Vec<String> {
        self.iter().cloned().collect()
    }
}

impl Slot for Vec<String> {
    const EMPTY: Self = Self::new();

    fn read(&mut self, field: &Field<'_>) -> Result<()> {
        self.push(field.string()?.to_owned());
        Ok(())
    }

    fn write(&self, number: u32, out: &mut Vec<u8>) {
        for value in self {
            put_value(out, number, Value::Bytes(value.as_bytes()));
        }
    }

    fn show(&self) -> Vec<String> {
        self.clone()
    }
}

impl Slot for Option<Vec<u8>> {
    const EMPTY: Self = None;

    fn read(&mut self, field: &Field<'_>) -> Result<()> {
        *self = Some(field.bytes()?.to_owned());
        Ok(())
    }

    fn write(&self, number: u32, out: &mut Vec<u8>) {
        if let Some(value) = self {
            put_value(out, number, Value::Bytes(value));
        }
    }

    fn show(&self) -> Vec<String> {
        self.iter().map(|value| format!("{} bytes", value.len())).collect()
    }
}

impl Slot for Option<i32> {
    const EMPTY: Self = None;

    fn read(&mut self, field: &Field<'_>) -> Result<()> {
        *self = Some(field.int32()?);
        Ok(())
    }

    fn write(&self, number: u32, out: &mut Vec<u8>) {
        if let Some(value) = *self {
            // Negative numbers are written as 64 bits.
            put_value(out, number, Value::Varint(i64::from(value) as u64));
        }
    }

    fn show(&self) -> Vec<String> {
        self.iter().map(i32::to_string).collect()
    }
}

impl Slot for Option<u64> {
    const EMPTY: Self = None;

    fn read(&mut self, field: &Field<'_>) -> Result<()> {
        *self = Some(field.varint()?);
        Ok(())
    }

    fn write(&self, number: u32, out: &mut Vec<u8>) {
        if let Some(value) = *self {
            put_value(out, number, Value::Varint(value));
        }
    }

    fn show(&self) -> Vec<String> {
        self.iter().map(u64::to_string).collect()
    }
}

impl Slot for Option<bool> {
    const EMPTY: Self = None;

    fn read(&mut self, field: &Field<'_>) -> Result<()> {
        *self = Some(field.varint()? != 0);
        Ok(())
    }

    fn write(&self, number: u32, out: &mut Vec<u8>) {
        if let Some(value) = *self {
            put_value(out, number, Value::Varint(u64::from(value)));
        }
    }

    fn show(&self) -> Vec<String> {
        self.iter().map(bool::to_string).collect()
    }
}

impl Slot for Option<f32> {
    const EMPTY: Self = None;

    fn read(&mut self, field: &Field<'_>) -> Result<()> {
        *self = Some(field.float()?);
        Ok(())
    }

    fn write(&self, number: u32, out: &mut Vec<u8>) {
        if let Some(value) = *self {
            put_value(out, number, Value::Fixed32(value.to_bits()));
        }
    }

    fn show(&self) -> Vec<String> {
        self.iter().map(f32::to_string).collect()
    }
}

/// Declares a message with its fields in order of number, and for each whether running a model
/// needs it (`run`) or it only tells how the model was trained (`train`).
macro_rules! message {
    (
        $(#[$meta:meta])*
        $name:ident { $($(#[$doc:meta])* $number:literal $use:ident $field:ident: $slot:ty,)* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $($(#[$doc])* pub $field: $slot,)*
            /// Fields that are not known here, as they are in the file.
            pub unknown: Vec<u8>,
        }

        impl $name {
            const EMPTY: &Self = &Self { $($field: <$slot as Slot>::EMPTY,)* unknown: Vec::new() };

            fn read(&mut self, message: &Field<'_>) -> Result<()> {
                let mut fields = message.message()?;
                while let Some(field) = fields.next()? {
                    match field.number {
                        $($number => self.$field.read(&field)?,)*
                        _ => self.unknown.extend_from_slice(field.raw),
                    }
                }
                Ok(())
            }

            fn to_message(&self) -> Vec<u8> {
                let mut out = Vec::new();
                $(self.$field.write($number, &mut out);)*
                out.extend_from_slice(&self.unknown);
                out
            }

            fn facts(&self, spec: &'static str, facts: &mut Vec<TrainingFact>) {
                $(for value in self.$field.show() {
                    let needed = is_needed!($use);
                    facts.push(TrainingFact { spec, field: stringify!($field), value, needed });
                })*
                if !self.unknown.is_empty() {
                    let value = format!("{} bytes", self.unknown.len());
                    facts.push(TrainingFact { spec, field: "unknown", value, needed: false });
                }
            }

            fn strip(&mut self) {
                $(if !is_needed!($use) {
                    self.$field = Slot::EMPTY;
                })*
                self.unknown.clear();
            }
        }
    };
}

macro_rules! is_needed {
    (run) => {
        true
    };
    (train) => {
        false
    };
}

message! {
    /// How a model was trained. `None` is a field that the file leaves out; SentencePiece then
    /// takes the default named here.
    TrainerSpec {
        /// The files of the corpus.
        1 train input: Vec<String>,
        /// The path of the model, without ending.
        2 train model_prefix: Option<String>,
        /// The algorithm, see [`ModelType`]. Default 1 (Unigram).
        3 run model_type: Option<i32>,
        /// The size that was asked for. Default 8000.
        4 run vocab_size: Option<i32>,
        /// Languages.
        5 train accept_language: Vec<String>,
        /// How many samples of the text to keep. Default 0.
        6 train self_test_sample_size: Option<i32>,
        /// `text` or `tsv`.
        7 train input_format: Option<String>,
        /// The share of characters that the alphabet covers. Default 0.9995.
        10 train character_coverage: Option<f32>,
        /// At most so many sentences. Default 0, all.
        11 train input_sentence_size: Option<u64>,
        /// No longer used.
        12 train mining_sentence_size: Option<i32>,
        /// No longer used.
        13 train training_sentence_size: Option<i32>,
        /// Seed pieces of Unigram. Default 1000000.
        14 train seed_sentencepiece_size: Option<i32>,
        /// How many pieces stay in a round. Default 0.75.
        15 train shrinking_factor: Option<f32>,
        /// Default 16.
        16 train num_threads: Option<i32>,
        /// Rounds of EM between prunings. Default 2.
        17 train num_sub_iterations: Option<i32>,
        /// Longer sentences are skipped, in bytes. Default 4192.
        18 train max_sentence_length: Option<i32>,
        /// Default true.
        19 train shuffle_input_sentence: Option<bool>,
        /// Longest piece in characters. Default 16. SentencePiece reads it when it cuts long
        /// texts into parts.
        20 run max_sentencepiece_length: Option<i32>,
        /// Default true.
        21 train split_by_unicode_script: Option<bool>,
        /// Default true.
        22 train split_by_whitespace: Option<bool>,
        /// Default true.
        23 train split_by_number: Option<bool>,
        /// Whether `▁` stands behind words and not in front. Default false.
        24 run treat_whitespace_as_suffix: Option<bool>,
        /// Default false.
        25 train split_digits: Option<bool>,
        /// Default false.
        26 train allow_whitespace_only_pieces: Option<bool>,
        /// Control symbols; they are pieces too.
        30 run control_symbols: Vec<String>,
        /// User-defined symbols; they are pieces too.
        31 run user_defined_symbols: Vec<String>,
        /// Default true.
        32 train vocabulary_output_piece_score: Option<bool>,
        /// Default true.
        33 train hard_vocab_limit: Option<bool>,
        /// Default false.
        34 train use_all_vocab: Option<bool>,
        /// Whether unknown text is spelled by pieces of kind `Byte`. Default false.
        35 run byte_fallback: Option<bool>,
        /// Characters that are in the alphabet in any case.
        36 train required_chars: Option<String>,
        /// Default 0. What counts when the model runs is the kind of a piece.
        40 run unk_id: Option<i32>,
        /// Default 1; -1 for none.
        41 run bos_id: Option<i32>,
        /// Default 2; -1 for none.
        42 run eos_id: Option<i32>,
        /// Default -1, none.
        43 run pad_id: Option<i32>,
        /// What unknown pieces decode to. Default ` ⁇ `.
        44 run unk_surface: Option<String>,
        /// Default `<unk>`.
        45 run unk_piece: Option<String>,
        /// Default `<s>`.
        46 run bos_piece: Option<String>,
        /// Default `</s>`.
        47 run eos_piece: Option<String>,
        /// Default `<pad>`.
        48 run pad_piece: Option<String>,
        /// Default false.
        49 train train_extremely_large_corpus: Option<bool>,
        /// Default false.
        50 train enable_differential_privacy: Option<bool>,
        /// Default 0.
        51 train differential_privacy_noise_level: Option<f32>,
        /// Default 0.
        52 train differential_privacy_clipping_threshold: Option<u64>,
        /// Default empty.
        53 train pretokenization_delimiter: Option<String>,
        /// A path. Default empty.
        54 train seed_sentencepieces_file: Option<String>,
        /// Default false.
        55 train auto_character_coverage: Option<bool>,
    }
}

message! {
    /// How text is normalized.
    NormalizerSpec {
        /// The name of the rule, as `nmt_nfkc`.
        1 run name: Option<String>,
        /// The rules: length of the trie in bytes (u32), trie, replacement strings. Empty for none.
        2 run precompiled_charsmap: Option<Vec<u8>>,
        /// Whether `▁` is put in front of the text. Default true.
        3 run add_dummy_prefix: Option<bool>,
        /// Whether white space is cut at the ends and shortened within. Default true.
        4 run remove_extra_whitespaces: Option<bool>,
        /// Whether spaces become `▁`. Default true.
        5 run escape_whitespaces: Option<bool>,
        /// The file that the rules were made from.
        6 train normalization_rule_tsv: Option<String>,
    }
}

impl TrainerSpec {
    /// Sets the algorithm.
    pub fn set_model_type(&mut self, model_type: ModelType) {
        self.model_type = Some(model_type as i32);
    }

    /// Whether unknown text is spelled by byte pieces.
    #[must_use]
    pub fn byte_fallback(&self) -> bool {
        self.byte_fallback.unwrap_or(false)
    }

    /// Whether `▁` stands behind words.
    #[must_use]
    pub fn treat_whitespace_as_suffix(&self) -> bool {
        self.treat_whitespace_as_suffix.unwrap_or(false)
    }

    /// What unknown pieces decode to.
    #[must_use]
    pub fn unk_surface(&self) -> &str {
        self.unk_surface.as_deref().unwrap_or(" \u{2047} ")
    }

    /// The piece of the unknown id. As in SentencePiece an empty name is as none.
    #[must_use]
    pub fn unk_piece(&self) -> &str {
        named(self.unk_piece.as_deref(), "<unk>")
    }

    /// The piece that begins a sentence.
    #[must_use]
    pub fn bos_piece(&self) -> &str {
        named(self.bos_piece.as_deref(), "<s>")
    }

    /// The piece that ends a sentence.
    #[must_use]
    pub fn eos_piece(&self) -> &str {
        named(self.eos_piece.as_deref(), "</s>")
    }

    /// The piece that pads.
    #[must_use]
    pub fn pad_piece(&self) -> &str {
        named(self.pad_piece.as_deref(), "<pad>")
    }
}

fn named<'s>(name: Option<&'s str>, default: &'s str) -> &'s str {
    name.filter(|name| !name.is_empty()).unwrap_or(default)
}

impl NormalizerSpec {
    /// The rules; empty for none.
    #[must_use]
    pub fn charsmap(&self) -> &[u8] {
        self.precompiled_charsmap.as_deref().unwrap_or_default()
    }

    /// Whether `▁` is put in front of the text.
    #[must_use]
    pub fn add_dummy_prefix(&self) -> bool {
        self.add_dummy_prefix.unwrap_or(true)
    }

    /// Whether white space is cut at the ends and shortened within.
    #[must_use]
    pub fn remove_extra_whitespaces(&self) -> bool {
        self.remove_extra_whitespaces.unwrap_or(true)
    }

    /// Whether spaces become `▁`.
    #[must_use]
    pub fn escape_whitespaces(&self) -> bool {
        self.escape_whitespaces.unwrap_or(true)
    }
}

/// One thing that a model tells about itself beside its pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainingFact {
    /// Which part of the file: `trainer_spec`, `normalizer_spec`, `denormalizer_spec`, `model`.
    pub spec: &'static str,
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub value: String,
    /// Whether running the model needs it; what is not needed,
    /// [`strip_training_info`](SentencePieceModel::strip_training_info) removes.
    pub needed: bool,
}

impl fmt::Display for TrainingFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} = {}", self.spec, self.field, self.value)
    }
}

impl SentencePieceModel {
    /// Reads a file. Linear in its length.
    ///
    /// # Errors
    ///
    /// If the bytes are not a message of this kind, a string is not UTF-8, or SentencePiece 0.2.3
    /// would refuse the model: no pieces, an empty, overlong (see [`MAX_PIECE_LEN`]) or repeated
    /// piece, a NUL in one, a score that is not finite, none or two of kind `Unknown`, byte pieces
    /// without byte fallback or not all 256 with it, a charsmap that contradicts its length.
    pub fn parse(file: &[u8]) -> core::result::Result<Self, ReadError> {
        let read = || -> Result<Self> {
            let mut model = Self::default();
            let mut offsets = Vec::new();
            let mut fields = Fields::new(file);
            while let Some(field) = fields.next()? {
                match field.number {
                    1 => {
                        offsets.push(field.offset);
                        model.pieces.read(&field)?;
                    }
                    2 => model.trainer_spec.get_or_insert_default().read(&field)?,
                    3 => model.normalizer_spec.get_or_insert_default().read(&field)?,
                    4 => model.self_test_data.read(&field)?,
                    5 => model.denormalizer_spec.get_or_insert_default().read(&field)?,
                    _ => model.unknown.extend_from_slice(field.raw),
                }
            }
            model.check().map_err(|fault| {
                let offset = fault.piece.map_or(0, |id| offsets[id]);
                WireError::new(offset, fault.kind, fault.what)
            })?;
            Ok(model)
        };
        read().map_err(|error| {
            let position = Position::Byte(error.offset as u64);
            ReadError::new(Format::SentencePiece, position, error.kind, error.what)
        })
    }

    /// Writes the file; fields in order, as SentencePiece does.
    ///
    /// # Errors
    ///
    /// If [`parse`](Self::parse) would refuse the result.
    pub fn to_bytes(&self) -> core::result::Result<Vec<u8>, WriteError> {
        self.check().map_err(|fault| WriteError::new(Format::SentencePiece, fault.what))?;
        let mut out = Vec::new();
        self.pieces.write(&mut out);
        let trainer = self.trainer_spec.as_ref().map(TrainerSpec::to_message);
        let normalizer = self.normalizer_spec.as_ref().map(NormalizerSpec::to_message);
        let denormalizer = self.denormalizer_spec.as_ref().map(NormalizerSpec::to_message);
        trainer.write(2, &mut out);
        normalizer.write(3, &mut out);
        self.self_test_data.write(4, &mut out);
        denormalizer.write(5, &mut out);
        out.extend_from_slice(&self.unknown);
        Ok(out)
    }

    /// The training parameters, all defaults where the file has none.
    #[must_use]
    pub fn trainer(&self) -> &TrainerSpec {
        self.trainer_spec.as_ref().unwrap_or(TrainerSpec::EMPTY)
    }

    /// The normalizer, all defaults where the file has none.
    #[must_use]
    pub fn normalizer(&self) -> &NormalizerSpec {
        self.normalizer_spec.as_ref().unwrap_or(NormalizerSpec::EMPTY)
    }

    /// The algorithm.
    ///
    /// # Errors
    ///
    /// If the file names one that SentencePiece does not have.
    pub fn model_type(&self) -> core::result::Result<ModelType, ReadError> {
        match self.trainer().model_type.unwrap_or(1) {
            1 => Ok(ModelType::Unigram),
            2 => Ok(ModelType::Bpe),
            3 => Ok(ModelType::Word),
            4 => Ok(ModelType::Char),
            other => Err(ReadError::new(
                Format::SentencePiece,
                Position::Whole,
                ErrorKind::UnknownPart,
                format!("unknown model type {other}, known are 1 to 4"),
            )),
        }
    }

    /// What the model tells about itself beside its pieces, field by field as it is in the file.
    #[must_use]
    pub fn training_info(&self) -> Vec<TrainingFact> {
        let mut facts = Vec::new();
        if let Some(spec) = &self.trainer_spec {
            spec.facts("trainer_spec", &mut facts);
        }
        if let Some(spec) = &self.normalizer_spec {
            spec.facts("normalizer_spec", &mut facts);
        }
        if let Some(spec) = &self.denormalizer_spec {
            spec.facts("denormalizer_spec", &mut facts);
        }
        for (field, bytes) in [
            ("self_test_data", self.self_test_data.as_deref().unwrap_or_default()),
            ("unknown", &self.unknown),
        ] {
            if !bytes.is_empty() {
                let value = format!("{} bytes", bytes.len());
                facts.push(TrainingFact { spec: "model", field, value, needed: false });
            }
        }
        facts
    }

    /// Removes all that only tells how the model was trained: paths, parameters, samples of text,
    /// and fields that are not known here. The model runs as before.
    pub fn strip_training_info(&mut self) {
        if let Some(spec) = &mut self.trainer_spec {
            spec.strip();
        }
        for spec in [&mut self.normalizer_spec, &mut self.denormalizer_spec].into_iter().flatten() {
            spec.strip();
        }
        self.self_test_data = None;
        self.unknown.clear();
        self.pieces.unknown.clear();
    }

    /// What SentencePiece checks when it loads a model.
    fn check(&self) -> core::result::Result<(), PieceFault> {
        let whole = |kind, what: String| PieceFault { piece: None, kind, what };
        if self.pieces.is_empty() {
            return Err(whole(ErrorKind::Missing, "the vocabulary is empty".to_owned()));
        }
        if self.pieces.len() > MAX_ID as usize + 1 {
            let what = format!("{} pieces, but ids may not pass {MAX_ID}", self.pieces.len());
            return Err(whole(ErrorKind::Limit, what));
        }
        if let Err(error) = self.model_type() {
            return Err(whole(error.kind(), error.what().to_owned()));
        }
        self.check_pieces()?;
        for spec in [&self.normalizer_spec, &self.denormalizer_spec].into_iter().flatten() {
            if !spec.charsmap().is_empty() {
                check_charsmap(spec.charsmap()).map_err(|what| whole(ErrorKind::Invalid, what))?;
            }
        }
        Ok(())
    }

    fn check_pieces(&self) -> core::result::Result<(), PieceFault> {
        let byte_fallback = self.trainer().byte_fallback();
        // Normal and reserved pieces are apart: a control symbol may be spelled as a piece.
        let mut seen = [HashMap::with_capacity(self.pieces.len()), HashMap::new()];
        let mut bytes = [None; 256];
        let mut unknown = None;
        for (id, Piece { piece, score, kind }) in self.pieces.iter().enumerate() {
            let text = || quoted(piece);
            let fault = |kind, what: String| Err(PieceFault { piece: Some(id), kind, what });
            if piece.is_empty() {
                return fault(ErrorKind::Missing, format!("piece {id} is empty"));
            }
            if piece.len() > MAX_PIECE_LEN {
                let what =
                    format!("piece {id} is {} bytes, the limit is {MAX_PIECE_LEN}", piece.len());
                return fault(ErrorKind::Limit, what);
            }
            if !score.is_finite() {
                return fault(
                    ErrorKind::Invalid,
                    format!("piece {id} {} has score {score}", text()),
                );
            }
            // An unused piece of one NUL marks an id that is taken.
            if piece == "\0" && kind == TokenKind::Unused {
                continue;
            }
            if piece.contains('\0') {
                return fault(ErrorKind::Invalid, format!("piece {id} {} holds a NUL", text()));
            }
            let reserved =
                matches!(kind, TokenKind::Control | TokenKind::Unknown | TokenKind::Byte);
            if let Some(first) = seen[usize::from(reserved)].insert(piece, id) {
                let what = format!("piece {id} {} repeats piece {first}", text());
                return fault(ErrorKind::Duplicate, what);
            }
            match kind {
                TokenKind::Unknown => {
                    if let Some(first) = unknown.replace(id) {
                        let what = format!("piece {id} is of kind unknown, and so is {first}");
                        return fault(ErrorKind::Duplicate, what);
                    }
                }
                TokenKind::Byte if !byte_fallback => {
                    let what = format!("byte piece {id} {}, but byte_fallback is false", text());
                    return fault(ErrorKind::Invalid, what);
                }
                TokenKind::Byte => match parse_byte_piece(piece) {
                    Some(byte) => bytes[usize::from(byte)] = Some(id),
                    None => {
                        let what = format!("byte piece {id} is {}, not <0x00> to <0xFF>", text());
                        return fault(ErrorKind::Invalid, what);
                    }
                },
                _ => {}
            }
        }
        let whole = |what: String| PieceFault { piece: None, kind: ErrorKind::Missing, what };
        if unknown.is_none() && !byte_fallback {
            return Err(whole("no piece is of kind unknown".to_owned()));
        }
        match bytes.iter().position(Option::is_none) {
            Some(byte) if byte_fallback => {
                Err(whole(format!("byte_fallback is true, but there is no piece <0x{byte:02X}>")))
            }
            _ => Ok(()),
        }
    }
}

struct PieceFault {
    piece: Option<usize>,
    kind: ErrorKind,
    what: String,
}

/// The byte that a piece `<0xHH>` stands for; two digits, capital.
///
/// ```
/// use formats::sentencepiece::{byte_piece, parse_byte_piece};
///
/// assert_eq!(parse_byte_piece("<0x0A>"), Some(b'\n'));
/// assert_eq!(parse_byte_piece("<0x0a>"), None);
/// assert_eq!(byte_piece(b'\n'), "<0x0A>");
/// ```
#[must_use]
pub fn parse_byte_piece(piece: &str) -> Option<u8> {
    let digits = piece.strip_prefix("<0x")?.strip_suffix('>')?;
    let capital = |b: u8| b.is_ascii_digit() || (b'A'..=b'F').contains(&b);
    if digits.len() != 2 || !digits.bytes().all(capital) {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}

/// The piece of a byte, as `<0x0A>`.
#[must_use]
pub fn byte_piece(byte: u8) -> String {
    format!("<0x{byte:02X}>")
}

/// Checks that a charsmap is as long as it says: the trie's length in bytes (u32, little endian),
/// the trie in units of 4 bytes, then replacement strings in UTF-8. What the trie holds is the
/// normalizer's to check.
pub(crate) fn check_charsmap(charsmap: &[u8]) -> core::result::Result<(), String> {
    let Some((size, rest)) = charsmap.split_first_chunk() else {
        return Err(format!("a charsmap of {} bytes has no length", charsmap.len()));
    };
    let size = u32::from_le_bytes(*size) as usize;
    if !size.is_multiple_of(4) {
        return Err(format!("the trie of a charsmap is {size} bytes, which is no multiple of 4"));
    }
    match rest.get(size..) {
        None => {
            Err(format!("the trie of a charsmap is {size} bytes, but {} are there", rest.len()))
        }
        Some(replacements) => match core::str::from_utf8(replacements) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("the replacements of a charsmap are not UTF-8: {error}")),
        },
    }
}
