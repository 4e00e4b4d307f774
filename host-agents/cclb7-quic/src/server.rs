//! The server: endpoints, and how it ends.

use std::net::{SocketAddr, SocketAddrV6};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context as _, Result};
use frontage_handoff::lend::Lender;
use frontage_program::prometheus;
use frontage_quic::cid::Form;
use frontage_quic::keys::Keys;
use frontage_quic::meter::{Loads, Meter};
use frontage_quic::places::Places;
use frontage_quic::session;
use frontage_quic::socket::{Addresses, Carrier, Socket, Tunnel, address};
use noq::crypto::rustls::QuicServerConfig;
use noq::{AsyncUdpSocket, Endpoint, EndpointConfig, TokioRuntime};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;

use crate::artemis::Artemis;
use crate::artemis::socket::beside;
use crate::config::{Config, Cookie, load_keys};
use crate::connection::{self, no_error, serve};
use crate::exchange::Shared;
use crate::handoff::Servers;
use crate::log::Log;
use crate::metrics::Metrics;
use crate::routes::Routes;
use crate::tls;

/// A server that runs.
pub struct Server {
    config: Config,
    endpoints: Vec<Endpoint>,
    /// One for each endpoint.
    places: Arc<Places>,
    artemis: Option<Arc<Artemis>>,
    servers: Option<Arc<Servers>>,
    keys: Option<Arc<Keys>>,
    shared: Arc<Shared>,
    ending: watch::Sender<bool>,
    /// The endpoints' first configuration. Later ones have its secret, so that the tokens of its Retry packets stay good.
    first: OnceLock<noq::ServerConfig>,
}

