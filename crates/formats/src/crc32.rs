//! CRC-32 as in gzip, zip and PNG (polynomial 0xEDB88320, reflected, inverted at both ends).

/// Eight tables, so that eight bytes are folded in one step (Kounavis and Berry, 2008).
const TABLES: [[u32; 256]; 8] = {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let crc: u32 = tables[table - 1][byte];
            tables[table][byte] = crc >> 8 ^ tables[0][(crc & 0xFF) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
};

/// The running checksum of bytes given in parts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Crc32(u32);

impl Crc32 {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        let mut crc = !self.0;
        let (chunks, rest) = bytes.as_chunks::<8>();
        for chunk in chunks {
            let word = u64::from_le_bytes(*chunk) ^ u64::from(crc);
            crc = 0;
            for (i, table) in TABLES.iter().rev().enumerate() {
                crc ^= table[(word >> (8 * i) & 0xFF) as usize];
            }
        }
        for &byte in rest {
            crc = crc >> 8 ^ TABLES[0][((crc ^ u32::from(byte)) & 0xFF) as usize];
        }
        self.0 = !crc;
    }

    pub(crate) fn value(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_published_check_values() {
        // RFC 3385 and the catalogue of parametrised CRC algorithms, entry CRC-32/ISO-HDLC.
        let cases: &[(&[u8], u32)] = &[
            (b"", 0),
            (b"123456789", 0xCBF4_3926),
            (b"a", 0xE8B7_BE43),
            (&[0; 32], 0x190A_55AD),
            (&[0xFF; 32], 0xFF6C_AB0B),
        ];
        for &(bytes, expected) in cases {
            let mut whole = Crc32::default();
            whole.update(bytes);
            assert_eq!(whole.value(), expected);
            let mut parts = Crc32::default();
            bytes.chunks(3).for_each(|part| parts.update(part));
            assert_eq!(parts.value(), expected, "the parts must not matter");
        }
    }
}
