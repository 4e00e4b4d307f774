//! TLS for noq that also (1) sends and shows transport parameters which noq does not know, (2) shows each 1-RTT packet in the clear to an
//! observer, and (3) exports the traffic secrets, so that another host may send on a connection's behalf.
//!
//! noq's own session hides the rustls connection in it, so this one stands on `rustls::quic` itself. What it found is the connection's
//! `handshake_data`, of type [`Handshake`].

use std::sync::Arc;

use frontage_first_flight::retry;
use noq::crypto::{self, Keys, UnsupportedVersion};
use noq::{ConnectError, ConnectionId, Side};
use noq_proto::transport_parameters::TransportParameters;
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, Connection, ServerConnection, Suite, Version};

mod keys;
mod running;

use crate::parameters::{self, Parameters};
use crate::places::Tag;
use keys::{Captured, initial_keys, initial_suite};
use running::Session;

/// QUIC version 1 (RFC 9000), the only one here.
pub const VERSION: u32 = 1;

/// A 1-RTT packet without its protection.
#[derive(Debug)]
pub struct Packet<'a> {
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

/// Sees a connection's packets. It is called in the midst of sending and receiving, so it should be quick.
pub trait Observer: Send + Sync + 'static {
    /// A packet is about to be sent.
    fn sent(&self, packet: &Packet<'_>);
    /// A packet was received and is authentic; it may be a duplicate.
    fn received(&self, packet: &Packet<'_>);
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
