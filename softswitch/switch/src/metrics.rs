// SPDX-License-Identifier: Apache-2.0
//! The counters in Prometheus' format and as a table for people.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::address::Listener;
use crate::dataplane::counters::Sample;
use crate::dataplane::{Handle, PortView};
use crate::tls::Tls;

/// The counters to export.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// The data plane with the switch's counters.
    pub dataplane: Arc<Handle>,
    /// The ports and their counters.
    pub ports: Vec<PortView>,
    /// TLS of the servers, if enabled.
    pub tls: Option<Arc<Tls>>,
}

/// Maximum length of an HTTP request in bytes.
const MAX_REQUEST: usize = 8192;

type Labels = Vec<(&'static str, String)>;

impl Metrics {
    /// Formats all counters in Prometheus' text format (OpenMetrics).
    pub fn prometheus(&self) -> String {
        let mut registry = Registry::with_prefix("softswitch");
        registry.register_collector(Box::new(self.clone()));
        let mut page = String::new();
        // It cannot fail: writing to a string does not.
        let _ = text::encode(&mut page, &registry);
        page
    }

    /// Formats one line per port with its non-zero counters, and one for the whole switch.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        let nonzero = |samples: &mut dyn Iterator<Item = Sample>| {
            let parts = samples.filter(|s| s.value != 0).map(|s| match s.cause {
                Some(cause) => format!("dropped by {cause} {}", s.value),
                None => format!("{} {}", s.metric, s.value),
            });
            parts.collect::<Vec<_>>().join(", ")
        };
        for port in &self.ports {
            let counts = nonzero(&mut port.counters.samples());
            let _ = writeln!(text, "port {} ({}): {counts}", port.number, port.name);
        }
        let counts = nonzero(&mut self.dataplane.counters().samples());
        let _ = writeln!(text, "switch: {counts}");
        text
    }

    /// Serves the counters by HTTP at `/metrics`.
    pub async fn serve(self, listener: Listener) {
        loop {
            // Errors concern one connection, or are temporary (too many open files).
            let metrics = self.clone();
            match &listener {
                Listener::Tcp(l) => {
                    if let Ok((connection, _)) = l.accept().await {
                        tokio::spawn(async move { metrics.answer(connection).await });
                    }
                }
                Listener::Unix(l) => {
                    if let Ok((connection, _)) = l.accept().await {
                        tokio::spawn(async move { metrics.answer(connection).await });
                    }
                }
            }
        }
    }

    fn encode_tls(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let Some(tls) = &self.tls else {
            return Ok(());
        };
        let metrics = [
            (
                "certificate_days_left",
                "Days until the server's certificate expires",
                tls.days_left(),
            ),
            (
                "certificate_error",
                "1 if replaced TLS files are invalid and not in use",
                f64::from(u8::from(tls.error().is_some())),
            ),
        ];
        for (name, help, value) in metrics {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            metric.encode_gauge(&value)?;
        }
        Ok(())
    }

    async fn answer(&self, mut connection: impl AsyncRead + AsyncWrite + Unpin) {
        let mut request = Vec::new();
        while !request.windows(4).any(|w| w == b"\r\n\r\n") {
            match connection.read_buf(&mut request).await {
                Ok(1..) if request.len() < MAX_REQUEST => {}
                _ => return,
            }
        }
        let (status, kind, body) = if request.starts_with(b"GET /metrics ") {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ("200 OK", kind, self.prometheus())
        } else {
            let body = "unknown path: use /metrics\n".to_owned();
            ("404 Not Found", "text/plain", body)
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        // The client may have disconnected.
        let _ = connection.write_all(answer.as_bytes()).await;
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        // All samples of a metric must be adjacent.
        let mut metrics: BTreeMap<(String, &str), Vec<(Labels, u64)>> = BTreeMap::new();
        let mut add = |prefix: &str, mut labels: Labels, sample: Sample| {
            labels.extend(sample.cause.map(|cause| ("cause", cause.to_owned())));
            let key = (format!("{prefix}{}", sample.metric), sample.help);
            metrics.entry(key).or_default().push((labels, sample.value));
        };
        for port in &self.ports {
            for sample in port.counters.samples() {
                let labels = vec![
                    ("port", port.number.to_string()),
                    ("interface", port.name.clone()),
                ];
                add("port_", labels, sample);
            }
        }
        for sample in self.dataplane.counters().samples() {
            add("", Vec::new(), sample);
        }
        for ((name, help), samples) in &metrics {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (labels, value) in samples {
                if labels.is_empty() {
                    metric.encode_counter::<NoLabelSet, _, u64>(value, None)?;
                } else {
                    let mut metric = metric.encode_family(labels)?;
                    metric.encode_counter::<NoLabelSet, _, u64>(value, None)?;
                }
            }
        }
        self.encode_tls(&mut encoder)
    }
}
