// SPDX-License-Identifier: Apache-2.0
//! The server: its endpoints, configuration reload, and graceful shutdown.

use std::net::{SocketAddr, SocketAddrV6};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context as _, Result};
use frontage_daemon::metrics;
use frontage_handoff::delegator::Delegator;
use frontage_http::access_log::AccessLog;
use frontage_http::config::load_keys;
use frontage_http::routes::Routes;
use frontage_quic::keys::Keys;
use frontage_quic::meter::{Loads, Meter};
use frontage_quic::migration::PathTable;
use frontage_quic::session;
use frontage_quic::socket::join_address;
use noq::Endpoint;
use noq::crypto::rustls::QuicServerConfig;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::artemis::Artemis;
use crate::config::Config;
use crate::connection::{self, no_error};
use crate::exchange::Shared;
use crate::handoff::{Pool, RealServers};
use crate::metrics::Metrics;
use crate::tls;

mod accept;
mod endpoints;

/// A running server.
pub struct Server {
    config: Config,
    endpoints: Vec<Endpoint>,
    /// Where clients are, for all endpoints.
    path_table: Arc<PathTable>,
    artemis: Option<Arc<Artemis>>,
    servers: Option<Arc<RealServers>>,
    keys: Option<Arc<Keys>>,
    shared: Arc<Shared>,
    ending: watch::Sender<bool>,
    /// The endpoints' first configuration. Later ones keep its secret, so that tokens of Retry packets remain valid.
    first_config: OnceLock<noq::ServerConfig>,
}

impl Server {
    /// Start the server. Must be called within a Tokio runtime.
    pub async fn start(config: Config) -> Result<Self> {
        let look_ahead = config
            .cookie
            .as_ref()
            .map(|cookie| cookie.look_ahead)
            .unwrap_or_default();
        let loads = Arc::new(Loads::new(look_ahead.0));
        let keys = match &config.cookie {
            Some(cookie) => {
                let file = cookie.keys.get_ref();
                let keys = Keys::new(cookie.sid, load_keys(file)?);
                Some(Arc::new(keys.with_context(|| file.display().to_string())?))
            }
            None => None,
        };
        let path_table = Arc::<PathTable>::default();
        let artemis = match (&config.artemis, &config.cookie) {
            (Some(artemis), Some(cookie)) => {
                let identity = (cookie.sid, cookie.port);
                Some(Arc::new(Artemis::new(
                    artemis.get_ref(),
                    identity,
                    loads.clone(),
                    path_table.clone(),
                )?))
            }
            _ => None,
        };
        let (endpoints, counts) = endpoints::open(
            &config,
            keys.as_ref(),
            artemis.as_deref(),
            &loads,
            &path_table,
        )?;
        let servers = match &config.handoff {
            Some(handoff) => Some(Arc::new(RealServers::dial(handoff.get_ref())?)),
            None => None,
        };
        let metrics = Arc::new(Metrics::new(
            loads.clone(),
            counts,
            path_table.clone(),
            keys.clone(),
            artemis.clone(),
            servers.clone(),
        ));
        if let Some(address) = config.metrics {
            let listener = tokio::net::TcpListener::bind(address).await;
            let listener =
                listener.with_context(|| format!("metrics: cannot listen at TCP {address}"))?;
            let metrics = metrics.clone();
            let registry = metrics::registry("frontage_cclb7_quic", move |families| {
                metrics.collect(families)
            });
            tokio::spawn(metrics::serve(listener, registry));
        }
        let log = AccessLog::open(config.access_log.as_deref())?;
        let routes = config.routes.iter().map(toml::Spanned::get_ref);
        let routes = Routes::new(routes, |choice| {
            let servers = servers.as_ref().expect("checked by config::load");
            Pool::new(servers.clone(), choice)
        });
        let shared = Arc::new(Shared {
            routes,
            loads,
            metrics,
            log,
        });
        let server = Self {
            config,
            endpoints,
            path_table,
            artemis,
            servers,
            keys,
            shared,
            ending: watch::Sender::new(false),
            first_config: OnceLock::new(),
        };
        server.configure(server.load_tls()?)?;
        Ok(server)
    }

    /// Reload certificate and cookie keys. Connections continue.
    ///
    /// # Errors
    /// If a file is invalid. Nothing has changed then.
    pub fn reload(&self) -> Result<()> {
        let tls = self.load_tls()?;
        if let (Some(cookie), Some(keys)) = (&self.config.cookie, &self.keys) {
            let file = cookie.keys.get_ref();
            let rotated = keys.rotate(load_keys(file)?);
            rotated.with_context(|| file.display().to_string())?;
        }
        self.configure(tls)
    }

