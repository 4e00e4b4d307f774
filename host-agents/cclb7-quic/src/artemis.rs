//! A replica of Artemis: handshakes on the Service Address come out of a tunnel, and go on at the unicast address (late binding; Artemis,
//! section 3.5); dispatchers are told how loaded it is.

mod acceptance;
mod config;
mod heartbeat;
mod rtts;
pub mod socket;
pub mod tunnel;

use std::net::SocketAddr;
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
use heartbeat::Heart;
use rtts::Rtts;
use tunnel::Tunnel;

/// What is counted beside the tunnel.
#[derive(Debug, Default)]
pub struct Counts {
    /// New connections at the unicast address that were refused.
    pub refused: AtomicU64,
    /// Heartbeats that a dispatcher did not take.
    pub missed_heartbeats: AtomicU64,
}

/// This replica.
pub struct Artemis {
    service_ttl: u64,
    acceptance: Acceptance,
    rtts: Rtts,
    heart: Heart,
    /// Where its clients are.
    pub path_table: Arc<PathTable>,
    /// Its end of the tunnel.
    pub tunnel: Arc<Tunnel>,
    /// What is counted.
    pub counts: Counts,
}

impl Artemis {
    /// The replica with this `sid`, which serves at UDP `port`. Must be called within a Tokio runtime.
    pub fn new(
        config: &Config,
        (sid, port): (u16, u16),
        loads: Arc<Loads>,
        path_table: Arc<PathTable>,
    ) -> Result<Self> {
        let listen = config.tunnel.listen;
        let tunnel = Tunnel::open(&config.tunnel, config.site, port)
            .with_context(|| format!("cannot listen at UDP {listen} for the tunnel"))?;
        Ok(Self {
            service_ttl: config.service_ttl,
            acceptance: Acceptance::new(loads, config.capacity, config.overload),
            rtts: Rtts::default(),
            heart: Heart::new(config, sid),
            path_table,
            tunnel: Arc::new(tunnel),
            counts: Counts::default(),
        })
    }

    /// Transport parameters beside QUIC's own.
    pub fn parameters(&self) -> Parameters {
        vec![(SERVICE_TTL, encode_integer(self.service_ttl))]
    }

    /// Heartbeats until `ending` is told, then a farewell.
    pub async fn live(self: Arc<Self>, mut ending: watch::Receiver<bool>) {
        let body = || {
            self.heart.body(
                self.acceptance.load(),
                self.acceptance.now(),
                self.rtts.take(),
            )
        };
        let missed = &self.counts.missed_heartbeats;
        tokio::select! {
            () = self.heart.beat(|| Bytes::from(body()), missed) => {}
            _ = ending.wait_for(|ending| *ending) => {}
        }
        self.heart.stop().await;
    }

    /// `incoming`, unless the replica has too much to do and its client came to the unicast address, which a cache told it: then it is refused,
    /// so that the client asks the Service Address at once (Artemis, section 3.1).
    pub fn admit(&self, incoming: Incoming) -> Option<Incoming> {
        if self.acceptance.now() || !self.came_by_cache(&incoming) {
            return Some(incoming);
        }
        self.refuse(incoming);
        None
    }

    /// What becomes of new connections once the replica is to end. What was sent to the Service Address is not answered: another replica gets it when
    /// it is sent again.
    pub async fn turn_away(self: Arc<Self>, endpoint: Endpoint) {
        while let Some(incoming) = endpoint.accept().await {
            if self.came_by_cache(&incoming) {
                self.refuse(incoming);
            } else {
                incoming.ignore();
            }
        }
    }

    fn came_by_cache(&self, incoming: &Incoming) -> bool {
        let opening = self.path_table.handshake_address(incoming.remote_address());
        matches!(opening, LocalAddress::Cookie(_))
    }

    fn refuse(&self, incoming: Incoming) {
        self.counts.refused.fetch_add(1, Relaxed);
        incoming.refuse();
    }

    /// The RTT of a connection with `client`, if no detour by another site is in it.
    pub fn measured(&self, client: SocketAddr, rtt: Option<Duration>) -> bool {
        let direct = match self.path_table.address_of(client) {
            LocalAddress::Tunnel(detour) => detour.origin == self.tunnel.site,
            _ => true,
        };
        if let (true, Some(rtt)) = (direct, rtt) {
            self.rtts.add(client.ip(), rtt);
        }
        direct
    }
}
