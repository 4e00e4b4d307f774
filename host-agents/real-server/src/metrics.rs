// SPDX-License-Identifier: Apache-2.0
//! Metrics of the server.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use frontage_daemon::metrics::Families;
use frontage_handoff::message::RejectReason;
use frontage_quic::meter::Loads;
use parking_lot::Mutex;

/// Metrics of one server.
pub struct Metrics {
    /// Load of this server.
    pub loads: Arc<Loads>,
    /// Links of unknown peers that were rejected.
    pub rejected_links: Arc<AtomicU64>,
    /// Grants that were opened.
    pub grants: AtomicU64,
    /// Grants that could not be opened.
    pub failed_grants: AtomicU64,
    /// Delegations that ended because the client moved to a cookie address whose key is missing.
    pub lost_clients: AtomicU64,
    /// Feedback that no client can have sent.
    pub invalid_feedback: AtomicU64,
    /// Requests for packet numbers of clients with a single path, each of which costs a round trip to the balancer.
    pub number_requests: AtomicU64,
    /// Responses that were aborted.
    pub aborted: AtomicU64,
    /// Response body bytes that QUIC accepted for sending.
    pub body_bytes: AtomicU64,
    responses: Mutex<BTreeMap<u16, u64>>,
    rejected: [AtomicU64; RejectReason::ALL.len()],
    malformed: Mutex<BTreeMap<&'static str, u64>>,
}

impl Metrics {
    /// Create the metrics, all zero.
    pub fn new(loads: Arc<Loads>) -> Self {
        Self {
            loads,
            rejected_links: Arc::default(),
            grants: AtomicU64::new(0),
            failed_grants: AtomicU64::new(0),
            lost_clients: AtomicU64::new(0),
            invalid_feedback: AtomicU64::new(0),
            number_requests: AtomicU64::new(0),
            aborted: AtomicU64::new(0),
            body_bytes: AtomicU64::new(0),
            responses: Mutex::default(),
            rejected: Default::default(),
            malformed: Mutex::default(),
        }
    }

    /// Count a response.
    pub fn on_response(&self, status: u16) {
        *self.responses.lock().entry(status).or_default() += 1;
    }

    /// Count a rejected request.
    pub fn on_rejected(&self, reason: RejectReason) {
        let counters = RejectReason::ALL.iter().zip(&self.rejected);
        for (_, counter) in counters.filter(|(known, _)| **known == reason) {
            counter.fetch_add(1, Relaxed);
        }
    }

    /// Count a malformed or unexpected message of a balancer.
    pub fn on_malformed(&self, reason: &'static str) {
        *self.malformed.lock().entry(reason).or_default() += 1;
    }

    /// Write all metrics.
    pub fn collect(&self, families: &mut Families<'_>) -> fmt::Result {
        families.gauge(
            "active_flows",
            "N_AF: responses that have begun and are not completely sent.",
            self.loads.n_af(),
        )?;
        for (name, help, counter) in [
            ("grants", "Grants that were opened.", &self.grants),
            (
                "failed_grants",
                "Grants that could not be opened.",
                &self.failed_grants,
            ),
            (
                "lost_clients",
                "Delegations that ended because the client moved to a cookie address whose key is missing.",
                &self.lost_clients,
            ),
            (
                "rejected_links",
                "Links of unknown peers that were rejected.",
                &*self.rejected_links,
            ),
            (
                "invalid_feedback",
                "Feedback that no client can have sent.",
                &self.invalid_feedback,
            ),
            (
                "number_requests",
                "Requests for packet numbers of clients with a single path.",
                &self.number_requests,
            ),
            ("aborted", "Responses that were aborted.", &self.aborted),
            (
                "body_bytes",
                "Response body bytes that QUIC accepted for sending.",
                &self.body_bytes,
            ),
        ] {
            families.counter(name, help, counter.load(Relaxed))?;
        }
        let responses = self.responses.lock().clone();
        families.counters(
            "answers",
            "Responses, by status.",
            responses
                .iter()
                .map(|(status, count)| ([("status", *status)], *count)),
        )?;
        families.counters(
            "rejected",
            "Rejected requests, by reason.",
            RejectReason::ALL
                .iter()
                .zip(&self.rejected)
                .map(|(reason, count)| ([("reason", reason.name())], count.load(Relaxed))),
        )?;
        let malformed = self.malformed.lock().clone();
        families.counters(
            "malformed",
            "Malformed or unexpected messages of balancers, by reason.",
            malformed
                .iter()
                .map(|(reason, count)| ([("reason", *reason)], *count)),
        )
    }
}
