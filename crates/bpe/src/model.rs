use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use hashbrown::HashMap;
use piece_table::{Size, Words};
use tokenizer_core::{
    Array, Decode, DecodeError, Encode, Model, Token, TokenId, TokenKind, Vocab, utf8,
};

use crate::compact::{Compact, Numbered, RankedMerge};
use crate::engine::{Blind, Node, Scratch};
use crate::error::{BuildErrorKind, LONGEST_UNUSED};
use crate::frozen::Frozen;
use crate::image::{ImageError, Reader, Writer};
use crate::longest::Longest;
use crate::pairs::{Merge, NO_MERGE, NO_SYMBOL, PairTable, Symbol, WideTable};
use crate::{Alphabet, BpeOptions, BuildError, Encoder, EndOfWord};

/// A byte-pair encoding model: immutable, shared by any number of sessions.
///
/// Built from a vocabulary and one of three kinds of [`Rules`]. Building costs about one encoding
/// of every token; memory is the vocabulary, 32 to 64 bytes a merge, and the rules as given.
#[derive(Clone)]
pub struct Bpe {
    vocab: Vocab,
    rules: Rules,
    options: BpeOptions,
    pairs: PairTable,
    /// The same merges for short pieces, where they allow it.
    compact: Option<Compact>,
    /// The same merges where they do not allow that, but this.
    numbered: Option<Numbered>,
    /// Tokens that merging alone makes of their own text.
    reachable: Bits,
    /// Tokens that the piece of their own text encodes to, merged or not.
    whole: Bits,
    /// Merging makes all of them, so that looking for them is a matter of speed alone.
    makes_whole: bool,
    /// The symbol of every one-byte unit.
    units: Box<[Symbol; 256]>,
    /// All 256 bytes are symbols and nothing else plays a part, so bytes map to symbols one to one.
    plain_bytes: bool,
    /// Units that are no token (or an unused one), but that tokens contain, for ranks and scores
    /// only: numbers beyond the vocabulary.
    extra: HashMap<Box<[u8]>, Symbol>,
    /// The symbols of characters beyond ASCII, where units are characters.
    chars: CharSymbols,
    frozen: Frozen,
    /// Some unused piece of more than one unit exists, so results may have to be split again.
    splits_unused: bool,
    /// The short pieces that are one token. Built when a session first needs them, or with the
    /// model where the standard library's cell is not to be had.
    #[cfg(feature = "std")]
    words: std::sync::OnceLock<Words>,
    #[cfg(not(feature = "std"))]
    words: Words,
    /// Finds tokens without merging, where that is possible. Built when a session first needs it.
    #[cfg(feature = "std")]
    longest: std::sync::OnceLock<Option<Longest>>,
    #[cfg(not(feature = "std"))]
    longest: Option<Longest>,
}

/// What decides which symbols merge, and in which order.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Rules {
    /// The pairs that merge, lowest rank (index) first. Of a pair that is listed twice the last
    /// rank counts.
    Merges(Vec<(TokenId, TokenId)>),
    /// Any two neighbours merge whose concatenation is a token of kind `Normal`, lowest id first;
    /// a piece that is such a token is not taken apart at all (tiktoken).
    Ranks,
    /// Any two neighbours merge whose concatenation is a token of kind `Normal` or `Unused`,
    /// highest score first (SentencePiece). One score for each token.
    Scores(Vec<f32>),
}

impl Bpe {
    /// The model of an ordered list of merges (Hugging Face, GPT-2, subword-nmt).
    ///
    /// A merge makes the concatenation of its parts; where
    /// [`continuing_prefix`](BpeOptions::continuing_prefix) is set, the right part loses it.
    ///
    /// # Errors
    ///
    /// If a merge names an id that the vocabulary does not hold or that is of kind `Unused`, if
    /// the vocabulary does not hold what a merge makes, or if an option contradicts the
    /// vocabulary.
    pub fn from_merges(
        vocab: Vocab,
        merges: Vec<(TokenId, TokenId)>,
        options: BpeOptions,
    ) -> Result<Self, BuildError> {
        let mut model = Self::unmerged(vocab, Rules::Merges(Vec::new()), options)?;
        let all = model.listed_pairs(&merges)?;
        let prunable = model.affixes() == (None, None)
            && merges.iter().all(|&(left, right)| {
                [left, right].iter().all(|&id| {
                    Some(id) != model.options.unk && model.vocab.kind(id) != Some(TokenKind::Byte)
                })
            });
        model.rules = Rules::Merges(merges);
        if prunable {
            model.prune(|left, right, token| {
                let merge = all.get(left, right);
                (merge != NO_MERGE && merge.product() == token).then_some(merge.rank())
            });
        } else {
            model.pairs = PairTable::Wide(all);
            model.find_reachable();
        }
        model.find_whole();
        Ok(model)
    }

    /// The model of tiktoken's ranks, which are the ids of the tokens of kind `Normal`.
    ///
    /// # Errors
    ///
    /// If an option contradicts the vocabulary, or an option is given that needs a list of merges
    /// (end-of-word mark, continuing prefix).
    pub fn from_ranks(vocab: Vocab, options: BpeOptions) -> Result<Self, BuildError> {
        let mut model = Self::unmerged(vocab, Rules::Ranks, options)?;
        model.collect_extra(&[TokenKind::Normal]);
        let ranks: Vec<Option<u32>> = model
            .vocab
            .iter()
            .map(|(id, _, kind)| (kind == TokenKind::Normal).then_some(id.0))
            .collect();
        model.prune_unlisted(&ranks);
        model.find_whole();
        Ok(model)
    }

