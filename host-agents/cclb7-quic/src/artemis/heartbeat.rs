// SPDX-License-Identifier: Apache-2.0
//! Heartbeats to the dispatchers: `PUT /replicas/{sid}` each second, and `DELETE` at shutdown (docs/dispatcher.md).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::{Method, Request, Uri, header};
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Serialize;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::config::Artemis;
use super::rtts::Mean;

/// Interval of heartbeats, and timeout of each.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time in seconds without a heartbeat after which a dispatcher removes the replica.
const TTL: u32 = 3;

/// Body of `PUT /replicas/{sid}`.
#[derive(Serialize)]
struct Body<'a> {
    services: &'a [String],
    address: String,
    load: f64,
    weight: u32,
    accepting: bool,
    ttl: u32,
    rtts: Vec<Mean>,
}

/// Sender of heartbeats.
pub(super) struct Heartbeat {
    services: Vec<String>,
    address: String,
    dispatchers: Vec<Uri>,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Heartbeat {
    pub(super) fn new(config: &Artemis, sid: u16) -> Self {
        let uri = |dispatcher: &Uri| {
            let mut parts = dispatcher.clone().into_parts();
            parts.path_and_query = format!("/replicas/{sid}").parse().ok();
            Uri::from_parts(parts).expect("valid origin and path")
        };
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self {
            services: config.services.clone(),
            address: config.tunnel.listen.ip().to_string(),
            dispatchers: config.dispatchers.iter().map(uri).collect(),
            client: Client::builder(TokioExecutor::new()).build(connector),
        }
    }

    /// Return the body of a heartbeat. All replicas have the same weight, because the load is relative to the capacity.
    pub(super) fn body(&self, load: f64, accepting: bool, rtts: Vec<Mean>) -> String {
        let body = Body {
            services: &self.services,
            address: self.address.clone(),
            load,
            weight: 1,
            accepting,
            ttl: TTL,
            rtts,
        };
        serde_json::to_string(&body).expect("plain data")
    }

    /// Send `body` to all dispatchers each second. Failures are counted in `missed`, and logged when a series of them begins and
    /// ends.
    pub(super) async fn run(&self, body: impl Fn() -> Bytes, missed: &AtomicU64) {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_failing = vec![false; self.dispatchers.len()];
        loop {
            ticks.tick().await;
            let body = body();
            let results = self
                .dispatchers
                .iter()
                .map(|to| self.send(Method::PUT, to, body.clone()));
            for ((to, is_failing), result) in self
                .dispatchers
                .iter()
                .zip(&mut is_failing)
                .zip(join_all(results).await)
            {
                missed.fetch_add(u64::from(result.is_err()), Relaxed);
                match &result {
                    Err(reason) if !*is_failing => {
                        tracing::warn!("{to}: heartbeat failed: {reason}")
                    }
                    Ok(()) if *is_failing => tracing::warn!("{to}: heartbeat accepted again"),
                    _ => {}
                }
                *is_failing = result.is_err();
            }
        }
    }

    /// Deregister the replica from all dispatchers.
    pub(super) async fn stop(&self) {
        let results = self
            .dispatchers
            .iter()
            .map(|to| self.send(Method::DELETE, to, Bytes::new()));
        join_all(results).await;
    }

    async fn send(&self, method: Method, to: &Uri, body: Bytes) -> Result<(), String> {
        let request = Request::builder().method(method).uri(to.clone());
        let request = request.header(header::CONTENT_TYPE, "application/json");
        let request = request
            .body(Full::new(body))
            .map_err(|error| error.to_string())?;
        match timeout(INTERVAL, self.client.request(request)).await {
            Ok(Ok(answer)) if answer.status().is_success() => Ok(()),
            Ok(Ok(answer)) => Err(format!("status {}", answer.status())),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("no response".into()),
        }
    }
}
