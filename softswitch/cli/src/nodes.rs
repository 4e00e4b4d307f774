// SPDX-License-Identifier: Apache-2.0
//! Multicast nodes.
//!
//! BMv2 builds multicast groups from nodes: ports with one replication id. P4Runtime has only groups. A session keeps
//! nodes, and writes them as replicas of the group with which they are associated.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};
use crate::proto::p4::v1::{MulticastGroupEntry, Replica, replica::PortKind};
use crate::value;

/// Ports that get copies with one replication id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// The replication id (`instance` of P4Runtime).
    pub rid: u32,
    /// Ports that get a copy.
    pub ports: BTreeSet<u32>,
    /// The group with which the node is associated.
    pub group: Option<u32>,
}

/// The nodes of a session by handle.
#[derive(Debug, Default)]
pub struct Nodes(BTreeMap<u32, Node>);

impl Nodes {
    /// Takes over the groups that the switch has now. Nodes that it had before keep their handles.
    pub fn update(&mut self, groups: &[MulticastGroupEntry]) {
        let mut found: BTreeMap<(u32, u32), BTreeSet<u32>> = BTreeMap::new();
        for group in groups {
            for replica in &group.replicas {
                let key = (group.multicast_group_id, replica.instance);
                found.entry(key).or_default().insert(port(replica));
            }
        }
        self.0.retain(|_, node| match node.group {
            None => true,
            Some(group) => match found.remove(&(group, node.rid)) {
                Some(ports) => {
                    node.ports = ports;
                    true
                }
                // A node without ports adds nothing to the group.
                None => {
                    let exists = groups.iter().any(|g| g.multicast_group_id == group);
                    exists && node.ports.is_empty()
                }
            },
        });
        for ((group, rid), ports) in found {
            self.insert(Node {
                rid,
                ports,
                group: Some(group),
            });
        }
    }

    /// Adds a node; returns its handle, the lowest free number.
    pub fn insert(&mut self, node: Node) -> u32 {
        let mut taken = self.0.keys();
        let free = (0..).find(|handle| taken.next() != Some(handle));
        let handle = free.unwrap_or(u32::MAX);
        self.0.insert(handle, node);
        handle
    }

    /// Returns the node with this handle.
    ///
    /// # Errors
    /// If the handle is unknown.
    pub fn get(&self, handle: u32) -> Result<&Node> {
        let node = self.0.get(&handle);
        node.ok_or_else(|| {
            Error::new(format!(
                "unknown node handle {handle}: mc_dump shows the handles; a node without group exists only in the \
                 session that created it"
            ))
        })
    }

    /// Replaces or removes the node with this handle.
    pub fn set(&mut self, handle: u32, node: Option<Node>) {
        match node {
            Some(node) => self.0.insert(handle, node),
            None => self.0.remove(&handle),
        };
    }

    /// Returns the nodes of a group, and their handles.
    pub fn of_group(&self, group: u32) -> impl Iterator<Item = (u32, &Node)> {
        let nodes = self.0.iter().map(|(handle, node)| (*handle, node));
        nodes.filter(move |(_, node)| node.group == Some(group))
    }

    /// Releases the nodes of a group that does not exist any longer.
    pub fn release(&mut self, group: u32) {
        let nodes = self.0.values_mut();
        for node in nodes.filter(|node| node.group == Some(group)) {
            node.group = None;
        }
    }

    /// Returns the replicas of a group.
    pub fn replicas(&self, group: u32) -> Vec<Replica> {
        let nodes = self.of_group(group);
        let replicas =
            nodes.flat_map(|(_, node)| node.ports.iter().map(|port| replica(*port, node.rid)));
        replicas.collect()
    }
}

/// Returns the copy of a packet to a port.
pub fn replica(port: u32, instance: u32) -> Replica {
    Replica {
        instance,
        port_kind: Some(PortKind::Port(value::canonical(&port.to_be_bytes()))),
        ..Default::default()
    }
}

/// Returns the port of a replica.
#[allow(deprecated)] // Some servers return ports in the older field.
pub fn port(replica: &Replica) -> u32 {
    match &replica.port_kind {
        Some(PortKind::EgressPort(port)) => *port,
        Some(PortKind::Port(bytes)) => bytes.iter().fold(0, |n, b| n << 8 | u32::from(*b)),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(id: u32, replicas: &[(u32, u32)]) -> MulticastGroupEntry {
        let replicas = replicas.iter().map(|(port, rid)| replica(*port, *rid));
        MulticastGroupEntry {
            multicast_group_id: id,
            replicas: replicas.collect(),
            ..Default::default()
        }
    }

    fn node(rid: u32, ports: &[u32], group: Option<u32>) -> Node {
        Node {
            rid,
            ports: ports.iter().copied().collect(),
            group,
        }
    }

    #[test]
    fn groups_of_others_become_nodes() {
        let mut nodes = Nodes::default();
        let own = nodes.insert(node(9, &[4], None));
        nodes.update(&[group(1, &[(2, 0), (300, 0), (2, 5)])]);
        assert_eq!(nodes.get(own), Ok(&node(9, &[4], None)));
        assert_eq!(nodes.get(1), Ok(&node(0, &[2, 300], Some(1))));
        assert_eq!(nodes.get(2), Ok(&node(5, &[2], Some(1))));
        assert_eq!(
            nodes.replicas(1),
            group(1, &[(2, 0), (300, 0), (2, 5)]).replicas
        );
    }

    #[test]
    fn nodes_vanish_with_their_replicas() {
        let mut nodes = Nodes::default();
        nodes.update(&[group(1, &[(2, 0)]), group(2, &[(3, 0)])]);
        nodes.update(&[group(2, &[(4, 0)])]);
        assert!(nodes.get(0).is_err());
        assert_eq!(nodes.get(1), Ok(&node(0, &[4], Some(2))));
        assert_eq!(nodes.insert(node(1, &[], None)), 0);
    }
}
