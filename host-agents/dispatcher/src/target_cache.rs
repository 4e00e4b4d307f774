// SPDX-License-Identifier: Apache-2.0
//! Cache of the targets of recent first flights.
//!
//! Later packets of a flight that name no service need it, and it saves the decryption of retransmissions. Its memory is fixed.
//! The selection is a function of the flight, so it can be repeated for an evicted flight.

use crate::targets::Targets;

/// A two-way set-associative cache with LRU replacement in each set.
#[derive(Debug)]
pub struct TargetCache {
    /// Each set has its more recently used entry first. A key of 0 marks an empty entry.
    sets: Box<[[(u64, Targets); 2]]>,
}

impl TargetCache {
    /// Creates a cache for about `capacity` flights.
    pub fn new(capacity: usize) -> Self {
        let sets = (capacity / 2).max(1).next_power_of_two();
        Self {
            sets: vec![Default::default(); sets].into(),
        }
    }

    fn set(&mut self, key: u64) -> &mut [(u64, Targets); 2] {
        let index = key as usize & (self.sets.len() - 1);
        &mut self.sets[index]
    }

    /// Returns the targets of the flight `key`, if they are cached.
    #[inline]
    pub fn get(&mut self, key: u64) -> Option<Targets> {
        let set = self.set(key);
        if set[0].0 != key {
            if set[1].0 != key {
                return None;
            }
            set.swap(0, 1);
        }
        Some(set[0].1)
    }

    /// Caches the targets of the flight `key`.
    #[inline]
    pub fn insert(&mut self, key: u64, targets: Targets) {
        let set = self.set(key);
        if set[0].0 != key {
            set[1] = set[0];
        }
        set[0] = (key, targets);
    }
}
