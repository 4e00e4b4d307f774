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

use crate::aifo::Aifo;
use crate::link::{LinkConfig, Nanos};

/// Strict priorities per port; the larger is served first.
pub const PRIORITIES: usize = 8;

/// What decides whose turn it is, and who goes when there is no room.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Discipline {
    /// The larger priority is served first, and a packet that finds the queue full is dropped. Numbers above 7 count as 7.
    #[default]
    Priorities,
    /// *Push in, first out*, the ideal that schedulers in switches approximate: the smaller rank is served first, and when
    /// the queue is full the packet of the largest rank is dropped, the newest among equals. Room is counted in packets alone.
    Pifo,
    /// SP-PIFO as its paper has it (Alcoz et al., NSDI 2020, algorithm 1), with exact ranks: ranks are mapped to the priorities, each of which has an
    /// equal share of the packets' room. A packet that is dropped, or need not wait, moves no bound.
    SpPifo,
    /// First in, first out, for those whom AIFO admits by their exact ranks.
    Aifo(Aifo),
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A queue of packets `P`, which become frames `F` on the link.
#[derive(Debug)]
pub struct EgressQueue<P, F> {
    link: LinkConfig,
    discipline: Discipline,
    /// In order of service: by urgency, then of arrival.
    waiting: VecDeque<Waiting<P>>,
    /// SP-PIFO's, by priority: the least rank that each takes.
    bounds: [u32; PRIORITIES],
    waiting_bytes: u64,
    free_at: ExactTime,
    on_the_way: VecDeque<(Nanos, F)>,
    random: Pcg64Mcg,
    counts: QueueCounts,
}

#[derive(Debug)]
struct Waiting<P> {
    packet: P,
    /// The larger is served first.
    urgency: u32,
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
        Self {
            link,
            discipline,
            waiting: VecDeque::new(),
            bounds: [0; PRIORITIES],
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
        self.waiting.len() as u64
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
    pub fn enqueue(&mut self, now: Nanos, packet: P, bytes: u32, class: u32) -> Result<(), P> {
        let will_wait = !self.waiting.is_empty() || self.free_at.nanos > now;
        let waiting = self.depth_packets();
        let (urgency, admitted) = match &mut self.discipline {
            Discipline::Priorities => (class.min(PRIORITIES as u32 - 1), true),
            Discipline::Pifo => (u32::MAX - class, true),
            Discipline::SpPifo => (self.placed(class), true),
            Discipline::Aifo(aifo) => (0, aifo.admits(class, waiting)),
        };
        let refused = will_wait && !(admitted && self.has_room(urgency, bytes));
        let mut dropped = None;
        if refused {
            let last = self.waiting.back();
            let less = last.is_some_and(|last| last.urgency < urgency);
            if self.discipline != Discipline::Pifo || !less {
                self.counts.tail_dropped += 1;
                return Err(packet);
            }
            self.counts.pushed_out += 1;
            dropped = self.remove(self.waiting.len() - 1);
        }
        if self.discipline == Discipline::SpPifo && will_wait {
            self.move_bounds(urgency as usize, class);
        }
        let place = match self.waiting.back() {
            Some(last) if last.urgency < urgency => self
                .waiting
                .partition_point(|waiting| waiting.urgency >= urgency),
            _ => self.waiting.len(),
        };
        let waiting = Waiting {
            packet,
            urgency,
            bytes,
            since: now,
        };
        self.waiting.insert(place, waiting);
        self.waiting_bytes += u64::from(bytes);
        self.counts.enqueued += 1;
        self.counts.max_depth_packets = self.counts.max_depth_packets.max(self.depth_packets());
        self.counts.max_depth_bytes = self.counts.max_depth_bytes.max(self.waiting_bytes);
        dropped.map_or(Ok(()), |dropped| Err(dropped.packet))
    }

    /// Whether a packet of that urgency finds room to wait.
    fn has_room(&self, urgency: u32, bytes: u32) -> bool {
        let limit = self.link.packet_limit();
        if self.discipline == Discipline::SpPifo {
            let alike = self.waiting.iter().filter(|it| it.urgency == urgency);
            return (alike.count() as u64) < limit / PRIORITIES as u64;
        }
        let room = self.link.queue_bytes.unwrap_or(u64::MAX);
        self.depth_packets() < limit && self.waiting_bytes + u64::from(bytes) <= room
    }

    /// SP-PIFO: the first priority, looking from the least urgent, whose bound the rank reaches.
    fn placed(&self, rank: u32) -> u32 {
        let reached = self.bounds.iter().position(|&bound| bound <= rank);
        reached.unwrap_or(PRIORITIES - 1) as u32
    }

    /// SP-PIFO: a priority's bound becomes the rank that it took ("push-up"). If that is less than the most urgent one's, whose packets should have
    /// come later, the others' sink by the difference ("push-down").
    fn move_bounds(&mut self, priority: usize, rank: u32) {
        let cost = self.bounds[priority].saturating_sub(rank);
        for bound in &mut self.bounds[..priority] {
            *bound = bound.saturating_sub(cost);
        }
        self.bounds[priority] = rank;
    }

    /// Takes the packet whose turn it is, if the link is free by `now`.
    pub fn start(&mut self, now: Nanos) -> Option<Started<P>> {
        let (start, place) = self.next_start()?;
        if start.nanos > now {
            return None;
        }
        let Waiting { packet, since, .. } = self.remove(place)?;
        self.counts.started += 1;
        Some(Started {
            packet,
            enqueued_at: since,
            at: start.nanos,
            depth_packets: self.depth_packets(),
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

    /// When the link is free and something waits, and the place of what it then takes: the most urgent that has come by then.
    fn next_start(&self) -> Option<(ExactTime, usize)> {
        let mut earliest: Option<(Nanos, usize)> = None;
        for (place, &Waiting { since, .. }) in self.waiting.iter().enumerate() {
            if since <= self.free_at.nanos {
                return Some((self.free_at, place));
            }
            if earliest.is_none_or(|(at, _)| since < at) {
                earliest = Some((since, place));
            }
        }
        earliest.map(|(at, place)| (ExactTime::whole(at), place))
    }

    fn remove(&mut self, place: usize) -> Option<Waiting<P>> {
        let waiting = self.waiting.remove(place)?;
        self.waiting_bytes -= u64::from(waiting.bytes);
        Some(waiting)
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
