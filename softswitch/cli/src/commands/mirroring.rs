// SPDX-License-Identifier: Apache-2.0
//! Commands for mirroring sessions: clone sessions of P4Runtime.

use serde_json::json;

use crate::error::{Error, Result};
use crate::nodes::{port, replica};
use crate::output::Answer;
use crate::proto::p4::v1::packet_replication_engine_entry::Type;
use crate::proto::p4::v1::{
    CloneSessionEntry, PacketReplicationEngineEntry, entity::Entity, update::Type as Update,
};
use crate::session::Session;
use crate::value;

fn entity(session: CloneSessionEntry) -> Entity {
    Entity::PacketReplicationEngineEntry(PacketReplicationEngineEntry {
        r#type: Some(Type::CloneSessionEntry(session)),
    })
}

/// Reads the id of a session. Id 0 would mean all sessions.
fn parse_id(text: &str) -> Result<u32> {
    match value::number(text, "session")? {
        0 => Err(Error::new(
            "session 0 does not exist in P4Runtime: use 1 or more",
        )),
        id => Ok(id),
    }
}

/// Reads a session; returns `None` for an unknown id.
fn find(session: &mut Session, id: u32) -> Result<Option<CloneSessionEntry>> {
    // All are read, because some servers refuse to read one that does not exist.
    let entities = session.client.read(entity(CloneSessionEntry::default()))?;
    let mut sessions = entities.into_iter().filter_map(|entity| match entity {
        Entity::PacketReplicationEngineEntry(entry) => match entry.r#type {
            Some(Type::CloneSessionEntry(session)) => Some(session),
            _ => None,
        },
        _ => None,
    });
    Ok(sessions.find(|session| session.session_id == id))
}

pub fn add(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [id, port] = args else {
        return Err(Error::Usage);
    };
    let session_id = parse_id(id)?;
    let clone = CloneSessionEntry {
        session_id,
        replicas: vec![replica(value::number(port, "port")?, 0)],
        ..Default::default()
    };
    // As in BMv2, a new session replaces an old one.
    let kind = match find(session, session_id)? {
        Some(_) => Update::Modify,
        None => Update::Insert,
    };
    session.client.write(kind, entity(clone))?;
    Ok(Answer::default())
}

pub fn delete(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [id] = args else { return Err(Error::Usage) };
    let clone = CloneSessionEntry {
        session_id: parse_id(id)?,
        ..Default::default()
    };
    session.client.write(Update::Delete, entity(clone))?;
    Ok(Answer::default())
}

pub fn get(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [id] = args else { return Err(Error::Usage) };
    let id = parse_id(id)?;
    let clone = find(session, id)?.ok_or_else(|| {
        Error::new(format!(
            "unknown mirroring session {id}: mirroring_add adds one"
        ))
    })?;
    let replicas = clone.replicas.iter();
    let ports: Vec<String> = replicas.clone().map(|r| port(r).to_string()).collect();
    let data = replicas.map(|r| json!({"port": port(r), "replication_id": r.instance}));
    let text = format!(
        "session {id}: ports [{}], truncated to {} bytes (0: not truncated)",
        ports.join(", "),
        clone.packet_length_bytes
    );
    Ok(Answer::new(
        text,
        json!({
            "session": id, "replicas": data.collect::<Vec<_>>(), "truncate_bytes": clone.packet_length_bytes,
        }),
    ))
}
