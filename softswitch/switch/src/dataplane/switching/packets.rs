// SPDX-License-Identifier: Apache-2.0
//! The path of a packet: ingress, queue, egress, link.

use std::sync::Arc;

use softswitch_pipeline::{Descriptor, EgressOutcome, IngressOutcome, Nanos, QueueInfo};
use softswitch_queue::PRIORITIES;

use super::{Locked, Queued, RETRY_AFTER, Switching};
use crate::dataplane::counters::PortCounters;
use crate::dataplane::{Event, SharedPipeline, StreamPacket};
use crate::port::Receive;

/// Maximum number of recirculated packets per turn, so that a program that recirculates for ever does not
/// stall the switch.
const RECIRCULATED_PER_TURN: usize = 64;

/// Maximum number of generated packets per turn.
const GENERATED_PER_TURN: usize = 64;

/// Maximum number of waiting recirculated packets; further ones are dropped.
const RECIRCULATED_BACKLOG: usize = 4096;

impl Switching {
    /// Runs the frames that a port has received through ingress.
    pub(in crate::dataplane) fn receive(
        &mut self,
        locked: &mut Locked<'_>,
        slot: usize,
        receiver: &mut dyn Receive,
        now: Nanos,
    ) {
        let port = &mut self.ports[slot];
        let number = port.number;
        if !std::mem::replace(&mut port.up, true) {
            tracing::info!("port {number} ({}) is up", port.name);
            locked.guard.set_port_up(number, true);
        }
        let counters = Arc::clone(&port.counters);
        let mut frames = (0, 0);
        // One packet at a time as far as possible, so that its bytes stay in the first-level cache.
        receiver.frames(&mut |frame| {
            frames = (frames.0 + 1, frames.1 + frame.len() as u64);
            let outcome = locked
                .guard
                .ingress(number, frame, now, &mut self.descriptors);
            count_ingress(&counters, outcome);
            self.dispatch(locked, now);
        });
        counters.rx_packets.add(frames.0);
        counters.rx_bytes.add(frames.1);
    }

    /// Runs a controller's packet through ingress.
    pub(in crate::dataplane) fn packet_out(
        &mut self,
        locked: &mut Locked<'_>,
        port: u32,
        frame: &[u8],
        now: Nanos,
    ) {
        self.switch_counters().packet_out.add(1);
        self.stream_id = 0;
        locked
            .guard
            .ingress(port, frame, now, &mut self.descriptors);
        self.dispatch(locked, now);
    }

    /// Runs a client's packet through ingress.
    pub(in crate::dataplane) fn stream_packet(
        &mut self,
        locked: &mut Locked<'_>,
        packet: &StreamPacket,
        now: Nanos,
    ) {
        self.stream_id = packet.id;
        let StreamPacket { port, frame, .. } = packet;
        locked
            .guard
            .ingress(*port, frame, now, &mut self.descriptors);
        self.dispatch(locked, now);
    }

    /// Runs the frame that a client injects and follows through ingress.
    pub(in crate::dataplane) fn inject(&mut self, locked: &mut Locked<'_>, now: Nanos) {
        let handle = Arc::clone(&self.handle);
        // The capture may have begun after this turn looked whether packets must be traced.
        if !handle.observers.captures.is_active() || !locked.guard.is_tracing() {
            return;
        }
        // The traces of earlier packets must not count as those of the frame.
        handle.write_trace(&mut locked.guard);
        if let Some(packet) = handle.observers.captures.take_frame() {
            self.stream_packet(locked, &packet, now);
            handle.write_trace(&mut locked.guard);
        }
    }

    /// Drops the frames that a port has received, because there is no pipeline.
    pub(in crate::dataplane) fn discard(&mut self, slot: usize, receiver: &mut dyn Receive) {
        let counters = &self.ports[slot].counters;
        let mut frames = (0, 0);
        receiver.frames(&mut |frame| frames = (frames.0 + 1, frames.1 + frame.len() as u64));
        counters.rx_packets.add(frames.0);
        counters.rx_bytes.add(frames.1);
        counters.no_pipeline.add(frames.0);
    }

    /// Serves the queues' events up to `now`.
    pub(in crate::dataplane) fn serve_queues(&mut self, locked: &mut Locked<'_>, now: Nanos) {
        for slot in 0..self.ports.len() {
            let port = &mut self.ports[slot];
            if port.retry_at.is_some_and(|at| at <= now) {
                // The result comes after this turn.
                port.hold(now + RETRY_AFTER);
                self.leaving.push(slot);
            }
            if self.ports[slot].next_event().is_some_and(|at| at <= now) {
                self.serve(locked, slot, now);
            }
        }
        self.enqueue_pending(locked, now);
    }

