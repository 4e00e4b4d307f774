// SPDX-License-Identifier: Apache-2.0
//! The server: the endpoint for balancers, key reload, and graceful shutdown.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use frontage_daemon::metrics::{registry, serve};
use frontage_daemon::process::raise_open_file_limit;
use frontage_handoff::link;
use frontage_http::access_log::AccessLog;
use frontage_http::routes::Routes;
use frontage_quic::meter::Loads;
use noq::{Endpoint, VarInt};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::config::Config;
use crate::cookies::Cookies;
use crate::delegates::Delegates;
use crate::metrics::Metrics;
use crate::replay_guard::ReplayGuard;
use crate::shared::Shared;
use crate::{origin, session};

/// Interval at which shutdown checks whether all responses have ended.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// A running server.
pub struct Server {
    endpoint: Endpoint,
    shared: Arc<Shared>,
    ending: watch::Sender<bool>,
    drain: Duration,
}

impl Server {
    /// Start the server. Must be called within a Tokio runtime.
    pub async fn start(config: Config) -> Result<Self> {
        raise_open_file_limit();
        let at = config.listen;
        let endpoint = Endpoint::server(config.tls().server()?, at)
            .with_context(|| format!("listen: cannot listen at UDP {at}"))?;
        let (ending, end) = watch::channel(false);
        let routes = config.routes.iter().map(toml::Spanned::get_ref);
        let shared = Arc::new(Shared {
            routes: Routes::new(routes, |_| unreachable!("checked by config::load")),
            metrics: Metrics::new(Arc::new(Loads::new(0))),
            log: AccessLog::open(config.access_log.as_deref())?,
            delegates: Delegates::default(),
            cookies: config.cookie.as_ref().map(Cookies::load).transpose()?,
            replay_guard: ReplayGuard::default(),
            congestion: config.congestion,
            ending: end,
        });
        if let Some(address) = config.metrics {
            let listener = TcpListener::bind(address).await;
            let listener =
                listener.with_context(|| format!("metrics: cannot listen at TCP {address}"))?;
            let shared = shared.clone();
            let registry = registry("frontage_real_server", move |families| {
                shared.metrics.collect(families)
            });
            tokio::spawn(serve(listener, registry));
        }
        if let Some(address) = config.origin {
            let listener = TcpListener::bind(address).await;
            let listener =
                listener.with_context(|| format!("origin: cannot listen at TCP {address}"))?;
            tokio::spawn(origin::serve(listener, shared.clone()));
        }
        let state = shared.clone();
        tokio::spawn(link::serve(
            endpoint.clone(),
            config.balancers,
            shared.metrics.rejected_links.clone(),
            move |outbox, inbox| session::serve(state.clone(), outbox, inbox),
        ));
        Ok(Self {
            endpoint,
            shared,
            ending,
            drain: Duration::from_secs(config.drain_seconds),
        })
    }

    /// Reload the cookie keys. Delegations continue.
    ///
    /// # Errors
    /// If the file is invalid. Nothing has changed then.
    pub fn reload(&self) -> Result<()> {
        let cookies = self.shared.cookies.as_ref();
        cookies.map_or(Ok(()), Cookies::reload)
    }

    /// Serve until `end` completes. Then reject requests, and wait for responses to end for at most the configured time.
    pub async fn run(&self, end: impl Future<Output = ()>) {
        end.await;
        self.ending.send_replace(true);
        let idle = async {
            while self.shared.metrics.loads.n_af() > 0 {
                tokio::time::sleep(IDLE_CHECK_INTERVAL).await;
            }
        };
        let _ = tokio::time::timeout(self.drain, idle).await;
        self.endpoint.close(VarInt::from_u32(0), b"server shutdown");
        let _ = tokio::time::timeout(Duration::from_secs(1), self.endpoint.wait_idle()).await;
    }
}
