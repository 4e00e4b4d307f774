//! The way of a packet: ingress, queue, egress, link.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::MutexGuard;
use softswitch_pipeline::{
    Descriptor, EgressOutcome, EgressOutput, IngressOutcome, Nanos, Pipeline, QueueInfo,
    Recirculated,
};
use tokio::sync::mpsc;

use super::counters::{PortCounters, SwitchCounters};
use super::{Event, Handle, PortSetup, SharedPipeline};
use crate::port::{Port, PortError};
use crate::queue::{EgressQueue, PRIORITIES};

/// Recirculated packets taken per turn, so that a program that never stops recirculating does not
/// stop the switch.
const RECIRCULATED_PER_TURN: usize = 64;

/// Recirculated packets that may wait; more are dropped.
const RECIRCULATED_BACKLOG: usize = 4096;

/// Frame buffers kept for use again.
const SPARE_BUFFERS: usize = 1024;

/// A port with its queue.
pub struct PortState {
    /// Its number.
    pub number: u32,
    /// Its interface's name.
    pub name: String,
    pub(super) io: Box<dyn Port>,
    queue: EgressQueue<Queued, Vec<u8>>,
    pub(super) counters: Arc<PortCounters>,
    pub(super) up: bool,
    pub(super) attached: bool,
    has_unsent: bool,
}

/// A packet in a queue, with the pipeline that it came in by and leaves by.
struct Queued {
    descriptor: Descriptor,
    pipeline: SharedPipeline,
    depth: u64,
}

/// Everything that a packet meets except the pipeline.
pub struct Switching {
    pub(super) ports: Vec<PortState>,
    slots: HashMap<u32, usize>,
    handle: Arc<Handle>,
    events: mpsc::Sender<Event>,
    descriptors: Vec<Descriptor>,
    pending: VecDeque<(Descriptor, SharedPipeline)>,
    recirculated: VecDeque<(Recirculated, SharedPipeline)>,
    output: EgressOutput,
    spare: Vec<Vec<u8>>,
}

/// A pipeline that is locked for a while.
pub struct Locked<'a> {
    pub(super) shared: &'a SharedPipeline,
    pub(super) guard: MutexGuard<'a, Pipeline>,
}

impl Locked<'_> {
    /// Runs something on a pipeline: this one, or one that was replaced meanwhile.
    fn on<R>(&mut self, pipeline: &SharedPipeline, f: impl FnOnce(&mut Pipeline) -> R) -> R {
        if Arc::ptr_eq(pipeline, self.shared) {
            f(&mut self.guard)
        } else {
            f(&mut pipeline.lock())
        }
    }
}

impl Switching {
    pub(super) fn new(
        ports: Vec<PortSetup>,
        handle: Arc<Handle>,
        events: mpsc::Sender<Event>,
        seed: u64,
    ) -> Self {
        let ports = ports.into_iter().map(|setup| PortState {
            queue: EgressQueue::new(setup.link, mix(seed, setup.number)),
            number: setup.number,
            name: setup.name,
            io: setup.io,
            counters: Arc::default(),
            up: true,
            attached: true,
            has_unsent: false,
        });
        let ports: Vec<_> = ports.collect();
        Self {
            slots: ports
                .iter()
                .enumerate()
                .map(|(slot, port)| (port.number, slot))
                .collect(),
            ports,
            handle,
            events,
            descriptors: Vec::new(),
            pending: VecDeque::new(),
            recirculated: VecDeque::new(),
            output: EgressOutput::default(),
            spare: Vec::new(),
        }
    }

    fn switch_counters(&self) -> &SwitchCounters {
        &self.handle.counters
    }

    /// Whether packets wait that no event will announce.
    pub(super) fn has_work(&self) -> bool {
        !self.recirculated.is_empty()
    }

    /// When a queue next has something to do.
    pub(super) fn next_event(&self) -> Option<Nanos> {
        self.ports.iter().filter_map(|p| p.queue.next_event()).min()
    }

    /// Runs the frames that a port has received through ingress.
    pub(super) fn receive(&mut self, locked: &mut Locked<'_>, slot: usize, now: Nanos) {
        let port = &mut self.ports[slot];
        let counters = Arc::clone(&port.counters);
        let number = port.number;
        let mut frames = (0, 0);
        let descriptors = &mut self.descriptors;
        port.io.frames(&mut |frame| {
            frames = (frames.0 + 1, frames.1 + frame.len() as u64);
            let outcome = locked.guard.ingress(number, frame, now, descriptors);
            count_ingress(&counters, outcome);
        });
        counters.rx_packets.add(frames.0);
        counters.rx_bytes.add(frames.1);
        self.dispatch(locked, now);
    }

    /// Runs a controller's packet through ingress.
    pub(super) fn packet_out(
        &mut self,
        locked: &mut Locked<'_>,
        port: u32,
        frame: &[u8],
        now: Nanos,
    ) {
        self.switch_counters().packet_out.add(1);
        locked
            .guard
            .ingress(port, frame, now, &mut self.descriptors);
        self.dispatch(locked, now);
    }

    /// Drops the frames that a port has received, since there is no pipeline.
    pub(super) fn discard(&mut self, slot: usize) {
        let port = &mut self.ports[slot];
        let mut frames = (0, 0);
        port.io
            .frames(&mut |frame| frames = (frames.0 + 1, frames.1 + frame.len() as u64));
        port.counters.rx_packets.add(frames.0);
        port.counters.rx_bytes.add(frames.1);
        port.counters.no_pipeline.add(frames.0);
    }

