// SPDX-License-Identifier: Apache-2.0
//! A common interface to TCP and QUIC connections, over which hosts send requests and responses.

use frontage_transport::tcp::{self, Segment};
use frontage_transport::{Nanos, quic};

use crate::flows::RecoveryCounts;
use crate::frame::{Body, ConnectionId, Datagram};

/// A connection.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "most connections use TCP, and every segment accesses them"
)]
pub enum Transport {
    /// A TCP connection: one stream of bytes.
    Tcp(tcp::Connection),
    /// A QUIC connection: a stream for each request and response.
    Quic(Box<Quic>),
}

/// A QUIC connection and the ids by which packets find it.
#[derive(Debug)]
pub struct Quic {
    connection: quic::Connection,
    own: ConnectionId,
    peer: ConnectionId,
    next_stream: u64,
}

/// Distance between the ids of client-initiated bidirectional streams (RFC 9000, section 2.1).
const STREAM_STEP: u64 = 4;

impl Transport {
    /// Creates a client's end. `peer` is an id that the client has chosen for the server.
    pub fn connect_quic(config: &quic::Config, own: ConnectionId, peer: ConnectionId) -> Self {
        Self::quic(quic::Connection::connect(config), own, peer)
    }

    /// Creates a server's end, if the datagram opens a connection.
    pub fn accept_quic(
        config: &quic::Config,
        own: ConnectionId,
        datagram: &Datagram,
        now: Nanos,
    ) -> Option<Self> {
        let peer = datagram.from?;
        let connection = quic::Connection::accept(config, &datagram.packet, now);
        Some(Self::quic(connection, own, peer))
    }

    fn quic(connection: quic::Connection, own: ConnectionId, peer: ConnectionId) -> Self {
        Self::Quic(Box::new(Quic {
            connection,
            own,
            peer,
            next_stream: 0,
        }))
    }

    /// Processes a received packet.
    pub fn receive(&mut self, now: Nanos, body: &Body) {
        match (self, body) {
            (Self::Tcp(tcp), Body::Tcp { segment, .. }) => tcp.receive(now, segment),
            (Self::Quic(quic), Body::Quic(datagram)) => {
                if let Some(peer) = datagram.from {
                    quic.peer = peer;
                }
                quic.connection.receive(now, &datagram.packet);
            }
            _ => unreachable!("a connection receives only packets of its protocol"),
        }
    }

    /// Returns the next packet to send.
    pub fn poll_transmit(&mut self, now: Nanos) -> Option<Body> {
        match self {
            Self::Tcp(tcp) => {
                let segment: Segment = tcp.poll_transmit(now)?;
                Some(Body::Tcp { segment, ck: false })
            }
            Self::Quic(quic) => {
                let packet = quic.connection.poll_transmit(now)?;
                Some(Body::Quic(Datagram {
                    packet,
                    to: quic.peer,
                    from: packet.handshake.then_some(quic.own),
                }))
            }
        }
    }

    /// Returns when to call [`on_timeout`](Self::on_timeout).
    pub fn timeout(&self) -> Option<Nanos> {
        match self {
            Self::Tcp(tcp) => tcp.timeout(),
            Self::Quic(quic) => quic.connection.timeout(),
        }
    }

    /// Processes expired timers.
    pub fn on_timeout(&mut self, now: Nanos) {
        match self {
            Self::Tcp(tcp) => tcp.on_timeout(now),
            Self::Quic(quic) => quic.connection.on_timeout(now),
        }
    }

    /// Sends a request or response of `bytes` bytes.
    pub fn write(&mut self, bytes: u64) {
        match self {
            Self::Tcp(tcp) => tcp.write(bytes),
            Self::Quic(quic) => {
                quic.connection.send_stream(quic.next_stream, bytes);
                quic.next_stream += STREAM_STEP;
            }
        }
    }

    /// Closes the connection: the client has the complete response, or the server has written its last one.
    pub fn finish(&mut self, is_client: bool) {
        match self {
            Self::Tcp(tcp) => tcp.finish(),
            // The client closes a QUIC connection: a close by the server would cut off data in flight.
            Self::Quic(quic) if is_client => quic.connection.close(),
            Self::Quic(_) => {}
        }
    }

    /// Returns the total number of received request or response bytes.
    pub fn received(&self) -> u64 {
        match self {
            Self::Tcp(tcp) => tcp.readable(),
            Self::Quic(quic) => quic.connection.received(),
        }
    }

    /// Returns the total number of distinct request or response bytes sent.
    pub fn sent(&self) -> u64 {
        match self {
            Self::Tcp(tcp) => tcp.sent(),
            Self::Quic(quic) => quic.connection.sent(),
        }
    }

    /// Returns true if the connection is closed.
    pub fn is_closed(&self) -> bool {
        match self {
            Self::Tcp(tcp) => tcp.is_closed(),
            Self::Quic(quic) => quic.connection.is_closed(),
        }
    }

    /// Returns the recovery counts. For QUIC, they are packets declared lost and probe timeouts.
    pub fn recovery_counts(&self) -> RecoveryCounts {
        match self {
            Self::Tcp(tcp) => {
                let statistics = tcp.statistics();
                RecoveryCounts {
                    retransmitted: statistics.retransmitted,
                    timeouts: statistics.timeouts,
                }
            }
            Self::Quic(quic) => {
                let statistics = quic.connection.statistics();
                RecoveryCounts {
                    retransmitted: statistics.lost,
                    timeouts: statistics.probe_timeouts,
                }
            }
        }
    }
}
