// SPDX-License-Identifier: Apache-2.0
//! Multicast groups and clone sessions (specification, section "PacketReplicationEngineEntry").

use std::collections::HashSet;

use softswitch_pipeline as pipe;

use super::{Op, View, wrap};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::value;
use crate::proto::p4::v1::{
    BackupReplica, CloneSessionEntry, Entity, MulticastGroupEntry, PacketReplicationEngineEntry,
    Replica, entity::Entity as Kind, packet_replication_engine_entry::Type as Engine,
    replica::PortKind, update::Type,
};

/// Largest class of service: v1model's `priority` has 3 bits.
const MAX_CLASS_OF_SERVICE: u32 = 7;

pub fn write(action: Type, entry: &PacketReplicationEngineEntry) -> P4Result<Op> {
    match &entry.r#type {
        Some(Engine::MulticastGroupEntry(group)) => write_group(action, group),
        Some(Engine::CloneSessionEntry(session)) => write_session(action, session),
        None => Err(P4Error::invalid(
            "the packet replication engine entry is neither a multicast group nor a clone session",
        )),
    }
}

/// The replicas of a group or session.
struct Replicas {
    wanted: Vec<pipe::Replica>,
    /// The backups of each replica.
    backups: Vec<Vec<pipe::Replica>>,
    /// The replicas with byte strings in canonical form.
    written: Vec<Replica>,
}

fn decode_replicas(what: &str, replicas: &[Replica]) -> P4Result<Replicas> {
    let mut decoded = Replicas {
        wanted: vec![],
        backups: vec![],
        written: vec![],
    };
    for replica in replicas {
        let (wanted, port_kind) = decode_replica(what, replica)?;
        let backups = replica.backup_replicas.iter().map(|backup| {
            let port = value::decode_port(&backup.port, || format!("{what}, a backup's port"))?;
            Ok(pipe::Replica {
                port,
                instance: decode_instance(what, backup.instance)?,
            })
        });
        let backups = backups.collect::<P4Result<Vec<_>>>()?;
        if let Some(same) = backups.iter().find(|backup| backup.port == wanted.port) {
            return Err(P4Error::invalid(format!(
                "{what}: a replica and its backup have the same port {}: use another port for the backup",
                same.port
            )));
        }
        let written = backups.iter().map(|backup| BackupReplica {
            port: value::encode_port(backup.port),
            instance: backup.instance.into(),
        });
        decoded.written.push(Replica {
            port_kind: Some(port_kind),
            instance: replica.instance,
            backup_replicas: written.collect(),
        });
        decoded.wanted.push(wanted);
        decoded.backups.push(backups);
    }
    check_unique(what, &decoded)?;
    Ok(decoded)
}

fn decode_replica(what: &str, replica: &Replica) -> P4Result<(pipe::Replica, PortKind)> {
    let (port, port_kind) = match &replica.port_kind {
        Some(PortKind::EgressPort(port)) => (*port, PortKind::EgressPort(*port)),
        Some(PortKind::Port(port)) => {
            let port = value::decode_port(port, || format!("{what}, a replica's port"))?;
            (port, PortKind::Port(value::encode_port(port)))
        }
        None => {
            return Err(P4Error::invalid(format!(
                "{what}: a replica without a port"
            )));
        }
    };
    let instance = decode_instance(what, replica.instance)?;
    Ok((pipe::Replica { port, instance }, port_kind))
}

fn decode_instance(what: &str, instance: u32) -> P4Result<u16> {
    u16::try_from(instance)
        .map_err(|_| P4Error::invalid(format!("{what}: instance {instance} does not fit 16 bits")))
}

/// Checks that all replicas and backups differ in port or instance.
fn check_unique(what: &str, replicas: &Replicas) -> P4Result<()> {
    let mut seen = HashSet::new();
    let mut all = replicas
        .wanted
        .iter()
        .chain(replicas.backups.iter().flatten());
    match all.find(|r| !seen.insert((r.port, r.instance))) {
        None => Ok(()),
        Some(twice) => Err(P4Error::invalid(format!(
            "{what}: port {} instance {} is listed twice",
            twice.port, twice.instance
        ))),
    }
}

