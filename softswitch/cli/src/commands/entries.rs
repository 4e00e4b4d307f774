// SPDX-License-Identifier: Apache-2.0
//! Commands that write table entries.

use serde_json::json;

use crate::action;
use crate::error::{Error, Result};
use crate::key;
use crate::output::Answer;
use crate::proto::p4::config::v1 as info;
use crate::proto::p4::v1::{
    MeterConfig, TableAction, TableEntry, entity::Entity, table_action::Type,
    update::Type as Update,
};
use crate::schema::{Kind, id_of, name};
use crate::session::Session;
use crate::value;

/// Separates match fields from action parameters.
const ARROW: &str = "=>";

impl Session {
    /// Returns a table by its name.
    pub(crate) fn table(&self, name: &str) -> Result<&info::Table> {
        let id = self.schema.id(Kind::Table, name)?;
        let table = self.schema.table(id);
        table.ok_or_else(|| {
            Error::new(format!(
                "unknown table {name:?}: show_tables lists the tables"
            ))
        })
    }

    /// Reads the entries that a request describes.
    pub(crate) fn read_entries(&mut self, request: TableEntry) -> Result<Vec<TableEntry>> {
        let entities = self.client.read(Entity::TableEntry(request))?;
        let entries = entities.into_iter().filter_map(|entity| match entity {
            Entity::TableEntry(entry) => Some(entry),
            _ => None,
        });
        Ok(entries.collect())
    }

    /// Reads the entry with this key.
    pub(crate) fn read_entry(&mut self, request: TableEntry) -> Result<TableEntry> {
        let entry = self.read_entries(request)?.into_iter().next();
        entry.ok_or_else(|| Error::new("the entry does not exist: table_dump shows the entries"))
    }

    /// Returns the key of the entry with a handle.
    pub(crate) fn entry_key(&mut self, table: &str, handle: &str) -> Result<(u64, TableEntry)> {
        let table = self.schema.id(Kind::Table, table)?;
        self.key_in(table, handle)
    }

    /// Returns the key of the entry with a handle in the table with an id.
    pub(crate) fn key_in(&mut self, table: u32, handle: &str) -> Result<(u64, TableEntry)> {
        self.number_entries(table)?;
        let handle = value::number(handle, "entry handle")?;
        Ok((handle, self.handles.key(table, handle)?))
    }

    /// Gives handles to the entries of a table, if this has not happened.
    fn number_entries(&mut self, table: u32) -> Result<()> {
        if !self.handles.knows(table) {
            let entries = self.read_entries(all(table))?;
            self.handles.update(table, &entries);
        }
        Ok(())
    }

    /// Inserts an entry; returns its handle.
    pub(crate) fn insert_entry(&mut self, entry: TableEntry) -> Result<Answer> {
        self.number_entries(entry.table_id)?;
        self.client
            .write(Update::Insert, Entity::TableEntry(entry.clone()))?;
        let handle = self.handles.insert(&entry);
        Ok(Answer::new(
            format!("Entry has been added with handle {handle}"),
            json!({"handle": handle}),
        ))
    }
}

/// Returns a request for all entries of a table.
pub fn all(table_id: u32) -> TableEntry {
    TableEntry {
        table_id,
        ..Default::default()
    }
}

/// Splits off the priority, which is the last argument if the table's entries have priorities.
pub fn split_priority<'a, 'b>(
    table: &info::Table,
    args: &'a [&'b str],
) -> Result<(&'a [&'b str], i32)> {
    if !key::has_priority(table) {
        return Ok((args, 0));
    }
    match args.split_last() {
        Some((priority, rest)) => Ok((rest, key::parse_priority(priority)?)),
        None => Err(Error::new(format!(
            "missing priority: entries of table {} need one as the last argument",
            name(&table.preamble)
        ))),
    }
}

