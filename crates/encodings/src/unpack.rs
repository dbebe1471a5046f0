use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

/// The tokens of an encoding in order of rank, and the merge that makes each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tokens<'p> {
    bytes: Vec<u8>,
    /// Where each token begins in `bytes`, and where the last one ends.
    bounds: Vec<u32>,
    merges: Merges<'p>,
}

/// The merges that make the tokens of an encoding, and the ranks that no token has.
///
/// They stay packed, since reading them again costs less than the memory that they would take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merges<'p> {
    /// A stream of bits that was read without an error.
    stream: &'p [u8],
    n_tokens: u32,
    gaps: Vec<Gap>,
}

/// Ranks that no token has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    rank: u32,
    len: u32,
}

/// Why packed data cannot be unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnpackError {
    /// The data do not begin as this format does.
    Magic,
    /// The data end before the tokens that they announce.
    Truncated,
    /// The data are not those that were packed.
    Checksum,
    /// The token at this place is longer than the data announce, or made of later tokens.
    Token(u32),
    /// Gaps overlap, are empty or lie behind rank 4294967295.
    Gaps,
}

impl fmt::Display for UnpackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => f.write_str("packed ranks begin with \"RANKS-1\\n\""),
            Self::Truncated => f.write_str("the packed ranks end too early"),
            Self::Checksum => f.write_str("the checksum of the packed ranks is wrong"),
            Self::Token(place) => write!(f, "the packed token at place {place} is not valid"),
            Self::Gaps => f.write_str("the gaps of the packed ranks are not valid"),
        }
    }
}

impl core::error::Error for UnpackError {}

/// What packed data begin with.
const MAGIC: &[u8; 8] = b"RANKS-1\n";

/// Magic, checksum, number of tokens, number of bytes, number of gaps.
const HEAD: usize = 8 + 8 + 4 + 4 + 4;

impl<'p> Tokens<'p> {
    /// Unpacks data of this format:
    ///
    /// | bytes | what |
    /// |---|---|
    /// | 8 | `RANKS-1\n` |
    /// | 8 | checksum of all that follows: FNV-1a over words of 8 bytes, the last one filled with zeros |
    /// | 4 | number of tokens |
    /// | 4 | bytes of all tokens |
    /// | 4 | number of gaps |
    /// | 8 each | gaps, ascending: the first rank that no token has, and how many there are |
    /// | rest | a stream of bits, the lowest of each byte first |
    ///
    /// Numbers are little-endian. The stream holds the tokens in order of rank. The token at place
    /// n begins with n's number of bits (1 for n = 0). If they say n, the token follows in full: 16
    /// bits for its length in bytes, then its bytes. Otherwise they are the place of its left part,
    /// and those of its right part follow in as many bits.
    ///
    /// ```text
    /// "a", "b", "ab"    0:1 len:16 'a':8    1:1 len:16 'b':8    0:2 1:2
    /// ```
    ///
    /// Takes `O(n)` for n bytes of all tokens, and never more memory than 80 times the data.
    ///
    /// # Errors
    ///
    /// If the data are not of this format, or were changed.
    pub fn unpack(packed: &'p [u8]) -> Result<Self, UnpackError> {
        if packed.get(..8) != Some(MAGIC) {
            return Err(UnpackError::Magic);
        }
        if packed.len() < HEAD {
            return Err(UnpackError::Truncated);
        }
        let word = |at: usize| u32::from_le_bytes(array(&packed[at..at + 4]));
        if checksum(&packed[16..]) != u64::from_le_bytes(array(&packed[8..16])) {
            return Err(UnpackError::Checksum);
        }
        let (n_tokens, n_bytes, n_gaps) = (word(16), word(20), word(24));
        let stream = (n_gaps as usize).checked_mul(8).and_then(|gaps| gaps.checked_add(HEAD));
        let stream = stream.filter(|&start| start <= packed.len()).ok_or(UnpackError::Truncated)?;
        let gaps = unpack_gaps(&packed[HEAD..stream], n_tokens)?;
        let bits = &packed[stream..];
        // No token takes less than a bit. The bytes of honest data are a few times the data, too.
        if n_tokens as usize > bits.len().saturating_mul(8) {
            return Err(UnpackError::Truncated);
        }
        if n_bytes as usize > bits.len().saturating_mul(48) {
            return Err(UnpackError::Token(0));
        }
        let mut tokens = Self {
            bytes: vec![0; n_bytes as usize + 2 * COPIED],
            bounds: vec![0; n_tokens as usize + 1],
            merges: Merges { stream: bits, n_tokens, gaps },
        };
        tokens.read(n_bytes as usize)?;
        Ok(tokens)
    }

