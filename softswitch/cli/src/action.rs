// SPDX-License-Identifier: Apache-2.0
//! Actions with their data.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::proto::p4::config::v1 as info;
use crate::proto::p4::v1::{Action, ActionProfileAction, TableAction, action, table_action::Type};
use crate::schema::{Kind, Schema, id_of, name};
use crate::value::{self, hex};

/// The handle of a member or a group is its id minus 1, because P4Runtime's ids begin with 1.
const FIRST_ID: u32 = 1;

/// Reads the handle of a member or a group; returns its id.
///
/// # Errors
/// If it is not a number of this range.
pub fn parse_id(text: &str, what: &str) -> Result<u32> {
    let handle: u32 = value::number(text, what)?;
    let id = handle.checked_add(FIRST_ID);
    id.ok_or_else(|| {
        Error::new(format!(
            "invalid {what} {handle}: use at most {}",
            u32::MAX - 1
        ))
    })
}

/// Returns the lowest id that is not taken.
pub fn free_id(taken: impl Iterator<Item = u32>) -> u32 {
    let taken: BTreeSet<u32> = taken.collect();
    (FIRST_ID..)
        .find(|id| !taken.contains(id))
        .unwrap_or(u32::MAX)
}

/// Returns the handle of a member or a group.
pub fn handle(id: u32) -> u32 {
    id.wrapping_sub(FIRST_ID)
}

/// Reads an action of a table with its data.
///
/// # Errors
/// If the table does not have the action, or the data do not fit its parameters.
pub fn parse(schema: &Schema, table: &info::Table, action: &str, data: &[&str]) -> Result<Action> {
    let definition = find(schema, table, action)?;
    let full = name(&definition.preamble);
    if data.len() != definition.params.len() {
        let params: Vec<&str> = definition.params.iter().map(|p| p.name.as_str()).collect();
        return Err(Error::new(format!(
            "{} action parameters: {full} needs {} ({})",
            data.len(),
            params.len(),
            params.join(", ")
        )));
    }
    let params = definition.params.iter().zip(data).map(|(param, text)| {
        let value = match schema.is_string(param.type_name.as_ref()) {
            true => Ok(text.as_bytes().to_vec()),
            false => value::parse(text, width(param)),
        };
        let value = value.map_err(|e| Error::new(format!("parameter {}: {e}", param.name)))?;
        Ok(action::Param {
            param_id: param.id,
            value,
        })
    });
    Ok(Action {
        action_id: id_of(&definition.preamble),
        params: params.collect::<Result<_>>()?,
    })
}

/// Finds an action of a table by its full name, a suffix that only one of the program's actions has, or a suffix that
/// only one of the table's actions has.
fn find<'a>(schema: &'a Schema, table: &info::Table, text: &str) -> Result<&'a info::Action> {
    let actions = schema.actions_of(table);
    let is_named = |action: &&info::Action| {
        let full = name(&action.preamble);
        full == text || full.ends_with(&format!(".{text}"))
    };
    let mut found = actions.iter().copied().filter(is_named);
    match (found.next(), found.next()) {
        (Some(action), None) => Ok(action),
        (Some(_), Some(_)) => Err(Error::new(format!(
            "ambiguous action {text:?}: use the full name"
        ))),
        (None, _) => {
            schema.id(Kind::Action, text)?;
            let names: Vec<&str> = actions.iter().map(|a| name(&a.preamble)).collect();
            Err(Error::new(format!(
                "table {} has no action {text:?}: use {}",
                name(&table.preamble),
                names.join(", ")
            )))
        }
    }
}

fn width(param: &info::action::Param) -> u32 {
    u32::try_from(param.bitwidth).unwrap_or(0)
}

/// Returns the line of an action, as in dumps, and its JSON.
pub fn describe(schema: &Schema, action: &Action) -> (String, Value) {
    let definition = schema.action(action.action_id);
    let full = definition.map_or("unknown", |d| name(&d.preamble));
    let params = action.params.iter().map(|given| {
        let mut params = definition.iter().flat_map(|d| &d.params);
        let param = params.find(|p| p.id == given.param_id);
        match param {
            Some(p) if schema.is_string(p.type_name.as_ref()) => {
                let text = String::from_utf8_lossy(&given.value).into_owned();
                (text.clone(), text)
            }
            _ => {
                let digits = hex(&given.value, param.map_or(8, width));
                (digits.clone(), format!("0x{digits}"))
            }
        }
    });
    let (texts, data): (Vec<String>, Vec<String>) = params.unzip();
    let line = format!("Action entry: {full} - {}", texts.join(", "));
    (line, json!({"action": full, "data": data}))
}

/// Returns the line of a table's action, as in dumps, and its JSON.
pub fn describe_table_action(schema: &Schema, action: Option<&TableAction>) -> (String, Value) {
    match action.and_then(|action| action.r#type.as_ref()) {
        None => ("EMPTY".into(), Value::Null),
        Some(Type::Action(action)) => describe(schema, action),
        Some(Type::ActionProfileMemberId(id)) => {
            let handle = handle(*id);
            (
                format!("Index: member({handle})"),
                json!({"member": handle}),
            )
        }
        Some(Type::ActionProfileGroupId(id)) => {
            let handle = handle(*id);
            (format!("Index: group({handle})"), json!({"group": handle}))
        }
        Some(Type::ActionProfileActionSet(set)) => {
            let actions = set.action_profile_actions.iter();
            let (lines, data): (Vec<String>, Vec<Value>) =
                actions.map(|a| describe_weighted(schema, a)).unzip();
            (lines.join("\n"), json!({"action_set": data}))
        }
    }
}

fn describe_weighted(schema: &Schema, action: &ActionProfileAction) -> (String, Value) {
    let inner = action.action.clone().unwrap_or_default();
    let (line, mut data) = describe(schema, &inner);
    data["weight"] = json!(action.weight);
    (format!("{line} (weight {})", action.weight), data)
}
