//! When real servers are told what can wait: after a small part of a round trip, so that what all clients say in the meantime goes to a real server in one packet
//! (delayed relaying; QDSR, section 8).

use std::sync::LazyLock;
use std::time::Duration;

use tokio::time::Instant;

/// The part of a round trip that acknowledgements may wait: a real server takes it for so much longer.
const PART: u32 = 16;
/// What they may wait at most, in milliseconds.
const LONGEST: u128 = 8;
/// From which the moments are counted: all connections have the same ones.
static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The next one for a client of this round-trip time, some milliseconds off; `None` for one that is too near to wait for.
pub(super) fn next(rtt: Duration, now: Instant) -> Option<Instant> {
    let longest = (rtt / PART).as_millis().min(LONGEST);
    // Of powers of two, so that the moments of some are those of others.
    let apart = 1 << longest.checked_ilog2()?;
    let since = now.saturating_duration_since(*EPOCH).as_millis() as u64;
    Some(*EPOCH + Duration::from_millis((since / apart + 1) * apart))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_several_are_the_same() {
        let at = |ms| *EPOCH + Duration::from_millis(ms);
        let next = |rtt, now| next(Duration::from_millis(rtt), at(now));
        assert_eq!(next(15, 100), None);
        assert_eq!(next(16, 100), Some(at(101)));
        assert_eq!(next(60, 100), Some(at(102)));
        assert_eq!(next(100, 101), Some(at(104)));
        assert_eq!(next(1000, 103), Some(at(104)));
        assert_eq!(next(1000, 104), Some(at(112)));
    }
}
