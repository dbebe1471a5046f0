//! Which grapheme clusters are emoji.

/// Whether a grapheme cluster (UAX #29, extended) is shown as an emoji: it holds a variation
/// selector 16, a keycap, or a character whose default presentation is emoji (UTS #51,
/// `Emoji_Presentation`), or it is a pair of regional indicators.
///
/// The blocks above U+1F000 are taken whole where they hold emoji, so that characters which a
/// later Unicode version assigns there count as emoji already; that is why no table of a
/// particular version is needed.
pub(super) fn is_emoji(cluster: &str) -> bool {
    if cluster.contains('\u{FE0E}') {
        return false;
    }
    let mut indicators = 0;
    for c in cluster.chars() {
        match u32::from(c) {
            0xFE0F | 0x20E3 => return true,
            0x1F1E6..=0x1F1FF => indicators += 1,
            c if c >= 0x1F000 && astral(c) => return true,
            c if (0x231A..=0x2B55).contains(&c) && basic(c) => return true,
            _ => {}
        }
    }
    indicators == 2
}

/// Characters of the basic plane with emoji presentation.
fn basic(c: u32) -> bool {
    matches!(c,
        0x231A..=0x231B | 0x23E9..=0x23EC | 0x23F0 | 0x23F3 | 0x25FD..=0x25FE | 0x2614..=0x2615
        | 0x2648..=0x2653 | 0x267F | 0x2693 | 0x26A1 | 0x26AA..=0x26AB | 0x26BD..=0x26BE
        | 0x26C4..=0x26C5 | 0x26CE | 0x26D4 | 0x26EA | 0x26F2..=0x26F3 | 0x26F5 | 0x26FA | 0x26FD
        | 0x2705 | 0x270A..=0x270B | 0x2728 | 0x274C | 0x274E | 0x2753..=0x2755 | 0x2757
        | 0x2795..=0x2797 | 0x27B0 | 0x27BF | 0x2B1B..=0x2B1C | 0x2B50 | 0x2B55)
}

/// Characters above the basic plane with emoji presentation. Those that are pictures but shown as
/// text by default (U+1F321 thermometer) come with a variation selector where they are emoji.
fn astral(c: u32) -> bool {
    matches!(c,
        0x1F004 | 0x1F0CF | 0x1F18E | 0x1F191..=0x1F19A | 0x1F201 | 0x1F21A | 0x1F22F
        | 0x1F232..=0x1F236 | 0x1F238..=0x1F23A | 0x1F250..=0x1F251 | 0x1F300..=0x1F320
        | 0x1F32D..=0x1F335 | 0x1F337..=0x1F37C | 0x1F37E..=0x1F393 | 0x1F3A0..=0x1F3CA
        | 0x1F3CF..=0x1F3D3 | 0x1F3E0..=0x1F3F0 | 0x1F3F4 | 0x1F3F8..=0x1F43E | 0x1F440
        | 0x1F442..=0x1F4FC | 0x1F4FF..=0x1F53D | 0x1F54B..=0x1F54E | 0x1F550..=0x1F567 | 0x1F57A
        | 0x1F595..=0x1F596 | 0x1F5A4 | 0x1F5FB..=0x1F64F | 0x1F680..=0x1F6C5 | 0x1F6CC
        | 0x1F6D0..=0x1F6D2 | 0x1F6D5..=0x1F6DF | 0x1F6EB..=0x1F6EC | 0x1F6F4..=0x1F6FF
        | 0x1F7E0..=0x1F7EB | 0x1F7F0 | 0x1F90C..=0x1F93A | 0x1F93C..=0x1F945 | 0x1F947..=0x1F9FF
        | 0x1FA70..=0x1FAFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emoji_are_told_from_text() {
        for (cluster, expected) in [
            ("\u{1F600}", true),
            ("\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}", true),
            ("\u{1F44B}\u{1F3FD}", true),
            ("\u{1F1FB}\u{1F1F3}", true),
            ("\u{1F1FB}", false),
            ("1\u{FE0F}\u{20E3}", true),
            ("\u{2764}\u{FE0F}", true),
            ("\u{2764}", false),
            ("\u{231A}", true),
            ("\u{231A}\u{FE0E}", false),
            ("\u{1F321}", false),
            ("\u{1F321}\u{FE0F}", true),
            ("1", false),
            ("e\u{301}", false),
            ("\u{4EBA}", false),
        ] {
            assert_eq!(is_emoji(cluster), expected, "{cluster:?}");
        }
    }
}
