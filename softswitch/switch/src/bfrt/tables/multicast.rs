// SPDX-License-Identifier: Apache-2.0
//! Packet replication: multicast nodes, groups, link aggregation groups and mirror sessions.
//!
//! A node makes copies with one replication id on its ports, and on one port of each of its link aggregation groups. A
//! group consists of nodes; of an ECMP group, it has the first node. The pipeline knows only the resulting replicas.

use std::collections::{BTreeMap, BTreeSet};

use softswitch_pipeline::{CloneSession, Pipeline, Replica, check_replicas};

use super::view::View;
use super::{Access, Update, mirror, stored};
use crate::bfrt::data::Data;
use crate::bfrt::schema::Schema;
use crate::bfrt::state::State;
use crate::p4rt::error::{P4Error, P4Result};

/// Replicas of groups and sessions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Replication {
    /// The replicas of groups.
    pub groups: BTreeMap<u32, Vec<Replica>>,
    /// The mirror sessions.
    pub sessions: BTreeMap<u32, CloneSession>,
}

/// The tables of multicast.
struct Engine<'a> {
    groups: View<'a>,
    nodes: View<'a>,
    lags: View<'a>,
    ecmp: View<'a>,
}

impl<'a> Engine<'a> {
    fn new(schema: &'a Schema, state: &'a State) -> Option<Self> {
        Some(Self {
            groups: View::of(schema, state, "PreMgid")?,
            nodes: View::of(schema, state, "PreNode")?,
            lags: View::of(schema, state, "PreLag")?,
            ecmp: View::of(schema, state, "PreEcmp")?,
        })
    }

    /// Returns the nodes of a group.
    fn nodes_of(&self, group: &'a Data) -> Vec<u32> {
        let ecmp = self.groups.numbers(group, "$MULTICAST_ECMP_ID").iter();
        let ecmp = ecmp.filter_map(|id| {
            let data = self.ecmp.get(*id)?;
            self.ecmp.numbers(data, "$MULTICAST_NODE_ID").first()
        });
        let nodes = self.groups.numbers(group, "$MULTICAST_NODE_ID").iter();
        nodes.chain(ecmp).copied().collect()
    }

    fn replicas(&self, group: &'a Data) -> P4Result<Vec<Replica>> {
        let mut replicas = Vec::new();
        for node in self.nodes_of(group) {
            let data = self.nodes.get(node).ok_or_else(|| {
                P4Error::invalid(format!("$pre.mgid: multicast node {node} does not exist"))
            })?;
            let rid = data.number(self.nodes.table, "$MULTICAST_RID");
            let instance = u16::try_from(rid.unwrap_or(0)).unwrap_or(0);
            let lags = self.nodes.numbers(data, "$MULTICAST_LAG_ID").iter();
            let lags = lags.filter_map(|lag| {
                let data = self.lags.get(*lag)?;
                self.lags.numbers(data, "$DEV_PORT").first()
            });
            let ports = self.nodes.numbers(data, "$DEV_PORT").iter().chain(lags);
            replicas.extend(ports.map(|&port| Replica { port, instance }));
        }
        Ok(replicas)
    }

    fn check(&self, group: &'a Data) -> P4Result<()> {
        for (ids, with) in [
            ("$MULTICAST_NODE_ID", "$MULTICAST_NODE_L1_XID"),
            ("$MULTICAST_ECMP_ID", "$MULTICAST_ECMP_L1_XID"),
        ] {
            let count = self.groups.numbers(group, ids).len();
            let valid = format!("{with}_VALID");
            let valid = group
                .bools(self.groups.table, &valid)
                .map_or(0, <[bool]>::len);
            let xids = self.groups.numbers(group, with).len();
            if valid != count || xids != count {
                let message = format!(
                    "$pre.mgid: {ids} has {count} elements, but {with} has {xids} and {with}_VALID {valid}"
                );
                return Err(P4Error::invalid(message));
            }
        }
        Ok(())
    }
}

/// Returns the replicas that the entries demand.
fn replication(schema: &Schema, state: &State) -> P4Result<Replication> {
    let mut replication = Replication::default();
    if let Some(engine) = Engine::new(schema, state) {
        for (id, data) in engine.groups.iter() {
            engine.check(data)?;
            let replicas = engine.replicas(data)?;
            check_replicas(&format!("multicast group {id}"), &replicas)?;
            replication.groups.insert(id, replicas);
        }
    }
    replication.sessions = mirror::sessions(schema, state, &replication.groups)?;
    Ok(replication)
}

/// Changes the pipeline from one state to the other.
fn apply(pipeline: &mut Pipeline, from: &Replication, to: &Replication) -> P4Result<()> {
    let groups = pipeline.multicast_groups().into_iter();
    let groups: BTreeSet<u32> = groups.map(|(id, _)| id).collect();
    for (id, replicas) in &to.groups {
        match groups.contains(id) {
            false => pipeline.insert_multicast_group(*id, replicas.clone())?,
            true if from.groups.get(id) == Some(replicas) => {}
            true => pipeline.modify_multicast_group(*id, replicas.clone())?,
        }
    }
    for id in from.groups.keys().filter(|id| !to.groups.contains_key(id)) {
        pipeline.delete_multicast_group(*id)?;
    }
    let sessions = pipeline.clone_sessions().into_iter();
    let sessions: BTreeSet<u32> = sessions.map(|(id, _)| id).collect();
    for (id, session) in &to.sessions {
        match sessions.contains(id) {
            false => pipeline.insert_clone_session(*id, session.clone())?,
            true if from.sessions.get(id) == Some(session) => {}
            true => pipeline.modify_clone_session(*id, session.clone())?,
        }
    }
    for id in from
        .sessions
        .keys()
        .filter(|id| !to.sessions.contains_key(id))
    {
        pipeline.delete_clone_session(*id)?;
    }
    Ok(())
}

/// Makes a change in the entries and then in the pipeline. A refused change leaves both as they were.
pub fn write(access: &mut Access<'_, '_>, update: &Update<'_>) -> P4Result<()> {
    let schema = &access.program.schema;
    let mut state = access.state.clone();
    stored::write(&mut state, update)?;
    let (from, to) = (
        replication(schema, access.state)?,
        replication(schema, &state)?,
    );
    if let Err(error) = apply(access.cx.pipeline, &from, &to) {
        apply(access.cx.pipeline, &to, &from)?;
        return Err(error);
    }
    *access.state = state;
    access.cx.undo(move |cx| apply(cx.pipeline, &to, &from));
    Ok(())
}
