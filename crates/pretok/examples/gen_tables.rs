//! Writes `src/tables.rs` from the Unicode data of `regex-syntax`:
//! `cargo run -p pretok --example gen_tables > crates/pretok/src/tables.rs`.
//!
//! The test `tables_are_what_the_generator_writes` keeps the file current.

use std::collections::HashMap;
use std::fmt::Write as _;

use regex_syntax::hir::{Class, HirKind};

fn main() {
    print!("{}", generate());
}

/// The classes of `src/classes.rs`, in order; the index is the value.
const CLASSES: [(&str, &str); 16] = [
    ("UPPER", r"[\p{Lu}\p{Lt}&&\P{Han}]"),
    ("LOWER", r"[\p{Ll}&&\P{Han}]"),
    ("CASELESS", r"[\p{Lm}\p{Lo}&&\P{Han}]"),
    ("MARK", r"[\p{M}&&\P{Han}]"),
    ("NUMBER", r"[\p{N}&&\P{Han}]"),
    ("SPACE", r"\x20"),
    ("NEWLINE", r"[\r\n]"),
    ("WHITE", r"[\s--\x20\r\n]"),
    ("APOSTROPHE", r"'"),
    ("SLASH", r"/"),
    ("SYMBOL", r"[\p{P}\p{S}--\p{Han}'/]"),
    ("OTHER", r"[\p{C}--\s]"),
    ("HAN_LETTER", r"[\p{L}&&\p{Han}]"),
    ("HAN_NUMBER", r"[\p{N}&&\p{Han}]"),
    ("HAN_MARK", r"[\p{M}&&\p{Han}]"),
    ("HAN_SYMBOL", r"[\p{P}\p{S}&&\p{Han}]"),
];

/// What else is known of a character: one bit each, above the class.
const FLAGS: [(&str, &str); 3] = [
    ("WORD", r"\w"),
    // unicode_categories 0.1.1, which Hugging Face tokenizers use, has the punctuation of
    // Unicode 8.0, and two characters that have become symbols since.
    ("PUNCTUATION", r"[[\p{P}&&\p{Age=8.0}]\x{166D}\x{111C9}!-/:-@\[-`{-~]"),
    // `char::is_numeric` of Unicode 17.0, which tokenizers 0.23.3 was built with: 13 more than
    // Unicode 16.0.
    ("NUMERIC", r"[\p{N}\x{11DE0}-\x{11DE9}\x{16FF4}-\x{16FF6}]"),
];

/// The scripts of Unicode 9.0, which Hugging Face tokenizers know. The order gives the value,
/// after 0 for no script.
const SCRIPTS: &str = "Common Latin Han Greek Cyrillic Armenian Hebrew Arabic Syriac Thaana \
    Devanagari Bengali Gurmukhi Gujarati Oriya Tamil Telugu Kannada Malayalam Sinhala Thai Lao \
    Tibetan Myanmar Georgian Hangul Ethiopic Cherokee Canadian_Aboriginal Ogham Runic Khmer \
    Mongolian Bopomofo Yi Old_Italic Gothic Deseret Inherited Tagalog Hanunoo Buhid Tagbanwa \
    Limbu Tai_Le Linear_B Ugaritic Shavian Osmanya Cypriot Braille Buginese Coptic New_Tai_Lue \
    Glagolitic Tifinagh Syloti_Nagri Old_Persian Kharoshthi Balinese Cuneiform Phoenician \
    Phags_Pa Nko Sundanese Lepcha Ol_Chiki Vai Saurashtra Kayah_Li Rejang Lycian Carian Lydian \
    Cham Tai_Tham Tai_Viet Avestan Egyptian_Hieroglyphs Samaritan Lisu Bamum Javanese \
    Meetei_Mayek Imperial_Aramaic Old_South_Arabian Inscriptional_Parthian \
    Inscriptional_Pahlavi Old_Turkic Kaithi Batak Brahmi Mandaic Chakma Meroitic_Cursive \
    Meroitic_Hieroglyphs Miao Sharada Sora_Sompeng Takri Caucasian_Albanian Bassa_Vah Duployan \
    Elbasan Grantha Pahawh_Hmong Khojki Linear_A Mahajani Manichaean Mende_Kikakui Modi Mro \
    Old_North_Arabian Nabataean Palmyrene Pau_Cin_Hau Old_Permic Psalter_Pahlavi Siddham \
    Khudawadi Tirhuta Warang_Citi Ahom Anatolian_Hieroglyphs Hatran Multani Old_Hungarian \
    SignWriting Adlam Bhaiksuki Marchen Newa Osage Tangut";

