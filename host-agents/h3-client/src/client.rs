//! Connections to servers, and requests on them.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::{Buf as _, Bytes};
use frontage_quic::h3::{BidiStream, Connection, Opener};
use h3::client::{RequestStream, SendRequest};
use h3::error::{Code, StreamError};
use http::{Request, Response, Uri};
use noq::crypto::rustls::QuicClientConfig;
use noq::{
    ClientConfig, ConnectionError, Endpoint, EndpointConfig, TokioRuntime, TransportConfig, VarInt,
};
use tokio::time::timeout;

use crate::follow;
use crate::socket::Socket;
use crate::tls::Trust;

mod paths;
mod through;

pub use through::Migration;

/// Without a byte for so long, a request has failed: far beyond a few retransmission time-outs.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// How long a closed connection may take to tell its server so.
const GOODBYE: Duration = Duration::from_secs(1);

/// Why a request failed, in a few words that are the same each time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(pub String);

impl Failure {
    /// With this reason.
    pub fn new(reason: impl Display) -> Self {
        Self(reason.to_string())
    }
}

impl From<ConnectionError> for Failure {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::TimedOut => Self::new("timeout"),
            error => Self::new(error),
        }
    }
}

/// A URL of HTTP/3's.
#[derive(Clone, Debug)]
pub struct Url {
    /// As it was written.
    pub uri: Uri,
    /// Its host, without the brackets of an IPv6 address.
    pub host: String,
    /// Its port, 443 if it names none.
    pub port: u16,
}

impl Url {
    /// Reads `url`.
    pub fn new(url: &str) -> Result<Self> {
        let problem = || {
            format!(
                "{url:?} is no URL; write https://host:port/path, with an IPv6 address in brackets"
            )
        };
        let uri: Uri = url.parse().with_context(problem)?;
        let host = uri
            .host()
            .filter(|_| uri.scheme_str() == Some("https"))
            .with_context(problem)?;
        let host = host.trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(443);
        Ok(Self { uri, host, port })
    }

    /// Looks the host up, as this machine does.
    pub async fn look_up(&self) -> Result<SocketAddr> {
        let host = &self.host;
        let found = tokio::net::lookup_host((host.as_str(), self.port)).await;
        let address = found
            .with_context(|| format!("cannot find host {host}"))?
            .next();
        address.with_context(|| format!("host {host} has no address"))
    }

    /// This URL at `address`.
    pub fn at(self, address: SocketAddr) -> Target {
        Target {
            uri: self.uri,
            address,
            host: self.host,
        }
    }
}

/// Where a URL leads.
#[derive(Clone, Debug)]
pub struct Target {
    /// The URL.
    pub uri: Uri,
    /// Its host's address, the first if it has several.
    pub address: SocketAddr,
    /// Its host, without the brackets of an IPv6 address.
    host: String,
}

impl Target {
    /// Looks the host up.
    pub async fn new(url: &str) -> Result<Self> {
        let url = Url::new(url)?;
        let address = url.look_up().await?;
        Ok(url.at(address))
    }

    /// Whether a connection to `other` serves this, too.
    pub fn is_at(&self, other: &Self) -> bool {
        (self.address, &self.host) == (other.address, &other.host)
    }
}

/// What a command downloads, and to where.
#[derive(Debug, clap::Args)]
pub struct Files {
    /// What to download. `get`: URLs in a row with the same host and port share a connection; `page`: the page, then its objects, all with the same
    #[arg(required = true, value_name = "URL")]
    pub urls: Vec<String>,
    /// Where to put the files, by the last part of their paths; nowhere if absent
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// Options that every command has.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub trust: Trust,
    /// Go to the address that the server prefers, if it names one (RFC 9000, section 9.6), without asking first whether it works
    #[arg(long)]
    pub follow: bool,
    /// Go there with the packet that completes the handshake (Artemis, section 3.5), rather than once that is confirmed
    #[arg(skip)]
    pub at_once: bool,
    /// Have so many paths to the server before the first request (draft-ietf-quic-multipath), all at the same addresses
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub paths: u32,
}

/// Makes connections.
#[derive(Clone)]
pub struct Client {
    config: ClientConfig,
    transport: Arc<TransportConfig>,
    /// Of connections that follow at once.
    at_once: Option<rustls::ClientConfig>,
    paths: u32,
}

