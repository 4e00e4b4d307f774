// SPDX-License-Identifier: Apache-2.0
//! The path of a packet: ingress, queue, egress, link.

use std::sync::Arc;

use softswitch_pipeline::{Descriptor, EgressOutcome, IngressOutcome, Nanos, QueueInfo};
use softswitch_queue::PRIORITIES;

use super::{Elsewhere, Pending, Switching};
use crate::dataplane::counters::PortCounters;
use crate::dataplane::current::Entered;
use crate::dataplane::port::{LockedQueue, NEVER, Port};
use crate::dataplane::port_queue::Next;
use crate::dataplane::shared::{Returning, Shared};
use crate::dataplane::{Event, StreamPacket};
use crate::port::Receive;

/// Maximum number of recirculated packets per turn, so that a program that recirculates for ever does not
/// stall the switch.
const RECIRCULATED_PER_TURN: usize = 64;

/// Maximum number of generated packets per turn.
const GENERATED_PER_TURN: usize = 64;

impl Switching {
    /// Runs the frames that a port has received through ingress.
    pub(in crate::dataplane) fn receive(
        &mut self,
        entered: &mut Entered<'_>,
        slot: usize,
        receiver: &mut dyn Receive,
        now: Nanos,
    ) {
        let port = entered.shared.ports.get(slot);
        let mut frames = (0, 0);
        // One packet at a time as far as possible, so that its bytes stay in the first-level cache.
        receiver.frames(&mut |frame| {
            frames = (frames.0 + 1, frames.1 + frame.len() as u64);
            let turn = &mut entered.turn;
            let outcome = turn.ingress(port.number, frame, now, &mut self.descriptors);
            count_ingress(&port.counters, outcome);
            self.dispatch(entered, now);
        });
        port.counters.rx_packets.add(frames.0);
        port.counters.rx_bytes.add(frames.1);
    }

    /// Runs a controller's packet through ingress.
    pub(in crate::dataplane) fn packet_out(
        &mut self,
        entered: &mut Entered<'_>,
        port: u32,
        frame: &[u8],
        now: Nanos,
    ) {
        entered.shared.handle.counters.packet_out.add(1);
        self.stream_id = 0;
        let turn = &mut entered.turn;
        turn.ingress(port, frame, now, &mut self.descriptors);
        self.dispatch(entered, now);
    }

    /// Runs a client's packet through ingress.
    pub(in crate::dataplane) fn stream_packet(
        &mut self,
        entered: &mut Entered<'_>,
        packet: &StreamPacket,
        now: Nanos,
    ) {
        self.stream_id = packet.id;
        let StreamPacket { port, frame, .. } = packet;
        let turn = &mut entered.turn;
        turn.ingress(*port, frame, now, &mut self.descriptors);
        self.dispatch(entered, now);
    }

    /// Runs the frame that a client injects and follows through ingress.
    pub(in crate::dataplane) fn inject(&mut self, entered: &mut Entered<'_>, now: Nanos) {
        let captures = &entered.shared.handle.observers.captures;
        // The capture may have begun after this thread looked whether packets must be traced.
        let is_tracing = entered.turn.alone().is_some_and(|p| p.is_tracing());
        if !captures.is_active() || !is_tracing {
            return;
        }
        // The traces of earlier packets must not count as those of the frame.
        entered.write_trace();
        if let Some(packet) = captures.take_frame() {
            self.stream_packet(entered, &packet, now);
            entered.write_trace();
        }
    }

    /// Drops the frames that a port has received, because there is no pipeline.
    pub(in crate::dataplane) fn discard(port: &Port, receiver: &mut dyn Receive) {
        let counters = &port.counters;
        let mut frames = (0, 0);
        receiver.frames(&mut |frame| frames = (frames.0 + 1, frames.1 + frame.len() as u64));
        counters.rx_packets.add(frames.0);
        counters.rx_bytes.add(frames.1);
        counters.no_pipeline.add(frames.0);
    }

    /// Runs some of the thread's recirculated packets through ingress.
    pub(in crate::dataplane) fn recirculate(&mut self, entered: &mut Entered<'_>, now: Nanos) {
        let waiting = &entered.shared.recirculated[self.thread];
        let count = waiting.lock().len().min(RECIRCULATED_PER_TURN);
        for _ in 0..count {
            let Some(packet) = waiting.lock().pop_front() else {
                return;
            };
            if Arc::ptr_eq(&packet.pipeline, entered.pipeline) {
                self.ingress_again(entered, packet, now);
            } else {
                self.elsewhere.push_back(Elsewhere::Recirculated(packet));
            }
        }
    }

