// SPDX-License-Identifier: Apache-2.0
//! Packet numbers of a client with a single path: all senders share one number space (QDSR, appendix A).
//!
//! ```text
//!   on the wire   0 .......... 40 41 42 43 44 45 ...        the ledger: the owner of each number
//!                 noq          |---1---| n  |-2-
//!   noq's own     0 .......... .......... 40 .....          the map
//! ```
//!
//! The first delegation starts the ledger. Before it, noq's own numbers are those on the wire. Each delegation has an id that
//! stands for a path id; the client has no path with that id.
//!
//! # Limits
//!
//! - Clients treat packet numbers outside their window as duplicates; a noq client does so 128 below the largest number
//!   it has received, Chromium below the largest one whose ACK was acknowledged. While several senders are active, real servers therefore get numbers when they need them, and few
//!   at once. The few that they get ahead of a request expire ([`super::ahead`]).
//! - A real server that is the only one gets as many numbers as it expects to need ([`super::sole_sender`]), unless noq sends
//!   much at the same time.
//! - The client's ECN counts cover the packets of all senders, so they are not forwarded.
//! - noq's packets become longer by [`MAX_HEADER_GROWTH`] octets. noq gets a correspondingly smaller `max_udp_payload_size`, and the
//!   endpoint's `MtuDiscoveryConfig` must leave the same room.

use std::ops::Range;
use std::time::{Duration, Instant};

use frontage_quic::session::{MAX_HEADER_GROWTH, Nonce, Outgoing};

use super::ahead::AheadNumbers;
use super::sole_sender::{Choice, SoleSender};
use crate::number_ledger::{NumberLedger, NumberMap, Unsent};

/// Maximum number of packet numbers per allocation while several senders are active: half of a client's duplicate window.
///
/// The numbers are for packets that are ready to be sent, in the order of the requests, so the numbers that others get in the
/// meantime are only slightly higher.
const MAX_ALLOCATION: u64 = 64;

/// Number of numbers for noq's packets below those that a real server gets ahead: acknowledgments of requests, and probes of the
/// path MTU.
const RESERVED_BEFORE_AHEAD: u64 = 8;

/// Number of numbers after which a real server may be the only sender again when noq has first sent too much. Doubled each time.
const FIRST_HOLD: u64 = 128;
/// Maximum of these numbers.
const MAX_HOLD: u64 = 1 << 16;

/// Number of samples from which the round-trip time is estimated.
const SAMPLES: usize = 8;

/// noq's id among those of delegations.
const BALANCER: u32 = 0;

/// Minimum of `max_udp_payload_size` (RFC 9000, section 18.2).
const MIN_UDP_PAYLOAD_SIZE: u64 = 1200;

/// Return the `max_udp_payload_size` that noq gets if `size` is the client's.
pub(super) fn max_udp_payload_size(size: u64) -> u64 {
    size.saturating_sub(MAX_HEADER_GROWTH as u64)
        .max(MIN_UDP_PAYLOAD_SIZE)
}

/// An ACK of the client, split by sender.
#[derive(Debug)]
pub(super) struct SplitAck<'a> {
    /// noq's part, in noq's own numbers.
    pub(super) own: Vec<Range<u64>>,
    /// The parts of delegations, in numbers on the wire, the highest first. A part may contain numbers of other senders.
    pub(super) delegated: &'a [(u32, Range<u64>)],
}

/// The number space of a connection, from its first delegation on.
#[derive(Debug)]
pub(super) struct SharedNumbers {
    /// The first number of the ledger that noq had not used.
    begin: u64,
    ledger: NumberLedger<u32>,
    /// noq's own numbers.
    map: NumberMap,
    ahead: AheadNumbers,
    /// The only real server that sends, if noq sends little.
    sole: Option<SoleSender>,
    traffic: OwnTraffic,
    /// The highest delegation id so far.
    last_id: u32,
    /// Buffers, kept to avoid an allocation per ACK.
    acked: Vec<Range<u64>>,
    delegated: Vec<(u32, Range<u64>)>,
    own: Vec<Range<u64>>,
}

impl SharedNumbers {
    /// Create the number space; `next` is noq's next number, and `round_trip` its round-trip time to the client.
    pub(super) fn new(next: u64, round_trip: Duration) -> Self {
        Self {
            begin: next,
            ledger: NumberLedger::new(next, BALANCER),
            map: NumberMap::new(next),
            ahead: AheadNumbers::default(),
            sole: None,
            traffic: OwnTraffic::new(round_trip),
            last_id: 0,
            acked: Vec::new(),
            delegated: Vec::new(),
            own: Vec::new(),
        }
    }

    /// Return the id of a new delegation, and a lower bound of its packet numbers.
    pub(super) fn start_delegation(&mut self) -> Option<(u32, u64)> {
        self.last_id = self.last_id.checked_add(1)?;
        Some((self.last_id, self.ledger.next()))
    }

