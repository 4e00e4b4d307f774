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
use frontage_quic::announce::Announced;
use frontage_quic::keys::Keys;
use frontage_quic::meter::{Loads, Meter};
use frontage_quic::migration::PathTable;
use frontage_quic::min_rtt::KeepMinRtt;
use frontage_quic::pacing::InitialBurst;
use frontage_quic::session;
use frontage_quic::socket::join_address;
use noq::congestion::{Bbr3Config, ControllerFactory, CubicConfig};
use noq::{BloomTokenLog, Endpoint, TransportConfig, ValidationTokenConfig};
use rustls::server::{ServerSessionMemoryCache, StoresServerSessions};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::artemis::Artemis;
use crate::config::{Config, Congestion};
use crate::connection::{self, no_error};
use crate::exchange::Shared;
use crate::handoff::{Pool, RealServers};
use crate::metrics::Metrics;
use crate::moves::{CookieAddress, Moves};
use crate::tls;

mod accept;
mod endpoints;

/// Sessions that clients can resume. The oldest ones are forgotten first.
const MAX_SESSIONS: usize = 1 << 16;
/// Time for which a token of a NEW_TOKEN frame validates its client's address (RFC 9000, section 8.1.3): as long as rustls's
/// session tickets, with which clients use it.
const TOKEN_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// Tokens for each validated path of a client: as many as rustls sends session tickets, because a client uses one of each.
const TOKENS: u32 = 2;
/// Assumed round-trip time until the first acknowledgment. If the first packets of a handshake are lost, the server repeats them
/// after three times as long. RFC 9002, section 6.2.2, recommends 333 ms, with which one lost datagram delays a client by a second.
/// A client that is farther away gets these packets twice, within the limit of three times the bytes that it has sent.
const INITIAL_RTT: Duration = Duration::from_millis(100);

/// A running server.
pub struct Server {
    config: Config,
    endpoints: Vec<Endpoint>,
    /// Where clients are, for all endpoints.
    path_table: Arc<PathTable>,
    artemis: Option<Arc<Artemis>>,
    servers: Option<Arc<RealServers>>,
    moves: Option<Arc<Moves>>,
    keys: Option<Arc<Keys>>,
    shared: Arc<Shared>,
    ending: watch::Sender<bool>,
    /// Sessions that clients may resume with early data; none if the configuration does not permit it.
    sessions: Option<Arc<dyn StoresServerSessions>>,
    /// The endpoints' first configuration. Later ones keep its secret and the log of used tokens, so that tokens remain valid,
    /// but only once.
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
        let moves = match &config.moves {
            Some(moves) => {
                let cookie = config.cookie.as_ref().map(|cookie| CookieAddress {
                    prefix: cookie.cookie_prefix,
                    port: cookie.port,
                });
                let moves = moves.get_ref().clone();
                Some(Arc::new(Moves::new(moves, keys.clone(), cookie)?))
            }
            None => None,
        };
        let metrics = Arc::new(Metrics::new(
            loads.clone(),
            counts,
            path_table.clone(),
            keys.clone(),
            artemis.clone(),
            servers.clone(),
            moves.clone(),
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
        let sessions = config
            .early_data
            .then(|| ServerSessionMemoryCache::new(MAX_SESSIONS) as Arc<dyn StoresServerSessions>);
        let server = Self {
            config,
            sessions,
            endpoints,
            path_table,
            artemis,
            servers,
            moves,
            keys,
            shared,
            ending: watch::Sender::new(false),
            first_config: OnceLock::new(),
        };
        server.configure(server.load_tls()?)?;
        Ok(server)
    }

    /// Reload certificate, cookie keys and the order file. Connections continue.
    ///
    /// # Errors
    /// If a file is invalid. The settings of this file, and of those after it, have not changed then.
    pub fn reload(&self) -> Result<()> {
        let tls = self.load_tls()?;
        if let (Some(cookie), Some(keys)) = (&self.config.cookie, &self.keys) {
            let file = cookie.keys.get_ref();
            let rotated = keys.rotate(load_keys(file)?);
            rotated.with_context(|| file.display().to_string())?;
        }
        self.configure(tls)?;
        self.moves.as_ref().map_or(Ok(()), |moves| moves.reload())
    }

    fn load_tls(&self) -> Result<rustls::ServerConfig> {
        let (certificate, key) = (&self.config.certificate, &self.config.private_key);
        tls::load(certificate.get_ref(), key.get_ref(), self.sessions.clone())
    }

    /// Configure the endpoints for new connections: certificate, observers, and the preferred address of the newest key.
    fn configure(&self, tls: rustls::ServerConfig) -> Result<()> {
        let (loads, path_table) = (self.shared.loads.clone(), self.path_table.clone());
        let meter = move || Meter::new(loads.clone(), path_table.clone());
        let own = self.artemis.as_ref().map(|artemis| artemis.parameters());
        let own = own.unwrap_or_default();
        let crypto: Arc<dyn noq::crypto::ServerConfig> = if self.servers.is_some() {
            let delegator = move || Arc::new(Announced::new(Delegator::new(meter())));
            Arc::new(session::Config::server(tls, own, delegator)?)
        } else if self.keys.is_some() || self.moves.is_some() {
            let announced = move || Arc::new(Announced::new(meter()));
            Arc::new(session::Config::server(tls, own, announced)?.with_rare_acks())
        } else {
            Arc::new(session::Config::server(tls, own, Arc::<()>::default)?.with_rare_acks())
        };
        let initial = || with_tokens(noq::ServerConfig::with_crypto(crypto.clone()));
        let mut config = self.first_config.get_or_init(initial).clone();
        config.crypto = crypto;
        let mut transport = match &self.servers {
            Some(servers) => servers.transport(),
            None => TransportConfig::default(),
        };
        transport.initial_rtt(INITIAL_RTT);
        match self.config.congestion {
            Congestion::Cubic => use_controllers(&mut transport, CubicConfig::default()),
            Congestion::Bbr => use_controllers(&mut transport, Bbr3Config::default()),
        }
        config.transport_config(Arc::new(transport));
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
            moves: self.moves.clone(),
            drain_timeout: Duration::from_secs(self.config.drain_seconds),
            cookie_prefix: endpoints::cookie_prefix(listen, cookie, &self.shared.loads),
            early_data: self.config.early_data,
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

/// Use `controllers`, let bursts be as long as the initial congestion window, and keep the minimum round-trip time.
fn use_controllers<F>(transport: &mut TransportConfig, controllers: F)
where
    F: ControllerFactory + Send + Sync + 'static,
{
    let controllers = Arc::new(InitialBurst::new(controllers));
    transport.congestion_controller_factory(Arc::new(KeepMinRtt::new(controllers)));
}

/// Send clients tokens that validate their address on later connections, each once (RFC 9000, section 8.1.3).
fn with_tokens(mut config: noq::ServerConfig) -> noq::ServerConfig {
    let mut tokens = ValidationTokenConfig::default();
    tokens
        .lifetime(TOKEN_LIFETIME)
        .sent(TOKENS)
        .log(Arc::new(BloomTokenLog::default()));
    config.validation_token_config(tokens);
    config
}
