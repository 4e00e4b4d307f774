// SPDX-License-Identifier: Apache-2.0
//! HTTP/3 connections and requests.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::{Buf as _, Bytes};
use frontage_quic::h3::{BidiStream, Connection, Opener};
use frontage_quic::relocate::{self, Relocator};
use h3::client::{RequestStream, SendRequest};
use h3::error::{Code, StreamError};
use http::{Request, Uri};
use noq::crypto::rustls::QuicClientConfig;
use noq::{
    ClientConfig, Endpoint, EndpointConfig, TokioRuntime, TransportConfig, VarInt, ZeroRttAccepted,
};
use tokio::time::timeout;

use crate::moves::{self, MoveCounts};
use crate::observer::{ClientObserver, peer_parameters};
use crate::preferred_address::find_preferred;
use crate::socket::Socket;
use crate::tls::Trust;
use crate::{Error, preferred_address};

mod multipath;
mod proxied;
mod roaming;

pub use proxied::Migration;
pub use roaming::Roaming;

/// Time without a byte after which a request has failed: far longer than a few retransmission timeouts.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for telling the server that the connection is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// An `https` URL.
#[derive(Clone, Debug)]
pub struct Url {
    /// The parsed URL.
    pub uri: Uri,
    /// Host, without the brackets of an IPv6 address.
    pub host: String,
    /// Port, 443 by default.
    pub port: u16,
}

impl Url {
    /// Parses `url`.
    ///
    /// # Errors
    /// Returns an error if `url` is not an `https` URL with a host.
    pub fn new(url: &str) -> Result<Self> {
        let invalid = || {
            format!(
                "invalid URL {url:?}: use https://host:port/path, with brackets around an IPv6 address"
            )
        };
        let uri: Uri = url.parse().with_context(invalid)?;
        let host = uri
            .host()
            .filter(|_| uri.scheme_str() == Some("https"))
            .with_context(invalid)?;
        let host = host.trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(443);
        Ok(Self { uri, host, port })
    }

    /// Resolves the host with getaddrinfo(3).
    ///
    /// # Errors
    /// Returns an error if the host has no address.
    pub async fn resolve(&self) -> Result<SocketAddr> {
        let host = &self.host;
        let addresses = tokio::net::lookup_host((host.as_str(), self.port)).await;
        let address = addresses
            .with_context(|| format!("cannot resolve host {host}"))?
            .next();
        address.with_context(|| format!("host {host} has no address"))
    }

    /// Combines this URL with the address of its host.
    pub fn at(self, address: SocketAddr) -> Target {
        Target {
            uri: self.uri,
            address,
            host: self.host,
        }
    }
}

/// A URL and the address of its host.
#[derive(Clone, Debug)]
pub struct Target {
    /// The parsed URL.
    pub uri: Uri,
    /// Address of the host, the first if there are several.
    pub address: SocketAddr,
    /// Host, without the brackets of an IPv6 address.
    host: String,
}

impl Target {
    /// Parses `url` and resolves its host.
    ///
    /// # Errors
    /// Returns an error if the URL is invalid or the host has no address.
    pub async fn new(url: &str) -> Result<Self> {
        let url = Url::new(url)?;
        let address = url.resolve().await?;
        Ok(url.at(address))
    }

    /// Returns true if a connection to `other` can serve this target.
    pub fn can_share_connection(&self, other: &Self) -> bool {
        (self.address, &self.host) == (other.address, &other.host)
    }
}

/// Options that say what to download and where to put it.
#[derive(Debug, clap::Args)]
pub struct Files {
    /// URLs to download. For `get`, consecutive URLs with the same host and port share a connection. For `page`, the first is
    /// the page and the others are its objects, all with the same host and port
    #[arg(required = true, value_name = "URL")]
    pub urls: Vec<String>,
    /// Directory for the downloaded files, each named by the last segment of its path; without it, files are discarded
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// Options that all commands share.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub trust: Trust,
    /// Migrate to the server's preferred address, if it has one (RFC 9000, section 9.6), without validating the path first
    #[arg(long)]
    pub follow: bool,
    /// Migrate with the packet that completes the handshake (Artemis, section 3.5), rather than after confirmation
    #[arg(skip)]
    pub migrate_early: bool,
    /// Open a new connection for each URL, and send its request with the first packet if an earlier connection got a session
    /// ticket (RFC 9001, section 4.6). If the server rejects it, the request is repeated
    #[arg(long, conflicts_with_all = ["follow", "paths"])]
    pub early_data: bool,
    /// Follow the server when it announces another address during a connection, or the server of the next connection
    /// (docs/moves.md)
    #[arg(long, conflicts_with = "paths")]
    pub moves: bool,
    /// Number of paths to open before the first request (draft-ietf-quic-multipath), all between the same addresses
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub paths: u32,
}

