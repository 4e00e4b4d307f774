// SPDX-License-Identifier: Apache-2.0
//! The counters of a proxy, and their Prometheus metrics.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use frontage_daemon::metrics::Families;

use crate::error::SessionError;
use crate::handshake::{HandshakeError, Refusal};

const ENDS: [&str; 6] = [
    "finished",
    "local_failed",
    "peer_reset",
    "peer_gone",
    "refused",
    "violation",
];
const REJECTIONS: [&str; 6] = [
    "connection",
    "authentication",
    "version",
    "unknown_session",
    "full",
    "repeated",
];

/// Counters of one proxy.
#[derive(Debug, Default)]
pub struct Metrics {
    open: AtomicU64,
    ends: [AtomicU64; ENDS.len()],
    rejections: [AtomicU64; REJECTIONS.len()],
    resumptions: AtomicU64,
    interrupted_micros: AtomicU64,
    again_bytes: AtomicU64,
    /// Bytes delivered to local connections.
    pub(crate) delivered_bytes: AtomicU64,
    /// Records written, and failed attempts.
    pub(crate) publications: [AtomicU64; 2],
}

impl Metrics {
    /// Count a session while it runs, and how it ends.
    pub(crate) async fn count(
        &self,
        session: impl Future<Output = Result<(), SessionError>>,
    ) -> Result<(), SessionError> {
        let open = OpenGuard::new(&self.open);
        let result = session.await;
        drop(open);
        increment(
            &ENDS,
            &self.ends,
            result.as_ref().err().map_or("finished", SessionError::name),
        );
        result
    }

    /// Count a resumption after an interruption, and the bytes that it sends again.
    pub(crate) fn on_resumed(&self, interruption: Duration, again: u64) {
        self.resumptions.fetch_add(1, Relaxed);
        let micros = interruption.as_micros() as u64;
        self.interrupted_micros.fetch_add(micros, Relaxed);
        self.again_bytes.fetch_add(again, Relaxed);
    }

    /// Count a carrier that was not accepted.
    pub(crate) fn on_rejected(&self, error: &HandshakeError) {
        let reason = match error {
            HandshakeError::Io(_) => "connection",
            HandshakeError::Authentication => "authentication",
            HandshakeError::Version(_) => "version",
            HandshakeError::Refused(Refusal::UnknownSession) => "unknown_session",
            HandshakeError::Refused(Refusal::Full) => "full",
            HandshakeError::Repeated => "repeated",
        };
        increment(&REJECTIONS, &self.rejections, reason);
    }

    /// Count an attempt to write the record.
    pub(crate) fn on_published(&self, succeeded: bool) {
        self.publications[usize::from(!succeeded)].fetch_add(1, Relaxed);
    }

    /// Write the metrics.
    ///
    /// # Errors
    /// If the encoder fails.
    pub fn collect(&self, families: &mut Families<'_>) -> fmt::Result {
        let get = |counter: &AtomicU64| counter.load(Relaxed);
        families.gauge("sessions", "Open sessions.", get(&self.open))?;
        families.counters(
            "sessions_ended",
            "Ended sessions, by result.",
            labelled("result", &ENDS, &self.ends),
        )?;
        families.counters(
            "carriers_rejected",
            "Connections that did not become carriers, by reason.",
            labelled("reason", &REJECTIONS, &self.rejections),
        )?;
        families.counters(
            "publications",
            "Attempts to write the record, by result.",
            labelled("result", &["ok", "failed"], &self.publications),
        )?;
        families.counter(
            "resumptions",
            "New carriers of open sessions.",
            get(&self.resumptions),
        )?;
        families.counter(
            "interrupted_seconds",
            "Time that sessions had no carrier before they resumed.",
            get(&self.interrupted_micros) as f64 / 1e6,
        )?;
        families.counter(
            "resent_bytes",
            "Bytes sent again by resumptions.",
            get(&self.again_bytes),
        )?;
        families.counter(
            "delivered_bytes",
            "Bytes delivered to local connections.",
            get(&self.delivered_bytes),
        )
    }
}

fn increment(names: &[&str], counters: &[AtomicU64], name: &str) {
    let at = names.iter().position(|known| *known == name);
    counters[at.expect("a known name")].fetch_add(1, Relaxed);
}

fn labelled<'a>(
    label: &'a str,
    names: &'a [&'a str],
    counters: &'a [AtomicU64],
) -> impl Iterator<Item = ([(&'a str, &'a str); 1], u64)> {
    let values = counters.iter().map(|counter| counter.load(Relaxed));
    names.iter().map(move |name| [(label, *name)]).zip(values)
}

/// Counts one open session until it is dropped.
struct OpenGuard<'a>(&'a AtomicU64);

impl<'a> OpenGuard<'a> {
    fn new(open: &'a AtomicU64) -> Self {
        open.fetch_add(1, Relaxed);
        Self(open)
    }
}

impl Drop for OpenGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
