// SPDX-License-Identifier: Apache-2.0
//! Direct counters, meters and registers. Each entry of a table with a direct counter or meter has its own cell, and so does the
//! default entry (P4Runtime specification, section "Default Entry"): its key is `None`, and misses are counted and
//! metered there.

use num_bigint::{BigInt, BigUint};

use super::arrays::check_meter;
use super::meters::{MeterState, sum};
use super::no_such;
use crate::entry::{ColorCounters, CounterValue, EntryKey, MeterConfig};
use crate::error::StateError;
use crate::info::{DirectRegisterId, TableId};
use crate::pipeline::Pipeline;
use crate::state::meter::Meter;
use crate::state::table::Table;
use crate::value::Value;

type Result<T> = std::result::Result<T, StateError>;

/// Returns the slot of the entry with this key; `None` for the default entry.
fn slot(t: &Table, key: Option<&EntryKey>) -> Result<Option<u32>> {
    key.map(|key| t.find(key)).transpose()
}

impl Pipeline {
    /// Returns the slot of the entry with this key in the table of a direct register.
    fn register_slot(&self, id: DirectRegisterId, key: &EntryKey) -> Result<usize> {
        let info = self.program().info().direct_registers.get(id.index());
        let info = info.ok_or_else(|| no_such("direct register", id.0))?;
        let state = self.state_of(&self.program().info().tables[info.table.index()].name);
        Ok(state.tables[info.table.index()].find(key)? as usize)
    }

    /// Reads the direct register of an entry.
    pub fn direct_register(&self, id: DirectRegisterId, key: &EntryKey) -> Result<Value> {
        let slot = self.register_slot(id, key)?;
        let name = &self.program().info().direct_registers[id.index()].name;
        let v: BigInt = self.state_of(name).externs.direct_registers[id.index()].get(slot);
        Ok(Value::from_be_bytes(&v.magnitude().to_bytes_be()))
    }

    /// Writes the direct register of an entry.
    pub fn set_direct_register(
        &mut self,
        id: DirectRegisterId,
        key: &EntryKey,
        value: &Value,
    ) -> Result<()> {
        self.register_slot(id, key)?;
        let info = &self.program().info().direct_registers[id.index()];
        if value.bits() > info.width {
            return Err(StateError::TooWide {
                what: format!("direct register {}", info.name),
                value: value.clone(),
                width: info.width,
            });
        }
        self.change(|p| {
            let slot = p.register_slot(id, key)?;
            let register = &mut p.core.state.externs.direct_registers[id.index()];
            register.grow(slot);
            register.set_big(slot, BigUint::from_bytes_be(value.as_bytes()));
            Ok(())
        })
    }

    /// Resets the direct registers and filters of a new entry.
    pub(super) fn reset_direct_state(&mut self, table: TableId, slot: u32) {
        let infos = &self.program.info().direct_registers;
        let registers = &mut self.core.state.externs.direct_registers;
        for (_, register) in infos.iter().zip(registers).filter(|r| r.0.table == table) {
            register.reset_cell(slot as usize);
        }
        let infos = &self.program.info().filters;
        let filters = &mut self.core.state.externs.filters;
        for (_, cells) in infos
            .iter()
            .zip(filters)
            .filter(|f| f.0.table == Some(table))
        {
            if let Some(cell) = cells.get_mut(slot as usize) {
                cell.configure(None);
            }
        }
    }

    fn found(&self, table: TableId, key: Option<&EntryKey>) -> Result<(&Table, Option<u32>)> {
        let (_, t) = self.table(table)?;
        Ok((t, slot(t, key)?))
    }

    fn found_mut(
        &mut self,
        table: TableId,
        key: Option<&EntryKey>,
    ) -> Result<(&mut Table, Option<u32>)> {
        let t = self.table_mut(table)?;
        let slot = slot(t, key)?;
        Ok((t, slot))
    }

