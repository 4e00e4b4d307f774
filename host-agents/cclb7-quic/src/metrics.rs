//! What is counted, and the Prometheus metrics.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use frontage_daemon::metrics::Families;
use frontage_quic::keys::Keys;
use frontage_quic::meter::Loads;
use frontage_quic::migration::PathTable;
use frontage_quic::socket::Counts;
use frontage_tunnel::Error;

use crate::artemis::Artemis;
use crate::handoff::Servers;

/// Counters of one server.
pub struct Metrics {
    loads: Arc<Loads>,
    sockets: Vec<Arc<Counts>>,
    path_table: Arc<PathTable>,
    keys: Option<Arc<Keys>>,
    artemis: Option<Arc<Artemis>>,
    servers: Option<Arc<Servers>>,
    open: AtomicU64,
    connections: AtomicU64,
    /// Handshakes that were not.
    pub failed_handshakes: AtomicU64,
    /// Clients that were sent a Retry.
    pub retries: AtomicU64,
    /// Bytes of responses' bodies that QUIC took for sending.
    pub body_bytes: AtomicU64,
    answers: Mutex<BTreeMap<u16, u64>>,
}

impl Metrics {
    /// Nothing counted yet.
    pub fn new(
        loads: Arc<Loads>,
        sockets: Vec<Arc<Counts>>,
        path_table: Arc<PathTable>,
        keys: Option<Arc<Keys>>,
        artemis: Option<Arc<Artemis>>,
        servers: Option<Arc<Servers>>,
    ) -> Self {
        Self {
            artemis,
            servers,
            loads,
            sockets,
            path_table,
            keys,
            open: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            failed_handshakes: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            body_bytes: AtomicU64::new(0),
            answers: Mutex::default(),
        }
    }

    /// The handshake of a connection was completed; it is over once the result is dropped.
    pub fn connected(self: &Arc<Self>) -> Open {
        self.connections.fetch_add(1, Relaxed);
        self.open.fetch_add(1, Relaxed);
        Open(self.clone())
    }

    /// A request was answered with `status`.
    pub fn answered(&self, status: u16) {
        *self
            .answers
            .lock()
            .expect("nobody panics with it")
            .entry(status)
            .or_default() += 1;
    }

    /// Write everything.
    pub fn collect(&self, families: &mut Families<'_>) -> fmt::Result {
        families.gauge(
            "active_flows",
            "N_AF: responses begun and not yet sent whole.",
            self.loads.n_af(),
        )?;
        families.gauge("open_connections", "Connections.", self.open.load(Relaxed))?;
        for (name, help, counter) in [
            (
                "connections",
                "Connections whose handshake was completed.",
                &self.connections,
            ),
            (
                "failed_handshakes",
                "Handshakes that were not completed.",
                &self.failed_handshakes,
            ),
            (
                "retries",
                "Clients that must show where they are before their handshake begins.",
                &self.retries,
            ),
            (
                "moved_clients",
                "Clients that went from the VIP to the static cookie's address.",
                &self.path_table.migrated,
            ),
            (
                "withheld_resets",
                "Stateless resets not sent, since what would have caused them was late: its client had moved.",
                &self.path_table.withheld_resets,
            ),
            (
                "body_bytes",
                "Bytes of responses' bodies that QUIC took for sending.",
                &self.body_bytes,
            ),
        ] {
            families.counter(name, help, counter.load(Relaxed))?;
        }
        families.counters(
            "datagrams",
            "Datagrams received, by the address to which the client sent them.",
            [
                ([("at", "vip")], self.sum(|counts| &counts.at_vip)),
                ([("at", "cookie")], self.sum(|counts| &counts.at_cookie)),
                ([("at", "plain")], self.sum(|counts| &counts.at_plain)),
            ],
        )?;
        let answers = self.answers.lock().expect("nobody panics with it").clone();
        families.counters(
            "answers",
            "Requests answered, by status.",
            answers
                .iter()
                .map(|(status, n)| ([("status", *status)], *n)),
        )?;
        if let Some(keys) = &self.keys {
            families.gauge(
                "future_flows",
                "N_FF: active flows with more than the look-ahead left.",
                self.loads.n_ff(),
            )?;
            families.gauge(
                "key_id",
                "Id of the cookie's key that seals.",
                u64::from(keys.newest().id()),
            )?;
        }
        if let Some(artemis) = &self.artemis {
            collect_artemis(families, artemis)?;
        }
        self.servers
            .as_ref()
            .map_or(Ok(()), |servers| servers.collect(families))
    }

    fn sum(&self, counter: impl Fn(&Counts) -> &AtomicU64) -> u64 {
        self.sockets
            .iter()
            .map(|counts| counter(counts).load(Relaxed))
            .sum()
    }
}

/// A connection that counts as open.
pub struct Open(Arc<Metrics>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}

fn collect_artemis(families: &mut Families<'_>, artemis: &Artemis) -> fmt::Result {
    let (counts, tunnel) = (&artemis.counts, &artemis.tunnel);
    for (name, help, counter) in [
        (
            "tunnel_received",
            "Clients' datagrams that came out of the tunnel.",
            &tunnel.counts.received,
        ),
        (
            "tunnel_sent",
            "Datagrams to clients that went into the tunnel.",
            &tunnel.counts.sent,
        ),
        (
            "tunnel_unsent",
            "Datagrams to clients that the network did not take.",
            &tunnel.counts.unsent,
        ),
        (
            "late_bound_clients",
            "Clients that went from the tunnel to the unicast address.",
            &artemis.path_table.left_tunnel,
        ),
        (
            "refused",
            "New connections refused at the unicast address, since there was too much to do.",
            &counts.refused,
        ),
        (
            "missed_heartbeats",
            "Heartbeats that a dispatcher did not take.",
            &counts.missed_heartbeats,
        ),
    ] {
        families.counter(name, help, counter.load(Relaxed))?;
    }
    let malformed = Error::ALL
        .iter()
        .map(|error| error.name())
        .zip(&tunnel.counts.malformed);
    let others = [
        ("stranger", &tunnel.counts.stranger),
        ("nobody", &tunnel.counts.nobody),
        ("full", &tunnel.counts.full),
    ];
    families.counters(
        "tunnel_dropped",
        "What came to the tunnel and was dropped, by reason.",
        others
            .into_iter()
            .chain(malformed)
            .map(|(reason, counter)| ([("reason", reason)], counter.load(Relaxed))),
    )
}
