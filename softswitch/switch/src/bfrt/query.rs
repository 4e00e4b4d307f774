// SPDX-License-Identifier: Apache-2.0
//! Reads.

use std::time::Instant;

use softswitch_pipeline::{Nanos, PipeSet};

use super::data::{Data, Filter};
use super::key::Key;
use super::link::Object;
use super::program::Program;
use super::schema::{Schema, Table, is_called};
use super::tables::{Access, Ports, Query, Row, attributes};
use super::target::whole_device;
use crate::p4rt::error::{P4Error, P4Result};
use crate::proto::bfrt::entity::Entity as Kind;
use crate::proto::bfrt::object_id::table_object::Names;
use crate::proto::bfrt::object_id::{Object as Named, TableObject};
use crate::proto::bfrt::{
    Entity, HandleId, ObjectId, TableEntry, TableUsage, TargetDevice, handle_id, table_entry,
};

/// Number of requests answered under one lock, while packets wait.
const REQUESTS_PER_LOCK: usize = 32;

/// Position of the pipe in a handle.
const HOLDER_SHIFT: u32 = 28;

/// Answers requests for a target: the entities, and the result of each request. Returns `None` if the deadline passes.
pub fn read(
    program: &Program,
    ports: &Ports,
    (requests, target): (&[Entity], TargetDevice),
    (now, deadline): (Nanos, Option<Instant>),
) -> Option<(Vec<Entity>, Vec<P4Result<()>>)> {
    let (mut entities, mut results) = (Vec::new(), Vec::new());
    for requests in requests.chunks(REQUESTS_PER_LOCK) {
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return None;
        }
        let mut state = program.state();
        program.deployment.with_context(now, |cx| {
            let mut access = Access {
                program,
                cx,
                state: &mut state,
                ports,
                port_changes: vec![],
            };
            for request in requests {
                results.push(answer(&mut access, (request, target), &mut entities));
            }
        });
    }
    Some((entities, results))
}

fn wrap(kind: Kind) -> Entity {
    Entity { entity: Some(kind) }
}

fn answer(
    access: &mut Access<'_, '_>,
    (request, target): (&Entity, TargetDevice),
    out: &mut Vec<Entity>,
) -> P4Result<()> {
    let kind = request.entity.as_ref();
    let kind = kind.ok_or_else(|| P4Error::invalid("the request does not have an entity"))?;
    let program = access.program;
    let schema = &program.schema;
    let answer = match kind {
        Kind::TableEntry(entry) => {
            let table = schema.table(entry.table_id)?;
            return read_entries(access, table, (entry, target), out);
        }
        Kind::TableUsage(usage) => {
            let table = schema.table(usage.table_id)?;
            let pipes = access.pipes(table, target.pipe_id).unwrap_or(PipeSet::ALL);
            let count = access.on_pipes(pipes, |access| access.usage(table))?;
            Kind::TableUsage(TableUsage {
                table_id: table.id,
                usage: u32::try_from(count).unwrap_or(u32::MAX),
                ..Default::default()
            })
        }
        Kind::TableAttribute(attribute) => {
            let table = schema.table(attribute.table_id)?;
            Kind::TableAttribute(attributes::read(access.state, table, attribute)?)
        }
        Kind::ObjectId(given) => Kind::ObjectId(ObjectId {
            object: given.object.clone(),
            id: object_id(schema, given)?,
        }),
        Kind::Handle(handle) => {
            let table = schema.table(handle.table_id)?;
            let Some(handle_id::Value::Key(key)) = &handle.value else {
                let message = format!("table {}: missing key", table.name);
                return Err(P4Error::invalid(message));
            };
            let key = Key::decode(table, key)?;
            let pipes = access.pipes(table, target.pipe_id)?;
            let handle = access.on_pipes(pipes, |access| access.handle(table, &key))?;
            let handle = with_holder(handle, access.holder(table, target.pipe_id));
            Kind::Handle(HandleId {
                table_id: table.id,
                value: Some(handle_id::Value::HandleId(handle)),
            })
        }
        Kind::TableOperation(_) => {
            return Err(P4Error::unimplemented("operations cannot be read"));
        }
    };
    out.push(wrap(answer));
    Ok(())
}

/// Returns a handle with the pipe that holds the entry.
fn with_holder(handle: u32, pipe: u32) -> u32 {
    handle | pipe << HOLDER_SHIFT
}

/// Splits the pipe that holds the entry off a handle.
fn without_holder(handle: u32) -> (u32, u32) {
    let pipe = handle >> HOLDER_SHIFT;
    (handle & !(pipe << HOLDER_SHIFT), pipe)
}

