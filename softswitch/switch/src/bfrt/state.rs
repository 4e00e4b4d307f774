// SPDX-License-Identifier: Apache-2.0
//! The state outside the pipeline.

use std::collections::BTreeMap;
use std::sync::Arc;

use softswitch_pipeline::{CounterValue, Nanos};

use super::data::Data;
use crate::proto::bfrt::table_attribute::Attribute;

/// The entries of a table, by the numbers of their keys.
pub type Entries = BTreeMap<Vec<u64>, Data>;

/// Counters by the id of their table and the number of their cell or entry.
type Counters = BTreeMap<(u32, u64), CounterValue>;

/// Whether packets hit an entry.
#[derive(Debug, Clone, Copy, Default)]
pub struct HitState {
    /// The time of the last poll.
    pub polled: Nanos,
    /// A packet hit the entry before that.
    pub is_active: bool,
}

/// Entries and attributes of tables, by the tables' ids. A copy shares what has not changed since.
#[derive(Debug, Clone, Default)]
pub struct State {
    entries: BTreeMap<u32, Arc<Entries>>,
    counters: Arc<Counters>,
    /// The hit states of entries in poll mode, by the table's id and the entry's handle.
    pub hits: BTreeMap<(u32, u32), HitState>,
    /// The nodes of ECMP groups in their places. A removed node leaves its place empty.
    pub ecmp_places: BTreeMap<u32, Vec<Option<u32>>>,
    /// The port to the CPU before clients set one.
    pub cpu_port: Option<Option<u32>>,
    /// The attributes of tables, by their kind.
    pub attributes: BTreeMap<(u32, &'static str), Attribute>,
}

impl State {
    /// Returns the entries of a table that the pipeline does not store.
    pub fn entries(&self, table: u32) -> Option<&Entries> {
        self.entries.get(&table).map(Arc::as_ref)
    }

    /// Returns the entries of a table for changes.
    pub fn entries_mut(&mut self, table: u32) -> &mut Entries {
        Arc::make_mut(self.entries.entry(table).or_default())
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
        let counter = self.counters.get(&(table, cell));
        counter.copied().unwrap_or_default()
    }

    /// Synchronizes a counter.
    pub fn set_counter(&mut self, table: u32, cell: u64, to: CounterValue) {
        if self.counter(table, cell) == to {
            return;
        }
        let counters = Arc::make_mut(&mut self.counters);
        match to == CounterValue::default() {
            true => counters.remove(&(table, cell)),
            false => counters.insert((table, cell), to),
        };
    }
}
