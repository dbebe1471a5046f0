//! Scanning 64 bytes at a time.
//!
//! A scan keeps nothing from one piece to the next, so a block of 64 bytes can begin wherever a
//! piece begins. The bytes of the block are put into kinds (a word of 64 bits for each kind, a bit
//! for each byte), shifts and additions of those words give the bytes where pieces begin, and the
//! next block begins at the last of them that what lies behind the block cannot change. There is
//! no state from block to block, but for a word that is longer than one.
//!
//! ```text
//! it's  12 o'clock, 2 of them
//! ##.#.....#.#####....##.####    letters
//! ......##..........#........    digits
//! ....##..#........#.#..#....    white space
//! #.#.###.#.#.....####..#....    pieces begin, by cl100k
//! ```
//!
//! Characters beyond ASCII are written over by a byte of the same kind, as often as the character
//! has bytes: "é" is "aa" to the arithmetic. What a rule looks at that has no such byte ends the
//! block in front of it ([`ODD`]); a piece that does not end in its block is left to the scalar
//! twin, [`step`].

use tokenizer_core::Span;

use crate::classes::{Class, class_of_four, class_of_three, class_of_two, utf8_len};
use crate::scanner::{Batches, contraction, step};
use crate::simd::{Block, Masks, Simd, Work};
use crate::{Contractions, Digits, Han, Letters, Prefix, Rules, Tail, White};

/// Stands for letters without case and, where [`Letters::Cased`], is a kind of its own.
const CASELESS: u8 = 0x80;
/// Stands for marks where [`Letters::Cased`]: they go on a word as letters without case do, but go
/// on punctuation too.
const MARK: u8 = 0x81;
/// Stands for Han letters where [`Han::Apart`].
const HAN: u8 = 0x82;
/// Stands for what the arithmetic does not know.
const ODD: u8 = 0xFF;

/// Numbers in groups of more digits than this are left to the scalar twin.
const MOST_DIGITS: u8 = 8;

/// The bytes that are read at and behind the beginning of a block: a character may begin at its
/// last byte.
const WINDOW: usize = 64 + 3;

/// Fewer bytes at the end of a text are left to the scalar twin; more become a block with zeros
/// behind, which are not known.
const SHORT: usize = 16;

/// Whether the arithmetic covers these rules.
pub(crate) fn covers(rules: Rules) -> bool {
    let few_digits = !matches!(rules.digits, Digits::Groups(n) if n > MOST_DIGITS);
    // A mark behind a space is punctuation if the space cannot go with a word.
    let no_prefix = rules.letters == Letters::Cased && rules.prefix == Prefix::None;
    few_digits && !no_prefix
}

/// Finds the pieces of `text` by rules that are covered.
pub(crate) struct Scan<'a, 'b> {
    pub(crate) rules: &'a Rules,
    pub(crate) text: &'a str,
    pub(crate) batches: &'a mut Batches<'b>,
}

impl Work for Scan<'_, '_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        // Every arm is the same loop, compiled for rules that the compiler knows.
        let Self { rules, text, batches } = self;
        match *rules {
            Rules::GPT2 => scan::<S, false>(simd, Rules::GPT2, text, batches),
            Rules::CL100K => scan::<S, false>(simd, Rules::CL100K, text, batches),
            Rules::LLAMA3 => scan::<S, false>(simd, Rules::LLAMA3, text, batches),
            Rules::QWEN2 => scan::<S, false>(simd, Rules::QWEN2, text, batches),
            Rules::O200K => scan::<S, true>(simd, Rules::O200K, text, batches),
            rules if rules.letters == Letters::Cased => {
                scan::<S, true>(simd, rules, text, batches);
            }
            rules => scan::<S, false>(simd, rules, text, batches),
        }
    }
}

