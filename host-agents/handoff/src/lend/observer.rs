//! What the session calls, under noq's lock.

use std::sync::atomic::Ordering::Relaxed;

use frontage_quic::parameters::{self, Parameters, integer, read_integer};
use frontage_quic::session::{Agreed, Incoming, Nonce, Observer, Outgoing, Packet};

use super::Lender;
use super::ratchet::Ratchet;
use super::shared;

/// Transport parameters (RFC 9000, section 18.2; draft-ietf-quic-multipath, section 2.1).
const MAX_UDP_PAYLOAD_SIZE: u64 = 0x03;
const INITIAL_MAX_DATA: u64 = 0x04;
const INITIAL_MAX_STREAM_DATA_BIDI_LOCAL: u64 = 0x05;
const INITIAL_MAX_PATH_ID: u64 = 0x3e;

impl<O: Observer> Observer for Lender<O> {
    fn sent(&self, packet: &Packet<'_>) {
        self.inner.sent(packet);
    }

    fn received(&self, packet: &Packet<'_>) {
        self.inner.received(packet);
    }

    fn complete(&self, agreed: &Agreed<'_>) {
        self.inner.complete(agreed);
        self.state().ratchet = Ratchet::new(agreed.suite, agreed.secrets.server.clone());
    }

    /// Most of what a client takes is for real servers.
    fn announced(&self, peer: &mut Parameters) -> bool {
        self.inner.announced(peer);
        let get = |id| {
            let mut known = peer.iter();
            let value = known.find(|(known, _)| *known == id)?.1.clone();
            read_integer(&value)
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
                *value = integer(limit);
            }
            if *id == MAX_UDP_PAYLOAD_SIZE
                && !state.several
                && let Some(size) = read_integer(value)
            {
                *value = integer(shared::payload_size(size));
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
        self.inner.sent(&outgoing.packet());
        nonce
    }

    #[inline]
    fn opened(&self, incoming: &mut Incoming<'_>) {
        if !self.lends.load(Relaxed) {
            return self.inner.opened(incoming);
        }
        self.inner.received(&incoming.packet());
        let (generation, sealed) = {
            let state = &mut *self.state();
            state.open(incoming);
            state.sealed_elsewhere()
        };
        let both = u64::from(generation) << 32 | u64::from(sealed);
        self.sealed_elsewhere.store(both, Relaxed);
    }

    #[inline]
    fn sealed_elsewhere(&self, generation: u32) -> u64 {
        let both = self.sealed_elsewhere.load(Relaxed);
        let of_it = both >> 32 == u64::from(generation);
        if of_it { both & u64::from(u32::MAX) } else { 0 }
    }
}
