// SPDX-License-Identifier: Apache-2.0
//! Multicast groups and clone sessions (specification, section "PacketReplicationEngineEntry").

use softswitch_pipeline as pipe;

use super::{Op, View, wrap};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::value;
use crate::proto::p4::v1::{
    CloneSessionEntry, Entity, MulticastGroupEntry, PacketReplicationEngineEntry, Replica,
    entity::Entity as Kind, packet_replication_engine_entry::Type as Engine, replica::PortKind,
    update::Type,
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

/// Decodes replicas, for the pipeline and for reading them back.
fn decode_replicas(
    what: &str,
    replicas: &[Replica],
) -> P4Result<(Vec<pipe::Replica>, Vec<Replica>)> {
    let decoded = replicas.iter().map(|replica| {
        if !replica.backup_replicas.is_empty() {
            return Err(P4Error::unimplemented(format!(
                "{what}: backup replicas are not supported"
            )));
        }
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
        let instance = u16::try_from(replica.instance).map_err(|_| {
            P4Error::invalid(format!(
                "{what}: instance {} does not fit 16 bits",
                replica.instance
            ))
        })?;
        let written = Replica {
            port_kind: Some(port_kind),
            instance: replica.instance,
            backup_replicas: vec![],
        };
        Ok((pipe::Replica { port, instance }, written))
    });
    let decoded = decoded.collect::<P4Result<Vec<_>>>()?;
    Ok(decoded.into_iter().unzip())
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
    let (replicas, written) = decode_replicas(&format!("multicast group {id}"), &group.replicas)?;
    let written = MulticastGroupEntry {
        multicast_group_id: id,
        replicas: written,
        metadata: group.metadata.to_vec().into(),
    };
    Ok(Box::new(move |cx| {
        match action {
            Type::Insert => cx.pipeline.insert_multicast_group(id, replicas)?,
            _ => cx.pipeline.modify_multicast_group(id, replicas)?,
        }
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
    let (replicas, written) = decode_replicas(&what, &session.replicas)?;
    let written = CloneSessionEntry {
        replicas: written,
        ..*session
    };
    let session = pipe::CloneSession {
        replicas,
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
