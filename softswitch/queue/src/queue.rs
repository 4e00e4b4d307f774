// SPDX-License-Identifier: Apache-2.0
//! An exact egress queue and the link behind it, as a pure state machine.
//!
//! It has no clock: the caller passes the time to each call, and [`EgressQueue::next_event`] says when to call
//! again. Departure times follow from the link's rate alone, in integer arithmetic. Even if the driver calls late,
//! the n-th frame of a busy period leaves exactly `8e9 * bytes / rate` nanoseconds after the period began (rounded
//! down). So the achieved rate is the configured one.
//!
//! A packet passes four stages:
//! 1. [`enqueue`](EgressQueue::enqueue): it waits, or is dropped because the queue is full (tail drop);
//! 2. [`start`](EgressQueue::start): the link is free and takes it. The driver runs egress
//!    processing, which determines the frame's length;
//! 3. [`transmit`](EgressQueue::transmit): the link is busy until the last bit has left
//!    (a packet that egress drops takes no time: start the next one);
//! 4. [`arrive`](EgressQueue::arrive): it has crossed the link, unless the link lost it.
//!
//! Times must not decrease from call to call. Before an `enqueue`, the driver must start all packets that are due,
//! so that the new packet meets the right queue depth.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::ops::Range;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::RngCore;

use crate::aifo::Aifo;
use crate::class::{ClassLimit, DEFAULT_CLASS_DEPTH};
use crate::exact_time::ExactTime;
use crate::link::{LinkConfig, Nanos};

/// Number of strict priorities per port. Larger priorities are served first.
pub const PRIORITIES: usize = 8;

/// The queueing discipline: the order of service, and the packet to drop if the queue is full.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Discipline {
    /// Strict priorities with tail drop. Larger priorities are served first; numbers above 7 count as 7.
    #[default]
    Priorities,
    /// *Push in, first out*, the ideal that schedulers in switches approximate: smaller ranks are served first. If the queue
    /// is full, the packet with the largest rank is dropped, the newest among equals. The limit is in packets only.
    Pifo,
    /// SP-PIFO (Alcoz et al., NSDI 2020, algorithm 1) with exact ranks: ranks are mapped to the priorities, each of which
    /// has an equal share of the packet limit. A packet that is dropped or does not wait does not move the bounds.
    SpPifo,
    /// First in, first out, for the packets that AIFO admits by their exact ranks.
    Aifo(Aifo),
}

/// A queue of packets `P` that become frames `F` on the link.
#[derive(Debug)]
pub struct EgressQueue<P, F> {
    link: LinkConfig,
    discipline: Discipline,
    /// Waiting packets in order of service: by urgency, then by arrival.
    waiting: VecDeque<Waiting<P>>,
    /// SP-PIFO: the least rank that each priority accepts.
    bounds: [u32; PRIORITIES],
    /// The limits of strict priorities, if any is limited.
    limits: Option<Box<[ClassLimit; PRIORITIES]>>,
    waiting_bytes: u64,
    free_at: ExactTime,
    /// The link does not take packets before this time.
    held_until: Nanos,
    in_flight: VecDeque<(Nanos, F)>,
    random: Pcg64Mcg,
    counts: QueueCounts,
}

#[derive(Debug)]
struct Waiting<P> {
    packet: P,
    /// Larger values are served first.
    urgency: u32,
    bytes: u32,
    since: Nanos,
}

/// A packet that the link takes from the queue.
#[derive(Debug, PartialEq, Eq)]
pub struct Started<P> {
    /// The packet.
    pub packet: P,
    /// Time at which it was enqueued.
    pub enqueued_at: Nanos,
    /// Time at which the link took it; not after the `now` of the call.
    pub at: Nanos,
    /// Packets still waiting behind it.
    pub depth_packets: u64,
    /// Argument for [`EgressQueue::transmit`].
    pub slot: Slot,
}

/// The time at which the transmission of a frame begins.
#[derive(Debug, PartialEq, Eq)]
pub struct Slot(ExactTime);

/// Counts of packets and frames by their fate.
///
/// At any time `enqueued` = waiting + `started` + `pushed_out`, and `transmitted` = in flight + `arrived` + `lost`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueCounts {
    /// Packets accepted.
    pub enqueued: u64,
    /// Packets dropped on arrival because the queue was full.
    pub tail_drop: u64,
    /// Packets accepted and dropped later to make room (PIFO).
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
    /// Maximum number of packets waiting.
    pub max_depth_packets: u64,
    /// Maximum number of bytes waiting.
    pub max_depth_bytes: u64,
}

impl<P, F> EgressQueue<P, F> {
    /// Creates an empty queue of strict priorities and an idle link. With the same seed, the link loses the same frames.
    pub fn new(link: LinkConfig, seed: u64) -> Self {
        Self::with_discipline(link, Discipline::Priorities, seed)
    }

