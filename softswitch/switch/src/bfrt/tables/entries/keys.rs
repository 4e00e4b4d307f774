// SPDX-License-Identifier: Apache-2.0
//! Keys and handles of entries.

use softswitch_pipeline::{EntryKey, MatchField, MatchKind, Pipeline, TableInfo, Value};

use crate::bfrt::key::Key;
use crate::bfrt::link::MatchTable;
use crate::bfrt::schema::Table;
use crate::p4rt::error::{P4Error, P4Result};

/// The handle of the default entry, as in Tofino's drivers.
pub const DEFAULT_HANDLE: u32 = 1;

/// The handle of an entry with the pipeline's handle 0.
pub const FIRST_HANDLE: u32 = 2;

/// Returns the handle of an entry for clients.
pub fn encode_handle(handle: u32) -> u32 {
    handle.saturating_add(FIRST_HANDLE)
}

/// Returns the description of a table.
pub fn info<'a>(pipeline: &'a Pipeline, table: &MatchTable) -> &'a TableInfo {
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
