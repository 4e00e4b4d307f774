//! Variable-length integers (RFC 9000, 16), and slices read from the front.

/// Bytes that are read from the front.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    #[inline]
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    #[inline]
    pub fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    #[inline]
    pub fn varint(&mut self) -> Option<u64> {
        let first = self.byte()?;
        let more = self.take((1 << (first >> 6)) - 1)?;
        let start = u64::from(first & 0x3f);
        Some(more.iter().fold(start, |n, byte| n << 8 | u64::from(*byte)))
    }

    /// Takes as many bytes as a variable-length integer in front says.
    #[inline]
    pub fn counted(&mut self) -> Option<&'a [u8]> {
        let n = self.varint()?;
        self.take(usize::try_from(n).ok()?)
    }
}