    /// Runs some of the recirculated packets through ingress.
    pub(in crate::dataplane) fn recirculate(&mut self, locked: &mut Locked<'_>, now: Nanos) {
        let turn = self.recirculated.len().min(RECIRCULATED_PER_TURN);
        for _ in 0..turn {
            let Some((packet, pipeline, stream_id)) = self.recirculated.pop_front() else {
                return;
            };
            self.stream_id = stream_id;
            let (descriptors, handle) = (&mut self.descriptors, &self.handle);
            locked.on(&pipeline, |p| {
                p.ingress_recirculated(packet, now, descriptors);
                handle.write_trace(p);
            });
            let made = self.descriptors.drain(..);
            self.pending
                .extend(made.map(|d| (d, Arc::clone(&pipeline))));
            self.enqueue_pending(locked, now);
        }
    }

    /// Runs some of the packets that are due in packet generators through ingress.
    pub(in crate::dataplane) fn generate(&mut self, locked: &mut Locked<'_>, now: Nanos) {
        for _ in 0..GENERATED_PER_TURN {
            self.stream_id = 0;
            if !locked.guard.generate(now, &mut self.descriptors) {
                break;
            }
            self.dispatch(locked, now);
        }
        self.generates_at = locked.guard.next_generated();
    }

    fn dispatch(&mut self, locked: &mut Locked<'_>, now: Nanos) {
        let made = self.descriptors.drain(..);
        self.pending
            .extend(made.map(|d| (d, Arc::clone(locked.shared))));
        self.enqueue_pending(locked, now);
    }

    fn enqueue_pending(&mut self, locked: &mut Locked<'_>, now: Nanos) {
        while let Some((descriptor, pipeline)) = self.pending.pop_front() {
            match self.slots.get(&descriptor.egress_port) {
                Some(&slot) => self.enqueue(locked, slot, descriptor, pipeline, now),
                None => self.egress_without_queue(locked, descriptor, &pipeline, now),
            }
        }
    }

    fn enqueue(
        &mut self,
        locked: &mut Locked<'_>,
        slot: usize,
        descriptor: Descriptor,
        pipeline: SharedPipeline,
        now: Nanos,
    ) {
        let port = &mut self.ports[slot];
        let (bytes, priority) = (descriptor.len, descriptor.priority.into());
        let queue = queue_of(&descriptor);
        let ghost = locked.on(&pipeline, |p| p.has_ghost());
        let ghost = ghost.then(|| Arc::clone(&pipeline));
        let queued = Queued {
            descriptor,
            pipeline,
            depth: port.queue.depth_packets(),
        };
        match port.queue.enqueue(now, queued, bytes, priority) {
            Ok(()) => {
                if let Some(pipeline) = ghost {
                    self.report_length(locked, &pipeline, (slot, queue), now);
                }
                self.serve(locked, slot, now);
            }
            Err(Queued {
                descriptor,
                pipeline,
                ..
            }) => {
                port.counters.tail_drop.add(1);
                locked.on(&pipeline, |p| p.recycle(descriptor));
            }
        }
    }

    /// Takes due packets from a port's queue and due frames from its link.
    fn serve(&mut self, locked: &mut Locked<'_>, slot: usize, now: Nanos) {
        while let Some(started) = self.ports[slot].queue.start(now) {
            let Queued {
                descriptor,
                pipeline,
                depth,
            } = started.packet;
            let info = QueueInfo {
                enq_timestamp: started.enqueued_at,
                enq_qdepth: saturate(depth),
                deq_timedelta: started.at - started.enqueued_at,
                deq_qdepth: saturate(started.depth_packets),
                qid: queue_of(&descriptor),
            };
            if locked.on(&pipeline, |p| p.has_ghost()) {
                self.report_length(locked, &pipeline, (slot, info.qid), started.at);
            }
            let sent = self.egress(locked, descriptor, &pipeline, info, started.at);
            let port = &mut self.ports[slot];
            match sent {
                Sent::Frame => {
                    let spare = self.spare.pop().unwrap_or_default();
                    let frame = self.output.take_frame(spare);
                    port.queue.transmit(started.slot, frame.len() as u32, frame);
                }
                Sent::Nothing => {}
                Sent::Dropped => port.counters.egress.add(1),
                Sent::TooManyIterations => port.counters.iteration_limit.add(1),
                Sent::AssertionFailed => port.counters.assertion.add(1),
            }
        }
        let port = &mut self.ports[slot];
        while let Some((_, frame)) = port.queue.arrive(now) {
            if port.attached {
                if port.made.is_empty() {
                    self.leaving.push(slot);
                }
                port.made.push(frame);
            } else {
                port.counters.port_down.add(1);
            }
        }
        port.counters.link_loss.set(port.queue.counts().lost);
    }