    /// Creates an empty queue of any discipline and an idle link.
    pub fn with_discipline(link: LinkConfig, discipline: Discipline, seed: u64) -> Self {
        Self {
            link,
            discipline,
            waiting: VecDeque::new(),
            bounds: [0; PRIORITIES],
            limits: None,
            waiting_bytes: 0,
            free_at: ExactTime::default(),
            held_until: 0,
            in_flight: VecDeque::new(),
            random: Pcg64Mcg::new(u128::from(seed)),
            counts: QueueCounts::default(),
        }
    }

    /// Limits the number of waiting packets of a priority. A priority whose rate alone is limited has
    /// [`DEFAULT_CLASS_DEPTH`](crate::DEFAULT_CLASS_DEPTH).
    ///
    /// Other disciplines than strict priorities have no such limits. Priorities above 7 count as 7.
    pub fn limit_depth(&mut self, priority: usize, packets: u64) {
        self.limit(priority, |limit| limit.set_depth(packets));
    }

    /// Limits the rate of a priority in packets per second; `None` removes the limit.
    pub fn limit_rate(&mut self, priority: usize, rate: Option<NonZeroU64>) {
        self.limit(priority, |limit| limit.set_rate(rate));
    }

    fn limit(&mut self, priority: usize, set: impl FnOnce(&mut ClassLimit)) {
        if self.discipline == Discipline::Priorities {
            let limits = self.limits.get_or_insert_default();
            set(&mut limits[priority.min(PRIORITIES - 1)]);
        }
    }

    /// Returns the positions of a priority's packets.
    fn class(&self, priority: usize) -> Range<usize> {
        let urgency = priority as u32;
        let begin = self.waiting.partition_point(|it| it.urgency > urgency);
        let end = self.waiting.partition_point(|it| it.urgency >= urgency);
        begin..end
    }

    /// Keeps the link from taking packets before `until`, or no longer if `until` is earlier than in the last call.
    ///
    /// For an interface that does not accept frames. Until then, at most
    /// [`DEFAULT_CLASS_DEPTH`](crate::DEFAULT_CLASS_DEPTH) packets wait, unless the link has a rate or the priorities have
    /// limits.
    pub fn hold(&mut self, until: Nanos) {
        self.held_until = until;
    }

    /// Returns the link's configuration.
    pub fn link(&self) -> &LinkConfig {
        &self.link
    }

    /// Returns the number of waiting packets.
    pub fn depth_packets(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Returns the number of waiting packets of a priority. Priorities above 7 count as 7.
    pub fn depth_of(&self, priority: usize) -> u64 {
        self.class(priority.min(PRIORITIES - 1)).len() as u64
    }

    /// Returns the number of waiting bytes.
    pub fn depth_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// Returns the counts since the queue was created.
    pub fn counts(&self) -> QueueCounts {
        self.counts
    }

    /// Enqueues a packet. `class` is its priority or its rank, depending on the discipline.
    ///
    /// # Errors
    /// If the queue is full, returns the dropped packet: this one, or in a PIFO the one with the largest rank. If the link is
    /// free and no packet waits, the packet is always accepted, because it will not wait.
    pub fn enqueue(&mut self, now: Nanos, packet: P, bytes: u32, class: u32) -> Result<(), P> {
        let is_held = self.held_until > now;
        let mut will_wait = is_held || !self.waiting.is_empty() || self.free_at.nanos > now;
        let waiting = self.depth_packets();
        let (urgency, admitted) = match &mut self.discipline {
            Discipline::Priorities => (class.min(PRIORITIES as u32 - 1), true),
            Discipline::Pifo => (u32::MAX - class, true),
            Discipline::SpPifo => (self.sp_pifo_priority(class), true),
            Discipline::Aifo(aifo) => (0, aifo.admits(class, waiting)),
        };
        if let Some(limits) = &self.limits {
            will_wait |= limits[urgency as usize].ready_at.nanos > now;
        }
        let has_room =
            |it: &Self| it.has_room(urgency, bytes) && (!is_held || it.has_room_while_held());
        let is_full = will_wait && !(admitted && has_room(&*self));
        let mut dropped = None;
        if is_full {
            let last = self.waiting.back();
            let less = last.is_some_and(|last| last.urgency < urgency);
            if self.discipline != Discipline::Pifo || !less {
                self.counts.tail_drop += 1;
                return Err(packet);
            }
            self.counts.pushed_out += 1;
            dropped = self.remove(self.waiting.len() - 1);
        }
        if self.discipline == Discipline::SpPifo && will_wait {
            self.move_bounds(urgency as usize, class);
        }
        let position = match self.waiting.back() {
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
        self.waiting.insert(position, waiting);
        self.waiting_bytes += u64::from(bytes);
        self.counts.enqueued += 1;
        self.counts.max_depth_packets = self.counts.max_depth_packets.max(self.depth_packets());
        self.counts.max_depth_bytes = self.counts.max_depth_bytes.max(self.waiting_bytes);
        dropped.map_or(Ok(()), |dropped| Err(dropped.packet))
    }

    /// Returns true if the queue can hold another packet of this urgency.
    fn has_room(&self, urgency: u32, bytes: u32) -> bool {
        let limit = self.link.packet_limit();
        if self.discipline == Discipline::SpPifo {
            let same = self.waiting.iter().filter(|it| it.urgency == urgency);
            return (same.count() as u64) < limit / PRIORITIES as u64;
        }
        if let Some(limits) = &self.limits {
            let priority = urgency as usize;
            if self.class(priority).len() as u64 >= limits[priority].depth() {
                return false;
            }
        }
        let room = self.link.queue_bytes.unwrap_or(u64::MAX);
        self.depth_packets() < limit && self.waiting_bytes + u64::from(bytes) <= room
    }

    /// Returns true if a link without limits can hold another packet while it does not take any.
    fn has_room_while_held(&self) -> bool {
        let is_limited = self.link.rate.is_some() || self.limits.is_some();
        is_limited || self.depth_packets() < DEFAULT_CLASS_DEPTH
    }

    /// SP-PIFO: returns the least urgent priority whose bound does not exceed the rank.
    fn sp_pifo_priority(&self, rank: u32) -> u32 {
        let reached = self.bounds.iter().position(|&bound| bound <= rank);
        reached.unwrap_or(PRIORITIES - 1) as u32
    }

    /// SP-PIFO: sets the priority's bound to the rank that it accepted ("push-up"). If the rank is below the bound of the most
    /// urgent priority, lowers the other bounds by the difference ("push-down").
    fn move_bounds(&mut self, priority: usize, rank: u32) {
        let cost = self.bounds[priority].saturating_sub(rank);
        for bound in &mut self.bounds[..priority] {
            *bound = bound.saturating_sub(cost);
        }
        self.bounds[priority] = rank;
    }

    /// Takes the next packet if the link is free by `now`.
    pub fn start(&mut self, now: Nanos) -> Option<Started<P>> {
        let (start, position) = self.next_start()?;
        let start = start.max(ExactTime::whole(self.held_until));
        if start.nanos > now {
            return None;
        }
        let Waiting {
            packet,
            since,
            urgency,
            ..
        } = self.remove(position)?;
        self.counts.started += 1;
        if let Some(limits) = &mut self.limits {
            limits[urgency as usize].on_start(start.nanos);
        }
        Some(Started {
            packet,
            enqueued_at: since,
            at: start.nanos,
            depth_packets: self.depth_packets(),
            slot: Slot(start),
        })
    }

    /// Sends a frame of `bytes` in the slot that [`start`](Self::start) returned.
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
            self.in_flight.push_back((arrival, frame));
        }
    }

