// SPDX-License-Identifier: Apache-2.0
//! Whether packets hit entries. Tables in poll mode show it as of the last poll, which also forgets earlier hits.

use softswitch_pipeline::{EntryKey, EntryState, Nanos, PipeSet};

use crate::bfrt::data::FieldValue;
use crate::bfrt::link::MatchTable;
use crate::bfrt::schema::Table;
use crate::bfrt::state::HitState;
use crate::bfrt::tables::{Access, Query, Update, attributes};
use crate::p4rt::error::P4Result;

const FIELD: &str = "$ENTRY_HIT_STATE";
const ACTIVE: &str = "ENTRY_ACTIVE";
const IDLE: &str = "ENTRY_IDLE";

/// Returns the name of a state.
pub fn name(is_active: bool) -> &'static str {
    match is_active {
        true => ACTIVE,
        false => IDLE,
    }
}

/// Remembers that a new entry has not been hit.
pub fn start(
    access: &mut Access<'_, '_>,
    table: &Table,
    target: &MatchTable,
    key: &EntryKey,
) -> P4Result<()> {
    if table.field_id(FIELD).is_some() {
        let handle = access.cx.pipeline.entry(target.id, key)?.handle;
        let state = HitState {
            polled: access.cx.now,
            is_active: false,
        };
        *access.state.hit_mut(table.id, handle) = state;
    }
    Ok(())
}

/// Sets the state of an entry that was modified, if the update has one.
pub fn set(
    access: &mut Access<'_, '_>,
    update: &Update<'_>,
    target: &MatchTable,
    key: &EntryKey,
) -> P4Result<()> {
    let Some(FieldValue::Text(given)) = update.data.get(update.table, FIELD) else {
        return Ok(());
    };
    let is_active = given == ACTIVE;
    let handle = access.cx.pipeline.entry(target.id, key)?.handle;
    let now = access.cx.now;
    let state = access.state.hit_mut(update.table.id, handle);
    state.is_active = is_active;
    // The modification counts as a hit.
    state.polled = match is_active {
        true => now.saturating_sub(1),
        false => now,
    };
    Ok(())
}

/// Returns the time of the last hit of an entry in any pipe, if its table has the same entries in all pipes.
fn last_hit(
    access: &mut Access<'_, '_>,
    (table, target): (&Table, &MatchTable),
    entry: &EntryState,
) -> Nanos {
    if !attributes::is_symmetric(access.state, table.id) {
        return entry.last_hit;
    }
    let pipeline = &mut access.cx.pipeline;
    let hits = (0..pipeline.pipes()).filter_map(|pipe| {
        let found = pipeline.on_pipes(PipeSet::one(pipe), |pipeline| {
            pipeline.entry(target.id, &entry.entry.key)
        });
        Some(found.ok()?.ok()?.last_hit)
    });
    hits.max().unwrap_or(entry.last_hit)
}

/// Looks whether an entry was hit since the last look.
fn poll(
    access: &mut Access<'_, '_>,
    (table, target): (&Table, &MatchTable),
    entry: &EntryState,
) -> bool {
    let (now, last_hit) = (access.cx.now, last_hit(access, (table, target), entry));
    let state = access.state.hit_mut(table.id, entry.handle);
    state.is_active = last_hit > state.polled;
    state.polled = now.max(last_hit);
    state.is_active
}

/// Returns true if an entry is active: in poll mode, if it was hit before the last poll or, with `from_hw`, since then.
pub fn seen(
    access: &mut Access<'_, '_>,
    query: &Query<'_>,
    target: &MatchTable,
    entry: &EntryState,
) -> bool {
    let table = query.table;
    if attributes::is_polled(access.state, table.id) {
        if query.from_hw {
            return poll(access, (table, target), entry);
        }
        let state = access.state.hit(table.id, entry.handle);
        return state.is_some_and(|state| state.is_active);
    }
    let timeout = entry.entry.idle_timeout;
    timeout == 0 || access.cx.now.saturating_sub(entry.last_hit) < timeout
}

/// Polls all entries.
///
/// # Errors
/// If the entries cannot be read.
pub fn update(access: &mut Access<'_, '_>, table: &Table, target: &MatchTable) -> P4Result<()> {
    for entry in access.cx.pipeline.entries(target.id)? {
        poll(access, (table, target), &entry);
    }
    Ok(())
}