#[allow(deprecated)]
fn read_entries(
    access: &mut Access<'_, '_>,
    table: &Table,
    (entry, target): (&TableEntry, TargetDevice),
    out: &mut Vec<Entity>,
) -> P4Result<()> {
    let (key, handle) = match &entry.value {
        Some(table_entry::Value::Key(key)) => (Some(Key::decode(table, key)?), None),
        Some(table_entry::Value::HandleId(handle)) => (None, Some(*handle)),
        None => (None, None),
    };
    let (handle, holder) = handle.map(without_holder).unzip();
    let flags = entry.table_flags.unwrap_or_default();
    let old_flags = entry.table_read_flag.unwrap_or_default();
    let query = Query {
        table,
        key: key.filter(|_| !entry.is_default_entry),
        handle,
        is_default: entry.is_default_entry,
        from_hw: flags.from_hw || old_flags.from_hw,
        filter: Filter::decode(table, entry.data.as_ref())?,
    };
    let target = entry.entry_tgt.unwrap_or(target);
    let pipe = target.pipe_id;
    let is_one = query.key.is_some() || query.handle.is_some();
    let found = match (is_one, query.is_default) {
        (true, _) => {
            let pipes = access.pipes_with_entry(table, (pipe, query.from_hw), holder)?;
            Ok(vec![pipes])
        }
        (false, true) => access.pipes(table, pipe).map(|pipes| vec![pipes]),
        (false, false) => access.pipes_with_entries(table, pipe),
    };
    let sets = match found {
        // Each pipe of the chip can be read.
        Err(_) if query.from_hw && pipe < access.cx.pipeline.pipes() => vec![PipeSet::one(pipe)],
        found => found?,
    };
    let keys_only = flags.key_only || old_flags.key_only;
    let mut rows = Vec::new();
    for pipes in sets {
        rows.extend(access.read_on_pipes(&query, pipes)?);
    }
    let target = match (access.program.object(table), holder) {
        (Object::Match(_), Some(pipe_id)) if access.has_scope(table) => TargetDevice {
            pipe_id,
            ..whole_device()
        },
        (Object::Match(_), _) => whole_device(),
        _ => target,
    };
    let target = entry.entry_tgt.or_else(|| keys_only.then_some(target));
    out.extend(
        rows.into_iter()
            .map(|row| encode(&query, row, (target, keys_only))),
    );
    Ok(())
}

/// Encodes an entry, of which other pipes have the values `others`, with a target if one is wanted.
fn encode(
    query: &Query<'_>,
    (row, others): (Row, Vec<Data>),
    (target, keys_only): (Option<TargetDevice>, bool),
) -> Entity {
    let table = query.table;
    let data = || row.data.encode(table, &query.filter, &others);
    wrap(Kind::TableEntry(TableEntry {
        table_id: table.id,
        data: (!keys_only).then(data),
        is_default_entry: query.is_default,
        entry_tgt: target,
        value: row
            .key
            .map(|key| table_entry::Value::Key(key.encode(table))),
        ..Default::default()
    }))
}

/// Returns the id of an object with a name.
fn object_id(schema: &Schema, given: &ObjectId) -> P4Result<u32> {
    let not_found = |what: &str| P4Error::not_found(format!("unknown {what}"));
    match &given.object {
        Some(Named::TableObject(object)) => {
            let table = schema.table_by_name(&object.table_name);
            table_object_id(table.ok_or_else(|| not_found("table"))?, object)
        }
        Some(Named::LearnObject(object)) => {
            let mut digests = schema.digests.iter();
            let digest = digests.find(|digest| is_called(&digest.name, &object.learn_name));
            let digest = digest.ok_or_else(|| not_found("learn object"))?;
            let Some(field) = &object.data_field_name else {
                return Ok(digest.id);
            };
            let mut fields = digest.fields.iter();
            let found = fields.find(|f| f.name == field.field);
            found.map(|f| f.id).ok_or_else(|| not_found("field"))
        }
        None => Err(P4Error::invalid("the object does not have a name")),
    }
}

fn table_object_id(table: &Table, object: &TableObject) -> P4Result<u32> {
    let action = |name: &str| table.actions.iter().find(|a| is_called(&a.name, name));
    let id = match &object.names {
        None => Some(table.id),
        Some(Names::ActionName(name)) => action(&name.action).map(|action| action.id),
        Some(Names::KeyFieldName(name)) => {
            let field = table.key.iter().find(|f| f.name == name.field);
            field.map(|field| field.id)
        }
        Some(Names::DataFieldName(name)) => {
            let own = action(&name.action).into_iter().flat_map(|a| &a.fields);
            let mut fields = own.chain(&table.data);
            fields.find(|f| f.name == name.field).map(|field| field.id)
        }
    };
    id.ok_or_else(|| P4Error::not_found(format!("table {}: unknown name", table.name)))
}
