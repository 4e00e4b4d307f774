// SPDX-License-Identifier: Apache-2.0
//! BMv2's packet replication engine as a pure state machine: groups of nodes, and mirroring sessions.
//!
//! A node makes copies with one replication id, on its ports and on one port of each of its link aggregation groups. The
//! pipeline knows only the resulting replicas.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use softswitch_pipeline::Replica;
use softswitch_thrift::interface::{MirroringSession, MulticastError};

/// Maximum number of nodes.
const MAX_NODES: usize = 4096;

/// Largest number of a link aggregation group.
const MAX_LAG: u16 = 256;

/// Maximum length of a map of ports or link aggregation groups.
const MAX_MAP: usize = 1 << 16;

/// The hash by which BMv2 selects the port of a link aggregation group.
const LAG_HASH: usize = 0xff;

/// Ports, or link aggregation groups, by number.
pub type Numbers = BTreeSet<u32>;

type Result<T> = std::result::Result<T, MulticastError>;

#[derive(Debug, Clone, Default)]
struct Node {
    rid: u16,
    ports: Numbers,
    lags: Numbers,
    group: Option<u32>,
}

/// Groups, nodes, link aggregation groups and mirroring sessions.
#[derive(Debug, Clone, Default)]
pub struct Pre {
    /// The nodes of each group, in order.
    groups: BTreeMap<u32, Vec<i32>>,
    nodes: BTreeMap<i32, Node>,
    lags: BTreeMap<u16, Numbers>,
    sessions: BTreeMap<u32, MirroringSession>,
}

/// Decodes a map of ports or link aggregation groups: a string of `0` and `1`, whose last character is number 0.
///
/// # Errors
/// `ERROR` if it has other characters, or too many.
pub fn decode_map(map: &str) -> Result<Numbers> {
    if map.len() > MAX_MAP {
        return Err(MulticastError::Error);
    }
    let bits = (0..).zip(map.bytes().rev());
    let bits = bits.map(|(number, bit)| match bit {
        b'0' => Ok(None),
        b'1' => Ok(Some(number)),
        _ => Err(MulticastError::Error),
    });
    let bits = bits.collect::<Result<Vec<_>>>()?;
    Ok(bits.into_iter().flatten().collect())
}

/// Returns replicas in the order of nodes.
fn sorted(replicas: &[Replica]) -> Vec<Replica> {
    let mut sorted = replicas.to_vec();
    sorted.sort_by_key(|replica| (replica.instance, replica.port));
    sorted
}

impl Pre {
    /// Creates a group. An existing one stays, as in BMv2.
    pub fn create_group(&mut self, group: u32) {
        self.groups.entry(group).or_default();
    }

    /// Deletes a group, if it exists. Its nodes stay.
    pub fn destroy_group(&mut self, group: u32) {
        for node in self.groups.remove(&group).unwrap_or_default() {
            if let Some(node) = self.nodes.get_mut(&node) {
                node.group = None;
            }
        }
    }

    /// Creates a node and returns its handle, the lowest free one.
    pub fn create_node(&mut self, rid: u16, ports: Numbers, lags: Numbers) -> Result<i32> {
        if self.nodes.len() >= MAX_NODES {
            return Err(MulticastError::TableFull);
        }
        let used = self.nodes.keys();
        let handle = (0..).zip(used).take_while(|(free, used)| free == *used);
        let handle = handle.count() as i32;
        let node = Node {
            rid,
            ports,
            lags,
            group: None,
        };
        self.nodes.insert(handle, node);
        Ok(handle)
    }

    fn node(&mut self, node: i32) -> Result<&mut Node> {
        let node = self.nodes.get_mut(&node);
        node.ok_or(MulticastError::InvalidL1Handle)
    }

    /// Adds a node to a group; a node can be in one group only.
    pub fn associate(&mut self, group: u32, handle: i32) -> Result<()> {
        let exists = self.groups.contains_key(&group);
        let node = self.node(handle)?;
        if !exists {
            return Err(MulticastError::InvalidMgrpHandle);
        }
        if node.group.is_some() {
            return Err(MulticastError::Error);
        }
        node.group = Some(group);
        self.groups.entry(group).or_default().push(handle);
        Ok(())
    }

    /// Removes a node from its group.
    pub fn dissociate(&mut self, group: u32, handle: i32) -> Result<()> {
        let exists = self.groups.contains_key(&group);
        let node = self.node(handle)?;
        if !exists {
            return Err(MulticastError::InvalidMgrpHandle);
        }
        if node.group != Some(group) {
            return Err(MulticastError::Error);
        }
        node.group = None;
        self.groups
            .entry(group)
            .or_default()
            .retain(|&h| h != handle);
        Ok(())
    }

