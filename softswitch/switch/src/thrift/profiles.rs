// SPDX-License-Identifier: Apache-2.0
//! Members and groups of action profiles.

use softswitch_pipeline as pipe;
use softswitch_pipeline::{ActionCall, Implementation, Info, ProfileId};
use softswitch_thrift::interface::{Group, Member, Profiles, TableError};
use softswitch_thrift::wire::Binary;

use super::{Services, action, error, handle};
use crate::p4rt::entity::Context;
use crate::proto::p4::v1::{ActionProfileGroup, action_profile_group};

type Result<T> = std::result::Result<T, TableError>;

fn find(info: &Info, name: &str) -> Result<ProfileId> {
    let id = info.profile(name);
    id.ok_or(TableError::InvalidActionProfileName)
}

fn find_selector(info: &Info, name: &str) -> Result<ProfileId> {
    let id = find(info, name)?;
    match info.profiles[id.index()].selector {
        true => Ok(id),
        false => Err(TableError::Error),
    }
}

/// Decodes an action of one of the profile's tables.
fn call(info: &Info, profile: ProfileId, name: &str, data: &[Binary]) -> Result<ActionCall> {
    let mut tables = info.tables.iter();
    let action = tables.find_map(|table| match table.implementation {
        Implementation::Profile(of) if of == profile => table.action(name),
        _ => None,
    });
    action::decode(info, action.ok_or(TableError::InvalidActionName)?, data)
}

fn member_error(error: pipe::StateError) -> TableError {
    error::profile(
        error,
        TableError::InvalidMbrHandle,
        TableError::MbrStillUsed,
    )
}

fn group_error(error: pipe::StateError) -> TableError {
    error::profile(
        error,
        TableError::InvalidGrpHandle,
        TableError::GrpStillUsed,
    )
}

fn check_member(cx: &Context<'_>, profile: ProfileId, member: u32) -> Result<()> {
    cx.pipeline
        .member(profile, member)
        .map(drop)
        .map_err(member_error)
}

/// Changes a group's members, in the pipeline and as P4Runtime reads them.
fn change_group(
    cx: &mut Context<'_>,
    profile: ProfileId,
    id: u32,
    change: impl FnOnce(&mut pipe::Group, &mut ActionProfileGroup) -> Result<()>,
) -> Result<()> {
    let mut group = cx.pipeline.group(profile, id).map_err(group_error)?;
    let selector = cx.notes.selector_mut(profile);
    let mut written = selector.group(id).cloned().unwrap_or_default();
    written.group_id = id;
    change(&mut group, &mut written)?;
    let size = group.members.iter().map(|m| u64::from(m.weight)).sum();
    let modified = cx.pipeline.modify_group(profile, id, group);
    modified.map_err(group_error)?;
    cx.notes.selector_mut(profile).put_group(written, size);
    Ok(())
}

fn encode_member(info: &Info, id: u32, call: &ActionCall) -> Member {
    let (action_name, action_data) = action::encode_call(info, call);
    Member {
        handle: handle::of_id(id),
        action_name,
        action_data,
    }
}

fn encode_group(id: u32, group: &pipe::Group) -> Group {
    let mut members: Vec<i32> = (group.members.iter())
        .map(|member| handle::of_id(member.member))
        .collect();
    members.sort_unstable();
    Group {
        handle: handle::of_id(id),
        members,
    }
}

impl Profiles for Services {
    fn bm_mt_act_prof_add_member(
        &self,
        _: i32,
        profile: String,
        action: String,
        data: Vec<Binary>,
    ) -> Result<i32> {
        self.on_tables(|cx, info| {
            let profile = find(info, &profile)?;
            let call = call(info, profile, &action, &data)?;
            let members = cx.pipeline.members(profile).map_err(error::table)?;
            let id = handle::free_id(members.iter().map(|(id, _)| *id));
            let inserted = cx.pipeline.insert_member(profile, id, call);
            inserted.map_err(member_error)?;
            cx.notes.selector_mut(profile).add_member();
            Ok(handle::of_id(id))
        })
    }

    fn bm_mt_act_prof_delete_member(&self, _: i32, profile: String, member: i32) -> Result<()> {
        self.on_tables(|cx, info| {
            let profile = find(info, &profile)?;
            let deleted = cx.pipeline.delete_member(profile, handle::id(member));
            deleted.map_err(member_error)?;
            cx.notes.selector_mut(profile).remove_member();
            Ok(())
        })
    }

