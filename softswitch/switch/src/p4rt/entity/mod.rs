// SPDX-License-Identifier: Apache-2.0
//! P4Runtime's entities: decoding, applying to the pipeline, and reading back.
//!
//! A write is first decoded into an [`Op`], which needs only the schema. Then the op runs with the pipeline locked, so
//! that packets wait as briefly as possible. An op that fails changes nothing, and one that succeeds can be undone.

mod action;
mod call;
mod counter;
mod digest;
mod direct;
mod field_match;
mod group;
mod member;
mod meter;
mod one_shot;
mod register;
mod replication;
mod restriction;
mod table;
mod value_set;

use std::ops::Range;

use softswitch_pipeline::{Nanos, Pipeline, StateError};

use super::error::{P4Error, P4Result};
use super::notes::Notes;
use super::schema::{Objects, Schema};
use crate::dataplane::SharedPipeline;
use crate::proto::p4::v1::{Entity, Index, Update, entity::Entity as Kind, update};

pub use table::{EntryBefore, decode_name as decode_entry_name, encode_idle_entry};

/// The state that an op changes.
pub struct Context<'a> {
    /// The pipeline.
    pub pipeline: &'a mut Pipeline,
    /// The control plane's own state.
    pub notes: &'a mut Notes,
    /// The switch's time.
    pub now: Nanos,
    /// Steps that undo the changes, in reverse order; `None` if they will not be undone.
    pub undo: Option<Vec<Op>>,
}

impl Context<'_> {
    /// Returns the previous state, if it is needed to undo the change.
    pub fn before<T>(&self, look: impl FnOnce(&Pipeline, &Notes) -> T) -> Option<T> {
        self.undo.as_ref().map(|_| look(self.pipeline, self.notes))
    }

    /// Records how to undo a change.
    pub fn undo(&mut self, op: impl FnOnce(&mut Context<'_>) -> P4Result<()> + Send + 'static) {
        if let Some(ops) = &mut self.undo {
            ops.push(Box::new(op));
        }
    }
}

/// Undoes changes, the last one first.
pub fn undo(steps: Vec<Op>, context: &mut Context<'_>) {
    for step in steps.into_iter().rev() {
        if let Err(error) = step(context) {
            tracing::error!("an update could not be undone completely: {error}");
            debug_assert!(false, "undoing: {error}");
        }
    }
}

/// A decoded update.
pub type Op = Box<dyn FnOnce(&mut Context<'_>) -> P4Result<()> + Send>;

/// The state that reads use.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The schema.
    pub schema: &'a Schema,
    /// The pipeline.
    pub pipeline: &'a SharedPipeline,
    /// The control plane's own state.
    pub notes: &'a Notes,
    /// The switch's time.
    pub now: Nanos,
}

/// Number of objects read under one lock, while packets wait.
const OBJECTS_PER_LOCK: usize = 128;

impl View<'_> {
    /// Reads from the locked pipeline, while packets wait.
    fn look<R>(&self, f: impl FnOnce(&Pipeline) -> Result<R, StateError>) -> P4Result<R> {
        Ok(f(&self.pipeline.lock())?)
    }

    /// Reads cells of an array.
    fn look_at_cells<R>(
        &self,
        cells: Range<usize>,
        read: impl Fn(&Pipeline, usize) -> Result<R, StateError>,
    ) -> P4Result<Vec<(Index, R)>> {
        let mut values = Vec::with_capacity(cells.len());
        for begin in cells.clone().step_by(OBJECTS_PER_LOCK) {
            let end = cells.end.min(begin + OBJECTS_PER_LOCK);
            self.look(|pipeline| {
                for cell in begin..end {
                    let index = Index { index: cell as i64 };
                    values.push((index, read(pipeline, cell)?));
                }
                Ok(())
            })?;
        }
        Ok(values)
    }
}