    /// As [`from_ranks`](Self::from_ranks), for callers that know the merge of each token already:
    /// its left and right part, in order of id, as [`recover_merges`](Self::recover_merges) and the
    /// `encodings` crate have them. Finding them takes most of the time of `from_ranks`; this takes
    /// a few nanoseconds a token.
    ///
    /// The merges must be those that `from_ranks` finds, for other ones give another model: what is
    /// checked is that parts and token have the same length. The vocabulary's index is not needed
    /// ([`Vocab::from_distinct`]) unless they cannot be taken as they are.
    ///
    /// # Errors
    ///
    /// As `from_ranks`, and if a merge names ids that the vocabulary does not hold, or the lengths
    /// contradict each other.
    pub fn from_ranks_and_merges(
        vocab: Vocab,
        merges: impl Iterator<Item = (TokenId, TokenId, TokenId)>,
        options: BpeOptions,
    ) -> Result<Self, BuildError> {
        let mut model = Self::unmerged(vocab, Rules::Ranks, options)?;
        let kinds = model.vocab.kinds();
        let mut reachable = Bits::new(kinds.len());
        // Ids that ascend are ranks, each of one token.
        let (mut n_merges, mut next, mut ascend) = (0, 0, true);
        let mut fault = None;
        let normal_len = |id: TokenId| {
            let is_normal = kinds.get(id.index()) == Some(&TokenKind::Normal);
            if is_normal { model.vocab.token_len(id) } else { None }
        };
        let ranked = merges.filter_map(|(left, right, token)| {
            let merge = n_merges;
            n_merges += 1;
            if let Some(of_left) = normal_len(left)
                && let Some(of_right) = normal_len(right)
                && let Some(of_token) = normal_len(token)
                && of_left + of_right == of_token
            {
                reachable.set(token.0);
                ascend &= next <= token.0;
                next = token.0 + 1;
                return ascend.then_some((left.0, right.0, token.0));
            }
            if fault.is_none() {
                fault = Some(merge_fault(&model.vocab, merge, [left, right, token]));
            }
            None
        });
        // As many merges as tokens at most, for they ascend.
        let compact = Compact::of_ranks(&model.units, kinds.len(), kinds.len(), ranked);
        if let Some(fault) = fault {
            return Err(BuildError::new(fault));
        }
        let makes_unit = || model.units.iter().any(|&unit| reachable.get(unit));
        let compact = compact.filter(|_| model.plain_bytes && ascend && !makes_unit());
        let compact = compact.map(|compact| (compact.pairs_of_ids(), compact));
        let Some((Some(pairs), compact)) = compact else {
            // Not byte-level, or ids that are no ranks: find everything out as always.
            return Self::from_ranks(model.vocab, model.options);
        };
        model.pairs = PairTable::Narrow(pairs);
        model.compact = Some(compact);
        for &unit in model.units.iter() {
            reachable.set(unit);
        }
        model.reachable = reachable;
        model.find_whole();
        Ok(model)
    }

    /// The model of SentencePiece's scores, one for each token.
    ///
    /// Tokens of kind `UserDefined` are cut out first, longest match first, and never merge.
    /// Pieces of kind `Unused` merge, but are split again in the result. Tokens of the other kinds
    /// are not made by merging. Unknown characters, among them unused pieces of one character, are dealt
    /// with after merging: SentencePiece itself always has [`fuse_unk`](BpeOptions::fuse_unk) on.
    ///
    /// # Errors
    ///
    /// If there is not one score for each token, a score is not a number, an option contradicts
    /// the vocabulary or needs a list of merges, or an unused piece is longer than 4096 bytes.
    pub fn from_scores(
        vocab: Vocab,
        scores: Vec<f32>,
        options: BpeOptions,
    ) -> Result<Self, BuildError> {
        if scores.len() != vocab.len() {
            let (scores, vocab_len) = (scores.len(), vocab.len());
            return Err(BuildError::new(BuildErrorKind::ScoreCount { scores, vocab_len }));
        }
        if let Some(at) = scores.iter().position(|score| score.is_nan()) {
            let id = TokenId(at as u32);
            return Err(BuildError::new(BuildErrorKind::ScoreNotANumber { id }));
        }
        let mut model = Self::unmerged(vocab, Rules::Scores(Vec::new()), options)?;
        model.collect_extra(&[TokenKind::Normal, TokenKind::Unused]);
        let ranks = ranks_of_scores(&model.vocab, &scores);
        model.rules = Rules::Scores(scores);
        model.frozen = Frozen::new(
            model
                .vocab
                .iter()
                .filter(|&(_, _, kind)| kind == TokenKind::UserDefined)
                .map(|(id, bytes, _)| (bytes, id)),
        );
        if model.splits_unused {
            // What an unused piece splits into depends on pairs that were only looked at, so none
            // may be missing.
            model.pairs = PairTable::Wide(model.all_splits(&ranks)?);
            model.find_reachable();
        } else {
            model.prune_unlisted(&ranks);
        }
        model.find_whole();
        Ok(model)
    }

    /// The finished tables of the model, to be read by [`from_image`](Self::from_image) where they lie. `None`
    /// where the model is none of ranks over all bytes with the usual options, or ids are no ranks in order, as
    /// those of tiktoken's encodings are.
    ///
    /// The same model gives the same bytes on every machine whose numbers are little-endian. They take
    /// about 65 bytes a token.
    #[must_use]
    pub fn to_image(&self) -> Option<Vec<u8>> {
        let is_usual = self.rules == Rules::Ranks
            && self.options == BpeOptions::default()
            && self.plain_bytes
            && matches!(self.pairs, PairTable::Narrow(_));
        let compact = self.compact.as_ref().filter(|compact| compact.ids_are_numbers())?;
        let mut unused = Vec::new();
        for (id, bytes, kind) in self.vocab.iter().filter(|token| token.2 != TokenKind::Normal) {
            if !is_usual || kind != TokenKind::Unused || !bytes.is_empty() {
                return None;
            }
            unused.push(id.0);
        }
        let longest = self.longest().filter(|_| is_usual)?;
        let mut image = Writer::default();
        image.array(&[self.vocab.max_token_len() as u32, u32::from(self.makes_whole)]);
        image.array(&unused);
        image.array(self.vocab.all_bytes());
        image.array(self.vocab.bounds());
        image.array(&self.reachable.0);
        image.array(&self.whole.0);
        compact.write(&mut image);
        longest.write(&mut image);
        image.finish()
    }