/// For each class beyond ASCII the byte that stands for it.
fn stand_ins(rules: Rules) -> [u8; 16] {
    let caseless = if rules.letters == Letters::Cased { CASELESS } else { b'a' };
    let mark = match rules.letters {
        Letters::Plain => b'!',
        Letters::Marked => b'a',
        Letters::Cased => MARK,
    };
    let number = match rules.digits {
        // Groups count characters, and the arithmetic counts bytes.
        Digits::Groups(2..) => ODD,
        Digits::SpacedRun | Digits::Run | Digits::Groups(0 | 1) => b'0',
    };
    let [han_letter, han_number, han_mark, han_symbol] = match rules.han {
        Han::Letters => [caseless, number, mark, b'!'],
        // They go on a run of Han, but begin none behind a number or punctuation.
        Han::Apart => [HAN, ODD, ODD, ODD],
    };
    let mut bytes = [b'!'; 16];
    for (class, byte) in [
        (Class::UPPER, b'A'),
        (Class::LOWER, b'a'),
        (Class::CASELESS, caseless),
        (Class::MARK, mark),
        (Class::NUMBER, number),
        (Class::WHITE, b'\t'),
        (Class::HAN_LETTER, han_letter),
        (Class::HAN_NUMBER, han_number),
        (Class::HAN_MARK, han_mark),
        (Class::HAN_SYMBOL, han_symbol),
    ] {
        bytes[class.index()] = byte;
    }
    bytes
}

#[inline(always)]
fn scan<S: Simd, const CASED: bool>(simd: S, rules: Rules, text: &str, batches: &mut Batches<'_>) {
    let kinds = &stand_ins(rules);
    let rules = &rules;
    let bytes = text.as_bytes();
    // The block begins at `at`. The piece that is open there begins at `piece`: at the same place,
    // or the block begins inside of a word that is longer than the blocks before.
    let (mut at, mut piece) = (0, 0);
    let mut padded;
    loop {
        let rest = &bytes[at..];
        let (window, limit) = match rest.first_chunk() {
            Some(window) => (window, 64),
            None if rest.len() >= SHORT => {
                padded = [0; WINDOW];
                padded[..rest.len()].copy_from_slice(rest);
                (&padded, rest.len().min(64))
            }
            None => break,
        };
        let block = window.first_chunk().expect("a block is shorter than the window");
        let inside = u64::from(piece < at);
        let high = simd.high(block);
        let is_ascii = high == 0 && limit == 64;
        let transcoded;
        let (block, len, starts) = if is_ascii {
            (block, 64, !0)
        } else {
            let (len, starts);
            (transcoded, len, starts) = transcode(simd, window, high, kinds);
            (&transcoded, len.min(limit), starts)
        };
        let masks = simd.masks(block);
        // The same twice: in the first the compiler knows that all is ASCII.
        let found = if is_ascii {
            boundaries(rules, &Kinds::<CASED>::ascii(masks), 64, inside, bytes, at)
        } else {
            let han = if rules.han == Han::Apart { simd.equal(block, HAN) } else { 0 };
            let mark = if CASED { simd.equal(block, MARK) } else { 0 };
            let kinds = Kinds::<CASED>::wide(masks, han, mark, len, starts);
            boundaries(rules, &kinds, len, inside, bytes, at)
        };
        match found {
            Found::Begins(begins) => {
                batches.push_ends(piece, at, begins);
                at += 63 - begins.leading_zeros() as usize;
                piece = at;
            }
            Found::Inside(len) => at += len,
            Found::Unknown => {
                // Whatever this is, there may be more of it.
                let enough = at + 48;
                while piece < enough.min(bytes.len()) {
                    let end = step(*rules, bytes, piece);
                    batches.push(Span::new(piece, end));
                    piece = end;
                }
                at = piece;
            }
        }
    }
    while piece < bytes.len() {
        let end = step(*rules, bytes, piece);
        batches.push(Span::new(piece, end));
        piece = end;
    }
}

