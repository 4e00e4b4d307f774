// SPDX-License-Identifier: Apache-2.0
//! The state outside the pipeline.

use std::collections::BTreeMap;
use std::sync::Arc;

use softswitch_pipeline::{CounterValue, Nanos};

use super::data::Data;
use crate::proto::bfrt::table_attribute::Attribute;

/// The entries of a table, by the numbers of their keys.
pub type Entries = BTreeMap<Vec<u64>, Data>;

/// The smallest id of a table that does not depend on a program.
const FIRST_FIXED: u32 = 0xff00_0000;

/// The number of a table's program, which is 0 for tables that do not depend on a program, and the id of the table.
type TableKey = (usize, u32);

/// Counters by their table and the number of their cell or entry.
type Counters = BTreeMap<(TableKey, u64), CounterValue>;

/// Whether packets hit an entry.
#[derive(Debug, Clone, Copy, Default)]
pub struct HitState {
    /// The time of the last poll.
    pub polled: Nanos,
    /// A packet hit the entry before that.
    pub is_active: bool,
}

/// Entries and attributes of the tables of all programs. One program is selected. A copy shares what has not changed since.
#[derive(Debug, Clone, Default)]
pub struct State {
    program: usize,
    entries: BTreeMap<TableKey, Arc<Entries>>,
    counters: Arc<Counters>,
    /// The hit states of entries in poll mode, by the table and the entry's handle.
    hits: BTreeMap<(TableKey, u32), HitState>,
    /// The nodes of ECMP groups in their places. A removed node leaves its place empty.
    pub ecmp_places: BTreeMap<u32, Vec<Option<u32>>>,
    /// The port to the CPU before clients set one.
    pub cpu_port: Option<Option<u32>>,
    /// The attributes of tables, by their kind.
    attributes: BTreeMap<(TableKey, &'static str), Attribute>,
}

impl State {
    /// Selects the program to which ids of tables refer.
    pub fn select(&mut self, program: usize) {
        self.program = program;
    }

    fn key(&self, table: u32) -> TableKey {
        let program = if table < FIRST_FIXED { self.program } else { 0 };
        (program, table)
    }

    /// Returns an attribute of a table, if it was set.
    pub fn attribute(&self, table: u32, name: &'static str) -> Option<&Attribute> {
        self.attributes.get(&(self.key(table), name))
    }

    /// Sets an attribute of a table.
    pub fn set_attribute(&mut self, table: u32, name: &'static str, to: Attribute) {
        let key = (self.key(table), name);
        self.attributes.insert(key, to);
    }

    /// Returns the hit state of an entry in poll mode, if it is known.
    pub fn hit(&self, table: u32, handle: u32) -> Option<HitState> {
        self.hits.get(&(self.key(table), handle)).copied()
    }

    /// Returns the hit state of an entry in poll mode for changes.
    pub fn hit_mut(&mut self, table: u32, handle: u32) -> &mut HitState {
        let key = (self.key(table), handle);
        self.hits.entry(key).or_default()
    }

    /// Returns the entries of a table that the pipeline does not store.
    pub fn entries(&self, table: u32) -> Option<&Entries> {
        self.entries.get(&self.key(table)).map(Arc::as_ref)
    }

    /// Returns the entries of a table for changes.
    pub fn entries_mut(&mut self, table: u32) -> &mut Entries {
        let key = self.key(table);
        Arc::make_mut(self.entries.entry(key).or_default())
    }

    /// Returns the entry with a key.
    pub fn entry(&self, table: u32, key: &[u64]) -> Option<&Data> {
        self.entries(table)?.get(key)
    }

    /// Sets an entry, or removes it.
    pub fn set_entry(&mut self, table: u32, key: Vec<u64>, data: Option<Data>) {
        let entries = self.entries_mut(table);
        match data {
            Some(data) => entries.insert(key, data),
            None => entries.remove(&key),
        };
    }

    /// Returns a counter as it was at the last synchronization.
    pub fn counter(&self, table: u32, cell: u64) -> CounterValue {
        let counter = self.counters.get(&(self.key(table), cell));
        counter.copied().unwrap_or_default()
    }

    /// Synchronizes a counter.
    pub fn set_counter(&mut self, table: u32, cell: u64, to: CounterValue) {
        if self.counter(table, cell) == to {
            return;
        }
        let key = (self.key(table), cell);
        let counters = Arc::make_mut(&mut self.counters);
        match to == CounterValue::default() {
            true => counters.remove(&key),
            false => counters.insert(key, to),
        };
    }
}