/// Opens connections.
#[derive(Clone)]
pub struct Client {
    config: ClientConfig,
    transport: Arc<TransportConfig>,
    /// TLS configuration of connections whose observer has their socket or a relocator.
    observed_tls: Option<rustls::ClientConfig>,
    migrate_early: bool,
    follows: bool,
    follow_moves: bool,
    paths: u32,
    /// Effects of the servers' announcements.
    moves: Arc<MoveCounts>,
}

impl Client {
    /// Creates a client that sends a PING when a connection was idle for `keep_alive`, or never.
    ///
    /// # Errors
    /// Returns an error if the CA certificates cannot be read.
    pub fn new(options: &Options, keep_alive: Option<Duration>) -> Result<Self> {
        let mut tls = options.trust.config()?;
        tls.enable_early_data = options.early_data;
        let observed_tls = (options.migrate_early || options.moves).then(|| tls.clone());
        let mut config = if options.follow {
            let observer = ClientObserver::default();
            ClientConfig::new(Arc::new(observer.tls_session(tls)?))
        } else {
            ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?))
        };
        let mut transport = TransportConfig::default();
        transport.keep_alive_interval(keep_alive);
        if options.paths > 1 {
            transport.max_concurrent_multipath_paths(options.paths);
        }
        if options.moves {
            // The packets of a path validation go to one address, those before and after them to another.
            transport.enable_segmentation_offload(false);
            transport.initial_mtu(relocate::MIN_MTU);
        }
        let transport = Arc::new(transport);
        config.transport_config(transport.clone());
        Ok(Self {
            config,
            transport,
            observed_tls,
            migrate_early: options.migrate_early,
            follows: options.follow,
            follow_moves: options.moves,
            paths: options.paths,
            moves: Arc::default(),
        })
    }

    /// Returns the effects of the servers' announcements, if the client follows them.
    pub fn moves(&self) -> Option<&MoveCounts> {
        self.follow_moves.then_some(&*self.moves)
    }

    fn config_for(
        &self,
        socket: &Socket,
        relocator: Option<&Relocator>,
    ) -> Result<ClientConfig, Error> {
        let Some(tls) = &self.observed_tls else {
            return Ok(self.config.clone());
        };
        let observer = ClientObserver {
            early: self.migrate_early.then(|| socket.clone()),
            relocator: relocator.cloned(),
        };
        let session = observer.tls_session(tls.clone())?;
        let mut config = ClientConfig::new(Arc::new(session));
        config.transport_config(self.transport.clone());
        Ok(config)
    }

    /// Opens a connection and returns when its handshake is complete.
    ///
    /// # Errors
    /// Returns why the handshake failed.
    pub async fn connect(&self, target: &Target) -> Result<Session, Error> {
        self.open(target, false).await
    }

    /// Opens a connection and returns at once if the client has a session ticket, or else when the handshake is complete.
    ///
    /// # Errors
    /// Returns why the handshake failed.
    pub async fn connect_early(&self, target: &Target) -> Result<Session, Error> {
        self.open(target, true).await
    }

    async fn open(&self, target: &Target, early_data: bool) -> Result<Session, Error> {
        let socket = Socket::new(target.address)?;
        let endpoint = Endpoint::new_with_abstract_socket(
            EndpointConfig::default(),
            None,
            Box::new(socket.clone()),
            Arc::new(TokioRuntime),
        )?;
        let relocator = self.follow_moves.then(Relocator::default);
        let config = self.config_for(&socket, relocator.as_ref())?;
        let connecting = endpoint.connect_with(config, target.address, &target.host)?;
        let connecting = match early_data {
            true => connecting.into_0rtt(),
            false => Err(connecting),
        };
        let (quic, early_data) = match connecting {
            Ok((quic, accepted)) => (quic, Some(accepted)),
            Err(connecting) => (connecting.await?, None),
        };
        let parameters = peer_parameters(&quic).filter(|_| self.follows);
        let preferred = parameters
            .as_ref()
            .and_then(|parameters| find_preferred(parameters, target.address));
        if let Some(address) = preferred.filter(|address| *address != target.address) {
            let (endpoint, socket) = (endpoint.clone(), socket.clone());
            tokio::task::spawn_local(preferred_address::migrate(
                endpoint,
                quic.clone(),
                socket,
                address,
            ));
        }
        if let Some(relocator) = relocator.clone() {
            let (endpoint, socket) = (endpoint.clone(), socket.clone());
            let counts = self.moves.clone();
            tokio::task::spawn_local(moves::follow(
                endpoint,
                quic.clone(),
                socket,
                relocator,
                counts,
            ));
        }
        multipath::open_paths(&quic, target.address, self.paths).await?;
        let session = Session::new(endpoint, quic, socket).await?;
        Ok(Session {
            preferred,
            early_data,
            relocator,
            ..session
        })
    }
}