/// The block with every character beyond ASCII written over by its stand-in; how many bytes of it
/// are known, which is up to a character that is odd or goes on behind the block; and the bytes
/// that begin a character.
#[inline(always)]
fn transcode<S: Simd>(
    simd: S,
    window: &[u8; WINDOW],
    high: u64,
    kinds: &[u8; 16],
) -> (Block, usize, u64) {
    let mut out = *window;
    let leads = simd.leads(window.first_chunk().expect("a block is shorter than the window"));
    let mut len = 64;
    // The last character may go on behind the block.
    let last = 63 - (leads | 1).leading_zeros() as usize;
    let mut rest = leads;
    if last + utf8_len(window[last]) > 64 {
        len = last;
        rest &= !(1 << last);
    }
    while rest != 0 {
        let i = (rest.trailing_zeros() & 63) as usize;
        rest &= rest - 1;
        let word = u32::from_le_bytes([window[i], window[i + 1], window[i + 2], window[i + 3]]);
        // Each length has its own loads and its own store.
        let lead = word & 0xFF;
        let kind = if lead < 0xE0 {
            let kind = kinds[class_of_two(word).index()];
            out[i..i + 2].copy_from_slice(&[kind; 2]);
            kind
        } else if lead < 0xF0 {
            let kind = kinds[class_of_three(word).index()];
            // The fourth byte stays what it is; it is written when its turn comes.
            out[i..i + 4].copy_from_slice(&[kind, kind, kind, window[i + 3]]);
            kind
        } else {
            let kind = kinds[class_of_four(word).index()];
            out[i..i + 4].copy_from_slice(&[kind; 4]);
            kind
        };
        if kind == ODD {
            len = i;
            break;
        }
    }
    (*out.first_chunk().expect("a block is shorter than the window"), len, !high | leads)
}

/// Which bytes of a block are what. A character beyond ASCII has all its bytes where it belongs.
/// Every known byte is in exactly one of `word`, `number`, `white`, `punctuation` and `han`.
struct Kinds<const CASED: bool> {
    word: u64,
    number: u64,
    white: u64,
    punctuation: u64,
    han: u64,
    /// Of `white`.
    newline: u64,
    /// Of `white`: U+0020.
    space: u64,
    /// Of `punctuation`.
    apostrophe: u64,
    /// Of `punctuation`.
    slash: u64,
    /// Of `word`.
    upper: u64,
    /// Of `word`: neither upper nor lower case.
    caseless: u64,
    /// Of `word`: marks.
    mark: u64,
    /// The bytes that begin a character.
    starts: u64,
}

impl<const CASED: bool> Kinds<CASED> {
    #[inline(always)]
    fn ascii(masks: Masks) -> Self {
        Self {
            word: masks.letter,
            number: masks.digit,
            white: masks.white,
            punctuation: !(masks.letter | masks.digit | masks.white),
            han: 0,
            newline: masks.newline,
            space: masks.space,
            apostrophe: masks.apostrophe,
            slash: masks.slash,
            upper: masks.upper,
            caseless: 0,
            mark: 0,
            starts: !0,
        }
    }

    /// Of a block in which stand-ins were put, with its [`HAN`] and [`MARK`], and of which `len` bytes
    /// are known.
    #[inline(always)]
    fn wide(masks: Masks, han: u64, mark: u64, len: usize, starts: u64) -> Self {
        let known = below(len);
        let han = han & known;
        let caseless = masks.high & known & !han;
        let word = masks.letter & known | caseless;
        let (number, white) = (masks.digit & known, masks.white & known);
        Self {
            word,
            number,
            white,
            punctuation: known & !(word | number | white | han),
            han,
            newline: masks.newline & known,
            space: masks.space & known,
            apostrophe: masks.apostrophe & known,
            slash: masks.slash & known,
            upper: masks.upper & known,
            caseless,
            mark: mark & known,
            starts,
        }
    }
}

/// What a block says.
enum Found {
    /// Pieces begin at these bytes; there is one. Whether more begin behind the last is not known.
    Begins(u64),
    /// None begins in these many bytes: they go on a word.
    Inside(usize),
    /// The block says nothing.
    Unknown,
}

