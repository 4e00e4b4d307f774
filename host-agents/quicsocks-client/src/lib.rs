// SPDX-License-Identifier: Apache-2.0
//! Client side of QuicSocks: QUIC connections whose handshake runs through a SOCKS proxy, and which then migrate to the
//! direct path (RFC 9000, section 9). `docs/quicsocks.md` describes the protocol.
//!
//! ```text
//!   Association::connect ......... opens the control connection and the UDP association, once for many connections
//!   connect ...................... runs the handshake through the proxy, over association::Socket
//!      '-- direct::probe ......... tests the direct path as soon as the proxy reports the server's address
//!   ProxiedConnection::migrate ... moves the connection to direct::Socket once the handshake is confirmed
//! ```
//!
//! [`socks`] and [`udp`], the wire format and the socket options, are shared with the proxy.

mod association;
mod direct;
pub mod probe;
pub mod socks;
pub mod udp;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use frontage_quic_wire::parameters::Parameters;
use noq::{
    ClientConfig, ConnectError, Connection, ConnectionError, Endpoint, EndpointConfig, TokioRuntime,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub use association::{Association, Credentials, associate_blocking};
use socks::Reply;

/// The transport parameter disable_active_migration (RFC 9000, section 18.2).
const DISABLE_ACTIVE_MIGRATION: u64 = 0x0c;

/// Why a connection through a proxy could not be established.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The proxy rejected the request, or could not reach the server.
    #[error("the QuicSocks proxy rejected the request: {0}")]
    Rejected(Reply),
    /// The proxy closed the control connection, which ends the association.
    #[error("the QuicSocks proxy closed its control connection")]
    ProxyClosed,
    /// A local socket failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// noq could not start the handshake.
    #[error(transparent)]
    Connect(ConnectError),
    /// The handshake failed.
    #[error(transparent)]
    Handshake(ConnectionError),
}

/// A connection that was established through a proxy.
#[derive(Debug)]
pub struct ProxiedConnection {
    /// Endpoint that serves this connection only.
    pub endpoint: Endpoint,
    pub quic: Connection,
    /// Placeholder that noq uses as the server's address.
    placeholder: SocketAddr,
    probe: JoinHandle<Result<direct::DirectPath, MigrationError>>,
}

/// A connection that has migrated to the direct path.
#[derive(Clone, Copy, Debug)]
pub struct Migrated {
    /// Client address on the direct path.
    pub local: SocketAddr,
    /// Server address on the direct path, which noq does not know.
    pub server: SocketAddr,
    /// Round-trip time of the direct path, measured by the probe.
    pub rtt: Duration,
}

/// Why a connection stays at its proxy, which forwards it as long as the proxy's limits allow.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    #[error("the proxy did not report the server's address")]
    AddressUnknown,
    #[error("the server does not answer on the direct path")]
    ServerUnreachable,
    #[error("the server forbids migration")]
    Disabled,
    #[error(transparent)]
    ConnectionClosed(ConnectionError),
    #[error(transparent)]
    Io(io::Error),
}

/// Connects to `name` through the proxy of `association` and returns when the handshake is complete.
///
/// Other connections may be established over the same association at the same time, but only one per name and port.
///
/// # Errors
/// Returns the proxy's reply if it cannot reach the server, and the QUIC or socket error otherwise.
pub async fn connect(
    association: &Arc<Association>,
    config: ClientConfig,
    name: &str,
    port: u16,
) -> Result<ProxiedConnection, Error> {
    let (socket, mut address) = association.open(name, port)?;
    let placeholder = socket.placeholder();
    let endpoint = Endpoint::new_with_abstract_socket(
        EndpointConfig::default(),
        None,
        Box::new(socket),
        Arc::new(TokioRuntime),
    )?;
    let connecting = endpoint.connect_with(config, placeholder, name);
    let connecting = connecting.map_err(Error::Connect)?;
    let probe = {
        let mut address = address.clone();
        tokio::spawn(async move {
            let server = address.resolved().await;
            direct::probe(server.map_err(|_| MigrationError::AddressUnknown)?).await
        })
    };
    let quic = tokio::select! {
        quic = connecting => quic.map_err(Error::Handshake),
        error = address.failed() => Err(error),
    };
    match quic {
        Ok(quic) => Ok(ProxiedConnection {
            endpoint,
            quic,
            placeholder,
            probe,
        }),
        Err(error) => {
            probe.abort();
            Err(error)
        }
    }
}

/// Returns true if the server's transport parameters forbid active migration.
pub fn forbids_migration(parameters: &Parameters) -> bool {
    parameters
        .iter()
        .any(|(id, _)| *id == DISABLE_ACTIVE_MIGRATION)
}

impl ProxiedConnection {
    /// Moves the connection to the direct path and returns when the server has answered there.
    ///
    /// Waits until the handshake is confirmed (RFC 9000, section 9) and the probe of the direct path was answered. `peer`
    /// holds the server's transport parameters, if they are known.
    ///
    /// # Errors
    /// Returns the reason why the connection stays at the proxy.
    pub async fn migrate(self, peer: Option<&Parameters>) -> Result<Migrated, MigrationError> {
        if peer.is_some_and(forbids_migration) {
            self.probe.abort();
            return Err(MigrationError::Disabled);
        }
        let confirmed = self.quic.handshake_confirmed().await;
        confirmed.map_err(MigrationError::ConnectionClosed)?;
        let direct = self.probe.await;
        let direct = direct.unwrap_or(Err(MigrationError::AddressUnknown))?;
        let (server, rtt) = (direct.server, direct.rtt);
        let (answer_sender, answered) = oneshot::channel();
        let socket = direct.into_socket(self.placeholder, answer_sender);
        let socket = socket.map_err(MigrationError::Io)?;
        let local = noq::AsyncUdpSocket::local_addr(&socket).map_err(MigrationError::Io)?;
        // noq switches to a new connection id and sends a PING on the new path. Packets in flight to the old socket still
        // arrive.
        let rebound = self.endpoint.rebind_abstract(Box::new(socket));
        rebound.map_err(MigrationError::Io)?;
        tokio::select! {
            _ = answered => {}
            error = self.quic.closed() => return Err(MigrationError::ConnectionClosed(error)),
        }
        Ok(Migrated { local, server, rtt })
    }
}
