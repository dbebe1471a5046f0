//! The embedded data are the published files; other data are refused.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use encodings::{Ranks, Tokens, UnpackError};
use sha2::{Digest as _, Sha256};

#[test]
fn unpacked_ranks_are_the_published_files() {
    for ranks in Ranks::ALL {
        let mut file = String::new();
        for (rank, token) in ranks.unpack().iter() {
            STANDARD.encode_string(token, &mut file);
            file += &format!(" {rank}\n");
        }
        let hash: String = Sha256::digest(&file).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hash, ranks.sha256(), "{}", ranks.name());
    }
}

#[test]
fn merges_join_to_their_token() {
    for ranks in Ranks::ALL {
        let tokens = ranks.unpack();
        let by_rank: std::collections::BTreeMap<u32, &[u8]> = tokens.iter().collect();
        let mut merged = std::collections::BTreeSet::new();
        for (left, right, rank) in tokens.merges().iter() {
            assert!(left < rank && right < rank);
            assert_eq!([by_rank[&left], by_rank[&right]].concat(), by_rank[&rank]);
            assert!(merged.last().is_none_or(|&last| last < rank));
            merged.insert(rank);
        }
        for (rank, token) in tokens.iter() {
            assert_eq!(merged.contains(&rank), token.len() > 1, "{}: rank {rank}", ranks.name());
        }
    }
}

#[test]
fn the_gap_of_p50k_is_kept() {
    let tokens = Ranks::P50kBase.unpack();
    assert_eq!(tokens.len(), 50_280);
    let around: Vec<(u32, &[u8])> = tokens.iter().skip(50_255).take(2).collect();
    assert_eq!(around, [(50_255, &b" gazed"[..]), (50_257, b"  ")]);
    assert!(tokens.merges().gaps().eq(std::iter::once(50_256..50_257)));
    let behind = tokens.merges().iter().find(|&(_, _, rank)| rank >= 50_256);
    assert_eq!(behind, Some((220, 220, 50_257)));
    let (bytes, bounds, merges) = tokens.into_parts();
    assert_eq!(bounds.len(), 50_281);
    assert_eq!(bounds[0], 0);
    assert_eq!(bounds[50_280] as usize, bytes.len());
    assert_eq!(merges.iter().count(), 50_280 - 256);
}

#[test]
fn every_prefix_is_refused() {
    let packed = Ranks::R50kBase.packed();
    for len in (0..64).chain((64..packed.len()).step_by(1013)) {
        let error = Tokens::unpack(&packed[..len]).unwrap_err();
        let expected = match len {
            0..8 => UnpackError::Magic,
            8..28 => UnpackError::Truncated,
            _ => UnpackError::Checksum,
        };
        assert_eq!(error, expected, "{len}");
    }
}

#[test]
fn a_changed_bit_is_refused() {
    let mut packed = Ranks::R50kBase.packed().to_vec();
    for at in (0..64).chain((64..packed.len()).step_by(1013)) {
        packed[at] ^= 16;
        assert!(Tokens::unpack(&packed).is_err(), "{at}");
        packed[at] ^= 16;
    }
    assert!(Tokens::unpack(&packed).is_ok());
}

/// Data with a right checksum: the head, gaps and a stream of bits.
fn sealed(n_tokens: u32, n_bytes: u32, gaps: &[(u32, u32)], stream: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    for number in [n_tokens, n_bytes, gaps.len() as u32] {
        body.extend(number.to_le_bytes());
    }
    for (rank, len) in gaps {
        body.extend(rank.to_le_bytes());
        body.extend(len.to_le_bytes());
    }
    body.extend(stream);
    let mut hash = 0xCBF2_9CE4_8422_2325_u64;
    for chunk in body.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x0000_0100_0000_01B3);
    }
    [&b"RANKS-1\n"[..], &hash.to_le_bytes(), &body].concat()
}

#[test]
fn data_with_a_right_checksum_are_checked_too() {
    let check = |data: Vec<u8>, expected: Result<usize, UnpackError>| {
        assert_eq!(Tokens::unpack(&data).map(|tokens| tokens.len()), expected);
    };
    check(sealed(0, 0, &[], &[]), Ok(0));
    // "a": place 0 in one bit, length 1 in 16, the byte in 8.
    let a = ((u32::from(b'a') << 17) | (1 << 1)).to_le_bytes();
    check(sealed(1, 1, &[], &a), Ok(1));
    check(sealed(1, 0, &[], &a), Err(UnpackError::Token(0)));
    // Place 1 is made of place 0 and of itself.
    let mut twice = a;
    twice[3] |= 0b100;
    check(sealed(2, 3, &[], &twice[..]), Err(UnpackError::Token(1)));
    check(sealed(u32::MAX, 1, &[], &a), Err(UnpackError::Truncated));
    check(sealed(9, 9, &[], &a), Err(UnpackError::Truncated));
    check(sealed(1, u32::MAX, &[], &a), Err(UnpackError::Token(0)));
    check(sealed(1, 1, &[(5, 0)], &a), Err(UnpackError::Gaps));
    check(sealed(1, 1, &[(5, 2), (6, 2)], &a), Err(UnpackError::Gaps));
    check(sealed(1, 1, &[(0, u32::MAX), (u32::MAX, 1)], &a), Err(UnpackError::Gaps));
    check(sealed(1, 1, &[(0, u32::MAX)], &a), Ok(1));
}
