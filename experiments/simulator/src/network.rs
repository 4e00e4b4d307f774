// SPDX-License-Identifier: Apache-2.0
//! State that all nodes share: frames, channels, scheduled events and flows.

use softswitch_pipeline::{Descriptor, Nanos};
use softswitch_queue::{EgressQueue, Slot};

use crate::events::{Event, EventQueue};
use crate::flows::Flows;

/// A frame between two nodes.
#[derive(Debug, Default)]
pub struct Frame {
    /// Contents from the destination MAC address to the end of the payload.
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
        /// Rank of its frame.
        rank: u32,
        /// Queue depth in packets at its arrival.
        depth: u64,
    },
    /// A host's frame.
    Frame(Frame),
}

/// One direction of a link.
#[derive(Debug)]
pub struct Channel {
    /// `node:port` of the sending end.
    pub name: String,
    /// Queued frames and frames in flight.
    pub queue: EgressQueue<Outgoing, Frame>,
    /// Number of the sending node.
    pub from: u32,
    /// Number of the receiving node.
    pub to: u32,
    /// Receiving port.
    pub to_port: u32,
    /// True if the queue serves packets by rank instead of by the program's priorities.
    pub by_rank: bool,
    arrival_scheduled: bool,
    free_scheduled: bool,
}

impl Channel {
    /// Creates an idle channel. `ends` has the sending node, the receiving node and the receiving port.
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
            arrival_scheduled: false,
            free_scheduled: false,
        }
    }

    /// Returns true if the channel can transmit a frame now.
    pub fn is_free(&self, now: Nanos) -> bool {
        self.queue.free_at() <= now
    }
}

/// Frame counters of all nodes. Every lost frame is counted.
#[derive(Debug, Default, Clone, Copy)]
pub struct FrameCounts {
    /// Frames that hosts sent.
    pub sent: u64,
    /// Frames that hosts received.
    pub delivered: u64,
    /// Frames that crossed a channel.
    pub hops: u64,
}

/// State that all nodes share.
#[derive(Debug)]
pub struct Network {
    /// Simulated time.
    pub now: Nanos,
    /// Scheduled events.
    pub events: EventQueue,
    /// Channels: one per direction of each link.
    pub channels: Vec<Channel>,
    /// Active flows.
    pub flows: Flows,
    /// Frame counters.
    pub frame_counts: FrameCounts,
    buffers: Vec<Vec<u8>>,
}

impl Network {
    /// Creates a network at time 0.
    pub fn new(channels: Vec<Channel>, flows: Flows) -> Self {
        Self {
            now: 0,
            events: EventQueue::default(),
            channels,
            flows,
            frame_counts: FrameCounts::default(),
            buffers: Vec::new(),
        }
    }

    /// Returns a used buffer with arbitrary contents, or an empty one.
    pub fn take_buffer(&mut self) -> Vec<u8> {
        self.buffers.pop().unwrap_or_default()
    }

    /// Keeps a buffer for reuse.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        self.buffers.push(buffer);
    }

    /// Transmits a frame in a slot that the queue of the channel has assigned.
    pub fn transmit(&mut self, channel: u32, slot: Slot, frame: Frame) {
        let bytes = frame.bytes.len() as u32;
        let queue = &mut self.channels[channel as usize].queue;
        queue.transmit(slot, bytes, frame);
        self.schedule_arrival(channel);
    }

    /// Returns the frame that has crossed a channel, if it was not lost.
    pub fn arrive(&mut self, channel: u32) -> Option<Frame> {
        let now = self.now;
        let entry = &mut self.channels[channel as usize];
        entry.arrival_scheduled = false;
        let (_, frame) = entry.queue.arrive(now)?;
        self.frame_counts.hops += 1;
        self.schedule_arrival(channel);
        Some(frame)
    }

    /// Schedules an event for the time when the channel is free.
    pub fn schedule_free(&mut self, channel: u32) {
        let entry = &mut self.channels[channel as usize];
        if !entry.free_scheduled {
            entry.free_scheduled = true;
            let at = entry.queue.free_at().max(self.now);
            self.events.schedule(at, Event::Free { channel });
        }
    }

    /// Notes that the event of [`schedule_free`](Self::schedule_free) has occurred.
    pub fn on_free(&mut self, channel: u32) {
        self.channels[channel as usize].free_scheduled = false;
    }

    fn schedule_arrival(&mut self, channel: u32) {
        let entry = &mut self.channels[channel as usize];
        if !entry.arrival_scheduled
            && let Some(at) = entry.queue.next_arrival()
        {
            entry.arrival_scheduled = true;
            self.events.schedule(at, Event::Arrival { channel });
        }
    }
}
