//! From piece counts to symbols: the part of training that both trainers share.

use alloc::vec::Vec;

use hashbrown::{HashMap, HashSet};
use tokenizer_core::{Observe, PieceCounts, TokenKind, Vocab, VocabBuilder, utf8};

use crate::Unit;
use crate::encoder::char_len;
use crate::trainer::{Merge, Report, TrainError, WordPieceTrainer};

/// The corpus as symbols: what the merges work on.
#[derive(Default)]
pub(crate) struct Corpus {
    /// The symbols of all runs, one after the other.
    pub(crate) symbols: Vec<u32>,
    /// A run is a longest part of a word without dropped characters; most words are one run.
    pub(crate) runs: Vec<Run>,
    pub(crate) report: Report,
}

pub(crate) struct Run {
    /// Where the run ends in `symbols`; it begins where the one before ends.
    pub(crate) end: usize,
    /// How often the word occurs.
    pub(crate) weight: u64,
}

/// The vocabulary as it grows.
pub(crate) struct Tokens {
    builder: VocabBuilder,
    texts: Vec<Vec<u8>>,
    /// Characters without the prefix, as the sum of the parts.
    lens: Vec<u64>,
    /// Whether the token never comes from text.
    is_special: Vec<bool>,
    prefix: Vec<u8>,
}

/// What two tokens make.
pub(crate) enum Product {
    /// A token that is there already.
    Known(u32),
    New(Vec<u8>),
    /// The text of a special token, which never comes from text.
    Special,
}

impl Tokens {
    pub(crate) fn new(prefix: &[u8]) -> Self {
        Self {
            builder: Vocab::builder(),
            texts: Vec::new(),
            lens: Vec::new(),
            is_special: Vec::new(),
            prefix: prefix.to_vec(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    pub(crate) fn text(&self, id: u32) -> &[u8] {
        &self.texts[id as usize]
    }

    pub(crate) fn is_special(&self, id: u32) -> bool {
        self.is_special[id as usize]
    }

    /// The token with this text, if there is one that can be found.
    pub(crate) fn get(&self, text: &[u8]) -> Option<u32> {
        self.builder.get(text).map(|id| id.0)
    }

    /// The characters of the pair's product.
    pub(crate) fn joint_len(&self, left: u32, right: u32) -> u64 {
        self.lens[left as usize].saturating_add(self.lens[right as usize])
    }

    pub(crate) fn product(&self, left: u32, right: u32) -> Product {
        let right = self.text(right);
        let mut text = self.text(left).to_vec();
        text.extend_from_slice(right.strip_prefix(&self.prefix[..]).unwrap_or(right));
        match self.builder.get(&text) {
            Some(id) if self.is_special(id.0) => Product::Special,
            Some(id) => Product::Known(id.0),
            None => Product::New(text),
        }
    }

    pub(crate) fn push(
        &mut self,
        text: Vec<u8>,
        kind: TokenKind,
        len: u64,
    ) -> Result<u32, TrainError> {
        let id = self.builder.push(&text, kind).map_err(TrainError::vocab)?;
        self.texts.push(text);
        self.lens.push(len);
        self.is_special.push(!matches!(kind, TokenKind::Normal | TokenKind::UserDefined));
        Ok(id.0)
    }

    /// The id of a symbol of the alphabet, which may be there as a symbol already (empty prefix, or
    /// a token of an older model).
    pub(crate) fn symbol(&mut self, text: Vec<u8>) -> Result<u32, TrainError> {
        match self.builder.get(&text) {
            Some(id) if self.is_special(id.0) => Err(TrainError::special_in_alphabet(id, text)),
            Some(id) => Ok(id.0),
            None => self.push(text, TokenKind::Normal, 1),
        }
    }

    pub(crate) fn into_vocab(self) -> Vocab {
        self.builder.build()
    }

    /// The vocabulary as it stands.
    pub(crate) fn to_vocab_builder(&self) -> VocabBuilder {
        self.builder.clone()
    }
}

/// A character's two symbols, where they are in the alphabet.
#[derive(Clone, Copy, Default)]
struct Symbols {
    initial: Option<u32>,
    inner: Option<u32>,
}

/// How often a character occurs at the beginning and inside of words.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) initial: u64,
    pub(crate) inner: u64,
}

/// Checks the options and lays out special tokens and alphabet.
///
/// Ids: the special tokens in their order (the unknown token first, if it is not among them), then
/// the word-initial characters, then the continuations, each sorted by their bytes.
pub(crate) fn prepare(
    trainer: &WordPieceTrainer,
    counts: &PieceCounts,
    observe: &mut dyn Observe<Merge>,
) -> Result<(Tokens, Corpus), TrainError> {
    trainer.check()?;
    let unit = trainer.options.unit;
    let mut tokens = Tokens::new(&trainer.options.continuing_prefix);
    let unk = trainer.options.unk.as_ref();
    let leading_unk = unk.filter(|unk| !trainer.special_tokens.contains(unk));
    for text in leading_unk.into_iter().chain(&trainer.special_tokens) {
        let kind = if unk == Some(text) { TokenKind::Unknown } else { TokenKind::Control };
        tokens.push(text.clone(), kind, 0)?;
    }
    let n_special = tokens.len();

    let mut corpus = Corpus::default();
    let tallies = tally(trainer, counts, &mut corpus.report, observe)?;
    let kept = keep(trainer, tallies, |_, _| false, &mut corpus.report);
    let mut symbols: HashMap<&[u8], Symbols> = HashMap::new();
    for &(char, tally) in &kept {
        if tally.initial > 0 {
            let id = tokens.symbol(char.to_vec())?;
            symbols.entry(char).or_default().initial = Some(id);
        }
    }
    for &(char, tally) in &kept {
        if tally.inner > 0 {
            let id = tokens.symbol([&trainer.options.continuing_prefix[..], char].concat())?;
            symbols.entry(char).or_default().inner = Some(id);
        }
    }
    if tokens.len() > trainer.vocab_size {
        let alphabet = tokens.len() - n_special;
        return Err(TrainError::vocab_too_small(trainer.vocab_size, n_special, alphabet));
    }

    for piece in counts.iter() {
        if trainer.skips(piece.piece) {
            continue;
        }
        let mut run = corpus.symbols.len();
        let mut end_run = |symbols: &Vec<u32>| {
            if symbols.len() > run {
                run = symbols.len();
                corpus.runs.push(Run { end: run, weight: piece.count });
            }
        };
        for (index, char) in units(unit, piece.piece).enumerate() {
            let both = symbols.get(char).copied().unwrap_or_default();
            match if index == 0 { both.initial } else { both.inner } {
                Some(symbol) => corpus.symbols.push(symbol),
                None => end_run(&corpus.symbols),
            }
        }
        end_run(&corpus.symbols);
    }
    Ok((tokens, corpus))
}

/// Counts the characters; checks that no sum can pass 64 bits later.
pub(crate) fn tally<'c>(
    trainer: &WordPieceTrainer,
    counts: &'c PieceCounts,
    report: &mut Report,
    observe: &mut dyn Observe<Merge>,
) -> Result<HashMap<&'c [u8], Tally>, TrainError> {
    const INTERVAL: usize = 1 << 14;
    let unit = trainer.options.unit;
    let mut tallies: HashMap<&[u8], Tally> = HashMap::new();
    let (mut total, mut length) = (0u64, 0u64);
    for (done, piece) in counts.iter().enumerate() {
        if done % INTERVAL == 0
            && observe.progress("alphabet", done as u64, counts.len() as u64).is_break()
        {
            return Err(TrainError::stopped());
        }
        if trainer.skips(piece.piece) {
            report.skipped_pieces += 1;
            report.skipped_count += piece.count;
            continue;
        }
        for (index, char) in units(unit, piece.piece).enumerate() {
            length += 1;
            total = total.checked_add(piece.count).ok_or_else(TrainError::too_many_characters)?;
            let tally = tallies.entry(char).or_default();
            // Neither passes the total, which was checked.
            if index == 0 {
                tally.initial += piece.count;
            } else {
                tally.inner += piece.count;
            }
        }
    }
    if length >= u64::from(u32::MAX) {
        return Err(TrainError::corpus_too_large(length));
    }
    Ok(tallies)
}

