// SPDX-License-Identifier: Apache-2.0
//! TCP and QUIC alike: a connection over which a host writes bytes that are requests or responses.

use frontage_transport::tcp::{self, Segment};
use frontage_transport::{Nanos, quic};

use crate::flows::Effort;
use crate::frame::{Body, ConnectionId, Datagram};

/// A connection.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "most are TCP's, and looked at with every segment"
)]
pub enum Transport {
    /// One stream of bytes.
    Tcp(tcp::Connection),
    /// A stream for each request and response.
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

/// Client-initiated bidirectional streams (RFC 9000, section 2.1) are every fourth.
const STREAM_STEP: u64 = 4;

impl Transport {
    /// A client's end; `peer` is an id that no server chose.
    pub fn connect_quic(config: &quic::Config, own: ConnectionId, peer: ConnectionId) -> Self {
        Self::quic(quic::Connection::connect(config), own, peer)
    }

    /// A server's end, if the datagram begins a connection.
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
            _ => unreachable!("connections are told apart by protocol"),
        }
    }

    /// The next to send.
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

    /// When to call [`on_timeout`](Self::on_timeout).
    pub fn timeout(&self) -> Option<Nanos> {
        match self {
            Self::Tcp(tcp) => tcp.timeout(),
            Self::Quic(quic) => quic.connection.timeout(),
        }
    }

    /// Does what is due by now.
    pub fn on_timeout(&mut self, now: Nanos) {
        match self {
            Self::Tcp(tcp) => tcp.on_timeout(now),
            Self::Quic(quic) => quic.connection.on_timeout(now),
        }
    }

    /// A request or response of so many bytes is to be sent.
    pub fn write(&mut self, bytes: u64) {
        match self {
            Self::Tcp(tcp) => tcp.write(bytes),
            Self::Quic(quic) => {
                quic.connection.send_stream(quic.next_stream, bytes);
                quic.next_stream += STREAM_STEP;
            }
        }
    }

    /// The client has what it asked for, or the server has written its last.
    pub fn finish(&mut self, is_client: bool) {
        match self {
            Self::Tcp(tcp) => tcp.finish(),
            // It is the client that ends a QUIC connection: a server's end would cut off what is under way.
            Self::Quic(quic) if is_client => quic.connection.close(),
            Self::Quic(_) => {}
        }
    }

    /// Bytes of requests or responses received in all.
    pub fn received(&self) -> u64 {
        match self {
            Self::Tcp(tcp) => tcp.readable(),
            Self::Quic(quic) => quic.connection.received(),
        }
    }

    /// Bytes of requests or responses sent in all, each once.
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

    /// Returns the effort spent on losses. For QUIC, it counts packets declared lost and probe timeouts.
    pub fn effort(&self) -> Effort {
        match self {
            Self::Tcp(tcp) => {
                let statistics = tcp.statistics();
                Effort {
                    retransmitted: statistics.retransmitted,
                    timeouts: statistics.timeouts,
                }
            }
            Self::Quic(quic) => {
                let statistics = quic.connection.statistics();
                Effort {
                    retransmitted: statistics.lost,
                    timeouts: statistics.probe_timeouts,
                }
            }
        }
    }
}
