// SPDX-License-Identifier: Apache-2.0
//! Addresses of state for native code, which reads and writes it without references.

use super::Externs;
use crate::entry::CounterValue;

/// The cells of an array.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) cells: *mut u8,
    pub(crate) len: usize,
}

impl View {
    fn of(cells: &mut Vec<CounterValue>) -> Self {
        Self {
            cells: cells.as_mut_ptr().cast(),
            len: cells.len(),
        }
    }
}

/// The cells of all register and counter arrays, which never move.
#[derive(Debug, Default)]
pub(crate) struct Views {
    pub(crate) registers: Vec<View>,
    pub(crate) counters: Vec<View>,
    /// The counters of each table's records in a lane, which renews the view after a move.
    pub(crate) entry_counters: Vec<View>,
}

// SAFETY: a view points into the arrays that are stored next to it, or that their owner shares with its lanes.
unsafe impl Send for Views {}
// SAFETY: a shared view is not dereferenced.
unsafe impl Sync for Views {}

impl Views {
    pub(crate) fn new(externs: &mut Externs) -> Self {
        let registers = externs.registers.iter().map(|r| {
            let cells = r.narrow();
            View {
                // Atomic cells may be written through a shared reference.
                cells: cells.as_ptr().cast_mut().cast(),
                len: cells.len(),
            }
        });
        Self {
            registers: registers.collect(),
            counters: externs.counters.iter_mut().map(View::of).collect(),
            entry_counters: Vec::new(),
        }
    }
}

impl Views {
    /// Renews the view of a lane's counters of entries.
    pub(super) fn look_at_entries(&mut self, counters: &mut [Vec<CounterValue>]) {
        self.entry_counters = counters.iter_mut().map(View::of).collect();
    }
}

/// A place for an entry in the hash table of a table with long exact keys.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, packed(4))]
pub(crate) struct Cell {
    /// A key of one word; the hash of a longer one.
    pub(crate) tag: u64,
    /// Number of the entry's record; 0 if the cell is free.
    pub(crate) record: u32,
}

/// A node of the trie of a table with a longest-prefix field; see `table::trie`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct TrieNode {
    /// Entries that end within this node's bits.
    pub(crate) prefixes: u64,
    /// Values of this node's bits beyond which there is one entry.
    pub(crate) leaves: u64,
    /// Values of this node's bits beyond which there are several.
    pub(crate) children: u64,
    /// Start of the items of prefixes, then leaves.
    pub(crate) items: u32,
    /// Start of the child nodes.
    pub(crate) nodes: u32,
}

/// An entry's slot in a trie; in a leaf also as many of its further bits as fit, so that most lookups need not read the
/// entry itself.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct TrieItem {
    pub(crate) slot: u32,
    /// The bits behind the node's, and in the last bits their number.
    pub(crate) rest: u32,
}

/// A table's data that native code reads, and the addresses of its counters. The table's owner renews the view after changes.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct TableView {
    /// Number of entries.
    pub(crate) len: u64,
    /// 1 if misses are metered, otherwise 0.
    pub(crate) meters_misses: u64,
    /// Numbers of records, by short keys.
    pub(crate) dense: *const u32,
    /// Numbers of records, by long exact keys; null without entries, or if keys are masked.
    pub(crate) cells: *const Cell,
    /// Number of cells, a power of two, less 1.
    pub(crate) cells_mask: u64,
    /// For each entry with a long exact key: one word, then the key.
    pub(crate) entries: *const u64,
    /// The trie of a longest-prefix field: its root, all nodes, and all items.
    pub(crate) root: *const TrieNode,
    pub(crate) nodes: *const TrieNode,
    pub(crate) items: *const TrieItem,
    pub(crate) records: *const u64,
    pub(crate) record_bytes: usize,
    /// By number of record.
    pub(crate) counters: *mut CounterValue,
}

// SAFETY: a view points into its table. The table's owner uses it, and lanes do so while the owner does not.
unsafe impl Send for TableView {}
// SAFETY: a shared view is not dereferenced.
unsafe impl Sync for TableView {}

impl Default for TableView {
    fn default() -> Self {
        Self {
            len: 0,
            meters_misses: 0,
            dense: std::ptr::null(),
            cells: std::ptr::null(),
            cells_mask: 0,
            entries: std::ptr::null(),
            root: std::ptr::null(),
            nodes: std::ptr::null(),
            items: std::ptr::null(),
            records: std::ptr::null(),
            record_bytes: 0,
            counters: std::ptr::null_mut(),
        }
    }
}
