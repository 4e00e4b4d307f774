//! Whether the client hears a real server (QDSR, section 6.2).
//!
//! ```text
//!   real server   probe, Silent ............ probe, Silent ......................... unheard: its loan is over
//!   balancer                 PING, by its own path .... PING, by its own path ...... |
//!   client                             answers the balancer         answers the balancer, and the real server not
//! ```
//!
//! A client that hears nothing for a time, whoever sends, answers neither; when it is there again, it may answer what the balancer sends next and not have got the
//! real server's last probe. So it must have answered at one probe of the real server's, and then at the next the very packet that left together with it; and the
//! time in which it would acknowledge the probe must have passed.

use tokio::time::Instant;

use frontage_quic::frames::Ack;

use super::path::Path;
use super::state::State;

/// Of one loan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Vigil {
    /// Nothing is amiss.
    #[default]
    Calm,
    /// The real server probes, and noq's next packet asks the client; what is said about the probe comes until then, if that matters.
    Asking(Option<Instant>),
    /// The packet of this number does.
    Asked(u64, Option<Instant>),
    /// The client hears noq.
    There,
    /// And not the real server, unless it says so yet.
    Unheard,
}

impl Vigil {
    /// The real server has probed; if that is acknowledged, then until this.
    fn probed(&mut self, until: Instant) {
        *self = match self {
            Self::Unheard => Self::Unheard,
            Self::There => Self::Asking(Some(until)),
            _ => Self::Asking(None),
        };
    }

    fn asked(&mut self, number: u64) {
        if let Self::Asking(until) = *self {
            *self = Self::Asked(number, until);
        }
    }

    /// The client says what it has of noq's; until when the real server has time, if it was asked twice.
    fn answered(&mut self, has: impl Fn(u64) -> bool) -> Option<Instant> {
        match *self {
            Self::Asked(number, until) if has(number) => {
                *self = match until {
                    None => Self::There,
                    Some(_) => Self::Unheard,
                };
                until
            }
            _ => None,
        }
    }
}

impl State {
    /// The real server of `path` has probed, and its client would say so until then. The path by which noq is to ask the client.
    pub(super) fn probed(&mut self, path: u32, until: Instant) -> Option<u32> {
        let own = self.paths.own()?;
        let loan = self.paths.get(path)?.loan()?;
        if loan.vigil == Vigil::Unheard && loan.feedback.due().is_none() {
            // That was called off.
            loan.vigil = Vigil::Calm;
        }
        loan.vigil.probed(until);
        // The client may have moved, of which nobody hears that sends to where it was.
        loan.feedback.look();
        self.asking = Some(own);
        Some(own)
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
            if let Some(until) = loan.vigil.answered(has) {
                loan.feedback.unheard(Some(until));
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
    use std::time::Duration;

    #[test]
    fn who_answers_twice_and_not_the_real_server_does_not_hear_it() {
        let first = Instant::now();
        let second = first + Duration::from_secs(1);
        let mut vigil = Vigil::default();
        assert_eq!(vigil.answered(|_| true), None);
        vigil.probed(first);
        vigil.asked(7);
        vigil.asked(8);
        assert_eq!(vigil.answered(|number| number == 8), None);
        assert_eq!(vigil.answered(|number| number == 7), None);
        assert_eq!(vigil, Vigil::There);
        vigil.probed(second);
        vigil.asked(9);
        assert_eq!(vigil.answered(|number| number == 9), Some(second));
        vigil.probed(first);
        assert_eq!(vigil, Vigil::Unheard);
    }

    /// Both are lost, noq's question and the probe.
    #[test]
    fn a_client_that_is_away_begins_anew() {
        let until = Instant::now();
        let mut vigil = Vigil::default();
        for _ in 0..3 {
            vigil.probed(until);
            vigil.asked(1);
            assert_eq!(vigil.answered(|number| number == 1), None);
            vigil.probed(until);
            vigil.asked(2);
            // Another packet of noq's is answered, later.
            assert_eq!(vigil.answered(|number| number == 3), None);
        }
        vigil.probed(until);
        assert_eq!(vigil, Vigil::Asking(None));
    }
}