    /// Runs a recirculated packet through ingress.
    pub(super) fn ingress_again(
        &mut self,
        entered: &mut Entered<'_>,
        packet: Returning,
        now: Nanos,
    ) {
        self.stream_id = packet.stream_id;
        let turn = &mut entered.turn;
        turn.ingress_recirculated(packet.packet, now, &mut self.descriptors);
        entered.write_trace();
        self.dispatch(entered, now);
    }

    /// Runs some of the packets that are due in packet generators through ingress. Programs with a generator run one packet
    /// after the other.
    pub(in crate::dataplane) fn generate(&mut self, entered: &mut Entered<'_>, now: Nanos) {
        for _ in 0..GENERATED_PER_TURN {
            self.stream_id = 0;
            let Some(pipeline) = entered.turn.alone() else {
                break;
            };
            if !pipeline.generate(now, &mut self.descriptors) {
                break;
            }
            self.dispatch(entered, now);
        }
        let next = entered.turn.alone().and_then(|p| p.next_generated());
        let next = next.unwrap_or(NEVER);
        entered.shared.set_generates_at(self.thread, next);
    }

    /// Passes the packets that ingress has made to the queues of their ports, and then the clones that egress has made of them.
    fn dispatch(&mut self, entered: &mut Entered<'_>, now: Nanos) {
        let mut made = std::mem::take(&mut self.descriptors);
        for descriptor in made.drain(..) {
            self.pass(entered, descriptor, now);
        }
        self.descriptors = made;
        self.enqueue_pending(entered, now);
    }

    pub(super) fn enqueue_pending(&mut self, entered: &mut Entered<'_>, now: Nanos) {
        while let Some(pending) = self.pending.pop_front() {
            match pending {
                Pending::Packet(descriptor) => self.pass(entered, descriptor, now),
                Pending::CloneOf(slot) => self.pass_clone(entered, slot, now),
            }
        }
    }

    /// Passes on the next clone of a port. It may be that of a packet of another thread, which will then pass on a later one.
    fn pass_clone(&mut self, entered: &mut Entered<'_>, slot: usize, now: Nanos) {
        let port = entered.shared.ports.get(slot);
        let _order = port.cloning.lock();
        let clone = port.queue().clones.pop_front();
        match clone {
            Some((clone, pipeline)) if Arc::ptr_eq(&pipeline, entered.pipeline) => {
                self.pass(entered, clone, now);
            }
            Some((clone, pipeline)) => {
                let clone = Elsewhere::Clone(clone, pipeline);
                self.elsewhere.push_back(clone);
            }
            None => {}
        }
    }

    /// Passes a packet to the queue of its port.
    pub(super) fn pass(&mut self, entered: &mut Entered<'_>, descriptor: Descriptor, now: Nanos) {
        match self.slots.get(&descriptor.egress_port) {
            Some(&slot) => self.enqueue(entered, slot, descriptor, now),
            None => self.egress_without_queue(entered, descriptor, now),
        }
    }

    fn enqueue(
        &mut self,
        entered: &mut Entered<'_>,
        slot: usize,
        descriptor: Descriptor,
        now: Nanos,
    ) {
        let port = entered.shared.ports.get(slot);
        let qid = queue_of(&descriptor);
        let mut queue = port.queue();
        let now = queue.advance(now);
        match queue.enqueue(now, descriptor, entered.pipeline) {
            Ok(()) => {
                report_length(entered, port, &queue, qid, now);
                self.serve_locked(entered, (slot, port), &mut queue, now);
            }
            Err(descriptor) => {
                port.counters.tail_drop.add(1);
                entered.turn.recycle(descriptor);
            }
        }
    }

    /// Takes due packets from a port's queue and due frames from its link.
    pub(super) fn serve(&mut self, entered: &mut Entered<'_>, slot: usize, now: Nanos) {
        let port = entered.shared.ports.get(slot);
        let mut queue = port.queue();
        let now = queue.advance(now);
        self.serve_locked(entered, (slot, port), &mut queue, now);
    }

