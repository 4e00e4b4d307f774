// SPDX-License-Identifier: Apache-2.0
//! Metrics of the server.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use frontage_daemon::metrics::Families;
use frontage_handoff::message::RejectReason;
use frontage_quic::keys::Keys;
use frontage_quic::meter::Loads;
use frontage_quic::migration::PathTable;
use frontage_quic::socket::Counts;
use frontage_quic_wire::server_addresses::Announcement;
use frontage_tunnel::Error;
use parking_lot::Mutex;

use crate::artemis::Artemis;
use crate::handoff::{LocalReason, RealServer, RealServers};
use crate::moves::Moves;

/// Metrics of one server.
pub struct Metrics {
    loads: Arc<Loads>,
    sockets: Vec<Arc<Counts>>,
    path_table: Arc<PathTable>,
    keys: Option<Arc<Keys>>,
    artemis: Option<Arc<Artemis>>,
    servers: Option<Arc<RealServers>>,
    moves: Option<Arc<Moves>>,
    open: AtomicU64,
    connections: AtomicU64,
    /// Failed handshakes.
    pub failed_handshakes: AtomicU64,
    /// Retry packets sent.
    pub retries: AtomicU64,
    /// Requests processed before the handshake was complete.
    pub early_requests: AtomicU64,
    /// Response body bytes that QUIC accepted for sending.
    pub body_bytes: AtomicU64,
    responses: Mutex<BTreeMap<u16, u64>>,
}

impl Metrics {
    /// Create the metrics, all zero.
    pub fn new(
        loads: Arc<Loads>,
        sockets: Vec<Arc<Counts>>,
        path_table: Arc<PathTable>,
        keys: Option<Arc<Keys>>,
        artemis: Option<Arc<Artemis>>,
        servers: Option<Arc<RealServers>>,
        moves: Option<Arc<Moves>>,
    ) -> Self {
        Self {
            artemis,
            servers,
            moves,
            loads,
            sockets,
            path_table,
            keys,
            open: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            failed_handshakes: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            early_requests: AtomicU64::new(0),
            body_bytes: AtomicU64::new(0),
            responses: Mutex::default(),
        }
    }

    /// Count a connection whose handshake is complete. It counts as open until the result is dropped.
    pub fn connected(self: &Arc<Self>) -> Open {
        self.connections.fetch_add(1, Relaxed);
        self.open.fetch_add(1, Relaxed);
        Open(self.clone())
    }

    /// Count a response.
    pub fn on_response(&self, status: u16) {
        *self.responses.lock().entry(status).or_default() += 1;
    }

    /// Write all metrics.
    pub fn collect(&self, families: &mut Families<'_>) -> fmt::Result {
        families.gauge(
            "active_flows",
            "N_AF: responses that have begun and are not completely sent.",
            self.loads.n_af(),
        )?;
        families.gauge(
            "open_connections",
            "Open connections.",
            self.open.load(Relaxed),
        )?;
        for (name, help, counter) in [
            (
                "connections",
                "Connections with a completed handshake.",
                &self.connections,
            ),
            (
                "failed_handshakes",
                "Failed handshakes.",
                &self.failed_handshakes,
            ),
            (
                "retries",
                "Retry packets sent to validate the client's address.",
                &self.retries,
            ),
            (
                "early_requests",
                "Requests processed before the handshake was complete.",
                &self.early_requests,
            ),
            (
                "moved_clients",
                "Clients that migrated from the VIP to the address with the static cookie.",
                &self.path_table.migrated,
            ),
            (
                "withheld_resets",
                "Stateless resets withheld because a late packet of a client that has moved would have caused them.",
                &self.path_table.withheld_resets,
            ),
            (
                "body_bytes",
                "Response body bytes that QUIC accepted for sending.",
                &self.body_bytes,
            ),
        ] {
            families.counter(name, help, counter.load(Relaxed))?;
        }
        families.counters(
            "datagrams",
            "Datagrams received, by destination address.",
            [
                ([("at", "vip")], self.sum(|counts| &counts.at_vip)),
                ([("at", "cookie")], self.sum(|counts| &counts.at_cookie)),
                ([("at", "plain")], self.sum(|counts| &counts.at_plain)),
            ],
        )?;
        let responses = self.responses.lock().clone();
        families.counters(
            "answers",
            "Responses, by status.",
            responses
                .iter()
                .map(|(status, count)| ([("status", *status)], *count)),
        )?;
        if let Some(keys) = &self.keys {
            families.gauge(
                "future_flows",
                "N_FF: active flows with more remaining bytes than the look-ahead.",
                self.loads.n_ff(),
            )?;
            families.gauge(
                "key_id",
                "Id of the newest cookie key.",
                u64::from(keys.newest().id()),
            )?;
        }
        if let Some(moves) = &self.moves {
            collect_moves(families, moves)?;
        }
        if let Some(artemis) = &self.artemis {
            collect_artemis(families, artemis)?;
        }
        self.servers
            .as_ref()
            .map_or(Ok(()), |servers| collect_real_servers(families, servers))
    }

    fn sum(&self, counter: impl Fn(&Counts) -> &AtomicU64) -> u64 {
        self.sockets
            .iter()
            .map(|counts| counter(counts).load(Relaxed))
            .sum()
    }
}

/// An open connection.
pub struct Open(Arc<Metrics>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}

