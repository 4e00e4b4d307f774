// SPDX-License-Identifier: Apache-2.0
//! Ternary, optional and range match.
//!
//! Entries with mask bits in common share a hash table, a tuple (TupleMerge: Daly et al., IEEE/ACM Transactions on
//! Networking 27(4), 2019). A tuple with fewer bits serves more combinations of masks; the number of entries that agree in
//! these bits is limited. All other entries, such as those with unique masks, are compared in blocks of 512. Tuples are
//! made from full blocks, so small tables do not have any.

use hashbrown::HashTable;

use super::blocks::Blocks;
use super::entries::{Entries, Rank};
use super::hash;
use super::relax::propose;
use super::tuple::{NIL, Tuple, covers};
use crate::program::criteria::Criteria;
use crate::program::key::KeyShape;

/// Maximum number of tuples: a lookup may try all of them.
const TUPLES: usize = 64;

#[derive(Debug, Clone)]
pub(super) struct Ternary {
    /// All entries, by their full criteria.
    known: HashTable<u32>,
    /// Entries outside the tuples.
    rest: Blocks,
    tuples: Vec<Tuple>,
    /// Tuples with entries and their best priorities, best first.
    order: Vec<(i32, u32)>,
    /// The same tuples, most bits first.
    fitting: Vec<u32>,
    /// The tuple of each slot; `NIL` for entries in blocks.
    home: Vec<u32>,
    /// The next entry in each slot's chain.
    next: Vec<u32>,
}

fn hash_record(record: &[u64], priority: i32) -> u64 {
    hash(record.iter().copied().chain([priority as u64]))
}

impl Ternary {
    pub(super) fn new(entries: &Entries, shape: &KeyShape) -> Self {
        Self {
            known: HashTable::new(),
            rest: Blocks::new(entries, shape),
            tuples: Vec::new(),
            order: Vec::new(),
            fitting: Vec::new(),
            home: Vec::new(),
            next: Vec::new(),
        }
    }

    /// Returns the entry with exactly these criteria.
    pub(super) fn find(&self, entries: &Entries, c: &Criteria) -> Option<u32> {
        let record = || c.values.iter().chain(&c.masks).chain(&c.ranges).copied();
        let h = hash(record().chain([c.priority as u64]));
        let same = |&s: &u32| {
            entries.priority(s) == c.priority && entries.asked(s).iter().copied().eq(record())
        };
        self.known.find(h, same).copied()
    }

    pub(super) fn insert(&mut self, entries: &Entries, shape: &KeyShape, slot: u32) {
        let hash = |s: u32| hash_record(entries.asked(s), entries.priority(s));
        self.known.insert_unique(hash(slot), slot, |&s| hash(s));
        self.home.resize(entries.capacity(), NIL);
        self.next.resize(entries.capacity(), NIL);
        if self.place(entries, slot) {
            return;
        }
        self.home[slot as usize] = NIL;
        let rank = entries.rank(slot);
        if let Some(full) = self.rest.full(rank).map(<[u32]>::to_vec) {
            self.relieve(full, entries, shape);
            self.rest.make_room(rank, entries, shape);
        }
        self.rest.insert(slot, entries, shape);
    }

    /// Adds an entry to the tuple with the most bits that accepts it.
    fn place(&mut self, entries: &Entries, slot: u32) -> bool {
        let masks = entries.masks(slot);
        for i in 0..self.fitting.len() {
            let t = self.fitting[i];
            let tuple = &mut self.tuples[t as usize];
            if covers(masks, &tuple.masks) && tuple.insert(slot, entries, &mut self.next) {
                self.home[slot as usize] = t;
                self.reorder(t);
                return true;
            }
        }
        false
    }

    /// Moves entries of a full block into tuples, and makes a new one if it would take enough of them.
    fn relieve(&mut self, mut slots: Vec<u32>, entries: &Entries, shape: &KeyShape) {
        self.move_to_tuples(&mut slots, entries, shape);
        if self.order.len() == TUPLES {
            return;
        }
        let Some(masks) = propose(&slots, entries, shape, &self.tuples) else {
            return;
        };
        let unused = self.tuples.iter().position(|t| t.len == 0);
        let t = unused.unwrap_or(self.tuples.len());
        let tuple = Tuple::new(masks);
        if t == self.tuples.len() {
            self.tuples.push(tuple);
        } else {
            self.tuples[t] = tuple;
        }
        let bits = |t: &Tuple| t.masks.iter().map(|m| m.count_ones()).sum::<u32>();
        let (tuples, own) = (&self.tuples, bits(&self.tuples[t]));
        let at = self
            .fitting
            .partition_point(|&i| bits(&tuples[i as usize]) >= own);
        self.fitting.insert(at, t as u32);
        self.move_to_tuples(&mut slots, entries, shape);
    }

    /// Moves entries from the blocks into the tuples that accept them.
    fn move_to_tuples(&mut self, slots: &mut Vec<u32>, entries: &Entries, shape: &KeyShape) {
        slots.retain(|&slot| {
            let placed = self.place(entries, slot);
            if placed {
                self.rest.remove(slot, entries, shape);
            }
            !placed
        });
    }

    pub(super) fn remove(&mut self, entries: &Entries, shape: &KeyShape, slot: u32) {
        let h = hash_record(entries.asked(slot), entries.priority(slot));
        let found = self.known.find_entry(h, |&s| s == slot);
        found
            .unwrap_or_else(|_| unreachable!("used slots are indexed"))
            .remove();
        match self.home[slot as usize] {
            NIL => self.rest.remove(slot, entries, shape),
            t => {
                self.tuples[t as usize].remove(slot, entries, &mut self.next);
                self.reorder(t);
            }
        }
    }

    /// Restores the order of the tuples after a tuple's best priority may have changed.
    fn reorder(&mut self, tuple: u32) {
        let Tuple { len, best, .. } = self.tuples[tuple as usize];
        if let Some(i) = self.order.iter().position(|&(_, t)| t == tuple) {
            if len != 0 && self.order[i].0 == best {
                return;
            }
            self.order.remove(i);
        }
        if len == 0 {
            self.fitting.retain(|&t| t != tuple);
            return;
        }
        let i = self.order.partition_point(|&(p, _)| p >= best);
        self.order.insert(i, (best, tuple));
    }

    /// Returns the matching entry with the highest priority; among equals, the oldest.
    #[inline]
    pub(super) fn lookup(&self, entries: &Entries, shape: &KeyShape, key: &[u64]) -> Option<u32> {
        let mut best: Option<(Rank, u32)> = None;
        for &(priority, t) in &self.order {
            if best.is_some_and(|((better, _), _)| -better > priority) {
                break;
            }
            let tuple = &self.tuples[t as usize];
            best = tuple.lookup(key, entries, &self.next, shape, best);
        }
        let best = self.rest.lookup(key, entries, shape, best);
        best.map(|(_, slot)| slot)
    }
}
