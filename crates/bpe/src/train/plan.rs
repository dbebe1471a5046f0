use alloc::format;
use alloc::vec::Vec;

use hashbrown::HashMap;
use tokenizer_core::{Model, PieceCounts, TokenId, TokenKind, Vocab, VocabBuilder, utf8};

use crate::model::{first_unit, units};
use crate::train::{BpeTrainer, ByteOrder, Compat, Goal, InitialBytes, TrainError};
use crate::{Alphabet, Bpe, BpeOptions, EndOfWord, Rules};

/// What is settled before the first merge: the tokens to begin with, and how pieces become
/// symbols.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) vocab: VocabBuilder,
    /// The symbol of every unit that is in the alphabet, before affixes.
    alphabet: Units<u32>,
    /// Whether a unit outside of the alphabet keeps its neighbours apart. It does where the model
    /// has a token for it; where it is dropped its neighbours become adjacent, in the model as in
    /// training.
    separates: bool,
    pub(super) unk: Option<TokenId>,
    /// Ids below this are special, reserved and byte tokens.
    pub(super) first_unit: u32,
    /// Special tokens that are units too.
    special_units: Vec<u32>,
    /// Of tokens of an older model: their lengths in units.
    known_units: HashMap<u32, u64>,
    /// No merge that is chosen makes a token with a lower id: those are of an older model, which
    /// would read old text in another way.
    pub(crate) first_new: u32,
    /// What is merged before anything is chosen.
    pub(crate) first_merges: Vec<(TokenId, TokenId)>,
}

/// A map from units (one byte, or one character) to values.
#[derive(Clone)]
struct Units<T> {
    one_byte: [Option<T>; 256],
    longer: HashMap<[u8; 4], T>,
}

impl<T: Copy> Units<T> {
    fn new() -> Self {
        Self { one_byte: [None; 256], longer: HashMap::new() }
    }

    #[inline]
    fn get(&self, unit: &[u8]) -> Option<T> {
        match *unit {
            [byte] => self.one_byte[usize::from(byte)],
            _ => self.longer.get(&padded(unit)).copied(),
        }
    }

    fn entry(&mut self, unit: &[u8], empty: T) -> &mut T {
        match *unit {
            [byte] => self.one_byte[usize::from(byte)].get_or_insert(empty),
            _ => self.longer.entry(padded(unit)).or_insert(empty),
        }
    }
}

/// A character of 2 to 4 bytes, filled up with zeros: no other character begins with it.
fn padded(unit: &[u8]) -> [u8; 4] {
    let mut key = [0; 4];
    key[..unit.len()].copy_from_slice(unit);
    key
}

/// In the list of symbols of a piece: neighbours do not form a pair here.
pub(crate) const GAP: u32 = u32::MAX;

impl Plan {
    pub(crate) fn new(trainer: &BpeTrainer, counts: &PieceCounts) -> Result<Self, TrainError> {
        check(trainer)?;
        if let Goal::VocabSize(asked) = trainer.goal
            && asked < trainer.reserved_tokens
        {
            // Hopeless: say what is needed before memory is filled with reserved tokens.
            let (goal, reserved_tokens) = (Goal::Merges(0), 0);
            let rest = Self::new(&BpeTrainer { goal, reserved_tokens, ..trainer.clone() }, counts)?;
            let needed = rest.vocab.len().saturating_add(trainer.reserved_tokens);
            return Err(TrainError::too_small(asked, needed));
        }
        let mut vocab = Vocab::builder();
        let mut unk = None;
        for (at, special) in trainer.special_tokens.iter().enumerate() {
            if special.is_empty() {
                return Err(TrainError::empty_special(at));
            }
            let is_unk = trainer.unk_token.as_ref() == Some(special);
            if vocab.get(special.as_bytes()).is_none() {
                let kind = if is_unk { TokenKind::Unknown } else { TokenKind::Control };
                let id = vocab.push(special.as_bytes(), kind)?;
                unk = unk.or(is_unk.then_some(id));
            }
        }
        if let (Some(token), None) = (&trainer.unk_token, unk) {
            unk = Some(vocab.push(token.as_bytes(), TokenKind::Unknown)?);
        }
        for i in 0..trainer.reserved_tokens {
            vocab.push(format!("<|reserved_{i}|>").as_bytes(), TokenKind::Unused)?;
        }
        for (at, token) in trainer.user_defined.iter().enumerate() {
            if token.is_empty() {
                return Err(TrainError::empty_special(trainer.special_tokens.len() + at));
            }
            vocab.push(token.as_bytes(), TokenKind::UserDefined)?;
        }
        if trainer.byte_fallback {
            for byte in 0..=255u8 {
                vocab.push(&[byte], TokenKind::Byte)?;
            }
        }
        let separates = trainer.byte_fallback || unk.is_some();
        let first_unit = vocab.len() as u32;
        let mut plan = Self {
            vocab,
            alphabet: Units::new(),
            separates,
            unk,
            first_unit,
            special_units: Vec::new(),
            known_units: HashMap::new(),
            first_new: 0,
            first_merges: Vec::new(),
        };
        if trainer.compat == Compat::SentencePiece {
            // No merge makes a token that is there.
            plan.first_new = u32::MAX;
        }
        for unit in choose_alphabet(trainer, counts) {
            let id = plan.token(&unit)?;
            *plan.alphabet.entry(&unit, 0) = id;
        }
        plan.add_affixed(trainer, counts)?;
        if let Some(EndOfWord::Symbol(mark)) = &trainer.end_of_word {
            plan.token(mark.as_bytes())?;
        }
        if let Goal::VocabSize(asked) = trainer.goal
            && asked < plan.vocab.len()
        {
            return Err(TrainError::too_small(asked, plan.vocab.len()));
        }
        Ok(plan)
    }