fn write_group(action: Type, group: &MulticastGroupEntry) -> P4Result<Op> {
    let id = group.multicast_group_id;
    if id == 0 {
        return Err(P4Error::invalid("a multicast group's id must not be 0"));
    }
    if action == Type::Delete {
        return Ok(Box::new(move |cx| {
            cx.pipeline.delete_multicast_group(id)?;
            if let Some(before) = cx.notes.multicast.remove(&id) {
                cx.undo(move |cx| write_group(Type::Insert, &before)?(cx));
            }
            Ok(())
        }));
    }
    let replicas = decode_replicas(&format!("multicast group {id}"), &group.replicas)?;
    let written = MulticastGroupEntry {
        multicast_group_id: id,
        replicas: replicas.written,
        metadata: group.metadata.to_vec().into(),
    };
    Ok(Box::new(move |cx| {
        match action {
            Type::Insert => cx.pipeline.insert_multicast_group(id, replicas.wanted)?,
            _ => cx.pipeline.modify_multicast_group(id, replicas.wanted)?,
        }
        cx.pipeline.set_multicast_backups(id, replicas.backups)?;
        let before = cx.notes.multicast.insert(id, written.clone());
        cx.undo(move |cx| match before {
            Some(before) => write_group(Type::Modify, &before)?(cx),
            None => write_group(Type::Delete, &written)?(cx),
        });
        Ok(())
    }))
}

fn write_session(action: Type, session: &CloneSessionEntry) -> P4Result<Op> {
    let id = session.session_id;
    if id == 0 {
        return Err(P4Error::invalid("a clone session's id must not be 0"));
    }
    if action == Type::Delete {
        return Ok(Box::new(move |cx| {
            cx.pipeline.delete_clone_session(id)?;
            if let Some(before) = cx.notes.sessions.remove(&id) {
                cx.undo(move |cx| write_session(Type::Insert, &before)?(cx));
            }
            Ok(())
        }));
    }
    let what = format!("clone session {id}");
    let class_of_service = session.class_of_service;
    let truncate_to = session.packet_length_bytes;
    if class_of_service > MAX_CLASS_OF_SERVICE {
        return Err(P4Error::invalid(format!(
            "{what}: class of service {class_of_service} is above {MAX_CLASS_OF_SERVICE}"
        )));
    }
    let replicas = decode_replicas(&what, &session.replicas)?;
    let written = CloneSessionEntry {
        replicas: replicas.written,
        ..*session
    };
    let backups = replicas.backups;
    let session = pipe::CloneSession {
        replicas: replicas.wanted,
        truncate_to: u32::try_from(truncate_to).map_err(|_| {
            P4Error::invalid(format!("{what}: packet length {truncate_to} is negative"))
        })?,
        class_of_service: class_of_service as u8,
    };
    Ok(Box::new(move |cx| {
        match action {
            Type::Insert => cx.pipeline.insert_clone_session(id, session)?,
            _ => cx.pipeline.modify_clone_session(id, session)?,
        }
        cx.pipeline.set_clone_backups(id, backups)?;
        let before = cx.notes.sessions.insert(id, written.clone());
        cx.undo(move |cx| match before {
            Some(before) => write_session(Type::Modify, &before)?(cx),
            None => write_session(Type::Delete, &written)?(cx),
        });
        Ok(())
    }))
}

pub fn read(
    view: View<'_>,
    request: &PacketReplicationEngineEntry,
    out: &mut Vec<Entity>,
) -> P4Result<()> {
    let (group, session) = match &request.r#type {
        Some(Engine::MulticastGroupEntry(g)) => (Some(g.multicast_group_id), None),
        Some(Engine::CloneSessionEntry(s)) => (None, Some(s.session_id)),
        None => (Some(0), Some(0)),
    };
    let is_wanted = |wanted: Option<u32>, id: u32| wanted == Some(0) || wanted == Some(id);
    let groups = view.notes.multicast.iter();
    let groups = groups.filter(|(id, _)| is_wanted(group, **id));
    let groups = groups.map(|(_, g)| Engine::MulticastGroupEntry(g.clone()));
    let sessions = view.notes.sessions.iter();
    let sessions = sessions.filter(|(id, _)| is_wanted(session, **id));
    let sessions = sessions.map(|(_, s)| Engine::CloneSessionEntry(s.clone()));
    out.extend(groups.chain(sessions).map(|entry| {
        wrap(Kind::PacketReplicationEngineEntry(
            PacketReplicationEngineEntry {
                r#type: Some(entry),
            },
        ))
    }));
    Ok(())
}
