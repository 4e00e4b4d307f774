// SPDX-License-Identifier: Apache-2.0
//! Packet numbers while a single real server sends on a path that several senders share.
//!
//! ```text
//!   on the wire   40 ........ 70 71 72 ........ 102 103 104 ........ 134 135
//!                 ----- 1 ------ n  ------ 1 ------  n   ------ 1 ------  n      1: real server, n: reserved for noq
//!                       ^                       ^
//!                   at the client          numbers that the real server has ahead
//! ```
//!
//! Its packets travel further than noq's, and it has numbers for packets that it will send later. A packet of noq with the next
//! number would overtake all these packets, and the client would treat those that are far below it as duplicates. Some
//! numbers are therefore reserved for noq. noq's packet gets the reserved number that is closest to those of the
//! real server's packets that reach the client at the same time ([`Arrivals`]).

use std::collections::VecDeque;
use std::ops::{Range, RangeInclusive};
use std::time::{Duration, Instant};

/// Number of reserved numbers per round trip.
const RESERVED_PER_ROUND_TRIP: u64 = 16;
/// Limits of the distance between reserved numbers.
const STRIDES: RangeInclusive<u64> = 4..=32;
/// Distance from the largest number at the client to those that a noq client treats as duplicates.
const DUPLICATE_WINDOW: u64 = 128;
/// Maximum number of numbers per allocation.
const MAX_ALLOCATION: u64 = 1 << 13;

/// Number for a packet of noq.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// This reserved number.
    Reserved(u64),
    /// The next number that was not allocated, which is hardly higher than the real server's.
    Next,
    /// The next number. It is so much higher that the real server's packets may be lost: noq sends too much for the reserved
    /// numbers.
    Overtaking,
}

/// The only real server that sends.
#[derive(Debug)]
pub(super) struct SoleSender {
    id: u32,
    /// Numbers reserved for noq, in ascending order.
    reserved: VecDeque<u64>,
    /// Numbers allocated since the last reserved one.
    since_reserved: u64,
    arrivals: Arrivals,
}

impl SoleSender {
    /// Let delegation `id` be the only sender. `acknowledged` is one past the largest number that the client has acknowledged.
    pub(super) fn new(id: u32, acknowledged: u64, now: Instant) -> Self {
        Self {
            id,
            reserved: VecDeque::new(),
            since_reserved: 0,
            arrivals: Arrivals::new(acknowledged, now),
        }
    }

    /// Return the id of the delegation.
    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// Reserve numbers above all earlier ones for noq.
    pub(super) fn reserve(&mut self, numbers: Range<u64>) {
        self.reserved.extend(numbers);
        self.since_reserved = 0;
    }

    /// Allocate up to `wanted` numbers from `next` on. Returns the real server's ranges. The numbers between them, and one between
    /// `next` and the first range if there is one, are noq's.
    pub(super) fn allocate(&mut self, next: u64, wanted: u64) -> Vec<Range<u64>> {
        let (mut next, mut left) = (next, wanted.min(MAX_ALLOCATION));
        let stride = self.arrivals.progress() / RESERVED_PER_ROUND_TRIP;
        let stride = stride.clamp(*STRIDES.start(), *STRIDES.end());
        let mut ranges = Vec::new();
        while left > 0 {
            if self.since_reserved + 1 >= stride {
                self.reserved.push_back(next);
                self.since_reserved = 0;
                next += 1;
            }
            let count = left.min(stride - 1 - self.since_reserved);
            ranges.push(next..next + count);
            self.since_reserved += count;
            next += count;
            left -= count;
        }
        ranges
    }

    /// Choose a number for a packet of noq that leaves now; `lowest` is one past noq's highest number, and `next` the first number
    /// that was not allocated.
    pub(super) fn choose(
        &mut self,
        lowest: u64,
        next: u64,
        round_trip: Duration,
        now: Instant,
    ) -> Choice {
        self.arrivals.forget(round_trip, now);
        let expected = self.arrivals.expected();
        let wanted = expected.max(lowest);
        // The rate may double within a round trip. Otherwise few packets are lost.
        let limit = expected + DUPLICATE_WINDOW + self.arrivals.progress();
        while self.reserved.front().is_some_and(|number| *number < wanted) {
            self.reserved.pop_front();
        }
        match self.reserved.front() {
            Some(number) if *number <= limit => self
                .reserved
                .pop_front()
                .map_or(Choice::Next, Choice::Reserved),
            None if next <= limit => {
                self.since_reserved = 0;
                Choice::Next
            }
            _ => Choice::Overtaking,
        }
    }

    /// Handle an ACK of the real server's packets up to `largest`.
    pub(super) fn on_ack(&mut self, largest: u64, round_trip: Duration, now: Instant) {
        self.arrivals.on_ack(largest + 1, round_trip, now);
    }
}

/// Estimate of the numbers that the client receives while a packet of noq is on its way.
///
/// noq's packet arrives half a round trip from now, and the newest ACK shows what the client had received half a round trip ago.
/// The client has received as many packets since as in the round trip before that ACK, unless the rate has changed.
#[derive(Debug)]
struct Arrivals {
    /// One past the largest acknowledged number.
    acknowledged: u64,
    /// Earlier values, and when they were current. The first one is at least a round trip old, if any is.
    earlier: VecDeque<(Instant, u64)>,
}