    fn bm_mt_act_prof_modify_member(
        &self,
        _: i32,
        profile: String,
        member: i32,
        action: String,
        data: Vec<Binary>,
    ) -> Result<()> {
        self.on_tables(|cx, info| {
            let profile = find(info, &profile)?;
            let call = call(info, profile, &action, &data)?;
            let modified = cx.pipeline.modify_member(profile, handle::id(member), call);
            modified.map_err(member_error)
        })
    }

    fn bm_mt_act_prof_create_group(&self, _: i32, profile: String) -> Result<i32> {
        self.on_tables(|cx, info| {
            let profile = find_selector(info, &profile)?;
            let groups = cx.pipeline.groups(profile).map_err(error::table)?;
            let id = handle::free_id(groups.iter().map(|(id, _)| *id));
            let group = pipe::Group {
                members: vec![],
                max_size: 0,
            };
            let inserted = cx.pipeline.insert_group(profile, id, group);
            inserted.map_err(group_error)?;
            let written = ActionProfileGroup {
                group_id: id,
                ..Default::default()
            };
            cx.notes.selector_mut(profile).put_group(written, 0);
            Ok(handle::of_id(id))
        })
    }

    fn bm_mt_act_prof_delete_group(&self, _: i32, profile: String, group: i32) -> Result<()> {
        self.on_tables(|cx, info| {
            let (profile, id) = (find_selector(info, &profile)?, handle::id(group));
            cx.pipeline.delete_group(profile, id).map_err(group_error)?;
            cx.notes.selector_mut(profile).remove_group(id);
            Ok(())
        })
    }

    fn bm_mt_act_prof_add_member_to_group(
        &self,
        _: i32,
        profile: String,
        member: i32,
        group: i32,
    ) -> Result<()> {
        self.on_tables(|cx, info| {
            let (profile, member) = (find_selector(info, &profile)?, handle::id(member));
            check_member(cx, profile, member)?;
            change_group(cx, profile, handle::id(group), |group, written| {
                if group.members.iter().any(|m| m.member == member) {
                    return Err(TableError::MbrAlreadyInGrp);
                }
                group.members.push(pipe::GroupMember {
                    member,
                    weight: 1,
                    watch_port: None,
                });
                written.members.push(action_profile_group::Member {
                    member_id: member,
                    weight: 1,
                    ..Default::default()
                });
                Ok(())
            })
        })
    }

    fn bm_mt_act_prof_remove_member_from_group(
        &self,
        _: i32,
        profile: String,
        member: i32,
        group: i32,
    ) -> Result<()> {
        self.on_tables(|cx, info| {
            let (profile, member) = (find_selector(info, &profile)?, handle::id(member));
            check_member(cx, profile, member)?;
            change_group(cx, profile, handle::id(group), |group, written| {
                let at = group.members.iter().position(|m| m.member == member);
                group.members.remove(at.ok_or(TableError::MbrNotInGrp)?);
                written.members.retain(|m| m.member_id != member);
                Ok(())
            })
        })
    }

    /// As in BMv2, an unknown profile does not have members.
    fn bm_mt_act_prof_get_members(&self, _: i32, profile: String) -> Result<Vec<Member>> {
        self.on_tables(|cx, info| {
            let Ok(profile) = find(info, &profile) else {
                return Ok(vec![]);
            };
            let members = cx.pipeline.members(profile).map_err(error::table)?;
            let members = members
                .iter()
                .map(|(id, call)| encode_member(info, *id, call));
            Ok(members.collect())
        })
    }

    fn bm_mt_act_prof_get_member(&self, _: i32, profile: String, member: i32) -> Result<Member> {
        self.on_tables(|cx, info| {
            let (profile, id) = (find(info, &profile)?, handle::id(member));
            let call = cx.pipeline.member(profile, id).map_err(member_error)?;
            Ok(encode_member(info, id, &call))
        })
    }

    /// As in BMv2, an unknown profile does not have groups.
    fn bm_mt_act_prof_get_groups(&self, _: i32, profile: String) -> Result<Vec<Group>> {
        self.on_tables(|cx, info| {
            let Ok(profile) = find(info, &profile) else {
                return Ok(vec![]);
            };
            let groups = cx.pipeline.groups(profile).map_err(error::table)?;
            Ok(groups
                .iter()
                .map(|(id, group)| encode_group(*id, group))
                .collect())
        })
    }

    fn bm_mt_act_prof_get_group(&self, _: i32, profile: String, group: i32) -> Result<Group> {
        self.on_tables(|cx, info| {
            let (profile, id) = (find(info, &profile)?, handle::id(group));
            let group = cx.pipeline.group(profile, id).map_err(group_error)?;
            Ok(encode_group(id, &group))
        })
    }
}
