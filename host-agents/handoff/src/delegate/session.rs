// SPDX-License-Identifier: Apache-2.0
//! TLS session between noq and a synthetic client in the same process. The real handshake is long over, so this one negotiates
//! nothing, and incoming packets are not protected. Outgoing packets are sealed for the client (see [`super::sealer`]).

use std::any::Any;
use std::sync::{Arc, OnceLock};

use bytes::{Bytes, BytesMut};
use frontage_quic::session::Observer;
use frontage_quic_wire::parameters;
use noq::crypto::{
    self, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey,
    UnsupportedVersion,
};
use noq::{ConnectionId, PathId, Side};
use noq_proto::TransportError;
use noq_proto::transport_parameters::TransportParameters;

use super::keys::{SAMPLE_LEN, TAG_LEN};
use super::sealer::Sealer;
use super::synthetic_client::INITIAL_SOURCE_CONNECTION_ID;

/// Configuration of one delegated connection.
pub struct Config<O> {
    /// Receives noq's connection id, to which the synthetic client sends from any address.
    pub own_id: Arc<OnceLock<ConnectionId>>,
    /// The synthetic client's transport parameters.
    pub parameters: Bytes,
    pub sealer: Arc<Sealer>,
    pub observer: Arc<O>,
}

impl<O: Observer> crypto::ServerConfig for Config<O> {
    fn initial_keys(&self, _: u32, _: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(plain())
    }

    fn retry_tag(&self, _: u32, _: ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(&self, _: u32, own: &TransportParameters) -> Box<dyn crypto::Session> {
        let mut wire = Vec::new();
        own.write(&mut wire);
        let own = parameters::read(&wire);
        let id = own
            .iter()
            .find(|(id, _)| *id == INITIAL_SOURCE_CONNECTION_ID);
        if let Some((_, id)) = id {
            // noq calls this once.
            let _ = self.own_id.set(ConnectionId::new(id));
        }
        Box::new(Session {
            parameters: self.parameters.clone(),
            sealer: self.sealer.clone(),
            observer: self.observer.clone(),
            flights: 0,
            key_sets: 0,
        })
    }
}

/// Configuration of the endpoint. No connection is accepted with it, because each has a configuration of its own.
pub struct RejectAllConfig;

impl crypto::ServerConfig for RejectAllConfig {
    fn initial_keys(&self, _: u32, _: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(plain())
    }

    fn retry_tag(&self, _: u32, _: ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(&self, _: u32, _: &TransportParameters) -> Box<dyn crypto::Session> {
        unreachable!("each connection has its own configuration")
    }
}

struct Session<O> {
    parameters: Bytes,
    sealer: Arc<Sealer>,
    observer: Arc<O>,
    /// Number of flights received: Initial, Handshake.
    flights: u8,
    /// Number of key sets that noq got: Handshake, 1-RTT.
    key_sets: u8,
}

impl<O: Observer> Session<O> {
    fn one_rtt(&self) -> KeyPair<Box<dyn PacketKey>> {
        KeyPair {
            local: Box::new(Sealed {
                sealer: self.sealer.clone(),
                observer: self.observer.clone(),
            }),
            remote: Box::new(Plain),
        }
    }
}

impl<O: Observer> crypto::Session for Session<O> {
    fn initial_keys(&self, _: ConnectionId, _: Side) -> Keys {
        plain()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.flights < 2
    }

    fn read_handshake(&mut self, _: &[u8]) -> Result<bool, TransportError> {
        self.flights += 1;
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let parameters = TransportParameters::read(Side::Server, &mut &self.parameters[..])?;
        Ok(Some(parameters))
    }

    /// Return both key sets at once, as a server's TLS stack does, and write no handshake data.
    fn write_handshake(&mut self, _: &mut Vec<u8>) -> Option<Keys> {
        self.key_sets += 1;
        match self.key_sets {
            1 => Some(plain()),
            2 => Some(Keys {
                header: plain().header,
                packet: self.one_rtt(),
            }),
            _ => None,
        }
    }

    /// noq updates its own keys after some number of packets. The balancer updates those of the client's connection.
    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(self.one_rtt())
    }

    fn is_valid_retry(&self, _: ConnectionId, _: &[u8], _: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

/// Protection of outgoing 1-RTT packets. Includes header protection, because only the sealer knows the position of the
/// packet number.
struct Sealed<O> {
    sealer: Arc<Sealer>,
    observer: Arc<O>,
}

impl<O: Observer> PacketKey for Sealed<O> {
    fn encrypt(&self, _: PathId, number: u64, packet: &mut [u8], header_len: usize) {
        self.sealer
            .seal(number, packet, header_len, &*self.observer);
    }

    fn decrypt(&self, _: PathId, _: u64, _: &[u8], _: &mut BytesMut) -> Result<(), CryptoError> {
        Err(CryptoError)
    }

    fn tag_len(&self) -> usize {
        TAG_LEN
    }

    /// The sealer enforces the limit of the real key.
    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

/// No protection, for packets that never leave this process.
struct Plain;

fn plain() -> Keys {
    Keys {
        header: KeyPair {
            local: Box::new(Plain),
            remote: Box::new(Plain),
        },
        packet: KeyPair {
            local: Box::new(Plain),
            remote: Box::new(Plain),
        },
    }
}

impl PacketKey for Plain {
    fn encrypt(&self, _: PathId, _: u64, _: &mut [u8], _: usize) {}

    fn decrypt(&self, _: PathId, _: u64, _: &[u8], _: &mut BytesMut) -> Result<(), CryptoError> {
        Ok(())
    }

    /// Reserves the room of a tag, so that noq's shortest packets are long enough for the header protection sample.
    fn tag_len(&self) -> usize {
        TAG_LEN
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HeaderKey for Plain {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    /// noq pads packets for the sample of the real header protection.
    fn sample_size(&self) -> usize {
        SAMPLE_LEN
    }
}
