// SPDX-License-Identifier: Apache-2.0
//! Updates that keep all references intact.

use softswitch_pipeline::{Pipeline, Value};

use super::facts::{Subject, count};
use crate::p4rt::entity::{self, Context, Op};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::notes::Notes;
use crate::p4rt::references::{Dangling, References, Slot};
use crate::p4rt::schema::{Field, Schema};
use crate::proto::p4::v1::{Update, entity::Entity as Kind, packet_replication_engine_entry::Type};

/// Applies an update, unless it leaves a reference without its entry.
///
/// # Errors
/// The error of the update, or FAILED_PRECONDITION with the reference; then nothing has changed.
pub fn apply(schema: &Schema, update: &Update, op: Op, cx: &mut Context<'_>) -> P4Result<()> {
    let Some(subject) = subject(schema, update) else {
        return op(cx);
    };
    let mut counts = match cx.notes.references.take() {
        Some(counts) => counts,
        None => count(schema, cx.pipeline, cx.notes)?,
    };
    let before = subject.facts(schema, cx.pipeline, cx.notes);
    let steps_before = cx.undo.replace(Vec::new());
    let result = op(cx);
    let mut steps = cx.undo.take().unwrap_or_default();
    let result = result.and_then(|()| {
        let after = subject.facts(schema, cx.pipeline, cx.notes);
        counts
            .replace(&before, &after)
            .map_err(|dangling| error(schema, &dangling))
    });
    cx.notes.references = Some(counts);
    if result.is_err() {
        entity::undo(std::mem::take(&mut steps), cx);
    }
    cx.undo = steps_before.map(|mut all| {
        all.extend(steps);
        all
    });
    result
}

/// Checks all references of a pipeline.
///
/// # Errors
/// FAILED_PRECONDITION, with a reference without its entry.
pub fn check_all(schema: &Schema, pipeline: &Pipeline, notes: &mut Notes) -> P4Result<()> {
    if schema.references.is_empty() {
        return Ok(());
    }
    let counts = count(schema, pipeline, notes)?;
    let dangling = counts.dangling();
    let dangling = dangling.map(|(slot, values)| Dangling::New(slot, values.clone()));
    notes.references = Some(counts);
    dangling.map_or(Ok(()), |dangling| Err(error(schema, &dangling)))
}

/// Returns the object that an update changes, if it can have or be a reference.
fn subject<'a>(schema: &'a Schema, update: &Update) -> Option<Subject<'a>> {
    match update.entity.as_ref()?.entity.as_ref()? {
        Kind::TableEntry(entry) => {
            let table = schema.tables.get(entry.table_id)?;
            // The update has been decoded without an error.
            let key = entity::decode_entry_name(table, entry).ok()?;
            Some(match key {
                Some(key) => Subject::Entry(table, entry.table_id, key),
                None => Subject::Default(table),
            })
        }
        Kind::ActionProfileMember(member) => {
            Some(Subject::Member(member.action_profile_id, member.member_id))
        }
        Kind::PacketReplicationEngineEntry(entry) => match entry.r#type.as_ref()? {
            Type::MulticastGroupEntry(group) => {
                Some(Subject::MulticastGroup(group.multicast_group_id))
            }
            Type::CloneSessionEntry(_) => None,
        },
        _ => None,
    }
}

fn error(schema: &Schema, dangling: &Dangling) -> P4Error {
    let message = match dangling {
        Dangling::New(slot, values) => format!(
            "{} does not exist, but @refers_to demands it: insert it first",
            describe(schema, *slot, values)
        ),
        Dangling::Old(slot, values) => format!(
            "{} is in use by @refers_to: delete or change what refers to it first",
            describe(schema, *slot, values)
        ),
    };
    P4Error::failed_precondition(message)
}

/// Returns the name of an entry that has these values.
fn describe(schema: &Schema, slot: usize, values: &[Value]) -> String {
    let References { slots, .. } = &schema.references;
    match &slots[slot] {
        Slot::MulticastGroups => {
            let id = values[0].to_u64().unwrap_or(u64::MAX);
            format!("multicast group {id}")
        }
        Slot::Fields { table, fields } => {
            let Some(table) = schema.tables.get(*table) else {
                return String::new();
            };
            let fields = fields.iter().zip(values);
            let fields = fields.map(|(index, value)| describe_field(&table.fields[*index], value));
            let fields: Vec<_> = fields.collect();
            format!(
                "table {}: an entry with {}",
                table.name,
                fields.join(" and ")
            )
        }
    }
}

fn describe_field(field: &Field, value: &Value) -> String {
    if field.codec.is_name() {
        let name = field.codec.encode(value);
        return format!("{} = '{}'", field.name, String::from_utf8_lossy(&name));
    }
    format!("{} = {value}", field.name)
}
