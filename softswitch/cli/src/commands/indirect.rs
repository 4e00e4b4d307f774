// SPDX-License-Identifier: Apache-2.0
//! Commands for tables with an action profile.

use super::entries::{split_arrow, split_priority};
use super::{defaults, groups, members};
use crate::action::parse_id;
use crate::error::{Error, Result};
use crate::key;
use crate::output::Answer;
use crate::proto::p4::config::v1 as info;
use crate::proto::p4::v1::{TableAction, TableEntry, table_action::Type};
use crate::schema::{id_of, name};
use crate::session::Session;

impl Session {
    /// Returns the action profile of a table.
    fn profile_of(&self, table: &str) -> Result<&info::ActionProfile> {
        let table = self.table(table)?;
        let profile = self.schema.profile(table.implementation_id);
        profile.ok_or_else(|| {
            Error::new(format!(
                "table {} has no action profile: use the commands without indirect",
                name(&table.preamble)
            ))
        })
    }
}

pub fn add(session: &mut Session, args: &[&str]) -> Result<Answer> {
    insert(session, args, "member handle", Type::ActionProfileMemberId)
}

pub fn add_with_group(session: &mut Session, args: &[&str]) -> Result<Answer> {
    insert(session, args, "group handle", Type::ActionProfileGroupId)
}

fn insert(
    session: &mut Session,
    args: &[&str],
    what: &str,
    kind: fn(u32) -> Type,
) -> Result<Answer> {
    let [table, rest @ ..] = args else {
        return Err(Error::Usage);
    };
    session.profile_of(table)?;
    let definition = session.table(table)?;
    let (rest, priority) = split_priority(definition, rest)?;
    let (fields, [handle]) = split_arrow(rest) else {
        return Err(Error::Usage);
    };
    let entry = TableEntry {
        table_id: id_of(&definition.preamble),
        r#match: key::parse(&session.schema, definition, fields)?,
        action: Some(TableAction {
            r#type: Some(kind(parse_id(handle, what)?)),
        }),
        priority,
        ..Default::default()
    };
    session.insert_entry(entry)
}

pub fn set_default(session: &mut Session, args: &[&str]) -> Result<Answer> {
    write_default(session, args, "member handle", Type::ActionProfileMemberId)
}

pub fn set_default_with_group(session: &mut Session, args: &[&str]) -> Result<Answer> {
    write_default(session, args, "group handle", Type::ActionProfileGroupId)
}

fn write_default(
    session: &mut Session,
    args: &[&str],
    what: &str,
    kind: fn(u32) -> Type,
) -> Result<Answer> {
    let [table, handle] = args else {
        return Err(Error::Usage);
    };
    session.profile_of(table)?;
    let id = parse_id(handle, what)?;
    defaults::write(session, table, Some(kind(id)))
}

/// Executes a command for the profile of the table that the first argument names.
fn with_profile(
    session: &mut Session,
    args: &[&str],
    command: fn(&mut Session, &[&str]) -> Result<Answer>,
) -> Result<Answer> {
    let [table, rest @ ..] = args else {
        return Err(Error::Usage);
    };
    let profile = name(&session.profile_of(table)?.preamble).to_owned();
    let args: Vec<&str> = [profile.as_str()]
        .into_iter()
        .chain(rest.iter().copied())
        .collect();
    command(session, &args)
}

macro_rules! for_profile {
    ($($name:ident: $command:path;)*) => {$(
        pub fn $name(session: &mut Session, args: &[&str]) -> Result<Answer> {
            with_profile(session, args, $command)
        }
    )*};
}

for_profile! {
    create_member: members::create;
    modify_member: members::modify;
    delete_member: members::delete;
    dump_member: members::dump_one;
    create_group: groups::create;
    delete_group: groups::delete;
    add_member_to_group: groups::add_member;
    remove_member_from_group: groups::remove_member;
    dump_group: groups::dump_one;
}
