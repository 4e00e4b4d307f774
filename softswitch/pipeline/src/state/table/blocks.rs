// SPDX-License-Identifier: Apache-2.0
//! Any number of ternary entries in blocks. Each block covers a range of the order of precedence, so the first match is
//! the best one.

use super::block::{Block, CAPACITY};
use super::entries::{Entries, Rank};
use crate::program::key::KeyShape;

#[derive(Debug, Clone)]
pub(super) struct Blocks(Vec<Block>);

const FIRST: Rank = (i32::MIN, 0);

impl Blocks {
    pub(super) fn new(entries: &Entries, shape: &KeyShape) -> Self {
        Self(vec![Block::new(FIRST, Vec::new(), entries, shape)])
    }

    fn block_of(&self, rank: Rank) -> usize {
        self.0.partition_point(|b| b.first <= rank) - 1
    }

    /// Returns the entries of the block for an entry of this rank, if it is full.
    pub(super) fn full(&self, rank: Rank) -> Option<&[u32]> {
        let slots = self.0[self.block_of(rank)].slots();
        (slots.len() == CAPACITY).then_some(slots)
    }

    /// Adds an entry to a block that is not full.
    pub(super) fn insert(&mut self, slot: u32, entries: &Entries, shape: &KeyShape) {
        let i = self.block_of(entries.rank(slot));
        self.0[i].insert(slot, entries, shape);
    }

    /// Makes room for entries around this rank. Entries that arrive in order fill one block after the other; other entries
    /// split their block in halves.
    pub(super) fn make_room(&mut self, rank: Rank, entries: &Entries, shape: &KeyShape) {
        let i = self.block_of(rank);
        let mut low = self.0[i].slots().to_vec();
        if low.len() <= CAPACITY - CAPACITY / 8 {
            return;
        }
        low.sort_by_key(|&s| entries.rank(s));
        let at = match low.partition_point(|&s| entries.rank(s) < rank) {
            end if end == 0 || end == low.len() => end,
            _ => low.len() / 2,
        };
        let high = low.split_off(at);
        let first = high.first().map_or(rank, |&s| entries.rank(s));
        self.0[i] = Block::new(self.0[i].first, low, entries, shape);
        self.0
            .insert(i + 1, Block::new(first, high, entries, shape));
    }

    pub(super) fn remove(&mut self, slot: u32, entries: &Entries, shape: &KeyShape) {
        let i = self.block_of(entries.rank(slot));
        self.0[i].remove(slot, entries);
        for i in [i, i.wrapping_sub(1)] {
            self.merge(i, entries, shape);
        }
    }

    /// Merges a block with the next if both together are at most half full.
    fn merge(&mut self, i: usize, entries: &Entries, shape: &KeyShape) {
        let [Some(a), Some(b)] = [self.0.get(i), self.0.get(i.wrapping_add(1))] else {
            return;
        };
        if a.slots().len() + b.slots().len() > CAPACITY / 2 {
            return;
        }
        let mut slots = [a.slots(), b.slots()].concat();
        slots.sort_by_key(|&s| entries.rank(s));
        self.0[i] = Block::new(a.first, slots, entries, shape);
        self.0.remove(i + 1);
    }

    /// Returns the best match if it is better than `best`.
    #[inline]
    pub(super) fn lookup(
        &self,
        key: &[u64],
        entries: &Entries,
        shape: &KeyShape,
        mut best: Option<(Rank, u32)>,
    ) -> Option<(Rank, u32)> {
        for block in &self.0 {
            if best.is_some_and(|(rank, _)| rank < block.first) {
                break;
            }
            if let Some(found) = block.lookup(key, entries, shape)
                && best.is_none_or(|b| found < b)
            {
                best = Some(found);
            }
        }
        best
    }
}