    /// Takes the next frame that has crossed the link by `now`, with its arrival time.
    pub fn arrive(&mut self, now: Nanos) -> Option<(Nanos, F)> {
        self.in_flight.front().filter(|(at, _)| *at <= now)?;
        self.counts.arrived += 1;
        self.in_flight.pop_front()
    }

    /// Returns the earliest time at which [`start`](Self::start) or [`arrive`](Self::arrive) will return something.
    pub fn next_event(&self) -> Option<Nanos> {
        let start = self.next_start();
        let start = start.map(|(start, _)| start.nanos.max(self.held_until));
        start.into_iter().chain(self.next_arrival()).min()
    }

    /// Returns the earliest time at which [`arrive`](Self::arrive) will return a frame.
    pub fn next_arrival(&self) -> Option<Nanos> {
        self.in_flight.front().map(|(at, _)| *at)
    }

    /// Returns the time at which the link will have sent all that it has taken.
    pub fn free_at(&self) -> Nanos {
        self.free_at.nanos
    }

    /// Returns the time of the next start and the position of its packet: the most urgent one enqueued by then.
    fn next_start(&self) -> Option<(ExactTime, usize)> {
        if let Some(limits) = &self.limits {
            return self.next_limited_start(limits);
        }
        let mut earliest: Option<(Nanos, usize)> = None;
        for (position, &Waiting { since, .. }) in self.waiting.iter().enumerate() {
            if since <= self.free_at.nanos {
                return Some((self.free_at, position));
            }
            if earliest.is_none_or(|(at, _)| since < at) {
                earliest = Some((since, position));
            }
        }
        earliest.map(|(at, position)| (ExactTime::whole(at), position))
    }

    /// Returns the time of the next start and the position of its packet if priorities are limited: of the first packets of
    /// the priorities, the one that may start earliest, and among equals the most urgent.
    fn next_limited_start(&self, limits: &[ClassLimit; PRIORITIES]) -> Option<(ExactTime, usize)> {
        let heads = (0..PRIORITIES).rev().filter_map(|priority| {
            let class = self.class(priority);
            let first = self
                .waiting
                .get(class.start)
                .filter(|_| !class.is_empty())?;
            let ready = limits[priority].ready_at.nanos.max(first.since);
            let at = match ready > self.free_at.nanos {
                true => ExactTime::whole(ready),
                false => self.free_at,
            };
            Some((at, class.start))
        });
        heads.min_by_key(|(at, _)| *at)
    }

    fn remove(&mut self, position: usize) -> Option<Waiting<P>> {
        let waiting = self.waiting.remove(position)?;
        self.waiting_bytes -= u64::from(waiting.bytes);
        Some(waiting)
    }
}

#[cfg(test)]
mod tests;
