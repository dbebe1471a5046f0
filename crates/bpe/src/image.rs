//! Tables that were made before the program runs, as bytes.

use alloc::vec::Vec;
use core::fmt;

use bytemuck::{AnyBitPattern, NoUninit};
use tokenizer_core::Array;

/// What an image begins with. The last byte is the version: whoever changes a table, what it holds, or a
/// hash that finds something in it, changes this.
const MAGIC: [u8; 8] = *b"bpe img\x01";

/// Arrays begin at multiples of this, so that each has lines of cache of its own.
const ALIGNMENT: usize = 64;

/// Writes an image: eight bytes that say what it is, the number of arrays, how many bytes each has, and the
/// arrays. Numbers are little-endian, and those in front have eight bytes.
#[derive(Default)]
pub(crate) struct Writer {
    lens: Vec<u64>,
    arrays: Vec<u8>,
}

impl Writer {
    /// Adds an array.
    pub(crate) fn array<T: NoUninit>(&mut self, elements: &[T]) {
        let bytes: &[u8] = bytemuck::cast_slice(elements);
        self.lens.push(bytes.len() as u64);
        self.arrays.extend_from_slice(bytes);
        self.arrays.resize(self.arrays.len().next_multiple_of(ALIGNMENT), 0);
    }

    /// The image; `None` where numbers are big-endian, which those of an image are not.
    pub(crate) fn finish(self) -> Option<Vec<u8>> {
        let mut image = Vec::with_capacity(self.arrays.len() + 8 * self.lens.len() + ALIGNMENT);
        image.extend_from_slice(&MAGIC);
        image.extend_from_slice(&(self.lens.len() as u64).to_le_bytes());
        image.extend(self.lens.iter().flat_map(|len| len.to_le_bytes()));
        image.resize(image.len().next_multiple_of(ALIGNMENT), 0);
        image.extend_from_slice(&self.arrays);
        cfg!(target_endian = "little").then_some(image)
    }
}

/// Reads the arrays of an image in the order in which they were written.
pub(crate) struct Reader {
    lens: &'static [u64],
    /// What follows the arrays that were read.
    rest: &'static [u8],
}

impl Reader {
    pub(crate) fn new(image: &'static [u8]) -> Result<Self, ImageError> {
        if cfg!(target_endian = "big") {
            return Err(ImageError(Kind::BigEndian));
        }
        let short = ImageError(Kind::Short { len: image.len() });
        let (magic, rest) = image.split_first_chunk().ok_or(short.clone())?;
        if *magic != MAGIC {
            return Err(ImageError(Kind::Magic { found: *magic }));
        }
        let (n_arrays, rest) = rest.split_first_chunk().ok_or(short.clone())?;
        let len =
            usize::try_from(u64::from_le_bytes(*n_arrays)).ok().and_then(|n| n.checked_mul(8));
        let lens = len.and_then(|len| rest.get(..len)).ok_or(short.clone())?;
        let first = (magic.len() + n_arrays.len() + lens.len()).next_multiple_of(ALIGNMENT);
        Ok(Self { lens: cast(lens)?, rest: image.get(first..).ok_or(short)? })
    }

    /// The next array.
    pub(crate) fn array<T: AnyBitPattern>(&mut self) -> Result<Array<T>, ImageError> {
        let short = ImageError(Kind::Short { len: self.rest.len() });
        let (&len, lens) = self.lens.split_first().ok_or(short.clone())?;
        let len = usize::try_from(len).map_err(|_| short.clone())?;
        let padded = len.checked_next_multiple_of(ALIGNMENT);
        let split = padded.and_then(|padded| self.rest.split_at_checked(padded));
        let (bytes, rest) = split.ok_or(short)?;
        let bytes = &bytes[..len];
        self.rest = rest;
        self.lens = lens;
        Ok(Array::from(cast(bytes)?))
    }

    /// The next array, of so many numbers.
    pub(crate) fn numbers<const N: usize>(&mut self) -> Result<[u32; N], ImageError> {
        let array: Array<u32> = self.array()?;
        array[..].try_into().map_err(|_| self.fault("numbers"))
    }

    /// An error that names a table if it is not as it must be.
    pub(crate) fn check(&self, is_so: bool, table: &'static str) -> Result<(), ImageError> {
        if is_so { Ok(()) } else { Err(self.fault(table)) }
    }

    pub(crate) fn fault(&self, table: &'static str) -> ImageError {
        ImageError(Kind::Table { table })
    }
}

fn cast<T: AnyBitPattern>(bytes: &'static [u8]) -> Result<&'static [T], ImageError> {
    if bytes.is_empty() {
        return Ok(&[]);
    }
    bytemuck::try_cast_slice(bytes).map_err(|error| ImageError(Kind::Cast { error }))
}

/// Why an image was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageError(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    BigEndian,
    Magic { found: [u8; 8] },
    Short { len: usize },
    Cast { error: bytemuck::PodCastError },
    Table { table: &'static str },
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::BigEndian => {
                write!(f, "an image holds little-endian numbers, but those of this machine are not")
            }
            Kind::Magic { found } => write!(
                f,
                "the image begins with \"{}\", but one of this version begins with \"{}\"",
                found.escape_ascii(),
                MAGIC.escape_ascii()
            ),
            Kind::Short { len } => {
                write!(f, "the image ends in the {len} bytes in which another array should begin")
            }
            Kind::Cast { error } => write!(f, "an array of the image cannot be read: {error}"),
            Kind::Table { table } => {
                write!(f, "the image's table of {table} is not as large as its other tables say")
            }
        }
    }
}

impl core::error::Error for ImageError {}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn reader(image: &[u8]) -> Result<Reader, ImageError> {
        // Aligned as a build script's would be.
        let words = image.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        });
        let words: &'static [u64] = words.collect::<Vec<_>>().leak();
        Reader::new(&bytemuck::cast_slice(words)[..image.len()])
    }

    #[test]
    fn arrays_come_back_in_order() {
        let mut writer = Writer::default();
        writer.array(&[1u32, 2, 3]);
        writer.array::<u64>(&[]);
        writer.array(&[[5u8; 16]; 9]);
        writer.array(&[u64::MAX]);
        let image = writer.finish().unwrap();
        let mut reader = reader(&image).unwrap();
        assert_eq!(reader.numbers(), Ok([1, 2, 3]));
        assert!(reader.array::<u64>().unwrap().is_empty());
        assert_eq!(reader.array::<[u8; 16]>().unwrap()[..], [[5; 16]; 9]);
        assert_eq!(reader.array::<u64>().unwrap()[..], [u64::MAX]);
        assert!(reader.array::<u8>().is_err(), "no fifth array");
    }

    #[test]
    fn what_is_no_image_is_refused() {
        let mut writer = Writer::default();
        writer.array(&[7u64; 20]);
        let image = writer.finish().unwrap();
        let read = |image: &[u8]| reader(image)?.array::<u64>();
        assert!(read(&image).is_ok());
        for len in 0..20 {
            assert!(read(&image[..len]).is_err(), "{len}");
        }
        assert!(read(&image[..image.len() - 40]).is_err(), "the array is cut off");
        let mut other = image.clone();
        other[7] += 1;
        let error = read(&other).unwrap_err().to_string();
        assert!(error.contains(r"bpe img\x02") && error.contains(r"bpe img\x01"), "{error}");
        let mut long = image.clone();
        long[8..16].fill(0xFF);
        assert!(read(&long).is_err());
        long.copy_from_slice(&image);
        long[16..24].fill(0xFF);
        assert!(read(&long).is_err());
        assert!(reader(&image).unwrap().numbers::<3>().is_err());
    }
}