    /// The model whose tables [`to_image`](Self::to_image) gave, read where they lie: nothing is copied, built
    /// or looked through, so this takes a few microseconds, and memory only for what encoding reads.
    ///
    /// An image is a part of a program, made when the program is built, by the same version of this crate.
    /// What can be checked without reading the tables is checked; bytes that `to_image` did not make may
    /// give wrong tokens, panics or endless searches later, so none should come from a stranger. The image must
    /// be aligned to 8 bytes.
    ///
    /// ```
    /// use bpe::{Bpe, BpeOptions};
    /// use tokenizer_core::{Encode, Vocab};
    ///
    /// let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    /// tokens.push(b"ab".to_vec());
    /// let model = Bpe::from_ranks(Vocab::from_tokens(&tokens)?, BpeOptions::default())?;
    /// let image = model.to_image().expect("ranks over all bytes");
    /// # // Aligned, as a static with `align(64)` is.
    /// # let numbers: Vec<u64> =
    /// #     image.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    /// // A program has `include_bytes!` of a file that its build script wrote.
    /// let image: &'static [u8] = bytemuck::cast_slice(numbers.leak());
    /// let model = Bpe::from_image(image)?;
    /// let mut tokens = Vec::new();
    /// model.session().encode_piece(b"abc", &mut tokens);
    /// assert_eq!(tokens.iter().map(|token| token.id.0).collect::<Vec<_>>(), [256, 99]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the bytes are no image, that of another version, cut off, not aligned, or their tables do not fit
    /// each other; and where numbers are big-endian.
    pub fn from_image(image: &'static [u8]) -> Result<Self, ImageError> {
        let mut image = Reader::new(image)?;
        let [max_token_len, makes_whole] = image.numbers()?;
        let unused: Array<u32> = image.array()?;
        let (bytes, bounds): (Array<u8>, Array<u32>) = (image.array()?, image.array()?);
        let (reachable, whole) = (Bits(image.array()?), Bits(image.array()?));
        let compact = Compact::read(&mut image)?;
        let longest = Longest::read(&mut image)?;
        let vocab = Vocab::from_known(bytes, bounds, &unused, max_token_len as usize);
        let vocab = vocab.map_err(|_| image.fault("vocabulary"))?;
        let words = vocab.len().div_ceil(64);
        image.check(reachable.0.len() == words && whole.0.len() == words, "sets of tokens")?;
        let pairs = compact.pairs_of_ids().ok_or_else(|| image.fault("pairs"))?;
        Ok(Self {
            vocab,
            rules: Rules::Ranks,
            options: BpeOptions::default(),
            pairs: PairTable::Narrow(pairs),
            units: Box::new(*compact.units()),
            compact: Some(compact),
            numbered: None,
            reachable,
            whole,
            makes_whole: makes_whole != 0,
            plain_bytes: true,
            extra: HashMap::new(),
            chars: CharSymbols::none(),
            frozen: Frozen::default(),
            splits_unused: false,
            words: Default::default(),
            #[cfg(feature = "std")]
            longest: Some(longest).into(),
            #[cfg(not(feature = "std"))]
            longest: Some(longest),
        })
    }

    /// The rules that the model was built from.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The options that the model was built with.
    #[must_use]
    pub fn options(&self) -> &BpeOptions {
        &self.options
    }

