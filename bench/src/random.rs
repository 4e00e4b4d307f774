// SPDX-License-Identifier: Apache-2.0
//! Further random draws for benchmarks.

use softswitch_random::Rng;

/// Random draws.
pub trait Draws {
    /// Draws a port uniformly from `low..=high`.
    fn port(&mut self, range: (u16, u16)) -> u16;

    /// Draws one of the items by their shares in percent.
    fn share<T: Copy>(&mut self, shares: &[(usize, T)]) -> T;

    /// Shuffles the items (Fisher and Yates).
    fn shuffle<T>(&mut self, items: &mut [T]);
}

impl Draws for Rng {
    fn port(&mut self, (low, high): (u16, u16)) -> u16 {
        low + self.below(usize::from(high - low) + 1) as u16
    }

    fn share<T: Copy>(&mut self, shares: &[(usize, T)]) -> T {
        let mut ticket = self.below(shares.iter().map(|s| s.0).sum());
        for &(share, item) in shares {
            if ticket < share {
                return item;
            }
            ticket -= share;
        }
        unreachable!("the ticket is less than the sum")
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}
