// SPDX-License-Identifier: Apache-2.0
//! Entries of match-action tables, and default entries.

mod direct;

use softswitch_pipeline::{
    ActionCall, Entry, EntryAction, EntryKey, EntryState, MatchField, MatchKind, Nanos, Pipeline,
    TableInfo, Value,
};

use super::{Access, Query, Row, Update};
use crate::bfrt::data::{Data, FieldValue};
use crate::bfrt::key::Key;
use crate::bfrt::link::{Actions, MatchTable};
use crate::bfrt::schema::{Scope, Table};
use crate::p4rt::entity::EntryBefore;
use crate::p4rt::error::{P4Error, P4Result};
use crate::proto::bfrt::update::Type;
use direct::Direct;

pub use direct::{decode_counter, decode_register, encode_counter, encode_register};

const NANOS_PER_MILLI: Nanos = 1_000_000;

/// The handle of the default entry, as in Tofino's drivers.
const DEFAULT_HANDLE: u32 = 1;

/// The handle of an entry with the pipeline's handle 0.
const FIRST_HANDLE: u32 = 2;

/// Returns the handle of an entry for clients.
pub fn encode_handle(handle: u32) -> u32 {
    handle.saturating_add(FIRST_HANDLE)
}

fn info<'a>(pipeline: &'a Pipeline, table: &MatchTable) -> &'a TableInfo {
    &pipeline.program().info().tables[table.id.index()]
}

/// Returns the match that every packet has, for an absent field; an exact field must then be 0.
fn wildcard(kind: MatchKind, width: u32) -> MatchField {
    let zero = || Value::from(0u32);
    match kind {
        MatchKind::Exact => MatchField::Exact(zero()),
        MatchKind::Lpm => MatchField::Lpm {
            value: zero(),
            prefix_len: 0,
        },
        MatchKind::Ternary => MatchField::Ternary {
            value: zero(),
            mask: zero(),
        },
        MatchKind::Range => MatchField::Range {
            low: zero(),
            high: Value::ones(width),
        },
        MatchKind::Optional => MatchField::Optional(None),
        MatchKind::Valid => MatchField::Valid(false),
    }
}

/// Returns the key of an entry in the pipeline. There the larger priority wins, and in BfRuntime the smaller one.
pub fn decode_key(
    pipeline: &Pipeline,
    table: &Table,
    target: &MatchTable,
    key: &Key,
) -> P4Result<EntryKey> {
    let info = info(pipeline, target);
    let fields = info.key.iter().enumerate().map(|(at, field)| {
        match (key.0.get(at).cloned().flatten(), field.kind) {
            (None, kind) => wildcard(kind, field.width),
            (Some(MatchField::Exact(value)), MatchKind::Valid) => {
                MatchField::Valid(value.bits() != 0)
            }
            (Some(given), _) => given,
        }
    });
    let given = match key.0.get(info.key.len()) {
        Some(Some(_)) => key.number(table, info.key.len())?,
        _ => 0,
    };
    let priority = i32::try_from(given).ok().filter(|p| *p < i32::MAX);
    let priority = priority.ok_or_else(|| {
        P4Error::invalid(format!("table {}: the priority is too large", table.name))
    })?;
    Ok(EntryKey {
        fields: fields.collect(),
        priority: if info.needs_priority {
            i32::MAX - priority
        } else {
            0
        },
    })
}

/// Returns the key of an entry for clients.
pub fn encode_key(info: &TableInfo, key: &EntryKey) -> Key {
    let mut fields: Vec<_> = key.fields.iter().cloned().map(Some).collect();
    if info.needs_priority {
        let priority = i32::MAX.saturating_sub(key.priority).unsigned_abs();
        fields.push(Some(MatchField::Exact(Value::from(priority))));
    }
    Key(fields)
}

/// Decodes a call. Arguments that are absent stay as they are in an earlier call of the same action.
pub fn decode_call(
    table: &Table,
    actions: &Actions,
    data: &Data,
    earlier: Option<&ActionCall>,
) -> P4Result<ActionCall> {
    let invalid = |reason: &str| P4Error::invalid(format!("table {}: {reason}", table.name));
    let found = actions.get(&data.action);
    let (action, fields) = found.ok_or_else(|| invalid("missing or unknown action"))?;
    let earlier = earlier.filter(|call| call.action == *action);
    let args = fields.iter().enumerate().map(|(at, id)| {
        match (
            data.values.get(id),
            earlier.and_then(|call| call.args.get(at)),
        ) {
            (Some(FieldValue::Number(value)), _) => Ok(value.clone()),
            (Some(FieldValue::Bool(value)), _) => Ok(Value::from(u32::from(*value))),
            (None, Some(value)) => Ok(value.clone()),
            _ => Err(invalid(&format!(
                "missing value of the parameter with id {id}"
            ))),
        }
    });
    Ok(ActionCall {
        action: *action,
        args: args.collect::<P4Result<_>>()?,
    })
}

