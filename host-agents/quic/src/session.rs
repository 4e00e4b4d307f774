// SPDX-License-Identifier: Apache-2.0
//! TLS for noq, with three additions:
//!
//! - It sends and shows transport parameters that noq does not know.
//! - It shows each 1-RTT packet in the clear to an [`Observer`], which may change what noq sends and receives.
//! - It exports the traffic secrets, so that another host can send on behalf of the connection.
//!
//! noq's own session hides its rustls connection, so this one is built on `rustls::quic` directly. Its results are
//! the connection's `handshake_data`, of type [`Handshake`].

use std::sync::Arc;

use bytes::BytesMut;
use frontage_first_flight::retry;
use noq::crypto::{self, Keys, UnsupportedVersion};
use noq::{ConnectError, ConnectionId, Side};
use noq_proto::transport_parameters::TransportParameters;
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, Connection, ServerConnection, Suite, Version};

mod ack_policy;
mod connection;
mod keys;
pub(crate) mod long_numbers;

use crate::migration::Tag;
use connection::Session;
use frontage_quic_wire::parameters;
use frontage_quic_wire::parameters::Parameters;
use keys::{CapturedSecrets, initial_keys, initial_suite};
pub use long_numbers::MAX_HEADER_GROWTH;

/// QUIC version 1 (RFC 9000), the only supported version.
pub const VERSION: u32 = 1;

/// A 1-RTT packet without its protection.
#[derive(Debug)]
pub struct Packet<'a> {
    /// Path whose number space the packet is in (draft-ietf-quic-multipath); 0 on connections with one path.
    pub path: u32,
    /// Full packet number.
    pub number: u64,
    /// Number of key updates before this packet's keys (RFC 9001, section 6).
    pub generation: u32,
    /// First byte, connection id and packet number.
    pub header: &'a [u8],
    /// The frames.
    pub payload: &'a [u8],
    /// The tag of a received packet; `None` before sending.
    pub tag: Option<&'a Tag>,
}

/// A 1-RTT packet of noq's before its protection.
#[derive(Debug)]
pub struct Outgoing<'a> {
    /// Path on which noq sends the packet.
    pub path: u32,
    /// Packet number that noq chose.
    pub number: u64,
    /// Number of key updates before this packet's keys.
    pub generation: u32,
    /// First byte, connection id and packet number, whose length is in the first byte.
    pub header: &'a mut [u8],
    /// The frames. To remove one, overwrite it with PADDING.
    pub payload: &'a mut [u8],
    /// True if the packet number needs more bytes than noq used, because others send packets of the same number
    /// space, too. If set, a header with the nonce's number in up to [`MAX_HEADER_GROWTH`] more bytes replaces
    /// `header`. noq's MTU must leave room for them, and [`crate::socket::Socket`] must send the packet.
    pub needs_long_number: bool,
    /// Frames that replace `payload`, if they are longer than it. noq's MTU must leave room for them, and
    /// [`crate::socket::Socket`] must send the packet.
    pub longer_payload: Option<Vec<u8>>,
}

impl Outgoing<'_> {
    /// Return a read-only view.
    pub fn packet(&self) -> Packet<'_> {
        Packet {
            path: self.path,
            number: self.number,
            generation: self.generation,
            header: self.header,
            payload: self.payload,
            tag: None,
        }
    }
}

/// A received 1-RTT packet that is authentic. It may be a duplicate.
#[derive(Debug)]
pub struct Incoming<'a> {
    /// Path on which the packet arrived.
    pub path: u32,
    /// Full packet number on that path.
    pub number: u64,
    /// Number of key updates before this packet's keys.
    pub generation: u32,
    /// First byte, connection id and packet number.
    pub header: &'a [u8],
    /// The frames. noq treats a packet without frames as a protocol violation of the peer.
    pub payload: &'a mut BytesMut,
    /// The packet's AEAD tag.
    pub tag: Option<&'a Tag>,
}

impl Incoming<'_> {
    /// Return a read-only view.
    pub fn packet(&self) -> Packet<'_> {
        Packet {
            path: self.path,
            number: self.number,
            generation: self.generation,
            header: self.header,
            payload: self.payload,
            tag: self.tag,
        }
    }
}

