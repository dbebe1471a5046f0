//! Texts that are awkward for tokenizers, each with the name of what it shows.

/// Well-formed awkward texts: `(name, text)`.
pub const AWKWARD: &[(&str, &str)] = &[
    ("empty", ""),
    ("one_byte", "a"),
    ("one_four_byte_char", "\u{1F600}"),
    ("run_of_one_letter", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("odd_run", "aaaaa"),
    ("spaces", "   a  b    c     "),
    ("leading_and_trailing_space", " a "),
    ("only_spaces", "        "),
    ("crlf", "one\r\ntwo\r\n\r\nthree\n"),
    ("tabs_and_newlines", "\tif x:\n\t\treturn\n\n"),
    (
        "zwj_emoji",
        "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}\u{200D}\u{1F466} \u{1F3F3}\u{FE0F}\u{200D}\u{1F308}",
    ),
    ("combining_marks", "e\u{301}a\u{301}\u{327} Z\u{361}\u{35C}a\u{321}l\u{322}g\u{34C}o\u{33B}"),
    (
        "chinese",
        "\u{6D77}\u{6C34}\u{6F6E}\u{6F6E}\u{6F6E}\u{FF0C}\u{6D6E}\u{4E91}\u{957F}\u{957F}\u{6D88}",
    ),
    ("japanese", "吾輩は猫である。名前はまだ無い。ﾊﾝｶｸ"),
    ("korean", "모든 인간은 태어날 때부터 자유로우며"),
    ("thai", "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกัน"),
    ("arabic", "يولد جميع الناس أحرارًا متساوين"),
    ("hindi", "सभी मनुष्यों को गौरव और अधिकारों"),
    ("vietnamese", "Xử lý ngôn ngữ tự nhiên với các mô hình ngôn ngữ lớn"),
    ("contractions", "I'm you're they've CAN'TS 'The ''s a's's it'\u{17F} x"),
    ("digits", "1234567890 3.14159 1,000,000 \u{FF11}\u{FF12}\u{FF13}\u{FF14} x\u{B2}\u{B3}\u{BC}"),
    ("code", "fn main() {\n    println!(\"{}\", a<=5 && b!=6);\n}\n"),
    ("url", "https://example.org/a?b=c&d=%20#e"),
    ("special_token_text", "<|endoftext|> [CLS] <s></s> <0x0A> ##ing \u{2581}x"),
    ("nul_and_controls", "a\0b\u{1}c\u{7F}d\u{85}e"),
    ("odd_spaces", "a\u{A0}b\u{2028}c\u{3000}d\u{200B}e\u{FEFF}f"),
    ("noncharacters", "\u{FFFD}\u{FFFF}\u{10FFFF}\u{E000}"),
    ("mixed_case", "HTTPServer AxxB \u{E9}\u{C9}\u{E9} \u{130}stanbul STRASSE \u{1E9E}"),
];

/// Bytes that are not UTF-8: `(name, bytes)`.
pub const ILL_FORMED: &[(&str, &[u8])] = &[
    ("lone_continuation", b"a\x80b"),
    ("cut_character", b"ng\xE1\xBB"),
    ("surrogate", b"\xED\xA0\x80"),
    ("overlong", b"\xC0\x80\xE0\x80\x80"),
    ("impossible_lead", b"\xF5\xFE\xFF"),
    ("all_high", b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"),
];

/// Every awkward input as bytes, the ill-formed ones too.
pub fn all_bytes() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    let well_formed = AWKWARD.iter().map(|&(name, text)| (name, text.as_bytes()));
    well_formed.chain(ILL_FORMED.iter().copied())
}