    /// Allocate up to `wanted` numbers to delegation `id`, and up to `ahead` more for later packets if it `is_sole`, that is, if
    /// no other real server sends. Returns ascending ranges.
    pub(super) fn allocate(
        &mut self,
        id: u32,
        (wanted, ahead): (u64, u64),
        is_sole: bool,
        now: Instant,
    ) -> Vec<Range<u64>> {
        let next = self.ledger.next();
        let ranges = if self.allows_sole(is_sole) {
            let wanted = wanted.saturating_add(ahead);
            self.sole(id, now).allocate(next, wanted)
        } else {
            self.end_sole();
            std::iter::once(next..next + wanted.min(MAX_ALLOCATION)).collect()
        };
        for range in ranges.iter().filter(|range| !range.is_empty()) {
            let skipped = range.start - self.ledger.next();
            self.ledger.allocate(BALANCER, skipped);
            self.ledger.allocate(id, range.end - range.start);
            self.ahead.extend(id, range.clone());
        }
        ranges
    }

    /// Return whether a delegation may be the only sender beside noq, if it `is_sole` among the real servers.
    fn allows_sole(&self, is_sole: bool) -> bool {
        is_sole && self.ledger.next() >= self.traffic.crowded_until
    }

    /// Return the state of delegation `id`, which is the sole sender.
    fn sole(&mut self, id: u32, now: Instant) -> &mut SoleSender {
        let acknowledged = self.ahead.acknowledged().max(self.begin);
        let sole = self.sole.take().filter(|sole| sole.id() == id);
        self.sole
            .insert(sole.unwrap_or_else(|| SoleSender::new(id, acknowledged, now)))
    }

    /// Delegation `id` gets a stream.
    pub(super) fn on_stream(&mut self, id: u32) {
        if self.sole.as_ref().is_some_and(|sole| sole.id() != id) {
            self.end_sole();
        }
    }

    /// Delegation `id` has no open streams.
    pub(super) fn on_idle(&mut self, id: u32) {
        if self.sole.as_ref().is_some_and(|sole| sole.id() == id) {
            self.end_sole();
        }
    }

    /// Other senders may use the next numbers. Those of the sole sender that are far below them expire.
    fn end_sole(&mut self) {
        if let Some(sole) = self.sole.take() {
            self.ahead.expire(sole.id(), self.ledger.next());
        }
    }

    /// Allocate numbers to delegation `id` ahead, if it may get some. If it `is_sole`, noq gets lower ones for its next packets.
    pub(super) fn allocate_ahead(
        &mut self,
        id: u32,
        is_sole: bool,
        now: Instant,
    ) -> Option<Range<u64>> {
        let count = self.ahead.available(id, self.ledger.next());
        if count == 0 {
            return None;
        }
        if self.allows_sole(is_sole) {
            let reserved = self.ledger.allocate(BALANCER, RESERVED_BEFORE_AHEAD);
            self.sole(id, now).reserve(reserved);
        }
        let numbers = self.ledger.allocate(id, count);
        self.ahead.insert(id, numbers.clone());
        Some(numbers)
    }

    /// Return a delegation whose numbers ahead have expired, and one past the largest of them. Each is returned once.
    pub(super) fn take_expired(&mut self) -> Option<(u32, u64)> {
        self.ahead.take_expired(self.ledger.next())
    }

    /// Handle a key update. noq must not use reserved numbers with the new keys, because real servers may have used higher ones
    /// with the old keys (RFC 9001, section 6.4).
    pub(super) fn on_new_keys(&mut self) {
        self.ahead.clear();
        self.sole = None;
    }

    /// Assign a number to noq's packet.
    pub(super) fn seal(&mut self, outgoing: &mut Outgoing<'_>) -> Nonce {
        let now = Instant::now();
        let number = self.own_number(now);
        self.traffic.on_sent(number, now);
        self.map.insert(outgoing.number, number);
        outgoing.needs_long_number = true;
        Nonce { path: 0, number }
    }

    /// Return the number of a packet of noq.
    fn own_number(&mut self, now: Instant) -> u64 {
        if let Some(sole) = &mut self.sole {
            let (lowest, next) = (self.traffic.next, self.ledger.next());
            match sole.choose(lowest, next, self.traffic.round_trip, now) {
                Choice::Reserved(number) => return number,
                Choice::Next => {}
                Choice::Overtaking => {
                    tracing::debug!(
                        next,
                        lowest,
                        ?sole,
                        "noq's packets overtake a real server's"
                    );
                    self.end_sole();
                    self.traffic.on_overtaking(next);
                }
            }
        }
        self.ledger.allocate(BALANCER, 1).start
    }

