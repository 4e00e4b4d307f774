// SPDX-License-Identifier: Apache-2.0
//! Counters of one real server.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use frontage_handoff::message::RejectReason;
use parking_lot::Mutex;

/// Why the balancer responds to a request that its route assigns to real servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalReason {
    /// The request is too long to delegate.
    Large,
    /// No real server is available: no path, link or usable address.
    Unavailable,
    /// The real server rejected the request.
    Rejected,
    /// Delegated responses to this client, which has a single path, have been slower than proxied ones would have been.
    Slower,
    /// The client has a single path, and the configuration does not permit delegation to such clients.
    SinglePath,
}

impl LocalReason {
    /// All reasons, in order.
    pub const ALL: [Self; 5] = [
        Self::Large,
        Self::Unavailable,
        Self::Rejected,
        Self::Slower,
        Self::SinglePath,
    ];

    /// Return the reason's label in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Large => "large",
            Self::Unavailable => "unavailable",
            Self::Rejected => "rejected",
            Self::Slower => "slower",
            Self::SinglePath => "single_path",
        }
    }
}

/// Outcomes of the requests that were delegated to one real server.
#[derive(Debug, Default)]
pub struct Counters {
    /// Complete responses.
    pub completed: AtomicU64,
    /// Responses that the client or the real server aborted, or that were lost with the real server.
    pub aborted: AtomicU64,
    /// Requests whose real server was lost before it had accepted them.
    pub unaccepted: AtomicU64,
    /// Rejected requests, in the order of [`RejectReason::ALL`].
    pub rejected: [AtomicU64; RejectReason::ALL.len()],
    /// Bytes of response bodies.
    pub body_bytes: AtomicU64,
    /// Responses that the balancer completed after the real server was lost.
    pub resumed: AtomicU64,
    /// Bytes of resumed responses that the client had acknowledged, which the balancer did not send again.
    pub skipped_bytes: AtomicU64,
    /// Paths that the real server returned.
    pub returned: AtomicU64,
    /// Client connections on which the real server was unreachable although the balancer was not.
    pub unreachable: AtomicU64,
    /// Malformed or invalid messages, by reason.
    pub malformed: Mutex<BTreeMap<&'static str, u64>>,
}

impl Counters {
    /// Count a malformed or invalid message.
    pub fn on_malformed(&self, reason: &'static str) {
        *self.malformed.lock().entry(reason).or_default() += 1;
    }
}
