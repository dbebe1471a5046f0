use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

/// The tokens of an encoding in order of rank, and the merge that makes each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tokens {
    bytes: Vec<u8>,
    /// The end of each token in `bytes`; it begins where the one before ends.
    ends: Vec<u32>,
    /// The places of the two tokens that each is merged from; its own place twice where it is not.
    parts: Vec<(u32, u32)>,
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

impl Tokens {
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
    /// Takes `O(n)` for n bytes of all tokens, and never more memory than 64 times the data.
    ///
    /// # Errors
    ///
    /// If the data are not of this format, or were changed.
    pub fn unpack(packed: &[u8]) -> Result<Self, UnpackError> {
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
            bytes: Vec::with_capacity(n_bytes as usize),
            ends: Vec::new(),
            parts: Vec::new(),
            gaps,
        };
        tokens.read(&mut Bits::new(bits), n_tokens, n_bytes as usize)?;
        Ok(tokens)
    }

    fn read(
        &mut self,
        bits: &mut Bits<'_>,
        n_tokens: u32,
        n_bytes: usize,
    ) -> Result<(), UnpackError> {
        for place in 0..n_tokens {
            let width = 32 - place.max(1).leading_zeros();
            let left = bits.take(width)?;
            if left == place {
                self.parts.push((place, place));
                for _ in 0..bits.take(16)? {
                    self.bytes.push(bits.take(8)? as u8);
                }
            } else {
                let right = bits.take(width)?;
                if left > place || right >= place {
                    return Err(UnpackError::Token(place));
                }
                self.parts.push((left, right));
                let (left, right) = (self.range(left as usize), self.range(right as usize));
                if self.bytes.len() + left.len() + right.len() > n_bytes {
                    return Err(UnpackError::Token(place));
                }
                self.bytes.extend_from_within(left);
                self.bytes.extend_from_within(right);
            }
            if self.bytes.len() > n_bytes {
                return Err(UnpackError::Token(place));
            }
            self.ends.push(self.bytes.len() as u32);
        }
        Ok(())
    }

    fn range(&self, place: usize) -> Range<usize> {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        start as usize..self.ends[place] as usize
    }

    /// The number of tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no token.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The ranks and the bytes of the tokens, by ascending rank. Ranks that no token has are left
    /// out.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, &[u8])> + '_ {
        (0..self.len()).map(|place| (self.rank(place as u32), &self.bytes[self.range(place)]))
    }

    /// The ranks of the two tokens that the token of this rank is merged from: those that are left
    /// when it is encoded with lower ranks alone. `None` for single bytes, and where there is no
    /// such token or no such merge.
    #[must_use]
    pub fn merge_of(&self, rank: u32) -> Option<(u32, u32)> {
        let place = self.place(rank)?;
        let &(left, right) = self.parts.get(place as usize)?;
        (left != place).then(|| (self.rank(left), self.rank(right)))
    }

    fn rank(&self, place: u32) -> u32 {
        let mut rank = place;
        for gap in &self.gaps {
            if rank >= gap.rank {
                rank += gap.len;
            }
        }
        rank
    }

    fn place(&self, rank: u32) -> Option<u32> {
        let mut place = rank;
        for gap in self.gaps.iter().take_while(|gap| gap.rank <= rank) {
            if rank - gap.rank < gap.len {
                return None;
            }
            place -= gap.len;
        }
        Some(place)
    }
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

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(bytes);
    out
}

fn checksum(bytes: &[u8]) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x0000_0100_0000_01B3);
    }
    hash
}

/// Reads numbers of a few bits, lowest bits first.
struct Bits<'p> {
    bytes: &'p [u8],
    /// Bits that were read from `bytes` and not taken.
    held: u64,
    n_held: u32,
}

impl<'p> Bits<'p> {
    fn new(bytes: &'p [u8]) -> Self {
        Self { bytes, held: 0, n_held: 0 }
    }

    /// The next `n` bits, at most 32.
    fn take(&mut self, n: u32) -> Result<u32, UnpackError> {
        if self.n_held < n {
            if let Some((word, rest)) = self.bytes.split_first_chunk::<4>() {
                self.held |= u64::from(u32::from_le_bytes(*word)) << self.n_held;
                self.n_held += 32;
                self.bytes = rest;
            } else {
                while let Some((&byte, rest)) = self.bytes.split_first() {
                    self.held |= u64::from(byte) << self.n_held;
                    self.n_held += 8;
                    self.bytes = rest;
                }
                if self.n_held < n {
                    return Err(UnpackError::Truncated);
                }
            }
        }
        let value = self.held & ((1 << n) - 1);
        self.held >>= n;
        self.n_held -= n;
        Ok(value as u32)
    }
}
