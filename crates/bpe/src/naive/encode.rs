use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use tokenizer_core::{Model, Token, TokenId, TokenKind, Vocab, utf8};

use crate::{Alphabet, Bpe, EndOfWord, Rules};

/// Encodes by the definition: as long as some neighbours merge, the leftmost pair of the best
/// rank does. `O(n^2)` for n bytes.
#[derive(Debug)]
pub struct NaiveEncoder<'m> {
    model: &'m Bpe,
    /// Rank and product of every listed pair.
    listed: BTreeMap<(TokenId, TokenId), (usize, TokenId)>,
    /// Unused pieces by their bytes.
    unused: BTreeMap<&'m [u8], TokenId>,
}

/// A symbol: its bytes (for rules that go by them), its token if it is one, the bytes of the piece
/// that it covers in number, and whether it may merge.
#[derive(Clone)]
struct Part {
    bytes: Vec<u8>,
    token: Option<TokenId>,
    len: usize,
    frozen: bool,
}

impl<'m> NaiveEncoder<'m> {
    /// The encoder of a model; reads its vocabulary, rules and options, not its tables.
    #[must_use]
    pub fn new(model: &'m Bpe) -> Self {
        let vocab = model.vocab();
        let mut listed = BTreeMap::new();
        if let Rules::Merges(merges) = model.rules() {
            let prefix = model.options().continuing_prefix.as_deref().unwrap_or("").as_bytes();
            for (rank, &(left, right)) in merges.iter().enumerate() {
                let bytes = |id| vocab.bytes(id).expect("the model was checked");
                let tail = bytes(right).strip_prefix(prefix).unwrap_or(bytes(right));
                let product = [bytes(left), tail].concat();
                let product = vocab.get(&product).expect("the model was checked");
                listed.insert((left, right), (rank, product)); // The last rank wins.
            }
        }
        let mut unused = BTreeMap::new();
        if let Rules::Scores(_) = model.rules() {
            for (id, bytes, kind) in vocab.iter() {
                if kind == TokenKind::Unused && !bytes.is_empty() && vocab.get(bytes).is_none() {
                    unused.entry(bytes).or_insert(id);
                }
            }
        }
        Self { model, listed, unused }
    }

    /// The tokens of one piece.
    #[must_use]
    pub fn encode_piece(&self, piece: &[u8]) -> Vec<Token> {
        let vocab = self.model.vocab();
        let taken_whole = vocab.get(piece).filter(|&id| {
            (self.model.options().ignore_merges && vocab.kind(id) != Some(TokenKind::Control))
                || (*self.model.rules() == Rules::Ranks
                    && vocab.kind(id) == Some(TokenKind::Normal))
        });
        match (taken_whole, self.model.rules()) {
            _ if piece.is_empty() => Vec::new(),
            (Some(id), _) => alloc::vec![Token::new(id, piece.len())],
            (None, Rules::Merges(_)) => self.encode_listed(piece),
            (None, _) => self.encode_unlisted(piece),
        }
    }

    fn encode_listed(&self, piece: &[u8]) -> Vec<Token> {
        let mut tokens = self.initial_listed(piece);
        loop {
            let merge = tokens
                .windows(2)
                .enumerate()
                .filter_map(|(at, pair)| {
                    let &(rank, product) = self.listed.get(&(pair[0].id, pair[1].id))?;
                    Some((rank, at, product))
                })
                .min();
            let Some((_, at, product)) = merge else { return tokens };
            tokens[at] = Token { id: product, len: tokens[at].len + tokens[at + 1].len };
            tokens.remove(at + 1);
        }
    }

    fn initial_listed(&self, piece: &[u8]) -> Vec<Token> {
        let vocab = self.model.vocab();
        let options = self.model.options();
        let units = split_units(options.alphabet, piece);
        let mut tokens: Vec<Token> = Vec::new();
        let mut unknown: Option<Token> = None;
        for (i, unit) in units.iter().enumerate() {
            let prefix = match &options.continuing_prefix {
                Some(prefix) if i > 0 => prefix.as_bytes(),
                _ => b"",
            };
            let suffix = match &options.end_of_word {
                Some(EndOfWord::Suffix(mark)) if i + 1 == units.len() => mark.as_bytes(),
                _ => b"",
            };
            let text = [prefix, unit, suffix].concat();
            let fallback: Option<Vec<TokenId>> = text.iter().map(|&b| vocab.byte(b)).collect();
            if let Some(id) = vocab.get(&text) {
                tokens.extend(unknown.take());
                tokens.push(Token::new(id, unit.len()));
            } else if let (true, Some(ids)) = (options.byte_fallback, fallback) {
                let in_unit = prefix.len()..prefix.len() + unit.len();
                for (at, id) in ids.into_iter().enumerate() {
                    tokens.push(Token::new(id, usize::from(in_unit.contains(&at))));
                }
            } else if let Some(unk) = options.unk {
                let fused = if options.fuse_unk { unknown.take() } else { None };
                tokens.extend(unknown.take());
                let before = fused.map_or(0, |run| run.len as usize);
                unknown = Some(Token::new(unk, before + unit.len()));
            }
        }
        tokens.extend(unknown);
        if let Some(EndOfWord::Symbol(mark)) = &options.end_of_word {
            tokens.extend(vocab.get(mark.as_bytes()).map(|id| Token::new(id, 0)));
        }
        tokens
    }

