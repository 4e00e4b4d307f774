//! Table and replicas at one moment, as the workers see them.

use std::net::IpAddr;
use std::sync::Arc;

use foldhash::{HashMap, HashSet};

use crate::choice::Targets;
use crate::replicas::{Replica, Replicas};
use crate::table::Table;

/// What a worker looks things up in; another takes its place when anything changes.
#[derive(Debug)]
pub struct View {
    /// The controller's table.
    pub table: Arc<Table>,
    replicas: HashMap<u16, Vec<Replica>>,
    /// Whose tunnels are accepted.
    peers: HashSet<IpAddr>,
    /// Where tunnels go to that are there.
    live: HashSet<IpAddr>,
}

impl View {
    /// Of `table` and `replicas`; `peers` are this site's own switches.
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
            live: replicas.ends().chain(vteps).collect(),
            table,
        }
    }

    /// This site's replicas of a service that accept connections.
    #[inline]
    pub fn replicas(&self, service: u16) -> &[Replica] {
        self.replicas.get(&service).map_or(&[], Vec::as_slice)
    }

    /// Whether a tunnel from `address` is accepted.
    #[inline]
    pub fn is_peer(&self, address: IpAddr) -> bool {
        self.peers.contains(&address)
    }

    /// Whether all of `targets` are still there.
    #[inline]
    pub fn are_live(&self, targets: &Targets) -> bool {
        targets.iter().all(|end| self.live.contains(&end))
    }
}
