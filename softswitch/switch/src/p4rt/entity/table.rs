// SPDX-License-Identifier: Apache-2.0
//! Table entries (specification, section "TableEntry").

mod changes;
mod default_entry;
mod direct;
mod entry;
mod read;

use softswitch_pipeline::{EntryKey, Nanos};

use super::{Op, field_match, missing};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::notes::EntryNote;
use crate::p4rt::schema::{Schema, Table};
use crate::proto::p4::v1::{TableEntry, update::Type};

pub use entry::Before as EntryBefore;
pub use read::{encode_idle_entry, read, read_with};

/// The messages of `simple_switch_grpc`. Tests of p4-guide compare them word by word.
const LAST_HIT_IN_WRITE: &str = "has_time_since_last_hit must not be set in WriteRequest";
const UNSUPPORTED_TIMEOUT: &str =
    "idle_timeout_ns must be set to 0 for tables which do not support idle timeout";

/// Returns the table that an entity names.
pub fn find(schema: &Schema, id: u32) -> P4Result<&Table> {
    let table = schema.tables.get(id);
    table.ok_or_else(|| missing(schema, "table", id))
}

/// Decodes the fields that identify an entry.
pub fn decode_key(table: &Table, entry: &TableEntry) -> P4Result<EntryKey> {
    let name = &table.name;
    let fields = field_match::decode(format_args!("table {name}"), &table.fields, &entry.r#match)?;
    match (table.needs_priority, entry.priority) {
        (true, 1..) | (false, 0) => {}
        (true, p) => {
            return Err(P4Error::invalid(format!(
                "table {name}: the priority must be at least 1, not {p}"
            )));
        }
        (false, p) => {
            return Err(P4Error::invalid(format!(
                "table {name}: its entries have no priority (it must be 0, not {p}), \
                 since no field is matched by ternary, range or optional"
            )));
        }
    }
    Ok(EntryKey {
        fields,
        priority: entry.priority,
    })
}

/// Decodes the key of an entry; `None` for the default entry.
pub fn decode_name(table: &Table, entry: &TableEntry) -> P4Result<Option<EntryKey>> {
    if entry.is_default_action {
        check_default(table, entry)?;
        return Ok(None);
    }
    decode_key(table, entry).map(Some)
}

pub fn write(schema: &Schema, operation: Type, entry: &TableEntry) -> P4Result<Op> {
    let table = find(schema, entry.table_id)?;
    if entry.is_const {
        return Err(P4Error::invalid("is_const must not be set in a write"));
    }
    if entry.time_since_last_hit.is_some() {
        return Err(P4Error::invalid(LAST_HIT_IN_WRITE));
    }
    match entry.is_default_action {
        true => default_entry::write(schema, table, operation, entry),
        false => entry::write(schema, table, operation, entry),
    }
}

/// Checks that a request for the default entry does not have properties of other entries.
fn check_default(table: &Table, entry: &TableEntry) -> P4Result<()> {
    let what = if !entry.r#match.is_empty() || entry.priority != 0 {
        "match fields and no priority"
    } else if entry.idle_timeout_ns != 0 || entry.time_since_last_hit.is_some() {
        "idle time-out"
    } else {
        return Ok(());
    };
    Err(P4Error::invalid(format!(
        "table {}: the default entry has no {what}",
        table.name
    )))
}

fn decode_idle_timeout(table: &Table, entry: &TableEntry) -> P4Result<Nanos> {
    let invalid = |reason: &str| P4Error::invalid(format!("table {}: {reason}", table.name));
    let timeout = Nanos::try_from(entry.idle_timeout_ns)
        .map_err(|_| invalid("the idle time-out is negative"))?;
    if table.idle_timeout {
        return Ok(timeout);
    }
    if timeout != 0 {
        return Err(P4Error::invalid(UNSUPPORTED_TIMEOUT));
    }
    if entry.time_since_last_hit.is_some() {
        return Err(invalid(
            "it does not support idle time-outs: set support_timeout in the program",
        ));
    }
    Ok(0)
}

fn note(entry: &TableEntry) -> EntryNote {
    EntryNote {
        // A copy, because the slice would keep the whole request in memory.
        metadata: entry.metadata.to_vec().into(),
        controller_metadata: entry.controller_metadata,
        one_shot: None,
    }
}
