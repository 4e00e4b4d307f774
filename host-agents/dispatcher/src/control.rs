// SPDX-License-Identifier: Apache-2.0
//! State received from the controller and the replicas, from which the workers' views are built.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::measurements::{Measurements, RttMean, SiteRtt};
use crate::message::{FullTable, TableDelta, TableSummary};
use crate::replicas::{Heartbeat, ReplicaStatus, Replicas};
use crate::table::Table;
use crate::view::View;
use crate::worker::ViewChannel;

#[derive(Debug, Default)]
struct State {
    table: Option<Arc<Table>>,
    replicas: Replicas,
    measurements: Measurements,
}

/// Why a delta was rejected.
#[derive(Debug, PartialEq, Eq)]
pub enum UpdateError {
    /// The delta does not start from the current version, which is `None` before the first table.
    VersionMismatch(Option<u64>),
    /// The delta contradicts itself or the current table.
    Invalid(String),
}

/// The dispatcher's control state. It publishes a new view to the workers after each change.
#[derive(Debug)]
pub struct ControlPlane {
    own_address: IpAddr,
    peers: Vec<IpAddr>,
    state: Mutex<State>,
    views: Arc<ViewChannel>,
    /// Notified by each heartbeat, which may change the next expiry.
    heartbeat_received: Notify,
}

impl ControlPlane {
    /// Creates the state of a dispatcher with the tunnel endpoint `own_address`, in a site with the switches `peers`.
    pub fn new(own_address: IpAddr, peers: Vec<IpAddr>, views: Arc<ViewChannel>) -> Self {
        Self {
            own_address,
            peers,
            state: Mutex::default(),
            views,
            heartbeat_received: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn publish(&self, state: &State) {
        if let Some(table) = &state.table {
            let view = View::new(table.clone(), &state.replicas, &self.peers);
            self.views.publish(Arc::new(view));
        }
    }

    /// Replaces the table.
    ///
    /// # Errors
    /// Returns a message if the table contradicts itself. The current table then remains.
    pub fn replace_table(&self, table: FullTable) -> Result<TableSummary, String> {
        let table = Table::new(table, self.own_address)?;
        let mut state = self.state();
        let summary = table.summary();
        state.table = Some(Arc::new(table));
        self.publish(&state);
        Ok(summary)
    }

    /// Applies a delta to the table.
    ///
    /// # Errors
    /// Returns why the delta was rejected. The current table then remains.
    pub fn apply_delta(&self, delta: TableDelta) -> Result<TableSummary, UpdateError> {
        let mut state = self.state();
        let table = match &state.table {
            Some(table) if table.version == delta.from => table,
            other => {
                let version = other.as_ref().map(|table| table.version);
                return Err(UpdateError::VersionMismatch(version));
            }
        };
        let table = table
            .apply(delta, self.own_address)
            .map_err(UpdateError::Invalid)?;
        let summary = table.summary();
        state.table = Some(Arc::new(table));
        self.publish(&state);
        Ok(summary)
    }

    /// Returns the version and sizes of the table, if there is one.
    pub fn summary(&self) -> Option<TableSummary> {
        self.state().table.as_ref().map(|table| table.summary())
    }

    /// Records a replica's heartbeat and its measurements.
    ///
    /// # Errors
    /// Returns a message if the heartbeat is invalid. The state then remains unchanged.
    pub fn record_heartbeat(&self, sid: u16, mut heartbeat: Heartbeat) -> Result<(), String> {
        let rtts = std::mem::take(&mut heartbeat.rtts);
        let mut state = self.state();
        state
            .replicas
            .record(sid, heartbeat, Instant::now(), self.own_address)?;
        rtts.into_iter().for_each(|rtt| state.measurements.add(rtt));
        self.publish(&state);
        self.heartbeat_received.notify_one();
        Ok(())
    }

    /// Removes a replica; returns true if it was registered.
    pub fn remove_replica(&self, sid: u16) -> bool {
        let mut state = self.state();
        let was_registered = state.replicas.remove(sid);
        if was_registered {
            self.publish(&state);
        }
        was_registered
    }

    /// Returns the status of all replicas.
    pub fn replicas(&self) -> Vec<ReplicaStatus> {
        self.state().replicas.status(Instant::now())
    }

    /// Adds measured round-trip times.
    pub fn add_measurements(&self, rtts: impl IntoIterator<Item = RttMean>) {
        let mut state = self.state();
        rtts.into_iter().for_each(|rtt| state.measurements.add(rtt));
    }

    /// Returns the measurements and clears them. Returns `None` before the first table, which names this site.
    pub fn take_measurements(&self) -> Option<Vec<SiteRtt>> {
        let mut state = self.state();
        let site = state.table.as_ref()?.site;
        Some(state.measurements.take(site))
    }

    /// Returns the number of measurements that exceeded the capacity.
    pub fn dropped_measurements(&self) -> u64 {
        self.state().measurements.dropped
    }

    /// Removes replicas whose heartbeats have expired, forever.
    pub async fn expire_replicas(&self) -> ! {
        loop {
            let next_expiry = self.state().replicas.next_expiry();
            match next_expiry {
                Some(at) => tokio::select! {
                    () = tokio::time::sleep_until(at.into()) => {}
                    () = self.heartbeat_received.notified() => continue,
                },
                None => self.heartbeat_received.notified().await,
            }
            let mut state = self.state();
            if state.replicas.expire(Instant::now()) {
                self.publish(&state);
            }
        }
    }
}
