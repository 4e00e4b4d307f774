// SPDX-License-Identifier: Apache-2.0
//! Packet replication: changes of the tables of multicast and of mirror sessions, and what they mean for the pipeline.

use std::collections::BTreeSet;

use softswitch_pipeline::{CloneSession, Pipeline};

use super::groups_of_nodes::{Engine, Group, leave_groups, place_nodes};
use super::view::View;
use super::{Access, Update, mirror, stored};
use crate::bfrt::state::Entries;
use crate::p4rt::entity::Context;
use crate::p4rt::error::P4Result;
use crate::proto::bfrt::update::Type;

/// The groups and sessions that a change affects.
#[derive(Debug, Default)]
struct Affected {
    groups: BTreeSet<u32>,
    sessions: BTreeSet<u32>,
}

fn set_group(pipeline: &mut Pipeline, id: u32, to: Option<&Group>) -> P4Result<()> {
    match (pipeline.multicast_group(id).is_some(), to) {
        (false, None) => {}
        (true, None) => pipeline.delete_multicast_group(id)?,
        (false, Some(group)) => pipeline.insert_multicast_group(id, group.replicas.clone())?,
        (true, Some(group)) => pipeline.modify_multicast_group(id, group.replicas.clone())?,
    }
    pipeline.set_multicast_tree(id, to.and_then(|group| group.tree.clone()));
    Ok(())
}

fn set_session(pipeline: &mut Pipeline, id: u32, to: Option<CloneSession>) -> P4Result<()> {
    match (pipeline.clone_session(id).is_some(), to) {
        (false, None) => Ok(()),
        (true, None) => Ok(pipeline.delete_clone_session(id)?),
        (false, Some(session)) => Ok(pipeline.insert_clone_session(id, session)?),
        (true, Some(session)) => Ok(pipeline.modify_clone_session(id, session)?),
    }
}

/// Changes a group with an undo step.
fn change_group(cx: &mut Context<'_>, id: u32, to: Option<&Group>) -> P4Result<()> {
    let before = cx.pipeline.multicast_group(id).map(|replicas| Group {
        replicas,
        tree: cx.pipeline.multicast_tree(id),
    });
    if before.as_ref() != to {
        set_group(cx.pipeline, id, to)?;
        cx.undo(move |cx| set_group(cx.pipeline, id, before.as_ref()));
    }
    Ok(())
}

/// Changes a session with an undo step.
fn change_session(cx: &mut Context<'_>, id: u32, to: Option<CloneSession>) -> P4Result<()> {
    let before = cx.pipeline.clone_session(id);
    if before != to {
        set_session(cx.pipeline, id, to)?;
        cx.undo(move |cx| set_session(cx.pipeline, id, before));
    }
    Ok(())
}

/// Makes a change in the entries and then in the pipeline. A refused change leaves both as they were.
pub fn write(access: &mut Access<'_, '_>, update: &Update<'_>) -> P4Result<()> {
    let table = update.table;
    let key = update.key.as_ref();
    let key = key.map(|key| stored::numbers(table, key)).transpose()?;
    let places = access.state.ecmp_places.clone();
    let undone: Entries = match &key {
        Some(key) => {
            let entry = access.state.entry(table.id, key).cloned();
            entry.map(|data| (key.clone(), data)).into_iter().collect()
        }
        None => access.state.entries(table.id).cloned().unwrap_or_default(),
    };
    let result = stored::write(access.state, update).and_then(|()| apply(access, update, &undone));
    if result.is_err() {
        match key {
            Some(key) => {
                let before = undone.get(&key).cloned();
                access.state.set_entry(table.id, key, before);
            }
            None => *access.state.entries_mut(table.id) = undone,
        }
        access.state.ecmp_places = places;
    }
    result
}

