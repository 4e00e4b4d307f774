// SPDX-License-Identifier: Apache-2.0
//! The tables: updates and reads of one kind of object per file.

pub mod attributes;
mod counters;
mod device;
mod entries;
mod filters;
mod groups;
mod groups_of_nodes;
mod handles;
mod hashes;
mod key_masks;
mod loopback;
mod members;
mod meters;
mod mirror;
mod multicast;
mod multicast_ports;
mod packet_generator;
mod port_metadata;
mod ports;
mod registers;
mod requests;
mod stored;
mod value_sets;
mod view;

use softswitch_pipeline::{CounterValue, EntryKey, Pipeline, StateError};

use super::data::Filter;
use super::key::Key;
use super::link::{Fixed, Object};
use super::program::Program;
use super::schema::Table;
use super::state::State;
use crate::p4rt::entity::Context;
use crate::p4rt::error::{P4Error, P4Result};
use crate::proto::bfrt::PortStatusChgNotification;
use crate::proto::bfrt::update::Type;

pub use entries::encode_key as encode_entry_key;
pub use requests::{Done, Ports, Query, Row, Update};

/// The state that updates and reads use.
pub struct Access<'a, 'b> {
    /// The program.
    pub program: &'a Program,
    /// The pipeline.
    pub cx: &'a mut Context<'b>,
    /// The state outside the pipeline.
    pub state: &'a mut State,
    /// The ports.
    pub ports: &'a Ports,
    /// Ports that were enabled or disabled.
    pub port_changes: Vec<PortStatusChgNotification>,
}

impl Access<'_, '_> {
    /// Makes a change.
    ///
    /// # Errors
    /// Why it was refused; nothing has changed then.
    pub fn write(&mut self, update: &Update<'_>) -> P4Result<Done> {
        if update.operation == Type::InsertOrModify {
            return self.insert_or_modify(update);
        }
        match self.program.object(update.table) {
            Object::Match(table) => entries::write(self, update, table),
            Object::Members(profile, actions) => members::write(self, update, *profile, actions),
            Object::Groups(profile) => groups::write(self, update, *profile),
            Object::Counter(id) => counters::write(self, update, *id),
            Object::Meter(id) => meters::write(self, update, *id),
            Object::Register(arrays) => registers::write(self, update, arrays),
            Object::RegisterParameter(id) => registers::write_parameter(self, update, *id),
            Object::Filter(id) => filters::write(self, update, *id),
            Object::ValueSet(id) => value_sets::write(self, update, *id),
            Object::PortMetadata => port_metadata::write(self, update),
            Object::Hash(id, kind) => hashes::write(self, update, (*id, *kind)),
            Object::Fixed(Fixed::Ports) => ports::write(self, update),
            Object::Fixed(Fixed::Mirror | Fixed::Multicast) => multicast::write(self, update),
            Object::Fixed(Fixed::Generator(kind)) => packet_generator::write(self, update, *kind),
            Object::Fixed(Fixed::Device) => device::write(self, update),
            Object::Fixed(_) | Object::GroupLookup(_) | Object::Missing => {
                Err(update.unsupported())
            }
        }?;
        Ok(Done::Made)
    }

    fn insert_or_modify(&mut self, update: &Update<'_>) -> P4Result<Done> {
        let query = Query {
            table: update.table,
            key: Some(update.key()?.clone()),
            handle: None,
            is_default: false,
            from_hw: false,
            filter: Filter::default(),
        };
        let exists = self.read(&query).is_ok();
        let update = Update {
            operation: if exists { Type::Modify } else { Type::Insert },
            key: update.key.clone(),
            data: update.data.clone(),
            ..*update
        };
        self.write(&update)?;
        Ok(if exists { Done::Modified } else { Done::Made })
    }

    /// Reads entries.
    ///
    /// # Errors
    /// NOT_FOUND if there is no entry with the key; INVALID_ARGUMENT if the action of the entry is not the requested one.
    pub fn read(&mut self, query: &Query<'_>) -> P4Result<Vec<Row>> {
        if query.handle.is_some() && !matches!(self.program.object(query.table), Object::Match(_)) {
            return handles::read(self, query);
        }
        let rows = match self.program.object(query.table) {
            Object::Match(table) => entries::read(self, query, table),
            Object::Members(profile, actions) => members::read(self, query, *profile, actions),
            Object::Groups(_) => stored::read(self.state, query),
            Object::GroupLookup(profile) => groups::look_up(self, query, *profile),
            Object::Counter(id) => counters::read(self, query, *id),
            Object::Meter(id) => meters::read(self, query, *id),
            Object::Register(arrays) => registers::read(self, query, arrays),
            Object::RegisterParameter(id) => registers::read_parameter(self, query, *id),
            Object::Filter(id) => filters::read(self, query, *id),
            Object::ValueSet(id) => value_sets::read(self, query, *id),
            Object::PortMetadata => port_metadata::read(self, query),
            Object::Hash(id, kind) => hashes::read(self, query, (*id, *kind)),
            Object::Fixed(Fixed::Mirror | Fixed::Multicast) => stored::read(self.state, query),
            Object::Fixed(Fixed::Generator(kind)) => packet_generator::read(self, query, *kind),
            Object::Fixed(Fixed::Device) => device::read(self, query),
            Object::Fixed(kind) => ports::read(self, query, *kind),
            Object::Missing => Ok(vec![]),
        }?;
        let wanted = query.filter.action;
        let has_action = |row: &Row| wanted == 0 || row.data.action == wanted;
        if query.key.is_some() && !rows.iter().all(has_action) {
            let name = &query.table.name;
            let message = format!("table {name}: the entry has another action than the one read");
            return Err(P4Error::invalid(message));
        }
        Ok(rows.into_iter().filter(has_action).collect())
    }

