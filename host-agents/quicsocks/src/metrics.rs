// SPDX-License-Identifier: Apache-2.0
//! The proxy's counters, and their Prometheus metrics.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use frontage_daemon::metrics::Families;

use crate::outcome::{ClientDatagram, Control, Counters, FlowEnd, Lookup, ServerDatagram};

/// Counters of one proxy.
#[derive(Debug)]
pub struct Metrics {
    pub control: Counters,
    pub client_datagrams: Counters,
    pub server_datagrams: Counters,
    pub lookups: Counters,
    pub flow_ends: Counters,
    /// Open associations.
    pub associations: AtomicU64,
    /// Open flows.
    pub flows: AtomicU64,
    /// QUIC bytes forwarded to servers.
    pub bytes_up: AtomicU64,
    /// QUIC bytes forwarded to clients.
    pub bytes_down: AtomicU64,
    /// Total time spent resolving names, in nanoseconds.
    pub resolving_nanos: AtomicU64,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            control: Counters::new(Control::ALL.len()),
            client_datagrams: Counters::new(ClientDatagram::ALL.len()),
            server_datagrams: Counters::new(ServerDatagram::ALL.len()),
            lookups: Counters::new(Lookup::ALL.len()),
            flow_ends: Counters::new(FlowEnd::ALL.len()),
            associations: AtomicU64::new(0),
            flows: AtomicU64::new(0),
            bytes_up: AtomicU64::new(0),
            bytes_down: AtomicU64::new(0),
            resolving_nanos: AtomicU64::new(0),
        }
    }
}

/// Increments a gauge until it is dropped.
#[derive(Debug)]
pub struct GaugeGuard {
    metrics: Arc<Metrics>,
    gauge: fn(&Metrics) -> &AtomicU64,
}

impl GaugeGuard {
    pub(crate) fn new(metrics: &Arc<Metrics>, gauge: fn(&Metrics) -> &AtomicU64) -> Self {
        gauge(metrics).fetch_add(1, Relaxed);
        Self {
            metrics: metrics.clone(),
            gauge,
        }
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        (self.gauge)(&self.metrics).fetch_sub(1, Relaxed);
    }
}

impl Metrics {
    /// Writes all metrics to `families`.
    pub fn collect(&self, families: &mut Families<'_>) -> fmt::Result {
        macro_rules! by_name {
            ($of:ident, $counters:expr, $label:literal) => {
                $of::ALL
                    .iter()
                    .map(|of| ([($label, of.name())], $counters.get(*of)))
            };
        }
        families.counters(
            "control",
            "Control connections, by outcome.",
            by_name!(Control, self.control, "outcome"),
        )?;
        families.counters(
            "client_datagrams",
            "Datagrams from clients, by outcome.",
            by_name!(ClientDatagram, self.client_datagrams, "outcome"),
        )?;
        families.counters(
            "server_datagrams",
            "Datagrams from servers, by outcome.",
            by_name!(ServerDatagram, self.server_datagrams, "outcome"),
        )?;
        families.counters(
            "names",
            "Name lookups, by outcome.",
            by_name!(Lookup, self.lookups, "outcome"),
        )?;
        families.counters(
            "flows_ended",
            "Flows that ended, by reason.",
            by_name!(FlowEnd, self.flow_ends, "reason"),
        )?;
        families.gauge(
            "associations",
            "Open associations.",
            self.associations.load(Relaxed),
        )?;
        families.gauge(
            "flows",
            "Open flows, one for each destination of an association.",
            self.flows.load(Relaxed),
        )?;
        families.counters(
            "bytes",
            "QUIC bytes forwarded, to servers (up) and to clients (down).",
            [("up", &self.bytes_up), ("down", &self.bytes_down)]
                .map(|(direction, bytes)| ([("direction", direction)], bytes.load(Relaxed))),
        )?;
        families.counter(
            "resolving_seconds",
            "Time spent resolving names, in seconds.",
            self.resolving_nanos.load(Relaxed) as f64 / 1e9,
        )
    }
}
