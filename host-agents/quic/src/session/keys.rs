// SPDX-License-Identifier: Apache-2.0
//! The keys of a session: Initial keys, 1-RTT keys that show packets to the observer, and the capture of rustls'
//! traffic secrets.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use noq::crypto::{CryptoError, KeyPair, Keys, PacketKey};
use noq::{ConnectionId, PathId, Side};
use parking_lot::Mutex;
use rustls::quic::{Suite, Version};

use super::ack_policy::AckPolicy;
use super::{Incoming, MissingInitialSuite, Observer, Outgoing, TrafficSecrets};
use crate::session::long_numbers::Longer;

/// A 1-RTT key that shows each packet to the observer before it seals it and after it opens it.
pub(super) struct ObservedKey<O> {
    key: Box<dyn rustls::quic::PacketKey>,
    /// Tag length of the key, cached because every packet needs it.
    tag_len: usize,
    generation: u32,
    observer: Arc<O>,
    ack_policy: Option<Arc<AckPolicy>>,
}

impl<O> ObservedKey<O> {
    pub(super) fn new(
        key: Box<dyn rustls::quic::PacketKey>,
        generation: u32,
        observer: Arc<O>,
        ack_policy: Option<Arc<AckPolicy>>,
    ) -> Self {
        Self {
            tag_len: PacketKey::tag_len(&key),
            key,
            generation,
            observer,
            ack_policy,
        }
    }
}

impl<O: Observer> PacketKey for ObservedKey<O> {
    fn encrypt(&self, path_id: PathId, number: u64, buf: &mut [u8], header_len: usize) {
        let (header, rest) = buf.split_at_mut(header_len);
        let end = rest.len() - self.tag_len;
        let mut outgoing = Outgoing {
            path: number_of(path_id),
            number,
            generation: self.generation,
            header,
            payload: &mut rest[..end],
            needs_long_number: false,
            longer_payload: None,
        };
        let nonce = self.observer.seal(&mut outgoing);
        let longer = Longer {
            number: outgoing.needs_long_number,
            payload: outgoing.longer_payload.take(),
        };
        if longer.is_needed() {
            return longer.seal(&*self.key, nonce, buf, header_len);
        }
        let path_id = PathId::from(nonce.path);
        PacketKey::encrypt(&self.key, path_id, nonce.number, buf, header_len);
    }

    fn decrypt(
        &self,
        path_id: PathId,
        number: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let tag = payload.last_chunk().copied();
        PacketKey::decrypt(&self.key, path_id, number, header, payload)?;
        self.observer.on_opened(&mut Incoming {
            path: number_of(path_id),
            number,
            generation: self.generation,
            header,
            payload,
            tag: tag.as_ref(),
        });
        if let Some(policy) = &self.ack_policy {
            policy.apply(payload);
        }
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.tag_len
    }

    fn confidentiality_limit(&self) -> u64 {
        let remote = self.observer.sealed_remotely(self.generation);
        PacketKey::confidentiality_limit(&self.key).saturating_sub(remote)
    }

    fn integrity_limit(&self) -> u64 {
        PacketKey::integrity_limit(&self.key)
    }
}

/// Return the number of a path id. noq reveals it only to a hasher, as a `u32`.
#[inline]
fn number_of(path: PathId) -> u32 {
    struct Recorder(u32);

    impl Hasher for Recorder {
        fn finish(&self) -> u64 {
            u64::from(self.0)
        }

        fn write(&mut self, _: &[u8]) {
            unreachable!("noq-proto 1.4.0 writes an integer");
        }

        fn write_u32(&mut self, number: u32) {
            self.0 = number;
        }
    }

    let mut recorder = Recorder(0);
    path.hash(&mut recorder);
    recorder.0
}

/// Captures the traffic secrets through rustls' key log, which is meant for debuggers. rustls has no other interface
/// for them in QUIC.
#[derive(Debug, Default)]
pub(super) struct CapturedSecrets(Mutex<[Option<Bytes>; 2]>);

impl CapturedSecrets {
    const LABELS: [&str; 2] = ["CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"];

    pub(super) fn secrets(&self) -> Option<TrafficSecrets> {
        let [client, server] = &*self.0.lock();
        Some(TrafficSecrets {
            client: client.as_ref()?.to_vec(),
            server: server.as_ref()?.to_vec(),
        })
    }
}

impl rustls::KeyLog for CapturedSecrets {
    fn log(&self, label: &str, _: &[u8], secret: &[u8]) {
        if let Some(i) = Self::LABELS.iter().position(|known| *known == label) {
            self.0.lock()[i] = Some(Bytes::copy_from_slice(secret));
        }
    }

    fn will_log(&self, label: &str) -> bool {
        Self::LABELS.contains(&label)
    }
}

pub(super) fn initial_suite(
    provider: &rustls::crypto::CryptoProvider,
) -> Result<Suite, MissingInitialSuite> {
    let aes = rustls::CipherSuite::TLS13_AES_128_GCM_SHA256;
    let suite = provider
        .cipher_suites
        .iter()
        .find(|suite| suite.suite() == aes);
    suite
        .and_then(|suite| suite.tls13()?.quic_suite())
        .ok_or(MissingInitialSuite)
}

pub(super) fn initial_keys(suite: &Suite, dst_cid: ConnectionId, side: Side) -> Keys {
    let keys = suite.keys(&dst_cid, side.into(), Version::V1);
    Keys {
        header: KeyPair {
            local: Box::new(keys.local.header),
            remote: Box::new(keys.remote.header),
        },
        packet: KeyPair {
            local: Box::new(keys.local.packet),
            remote: Box::new(keys.remote.packet),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_ids_reveal_their_number() {
        for number in [0, 1, 77, u32::MAX] {
            assert_eq!(number_of(PathId::from(number)), number);
        }
    }
}
