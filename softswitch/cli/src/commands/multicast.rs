// SPDX-License-Identifier: Apache-2.0
//! Commands for multicast groups and nodes.

use serde_json::{Value, json};
use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::nodes::Node;
use crate::output::Answer;
use crate::proto::p4::v1::packet_replication_engine_entry::Type;
use crate::proto::p4::v1::{
    MulticastGroupEntry, PacketReplicationEngineEntry, entity::Entity, update::Type as Update,
};
use crate::session::Session;
use crate::value;

/// Separates ports from link aggregation groups.
const LAGS: &str = "|";

impl Session {
    /// Reads all groups, and brings the nodes up to date.
    fn read_multicast(&mut self) -> Result<Vec<MulticastGroupEntry>> {
        let entities = self.client.read(entity(MulticastGroupEntry::default()))?;
        let groups = entities.into_iter().filter_map(|entity| match entity {
            Entity::PacketReplicationEngineEntry(entry) => match entry.r#type {
                Some(Type::MulticastGroupEntry(group)) => Some(group),
                _ => None,
            },
            _ => None,
        });
        let groups: Vec<MulticastGroupEntry> = groups.collect();
        self.nodes.update(&groups);
        Ok(groups)
    }

    /// Replaces a node, or deletes it, and writes the groups that change. If a write fails, the node stays.
    fn replace_node(&mut self, handle: u32, node: Option<Node>) -> Result<()> {
        let before = self.nodes.get(handle)?.clone();
        let after = node.as_ref().and_then(|node| node.group);
        self.nodes.set(handle, node);
        let groups: BTreeSet<u32> = [before.group, after].into_iter().flatten().collect();
        for group in groups {
            let replicas = self.nodes.replicas(group);
            let written = self
                .client
                .write(Update::Modify, group_entity(group, replicas));
            if let Err(error) = written {
                self.nodes.set(handle, Some(before));
                return Err(error);
            }
        }
        Ok(())
    }
}

fn entity(group: MulticastGroupEntry) -> Entity {
    Entity::PacketReplicationEngineEntry(PacketReplicationEngineEntry {
        r#type: Some(Type::MulticastGroupEntry(group)),
    })
}

fn group_entity(id: u32, replicas: Vec<crate::proto::p4::v1::Replica>) -> Entity {
    entity(MulticastGroupEntry {
        multicast_group_id: id,
        replicas,
        ..Default::default()
    })
}

fn parse_group(text: &str) -> Result<u32> {
    match value::number(text, "multicast group")? {
        0 => Err(Error::new(
            "multicast group 0 means no multicast: use 1 or more",
        )),
        id => Ok(id),
    }
}

fn parse_handle(text: &str) -> Result<u32> {
    value::number(text, "node handle")
}

fn parse_ports(args: &[&str]) -> Result<BTreeSet<u32>> {
    let mut ports = BTreeSet::new();
    for arg in args {
        if *arg == LAGS {
            return Err(Error::new(
                "P4Runtime has no link aggregation groups: name ports, or use Thrift (simple_switch_CLI)",
            ));
        }
        if !ports.insert(value::number(arg, "port")?) {
            return Err(Error::new(format!("port {arg} occurs twice: name it once")));
        }
    }
    Ok(ports)
}

pub fn create_group(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [group] = args else {
        return Err(Error::Usage);
    };
    let group = parse_group(group)?;
    session
        .client
        .write(Update::Insert, group_entity(group, vec![]))?;
    Ok(Answer::text(format!("Creating multicast group {group}")))
}

pub fn destroy_group(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [group] = args else {
        return Err(Error::Usage);
    };
    let group = parse_group(group)?;
    session.read_multicast()?;
    session
        .client
        .write(Update::Delete, group_entity(group, vec![]))?;
    session.nodes.release(group);
    Ok(Answer::text(format!("Destroying multicast group {group}")))
}

pub fn create_node(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [rid, ports @ ..] = args else {
        return Err(Error::Usage);
    };
    let node = Node {
        rid: u32::from(value::number::<u16>(rid, "replication id")?),
        ports: parse_ports(ports)?,
        group: None,
    };
    session.read_multicast()?;
    let handle = session.nodes.insert(node);
    Ok(Answer::new(
        format!("node was created with handle {handle}"),
        json!({"handle": handle}),
    ))
}

pub fn update_node(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [handle, ports @ ..] = args else {
        return Err(Error::Usage);
    };
    let (handle, ports) = (parse_handle(handle)?, parse_ports(ports)?);
    session.read_multicast()?;
    let node = Node {
        ports,
        ..session.nodes.get(handle)?.clone()
    };
    session.replace_node(handle, Some(node))?;
    Ok(Answer::text(format!("Updating node {handle}")))
}

pub fn associate(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [group, handle] = args else {
        return Err(Error::Usage);
    };
    let (group, handle) = (parse_group(group)?, parse_handle(handle)?);
    session.read_multicast()?;
    let node = session.nodes.get(handle)?.clone();
    if let Some(other) = node.group {
        return Err(Error::new(format!(
            "node {handle} is associated with group {other}: use mc_node_dissociate first"
        )));
    }
    if session
        .nodes
        .of_group(group)
        .any(|(_, other)| other.rid == node.rid)
    {
        return Err(Error::new(format!(
            "group {group} has a node with replication id {}: use mc_node_update, or another replication id",
            node.rid
        )));
    }
    let node = Node {
        group: Some(group),
        ..node
    };
    session.replace_node(handle, Some(node))?;
    Ok(Answer::text(format!(
        "Associating node {handle} to multicast group {group}"
    )))
}

pub fn dissociate(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [group, handle] = args else {
        return Err(Error::Usage);
    };
    let (group, handle) = (parse_group(group)?, parse_handle(handle)?);
    session.read_multicast()?;
    let node = session.nodes.get(handle)?.clone();
    if node.group != Some(group) {
        return Err(Error::new(format!(
            "node {handle} is not associated with group {group}: mc_dump shows the nodes"
        )));
    }
    session.replace_node(
        handle,
        Some(Node {
            group: None,
            ..node
        }),
    )?;
    Ok(Answer::text(format!(
        "Dissociating node {handle} from multicast group {group}"
    )))
}

pub fn destroy_node(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [handle] = args else {
        return Err(Error::Usage);
    };
    let handle = parse_handle(handle)?;
    session.read_multicast()?;
    session.replace_node(handle, None)?;
    Ok(Answer::text(format!("Destroying node {handle}")))
}

pub fn dump(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [] = args else { return Err(Error::Usage) };
    let groups = session.read_multicast()?;
    let mut text = String::from("==========\nMC ENTRIES\n");
    let mut data: Vec<Value> = Vec::new();
    for group in groups {
        let id = group.multicast_group_id;
        text.push_str(&format!("**********\nmgrp({id})\n"));
        let nodes = session.nodes.of_group(id).map(|(handle, node)| {
            let ports: Vec<String> = node.ports.iter().map(u32::to_string).collect();
            let (rid, ports) = (node.rid, ports.join(", "));
            text.push_str(&format!(
                "  -> (L1h={handle}, rid={rid}) -> (ports=[{ports}], lags=[])\n"
            ));
            json!({"handle": handle, "replication_id": rid, "ports": node.ports})
        });
        let nodes: Vec<Value> = nodes.collect();
        data.push(json!({"group": id, "nodes": nodes}));
    }
    text.push_str("==========\nLAGS\nNone: P4Runtime has no link aggregation groups\n==========");
    Ok(Answer::new(text, data.into()))
}
