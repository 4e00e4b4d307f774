// SPDX-License-Identifier: Apache-2.0
//! Commands that show table entries.

use serde_json::{Value, json};

use super::entries::{all, split_priority};
use super::profiles;
use crate::action::describe_table_action;
use crate::error::{Error, Result};
use crate::key;
use crate::output::Answer;
use crate::proto::p4::config::v1 as info;
use crate::proto::p4::config::v1::match_field::MatchType;
use crate::proto::p4::v1::{TableEntry, table_entry::IdleTimeout};
use crate::schema::{Kind, Schema, name};
use crate::session::Session;

/// Width of the column of field names, at least.
const NAME_WIDTH: usize = 20;

pub fn table(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [table] = args else {
        return Err(Error::Usage);
    };
    let definition = session.table(table)?.clone();
    let id = session.schema.id(Kind::Table, table)?;
    let entries = session.read_entries(with_life(&definition, all(id)))?;
    session.handles.update(id, &entries);
    let mut described: Vec<(u64, String, Value)> = Vec::new();
    for entry in &entries {
        let handle = session.handles.insert(entry);
        let (text, data) = describe(&session.schema, &definition, entry, handle);
        described.push((handle, text, data));
    }
    described.sort_by_key(|(handle, ..)| *handle);
    let stars: String = described
        .iter()
        .map(|(_, text, _)| format!("**********\n{text}"))
        .collect();
    let data: Vec<Value> = described.into_iter().map(|(.., data)| data).collect();

    let mut text = format!("==========\nTABLE ENTRIES\n{stars}");
    let mut answer = json!({"table": name(&definition.preamble), "entries": data});
    if session
        .schema
        .profile(definition.implementation_id)
        .is_some()
    {
        let profile = profiles::describe(session, definition.implementation_id)?;
        text.push_str(&profile.text);
        answer["profile"] = profile.data.unwrap_or_default();
    }
    let default = TableEntry {
        is_default_action: true,
        ..all(id)
    };
    let default = session
        .read_entries(default)?
        .into_iter()
        .next()
        .unwrap_or_default();
    let (line, data) = describe_table_action(&session.schema, default.action.as_ref());
    answer["default"] = data;
    Ok(Answer::new(
        format!("{text}==========\nDumping default entry\n{line}\n=========="),
        answer,
    ))
}

pub fn entry(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [table, handle] = args else {
        return Err(Error::Usage);
    };
    let definition = session.table(table)?.clone();
    let (handle, key) = session.entry_key(table, handle)?;
    let entry = session.read_entry(with_life(&definition, key))?;
    let (text, data) = describe(&session.schema, &definition, &entry, handle);
    Ok(Answer::new(text, data))
}

pub fn entry_from_key(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [table, fields @ ..] = args else {
        return Err(Error::Usage);
    };
    let definition = session.table(table)?.clone();
    let id = session.schema.id(Kind::Table, table)?;
    let (fields, priority) = split_priority(&definition, fields)?;
    let key = TableEntry {
        r#match: key::parse(&session.schema, &definition, fields)?,
        priority,
        ..all(id)
    };
    let request = key::of(&key);
    let entries = session.read_entries(with_life(&definition, all(id)))?;
    session.handles.update(id, &entries);
    let found = entries.iter().find(|entry| key::of(entry) == request);
    let found = found.ok_or_else(|| Error::new("unknown key: table_dump shows the entries"))?;
    let handle = session.handles.insert(found);
    let (text, data) = describe(&session.schema, &definition, found, handle);
    Ok(Answer::new(text, data))
}

/// Asks for the time since the last hit, if the table has it.
fn with_life(table: &info::Table, request: TableEntry) -> TableEntry {
    let has_life = table.idle_timeout_behavior != 0;
    TableEntry {
        time_since_last_hit: has_life.then(IdleTimeout::default),
        ..request
    }
}

fn describe(
    schema: &Schema,
    table: &info::Table,
    entry: &TableEntry,
    handle: u64,
) -> (String, Value) {
    let fields = key::describe(schema, table, entry);
    let names = fields.iter().map(|field| field.name.len());
    let width = names.chain([NAME_WIDTH]).max().unwrap_or(NAME_WIDTH);
    let mut text = format!("Dumping entry {handle:#x}\nMatch key:\n");
    for field in &fields {
        let kind = match field.kind {
            // BMv2 has no optional fields: their entries are ternary.
            MatchType::Optional => "TERNARY".into(),
            kind => key::match_name(kind).to_uppercase(),
        };
        text.push_str(&format!(
            "* {:width$}: {kind:10}{}\n",
            field.name, field.text
        ));
    }
    let key: Vec<Value> = fields.into_iter().map(|field| field.data).collect();
    let (line, action) = describe_table_action(schema, entry.action.as_ref());
    let mut data = json!({"handle": handle, "key": key, "action": action});
    if key::has_priority(table) {
        let priority = key::invert_priority(entry.priority);
        text.push_str(&format!("Priority: {priority}\n"));
        data["priority"] = json!(priority);
    }
    text.push_str(&line);
    text.push('\n');
    if let Some(since) = &entry.time_since_last_hit {
        let (since, timeout) = (
            since.elapsed_ns / 1_000_000,
            entry.idle_timeout_ns / 1_000_000,
        );
        text.push_str(&format!(
            "Life: {since}ms since hit, timeout is {timeout}ms\n"
        ));
        data["since_hit_ms"] = json!(since);
        data["timeout_ms"] = json!(timeout);
    }
    (text, data)
}
