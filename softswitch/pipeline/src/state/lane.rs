// SPDX-License-Identifier: Apache-2.0
//! The state of a lane, which one thread has while packets run in parallel, and the parts of a lookup that differ in lanes.

use super::serial::{RegisterLocks, Serial};
use super::shared::Shared;
use super::table::{Table, record};
use super::view::Views;
use super::{Externs, State};
use crate::Nanos;
use crate::entry::CounterValue;
use crate::options::Options;
use crate::program::Compiled;

/// Counts of a lane's packets since the control plane last set the counters.
#[derive(Debug, Default)]
pub(crate) struct LaneCounters {
    /// The cells of the indirect counters.
    pub(crate) arrays: Vec<Vec<CounterValue>>,
    /// By table and record. Tables without counters have none, and others may not yet have those of new entries.
    pub(crate) entries: Vec<Vec<CounterValue>>,
}

impl LaneCounters {
    /// Sets all counters to zero.
    pub(crate) fn clear(&mut self) {
        let all = self.arrays.iter_mut().chain(&mut self.entries);
        all.for_each(|cells| cells.fill(CounterValue::default()));
    }

    /// Exchanges the counters with those of a lane.
    pub(crate) fn swap(&mut self, lane: &mut Externs) {
        std::mem::swap(&mut self.arrays, &mut lane.counters);
        std::mem::swap(&mut self.entries, &mut lane.entry_counters);
    }

    /// Returns a cell of an indirect counter.
    pub(crate) fn array(&mut self, counter: usize, index: usize) -> Option<&mut CounterValue> {
        self.arrays.get_mut(counter)?.get_mut(index)
    }

    /// Returns the counter of the entry in a slot, or of the default entry, if a packet has used it.
    pub(crate) fn entry(&mut self, table: usize, slot: Option<u32>) -> Option<&mut CounterValue> {
        self.entries.get_mut(table)?.get_mut(record(slot))
    }
}

impl State {
    /// Creates the state of a lane.
    ///
    /// # Safety
    ///
    /// As for [`Shared::lane`].
    pub(crate) unsafe fn lane(
        &self,
        c: &Compiled,
        options: &Options,
        number: usize,
        locks: RegisterLocks,
    ) -> Self {
        // SAFETY: by the contract.
        let (mut externs, tables, profiles, value_sets, pre) = unsafe {
            (
                self.externs.lane(c, options, number, locks),
                self.tables.lane(),
                self.profiles.lane(),
                self.value_sets.lane(),
                self.pre.lane(),
            )
        };
        Self {
            tables,
            profiles,
            views: Views::new(&mut externs),
            externs,
            value_sets,
            pre,
            multicast: Default::default(),
            ports_down: Default::default(),
            loopback_ports: Default::default(),
            port_metadata: Default::default(),
            generator: Default::default(),
            max_parser_states: options.max_parser_states,
            key: Vec::new(),
        }
    }

    /// Returns true if another state is that of a lane of this one.
    pub(crate) fn has_lane(&self, lane: &Self) -> bool {
        self.tables.is_same(&lane.tables)
            && self.profiles.is_same(&lane.profiles)
            && self.value_sets.is_same(&lane.value_sets)
            && self.pre.is_same(&lane.pre)
            && self.externs.has_lane(&lane.externs)
    }

    /// Makes sure that a lane has a counter for each record of a table.
    pub(crate) fn add_entry_counters(&mut self) {
        let counters = &mut self.externs.entry_counters;
        let mut has_moved = self.views.entry_counters.is_empty();
        for (table, cells) in self.tables.iter().zip(counters.iter_mut()) {
            if cells.len() < table.counters() {
                cells.resize(table.counters(), CounterValue::default());
                has_moved = true;
            }
        }
        if has_moved {
            self.views.look_at_entries(counters);
        }
    }
}

impl Externs {
    /// Creates the state of a lane.
    ///
    /// # Safety
    ///
    /// As for [`Shared::lane`].
    unsafe fn lane(
        &self,
        c: &Compiled,
        options: &Options,
        number: usize,
        locks: RegisterLocks,
    ) -> Self {
        // Each lane has its own random numbers, and the first one those of the pipeline.
        let seed = options.seed ^ (number as u64) << 32;
        let zeros = |cells: &Vec<CounterValue>| vec![CounterValue::default(); cells.len()];
        // SAFETY: by the contract.
        let (registers, meters, hash_parameters) = unsafe {
            (
                self.registers.lane(),
                self.meters.lane(),
                self.hash_parameters.lane(),
            )
        };
        Self {
            registers,
            meters,
            hash_parameters,
            counters: self.counters.iter().map(zeros).collect(),
            entry_counters: vec![Vec::new(); c.tables.len()],
            serial: Some(Serial::new(locks)),
            ..Self::without_arrays(
                c,
                &Options {
                    seed,
                    ..options.clone()
                },
            )
        }
    }

    fn has_lane(&self, lane: &Self) -> bool {
        self.registers.is_same(&lane.registers)
            && self.meters.is_same(&lane.meters)
            && self.hash_parameters.is_same(&lane.hash_parameters)
    }
}

impl Shared<Vec<Table>> {
    /// Counts the hit or the miss, in the table or in a lane's `counters`, and returns the entry that a key hits.
    #[inline]
    pub(crate) fn lookup(
        &mut self,
        number: u32,
        key: &[u64],
        len: u32,
        now: Nanos,
        counters: &mut [Vec<CounterValue>],
    ) -> Option<u32> {
        if let Some(tables) = self.get_mut() {
            return tables[number as usize].lookup(key, len, now);
        }
        let slot = self[number as usize].lookup_in_lane(key, now);
        count(counters, number, slot, len);
        slot
    }

    /// Counts a packet that hits no entry, in the table or in a lane's `counters`.
    #[inline]
    pub(crate) fn miss(&mut self, number: u32, len: u32, counters: &mut [Vec<CounterValue>]) {
        match self.get_mut() {
            Some(tables) => tables[number as usize].miss(len),
            None => count(counters, number, None, len),
        }
    }
}

/// Counts a packet in a lane.
fn count(counters: &mut [Vec<CounterValue>], table: u32, slot: Option<u32>, len: u32) {
    if let Some(counter) = counters[table as usize].get_mut(record(slot)) {
        counter.add(len);
    }
}