    /// Reads the tokens, for which there is room, and behind them for [`COPIED`] bytes twice.
    fn read(&mut self, n_bytes: usize) -> Result<(), UnpackError> {
        let mut reader = Reader::new(self.merges.stream);
        let (bytes, bounds) = (&mut self.bytes[..], &mut self.bounds[..]);
        let mut end = 0;
        for place in 0..self.merges.n_tokens {
            match reader.next(place)? {
                Packed::Joined { left, right } => {
                    if left > place || right >= place {
                        return Err(UnpackError::Token(place));
                    }
                    let (left_at, left_len) = place_of(bounds, left);
                    let (right_at, right_len) = place_of(bounds, right);
                    if left_len + right_len > n_bytes - end {
                        return Err(UnpackError::Token(place));
                    }
                    let middle = end + left_len;
                    if left_len <= COPIED && right_len <= COPIED {
                        copy_some(bytes, left_at, end);
                        copy_some(bytes, right_at, middle);
                    } else {
                        bytes.copy_within(left_at..left_at + left_len, end);
                        bytes.copy_within(right_at..right_at + right_len, middle);
                    }
                    end = middle + right_len;
                }
                Packed::InFull { len } => {
                    if len > n_bytes - end {
                        return Err(UnpackError::Token(place));
                    }
                    reader = reader.copy_bytes(&mut bytes[end..end + len])?;
                    end += len;
                }
            }
            bounds[place as usize + 1] = end as u32;
        }
        self.bytes.truncate(end);
        Ok(())
    }

    /// The number of tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.merges.n_tokens as usize
    }

    /// Whether there is no token.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.merges.n_tokens == 0
    }

    /// The ranks and the bytes of the tokens, by ascending rank. Ranks that no token has are left
    /// out.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, &[u8])> + '_ {
        (0..self.len()).map(|place| {
            let range = self.bounds[place] as usize..self.bounds[place + 1] as usize;
            (self.merges.rank(place as u32), &self.bytes[range])
        })
    }

    /// The merges that make tokens of earlier ones.
    #[must_use]
    pub fn merges(&self) -> &Merges<'p> {
        &self.merges
    }

    /// The bytes of all tokens in order of rank, end to end; where each begins in them, and behind
    /// that where the last one ends; and the merges. No copies.
    #[must_use]
    pub fn into_parts(self) -> (Vec<u8>, Vec<u32>, Merges<'p>) {
        (self.bytes, self.bounds, self.merges)
    }
}

impl Merges<'_> {
    /// The ranks of the left part, of the right part and of the token that they make, by ascending
    /// rank of the token. The parts are what is left when the token is encoded with lower ranks
    /// alone; single bytes have none. A few nanoseconds each.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32, u32)> + Clone + '_ {
        MergesIter { merges: self, reader: Reader::new(self.stream), place: 0 }
    }

    /// The ranks that no token has though a later rank has one, ascending.
    pub fn gaps(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        self.gaps.iter().map(|gap| gap.rank..gap.rank + gap.len)
    }

    #[inline]
    fn rank(&self, place: u32) -> u32 {
        let mut rank = place;
        for gap in &self.gaps {
            if rank >= gap.rank {
                rank += gap.len;
            }
        }
        rank
    }
}

#[derive(Clone)]
struct MergesIter<'m> {
    merges: &'m Merges<'m>,
    reader: Reader<'m>,
    place: u32,
}

impl Iterator for MergesIter<'_> {
    type Item = (u32, u32, u32);

    fn next(&mut self) -> Option<Self::Item> {
        while self.place < self.merges.n_tokens {
            let place = self.place;
            self.place += 1;
            match self.reader.next(place).ok()? {
                Packed::Joined { left, right } => {
                    return Some([left, right, place].map(|place| self.merges.rank(place)).into());
                }
                Packed::InFull { len } => self.reader.at += 8 * len,
            }
        }
        None
    }

    /// All of them in one loop, which takes half of the time.
    #[inline]
    fn fold<B, F: FnMut(B, Self::Item) -> B>(self, mut all: B, mut f: F) -> B {
        let Self { merges, mut reader, place } = self;
        let has_gaps = !merges.gaps.is_empty();
        for place in place..merges.n_tokens {
            match reader.next(place) {
                Ok(Packed::Joined { left, right }) => {
                    let merge = [left, right, place];
                    let merge = if has_gaps { merge.map(|at| merges.rank(at)) } else { merge };
                    all = f(all, merge.into());
                }
                Ok(Packed::InFull { len }) => reader.at += 8 * len,
                Err(_) => break,
            }
        }
        all
    }
}

