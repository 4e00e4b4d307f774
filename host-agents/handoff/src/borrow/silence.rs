//! Whether the client acknowledges anything. The way to it may be cut though the one from it is not: then the balancer hears the client and this server
//! hears nothing, which alone may as well mean that the client is away. So the balancer is told, and looks (QDSR, section 6.2).

use std::time::{Duration, Instant};

/// A shorter silence concerns nobody but loss recovery.
const LEAST: Duration = Duration::from_millis(100);
/// After this a real server is given up, if the client hears its balancer. No less than what a switch may refuse to it for the sake of shorter answers (AIFO), and no
/// more than leaves a round trip until a second is over.
pub const PATIENCE: Duration = Duration::from_millis(800);
/// By which a client may delay acknowledgements, unless it says otherwise (`max_ack_delay`; RFC 9000, section 18.2).
const DELAY: Duration = Duration::from_millis(25);

/// Within which an acknowledgement is to be expected; noq's probe time-out (RFC 9002, section 6.2.1) for a round trip that varies by an eighth, as which noq
/// says no more.
fn timeout(rtt: Duration) -> Duration {
    rtt * 3 / 2 + DELAY
}

/// Something left for a client that has acknowledged nothing for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silent {
    /// For how long.
    pub silence: Duration,
    /// One more than the largest number that it acknowledged; 0: none.
    pub next: u64,
}

/// Of the packets of one grant.
#[derive(Debug, Default)]
pub struct Silence {
    /// The largest number that is acknowledged.
    heard: Option<u64>,
    /// When the client could last have acknowledged something new, if something is under way.
    since: Option<Instant>,
    told: Option<Instant>,
}

impl Silence {
    /// A packet leaves. Whether somebody is to look if that is worth telling.
    pub fn sent(&mut self, now: Instant) -> bool {
        let since = *self.since.get_or_insert(now);
        now.saturating_duration_since(since) >= LEAST
    }

    /// The client has acknowledged `largest`, and packets below `next` have left.
    pub fn heard(&mut self, largest: u64, next: u64, now: Instant) {
        if self.heard.is_none_or(|heard| largest > heard) {
            self.heard = Some(largest);
            self.since = (largest + 1 < next).then_some(now);
            self.told = None;
        }
    }

    /// A packet has just left: is that worth telling, to a client at the end of this round trip? Not what leaves before an acknowledgement can come, so these
    /// are probes; and not more of them in a round trip than one, so that the balancer's question can be answered before the next.
    pub fn tell(&mut self, rtt: Duration, now: Instant) -> Option<Silent> {
        let silence = now.saturating_duration_since(self.since?);
        let timeout = timeout(rtt);
        let next = self.heard.map_or(0, |largest| largest + 1);
        let told = self.told.map(|told| now.saturating_duration_since(told));
        if silence < timeout.max(LEAST) || told.is_some_and(|ago| ago < timeout) {
            return None;
        }
        self.told = Some(now);
        Some(Silent { silence, next })
    }

    /// When it is worth telling without a probe: once it is long enough to be given up, if it was told before.
    pub fn overdue(&self, rtt: Duration) -> Option<Instant> {
        let (until, told) = (self.since? + PATIENCE, self.told?);
        (told < until).then(|| until.max(told + timeout(rtt)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(60);

    #[test]
    fn probes_that_are_not_acknowledged_are_told() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let mut silence = Silence::default();
        assert_eq!(silence.tell(RTT, at(0)), None);
        for ms in 0..60 {
            assert!(!silence.sent(at(ms)));
        }
        // 115 ms after the first packet at the earliest, and as long after the last telling.
        assert!(silence.sent(at(110)));
        assert_eq!(silence.tell(RTT, at(110)), None);
        let silent = |ms, next| Silent {
            silence: Duration::from_millis(ms),
            next,
        };
        assert!(silence.sent(at(120)));
        assert_eq!(silence.tell(RTT, at(120)), Some(silent(120, 0)));
        assert_eq!(silence.tell(RTT, at(121)), None);
        assert_eq!(silence.tell(RTT, at(360)), Some(silent(360, 0)));
        assert_eq!(silence.overdue(RTT), Some(begin + PATIENCE));
        // News of what was known before are none.
        silence.heard(7, 60, at(400));
        silence.heard(7, 60, at(480));
        assert!(silence.sent(at(500)));
        assert_eq!(silence.overdue(RTT), None);
        assert_eq!(silence.tell(RTT, at(520)), Some(silent(120, 8)));
        assert_eq!(silence.tell(RTT, at(1190)), Some(silent(790, 8)));
        assert_eq!(silence.overdue(RTT), Some(at(1305)));
        assert_eq!(silence.tell(RTT, at(1305)), Some(silent(905, 8)));
        assert_eq!(silence.overdue(RTT), None);
        // Nothing is under way any more.
        silence.heard(60, 61, at(1310));
        assert!(!silence.sent(at(1900)));
        assert_eq!(silence.tell(RTT, at(1900)), None);
    }
}
