//! Members and groups of action profiles and selectors.

use std::collections::HashSet;

use softswitch_pipeline::{Group, GroupMember};

use super::action::{self, Use};
use super::{Op, View, table, unknown, wrap};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::schema::{Profile, Schema, Table};
use crate::p4rt::value;
use crate::proto::p4::v1::{
    ActionProfileGroup, ActionProfileMember, Entity, action_profile_group::Member,
    action_profile_group::member::WatchKind, entity::Entity as Kind, update::Type,
};

fn find(schema: &Schema, id: u32) -> P4Result<(&Profile, &Table)> {
    let profile = schema.profiles.get(id);
    let profile = profile.ok_or_else(|| unknown("action profile", id))?;
    Ok((profile, table::find(schema, profile.table)?))
}

pub fn write_member(
    schema: &Schema,
    operation: Type,
    member: &ActionProfileMember,
) -> P4Result<Op> {
    let (profile, table) = find(schema, member.action_profile_id)?;
    let (target, id) = (profile.target, member.member_id);
    if id == 0 {
        return Err(P4Error::invalid(format!(
            "action profile {}: a member's id cannot be 0",
            profile.name
        )));
    }
    if operation == Type::Delete {
        return Ok(Box::new(move |cx| {
            Ok(cx.pipeline.delete_member(target, id)?)
        }));
    }
    let call = member.action.as_ref().ok_or_else(|| {
        P4Error::invalid(format!(
            "action profile {}: member {id} needs an action",
            profile.name
        ))
    })?;
    let call = action::decode_call(schema, table, call, Use::Entry)?;
    Ok(Box::new(move |cx| {
        match operation {
            Type::Insert => cx.pipeline.insert_member(target, id, call)?,
            _ => cx.pipeline.modify_member(target, id, call)?,
        }
        Ok(())
    }))
}

pub fn write_group(schema: &Schema, operation: Type, group: &ActionProfileGroup) -> P4Result<Op> {
    let (profile, _) = find(schema, group.action_profile_id)?;
    let (target, id) = (profile.target, group.group_id);
    let invalid = |reason: String| {
        Err(P4Error::invalid(format!(
            "action profile {}, group {id}: {reason}",
            profile.name
        )))
    };
    if !profile.selector {
        return invalid("it has no groups, it is not a selector".into());
    }
    if id == 0 {
        return invalid("a group's id cannot be 0".into());
    }
    if operation == Type::Delete {
        return Ok(Box::new(move |cx| {
            Ok(cx.pipeline.delete_group(target, id)?)
        }));
    }
    let max_size = match (u32::try_from(group.max_size), profile.max_group_size) {
        (Err(_), _) => return invalid("max_size is negative".into()),
        // Many clients leave it out although P4Info gives a size; then that is the size.
        (Ok(size), max) if max == 0 || size <= max => size,
        (Ok(size), max) => {
            return invalid(format!(
                "max_size {size} is above P4Info's max_group_size {max}"
            ));
        }
    };
    let mut seen = HashSet::new();
    if let Some(twice) = group.members.iter().find(|m| !seen.insert(m.member_id)) {
        return invalid(format!("member {} is listed twice", twice.member_id));
    }
    let members = group.members.iter().map(|m| {
        Ok(GroupMember {
            member: m.member_id,
            weight: decode_weight(profile, m.weight)?,
            watch_port: match &m.watch_kind {
                None => None,
                Some(WatchKind::Watch(port)) => old_watch_port(*port)?,
                Some(WatchKind::WatchPort(port)) => watch_port(port)?,
            },
        })
    });
    let members = members.collect::<P4Result<Vec<_>>>()?;
    let limit = if max_size == 0 {
        profile.max_group_size
    } else {
        max_size
    };
    let weights = members.iter().map(|m| m.weight);
    check_group_size(profile, profile.size_in_members, weights, limit)
        .map_err(|e| P4Error::resource_exhausted(e.message))?;
    let group = Group { members, max_size };
    Ok(Box::new(move |cx| {
        if operation == Type::Insert {
            return Ok(cx.pipeline.insert_group(target, id, group)?);
        }
        let before = cx.pipeline.group(target, id)?.max_size;
        if before != group.max_size {
            return Err(P4Error::invalid(format!(
                "group {id}: max_size cannot be changed from {before}"
            )));
        }
        Ok(cx.pipeline.modify_group(target, id, group)?)
    }))
}

