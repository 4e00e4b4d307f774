//! What is counted of the real servers, and the Prometheus metrics.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use frontage_daemon::metrics::Families;
use frontage_handoff::message::Reason;

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

    /// Write what is counted of them.
    pub fn collect(&self, families: &mut Families<'_>) -> fmt::Result {
        families.counters(
            "handoff_kept",
            "Requests for real servers that the balancer answered itself, by reason.",
            Kept::ALL
                .iter()
                .zip(&self.kept)
                .map(|(reason, count)| ([("reason", reason.name())], count.load(Relaxed))),
        )?;
        let servers = || self.list().iter();
        let label = |server: &Server| [("server", server.name.clone())];
        let up = |server: &Server| u64::from(server.link.is_up());
        families.gauges(
            "real_server_up",
            "Whether its link is up.",
            servers().map(|server| (label(server), up(server))),
        )?;
        families.gauges(
            "real_server_requests",
            "Requests under way.",
            servers().map(|server| (label(server), server.load())),
        )?;
        type Counter = fn(&Server) -> &AtomicU64;
        let counters: [(&str, &str, Counter); 7] = [
            ("links", "Links that came about.", |server| {
                &server.link.counts().connected
            }),
            (
                "failed_links",
                "Attempts at a link that failed.",
                |server| &server.link.counts().failed,
            ),
            ("answers", "Requests that it answered whole.", |server| {
                &server.counts.whole
            }),
            (
                "broken",
                "Requests whose stream was reset, or that were lost with it.",
                |server| &server.counts.broken,
            ),
            ("body_bytes", "Bytes of bodies that it sent.", |server| {
                &server.counts.body_bytes
            }),
            (
                "returned_paths",
                "Paths that it gave back, for others to use.",
                |server| &server.counts.returned,
            ),
            (
                "unheard",
                "Clients' connections on which it was given up, since the client heard the balancer and not it.",
                |server| &server.counts.unheard,
            ),
        ];
        for (name, help, counter) in counters {
            families.counters(
                &format!("real_server_{name}"),
                help,
                servers().map(|server| (label(server), counter(server).load(Relaxed))),
            )?;
        }
        let refused = servers().flat_map(|server| {
            let counters = Reason::ALL.iter().zip(&server.counts.refused);
            counters.map(move |(reason, count)| {
                let labels = [("server", server.name.as_str()), ("reason", reason.name())];
                (labels, count.load(Relaxed))
            })
        });
        families.counters(
            "real_server_refused",
            "Requests that it left to the balancer, by reason.",
            refused,
        )?;
        let malformed = servers().flat_map(|server| {
            let malformed = server.counts.malformed.lock();
            let malformed = malformed.expect("nobody panics with it").clone();
            let name = &server.name;
            malformed
                .into_iter()
                .map(move |(reason, n)| ([("server", name.as_str()), ("reason", reason)], n))
        });
        families.counters(
            "real_server_malformed",
            "What it said that is no message or cannot be, by reason.",
            malformed,
        )
    }
}
