// SPDX-License-Identifier: Apache-2.0
//! The counters of lanes. A counter's value is that of the pipeline plus those of all lanes.

use crate::entry::CounterValue;
use crate::info::TableId;
use crate::pipeline::Pipeline;
use crate::state::table::record;

impl Pipeline {
    /// Returns what all lanes have counted for the entry in a slot, or for the default entry.
    pub(super) fn counted_in_lanes(&self, table: TableId, slot: Option<u32>) -> CounterValue {
        let tables = self
            .lanes
            .iter()
            .map(|lane| lane.entries.get(table.index()));
        let counters = tables.filter_map(|cells| cells?.get(record(slot)).copied());
        counters.fold(CounterValue::default(), |sum, counter| sum + counter)
    }

    /// Resets what all lanes have counted for an entry.
    pub(super) fn clear_lanes(&mut self, table: TableId, slot: Option<u32>) {
        for lane in &mut self.lanes {
            if let Some(counter) = lane.entry(table.index(), slot) {
                *counter = CounterValue::default();
            }
        }
    }
}