/// Where an earlier token begins, and its length.
#[inline(always)]
fn place_of(bounds: &[u32], place: u32) -> (usize, usize) {
    let end = bounds[place as usize + 1];
    let start = bounds[place as usize];
    (start as usize, (end - start) as usize)
}

/// Copies [`COPIED`] bytes.
#[inline(always)]
fn copy_some(bytes: &mut [u8], from: usize, to: usize) {
    let copied: [u8; COPIED] = array(&bytes[from..from + COPIED]);
    bytes[to..to + COPIED].copy_from_slice(&copied);
}

/// Gaps in ascending order that leave the last of `n_tokens` a rank.
fn unpack_gaps(packed: &[u8], n_tokens: u32) -> Result<Vec<Gap>, UnpackError> {
    let number = |bytes: &[u8]| u32::from_le_bytes(array(bytes));
    let gaps = packed.chunks_exact(8);
    let gaps = gaps.map(|gap| Gap { rank: number(&gap[..4]), len: number(&gap[4..]) });
    let gaps: Vec<Gap> = gaps.collect();
    let mut behind_last = 0;
    let mut all = u64::from(n_tokens);
    for gap in &gaps {
        all += u64::from(gap.len);
        if gap.len == 0 || u64::from(gap.rank) < behind_last || all > 1 << 32 {
            return Err(UnpackError::Gaps);
        }
        behind_last = u64::from(gap.rank) + u64::from(gap.len);
    }
    Ok(gaps)
}

#[inline(always)]
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(bytes);
    out
}

fn checksum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let last = (!rest.is_empty()).then_some(&last);
    words.iter().chain(last).fold(0xCBF2_9CE4_8422_2325, |hash, word| {
        (hash ^ u64::from_le_bytes(*word)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// So many bytes of a token are copied at once, whatever its length: most tokens are not longer, and
/// a copy of a known length is two instructions.
const COPIED: usize = 16;

/// A token in the stream of bits.
enum Packed {
    /// The places of its parts.
    Joined { left: u32, right: u32 },
    /// So many bytes follow.
    InFull { len: usize },
}

/// Reads numbers of a few bits, lowest bits first.
#[derive(Clone)]
struct Reader<'p> {
    bytes: &'p [u8],
    /// The bits that were taken.
    at: usize,
}

impl<'p> Reader<'p> {
    fn new(bytes: &'p [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The token at a place, and where its bytes are the next to be read, their number.
    ///
    /// What is rare works on a copy, so that the reader itself can stay in registers.
    #[inline(always)]
    fn next(&mut self, place: u32) -> Result<Packed, UnpackError> {
        let width = 32 - place.max(1).leading_zeros();
        // A word holds 57 bits that were not taken.
        if let Some(word) = self.peek()
            && width <= 28
        {
            let mask = (1 << width) - 1;
            let (left, right) = ((word & mask) as u32, (word >> width & mask) as u32);
            if left != place {
                self.at += 2 * width as usize;
                return Ok(Packed::Joined { left, right });
            }
        }
        let (packed, behind) = self.clone().rare(place, width)?;
        *self = behind;
        Ok(packed)
    }

    /// A token near the end of the data, or one in full.
    #[cold]
    fn rare(mut self, place: u32, width: u32) -> Result<(Packed, Self), UnpackError> {
        let left = self.take(width)?;
        let packed = if left == place {
            Packed::InFull { len: self.take(16)? as usize }
        } else {
            Packed::Joined { left, right: self.take(width)? }
        };
        Ok((packed, self))
    }

    /// Copies the next bytes of a token in full.
    #[cold]
    fn copy_bytes(mut self, bytes: &mut [u8]) -> Result<Self, UnpackError> {
        for byte in bytes {
            *byte = self.take(8)? as u8;
        }
        Ok(self)
    }

    /// At least 57 bits that were not taken, except near the end of the data.
    #[inline(always)]
    fn peek(&self) -> Option<u64> {
        let word = self.bytes.get(self.at / 8..self.at / 8 + 8)?;
        Some(u64::from_le_bytes(array(word)) >> (self.at % 8))
    }

    /// The next `n` bits, at most 32.
    fn take(&mut self, n: u32) -> Result<u32, UnpackError> {
        let word = match self.peek() {
            Some(word) => word,
            None if self.at + n as usize > self.bytes.len() * 8 => {
                return Err(UnpackError::Truncated);
            }
            None => {
                let rest = &self.bytes[self.at / 8..];
                let mut word = [0; 8];
                word[..rest.len()].copy_from_slice(rest);
                u64::from_le_bytes(word) >> (self.at % 8)
            }
        };
        self.at += n as usize;
        Ok((word & ((1 << n) - 1)) as u32)
    }
}