/// An HTTP/3 connection. `T` is what its packets use: a [`Socket`], or a [`Migration`] if it started at a proxy.
pub struct Session<T = Socket> {
    endpoint: Endpoint,
    quic: noq::Connection,
    transport: T,
    requests: SendRequest<Opener, Bytes>,
    preferred: Option<SocketAddr>,
    /// Resolves when the handshake is complete; none if it was complete before the first request.
    early_data: Option<ZeroRttAccepted>,
    /// Set if the client follows the server's announcements.
    relocator: Option<Relocator>,
}

impl<T> Session<T> {
    /// Starts HTTP/3 on a connection.
    async fn new(endpoint: Endpoint, quic: noq::Connection, transport: T) -> Result<Self, Error> {
        let mut builder = h3::client::builder();
        // nginx as a proxy (1.26) treats a stream that ends with a grease frame as aborted.
        builder.send_grease(false);
        let built = builder.build(Connection::new(quic.clone())).await;
        let (mut driver, requests) = built.map_err(|error| connection_error(&quic, error))?;
        tokio::task::spawn_local(async move { driver.wait_idle().await });
        Ok(Self {
            endpoint,
            quic,
            transport,
            requests,
            preferred: None,
            early_data: None,
            relocator: None,
        })
    }

    /// Waits until the handshake is complete. Returns whether the server accepted early data; `None` if the client sent none, or
    /// an earlier call returned the result.
    pub async fn accepted_early_data(&mut self) -> Option<bool> {
        Some(self.early_data.take()?.await)
    }

    /// Sends a GET request and returns when the response header has arrived.
    ///
    /// # Errors
    /// Returns why the connection or the request failed.
    pub async fn get(&self, uri: &Uri) -> Result<Response, Error> {
        let request = Request::get(uri)
            .header(http::header::USER_AGENT, "frontage-h3-client")
            .body(())?;
        // A separate handle, so that requests can run concurrently.
        let mut requests = self.requests.clone();
        let response = async {
            let mut stream = requests.send_request(request).await?;
            stream.finish().await?;
            let head = stream.recv_response().await?;
            Ok::<_, StreamError>((head, stream))
        };
        let (head, stream) = with_timeout(&self.quic, response).await?;
        Ok(Response {
            head,
            stream,
            quic: self.quic.clone(),
        })
    }

    /// Returns true if the connection is closed, by either side.
    pub fn is_closed(&self) -> bool {
        self.quic.close_reason().is_some()
    }

    /// Closes the connection and waits until the close was sent.
    pub async fn close(self) {
        let code =
            VarInt::from_u64(Code::H3_NO_ERROR.value()).expect("the code fits into a varint");
        self.quic.close(code, b"");
        let _ = timeout(CLOSE_TIMEOUT, self.endpoint.wait_idle()).await;
    }
}

impl Session {
    /// Returns the socket under the connection.
    pub const fn socket(&self) -> &Socket {
        &self.transport
    }

    /// Returns the server's preferred address, if it has one and the client follows it.
    pub const fn preferred(&self) -> Option<SocketAddr> {
        self.preferred
    }

    /// Returns the address of the server at which to open the next connection, if this server has announced it.
    pub fn successor(&self) -> Option<SocketAddr> {
        let announced = self.relocator.as_ref()?.hand_overs();
        let set = announced.borrow();
        let known = self.transport.nominal_server();
        set.as_ref()
            .and_then(|set| moves::usable(set, known).next())
    }

    /// Returns for how many seconds new connections may use the preferred address.
    pub fn service_ttl(&self) -> Option<u64> {
        preferred_address::service_ttl(&peer_parameters(&self.quic)?)
    }
}

/// A response whose body has not been read yet.
pub struct Response {
    /// Status and header fields.
    pub head: http::Response<()>,
    stream: RequestStream<BidiStream<Bytes>, Bytes>,
    quic: noq::Connection,
}

impl Response {
    /// Reads the next chunk of the body. Returns `None` at its end.
    ///
    /// # Errors
    /// Returns why the connection or the request failed.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let chunk = with_timeout(&self.quic, self.stream.recv_data()).await?;
        Ok(chunk.map(|mut chunk| chunk.copy_to_bytes(chunk.remaining())))
    }

    /// Returns the Content-Length, if the response has one.
    pub fn content_length(&self) -> Option<u64> {
        let field = self.head.headers().get(http::header::CONTENT_LENGTH)?;
        field.to_str().ok()?.parse().ok()
    }
}

/// Runs `work` with [`REQUEST_TIMEOUT`].
async fn with_timeout<T>(
    quic: &noq::Connection,
    work: impl Future<Output = Result<T, StreamError>>,
) -> Result<T, Error> {
    match timeout(REQUEST_TIMEOUT, work).await {
        Ok(result) => result.map_err(|error| connection_error(quic, error)),
        Err(_) => Err(Error::Timeout),
    }
}

/// Returns why the connection was closed, which says more than the `error` that the close caused, or else `error`.
fn connection_error(quic: &noq::Connection, error: impl Into<Error>) -> Error {
    quic.close_reason()
        .map_or_else(|| error.into(), Error::from)
}