/// The characters of the alphabet, sorted by their bytes, with a tally above 0 for each form that
/// gets a symbol. What is left out is reported, but for what `is_known` all the same.
pub(crate) fn keep<'c>(
    trainer: &'c WordPieceTrainer,
    tallies: HashMap<&'c [u8], Tally>,
    is_known: impl Fn(&[u8], Tally) -> bool,
    report: &mut Report,
) -> Vec<(&'c [u8], Tally)> {
    const BOTH: Tally = Tally { initial: 1, inner: 1 };
    if trainer.options.unit == Unit::Byte {
        return (0..=255usize).map(|byte| (&BYTES[byte..=byte], BOTH)).collect();
    }
    let required: HashSet<&[u8]> = trainer.initial_alphabet.iter().map(Vec::as_slice).collect();
    let mut chars: Vec<_> = tallies
        .into_iter()
        .filter(|(char, _)| !required.contains(char))
        .map(|(char, tally)| (tally.initial + tally.inner, char, tally))
        .collect();
    // Most frequent first, ties by bytes: what the limit and the coverage keep.
    chars.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    let total: u64 = chars.iter().map(|&(count, ..)| count).sum();
    let limit = trainer.alphabet_limit.unwrap_or(usize::MAX).saturating_sub(required.len());
    let mut covered = 0;
    let n_kept = chars
        .iter()
        .take(limit)
        .take_while(|&&(count, ..)| {
            let goes_on =
                trainer.coverage >= 1.0 || (covered as f64) < trainer.coverage * total as f64;
            covered += if goes_on { count } else { 0 };
            goes_on
        })
        .count();
    for &(count, char, tally) in &chars[n_kept..] {
        if !is_known(char, tally) {
            report.dropped_chars += 1;
            report.dropped_count += count;
        }
    }
    let mut kept: Vec<_> = chars[..n_kept].iter().map(|&(_, char, tally)| (char, tally)).collect();
    kept.extend(required.into_iter().map(|char| (char, BOTH)));
    kept.sort_unstable_by_key(|&(char, _)| char);
    kept
}

static BYTES: [u8; 256] = {
    let mut bytes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        bytes[byte] = byte as u8;
        byte += 1;
    }
    bytes
};

/// The characters of a piece.
pub(crate) fn units(unit: Unit, piece: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = piece;
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (char, tail) = rest.split_at(char_len(unit, rest));
        rest = tail;
        Some(char)
    })
}

/// Whether the piece has more than `max` characters.
pub(crate) fn is_longer(unit: Unit, piece: &[u8], max: usize) -> bool {
    piece.len() > max
        && match unit {
            Unit::Byte => true,
            Unit::Char => utf8::chars(piece).nth(max).is_some(),
        }
}
