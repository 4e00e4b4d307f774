// SPDX-License-Identifier: Apache-2.0
//! Client side of QuicSocks: QUIC connections whose handshake runs through a SOCKS proxy, and which then migrate to the
//! direct path (RFC 9000, section 9). `docs/quicsocks.md` describes the protocol.
//!
//! ```text
//!   Association::connect ......... opens the control connection and the UDP association, once for many connections
//!   connect, connect_early ....... run the handshake through the proxy, over association::Socket; the latter with 0-RTT data
//!      '-- direct::probe ......... tests the direct path as soon as the proxy reports the server's address
//!   ProxiedConnection::migrate ... moves the connection to direct::Socket once the handshake is confirmed
//! ```
//!
//! [`socks`] and [`udp`], the wire format and the socket options, are shared with the proxy. [`flow`] serves programs with
//! their own QUIC stack.

mod association;
mod direct;
pub mod flow;
pub mod probe;
pub mod socks;
pub mod udp;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use frontage_quic_wire::parameters::Parameters;
use noq::{
    ClientConfig, ConnectError, Connecting, Connection, ConnectionError, Endpoint, EndpointConfig,
    TokioRuntime, ZeroRttAccepted,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use association::PendingAddress;
pub use association::{Association, Credentials, associate_blocking, placeholder};
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
    let (handshake, connecting) = Handshake::start(association, config, name, port)?;
    handshake.complete(connecting).await
}

/// Connects like [`connect`], but returns at once if `config` has a ticket of the server that permits 0-RTT data.
///
/// Data that the caller sends before [`EarlyData::accepted`] returns is 0-RTT data, which an attacker can replay
/// (RFC 9001, section 9.2). Without such a ticket, this function returns when the handshake is complete, with `None`.
///
/// # Errors
/// Those of [`connect`].
pub async fn connect_early(
    association: &Arc<Association>,
    config: ClientConfig,
    name: &str,
    port: u16,
) -> Result<(ProxiedConnection, Option<EarlyData>), Error> {
    let (handshake, connecting) = Handshake::start(association, config, name, port)?;
    match connecting.into_0rtt() {
        Ok((quic, accepted)) => {
            let address = handshake.address.clone();
            Ok((
                handshake.into_connection(quic),
                Some(EarlyData { accepted, address }),
            ))
        }
        Err(connecting) => Ok((handshake.complete(connecting).await?, None)),
    }
}

/// The 0-RTT data of a connection whose handshake is in progress.
pub struct EarlyData {
    accepted: ZeroRttAccepted,
    address: PendingAddress,
}

impl EarlyData {
    /// Waits for the end of the handshake. Returns true if the server accepted the 0-RTT data.
    ///
    /// If it returns false, noq has discarded the streams that sent 0-RTT data, or the handshake failed.
    ///
    /// # Errors
    /// Returns the proxy's reply if it cannot reach the server.
    pub async fn accepted(mut self) -> Result<bool, Error> {
        tokio::select! {
            accepted = self.accepted => Ok(accepted),
            error = self.address.failed() => Err(error),
        }
    }
}

/// A handshake through a proxy, and the probe of the direct path that runs beside it.
struct Handshake {
    endpoint: Endpoint,
    placeholder: SocketAddr,
    address: PendingAddress,
    probe: JoinHandle<Result<direct::DirectPath, MigrationError>>,
}

impl Handshake {
    fn start(
        association: &Arc<Association>,
        config: ClientConfig,
        name: &str,
        port: u16,
    ) -> Result<(Self, Connecting), Error> {
        let (socket, address) = association.open(name, port)?;
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
        let handshake = Self {
            endpoint,
            placeholder,
            address,
            probe,
        };
        Ok((handshake, connecting))
    }

    async fn complete(mut self, connecting: Connecting) -> Result<ProxiedConnection, Error> {
        let quic = tokio::select! {
            quic = connecting => quic.map_err(Error::Handshake),
            error = self.address.failed() => Err(error),
        };
        match quic {
            Ok(quic) => Ok(self.into_connection(quic)),
            Err(error) => {
                self.probe.abort();
                Err(error)
            }
        }
    }

    fn into_connection(self, quic: Connection) -> ProxiedConnection {
        ProxiedConnection {
            endpoint: self.endpoint,
            quic,
            placeholder: self.placeholder,
            probe: self.probe,
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
