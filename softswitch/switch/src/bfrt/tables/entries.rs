// SPDX-License-Identifier: Apache-2.0
//! Entries of match-action tables, and default entries.

mod calls;
mod direct;
mod hit_states;
mod keys;
mod read;

use softswitch_pipeline::{Entry, EntryKey, Nanos};

use super::{Access, Update};
use crate::bfrt::link::MatchTable;
use crate::bfrt::schema::Table;
use crate::p4rt::entity::EntryBefore;
use crate::p4rt::error::P4Result;
use crate::proto::bfrt::update::Type;
use calls::{check_group, decode_action};
use direct::Direct;
use keys::info;

pub use calls::{decode_call, encode_call};
pub use direct::{decode_counter, decode_register, encode_counter, encode_register};
pub use hit_states::update as update_hit_states;
pub use keys::{decode_key, encode_handle, encode_key};
pub use read::read;

const NANOS_PER_MILLI: Nanos = 1_000_000;

/// The cell of the default entry's counter.
const DEFAULT_CELL: u64 = u64::MAX;

/// Returns the idle time-out that an update sets.
fn ttl(update: &Update<'_>) -> Option<Nanos> {
    let ttl = update.data.number(update.table, "$ENTRY_TTL");
    ttl.map(|millis| millis * NANOS_PER_MILLI)
}

pub fn write(
    access: &mut Access<'_, '_>,
    update: &Update<'_>,
    target: &MatchTable,
) -> P4Result<()> {
    if update.is_default {
        return write_default(access, update, target);
    }
    let Some(key) = &update.key else {
        return match update.operation {
            Type::Delete => clear(access, target),
            _ => Err(update.invalid("missing key")),
        };
    };
    let key = decode_key(access.cx.pipeline, update.table, target, key)?;
    match update.operation {
        Type::Insert => insert(access, update, target, key),
        Type::Modify => modify(access, update, target, key),
        Type::Delete => delete(access, target, key),
        _ => Err(update.unsupported()),
    }
}

/// Sets the direct resources of an entry, or of the default entry.
fn set_direct(
    access: &mut Access<'_, '_>,
    table: &Table,
    target: &MatchTable,
    (direct, key): (Direct, Option<&EntryKey>),
) -> P4Result<()> {
    let is_synchronized = direct.sets_counter();
    direct.set(access.cx.pipeline, target, key)?;
    if is_synchronized {
        let cell = match key {
            Some(key) => access.cx.pipeline.entry(target.id, key)?.handle.into(),
            None => DEFAULT_CELL,
        };
        let counter = access.cx.pipeline.direct_counter(target.id, key)?;
        access
            .state
            .set_counter(table.id, cell, counter.unwrap_or_default());
    }
    Ok(())
}

fn insert(
    access: &mut Access<'_, '_>,
    update: &Update<'_>,
    target: &MatchTable,
    key: EntryKey,
) -> P4Result<()> {
    let id = target.id;
    if info(access.cx.pipeline, target).key.is_empty() {
        return Err(update.invalid("it has only the default entry, because it does not have a key"));
    }
    let action = decode_action(update, target, None)?;
    check_group(access.cx.pipeline, update, target, &action)?;
    let direct = Direct::decode(update, target, None, access.program.chip)?;
    let entry = Entry {
        key: key.clone(),
        action,
        idle_timeout: ttl(update).unwrap_or(0),
    };
    let now = access.cx.now;
    access.cx.pipeline.insert_entry(id, entry, now)?;
    set_direct(access, update.table, target, (direct, Some(&key)))?;
    hit_states::start(access, update.table, target, &key)?;
    access
        .cx
        .undo(move |cx| Ok(cx.pipeline.delete_entry(id, &key)?));
    Ok(())
}

fn modify(
    access: &mut Access<'_, '_>,
    update: &Update<'_>,
    target: &MatchTable,
    key: EntryKey,
) -> P4Result<()> {
    let id = target.id;
    let before = EntryBefore::look(access.cx.pipeline, access.cx.notes, id, &key)?;
    let state = access.cx.pipeline.entry(id, &key)?;
    let action = decode_action(update, target, Some(&state.entry.action))?;
    check_group(access.cx.pipeline, update, target, &action)?;
    let direct = Direct::decode(update, target, state.meter, access.program.chip)?;
    let entry = Entry {
        key: key.clone(),
        action,
        idle_timeout: ttl(update).unwrap_or(state.entry.idle_timeout),
    };
    let now = access.cx.now;
    access.cx.pipeline.modify_entry(id, entry, now)?;
    set_direct(access, update.table, target, (direct, Some(&key)))?;
    hit_states::set(access, update, target, &key)?;
    access.cx.undo(move |cx| before.restore(cx, id, false));
    Ok(())
}

fn delete(access: &mut Access<'_, '_>, target: &MatchTable, key: EntryKey) -> P4Result<()> {
    let id = target.id;
    let before = EntryBefore::look(access.cx.pipeline, access.cx.notes, id, &key)?;
    access.cx.pipeline.delete_entry(id, &key)?;
    access.cx.undo(move |cx| before.insert(cx, id));
    Ok(())
}

fn clear(access: &mut Access<'_, '_>, target: &MatchTable) -> P4Result<()> {
    for state in access.cx.pipeline.entries(target.id)? {
        delete(access, target, state.entry.key)?;
    }
    Ok(())
}

fn write_default(
    access: &mut Access<'_, '_>,
    update: &Update<'_>,
    target: &MatchTable,
) -> P4Result<()> {
    let id = target.id;
    let action = match update.operation {
        Type::Modify => {
            let earlier = access.cx.pipeline.default_action(id)?;
            Some(decode_action(update, target, earlier.as_ref())?)
        }
        Type::Delete => None,
        _ => return Err(update.unsupported()),
    };
    let before = access.cx.pipeline.default_action(id)?;
    let meter = access.cx.pipeline.direct_meter(id, None)?;
    let direct = Direct::decode(update, target, meter, access.program.chip)?;
    if action != before && !(action.is_none() && info(access.cx.pipeline, target).const_default) {
        access.cx.pipeline.set_default_action(id, action)?;
    }
    set_direct(access, update.table, target, (direct, None))?;
    access
        .cx
        .undo(move |cx| Ok(cx.pipeline.set_default_action(id, before)?));
    Ok(())
}

/// Synchronizes the counters of all entries.
pub fn synchronize(
    access: &mut Access<'_, '_>,
    table: &Table,
    target: &MatchTable,
) -> P4Result<()> {
    for state in access.cx.pipeline.entries(target.id)? {
        let counter = state.counter.unwrap_or_default();
        access
            .state
            .set_counter(table.id, state.handle.into(), counter);
    }
    let counter = access.cx.pipeline.direct_counter(target.id, None)?;
    access
        .state
        .set_counter(table.id, DEFAULT_CELL, counter.unwrap_or_default());
    Ok(())
}
