// SPDX-License-Identifier: Apache-2.0
//! Callbacks of the TLS session, made under noq's lock.

use std::sync::atomic::Ordering::Relaxed;

use frontage_quic::session::{Incoming, Negotiated, Nonce, Observer, Outgoing, Packet};
use frontage_quic_wire::parameters::{self, Parameters, decode_integer, encode_integer};

use super::Delegator;
use super::connection::ClientParameters;
use super::shared_numbers;

/// Transport parameters (RFC 9000, section 18.2; draft-ietf-quic-multipath, section 2.1).
const MAX_UDP_PAYLOAD_SIZE: u64 = 0x03;
const INITIAL_MAX_DATA: u64 = 0x04;
const INITIAL_MAX_STREAM_DATA_BIDI_LOCAL: u64 = 0x05;
const INITIAL_MAX_PATH_ID: u64 = 0x3e;

impl<O: Observer> Observer for Delegator<O> {
    fn on_sent(&self, packet: &Packet<'_>) {
        self.inner.on_sent(packet);
    }

    fn on_received(&self, packet: &Packet<'_>) {
        self.inner.on_received(packet);
    }

    fn on_one_rtt_keys(&self, negotiated: &Negotiated<'_>) {
        self.inner.on_one_rtt_keys(negotiated);
        let secret = negotiated.secrets.server.clone();
        self.connection().on_one_rtt_keys(negotiated.suite, secret);
    }

    fn on_handshake_complete(&self, negotiated: &Negotiated<'_>) {
        self.inner.on_handshake_complete(negotiated);
    }

    /// Keep the client's parameters, and give noq a part of the client's flow-control credit.
    fn on_peer_parameters(&self, peer: &mut Parameters) -> bool {
        self.inner.on_peer_parameters(peer);
        let get = |id| {
            let mut known = peer.iter();
            let value = known.find(|(known, _)| *known == id)?.1.clone();
            decode_integer(&value)
        };
        let is_multipath = get(INITIAL_MAX_PATH_ID).is_some_and(|paths| paths > 0);
        let max_data = get(INITIAL_MAX_DATA).unwrap_or(0);
        let max_stream_data = get(INITIAL_MAX_STREAM_DATA_BIDI_LOCAL).unwrap_or(0);
        let mut wire = Vec::new();
        parameters::write(peer, &mut wire);
        let client = ClientParameters {
            wire: wire.into(),
            is_multipath,
            max_stream_data,
        };
        let limit = self.connection().on_parameters(client, max_data);
        for (id, value) in peer {
            if *id == INITIAL_MAX_DATA {
                *value = encode_integer(limit);
            }
            if *id == MAX_UDP_PAYLOAD_SIZE
                && !is_multipath
                && let Some(size) = decode_integer(value)
            {
                *value = encode_integer(shared_numbers::max_udp_payload_size(size));
            }
        }
        self.has_parameters.store(true, Relaxed);
        true
    }

    #[inline]
    fn seal(&self, outgoing: &mut Outgoing<'_>) -> Nonce {
        if !self.has_parameters.load(Relaxed) {
            return self.inner.seal(outgoing);
        }
        let nonce = self.connection().seal(outgoing);
        self.inner.on_sent(&outgoing.packet());
        if !self.started.initialized() {
            // Fails if a packet has been sealed at the same time.
            let _ = self.started.set(());
        }
        nonce
    }

    #[inline]
    fn on_opened(&self, incoming: &mut Incoming<'_>) {
        if !self.has_parameters.load(Relaxed) {
            return self.inner.on_opened(incoming);
        }
        self.inner.on_received(&incoming.packet());
        let (generation, sealed) = {
            let connection = &mut *self.connection();
            connection.open(incoming);
            connection.sealed_remotely()
        };
        let both = u64::from(generation) << 32 | u64::from(sealed);
        self.sealed_remotely.store(both, Relaxed);
    }

    #[inline]
    fn sealed_remotely(&self, generation: u32) -> u64 {
        let both = self.sealed_remotely.load(Relaxed);
        let is_current = both >> 32 == u64::from(generation);
        if is_current {
            both & u64::from(u32::MAX)
        } else {
            0
        }
    }
}