/// The text of `src/tables.rs`.
pub(crate) fn generate() -> String {
    let mut values = vec![None; 0x11_0000];
    for (class, (name, pattern)) in CLASSES.iter().enumerate() {
        for c in code_points(pattern) {
            let before = values[c].replace(class as u8);
            assert_eq!(before, None, "U+{c:04X} is in two classes, one of them {name}");
        }
    }
    let other = CLASSES.iter().position(|c| c.0 == "OTHER").expect("OTHER is in CLASSES") as u8;
    // Surrogates are no characters; what they hold is never read.
    values[0xD800..0xE000].fill(Some(other));
    let mut values: Vec<u8> = values
        .into_iter()
        .enumerate()
        .map(|(c, class)| class.unwrap_or_else(|| panic!("U+{c:04X} is in no class")))
        .collect();
    for (bit, (_, pattern)) in FLAGS.iter().enumerate() {
        for c in code_points(pattern) {
            values[c] |= 0x10 << bit;
        }
    }

    let mut legend: Vec<u8> = values.clone();
    legend.sort_unstable();
    legend.dedup();
    let letters: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').collect();
    let letter: HashMap<u8, char> =
        legend.iter().enumerate().map(|(i, &value)| (value, letters[i])).collect();
    let (mut blocks, mut index) = (Vec::new(), Vec::new());
    for block in values.chunks(BLOCK) {
        let at = blocks.iter().position(|&b| b == block).unwrap_or_else(|| {
            blocks.push(block);
            blocks.len() - 1
        });
        index.push(u8::try_from(at).expect("at most 256 different blocks"));
    }

    let mut out = String::from(HEADER);
    let line = &mut out;
    writeln!(line, "pub(crate) const BLOCK: usize = {BLOCK};").expect(STRING);
    writeln!(line, "\n/// Which block each {BLOCK} code points use: `(how many, which)`.")
        .expect(STRING);
    let runs = runs(&index);
    writeln!(line, "pub(crate) const INDEX_RUNS: [(u16, u8); {}] = [", runs.len()).expect(STRING);
    for (block, count) in runs {
        writeln!(line, "    ({count}, {block}),").expect(STRING);
    }
    writeln!(line, "];\n").expect(STRING);
    writeln!(line, "/// What each letter of [`BLOCKS`] stands for: class and flags.")
        .expect(STRING);
    writeln!(line, "pub(crate) const LEGEND: [(u8, u8); {}] = [", legend.len()).expect(STRING);
    for &value in &legend {
        let mut meaning = vec![CLASSES[usize::from(value & 15)].0];
        meaning.extend(
            FLAGS
                .iter()
                .enumerate()
                .filter_map(|(bit, &(name, _))| (value & 0x10 << bit != 0).then_some(name)),
        );
        writeln!(line, "    (b'{}', 0x{value:02X}), // {}", letter[&value], meaning.join(" "))
            .expect(STRING);
    }
    writeln!(line, "];\n").expect(STRING);
    writeln!(line, "/// The different blocks, a letter a code point.").expect(STRING);
    writeln!(line, "pub(crate) const BLOCKS: [&[u8; BLOCK]; {}] = [", blocks.len()).expect(STRING);
    for block in blocks {
        let text: String = block.iter().map(|value| letter[value]).collect();
        writeln!(line, "    b\"{text}\",").expect(STRING);
    }
    writeln!(line, "];\n").expect(STRING);
    write_scripts(line);
    out
}

const BLOCK: usize = 128;
const STRING: &str = "writing to a string cannot fail";

const HEADER: &str = "\
//! Character classes and scripts; written by `examples/gen_tables.rs`, do not edit.
//!
//! Unicode 16.0 (regex-syntax 0.8), except for the flags and scripts that say otherwise there.

";

fn write_scripts(out: &mut String) {
    let mut scripts = vec![0u8; 0x11_0000];
    for (i, name) in SCRIPTS.split_whitespace().enumerate() {
        let mut pattern = format!(r"[\p{{Script={name}}}&&\p{{Age=9.0}}]");
        if name == "Han" {
            // Hiragana, Katakana and the prolonged sound mark count as Han.
            pattern = r"[[\p{Han}\p{Hiragana}\p{Katakana}\x{30FC}]&&\p{Age=9.0}]".into();
        }
        for c in code_points(&pattern) {
            if c == 0x30FC && name != "Han" || c == 0x20 {
                continue;
            }
            assert_eq!(scripts[c], 0, "U+{c:04X} is in two scripts, one of them {name}");
            scripts[c] = i as u8 + 1;
        }
    }
    // Characters whose script Unicode has changed between 9.0 and now.
    let value = |name| SCRIPTS.split_whitespace().position(|n| n == name).expect("named above");
    for (c, name) in
        [(0x589, "Common"), (0x61C, "Common"), (0x953, "Devanagari"), (0x954, "Devanagari")]
    {
        scripts[c] = value(name) as u8 + 1;
    }
    let mut start = 0u32;
    let mut entries = Vec::new();
    for (script, count) in runs(&scripts) {
        entries.push((start, script));
        start += u32::from(count);
    }
    entries.dedup_by_key(|entry| entry.1);
    out.push_str(
        "/// Where each run of one script begins, of Unicode 9.0; 0 is no script (and the space),\n\
         /// Hiragana and Katakana count as Han.\n",
    );
    writeln!(out, "pub(crate) static SCRIPTS: [(u32, u8); {}] = [", entries.len()).expect(STRING);
    for (start, script) in entries {
        writeln!(out, "    (0x{start:X}, {script}),").expect(STRING);
    }
    out.push_str("];\n");
}

/// Runs of equal values: `(value, how many)`, cut where a count would pass 16 bits.
fn runs(values: &[u8]) -> Vec<(u8, u16)> {
    let mut runs: Vec<(u8, u16)> = Vec::new();
    for &value in values {
        match runs.last_mut() {
            Some((last, count)) if *last == value && *count < u16::MAX => *count += 1,
            _ => runs.push((value, 1)),
        }
    }
    runs
}

/// The code points of a class, written as a regular expression.
pub(crate) fn code_points(pattern: &str) -> Vec<usize> {
    let hir = regex_syntax::parse(pattern).expect("the patterns of this file are well formed");
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => class
            .iter()
            .flat_map(|range| u32::from(range.start())..=u32::from(range.end()))
            .filter(|&c| char::from_u32(c).is_some())
            .map(|c| c as usize)
            .collect(),
        HirKind::Literal(literal) => vec![usize::from(literal.0[0])],
        other => panic!("{pattern} is not a class: {other:?}"),
    }
}