/// Adds a call to the data of an entry.
pub fn encode_call(actions: &Actions, call: &ActionCall, data: &mut Data) {
    let mut all = actions.iter();
    if let Some((id, (_, fields))) = all.find(|(_, (action, _))| *action == call.action) {
        data.action = *id;
        let values = call.args.iter().cloned().map(FieldValue::Number);
        data.values.extend(fields.iter().copied().zip(values));
    }
}

/// Decodes the action of an entry; `earlier` is the present one.
fn decode_action(
    update: &Update<'_>,
    target: &MatchTable,
    earlier: Option<&EntryAction>,
) -> P4Result<EntryAction> {
    let (table, data) = (update.table, &update.data);
    let refused = match update.is_default {
        true => Scope::TableOnly,
        false => Scope::DefaultOnly,
    };
    if table
        .action(data.action)
        .is_some_and(|action| action.scope == refused)
    {
        return Err(update.invalid("the action is not for this kind of entry"));
    }
    if target.profile.is_some() {
        let member = data.u32(table, "$ACTION_MEMBER_ID");
        let group = data.u32(table, "$SELECTOR_GROUP_ID");
        return match (member, group, earlier) {
            (Some(id), None, _) => Ok(EntryAction::Member(id)),
            (None, Some(id), _) => Ok(EntryAction::Group(id)),
            (None, None, Some(earlier)) => Ok(earlier.clone()),
            _ => {
                Err(update.invalid("an entry needs either $ACTION_MEMBER_ID or $SELECTOR_GROUP_ID"))
            }
        };
    }
    match earlier {
        Some(earlier) if data.action == 0 => Ok(earlier.clone()),
        Some(EntryAction::Direct(call)) => {
            decode_call(table, &target.actions, data, Some(call)).map(EntryAction::Direct)
        }
        _ => decode_call(table, &target.actions, data, None).map(EntryAction::Direct),
    }
}

/// Checks that a group has active members.
fn check_group(
    pipeline: &Pipeline,
    update: &Update<'_>,
    target: &MatchTable,
    action: &EntryAction,
) -> P4Result<()> {
    let (Some(profile), EntryAction::Group(id)) = (target.profile, action) else {
        return Ok(());
    };
    match pipeline.group(profile, *id)?.members.is_empty() {
        true => Err(update.invalid("the group is empty")),
        false => Ok(()),
    }
}

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
    let direct = Direct::decode(update, target, None)?;
    let entry = Entry {
        key: key.clone(),
        action,
        idle_timeout: ttl(update).unwrap_or(0),
    };
    let now = access.cx.now;
    access.cx.pipeline.insert_entry(id, entry, now)?;
    direct.set(access.cx.pipeline, target, Some(&key))?;
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
    let direct = Direct::decode(update, target, state.meter)?;
    let entry = Entry {
        key: key.clone(),
        action,
        idle_timeout: ttl(update).unwrap_or(state.entry.idle_timeout),
    };
    let now = access.cx.now;
    access.cx.pipeline.modify_entry(id, entry, now)?;
    direct.set(access.cx.pipeline, target, Some(&key))?;
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
    let direct = Direct::decode(update, target, meter)?;
    if action != before && !(action.is_none() && info(access.cx.pipeline, target).const_default) {
        access.cx.pipeline.set_default_action(id, action)?;
    }
    direct.set(access.cx.pipeline, target, None)?;
    access
        .cx
        .undo(move |cx| Ok(cx.pipeline.set_default_action(id, before)?));
    Ok(())
}

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
    state: &EntryState,
    now: Nanos,
) -> P4Result<Row> {
    let mut data = data(table, target, Some(&state.entry.action));
    direct::encode(table, &mut data, state.counter, state.meter);
    direct::encode_state(pipeline, (table, target), &mut data, &state.entry.key)?;
    let idle = now.saturating_sub(state.last_hit);
    let timeout = state.entry.idle_timeout;
    let remaining = timeout.saturating_sub(idle).div_ceil(NANOS_PER_MILLI);
    let remaining = u32::try_from(remaining).unwrap_or(u32::MAX);
    data.set(table, "$ENTRY_TTL", remaining);
    let is_active = timeout == 0 || idle < timeout;
    let hit_state = if is_active {
        "ENTRY_ACTIVE"
    } else {
        "ENTRY_IDLE"
    };
    data.set(table, "$ENTRY_HIT_STATE", hit_state);
    Ok(Row {
        key: Some(encode_key(info(pipeline, target), &state.entry.key)),
        data,
    })
}

pub fn read(
    access: &mut Access<'_, '_>,
    query: &Query<'_>,
    target: &MatchTable,
) -> P4Result<Vec<Row>> {
    let (table, id) = (query.table, target.id);
    let pipeline = &access.cx.pipeline;
    if query.is_default || query.handle == Some(DEFAULT_HANDLE) {
        let action = pipeline.default_action(id)?;
        let mut data = data(table, target, action.as_ref());
        let (counter, meter) = (
            pipeline.direct_counter(id, None)?,
            pipeline.direct_meter(id, None)?,
        );
        direct::encode(table, &mut data, counter, meter);
        return Ok(vec![Row { key: None, data }]);
    }
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
    let now = access.cx.now;
    let rows = states.iter();
    rows.map(|state| row(pipeline, (table, target), state, now))
        .collect()
}
