//! What the normalizers ask about a code point, from one table.

use crate::tables::{INDEX, PAGES};

/// The properties of one code point, a bit each.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Properties(u8);

impl Properties {
    /// NFD changes or may reorder it (it decomposes, or its combining class is not 0).
    pub(crate) const NFD: u8 = 1;
    /// The same for NFKD.
    pub(crate) const NFKD: u8 = 1 << 1;
    /// NFC changes or may reorder it, or it may compose with what precedes.
    pub(crate) const NFC: u8 = 1 << 2;
    /// The same for NFKC.
    pub(crate) const NFKC: u8 = 1 << 3;
    /// One of the four, but only since a later version than Unicode 9.0.
    pub(crate) const LATE: u8 = 1 << 4;
    /// General category M as of Unicode 9.0.
    pub(crate) const MARK: u8 = 1 << 5;
    /// General category Mn as of Unicode 8.0.
    pub(crate) const NONSPACING: u8 = 1 << 6;
    /// General category Cc, Cf or Co as of Unicode 8.0.
    pub(crate) const OTHER: u8 = 1 << 7;

    /// The properties of `c`. Two dependent loads.
    #[inline]
    pub(crate) fn of(c: char) -> Self {
        let at = c as usize;
        match INDEX.get(at >> 7) {
            Some(&page) => Self(PAGES[usize::from(page) << 7 | at & 127]),
            // Planes 15 and 16 are private use, but for the last two code points of each.
            None => Self(if at >= 0xF_0000 && at & 0xFFFE != 0xFFFE { Self::OTHER } else { 0 }),
        }
    }

    /// Whether one of `bits` is set.
    #[inline]
    pub(crate) fn any(self, bits: u8) -> bool {
        self.0 & bits != 0
    }
}

/// Whether `c` lies in a block of ideographs that BERT sets apart with spaces: the list of the
/// original BERT tokenizer as Hugging Face has it, whose seventh range begins at U+2B920 where
/// the block (Extension E) begins at U+2B820.
pub(crate) fn is_ideograph(c: char) -> bool {
    matches!(
        c,
        '\u{4E00}'..='\u{9FFF}'
            | '\u{3400}'..='\u{4DBF}'
            | '\u{20000}'..='\u{2A6DF}'
            | '\u{2A700}'..='\u{2B73F}'
            | '\u{2B740}'..='\u{2B81F}'
            | '\u{2B920}'..='\u{2CEAF}'
            | '\u{F900}'..='\u{FAFF}'
            | '\u{2F800}'..='\u{2FA1F}'
    )
}

/// Whether `c` was added in Unicode 18.0 with normalization data.
pub(crate) fn is_new_in_18(c: char) -> bool {
    matches!(
        c,
        '\u{558}'
            | '\u{58B}'..='\u{58C}'
            | '\u{5C8}'..='\u{5C9}'
            | '\u{1ADE}'..='\u{1ADF}'
            | '\u{1AEC}'..='\u{1AF0}'
            | '\u{209D}'..='\u{209F}'
            | '\u{107BB}'..='\u{107BF}'
            | '\u{10ECB}'..='\u{10ECF}'
            | '\u{10EF0}'..='\u{10EF9}'
            | '\u{1B123}'..='\u{1B126}'
            | '\u{1D127}'..='\u{1D128}'
            | '\u{1D250}'..='\u{1D252}'
            | '\u{1D25B}'..='\u{1D25C}'
            | '\u{1D25F}'
            | '\u{1D280}'..='\u{1D281}'
            | '\u{1D6A6}'
            | '\u{1DF95}'
            | '\u{1DFCD}'..='\u{1DFFF}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::UNICODE_VERSION;

    /// When this fails, run `examples/gen_tables.rs` again.
    #[test]
    fn the_table_describes_the_data_of_the_normalization_crate() {
        assert_eq!(UNICODE_VERSION, unicode_normalization::UNICODE_VERSION);
        use unicode_normalization::char::{
            canonical_combining_class, decompose_canonical, decompose_compatible,
        };
        for c in '\0'..=char::MAX {
            let properties = Properties::of(c);
            let (mut canonical, mut compatible) = (true, true);
            decompose_canonical(c, |part| canonical &= part == c);
            decompose_compatible(c, |part| compatible &= part == c);
            let starter = canonical_combining_class(c) == 0;
            assert_eq!(properties.any(Properties::NFD), !canonical || !starter, "{c:?}");
            assert_eq!(properties.any(Properties::NFKD), !compatible || !starter, "{c:?}");
        }
    }
}
