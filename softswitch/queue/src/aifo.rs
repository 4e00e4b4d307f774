// SPDX-License-Identifier: Apache-2.0
//! AIFO's admission control (Yu et al., SIGCOMM 2021) with exact ranks; `p4src/control/aifo.p4` works on rank codes.

use std::collections::VecDeque;

/// Admits a packet if at most `limits[s]` packets wait, where `s` is the number of smaller ranks in a sliding window of samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aifo {
    limits: Vec<u64>,
    sample: u64,
    passed: u64,
    /// The latest sampled ranks, oldest first; at most `limits.len() - 1`.
    window: VecDeque<u32>,
}

impl Aifo {
    /// Creates an admission control with `limits[s]` for `s` smaller ranks, where `s` is at most the window's length.
    ///
    /// One packet in `sample` enters the window, beginning with the first.
    ///
    /// # Panics
    /// If there are no limits, or `sample` is 0.
    pub fn new(limits: Vec<u64>, sample: u64) -> Self {
        assert!(!limits.is_empty(), "AIFO needs at least one limit");
        assert!(sample > 0, "the sample interval must not be 0");
        Self {
            window: VecDeque::with_capacity(limits.len() - 1),
            limits,
            sample,
            passed: 0,
        }
    }

    /// Decides whether a packet may join `waiting` packets, then samples its rank. An empty slot of the window counts as not smaller.
    pub fn admits(&mut self, rank: u32, waiting: u64) -> bool {
        let smaller = self.window.iter().filter(|&&it| it < rank).count();
        let length = self.limits.len() - 1;
        if self.passed == 0 && length > 0 {
            if self.window.len() == length {
                self.window.pop_front();
            }
            self.window.push_back(rank);
        }
        self.passed = (self.passed + 1) % self.sample;
        waiting <= self.limits[smaller]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C = 20, k = 0.1, a window of four: floor(20 (1 - s 0.9 / 4)).
    fn aifo(sample: u64) -> Aifo {
        Aifo::new(vec![20, 15, 11, 6, 2], sample)
    }

    #[test]
    fn fuller_queue_admits_only_smaller_ranks() {
        let mut aifo = aifo(1);
        for (rank, waiting, expected) in [
            (50, 20, true), // the window is empty
            (40, 20, true),
            (60, 12, false), // two are smaller; a dropped packet is sampled, too
            (60, 11, true),  // an equal rank is not smaller
            (45, 16, false), // 50, 40, 60, 60: one is smaller
            (45, 15, true),  // 40, 60, 60, 45
            (70, 3, false),  // 60, 60, 45, 45: all are smaller
            (70, 2, true), // 60, 45, 45, 70: three are smaller, but up to k C every packet is admitted
        ] {
            assert_eq!(
                aifo.admits(rank, waiting),
                expected,
                "rank {rank} with {waiting} waiting"
            );
        }
    }

    #[test]
    fn window_samples_one_packet_in_n() {
        let mut aifo = aifo(3);
        for rank in 1..=7 {
            aifo.admits(rank, 0);
        }
        assert_eq!(aifo.window, [1, 4, 7]);
    }
}
