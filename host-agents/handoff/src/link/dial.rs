// SPDX-License-Identifier: Apache-2.0
//! The balancer's end of a link.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use frontage_quic::min_rtt::min_rtt;
use noq::{ClientConfig, Connection, Endpoint, PathId};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::streams::{Inbox, Outbox, pair};
use super::writer::Writer;
use crate::message::{ToBalancer, ToServer};

/// Initial pause between two attempts, doubled after each failure.
const MIN_PAUSE: Duration = Duration::from_millis(100);
/// Maximum pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// Interval at which the link is checked for silence.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Number of checks without a datagram after which the link counts as silent. The peer sends a PING after 225 ms.
const SILENT_CHECKS: u32 = 4;

/// Counters of a link.
#[derive(Debug, Default)]
pub struct Counters {
    /// Established connections.
    pub connected: AtomicU64,
    /// Failed attempts.
    pub failed: AtomicU64,
}

/// An established link.
#[derive(Clone, Debug)]
struct Established {
    connection: Connection,
    writer: Writer,
}

/// A link to one real server, dialled again whenever it is lost.
#[derive(Debug)]
pub struct Link {
    established: watch::Receiver<Option<Established>>,
    counters: Arc<Counters>,
    is_silent: Arc<AtomicBool>,
    dial_task: AbortHandle,
}

impl Link {
    /// Start to dial the real server at `address`, whose certificate must be for `name`. Must be called within a Tokio
    /// runtime.
    pub fn dial(endpoint: Endpoint, config: ClientConfig, name: &str, address: SocketAddr) -> Self {
        let (sender, established) = watch::channel(None);
        let counters = Arc::<Counters>::default();
        let is_silent = Arc::<AtomicBool>::default();
        let dialler = Dialler {
            endpoint,
            config,
            name: name.to_owned(),
            address,
            counters: counters.clone(),
            is_silent: is_silent.clone(),
        };
        let dial_task = tokio::spawn(dialler.run(sender)).abort_handle();
        Self {
            established,
            counters,
            is_silent,
            dial_task,
        }
    }

    /// Return whether the link is established.
    pub fn is_up(&self) -> bool {
        self.established.borrow().is_some()
    }

    /// Return whether the real server has been silent for longer than a live one. If this continues, the link ends.
    pub fn is_silent(&self) -> bool {
        self.is_silent.load(Relaxed)
    }

    /// Return the number of datagrams received since the link was established; 0 while it is down.
    pub fn received_datagrams(&self) -> u64 {
        let established = self.established.borrow();
        let connection = established.as_ref().map(|link| &link.connection);
        connection.map_or(0, |connection| connection.stats().udp_rx.datagrams)
    }

    /// Return the minimum round-trip time; `None` while the link is down.
    pub fn min_rtt(&self) -> Option<Duration> {
        let established = self.established.borrow();
        min_rtt(&established.as_ref()?.connection, PathId::ZERO)
    }

    /// Return the counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Open a stream for a client connection; `None` if the link is down.
    pub async fn open(&self) -> Option<(Outbox<ToServer>, Inbox<ToBalancer>)> {
        let Established { connection, writer } = self.established.borrow().clone()?;
        Some(pair(connection.open_bi().await.ok()?, &writer))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.dial_task.abort();
    }
}

struct Dialler {
    endpoint: Endpoint,
    config: ClientConfig,
    name: String,
    address: SocketAddr,
    counters: Arc<Counters>,
    is_silent: Arc<AtomicBool>,
}

impl Dialler {
    async fn run(self, established: watch::Sender<Option<Established>>) {
        let mut pause = MIN_PAUSE;
        loop {
            if let Some(connection) = self.connect().await {
                self.counters.connected.fetch_add(1, Relaxed);
                pause = MIN_PAUSE;
                established.send_replace(Some(Established {
                    connection: connection.clone(),
                    writer: Writer::new(),
                }));
                let cause = tokio::select! {
                    cause = connection.closed() => cause,
                    () = self.watch(&connection) => unreachable!("watches for ever"),
                };
                self.is_silent.store(false, Relaxed);
                established.send_replace(None);
                tracing::warn!("{}: link lost: {cause}", self.name);
            } else {
                self.counters.failed.fetch_add(1, Relaxed);
            }
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(MAX_PAUSE);
        }
    }

    /// Check for silence until cancelled.
    async fn watch(&self, connection: &Connection) {
        let (mut received, mut checks) = (0, 0);
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            let now = connection.stats().udp_rx.datagrams;
            checks = if now == received { checks + 1 } else { 0 };
            received = now;
            self.is_silent.store(checks >= SILENT_CHECKS, Relaxed);
        }
    }

    async fn connect(&self) -> Option<Connection> {
        let config = self.config.clone();
        let connecting = self.endpoint.connect_with(config, self.address, &self.name);
        connecting.ok()?.await.ok()
    }
}
