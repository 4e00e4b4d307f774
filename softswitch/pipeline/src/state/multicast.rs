// SPDX-License-Identifier: Apache-2.0
//! Multicast of the Tofino Native Architecture: a packet's metadata excludes copies, and its hashes choose between nodes and
//! between ports. The rules are those of the open PTF test of `tna_multicast`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::state::pre::Replica;

/// Bits of the hashes of a packet.
const HASH_MASK: u32 = 0x1fff;

/// A multicast group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MulticastTree {
    /// Each branch makes the copies of one node.
    pub branches: Vec<MulticastBranch>,
}

/// A node, or nodes of which a packet's first hash chooses one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MulticastBranch {
    /// Packets with this first exclusion id skip the branch.
    pub exclusion: Option<u16>,
    /// The nodes. A place can be empty.
    pub nodes: Vec<Option<MulticastNode>>,
}

/// Copies with the same replication id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MulticastNode {
    /// The replication id.
    pub rid: u16,
    /// A copy for each of these ports.
    pub ports: Vec<u32>,
    /// A copy for one port of each of these.
    pub lags: Vec<LinkAggregation>,
}

/// Ports of which a packet's second hash chooses one. Other devices may have further ports of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkAggregation {
    /// The ports, in ascending order.
    pub ports: Vec<u32>,
    /// Number of ports of other devices with larger indices.
    pub remote_high: u32,
    /// Number of ports of other devices with smaller indices.
    pub remote_low: u32,
}

/// The copies that a packet requests.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Request {
    pub(crate) rid: u16,
    pub(crate) exclusions: [u16; 2],
    pub(crate) hashes: [u32; 2],
    /// The second hash is combined with the replication id of nodes, as on Tofino 2.
    pub(crate) hashes_rid: bool,
}

/// The settings of all groups.
#[derive(Debug, Clone, Default)]
pub(crate) struct Multicast {
    trees: BTreeMap<u32, Arc<MulticastTree>>,
    /// The ports that packets with a second exclusion id skip.
    pruned: BTreeMap<u16, BTreeSet<u32>>,
    /// Packets with this replication id skip ports of all nodes.
    pub(crate) global_rid: u16,
}

impl Multicast {
    pub(crate) fn set_tree(&mut self, group: u32, tree: Option<MulticastTree>) {
        match tree {
            Some(tree) => self.trees.insert(group, tree.into()),
            None => self.trees.remove(&group),
        };
    }

    pub(crate) fn tree(&self, group: u32) -> Option<Arc<MulticastTree>> {
        self.trees.get(&group).cloned()
    }

    pub(crate) fn set_pruned(&mut self, exclusion: u16, ports: &[u32]) {
        match ports.is_empty() {
            true => self.pruned.remove(&exclusion),
            false => {
                let ports = ports.iter().copied().collect();
                self.pruned.insert(exclusion, ports)
            }
        };
    }

    pub(crate) fn pruned(&self, exclusion: u16) -> Vec<u32> {
        let ports = self.pruned.get(&exclusion);
        ports.into_iter().flatten().copied().collect()
    }

    /// Returns the copies of a packet.
    pub(crate) fn replicas(
        &self,
        tree: &MulticastTree,
        request: &Request,
        down: &BTreeSet<u32>,
    ) -> Vec<Replica> {
        let is_kept = |branch: &&MulticastBranch| branch.exclusion != Some(request.exclusions[0]);
        let branches = tree.branches.iter().filter(is_kept);
        let nodes = branches.filter_map(|branch| branch.choose(request.hashes[0]));
        let copies = nodes.flat_map(|node| {
            let lags = node.lags.iter();
            let lags = lags.filter_map(|lag| lag.choose(node.hash(request), down));
            let is_pruned = self.prunes(node, request);
            let ports = node.ports.iter().copied().chain(lags);
            ports
                .filter(move |port| is_pruned.is_none_or(|pruned| !pruned.contains(port)))
                .map(|port| Replica {
                    port,
                    instance: node.rid,
                })
        });
        copies.collect()
    }

    /// Returns the ports of a node that a packet skips.
    fn prunes(&self, node: &MulticastNode, request: &Request) -> Option<&BTreeSet<u32>> {
        let is_subject = request.rid == node.rid || request.rid == self.global_rid;
        let pruned = self.pruned.get(&request.exclusions[1]);
        pruned.filter(|_| is_subject)
    }
}

