// SPDX-License-Identifier: Apache-2.0
//! A hash table with linear probing, whose layout is simple enough for native code to search it.

use super::hash;
use crate::state::view::Cell;

/// The records of entries by their tags. A record is in the cell with its home's index, or in the first free one after it.
#[derive(Debug, Clone, Default)]
pub(super) struct Cells {
    /// A power of two, or none.
    cells: Vec<Cell>,
    len: usize,
    /// True if tags are hashes already.
    is_hashed: bool,
}

/// Number of cells of the smallest table.
const LEAST: usize = 8;

/// Returns the tag of a key.
#[inline]
pub(super) fn tag(key: &[u64]) -> u64 {
    match key {
        [word] => *word,
        words => hash(words.iter().copied()),
    }
}

impl Cells {
    pub(super) fn new(words: usize) -> Self {
        Self {
            is_hashed: words != 1,
            ..Self::default()
        }
    }

    /// Returns the cells for native code.
    pub(super) fn as_slice(&self) -> &[Cell] {
        &self.cells
    }

    #[inline]
    fn home(&self, tag: u64) -> usize {
        let hash = if self.is_hashed { tag } else { hash([tag]) };
        hash as usize & (self.cells.len() - 1)
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.cells.len() - 1)
    }

    /// Returns the record with a tag that passes a test.
    #[inline]
    pub(super) fn find(&self, tag: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        if self.cells.is_empty() {
            return None;
        }
        let mut at = self.home(tag);
        loop {
            let cell = self.cells[at];
            if cell.record == 0 {
                return None;
            }
            if cell.tag == tag && is_it(cell.record) {
                return Some(cell.record);
            }
            at = self.after(at);
        }
    }

    /// Adds a record.
    pub(super) fn insert(&mut self, tag: u64, record: u32) {
        // At most five eighths are used, so that searches are short.
        if (self.len + 1) * 8 > self.cells.len() * 5 {
            self.grow();
        }
        self.put(Cell { tag, record });
        self.len += 1;
    }

    fn put(&mut self, cell: Cell) {
        let mut at = self.home(cell.tag);
        while self.cells[at].record != 0 {
            at = self.after(at);
        }
        self.cells[at] = cell;
    }

    fn grow(&mut self) {
        let more = vec![Cell::default(); (self.cells.len() * 2).max(LEAST)];
        let old = std::mem::replace(&mut self.cells, more);
        for cell in old.into_iter().filter(|cell| cell.record != 0) {
            self.put(cell);
        }
    }

    /// Removes a record; returns false if it does not exist.
    pub(super) fn remove(&mut self, tag: u64, record: u32) -> bool {
        if self.cells.is_empty() {
            return false;
        }
        let mut free = self.home(tag);
        while self.cells[free].record != record {
            if self.cells[free].record == 0 {
                return false;
            }
            free = self.after(free);
        }
        // The free cell must not be between a record and its home.
        let mask = self.cells.len() - 1;
        let mut at = self.after(free);
        while self.cells[at].record != 0 {
            let from_home = at.wrapping_sub(self.home(self.cells[at].tag)) & mask;
            if from_home >= at.wrapping_sub(free) & mask {
                self.cells[free] = self.cells[at];
                free = at;
            }
            at = self.after(at);
        }
        self.cells[free] = Cell::default();
        self.len -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use softswitch_random::Rng;

    use super::*;

    fn compare_with_map(words: usize, seed: u64) {
        let (mut cells, mut map) = (Cells::new(words), BTreeMap::new());
        let mut rng = Rng::new(seed);
        for record in 1..4000 {
            // Few tags, which are near each other, so that searches pass the ends of the array and other records.
            let tag = (rng.next() % 97).wrapping_sub(48);
            if let Some(old) = map.insert(tag, record) {
                assert!(cells.remove(tag, old));
            }
            cells.insert(tag, record);
            let victim = (rng.next() % 97).wrapping_sub(48);
            if let Some(old) = map.remove(&victim) {
                assert!(cells.remove(victim, old));
            }
            assert!(!cells.remove(victim, record + 1));
            for tag in (0..97_u64).map(|n| n.wrapping_sub(48)) {
                assert_eq!(cells.find(tag, |_| true), map.get(&tag).copied());
            }
        }
        assert!(cells.as_slice().len() <= 256);
    }

    #[test]
    fn records_are_found_until_they_are_removed() {
        compare_with_map(1, 1);
        compare_with_map(2, 2);
    }

    #[test]
    fn records_with_the_same_tag_are_told_apart() {
        let mut cells = Cells::new(2);
        cells.insert(7, 1);
        cells.insert(7, 2);
        assert_eq!(cells.find(7, |record| record == 2), Some(2));
        assert!(cells.remove(7, 1));
        assert_eq!(cells.find(7, |_| true), Some(2));
        assert_eq!(cells.find(7, |record| record == 1), None);
    }
}
