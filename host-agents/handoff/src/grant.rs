// SPDX-License-Identifier: Apache-2.0
//! Grants: what a real server needs to send packets of a connection that it does not own (QDSR, table 2).

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use noq::ConnectionId;

/// Keys of the packets that the server side sends (RFC 9001, section 6).
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    /// Number of key updates so far. The lowest bit is the key phase.
    pub generation: u32,
    /// Traffic secret, as long as the suite's hash, from which "quic key" and "quic iv" are derived.
    pub secret: Bytes,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keys(generation {}, ..)", self.generation)
    }
}

/// A path of a client's connection whose packet numbers belong to one real server until it returns them; or, for path 0, the
/// right to request single packet numbers.
#[derive(Clone, PartialEq, Eq)]
pub struct Grant {
    /// Path id, which is part of each packet's nonce (draft-ietf-quic-multipath). All senders share path 0; a real server
    /// gets its numbers one by one (QDSR, appendix A).
    pub path: u32,
    /// The first unused packet number.
    pub first: u64,
    /// Destination connection id.
    pub connection_id: ConnectionId,
    /// TLS number of the cipher suite (0x1301 to 0x1303).
    pub suite: u16,
    /// The first traffic secret, from which the header protection key is derived for the life of the connection (RFC 9001,
    /// section 6).
    pub header_secret: Bytes,
    /// The current keys.
    pub keys: Keys,
    /// The client's transport parameters, encoded, with its limits and its ACK delay.
    pub client_parameters: Bytes,
    /// The balancer's address and port as the client knows them: the source of packets.
    pub server: SocketAddr,
    /// The client's address: the destination of packets.
    pub client: SocketAddr,
    /// This real server's share of the client's MAX_DATA: bytes of all streams (RFC 9000, section 4.1).
    pub credit: u64,
    /// The balancer's smoothed RTT to the client.
    pub rtt: Duration,
}

impl std::fmt::Debug for Grant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grant")
            .field("path", &self.path)
            .field("first", &self.first)
            .field("connection_id", &self.connection_id)
            .field("suite", &self.suite)
            .field("keys", &self.keys)
            .field("client_parameters", &self.client_parameters)
            .field("server", &self.server)
            .field("client", &self.client)
            .field("credit", &self.credit)
            .field("rtt", &self.rtt)
            // Secrets must not appear in logs.
            .finish_non_exhaustive()
    }
}
