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
pub struct MeterState(Vec<Meter>);

impl MeterState {
    /// The state of the same meter in all pipes, in their order; `None` if `meters` is empty.
    pub(super) fn of(meters: impl Iterator<Item = Meter>) -> Option<Self> {
        let meters: Vec<Meter> = meters.collect();
        (!meters.is_empty()).then_some(Self(meters))
    }

    /// Takes the state of the meter in the next pipe.
    pub(super) fn next(&mut self) -> Option<Meter> {
        (!self.0.is_empty()).then(|| self.0.remove(0))
    }
}

/// Adds up the counters of the same meter in all pipes.
pub(super) fn sum(meters: impl Iterator<Item = Meter>) -> Option<ColorCounters> {
    meters
        .map(|meter| meter.counters())
        .reduce(|sum, c| ColorCounters {
            green: sum.green + c.green,
            yellow: sum.yellow + c.yellow,
            red: sum.red + c.red,
        })
}

impl Pipeline {
    fn meter_cells(&self, id: MeterId, index: usize) -> Result<impl Iterator<Item = Meter>> {
        self.meter(id, index)?;
        let states = self.states();
        Ok(states.map(move |s| s.externs.meters[id.index()].1[index].lock().clone()))
    }

    /// Returns a cell that exists.
    pub(super) fn meter_mut(&mut self, id: MeterId, index: usize) -> &mut Meter {
        let (_, cells) = &mut self.core.state.externs.meters.write()[id.index()];
        cells[index].get_mut()
    }

    /// Returns the state of a cell of an indirect meter.
    pub fn meter_state(&self, id: MeterId, index: usize) -> Result<MeterState> {
        let state = MeterState::of(self.meter_cells(id, index)?);
        Ok(state.expect("a meter in each pipe"))
    }

    /// Returns the packets of each colour that a cell of an indirect meter has seen, summed over the pipes.
    pub fn meter_counters(&self, id: MeterId, index: usize) -> Result<ColorCounters> {
        Ok(sum(self.meter_cells(id, index)?).unwrap_or_default())
    }

    /// Resets the counters of a cell of an indirect meter.
    pub fn reset_meter_counters(&mut self, id: MeterId, index: usize) -> Result<()> {
        self.meter(id, index)?;
        self.change(|p| {
            p.meter_mut(id, index).reset_counters();
            Ok(())
        })
    }

    /// Restores an earlier state of a cell of an indirect meter.
    pub fn restore_meter(
        &mut self,
        id: MeterId,
        index: usize,
        mut state: MeterState,
    ) -> Result<()> {
        self.meter(id, index)?;
        self.change(|p| {
            if let Some(meter) = state.next() {
                *p.meter_mut(id, index) = meter;
            }
            Ok(())
        })
    }
}
