// SPDX-License-Identifier: Apache-2.0
//! Reassembly of the CRYPTO stream (RFC 9000, 7.5), in any order and up to a bound.

use crate::Fault;

const WORD: usize = 64;

/// The CRYPTO data of one first flight so far.
#[derive(Clone, Debug)]
pub struct Crypto {
    bytes: [u8; Self::BOUND],
    /// One bit for each byte that has arrived.
    have: [u64; Self::BOUND / WORD],
    /// Offset at and after which no byte has arrived.
    end: usize,
    /// Offset before which all bytes have arrived.
    prefix: usize,
}

impl Default for Crypto {
    fn default() -> Self {
        Self {
            bytes: [0; Self::BOUND],
            have: [0; Self::BOUND / WORD],
            end: 0,
            prefix: 0,
        }
    }
}

impl Crypto {
    /// Most bytes of a ClientHello: twice the least buffer that RFC 9000, 7.5, requires. Post-quantum key shares, a
    /// session ticket and an encrypted ClientHello together need less than half of it.
    pub const BOUND: usize = 8192;

    /// Remove all data.
    pub fn clear(&mut self) {
        self.have[..self.end.div_ceil(WORD)].fill(0);
        self.end = 0;
        self.prefix = 0;
    }

    /// Return whether no data has arrived.
    pub const fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// Return the data up to the first gap.
    pub fn prefix(&self) -> &[u8] {
        &self.bytes[..self.prefix]
    }

    /// Add the data of a frame. Bytes that have arrived already stay: data at an offset never changes (RFC 9000,
    /// 2.2), so a client that sends other data gains nothing.
    ///
    /// # Errors
    /// [`Fault::CryptoTooLong`].
    #[inline]
    pub fn insert(&mut self, offset: u64, data: &[u8]) -> Result<(), Fault> {
        let start = usize::try_from(offset).ok().filter(|at| *at <= Self::BOUND);
        let start = start.ok_or(Fault::CryptoTooLong)?;
        let end = start + data.len();
        if end > Self::BOUND {
            return Err(Fault::CryptoTooLong);
        }
        let fresh = start.max(self.prefix);
        if fresh >= end {
            return Ok(());
        }
        if fresh >= self.end || fresh == self.prefix && end >= self.end && self.prefix == self.end {
            self.bytes[fresh..end].copy_from_slice(&data[fresh - start..]);
            self.mark(fresh, end);
        } else {
            for at in fresh..end {
                let (word, bit) = (at / WORD, 1 << (at % WORD));
                if self.have[word] & bit == 0 {
                    self.bytes[at] = data[at - start];
                    self.have[word] |= bit;
                }
            }
        }
        self.end = self.end.max(end);
        self.advance();
        Ok(())
    }

    #[inline]
    fn mark(&mut self, start: usize, end: usize) {
        for word in start / WORD..end.div_ceil(WORD) {
            let first = start.max(word * WORD) - word * WORD;
            let count = end.min((word + 1) * WORD) - word * WORD - first;
            self.have[word] |= (u64::MAX >> (WORD - count)) << first;
        }
    }

    #[inline]
    fn advance(&mut self) {
        while self.prefix < self.end {
            let offset = self.prefix % WORD;
            let run = (self.have[self.prefix / WORD] >> offset).trailing_ones() as usize;
            self.prefix += run;
            if offset + run < WORD {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn data_beyond_the_bound_is_rejected() {
        let mut crypto = Crypto::default();
        let bound = Crypto::BOUND as u64;
        for (offset, n) in [(bound, 1), (bound - 1, 2), (u64::MAX, 1), (1 << 62, 0)] {
            assert_eq!(
                crypto.insert(offset, &[7; 2][..n]),
                Err(Fault::CryptoTooLong)
            );
        }
        assert!(crypto.is_empty());
        assert_eq!(crypto.insert(bound - 1, &[7]), Ok(()));
        assert_eq!(crypto.prefix(), []);
    }

    proptest! {
        #[test]
        fn pieces_in_any_order_are_reassembled(
            pieces in prop::collection::vec((0..700_usize, 0..300_usize), 0..24),
        ) {
            let whole: Vec<u8> = (0..1000).map(|n| (n % 251) as u8).collect();
            let mut crypto = Crypto::default();
            let mut there = [false; 1000];
            for _ in 0..2 {
                for (start, n) in &pieces {
                    crypto.insert(*start as u64, &whole[*start..start + n]).unwrap();
                    there[*start..start + n].fill(true);
                    let expected = there.iter().take_while(|t| **t).count();
                    prop_assert_eq!(crypto.prefix(), &whole[..expected]);
                }
                crypto.clear();
                there.fill(false);
            }
        }
    }
}
