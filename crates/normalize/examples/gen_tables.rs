//! Writes `src/tables.rs`: one byte of properties for every code point, as a two-stage table.
//!
//! ```text
//! cargo run -p normalize --example gen_tables > crates/normalize/src/tables.rs
//! ```
//!
//! The sources are unicode-normalization (whose version the table must match) and the classes of
//! regex-syntax, cut back by `Age` to what the versions that Hugging Face tokenizers carry knew.
//! Where a category changed since then, the code points are listed below by hand; that the result
//! is right is shown by the digests over all code points in `tests/hugging_face.rs`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use regex_syntax::hir::{Class, HirKind};
use unicode_normalization::char::{
    canonical_combining_class, decompose_canonical, decompose_compatible,
};
use unicode_normalization::{IsNormalized, is_nfc_quick, is_nfkc_quick};

const PAGE: usize = 128;

fn main() {
    let properties = properties();
    let covered = properties.iter().rposition(|&bits| bits != 0).map_or(0, |last| last + 1);
    let (mut pages, mut index): (Vec<&[u8]>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut known = BTreeMap::new();
    let covered = covered.next_multiple_of(PAGE);
    for page in properties[..covered].chunks(PAGE) {
        let at = *known.entry(page).or_insert_with(|| {
            pages.push(page);
            pages.len() - 1
        });
        index.push(at);
    }
    let (major, minor, patch) = unicode_normalization::UNICODE_VERSION;
    let mut out = format!(
        "//! Written by `examples/gen_tables.rs`; do not edit.\n\n\
         /// The Unicode version of the normalization data that the bits describe.\n\
         #[cfg(test)]\n\
         pub(crate) const UNICODE_VERSION: (u8, u8, u8) = ({major}, {minor}, {patch});\n\n"
    );
    let width = if pages.len() <= 256 { "u8" } else { "u16" };
    write_array(&mut out, "INDEX", width, &index);
    let bytes: Vec<usize> = pages.concat().into_iter().map(usize::from).collect();
    write_array(&mut out, "PAGES", "u8", &bytes);
    print!("{}", out.trim_end_matches('\n').to_owned() + "\n");
}

fn write_array(out: &mut String, name: &str, of: &str, values: &[usize]) {
    let _ =
        writeln!(out, "#[rustfmt::skip]\npub(crate) static {name}: [{of}; {}] = [", values.len());
    let mut line = String::new();
    for value in values {
        if line.len() > 94 {
            let _ = writeln!(out, "{line}");
            line.clear();
        }
        let _ = write!(line, "{value},");
    }
    let _ = writeln!(out, "{line}\n];\n");
}

/// The bits of `src/unicode.rs`, in its order.
fn properties() -> Vec<u8> {
    let in_9 = class(r"\p{Age=9.0}");
    let mut mark = class(r"[\p{M}&&\p{Age=9.0}]");
    change(&mut mark, &[0x1_11C9], false);
    change(&mut mark, &[0x1CF2, 0x1CF3], true);
    let mut nonspacing = class(r"[\p{Mn}&&\p{Age=8.0}]");
    change(&mut nonspacing, &[0x1885, 0x1886, 0xA9BD, 0x1_11C9], false);
    change(&mut nonspacing, &[0x1734, 0x1_171E], true);
    let other = class(r"[[\p{Cc}\p{Cf}\p{Co}]&&\p{Age=8.0}]");
    // Planes 15 and 16 are private use as a whole but for their last two code points; a
    // comparison says that better than 1024 pages.
    let in_table = |at: usize| at < 0xF_0000;

    let mut properties = vec![0; 0x11_0000];
    for c in '\0'..=char::MAX {
        let at = c as usize;
        let reorders = canonical_combining_class(c) != 0;
        let changes = |decompose: fn(char, &mut dyn FnMut(char))| {
            let mut parts = Vec::new();
            decompose(c, &mut |part| parts.push(part));
            parts != [c]
        };
        let nfd = reorders || changes(|c, part| decompose_canonical(c, part));
        let nfkd = reorders || changes(|c, part| decompose_compatible(c, part));
        let nfc = reorders || is_nfc_quick([c].into_iter()) != IsNormalized::Yes;
        let nfkc = reorders || is_nfkc_quick([c].into_iter()) != IsNormalized::Yes;
        let late = (nfd || nfkd || nfc || nfkc) && !in_9[at];
        let bits =
            [nfd, nfkd, nfc, nfkc, late, mark[at], nonspacing[at], other[at] && in_table(at)];
        properties[at] = bits.iter().enumerate().map(|(i, &bit)| u8::from(bit) << i).sum();
    }
    properties
}

fn change(class: &mut [bool], code_points: &[usize], to: bool) {
    for &at in code_points {
        assert!(class[at] != to, "U+{at:04X} needs no change");
        class[at] = to;
    }
}

fn class(pattern: &str) -> Vec<bool> {
    let mut members = vec![false; 0x11_0000];
    let hir = regex_syntax::parse(pattern).expect("the pattern is valid");
    let HirKind::Class(Class::Unicode(class)) = hir.kind() else {
        panic!("{pattern} is a class of many code points");
    };
    for range in class.iter() {
        members[range.start() as usize..=range.end() as usize].fill(true);
    }
    members
}