/// The input of a packet's protection besides the key (draft-ietf-quic-multipath, section 2.4). No two packets may
/// share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Nonce {
    /// Path id.
    pub path: u32,
    /// Full packet number.
    pub number: u64,
}

/// The results of a handshake.
#[derive(Debug)]
pub struct Negotiated<'a> {
    /// The peer's transport parameters.
    pub peer: &'a Parameters,
    /// Number of the TLS cipher suite.
    pub suite: u16,
    /// The first 1-RTT traffic secrets.
    pub secrets: TrafficSecrets,
}

/// Observes the packets of a connection. Its methods run while noq sends and receives, so they must be fast.
pub trait Observer: Send + Sync + 'static {
    /// Called before a packet is sent.
    fn on_sent(&self, packet: &Packet<'_>);
    /// Called before [`Self::on_sent`] for a probe of a delegation, whose client has acknowledged nothing for long.
    fn on_probe(&self) {}
    /// Called for each authentic packet received. It may be a duplicate.
    fn on_received(&self, packet: &Packet<'_>);
    /// Called when the 1-RTT keys exist, before anything is sent with them. A server has them as soon as it has answered the
    /// ClientHello: until the handshake is complete, the peer's transport parameters may be those of an attacker.
    fn on_one_rtt_keys(&self, _agreed: &Negotiated<'_>) {}

    /// Called when the handshake is complete (RFC 9001, section 4.1.1), which authenticates the peer's transport
    /// parameters, and before anything is sent after it.
    fn on_handshake_complete(&self, _agreed: &Negotiated<'_>) {}

    /// Called with the peer's transport parameters before noq applies them. Return whether this has changed them.
    fn on_peer_parameters(&self, _peer: &mut Parameters) -> bool {
        false
    }

    /// Called before a packet is sealed. May change the packet, and returns the nonce to seal it with.
    #[inline]
    fn seal(&self, outgoing: &mut Outgoing<'_>) -> Nonce {
        self.on_sent(&outgoing.packet());
        Nonce {
            path: outgoing.path,
            number: outgoing.number,
        }
    }

    /// Return how many packets other hosts have sealed with this connection's key of the `generation`. They count
    /// towards the key's confidentiality limit (RFC 9001, section 6.6).
    #[inline]
    fn sealed_remotely(&self, _generation: u32) -> u64 {
        0
    }

    /// Called for each authentic packet received. May remove frames before noq reads them.
    #[inline]
    fn on_opened(&self, incoming: &mut Incoming<'_>) {
        self.on_received(&incoming.packet());
    }
}

/// An observer that does nothing.
impl Observer for () {
    fn on_sent(&self, _: &Packet<'_>) {}

    fn on_received(&self, _: &Packet<'_>) {}
}

/// The results of the handshake so far: noq's `handshake_data`, available from the first flight on.
pub struct Handshake<O> {
    /// Negotiated application protocol (ALPN).
    pub protocol: Option<Vec<u8>>,
    /// Server name that the client requested; servers only.
    pub server_name: Option<String>,
    /// The peer's transport parameters, including those that noq does not know.
    pub peer: Parameters,
    /// The first 1-RTT traffic secrets, once they exist.
    pub secrets: Option<TrafficSecrets>,
    /// The connection's observer.
    pub observer: Arc<O>,
}

/// The secrets from which the 1-RTT packet keys are derived, by the labels "quic key", "quic iv" and "quic hp"; "quic
/// ku" derives the secrets after a key update (RFC 9001, section 5.1).
#[derive(Clone, PartialEq, Eq)]
pub struct TrafficSecrets {
    /// Protects the packets that the client sends.
    pub client: Vec<u8>,
    /// Protects the packets that the server sends.
    pub server: Vec<u8>,
}

impl std::fmt::Debug for TrafficSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TrafficSecrets(..)")
    }
}

/// The crypto provider lacks TLS_AES_128_GCM_SHA256, which protects Initial packets (RFC 9001, section 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingInitialSuite;

impl std::fmt::Display for MissingInitialSuite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "TLS provider: missing cipher suite TLS13_AES_128_GCM_SHA256, which QUIC's Initial packets need",
        )
    }
}

impl std::error::Error for MissingInitialSuite {}