    /// A new session of its own type, for callers that do not want a trait object.
    #[must_use]
    pub fn session(&self) -> Encoder<'_> {
        Encoder::new(self, Size::default())
    }

    /// As [`session`](Self::session), remembering as many pieces as `size` says.
    #[must_use]
    pub fn session_of_size(&self, size: Size) -> Encoder<'_> {
        Encoder::new(self, size)
    }

    /// The short pieces that are one token; built by the first session that needs them.
    pub(crate) fn words(&self) -> &Words {
        #[cfg(feature = "std")]
        return self.words.get_or_init(|| self.known_words());
        #[cfg(not(feature = "std"))]
        &self.words
    }

    pub(crate) fn words_if_built(&self) -> Option<&Words> {
        #[cfg(feature = "std")]
        return self.words.get();
        #[cfg(not(feature = "std"))]
        Some(&self.words)
    }

    /// What finds tokens without merging; built by the first session that needs it.
    pub(crate) fn longest(&self) -> Option<&Longest> {
        #[cfg(feature = "std")]
        return self.longest.get_or_init(|| self.find_longest()).as_ref();
        #[cfg(not(feature = "std"))]
        self.longest.as_ref()
    }

    /// As [`longest`](Self::longest), if it was built.
    pub(crate) fn longest_if_built(&self) -> Option<&Longest> {
        #[cfg(feature = "std")]
        return self.longest.get()?.as_ref();
        #[cfg(not(feature = "std"))]
        self.longest.as_ref()
    }

    fn find_longest(&self) -> Option<Longest> {
        let may_be = |id: u32| self.whole.get(id) || self.options.ignore_merges;
        let ids = (0..self.vocab.len() as u32).filter(|&id| !self.reachable.get(id) && may_be(id));
        let alone = ids.filter_map(|id| {
            let bytes = self.vocab.bytes(TokenId(id))?;
            let is_whole =
                !bytes.is_empty() && self.whole_piece(bytes, &mut Vec::new()) == Some(TokenId(id));
            is_whole.then_some((TokenId(id), bytes))
        });
        Longest::new(self.compact.as_ref()?, &self.vocab, alone)
    }

    /// The model before any pair merges, its options checked.
    fn unmerged(vocab: Vocab, rules: Rules, options: BpeOptions) -> Result<Self, BuildError> {
        let fail = |kind| Err(BuildError::new(kind));
        if let Some(unk) = options.unk.filter(|unk| unk.index() >= vocab.len()) {
            return fail(BuildErrorKind::UnkMissing { unk, vocab_len: vocab.len() });
        }
        let mark = options.end_of_word.as_ref().map(EndOfWord::mark);
        for (option, affix) in
            [("end_of_word", mark), ("continuing_prefix", options.continuing_prefix.as_deref())]
        {
            if affix == Some("") {
                return fail(BuildErrorKind::EmptyAffix { option });
            }
            if affix.is_some() && !matches!(rules, Rules::Merges(_)) {
                return fail(BuildErrorKind::AffixWithoutMerges { option });
            }
        }
        if let Some(EndOfWord::Symbol(mark)) = &options.end_of_word
            && vocab.get(mark.as_bytes()).is_none()
        {
            return fail(BuildErrorKind::EndSymbolMissing);
        }
        let units = Box::new(vocab.single_bytes().map(|id| id.map_or(NO_SYMBOL, |id| id.0)));
        let plain_bytes = options.alphabet == Alphabet::Byte
            && options.end_of_word.is_none()
            && options.continuing_prefix.is_none()
            && !units.contains(&NO_SYMBOL)
            && !matches!(rules, Rules::Scores(_));
        let tokens = vocab.len();
        let mut chars = CharSymbols::none();
        if options.alphabet == Alphabet::Char {
            for (id, bytes, kind) in vocab.iter() {
                if !matches!(kind, TokenKind::Byte | TokenKind::Unused) {
                    chars.set(bytes, id.0);
                }
            }
        }
        Ok(Self {
            vocab,
            rules,
            options,
            pairs: PairTable::Wide(WideTable::with_capacity(0)),
            compact: None,
            numbered: None,
            reachable: Bits::new(tokens),
            whole: Bits::new(tokens),
            makes_whole: false,
            units,
            plain_bytes,
            extra: HashMap::new(),
            chars,
            frozen: Frozen::default(),
            splits_unused: false,
            words: Default::default(),
            longest: Default::default(),
        })
    }

    /// Every listed pair with its rank and product.
    fn listed_pairs(&self, merges: &[(TokenId, TokenId)]) -> Result<WideTable, BuildError> {
        let fail = |kind| Err(BuildError::new(kind));
        if merges.len() >= u32::MAX as usize {
            return fail(BuildErrorKind::TooManyMerges { merges: merges.len() });
        }
        let prefix = self.options.continuing_prefix.as_deref().unwrap_or("").as_bytes();
        let mut pairs = WideTable::with_capacity(merges.len());
        let mut text = Vec::new();
        for (merge, &(left, right)) in merges.iter().enumerate() {
            text.clear();
            for (id, prefix) in [(left, &b""[..]), (right, prefix)] {
                match (self.vocab.bytes(id), self.vocab.kind(id)) {
                    (Some(_), Some(TokenKind::Unused)) => {
                        return fail(BuildErrorKind::MergeNamesUnused { merge, id });
                    }
                    (Some(bytes), _) => {
                        text.extend_from_slice(bytes.strip_prefix(prefix).unwrap_or(bytes));
                    }
                    (None, _) => {
                        let vocab_len = self.vocab.len();
                        return fail(BuildErrorKind::MergeNames { merge, id, vocab_len });
                    }
                }
            }
            let Some(product) = self.vocab.get(&text) else {
                return fail(BuildErrorKind::NoProduct { merge, left, right });
            };
            pairs.insert(left.0, right.0, Merge::new(merge as u32, product.0));
        }
        Ok(pairs)
    }

    /// Gives a symbol to every unit that occurs in a token of these kinds and has none yet.
    fn collect_extra(&mut self, kinds: &[TokenKind]) {
        let alphabet = self.options.alphabet;
        self.splits_unused = kinds.contains(&TokenKind::Unused)
            && self.vocab.iter().any(|(_, bytes, kind)| {
                kind == TokenKind::Unused && units(alphabet, bytes).nth(1).is_some()
            });
        let mut next = self.vocab.len();
        let mut seen = SeenUnits::none();
        for (_, bytes, kind) in self.vocab.iter() {
            if !kinds.contains(&kind) {
                continue;
            }
            for unit in units(alphabet, bytes) {
                // The last number is `NO_SYMBOL`; a unit that gets none merges with nothing.
                if seen.is_new(unit)
                    && self.vocab.get(unit).is_none()
                    && !self.extra.contains_key(unit)
                    && next < NO_SYMBOL as usize
                {
                    self.extra.insert(unit.into(), next as Symbol);
                    next += 1;
                }
            }
        }
        for (unit, &symbol) in &self.extra {
            match **unit {
                [byte] => self.units[usize::from(byte)] = symbol,
                _ => self.chars.set(unit, symbol),
            }
        }
        self.plain_bytes &= self.extra.is_empty();
    }

    /// Keeps one merge for each token: the last one that makes it from its own text. The others
    /// never fire.
    ///
    /// Suppose a stretch of a piece becomes one symbol. No merge crossed its ends, and the lowest
    /// and leftmost pair of all, where it lies in the stretch, is the lowest and leftmost pair of
    /// the stretch. So the merges in the stretch were those of the stretch alone, in their order,
    /// and the last of them is that of the token in isolation. This holds for any ranks, in order
    /// or not; it needs that equal bytes are equal symbols, so the caller sees to it that there
    /// are no affixes and no merges of byte or unknown tokens.
    ///
    /// Tokens are taken shortest first, so that a token's own text is merged with everything
    /// shorter; `rank` says whether the two symbols left over become the token.
    fn prune(&mut self, rank: impl Fn(Symbol, Symbol, Symbol) -> Option<u32>) {
        let len = |id: u32| self.vocab.token_len(TokenId(id)).unwrap_or(0);
        let order = in_order_of(self.vocab.len(), len);
        let mut pairs = PairTable::Wide(WideTable::with_capacity(self.vocab.len()));
        let mut merges = Vec::new();
        let mut reachable = Bits::new(self.vocab.len());
        let (mut nodes, mut scratch) = (Vec::new(), Scratch::default());
        for id in order {
            let bytes = self.vocab.bytes(TokenId(id)).expect("ids of the vocabulary");
            if self.vocab.get(bytes) != Some(TokenId(id)) {
                continue; // Kinds Byte and Unused, never made by merging here.
            }
            nodes.clear();
            self.initial(bytes, Context::WHOLE, &mut nodes, &mut Vec::new());
            scratch.merge_all(&pairs, &mut nodes, &mut Blind);
            match nodes[..] {
                [Node { symbol, .. }] if symbol == id => reachable.set(id),
                [Node { symbol: left, .. }, Node { symbol: right, .. }]
                    if left != NO_SYMBOL && right != NO_SYMBOL =>
                {
                    if let Some(rank) = rank(left, right, id)
                        && let PairTable::Wide(pairs) = &mut pairs
                    {
                        pairs.insert(left, right, Merge::new(rank, id));
                        merges.push(RankedMerge { rank, left, right, product: id });
                        reachable.set(id);
                    }
                }
                _ => {}
            }
        }
        (self.pairs, self.reachable) = (pairs, reachable);
        let by_rank = in_order_of(merges.len(), |merge| merges[merge as usize].rank as usize);
        self.find_compact(by_rank.iter().map(|&merge| merges[merge as usize]));
    }

    /// Fills `compact`, where pieces begin as bytes, or else `numbered` from all merges in order of rank.
    fn find_compact(&mut self, merges: impl Iterator<Item = RankedMerge> + Clone) {
        if self.plain_bytes {
            self.compact = Compact::new(&self.units, self.vocab.len(), merges.clone());
        }
        if self.compact.is_none() {
            self.numbered = Numbered::new(self.vocab.len() + self.extra.len(), merges);
        }
        let pairs = self.compact.as_ref().and_then(Compact::pairs_of_ids);
        if let (Rules::Ranks, Some(pairs)) = (&self.rules, pairs) {
            self.pairs = PairTable::Narrow(pairs);
        }
    }

    /// [`prune`](Self::prune) where any two symbols merge whose bytes together are a ranked token.
    fn prune_unlisted(&mut self, ranks: &[Option<u32>]) {
        let frozen: Vec<bool> = self
            .vocab
            .iter()
            .map(|(_, _, kind)| {
                kind == TokenKind::UserDefined && matches!(self.rules, Rules::Scores(_))
            })
            .collect();
        let is_frozen = |symbol: Symbol| frozen.get(symbol as usize) == Some(&true);
        self.prune(|left, right, token| {
            ranks[token as usize].filter(|_| !is_frozen(left) && !is_frozen(right))
        });
    }

    /// Every way to put a ranked token together from two symbols.
    fn all_splits(&self, ranks: &[Option<u32>]) -> Result<WideTable, BuildError> {
        let mut unused: HashMap<&[u8], Symbol> = HashMap::new();
        for (id, bytes, kind) in self.vocab.iter() {
            if kind == TokenKind::Unused && self.vocab.get(bytes).is_none() {
                unused.entry(bytes).or_insert(id.0); // The first stands for those that repeat it.
            }
        }
        let symbol = |bytes: &[u8]| match self.vocab.get(bytes) {
            Some(id) => (self.vocab.kind(id) != Some(TokenKind::UserDefined)).then_some(id.0),
            None => self.extra.get(bytes).or_else(|| unused.get(bytes)).copied(),
        };
        let mut pairs = WideTable::with_capacity(self.vocab.len());
        for (id, bytes, kind) in self.vocab.iter() {
            let Some(rank) = ranks[id.index()] else { continue };
            if kind == TokenKind::Unused && unused.get(bytes) != Some(&id.0) {
                continue;
            }
            if bytes.len() > LONGEST_UNUSED {
                let len = bytes.len();
                return Err(BuildError::new(BuildErrorKind::UnusedTooLong { id, len }));
            }
            let mut at = 0;
            for unit in units(self.options.alphabet, bytes) {
                at += unit.len();
                let (left, right) = bytes.split_at(at);
                if right.is_empty() {
                    break;
                }
                if let (Some(left), Some(right)) = (symbol(left), symbol(right)) {
                    pairs.insert(left, right, Merge::new(rank, id.0));
                }
            }
        }
        Ok(pairs)
    }

    /// Fills `reachable` where pruning did not: merges the text of every token in every place of a
    /// word that it may stand in.
    fn find_reachable(&mut self) {
        let mut reachable = Bits::new(self.vocab.len());
        let (mut nodes, mut scratch, mut buffer) = (Vec::new(), Scratch::default(), Vec::new());
        for (id, _, _) in self.vocab.iter() {
            for (text, context) in self.own_texts(id) {
                nodes.clear();
                self.initial(text, context, &mut nodes, &mut buffer);
                scratch.merge_all(&self.pairs, &mut nodes, &mut Blind);
                if matches!(nodes[..], [Node { symbol, .. }] if symbol == id.0) {
                    reachable.set(id.0);
                    break;
                }
            }
        }
        self.reachable = reachable;
    }

    /// Fills `whole`.
    fn find_whole(&mut self) {
        let whole = match self.rules {
            Rules::Ranks => {
                let mut whole = Bits::of_kind(self.vocab.kinds(), TokenKind::Normal);
                // Of the other kinds, those that merging makes: bytes, most often none.
                whole.join(&self.reachable);
                whole
            }
            _ if self.affixes() == (None, None) => self.reachable.clone(),
            _ => self.find_whole_words(),
        };
        self.makes_whole =
            whole.is_subset(&self.reachable) && self.plain_bytes && !self.options.ignore_merges;
        self.whole = whole;
        #[cfg(not(feature = "std"))]
        {
            self.longest = self.find_longest();
            if self.longest.is_none() {
                self.words = self.known_words();
            }
        }
    }

    /// The tokens whose own text merges to them where it is a whole word.
    fn find_whole_words(&self) -> Bits {
        let mut whole = Bits::new(self.vocab.len());
        let (mut nodes, mut scratch, mut buffer) = (Vec::new(), Scratch::default(), Vec::new());
        for (id, _, _) in self.vocab.iter() {
            for (text, context) in self.own_texts(id) {
                if context != Context::WHOLE {
                    continue;
                }
                nodes.clear();
                self.initial(text, context, &mut nodes, &mut buffer);
                scratch.merge_all(&self.pairs, &mut nodes, &mut Blind);
                if matches!(nodes[..], [node] if node == Node { symbol: id.0, len: text.len() as u32 })
                {
                    whole.set(id.0);
                }
            }
        }
        whole
    }

    /// The pieces that [`whole_piece`](Self::whole_piece) knows, those of low ids first.
    fn known_words(&self) -> Words {
        let mark = self.options.end_of_word.as_ref().map(|mark| mark.mark().as_bytes());
        let mut words = Words::builder(self.vocab.len());
        for (id, bytes, kind) in self.vocab.iter() {
            if matches!(kind, TokenKind::Byte | TokenKind::Unused) {
                continue;
            }
            let token = |piece: &[u8]| [Token { id, len: piece.len() as u32 }];
            if self.options.ignore_merges && kind != TokenKind::Control {
                words.add(bytes, &token(bytes));
            }
            if self.whole.get(id.0)
                && let Some(piece) = bytes.strip_suffix(mark.unwrap_or(b""))
                && !(self.options.ignore_merges && self.vocab.get(piece).is_some())
            {
                words.add(piece, &token(piece));
            }
        }
        words.build()
    }

    /// What a token stands for in the places of a word that it may stand in, and those places;
    /// the likeliest first.
    pub(crate) fn own_texts(&self, id: TokenId) -> impl Iterator<Item = (&[u8], Context)> {
        let bytes = self.vocab.bytes(id).unwrap_or(b"");
        let (prefix, mark) = self.affixes();
        let places = [(false, true), (false, false), (true, true), (true, false)];
        let places = places.into_iter().filter_map(move |(is_first, is_last)| {
            let text = match prefix {
                Some(prefix) if !is_first => bytes.strip_prefix(prefix)?,
                None if !is_first => return None,
                _ => bytes,
            };
            let text = match mark {
                Some(mark) if is_last => text.strip_suffix(mark)?,
                None if !is_last => return None,
                _ => text,
            };
            (!text.is_empty()).then_some((text, Context { is_first, is_last }))
        });
        places.filter(move |_| self.vocab.get(bytes) == Some(id))
    }

    /// The continuing prefix and the end-of-word mark.
    pub(crate) fn affixes(&self) -> (Option<&[u8]>, Option<&[u8]>) {
        let mark = self.options.end_of_word.as_ref().map(|mark| mark.mark().as_bytes());
        (self.options.continuing_prefix.as_deref().map(str::as_bytes), mark)
    }

    /// The merges for short pieces.
    #[inline]
    pub(crate) fn compact(&self) -> Option<&Compact> {
        self.compact.as_ref()
    }

    /// The merges of a model that has no `compact`, where they allow it. Then no affixes play a part, and
    /// no unused pieces are split.
    pub(crate) fn numbered(&self) -> Option<&Numbered> {
        self.numbered.as_ref()
    }

    pub(crate) fn pairs(&self) -> &PairTable {
        &self.pairs
    }

    /// Whether merging alone makes the token of its own text.
    pub(crate) fn is_reachable(&self, id: TokenId) -> bool {
        self.reachable.get(id.0)
    }

    pub(crate) fn splits_unused(&self) -> bool {
        self.splits_unused
    }

    /// Whether unknown characters are dealt with after merging.
    pub(crate) fn merges_unknown(&self) -> bool {
        !matches!(self.rules, Rules::Merges(_))
    }

    /// Whether every symbol that merging leaves is a token to give out as it is.
    pub(crate) fn symbols_are_tokens(&self) -> bool {
        self.plain_bytes || !self.merges_unknown()
    }

    /// The bytes that a symbol stands for, in number.
    pub(crate) fn symbol_len(&self, symbol: Symbol) -> usize {
        match self.vocab.bytes(TokenId(symbol)) {
            Some(bytes) => bytes.len(),
            None => self
                .extra
                .iter()
                .find(|&(_, &other)| other == symbol)
                .map_or(0, |(unit, _)| unit.len()),
        }
    }

    /// The token of a whole piece, where it is known that the piece encodes to that token alone.
    ///
    /// A vocabulary without its index is not asked where merging gives the same: the index costs as
    /// much as merging some ten thousand pieces.
    #[inline]
    pub(crate) fn whole_piece(&self, piece: &[u8], buffer: &mut Vec<u8>) -> Option<TokenId> {
        let waits_for_index = self.makes_whole && !self.vocab.is_indexed();
        if piece.len() > self.vocab.max_token_len() || waits_for_index {
            return None;
        }
        if self.options.ignore_merges
            && let Some(id) = self.vocab.get(piece)
            && self.vocab.kind(id) != Some(TokenKind::Control)
        {
            return Some(id);
        }
        let id = match &self.options.end_of_word {
            None => self.vocab.get(piece),
            Some(mark) => {
                buffer.clear();
                buffer.extend_from_slice(piece);
                buffer.extend_from_slice(mark.mark().as_bytes());
                self.vocab.get(buffer)
            }
        };
        id.filter(|id| self.whole.get(id.0))
    }

    /// Appends the symbols of `text` before any merge; `context` says where in a word it stands.
    #[inline]
    pub(crate) fn initial(
        &self,
        text: &[u8],
        context: Context,
        nodes: &mut Vec<Node>,
        buffer: &mut Vec<u8>,
    ) {
        if self.plain_bytes {
            nodes.extend(text.iter().map(|&b| Node { symbol: self.units[usize::from(b)], len: 1 }));
        } else if self.merges_unknown() {
            self.initial_unlisted(text, nodes);
        } else {
            self.initial_listed(text, context, nodes, buffer);
        }
    }

    /// Symbols for ranks and scores: user-defined tokens, then units; a unit that no token
    /// contains is [`NO_SYMBOL`].
    fn initial_unlisted(&self, text: &[u8], nodes: &mut Vec<Node>) {
        let mut rest = text;
        while !rest.is_empty() {
            let node = match self.frozen.longest_prefix(rest) {
                Some((id, len)) => Node { symbol: id.0, len: len as u32 },
                None => {
                    let (symbol, len) = self.first_symbol(rest);
                    Node { symbol, len: len as u32 }
                }
            };
            nodes.push(node);
            rest = &rest[node.len as usize..];
        }
    }

    /// The symbol of the first unit of a text, which is not empty, and the unit's length.
    #[inline]
    fn first_symbol(&self, text: &[u8]) -> (Symbol, usize) {
        if self.options.alphabet == Alphabet::Char
            && let (Some(c), len @ 2..) = utf8::decode(text)
        {
            return (self.chars.get(c), len);
        }
        (self.units[usize::from(text[0])], 1)
    }

    /// Symbols for a list of merges, unknown characters already replaced, exactly as Hugging Face
    /// does it: an unknown token is held back until the next known character, so that the bytes of
    /// a character that falls back come before the unknown token of the character before.
    fn initial_listed(
        &self,
        text: &[u8],
        context: Context,
        nodes: &mut Vec<Node>,
        buffer: &mut Vec<u8>,
    ) {
        let (prefix, mark) = self.affixes();
        let suffix =
            mark.filter(|_| matches!(self.options.end_of_word, Some(EndOfWord::Suffix(_))));
        let mut unknown: Option<Node> = None;
        let mut at = 0;
        while at < text.len() {
            let (own_symbol, len) = self.first_symbol(&text[at..]);
            let unit = &text[at..at + len];
            let prefix = prefix.filter(|_| at > 0 || !context.is_first).unwrap_or(b"");
            at += unit.len();
            let suffix = suffix.filter(|_| at == text.len() && context.is_last).unwrap_or(b"");
            let symbol = if prefix.is_empty() && suffix.is_empty() {
                own_symbol
            } else {
                buffer.clear();
                buffer.extend_from_slice(prefix);
                buffer.extend_from_slice(unit);
                buffer.extend_from_slice(suffix);
                self.vocab.get(buffer).map_or(NO_SYMBOL, |id| id.0)
            };
            let len = unit.len() as u32;
            if symbol != NO_SYMBOL {
                nodes.extend(unknown.take());
                nodes.push(Node { symbol, len });
            } else if self.options.byte_fallback
                && [prefix, unit, suffix].concat().iter().all(|&b| self.vocab.byte(b).is_some())
            {
                for (bytes, len) in [(prefix, 0), (unit, 1), (suffix, 0)] {
                    let ids = bytes.iter().filter_map(|&b| self.vocab.byte(b));
                    nodes.extend(ids.map(|id| Node { symbol: id.0, len }));
                }
            } else if let Some(unk) = self.options.unk {
                match &mut unknown {
                    Some(run) if self.options.fuse_unk => run.len += len,
                    _ => {
                        nodes.extend(unknown.take());
                        unknown = Some(Node { symbol: unk.0, len });
                    }
                }
            }
        }
        nodes.extend(unknown);
        if let (Some(EndOfWord::Symbol(mark)), true) = (&self.options.end_of_word, context.is_last)
        {
            let id = self.vocab.get(mark.as_bytes()).expect("checked when the model was built");
            nodes.push(Node { symbol: id.0, len: 0 });
        }
    }
}

