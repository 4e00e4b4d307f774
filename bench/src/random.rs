//! SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014): a seed fixes every draw
//! on every machine.

pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Uniform in `0..n`.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// Uniform in `low..=high`.
    pub fn port(&mut self, (low, high): (u16, u16)) -> u16 {
        low + self.below(usize::from(high - low) + 1) as u16
    }

    /// One of these, each with its share in percent.
    pub fn pick<T: Copy>(&mut self, shares: &[(usize, T)]) -> T {
        let mut ticket = self.below(shares.iter().map(|s| s.0).sum());
        for &(share, item) in shares {
            if ticket < share {
                return item;
            }
            ticket -= share;
        }
        unreachable!("the ticket is less than the sum")
    }

    /// In random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}