    /// Does what the queues have to do by `now`.
    pub(super) fn serve_queues(&mut self, locked: &mut Locked<'_>, now: Nanos) {
        for slot in 0..self.ports.len() {
            if self.ports[slot]
                .queue
                .next_event()
                .is_some_and(|at| at <= now)
            {
                self.serve(locked, slot, now);
            }
        }
        self.enqueue_pending(locked, now);
    }

    /// Runs some of the recirculated packets through ingress.
    pub(super) fn recirculate(&mut self, locked: &mut Locked<'_>, now: Nanos) {
        let turn = self.recirculated.len().min(RECIRCULATED_PER_TURN);
        for _ in 0..turn {
            let Some((packet, pipeline)) = self.recirculated.pop_front() else {
                return;
            };
            let descriptors = &mut self.descriptors;
            let handle = &self.handle;
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
        let (bytes, priority) = (descriptor.len, descriptor.priority);
        let queued = Queued {
            descriptor,
            pipeline,
            depth: port.queue.depth_packets(),
        };
        match port.queue.enqueue(now, queued, bytes, priority) {
            Ok(()) => self.serve(locked, slot, now),
            Err(Queued {
                descriptor,
                pipeline,
                ..
            }) => {
                port.counters.queue_full.add(1);
                locked.on(&pipeline, |p| p.recycle(descriptor));
            }
        }
    }

    /// Takes what is due out of a port's queue and off its link.
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
                qid: descriptor.priority.min(PRIORITIES as u8 - 1),
            };
            let sent = self.egress(locked, descriptor, &pipeline, info, started.at);
            let port = &mut self.ports[slot];
            match sent {
                Sent::Frame => {
                    let spare = self.spare.pop().unwrap_or_default();
                    let frame = std::mem::replace(&mut self.output.frame, spare);
                    port.queue.transmit(started.slot, frame.len() as u32, frame);
                }
                Sent::Nothing => {}
                Sent::Dropped => port.counters.egress.add(1),
                Sent::AssertionFailed => port.counters.assertion.add(1),
            }
        }
        let port = &mut self.ports[slot];
        while let Some((_, frame)) = port.queue.arrive(now) {
            if port.attached {
                port.io.send(frame);
                port.has_unsent = true;
            } else {
                port.counters.port_down.add(1);
            }
        }
        port.counters.link_loss.set(port.queue.counts().lost);
    }

    /// Runs egress. If it makes a frame, it is in `self.output`.
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
            EgressOutcome::AssertionFailed => Sent::AssertionFailed,
            EgressOutcome::Recirculate(packet) => {
                if self.recirculated.len() >= RECIRCULATED_BACKLOG {
                    return Sent::Dropped;
                }
                self.switch_counters().recirculated.add(1);
                self.recirculated.push_back((packet, Arc::clone(pipeline)));
                Sent::Nothing
            }
        }
    }

    /// Egress to the CPU port, or to a port that does not exist: the program may still count or clone.
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
        let counters = &self.handle.counters;
        if Some(port) != self.handle.cpu_port {
            counters.no_such_port.add(1);
            return;
        }
        let packet = std::mem::take(&mut self.output.frame).into();
        let event = Event::PacketIn(Arc::clone(pipeline), packet);
        match self.events.try_send(event) {
            Ok(()) => counters.packet_in.add(1),
            Err(_) => counters.packet_in_dropped.add(1),
        }
    }

    /// Hands digests to the control plane. To be called with the pipeline unlocked.
    pub(super) fn send_digests(
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

    /// Sends what has been queued at interfaces. Gives the ports that failed.
    pub(super) fn flush(&mut self) -> Vec<(usize, PortError)> {
        let mut failed = Vec::new();
        for (slot, port) in self.ports.iter_mut().enumerate() {
            if !std::mem::take(&mut port.has_unsent) {
                continue;
            }
            let flushed = port.io.flush(&mut self.spare);
            if flushed.too_long > 0 && port.counters.too_long.get() == 0 {
                tracing::warn!(
                    "port {} ({}): dropped a frame longer than the interface's MTU; raise it: \
                     ip link set {} mtu N",
                    port.number,
                    port.name,
                    port.name
                );
            }
            port.counters.tx_packets.add(flushed.sent);
            port.counters.tx_bytes.add(flushed.sent_bytes);
            port.counters.too_long.add(flushed.too_long);
            port.counters.tx_busy.add(flushed.busy);
            port.counters.port_down.add(flushed.down);
            failed.extend(flushed.failure.map(|error| (slot, error)));
        }
        self.spare.truncate(SPARE_BUFFERS);
        failed
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    Frame,
    Nothing,
    Dropped,
    AssertionFailed,
}

fn count_ingress(counters: &PortCounters, outcome: IngressOutcome) {
    match outcome {
        IngressOutcome::Unicast | IngressOutcome::Multicast(1..) => {}
        IngressOutcome::Multicast(0) => counters.empty_group.add(1),
        IngressOutcome::Dropped => counters.ingress.add(1),
        IngressOutcome::TooLong => counters.rx_too_long.add(1),
        IngressOutcome::TooManyResubmits => counters.resubmit_limit.add(1),
        IngressOutcome::AssertionFailed => counters.assertion.add(1),
    }
}

fn saturate(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// A port's own seed (the finalizer of SplitMix64 spreads neighbouring numbers).
fn mix(seed: u64, port: u32) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(u64::from(port) + 1));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
