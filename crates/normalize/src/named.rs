use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use hashbrown::{HashMap, HashSet};
use tokenizer_core::Normalize;

use crate::unicode::Properties;
use crate::{Charsmap, Form, UnicodeForm, UnicodeVersion};

/// The rule sets that SentencePiece names. (Its fifth, `identity`, has no rules.)
///
/// They are compiled here from the data of Unicode 17.0, as SentencePiece 0.2.3 compiles its own:
/// the rules are the same, one by one. Earlier versions of that library carry earlier data; for a
/// model that exists take the rules from its file.
///
/// ```
/// use normalize::{NamedRules, SentencePieceNormalizer};
/// use tokenizer_core::Normalize;
///
/// let rules = NamedRules::from_name("nmt_nfkc").map(NamedRules::charsmap);
/// let normalizer = SentencePieceNormalizer::new(rules);
/// assert_eq!(normalizer.normalize("Ｈｅｌｌｏ\t①㌔ e\u{301}"), "▁Hello▁1キロ▁é");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NamedRules {
    /// NFKC, white and invisible characters to spaces, no control characters, and the full-width
    /// tilde as it is. SentencePiece's default.
    NmtNfkc,
    /// NFKC.
    Nfkc,
    /// `nmt_nfkc`, then simple case folding.
    NmtNfkcCf,
    /// NFKC, then simple case folding.
    NfkcCf,
}

/// What a rule reads, and what it writes.
type Rules = HashMap<String, String>;

impl NamedRules {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::NmtNfkc, Self::Nfkc, Self::NmtNfkcCf, Self::NfkcCf];

    /// SentencePiece's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NmtNfkc => "nmt_nfkc",
            Self::Nfkc => "nfkc",
            Self::NmtNfkcCf => "nmt_nfkc_cf",
            Self::NfkcCf => "nfkc_cf",
        }
    }

    /// The rules that SentencePiece calls `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rules| rules.name() == name)
    }

    /// Compiles the rules: about 225,000, most of them for sequences that make up one Korean
    /// syllable. Takes some tenths of a second; keep the result.
    #[must_use]
    pub fn charsmap(self) -> Charsmap {
        Charsmap::from_sorted(&self.rules()).expect("the rules fit the format, as a test shows")
    }

    /// In the order of the sources' bytes.
    fn rules(self) -> Vec<(String, String)> {
        let mut rules = nfkc();
        remove_redundant(&mut rules, |_| true);
        if matches!(self, Self::NmtNfkc | Self::NmtNfkcCf) {
            let changed = add_nmt(&mut rules);
            // The others are applied to what they were applied to.
            remove_redundant(&mut rules, |source| source.contains(&changed[..]));
        }
        if matches!(self, Self::NmtNfkcCf | Self::NfkcCf) {
            fold_case(&mut rules);
            remove_redundant(&mut rules, |_| true);
        }
        let mut sorted: Vec<(String, String)> = rules.into_iter().collect();
        sorted.sort_unstable();
        sorted
    }
}

/// One rule for each character that NFKC changes, and one for each sequence of single characters
/// that decomposes to the same as a character does.
fn nfkc() -> Rules {
    let form = |form| UnicodeForm::new(form).with_version(UnicodeVersion::V17_0);
    let (to_nfkc, to_nfkd) = (form(Form::Nfkc), form(Form::Nfkd));
    // Of about 225,000 rules none must move when the table grows.
    let mut rules = Rules::with_capacity(1 << 18);
    // Decompositions of more than one character, and which characters decompose to just one.
    let mut decomposed = BTreeSet::new();
    let mut sources: HashMap<char, Vec<char>> = HashMap::new();
    let active = |c: &char| Properties::of(*c).any(Properties::NFKC | Properties::NFKD);
    for c in ('\u{1}'..=char::MAX).filter(active) {
        let mut buffer = [0; 4];
        let text: &str = c.encode_utf8(&mut buffer);
        let nfkc = to_nfkc.normalize(text);
        if nfkc != text {
            rules.insert(text.to_owned(), nfkc.into_owned());
        }
        let nfkd = to_nfkd.normalize(text);
        let mut chars = nfkd.chars();
        match (chars.next(), chars.next()) {
            (Some(one), None) if one != c => sources.entry(one).or_default().push(c),
            (_, None) => {}
            _ => {
                decomposed.insert(nfkd.into_owned());
            }
        }
    }
    for nfkd in &decomposed {
        let nfkc = to_nfkc.normalize(nfkd);
        if nfkc == *nfkd {
            continue;
        }
        let mut sequences = vec![String::new()];
        for c in nfkd.chars() {
            let same = sources.get(&c).map_or(&[][..], Vec::as_slice);
            let longer = sequences.iter().flat_map(|start| {
                let same = same.iter().chain([&c]);
                same.map(move |&c| [start.as_str(), &*c.encode_utf8(&mut [0; 4])].concat())
            });
            sequences = longer.collect();
        }
        let rule = |sequence: String| (sequence, nfkc.to_string());
        rules.extend(sequences.into_iter().filter(|sequence| *sequence != nfkc).map(rule));
    }
    rules
}

