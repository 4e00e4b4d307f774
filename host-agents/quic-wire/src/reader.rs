// SPDX-License-Identifier: Apache-2.0
//! Variable-length integers (RFC 9000, section 16), and fields read from the front of a slice.

use bytes::BufMut;

/// Remove a variable-length integer from the front of `wire`. Return `None` if `wire` is too short, and leave it
/// unchanged then.
#[inline]
pub fn read_varint(wire: &mut &[u8]) -> Option<u64> {
    // The first two bits give the length, and no branch predictor can foresee them. So eight bytes are read, if there
    // are as many, and shifted.
    let length = 1 << (wire.first()? >> 6);
    let (encoded, rest) = wire.split_at_checked(length)?;
    let value = match wire.first_chunk() {
        Some(eight) => u64::from_be_bytes(*eight) >> (64 - 8 * length),
        None => encoded
            .iter()
            .fold(0, |value, byte| value << 8 | u64::from(*byte)),
    };
    *wire = rest;
    Some(value & (u64::MAX >> 2 >> (64 - 8 * length)))
}

/// Append `value`, which is below 2^62, as the shortest variable-length integer.
#[inline]
pub fn write_varint(wire: &mut impl BufMut, value: u64) {
    match value {
        0..0x40 => wire.put_u8(value as u8),
        0x40..0x4000 => wire.put_u16(value as u16 | 1 << 14),
        0x4000..0x4000_0000 => wire.put_u32(value as u32 | 2 << 30),
        _ => wire.put_u64(value | 3 << 62),
    }
}

/// A slice from whose front fields are read. Each method returns `None` if the slice is too short.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(
    /// What is left.
    pub &'a [u8],
);

impl<'a> Reader<'a> {
    /// Read one byte.
    #[inline]
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Read `n` bytes.
    #[inline]
    pub fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Read an array of bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    /// Read a variable-length integer.
    #[inline]
    pub fn varint(&mut self) -> Option<u64> {
        read_varint(&mut self.0)
    }

    /// Read as many bytes as the variable-length integer before them says.
    #[inline]
    pub fn length_prefixed(&mut self) -> Option<&'a [u8]> {
        let length = self.varint()?;
        self.bytes(usize::try_from(length).ok()?)
    }

    /// Skip `n` bytes.
    #[inline]
    pub fn skip(&mut self, n: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(n).ok()?..)?;
        Some(())
    }

    /// Skip `n` variable-length integers.
    #[inline]
    pub fn skip_varints(&mut self, n: usize) -> Option<()> {
        (0..n).try_for_each(|_| self.varint().map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 9000, appendix A.1.
    const EXAMPLES: [(u64, &[u8]); 4] = [
        (37, &[0x25]),
        (15_293, &[0x7b, 0xbd]),
        (494_878_333, &[0x9d, 0x7f, 0x3e, 0x7d]),
        (
            151_288_809_941_952_652,
            &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c],
        ),
    ];

    #[test]
    fn varints_are_encoded_as_in_the_rfc() {
        for (value, wire) in EXAMPLES {
            let mut written = Vec::new();
            write_varint(&mut written, value);
            assert_eq!(written, wire);
            assert_eq!(read_varint(&mut &wire[..]), Some(value));
            let mut short = &wire[..wire.len() - 1];
            assert_eq!(read_varint(&mut short), None);
            assert_eq!(short.len(), wire.len() - 1);
        }
        // A longer form than needed.
        assert_eq!(read_varint(&mut &[0x40, 0x25][..]), Some(37));
    }

    #[test]
    fn fields_are_read_in_order() {
        let mut reader = Reader(&[7, 1, 2, 3, 2, 8, 9, 0x40, 0, 5, 6]);
        assert_eq!(reader.byte(), Some(7));
        assert_eq!(reader.array(), Some([1, 2, 3]));
        assert_eq!(reader.length_prefixed(), Some(&[8, 9][..]));
        assert_eq!(reader.skip_varints(1), Some(()));
        assert_eq!(reader.bytes(3), None);
        assert_eq!(reader.skip(1), Some(()));
        assert_eq!(reader.bytes(1), Some(&[6][..]));
        assert_eq!((reader.byte(), reader.skip(1)), (None, None));
    }

    proptest! {
        #[test]
        fn varints_survive_a_round_trip(value in 0..1u64 << 62, rest: Vec<u8>) {
            let mut wire = Vec::new();
            write_varint(&mut wire, value);
            wire.extend(&rest);
            let mut left = &wire[..];
            prop_assert_eq!(read_varint(&mut left), Some(value));
            prop_assert_eq!(left, &rest[..]);
        }
    }
}
