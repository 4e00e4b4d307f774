// SPDX-License-Identifier: Apache-2.0
//! A replica of Artemis: handshakes on the Service Address arrive through a tunnel and continue at the unicast address (late
//! binding; Artemis, section 3.5), and dispatchers get heartbeats with the replica's load.

mod acceptance;
mod config;
mod heartbeat;
mod rtts;
pub mod socket;
pub mod tunnel;

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use frontage_quic::meter::Loads;
use frontage_quic::migration::{LocalAddress, PathTable};
use frontage_quic_wire::parameters::{Parameters, SERVICE_TTL, encode_integer};
use noq::{Endpoint, Incoming};
use tokio::sync::watch;

use acceptance::Acceptance;
pub use config::{Artemis as Config, Tunnel as TunnelConfig};
use heartbeat::Heartbeat;
use rtts::Rtts;
use tunnel::Tunnel;

/// Counters of the replica besides those of the tunnel.
#[derive(Debug, Default)]
pub struct Counts {
    /// New connections at the unicast address that were refused.
    pub refused: AtomicU64,
    /// Heartbeats that a dispatcher did not accept.
    pub missed_heartbeats: AtomicU64,
}

/// The replica.
pub struct Artemis {
    service_ttl: u64,
    acceptance: Acceptance,
    rtts: Rtts,
    heartbeat: Heartbeat,
    /// Service Address that is also the VIP of the replica's cookies.
    pub vip: Option<Ipv6Addr>,
    /// Addresses of its clients.
    pub path_table: Arc<PathTable>,
    /// Replica's end of the tunnel.
    pub tunnel: Arc<Tunnel>,
    /// Counters.
    pub counts: Counts,
}

impl Artemis {
    /// Create the replica with this `sid`, which serves UDP `port`. Must be called within a Tokio runtime.
    pub fn new(
        config: &Config,
        (sid, port): (u16, u16),
        loads: Arc<Loads>,
        path_table: Arc<PathTable>,
    ) -> Result<Self> {
        let listen = config.tunnel.listen;
        let tunnel = Tunnel::open(&config.tunnel, config.site, port)
            .with_context(|| format!("artemis: tunnel: cannot listen at UDP {listen}"))?;
        Ok(Self {
            service_ttl: config.service_ttl,
            acceptance: Acceptance::new(loads, config.capacity, config.overload),
            rtts: Rtts::default(),
            heartbeat: Heartbeat::new(config, sid),
            vip: config.vip,
            path_table,
            tunnel: Arc::new(tunnel),
            counts: Counts::default(),
        })
    }

    /// Return the additional transport parameters.
    pub fn parameters(&self) -> Parameters {
        vec![(SERVICE_TTL, encode_integer(self.service_ttl))]
    }

    /// Send heartbeats until shutdown, then deregister.
    pub async fn run(self: Arc<Self>, mut ending: watch::Receiver<bool>) {
        let body = || {
            self.heartbeat.body(
                self.acceptance.load(),
                self.acceptance.is_accepting(),
                self.rtts.take(),
            )
        };
        let missed = &self.counts.missed_heartbeats;
        tokio::select! {
            () = self.heartbeat.run(|| Bytes::from(body()), missed) => {}
            _ = ending.wait_for(|ending| *ending) => {}
        }
        self.heartbeat.stop().await;
    }

    /// Admit `incoming`, or refuse it if the replica is overloaded and the client connects to the unicast address, which it got
    /// from a cache. The client then tries the Service Address at once (Artemis, section 3.1).
    pub fn admit(&self, incoming: Incoming) -> Option<Incoming> {
        if self.acceptance.is_accepting() || !self.is_from_cache(&incoming) {
            return Some(incoming);
        }
        self.refuse(incoming);
        None
    }

    /// Refuse new connections at the unicast address during shutdown. Packets to the Service Address are ignored: another
    /// replica gets the retransmission.
    pub async fn refuse_all(self: Arc<Self>, endpoint: Endpoint) {
        while let Some(incoming) = endpoint.accept().await {
            if self.is_from_cache(&incoming) {
                self.refuse(incoming);
            } else {
                incoming.ignore();
            }
        }
    }

    fn is_from_cache(&self, incoming: &Incoming) -> bool {
        let opening = self.path_table.handshake_address(incoming.remote_address());
        matches!(opening, LocalAddress::Cookie(_))
    }

    fn refuse(&self, incoming: Incoming) {
        self.counts.refused.fetch_add(1, Relaxed);
        incoming.refuse();
    }

    /// Record the RTT of a connection with `client`, unless its packets take a detour through another site. Returns whether the
    /// packets are direct.
    pub fn record_rtt(&self, client: SocketAddr, rtt: Option<Duration>) -> bool {
        let is_direct = match self.path_table.address_of(client) {
            LocalAddress::Tunnel(detour) => detour.origin == self.tunnel.site,
            _ => true,
        };
        if let (true, Some(rtt)) = (is_direct, rtt) {
            self.rtts.add(client.ip(), rtt);
        }
        is_direct
    }
}