    /// Returns a counter as a read shows it: the present value, or the one at the last synchronization.
    fn seen(&mut self, query: &Query<'_>, cell: u64, current: CounterValue) -> CounterValue {
        if !query.from_hw {
            return self.state.counter(query.table.id, cell);
        }
        self.state.set_counter(query.table.id, cell, current);
        current
    }

    /// Synchronizes what reads without `from_hw` show.
    ///
    /// # Errors
    /// UNIMPLEMENTED if the table does not have the operation.
    pub fn operate(&mut self, table: &Table, name: &str) -> P4Result<()> {
        if !table.operations.iter().any(|known| known == name) {
            let message = format!("table {}: operation {name:?} is not supported", table.name);
            return Err(P4Error::unimplemented(message));
        }
        match (self.program.object(table), name) {
            (Object::Counter(id), _) => counters::synchronize(self, table, *id),
            (Object::Match(target), "SyncCounters") => entries::synchronize(self, table, target),
            (Object::Match(target), "UpdateHitState") => {
                entries::update_hit_states(self, table, target)
            }
            // Registers and the like are always up to date.
            _ => Ok(()),
        }
    }

    /// Returns the number of entries.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub fn usage(&mut self, table: &Table) -> P4Result<usize> {
        if let Object::Match(target) = self.program.object(table) {
            return Ok(self.cx.pipeline.entry_count(target.id)?);
        }
        let query = Query {
            table,
            key: None,
            handle: None,
            is_default: false,
            from_hw: false,
            filter: Filter::default(),
        };
        Ok(self.read(&query)?.len())
    }

    /// Returns the handle of the entry with a key.
    ///
    /// # Errors
    /// NOT_FOUND if no entry has the key.
    pub fn handle(&mut self, table: &Table, key: &Key) -> P4Result<u32> {
        match self.program.object(table) {
            Object::Match(target) => {
                let key: EntryKey = entries::decode_key(self.cx.pipeline, table, target, key)?;
                let handle = self.cx.pipeline.entry(target.id, &key)?.handle;
                Ok(entries::encode_handle(handle))
            }
            _ => handles::of_key(self, table, key),
        }
    }
}

/// Deletes objects that the pipeline has by number, all or none, with an undo step.
fn delete_all<T: Clone + Send + 'static>(
    cx: &mut Context<'_>,
    objects: Vec<(u32, T)>,
    delete: impl Fn(&mut Pipeline, u32) -> Result<(), StateError>,
    insert: impl Fn(&mut Pipeline, u32, T) -> Result<(), StateError> + Send + 'static,
) -> P4Result<()> {
    for (at, (id, _)) in objects.iter().enumerate() {
        let Err(error) = delete(cx.pipeline, *id) else {
            continue;
        };
        for (id, object) in &objects[..at] {
            insert(cx.pipeline, *id, object.clone())?;
        }
        return Err(error.into());
    }
    cx.undo(move |cx| {
        for (id, object) in objects {
            insert(cx.pipeline, id, object)?;
        }
        Ok(())
    });
    Ok(())
}

/// Returns the index of the cell with a key.
fn cell(table: &Table, key: &Key) -> P4Result<usize> {
    let index = key.number(table, 0)?;
    Ok(usize::try_from(index).unwrap_or(usize::MAX))
}

/// Returns the cells that a read selects: one, or all.
fn cells(query: &Query<'_>, size: usize) -> P4Result<std::ops::Range<usize>> {
    let Some(key) = &query.key else {
        return Ok(0..size);
    };
    let index = cell(query.table, key)?;
    if index >= size {
        let name = &query.table.name;
        let message = format!("table {name}: index {index} is out of range, size is {size}");
        return Err(P4Error::invalid(message));
    }
    Ok(index..index + 1)
}
