use tokenizer_core::{TokenId, TokenKind, Vocab};

use super::Document;

/// What each token costs in bits when tokens are drawn one by one from one distribution.
///
/// The distribution is estimated on training text: `p(t) = (n(t) + 1/2) / (N + |V|/2)`, for `n(t)`
/// occurrences of t among N tokens and |V| tokens that can occur in text, those of kind control
/// and unused left out (Krichevsky and Trofimov 1981, "The performance of universal encoding").
/// The cost of a token is `-log2 p(t)`, kept in millionths of a bit, so that sums are exact and do
/// not depend on their order.
///
/// A token that loses its text (kind unknown) must be followed by that text for the code to be
/// one: 8 bits for each byte and 8 for their end.
#[derive(Clone, Debug)]
pub struct TokenCosts {
    microbits: Vec<u64>,
}

/// Millionths of bits in a bit.
pub(crate) const MICRO: f64 = 1e6;

impl TokenCosts {
    /// The costs under the distribution of `occurrences`, by id; as long as the vocabulary.
    ///
    /// # Panics
    ///
    /// If there is not one number for each token of the vocabulary.
    #[must_use]
    pub fn estimate(occurrences: &[u64], vocab: &Vocab) -> Self {
        assert_eq!(occurrences.len(), vocab.len(), "there is a number for each token");
        let occurs = |kind| !matches!(kind, TokenKind::Control | TokenKind::Unused);
        let possible = vocab.iter().filter(|&(_, _, kind)| occurs(kind)).count();
        let total = occurrences.iter().sum::<u64>() as f64 + possible as f64 / 2.0;
        let cost = |n: u64| ((total / (n as f64 + 0.5)).log2() * MICRO).round() as u64;
        Self { microbits: occurrences.iter().map(|&n| cost(n)).collect() }
    }

    /// The cost of a token in millionths of a bit; 0 for an id that does not exist.
    #[must_use]
    pub fn microbits(&self, id: TokenId) -> u64 {
        self.microbits.get(id.index()).copied().unwrap_or(0)
    }

    /// The cost of a document in millionths of a bit.
    #[must_use]
    pub fn of(&self, document: &Document<'_>, vocab: &Vocab) -> u64 {
        let cost = |token: &super::Placed| {
            let lost = vocab.kind(token.id) == Some(TokenKind::Unknown);
            let escape = if lost { 8 * (token.span.len() as u64 + 1) } else { 0 };
            self.microbits(token.id) + escape * MICRO as u64
        };
        document.tokens.iter().map(cost).sum()
    }
}

#[cfg(test)]
mod tests {
    use tokenizer_core::Span;

    use super::super::Placed;
    use super::*;

    #[test]
    fn costs_by_hand() {
        let mut vocab = Vocab::builder();
        for (token, kind) in
            [("<s>", TokenKind::Control), ("a", TokenKind::Normal), ("b", TokenKind::Normal)]
        {
            vocab.push(token.as_bytes(), kind).unwrap();
        }
        vocab.push(b"<unk>", TokenKind::Unknown).unwrap();
        let vocab = vocab.build();
        // Three tokens can occur: N + |V|/2 = 5 + 1.5. a: 3.5 / 6.5, b: 1.5 / 6.5, <unk>: 1.5 / 6.5.
        let costs = TokenCosts::estimate(&[0, 3, 1, 1], &vocab);
        let bits = |x: f64| (x.log2() * 1e6).round() as u64;
        assert_eq!(costs.microbits(TokenId(1)), bits(6.5 / 3.5));
        assert_eq!(costs.microbits(TokenId(2)), bits(6.5 / 1.5));
        // The probabilities of what can occur add up to 1.
        let sum: f64 =
            [1, 2, 3].map(|id| (-(costs.microbits(TokenId(id)) as f64) / 1e6).exp2()).iter().sum();
        assert!((sum - 1.0).abs() < 1e-6, "{sum}");
        // "abzz": the unknown token of two bytes costs 24 bits more than itself.
        let tokens = [(1, 0..1), (2, 1..2), (3, 2..4)].map(|(id, s)| Placed::new(id, s.into()));
        let pieces = [Span::new(0, 4)];
        let document = Document { text: "abzz", pieces: &pieces, tokens: &tokens };
        let expected = bits(6.5 / 3.5) + 2 * bits(6.5 / 1.5) + 24_000_000;
        assert_eq!(costs.of(&document, &vocab), expected);
    }
}
