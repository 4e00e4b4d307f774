// SPDX-License-Identifier: Apache-2.0
//! Batches of updates.

use std::time::Instant;

use softswitch_pipeline::Nanos;
use tonic::Code;

use super::data::Data;
use super::key::Key;
use super::program::Program;
use super::schema::Table;
use super::tables::{Access, Done, Ports, Update, attributes};
use crate::p4rt::entity::{self, Context};
use crate::p4rt::error::{P4Error, P4Result};
use crate::proto::bfrt::entity::Entity as Kind;
use crate::proto::bfrt::table_mod_inc_flag::Type as ModInc;
use crate::proto::bfrt::update::Type;
use crate::proto::bfrt::write_request::Atomicity;
use crate::proto::bfrt::{
    self, PortStatusChgNotification, TableAttribute, TableEntry, table_entry,
};

/// Number of updates applied under one lock, while packets wait.
const UPDATES_PER_LOCK: usize = 32;

/// A decoded update.
enum Decoded<'a> {
    /// An update of entries in a pipe.
    Entry(Update<'a>, u32),
    Attribute(&'a Table, &'a TableAttribute),
    Operation(&'a Table, &'a str),
}

/// The results of a batch.
#[derive(Default)]
pub struct Outcome {
    /// The results of the updates. A batch that is undone ends with the error.
    pub results: Vec<P4Result<Done>>,
    /// Ports that were enabled or disabled.
    pub port_changes: Vec<PortStatusChgNotification>,
    /// The deadline passed before the last update.
    pub is_late: bool,
}

/// Applies a batch to a program, for a pipe. With `ignores_missing`, the deletion of an entry that does not exist does not
/// fail an atomic batch.
pub fn write(
    program: &Program,
    ports: &Ports,
    (updates, pipe): (&[bfrt::Update], u32),
    (atomicity, ignores_missing): (Atomicity, bool),
    (now, deadline): (Nanos, Option<Instant>),
) -> Outcome {
    let is_atomic = atomicity != Atomicity::ContinueOnError;
    let chunk = match is_atomic {
        true => updates.len().max(1),
        false => UPDATES_PER_LOCK,
    };
    let mut outcome = Outcome::default();
    for updates in updates.chunks(chunk) {
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            outcome.is_late = true;
            return outcome;
        }
        let decoded: Vec<_> = updates.iter().map(|u| decode(program, u, pipe)).collect();
        let mut state = program.state();
        program.deployment.with_context(now, |cx| {
            let before = is_atomic.then(|| state.clone());
            let mut access = Access {
                program,
                cx,
                state: &mut state,
                ports,
                port_changes: vec![],
            };
            if is_atomic {
                access.cx.undo = Some(vec![]);
            }
            for (update, message) in decoded.into_iter().zip(updates) {
                let is_delete = message.r#type() == Type::Delete;
                let result = update.and_then(|update| apply(&mut access, update));
                let failed = result.as_ref().is_err_and(|error| {
                    !(ignores_missing && is_delete && error.code == Code::NotFound)
                });
                outcome.results.push(result);
                if failed && is_atomic {
                    undo(access.cx);
                    if let Some(before) = before {
                        *access.state = before;
                    }
                    return;
                }
            }
            outcome.port_changes.append(&mut access.port_changes);
        });
    }
    outcome
}

fn undo(cx: &mut Context<'_>) {
    let steps = cx.undo.take().unwrap_or_default();
    entity::undo(steps, cx);
}

fn apply(access: &mut Access<'_, '_>, update: Decoded<'_>) -> P4Result<Done> {
    match update {
        Decoded::Entry(update, pipe) => {
            let pipes = access.pipes(update.table, pipe)?;
            access.on_pipes(pipes, |access| access.write(&update))
        }
        Decoded::Attribute(table, attribute) => {
            attributes::write(access, table, attribute).map(|()| Done::Made)
        }
        Decoded::Operation(table, name) => access.operate(table, name).map(|()| Done::Made),
    }
}

fn decode<'a>(program: &'a Program, update: &'a bfrt::Update, pipe: u32) -> P4Result<Decoded<'a>> {
    let kind = update.entity.as_ref().and_then(|e| e.entity.as_ref());
    let kind = kind.ok_or_else(|| P4Error::invalid("the update does not have an entity"))?;
    let operation = match Type::try_from(update.r#type) {
        Ok(Type::Unspecified) | Err(_) => return Err(P4Error::invalid("unspecified update type")),
        Ok(operation) => operation,
    };
    let schema = &program.schema;
    match kind {
        Kind::TableEntry(entry) => {
            let table = schema.table(entry.table_id)?;
            let pipe = entry.entry_tgt.map_or(pipe, |target| target.pipe_id);
            let update = decode_entry(table, operation, entry)?;
            Ok(Decoded::Entry(update, pipe))
        }
        Kind::TableAttribute(attribute) => {
            let table = schema.table(attribute.table_id)?;
            Ok(Decoded::Attribute(table, attribute))
        }
        Kind::TableOperation(given) => {
            let table = schema.table(given.table_id)?;
            Ok(Decoded::Operation(table, &given.table_operations_type))
        }
        Kind::TableUsage(_) | Kind::ObjectId(_) | Kind::Handle(_) => Err(P4Error::unimplemented(
            "usage, ids and handles can only be read",
        )),
    }
}

#[allow(deprecated)]
fn decode_entry<'a>(table: &'a Table, operation: Type, entry: &TableEntry) -> P4Result<Update<'a>> {
    let name = &table.name;
    let key = match &entry.value {
        Some(table_entry::Value::Key(key)) if entry.is_default_entry => {
            if !key.fields.is_empty() {
                let message = format!("table {name}: the default entry does not have a key");
                return Err(P4Error::invalid(message));
            }
            None
        }
        Some(table_entry::Value::Key(key)) => Some(Key::decode(table, key)?),
        Some(table_entry::Value::HandleId(_)) => {
            let message =
                format!("table {name}: entries are written by their keys, not by handles");
            return Err(P4Error::invalid(message));
        }
        None => None,
    };
    let flags = entry.table_flags.unwrap_or_default();
    let old_flag = entry.table_mod_inc_flag.as_ref().map(|flag| flag.r#type());
    Ok(Update {
        table,
        operation,
        key,
        data: Data::decode(table, entry.data.as_ref())?,
        is_default: entry.is_default_entry,
        removes: flags.mod_del || old_flag == Some(ModInc::ModIncDelete),
        resets_counters: operation == Type::Modify && flags.reset_stats,
    })
}
