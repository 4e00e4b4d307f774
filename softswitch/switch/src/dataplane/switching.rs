//! The way of a packet: ingress, queue, egress, link.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::MutexGuard;
use softswitch_pipeline::{
    Descriptor, EgressOutcome, EgressOutput, IngressOutcome, Nanos, Pipeline, QueueInfo,
    Recirculated,
};
use tokio::sync::mpsc;

use super::alarm::Alarm;
use super::counters::{PortCounters, SwitchCounters};
use super::engine::PortView;
use super::outlet::Outlet;
use super::{Event, Handle, SharedPipeline};
use crate::link::LinkConfig;
use crate::port::{PortError, Receive};
use crate::queue::{EgressQueue, PRIORITIES};

/// Recirculated packets taken per turn, so that a program that never stops recirculating does not
/// stop the switch.
const RECIRCULATED_PER_TURN: usize = 64;

/// Recirculated packets that may wait; more are dropped.
const RECIRCULATED_BACKLOG: usize = 4096;

/// Frame buffers kept for use again.
const SPARE_BUFFERS: usize = 1024;

/// A port with its queue.
struct PortState {
    number: u32,
    name: String,
    queue: EgressQueue<Queued, Vec<u8>>,
    counters: Arc<PortCounters>,
    /// The thread that wakes up for its queue.
    owner: usize,
    up: bool,
    attached: bool,
    /// Frames that leave at the end of the turn.
    made: Vec<Vec<u8>>,
}

/// A packet in a queue, with the pipeline that it came in by and leaves by.
struct Queued {
    descriptor: Descriptor,
    pipeline: SharedPipeline,
    depth: u64,
}

/// Everything that a packet meets except the pipeline. Threads take turns.
pub struct Switching {
    ports: Vec<PortState>,
    slots: HashMap<u32, usize>,
    handle: Arc<Handle>,
    events: mpsc::Sender<Event>,
    /// One for each thread.
    alarms: Vec<Alarm>,
    pipeline: Option<SharedPipeline>,
    version: u64,
    descriptors: Vec<Descriptor>,
    pending: VecDeque<(Descriptor, SharedPipeline)>,
    recirculated: VecDeque<(Recirculated, SharedPipeline)>,
    output: EgressOutput,
    spare: Vec<Vec<u8>>,
    /// Ports that have made frames this turn.
    leaving: Vec<usize>,
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
        handle: Arc<Handle>,
        events: mpsc::Sender<Event>,
        alarms: Vec<Alarm>,
    ) -> Self {
        Self {
            ports: Vec::new(),
            slots: HashMap::new(),
            handle,
            events,
            alarms,
            pipeline: None,
            version: 0,
            descriptors: Vec::new(),
            pending: VecDeque::new(),
            recirculated: VecDeque::new(),
            output: EgressOutput::default(),
            spare: Vec::new(),
            leaving: Vec::new(),
        }
    }

    /// Adds a port in the next slot.
    pub(super) fn add_port(&mut self, port: &PortView, link: LinkConfig, seed: u64, owner: usize) {
        self.slots.insert(port.number, self.ports.len());
        self.ports.push(PortState {
            number: port.number,
            name: port.name.clone(),
            queue: EgressQueue::new(link, mix(seed, port.number)),
            counters: Arc::clone(&port.counters),
            owner,
            up: true,
            attached: true,
            made: Vec::new(),
        });
    }

    fn switch_counters(&self) -> &SwitchCounters {
        &self.handle.counters
    }

    /// Begins a thread's turn: it is awake, and gives back the buffers of what it has sent.
    pub(super) fn begin(&mut self, thread: usize, expired: bool, spare: &mut Vec<Vec<u8>>) {
        self.alarms[thread].awake(expired);
        self.spare.append(spare);
        self.spare.truncate(SPARE_BUFFERS);
    }

    /// Ends a thread's turn: what leaves goes to the outlets, and sleepers hear of what they are to do.
    pub(super) fn end(
        &mut self,
        outlets: &[Outlet],
        leaving: &mut Vec<usize>,
    ) -> anyhow::Result<()> {
        for &slot in &self.leaving {
            outlets[slot].add(&mut self.ports[slot].made);
        }
        leaving.append(&mut self.leaving);
        for thread in 0..self.alarms.len() {
            let next = self.next_event(thread);
            self.alarms[thread].not_after(next)?;
        }
        Ok(())
    }

    /// A thread is about to sleep.
    pub(super) fn sleep(&mut self, thread: usize) -> anyhow::Result<()> {
        let next = self.next_event(thread);
        self.alarms[thread].sleep(next)
    }

    /// When a queue for which the thread wakes up next has something to do.
    fn next_event(&self, thread: usize) -> Option<Nanos> {
        let ports = self.ports.iter().filter(|port| port.owner == thread);
        ports.filter_map(|port| port.queue.next_event()).min()
    }

    /// Whether packets wait that no event will announce.
    pub(super) fn has_work(&self) -> bool {
        !self.recirculated.is_empty()
    }

    /// The pipeline that packets run through from now on.
    pub(super) fn pipeline(&mut self) -> Option<SharedPipeline> {
        let version = self.handle.version.load(Ordering::Acquire);
        if version != self.version {
            self.version = version;
            self.pipeline = self.handle.pipeline.lock().clone();
            if let Some(pipeline) = &self.pipeline {
                let mut pipeline = pipeline.lock();
                for port in self.ports.iter().filter(|port| !port.up) {
                    pipeline.set_port_up(port.number, false);
                }
            }
        }
        self.pipeline.clone()
    }

    /// Notes that a port does not work. To be called with the pipeline unlocked.
    pub(super) fn failed(&mut self, slot: usize, error: PortError) {
        let port = &mut self.ports[slot];
        let (number, name) = (port.number, &port.name);
        if std::mem::take(&mut port.up) {
            tracing::info!("port {number} ({name}) is down");
            if let Some(pipeline) = &self.pipeline {
                pipeline.lock().set_port_up(number, false);
            }
        }
        // Down may be up again; all else stays as it is.
        if port.attached && !matches!(error, PortError::Down) {
            tracing::error!("port {number} ({name}): {error}; the switch goes on without it");
            port.attached = false;
        }
    }

    /// Runs the frames that a port has received through ingress.
    pub(super) fn receive(
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
        let counters = &port.counters;
        let mut frames = (0, 0);
        let descriptors = &mut self.descriptors;
        receiver.frames(&mut |frame| {
            frames = (frames.0 + 1, frames.1 + frame.len() as u64);
            let outcome = locked.guard.ingress(number, frame, now, descriptors);
            count_ingress(counters, outcome);
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
    pub(super) fn discard(&mut self, slot: usize, receiver: &mut dyn Receive) {
        let counters = &self.ports[slot].counters;
        let mut frames = (0, 0);
        receiver.frames(&mut |frame| frames = (frames.0 + 1, frames.1 + frame.len() as u64));
        counters.rx_packets.add(frames.0);
        counters.rx_bytes.add(frames.1);
        counters.no_pipeline.add(frames.0);
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
            locked.on(&pipeline, |p| {
                p.ingress_recirculated(packet, now, descriptors)
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

    /// Runs egress. If it makes a frame, it is in `self.output`.
    fn egress(
        &mut self,
        locked: &mut Locked<'_>,
        descriptor: Descriptor,
        pipeline: &SharedPipeline,
        info: QueueInfo,
        at: Nanos,
    ) -> Sent {
        let output = &mut self.output;
        let outcome = locked.on(pipeline, |p| p.egress(descriptor, info, at, output));
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

    /// Hands digests to the control plane.
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
