// SPDX-License-Identifier: Apache-2.0
//! Commands for the members of action profiles.

use serde_json::{Value, json};

use super::entries::without_arrow;
use crate::action::{self, free_id, handle, parse_id};
use crate::error::{Error, Result};
use crate::output::Answer;
use crate::proto::p4::config::v1 as info;
use crate::proto::p4::v1::{ActionProfileMember, entity::Entity, update::Type as Update};
use crate::schema::{Schema, id_of, name};
use crate::session::Session;

impl Session {
    /// Reads members of a profile: one, or all without `member`.
    fn read_members(
        &mut self,
        profile: u32,
        member: Option<u32>,
    ) -> Result<Vec<ActionProfileMember>> {
        let request = ActionProfileMember {
            action_profile_id: profile,
            member_id: member.unwrap_or_default(),
            action: None,
        };
        let entities = self.client.read(Entity::ActionProfileMember(request))?;
        let members = entities.into_iter().filter_map(|entity| match entity {
            Entity::ActionProfileMember(member) => Some(member),
            _ => None,
        });
        Ok(members.collect())
    }
}

/// Reads an action of the tables of a profile.
fn parse_action(
    session: &Session,
    profile: &info::ActionProfile,
    action: &str,
    data: &[&str],
) -> Result<crate::proto::p4::v1::Action> {
    let tables = profile.table_ids.iter();
    let mut tables = tables.filter_map(|id| session.schema.table(*id));
    // All tables of a profile have the same actions.
    let table = tables.next().ok_or_else(|| {
        Error::new(format!(
            "action profile {} has no visible table: members of hidden tables cannot be written",
            name(&profile.preamble)
        ))
    })?;
    action::parse(&session.schema, table, action, data)
}

pub fn create(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [profile, action, data @ ..] = args else {
        return Err(Error::Usage);
    };
    let profile = session.profile(profile)?;
    let action = parse_action(session, profile, action, data)?;
    let profile = id_of(&profile.preamble);
    let taken = session.read_members(profile, None)?;
    let member_id = free_id(taken.iter().map(|member| member.member_id));
    let member = ActionProfileMember {
        action_profile_id: profile,
        member_id,
        action: Some(action),
    };
    session
        .client
        .write(Update::Insert, Entity::ActionProfileMember(member))?;
    let handle = handle(member_id);
    Ok(Answer::new(
        format!("Member has been created with handle {handle}"),
        json!({"handle": handle}),
    ))
}

pub fn modify(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [profile, action, member, data @ ..] = args else {
        return Err(Error::Usage);
    };
    let profile = session.profile(profile)?;
    let member = ActionProfileMember {
        action_profile_id: id_of(&profile.preamble),
        member_id: parse_id(member, "member handle")?,
        action: Some(parse_action(session, profile, action, without_arrow(data))?),
    };
    session
        .client
        .write(Update::Modify, Entity::ActionProfileMember(member))?;
    Ok(Answer::default())
}

pub fn delete(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [profile, member] = args else {
        return Err(Error::Usage);
    };
    let member = ActionProfileMember {
        action_profile_id: id_of(&session.profile(profile)?.preamble),
        member_id: parse_id(member, "member handle")?,
        action: None,
    };
    session
        .client
        .write(Update::Delete, Entity::ActionProfileMember(member))?;
    Ok(Answer::default())
}

pub fn dump_one(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [profile, member] = args else {
        return Err(Error::Usage);
    };
    let profile = id_of(&session.profile(profile)?.preamble);
    let id = parse_id(member, "member handle")?;
    let members = session.read_members(profile, Some(id))?;
    let found = members.iter().find(|m| m.member_id == id);
    let found = found.ok_or_else(|| {
        Error::new(format!(
            "unknown member handle {member}: act_prof_dump shows the handles"
        ))
    })?;
    let (text, data) = describe(&session.schema, found);
    Ok(Answer::new(text, data))
}

/// Shows the members of a profile.
pub fn describe_all(session: &mut Session, profile: u32) -> Result<Vec<(String, Value)>> {
    let members = session.read_members(profile, None)?;
    Ok(members
        .iter()
        .map(|member| describe(&session.schema, member))
        .collect())
}

fn describe(schema: &Schema, member: &ActionProfileMember) -> (String, Value) {
    let handle = handle(member.member_id);
    let action = member.action.clone().unwrap_or_default();
    let (line, mut data) = action::describe(schema, &action);
    data["handle"] = json!(handle);
    (format!("Dumping member {handle}\n{line}"), data)
}