impl Model for Bpe {
    fn vocab(&self) -> &Vocab {
        &self.vocab
    }

    fn encoder(&self) -> Box<dyn Encode + '_> {
        Box::new(self.session())
    }

    fn encoder_within(&self, memory: usize) -> Box<dyn Encode + '_> {
        Box::new(self.session_of_size(Size::of_bytes(memory)))
    }

    fn prepare(&self) {
        if self.longest().is_none() {
            self.words();
        }
    }

    fn as_any(&self) -> Option<&dyn core::any::Any> {
        Some(self)
    }
}

/// Decoding gives the bytes of the tokens without continuing prefix and end-of-word mark; spaces
/// between words are the splitter's business and so the pipeline's.
///
/// decode(encode(piece)) = piece holds for pieces whose characters all have tokens or fall back
/// to bytes, if no token ends in the mark or begins with the prefix for a reason of its own.
impl Decode for Bpe {
    fn decode_into(&self, ids: &[TokenId], bytes: &mut Vec<u8>) -> Result<(), DecodeError> {
        if let Some(at) = ids.iter().position(|id| id.index() >= self.vocab.len()) {
            return Err(DecodeError::new(ids[at], at, self.vocab.len()));
        }
        let (prefix, mark) = self.affixes();
        for &id in ids {
            let mut token = self.vocab.bytes(id).expect("checked above");
            if self.vocab.kind(id) == Some(TokenKind::Normal) {
                token = prefix.and_then(|prefix| token.strip_prefix(prefix)).unwrap_or(token);
                token = mark.and_then(|mark| token.strip_suffix(mark)).unwrap_or(token);
            }
            bytes.extend_from_slice(token);
        }
        Ok(())
    }
}

