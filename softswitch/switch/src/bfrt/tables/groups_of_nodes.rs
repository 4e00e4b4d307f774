// SPDX-License-Identifier: Apache-2.0
//! Multicast groups of nodes.
//!
//! A node makes copies with one replication id on its ports, and on one port of each of its link aggregation groups. A
//! group consists of nodes and of ECMP groups, which have one of their nodes. Programs for TNA choose by the metadata of a
//! packet; for other programs, the first node and the first port are chosen.

use std::collections::BTreeSet;

use softswitch_pipeline::{
    LinkAggregation, MulticastBranch, MulticastNode, MulticastTree, Replica, check_replicas,
};

use super::stored::remove_elements;
use super::view::View;
use crate::bfrt::chip::Chip;
use crate::bfrt::data::Data;
use crate::bfrt::schema::Schema;
use crate::bfrt::state::State;
use crate::p4rt::error::{P4Error, P4Result};

/// Places of nodes in an ECMP group.
const ECMP_PLACES: usize = 32;

/// A group in the pipeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The copies. With a tree, packets choose between them.
    pub replicas: Vec<Replica>,
    /// The copies of a program for TNA.
    pub tree: Option<MulticastTree>,
}

/// The tables of multicast.
pub struct Engine<'a> {
    groups: View<'a>,
    nodes: View<'a>,
    lags: View<'a>,
    state: &'a State,
}

/// Sets the places of the nodes of ECMP groups: earlier nodes keep their places, and a new one gets the first free place.
pub fn place_nodes(schema: &Schema, state: &mut State, ids: &BTreeSet<u32>) {
    for id in ids {
        let nodes = View::of(schema, state, "PreEcmp").and_then(|view| {
            let data = view.get(*id)?;
            Some(view.numbers(data, "$MULTICAST_NODE_ID").to_vec())
        });
        let Some(nodes) = nodes else {
            state.ecmp_places.remove(id);
            continue;
        };
        let places = state.ecmp_places.entry(*id).or_default();
        places.resize(ECMP_PLACES, None);
        for place in &mut *places {
            *place = place.filter(|node| nodes.contains(node));
        }
        for node in nodes {
            if places.contains(&Some(node)) {
                continue;
            }
            match places.iter_mut().find(|place| place.is_none()) {
                Some(place) => *place = Some(node),
                None => places.push(Some(node)),
            }
        }
    }
}

/// Removes nodes that were deleted from all groups.
pub fn leave_groups(schema: &Schema, state: &mut State, ids: &BTreeSet<u32>) {
    for kind in ["PreMgid", "PreEcmp"] {
        let tables = schema.tables.values();
        for table in tables.filter(|table| table.kind == kind) {
            for data in state.entries_mut(table.id).values_mut() {
                remove_elements(table, data, "$MULTICAST_NODE_ID", ids);
            }
        }
    }
    let places = state.ecmp_places.values_mut().flatten();
    for place in places {
        *place = place.filter(|node| !ids.contains(node));
    }
}

impl<'a> Engine<'a> {
    pub fn new(schema: &'a Schema, state: &'a State) -> Option<Self> {
        Some(Self {
            groups: View::of(schema, state, "PreMgid")?,
            nodes: View::of(schema, state, "PreNode")?,
            lags: View::of(schema, state, "PreLag")?,
            state,
        })
    }

    /// Returns the groups that depend on entries of a kind of table.
    pub fn groups_with(&self, kind: &str, ids: &BTreeSet<u32>) -> BTreeSet<u32> {
        let has = |list: &[u32]| list.iter().any(|id| ids.contains(id));
        let named = |data, name| has(self.groups.numbers(data, name));
        let nodes: BTreeSet<u32> = match kind {
            "PreNode" => ids.clone(),
            "PreLag" => {
                let nodes = self.nodes.iter();
                let nodes = nodes.filter(|(_, d)| has(self.nodes.numbers(d, "$MULTICAST_LAG_ID")));
                nodes.map(|(id, _)| id).collect()
            }
            _ => BTreeSet::new(),
        };
        let is_affected = |data| match kind {
            "PreEcmp" => named(data, "$MULTICAST_ECMP_ID"),
            _ => self.nodes_of(data).iter().any(|node| nodes.contains(node)),
        };
        let groups = self.groups.iter().filter(|(_, data)| is_affected(data));
        groups.map(|(id, _)| id).collect()
    }