/// Returns action parameters without an arrow before them, which is optional in some commands.
pub fn without_arrow<'a, 'b>(data: &'a [&'b str]) -> &'a [&'b str] {
    match data {
        [ARROW, data @ ..] => data,
        _ => data,
    }
}

/// Splits arguments at the arrow.
pub fn split_arrow<'a, 'b>(args: &'a [&'b str]) -> (&'a [&'b str], &'a [&'b str]) {
    match args.iter().position(|arg| *arg == ARROW) {
        Some(at) => (&args[..at], &args[at + 1..]),
        None => (args, &[]),
    }
}

pub fn add(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [table, action, rest @ ..] = args else {
        return Err(Error::Usage);
    };
    let table = session.table(table)?;
    let (rest, priority) = split_priority(table, rest)?;
    let (fields, data) = split_arrow(rest);
    let entry = TableEntry {
        table_id: id_of(&table.preamble),
        r#match: key::parse(&session.schema, table, fields)?,
        action: Some(TableAction {
            r#type: Some(Type::Action(action::parse(
                &session.schema,
                table,
                action,
                data,
            )?)),
        }),
        priority,
        ..Default::default()
    };
    session.insert_entry(entry)
}

pub fn modify(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [table, action, handle, data @ ..] = args else {
        return Err(Error::Usage);
    };
    let definition = session.table(table)?;
    let action = action::parse(&session.schema, definition, action, without_arrow(data))?;
    change(session, table, handle, |entry| {
        entry.action = Some(TableAction {
            r#type: Some(Type::Action(action)),
        });
    })?;
    Ok(Answer::default())
}

pub fn set_timeout(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [table, handle, milliseconds] = args else {
        return Err(Error::Usage);
    };
    let definition = session.table(table)?;
    if definition.idle_timeout_behavior == 0 {
        return Err(Error::new(format!(
            "table {} has no idle time-outs: give it support_timeout = true in the program",
            name(&definition.preamble)
        )));
    }
    let milliseconds: u32 = value::number(milliseconds, "time-out")?;
    change(session, table, handle, |entry| {
        entry.idle_timeout_ns = i64::from(milliseconds) * 1_000_000;
    })?;
    Ok(Answer::default())
}

/// Reads an entry, changes it and writes it. Its meter keeps its rates.
fn change(
    session: &mut Session,
    table: &str,
    handle: &str,
    edit: impl FnOnce(&mut TableEntry),
) -> Result<()> {
    let definition = session.table(table)?;
    let mut direct = definition.direct_resource_ids.iter();
    let has_meter = direct.any(|id| session.schema.direct_meter(*id).is_some());
    let (_, key) = session.entry_key(table, handle)?;
    let mut entry = session.read_entry(TableEntry {
        meter_config: has_meter.then(MeterConfig::default),
        ..key
    })?;
    edit(&mut entry);
    session
        .client
        .write(Update::Modify, Entity::TableEntry(entry))
}

pub fn delete(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [table, handle] = args else {
        return Err(Error::Usage);
    };
    let (handle, key) = session.entry_key(table, handle)?;
    let table = key.table_id;
    session
        .client
        .write(Update::Delete, Entity::TableEntry(key))?;
    session.handles.remove(table, handle);
    Ok(Answer::default())
}

pub fn clear(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [table] = args else {
        return Err(Error::Usage);
    };
    let table = session.schema.id(Kind::Table, table)?;
    let entries = session.read_entries(all(table))?;
    let keys = entries.iter().filter(|entry| !entry.is_const).map(key::of);
    let keys = keys.map(Entity::TableEntry).collect();
    session.client.write_all(Update::Delete, keys)?;
    session.handles.update(table, &[]);
    Ok(Answer::default())
}

pub fn count(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [table] = args else {
        return Err(Error::Usage);
    };
    let table = session.schema.id(Kind::Table, table)?;
    let entries = session.read_entries(all(table))?.len();
    Ok(Answer::new(
        entries.to_string(),
        json!({"entries": entries}),
    ))
}
