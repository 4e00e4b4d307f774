// SPDX-License-Identifier: Apache-2.0
//! Direct counters and meters. Each entry of a table with a direct counter or meter has its own cell, and so does the
//! default entry (P4Runtime specification, section "Default Entry"): its key is `None`, and misses are counted and
//! metered there.

use super::arrays::check_meter;
use super::meters::MeterState;
use crate::entry::{ColorCounters, CounterValue, EntryKey, MeterConfig};
use crate::error::StateError;
use crate::info::TableId;
use crate::pipeline::Pipeline;
use crate::state::meter::Meter;
use crate::state::table::Table;

type Result<T> = std::result::Result<T, StateError>;

/// Returns the slot of the entry with this key; `None` for the default entry.
fn slot(t: &Table, key: Option<&EntryKey>) -> Result<Option<u32>> {
    key.map(|key| t.find(key)).transpose()
}

impl Pipeline {
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

    /// Returns an entry's direct counter; `None` if the table has none.
    pub fn direct_counter(
        &self,
        table: TableId,
        key: Option<&EntryKey>,
    ) -> Result<Option<CounterValue>> {
        let (t, slot) = self.found(table, key)?;
        Ok(t.counter(slot).copied())
    }

    /// Sets an entry's direct counter.
    pub fn set_direct_counter(
        &mut self,
        table: TableId,
        key: Option<&EntryKey>,
        value: CounterValue,
    ) -> Result<()> {
        let (t, slot) = self.found_mut(table, key)?;
        let what = format!("direct counter of table {}", t.name);
        let counter = t.counter_mut(slot);
        *counter.ok_or(StateError::NotFound { what })? = value;
        Ok(())
    }

    /// Returns the configuration of an entry's direct meter; `None` if it is not configured or the table has no meters.
    pub fn direct_meter(
        &self,
        table: TableId,
        key: Option<&EntryKey>,
    ) -> Result<Option<MeterConfig>> {
        let (t, slot) = self.found(table, key)?;
        Ok(t.meter(slot).and_then(Meter::config))
    }

    /// Configures an entry's direct meter. With `None`, every packet that hits the entry is green; on the default entry,
    /// `None` leaves the colour of misses unchanged.
    pub fn set_direct_meter(
        &mut self,
        table: TableId,
        key: Option<&EntryKey>,
        config: Option<MeterConfig>,
    ) -> Result<()> {
        let (t, slot) = self.found_mut(table, key)?;
        let what = format!("direct meter of table {}", t.name);
        check_meter(&what, config)?;
        let meter = t.meter_mut(slot);
        meter
            .ok_or(StateError::NotFound { what })?
            .configure(config);
        Ok(())
    }

    /// Returns the packets of each colour that an entry's direct meter has seen; `None` if the table has none.
    pub fn direct_meter_counters(
        &self,
        table: TableId,
        key: Option<&EntryKey>,
    ) -> Result<Option<ColorCounters>> {
        let (t, slot) = self.found(table, key)?;
        Ok(t.meter(slot).map(Meter::counters))
    }

    /// Resets the counters of an entry's direct meter.
    pub fn reset_direct_meter_counters(
        &mut self,
        table: TableId,
        key: Option<&EntryKey>,
    ) -> Result<()> {
        let (t, slot) = self.found_mut(table, key)?;
        let what = format!("direct meter of table {}", t.name);
        let meter = t.meter_mut(slot);
        meter.ok_or(StateError::NotFound { what })?.reset_counters();
        Ok(())
    }

    /// Returns the state of an entry's direct meter; `None` if the table has none.
    pub fn direct_meter_state(
        &self,
        table: TableId,
        key: Option<&EntryKey>,
    ) -> Result<Option<MeterState>> {
        let (t, slot) = self.found(table, key)?;
        Ok(t.meter(slot).cloned().map(MeterState))
    }

    /// Restores an earlier state of an entry's direct meter.
    pub fn restore_direct_meter(
        &mut self,
        table: TableId,
        key: Option<&EntryKey>,
        state: MeterState,
    ) -> Result<()> {
        let (t, slot) = self.found_mut(table, key)?;
        if let Some(meter) = t.meter_mut(slot) {
            *meter = state.0;
        }
        Ok(())
    }
}
