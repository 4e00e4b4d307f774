// SPDX-License-Identifier: Apache-2.0
//! Changes of entries in the log, in the wording of `simple_switch`.

use softswitch_pipeline::{EntryKey, Pipeline, TableId};
use tracing::Level;

/// A change of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Added,
    /// It has another action or idle time-out.
    Modified,
    /// It is deleted.
    Removed,
}

/// Returns the number of an entry, if the log needs it.
pub fn handle(pipeline: &Pipeline, table: TableId, key: &EntryKey) -> Option<u32> {
    let is_logged = tracing::enabled!(Level::DEBUG);
    is_logged.then(|| pipeline.entry_handle(table, key).ok())?
}

/// Logs the change of an entry with this number.
pub fn log(pipeline: &Pipeline, table: TableId, handle: Option<u32>, change: Change) {
    let Some(handle) = handle else { return };
    let name = &pipeline.program().info().tables[table.index()].name;
    match change {
        Change::Added => tracing::debug!("Entry {handle} added to table '{name}'"),
        Change::Modified => tracing::debug!("Modified entry {handle} in table '{name}'"),
        Change::Removed => tracing::debug!("Removed entry {handle} from table '{name}'"),
    }
}
