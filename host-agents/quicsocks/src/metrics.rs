//! What is counted, and the page for Prometheus.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::outcome::{Control, Counters, End, FromClient, FromServer, Name};

/// Counters of one proxy.
#[derive(Debug)]
pub struct Metrics {
    pub control: Counters,
    pub from_client: Counters,
    pub from_server: Counters,
    pub names: Counters,
    pub ends: Counters,
    /// Associations and flows that there are.
    pub associations: AtomicU64,
    pub flows: AtomicU64,
    /// Bytes of QUIC that were forwarded.
    pub up: AtomicU64,
    pub down: AtomicU64,
    /// Nanoseconds that names took, all together.
    pub resolving: AtomicU64,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            control: Counters::new(Control::ALL.len()),
            from_client: Counters::new(FromClient::ALL.len()),
            from_server: Counters::new(FromServer::ALL.len()),
            names: Counters::new(Name::ALL.len()),
            ends: Counters::new(End::ALL.len()),
            associations: AtomicU64::new(0),
            flows: AtomicU64::new(0),
            up: AtomicU64::new(0),
            down: AtomicU64::new(0),
            resolving: AtomicU64::new(0),
        }
    }
}

/// One more of what a gauge counts, until it is dropped.
#[derive(Debug)]
pub struct Gauge {
    metrics: Arc<Metrics>,
    of: fn(&Metrics) -> &AtomicU64,
}

impl Gauge {
    pub(crate) fn new(metrics: &Arc<Metrics>, of: fn(&Metrics) -> &AtomicU64) -> Self {
        of(metrics).fetch_add(1, Relaxed);
        Self {
            metrics: metrics.clone(),
            of,
        }
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        (self.of)(&self.metrics).fetch_sub(1, Relaxed);
    }
}

impl Metrics {
    /// Everything, in Prometheus' text format.
    pub fn page(&self) -> String {
        let mut page = String::new();
        let mut family = |name: &str, kind: &str, help: &str, samples: &[(String, f64)]| {
            let name = format!("frontage_quicsocks_{name}");
            writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}")
                .expect("a String takes it");
            for (labels, value) in samples {
                writeln!(page, "{name}{labels} {value}").expect("a String takes it");
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
        let help = "Control connections, by what came of them.";
        let samples = by_name!(Control, self.control, "outcome");
        family("control_total", "counter", help, &samples);
        let help = "Datagrams of clients, by what became of them.";
        let samples = by_name!(FromClient, self.from_client, "outcome");
        family("client_datagrams_total", "counter", help, &samples);
        let help = "Datagrams of servers, by what became of them.";
        let samples = by_name!(FromServer, self.from_server, "outcome");
        family("server_datagrams_total", "counter", help, &samples);
        let help = "Names that were looked up, by what came of it.";
        let samples = by_name!(Name, self.names, "outcome");
        family("names_total", "counter", help, &samples);
        let help = "Flows that ended, by why.";
        let samples = by_name!(End, self.ends, "reason");
        family("flows_ended_total", "counter", help, &samples);
        let help = "Associations that there are.";
        family("associations", "gauge", help, &one(&self.associations));
        let help = "Flows that there are: destinations of associations.";
        family("flows", "gauge", help, &one(&self.flows));
        let help = "Bytes of QUIC forwarded.";
        let bytes = [("up", &self.up), ("down", &self.down)].map(|(direction, bytes)| {
            let labels = format!("{{direction=\"{direction}\"}}");
            (labels, bytes.load(Relaxed) as f64)
        });
        family("bytes_total", "counter", help, &bytes);
        let help = "Seconds that looking names up took, all together.";
        let seconds = self.resolving.load(Relaxed) as f64 / 1e9;
        let samples = [(String::new(), seconds)];
        family("resolving_seconds_total", "counter", help, &samples);
        page
    }
}
