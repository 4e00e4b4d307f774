//! Meters with what is in their buckets, so that a change can be taken back.

use super::no_such;
use crate::entry::EntryKey;
use crate::error::StateError;
use crate::extern_state::meter::Meter;
use crate::info::{MeterId, TableId};
use crate::pipeline::Pipeline;

type Result<T> = std::result::Result<T, StateError>;

/// A meter's configuration and the tokens in its buckets.
#[derive(Debug, Clone)]
pub struct MeterState(Meter);

impl Pipeline {
    /// The state of a cell of an indirect meter.
    pub fn meter_state(&self, id: MeterId, index: usize) -> Result<MeterState> {
        self.meter(id, index)?;
        let (_, cells) = &self.core.externs.meters[id.index()];
        Ok(MeterState(cells[index].clone()))
    }

    /// Brings a cell of an indirect meter back to a state that it had.
    pub fn restore_meter(&mut self, id: MeterId, index: usize, state: MeterState) -> Result<()> {
        self.meter(id, index)?;
        self.core.externs.meters[id.index()].1[index] = state.0;
        Ok(())
    }

    /// The state of an entry's direct meter; `None` if the table has none.
    pub fn direct_meter_state(&self, table: TableId, key: &EntryKey) -> Result<Option<MeterState>> {
        let t = self.core.tables.get(table.index());
        let t = t.ok_or_else(|| no_such("table", table.0))?;
        let slot = t.find(key)?;
        Ok(t.meter(slot).cloned().map(MeterState))
    }

    /// Brings an entry's direct meter back to a state that it had.
    pub fn restore_direct_meter(
        &mut self,
        table: TableId,
        key: &EntryKey,
        state: MeterState,
    ) -> Result<()> {
        let t = self.core.tables.get_mut(table.index());
        let t = t.ok_or_else(|| no_such("table", table.0))?;
        let slot = t.find(key)?;
        if let Some(meter) = t.meter_mut(slot) {
            *meter = state.0;
        }
        Ok(())
    }
}
