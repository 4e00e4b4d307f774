// SPDX-License-Identifier: Apache-2.0
//! Tables whose entries the pipeline does not store as clients wrote them.

use std::collections::BTreeSet;

use softswitch_pipeline::Value;

use super::{Query, Row, Update};
use crate::bfrt::data::{Data, FieldValue};
use crate::bfrt::key::Key;
use crate::bfrt::schema::{DataField, Table, Type as FieldType};
use crate::bfrt::state::{Entries, State};
use crate::p4rt::error::{P4Error, P4Result};
use crate::proto::bfrt::update::Type;

/// Returns the numbers of a key.
pub fn numbers(table: &Table, key: &Key) -> P4Result<Vec<u64>> {
    (0..table.key.len())
        .map(|at| key.number(table, at))
        .collect()
}

fn default(field: &DataField) -> FieldValue {
    match (&field.ty, field.is_repeated) {
        (FieldType::Bool, false) => FieldValue::Bool(false),
        (FieldType::Bool, true) => FieldValue::Bools(vec![]),
        (FieldType::Text(choices), false) => {
            FieldValue::Text(choices.first().cloned().unwrap_or_default())
        }
        (FieldType::Text(_), true) => FieldValue::Texts(vec![]),
        (FieldType::Float, _) => FieldValue::Float(0.0),
        (_, false) => FieldValue::Number(Value::from(0u32)),
        (_, true) => FieldValue::Numbers(vec![]),
    }
}

/// Adds the fields that data lacks, with their defaults.
pub fn complete(table: &Table, data: &mut Data) {
    for field in &table.data {
        let value = data.values.entry(field.id);
        value.or_insert_with(|| default(field));
    }
}

fn missing(update: &Update<'_>) -> P4Error {
    P4Error::not_found(format!(
        "table {}: the entry does not exist",
        update.table.name
    ))
}

/// Makes a change of the entries.
///
/// # Errors
/// NOT_FOUND or ALREADY_EXISTS; INVALID_ARGUMENT if a mandatory field is absent.
pub fn write(state: &mut State, update: &Update<'_>) -> P4Result<()> {
    let table = update.table;
    let entries = state.entries_mut(table.id);
    let Some(key) = &update.key else {
        if update.operation != Type::Delete {
            return Err(update.invalid("missing key"));
        }
        entries.clear();
        return Ok(());
    };
    let key = numbers(table, key)?;
    let exists = entries.contains_key(&key);
    match preset_operation(&table.kind, exists, update.operation) {
        Type::Insert => {
            if entries.contains_key(&key) {
                let name = &table.name;
                let message = format!("table {name}: the entry exists already");
                return Err(P4Error::already_exists(message));
            }
            let has = |field: &DataField| update.data.values.contains_key(&field.id);
            if let Some(field) = table.data.iter().find(|f| f.is_mandatory && !has(f)) {
                return Err(update.invalid(&format!("missing data field {}", field.name)));
            }
            let mut data = update.data.clone();
            complete(table, &mut data);
            entries.insert(key, data);
        }
        Type::Modify => {
            let data = entries.get_mut(&key).ok_or_else(|| missing(update))?;
            if update.data.action != 0 {
                data.action = update.data.action;
            }
            data.values.extend(update.data.values.clone());
        }
        Type::ModifyInc => {
            let data = entries.get_mut(&key).ok_or_else(|| missing(update))?;
            increment(update, data);
        }
        Type::Delete if !exists && is_preset(&table.kind) => {}
        Type::Delete => {
            entries.remove(&key).ok_or_else(|| missing(update))?;
        }
        _ => return Err(update.unsupported()),
    }
    Ok(())
}

/// Appends the elements of lists, or removes them. Lists of numbers are followed by the lists that belong to them.
fn increment(update: &Update<'_>, data: &mut Data) {
    let mut removed = Vec::new();
    for field in &update.table.data {
        let Some(given) = update.data.values.get(&field.id) else {
            continue;
        };
        let Some(present) = data.values.get_mut(&field.id) else {
            continue;
        };
        match (present, given) {
            (FieldValue::Numbers(present), FieldValue::Numbers(given)) if !update.removes => {
                present.extend(given);
            }
            (FieldValue::Bools(present), FieldValue::Bools(given)) if !update.removes => {
                present.extend(given);
            }
            (FieldValue::Numbers(present), FieldValue::Numbers(given)) if !is_follower(field) => {
                let gone = (0..present.len()).filter(|at| given.contains(&present[*at]));
                removed.push((field.id, gone.collect::<Vec<_>>()));
            }
            _ => {}
        }
    }
    for (leader, positions) in removed {
        remove_all(update.table, data, leader, &positions);
    }
}

