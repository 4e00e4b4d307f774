//! An exact egress queue and the link behind it, as a pure state machine.
//!
//! It has no clock: every call takes the time, and [`EgressQueue::next_event`] says when to call
//! again. Departure times follow from the link's rate alone, in integer arithmetic: however late
//! the driver calls, the n-th frame of a busy period leaves exactly `8e9 * bytes / rate`
//! nanoseconds after the period began (rounded down), so the achieved rate is the configured one.
//!
//! A packet passes four stages:
//! 1. [`enqueue`](EgressQueue::enqueue): it waits, or is dropped because the queue is full;
//! 2. [`start`](EgressQueue::start): the link is free and takes it. The driver runs egress
//!    processing, which decides how long the frame is;
//! 3. [`transmit`](EgressQueue::transmit): the link is busy until the last bit has left
//!    (a packet that egress drops takes no time: just start the next);
//! 4. [`arrive`](EgressQueue::arrive): it has crossed the link, unless it was lost there.
//!
//! Calls must be made in order of time, and all that is due before an `enqueue` must be started
//! before it, for the depth that the packet meets to be right.

use std::collections::VecDeque;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::RngCore;

use crate::link::{LinkConfig, Nanos};

/// Strict priorities per port; the larger is served first.
pub const PRIORITIES: usize = 8;

/// Ranks of a PIFO: all numbers of 8 bits.
const RANKS: usize = 256;

/// What decides whose turn it is, and who goes when there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Discipline {
    /// The larger priority is served first, and a packet that finds the queue full is dropped. Numbers above 7 count as 7.
    #[default]
    Priorities,
    /// *Push in, first out*, the ideal that schedulers in switches approximate: the smaller rank is served first, and when
    /// the queue is full the packet of the largest rank is dropped, the newest among equals. Room is counted in packets alone.
    Pifo,
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A queue of packets `P`, which become frames `F` on the link.
#[derive(Debug)]
pub struct EgressQueue<P, F> {
    link: LinkConfig,
    discipline: Discipline,
    /// By urgency; the last is served first.
    waiting: Vec<VecDeque<Waiting<P>>>,
    /// Those of them that are not empty, a bit for each.
    occupied: [u64; RANKS / 64],
    waiting_packets: u64,
    waiting_bytes: u64,
    free_at: ExactTime,
    on_the_way: VecDeque<(Nanos, F)>,
    random: Pcg64Mcg,
    counts: QueueCounts,
}

#[derive(Debug)]
struct Waiting<P> {
    packet: P,
    bytes: u32,
    since: Nanos,
}

/// A packet that the link takes from the queue.
#[derive(Debug, PartialEq, Eq)]
pub struct Started<P> {
    /// The packet.
    pub packet: P,
    /// When it was enqueued.
    pub enqueued_at: Nanos,
    /// When the link took it; not after the `now` of the call.
    pub at: Nanos,
    /// Packets still waiting behind it.
    pub depth_packets: u64,
    /// To be given to [`EgressQueue::transmit`].
    pub slot: Slot,
}

/// The time at which a frame begins to leave.
#[derive(Debug, PartialEq, Eq)]
pub struct Slot(ExactTime);

/// Nanoseconds and a fraction `part / rate` of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct ExactTime {
    nanos: Nanos,
    part: u64,
}

/// How many packets met which end.
///
/// At any time `enqueued` = waiting + `started` + `pushed_out`, and `transmitted` = on the way + `arrived` + `lost`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueCounts {
    /// Packets accepted.
    pub enqueued: u64,
    /// Packets refused because the queue was full.
    pub tail_dropped: u64,
    /// Packets accepted, and dropped later to make room (PIFO).
    pub pushed_out: u64,
    /// Packets that the link took.
    pub started: u64,
    /// Frames sent.
    pub transmitted: u64,
    /// Bytes sent.
    pub transmitted_bytes: u64,
    /// Frames lost on the link.
    pub lost: u64,
    /// Frames that crossed the link.
    pub arrived: u64,
    /// Most packets that ever waited.
    pub max_depth_packets: u64,
    /// Most bytes that ever waited.
    pub max_depth_bytes: u64,
}

