//! AIFO's admission to a queue (Yu et al., SIGCOMM 2021), with exact ranks: what `p4src/control/aifo.p4` does by codes.

use std::collections::VecDeque;

/// Who may enter: a packet whose rank more than `s` of a sliding window of sampled ranks undercut may meet no more than `limits[s]` packets waiting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aifo {
    limits: Vec<u64>,
    sample: u64,
    passed: u64,
    /// Ranks that were sampled last, the oldest first: at most one less than there are limits.
    window: VecDeque<u32>,
}

impl Aifo {
    /// With a limit for each number of smaller ranks, from 0 to the length of the window; one packet in `sample` enters the window, the first included.
    ///
    /// # Panics
    /// If there are no limits, or `sample` is 0.
    pub fn new(limits: Vec<u64>, sample: u64) -> Self {
        assert!(!limits.is_empty() && sample > 0, "no limits, or no sample");
        Self {
            window: VecDeque::with_capacity(limits.len() - 1),
            limits,
            sample,
            passed: 0,
        }
    }

    /// Whether a packet of that rank is admitted to so many that wait; then it may enter the window. A slot never filled is smaller than nobody's.
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
    fn the_fuller_the_queue_the_smaller_the_rank_must_be() {
        let mut aifo = aifo(1);
        for (rank, waiting, expected) in [
            (50, 20, true), // the window is empty
            (40, 20, true),
            (60, 12, false), // two are smaller; refused, it enters the window all the same
            (60, 11, true),  // its equal is not smaller
            (45, 16, false), // 50, 40, 60, 60: one is smaller
            (45, 15, true),  // 40, 60, 60, 45
            (70, 3, false),  // 60, 60, 45, 45: all are
            (70, 2, true),   // 60, 45, 45, 70: three, but k C is room for everybody
        ] {
            assert_eq!(
                aifo.admits(rank, waiting),
                expected,
                "rank {rank} with {waiting} waiting"
            );
        }
    }

    #[test]
    fn one_in_so_many_is_sampled() {
        let mut aifo = aifo(3);
        for rank in 1..=7 {
            aifo.admits(rank, 0);
        }
        assert_eq!(aifo.window, [1, 4, 7]);
    }
}