    /// The plan of a training on top of a model, whose tokens all keep their ids: what else is
    /// needed comes behind them.
    pub(crate) fn extending(
        trainer: &BpeTrainer,
        model: &Bpe,
        counts: &PieceCounts,
    ) -> Result<Self, TrainError> {
        check(trainer)?;
        let Rules::Merges(merges) = model.rules() else {
            return Err(TrainError::option(
                "only a model with a list of merges can be extended, not one of ranks or scores",
            ));
        };
        let mut vocab = Vocab::builder();
        for (_, bytes, kind) in model.vocab().iter() {
            vocab.push(bytes, kind)?;
        }
        for special in &trainer.special_tokens {
            if vocab.get(special.as_bytes()).is_none() {
                vocab.push(special.as_bytes(), TokenKind::Control)?;
            }
        }
        let mut reserved = 0usize;
        for _ in 0..trainer.reserved_tokens {
            let mut name = format!("<|reserved_{reserved}|>");
            while vocab.get(name.as_bytes()).is_some() {
                reserved += 1;
                name = format!("<|reserved_{reserved}|>");
            }
            vocab.push(name.as_bytes(), TokenKind::Unused)?;
        }
        let options = model.options();
        let mut plan = Self {
            first_unit: vocab.len() as u32,
            vocab,
            alphabet: Units::new(),
            separates: options.byte_fallback || options.unk.is_some(),
            unk: options.unk,
            special_units: Vec::new(),
            known_units: HashMap::new(),
            first_new: model.vocab().len() as u32,
            first_merges: merges.clone(),
        };
        for unit in choose_alphabet(trainer, counts) {
            let id = plan.token(&unit)?;
            *plan.alphabet.entry(&unit, 0) = id;
        }
        plan.add_affixed(trainer, counts)?;
        if let Some(EndOfWord::Symbol(mark)) = &trainer.end_of_word {
            plan.token(mark.as_bytes())?;
        }
        // A merged token is as long as its parts, whatever affixes its bytes hold.
        let old = model.vocab();
        let prefix = trainer.continuing_prefix.as_deref().unwrap_or("").as_bytes();
        for &(left, right) in merges {
            let [left_bytes, right_bytes] = [left, right].map(|id| old.bytes(id).unwrap_or(b""));
            let tail = right_bytes.strip_prefix(prefix).unwrap_or(right_bytes);
            let product = old.get(&[left_bytes, tail].concat());
            let units = plan.units_of(trainer, left, left_bytes)
                + plan.units_of(trainer, right, right_bytes);
            if let Some(product) = product
                && old.kind(product) == Some(TokenKind::Normal)
            {
                plan.known_units.entry(product.0).or_insert(units);
            }
        }
        if let Goal::VocabSize(asked) = trainer.goal
            && asked < plan.vocab.len()
        {
            return Err(TrainError::too_small(asked, plan.vocab.len()));
        }
        Ok(plan)
    }

