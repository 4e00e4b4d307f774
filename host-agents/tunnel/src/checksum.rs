//! The Internet checksum (RFC 1071), in the machine's byte order: a sum is the same in either, bytes swapped.

/// An unfinished sum.
#[derive(Clone, Copy, Default)]
pub struct Sum(u64);

impl Sum {
    /// Adds `bytes`; only the last piece may have an odd length.
    #[inline]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<4>();
        let sum: u64 = words
            .iter()
            .map(|w| u64::from(u32::from_ne_bytes(*w)))
            .sum();
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        Self(self.0 + sum + u64::from(u32::from_ne_bytes(last)))
    }

    /// Adds a number of 16 bits.
    #[inline]
    pub fn word(self, word: u16) -> Self {
        Self(self.0 + u64::from(word.to_be()))
    }

    /// The checksum as it stands in a header; 0 when the sum was over one that holds.
    #[inline]
    pub fn finish(self) -> [u8; 2] {
        let mut sum = self.0;
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        (!(sum as u16)).to_ne_bytes()
    }

    /// Whether a sum that includes a checksum says that it is right.
    #[inline]
    pub fn holds(self) -> bool {
        self.finish() == [0, 0]
    }
}