    fn load_tls(&self) -> Result<rustls::ServerConfig> {
        let (certificate, key) = (&self.config.certificate, &self.config.private_key);
        tls::load(certificate.get_ref(), key.get_ref())
    }

    /// Configure the endpoints for new connections: certificate, observers, and the preferred address of the newest key.
    fn configure(&self, tls: rustls::ServerConfig) -> Result<()> {
        let (loads, path_table) = (self.shared.loads.clone(), self.path_table.clone());
        let meter = move || Meter::new(loads.clone(), path_table.clone());
        let own = self.artemis.as_ref().map(|artemis| artemis.parameters());
        let own = own.unwrap_or_default();
        let crypto: Arc<dyn noq::crypto::ServerConfig> = if self.servers.is_some() {
            let delegator = move || Arc::new(Delegator::new(meter()));
            Arc::new(session::Config::server(tls, own, delegator)?)
        } else if self.keys.is_some() {
            Arc::new(session::Config::server(
                tls,
                own,
                move || Arc::new(meter()),
            )?)
        } else {
            Arc::new(QuicServerConfig::try_from(tls)?)
        };
        let initial = || noq::ServerConfig::with_crypto(crypto.clone());
        let mut config = self.first_config.get_or_init(initial).clone();
        config.crypto = crypto;
        if let Some(servers) = &self.servers {
            config.transport_config(Arc::new(servers.transport()));
        }
        for (endpoint, listen) in self.endpoints.iter().zip(&self.config.listen) {
            let mut config = config.clone();
            if listen.is_ipv6() {
                config.preferred_address_v6(self.preferred_address());
            }
            endpoint.set_server_config(Some(config));
        }
        Ok(())
    }

    /// Return the preferred address: cookie prefix and static cookie, at the service's port.
    fn preferred_address(&self) -> Option<SocketAddrV6> {
        let (cookie, keys) = self.config.cookie.as_ref().zip(self.keys.as_ref())?;
        let address = join_address(cookie.cookie_prefix.0, keys.static_interface_id());
        Some(SocketAddrV6::new(address, cookie.port, 0, 0))
    }

    /// Serve until `end` completes. Then send GOAWAY, and wait for requests to end for at most the configured time.
    pub async fn run(&self, end: impl Future<Output = ()>) {
        // Closed when the last connection ends.
        let (alive, mut all_closed) = mpsc::channel::<()>(1);
        let endpoints = self.endpoints.iter().zip(&self.config.listen);
        let accepting = endpoints
            .map(|(endpoint, listen)| self.accept(endpoint.clone(), *listen, alive.clone()));
        let accepting: JoinSet<()> = accepting.collect();
        let artemis = self.artemis.iter().cloned();
        let heartbeats: JoinSet<()> = artemis
            .map(|artemis| artemis.run(self.ending.subscribe()))
            .collect();
        end.await;
        drop((accepting, alive));
        let mut refusing = JoinSet::new();
        for endpoint in self.endpoints.iter().cloned() {
            match &self.artemis {
                None => endpoint.set_server_config(None),
                Some(artemis) => drop(refusing.spawn(artemis.clone().refuse_all(endpoint))),
            }
        }
        self.ending.send_replace(true);
        let drain_timeout = Duration::from_secs(self.config.drain_seconds);
        // Nothing is sent on the channel: this waits until the last sender is dropped.
        let _ = tokio::time::timeout(drain_timeout, all_closed.recv()).await;
        heartbeats.join_all().await;
        drop(refusing);
        for endpoint in &self.endpoints {
            endpoint.close(no_error(), b"server shutdown");
        }
        let _ = tokio::time::timeout(Duration::from_secs(1), async {
            for endpoint in &self.endpoints {
                endpoint.wait_idle().await;
            }
        })
        .await;
    }

    fn accept(
        &self,
        endpoint: Endpoint,
        listen: SocketAddr,
        alive: mpsc::Sender<()>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let cookie = self.config.cookie.as_ref().zip(self.keys.as_ref());
        let state = connection::Endpoint {
            listen,
            shared: self.shared.clone(),
            artemis: self.artemis.clone(),
            servers: self.servers.clone(),
            cookie_prefix: endpoints::cookie_prefix(listen, cookie, &self.shared.loads),
            ending: self.ending.subscribe(),
        };
        accept::run(
            endpoint,
            state,
            self.config.max_unvalidated_handshakes,
            alive,
        )
    }
}
