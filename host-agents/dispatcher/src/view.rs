// SPDX-License-Identifier: Apache-2.0
//! A snapshot of table and replicas for the workers.

use std::net::IpAddr;
use std::sync::Arc;

use foldhash::{HashMap, HashSet};

use crate::replicas::{Replica, Replicas};
use crate::table::Table;
use crate::targets::Targets;

/// An immutable snapshot of table and replicas. Each change creates a new one.
#[derive(Debug)]
pub struct View {
    /// The controller's table.
    pub table: Arc<Table>,
    replicas: HashMap<u16, Vec<Replica>>,
    /// Addresses from which tunnel packets are accepted.
    peers: HashSet<IpAddr>,
    /// Tunnel endpoints of all known replicas and sites.
    endpoints: HashSet<IpAddr>,
}

impl View {
    /// Creates a snapshot. `peers` are this site's own switches.
    pub fn new(table: Arc<Table>, replicas: &Replicas, peers: &[IpAddr]) -> Self {
        let mut by_service: HashMap<u16, Vec<Replica>> = HashMap::default();
        for (name, replica) in replicas.accepting() {
            if let Some(service) = table.service(name) {
                by_service.entry(service.id()).or_default().push(replica);
            }
        }
        let vteps = table.vteps.values().copied();
        Self {
            replicas: by_service,
            peers: peers.iter().copied().chain(vteps.clone()).collect(),
            endpoints: replicas.endpoints().chain(vteps).collect(),
            table,
        }
    }

    /// Returns this site's replicas of a service that accept connections.
    #[inline]
    pub fn replicas(&self, service: u16) -> &[Replica] {
        self.replicas.get(&service).map_or(&[], Vec::as_slice)
    }

    /// Returns true if tunnel packets from `address` are accepted.
    #[inline]
    pub fn is_peer(&self, address: IpAddr) -> bool {
        self.peers.contains(&address)
    }

    /// Returns true if all `targets` are still known.
    #[inline]
    pub fn has_endpoints(&self, targets: &Targets) -> bool {
        targets
            .iter()
            .all(|endpoint| self.endpoints.contains(&endpoint))
    }
}
