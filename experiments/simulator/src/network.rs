// SPDX-License-Identifier: Apache-2.0
//! Frames, the channels they cross, and what is planned: all that nodes share.

use softswitch_pipeline::{Descriptor, Nanos};
use softswitch_queue::{EgressQueue, Slot};

use crate::agenda::{Agenda, Event};
use crate::flows::Flows;

/// A frame on its way.
#[derive(Debug, Default)]
pub struct Frame {
    /// From destination address to the end of the payload.
    pub bytes: Vec<u8>,
    /// Rank assigned by the server ([`Rank`](crate::scenario::Rank)); 0 for packets that are not part of a response.
    ///
    /// It travels beside the frame, so that a PIFO is ideal even if the program hides or ignores the rank.
    pub rank: u32,
}

/// A frame in the queue at the sending end of a channel.
#[derive(Debug)]
pub enum Outgoing {
    /// A switch's packet, before egress.
    Packet {
        /// The packet.
        descriptor: Descriptor,
        /// Its frame's rank.
        rank: u32,
        /// Packets that waited when it came.
        depth: u64,
    },
    /// A host's frame.
    Frame(Frame),
}

/// One direction of a link.
#[derive(Debug)]
pub struct Channel {
    /// `node:port` of its near end.
    pub name: String,
    /// Queued frames and frames in flight.
    pub queue: EgressQueue<Outgoing, Frame>,
    /// The node that sends.
    pub from: u32,
    /// The node that receives.
    pub to: u32,
    /// The port by which it receives.
    pub to_port: u32,
    /// Whether ranks decide who is served, not the program's priorities.
    pub by_rank: bool,
    arrival_planned: bool,
    free_planned: bool,
}

impl Channel {
    /// An idle channel.
    pub fn new(
        name: String,
        queue: EgressQueue<Outgoing, Frame>,
        ends: (u32, u32, u32),
        by_rank: bool,
    ) -> Self {
        let (from, to, to_port) = ends;
        Self {
            name,
            queue,
            from,
            to,
            to_port,
            by_rank,
            arrival_planned: false,
            free_planned: false,
        }
    }

    /// Returns true if the channel can transmit a frame at once.
    pub fn is_free(&self, now: Nanos) -> bool {
        self.queue.free_at() <= now
    }
}

/// Frames as they come into being and end, over all nodes. Nothing is lost without a count.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    /// Frames that hosts sent.
    pub sent: u64,
    /// Frames that hosts took in.
    pub delivered: u64,
    /// Frames that crossed a channel.
    pub hops: u64,
}

/// State that all nodes share.
#[derive(Debug)]
pub struct Network {
    /// The time.
    pub now: Nanos,
    /// Planned events.
    pub agenda: Agenda,
    /// Every direction of every link.
    pub channels: Vec<Channel>,
    /// The flows under way.
    pub flows: Flows,
    /// Frame counters.
    pub tally: Tally,
    spare: Vec<Vec<u8>>,
}

impl Network {
    /// A network in which nothing has happened.
    pub fn new(channels: Vec<Channel>, flows: Flows) -> Self {
        Self {
            now: 0,
            agenda: Agenda::default(),
            channels,
            flows,
            tally: Tally::default(),
            spare: Vec::new(),
        }
    }

    /// A buffer that was used before, if there is one; its contents are anything.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes a buffer back.
    pub fn reuse(&mut self, buffer: Vec<u8>) {
        self.spare.push(buffer);
    }

    /// Sends a frame in the slot that a channel gave.
    pub fn transmit(&mut self, channel: u32, slot: Slot, frame: Frame) {
        let bytes = frame.bytes.len() as u32;
        let queue = &mut self.channels[channel as usize].queue;
        queue.transmit(slot, bytes, frame);
        self.plan_arrival(channel);
    }

    /// The frame that has crossed a channel.
    pub fn arrive(&mut self, channel: u32) -> Option<Frame> {
        let now = self.now;
        let it = &mut self.channels[channel as usize];
        it.arrival_planned = false;
        let (_, frame) = it.queue.arrive(now)?;
        self.tally.hops += 1;
        self.plan_arrival(channel);
        Some(frame)
    }

    /// Sees to it that the node hears of it when the channel is free.
    pub fn plan_free(&mut self, channel: u32) {
        let it = &mut self.channels[channel as usize];
        if !it.free_planned {
            it.free_planned = true;
            let at = it.queue.free_at().max(self.now);
            self.agenda.plan(at, Event::Free { channel });
        }
    }

    /// The event that [`plan_free`](Self::plan_free) planned has come.
    pub fn freed(&mut self, channel: u32) {
        self.channels[channel as usize].free_planned = false;
    }

    fn plan_arrival(&mut self, channel: u32) {
        let it = &mut self.channels[channel as usize];
        if !it.arrival_planned
            && let Some(at) = it.queue.next_arrival()
        {
            it.arrival_planned = true;
            self.agenda.plan(at, Event::Arrival { channel });
        }
    }
}
