// SPDX-License-Identifier: Apache-2.0
//! Groups of action selectors (specification, section "Group Programming").

use std::collections::HashSet;

use prost::bytes::Bytes;
use softswitch_pipeline::{Group, GroupMember};

use super::{Op, View, missing, selected, wrap};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::notes::Style;
use crate::p4rt::schema::{Profile, Schema};
use crate::p4rt::value;
use crate::proto::p4::v1::{
    ActionProfileGroup, Entity, action_profile_group::Member,
    action_profile_group::member::WatchKind, entity::Entity as Kind, update::Type,
};

pub fn write(schema: &Schema, operation: Type, group: &ActionProfileGroup) -> P4Result<Op> {
    let profile = schema.profiles.get(group.action_profile_id);
    let profile =
        profile.ok_or_else(|| missing(schema, "action profile", group.action_profile_id))?;
    let (target, id) = (profile.target, group.group_id);
    let invalid = |reason: String| {
        Err(P4Error::invalid(format!(
            "action profile {}, group {id}: {reason}",
            profile.name
        )))
    };
    if !profile.selector {
        return invalid("only action selectors have groups".into());
    }
    if id == 0 {
        return invalid("a group's id must not be 0".into());
    }
    if operation == Type::Delete {
        return Ok(Box::new(move |cx| {
            let before = cx.before(|p, notes| {
                let selector = notes.selector(target)?;
                let written = selector.group(id)?.clone();
                Some((p.group(target, id).ok()?, written, selector.group_size(id)))
            });
            cx.pipeline.delete_group(target, id)?;
            cx.notes.selector_mut(target).remove_group(id);
            if let Some((group, written, size)) = before.flatten() {
                cx.undo(move |cx| {
                    cx.notes.selector_mut(target).put_group(written, size);
                    Ok(cx.pipeline.insert_group(target, id, group)?)
                });
            }
            Ok(())
        }));
    }
    let max_size = match (u32::try_from(group.max_size), profile.max_group_size) {
        (Err(_), _) => return invalid("max_size is negative".into()),
        (Ok(0), max) if max > 0 => {
            return invalid(format!(
                "max_size must be between 1 and P4Info's max_group_size {max}"
            ));
        }
        (Ok(size), max) if max > 0 && size > max => {
            return invalid(format!(
                "max_size {size} is above P4Info's max_group_size {max}"
            ));
        }
        (Ok(size), _) => size,
    };
    let mut seen = HashSet::new();
    if let Some(twice) = group.members.iter().find(|m| !seen.insert(m.member_id)) {
        return invalid(format!("member {} is listed twice", twice.member_id));
    }
    let members = group.members.iter();
    let members = members.map(|m| decode_member(schema, profile, m));
    let members = members.collect::<P4Result<Vec<_>>>()?;
    let (members, written): (Vec<_>, Vec<_>) = members.into_iter().unzip();
    let size = size(members.iter().map(|m| m.weight), profile.size_in_members);
    if is_above(size, max_size) {
        return Err(P4Error::resource_exhausted(format!(
            "action profile {}, group {id}: its size {size} is above its max_size {max_size}",
            profile.name
        )));
    }
    let written = ActionProfileGroup {
        members: written,
        ..*group
    };
    // The limit is checked here, because it may apply to members or to weights.
    let group = Group {
        members,
        max_size: 0,
    };
    let profile = profile.clone();
    Ok(Box::new(move |cx| {
        let before = cx.pipeline.group(target, id).ok();
        let selector = cx.notes.selector_mut(target);
        let old = selector
            .group(id)
            .map(|g| (g.clone(), selector.group_size(id)));
        selector.check_style(Style::Members, &profile)?;
        let old_size = old.as_ref().map_or(0, |(_, size)| *size);
        if operation == Type::Insert {
            if old.is_none() {
                selector.check_room(0, size, &profile)?;
            }
            cx.pipeline.insert_group(target, id, group)?;
        } else {
            if let Some((old, _)) = &old
                && old.max_size != written.max_size
            {
                return Err(P4Error::invalid(format!(
                    "group {id}: max_size cannot be changed from {}",
                    old.max_size
                )));
            }
            if old.is_some() {
                selector.check_room(old_size, size, &profile)?;
            }
            cx.pipeline.modify_group(target, id, group)?;
        }
        cx.notes.selector_mut(target).put_group(written, size);
        cx.undo(move |cx| {
            let selector = cx.notes.selector_mut(target);
            match (before, old) {
                (Some(before), Some((written, size))) => {
                    selector.put_group(written, size);
                    Ok(cx.pipeline.modify_group(target, id, before)?)
                }
                _ => {
                    selector.remove_group(id);
                    Ok(cx.pipeline.delete_group(target, id)?)
                }
            }
        });
        Ok(())
    }))
}