impl Client {
    /// A client that sends a PING when a connection was silent for `keep_alive`, or never.
    pub fn new(options: &Options, keep_alive: Option<Duration>) -> Result<Self> {
        let tls = options.trust.config()?;
        let at_once = options.at_once.then(|| tls.clone());
        let mut config = if options.follow {
            ClientConfig::new(Arc::new(follow::session(tls, None)?))
        } else {
            ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?))
        };
        let mut transport = TransportConfig::default();
        transport.keep_alive_interval(keep_alive);
        if options.paths > 1 {
            transport.max_concurrent_multipath_paths(options.paths);
        }
        let transport = Arc::new(transport);
        config.transport_config(transport.clone());
        Ok(Self {
            config,
            transport,
            at_once,
            paths: options.paths,
        })
    }

    fn config(&self, socket: &Socket) -> Result<ClientConfig, Failure> {
        let Some(tls) = &self.at_once else {
            return Ok(self.config.clone());
        };
        let session = follow::session(tls.clone(), Some(socket.clone())).map_err(Failure::new)?;
        let mut config = ClientConfig::new(Arc::new(session));
        config.transport_config(self.transport.clone());
        Ok(config)
    }

    /// A connection, once its handshake is complete.
    pub async fn connect(&self, target: &Target) -> Result<Session, Failure> {
        let socket = Socket::new(target.address).map_err(Failure::new)?;
        let endpoint = Endpoint::new_with_abstract_socket(
            EndpointConfig::default(),
            None,
            Box::new(socket.clone()),
            Arc::new(TokioRuntime),
        );
        let endpoint = endpoint.map_err(Failure::new)?;
        let connecting = endpoint.connect_with(self.config(&socket)?, target.address, &target.host);
        let quic = connecting.map_err(Failure::new)?.await?;
        let preferred = follow::preferred_address(&quic, target.address);
        if let Some(address) = preferred.filter(|address| *address != target.address) {
            let (endpoint, socket) = (endpoint.clone(), socket.clone());
            tokio::task::spawn_local(follow::follow(endpoint, quic.clone(), socket, address));
        }
        paths::open(&quic, target.address, self.paths).await?;
        let session = Session::new(endpoint, quic, socket).await?;
        Ok(Session {
            preferred,
            ..session
        })
    }
}

/// A connection, and what its packets go by.
pub struct Session<S = Socket> {
    endpoint: Endpoint,
    quic: noq::Connection,
    by: S,
    requests: SendRequest<Opener, Bytes>,
    preferred: Option<SocketAddr>,
}

impl<S> Session<S> {
    /// HTTP/3 on a connection whose handshake is complete.
    async fn new(endpoint: Endpoint, quic: noq::Connection, by: S) -> Result<Self, Failure> {
        let mut builder = h3::client::builder();
        // nginx as a proxy (1.26) takes a stream that ends with a frame of no meaning for one that broke off.
        builder.send_grease(false);
        let built = builder.build(Connection::new(quic.clone())).await;
        let (mut driver, requests) = built.map_err(|error| lost(&quic, error))?;
        tokio::task::spawn_local(async move { driver.wait_idle().await });
        Ok(Self {
            endpoint,
            quic,
            by,
            requests,
            preferred: None,
        })
    }

    /// Asks for `uri`, and waits for the answer's header.
    pub async fn get(&self, uri: &Uri) -> Result<Answer, Failure> {
        let request = Request::get(uri)
            .header(http::header::USER_AGENT, "frontage-h3-client")
            .body(())
            .map_err(Failure::new)?;
        // A handle of its own: others may ask meanwhile.
        let mut requests = self.requests.clone();
        let asked = async {
            let mut stream = requests.send_request(request).await?;
            stream.finish().await?;
            let head = stream.recv_response().await?;
            Ok::<_, StreamError>((head, stream))
        };
        let (head, stream) = patient(&self.quic, asked).await?;
        Ok(Answer {
            head,
            stream,
            quic: self.quic.clone(),
        })
    }

    /// Whether it has ended, whoever ended it.
    pub fn is_over(&self) -> bool {
        self.quic.close_reason().is_some()
    }

    /// Ends the connection, and sees that the server hears of it.
    pub async fn close(self) {
        let code = VarInt::from_u64(Code::H3_NO_ERROR.value()).expect("a small number");
        self.quic.close(code, b"");
        let _ = timeout(GOODBYE, self.endpoint.wait_idle()).await;
    }
}

impl Session {
    /// Its socket.
    pub const fn socket(&self) -> &Socket {
        &self.by
    }

    /// The address that the server prefers, if it names one and is followed.
    pub const fn preferred(&self) -> Option<SocketAddr> {
        self.preferred
    }

    /// For how many seconds that address may be used for new connections, too.
    pub fn service_ttl(&self) -> Option<u64> {
        follow::service_ttl(&self.quic)
    }
}

/// An answer whose body is still to be read.
pub struct Answer {
    /// Status and fields.
    pub head: Response<()>,
    stream: RequestStream<BidiStream<Bytes>, Bytes>,
    quic: noq::Connection,
}

impl Answer {
    /// The next part of the body; none at its end.
    pub async fn part(&mut self) -> Result<Option<Bytes>, Failure> {
        let part = patient(&self.quic, self.stream.recv_data()).await?;
        Ok(part.map(|mut part| part.copy_to_bytes(part.remaining())))
    }

    /// Content-Length, if it is there.
    pub fn length(&self) -> Option<u64> {
        let field = self.head.headers().get(http::header::CONTENT_LENGTH)?;
        field.to_str().ok()?.parse().ok()
    }
}

/// Waits for `work`, but not for ever.
async fn patient<T>(
    quic: &noq::Connection,
    work: impl Future<Output = Result<T, StreamError>>,
) -> Result<T, Failure> {
    match timeout(PATIENCE, work).await {
        Ok(done) => done.map_err(|error| lost(quic, error)),
        Err(_) => Err(Failure::new("timeout")),
    }
}

/// The connection's end explains more than the error that it caused.
fn lost(quic: &noq::Connection, error: impl Display) -> Failure {
    quic.close_reason()
        .map_or_else(|| Failure::new(error), Failure::from)
}
