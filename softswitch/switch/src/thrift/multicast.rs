// SPDX-License-Identifier: Apache-2.0
//! Multicast groups, and the replicas of groups and mirroring sessions in the pipeline.

use std::collections::BTreeMap;
use std::sync::Arc;

use softswitch_pipeline::{CloneSession, Replica, StateError, check_replicas};
use softswitch_thrift::interface::{Multicast, MulticastError};

use super::pre::{Pre, decode_map};
use super::{Replication, Services, error};
use crate::p4rt::entity::Context;
use crate::p4rt::value::encode_port;
use crate::proto::p4::v1::{self as p4, replica::PortKind};

type Result<T> = std::result::Result<T, MulticastError>;

/// The result of a write.
type Written = std::result::Result<(), StateError>;

/// Replicas by group or by session.
type Replicas = BTreeMap<u32, Vec<Replica>>;

/// Returns replicas as P4Runtime reads them.
fn written(replicas: &[Replica]) -> Vec<p4::Replica> {
    let written = replicas.iter().map(|replica| p4::Replica {
        port_kind: Some(PortKind::Port(encode_port(replica.port))),
        instance: replica.instance.into(),
        ..Default::default()
    });
    written.collect()
}

/// Returns the replicas of all groups and of all clone sessions in the pipeline.
fn current(cx: &Context<'_>) -> [Replicas; 2] {
    let sessions = cx.pipeline.clone_sessions().into_iter();
    let sessions = sessions.map(|(id, session)| (id, session.replicas));
    let groups = cx.pipeline.multicast_groups().into_iter();
    [groups.collect(), sessions.collect()]
}

/// An object with replicas.
#[derive(Clone, Copy)]
enum Owner {
    Group,
    Session,
}

impl Owner {
    fn set(self, cx: &mut Context<'_>, id: u32, replicas: &[Replica], exists: bool) -> Written {
        match self {
            Self::Group => set_group(cx, id, replicas.to_vec(), exists),
            Self::Session => set_session(cx, id, replicas.to_vec(), exists),
        }
    }

    fn delete(self, cx: &mut Context<'_>, id: u32) -> Written {
        match self {
            Self::Group => {
                cx.pipeline.delete_multicast_group(id)?;
                cx.notes.multicast.remove(&id);
            }
            Self::Session => {
                cx.pipeline.delete_clone_session(id)?;
                cx.notes.sessions.remove(&id);
            }
        }
        Ok(())
    }

    /// Writes what differs from before. `current` are the replicas in the pipeline.
    fn write(
        self,
        cx: &mut Context<'_>,
        current: &Replicas,
        before: &Replicas,
        after: &Replicas,
    ) -> Written {
        for (&id, replicas) in changed(before, after) {
            self.set(cx, id, replicas, current.contains_key(&id))?;
        }
        let mut gone = before.keys().filter(|id| !after.contains_key(id));
        gone.try_for_each(|&id| self.delete(cx, id))
    }
}

/// Returns the objects with other replicas than before.
fn changed<'a>(
    before: &'a Replicas,
    after: &'a Replicas,
) -> impl Iterator<Item = (&'a u32, &'a Vec<Replica>)> {
    after
        .iter()
        .filter(|(id, replicas)| before.get(id) != Some(replicas))
}

fn set_group(cx: &mut Context<'_>, id: u32, replicas: Vec<Replica>, exists: bool) -> Written {
    let as_written = written(&replicas);
    match exists {
        true => cx.pipeline.modify_multicast_group(id, replicas)?,
        false => cx.pipeline.insert_multicast_group(id, replicas)?,
    }
    let entry = cx.notes.multicast.entry(id).or_default();
    entry.multicast_group_id = id;
    entry.replicas = as_written;
    Ok(())
}

fn set_session(cx: &mut Context<'_>, id: u32, replicas: Vec<Replica>, exists: bool) -> Written {
    let entry = p4::CloneSessionEntry {
        session_id: id,
        replicas: written(&replicas),
        ..Default::default()
    };
    let session = CloneSession {
        replicas,
        truncate_to: 0,
        class_of_service: 0,
    };
    match exists {
        true => cx.pipeline.modify_clone_session(id, session)?,
        false => cx.pipeline.insert_clone_session(id, session)?,
    }
    cx.notes.sessions.insert(id, entry);
    Ok(())
}

