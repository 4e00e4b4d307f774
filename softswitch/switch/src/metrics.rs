//! Counters as text: in Prometheus' format, and as a table for people.

use std::fmt::Write as _;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::address::Listener;
use crate::dataplane::{Handle, PortView};

/// What there is to count.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// The switch's counters.
    pub dataplane: Arc<Handle>,
    /// The ports and their counters.
    pub ports: Vec<PortView>,
}

/// Requests longer than this are not ours.
const MAX_REQUEST: usize = 8192;

impl Metrics {
    /// In Prometheus' text format.
    pub fn prometheus(&self) -> String {
        let mut samples = Vec::new();
        for port in &self.ports {
            let labels = format!("port=\"{}\",interface=\"{}\"", port.number, port.name);
            for (name, value) in port.counters.list() {
                samples.push(sample("softswitch_port_", name, &labels, value));
            }
        }
        for (name, value) in self.dataplane.counters().list() {
            samples.push(sample("softswitch_", name, "", value));
        }
        // All samples of a metric must stand together.
        samples.sort();
        let mut text = String::new();
        let mut last = "";
        for (name, line) in &samples {
            if name != last {
                let _ = writeln!(text, "# TYPE {name} counter");
                last = name;
            }
            text.push_str(line);
        }
        text
    }

    /// One line per port and cause that is not zero.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        let nonzero = |counters: &mut dyn Iterator<Item = (&'static str, u64)>| {
            let parts = counters.filter(|(_, v)| *v != 0).map(|(name, value)| {
                let name = name
                    .replace("drops{cause=\"", "dropped by ")
                    .replace("\"}", "");
                format!("{name} {value}")
            });
            parts.collect::<Vec<_>>().join(", ")
        };
        for port in &self.ports {
            let counts = nonzero(&mut port.counters.list());
            let _ = writeln!(text, "port {} ({}): {counts}", port.number, port.name);
        }
        let counts = nonzero(&mut self.dataplane.counters().list());
        let _ = writeln!(text, "switch: {counts}");
        text
    }

    /// Answers HTTP requests with the counters.
    pub async fn serve(self, listener: Listener) {
        loop {
            // An error here is of one connection, or of too many open files; neither is for ever.
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

    async fn answer(&self, mut connection: impl AsyncRead + AsyncWrite + Unpin) {
        let mut request = Vec::new();
        while !request.windows(4).any(|w| w == b"\r\n\r\n") {
            match connection.read_buf(&mut request).await {
                Ok(1..) if request.len() < MAX_REQUEST => {}
                _ => return,
            }
        }
        let (status, body) = if request.starts_with(b"GET /metrics ") {
            ("200 OK", self.prometheus())
        } else {
            ("404 Not Found", "the counters are at /metrics\n".into())
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        // Whoever asked may have gone.
        let _ = connection.write_all(answer.as_bytes()).await;
    }
}

/// The metric's name, and its line. `name` may bring a label along.
fn sample(prefix: &str, name: &str, labels: &str, value: u64) -> (String, String) {
    let (name, own) = name.split_once('{').unwrap_or((name, ""));
    let own = own.trim_end_matches('}');
    let metric = format!("{prefix}{name}_total");
    let labels = match (labels, own) {
        ("", "") => String::new(),
        ("", one) | (one, "") => format!("{{{one}}}"),
        (both, of) => format!("{{{both},{of}}}"),
    };
    let line = format!("{metric}{labels} {value}\n");
    (metric, line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_joined() {
        let (metric, line) = sample("s_", "drops{cause=\"x\"}", "port=\"1\"", 5);
        assert_eq!(metric, "s_drops_total");
        assert_eq!(line, "s_drops_total{port=\"1\",cause=\"x\"} 5\n");
        assert_eq!(sample("s_", "rx", "", 0).1, "s_rx_total 0\n");
    }
}