impl Arrivals {
    /// Number of values per round trip.
    const RESOLUTION: u32 = 32;

    fn new(acknowledged: u64, now: Instant) -> Self {
        Self {
            acknowledged,
            earlier: VecDeque::from([(now, acknowledged)]),
        }
    }

    fn on_ack(&mut self, acknowledged: u64, round_trip: Duration, now: Instant) {
        if acknowledged <= self.acknowledged {
            return;
        }
        self.acknowledged = acknowledged;
        let interval = round_trip / Self::RESOLUTION;
        let newest = self.earlier.back();
        if newest.is_none_or(|(at, _)| now.saturating_duration_since(*at) >= interval) {
            self.earlier.push_back((now, acknowledged));
        }
        self.forget(round_trip, now);
    }

    /// Forget the values before the newest one that is at least a round trip old.
    fn forget(&mut self, round_trip: Duration, now: Instant) {
        let is_old = |at: Instant| now.saturating_duration_since(at) >= round_trip;
        while self.earlier.get(1).is_some_and(|(at, _)| is_old(*at)) {
            self.earlier.pop_front();
        }
    }

    /// Return how many numbers the client acknowledged in the last round trip.
    fn progress(&self) -> u64 {
        let before = self.earlier.front();
        before.map_or(0, |(_, before)| self.acknowledged - before)
    }

    /// Return the number that is expected to be the largest at the client when a packet of noq arrives that leaves now.
    fn expected(&self) -> u64 {
        self.acknowledged + self.progress()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(60);

    fn after(begin: Instant, ms: u64) -> Instant {
        begin + Duration::from_millis(ms)
    }

    #[test]
    fn each_stride_has_one_reserved_number() {
        let begin = Instant::now();
        let mut sole = SoleSender::new(1, 100, begin);
        assert!(
            sole.allocate(100, 2)
                .into_iter()
                .eq(std::iter::once(100..102))
        );
        assert_eq!(sole.allocate(102, 5), [102..103, 104..107, 108..109]);
        assert_eq!(sole.reserved, [103, 107]);
        assert_eq!(sole.allocate(109, 0), []);
        // More numbers per round trip are further apart.
        for (acknowledged, stride) in [(260, 10), (260 + 16 * 40, 32)] {
            let mut sole = SoleSender::new(1, 100, begin);
            sole.on_ack(acknowledged - 1, ROUND_TRIP, begin);
            let ranges = sole.allocate(1000, u64::MAX);
            let reserved = sole.reserved.make_contiguous();
            assert!(reserved.windows(2).all(|two| two[1] - two[0] == stride));
            assert_eq!(ranges.into_iter().flatten().count() as u64, MAX_ALLOCATION);
        }
    }

    /// The real server's packets arrive at 10 per millisecond.
    #[test]
    fn noq_gets_a_number_close_to_those_that_arrive_with_its_packet() {
        let begin = Instant::now();
        let mut sole = SoleSender::new(1, 0, begin);
        let mut next = sole.allocate(0, 10).pop().unwrap().end;
        for ms in 1..=200 {
            sole.on_ack(10 * ms - 1, ROUND_TRIP, after(begin, ms));
            if next < 10 * ms + 3000 {
                next = sole.allocate(next, 40).pop().unwrap().end;
            }
        }
        next = sole.allocate(next, 3000).pop().unwrap().end;
        // The client has received 600 more numbers by then.
        let now = after(begin, 200);
        let mut lowest = 0;
        loop {
            match sole.choose(lowest, next, ROUND_TRIP, now) {
                Choice::Reserved(number) => {
                    let least = lowest.max(2600);
                    assert!((least..least + 32).contains(&number), "{number}");
                    lowest = number + 1;
                }
                Choice::Next => panic!("{lowest}"),
                // Many more than are likely to be sent at once.
                Choice::Overtaking => break assert!((3100..3400).contains(&lowest), "{lowest}"),
            }
        }
        // The real server has paused for longer than a round trip.
        let mut sole = SoleSender::new(1, 0, begin);
        sole.allocate(0, 4000);
        sole.on_ack(1999, ROUND_TRIP, now);
        let chosen = sole.choose(0, next, ROUND_TRIP, after(now, 60));
        assert!(
            matches!(chosen, Choice::Reserved(2000..=2031)),
            "{chosen:?}"
        );
    }

    #[test]
    fn next_number_is_used_where_it_is_close_enough() {
        let begin = Instant::now();
        let mut sole = SoleSender::new(1, 100, begin);
        let next = sole.allocate(100, 2).pop().unwrap().end;
        assert_eq!(sole.choose(100, next, ROUND_TRIP, begin), Choice::Next);
        let limit = 100 + DUPLICATE_WINDOW;
        assert_eq!(sole.choose(100, limit, ROUND_TRIP, begin), Choice::Next);
        assert_eq!(
            sole.choose(100, limit + 1, ROUND_TRIP, begin),
            Choice::Overtaking
        );
        // The next number separates ranges like a reserved one.
        assert_eq!(
            sole.allocate(next + 1, 4),
            [next + 1..next + 4, next + 5..next + 6]
        );
    }
}