    /// The id of a token with these bytes, added if there is none.
    fn token(&mut self, bytes: &[u8]) -> Result<u32, TrainError> {
        match self.vocab.get(bytes) {
            Some(id) => {
                if id.0 < self.first_unit {
                    self.special_units.push(id.0);
                }
                Ok(id.0)
            }
            None => Ok(self.vocab.push(bytes, TokenKind::Normal)?.0),
        }
    }

    /// The length in units of one of the tokens to begin with. A special token may be the same as
    /// a token that is merged later, so it has the length that that token would have.
    pub(crate) fn units_of(&self, trainer: &BpeTrainer, id: TokenId, bytes: &[u8]) -> u64 {
        if id.0 >= self.first_unit || self.special_units.contains(&id.0) {
            return 1;
        }
        if let Some(&units) = self.known_units.get(&id.0) {
            return units;
        }
        units(trainer.unit, bytes).count() as u64
    }

    /// Adds the characters with prefix and suffix that occur, sorted by their bytes.
    fn add_affixed(
        &mut self,
        trainer: &BpeTrainer,
        counts: &PieceCounts,
    ) -> Result<(), TrainError> {
        let mut affixed: Vec<Vec<u8>> = Vec::new();
        let mut seen: HashMap<Vec<u8>, ()> = HashMap::new();
        let mut buffer = Vec::new();
        for piece in counts.iter() {
            for_each_unit(trainer, piece.piece, |unit, prefix, suffix| {
                if self.alphabet.get(unit).is_none() || (prefix.is_empty() && suffix.is_empty()) {
                    return;
                }
                buffer.clear();
                buffer.extend_from_slice(prefix);
                buffer.extend_from_slice(unit);
                buffer.extend_from_slice(suffix);
                if !seen.contains_key(&buffer[..]) {
                    seen.insert(buffer.clone(), ());
                    affixed.push(buffer.clone());
                }
            });
        }
        affixed.sort();
        for token in affixed {
            self.token(&token)?;
        }
        Ok(())
    }

    /// Appends the symbols of a piece.
    pub(crate) fn symbols(
        &self,
        trainer: &BpeTrainer,
        piece: &[u8],
        buffer: &mut Vec<u8>,
        symbols: &mut Vec<u32>,
    ) {
        for_each_unit(trainer, piece, |unit, prefix, suffix| match self.alphabet.get(unit) {
            Some(id) if prefix.is_empty() && suffix.is_empty() => symbols.push(id),
            Some(_) => {
                buffer.clear();
                buffer.extend_from_slice(prefix);
                buffer.extend_from_slice(unit);
                buffer.extend_from_slice(suffix);
                symbols.push(self.vocab.get(buffer).expect("every affixed unit was added").0);
            }
            None if self.separates => symbols.push(GAP),
            None => {}
        });
        if let Some(EndOfWord::Symbol(mark)) = &trainer.end_of_word {
            symbols.push(self.vocab.get(mark.as_bytes()).expect("the mark was added").0);
        }
    }

    /// The trained model.
    pub(crate) fn model(
        &self,
        vocab: Vocab,
        merges: Vec<(TokenId, TokenId)>,
        trainer: &BpeTrainer,
    ) -> Bpe {
        let options = BpeOptions {
            alphabet: trainer.unit,
            end_of_word: trainer.end_of_word.clone(),
            continuing_prefix: trainer.continuing_prefix.clone(),
            byte_fallback: trainer.byte_fallback,
            unk: self.unk,
            fuse_unk: trainer.fuse_unk,
            ignore_merges: false,
        };
        Bpe::from_merges(vocab, merges, options)
            .expect("every merge was made of tokens of the vocabulary and added what it makes")
    }
}

