//! TLS of a connection whose handshake is long over, between noq and a puppet in the same memory: nothing is agreed on, and what comes in
//! needs no protection. What goes out is sealed for the client (see [`super::seal`]).

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

use super::keys::{SAMPLE, TAG};
use super::puppet::INITIAL_SOURCE_CONNECTION_ID;
use super::seal::Sealer;

/// Of one borrowed connection.
pub struct Config<O> {
    /// Where noq's id for the connection is left, by which it is found wherever the puppet is.
    pub own_id: Arc<OnceLock<ConnectionId>>,
    /// The client's transport parameters, as far as noq is to know them.
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
            heard: 0,
            keys: 0,
        })
    }
}

/// Of the endpoint, none of whose connections is accepted with it.
pub struct Nobody;

impl crypto::ServerConfig for Nobody {
    fn initial_keys(&self, _: u32, _: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(plain())
    }

    fn retry_tag(&self, _: u32, _: ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(&self, _: u32, _: &TransportParameters) -> Box<dyn crypto::Session> {
        unreachable!("each connection has a configuration of its own")
    }
}

struct Session<O> {
    parameters: Bytes,
    sealer: Arc<Sealer>,
    observer: Arc<O>,
    /// Flights that came: an Initial packet's, a Handshake packet's.
    heard: u8,
    /// Sets of keys that noq got: the Handshake packets', the 1-RTT packets'.
    keys: u8,
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
        self.heard < 2
    }

    fn read_handshake(&mut self, _: &[u8]) -> Result<bool, TransportError> {
        self.heard += 1;
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let parameters = TransportParameters::read(Side::Server, &mut &self.parameters[..])?;
        Ok(Some(parameters))
    }

    /// Both sets of keys at once, as a server's TLS gives them, and no octet to send.
    fn write_handshake(&mut self, _: &mut Vec<u8>) -> Option<Keys> {
        self.keys += 1;
        match self.keys {
            1 => Some(plain()),
            2 => Some(Keys {
                header: plain().header,
                packet: self.one_rtt(),
            }),
            _ => None,
        }
    }

    /// noq updates its keys after some number of packets. The client's are updated by the balancer.
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

/// 1-RTT packets on their way out. Their headers are protected by it, too, since only it knows where their numbers are.
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
        TAG
    }

    /// The real key's is heeded where it seals.
    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

/// Of packets that never leave this memory.
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

    /// Without which noq's shortest packets had no sample of their true length.
    fn tag_len(&self) -> usize {
        TAG
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

    /// noq makes packets long enough for the sample that their true protection takes.
    fn sample_size(&self) -> usize {
        SAMPLE
    }
}