    /// Deletes a node.
    pub fn destroy_node(&mut self, handle: i32) -> Result<()> {
        if let Some(group) = self.node(handle)?.group {
            self.dissociate(group, handle)?;
        }
        self.nodes.remove(&handle);
        Ok(())
    }

    /// Replaces a node's ports.
    pub fn update_node(&mut self, handle: i32, ports: Numbers, lags: Numbers) -> Result<()> {
        let node = self.node(handle)?;
        (node.ports, node.lags) = (ports, lags);
        Ok(())
    }

    /// Sets the ports of a link aggregation group.
    pub fn set_lag(&mut self, lag: u16, ports: Numbers) -> Result<()> {
        if lag > MAX_LAG {
            return Err(MulticastError::Error);
        }
        self.lags.insert(lag, ports);
        Ok(())
    }

    /// Sets or deletes a mirroring session.
    pub fn set_session(&mut self, id: u32, session: Option<MirroringSession>) {
        match session {
            Some(session) => self.sessions.insert(id, session),
            None => self.sessions.remove(&id),
        };
    }

    /// Returns a mirroring session.
    pub fn session(&self, id: u32) -> Option<&MirroringSession> {
        self.sessions.get(&id)
    }

    /// Returns the replicas of each group.
    pub fn replicas(&self) -> BTreeMap<u32, Vec<Replica>> {
        let groups = self.groups.keys();
        groups
            .map(|&group| (group, self.replicas_of(group)))
            .collect()
    }

    fn replicas_of(&self, group: u32) -> Vec<Replica> {
        let nodes = self.groups.get(&group).into_iter().flatten();
        let nodes = nodes.filter_map(|handle| self.nodes.get(handle));
        let replicas = nodes.flat_map(|node| {
            let selected = node.lags.iter().filter_map(|&lag| self.port_of_lag(lag));
            let ports = node.ports.iter().copied().chain(selected);
            ports.map(|port| Replica {
                port,
                instance: node.rid,
            })
        });
        replicas.collect()
    }

    fn port_of_lag(&self, lag: u32) -> Option<u32> {
        let ports = self.lags.get(&u16::try_from(lag).ok()?)?;
        ports.iter().nth(LAG_HASH % ports.len().max(1)).copied()
    }

    /// Returns the replicas of each mirroring session: the port's, and those of the group.
    pub fn session_replicas(&self) -> BTreeMap<u32, Vec<Replica>> {
        let replicas = self.sessions.iter().map(|(&id, session)| {
            let number = |n: Option<i32>| n.and_then(|n| u32::try_from(n).ok());
            let port = number(session.port).map(|port| Replica { port, instance: 0 });
            let mut replicas: Vec<_> = port.into_iter().collect();
            for copy in number(session.mgid).map_or(vec![], |group| self.replicas_of(group)) {
                if !replicas.contains(&copy) {
                    replicas.push(copy);
                }
            }
            (id, replicas)
        });
        replicas.collect()
    }

    /// Deletes a group and its nodes.
    fn remove_group(&mut self, group: u32) {
        for node in self.groups.remove(&group).unwrap_or_default() {
            self.nodes.remove(&node);
        }
    }

    /// Takes over what P4Runtime has changed: groups and sessions with other replicas than the pipeline's are replaced, with
    /// the groups' nodes. A group gets one node for each replication id.
    pub fn adopt(
        &mut self,
        groups: &BTreeMap<u32, Vec<Replica>>,
        sessions: &BTreeMap<u32, Vec<Replica>>,
    ) {
        let own = self.replicas();
        for &group in own.keys().filter(|group| !groups.contains_key(group)) {
            self.remove_group(group);
        }
        let is_own = |group: &u32, replicas: &[Replica]| {
            own.get(group)
                .is_some_and(|own| sorted(own) == sorted(replicas))
        };
        for (&group, replicas) in groups.iter().filter(|(group, r)| !is_own(group, r)) {
            self.remove_group(group);
            self.create_group(group);
            let mut ports_by_rid = BTreeMap::<u16, Numbers>::new();
            for replica in replicas {
                ports_by_rid
                    .entry(replica.instance)
                    .or_default()
                    .insert(replica.port);
            }
            for (rid, ports) in ports_by_rid {
                // A group with more nodes than BMv2 has is shown in part.
                let Ok(node) = self.create_node(rid, ports, Numbers::new()) else {
                    return;
                };
                let _ = self.associate(group, node);
            }
        }
        let own = self.session_replicas();
        self.sessions.retain(|id, _| sessions.contains_key(id));
        for (&id, replicas) in sessions.iter().filter(|(id, r)| own.get(id) != Some(*r)) {
            let port = match replicas[..] {
                [Replica { port, instance: 0 }] => i32::try_from(port).ok(),
                _ => None,
            };
            self.sessions
                .insert(id, MirroringSession { port, mgid: None });
        }
    }

