//! Whether the client hears a real server (QDSR, section 6.2).
//!
//! ```text
//!   real server   probe, Silent ............ probe, Silent ......................... unheard: its loan is over
//!   balancer                 PING, by its own path .... PING, by its own path ...... |
//!   client                             answers the balancer         answers the balancer, and the real server not
//! ```
//!
//! A client that hears nothing for a time, whoever sends, answers neither; when it is there again, it may answer what the balancer sends next and not have got the
//! real server's last probe. So it must have answered at one probe of the real server's, and then at a later one, when it has acknowledged nothing for long enough.
//! What it has acknowledged may not have come to the real server yet, which therefore says what has. No clock decides: what the client says is read in the order in which it said it, so what it said of the first probe is read before its second answer, however
//! busy the balancer is.

use frontage_quic::session::Nonce;
use frontage_quic_wire::frames::Ack;

use super::Error;
use super::path::Path;
use super::state::State;

/// Of one loan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Vigil {
    /// Nothing is amiss.
    #[default]
    Calm,
    /// The real server probes, and noq's next packet asks the client; whether for the last time.
    Asking(bool),
    /// This packet does.
    Asked(Nonce, bool),
    /// The client hears noq.
    There,
    /// And not the real server.
    Unheard,
}

impl Vigil {
    /// The real server has probed; whether it was not heard for long enough.
    fn probed(&mut self, late: bool) {
        *self = match self {
            Self::Unheard => Self::Unheard,
            Self::There => Self::Asking(late),
            Self::Asking(true) | Self::Asked(_, true) => Self::Asking(true),
            _ => Self::Asking(false),
        };
    }

    fn asked(&mut self, packet: Nonce) {
        if let Self::Asking(last) = *self {
            *self = Self::Asked(packet, last);
        }
    }

    /// The client says what it has of noq's; whether that is the end of it.
    fn answered(&mut self, has: impl Fn(Nonce) -> bool) -> bool {
        match *self {
            Self::Asked(packet, last) if has(packet) => {
                *self = if last { Self::Unheard } else { Self::There };
                last
            }
            _ => false,
        }
    }
}

impl State {
    /// The real server of `path` has probed, and heard of no number from `next` on for long, or too long. The path by which noq is to ask the client, if that may
    /// not have heard it.
    pub(super) fn probed(
        &mut self,
        path: u32,
        next: u64,
        late: bool,
    ) -> Result<Option<u32>, Error> {
        let own = self.paths.own().ok_or(Error::Path(path))?;
        let lent = self.paths.get(path).ok_or(Error::Path(path))?;
        let is_acked = lent.is_acked_from(next);
        let loan = lent.loan().ok_or(Error::Path(path))?;
        // The client may have moved, of which nobody hears that sends to where it was.
        loan.feedback.look();
        if is_acked {
            // What it says to that is on its way to the real server.
            return Ok(None);
        }
        if loan.vigil == Vigil::Unheard && !loan.feedback.is_unheard() {
            // That was called off.
            loan.vigil = Vigil::Calm;
        }
        loan.vigil.probed(late);
        self.asking = Some(own);
        Ok(Some(own))
    }

    /// noq sends a packet.
    #[inline]
    pub(super) fn asks(&mut self, packet: Nonce) {
        if self.asking == Some(packet.path) {
            self.asking = None;
            self.is_asked = true;
            for loan in self.paths.iter().filter_map(Path::loan) {
                loan.vigil.asked(packet);
            }
        }
    }

    /// The client acknowledges packets.
    #[inline]
    pub(super) fn answers(&mut self, ack: &Ack<'_>) {
        if !self.is_asked {
            return;
        }
        self.is_asked = false;
        // noq's own path may be another than at an earlier question, with numbers of its own.
        let has = |packet: Nonce| {
            packet.path == ack.path && ack.ranges().any(|range| range.contains(&packet.number))
        };
        for loan in self.paths.iter().filter_map(Path::loan) {
            if loan.vigil.answered(has) {
                loan.feedback.unheard();
            }
            self.is_asked |= matches!(loan.vigil, Vigil::Asked(..));
        }
    }
}

#[cfg(test)]
mod tests {
    use frontage_quic_wire::frames::{Frame, read};

    use super::*;

    fn packet(number: u64) -> Nonce {
        Nonce { path: 0, number }
    }

    #[test]
    fn who_answers_twice_and_not_the_real_server_does_not_hear_it() {
        let mut vigil = Vigil::default();
        assert!(!vigil.answered(|_| true));
        vigil.probed(false);
        vigil.asked(packet(7));
        vigil.asked(packet(8));
        assert!(!vigil.answered(|has| has == packet(8)));
        assert!(!vigil.answered(|has| has == packet(7)));
        assert_eq!(vigil, Vigil::There);
        // Not for long enough.
        vigil.probed(false);
        vigil.asked(packet(9));
        assert!(!vigil.answered(|has| has == packet(9)));
        assert_eq!(vigil, Vigil::There);
        vigil.probed(true);
        vigil.asked(packet(10));
        // That one was lost.
        vigil.probed(true);
        vigil.asked(packet(11));
        assert!(!vigil.answered(|has| has == packet(10)));
        assert!(vigil.answered(|has| has == packet(11)));
        vigil.probed(true);
        assert_eq!(vigil, Vigil::Unheard);
    }

    /// noq asks for two loans, by two paths of its own.
    #[test]
    fn a_number_of_another_path_is_no_answer() {
        let mut state = State::default();
        for (lent, own) in [(5, 0), (6, 2)] {
            let path = state.paths.get_or_new(lent).expect("room");
            path.lend(0).expect("nobody has it");
            path.loan().expect("lent").vigil.probed(false);
            state.asking = Some(own);
            state.asks(Nonce {
                path: own,
                number: 7,
            });
        }
        let acked = [0x3e, 2, 7, 0, 0, 0];
        let Some(Frame::Ack(ack)) = read(&acked).next() else {
            panic!("no acknowledgement");
        };
        state.answers(&ack);
        let mut vigil = |lent| {
            state
                .paths
                .get(lent)
                .and_then(Path::loan)
                .map(|loan| loan.vigil)
        };
        assert_eq!(vigil(5), Some(Vigil::Asked(packet(7), false)));
        assert_eq!(vigil(6), Some(Vigil::There));
        assert!(state.is_asked);
    }

    /// Both are lost, noq's question and the probe.
    #[test]
    fn a_client_that_is_away_begins_anew() {
        let mut vigil = Vigil::default();
        for _ in 0..3 {
            vigil.probed(true);
            vigil.asked(packet(1));
            vigil.probed(true);
            vigil.asked(packet(2));
            // Another packet of noq's is answered, later.
            assert!(!vigil.answered(|has| has == packet(3)));
        }
        vigil.probed(true);
        assert_eq!(vigil, Vigil::Asking(false));
    }
}
