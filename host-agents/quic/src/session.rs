//! TLS for noq that also (1) sends and shows transport parameters which noq does not know, (2) shows each 1-RTT packet in the clear to an
//! observer, which may change what noq says and hears, and (3) exports the traffic secrets, so that another host may send on a connection's behalf.
//!
//! noq's own session hides the rustls connection in it, so this one stands on `rustls::quic` itself. What it found is the connection's
//! `handshake_data`, of type [`Handshake`].

use std::sync::Arc;

use bytes::BytesMut;
use frontage_first_flight::retry;
use noq::crypto::{self, Keys, UnsupportedVersion};
use noq::{ConnectError, ConnectionId, Side};
use noq_proto::transport_parameters::TransportParameters;
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, Connection, ServerConnection, Suite, Version};

mod keys;
pub(crate) mod longer;
mod running;

use crate::parameters::{self, Parameters};
use crate::places::Tag;
use keys::{Captured, initial_keys, initial_suite};
pub use longer::LONGER;
use running::Session;

/// QUIC version 1 (RFC 9000), the only one here.
pub const VERSION: u32 = 1;

/// A 1-RTT packet without its protection.
#[derive(Debug)]
pub struct Packet<'a> {
    /// Whose number it has (draft-ietf-quic-multipath): 0 unless a connection has several.
    pub path: u32,
    /// Its number, unabridged.
    pub number: u64,
    /// How many key updates came before (RFC 9001, section 6).
    pub generation: u32,
    /// First octet, connection id and packet number.
    pub header: &'a [u8],
    /// Its frames.
    pub payload: &'a [u8],
    /// With which it came; none yet if it is to be sent.
    pub tag: Option<&'a Tag>,
}

/// A 1-RTT packet of noq's that has no protection yet.
#[derive(Debug)]
pub struct Outgoing<'a> {
    /// On which noq sends it.
    pub path: u32,
    /// That noq gave it.
    pub number: u64,
    /// How many key updates came before.
    pub generation: u32,
    /// First octet, connection id and packet number, whose length the first octet says.
    pub header: &'a mut [u8],
    /// Its frames, PADDING for what is to be none.
    pub payload: &'a mut [u8],
    /// The number on the wire is farther from those that the peer has than noq's is from those that it knows the peer to have. If this is set, a longer
    /// header with the number of the nonce takes the place of `header`: up to [`LONGER`] octets, which noq's MTU must leave, and
    /// [`crate::socket::Socket`] must send the packet.
    pub is_far: bool,
}

impl Outgoing<'_> {
    /// As it is.
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

/// A 1-RTT packet that came, and is authentic; it may be a duplicate.
#[derive(Debug)]
pub struct Incoming<'a> {
    /// On which it came.
    pub path: u32,
    /// Its number there, unabridged.
    pub number: u64,
    /// How many key updates came before.
    pub generation: u32,
    /// First octet, connection id and packet number.
    pub header: &'a [u8],
    /// Its frames. noq takes a packet without any for an error of the peer's.
    pub payload: &'a mut BytesMut,
    /// With which it came.
    pub tag: Option<&'a Tag>,
}

impl Incoming<'_> {
    /// As it is.
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

/// What a packet's protection depends on, besides the key (draft-ietf-quic-multipath, section 2.4): never the same for two packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Nonce {
    pub path: u32,
    pub number: u64,
}

/// What both sides agreed on in a handshake that is over.
#[derive(Debug)]
pub struct Agreed<'a> {
    /// The peer's transport parameters.
    pub peer: &'a Parameters,
    /// TLS cipher suite.
    pub suite: u16,
    /// The first 1-RTT traffic secrets.
    pub secrets: TrafficSecrets,
}

