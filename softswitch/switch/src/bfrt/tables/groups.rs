// SPDX-License-Identifier: Apache-2.0
//! Groups of action selectors. The pipeline has the active members only.

use softswitch_pipeline::{
    EntryAction, Group, GroupMember, Implementation, Pipeline, ProfileId, TableId,
};

use super::{Access, Query, Row, Update, delete_all, stored};
use crate::bfrt::data::{Data, FieldValue};
use crate::bfrt::schema::Table;
use crate::p4rt::error::{P4Error, P4Result};
use crate::proto::bfrt::update::Type;

/// The field with the maximum number of a group's members. Its default is the one that the program declares.
const MAX_GROUP_SIZE: &str = "$MAX_GROUP_SIZE";

/// Returns a group's members with their states.
fn members(table: &Table, data: &Data) -> P4Result<Vec<(u32, bool)>> {
    let ids = data.numbers(table, "$ACTION_MEMBER_ID").unwrap_or_default();
    let states = data
        .bools(table, "$ACTION_MEMBER_STATUS")
        .unwrap_or_default();
    if ids.len() != states.len() {
        let (name, ids, states) = (&table.name, ids.len(), states.len());
        let message = format!("table {name}: {ids} members, but {states} states are given");
        return Err(P4Error::invalid(message));
    }
    Ok(ids.iter().copied().zip(states.iter().copied()).collect())
}

fn group(table: &Table, data: &Data) -> P4Result<Group> {
    let members = members(table, data)?;
    let limit = data.u32(table, MAX_GROUP_SIZE).unwrap_or(0);
    let mut fields = table.data.iter();
    let declared = fields.find(|field| field.name == MAX_GROUP_SIZE);
    let declared = declared.and_then(|field| field.default).unwrap_or(0);
    if declared != 0 && u64::from(limit) > declared {
        let name = &table.name;
        let message = format!("table {name}: $MAX_GROUP_SIZE must be at most {declared}");
        return Err(P4Error::invalid(message));
    }
    if limit != 0 && members.len() > limit as usize {
        let (name, count) = (&table.name, members.len());
        let message = format!("table {name}: {count} members, but $MAX_GROUP_SIZE is {limit}");
        return Err(P4Error::resource_exhausted(message));
    }
    let mut active: Vec<GroupMember> = Vec::new();
    for (member, _) in members.into_iter().filter(|(_, is_active)| *is_active) {
        // A member that is listed several times has a larger share.
        match active.iter_mut().find(|present| present.member == member) {
            Some(present) => present.weight += 1,
            None => active.push(GroupMember {
                member,
                weight: 1,
                watch_port: None,
            }),
        }
    }
    Ok(Group {
        members: active,
        max_size: 0,
    })
}

pub fn write(access: &mut Access<'_, '_>, update: &Update<'_>, profile: ProfileId) -> P4Result<()> {
    if update.operation == Type::Delete && update.key.is_none() {
        return clear(access, update, profile);
    }
    let key = stored::numbers(update.table, update.key()?)?;
    let before = access.state.entry(update.table.id, &key).cloned();
    let changed = change(access, update, profile);
    if changed.is_err() {
        access.state.set_entry(update.table.id, key, before);
    }
    changed
}

/// Makes a change in the state and then in the pipeline.
fn change(access: &mut Access<'_, '_>, update: &Update<'_>, profile: ProfileId) -> P4Result<()> {
    let id = update.key()?.u32(update.table, 0)?;
    stored::write(access.state, update)?;
    let pipeline = &mut access.cx.pipeline;
    if update.operation == Type::Delete {
        let before = pipeline.group(profile, id)?;
        pipeline.delete_group(profile, id)?;
        access
            .cx
            .undo(move |cx| Ok(cx.pipeline.insert_group(profile, id, before)?));
        return Ok(());
    }
    let entries = access.state.entries_mut(update.table.id);
    let data = entries.get_mut(&vec![u64::from(id)]);
    let data = data.ok_or_else(|| update.invalid("the group was lost"))?;
    // By default, members are active.
    let count = data
        .numbers(update.table, "$ACTION_MEMBER_ID")
        .map_or(0, <[u32]>::len);
    let states = data
        .bools(update.table, "$ACTION_MEMBER_STATUS")
        .unwrap_or_default();
    let lacks_states = !update.data.values.is_empty()
        && update
            .data
            .bools(update.table, "$ACTION_MEMBER_STATUS")
            .is_none();
    if lacks_states && states.len() < count {
        let mut states = states.to_vec();
        states.resize(count, true);
        data.set(
            update.table,
            "$ACTION_MEMBER_STATUS",
            FieldValue::Bools(states),
        );
    }
    let group = group(update.table, data)?;
    if group.members.is_empty() && is_used(pipeline, profile, id)? {
        let message = format!("table {}: group {id} is in use", update.table.name);
        return Err(P4Error::failed_precondition(message));
    }
    if update.operation == Type::Insert {
        pipeline.insert_group(profile, id, group)?;
        access
            .cx
            .undo(move |cx| Ok(cx.pipeline.delete_group(profile, id)?));
    } else {
        let before = pipeline.group(profile, id)?;
        pipeline.modify_group(profile, id, group)?;
        access
            .cx
            .undo(move |cx| Ok(cx.pipeline.modify_group(profile, id, before)?));
    }
    Ok(())
}

/// Returns true if an entry refers to a group.
fn is_used(pipeline: &Pipeline, profile: ProfileId, group: u32) -> P4Result<bool> {
    let tables = pipeline.program().info().tables.iter().zip(0..);
    let users = tables.filter(|(t, _)| t.implementation == Implementation::Profile(profile));
    for (_, index) in users {
        let entries = pipeline.entries(TableId(index))?;
        if entries
            .iter()
            .any(|e| e.entry.action == EntryAction::Group(group))
        {
            return Ok(true);
        }
    }
    Ok(false)
}

fn clear(access: &mut Access<'_, '_>, update: &Update<'_>, profile: ProfileId) -> P4Result<()> {
    let groups = access.cx.pipeline.groups(profile)?;
    delete_all(
        access.cx,
        groups,
        move |pipeline, id| pipeline.delete_group(profile, id),
        move |pipeline, id, group| pipeline.insert_group(profile, id, group),
    )?;
    stored::write(access.state, update)
}

/// Returns the member that a hash selects in a group.
pub fn look_up(
    access: &mut Access<'_, '_>,
    query: &Query<'_>,
    profile: ProfileId,
) -> P4Result<Vec<Row>> {
    let Some(key) = &query.key else {
        return Ok(vec![]);
    };
    let (id, hash) = (key.u32(query.table, 0)?, key.number(query.table, 1)?);
    let group = access.cx.pipeline.group(profile, id)?;
    let shares = group.members.iter();
    let shares = shares.flat_map(|m| std::iter::repeat_n(m.member, m.weight as usize));
    let shares: Vec<u32> = shares.collect();
    let position = hash.checked_rem(shares.len() as u64).ok_or_else(|| {
        P4Error::not_found(format!("table {}: group {id} is empty", query.table.name))
    })?;
    let mut data = Data::default();
    let member = shares[position as usize];
    data.set(query.table, "$ACTION_MEMBER_ID", u64::from(member));
    Ok(vec![Row {
        key: Some(key.clone()),
        data,
    }])
}