/// Checks the weight of a member or of an action of a set.
pub fn decode_weight(profile: &Profile, weight: i32) -> P4Result<u32> {
    let invalid = |reason: &str| {
        Err(P4Error::invalid(format!(
            "action profile {}: weight {weight} {reason}",
            profile.name
        )))
    };
    match (profile.weights_disallowed, u32::try_from(weight)) {
        (true, Ok(0)) => Ok(1),
        (true, _) => invalid("is given, but the selector has no weights"),
        (false, Ok(0) | Err(_)) => invalid("is not at least 1"),
        (false, Ok(w)) if profile.max_member_weight != 0 && w > profile.max_member_weight => {
            invalid("is above P4Info's max_member_weight")
        }
        (false, Ok(w)) => Ok(w),
    }
}

/// Checks that a group or an action set is not larger than `limit` (0 is no limit).
pub fn check_group_size(
    profile: &Profile,
    in_members: bool,
    weights: impl Iterator<Item = u32>,
    limit: u32,
) -> P4Result<()> {
    let size: u64 = weights
        .map(|w| if in_members { 1 } else { u64::from(w) })
        .sum();
    if limit != 0 && size > u64::from(limit) {
        return Err(P4Error::invalid(format!(
            "action profile {}: the group's size {size} is above its maximum {limit}",
            profile.name
        )));
    }
    Ok(())
}

/// Decodes `watch_port`; empty is none.
pub fn watch_port(port: &[u8]) -> P4Result<Option<u32>> {
    if port.is_empty() {
        return Ok(None);
    }
    value::decode_port(port, || "watch_port".into()).map(Some)
}

/// Decodes the deprecated `watch`; 0 is none.
pub fn old_watch_port(port: i32) -> P4Result<Option<u32>> {
    match u32::try_from(port) {
        Ok(0) => Ok(None),
        Ok(port) => Ok(Some(port)),
        Err(_) => Err(P4Error::invalid(format!("watch port {port} is negative"))),
    }
}

/// The profiles that an id selects: one, or all if it is 0.
fn selected(schema: &Schema, id: u32) -> P4Result<Vec<(u32, &Profile)>> {
    if id != 0 {
        return Ok(vec![(id, find(schema, id)?.0)]);
    }
    Ok(schema.profiles.iter().collect())
}

pub fn read_members(
    view: View<'_>,
    request: &ActionProfileMember,
    out: &mut Vec<Entity>,
) -> P4Result<()> {
    for (profile_id, profile) in selected(view.schema, request.action_profile_id)? {
        let table = table::find(view.schema, profile.table)?;
        let members = match request.member_id {
            0 => view.look(|p| p.members(profile.target))?,
            id => match view.look(|p| p.member(profile.target, id)) {
                Ok(call) => vec![(id, call)],
                Err(_) => vec![],
            },
        };
        out.extend(members.into_iter().map(|(member_id, call)| {
            wrap(Kind::ActionProfileMember(ActionProfileMember {
                action_profile_id: profile_id,
                member_id,
                action: Some(action::encode_call(view.schema, table, &call)),
            }))
        }));
    }
    Ok(())
}

pub fn read_groups(
    view: View<'_>,
    request: &ActionProfileGroup,
    out: &mut Vec<Entity>,
) -> P4Result<()> {
    for (profile_id, profile) in selected(view.schema, request.action_profile_id)? {
        if !profile.selector {
            continue;
        }
        let groups = match request.group_id {
            0 => view.look(|p| p.groups(profile.target))?,
            id => match view.look(|p| p.group(profile.target, id)) {
                Ok(group) => vec![(id, group)],
                Err(_) => vec![],
            },
        };
        out.extend(groups.into_iter().map(|(group_id, group)| {
            let members = group.members.iter().map(|m| Member {
                member_id: m.member,
                weight: match profile.weights_disallowed {
                    true => 0,
                    false => i32::try_from(m.weight).unwrap_or(i32::MAX),
                },
                watch_kind: m
                    .watch_port
                    .map(|port| WatchKind::WatchPort(value::encode_port(port))),
            });
            wrap(Kind::ActionProfileGroup(ActionProfileGroup {
                action_profile_id: profile_id,
                group_id,
                members: members.collect(),
                max_size: i32::try_from(group.max_size).unwrap_or(i32::MAX),
            }))
        }));
    }
    Ok(())
}