impl Server {
    /// Starts what `config` says. To be called within a Tokio runtime.
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
        let cookie = config.cookie.as_ref().zip(keys.as_ref());
        let places = Arc::<Places>::default();
        let artemis = match (&config.artemis, &config.cookie) {
            (Some(artemis), Some(cookie)) => {
                let identity = (cookie.sid, cookie.port);
                Some(Arc::new(Artemis::new(
                    artemis.get_ref(),
                    identity,
                    loads.clone(),
                    places.clone(),
                )?))
            }
            _ => None,
        };
        let sockets = config.listen.iter().map(|listen| {
            let addresses = addresses(*listen, cookie, artemis.as_deref(), &loads, &places);
            Socket::bind(*listen, addresses)
                .with_context(|| format!("cannot listen at UDP {listen}"))
        });
        let sockets = sockets.collect::<Result<Vec<_>>>()?;
        let counts = sockets.iter().map(Socket::counts).collect();
        let sockets: Vec<Box<dyn AsyncUdpSocket>> = match &artemis {
            None => sockets
                .into_iter()
                .map(|socket| Box::new(socket) as _)
                .collect(),
            Some(artemis) => {
                let families = config.listen.iter().map(SocketAddr::is_ipv4);
                let sockets = families.zip(sockets).collect();
                let sockets = beside(&artemis.tunnel, &places, sockets).into_iter();
                sockets.map(|socket| Box::new(socket) as _).collect()
            }
        };
        let endpoints = config.listen.iter().zip(sockets);
        let endpoints = endpoints.map(|(listen, socket)| {
            open(*listen, cookie, socket).with_context(|| format!("cannot listen at UDP {listen}"))
        });
        let endpoints = endpoints.collect::<Result<_>>()?;
        let servers = match &config.handoff {
            Some(handoff) => Some(Arc::new(Servers::dial(handoff.get_ref())?)),
            None => None,
        };
        let metrics = Arc::new(Metrics::new(
            loads.clone(),
            counts,
            places.clone(),
            keys.clone(),
            artemis.clone(),
            servers.clone(),
        ));
        if let Some(address) = config.metrics {
            let listener = tokio::net::TcpListener::bind(address).await;
            let listener = listener
                .with_context(|| format!("cannot listen at TCP {address} for Prometheus"))?;
            let metrics = metrics.clone();
            tokio::spawn(prometheus::serve(listener, move || metrics.page()));
        }
        let log = Log::open(config.access_log.as_deref())?;
        let routes = config.routes.iter().map(toml::Spanned::get_ref);
        let routes = Routes::new(routes, servers.as_ref());
        let shared = Arc::new(Shared {
            routes,
            loads,
            metrics,
            log,
        });
        let server = Self {
            config,
            endpoints,
            places,
            artemis,
            servers,
            keys,
            shared,
            ending: watch::Sender::new(false),
            first: OnceLock::new(),
        };
        server.configure(server.load_tls()?)?;
        Ok(server)
    }

    /// Reads certificate and keys again; connections go on. Nothing changes if there is an error.
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

    /// Gives the endpoints what new connections are to have: certificate, with a cookie a meter, and the preferred address by the newest key.
    fn configure(&self, tls: rustls::ServerConfig) -> Result<()> {
        let (loads, places) = (self.shared.loads.clone(), self.places.clone());
        let meter = move || Meter::new(loads.clone(), places.clone());
        let own = self.artemis.as_ref().map(|artemis| artemis.parameters());
        let own = own.unwrap_or_default();
        let crypto: Arc<dyn noq::crypto::ServerConfig> = if self.servers.is_some() {
            let lender = move || Arc::new(Lender::new(meter()));
            Arc::new(session::Config::server(tls, own, lender)?)
        } else if self.keys.is_some() {
            Arc::new(session::Config::server(
                tls,
                own,
                move || Arc::new(meter()),
            )?)
        } else {
            Arc::new(QuicServerConfig::try_from(tls)?)
        };
        let first = || noq::ServerConfig::with_crypto(crypto.clone());
        let mut config = self.first.get_or_init(first).clone();
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

    /// `cookie prefix :: static cookie`, at the service's port.
    fn preferred_address(&self) -> Option<SocketAddrV6> {
        let (cookie, keys) = self.config.cookie.as_ref().zip(self.keys.as_ref())?;
        let address = address(cookie.cookie_prefix.0, keys.static_interface_id());
        Some(SocketAddrV6::new(address, cookie.port, 0, 0))
    }

    /// Serves until `end` is ready; then says goodbye (GOAWAY), and lets requests end for as long as the configuration says.
    pub async fn run(&self, end: impl Future<Output = ()>) {
        // Closed once the last connection is.
        let (alive, mut gone) = mpsc::channel::<()>(1);
        let endpoints = self.endpoints.iter().zip(&self.config.listen);
        let accepting = endpoints
            .map(|(endpoint, listen)| self.accept(endpoint.clone(), *listen, alive.clone()));
        let accepting: JoinSet<()> = accepting.collect();
        let artemis = self.artemis.iter().cloned();
        let living: JoinSet<()> = artemis
            .map(|artemis| artemis.live(self.ending.subscribe()))
            .collect();
        end.await;
        drop((accepting, alive));
        let mut turning_away = JoinSet::new();
        for endpoint in self.endpoints.iter().cloned() {
            match &self.artemis {
                None => endpoint.set_server_config(None),
                Some(artemis) => drop(turning_away.spawn(artemis.clone().turn_away(endpoint))),
            }
        }
        self.ending.send_replace(true);
        let patience = Duration::from_secs(self.config.drain_seconds);
        // Nothing is ever sent: this waits for the last sender to go.
        let _ = tokio::time::timeout(patience, gone.recv()).await;
        living.join_all().await;
        drop(turning_away);
        for endpoint in &self.endpoints {
            endpoint.close(no_error(), b"the server ends");
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
        let of = connection::Endpoint {
            listen,
            shared: self.shared.clone(),
            artemis: self.artemis.clone(),
            servers: self.servers.clone(),
            carrier: carrier(
                listen,
                self.config.cookie.as_ref().zip(self.keys.as_ref()),
                &self.shared.loads,
            ),
            ending: self.ending.subscribe(),
        };
        let unproven = Arc::new(Semaphore::new(
            self.config.unproven_handshakes.min(Semaphore::MAX_PERMITS),
        ));
        async move {
            while let Some(incoming) = endpoint.accept().await {
                let incoming = match &of.artemis {
                    None => incoming,
                    Some(artemis) => match artemis.admit(incoming) {
                        Some(incoming) => incoming,
                        None => continue,
                    },
                };
                let metrics = of.shared.metrics.clone();
                let place = match unproven.clone().try_acquire_owned() {
                    _ if incoming.remote_address_validated() => None,
                    Ok(place) => Some(place),
                    Err(_) => {
                        // It is never refused to an address that is not validated.
                        let _ = incoming.retry();
                        metrics.retries.fetch_add(1, Relaxed);
                        continue;
                    }
                };
                let (of, alive) = (of.clone(), alive.clone());
                tokio::spawn(async move {
                    if serve(of, incoming, place).await.is_err() {
                        metrics.failed_handshakes.fetch_add(1, Relaxed);
                    }
                    drop(alive);
                });
            }
        }
    }
}

/// What a socket at `listen` answers from; over IPv6 its packets carry signals.
fn addresses(
    listen: SocketAddr,
    cookie: Option<(&Cookie, &Arc<Keys>)>,
    artemis: Option<&Artemis>,
    loads: &Arc<Loads>,
    places: &Arc<Places>,
) -> Option<Addresses> {
    let carrier = carrier(listen, cookie, loads);
    let tunnel = artemis.map(|artemis| artemis.tunnel.clone() as Arc<dyn Tunnel>);
    (carrier.is_some() || tunnel.is_some()).then(|| Addresses {
        places: places.clone(),
        carrier,
        tunnel,
    })
}

/// What the sources of packets from `listen` are made of: over IPv6, cookies.
fn carrier(
    listen: SocketAddr,
    cookie: Option<(&Cookie, &Arc<Keys>)>,
    loads: &Arc<Loads>,
) -> Option<Carrier> {
    let (cookie, keys) = cookie.filter(|_| listen.is_ipv6())?;
    Some(Carrier {
        prefix: cookie.server_prefix.0,
        keys: keys.clone(),
        loads: loads.clone(),
        bandwidth: cookie.bandwidth.0,
    })
}

/// An endpoint over `socket`, whose connection ids name the server.
fn open(
    listen: SocketAddr,
    cookie: Option<(&Cookie, &Arc<Keys>)>,
    socket: Box<dyn AsyncUdpSocket>,
) -> std::io::Result<Endpoint> {
    let config = cookie.map_or_else(EndpointConfig::default, |(cookie, keys)| {
        let sid_v4 = cookie.sid_v4.filter(|_| listen.is_ipv4());
        Form::sealed(keys.clone(), sid_v4.unwrap_or(cookie.sid)).endpoint_config()
    });
    Endpoint::new_with_abstract_socket(config, None, socket, Arc::new(TokioRuntime))
}
