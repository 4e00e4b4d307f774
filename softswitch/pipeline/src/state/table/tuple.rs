// SPDX-License-Identifier: Apache-2.0
//! A tuple: a hash table of ternary entries over mask bits that they have in common.

use hashbrown::HashTable;
use smallvec::SmallVec;

use super::entries::{Entries, Rank};
use super::hash;
use crate::program::key::KeyShape;

/// The bits of a tuple, which are in the masks of all its entries.
pub(super) type Masks = SmallVec<[u64; 2]>;

/// No entry.
pub(super) const NIL: u32 = u32::MAX;
/// Maximum number of entries that agree in a tuple's bits.
const CHAIN: usize = 8;

#[derive(Debug, Clone)]
pub(super) struct Tuple {
    pub(super) masks: Masks,
    /// First entry of each chain of entries that agree, in order of precedence.
    heads: HashTable<u32>,
    pub(super) len: usize,
    /// Upper bound of the entries' priorities.
    pub(super) best: i32,
    /// Entries removed since `best` was exact.
    removed: usize,
}

pub(super) fn masked<'a>(key: &'a [u64], masks: &'a [u64]) -> impl Iterator<Item = u64> + 'a {
    key.iter().zip(masks).map(|(k, m)| k & m)
}

/// Returns true if a mask has all bits of another.
pub(super) fn covers(masks: &[u64], bits: &[u64]) -> bool {
    masks.iter().zip(bits).all(|(m, b)| b & !m == 0)
}

impl Tuple {
    pub(super) fn new(masks: Masks) -> Self {
        Self {
            masks,
            heads: HashTable::new(),
            len: 0,
            best: i32::MIN,
            removed: 0,
        }
    }

    #[inline]
    fn head(&self, key: &[u64], entries: &Entries) -> Option<u32> {
        let agrees = |&s: &u32| {
            let words = entries.values(s).iter().zip(key).zip(&self.masks);
            words.fold(0, |differ, ((v, k), m)| differ | (v ^ k) & m) == 0
        };
        self.heads
            .find(hash(masked(key, &self.masks)), agrees)
            .copied()
    }

    /// Returns the best match if it is better than `best`.
    #[inline]
    pub(super) fn lookup(
        &self,
        key: &[u64],
        entries: &Entries,
        next: &[u32],
        shape: &KeyShape,
        best: Option<(Rank, u32)>,
    ) -> Option<(Rank, u32)> {
        let mut at = self.head(key, entries).unwrap_or(NIL);
        while at != NIL {
            if entries.matches(at, key, shape) {
                let found = (entries.rank(at), at);
                return Some(best.map_or(found, |b| b.min(found)));
            }
            at = next[at as usize];
        }
        best
    }

    /// Adds an entry, whose masks have the tuple's bits, unless too many entries agree with it.
    pub(super) fn insert(&mut self, slot: u32, entries: &Entries, next: &mut [u32]) -> bool {
        let values = entries.values(slot);
        let rank = entries.rank(slot);
        next[slot as usize] = NIL;
        if let Some(head) = self.head(values, entries) {
            let after = |&s: &u32| Some(next[s as usize]).filter(|&n| n != NIL);
            let chain = || std::iter::successors(Some(head), after);
            if chain().count() >= CHAIN {
                return false;
            }
            let before = chain().take_while(|&s| entries.rank(s) < rank).last();
            match before {
                Some(before) => {
                    next[slot as usize] = next[before as usize];
                    next[before as usize] = slot;
                }
                None => {
                    next[slot as usize] = head;
                    self.set_head(head, Some(slot), entries);
                }
            }
        } else {
            let key = |s: u32| hash(masked(entries.values(s), &self.masks));
            self.heads.insert_unique(key(slot), slot, |&s| key(s));
        }
        self.len += 1;
        self.best = self.best.max(entries.priority(slot));
        true
    }

    /// Replaces the head of a chain, or removes the chain.
    fn set_head(&mut self, head: u32, new: Option<u32>, entries: &Entries) {
        let h = hash(masked(entries.values(head), &self.masks));
        let found = self.heads.find_entry(h, |&s| s == head);
        let mut entry = found.unwrap_or_else(|_| unreachable!("the hash table contains all heads"));
        match new {
            Some(new) => *entry.get_mut() = new,
            None => drop(entry.remove()),
        }
    }

    pub(super) fn remove(&mut self, slot: u32, entries: &Entries, next: &mut [u32]) {
        let head = self.head(entries.values(slot), entries);
        let head = head.expect("the entry is in its tuple");
        let after = next[slot as usize];
        if head == slot {
            self.set_head(head, (after != NIL).then_some(after), entries);
        } else {
            let mut at = head;
            while next[at as usize] != slot {
                at = next[at as usize];
            }
            next[at as usize] = after;
        }
        self.len -= 1;
        self.removed += 1;
        if self.removed > self.len {
            let best = self.heads.iter().map(|&s| entries.priority(s)).max();
            self.best = best.unwrap_or(i32::MIN);
            self.removed = 0;
        }
    }
}