/// Changes the pipeline as the entries demand. `before` has the entries that the update changed.
fn apply(access: &mut Access<'_, '_>, update: &Update<'_>, before: &Entries) -> P4Result<()> {
    let id = |key: &Vec<u64>| key.first().and_then(|id| u32::try_from(*id).ok());
    let mut ids: BTreeSet<u32> = before.keys().filter_map(id).collect();
    if let Some(key) = &update.key {
        ids.insert(key.u32(update.table, 0)?);
    }
    match update.table.kind.as_str() {
        "PrePrune" => return super::multicast_ports::prune(access, update.table, &ids),
        "PrePort" => return super::multicast_ports::set_ports(access, update),
        "PreEcmp" => place_nodes(&access.program.schema, access.state, &ids),
        _ => {}
    }
    let affected = affected(access, update, &ids);
    if update.operation == Type::Delete && update.table.kind == "PreNode" {
        leave_groups(&access.program.schema, access.state, &ids);
    }
    let plan = plan(access, &affected)?;
    let undo = access.cx.undo.take();
    access.cx.undo = Some(vec![]);
    let mut changed = plan
        .0
        .iter()
        .try_for_each(|(id, group)| change_group(access.cx, *id, group.as_ref()));
    for (id, session) in plan.1 {
        changed = changed.and_then(|()| change_session(access.cx, id, session));
    }
    let steps = access.cx.undo.take().unwrap_or_default();
    access.cx.undo = undo;
    match (&changed, &mut access.cx.undo) {
        (Err(_), _) => crate::p4rt::entity::undo(steps, access.cx),
        (Ok(()), Some(all)) => all.extend(steps),
        (Ok(()), None) => {}
    }
    changed
}

/// Returns the groups and sessions that depend on the entries of a table with these ids.
fn affected(access: &Access<'_, '_>, update: &Update<'_>, ids: &BTreeSet<u32>) -> Affected {
    let schema = &access.program.schema;
    let mut affected = Affected::default();
    let kind = update.table.kind.as_str();
    match kind {
        "MirrorCfg" => affected.sessions = ids.clone(),
        "PreMgid" => affected.groups = ids.clone(),
        _ => {
            let engine = Engine::new(schema, access.state);
            affected.groups = engine.map_or_else(BTreeSet::new, |e| e.groups_with(kind, ids));
        }
    }
    if kind != "MirrorCfg"
        && !affected.groups.is_empty()
        && let Some(view) = View::of(schema, access.state, "MirrorCfg")
    {
        let names = |data| mirror::groups(view.table, data);
        let sessions = view.iter();
        let sessions =
            sessions.filter(|(_, data)| names(data).any(|g| affected.groups.contains(&g)));
        affected.sessions = sessions.map(|(id, _)| id).collect();
    }
    affected
}

/// The groups and sessions that the pipeline must have.
type Plan = (Vec<(u32, Option<Group>)>, Vec<(u32, Option<CloneSession>)>);

fn plan(access: &Access<'_, '_>, affected: &Affected) -> P4Result<Plan> {
    let (schema, state) = (&access.program.schema, &*access.state);
    let engine = Engine::new(schema, state);
    let group = |id: u32| engine.as_ref().map(|e| e.group(id, access.program.chip));
    let group = |id: u32| group(id).transpose().map(Option::flatten);
    let groups = affected.groups.iter().map(|&id| Ok((id, group(id)?)));
    let groups = groups.collect::<P4Result<Vec<_>>>()?;
    let replicas = |id: u32| Ok(group(id)?.map_or_else(Vec::new, |group| group.replicas));
    let Some(view) = View::of(schema, state, "MirrorCfg") else {
        return Ok((groups, vec![]));
    };
    let sessions = affected.sessions.iter().map(|&id| {
        let session = view
            .get(id)
            .map(|data| mirror::session(view.table, (id, data), replicas));
        Ok((id, session.transpose()?.flatten()))
    });
    Ok((groups, sessions.collect::<P4Result<_>>()?))
}