    /// Returns all groups, nodes and link aggregation groups in BMv2's form.
    pub fn to_json(&self) -> Json {
        let groups = self.groups.iter();
        let groups = groups.map(|(id, nodes)| json!({"id": id, "l1_handles": nodes}));
        // BMv2 gives the ports of a node a handle of their own, which is always the same number.
        let l1 = self.nodes.iter();
        let l1 = l1.map(|(h, node)| json!({"handle": h, "l2_handle": h, "rid": node.rid}));
        let l2 = self.nodes.iter();
        let l2 = l2.map(|(h, node)| json!({"handle": h, "lags": node.lags, "ports": node.ports}));
        let lags = self.lags.iter();
        let lags = lags.map(|(id, ports)| json!({"id": id, "ports": ports}));
        json!({
            "l1_handles": l1.collect::<Vec<_>>(),
            "l2_handles": l2.collect::<Vec<_>>(),
            "lags": lags.collect::<Vec<_>>(),
            "mgrps": groups.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(text: &str) -> Numbers {
        decode_map(text).unwrap()
    }

    fn replica(port: u32, instance: u16) -> Replica {
        Replica { port, instance }
    }

    #[test]
    fn map_counts_from_the_last_character() {
        assert_eq!(map("1001"), [0, 3].into());
        assert_eq!(map(""), Numbers::new());
        assert_eq!(decode_map("12"), Err(MulticastError::Error));
        assert_eq!(map(&"1".repeat(MAX_MAP)).len(), MAX_MAP);
        let longer = "0".repeat(MAX_MAP + 1);
        assert_eq!(decode_map(&longer), Err(MulticastError::Error));
    }

    #[test]
    fn node_is_in_one_group() {
        let mut pre = Pre::default();
        pre.create_group(7);
        let node = pre.create_node(5, map("110"), map("")).unwrap();
        assert_eq!(
            pre.associate(8, node),
            Err(MulticastError::InvalidMgrpHandle)
        );
        assert_eq!(pre.associate(7, 9), Err(MulticastError::InvalidL1Handle));
        pre.associate(7, node).unwrap();
        assert_eq!(pre.associate(7, node), Err(MulticastError::Error));
        assert_eq!(pre.replicas()[&7], [replica(1, 5), replica(2, 5)]);
        pre.destroy_node(node).unwrap();
        assert_eq!(pre.replicas()[&7], []);
        assert_eq!(pre.destroy_node(node), Err(MulticastError::InvalidL1Handle));
        assert_eq!(pre.create_node(1, map("1"), map("")), Ok(node));
    }

    #[test]
    fn link_aggregation_group_has_one_port() {
        let mut pre = Pre::default();
        pre.create_group(1);
        let node = pre.create_node(0, map(""), map("11")).unwrap();
        pre.associate(1, node).unwrap();
        assert_eq!(pre.replicas()[&1], []);
        // 255 modulo 2 is 1.
        pre.set_lag(1, map("11000")).unwrap();
        assert_eq!(pre.replicas()[&1], [replica(4, 0)]);
        assert_eq!(pre.set_lag(257, map("1")), Err(MulticastError::Error));
    }

    #[test]
    fn changes_of_p4runtime_are_taken_over() {
        let mut pre = Pre::default();
        pre.create_group(1);
        pre.set_session(
            3,
            Some(MirroringSession {
                port: None,
                mgid: Some(1),
            }),
        );
        let groups = BTreeMap::from([(2, vec![replica(1, 0), replica(2, 0), replica(1, 4)])]);
        let sessions = BTreeMap::from([(9, vec![replica(6, 0)])]);
        pre.adopt(&groups, &sessions);
        assert_eq!(pre.replicas(), groups);
        assert_eq!(pre.session(3), None);
        assert_eq!(pre.session(9).unwrap().port, Some(6));
        let before = pre.to_json();
        pre.adopt(&groups, &sessions);
        assert_eq!(pre.to_json(), before);
        let unsorted = BTreeMap::from([(2, vec![replica(1, 4), replica(2, 0), replica(1, 0)])]);
        pre.adopt(&unsorted, &sessions);
        assert_eq!(pre.to_json(), before);
        pre.adopt(&BTreeMap::from([(2, vec![replica(3, 7)])]), &sessions);
        assert_eq!(pre.nodes.len(), 1, "the group's nodes are replaced");
        pre.adopt(&BTreeMap::new(), &sessions);
        assert!(pre.nodes.is_empty());
    }
}
