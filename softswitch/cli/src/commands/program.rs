// SPDX-License-Identifier: Apache-2.0
//! Commands that show the program.

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::key::{match_name, match_type};
use crate::output::Answer;
use crate::proto::p4::config::v1 as info;
use crate::schema::{Kind, Schema, name};
use crate::session::Session;

pub fn show_tables(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [] = args else { return Err(Error::Usage) };
    let schema = &session.schema;
    let tables = schema
        .names(Kind::Table)
        .filter_map(|(_, id)| schema.table(id));
    Ok(list(tables.map(|table| describe_table(schema, table))))
}

pub fn show_actions(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [] = args else { return Err(Error::Usage) };
    let schema = &session.schema;
    let actions = schema
        .names(Kind::Action)
        .filter_map(|(_, id)| schema.action(id));
    Ok(list(actions.map(describe_action)))
}

pub fn show_value_sets(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [] = args else { return Err(Error::Usage) };
    let schema = &session.schema;
    let sets = schema
        .names(Kind::ValueSet)
        .filter_map(|(_, id)| schema.value_set(id));
    Ok(list(sets.map(|set| {
        let name = name(&set.preamble);
        let bits: i32 = set.r#match.iter().map(|field| field.bitwidth).sum();
        (
            format!("{name:30} [compressed bitwidth:{bits}]"),
            json!({"name": name, "bits": bits, "size": set.size}),
        )
    })))
}

pub fn table_actions(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [table] = args else {
        return Err(Error::Usage);
    };
    let table = session.table(table)?;
    let actions = session.schema.actions_of(table);
    Ok(list(actions.into_iter().map(describe_action)))
}

pub fn table_info(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [table] = args else {
        return Err(Error::Usage);
    };
    let table = session.table(table)?;
    let schema = &session.schema;
    let (line, mut data) = describe_table(schema, table);
    let actions = list(schema.actions_of(table).into_iter().map(describe_action));
    data["actions"] = actions.data.unwrap_or_default();
    let stars = "*".repeat(80);
    Ok(Answer::new(
        format!("{line}\n{stars}\n{}", actions.text),
        data,
    ))
}

fn list(items: impl Iterator<Item = (String, Value)>) -> Answer {
    let (lines, data): (Vec<String>, Vec<Value>) = items.unzip();
    Answer::new(lines.join("\n"), Value::Array(data))
}

fn describe_table(schema: &Schema, table: &info::Table) -> (String, Value) {
    let table_name = name(&table.preamble);
    let profile = schema.profile(table.implementation_id);
    let profile = profile.map(|p| name(&p.preamble));
    let fields = table.match_fields.iter().map(|field| {
        let kind = match_name(match_type(field));
        let line = format!("{}({kind}, {})", field.name, field.bitwidth);
        (
            line,
            json!({"field": field.name, "match": kind, "bits": field.bitwidth}),
        )
    });
    let (keys, data): (Vec<String>, Vec<Value>) = fields.unzip();
    let line = format!(
        "{table_name:30} [implementation={}, mk={}]",
        profile.unwrap_or("None"),
        keys.join(",\t")
    );
    let data = json!({
        "name": table_name, "implementation": profile, "key": data, "size": table.size,
        "support_timeout": table.idle_timeout_behavior != 0,
    });
    (line, data)
}

fn describe_action(action: &info::Action) -> (String, Value) {
    let action_name = name(&action.preamble);
    let params = action.params.iter().map(|param| {
        let line = format!("{}({})", param.name, param.bitwidth);
        (line, json!({"name": param.name, "bits": param.bitwidth}))
    });
    let (params, data): (Vec<String>, Vec<Value>) = params.unzip();
    let line = format!("{action_name:30} [{}]", params.join(",\t"));
    (line, json!({"name": action_name, "parameters": data}))
}
