//! What is counted of the real servers, and its samples for Prometheus.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use frontage_handoff::message::Reason;
use frontage_program::prometheus::Page;

use super::servers::{Server, Servers};

/// Why the balancer answers a request for real servers itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It is longer than a real server is told.
    Large,
    /// Nothing could be lent for it.
    Unlent,
    /// The real server refused it.
    Refused,
}

impl Kept {
    /// All of them, in order.
    pub const ALL: [Self; 3] = [Self::Large, Self::Unlent, Self::Refused];

    /// For metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Large => "large",
            Self::Unlent => "unlent",
            Self::Refused => "refused",
        }
    }
}

/// What became of the requests that a real server was to answer.
#[derive(Debug, Default)]
pub struct Counts {
    /// Answered whole.
    pub whole: AtomicU64,
    /// Reset, by the client, by the real server, or since that was lost.
    pub broken: AtomicU64,
    /// Refused, in the order of [`Reason::ALL`].
    pub refused: [AtomicU64; Reason::ALL.len()],
    /// Bytes of bodies that it sent.
    pub body_bytes: AtomicU64,
    /// Paths that it gave back.
    pub returned: AtomicU64,
    /// Clients that it did not reach, though the balancer did.
    pub unheard: AtomicU64,
    malformed: Mutex<BTreeMap<&'static str, u64>>,
}

impl Counts {
    /// It said what is no message, or cannot be, for this reason.
    pub fn malformed(&self, reason: &'static str) {
        let mut malformed = self.malformed.lock().expect("nobody panics with it");
        *malformed.entry(reason).or_default() += 1;
    }
}

impl Servers {
    /// The balancer answers a request itself.
    pub fn keeps(&self, why: Kept) {
        self.kept[why as usize].fetch_add(1, Relaxed);
    }

    /// What is counted of them.
    pub fn samples(&self, page: &mut Page) {
        let name = "handoff_kept_total";
        page.family(
            name,
            "counter",
            "Requests for real servers that the balancer answered itself, by reason.",
        );
        for (reason, count) in Kept::ALL.iter().zip(&self.kept) {
            let labels = format!("{{reason=\"{}\"}}", reason.name());
            page.sample(name, &labels, count.load(Relaxed));
        }
        type Value = fn(&Server) -> u64;
        let families: [(&str, &str, &str, Value); 9] = [
            (
                "real_server_up",
                "gauge",
                "Whether its link is up.",
                |server| server.link.is_up().into(),
            ),
            (
                "real_server_links_total",
                "counter",
                "Links that came about.",
                |server| server.link.counts().connected.load(Relaxed),
            ),
            (
                "real_server_failed_links_total",
                "counter",
                "Attempts at a link that failed.",
                |server| server.link.counts().failed.load(Relaxed),
            ),
            (
                "real_server_requests",
                "gauge",
                "Requests under way.",
                Server::load,
            ),
            (
                "real_server_answers_total",
                "counter",
                "Requests that it answered whole.",
                |server| server.counts.whole.load(Relaxed),
            ),
            (
                "real_server_broken_total",
                "counter",
                "Requests whose stream was reset, or that were lost with it.",
                |server| server.counts.broken.load(Relaxed),
            ),
            (
                "real_server_body_bytes_total",
                "counter",
                "Bytes of bodies that it sent.",
                |server| server.counts.body_bytes.load(Relaxed),
            ),
            (
                "real_server_returned_paths_total",
                "counter",
                "Paths that it gave back, for others to use.",
                |server| server.counts.returned.load(Relaxed),
            ),
            (
                "real_server_unheard_total",
                "counter",
                "Clients' connections on which it was given up, since the client heard the balancer and not it.",
                |server| server.counts.unheard.load(Relaxed),
            ),
        ];
        for (name, kind, help, value) in families {
            page.family(name, kind, help);
            for server in self.list() {
                let label = format!("{{server=\"{}\"}}", server.name);
                page.sample(name, &label, value(server));
            }
        }
        let name = "real_server_refused_total";
        page.family(
            name,
            "counter",
            "Requests that it left to the balancer, by reason.",
        );
        for server in self.list() {
            for (reason, count) in Reason::ALL.iter().zip(&server.counts.refused) {
                let (server, reason) = (&server.name, reason.name());
                let labels = format!("{{server=\"{server}\",reason=\"{reason}\"}}");
                page.sample(name, &labels, count.load(Relaxed));
            }
        }
        let name = "real_server_malformed_total";
        page.family(
            name,
            "counter",
            "What it said that is no message or cannot be, by reason.",
        );
        for server in self.list() {
            let malformed = &server.counts.malformed;
            for (reason, count) in &*malformed.lock().expect("nobody panics with it") {
                let labels = format!("{{server=\"{}\",reason=\"{reason}\"}}", server.name);
                page.sample(name, &labels, count);
            }
        }
    }
}
