// SPDX-License-Identifier: Apache-2.0
//! Commands for the groups of action profiles with a selector.

use serde_json::{Value, json};

use crate::action::{free_id, handle, parse_id};
use crate::error::{Error, Result};
use crate::output::Answer;
use crate::proto::p4::v1::action_profile_group::Member;
use crate::proto::p4::v1::{ActionProfileGroup, entity::Entity, update::Type as Update};
use crate::schema::{id_of, name};
use crate::session::Session;

impl Session {
    /// Returns the id of an action profile with a selector.
    fn selector(&self, profile: &str) -> Result<u32> {
        let profile = self.profile(profile)?;
        match profile.with_selector {
            true => Ok(id_of(&profile.preamble)),
            false => Err(Error::new(format!(
                "action profile {} cannot have groups: use members, or declare an action_selector in the program",
                name(&profile.preamble)
            ))),
        }
    }

    /// Reads groups of a profile: one, or all without `group`.
    fn read_groups(&mut self, profile: u32, group: Option<u32>) -> Result<Vec<ActionProfileGroup>> {
        let request = ActionProfileGroup {
            action_profile_id: profile,
            group_id: group.unwrap_or_default(),
            ..Default::default()
        };
        let entities = self.client.read(Entity::ActionProfileGroup(request))?;
        let groups = entities.into_iter().filter_map(|entity| match entity {
            Entity::ActionProfileGroup(group) => Some(group),
            _ => None,
        });
        Ok(groups.collect())
    }

    /// Reads the group with a handle.
    fn read_group(&mut self, profile: u32, text: &str) -> Result<ActionProfileGroup> {
        let id = parse_id(text, "group handle")?;
        let mut groups = self.read_groups(profile, Some(id))?.into_iter();
        groups.find(|group| group.group_id == id).ok_or_else(|| {
            Error::new(format!(
                "unknown group handle {text}: act_prof_dump shows the handles"
            ))
        })
    }
}

pub fn create(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [profile] = args else {
        return Err(Error::Usage);
    };
    let profile = session.selector(profile)?;
    let taken = session.read_groups(profile, None)?;
    let group_id = free_id(taken.iter().map(|group| group.group_id));
    let group = ActionProfileGroup {
        action_profile_id: profile,
        group_id,
        ..Default::default()
    };
    session
        .client
        .write(Update::Insert, Entity::ActionProfileGroup(group))?;
    let handle = handle(group_id);
    Ok(Answer::new(
        format!("Group has been created with handle {handle}"),
        json!({"handle": handle}),
    ))
}

pub fn delete(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [profile, group] = args else {
        return Err(Error::Usage);
    };
    let group = ActionProfileGroup {
        action_profile_id: session.selector(profile)?,
        group_id: parse_id(group, "group handle")?,
        ..Default::default()
    };
    session
        .client
        .write(Update::Delete, Entity::ActionProfileGroup(group))?;
    Ok(Answer::default())
}

pub fn add_member(session: &mut Session, args: &[&str]) -> Result<Answer> {
    change(session, args, |members, member_id| {
        if members.iter().any(|member| member.member_id == member_id) {
            return Err(Error::new(
                "the group already has this member: act_prof_dump shows the groups",
            ));
        }
        members.push(Member {
            member_id,
            weight: 1,
            ..Default::default()
        });
        Ok(())
    })
}

pub fn remove_member(session: &mut Session, args: &[&str]) -> Result<Answer> {
    change(session, args, |members, member_id| {
        let before = members.len();
        members.retain(|member| member.member_id != member_id);
        match members.len() < before {
            true => Ok(()),
            false => Err(Error::new(
                "the group does not have this member: act_prof_dump shows the groups",
            )),
        }
    })
}

/// Changes the members of a group: `<action profile> <member handle> <group handle>`.
fn change(
    session: &mut Session,
    args: &[&str],
    edit: impl FnOnce(&mut Vec<Member>, u32) -> Result<()>,
) -> Result<Answer> {
    let [profile, member, group] = args else {
        return Err(Error::Usage);
    };
    let profile = session.selector(profile)?;
    let member = parse_id(member, "member handle")?;
    let mut group = session.read_group(profile, group)?;
    edit(&mut group.members, member)?;
    session
        .client
        .write(Update::Modify, Entity::ActionProfileGroup(group))?;
    Ok(Answer::default())
}

pub fn dump_one(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [profile, group] = args else {
        return Err(Error::Usage);
    };
    let profile = session.selector(profile)?;
    let group = session.read_group(profile, group)?;
    let (text, data) = describe(&group);
    Ok(Answer::new(text, data))
}

/// Shows the groups of a profile.
pub fn describe_all(session: &mut Session, profile: u32) -> Result<Vec<(String, Value)>> {
    let groups = session.read_groups(profile, None)?;
    Ok(groups.iter().map(describe).collect())
}

fn describe(group: &ActionProfileGroup) -> (String, Value) {
    let own = handle(group.group_id);
    let members: Vec<u32> = group
        .members
        .iter()
        .map(|member| handle(member.member_id))
        .collect();
    let list: Vec<String> = members.iter().map(u32::to_string).collect();
    let text = format!("Dumping group {own}\nMembers: [{}]", list.join(", "));
    (text, json!({"handle": own, "members": members}))
}
