//! What is counted, and the page for Prometheus.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use frontage_handoff::message::Reason;
use frontage_program::prometheus::Page;
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

    /// Everything, in Prometheus' text format.
    pub fn page(&self) -> String {
        let mut page = Page::new("frontage_real_server");
        page.single(
            "active_flows",
            "gauge",
            "N_AF: responses begun and not yet sent whole.",
            self.loads.n_af(),
        );
        let counters = [
            (
                "grants_total",
                "Paths of clients' connections that were borrowed.",
                &self.grants,
            ),
            (
                "failed_grants_total",
                "Paths that could not be borrowed.",
                &self.failed_grants,
            ),
            (
                "lost_clients_total",
                "Paths given up since their clients went to cookie addresses of keys that are not here.",
                &self.lost_clients,
            ),
            (
                "strangers_total",
                "Auxiliary connections of others than the balancers.",
                &*self.strangers,
            ),
            (
                "bad_feedback_total",
                "Feedback that no client can have said.",
                &self.bad_feedback,
            ),
            (
                "broken_total",
                "Answers whose stream ended before they did.",
                &self.broken,
            ),
            (
                "body_bytes_total",
                "Bytes of answers' bodies that QUIC took for sending.",
                &self.body_bytes,
            ),
        ];
        for (name, help, counter) in counters {
            page.single(name, "counter", help, counter.load(Relaxed));
        }
        let name = "answers_total";
        page.family(name, "counter", "Requests answered, by status.");
        for (status, n) in &*self.answers.lock().expect("nobody panics with it") {
            page.sample(name, &format!("{{status=\"{status}\"}}"), n);
        }
        let name = "refused_total";
        page.family(
            name,
            "counter",
            "Requests left to their balancer, by reason.",
        );
        for (reason, counter) in Reason::ALL.iter().zip(&self.refused) {
            let labels = format!("{{reason=\"{}\"}}", reason.name());
            page.sample(name, &labels, counter.load(Relaxed));
        }
        let name = "malformed_total";
        page.family(
            name,
            "counter",
            "What balancers sent that is no message, or none to be sent then, by reason.",
        );
        for (reason, n) in &*self.malformed.lock().expect("nobody panics with it") {
            page.sample(name, &format!("{{reason=\"{reason}\"}}"), n);
        }
        page.text()
    }
}
