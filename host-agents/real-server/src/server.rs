//! The server: the endpoint that balancers dial, and how it ends.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use frontage_cclb7_quic::log::Log;
use frontage_cclb7_quic::routes::Routes;
use frontage_daemon::metrics::{registry, serve};
use frontage_daemon::process::raise_open_file_limit;
use frontage_handoff::link;
use frontage_quic::meter::Loads;
use noq::congestion::ControllerFactory;
use noq::{Endpoint, VarInt};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::config::Config;
use crate::cookies::Cookies;
use crate::granted::Granted;
use crate::metrics::Metrics;
use crate::sources::Sources;
use crate::{grant, origin};

/// How often it is looked whether all answers have ended.
const LOOK: Duration = Duration::from_millis(50);

/// What all exchanges need.
pub struct Shared {
    /// Who answers.
    pub routes: Routes,
    /// What is counted.
    pub metrics: Metrics,
    /// What is written down.
    pub log: Log,
    /// What sends.
    pub sources: Sources,
    /// Of balancers.
    pub cookies: Option<Cookies>,
    /// What it may not be granted again.
    pub granted: Granted,
    /// How fast.
    pub congestion: Arc<dyn ControllerFactory + Send + Sync>,
    /// Tells that the server is to end.
    pub ending: watch::Receiver<bool>,
}

/// A server that runs.
pub struct Server {
    endpoint: Endpoint,
    shared: Arc<Shared>,
    ending: watch::Sender<bool>,
    drain: Duration,
}

impl Server {
    /// Starts what `config` says. To be called within a Tokio runtime.
    pub async fn start(config: Config) -> Result<Self> {
        raise_open_file_limit();
        let at = config.listen;
        let endpoint = Endpoint::server(config.tls().server()?, at)
            .with_context(|| format!("cannot listen at UDP {at}"))?;
        let (ending, end) = watch::channel(false);
        let routes = config.routes.iter().map(toml::Spanned::get_ref);
        let shared = Arc::new(Shared {
            routes: Routes::new(routes, None),
            metrics: Metrics::new(Arc::new(Loads::new(0))),
            log: Log::open(config.access_log.as_deref())?,
            sources: Sources::default(),
            cookies: config.cookie.as_ref().map(Cookies::load).transpose()?,
            granted: Granted::default(),
            congestion: config.congestion.factory(),
            ending: end,
        });
        if let Some(address) = config.metrics {
            let listener = TcpListener::bind(address).await;
            let listener = listener
                .with_context(|| format!("cannot listen at TCP {address} for Prometheus"))?;
            let shared = shared.clone();
            let registry = registry("frontage_real_server", move |families| {
                shared.metrics.collect(families)
            });
            tokio::spawn(serve(listener, registry));
        }
        if let Some(address) = config.origin {
            let listener = TcpListener::bind(address).await;
            let listener =
                listener.with_context(|| format!("cannot listen at TCP {address} for HTTP"))?;
            tokio::spawn(origin::serve(listener, shared.clone()));
        }
        let of_each = shared.clone();
        tokio::spawn(link::serve(
            endpoint.clone(),
            config.balancers,
            shared.metrics.strangers.clone(),
            move |outbox, inbox| grant::serve(of_each.clone(), outbox, inbox),
        ));
        Ok(Self {
            endpoint,
            shared,
            ending,
            drain: Duration::from_secs(config.drain_seconds),
        })
    }

    /// Reads the cookies' keys again; grants go on. Nothing changes if there is an error.
    pub fn reload(&self) -> Result<()> {
        let cookies = self.shared.cookies.as_ref();
        cookies.map_or(Ok(()), Cookies::reload)
    }

    /// Serves until `end` is ready; then takes no more requests, and lets answers end for as long as the configuration says.
    pub async fn run(&self, end: impl Future<Output = ()>) {
        end.await;
        self.ending.send_replace(true);
        let idle = async {
            while self.shared.metrics.loads.n_af() > 0 {
                tokio::time::sleep(LOOK).await;
            }
        };
        let _ = tokio::time::timeout(self.drain, idle).await;
        self.endpoint.close(VarInt::from_u32(0), b"the server ends");
        let _ = tokio::time::timeout(Duration::from_secs(1), self.endpoint.wait_idle()).await;
    }
}