impl MulticastBranch {
    /// Returns the node in the place of a hash. If the place is empty, the hash counts the other nodes only.
    fn choose(&self, hash: u32) -> Option<&MulticastNode> {
        let present = self.nodes.iter().flatten();
        let live = present.clone().count();
        let place = self.nodes.get(hash as usize % self.nodes.len().max(1))?;
        let other = || present.clone().nth(hash as usize % live.max(1));
        place.as_ref().or_else(other)
    }
}

impl MulticastNode {
    fn hash(&self, request: &Request) -> u32 {
        let [_, hash] = request.hashes;
        match request.hashes_rid {
            true => (hash ^ u32::from(self.rid)) & HASH_MASK,
            false => hash,
        }
    }
}

impl LinkAggregation {
    /// Returns the port of a hash; none if it is another device's. Instead of a port that is down, the hash chooses one that
    /// is up.
    fn choose(&self, hash: u32, down: &BTreeSet<u32>) -> Option<u32> {
        let own = u32::try_from(self.ports.len()).ok()?;
        let all = self
            .remote_high
            .saturating_add(own)
            .saturating_add(self.remote_low);
        let index = hash.checked_rem(all & HASH_MASK).unwrap_or(0);
        let index = index.checked_sub(self.remote_low)?;
        let port = *self.ports.get(index as usize)?;
        if !down.contains(&port) {
            return Some(port);
        }
        let up = self.ports.iter().filter(|port| !down.contains(port));
        let count = up.clone().count();
        let other = up
            .copied()
            .nth((hash as usize).checked_rem(count).unwrap_or(0));
        Some(other.unwrap_or(port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lag(ports: &[u32], remote: [u32; 2]) -> LinkAggregation {
        LinkAggregation {
            ports: ports.to_vec(),
            remote_high: remote[0],
            remote_low: remote[1],
        }
    }

    fn node(rid: u16, ports: &[u32]) -> MulticastNode {
        MulticastNode {
            rid,
            ports: ports.to_vec(),
            lags: vec![],
        }
    }

    #[test]
    fn hash_chooses_a_port_that_is_up() {
        let none = BTreeSet::new();
        let chosen = |lag: &LinkAggregation, down| [0, 1, 2, 3].map(|h| lag.choose(h, down));
        let all = lag(&[4, 5, 6], [0, 0]);
        assert_eq!(chosen(&all, &none), [Some(4), Some(5), Some(6), Some(4)]);
        let down = BTreeSet::from([5]);
        assert_eq!(chosen(&all, &down), [Some(4), Some(6), Some(6), Some(4)]);
        let remote = lag(&[4], [2, 1]);
        assert_eq!(chosen(&remote, &none), [None, Some(4), None, None]);
        assert_eq!(chosen(&lag(&[], [0, 0]), &none), [None; 4]);
    }

    #[test]
    fn hash_chooses_a_node_that_exists() {
        let branch = MulticastBranch {
            exclusion: None,
            nodes: vec![Some(node(1, &[])), None, Some(node(3, &[])), None],
        };
        let chosen = [0, 1, 2, 3, 4].map(|hash| branch.choose(hash).map(|node| node.rid));
        assert_eq!(chosen, [Some(1), Some(3), Some(3), Some(3), Some(1)]);
        assert_eq!(MulticastBranch::default().choose(7), None);
    }

    #[test]
    fn metadata_excludes_branches_and_ports() {
        let mut multicast = Multicast::default();
        multicast.set_pruned(9, &[2]);
        multicast.global_rid = 50;
        let branch = |exclusion, rid, ports: &[u32]| MulticastBranch {
            exclusion,
            nodes: vec![Some(node(rid, ports))],
        };
        let tree = MulticastTree {
            branches: vec![branch(Some(7), 20, &[1]), branch(None, 30, &[2, 3])],
        };
        let ports = |rid, exclusions| {
            let request = Request {
                rid,
                exclusions,
                ..Request::default()
            };
            let replicas = multicast.replicas(&tree, &request, &BTreeSet::new());
            replicas.iter().map(|r| r.port).collect::<Vec<_>>()
        };
        assert_eq!(ports(1, [0, 9]), [1, 2, 3]);
        assert_eq!(ports(1, [7, 0]), [2, 3]);
        assert_eq!(ports(30, [0, 9]), [1, 3]);
        assert_eq!(ports(50, [0, 9]), [1, 3]);
        multicast.set_pruned(9, &[]);
        assert_eq!(multicast.pruned(9), [0; 0]);
    }
}
