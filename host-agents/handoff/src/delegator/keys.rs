// SPDX-License-Identifier: Apache-2.0
//! Packet protection keys of the server side: which keys are in use, and when the next key update is permitted.

use std::sync::Arc;

use bytes::Bytes;
use frontage_quic::session::Nonce;
use frontage_quic_wire::frames::Ack;
use tokio::sync::Notify;

use crate::delegate::keys::Suite;
use crate::grant::Keys;

/// Upper bound of the packets of real servers that are in flight to a client: 80 MB.
const MAX_IN_FLIGHT: u64 = 1 << 16;

/// Keys of one connection.
#[derive(Default)]
pub(super) struct KeyState {
    /// Set when the 1-RTT keys exist.
    ratchet: Option<Ratchet>,
    confirmation: HandshakeConfirmation,
    /// Packets of real servers, under the newest keys, that the client acknowledged or that were given a number.
    sealed_remotely: u64,
}

impl KeyState {
    /// Install the first traffic secret.
    pub(super) fn install(&mut self, suite: u16, secret: Vec<u8>) {
        self.ratchet = Ratchet::new(suite, secret);
    }

    /// Return whether the 1-RTT keys exist.
    pub(super) fn is_ready(&self) -> bool {
        self.ratchet.is_some()
    }

    /// Return the newest keys.
    pub(super) fn ratchet(&self) -> Option<&Ratchet> {
        self.ratchet.as_ref()
    }

    /// Advance to `generation`. Returns the new keys if this is a key update.
    pub(super) fn advance(&mut self, generation: u32) -> Option<&Keys> {
        let keys = self.ratchet.as_mut()?.advance(generation)?;
        self.sealed_remotely = 0;
        Some(keys)
    }

    /// Count packets that real servers have sealed with the newest keys.
    pub(super) fn on_sealed_remotely(&mut self, count: u64) {
        self.sealed_remotely += count;
    }

    /// Return the newest generation and an upper bound of the packets that real servers have sealed with it.
    pub(super) fn sealed_remotely(&self) -> (u32, u32) {
        let sealed = match self.sealed_remotely {
            0 => 0,
            known => u32::try_from(known + MAX_IN_FLIGHT).unwrap_or(u32::MAX),
        };
        let ratchet = self.ratchet.as_ref();
        (ratchet.map_or(0, |ratchet| ratchet.keys.generation), sealed)
    }

    /// Return the notification that the client has acknowledged HANDSHAKE_DONE.
    pub(super) fn handshake_confirmed(&self) -> Arc<Notify> {
        self.confirmation.confirmed.clone()
    }

    /// noq sends HANDSHAKE_DONE in the packet that is being sealed.
    pub(super) fn on_handshake_done(&mut self) {
        self.confirmation.on_handshake_done();
    }

    /// A packet has been sealed.
    #[inline]
    pub(super) fn on_sent(&mut self, nonce: Nonce) {
        self.confirmation.on_sent(nonce);
    }

    /// The client acknowledges packets.
    #[inline]
    pub(super) fn on_ack(&mut self, ack: &Ack<'_>) {
        self.confirmation.on_ack(ack);
    }
}

/// Traffic secrets, each derived from the one before (RFC 9001, section 6.1).
pub(super) struct Ratchet {
    /// TLS number of the cipher suite.
    suite_number: u16,
    /// The first secret, from which the header protection key is derived for the life of the connection.
    header_secret: Bytes,
    /// The newest keys.
    keys: Keys,
    suite: Suite,
}

impl Ratchet {
    /// Start from the first secret; `None` if the suite is unknown.
    fn new(suite_number: u16, secret: Vec<u8>) -> Option<Self> {
        let suite = Suite::of(suite_number).ok()?;
        let secret = Bytes::from(secret);
        Some(Self {
            suite_number,
            header_secret: secret.clone(),
            keys: Keys {
                generation: 0,
                secret,
            },
            suite,
        })
    }

    /// Return the TLS number of the cipher suite.
    pub(super) fn suite(&self) -> u16 {
        self.suite_number
    }

    /// Return the secret from which the header protection key is derived.
    pub(super) fn header_secret(&self) -> &Bytes {
        &self.header_secret
    }

    /// Return the newest keys.
    pub(super) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Advance to `generation`. Returns the keys if they are new.
    fn advance(&mut self, generation: u32) -> Option<&Keys> {
        if generation <= self.keys.generation {
            return None;
        }
        while self.keys.generation < generation {
            let next = self.suite.update(&self.keys);
            self.keys = next.expect("a secret is as long as the hash");
        }
        Some(&self.keys)
    }
}

