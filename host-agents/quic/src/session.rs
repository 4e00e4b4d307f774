//! TLS for noq that also (1) sends and shows transport parameters which noq does not know, (2) shows each 1-RTT packet in the clear to an
//! observer, and (3) exports the traffic secrets, so that another host may send on a connection's behalf.
//!
//! noq's own session hides the rustls connection in it, so this one stands on `rustls::quic` itself. What it found is the connection's
//! `handshake_data`, of type [`Handshake`].

use std::any::Any;
use std::sync::Arc;

use noq::crypto::{
    self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, UnsupportedVersion,
};
use noq::{ConnectError, ConnectionId, Side, TransportErrorCode};
use noq_proto::TransportError;
use noq_proto::transport_parameters::TransportParameters;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::quic::{
    ClientConnection, Connection, KeyChange, Secrets, ServerConnection, Suite, Version,
};

mod keys;

use crate::parameters::{self, Parameters};
use crate::places::Tag;
use crate::retry;
use keys::{Captured, Observed, initial_keys, initial_suite};

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
        Box::new(Session {
            inner,
            initial: self.initial,
            announced: false,
            next: None,
            generation: 0,
            captured,
            observer: (self.observe)(),
        })
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
        retry::tag(&retry::V1, &orig_dst_cid, packet)
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

struct Session<O> {
    inner: Connection,
    initial: Suite,
    announced: bool,
    next: Option<Secrets>,
    generation: u32,
    captured: Arc<Captured>,
    observer: Arc<O>,
}

impl<O: Observer> Session<O> {
    fn side(&self) -> Side {
        match self.inner {
            Connection::Client(_) => Side::Client,
            Connection::Server(_) => Side::Server,
        }
    }

    fn server_name(&self) -> Option<&str> {
        match &self.inner {
            Connection::Client(_) => None,
            Connection::Server(server) => server.server_name(),
        }
    }

    fn observed(&self, key: Box<dyn rustls::quic::PacketKey>) -> Box<dyn PacketKey> {
        Box::new(Observed::new(key, self.generation, self.observer.clone()))
    }
}

impl<O: Observer> crypto::Session for Session<O> {
    fn initial_keys(&self, dst_cid: ConnectionId, side: Side) -> Keys {
        initial_keys(&self.initial, dst_cid, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.announced.then(|| -> Box<dyn Any> {
            Box::new(Handshake {
                protocol: self.inner.alpn_protocol().map(Into::into),
                server_name: self.server_name().map(Into::into),
                peer: self
                    .inner
                    .quic_transport_parameters()
                    .map(parameters::read)
                    .unwrap_or_default(),
                secrets: self.captured.secrets(),
                observer: self.observer.clone(),
            })
        })
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        let certificates = self.inner.peer_certificates()?;
        let owned: Vec<CertificateDer<'static>> = certificates
            .iter()
            .map(|c| c.clone().into_owned())
            .collect();
        Some(Box::new(owned))
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let keys = self.inner.zero_rtt_keys()?;
        Some((Box::new(keys.header), Box::new(keys.packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        match &self.inner {
            Connection::Client(client) => Some(client.is_early_data_accepted()),
            Connection::Server(_) => None,
        }
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.inner
            .read_hs(buf)
            .map_err(|error| match self.inner.alert() {
                Some(alert) => {
                    let mut wrapped = TransportError::new(
                        TransportErrorCode::crypto(alert.into()),
                        error.to_string(),
                    );
                    wrapped.crypto = Some(Arc::new(error));
                    wrapped
                }
                None => TransportError::new(
                    TransportErrorCode::PROTOCOL_VIOLATION,
                    format!("TLS error: {error}"),
                ),
            })?;
        // rustls does not say that it has read a ClientHello, or a server's choices; what these bring does.
        let here = self.inner.alpn_protocol().is_some()
            || self.server_name().is_some()
            || !self.is_handshaking();
        let news = here && !self.announced;
        self.announced |= here;
        Ok(news)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(mut wire) = self.inner.quic_transport_parameters() else {
            return Ok(None);
        };
        Ok(Some(TransportParameters::read(self.side(), &mut wire)?))
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let (keys, one_rtt) = match self.inner.write_hs(buf)? {
            KeyChange::Handshake { keys } => (keys, false),
            KeyChange::OneRtt { keys, next } => {
                self.next = Some(next);
                (keys, true)
            }
        };
        let packet = |key| {
            if one_rtt {
                self.observed(key)
            } else {
                Box::new(key)
            }
        };
        Some(Keys {
            header: KeyPair {
                local: Box::new(keys.local.header),
                remote: Box::new(keys.remote.header),
            },
            packet: KeyPair {
                local: packet(keys.local.packet),
                remote: packet(keys.remote.packet),
            },
        })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.next.as_mut()?.next_packet_keys();
        self.generation += 1;
        Some(KeyPair {
            local: self.observed(keys.local),
            remote: self.observed(keys.remote),
        })
    }

    fn is_valid_retry(&self, orig_dst_cid: ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        let Some((rest, tag)) = payload.split_last_chunk() else {
            return false;
        };
        retry::tag(&retry::V1, &orig_dst_cid, &[header, rest].concat()) == *tag
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        let exported = self
            .inner
            .export_keying_material(output, label, Some(context));
        exported.map(drop).map_err(|_| ExportKeyingMaterialError)
    }
}