    /// Tells the ghost threads of a program the length of a port's queue.
    fn report_length(
        &self,
        locked: &mut Locked<'_>,
        pipeline: &SharedPipeline,
        (slot, queue): (usize, u8),
        now: Nanos,
    ) {
        let port = &self.ports[slot];
        let packets = saturate(port.queue.depth_of(queue.into()));
        locked.on(pipeline, |p| {
            p.queue_changed(port.number, queue, packets, now);
        });
    }

    /// Runs egress. The resulting frame, if any, is in `self.output`.
    fn egress(
        &mut self,
        locked: &mut Locked<'_>,
        descriptor: Descriptor,
        pipeline: &SharedPipeline,
        info: QueueInfo,
        at: Nanos,
    ) -> Sent {
        let (output, handle) = (&mut self.output, &self.handle);
        let outcome = locked.on(pipeline, |p| {
            let outcome = p.egress(descriptor, info, at, output);
            handle.write_trace(p);
            outcome
        });
        let clones = self.output.clones.drain(..);
        self.pending
            .extend(clones.map(|d| (d, Arc::clone(pipeline))));
        match outcome {
            EgressOutcome::Transmit { .. } => Sent::Frame,
            EgressOutcome::Dropped => Sent::Dropped,
            EgressOutcome::TooManyIterations => Sent::TooManyIterations,
            EgressOutcome::AssertionFailed => Sent::AssertionFailed,
            EgressOutcome::Recirculate(packet) => {
                if self.recirculated.len() >= RECIRCULATED_BACKLOG {
                    return Sent::Dropped;
                }
                self.switch_counters().recirculated.add(1);
                let packet = (packet, Arc::clone(pipeline), self.stream_id);
                self.recirculated.push_back(packet);
                Sent::Nothing
            }
        }
    }

    /// Runs egress for the CPU port, or for a port that does not exist: the program may still count or clone.
    fn egress_without_queue(
        &mut self,
        locked: &mut Locked<'_>,
        descriptor: Descriptor,
        pipeline: &SharedPipeline,
        now: Nanos,
    ) {
        let port = descriptor.egress_port;
        let info = QueueInfo {
            enq_timestamp: now,
            ..Default::default()
        };
        if self.egress(locked, descriptor, pipeline, info, now) != Sent::Frame {
            return;
        }
        if Some(port) != self.handle.cpu_port {
            if !self.send_to_client(port) {
                self.switch_counters().no_such_port.add(1);
            }
            return;
        }
        let counters = &self.handle.counters;
        let packet = self.output.take_frame(Vec::new()).into();
        let event = Event::PacketIn(Arc::clone(pipeline), packet);
        match self.events.try_send(event) {
            Ok(()) => counters.packet_in.add(1),
            Err(_) => counters.packet_in_dropped.add(1),
        }
    }

    /// Passes the frame in `self.output` to the client, if any; returns false if no client takes it.
    fn send_to_client(&mut self, port: u32) -> bool {
        let Some(stream) = &self.handle.packet_stream else {
            return false;
        };
        stream.send(StreamPacket {
            id: self.stream_id,
            port,
            frame: self.output.take_frame(Vec::new()),
        })
    }

    /// Passes digests to the control plane.
    pub(in crate::dataplane) fn send_digests(
        &self,
        pipeline: &SharedPipeline,
        digests: Vec<softswitch_pipeline::Digest>,
    ) {
        let n = digests.len() as u64;
        let event = Event::Digests(Arc::clone(pipeline), digests);
        if self.events.try_send(event).is_err() {
            self.switch_counters().digest_dropped.add(n);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    Frame,
    Nothing,
    Dropped,
    TooManyIterations,
    AssertionFailed,
}

fn count_ingress(counters: &PortCounters, outcome: IngressOutcome) {
    match outcome {
        IngressOutcome::Unicast | IngressOutcome::Multicast(1..) => {}
        IngressOutcome::Multicast(0) => counters.empty_group.add(1),
        IngressOutcome::Dropped => counters.ingress.add(1),
        IngressOutcome::TooLong => counters.rx_too_long.add(1),
        IngressOutcome::TooManyResubmits => counters.resubmit_limit.add(1),
        IngressOutcome::TooManyIterations => counters.iteration_limit.add(1),
        IngressOutcome::ParserError => counters.parser_error.add(1),
        IngressOutcome::AssertionFailed => counters.assertion.add(1),
    }
}

/// Returns the queue of a packet among those of its port.
fn queue_of(descriptor: &Descriptor) -> u8 {
    descriptor.priority.min(PRIORITIES as u8 - 1)
}

fn saturate(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