/// Decodes a member, for the pipeline and for reading it back.
fn decode_member(
    schema: &Schema,
    profile: &Profile,
    m: &Member,
) -> P4Result<(GroupMember, Member)> {
    let (watch_port, watch_kind) = match &m.watch_kind {
        None => (None, None),
        Some(WatchKind::Watch(port)) => (
            old_watch_port(schema, *port)?,
            Some(WatchKind::Watch(*port)),
        ),
        Some(WatchKind::WatchPort(port)) => {
            let (port, canonical) = watch_port(schema, port)?;
            (port, Some(WatchKind::WatchPort(canonical)))
        }
    };
    let member = GroupMember {
        member: m.member_id,
        weight: decode_weight(profile, m.weight)?,
        watch_port,
    };
    let written = Member { watch_kind, ..*m };
    Ok((member, written))
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
        (true, _) => invalid("is given, but the selector does not have weights"),
        (false, Ok(0) | Err(_)) => invalid("must be at least 1"),
        (false, Ok(w)) if profile.max_member_weight != 0 && w > profile.max_member_weight => {
            invalid("is above P4Info's max_member_weight")
        }
        (false, Ok(w)) => Ok(w),
    }
}

/// Returns the size of a group or an action set: the number of members, or the sum of their weights.
pub fn size(weights: impl Iterator<Item = u32>, in_members: bool) -> u64 {
    let of = |weight| if in_members { 1 } else { u64::from(weight) };
    weights.map(of).sum()
}

/// Returns true if a size is above a limit; 0 means unlimited.
pub fn is_above(size: u64, limit: u32) -> bool {
    limit != 0 && size > u64::from(limit)
}

/// Decodes `watch_port`, and returns its canonical form; empty means none.
pub fn watch_port(schema: &Schema, port: &[u8]) -> P4Result<(Option<u32>, Bytes)> {
    if port.is_empty() {
        return Ok((None, Bytes::new()));
    }
    let port = value::decode_port(port, || "watch_port".into())?;
    check_port(schema, port)?;
    Ok((Some(port), value::encode_port(port)))
}

/// Decodes the deprecated `watch`; 0 means none.
pub fn old_watch_port(schema: &Schema, port: i32) -> P4Result<Option<u32>> {
    match u32::try_from(port) {
        Ok(0) => Ok(None),
        Ok(port) => check_port(schema, port).map(|()| Some(port)),
        Err(_) => Err(P4Error::invalid(format!("watch port {port} is negative"))),
    }
}

fn check_port(schema: &Schema, port: u32) -> P4Result<()> {
    match &schema.ports {
        Some(ports) if !ports.contains(&port) => Err(P4Error::invalid(format!(
            "watch port {port} is not one of the device's ports {ports:?}"
        ))),
        _ => Ok(()),
    }
}

pub fn read(view: View<'_>, request: &ActionProfileGroup, out: &mut Vec<Entity>) -> P4Result<()> {
    let profiles = &view.schema.profiles;
    for (action_profile_id, profile) in
        selected(profiles, "action profile", request.action_profile_id)?
    {
        let groups = view.notes.selector(profile.target);
        let groups = groups.into_iter().flat_map(|s| s.groups());
        let wanted = groups.filter(|g| request.group_id == 0 || request.group_id == g.group_id);
        out.extend(wanted.map(|g| {
            wrap(Kind::ActionProfileGroup(ActionProfileGroup {
                // Groups that were written without P4Info do not have one.
                action_profile_id,
                ..g.clone()
            }))
        }));
    }
    Ok(())
}
