// SPDX-License-Identifier: Apache-2.0
//! Commands for default entries.

use crate::action;
use crate::error::{Error, Result};
use crate::output::Answer;
use crate::proto::p4::v1::{
    TableAction, TableEntry, entity::Entity, table_action::Type, update::Type as Update,
};
use crate::schema::Kind;
use crate::session::Session;

pub fn set(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [table, action, data @ ..] = args else {
        return Err(Error::Usage);
    };
    let definition = session.table(table)?;
    let action = action::parse(&session.schema, definition, action, data)?;
    write(session, table, Some(Type::Action(action)))
}

pub fn reset(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [table] = args else {
        return Err(Error::Usage);
    };
    write(session, table, None)
}

/// Sets the default entry; without an action, the program's default entry.
pub fn write(session: &mut Session, table: &str, action: Option<Type>) -> Result<Answer> {
    let entry = TableEntry {
        table_id: session.schema.id(Kind::Table, table)?,
        action: action.map(|kind| TableAction { r#type: Some(kind) }),
        is_default_action: true,
        ..Default::default()
    };
    session
        .client
        .write(Update::Modify, Entity::TableEntry(entry))?;
    Ok(Answer::default())
}
