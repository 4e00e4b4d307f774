// SPDX-License-Identifier: Apache-2.0
//! State that the nodes of a shard share: channels, frames on their way, scheduled events and flows.

use std::collections::VecDeque;

use softswitch_pipeline::{Descriptor, Nanos};
use softswitch_queue::{EgressQueue, Slot};

use crate::events::{Event, EventQueue};
use crate::flows::Flows;
use crate::frame::MAX_HEAD;

/// Maximum number of buffers of each kind that are kept for reuse. A shard may receive more frames than it sends.
const MAX_BUFFERS: usize = 4096;

/// Minimum length of a frame on a link in bytes: an Ethernet header. A shorter frame takes as long.
pub const MIN_FRAME: u32 = 14;

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

/// The sending end of one direction of a link.
#[derive(Debug)]
pub struct Channel {
    /// `node:port` of the sending end.
    pub name: String,
    /// Queued frames. Frames that have left the queue are on the wire.
    pub queue: EgressQueue<Outgoing, Frame>,
    /// Index of the sending node.
    pub from: u32,
    /// The receiving end.
    pub to: WireEnd,
    /// True if the queue serves packets by rank instead of by the program's priorities.
    pub by_rank: bool,
    free_scheduled: bool,
}

/// A wire and its shard.
#[derive(Debug, Clone, Copy)]
pub struct WireEnd {
    /// Number of the shard.
    pub shard: u32,
    /// Index of the wire in that shard.
    pub wire: u32,
}

impl Channel {
    /// Creates an idle channel.
    pub fn new(
        name: String,
        queue: EgressQueue<Outgoing, Frame>,
        from: u32,
        to: WireEnd,
        by_rank: bool,
    ) -> Self {
        Self {
            name,
            queue,
            from,
            to,
            by_rank,
            free_scheduled: false,
        }
    }

    /// Returns true if the channel can transmit a frame now.
    pub fn is_free(&self, now: Nanos) -> bool {
        self.queue.free_at() <= now
    }
}

/// The receiving end of one direction of a link: frames on their way, in the order of their arrival.
#[derive(Debug)]
pub struct Wire {
    /// Index of the receiving node.
    pub to: u32,
    /// Receiving port.
    pub port: u32,
    in_flight: VecDeque<(Nanos, Frame)>,
}

impl Wire {
    /// Creates an empty wire.
    pub fn new(to: u32, port: u32) -> Self {
        Self {
            to,
            port,
            in_flight: VecDeque::new(),
        }
    }
}

/// A frame on its way to another shard.
#[derive(Debug)]
pub struct Crossing {
    wire: u32,
    at: Nanos,
    frame: Frame,
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

/// State that the nodes of a shard share.
#[derive(Debug)]
pub struct Network {
    /// Simulated time.
    pub now: Nanos,
    /// Scheduled events.
    pub events: EventQueue,
    /// Channels of the shard's nodes.
    pub channels: Vec<Channel>,
    /// Wires to the shard's nodes.
    pub wires: Vec<Wire>,
    /// Active flows.
    pub flows: Flows,
    /// Frame counters.
    pub frame_counts: FrameCounts,
    /// Frames for each shard; none for this one.
    pub outboxes: Vec<Vec<Crossing>>,
    /// Number of this shard.
    shard: u32,
    /// The earliest arrival of the frames in outboxes.
    earliest_crossing: Option<Nanos>,
    /// Buffers whose frames end within the head, and longer ones.
    buffers: [Vec<Vec<u8>>; 2],
}

impl Network {
    /// Creates the network of a shard at time 0. `shards` is the number of shards.
    pub fn new(shard: u32, shards: usize, channels: Vec<Channel>, wires: Vec<Wire>) -> Self {
        Self {
            now: 0,
            events: EventQueue::default(),
            channels,
            wires,
            flows: Flows::default(),
            frame_counts: FrameCounts::default(),
            outboxes: (0..shards).map(|_| Vec::new()).collect(),
            shard,
            earliest_crossing: None,
            buffers: Default::default(),
        }
    }

    /// Returns a buffer for a frame of about this length. It contains an earlier frame, or is empty.
    pub fn take_buffer(&mut self, length: usize) -> Vec<u8> {
        self.buffers_of(length).pop().unwrap_or_default()
    }

    /// Keeps the buffer of a frame for reuse.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        let kept = self.buffers_of(buffer.len());
        if kept.len() < MAX_BUFFERS {
            kept.push(buffer);
        }
    }

    /// Returns the buffers for frames of a length. Long frames are apart, because their payloads need not be written again.
    fn buffers_of(&mut self, length: usize) -> &mut Vec<Vec<u8>> {
        &mut self.buffers[usize::from(length > MAX_HEAD)]
    }

    /// Transmits a frame in a slot that the queue of the channel has assigned.
    pub fn transmit(&mut self, channel: u32, slot: Slot, frame: Frame) {
        let bytes = MIN_FRAME.max(frame.bytes.len() as u32);
        let Channel { queue, to, .. } = &mut self.channels[channel as usize];
        let WireEnd { shard, wire } = *to;
        queue.transmit(slot, bytes, frame);
        let Some((at, frame)) = queue.arrive(Nanos::MAX) else {
            return; // lost
        };
        if shard == self.shard {
            self.carry(wire, at, frame);
        } else {
            let earliest = self.earliest_crossing.unwrap_or(at).min(at);
            self.earliest_crossing = Some(earliest);
            self.outboxes[shard as usize].push(Crossing { wire, at, frame });
        }
    }

    /// Takes the frames that another shard has sent.
    pub fn receive(&mut self, crossings: &mut Vec<Crossing>) {
        for Crossing { wire, at, frame } in crossings.drain(..) {
            self.carry(wire, at, frame);
        }
    }

    /// Returns the earliest arrival of the frames for other shards since the last call.
    pub fn take_earliest_crossing(&mut self) -> Option<Nanos> {
        self.earliest_crossing.take()
    }

    /// Returns the frame that arrives on a wire.
    pub fn arrive(&mut self, wire: u32) -> Option<Frame> {
        let in_flight = &mut self.wires[wire as usize].in_flight;
        let (_, frame) = in_flight.pop_front()?;
        if let Some(&(at, _)) = in_flight.front() {
            self.events.schedule(at, Event::Arrival { wire });
        }
        self.frame_counts.hops += 1;
        Some(frame)
    }

    /// Returns the number of frames on wires, and of those for other shards.
    pub fn in_flight(&self) -> u64 {
        let wires = self.wires.iter().map(|wire| wire.in_flight.len());
        wires
            .chain(self.outboxes.iter().map(Vec::len))
            .sum::<usize>() as u64
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

    /// Puts a frame on a wire, which keeps the order of its frames.
    fn carry(&mut self, wire: u32, at: Nanos, frame: Frame) {
        let in_flight = &mut self.wires[wire as usize].in_flight;
        if in_flight.is_empty() {
            self.events.schedule(at, Event::Arrival { wire });
        }
        in_flight.push_back((at, frame));
    }
}
