//! What the session calls, under noq's lock.

use std::sync::atomic::Ordering::Relaxed;

use frontage_quic::session::{Incoming, Negotiated, Nonce, Observer, Outgoing, Packet};
use frontage_quic_wire::parameters;
use frontage_quic_wire::parameters::{Parameters, decode_integer, encode_integer};

use super::Lender;
use super::ratchet::Ratchet;
use super::shared;

/// Transport parameters (RFC 9000, section 18.2; draft-ietf-quic-multipath, section 2.1).
const MAX_UDP_PAYLOAD_SIZE: u64 = 0x03;
const INITIAL_MAX_DATA: u64 = 0x04;
const INITIAL_MAX_STREAM_DATA_BIDI_LOCAL: u64 = 0x05;
const INITIAL_MAX_PATH_ID: u64 = 0x3e;

impl<O: Observer> Observer for Lender<O> {
    fn on_sent(&self, packet: &Packet<'_>) {
        self.inner.on_sent(packet);
    }

    fn on_received(&self, packet: &Packet<'_>) {
        self.inner.on_received(packet);
    }

    fn on_handshake_complete(&self, agreed: &Negotiated<'_>) {
        self.inner.on_handshake_complete(agreed);
        self.state().ratchet = Ratchet::new(agreed.suite, agreed.secrets.server.clone());
    }

    /// Most of what a client takes is for real servers.
    fn on_peer_parameters(&self, peer: &mut Parameters) -> bool {
        self.inner.on_peer_parameters(peer);
        let get = |id| {
            let mut known = peer.iter();
            let value = known.find(|(known, _)| *known == id)?.1.clone();
            decode_integer(&value)
        };
        let state = &mut *self.state();
        state.several = get(INITIAL_MAX_PATH_ID).is_some_and(|paths| paths > 0);
        state.limit = get(INITIAL_MAX_STREAM_DATA_BIDI_LOCAL).unwrap_or(0);
        let limit = state.credit.begin(get(INITIAL_MAX_DATA).unwrap_or(0));
        let mut wire = Vec::new();
        parameters::write(peer, &mut wire);
        state.parameters = wire.into();
        for (id, value) in peer {
            if *id == INITIAL_MAX_DATA {
                *value = encode_integer(limit);
            }
            if *id == MAX_UDP_PAYLOAD_SIZE
                && !state.several
                && let Some(size) = decode_integer(value)
            {
                *value = encode_integer(shared::payload_size(size));
            }
        }
        self.lends.store(true, Relaxed);
        true
    }

    #[inline]
    fn seal(&self, outgoing: &mut Outgoing<'_>) -> Nonce {
        if !self.lends.load(Relaxed) {
            return self.inner.seal(outgoing);
        }
        let nonce = self.state().seal(outgoing);
        self.inner.on_sent(&outgoing.packet());
        nonce
    }

    #[inline]
    fn on_opened(&self, incoming: &mut Incoming<'_>) {
        if !self.lends.load(Relaxed) {
            return self.inner.on_opened(incoming);
        }
        self.inner.on_received(&incoming.packet());
        let (generation, sealed) = {
            let state = &mut *self.state();
            state.open(incoming);
            state.sealed_remotely()
        };
        let both = u64::from(generation) << 32 | u64::from(sealed);
        self.sealed_remotely.store(both, Relaxed);
    }

    #[inline]
    fn sealed_remotely(&self, generation: u32) -> u64 {
        let both = self.sealed_remotely.load(Relaxed);
        let of_it = both >> 32 == u64::from(generation);
        if of_it { both & u64::from(u32::MAX) } else { 0 }
    }
}
