//! What is counted, and the page for Prometheus: one, whatever is asked for.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use frontage_quic::keys::Keys;
use frontage_quic::meter::Loads;
use frontage_quic::socket::Counts;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const PATIENCE: Duration = Duration::from_secs(5);

/// Counters of one server.
#[derive(Debug)]
pub struct Metrics {
    loads: Arc<Loads>,
    sockets: Vec<Arc<Counts>>,
    keys: Option<Arc<Keys>>,
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
    pub fn new(loads: Arc<Loads>, sockets: Vec<Arc<Counts>>, keys: Option<Arc<Keys>>) -> Self {
        Self {
            loads,
            sockets,
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
        let mut page = Page::default();
        page.family(
            "active_flows",
            "gauge",
            "N_AF: responses begun and not yet acknowledged whole.",
        );
        page.sample("active_flows", "", self.loads.n_af());
        page.family("connections", "gauge", "Connections.");
        page.sample("connections", "", self.open.load(Relaxed));
        page.family(
            "connections_total",
            "counter",
            "Connections whose handshake was completed.",
        );
        page.sample("connections_total", "", self.connections.load(Relaxed));
        page.family(
            "failed_handshakes_total",
            "counter",
            "Handshakes that were not completed.",
        );
        page.sample(
            "failed_handshakes_total",
            "",
            self.failed_handshakes.load(Relaxed),
        );
        page.family(
            "retries_total",
            "counter",
            "Clients that must show where they are before their handshake begins.",
        );
        page.sample("retries_total", "", self.retries.load(Relaxed));
        page.family(
            "moved_clients_total",
            "counter",
            "Clients that went from the VIP to the static cookie's address.",
        );
        page.sample("moved_clients_total", "", self.sum(|counts| &counts.moved));
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
        page.family(
            "body_bytes_total",
            "counter",
            "Bytes of responses' bodies that QUIC took for sending.",
        );
        page.sample("body_bytes_total", "", self.body_bytes.load(Relaxed));
        if let Some(keys) = &self.keys {
            page.family(
                "future_flows",
                "gauge",
                "N_FF: active flows with more than the look-ahead left.",
            );
            page.sample("future_flows", "", self.loads.n_ff());
            page.family("key_id", "gauge", "Id of the cookie's key that seals.");
            page.sample("key_id", "", keys.newest().id());
        }
        page.0
    }

    fn sum(&self, counter: impl Fn(&Counts) -> &AtomicU64) -> u64 {
        self.sockets
            .iter()
            .map(|counts| counter(counts).load(Relaxed))
            .sum()
    }
}

/// A connection that counts as open.
#[derive(Debug)]
pub struct Open(Arc<Metrics>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let name = format!("frontage_cclb7_quic_{name}");
        writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("a String takes it");
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        writeln!(self.0, "frontage_cclb7_quic_{name}{labels} {value}").expect("a String takes it");
    }
}

/// Answers requests until it is dropped.
pub async fn serve(listener: TcpListener, metrics: Arc<Metrics>) {
    loop {
        // A client that goes away costs only its own answer.
        if let Ok((stream, _)) = listener.accept().await {
            let page = metrics.page();
            tokio::spawn(async move { tokio::time::timeout(PATIENCE, answer(stream, page)).await });
        }
    }
}

async fn answer(mut stream: TcpStream, page: String) -> io::Result<()> {
    // Reading the request keeps the close from becoming a reset that would cut off the answer.
    let mut request = [0; 4096];
    let _ = stream.read(&mut request).await?;
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        page.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(page.as_bytes()).await?;
    stream.shutdown().await
}