    /// Split an ACK by sender.
    ///
    /// # Errors
    /// If the client acknowledges a number that was not allocated.
    pub(super) fn split(
        &mut self,
        acked: impl Iterator<Item = Range<u64>>,
    ) -> Result<SplitAck<'_>, Unsent> {
        let Self {
            ledger,
            map,
            ahead,
            sole,
            traffic,
            acked: ranges,
            delegated,
            own,
            ..
        } = self;
        ranges.clear();
        ranges.extend(acked);
        delegated.clear();
        own.clear();
        ledger.split(ranges, |id, part, continues| match id {
            BALANCER => own.push(part),
            _ => match delegated.iter_mut().rfind(|(other, _)| *other == id) {
                // A real server ignores the numbers of others, and the ACK is shorter.
                Some((_, previous)) if continues => previous.start = part.start,
                _ => delegated.push((id, part)),
            },
        })?;
        if let Some(largest) = ranges.first() {
            ahead.on_ack(largest.end - 1, delegated);
        }
        let now = Instant::now();
        traffic.on_ack(own, now);
        if let Some(sole) = sole {
            let mut parts = delegated.iter().filter(|(id, _)| *id == sole.id());
            if let Some((_, highest)) = parts.next() {
                sole.on_ack(highest.end - 1, traffic.round_trip, now);
            }
        }
        Ok(SplitAck {
            own: map.own(own),
            delegated,
        })
    }
}

/// noq's own packets.
#[derive(Debug)]
struct OwnTraffic {
    /// One past the highest number.
    next: u64,
    /// A real server can be the only sender from this number on.
    crowded_until: u64,
    /// Value of [`FIRST_HOLD`] for the next time that noq sends too much.
    hold: u64,
    /// Round-trip time to the client: the shortest of the latest samples.
    round_trip: Duration,
    /// The latest samples. Some are too long, because the client acknowledges noq's packets together with later ones.
    samples: [Duration; SAMPLES],
    /// A packet whose acknowledgment yields the next sample, and when it was sent.
    sample: Option<(u64, Instant)>,
}

impl OwnTraffic {
    /// Time after which a sample is replaced by the next packet.
    const SAMPLE_TIMEOUT: Duration = Duration::from_secs(1);

    fn new(round_trip: Duration) -> Self {
        Self {
            next: 0,
            crowded_until: 0,
            hold: FIRST_HOLD,
            round_trip,
            samples: [round_trip; SAMPLES],
            sample: None,
        }
    }

    /// noq uses `number` although the real server's packets with lower numbers may then be lost.
    fn on_overtaking(&mut self, number: u64) {
        self.crowded_until = number + self.hold;
        self.hold = (2 * self.hold).min(MAX_HOLD);
    }

    fn on_sent(&mut self, number: u64, now: Instant) {
        self.next = number + 1;
        let is_due =
            |(_, sent): (u64, Instant)| now.saturating_duration_since(sent) >= Self::SAMPLE_TIMEOUT;
        if self.sample.is_none_or(is_due) {
            self.sample = Some((number, now));
        }
    }

    /// Handle an ACK of these numbers of noq.
    fn on_ack(&mut self, acked: &[Range<u64>], now: Instant) {
        if let Some((number, sent)) = self.sample
            && acked.iter().any(|range| range.contains(&number))
        {
            self.samples.rotate_left(1);
            self.samples[SAMPLES - 1] = now.saturating_duration_since(sent);
            self.round_trip = self.samples.into_iter().min().unwrap_or_default();
            self.sample = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_size_leaves_room_but_never_below_minimum() {
        for (size, announced) in [(65_527, 65_525), (1201, 1200), (1200, 1200), (7, 1200)] {
            assert_eq!(max_udp_payload_size(size), announced);
        }
    }

    /// Return a number space from 40 on, with a delegation.
    fn started() -> (SharedNumbers, u32, Instant) {
        let mut shared = SharedNumbers::new(40, Duration::from_millis(20));
        let (id, _) = shared.start_delegation().unwrap();
        (shared, id, Instant::now())
    }

    #[test]
    fn packets_of_noq_get_lower_numbers_than_those_ahead_of_an_only_sender() {
        let (mut shared, id, now) = started();
        let ahead = shared.allocate_ahead(id, true, now).unwrap();
        assert_eq!(ahead.start, 40 + RESERVED_BEFORE_AHEAD);
        for expected in (40..ahead.start).chain(ahead.end..ahead.end + 2) {
            let number = shared.own_number(now);
            shared.traffic.on_sent(number, now);
            assert_eq!(number, expected);
        }
        assert_eq!(shared.take_expired(), None);
        shared.split(std::iter::once(40..41)).unwrap();
        assert_eq!(shared.take_expired(), None);
        // The client will ignore lower numbers.
        shared
            .split([40..41, ahead.end..ahead.end + 1].into_iter().rev())
            .unwrap();
        assert_eq!(shared.take_expired(), Some((id, ahead.end + 1)));
    }

    #[test]
    fn several_senders_get_the_next_numbers_ahead() {
        let (mut shared, id, now) = started();
        let ahead = shared.allocate_ahead(id, false, now).unwrap();
        assert_eq!((ahead.start, shared.own_number(now)), (40, ahead.end));
    }
}