/// Removes the positions of a list, and of the lists that belong to it.
fn remove_all(table: &Table, data: &mut Data, leader: u32, positions: &[usize]) {
    let at = table.data.iter().position(|f| f.id == leader);
    let fields = table.data.iter().skip(at.unwrap_or(0));
    let followers = fields.skip(1).take_while(|f| is_follower(f)).map(|f| f.id);
    for id in std::iter::once(leader).chain(followers) {
        remove(data.values.get_mut(&id), positions);
    }
}

/// Removes elements of a list, and what belongs to them.
pub fn remove_elements(table: &Table, data: &mut Data, list: &str, elements: &BTreeSet<u32>) {
    let present = data.numbers(table, list).unwrap_or_default();
    let gone = (0..present.len()).filter(|at| elements.contains(&present[*at]));
    let gone: Vec<usize> = gone.collect();
    if let Some(id) = table.field_id(list)
        && !gone.is_empty()
    {
        remove_all(table, data, id, &gone);
    }
}

/// Returns true for a list whose elements belong to those of an earlier list.
fn is_follower(field: &DataField) -> bool {
    ["_XID", "_XID_VALID", "_STATUS"]
        .iter()
        .any(|end| field.name.ends_with(end))
}

fn remove(list: Option<&mut FieldValue>, positions: &[usize]) {
    fn keep<T>(list: &mut Vec<T>, positions: &[usize]) {
        let mut at = 0..;
        list.retain(|_| !positions.contains(&at.next().unwrap_or(0)));
    }
    match list {
        Some(FieldValue::Numbers(list)) => keep(list, positions),
        Some(FieldValue::Bools(list)) => keep(list, positions),
        _ => {}
    }
}

/// Reads entries.
///
/// # Errors
/// NOT_FOUND if there is no entry with the key.
pub fn read(state: &State, query: &Query<'_>) -> P4Result<Vec<Row>> {
    let none = Entries::new();
    let entries = state.entries(query.table.id).unwrap_or(&none);
    let row = |key: &[u64], data: &Data| Row {
        key: Some(Key::exact(key.iter().copied())),
        data: data.clone(),
    };
    // Tables whose entries all exist show those that were not written with their defaults.
    let mut preset = Data::default();
    let is_numbered = matches!(query.table.kind.as_str(), "PreLag" | "PrePrune");
    if is_preset(&query.table.kind) {
        complete(query.table, &mut preset);
    }
    let Some(key) = &query.key else {
        if is_numbered {
            let all = (0..query.table.size).map(|number| vec![number]);
            let all = all.map(|key| row(&key, entries.get(&key).unwrap_or(&preset)));
            return Ok(all.collect());
        }
        return Ok(entries.iter().map(|(key, data)| row(key, data)).collect());
    };
    let key = numbers(query.table, key)?;
    let preset = is_preset(&query.table.kind).then_some(&preset);
    let data = entries.get(&key).or(preset).ok_or_else(|| {
        let name = &query.table.name;
        P4Error::not_found(format!("table {name}: the entry does not exist"))
    })?;
    Ok(vec![row(&key, data)])
}

/// Returns true for a table whose entries all exist from the start, so that insertions modify them.
fn is_preset(kind: &str) -> bool {
    matches!(kind, "PreLag" | "PrePrune" | "PrePort")
}

/// Returns the operation of an update on the entry of such a table.
fn preset_operation(kind: &str, exists: bool, operation: Type) -> Type {
    match (is_preset(kind), operation) {
        (true, Type::Insert | Type::Modify) if exists => Type::Modify,
        (true, Type::Insert | Type::Modify) => Type::Insert,
        _ => operation,
    }
}