impl Services {
    /// Runs a function on the packet replication, and writes the resulting replicas. If the function or the pipeline refuses,
    /// nothing changes.
    pub(super) fn on_replication<R>(&self, f: impl FnOnce(&mut Pre) -> Result<R>) -> Result<R> {
        let deployment = self.deployment().ok_or(MulticastError::Error)?;
        let mut replication = self.replication.lock();
        if !std::ptr::eq(replication.of.as_ptr(), Arc::as_ptr(&deployment)) {
            *replication = Replication {
                of: Arc::downgrade(&deployment),
                pre: Pre::default(),
            };
        }
        deployment.with_context(self.device.dataplane.now(), |cx| {
            let current = current(cx);
            let mut pre = replication.pre.clone();
            pre.adopt(&current[0], &current[1]);
            // P4Runtime can write replicas that BMv2 cannot express, so those that the function leaves alone stay as they are.
            let before = [pre.replicas(), pre.session_replicas()];
            let result = f(&mut pre)?;
            let after = [pre.replicas(), pre.session_replicas()];
            for (before, after) in before.iter().zip(&after) {
                changed(before, after)
                    .try_for_each(|(id, replicas)| check_replicas(&id.to_string(), replicas))
                    .map_err(error::multicast)?;
            }
            for (i, owner) in [Owner::Group, Owner::Session].into_iter().enumerate() {
                let written = owner.write(cx, &current[i], &before[i], &after[i]);
                written.map_err(error::multicast)?;
            }
            replication.pre = pre;
            Ok(result)
        })
    }
}

/// Returns the number of a group.
fn group(mgrp: i32) -> Result<u32> {
    u32::try_from(mgrp).map_err(|_| MulticastError::InvalidMgrpHandle)
}

impl Multicast for Services {
    fn bm_mc_mgrp_create(&self, _: i32, mgrp: i32) -> Result<i32> {
        let id = u32::try_from(mgrp).map_err(|_| MulticastError::InvalidMgid)?;
        if id == 0 || id > softswitch_pipeline::MAX_MULTICAST_GROUP {
            return Err(MulticastError::InvalidMgid);
        }
        self.on_replication(|pre| {
            pre.create_group(id);
            Ok(mgrp)
        })
    }

    /// As in BMv2, a group that does not exist can be deleted.
    fn bm_mc_mgrp_destroy(&self, _: i32, mgrp: i32) -> Result<()> {
        let id = group(mgrp)?;
        self.on_replication(|pre| {
            pre.destroy_group(id);
            Ok(())
        })
    }

    fn bm_mc_node_create(&self, _: i32, rid: i32, ports: String, lags: String) -> Result<i32> {
        let rid = u16::try_from(rid).map_err(|_| MulticastError::Error)?;
        let (ports, lags) = (decode_map(&ports)?, decode_map(&lags)?);
        self.on_replication(|pre| pre.create_node(rid, ports, lags))
    }

    fn bm_mc_node_associate(&self, _: i32, mgrp: i32, node: i32) -> Result<()> {
        self.on_replication(|pre| pre.associate(group(mgrp)?, node))
    }

    fn bm_mc_node_dissociate(&self, _: i32, mgrp: i32, node: i32) -> Result<()> {
        self.on_replication(|pre| pre.dissociate(group(mgrp)?, node))
    }

    fn bm_mc_node_destroy(&self, _: i32, node: i32) -> Result<()> {
        self.on_replication(|pre| pre.destroy_node(node))
    }

    fn bm_mc_node_update(&self, _: i32, node: i32, ports: String, lags: String) -> Result<()> {
        let (ports, lags) = (decode_map(&ports)?, decode_map(&lags)?);
        self.on_replication(|pre| pre.update_node(node, ports, lags))
    }

    fn bm_mc_set_lag_membership(&self, _: i32, lag: i16, ports: String) -> Result<()> {
        let lag = u16::try_from(lag).map_err(|_| MulticastError::Error)?;
        let ports = decode_map(&ports)?;
        self.on_replication(|pre| pre.set_lag(lag, ports))
    }

    fn bm_mc_get_entries(&self, _: i32) -> Result<String> {
        self.on_replication(|pre| Ok(format!("{:#}", pre.to_json())))
    }
}
