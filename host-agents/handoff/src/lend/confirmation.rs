//! Whether the client knows that the handshake is confirmed (RFC 9001, section 4.1.2), before which no keys are updated.

use std::sync::Arc;

use frontage_quic::session::Nonce;
use frontage_quic_wire::frames::Ack;
use tokio::sync::Notify;

/// Of one connection.
#[derive(Debug, Default)]
pub(super) struct Confirmation {
    step: Step,
    known: Arc<Notify>,
}

#[derive(Debug, Default)]
enum Step {
    #[default]
    Unsaid,
    /// HANDSHAKE_DONE is in the packet that is being sealed.
    Saying,
    /// It was in that one.
    Said(Nonce),
    /// The client has acknowledged it.
    Known,
}

impl Confirmation {
    /// Notified once the client knows.
    pub(super) fn known(&self) -> Arc<Notify> {
        self.known.clone()
    }

    /// noq says so, maybe again.
    pub(super) fn say(&mut self) {
        if !matches!(self.step, Step::Known) {
            self.step = Step::Saying;
        }
    }

    /// A packet has left.
    #[inline]
    pub(super) fn sent(&mut self, nonce: Nonce) {
        if matches!(self.step, Step::Saying) {
            self.step = Step::Said(nonce);
        }
    }

    /// The client acknowledges packets.
    #[inline]
    pub(super) fn acked(&mut self, ack: &Ack<'_>) {
        if let Step::Said(nonce) = self.step
            && nonce.path == ack.path
            && ack.ranges().any(|range| range.contains(&nonce.number))
        {
            self.step = Step::Known;
            self.known.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use frontage_quic_wire::frames::{Frame, read};
    use futures_util::FutureExt as _;

    use super::*;

    /// The client has packet `number` of `path`, and no other.
    fn acked(confirmation: &mut Confirmation, path: u8, number: u8) {
        let wire = [0x3e, path, number, 0, 0, 0];
        let frame = read(&wire).next();
        let Some(Frame::Ack(ack)) = frame else {
            panic!("{frame:?}");
        };
        confirmation.acked(&ack);
    }

    fn sent(confirmation: &mut Confirmation, number: u64) {
        confirmation.sent(Nonce { path: 0, number });
    }

    #[test]
    fn the_client_knows_once_it_has_acknowledged_what_says_so() {
        let mut confirmation = Confirmation::default();
        let known = confirmation.known();
        let is_known = || known.notified().now_or_never().is_some();
        sent(&mut confirmation, 4);
        acked(&mut confirmation, 0, 4);
        confirmation.say();
        sent(&mut confirmation, 5);
        sent(&mut confirmation, 6);
        for (path, number) in [(0, 4), (0, 6), (1, 5)] {
            acked(&mut confirmation, path, number);
        }
        assert!(!is_known());
        // That was lost, and noq says it again.
        confirmation.say();
        sent(&mut confirmation, 7);
        acked(&mut confirmation, 0, 7);
        assert!(is_known());
        // Nobody is told twice.
        confirmation.say();
        sent(&mut confirmation, 8);
        acked(&mut confirmation, 0, 8);
        assert!(!is_known());
    }
}