/// Sees a connection's packets. It is called in the midst of sending and receiving, so it should be quick.
pub trait Observer: Send + Sync + 'static {
    /// A packet is about to be sent.
    fn sent(&self, packet: &Packet<'_>);
    /// A packet was received and is authentic; it may be a duplicate.
    fn received(&self, packet: &Packet<'_>);
    /// The handshake is complete (RFC 9001, section 4.1.1): the peer's transport parameters are its own. Nothing was sent since.
    fn complete(&self, _agreed: &Agreed<'_>) {}

    /// The peer's transport parameters, before noq takes them for its limits; true if they are not those of the peer any more.
    fn announced(&self, _peer: &mut Parameters) -> bool {
        false
    }

    /// A packet is about to be sealed: this may change it, and says by what nonce.
    #[inline]
    fn seal(&self, outgoing: &mut Outgoing<'_>) -> Nonce {
        self.sent(&outgoing.packet());
        Nonce {
            path: outgoing.path,
            number: outgoing.number,
        }
    }

    /// Packets that others sealed by our key of this generation: a key must not seal too many (RFC 9001, section 6.6).
    #[inline]
    fn sealed_elsewhere(&self, _generation: u32) -> u64 {
        0
    }

    /// A packet came, and noq reads what this leaves of it.
    #[inline]
    fn opened(&self, incoming: &mut Incoming<'_>) {
        self.received(&incoming.packet());
    }
}

/// Looks away.
impl Observer for () {
    fn sent(&self, _: &Packet<'_>) {}

    fn received(&self, _: &Packet<'_>) {}
}

/// What the handshake brought: noq's `handshake_data`, from the first flight on.
pub struct Handshake<O> {
    /// The protocol agreed on (ALPN).
    pub protocol: Option<Vec<u8>>,
    /// The name that the client asked for; servers only.
    pub server_name: Option<String>,
    /// The peer's transport parameters, those that noq does not know among them.
    pub peer: Parameters,
    /// The first 1-RTT traffic secrets, once there are any.
    pub secrets: Option<TrafficSecrets>,
    /// The connection's observer.
    pub observer: Arc<O>,
}

/// The secrets from which 1-RTT packet keys come, by "quic key", "quic iv", "quic hp", and by "quic ku" those after an update (RFC 9001, section 5.1).
#[derive(Clone, PartialEq, Eq)]
pub struct TrafficSecrets {
    /// Of the packets that the client sends.
    pub client: Vec<u8>,
    /// Of the packets that the server sends.
    pub server: Vec<u8>,
}

impl std::fmt::Debug for TrafficSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TrafficSecrets(..)")
    }
}

/// The provider has no cipher suite for Initial packets, TLS_AES_128_GCM_SHA256 (RFC 9001, section 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoInitialSuite;

impl std::fmt::Display for NoInitialSuite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "the provider lacks TLS13_AES_128_GCM_SHA256, which QUIC's Initial packets need",
        )
    }
}

impl std::error::Error for NoInitialSuite {}

/// A server's or client's side of a handshake: rustls' settings, transport parameters of our own, and a maker of observers.
pub struct Config<T, O> {
    tls: Arc<T>,
    initial: Suite,
    parameters: Parameters,
    observe: Box<dyn Fn() -> Arc<O> + Send + Sync>,
}

impl<O: Observer> Config<rustls::ServerConfig, O> {
    /// A server's configuration.
    pub fn server(
        tls: rustls::ServerConfig,
        parameters: Parameters,
        observe: impl Fn() -> Arc<O> + Send + Sync + 'static,
    ) -> Result<Self, NoInitialSuite> {
        let initial = initial_suite(tls.crypto_provider())?;
        Ok(Self::new(tls, initial, parameters, observe))
    }
}

impl<O: Observer> Config<rustls::ClientConfig, O> {
    /// A client's configuration.
    pub fn client(
        tls: rustls::ClientConfig,
        parameters: Parameters,
        observe: impl Fn() -> Arc<O> + Send + Sync + 'static,
    ) -> Result<Self, NoInitialSuite> {
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
        }
    }

    fn session(&self, inner: Connection, captured: Arc<Captured>) -> Box<dyn crypto::Session> {
        let observer = (self.observe)();
        Box::new(Session::new(inner, self.initial, captured, observer))
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
        let captured = Arc::<Captured>::default();
        let mut tls = (*self.tls).clone();
        tls.key_log = captured.clone();
        let inner = ServerConnection::new(Arc::new(tls), Version::V1, self.to_wire(params))
            .expect("a configuration for TLS 1.3 and its initial suite");
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
        let captured = Arc::<Captured>::default();
        let mut tls = (*self.tls).clone();
        tls.key_log = captured.clone();
        let inner = ClientConnection::new(Arc::new(tls), Version::V1, name, self.to_wire(params))
            .expect("a configuration for TLS 1.3 and its initial suite");
        Ok(self.session(Connection::Client(inner), captured))
    }
}