    /// Returns the places of an ECMP group's nodes.
    fn places(&self, id: u32) -> &'a [Option<u32>] {
        let places = self.state.ecmp_places.get(&id);
        places.map_or(&[], Vec::as_slice)
    }

    /// Returns all nodes of a group.
    fn nodes_of(&self, group: &'a Data) -> Vec<u32> {
        let ecmp = self.groups.numbers(group, "$MULTICAST_ECMP_ID").iter();
        let ecmp = ecmp.flat_map(|id| self.places(*id)).flatten();
        let nodes = self.groups.numbers(group, "$MULTICAST_NODE_ID").iter();
        nodes.chain(ecmp).copied().collect()
    }

    fn lag(&self, id: u32) -> LinkAggregation {
        let Some(data) = self.lags.get(id) else {
            return LinkAggregation::default();
        };
        let number = |name| data.u32(self.lags.table, name).unwrap_or(0);
        let mut ports = self.lags.numbers(data, "$DEV_PORT").to_vec();
        ports.sort_unstable();
        LinkAggregation {
            ports,
            remote_high: number("$MULTICAST_LAG_REMOTE_MSB_COUNT"),
            remote_low: number("$MULTICAST_LAG_REMOTE_LSB_COUNT"),
        }
    }

    fn node(&self, id: u32) -> P4Result<MulticastNode> {
        let data = self.nodes.get(id).ok_or_else(|| {
            P4Error::invalid(format!("$pre.mgid: multicast node {id} does not exist"))
        })?;
        let rid = data.number(self.nodes.table, "$MULTICAST_RID");
        let lags = self.nodes.numbers(data, "$MULTICAST_LAG_ID").iter();
        Ok(MulticastNode {
            rid: u16::try_from(rid.unwrap_or(0)).unwrap_or(0),
            ports: self.nodes.numbers(data, "$DEV_PORT").to_vec(),
            lags: lags.map(|lag| self.lag(*lag)).collect(),
        })
    }

    /// Returns the exclusion ids of the nodes or ECMP groups of a group.
    fn exclusions(&self, group: &'a Data, ids: &str, xids: &str) -> P4Result<Vec<Option<u16>>> {
        let count = self.groups.numbers(group, ids).len();
        let valid = group.bools(self.groups.table, &format!("{xids}_VALID"));
        let (valid, xids_given) = (valid.unwrap_or_default(), self.groups.numbers(group, xids));
        if valid.len() != count || xids_given.len() != count {
            let (given, valid) = (xids_given.len(), valid.len());
            let message = format!(
                "$pre.mgid: {ids} has {count} elements, but {xids} has {given} and {xids}_VALID {valid}"
            );
            return Err(P4Error::invalid(message));
        }
        let pairs = valid.iter().zip(xids_given);
        let xid = |(valid, xid): (&bool, &u32)| valid.then(|| u16::try_from(*xid).unwrap_or(0));
        Ok(pairs.map(xid).collect())
    }

    fn tree(&self, group: &'a Data) -> P4Result<MulticastTree> {
        let of = |ids, xids| {
            let exclusions = self.exclusions(group, ids, xids)?;
            let ids = self.groups.numbers(group, ids).iter().copied();
            Ok::<_, P4Error>(ids.zip(exclusions))
        };
        let mut branches = Vec::new();
        for (id, exclusion) in of("$MULTICAST_NODE_ID", "$MULTICAST_NODE_L1_XID")? {
            let nodes = vec![Some(self.node(id)?)];
            branches.push(MulticastBranch { exclusion, nodes });
        }
        for (id, exclusion) in of("$MULTICAST_ECMP_ID", "$MULTICAST_ECMP_L1_XID")? {
            let node = |place: &Option<u32>| place.map(|node| self.node(node)).transpose();
            let nodes = self.places(id).iter().map(node);
            let nodes = nodes.collect::<P4Result<_>>()?;
            branches.push(MulticastBranch { exclusion, nodes });
        }
        Ok(MulticastTree { branches })
    }

    /// Returns a group of the pipeline.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if it has an unknown node.
    pub fn group(&self, id: u32, chip: Chip) -> P4Result<Option<Group>> {
        let Some(data) = self.groups.get(id) else {
            return Ok(None);
        };
        let tree = self.tree(data)?;
        let mut replicas = first_copies(&tree);
        if chip == Chip::Other {
            check_replicas(&format!("multicast group {id}"), &replicas)?;
            let tree = None;
            return Ok(Some(Group { replicas, tree }));
        }
        let mut seen = BTreeSet::new();
        replicas.retain(|copy| seen.insert((copy.port, copy.instance)));
        let tree = Some(tree);
        Ok(Some(Group { replicas, tree }))
    }
}

/// Returns the copies with the first node of each branch, and the first port of each link aggregation group.
fn first_copies(tree: &MulticastTree) -> Vec<Replica> {
    let nodes = tree.branches.iter();
    let nodes = nodes.filter_map(|branch| branch.nodes.iter().flatten().next());
    let copies = nodes.flat_map(|node| {
        let lags = node.lags.iter().filter_map(|lag| lag.ports.first());
        let ports = node.ports.iter().chain(lags);
        ports.map(|&port| Replica {
            port,
            instance: node.rid,
        })
    });
    copies.collect()
}