impl fmt::Debug for Bpe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules = match &self.rules {
            Rules::Merges(_) => "Merges",
            Rules::Ranks => "Ranks",
            Rules::Scores(_) => "Scores",
        };
        f.debug_struct("Bpe")
            .field("vocab", &self.vocab)
            .field("rules", &rules)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Where in a word a text stands; decides which affixes its characters get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) is_first: bool,
    pub(crate) is_last: bool,
}

impl Context {
    pub(crate) const WHOLE: Self = Self { is_first: true, is_last: true };
}

/// What is wrong with a merge of ranks (left, right, token).
#[cold]
#[inline(never)]
fn merge_fault(vocab: &Vocab, merge: usize, [left, right, token]: [TokenId; 3]) -> BuildErrorKind {
    let is_rank = |id: &TokenId| vocab.kind(*id) == Some(TokenKind::Normal);
    match [left, right, token].into_iter().find(|id| !is_rank(id)) {
        Some(id) => BuildErrorKind::MergeNames { merge, id, vocab_len: vocab.len() },
        None => BuildErrorKind::NoProduct { merge, left, right },
    }
}

/// A rank for each token that merging may make: the highest score first; equal scores, equal rank.
fn ranks_of_scores(vocab: &Vocab, scores: &[f32]) -> Vec<Option<u32>> {
    let mergeable = |kind| matches!(kind, TokenKind::Normal | TokenKind::Unused);
    let mut order: Vec<TokenId> =
        vocab.iter().filter(|&(_, _, kind)| mergeable(kind)).map(|(id, _, _)| id).collect();
    let score = |id: TokenId| scores[id.index()];
    order.sort_by(|&a, &b| {
        score(b).partial_cmp(&score(a)).expect("scores were checked to be numbers")
    });
    let mut ranks = vec![None; vocab.len()];
    let mut rank = 0;
    for (i, &id) in order.iter().enumerate() {
        if i > 0 && score(order[i - 1]) != score(id) {
            rank += 1;
        }
        ranks[id.index()] = Some(rank);
    }
    ranks
}

