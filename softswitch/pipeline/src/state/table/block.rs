// SPDX-License-Identifier: Apache-2.0
//! A block of up to 512 ternary entries, compared with a key in parallel.
//!
//! For each digit of the key (four bits) and each value of the digit there is a lane: one bit per entry, set if the entry
//! allows that value. The matches of a key are the conjunction of its digits' lanes (the bit vectors of Lakshman and
//! Stiliadis, ACM SIGCOMM 1998, over digits instead of fields). The cost does not depend on the masks.

use super::entries::{Entries, Rank};
use crate::program::key::{KeyShape, digit};

pub(super) const CAPACITY: usize = 512;
/// Number of entries up to which they are compared one by one.
const SCAN: usize = 16;

#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Lane([u64; CAPACITY / 64]);

impl Lane {
    /// The first `n` bits.
    fn ones(n: usize) -> Self {
        let word = |i| match n.saturating_sub(i * 64) {
            rest @ 0..64 => (1 << rest) - 1,
            _ => u64::MAX,
        };
        Self(std::array::from_fn(word))
    }

    fn has(&self, i: usize) -> bool {
        self.0[i / 64] >> (i % 64) & 1 != 0
    }

    fn set(&mut self, i: usize, on: bool) {
        self.0[i / 64] = self.0[i / 64] & !(1 << (i % 64)) | u64::from(on) << (i % 64);
    }
}

#[derive(Debug, Clone)]
pub(super) struct Block {
    /// Lower bound of the ranks of the block's entries.
    pub(super) first: Rank,
    /// In order of precedence while they are compared one by one; with lanes, an entry's position is its bit.
    slots: Vec<u32>,
    lanes: Option<Lanes>,
}

/// The lanes of the digits that an entry depends on: sixteen per digit.
#[derive(Debug, Clone, Default)]
struct Lanes {
    digits: Vec<u16>,
    lanes: Vec<Lane>,
}

impl Lanes {
    fn new(slots: &[u32], entries: &Entries, shape: &KeyShape) -> Self {
        let mut new = Self::default();
        for (i, &slot) in slots.iter().enumerate() {
            new.set(i, entries.asked(slot), shape);
        }
        new.sort();
        new
    }

    /// Sorts the digits that exclude the most entries to the front.
    fn sort(&mut self) {
        let ones =
            |lanes: &[Lane]| -> u32 { lanes.iter().flat_map(|l| l.0).map(u64::count_ones).sum() };
        let mut order: Vec<(u32, u16, &[Lane])> = self
            .digits
            .iter()
            .zip(self.lanes.chunks(16))
            .map(|(&n, lanes)| (ones(lanes), n, lanes))
            .collect();
        order.sort_by_key(|&(ones, n, _)| (ones, n));
        let lanes = order.iter().flat_map(|o| o.2).copied().collect();
        self.digits = order.iter().map(|o| o.1).collect();
        self.lanes = lanes;
    }

    /// Adds an entry at position `i`, the last.
    fn set(&mut self, i: usize, record: &[u64], shape: &KeyShape) {
        for &n in &shape.digits {
            let allowed = shape.allowed(record, n);
            let at = match self.digits.iter().position(|&d| d == n) {
                Some(at) => at,
                None if allowed == u16::MAX => continue,
                None => {
                    self.digits.push(n);
                    self.lanes.resize(self.digits.len() * 16, Lane::ones(i));
                    self.digits.len() - 1
                }
            };
            for (value, lane) in self.lanes[at * 16..][..16].iter_mut().enumerate() {
                lane.set(i, allowed >> value & 1 != 0);
            }
        }
    }

    /// Moves the last entry to position `i`.
    fn swap_remove(&mut self, i: usize, last: usize) {
        for lane in &mut self.lanes {
            lane.set(i, lane.has(last));
            lane.set(last, false);
        }
    }

    #[inline]
    fn matches(&self, key: &[u64], len: usize) -> Option<Lane> {
        let mut hits = Lane::ones(len);
        for (&n, lanes) in self.digits.iter().zip(self.lanes.chunks_exact(16)) {
            let lane = &lanes[digit(key, n)];
            let mut any = 0;
            for (hit, bits) in hits.0.iter_mut().zip(lane.0) {
                *hit &= bits;
                any |= *hit;
            }
            if any == 0 {
                return None;
            }
        }
        Some(hits)
    }
}

impl Block {
    /// Creates a block with these entries, which are in order of precedence.
    pub(super) fn new(first: Rank, slots: Vec<u32>, entries: &Entries, shape: &KeyShape) -> Self {
        let many = slots.len() > SCAN;
        let lanes = many.then(|| Lanes::new(&slots, entries, shape));
        Self {
            first,
            slots,
            lanes,
        }
    }

    /// In any order.
    pub(super) fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// Adds an entry to a block that has room.
    pub(super) fn insert(&mut self, slot: u32, entries: &Entries, shape: &KeyShape) {
        if let Some(lanes) = &mut self.lanes {
            lanes.set(self.slots.len(), entries.asked(slot), shape);
            self.slots.push(slot);
            return;
        }
        let rank = entries.rank(slot);
        let at = self.slots.partition_point(|&s| entries.rank(s) < rank);
        self.slots.insert(at, slot);
        if self.slots.len() > SCAN {
            self.lanes = Some(Lanes::new(&self.slots, entries, shape));
        }
    }

    pub(super) fn remove(&mut self, slot: u32, entries: &Entries) {
        let at = self.slots.iter().position(|&s| s == slot);
        let at = at.expect("the entry is in the block of its rank");
        let Some(lanes) = &mut self.lanes else {
            self.slots.remove(at);
            return;
        };
        lanes.swap_remove(at, self.slots.len() - 1);
        self.slots.swap_remove(at);
        if self.slots.len() <= SCAN / 2 {
            self.lanes = None;
            self.slots.sort_by_key(|&s| entries.rank(s));
        }
    }

    #[inline]
    pub(super) fn lookup(
        &self,
        key: &[u64],
        entries: &Entries,
        shape: &KeyShape,
    ) -> Option<(Rank, u32)> {
        let Some(lanes) = &self.lanes else {
            let mut slots = self.slots.iter().copied();
            let slot = slots.find(|&s| entries.matches(s, key, shape))?;
            return Some((entries.rank(slot), slot));
        };
        let hits = lanes.matches(key, self.slots.len())?;
        let mut best: Option<(Rank, u32)> = None;
        for (word, mut bits) in hits.0.into_iter().enumerate() {
            while bits != 0 {
                let slot = self.slots[word * 64 + bits.trailing_zeros() as usize];
                bits &= bits - 1;
                let rank = entries.rank(slot);
                if best.is_none_or(|(b, _)| rank < b) && entries.in_ranges(slot, key, shape) {
                    best = Some((rank, slot));
                }
            }
        }
        best
    }
}