/// The configuration of a server or client: rustls' settings, additional transport parameters, and a function that
/// creates the observer of each connection.
pub struct Config<T, O> {
    tls: Arc<T>,
    initial: Suite,
    parameters: Parameters,
    observe: Box<dyn Fn() -> Arc<O> + Send + Sync>,
    has_rare_acks: bool,
}

impl<O: Observer> Config<rustls::ServerConfig, O> {
    /// Create a server's configuration.
    ///
    /// # Errors
    /// If the provider lacks the cipher suite of Initial packets.
    pub fn server(
        tls: rustls::ServerConfig,
        parameters: Parameters,
        observe: impl Fn() -> Arc<O> + Send + Sync + 'static,
    ) -> Result<Self, MissingInitialSuite> {
        let initial = initial_suite(tls.crypto_provider())?;
        Ok(Self::new(tls, initial, parameters, observe))
    }
}

impl<O: Observer> Config<rustls::ClientConfig, O> {
    /// Create a client's configuration.
    ///
    /// # Errors
    /// If the provider lacks the cipher suite of Initial packets.
    pub fn client(
        tls: rustls::ClientConfig,
        parameters: Parameters,
        observe: impl Fn() -> Arc<O> + Send + Sync + 'static,
    ) -> Result<Self, MissingInitialSuite> {
        let initial = initial_suite(tls.crypto_provider())?;
        Ok(Self::new(tls, initial, parameters, observe))
    }
}

impl<T, O: Observer> Config<T, O> {
    fn new(
        tls: T,
        initial: Suite,
        parameters: Parameters,
        observe: impl Fn() -> Arc<O> + Send + Sync + 'static,
    ) -> Self {
        Self {
            tls: Arc::new(tls),
            initial,
            parameters,
            observe: Box::new(observe),
            has_rare_acks: false,
        }
    }

    /// Acknowledge a peer's short packets rarely while it does not upload. Downloads then need fewer packets.
    #[must_use]
    pub fn with_rare_acks(mut self) -> Self {
        self.has_rare_acks = true;
        self
    }

    fn session(
        &self,
        inner: Connection,
        captured: Arc<CapturedSecrets>,
    ) -> Box<dyn crypto::Session> {
        let observer = (self.observe)();
        let session = Session::new(inner, self.initial, captured, observer, self.has_rare_acks);
        Box::new(session)
    }

    fn to_wire(&self, params: &TransportParameters) -> Vec<u8> {
        let mut wire = Vec::new();
        params.write(&mut wire);
        parameters::write(&self.parameters, &mut wire);
        wire
    }
}

impl<O: Observer> crypto::ServerConfig for Config<rustls::ServerConfig, O> {
    fn initial_keys(
        &self,
        version: u32,
        dst_cid: ConnectionId,
    ) -> Result<Keys, UnsupportedVersion> {
        if version != VERSION {
            return Err(UnsupportedVersion);
        }
        Ok(initial_keys(&self.initial, dst_cid, Side::Server))
    }

    fn retry_tag(&self, _: u32, orig_dst_cid: ConnectionId, packet: &[u8]) -> [u8; 16] {
        retry::tag(frontage_first_flight::Version::V1, &orig_dst_cid, packet)
    }

    fn start_session(&self, _: u32, params: &TransportParameters) -> Box<dyn crypto::Session> {
        let captured = Arc::<CapturedSecrets>::default();
        let mut tls = (*self.tls).clone();
        tls.key_log = captured.clone();
        let inner = ServerConnection::new(Arc::new(tls), Version::V1, self.to_wire(params))
            .expect("the configuration has TLS 1.3 and the initial suite");
        self.session(Connection::Server(inner), captured)
    }
}

impl<O: Observer> crypto::ClientConfig for Config<rustls::ClientConfig, O> {
    fn start_session(
        &self,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        if version != VERSION {
            return Err(ConnectError::UnsupportedVersion);
        }
        let name = ServerName::try_from(server_name.to_owned())
            .map_err(|_| ConnectError::InvalidServerName(server_name.into()))?;
        let captured = Arc::<CapturedSecrets>::default();
        let mut tls = (*self.tls).clone();
        tls.key_log = captured.clone();
        let inner = ClientConnection::new(Arc::new(tls), Version::V1, name, self.to_wire(params))
            .expect("the configuration has TLS 1.3 and the initial suite");
        Ok(self.session(Connection::Client(inner), captured))
    }
}
