//! Multicast groups and clone sessions.

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
            "the packet replication engine entry is neither group nor session",
        )),
    }
}

fn decode_replicas(what: &str, replicas: &[Replica]) -> P4Result<Vec<pipe::Replica>> {
    let decoded = replicas.iter().map(|replica| {
        if !replica.backup_replicas.is_empty() {
            return Err(P4Error::unimplemented(format!(
                "{what}: backup replicas are not supported"
            )));
        }
        let port = match &replica.port_kind {
            Some(PortKind::EgressPort(port)) => *port,
            Some(PortKind::Port(port)) => {
                value::decode_port(port, || format!("{what}, a replica's port"))?
            }
            None => return Err(P4Error::invalid(format!("{what}: a replica has no port"))),
        };
        let instance = u16::try_from(replica.instance).map_err(|_| {
            P4Error::invalid(format!(
                "{what}: instance {} does not fit 16 bits",
                replica.instance
            ))
        })?;
        Ok(pipe::Replica { port, instance })
    });
    decoded.collect()
}

fn encode_replicas(replicas: &[pipe::Replica]) -> Vec<Replica> {
    let encoded = replicas.iter().map(|r| Replica {
        port_kind: Some(PortKind::Port(value::encode_port(r.port))),
        instance: u32::from(r.instance),
        backup_replicas: vec![],
    });
    encoded.collect()
}

fn write_group(action: Type, group: &MulticastGroupEntry) -> P4Result<Op> {
    let id = group.multicast_group_id;
    if id == 0 {
        return Err(P4Error::invalid("a multicast group's id cannot be 0"));
    }
    if action == Type::Delete {
        return Ok(Box::new(move |cx| {
            cx.pipeline.delete_multicast_group(id)?;
            cx.notes.multicast.remove(&id);
            Ok(())
        }));
    }
    let replicas = decode_replicas(&format!("multicast group {id}"), &group.replicas)?;
    let metadata = group.metadata.to_vec().into();
    Ok(Box::new(move |cx| {
        match action {
            Type::Insert => cx.pipeline.insert_multicast_group(id, replicas)?,
            _ => cx.pipeline.modify_multicast_group(id, replicas)?,
        }
        cx.notes.multicast.insert(id, metadata);
        Ok(())
    }))
}

fn write_session(action: Type, session: &CloneSessionEntry) -> P4Result<Op> {
    let id = session.session_id;
    if id == 0 {
        return Err(P4Error::invalid("a clone session's id cannot be 0"));
    }
    if action == Type::Delete {
        return Ok(Box::new(move |cx| {
            Ok(cx.pipeline.delete_clone_session(id)?)
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
    let session = pipe::CloneSession {
        replicas: decode_replicas(&what, &session.replicas)?,
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
        Ok(())
    }))
}

pub fn read(
    view: View<'_>,
    request: &PacketReplicationEngineEntry,
    out: &mut Vec<Entity>,
) -> P4Result<()> {
    let mut push = |entry| {
        out.push(wrap(Kind::PacketReplicationEngineEntry(
            PacketReplicationEngineEntry {
                r#type: Some(entry),
            },
        )));
    };
    let (groups, sessions) = match &request.r#type {
        Some(Engine::MulticastGroupEntry(g)) => (Some(g.multicast_group_id), None),
        Some(Engine::CloneSessionEntry(s)) => (None, Some(s.session_id)),
        None => (Some(0), Some(0)),
    };
    if let Some(wanted) = groups {
        for (id, replicas) in view.look(|p| Ok(p.multicast_groups()))? {
            if wanted == 0 || wanted == id {
                push(Engine::MulticastGroupEntry(MulticastGroupEntry {
                    multicast_group_id: id,
                    replicas: encode_replicas(&replicas),
                    metadata: view.notes.multicast.get(&id).cloned().unwrap_or_default(),
                }));
            }
        }
    }
    if let Some(wanted) = sessions {
        for (id, session) in view.look(|p| Ok(p.clone_sessions()))? {
            if wanted == 0 || wanted == id {
                push(Engine::CloneSessionEntry(CloneSessionEntry {
                    session_id: id,
                    replicas: encode_replicas(&session.replicas),
                    class_of_service: u32::from(session.class_of_service),
                    packet_length_bytes: i32::try_from(session.truncate_to).unwrap_or(i32::MAX),
                }));
            }
        }
    }
    Ok(())
}
