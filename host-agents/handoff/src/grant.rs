//! What a real server needs to send packets of a connection that is not its own (QDSR, table 2).

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use noq::ConnectionId;

/// The keys of the packets that the server side sends, after some number of key updates (RFC 9001, section 6).
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    /// How many key updates came before; its lowest bit is the key phase.
    pub generation: u32,
    /// The traffic secret, as long as the suite's hash, from which "quic key" and "quic iv" come.
    pub secret: Bytes,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keys(generation {}, ..)", self.generation)
    }
}

/// A path of a client's connection whose packet numbers belong to one real server until it gives them back; or, of path 0, single ones.
#[derive(Clone, PartialEq, Eq)]
pub struct Grant {
    /// The path's id (draft-ietf-quic-multipath), which is in each packet's nonce. 0 is everybody's: its numbers are the real server's only as it gets them, one
    /// by one (QDSR, appendix A).
    pub path: u32,
    /// The first packet number that was never used there.
    pub first: u64,
    /// Sent to the client as destination.
    pub connection_id: ConnectionId,
    /// TLS cipher suite (0x1301 to 0x1303).
    pub suite: u16,
    /// The first traffic secret, of which the header's protection comes, whatever key updates came since (RFC 9001, section 6).
    pub header_secret: Bytes,
    /// Those in force.
    pub keys: Keys,
    /// The client's transport parameters as they were on the wire: its limits, its delay of acknowledgements.
    pub client_parameters: Bytes,
    /// The balancer's address and port as the client knows it, from which packets leave.
    pub server: SocketAddr,
    /// Where to.
    pub client: SocketAddr,
    /// Bytes of streams that may be sent in all (RFC 9000, section 4.1): this real server's share of the client's MAX_DATA.
    pub credit: u64,
    /// The smoothed round trip to the client, as the balancer knows it.
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
            // A secret must not end up in a log.
            .finish_non_exhaustive()
    }
}
