// SPDX-License-Identifier: Apache-2.0
//! The TLS session of one connection: its handshake and its keys.

use std::any::Any;
use std::sync::Arc;

use frontage_first_flight::{Version, retry};
use noq::crypto::{self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey};
use noq::{ConnectionId, Side, TransportErrorCode};
use noq_proto::TransportError;
use noq_proto::transport_parameters::TransportParameters;
use rustls::pki_types::CertificateDer;
use rustls::quic::{Connection, KeyChange, Secrets, Suite};

use super::ack_policy::AckPolicy;
use super::keys::{CapturedSecrets, ObservedKey, initial_keys};
use super::long_numbers::HeaderProtector;
use super::{Handshake, Negotiated, Observer};
use frontage_quic_wire::parameters;
use frontage_quic_wire::parameters::Parameters;

/// A rustls connection behind noq's interface.
pub(super) struct Session<O> {
    inner: Connection,
    initial: Suite,
    /// True once noq knows that `handshake_data` is available.
    has_handshake_data: bool,
    next_secrets: Option<Secrets>,
    generation: u32,
    captured: Arc<CapturedSecrets>,
    observer: Arc<O>,
    /// True if the client's short packets may be acknowledged rarely.
    has_rare_acks: bool,
    ack_policy: Option<Arc<AckPolicy>>,
}

impl<O: Observer> Session<O> {
    pub(super) fn new(
        inner: Connection,
        initial: Suite,
        captured: Arc<CapturedSecrets>,
        observer: Arc<O>,
        has_rare_acks: bool,
    ) -> Self {
        Self {
            inner,
            initial,
            has_handshake_data: false,
            next_secrets: None,
            generation: 0,
            captured,
            observer,
            has_rare_acks,
            ack_policy: None,
        }
    }

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

    fn peer(&self) -> Parameters {
        let wire = self.inner.quic_transport_parameters();
        wire.map(parameters::read).unwrap_or_default()
    }

    /// Pass the results of the handshake to `report`.
    fn report(&self, report: impl FnOnce(&O, &Negotiated<'_>)) {
        let suite = self.inner.negotiated_cipher_suite();
        if let (Some(suite), Some(secrets)) = (suite, self.captured.secrets()) {
            let negotiated = Negotiated {
                peer: &self.peer(),
                suite: suite.suite().into(),
                secrets,
            };
            report(&self.observer, &negotiated);
        }
    }

    fn observed(&self, key: Box<dyn rustls::quic::PacketKey>) -> Box<dyn PacketKey> {
        Box::new(ObservedKey::new(
            key,
            self.generation,
            self.observer.clone(),
            self.ack_policy.clone(),
        ))
    }
}

impl<O: Observer> crypto::Session for Session<O> {
    fn initial_keys(&self, dst_cid: ConnectionId, side: Side) -> Keys {
        initial_keys(&self.initial, dst_cid, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.has_handshake_data.then(|| -> Box<dyn Any> {
            Box::new(Handshake {
                protocol: self.inner.alpn_protocol().map(Into::into),
                server_name: self.server_name().map(Into::into),
                peer: self.peer(),
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
        let was_handshaking = self.is_handshaking();
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
        if was_handshaking && !self.is_handshaking() {
            self.report(O::on_handshake_complete);
        }
        // rustls does not report that it has read a ClientHello or the server's choices, but their contents show it.
        let available = self.inner.alpn_protocol().is_some()
            || self.server_name().is_some()
            || !self.is_handshaking();
        let is_new = available && !self.has_handshake_data;
        self.has_handshake_data |= available;
        Ok(is_new)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(mut wire) = self.inner.quic_transport_parameters() else {
            return Ok(None);
        };
        // noq rejects malformed parameters.
        let mut peer = parameters::read_strict(wire).unwrap_or_default();
        let mut changed = Vec::new();
        if self.observer.on_peer_parameters(&mut peer) {
            parameters::write(&peer, &mut changed);
            wire = &changed;
        }
        Ok(Some(TransportParameters::read(self.side(), &mut wire)?))
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let (keys, one_rtt) = match self.inner.write_hs(buf)? {
            KeyChange::Handshake { keys } => (keys, false),
            KeyChange::OneRtt { keys, next } => {
                self.next_secrets = Some(next);
                if self.has_rare_acks {
                    self.ack_policy = AckPolicy::new(&self.peer()).map(Arc::new);
                }
                self.report(O::on_one_rtt_keys);
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
        let header: Box<dyn HeaderKey> = match one_rtt {
            true => Box::new(HeaderProtector(keys.local.header)),
            false => Box::new(keys.local.header),
        };
        Some(Keys {
            header: KeyPair {
                local: header,
                remote: Box::new(keys.remote.header),
            },
            packet: KeyPair {
                local: packet(keys.local.packet),
                remote: packet(keys.remote.packet),
            },
        })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.next_secrets.as_mut()?.next_packet_keys();
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
        retry::tag(Version::V1, &orig_dst_cid, &[header, rest].concat()) == *tag
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
