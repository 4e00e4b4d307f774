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

use frontage_quic::frames::Ack;

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
    /// The packet of this number does.
    Asked(u64, bool),
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

    fn asked(&mut self, number: u64) {
        if let Self::Asking(last) = *self {
            *self = Self::Asked(number, last);
        }
    }

    /// The client says what it has of noq's; whether that is the end of it.
    fn answered(&mut self, has: impl Fn(u64) -> bool) -> bool {
        match *self {
            Self::Asked(number, last) if has(number) => {
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

    /// noq sends a packet on `path`.
    #[inline]
    pub(super) fn asks(&mut self, path: u32, number: u64) {
        if self.asking == Some(path) {
            self.asking = None;
            self.asked = Some(path);
            for loan in self.paths.iter().filter_map(Path::loan) {
                loan.vigil.asked(number);
            }
        }
    }

    /// The client acknowledges packets.
    #[inline]
    pub(super) fn answers(&mut self, ack: &Ack<'_>) {
        if self.asked != Some(ack.path) {
            return;
        }
        let mut is_asked = false;
        for loan in self.paths.iter().filter_map(Path::loan) {
            let has = |number| ack.ranges().any(|range| range.contains(&number));
            if loan.vigil.answered(has) {
                loan.feedback.unheard();
            }
            is_asked |= matches!(loan.vigil, Vigil::Asked(..));
        }
        if !is_asked {
            self.asked = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_answers_twice_and_not_the_real_server_does_not_hear_it() {
        let mut vigil = Vigil::default();
        assert!(!vigil.answered(|_| true));
        vigil.probed(false);
        vigil.asked(7);
        vigil.asked(8);
        assert!(!vigil.answered(|number| number == 8));
        assert!(!vigil.answered(|number| number == 7));
        assert_eq!(vigil, Vigil::There);
        // Not for long enough.
        vigil.probed(false);
        vigil.asked(9);
        assert!(!vigil.answered(|number| number == 9));
        assert_eq!(vigil, Vigil::There);
        vigil.probed(true);
        vigil.asked(10);
        // That one was lost.
        vigil.probed(true);
        vigil.asked(11);
        assert!(!vigil.answered(|number| number == 10));
        assert!(vigil.answered(|number| number == 11));
        vigil.probed(true);
        assert_eq!(vigil, Vigil::Unheard);
    }

    /// Both are lost, noq's question and the probe.
    #[test]
    fn a_client_that_is_away_begins_anew() {
        let mut vigil = Vigil::default();
        for _ in 0..3 {
            vigil.probed(true);
            vigil.asked(1);
            vigil.probed(true);
            vigil.asked(2);
            // Another packet of noq's is answered, later.
            assert!(!vigil.answered(|number| number == 3));
        }
        vigil.probed(true);
        assert_eq!(vigil, Vigil::Asking(false));
    }
}
