// SPDX-License-Identifier: Apache-2.0
//! The replication engine of TNA.

use crate::pipeline::Pipeline;
use crate::state::multicast::MulticastTree;
use crate::state::pre::{CloneSession, Replica};

impl Pipeline {
    /// Sets the tree of a multicast group of a program for TNA, which takes the place of the group's replicas.
    pub fn set_multicast_tree(&mut self, group: u32, tree: Option<MulticastTree>) {
        self.core.state.multicast.set_tree(group, tree);
    }

    /// Returns the tree of a multicast group.
    pub fn multicast_tree(&self, group: u32) -> Option<MulticastTree> {
        let tree = self.core.state.multicast.tree(group);
        tree.map(|tree| tree.as_ref().clone())
    }

    /// Returns the replicas of a multicast group, if it exists.
    pub fn multicast_group(&self, id: u32) -> Option<Vec<Replica>> {
        self.core.state.pre.replicas(id).map(<[Replica]>::to_vec)
    }

    /// Returns a clone session, if it exists.
    pub fn clone_session(&self, id: u32) -> Option<CloneSession> {
        self.core.state.pre.written_session(id).cloned()
    }

    /// Sets the ports that multicast packets with a second exclusion id skip.
    pub fn set_pruned_ports(&mut self, exclusion: u16, ports: &[u32]) {
        self.core.state.multicast.set_pruned(exclusion, ports);
    }

    /// Returns the ports that multicast packets with a second exclusion id skip.
    pub fn pruned_ports(&self, exclusion: u16) -> Vec<u32> {
        self.core.state.multicast.pruned(exclusion)
    }

    /// Sets the replication id whose packets skip pruned ports of all nodes, and returns the previous one.
    pub fn set_global_rid(&mut self, rid: u16) -> u16 {
        std::mem::replace(&mut self.core.state.multicast.global_rid, rid)
    }

    /// Sets the port of packets to the CPU, or the default one, and returns the previous one.
    pub fn set_cpu_port(&mut self, port: Option<u32>) -> Option<u32> {
        std::mem::replace(&mut self.core.options.cpu_port, port)
    }
}
