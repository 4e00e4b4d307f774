// SPDX-License-Identifier: Apache-2.0
//! Reads of entries.

use softswitch_pipeline::{CounterValue, EntryAction, EntryState, Nanos, Pipeline};

use super::calls::encode_call;
use super::keys::{DEFAULT_HANDLE, FIRST_HANDLE, decode_key, encode_key, info};
use super::{DEFAULT_CELL, NANOS_PER_MILLI, direct, hit_states};
use crate::bfrt::chip::Chip;
use crate::bfrt::data::Data;
use crate::bfrt::link::MatchTable;
use crate::bfrt::schema::Table;
use crate::bfrt::tables::{Access, Query, Row};
use crate::p4rt::error::P4Result;

/// Returns the data of an entry.
fn data(table: &Table, target: &MatchTable, action: Option<&EntryAction>) -> Data {
    let mut data = Data::default();
    match action {
        Some(EntryAction::Direct(call)) => encode_call(&target.actions, call, &mut data),
        Some(EntryAction::Member(id)) => data.set(table, "$ACTION_MEMBER_ID", *id),
        Some(EntryAction::Group(id)) => data.set(table, "$SELECTOR_GROUP_ID", *id),
        Some(EntryAction::OneShot(_) | EntryAction::RandomOneShot(_)) | None => {}
    }
    data
}

fn row(
    pipeline: &Pipeline,
    (table, target): (&Table, &MatchTable),
    (state, counter): (&EntryState, CounterValue),
    (now, chip): (Nanos, Chip),
) -> P4Result<Row> {
    let mut data = data(table, target, Some(&state.entry.action));
    direct::encode(table, &mut data, counter, (state.meter, chip));
    direct::encode_state(pipeline, (table, target), &mut data, &state.entry.key)?;
    let idle = now.saturating_sub(state.last_hit);
    let timeout = state.entry.idle_timeout;
    let remaining = timeout.saturating_sub(idle).div_ceil(NANOS_PER_MILLI);
    let remaining = u32::try_from(remaining).unwrap_or(u32::MAX);
    data.set(table, "$ENTRY_TTL", remaining);
    Ok(Row {
        key: Some(encode_key(info(pipeline, target), &state.entry.key)),
        data,
    })
}

/// Reads the default entry.
fn read_default(
    access: &mut Access<'_, '_>,
    query: &Query<'_>,
    target: &MatchTable,
) -> P4Result<Row> {
    let (table, pipeline) = (query.table, &access.cx.pipeline);
    let action = pipeline.default_action(target.id)?;
    let mut data = data(table, target, action.as_ref());
    let counter = pipeline.direct_counter(target.id, None)?;
    let meter = pipeline.direct_meter(target.id, None)?;
    let counter = access.seen(query, DEFAULT_CELL, counter.unwrap_or_default());
    direct::encode(table, &mut data, counter, (meter, access.program.chip));
    Ok(Row { key: None, data })
}

pub fn read(
    access: &mut Access<'_, '_>,
    query: &Query<'_>,
    target: &MatchTable,
) -> P4Result<Vec<Row>> {
    if query.is_default || query.handle == Some(DEFAULT_HANDLE) {
        return Ok(vec![read_default(access, query, target)?]);
    }
    let (table, id) = (query.table, target.id);
    let pipeline = &access.cx.pipeline;
    let states = match (&query.key, query.handle) {
        (Some(key), _) => {
            let key = decode_key(pipeline, table, target, key)?;
            vec![pipeline.entry(id, &key)?]
        }
        (None, Some(handle)) => {
            // There is no entry with the largest number.
            let handle = handle.checked_sub(FIRST_HANDLE).unwrap_or(u32::MAX);
            vec![pipeline.entry_of_handle(id, handle)?]
        }
        (None, None) => pipeline.entries(id)?,
    };
    let with = (access.cx.now, access.program.chip);
    let rows = states.iter().map(|state| {
        let counter = match state.counter {
            Some(counter) => access.seen(query, state.handle.into(), counter),
            None => CounterValue::default(),
        };
        let is_active = hit_states::seen(access, query, target, state);
        let mut row = row(access.cx.pipeline, (table, target), (state, counter), with)?;
        row.data
            .set(table, "$ENTRY_HIT_STATE", hit_states::name(is_active));
        Ok(row)
    });
    rows.collect()
}
