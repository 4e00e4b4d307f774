//! The client's side: connections whose first flight goes through a proxy, and that migrate to the direct path (RFC 9000, section 9).
//!
//! ```text
//!   Relay::connect ....... control connection, association (once; "warm" from then on)
//!   connect .............. an endpoint over relay::Socket; the handshake runs through the proxy
//!      '-- path::Direct ... meanwhile asks the server whether the direct path works, as soon as the proxy tells the address
//!   Connected::migrate ... once the handshake is confirmed: the endpoint goes on over path::Socket; the proxy's flow is released
//! ```

mod path;
mod relay;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use frontage_quic::parameters::Parameters;
use noq::{
    ClientConfig, ConnectError, Connection, ConnectionError, Endpoint, EndpointConfig, TokioRuntime,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::socks::Reply;
pub use relay::{Credentials, Relay};

/// The transport parameter disable_active_migration (RFC 9000, section 18.2).
const DISABLE_ACTIVE_MIGRATION: u64 = 0x0c;

/// Why there is no connection.
#[derive(Debug)]
pub enum Error {
    /// The proxy refuses, or cannot find the server.
    Refused(Reply),
    /// The control connection is over, and with it the association.
    Closed,
    /// This side cannot begin.
    Io(io::Error),
    Connect(ConnectError),
    /// The handshake failed.
    Connection(ConnectionError),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(reply) => write!(f, "the QuicSocks proxy says: {reply}"),
            Self::Closed => f.write_str("the QuicSocks proxy closed its control connection"),
            Self::Io(error) => error.fmt(f),
            Self::Connect(error) => error.fmt(f),
            Self::Connection(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A connection that was made through a proxy.
#[derive(Debug)]
pub struct Connected {
    /// Its own.
    pub endpoint: Endpoint,
    pub quic: Connection,
    /// What noq takes for the server's address.
    known: SocketAddr,
    direct: JoinHandle<Result<path::Direct, Stay>>,
}

/// Where a connection went.
#[derive(Clone, Copy, Debug)]
pub struct Migrated {
    /// The client's address and the server's on the direct path. noq does not know the latter.
    pub local: SocketAddr,
    pub server: SocketAddr,
    /// The direct path's round-trip time, as the probe found it.
    pub rtt: Duration,
}

/// Why a connection stays at its proxy, which forwards it as long as its limits allow.
#[derive(Debug)]
pub enum Stay {
    /// The proxy never said the address.
    Unknown,
    /// No answer came on the direct path.
    NoAnswer,
    /// The server forbids migration.
    Forbidden,
    /// The connection is over.
    Over(ConnectionError),
    Io(io::Error),
}

impl std::fmt::Display for Stay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown => f.write_str("the proxy did not say the server's address"),
            Self::NoAnswer => f.write_str("the server does not answer on the direct path"),
            Self::Forbidden => f.write_str("the server forbids migration"),
            Self::Over(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
        }
    }
}

/// A connection to `name`, once its handshake is complete. Others may be made over `relay` at the same time.
pub async fn connect(
    relay: &Arc<Relay>,
    config: ClientConfig,
    name: &str,
    port: u16,
) -> Result<Connected, Error> {
    let (socket, mut address) = relay.open(name, port)?;
    let server = socket.server();
    let endpoint = Endpoint::new_with_abstract_socket(
        EndpointConfig::default(),
        None,
        Box::new(socket),
        Arc::new(TokioRuntime),
    )?;
    let connecting = endpoint.connect_with(config, server, name);
    let connecting = connecting.map_err(Error::Connect)?;
    let direct = {
        let mut address = address.clone();
        tokio::spawn(async move {
            let found = address.found().await.map_err(|_| Stay::Unknown)?;
            path::probe(found).await
        })
    };
    let quic = tokio::select! {
        quic = connecting => quic.map_err(Error::Connection),
        refused = address.refused() => Err(refused),
    };
    match quic {
        Ok(quic) => Ok(Connected {
            endpoint,
            quic,
            known: server,
            direct,
        }),
        Err(error) => {
            direct.abort();
            Err(error)
        }
    }
}

/// Whether a server with these transport parameters wants its clients to stay where they are.
pub fn forbids_migration(parameters: &Parameters) -> bool {
    parameters
        .iter()
        .any(|(id, _)| *id == DISABLE_ACTIVE_MIGRATION)
}

impl Connected {
    /// Moves the connection to the direct path, once it may (RFC 9000, section 9) and the probe was answered; ready once the server has answered
    /// there. `peer` are the server's transport parameters, if they are known.
    pub async fn migrate(self, peer: Option<&Parameters>) -> Result<Migrated, Stay> {
        if peer.is_some_and(forbids_migration) {
            self.direct.abort();
            return Err(Stay::Forbidden);
        }
        self.quic.handshake_confirmed().await.map_err(Stay::Over)?;
        let direct = self.direct.await.unwrap_or(Err(Stay::Unknown))?;
        let (server, rtt) = (direct.server, direct.rtt);
        let (heard, answered) = oneshot::channel();
        let socket = direct.socket(self.known, heard);
        let socket = socket.map_err(Stay::Io)?;
        let local = noq::AsyncUdpSocket::local_addr(&socket).map_err(Stay::Io)?;
        // noq takes a new connection id for the new path and sends a PING there; what is under way to the old socket still arrives.
        let moved = self.endpoint.rebind_abstract(Box::new(socket));
        moved.map_err(Stay::Io)?;
        tokio::select! {
            _ = answered => {}
            error = self.quic.closed() => return Err(Stay::Over(error)),
        }
        Ok(Migrated { local, server, rtt })
    }
}
