// SPDX-License-Identifier: Apache-2.0
//! The service `simple_pre_lag`.

use super::codes::MulticastError;
use crate::declare::functions;

functions! {
    /// Multicast groups, their nodes and link aggregation groups. Port maps are strings of `0` and `1`, whose last character
    /// is port 0.
    Multicast in "simple_pre_lag" {
        /// Creates a group and returns its handle.
        bm_mc_mgrp_create(1 context: i32, 2 mgrp: i32) -> i32, MulticastError;
        /// Deletes a group.
        bm_mc_mgrp_destroy(1 context: i32, 2 mgrp: i32) -> (), MulticastError;
        /// Creates a node and returns its handle.
        bm_mc_node_create(1 context: i32, 2 rid: i32, 3 port_map: String, 4 lag_map: String) -> i32, MulticastError;
        /// Adds a node to a group.
        bm_mc_node_associate(1 context: i32, 2 mgrp: i32, 3 node: i32) -> (), MulticastError;
        /// Removes a node from its group.
        bm_mc_node_dissociate(1 context: i32, 2 mgrp: i32, 3 node: i32) -> (), MulticastError;
        /// Deletes a node.
        bm_mc_node_destroy(1 context: i32, 2 node: i32) -> (), MulticastError;
        /// Replaces a node's ports.
        bm_mc_node_update(1 context: i32, 2 node: i32, 3 port_map: String, 4 lag_map: String) -> (), MulticastError;
        /// Sets the ports of a link aggregation group.
        bm_mc_set_lag_membership(1 context: i32, 2 lag: i16, 3 port_map: String) -> (), MulticastError;
        /// Returns all groups and nodes as JSON.
        bm_mc_get_entries(1 context: i32) -> String, MulticastError;
    }
}