/// What SentencePiece adds for neural machine translation. (Of [`Nmt`](crate::Nmt)'s characters
/// it leaves U+200D, and has U+061C more.) Returns the characters whose rules changed.
fn add_nmt(rules: &mut Rules) -> Vec<char> {
    let spaces = "\t\n\u{C}\r\u{61C}\u{1680}\u{200B}\u{200C}\u{200E}\u{200F}\u{2028}\u{2029}\
                  \u{2581}\u{FEFF}\u{FFFD}";
    rules.extend(spaces.chars().map(|c| (c.to_string(), " ".to_owned())));
    const TILDE: char = '\u{FF5E}';
    let controls = ('\u{1}'..='\u{8}').chain(['\u{B}']).chain('\u{E}'..='\u{1F}');
    let deleted = controls.chain(['\u{7F}', '\u{8F}', '\u{9F}']);
    rules.extend(deleted.clone().map(|c| (c.to_string(), String::new())));
    // The full-width tilde and the half-width one are used differently in Japanese.
    rules.remove(TILDE.encode_utf8(&mut [0; 4]));
    spaces.chars().chain(deleted).chain([TILDE]).collect()
}

fn fold_case(rules: &mut Rules) {
    for target in rules.values_mut() {
        *target = target.chars().map(fold).collect();
    }
    for c in '\u{1}'..=char::MAX {
        let folded = fold(c);
        if folded != c {
            rules.entry(c.to_string()).or_insert_with(|| folded.to_string());
        }
    }
}

/// Simple case folding (CaseFolding.txt, statuses C and S): the lowercase of the uppercase, but
/// where one of them is more than one character. Cherokee folds to uppercase, and the dotless i
/// not at all.
fn fold(c: char) -> char {
    let one = |mut chars: core::char::ToUppercase| chars.next().filter(|_| chars.len() == 0);
    let upper = one(c.to_uppercase()).unwrap_or(c);
    match c {
        '\u{131}' | '\u{13A0}'..='\u{13F5}' => c,
        '\u{13F8}'..='\u{13FD}' | '\u{AB70}'..='\u{ABBF}' => upper,
        _ => {
            let mut lower = upper.to_lowercase();
            lower.next().filter(|_| lower.len() == 0).unwrap_or(c)
        }
    }
}

/// Leaves out every rule that shorter ones make needless, applied from left to right, the longest
/// first. Of more than one character only those are looked at that `is_looked_at`.
fn remove_redundant(rules: &mut Rules, is_looked_at: impl Fn(&str) -> bool) {
    let mut by_len: Vec<Vec<(&str, &str)>> = Vec::new();
    for (source, target) in rules.iter().filter(|(source, _)| is_looked_at(source)) {
        let len = source.chars().count();
        if by_len.len() < len {
            by_len.resize_with(len, Vec::new);
        }
        by_len[len - 1].push((source, target));
    }
    let mut redundant: HashSet<&str> = HashSet::new();
    for (len, longer) in by_len.iter().enumerate().skip(1) {
        // Only shorter rules are applied, and which of these are redundant is known by now.
        let needless: Vec<&str> = longer
            .iter()
            .filter(|(source, target)| makes(rules, &redundant, source, target, len))
            .map(|(source, _)| *source)
            .collect();
        redundant.extend(needless);
    }
    let redundant: Vec<String> = redundant.into_iter().map(str::to_owned).collect();
    for source in redundant {
        rules.remove(&source);
    }
}

/// Whether `source` becomes `target` when the longest rule of at most `longest` characters is
/// applied at each position.
fn makes(
    rules: &Rules,
    redundant: &HashSet<&str>,
    mut source: &str,
    mut target: &str,
    longest: usize,
) -> bool {
    while let Some(first) = source.chars().next() {
        let window = source.char_indices().nth(longest).map_or(source.len(), |(at, _)| at);
        let shorter = source[..window].char_indices().rev().map(|(at, _)| at);
        let mut ends = core::iter::once(window).chain(shorter).filter(|&end| end > 0);
        let rule = ends.find_map(|end| {
            let read = &source[..end];
            let written = rules.get(read).filter(|_| !redundant.contains(read))?;
            Some((end, written.as_str()))
        });
        let (read, written) = rule.unwrap_or((first.len_utf8(), &source[..first.len_utf8()]));
        match target.strip_prefix(written) {
            Some(rest) => target = rest,
            None => return false,
        }
        source = &source[read..];
    }
    target.is_empty()
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    /// The digests are of the rules that the Python package sentencepiece 0.2.3 carries, taken out
    /// of `SentencePieceNormalizer(rule_name=..)`: every source and target in the order of the
    /// sources' bytes, each ended by the byte 0xFF.
    #[test]
    fn rules_are_those_of_sentencepiece_one_by_one() {
        let digests = [
            (
                NamedRules::NmtNfkc,
                "4c1d178f96609137741b3754528eb7528701818211865ddc4801fb6a62c08790",
            ),
            (NamedRules::Nfkc, "57da2808df8f17052eb4699be461271be4237110a2efe937987a404fe721b2f8"),
            (
                NamedRules::NmtNfkcCf,
                "d6fb651033b791cfcd2b86aa1842d1c7179f571add4c42297c4b9e2a2f553917",
            ),
            (
                NamedRules::NfkcCf,
                "4eeee58da4be6ad442d6d8d7271f7ba0aca665fc87738c6206398a0cde4c1540",
            ),
        ];
        for (named, expected) in digests {
            let mut digest = Sha256::new();
            for (source, target) in named.rules() {
                for text in [source, target] {
                    digest.update(text.as_bytes());
                    digest.update([0xFF]);
                }
            }
            let digest: String =
                digest.finalize().iter().map(|b| alloc::format!("{b:02x}")).collect();
            assert_eq!(digest, expected, "{}", named.name());
        }
    }

    #[test]
    fn names_are_read_back() {
        for rules in NamedRules::ALL {
            assert_eq!(NamedRules::from_name(rules.name()), Some(rules));
        }
        assert_eq!(NamedRules::from_name("identity"), None);
    }
}
