// SPDX-License-Identifier: Apache-2.0
//! Prometheus metrics: a registry that reads an agent's counters at each scrape, and a small HTTP responder.

use std::fmt;
use std::io;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeLabelSet, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
pub use prometheus_client::registry::Registry;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Media type of [`encode`]'s text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Time that a scrape may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Scrapes at a time; further ones wait in the listener's queue.
const MAX_CONCURRENT_REQUESTS: usize = 32;
/// Pause after a failed `accept`, which most likely found no free file descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Return a registry whose metrics `collect` writes at each scrape. `prefix` and `_` precede each name.
pub fn registry<F>(prefix: &str, collect: F) -> Registry
where
    F: Fn(&mut Families<'_>) -> fmt::Result + Send + Sync + 'static,
{
    let mut registry = Registry::with_prefix(prefix);
    registry.register_collector(Box::new(AtScrape(collect)));
    registry
}

/// Return the metrics in OpenMetrics' text format.
pub fn encode(registry: &Registry) -> String {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry)
        .expect("writing to a string does not fail");
    text
}

struct AtScrape<F>(F);

impl<F> fmt::Debug for AtScrape<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AtScrape")
    }
}

impl<F> Collector for AtScrape<F>
where
    F: Fn(&mut Families<'_>) -> fmt::Result + Send + Sync + 'static,
{
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        (self.0)(&mut Families(encoder))
    }
}

/// Writes metric families. Names are without prefix, and names of counters without their `_total`.
#[derive(Debug)]
pub struct Families<'a>(DescriptorEncoder<'a>);

impl Families<'_> {
    /// Write a counter without labels.
    ///
    /// # Errors
    /// If the encoder fails.
    pub fn counter(
        &mut self,
        name: &str,
        help: &str,
        value: impl EncodeCounterValue,
    ) -> fmt::Result {
        self.0
            .encode_descriptor(name, help, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, f64>(&value, None)
    }

    /// Write a gauge without labels.
    ///
    /// # Errors
    /// If the encoder fails.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl EncodeGaugeValue) -> fmt::Result {
        self.0
            .encode_descriptor(name, help, None, MetricType::Gauge)?
            .encode_gauge(&value)
    }

    /// Write a counter for each set of labels.
    ///
    /// # Errors
    /// If the encoder fails.
    pub fn counters<L: EncodeLabelSet, V: EncodeCounterValue>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (L, V)>,
    ) -> fmt::Result {
        let mut family = self
            .0
            .encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in samples {
            family
                .encode_family(&labels)?
                .encode_counter::<NoLabelSet, _, f64>(&value, None)?;
        }
        Ok(())
    }

    /// Write a gauge for each set of labels.
    ///
    /// # Errors
    /// If the encoder fails.
    pub fn gauges<L: EncodeLabelSet, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (L, V)>,
    ) -> fmt::Result {
        let mut family = self
            .0
            .encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in samples {
            family.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }
}

/// Serve `registry` over HTTP, whatever path a request names, until the future is dropped.
pub async fn serve(listener: TcpListener, registry: Registry) {
    serve_with(listener, || Ok(encode(&registry))).await;
}

/// Serve the text that `page` returns at each request, or status 500 with its error.
pub async fn serve_with(listener: TcpListener, page: impl Fn() -> anyhow::Result<String>) {
    let slots = std::sync::Arc::new(Semaphore::new(MAX_CONCURRENT_REQUESTS));
    loop {
        let slot = slots.clone().acquire_owned().await;
        let slot = slot.expect("the semaphore is never closed");
        match listener.accept().await {
            Ok((stream, _)) => {
                let (status, body) = match page() {
                    Ok(text) => ("200 OK", text),
                    Err(error) => ("500 Internal Server Error", format!("{error:#}\n")),
                };
                tokio::spawn(async move {
                    let _slot = slot;
                    // A client that goes away costs only its own response.
                    tokio::time::timeout(REQUEST_TIMEOUT, respond(stream, status, &body)).await
                });
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn respond(mut stream: TcpStream, status: &str, body: &str) -> io::Result<()> {
    // An unread request would turn the close into a reset, which can destroy the response.
    let mut request = [0; 4096];
    let _ = stream.read(&mut request).await?;
    let header = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(header.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Registry {
        registry("frontage_example", |families| {
            families.gauge("flows", "Open flows.", 3u64)?;
            families.counter("bytes", "Bytes forwarded.", 7u64)?;
            families.counter("resolving_seconds", "Seconds spent.", 1.5)?;
            families.counters(
                "drops",
                "Packets dropped, by reason.",
                [([("reason", "full")], 1u64), ([("reason", "")], 2)],
            )?;
            families.gauges(
                "up",
                "Whether it is up.",
                [([("server", "a"), ("port", "1")], 1u64)],
            )
        })
    }

    const TEXT: &str = "\
# HELP frontage_example_flows Open flows.
# TYPE frontage_example_flows gauge
frontage_example_flows 3
# HELP frontage_example_bytes Bytes forwarded.
# TYPE frontage_example_bytes counter
frontage_example_bytes_total 7
# HELP frontage_example_resolving_seconds Seconds spent.
# TYPE frontage_example_resolving_seconds counter
frontage_example_resolving_seconds_total 1.5
# HELP frontage_example_drops Packets dropped, by reason.
# TYPE frontage_example_drops counter
frontage_example_drops_total{reason=\"full\"} 1
frontage_example_drops_total{reason=\"\"} 2
# HELP frontage_example_up Whether it is up.
# TYPE frontage_example_up gauge
frontage_example_up{server=\"a\",port=\"1\"} 1
# EOF
";

    #[test]
    fn families_are_encoded_with_prefix_and_suffix() {
        assert_eq!(encode(&example()), TEXT);
    }

    async fn get(address: std::net::SocketAddr) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\n\r\n")
            .await
            .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        response
    }

    #[tokio::test]
    async fn responder_serves_the_registry() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener, example()));
        for _ in 0..MAX_CONCURRENT_REQUESTS + 1 {
            let response = get(address).await;
            let (header, body) = response.split_once("\r\n\r\n").unwrap();
            assert!(header.starts_with("HTTP/1.1 200 OK\r\n"), "{header}");
            assert!(header.contains(CONTENT_TYPE), "{header}");
            assert_eq!(body, TEXT);
        }
    }

    #[tokio::test]
    async fn responder_reports_an_error_as_status_500() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve_with(listener, || anyhow::bail!("no such map")));
        let response = get(address).await;
        assert!(response.starts_with("HTTP/1.1 500 "), "{response}");
        assert!(response.ends_with("\r\n\r\nno such map\n"), "{response}");
    }
}