fn collect_moves(families: &mut Families<'_>, moves: &Moves) -> fmt::Result {
    let kinds = [
        ("move", Announcement::Move),
        ("hand_over", Announcement::HandOver),
    ];
    families.counters(
        "moves",
        "Moves to another address and hand-overs to another server, by outcome for the client; every one is also offered.",
        kinds.into_iter().flat_map(|(kind, announcement)| {
            let counts = moves.counts(announcement);
            [
                ("offered", &counts.offered),
                ("completed", &counts.completed),
                ("unsupported", &counts.unsupported),
                ("failed", &counts.failed),
            ]
            .map(|(outcome, counter)| ([("kind", kind), ("outcome", outcome)], counter.load(Relaxed)))
        }),
    )
}

fn collect_artemis(families: &mut Families<'_>, artemis: &Artemis) -> fmt::Result {
    let (counts, tunnel) = (&artemis.counts, &artemis.tunnel);
    for (name, help, counter) in [
        (
            "tunnel_received",
            "Datagrams of clients received from the tunnel.",
            &tunnel.counts.received,
        ),
        (
            "tunnel_sent",
            "Datagrams to clients sent into the tunnel.",
            &tunnel.counts.sent,
        ),
        (
            "tunnel_unsent",
            "Datagrams to clients that could not be sent.",
            &tunnel.counts.unsent,
        ),
        (
            "late_bound_clients",
            "Clients that migrated from the tunnel to the unicast address.",
            &artemis.path_table.left_tunnel,
        ),
        (
            "refused",
            "New connections at the unicast address refused because of overload.",
            &counts.refused,
        ),
        (
            "missed_heartbeats",
            "Heartbeats that a dispatcher did not accept.",
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
        ("unknown_peer", &tunnel.counts.unknown_peer),
        ("no_socket", &tunnel.counts.no_socket),
        ("queue_full", &tunnel.counts.queue_full),
    ];
    families.counters(
        "tunnel_dropped",
        "Datagrams received from the tunnel and dropped, by reason.",
        others
            .into_iter()
            .chain(malformed)
            .map(|(reason, counter)| ([("reason", reason)], counter.load(Relaxed))),
    )
}

fn collect_real_servers(families: &mut Families<'_>, servers: &RealServers) -> fmt::Result {
    families.counters(
        "handoff_local",
        "Requests for real servers to which the balancer responded itself, by reason.",
        LocalReason::ALL
            .iter()
            .zip(&servers.local)
            .map(|(reason, count)| ([("reason", reason.name())], count.load(Relaxed))),
    )?;
    let list = || servers.list().iter();
    let label = |server: &RealServer| [("server", server.name.clone())];
    families.gauges(
        "real_server_info",
        "Address of the real server; the value is 1.",
        list().map(|server| {
            let labels = [
                ("server", server.name.clone()),
                ("address", server.address.to_string()),
            ];
            (labels, 1u64)
        }),
    )?;
    families.gauges(
        "real_server_up",
        "Whether the link is established.",
        list().map(|server| (label(server), u64::from(server.link.is_up()))),
    )?;
    families.gauges(
        "real_server_healthy",
        "Whether the latest health checks were successful; 1 without checks.",
        list().map(|server| (label(server), u64::from(server.health.is_healthy()))),
    )?;
    families.counters(
        "real_server_failed_checks",
        "Failed health checks.",
        list().map(|server| (label(server), server.health.failed())),
    )?;
    families.counters(
        "real_server_link_datagrams",
        "Datagrams received since the link was established.",
        list().map(|server| (label(server), server.link.received_datagrams())),
    )?;
    families.gauges(
        "real_server_requests",
        "Active requests.",
        list().map(|server| (label(server), server.load())),
    )?;
    type Counter = fn(&RealServer) -> &AtomicU64;
    let counters: [(&str, &str, Counter); 10] = [
        ("links", "Established links.", |server| {
            &server.link.counters().connected
        }),
        (
            "failed_links",
            "Failed attempts to establish a link.",
            |server| &server.link.counters().failed,
        ),
        ("answers", "Complete responses.", |server| {
            &server.counters.completed
        }),
        (
            "aborted",
            "Responses that were aborted, or lost with the real server.",
            |server| &server.counters.aborted,
        ),
        (
            "unaccepted",
            "Requests whose real server was lost before it had accepted them.",
            |server| &server.counters.unaccepted,
        ),
        (
            "resumed",
            "Responses that the balancer completed as a proxy after the real server was lost.",
            |server| &server.counters.resumed,
        ),
        (
            "skipped_bytes",
            "Bytes of resumed responses that clients had acknowledged and that were not sent again.",
            |server| &server.counters.skipped_bytes,
        ),
        ("body_bytes", "Response body bytes.", |server| {
            &server.counters.body_bytes
        }),
        (
            "returned_paths",
            "Paths that the real server returned.",
            |server| &server.counters.returned,
        ),
        (
            "unreachable",
            "Client connections on which the client received packets of the balancer but not of the real server.",
            |server| &server.counters.unreachable,
        ),
    ];
    for (name, help, counter) in counters {
        families.counters(
            &format!("real_server_{name}"),
            help,
            list().map(|server| (label(server), counter(server).load(Relaxed))),
        )?;
    }
    let rejected = list().flat_map(|server| {
        let counters = RejectReason::ALL.iter().zip(&server.counters.rejected);
        counters.map(move |(reason, count)| {
            let labels = [("server", server.name.as_str()), ("reason", reason.name())];
            (labels, count.load(Relaxed))
        })
    });
    families.counters(
        "real_server_rejected",
        "Requests that the real server rejected, by reason.",
        rejected,
    )?;
    let malformed = list().flat_map(|server| {
        let malformed = server.counters.malformed.lock().clone();
        let name = &server.name;
        malformed
            .into_iter()
            .map(move |(reason, count)| ([("server", name.as_str()), ("reason", reason)], count))
    });
    families.counters(
        "real_server_malformed",
        "Malformed or invalid messages of the real server, by reason.",
        malformed,
    )
}