    fn encode_unlisted(&self, piece: &[u8]) -> Vec<Token> {
        let mut parts = self.initial_unlisted(piece);
        // How the bytes of each possible product were last seen to be made.
        let mut splits: BTreeMap<Vec<u8>, (Part, Part)> = BTreeMap::new();
        let mut look = |left: &Part, right: &Part| {
            if let Some((id, _)) = self.product(left, right) {
                let bytes = self.model.vocab().bytes(id).expect("found above");
                splits.insert(bytes.to_vec(), (left.clone(), right.clone()));
            }
        };
        for pair in parts.windows(2) {
            look(&pair[0], &pair[1]);
        }
        loop {
            let mut best: Option<(usize, TokenId, Priority)> = None;
            for (at, pair) in parts.windows(2).enumerate() {
                if let Some((id, priority)) = self.product(&pair[0], &pair[1])
                    && best.is_none_or(|(_, _, other)| priority.is_before(other))
                {
                    best = Some((at, id, priority));
                }
            }
            let Some((at, id, _)) = best else { break };
            let right = parts.remove(at + 1);
            parts[at].bytes.extend(right.bytes);
            parts[at].len += right.len;
            parts[at].token = Some(id);
            if at > 0 {
                look(&parts[at - 1], &parts[at]);
            }
            if at + 1 < parts.len() {
                look(&parts[at], &parts[at + 1]);
            }
        }
        let mut tokens = Vec::new();
        let mut last_is_unknown = false;
        let mut stack: Vec<Part> = parts.into_iter().rev().collect();
        while let Some(part) = stack.pop() {
            let vocab = self.model.vocab();
            if part.token.is_some_and(|id| vocab.kind(id) == Some(TokenKind::Unused))
                && let Some((left, right)) = splits.get(&part.bytes)
            {
                stack.push(right.clone());
                stack.push(left.clone());
                continue;
            }
            let options = self.model.options();
            let fallback: Option<Vec<TokenId>> =
                part.bytes.iter().map(|&byte| vocab.byte(byte)).collect();
            if let Some(id) = part.token {
                tokens.push(Token::new(id, part.len));
                last_is_unknown = false;
            } else if let (true, Some(ids)) = (options.byte_fallback, fallback) {
                tokens.extend(ids.into_iter().map(|id| Token::new(id, 1)));
                last_is_unknown = false;
            } else if let Some(unk) = options.unk {
                match tokens.last_mut() {
                    Some(run) if options.fuse_unk && last_is_unknown => run.len += part.len as u32,
                    _ => tokens.push(Token::new(unk, part.len)),
                }
                last_is_unknown = true;
            }
        }
        tokens
    }

    fn initial_unlisted(&self, piece: &[u8]) -> Vec<Part> {
        let vocab = self.model.vocab();
        let mut parts = Vec::new();
        let mut rest = piece;
        while !rest.is_empty() {
            let longest = vocab
                .iter()
                .filter(|&(_, bytes, kind)| {
                    kind == TokenKind::UserDefined
                        && matches!(self.model.rules(), Rules::Scores(_))
                        && rest.starts_with(bytes)
                })
                .max_by_key(|(_, bytes, _)| bytes.len());
            let (bytes, token, frozen) = match longest {
                Some((id, bytes, _)) => (bytes, Some(id), true),
                None => {
                    let unit = split_units(self.model.options().alphabet, rest)[0];
                    (unit, vocab.get(unit), false)
                }
            };
            parts.push(Part { bytes: bytes.to_vec(), token, len: bytes.len(), frozen });
            rest = &rest[bytes.len()..];
        }
        parts
    }

    fn product(&self, left: &Part, right: &Part) -> Option<(TokenId, Priority)> {
        let vocab: &Vocab = self.model.vocab();
        if left.frozen || right.frozen {
            return None;
        }
        let bytes = [&left.bytes[..], &right.bytes[..]].concat();
        let normal = vocab.get(&bytes).filter(|&id| vocab.kind(id) == Some(TokenKind::Normal));
        let id = normal.or_else(|| self.unused.get(&bytes[..]).copied())?;
        let priority = match self.model.rules() {
            Rules::Scores(scores) => Priority::Score(scores[id.index()]),
            _ => Priority::Rank(id),
        };
        Some((id, priority))
    }
}

#[derive(Clone, Copy)]
enum Priority {
    Rank(TokenId),
    Score(f32),
}

impl Priority {
    fn is_before(self, other: Self) -> bool {
        match (self, other) {
            (Self::Rank(a), Self::Rank(b)) => a < b,
            (Self::Score(a), Self::Score(b)) => a > b,
            _ => unreachable!("a model has one kind of priority"),
        }
    }
}

fn split_units(alphabet: Alphabet, text: &[u8]) -> Vec<&[u8]> {
    match alphabet {
        Alphabet::Byte => text.chunks(1).collect(),
        Alphabet::Char => utf8::chars(text).collect(),
    }
}