impl<P, F> EgressQueue<P, F> {
    /// An empty queue of strict priorities before an idle link. The same seed loses the same frames.
    pub fn new(link: LinkConfig, seed: u64) -> Self {
        Self::with_discipline(link, Discipline::Priorities, seed)
    }

    /// The same with any discipline.
    pub fn with_discipline(link: LinkConfig, discipline: Discipline, seed: u64) -> Self {
        let classes = match discipline {
            Discipline::Priorities => PRIORITIES,
            Discipline::Pifo => RANKS,
        };
        Self {
            link,
            discipline,
            waiting: std::iter::repeat_with(VecDeque::new)
                .take(classes)
                .collect(),
            occupied: [0; RANKS / 64],
            waiting_packets: 0,
            waiting_bytes: 0,
            free_at: ExactTime::default(),
            on_the_way: VecDeque::new(),
            random: Pcg64Mcg::new(u128::from(seed)),
            counts: QueueCounts::default(),
        }
    }

    /// The link's configuration.
    pub fn link(&self) -> &LinkConfig {
        &self.link
    }

    /// Packets waiting.
    pub fn depth_packets(&self) -> u64 {
        self.waiting_packets
    }

    /// Bytes waiting.
    pub fn depth_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// Counts since the beginning.
    pub fn counts(&self) -> QueueCounts {
        self.counts
    }

    /// Lets a packet wait. `class` is its priority or its rank, as the discipline has it.
    ///
    /// # Errors
    /// Gives the packet back that is dropped for want of room: this one, or in a PIFO the one of the largest rank. A packet
    /// that finds the link free and nothing waiting is always taken, since it will not wait.
    pub fn enqueue(&mut self, now: Nanos, packet: P, bytes: u32, class: u8) -> Result<(), P> {
        let will_wait = self.waiting_packets > 0 || self.free_at.nanos > now;
        let has_room = self.waiting_packets < self.link.packet_limit()
            && self
                .link
                .queue_bytes
                .is_none_or(|limit| self.waiting_bytes + u64::from(bytes) <= limit);
        let refused = will_wait && !has_room;
        let urgency = match self.discipline {
            Discipline::Priorities => usize::from(class).min(PRIORITIES - 1),
            Discipline::Pifo => RANKS - 1 - usize::from(class),
        };
        let mut dropped = None;
        if refused {
            let least = match self.discipline {
                Discipline::Priorities => None,
                Discipline::Pifo => self.urgencies().next_back(),
            };
            let Some(least) = least.filter(|&least| least < urgency) else {
                self.counts.tail_dropped += 1;
                return Err(packet);
            };
            self.counts.pushed_out += 1;
            dropped = self.remove(least, VecDeque::pop_back);
        }
        self.waiting[urgency].push_back(Waiting {
            packet,
            bytes,
            since: now,
        });
        self.occupied[urgency / 64] |= 1 << (urgency % 64);
        self.waiting_packets += 1;
        self.waiting_bytes += u64::from(bytes);
        self.counts.enqueued += 1;
        self.counts.max_depth_packets = self.counts.max_depth_packets.max(self.waiting_packets);
        self.counts.max_depth_bytes = self.counts.max_depth_bytes.max(self.waiting_bytes);
        dropped.map_or(Ok(()), |dropped| Err(dropped.packet))
    }

    /// Takes the packet whose turn it is, if the link is free by `now`.
    pub fn start(&mut self, now: Nanos) -> Option<Started<P>> {
        let (start, urgency) = self.next_start()?;
        if start.nanos > now {
            return None;
        }
        let Waiting { packet, since, .. } = self.remove(urgency, VecDeque::pop_front)?;
        self.counts.started += 1;
        Some(Started {
            packet,
            enqueued_at: since,
            at: start.nanos,
            depth_packets: self.waiting_packets,
            slot: Slot(start),
        })
    }