/// Decodes an update.
///
/// # Errors
/// If it contradicts P4Info or the specification.
pub fn decode(schema: &Schema, update: &Update) -> P4Result<Op> {
    let kind = update
        .entity
        .as_ref()
        .and_then(|e| e.entity.as_ref())
        .ok_or_else(|| P4Error::invalid("the update has no entity"))?;
    let action = match update.r#type() {
        update::Type::Unspecified => {
            return Err(P4Error::invalid(
                "the update's type must be INSERT, MODIFY or DELETE",
            ));
        }
        given => given,
    };
    match kind {
        Kind::TableEntry(e) => table::write(schema, action, e),
        Kind::ActionProfileMember(e) => member::write(schema, action, e),
        Kind::ActionProfileGroup(e) => group::write(schema, action, e),
        Kind::CounterEntry(e) => counter::write(schema, action, e),
        Kind::DirectCounterEntry(e) => direct::write_counter(schema, action, e),
        Kind::MeterEntry(e) => meter::write(schema, action, e),
        Kind::DirectMeterEntry(e) => direct::write_meter(schema, action, e),
        Kind::RegisterEntry(e) => register::write(schema, action, e),
        Kind::ValueSetEntry(e) => value_set::write(schema, action, e),
        Kind::PacketReplicationEngineEntry(e) => replication::write(action, e),
        Kind::DigestEntry(e) => digest::write(schema, action, e),
        Kind::ExternEntry(_) => Err(no_extern()),
    }
}

/// Appends the requested entities.
///
/// # Errors
/// If the request contradicts P4Info or the specification.
pub fn read(view: View<'_>, request: &Entity, out: &mut Vec<Entity>) -> P4Result<()> {
    let kind = request.entity.as_ref().ok_or_else(|| {
        P4Error::invalid("the read request has no entity: use a wildcard per kind of entity")
    })?;
    match kind {
        Kind::TableEntry(e) => table::read(view, e, out),
        Kind::ActionProfileMember(e) => member::read(view, e, out),
        Kind::ActionProfileGroup(e) => group::read(view, e, out),
        Kind::CounterEntry(e) => counter::read(view, e, out),
        Kind::DirectCounterEntry(e) => direct::read_counter(view, e, out),
        Kind::MeterEntry(e) => meter::read(view, e, out),
        Kind::DirectMeterEntry(e) => direct::read_meter(view, e, out),
        Kind::RegisterEntry(e) => register::read(view, e, out),
        Kind::ValueSetEntry(e) => value_set::read(view, e, out),
        Kind::PacketReplicationEngineEntry(e) => replication::read(view, e, out),
        Kind::DigestEntry(e) => digest::read(view, e, out),
        // A wildcard over all extern types gives an empty result.
        Kind::ExternEntry(e) if e.extern_type_id == 0 && e.extern_id == 0 => Ok(()),
        Kind::ExternEntry(_) => Err(no_extern()),
    }
}

fn no_extern() -> P4Error {
    P4Error::unimplemented("v1model does not have extern entries")
}

fn wrap(kind: Kind) -> Entity {
    Entity { entity: Some(kind) }
}

/// Returns the error for an id that is not in P4Info.
fn unknown(kind: &str, id: u32) -> P4Error {
    P4Error::invalid(format!("unknown {kind} id {id:#010x}: it is not in P4Info"))
}

/// The error for a table or action profile that the program lacks.
fn missing(schema: &Schema, kind: &str, id: u32) -> P4Error {
    match schema.removed.get(&id) {
        Some(name) => P4Error::invalid(format!(
            "{kind} {name}: the compiler removed it, since the program never applies it"
        )),
        None => unknown(kind, id),
    }
}

fn only_modify(kind: &str, action: update::Type) -> P4Result<()> {
    if action == update::Type::Modify {
        return Ok(());
    }
    Err(P4Error::invalid(format!(
        "{kind} cannot be inserted or deleted, only modified"
    )))
}

/// Returns the objects of one kind that an id selects: one, or all if it is 0.
fn selected<'a, T>(objects: &'a Objects<T>, kind: &str, id: u32) -> P4Result<Vec<(u32, &'a T)>> {
    if id == 0 {
        return Ok(objects.iter().collect());
    }
    let object = objects.get(id).ok_or_else(|| unknown(kind, id))?;
    Ok(vec![(id, object)])
}

/// Returns the cells that an index selects: one, or all without an index.
fn cells(index: Option<&Index>, size: usize, name: &str) -> P4Result<Range<usize>> {
    let Some(Index { index }) = index else {
        return Ok(0..size);
    };
    if *index < 0 {
        return Err(P4Error::invalid(format!(
            "{name}: index {index} is negative"
        )));
    }
    match usize::try_from(*index) {
        Ok(i) if i < size => Ok(i..i + 1),
        _ => Err(P4Error::out_of_range(format!(
            "{name}: index {index} is out of range: the size is {size}"
        ))),
    }
}