fn check(trainer: &BpeTrainer) -> Result<(), TrainError> {
    let fail = |says| Err(TrainError::option(says));
    if trainer.end_of_word.as_ref().is_some_and(|mark| mark.mark().is_empty()) {
        return fail("the end-of-word mark is empty");
    }
    if trainer.continuing_prefix.as_ref().is_some_and(|prefix| prefix.is_empty()) {
        return fail("the continuing prefix is empty");
    }
    if trainer.unk_token.as_ref().is_some_and(|token| token.is_empty()) {
        return fail("the unknown token is empty");
    }
    if !(trainer.character_coverage > 0.0 && trainer.character_coverage <= 1.0) {
        return fail("the character coverage must be more than 0 and at most 1");
    }
    if trainer.compat == Compat::SentencePiece {
        super::sentencepiece::check(trainer)?;
    } else if !trainer.user_defined.is_empty() {
        return fail("only SentencePiece's models have user-defined tokens");
    }
    if trainer.unit == Alphabet::Byte {
        if trainer.rules.is_some() {
            return fail("rules for pieces need units of characters, but the units are bytes");
        }
        if trainer.byte_fallback {
            return fail("byte fallback needs units of characters, but the units are bytes");
        }
        if trainer.alphabet_limit.is_some() || trainer.character_coverage < 1.0 {
            return fail("a limited alphabet needs units of characters, but the units are bytes");
        }
        if !trainer.initial_alphabet.is_empty() {
            return fail("an initial alphabet needs units of characters, but the units are bytes");
        }
    }
    Ok(())
}

/// Calls `each` with every unit of a piece and its affixes (an end-of-word symbol is none).
fn for_each_unit<'a>(
    trainer: &'a BpeTrainer,
    piece: &'a [u8],
    mut each: impl FnMut(&'a [u8], &'a [u8], &'a [u8]),
) {
    let prefix = trainer.continuing_prefix.as_deref().unwrap_or("").as_bytes();
    let suffix = match &trainer.end_of_word {
        Some(EndOfWord::Suffix(mark)) => mark.as_bytes(),
        _ => b"",
    };
    let mut at = 0;
    while at < piece.len() {
        let unit = first_unit(trainer.unit, &piece[at..]);
        let is_first = at == 0;
        at += unit.len();
        let is_last = at == piece.len();
        each(unit, if is_first { b"" } else { prefix }, if is_last { suffix } else { b"" });
    }
}

/// The units that become tokens, in the order of their ids.
fn choose_alphabet(trainer: &BpeTrainer, counts: &PieceCounts) -> Vec<Vec<u8>> {
    let mut seen: Units<u128> = Units::new();
    for piece in counts.iter() {
        for unit in units(trainer.unit, piece.piece) {
            *seen.entry(unit, 0) += u128::from(piece.count);
        }
    }
    match trainer.unit {
        Alphabet::Byte => {
            let mut bytes: Vec<u8> = (0..=255)
                .filter(|&byte| {
                    trainer.bytes == InitialBytes::All || seen.one_byte[usize::from(byte)].is_some()
                })
                .collect();
            if trainer.byte_order == ByteOrder::Gpt2 {
                bytes.sort_by_key(|&byte| (!is_gpt2_printable(byte), byte));
            }
            bytes.into_iter().map(|byte| Vec::from([byte])).collect()
        }
        Alphabet::Char => {
            if trainer.compat == Compat::SentencePiece {
                return super::sentencepiece::alphabet(trainer, counts);
            }
            let one_byte = (0..=255u8)
                .filter_map(|byte| Some((Vec::from([byte]), seen.one_byte[usize::from(byte)]?)));
            let longer = seen
                .longer
                .iter()
                .map(|(key, &count)| (Vec::from(&key[..utf8::char_len(key)]), count));
            // Ill-formed bytes are not characters; they are unknown to the model.
            let mut found: Vec<(Vec<u8>, u128)> = one_byte
                .chain(longer)
                .filter(|(unit, _)| core::str::from_utf8(unit).is_ok())
                .collect();
            // UTF-8 sorts by code point.
            found.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
            let total: u128 = found.iter().map(|(_, count)| count).sum();
            let mut alphabet: Vec<Vec<u8>> = trainer
                .initial_alphabet
                .chars()
                .map(|c| c.encode_utf8(&mut [0; 4]).as_bytes().to_vec())
                .collect();
            alphabet.sort();
            alphabet.dedup();
            let initial: HashMap<Vec<u8>, ()> =
                alphabet.iter().map(|unit| (unit.clone(), ())).collect();
            let limit = trainer.alphabet_limit.unwrap_or(usize::MAX);
            let mut covered = 0u128;
            for (unit, count) in found {
                let enough = trainer.character_coverage < 1.0
                    && covered as f64 >= trainer.character_coverage * total as f64;
                covered += count;
                if !initial.contains_key(&unit) && !enough && alphabet.len() < limit {
                    alphabet.push(unit);
                }
            }
            alphabet.sort();
            alphabet
        }
    }
}

/// Whether GPT-2's byte table shows this byte as itself; it numbers those first.
fn is_gpt2_printable(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF)
}
