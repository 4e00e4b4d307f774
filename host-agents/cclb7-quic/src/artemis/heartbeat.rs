//! What dispatchers hear of a replica each second: `PUT /replicas/{sid}`, and `DELETE` when it ends (docs/dispatcher.md).

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

const PERIOD: Duration = Duration::from_secs(1);
/// Seconds after which a dispatcher that hears nothing takes the replica for gone.
const TTL: u32 = 3;

/// `PUT /replicas/{sid}`.
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

pub(super) struct Heart {
    services: Vec<String>,
    address: String,
    dispatchers: Vec<Uri>,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Heart {
    pub(super) fn new(config: &Artemis, sid: u16) -> Self {
        let uri = |dispatcher: &Uri| {
            let mut parts = dispatcher.clone().into_parts();
            parts.path_and_query = format!("/replicas/{sid}").parse().ok();
            Uri::from_parts(parts).expect("an origin and a path")
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

    /// One heartbeat. Every replica weighs the same: how much it can take is in its load.
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
        serde_json::to_string(&body).expect("texts and numbers")
    }

    /// Tells every dispatcher what `body` says, each second. One that does not take it is counted in `missed`, and told of on the standard
    /// error when it begins and ends.
    pub(super) async fn beat(&self, body: impl Fn() -> Bytes, missed: &AtomicU64) {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut silent = vec![false; self.dispatchers.len()];
        loop {
            ticks.tick().await;
            let body = body();
            let told = self
                .dispatchers
                .iter()
                .map(|to| self.ask(Method::PUT, to, body.clone()));
            for ((to, silent), told) in self
                .dispatchers
                .iter()
                .zip(&mut silent)
                .zip(join_all(told).await)
            {
                missed.fetch_add(u64::from(told.is_err()), Relaxed);
                match &told {
                    Err(reason) if !*silent => {
                        tracing::warn!("dispatcher {to}: {reason}: still sending heartbeats")
                    }
                    Ok(()) if *silent => {
                        tracing::info!("dispatcher {to}: accepts heartbeats again")
                    }
                    _ => {}
                }
                *silent = told.is_err();
            }
        }
    }

    /// Tells every dispatcher that there will be no more.
    pub(super) async fn stop(&self) {
        let told = self
            .dispatchers
            .iter()
            .map(|to| self.ask(Method::DELETE, to, Bytes::new()));
        join_all(told).await;
    }

    async fn ask(&self, method: Method, to: &Uri, body: Bytes) -> Result<(), String> {
        let request = Request::builder().method(method).uri(to.clone());
        let request = request.header(header::CONTENT_TYPE, "application/json");
        let request = request
            .body(Full::new(body))
            .map_err(|error| error.to_string())?;
        match timeout(PERIOD, self.client.request(request)).await {
            Ok(Ok(answer)) if answer.status().is_success() => Ok(()),
            Ok(Ok(answer)) => Err(format!("answers {}", answer.status())),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("does not answer".into()),
        }
    }
}
