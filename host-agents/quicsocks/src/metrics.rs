//! The proxy's counters, and their Prometheus page.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

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
    /// Renders all metrics in the Prometheus text format.
    pub fn page(&self) -> String {
        let mut page = String::new();
        let mut family = |name: &str, kind: &str, help: &str, samples: &[(String, f64)]| {
            let name = format!("frontage_quicsocks_{name}");
            writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}")
                .expect("writing to a String does not fail");
            for (labels, value) in samples {
                writeln!(page, "{name}{labels} {value}")
                    .expect("writing to a String does not fail");
            }
        };
        macro_rules! by_name {
            ($of:ident, $counters:expr, $label:literal) => {
                $of::ALL
                    .iter()
                    .map(|of| {
                        let labels = format!("{{{}=\"{}\"}}", $label, of.name());
                        (labels, $counters.get(*of) as f64)
                    })
                    .collect::<Vec<_>>()
            };
        }
        let one = |value: &AtomicU64| vec![(String::new(), value.load(Relaxed) as f64)];
        let help = "Control connections, by outcome.";
        let samples = by_name!(Control, self.control, "outcome");
        family("control_total", "counter", help, &samples);
        let help = "Datagrams from clients, by outcome.";
        let samples = by_name!(ClientDatagram, self.client_datagrams, "outcome");
        family("client_datagrams_total", "counter", help, &samples);
        let help = "Datagrams from servers, by outcome.";
        let samples = by_name!(ServerDatagram, self.server_datagrams, "outcome");
        family("server_datagrams_total", "counter", help, &samples);
        let help = "Name lookups, by outcome.";
        let samples = by_name!(Lookup, self.lookups, "outcome");
        family("names_total", "counter", help, &samples);
        let help = "Flows that ended, by reason.";
        let samples = by_name!(FlowEnd, self.flow_ends, "reason");
        family("flows_ended_total", "counter", help, &samples);
        let help = "Open associations.";
        family("associations", "gauge", help, &one(&self.associations));
        let help = "Open flows, one for each destination of an association.";
        family("flows", "gauge", help, &one(&self.flows));
        let help = "QUIC bytes forwarded, to servers (up) and to clients (down).";
        let bytes =
            [("up", &self.bytes_up), ("down", &self.bytes_down)].map(|(direction, bytes)| {
                let labels = format!("{{direction=\"{direction}\"}}");
                (labels, bytes.load(Relaxed) as f64)
            });
        family("bytes_total", "counter", help, &bytes);
        let help = "Time spent resolving names, in seconds.";
        let seconds = self.resolving_nanos.load(Relaxed) as f64 / 1e9;
        let samples = [(String::new(), seconds)];
        family("resolving_seconds_total", "counter", help, &samples);
        page
    }
}
