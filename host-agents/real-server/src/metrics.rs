//! What is counted, and the Prometheus metrics.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use frontage_daemon::metrics::Families;
use frontage_handoff::message::Reason;
use frontage_quic::meter::Loads;

/// Counters of this server.
pub struct Metrics {
    /// What is under way.
    pub loads: Arc<Loads>,
    /// Auxiliary connections of others than balancers.
    pub strangers: Arc<AtomicU64>,
    /// Paths that were borrowed.
    pub grants: AtomicU64,
    /// Paths that could not be.
    pub failed_grants: AtomicU64,
    /// Paths given up since their clients went to addresses of keys that are not here.
    pub lost_clients: AtomicU64,
    /// Feedback that no client can have said.
    pub bad_feedback: AtomicU64,
    /// Answers whose stream ended before they did.
    pub broken: AtomicU64,
    /// Bytes of answers' bodies that QUIC took for sending.
    pub body_bytes: AtomicU64,
    answers: Mutex<BTreeMap<u16, u64>>,
    refused: [AtomicU64; Reason::ALL.len()],
    malformed: Mutex<BTreeMap<&'static str, u64>>,
}

impl Metrics {
    /// Nothing counted yet.
    pub fn new(loads: Arc<Loads>) -> Self {
        Self {
            loads,
            strangers: Arc::default(),
            grants: AtomicU64::new(0),
            failed_grants: AtomicU64::new(0),
            lost_clients: AtomicU64::new(0),
            bad_feedback: AtomicU64::new(0),
            broken: AtomicU64::new(0),
            body_bytes: AtomicU64::new(0),
            answers: Mutex::default(),
            refused: Default::default(),
            malformed: Mutex::default(),
        }
    }

    /// A request was answered with `status`.
    pub fn answered(&self, status: u16) {
        let mut answers = self.answers.lock().expect("nobody panics with it");
        *answers.entry(status).or_default() += 1;
    }

    /// A request was left to its balancer.
    pub fn refused(&self, reason: Reason) {
        let counters = Reason::ALL.iter().zip(&self.refused);
        for (_, counter) in counters.filter(|(known, _)| **known == reason) {
            counter.fetch_add(1, Relaxed);
        }
    }

    /// A balancer sent what is no message, or none to be sent then.
    pub fn malformed(&self, reason: &'static str) {
        let mut malformed = self.malformed.lock().expect("nobody panics with it");
        *malformed.entry(reason).or_default() += 1;
    }

    /// Write everything.
    pub fn collect(&self, families: &mut Families<'_>) -> fmt::Result {
        families.gauge(
            "active_flows",
            "N_AF: responses begun and not yet sent whole.",
            self.loads.n_af(),
        )?;
        for (name, help, counter) in [
            (
                "grants",
                "Paths of clients' connections that were borrowed.",
                &self.grants,
            ),
            (
                "failed_grants",
                "Paths that could not be borrowed.",
                &self.failed_grants,
            ),
            (
                "lost_clients",
                "Paths given up since their clients went to cookie addresses of keys that are not here.",
                &self.lost_clients,
            ),
            (
                "strangers",
                "Auxiliary connections of others than the balancers.",
                &*self.strangers,
            ),
            (
                "bad_feedback",
                "Feedback that no client can have said.",
                &self.bad_feedback,
            ),
            (
                "broken",
                "Answers whose stream ended before they did.",
                &self.broken,
            ),
            (
                "body_bytes",
                "Bytes of answers' bodies that QUIC took for sending.",
                &self.body_bytes,
            ),
        ] {
            families.counter(name, help, counter.load(Relaxed))?;
        }
        let answers = self.answers.lock().expect("nobody panics with it").clone();
        families.counters(
            "answers",
            "Requests answered, by status.",
            answers
                .iter()
                .map(|(status, n)| ([("status", *status)], *n)),
        )?;
        families.counters(
            "refused",
            "Requests left to their balancer, by reason.",
            Reason::ALL
                .iter()
                .zip(&self.refused)
                .map(|(reason, counter)| ([("reason", reason.name())], counter.load(Relaxed))),
        )?;
        let malformed = self
            .malformed
            .lock()
            .expect("nobody panics with it")
            .clone();
        families.counters(
            "malformed",
            "What balancers sent that is no message, or none to be sent then, by reason.",
            malformed
                .iter()
                .map(|(reason, n)| ([("reason", *reason)], *n)),
        )
    }
}