/// True if the client knows that the handshake is confirmed (RFC 9001, section 4.1.2). Keys must not be updated before.
#[derive(Debug, Default)]
struct HandshakeConfirmation {
    state: ConfirmationState,
    confirmed: Arc<Notify>,
}

#[derive(Debug, Default)]
enum ConfirmationState {
    #[default]
    NotSent,
    /// The packet that is being sealed contains HANDSHAKE_DONE.
    Sending,
    /// This packet contained HANDSHAKE_DONE.
    Sent(Nonce),
    /// The client has acknowledged HANDSHAKE_DONE.
    Acknowledged,
}

impl HandshakeConfirmation {
    /// noq sends HANDSHAKE_DONE, possibly again.
    fn on_handshake_done(&mut self) {
        if !matches!(self.state, ConfirmationState::Acknowledged) {
            self.state = ConfirmationState::Sending;
        }
    }

    #[inline]
    fn on_sent(&mut self, nonce: Nonce) {
        if matches!(self.state, ConfirmationState::Sending) {
            self.state = ConfirmationState::Sent(nonce);
        }
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if let ConfirmationState::Sent(nonce) = self.state
            && nonce.path == ack.path
            && ack.ranges().any(|range| range.contains(&nonce.number))
        {
            self.state = ConfirmationState::Acknowledged;
            self.confirmed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use frontage_quic_wire::frames::{Frame, read};
    use futures_util::FutureExt as _;

    use super::*;

    /// RFC 9001, appendix A.5.
    #[test]
    fn ratchet_derives_rfc_9001_secret_after_key_update() {
        let secret = [
            0x9a, 0xc3, 0x12, 0xa7, 0xf8, 0x77, 0x46, 0x8e, 0xbe, 0x69, 0x42, 0x27, 0x48, 0xad,
            0x00, 0xa1, 0x54, 0x43, 0xf1, 0x82, 0x03, 0xa0, 0x7d, 0x60, 0x60, 0xf6, 0x88, 0xf3,
            0x0f, 0x21, 0x63, 0x2b,
        ];
        let next = [
            0x12, 0x23, 0x50, 0x47, 0x55, 0x03, 0x6d, 0x55, 0x63, 0x42, 0xee, 0x93, 0x61, 0xd2,
            0x53, 0x42, 0x1a, 0x82, 0x6c, 0x9e, 0xcd, 0xf3, 0xc7, 0x14, 0x86, 0x84, 0xb3, 0x6b,
            0x71, 0x48, 0x81, 0xf9,
        ];
        let mut ratchet = Ratchet::new(0x1303, secret.to_vec()).expect("valid suite");
        assert_eq!(ratchet.advance(0), None);
        let keys = ratchet.advance(1).expect("new keys").clone();
        assert_eq!((keys.generation, &keys.secret[..]), (1, &next[..]));
        assert_eq!(ratchet.advance(1), None);
        assert_eq!(ratchet.header_secret[..], secret);
        assert!(Ratchet::new(0x1304, secret.to_vec()).is_none());
    }

    /// The client acknowledges packet `number` of `path` only.
    fn ack(confirmation: &mut HandshakeConfirmation, path: u8, number: u8) {
        let wire = [0x3e, path, number, 0, 0, 0];
        let frame = read(&wire).next();
        let Some(Frame::Ack(ack)) = frame else {
            panic!("{frame:?}");
        };
        confirmation.on_ack(&ack);
    }

    fn send(confirmation: &mut HandshakeConfirmation, number: u64) {
        confirmation.on_sent(Nonce { path: 0, number });
    }

    #[test]
    fn handshake_is_confirmed_by_ack_of_handshake_done() {
        let mut confirmation = HandshakeConfirmation::default();
        let confirmed = confirmation.confirmed.clone();
        let is_confirmed = || confirmed.notified().now_or_never().is_some();
        send(&mut confirmation, 4);
        ack(&mut confirmation, 0, 4);
        confirmation.on_handshake_done();
        send(&mut confirmation, 5);
        send(&mut confirmation, 6);
        for (path, number) in [(0, 4), (0, 6), (1, 5)] {
            ack(&mut confirmation, path, number);
        }
        assert!(!is_confirmed());
        // The packet was lost, and noq sends HANDSHAKE_DONE again.
        confirmation.on_handshake_done();
        send(&mut confirmation, 7);
        ack(&mut confirmation, 0, 7);
        assert!(is_confirmed());
        // A second acknowledgment does not notify again.
        confirmation.on_handshake_done();
        send(&mut confirmation, 8);
        ack(&mut confirmation, 0, 8);
        assert!(!is_confirmed());
    }
}
