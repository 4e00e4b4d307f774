// SPDX-License-Identifier: Apache-2.0
//! Saving and restoring indirect meters with the tokens in their buckets, so that a change can be undone.

use crate::entry::ColorCounters;
use crate::error::StateError;
use crate::info::MeterId;
use crate::pipeline::Pipeline;
use crate::state::meter::Meter;

type Result<T> = std::result::Result<T, StateError>;

/// A meter's configuration and the tokens in its buckets.
#[derive(Debug, Clone)]
pub struct MeterState(pub(super) Meter);

impl Pipeline {
    /// Returns the state of a cell of an indirect meter.
    pub fn meter_state(&self, id: MeterId, index: usize) -> Result<MeterState> {
        self.meter(id, index)?;
        let (_, cells) = &self.core.state.externs.meters[id.index()];
        Ok(MeterState(cells[index].clone()))
    }

    /// Returns the packets of each colour that a cell of an indirect meter has seen.
    pub fn meter_counters(&self, id: MeterId, index: usize) -> Result<ColorCounters> {
        Ok(self.meter_state(id, index)?.0.counters())
    }

    /// Resets the counters of a cell of an indirect meter.
    pub fn reset_meter_counters(&mut self, id: MeterId, index: usize) -> Result<()> {
        self.meter(id, index)?;
        self.core.state.externs.meters[id.index()].1[index].reset_counters();
        Ok(())
    }

    /// Restores an earlier state of a cell of an indirect meter.
    pub fn restore_meter(&mut self, id: MeterId, index: usize, state: MeterState) -> Result<()> {
        self.meter(id, index)?;
        self.core.state.externs.meters[id.index()].1[index] = state.0;
        Ok(())
    }
}
