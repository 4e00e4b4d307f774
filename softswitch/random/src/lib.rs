// SPDX-License-Identifier: Apache-2.0
//! Reproducible random numbers: of the `random` extern, and of the simulator, benchmarks and tests.
//!
//! The published results of simulations depend on the exact numbers, so the generator must not be replaced by one of
//! another crate, whose numbers may change.

#![warn(missing_docs)]

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// Creates a generator; any seed is good.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "the sequence is infinite, so an Option would be useless"
    )]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Returns a uniform number in `low..=high`, where `low <= high`.
    #[inline]
    pub fn uniform(&mut self, low: u64, high: u64) -> u64 {
        let span = u128::from(high - low) + 1;
        low + ((u128::from(self.next()) * span) >> 64) as u64
    }

    /// Returns a uniform number in `0..n`, where `n` is not 0.
    #[inline]
    pub fn below(&mut self, n: usize) -> usize {
        self.uniform(0, n as u64 - 1) as usize
    }

    /// Returns true with probability `1/n`, where `n` is not 0.
    #[inline]
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Returns a random element of a non-empty slice.
    #[inline]
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_stays_in_range_and_reaches_its_ends() {
        let mut rng = Rng::new(7);
        let draws: Vec<u64> = (0..1000).map(|_| rng.uniform(3, 6)).collect();
        assert_eq!(draws.iter().min(), Some(&3));
        assert_eq!(draws.iter().max(), Some(&6));
        assert_eq!(Rng::new(7).uniform(5, 5), 5);
        Rng::new(7).uniform(0, u64::MAX);
    }
}