/// Where pieces begin in a block of which `len` bytes are known, at `at` in `bytes`. A piece begins
/// at its first byte, or, if `inside` is 1, its first byte follows a byte of a word, which without
/// [`CASED`](Kinds) may be any and with it is one of a word of caseless letters so far.
#[inline(always)]
fn boundaries<const CASED: bool>(
    rules: &Rules,
    kinds: &Kinds<CASED>,
    len: usize,
    inside: u64,
    bytes: &[u8],
    at: usize,
) -> Found {
    let &Kinds { word, number, space, apostrophe, slash, starts, .. } = kinds;
    let (mut punctuation, mut white, mut newline) = (kinds.punctuation, kinds.white, kinds.newline);

    // Behind punctuation, line breaks (and slashes behind them) are of its piece, and no longer
    // white space (or punctuation).
    if rules.tail != Tail::None {
        let run = match rules.tail {
            Tail::NewlinesSlashes => newline | slash,
            Tail::Newlines | Tail::None => newline,
        };
        let tail = follow(run, newline & (punctuation << 1));
        punctuation &= !tail;
        white &= !tail;
        newline &= !tail;
    }

    // Marks behind punctuation are punctuation; the scalar twin knows how far.
    let mut len = len;
    if CASED {
        let marks = kinds.mark & (punctuation << 1);
        if marks != 0 {
            len = len.min(marks.trailing_zeros() as usize);
        }
    }

    let first_of = |run: u64| run & !(run << 1);
    let first_punctuation = first_of(punctuation);
    let first_number = first_of(number);
    let first_word = word & !(word << 1 | inside);
    let first_white = first_of(white);
    let first_han = first_of(kinds.han);

    // White space: the last character goes with what follows, or is a piece of its own.
    let mut last_white = white & !(white >> 1);
    let mut behind_newline = 0;
    let blank = white & !newline;
    if rules.white != White::Runs {
        last_white &= blank;
        // What follows the last line break of a run begins a piece. (What follows another one is
        // blank up to the next.)
        behind_newline = blank & (newline << 1);
        let mut not_last = blank.wrapping_add(behind_newline) & !blank & newline;
        while not_last != 0 {
            let before = behind_newline & (not_last & not_last.wrapping_neg()).wrapping_sub(1);
            behind_newline &= !(1 << (63 - before.leading_zeros()));
            not_last &= not_last - 1;
        }
    }
    // Its first byte.
    while last_white & !starts != 0 {
        last_white = last_white & starts | (last_white & !starts) >> 1;
    }

    // What begins a piece and is followed by a word goes with the word.
    let lone = first_punctuation & !(space << 1);
    let prefix = match rules.prefix {
        Prefix::None => 0,
        Prefix::Space => space,
        Prefix::NotNewline => to_last_byte(lone, starts) | blank,
    };
    let mut begins = first_white
        | last_white
        | behind_newline
        | first_han
        | first_punctuation & !(space << 1)
        | first_word & !(prefix << 1);

    begins |= match rules.digits {
        Digits::SpacedRun => first_number & !(space << 1),
        Digits::Run => first_number,
        Digits::Groups(0 | 1) => number & starts,
        Digits::Groups(n) => groups(number, first_number, u32::from(n)),
    };

    // From here on, letters of contractions are no letters.
    let (mut upper, mut lower) = (kinds.upper, word & !(kinds.upper | kinds.caseless));
    let known = below(len);
    let (case, mut candidates) = match rules.contractions {
        Contractions::None => (None, 0),
        Contractions::Apart(case) => (Some(case), apostrophe & lone),
        Contractions::Suffix(case) => (Some(case), apostrophe & (word << 1 | inside)),
    };
    // Behind the last known byte may be a letter.
    candidates &= known & word >> 1 | last_of(known);
    let mut ends_behind = false;
    if let Some(case) = case {
        while candidates != 0 {
            let i = candidates.trailing_zeros();
            candidates &= candidates - 1;
            let from = at + i as usize;
            let Some(end) = contraction(case, bytes, from) else { continue };
            let all = (1u64 << (end - from)) - 1;
            let next = (all + 1) << i;
            let (all, mut inner) = (all << i, all << i);
            match rules.contractions {
                Contractions::Apart(_) => inner &= inner - 1,
                // An apostrophe right behind begins a piece, whatever follows.
                Contractions::Suffix(_) | Contractions::None => candidates &= !next,
            }
            begins = begins & !inner | next;
            ends_behind |= end >= at + len;
            upper &= !all;
            lower &= !all;
        }
    }

    // Words are cut in front of an upper case letter behind one that is lower case, or caseless
    // behind one that is.
    let mut inner = 0;
    if CASED {
        let caseless = kinds.caseless;
        let after_lower = follow(caseless, caseless & (lower << 1));
        inner = upper & ((lower | after_lower) << 1);
        // In front of upper case that lower case does not follow, behind the last caseless letter
        // of a word that has no lower case.
        let mut last = upper & ((caseless & !after_lower) << 1 | inside);
        while last != 0 {
            let i = last.trailing_zeros();
            let end = i + (!(upper >> i)).trailing_zeros();
            if end >= len as u32 || word >> end & 1 == 0 {
                begins |= 1 << i;
            }
            last &= last - 1;
        }
        begins |= inner;
    }

    // What lies behind the block can change what is at and behind the beginning of the last run;
    // but not where that run begins, nor, from left to right, the cuts inside.
    let firsts = (first_word | first_number | first_white | first_punctuation | first_han) & known;
    let mut certain = up_to_last(firsts);
    if CASED {
        certain |= up_to_last(inner & known);
    }
    if number & last_of(known) != 0 {
        certain = known;
    }
    begins &= known;
    if inside == 0 {
        begins &= !1;
    }
    if begins & certain != 0 {
        return Found::Begins(begins & certain);
    }
    let is_word_at_end = word & last_of(known) != 0 && !ends_behind;
    if begins == 0 && is_word_at_end && (!CASED || word & known & !kinds.caseless == 0) {
        Found::Inside(len)
    } else {
        Found::Unknown
    }
}

