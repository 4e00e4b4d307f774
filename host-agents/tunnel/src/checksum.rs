// SPDX-License-Identifier: Apache-2.0
//! The Internet checksum (RFC 1071), computed in the machine's byte order, which only swaps the bytes of the result.

/// An unfinished sum.
#[derive(Clone, Copy, Default)]
pub struct Sum(u64);

impl Sum {
    /// Add `bytes`. Only the last piece may have an odd length.
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

    /// Add a 16-bit number.
    #[inline]
    pub fn word(self, word: u16) -> Self {
        Self(self.0 + u64::from(word.to_be()))
    }

    /// Return the checksum as a header carries it. If the sum included a correct checksum, the result is 0.
    #[inline]
    pub fn finish(self) -> [u8; 2] {
        let mut sum = self.0;
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        (!(sum as u16)).to_ne_bytes()
    }

    /// Return whether a sum that includes a checksum shows that the checksum is correct.
    #[inline]
    pub fn is_valid(self) -> bool {
        self.finish() == [0, 0]
    }
}
