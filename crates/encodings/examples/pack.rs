//! Packs a published `.tiktoken` file into the data of this crate.
//!
//! ```text
//! cargo run --release -p encodings --example pack -- r50k_base.tiktoken > data/r50k_base.ranks
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use encodings::Tokens;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("name a .tiktoken file")?;
    let mut ranks = Vec::new();
    for line in std::fs::read_to_string(&path)?.lines() {
        let (token, rank) = line.split_once(' ').ok_or_else(|| format!("not a rank: {line:?}"))?;
        ranks.push((rank.parse::<u32>()?, STANDARD.decode(token)?));
    }
    ranks.sort();
    let packed = pack(&ranks)?;

    let unpacked = Tokens::unpack(&packed)?;
    let same = unpacked.iter().eq(ranks.iter().map(|(rank, token)| (*rank, &token[..])));
    if !same {
        return Err("the packed ranks are not those of the file".into());
    }
    let merged = unpacked.merges().iter().count();
    eprintln!("{path}: {} tokens, {merged} merged, {} bytes", ranks.len(), packed.len());
    std::io::stdout().write_all(&packed)?;
    Ok(())
}

fn pack(ranks: &[(u32, Vec<u8>)]) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut gaps = Vec::new();
    let mut next = 0;
    for &(rank, _) in ranks {
        if rank > next {
            gaps.push((next, rank - next));
        } else if rank < next {
            return Err(format!("rank {rank} occurs twice").into());
        }
        next = rank + 1;
    }
    let n_bytes: usize = ranks.iter().map(|(_, token)| token.len()).sum();
    let mut body = Vec::new();
    for number in [ranks.len(), n_bytes, gaps.len()] {
        body.extend(u32::try_from(number)?.to_le_bytes());
    }
    for (rank, len) in gaps {
        body.extend(rank.to_le_bytes());
        body.extend(len.to_le_bytes());
    }

    let places: HashMap<&[u8], u32> = (0..).zip(ranks).map(|(at, (_, t))| (&t[..], at)).collect();
    let mut bits = Bits { bytes: body, held: 0, n_held: 0 };
    for (place, (_, token)) in (0..).zip(ranks) {
        let width = 32 - u32::leading_zeros(place.max(1));
        if let Some((left, right)) = merge_of(token, place, &places) {
            bits.put(left, width);
            bits.put(right, width);
        } else {
            bits.put(place, width);
            bits.put(u16::try_from(token.len())?.into(), 16);
            for &byte in token {
                bits.put(byte.into(), 8);
            }
        }
    }
    let body = bits.finish();
    let mut packed = b"RANKS-1\n".to_vec();
    packed.extend(checksum(&body).to_le_bytes());
    packed.extend(body);
    Ok(packed)
}

/// The two tokens that are left when a token is encoded with those before it.
fn merge_of(token: &[u8], place: u32, places: &HashMap<&[u8], u32>) -> Option<(u32, u32)> {
    let earlier = |bytes: &[u8]| places.get(bytes).copied().filter(|&at| at < place);
    let mut cuts: Vec<usize> = (0..=token.len()).collect();
    while cuts.len() > 3 {
        let pairs =
            (0..cuts.len() - 2).filter_map(|i| Some((earlier(&token[cuts[i]..cuts[i + 2]])?, i)));
        let (_, lowest) = pairs.min()?;
        cuts.remove(lowest + 1);
    }
    match cuts[..] {
        [start, middle, end] => {
            Some((earlier(&token[start..middle])?, earlier(&token[middle..end])?))
        }
        _ => None,
    }
}

fn checksum(bytes: &[u8]) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325_u64;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x0000_0100_0000_01B3);
    }
    hash
}

struct Bits {
    bytes: Vec<u8>,
    held: u64,
    n_held: u32,
}

impl Bits {
    fn put(&mut self, value: u32, n: u32) {
        self.held |= u64::from(value) << self.n_held;
        self.n_held += n;
        while self.n_held >= 8 {
            self.bytes.push(self.held as u8);
            self.held >>= 8;
            self.n_held -= 8;
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.put(0, 7);
        self.bytes
    }
}