    /// Returns the tables of the pipes that reads concern, and the slot in each; without those that lack the entry.
    fn found_in_pipes<'a>(
        &'a self,
        table: TableId,
        key: Option<&'a EntryKey>,
    ) -> Result<impl Iterator<Item = (&'a Table, Option<u32>)>> {
        self.found(table, key)?;
        let tables = self.states().map(move |s| &s.tables[table.index()]);
        Ok(tables.filter_map(move |t| Some((t, slot(t, key).ok()?))))
    }

    /// Adds to an entry's counter, from the first pipe that reads concern, the counters of the others.
    pub(super) fn add_other_counters(&self, t: &Table, key: &EntryKey, sum: &mut CounterValue) {
        for state in self.states().skip(1) {
            let other = state.tables.iter().find(|other| other.name == t.name);
            let counter = other.and_then(|other| other.counter(Some(other.find(key).ok()?)));
            *sum = *sum + counter.copied().unwrap_or_default();
        }
    }

    /// Returns an entry's direct counter, summed over the pipes; `None` if the table has none.
    pub fn direct_counter(
        &self,
        table: TableId,
        key: Option<&EntryKey>,
    ) -> Result<Option<CounterValue>> {
        let found = self.found_in_pipes(table, key)?;
        let counters = found.filter_map(|(t, slot)| t.counter(slot).copied());
        let sum = counters.reduce(|sum, counter| sum + counter);
        let slot = self.found(table, key)?.1;
        Ok(sum.map(|sum| sum + self.counted_in_lanes(table, slot)))
    }

    /// Sets an entry's direct counter, such that a read gives this value.
    pub fn set_direct_counter(
        &mut self,
        table: TableId,
        key: Option<&EntryKey>,
        value: CounterValue,
    ) -> Result<()> {
        let mut value = value;
        self.change(|p| {
            let (t, slot) = p.found_mut(table, key)?;
            let what = format!("direct counter of table {}", t.name);
            let counter = t.counter_mut(slot);
            let counter = counter.ok_or(StateError::NotFound { what })?;
            *counter = std::mem::take(&mut value);
            p.clear_lanes(table, slot);
            Ok(())
        })
    }

    /// Returns the configuration of an entry's direct meter; `None` if it is not configured or the table has no meters.
    pub fn direct_meter(
        &self,
        table: TableId,
        key: Option<&EntryKey>,
    ) -> Result<Option<MeterConfig>> {
        let (t, slot) = self.found(table, key)?;
        Ok(t.meter(slot).and_then(|meter| meter.config()))
    }

    /// Configures an entry's direct meter. With `None`, every packet that hits the entry is green; on the default entry,
    /// `None` leaves the colour of misses unchanged.
    pub fn set_direct_meter(
        &mut self,
        table: TableId,
        key: Option<&EntryKey>,
        config: Option<MeterConfig>,
    ) -> Result<()> {
        self.change(|p| {
            let (t, slot) = p.found_mut(table, key)?;
            let what = format!("direct meter of table {}", t.name);
            check_meter(&what, config)?;
            let changed = t.change_meter(slot, |meter| meter.configure(config));
            changed.ok_or(StateError::NotFound { what })
        })
    }

    /// Returns the packets of each colour that an entry's direct meter has seen, summed over the pipes; `None` if the table
    /// has none.
    pub fn direct_meter_counters(
        &self,
        table: TableId,
        key: Option<&EntryKey>,
    ) -> Result<Option<ColorCounters>> {
        let found = self.found_in_pipes(table, key)?;
        Ok(sum(found.filter_map(|(t, slot)| t.meter(slot))))
    }

    /// Resets the counters of an entry's direct meter.
    pub fn reset_direct_meter_counters(
        &mut self,
        table: TableId,
        key: Option<&EntryKey>,
    ) -> Result<()> {
        self.change(|p| {
            let (t, slot) = p.found_mut(table, key)?;
            let what = format!("direct meter of table {}", t.name);
            let changed = t.change_meter(slot, Meter::reset_counters);
            changed.ok_or(StateError::NotFound { what })
        })
    }

    /// Returns the state of an entry's direct meter; `None` if the table has none.
    pub fn direct_meter_state(
        &self,
        table: TableId,
        key: Option<&EntryKey>,
    ) -> Result<Option<MeterState>> {
        let found = self.found_in_pipes(table, key)?;
        Ok(MeterState::of(found.filter_map(|(t, slot)| t.meter(slot))))
    }

    /// Restores an earlier state of an entry's direct meter.
    pub fn restore_direct_meter(
        &mut self,
        table: TableId,
        key: Option<&EntryKey>,
        mut state: MeterState,
    ) -> Result<()> {
        self.change(|p| {
            let (t, slot) = p.found_mut(table, key)?;
            if let Some(state) = state.next() {
                t.change_meter(slot, |meter| *meter = state);
            }
            Ok(())
        })
    }
}