/// The first byte or character of `text`, which is not empty.
#[inline]
pub(crate) fn first_unit(alphabet: Alphabet, text: &[u8]) -> &[u8] {
    match alphabet {
        Alphabet::Byte => &text[..1],
        Alphabet::Char => &text[..utf8::char_len(text)],
    }
}

/// The bytes or characters of `text`.
pub(crate) fn units(alphabet: Alphabet, text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let unit = first_unit(alphabet, rest);
        rest = &rest[unit.len()..];
        Some(unit)
    })
}

/// The symbols of characters: a table of tables, of which only those exist that hold something.
#[derive(Clone)]
struct CharSymbols {
    /// For every 64 characters the number of their table; table 0 holds nothing.
    tables: Box<[u16]>,
    symbols: Vec<[Symbol; 64]>,
}

impl CharSymbols {
    fn none() -> Self {
        Self { tables: Box::default(), symbols: vec![[NO_SYMBOL; 64]] }
    }

    /// Sets the symbol of a text if it is one character of several bytes.
    fn set(&mut self, text: &[u8], symbol: Symbol) {
        let (Some(&first), 2..=4) = (text.first(), text.len()) else { return };
        let (Some(c), len) = utf8::decode(text) else { return };
        if first.is_ascii() || len != text.len() {
            return;
        }
        if self.tables.is_empty() {
            self.tables = vec![0; (char::MAX as usize >> 6) + 1].into();
        }
        let table = &mut self.tables[c as usize >> 6];
        if *table == 0 {
            // Fewer than 2^16: there are so many times 64 characters.
            *table = self.symbols.len() as u16;
            self.symbols.push([NO_SYMBOL; 64]);
        }
        self.symbols[usize::from(*table)][c as usize & 63] = symbol;
    }