/// The bits below bit `len`, which is at most 64.
#[inline(always)]
fn below(len: usize) -> u64 {
    if len < 64 { (1 << len) - 1 } else { !0 }
}

/// The bits up to the last of `bits` and with it.
#[inline(always)]
fn up_to_last(bits: u64) -> u64 {
    if bits == 0 { 0 } else { !0 >> bits.leading_zeros() }
}

/// The last of the bits of `known`, which are the lowest.
#[inline(always)]
fn last_of(known: u64) -> u64 {
    known & !(known >> 1)
}

/// The bits of the runs of `run` at and behind a bit of `from`, which is in `run`.
#[inline(always)]
fn follow(run: u64, from: u64) -> u64 {
    // The carries of an addition go from each bit of `from` to the end of its run, whatever other
    // bits of `from` there are.
    let sum = run.wrapping_add(from);
    let carried = sum ^ run ^ from;
    (carried | from) & run
}

/// The bits of characters that begin at `first`.
#[inline(always)]
fn to_last_byte(first: u64, starts: u64) -> u64 {
    let rest = !starts;
    let two = first | first << 1 & rest;
    let three = two | two << 1 & rest;
    three | three << 1 & rest
}

/// The first of every `n` digits of the runs of `number`.
#[inline(always)]
fn groups(number: u64, first: u64, n: u32) -> u64 {
    // The digits that have n digits of their run in front.
    let mut later = number;
    for i in 1..=n {
        later &= number << i;
    }
    let mut begins = first;
    let mut next = first << n & later;
    while next != 0 {
        begins |= next;
        next = next << n & later;
    }
    begins
}
