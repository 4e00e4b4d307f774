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

/// The cells of all register and counter arrays, which never move.
#[derive(Debug, Default)]
pub(crate) struct Views {
    pub(crate) registers: Vec<View>,
    pub(crate) counters: Vec<View>,
}

// SAFETY: a view points into the arrays that are stored next to it, and is used only by their owner.
unsafe impl Send for Views {}
// SAFETY: a shared view is not dereferenced.
unsafe impl Sync for Views {}

impl Views {
    pub(crate) fn new(externs: &mut Externs) -> Self {
        let view = |cells: &mut Vec<CounterValue>| View {
            cells: cells.as_mut_ptr().cast(),
            len: cells.len(),
        };
        let registers = externs.registers.iter_mut().map(|r| {
            let cells = r.narrow_mut();
            View {
                cells: cells.as_mut_ptr().cast(),
                len: cells.len(),
            }
        });
        Self {
            registers: registers.collect(),
            counters: externs.counters.iter_mut().map(view).collect(),
        }
    }
}

/// Addresses of a table's data that native code reads and of its counters. The table's owner renews the view after a move.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct TableView {
    /// Numbers of records, by short keys.
    pub(crate) dense: *const u32,
    pub(crate) records: *const u64,
    pub(crate) record_bytes: usize,
    /// By number of record.
    pub(crate) counters: *mut CounterValue,
}

// SAFETY: a view points into its table, and is used only by the table's owner.
unsafe impl Send for TableView {}
// SAFETY: a shared view is not dereferenced.
unsafe impl Sync for TableView {}

impl TableView {
    /// Creates the view of a table with records of this many words.
    pub(crate) fn new(
        dense: Option<&[u32]>,
        records: &[u64],
        stride: usize,
        counters: &mut [CounterValue],
    ) -> Self {
        Self {
            dense: dense.map_or(std::ptr::null(), <[u32]>::as_ptr),
            records: records.as_ptr(),
            record_bytes: stride * size_of::<u64>(),
            counters: counters.as_mut_ptr(),
        }
    }
}

impl Default for TableView {
    fn default() -> Self {
        Self::new(None, &[], 0, &mut [])
    }
}