    /// The symbol of a character; [`NO_SYMBOL`] if it has none.
    #[inline]
    fn get(&self, c: char) -> Symbol {
        let table = self.tables.get(c as usize >> 6).copied().unwrap_or(0);
        self.symbols[usize::from(table)][c as usize & 63]
    }
}

/// The bytes and the characters of the basic plane that were met: a bit each, characters first.
struct SeenUnits(Bits);

impl SeenUnits {
    const BYTES: u32 = 1 << 16;

    fn none() -> Self {
        Self(Bits::new(Self::BYTES as usize + 256))
    }

    /// Whether a unit was not met; then it is. A character beyond the basic plane is always new.
    #[inline]
    fn is_new(&mut self, unit: &[u8]) -> bool {
        let number = match *unit {
            [byte] => Self::BYTES + u32::from(byte),
            [a, b] => u32::from(a & 0x1F) << 6 | u32::from(b & 0x3F),
            [a, b, c] => u32::from(a & 0xF) << 12 | u32::from(b & 0x3F) << 6 | u32::from(c & 0x3F),
            _ => return true,
        };
        let is_new = !self.0.get(number);
        self.0.set(number);
        is_new
    }
}

/// The numbers below `n` in order of their keys, equal keys in order of number. `O(n)` for keys up to
/// a few times n, else `O(n log n)`.
fn in_order_of(n: usize, key: impl Fn(u32) -> usize) -> Vec<u32> {
    let last = (0..n as u32).map(&key).max().unwrap_or(0);
    if last / 4 > n {
        let mut order: Vec<u32> = (0..n as u32).collect();
        order.sort_by_key(|&number| key(number));
        return order;
    }
    let mut ends = vec![0; last + 2];
    for number in 0..n as u32 {
        ends[key(number) + 1] += 1;
    }
    for i in 1..ends.len() {
        ends[i] += ends[i - 1];
    }
    let mut order = vec![0; n];
    for number in 0..n as u32 {
        let place: &mut usize = &mut ends[key(number)];
        order[*place] = number;
        *place += 1;
    }
    order
}

/// A set of token ids.
#[derive(Clone)]
struct Bits(Array<u64>);

impl Bits {
    fn new(len: usize) -> Self {
        Self(vec![0; len.div_ceil(64)].into())
    }

    /// The tokens of one kind.
    fn of_kind(kinds: &[TokenKind], wanted: TokenKind) -> Self {
        let word = |kinds: &[TokenKind]| {
            kinds.iter().rev().fold(0, |word, &kind| word << 1 | u64::from(kind == wanted))
        };
        Self(kinds.chunks(64).map(word).collect::<Vec<_>>().into())
    }

    #[inline]
    fn get(&self, id: u32) -> bool {
        self.0[id as usize / 64] >> (id % 64) & 1 == 1
    }

    /// Adds all ids of another set.
    fn join(&mut self, other: &Self) {
        self.0.to_mut().iter_mut().zip(&other.0[..]).for_each(|(mine, others)| *mine |= others);
    }

    fn is_subset(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0[..]).all(|(mine, others)| mine & !others == 0)
    }

    fn set(&mut self, id: u32) {
        self.0.to_mut()[id as usize / 64] |= 1 << (id % 64);
    }
}