    fn serve_locked(
        &mut self,
        entered: &mut Entered<'_>,
        (slot, port): (usize, &Port),
        queue: &mut LockedQueue<'_>,
        now: Nanos,
    ) {
        self.touched.insert(slot);
        loop {
            let started = match queue.start(now, entered.pipeline) {
                Next::Packet(started) => started,
                Next::None => break,
                Next::OfOtherPipeline => {
                    self.elsewhere.push_back(Elsewhere::Port(slot));
                    break;
                }
            };
            let descriptor = started.packet.descriptor;
            let info = QueueInfo {
                enq_timestamp: started.enqueued_at,
                enq_qdepth: saturate(started.packet.depth),
                deq_timedelta: started.at - started.enqueued_at,
                deq_qdepth: saturate(started.depth_packets),
                qid: queue_of(&descriptor),
            };
            report_length(entered, port, queue, info.qid, started.at);
            let outcome = self.egress(entered, descriptor, info, started.at);
            for clone in self.output.clones.drain(..) {
                queue
                    .clones
                    .push_back((clone, Arc::clone(entered.pipeline)));
                self.pending.push_back(Pending::CloneOf(slot));
            }
            match self.fate(entered, outcome, port.owner) {
                Sent::Frame => {
                    let spare = self.spare.pop().unwrap_or_default();
                    queue.transmit(started.slot, self.output.take_frame(spare));
                }
                Sent::Nothing => {}
                Sent::Dropped => port.counters.egress.add(1),
                Sent::TooManyIterations => port.counters.iteration_limit.add(1),
                Sent::AssertionFailed => port.counters.assertion.add(1),
            }
        }
        while let Some(frame) = queue.arrive(now) {
            if port.is_attached() {
                queue.made.push(frame);
            } else {
                port.counters.port_down.add(1);
            }
        }
    }

    /// Runs egress. The resulting frame, if any, is in `self.output`, and so are clones.
    fn egress(
        &mut self,
        entered: &mut Entered<'_>,
        descriptor: Descriptor,
        info: QueueInfo,
        at: Nanos,
    ) -> EgressOutcome {
        let turn = &mut entered.turn;
        let outcome = turn.egress(descriptor, info, at, &mut self.output);
        entered.write_trace();
        outcome
    }

    /// Returns the fate of a packet after egress. If it recirculates, `thread` runs it through ingress.
    fn fate(&mut self, entered: &Entered<'_>, outcome: EgressOutcome, thread: usize) -> Sent {
        match outcome {
            EgressOutcome::Transmit { .. } => Sent::Frame,
            EgressOutcome::Dropped => Sent::Dropped,
            EgressOutcome::TooManyIterations => Sent::TooManyIterations,
            EgressOutcome::AssertionFailed => Sent::AssertionFailed,
            EgressOutcome::Recirculate(packet) => {
                let packet = Returning {
                    packet,
                    pipeline: Arc::clone(entered.pipeline),
                    stream_id: self.stream_id,
                };
                if !entered.shared.recirculate(thread, packet) {
                    return Sent::Dropped;
                }
                if thread != self.thread {
                    self.returning.insert(thread);
                }
                Sent::Nothing
            }
        }
    }

    /// Runs egress for the CPU port, or for a port that does not exist: the program may still count or clone.
    fn egress_without_queue(
        &mut self,
        entered: &mut Entered<'_>,
        descriptor: Descriptor,
        now: Nanos,
    ) {
        let port = descriptor.egress_port;
        let info = QueueInfo {
            enq_timestamp: now,
            ..Default::default()
        };
        let outcome = self.egress(entered, descriptor, info, now);
        let clones = self.output.clones.drain(..);
        self.pending.extend(clones.map(Pending::Packet));
        if self.fate(entered, outcome, self.thread) != Sent::Frame {
            return;
        }
        let Shared { handle, events, .. } = entered.shared;
        if Some(port) != handle.cpu_port {
            if !self.send_to_client(entered.shared, port) {
                handle.counters.no_such_port.add(1);
            }
            return;
        }
        let packet = self.output.take_frame(Vec::new()).into();
        let event = Event::PacketIn(Arc::clone(entered.pipeline), packet);
        match events.try_send(event) {
            Ok(()) => handle.counters.packet_in.add(1),
            Err(_) => handle.counters.packet_in_dropped.add(1),
        }
    }

    /// Passes the frame in `self.output` to the client, if any; returns false if no client takes it.
    fn send_to_client(&mut self, shared: &Shared, port: u32) -> bool {
        let Some(stream) = &shared.handle.packet_stream else {
            return false;
        };
        stream.send(StreamPacket {
            id: self.stream_id,
            port,
            frame: self.output.take_frame(Vec::new()),
        })
    }
}

/// Tells the ghost threads of a program, if it has any, the length of a port's queue. Such programs run one packet after the
/// other.
fn report_length(
    entered: &mut Entered<'_>,
    port: &Port,
    queue: &LockedQueue<'_>,
    qid: u8,
    now: Nanos,
) {
    if let Some(pipeline) = entered.turn.alone()
        && pipeline.has_ghost()
    {
        pipeline.queue_changed(port.number, qid, saturate(queue.depth_of(qid)), now);
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
