//! What is counted, and the page for Prometheus: one, whatever is asked for.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use frontage_program::prometheus::Page;
use frontage_quic::keys::Keys;
use frontage_quic::meter::Loads;
use frontage_quic::places::Places;
use frontage_quic::socket::Counts;
use frontage_tunnel::Error;

use crate::artemis::Artemis;
use crate::handoff::Servers;

/// Counters of one server.
pub struct Metrics {
    loads: Arc<Loads>,
    sockets: Vec<Arc<Counts>>,
    places: Arc<Places>,
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
        places: Arc<Places>,
        keys: Option<Arc<Keys>>,
        artemis: Option<Arc<Artemis>>,
        servers: Option<Arc<Servers>>,
    ) -> Self {
        Self {
            artemis,
            servers,
            loads,
            sockets,
            places,
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

    /// Everything, in Prometheus' text format.
    pub fn page(&self) -> String {
        let mut page = Page::new("frontage_cclb7_quic");
        page.single(
            "active_flows",
            "gauge",
            "N_AF: responses begun and not yet sent whole.",
            self.loads.n_af(),
        );
        page.single(
            "connections",
            "gauge",
            "Connections.",
            self.open.load(Relaxed),
        );
        page.single(
            "connections_total",
            "counter",
            "Connections whose handshake was completed.",
            self.connections.load(Relaxed),
        );
        page.single(
            "failed_handshakes_total",
            "counter",
            "Handshakes that were not completed.",
            self.failed_handshakes.load(Relaxed),
        );
        page.single(
            "retries_total",
            "counter",
            "Clients that must show where they are before their handshake begins.",
            self.retries.load(Relaxed),
        );
        page.single(
            "moved_clients_total",
            "counter",
            "Clients that went from the VIP to the static cookie's address.",
            self.places.moved.load(Relaxed),
        );
        page.single("withheld_resets_total", "counter", "Stateless resets not sent, since what would have caused them was late: its client had moved.", self.places.withheld.load(Relaxed));
        page.family(
            "datagrams_total",
            "counter",
            "Datagrams received, by the address to which the client sent them.",
        );
        page.sample(
            "datagrams_total",
            "{at=\"vip\"}",
            self.sum(|counts| &counts.at_vip),
        );
        page.sample(
            "datagrams_total",
            "{at=\"cookie\"}",
            self.sum(|counts| &counts.at_cookie),
        );
        page.sample(
            "datagrams_total",
            "{at=\"plain\"}",
            self.sum(|counts| &counts.at_plain),
        );
        page.family("answers_total", "counter", "Requests answered, by status.");
        for (status, n) in &*self.answers.lock().expect("nobody panics with it") {
            page.sample("answers_total", &format!("{{status=\"{status}\"}}"), n);
        }
        page.single(
            "body_bytes_total",
            "counter",
            "Bytes of responses' bodies that QUIC took for sending.",
            self.body_bytes.load(Relaxed),
        );
        if let Some(keys) = &self.keys {
            page.single(
                "future_flows",
                "gauge",
                "N_FF: active flows with more than the look-ahead left.",
                self.loads.n_ff(),
            );
            page.single(
                "key_id",
                "gauge",
                "Id of the cookie's key that seals.",
                keys.newest().id(),
            );
        }
        if let Some(artemis) = &self.artemis {
            artemis_samples(&mut page, artemis);
        }
        if let Some(servers) = &self.servers {
            servers.samples(&mut page);
        }
        page.text()
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

fn artemis_samples(page: &mut Page, artemis: &Artemis) {
    let (counts, tunnel) = (&artemis.counts, &artemis.tunnel);
    for (name, help, value) in [
        (
            "tunnel_received_total",
            "Clients' datagrams that came out of the tunnel.",
            tunnel.counts.received.load(Relaxed),
        ),
        (
            "tunnel_sent_total",
            "Datagrams to clients that went into the tunnel.",
            tunnel.counts.sent.load(Relaxed),
        ),
        (
            "tunnel_unsent_total",
            "Datagrams to clients that the network did not take.",
            tunnel.counts.unsent.load(Relaxed),
        ),
        (
            "late_bound_clients_total",
            "Clients that went from the tunnel to the unicast address.",
            artemis.places.returned.load(Relaxed),
        ),
        (
            "refused_total",
            "New connections refused at the unicast address, since there was too much to do.",
            counts.refused.load(Relaxed),
        ),
        (
            "missed_heartbeats_total",
            "Heartbeats that a dispatcher did not take.",
            counts.missed_heartbeats.load(Relaxed),
        ),
    ] {
        page.single(name, "counter", help, value);
    }
    page.family(
        "tunnel_dropped_total",
        "counter",
        "What came to the tunnel and was dropped, by reason.",
    );
    let malformed = Error::ALL
        .iter()
        .map(|error| error.name())
        .zip(&tunnel.counts.malformed);
    let others = [
        ("stranger", &tunnel.counts.stranger),
        ("nobody", &tunnel.counts.nobody),
        ("full", &tunnel.counts.full),
    ];
    for (reason, counter) in others.into_iter().chain(malformed) {
        let labels = format!("{{reason=\"{reason}\"}}");
        page.sample("tunnel_dropped_total", &labels, counter.load(Relaxed));
    }
}