    /// Sends a frame of so many bytes in the slot that [`start`](Self::start) gave.
    pub fn transmit(&mut self, slot: Slot, bytes: u32, frame: F) {
        let departure = match self.link.rate {
            Some(rate) => slot.0.after_sending(bytes, self.link.overhead, rate.get()),
            None => slot.0,
        };
        self.free_at = departure;
        self.counts.transmitted += 1;
        self.counts.transmitted_bytes += u64::from(bytes);
        if !self.link.loss.is_zero() && self.link.loss.hits(self.random.next_u64()) {
            self.counts.lost += 1;
        } else {
            let arrival = departure.nanos.saturating_add(self.link.delay);
            self.on_the_way.push_back((arrival, frame));
        }
    }

    /// Takes the next frame that has crossed the link by `now`, with the time at which it did.
    pub fn arrive(&mut self, now: Nanos) -> Option<(Nanos, F)> {
        self.on_the_way.front().filter(|(at, _)| *at <= now)?;
        self.counts.arrived += 1;
        self.on_the_way.pop_front()
    }

    /// When [`start`](Self::start) or [`arrive`](Self::arrive) next have something to give.
    pub fn next_event(&self) -> Option<Nanos> {
        let start = self.next_start().map(|(start, _)| start.nanos);
        start.into_iter().chain(self.next_arrival()).min()
    }

    /// When [`arrive`](Self::arrive) next has something to give.
    pub fn next_arrival(&self) -> Option<Nanos> {
        self.on_the_way.front().map(|(at, _)| *at)
    }

    /// When the link has sent what it has taken so far.
    pub fn free_at(&self) -> Nanos {
        self.free_at.nanos
    }

    /// When the link is free and something waits, and the urgency of what it then takes: the greatest that has come by then.
    fn next_start(&self) -> Option<(ExactTime, usize)> {
        let mut earliest: Option<(Nanos, usize)> = None;
        for urgency in self.urgencies() {
            let since = self.waiting[urgency].front()?.since;
            if since <= self.free_at.nanos {
                return Some((self.free_at, urgency));
            }
            if earliest.is_none_or(|(at, _)| since < at) {
                earliest = Some((since, urgency));
            }
        }
        earliest.map(|(at, urgency)| (ExactTime::whole(at), urgency))
    }

    /// The urgencies of what waits, the greatest first.
    fn urgencies(&self) -> impl DoubleEndedIterator<Item = usize> {
        let used = self.waiting.len().div_ceil(64);
        (0..used)
            .rev()
            .flat_map(|word| Bits(self.occupied[word]).map(move |bit| word * 64 + bit))
    }

    /// Takes a packet out of the queue of that urgency.
    fn remove(
        &mut self,
        urgency: usize,
        pop: impl FnOnce(&mut VecDeque<Waiting<P>>) -> Option<Waiting<P>>,
    ) -> Option<Waiting<P>> {
        let queue = &mut self.waiting[urgency];
        let waiting = pop(queue)?;
        if queue.is_empty() {
            self.occupied[urgency / 64] &= !(1 << (urgency % 64));
        }
        self.waiting_packets -= 1;
        self.waiting_bytes -= u64::from(waiting.bytes);
        Some(waiting)
    }
}

/// The numbers of the bits that are set, from the highest down.
struct Bits(u64);

impl Iterator for Bits {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let bit = self.0.checked_ilog2()?;
        self.0 &= !(1 << bit);
        Some(bit as usize)
    }
}

impl DoubleEndedIterator for Bits {
    fn next_back(&mut self) -> Option<usize> {
        let bit = (self.0 != 0).then(|| self.0.trailing_zeros())?;
        self.0 &= self.0 - 1;
        Some(bit as usize)
    }
}

impl ExactTime {
    fn whole(nanos: Nanos) -> Self {
        Self { nanos, part: 0 }
    }

    /// The time `8 * (bytes + overhead) / rate` seconds later, with nothing lost to rounding.
    fn after_sending(self, bytes: u32, overhead: u32, rate: u64) -> Self {
        let bits = (u128::from(bytes) + u128::from(overhead)) * 8;
        let total = bits * u128::from(NANOS_PER_SECOND) + u128::from(self.part);
        let nanos = u64::try_from(total / u128::from(rate)).unwrap_or(u64::MAX);
        Self {
            nanos: self.nanos.saturating_add(nanos),
            // Less than `rate`, so it fits.
            part: (total % u128::from(rate)) as u64,
        }
    }
}

#[cfg(test)]
mod tests;
