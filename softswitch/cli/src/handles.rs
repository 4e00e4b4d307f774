// SPDX-License-Identifier: Apache-2.0
//! Handles of table entries.
//!
//! P4Runtime names entries by their keys, and BMv2 by handles. A session numbers the entries of a table from 0, first in
//! the order in which the server returns them. A new entry gets the lowest free number.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use prost::Message;

use crate::error::{Error, Result};
use crate::key;
use crate::proto::p4::v1::TableEntry;

/// The handles of all tables, by table id.
#[derive(Debug, Default)]
pub struct Handles(HashMap<u32, Numbers>);

/// The handles of one table.
#[derive(Debug, Default)]
struct Numbers {
    keys: BTreeMap<u64, TableEntry>,
    handles: HashMap<Vec<u8>, u64>,
    /// Numbers of removed entries, which new entries take.
    free: BTreeSet<u64>,
}

impl Numbers {
    fn insert(&mut self, key: TableEntry) -> u64 {
        let bytes = key.encode_to_vec();
        if let Some(handle) = self.handles.get(&bytes) {
            return *handle;
        }
        let handle = self.free.pop_first().unwrap_or(self.keys.len() as u64);
        self.handles.insert(bytes, handle);
        self.keys.insert(handle, key);
        handle
    }

    fn remove(&mut self, handle: u64) {
        if let Some(key) = self.keys.remove(&handle) {
            self.handles.remove(&key.encode_to_vec());
            self.free.insert(handle);
        }
    }
}

impl Handles {
    /// Returns whether the entries of a table have been numbered.
    pub fn knows(&self, table: u32) -> bool {
        self.0.contains_key(&table)
    }

    /// Takes over the entries that a table has now. Entries that it had before keep their handles.
    pub fn update(&mut self, table: u32, entries: &[TableEntry]) {
        let numbers = self.0.entry(table).or_default();
        let keys: Vec<TableEntry> = entries.iter().map(key::of).collect();
        let present: HashSet<Vec<u8>> = keys.iter().map(Message::encode_to_vec).collect();
        let is_gone = |(bytes, _): &(&Vec<u8>, &u64)| !present.contains(*bytes);
        let gone: Vec<u64> = numbers
            .handles
            .iter()
            .filter(is_gone)
            .map(|(_, h)| *h)
            .collect();
        gone.into_iter().for_each(|handle| numbers.remove(handle));
        keys.into_iter().for_each(|key| {
            numbers.insert(key);
        });
    }

    /// Returns the handle of an entry; numbers it if it is new.
    pub fn insert(&mut self, entry: &TableEntry) -> u64 {
        let numbers = self.0.entry(entry.table_id).or_default();
        numbers.insert(key::of(entry))
    }

    /// Forgets an entry.
    pub fn remove(&mut self, table: u32, handle: u64) {
        if let Some(numbers) = self.0.get_mut(&table) {
            numbers.remove(handle);
        }
    }

    /// Returns the key of the entry with this handle.
    ///
    /// # Errors
    /// If the handle is unknown.
    pub fn key(&self, table: u32, handle: u64) -> Result<TableEntry> {
        let key = self
            .0
            .get(&table)
            .and_then(|numbers| numbers.keys.get(&handle));
        key.cloned().ok_or_else(|| {
            Error::new(format!(
                "unknown entry handle {handle}: table_dump shows the handles"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(priority: i32) -> TableEntry {
        TableEntry {
            table_id: 1,
            priority,
            ..Default::default()
        }
    }

    #[test]
    fn new_entry_gets_lowest_free_handle() {
        let mut handles = Handles::default();
        handles.update(1, &[entry(5), entry(6), entry(7)]);
        assert_eq!(handles.insert(&entry(6)), 1);
        handles.remove(1, 0);
        handles.remove(1, 1);
        handles.remove(1, 1);
        assert_eq!(handles.insert(&entry(8)), 0);
        assert_eq!(handles.insert(&entry(9)), 1);
        assert_eq!(handles.insert(&entry(10)), 3);
    }

    #[test]
    fn entries_keep_handles_when_others_vanish() {
        let mut handles = Handles::default();
        handles.update(1, &[entry(5), entry(6)]);
        handles.update(1, &[entry(6), entry(7)]);
        assert_eq!(handles.key(1, 1).unwrap().priority, 6);
        assert_eq!(handles.key(1, 0).unwrap().priority, 7);
        assert!(handles.key(1, 2).is_err());
        assert!(handles.key(2, 0).is_err());
    }
}
