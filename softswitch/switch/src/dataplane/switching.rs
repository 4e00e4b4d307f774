// SPDX-License-Identifier: Apache-2.0
//! The pipeline and the queues as one state machine, which one thread at a time runs.

mod packets;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use parking_lot::MutexGuard;
use softswitch_pipeline::{Descriptor, EgressOutput, Nanos, Pipeline, Recirculated};
use softswitch_queue::{EgressQueue, LinkConfig};
use tokio::sync::mpsc;

use super::alarm::Alarm;
use super::counters::{PortCounters, SwitchCounters};
use super::outlet::Outlet;
use super::packet_stream::PacketStream;
use super::port_view::{PortStatus, PortView};
use super::queue_limit::QueueLimit;
use super::{Event, Handle, SharedPipeline};
use crate::port::PortError;

/// Maximum number of frame buffers kept for reuse.
const SPARE_BUFFERS: usize = 1024;

/// Time after which the switch offers frames again to an interface that did not accept more.
const RETRY_AFTER: Nanos = 1_000_000;

/// A port with its queue.
struct PortState {
    number: u32,
    name: String,
    queue: EgressQueue<Queued, Vec<u8>>,
    counters: Arc<PortCounters>,
    /// The thread that serves its queue.
    owner: usize,
    up: bool,
    attached: bool,
    /// Time of the next attempt to send the frames that the interface did not accept.
    retry_at: Option<Nanos>,
    /// Frames to send at the end of the turn.
    made: Vec<Vec<u8>>,
}

impl PortState {
    /// Returns the time of the next event of the queue, or of the next attempt to send.
    fn next_event(&self) -> Option<Nanos> {
        self.queue
            .next_event()
            .into_iter()
            .chain(self.retry_at)
            .min()
    }

    /// Keeps packets in the queue until the next attempt to send.
    fn hold(&mut self, until: Nanos) {
        self.queue.hold(until);
        self.retry_at = Some(until);
    }

    /// Lets packets leave the queue again.
    fn release(&mut self, now: Nanos) {
        self.queue.hold(now);
        self.retry_at = None;
    }
}

/// A packet in a queue, with the pipeline through which it entered and will leave.
struct Queued {
    descriptor: Descriptor,
    pipeline: SharedPipeline,
    depth: u64,
}

/// The state of the data plane except the pipeline. Threads take turns.
pub struct Switching {
    ports: Vec<PortState>,
    slots: HashMap<u32, usize>,
    handle: Arc<Handle>,
    events: mpsc::Sender<Event>,
    /// One per thread.
    alarms: Vec<Alarm>,
    pipeline: Option<SharedPipeline>,
    version: u64,
    descriptors: Vec<Descriptor>,
    pending: VecDeque<(Descriptor, SharedPipeline)>,
    recirculated: VecDeque<(Recirculated, SharedPipeline, u64)>,
    /// Time of the next packet of a packet generator.
    generates_at: Option<Nanos>,
    /// A client's number of the packet that is being processed, or 0.
    stream_id: u64,
    output: EgressOutput,
    spare: Vec<Vec<u8>>,
    /// Ports with new frames in this turn.
    leaving: Vec<usize>,
}

/// A locked pipeline.
pub struct Locked<'a> {
    pub(super) shared: &'a SharedPipeline,
    pub(super) guard: MutexGuard<'a, Pipeline>,
}

impl Locked<'_> {
    /// Runs a function on a pipeline: this one, or one that has been replaced in the meantime.
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
            generates_at: None,
            stream_id: 0,
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
            retry_at: None,
            made: Vec::new(),
        });
    }

    /// Returns the number of slots, of attached and detached ports.
    pub(super) fn slots(&self) -> usize {
        self.ports.len()
    }

    /// Returns the slot of an attached port.
    pub(super) fn slot(&self, number: u32) -> Option<usize> {
        self.slots.get(&number).copied()
    }

    /// Returns the ports that were not detached, by number, and whether each still works: its failure was not final.
    pub(super) fn attached_ports(&self) -> Vec<(PortStatus, bool)> {
        let ports = self.slots.values().map(|&slot| &self.ports[slot]);
        let status = |port: &PortState| PortStatus {
            number: port.number,
            name: port.name.clone(),
            up: port.up && port.attached,
        };
        let mut ports: Vec<_> = ports.map(|port| (status(port), port.attached)).collect();
        ports.sort_by_key(|(port, _)| port.number);
        ports
    }

    /// Detaches a port; returns its slot and the thread that owns it. Packets in its queue are dropped when they are due. The
    /// pipeline must be unlocked.
    pub(super) fn detach(&mut self, number: u32) -> Option<(usize, usize)> {
        let slot = self.slots.remove(&number)?;
        let port = &mut self.ports[slot];
        (port.attached, port.up) = (false, false);
        port.release(0);
        let owner = port.owner;
        if let Some(pipeline) = &self.pipeline {
            pipeline.lock().set_port_up(number, false);
        }
        Some((slot, owner))
    }

    /// Limits the queues of priorities, of one port or of all. Returns false if the port does not exist.
    pub(super) fn limit(
        &mut self,
        port: Option<u32>,
        priorities: impl Iterator<Item = usize> + Clone,
        limit: QueueLimit,
    ) -> bool {
        let slots = match port.map(|number| self.slot(number)) {
            None => 0..self.ports.len(),
            Some(Some(slot)) => slot..slot + 1,
            Some(None) => return false,
        };
        for port in &mut self.ports[slots] {
            for priority in priorities.clone() {
                match limit {
                    QueueLimit::Depth(packets) => port.queue.limit_depth(priority, packets),
                    QueueLimit::Rate(rate) => port.queue.limit_rate(priority, rate),
                }
            }
        }
        true
    }

    fn switch_counters(&self) -> &SwitchCounters {
        &self.handle.counters
    }

    /// Begins a thread's turn: the thread is awake, and returns the buffers of sent frames.
    pub(super) fn begin(&mut self, thread: usize, expired: bool, spare: &mut Vec<Vec<u8>>) {
        self.alarms[thread].awake(expired);
        self.spare.append(spare);
        self.spare.truncate(SPARE_BUFFERS);
    }

    /// Ends a thread's turn: moves frames to the outlets, and updates the timers of sleeping threads.
    pub(super) fn end(
        &mut self,
        outlets: &[OnceLock<Outlet>],
        leaving: &mut Vec<usize>,
    ) -> anyhow::Result<()> {
        for &slot in &self.leaving {
            if let Some(outlet) = outlets[slot].get() {
                outlet.add(&mut self.ports[slot].made);
            }
        }
        leaving.append(&mut self.leaving);
        for thread in 0..self.alarms.len() {
            let next = self.next_event(thread);
            self.alarms[thread].not_after(next)?;
        }
        Ok(())
    }

    /// Notes that a thread is about to sleep.
    pub(super) fn sleep(&mut self, thread: usize) -> anyhow::Result<()> {
        let next = self.next_event(thread);
        self.alarms[thread].sleep(next)
    }

    /// Returns the time of the next event of the thread's queues. The first thread also serves the packet generators.
    fn next_event(&self, thread: usize) -> Option<Nanos> {
        let ports = self.ports.iter().filter(|port| port.owner == thread);
        let generated = self.generates_at.filter(|_| thread == 0);
        ports
            .filter_map(PortState::next_event)
            .chain(generated)
            .min()
    }

    /// Returns true if packets wait that will not cause an event.
    pub(super) fn has_work(&self) -> bool {
        !self.recirculated.is_empty()
    }

    /// Sets the pipeline for new packets.
    pub(super) fn pipeline(&mut self) -> Option<SharedPipeline> {
        let version = self.handle.version.load(Ordering::Acquire);
        if version != self.version {
            self.version = version;
            self.pipeline = self.handle.pipeline.lock().clone();
            if let Some(pipeline) = &self.pipeline {
                let mut pipeline = pipeline.lock();
                let is_traced = self.handle.observers.need_traces(pipeline.program());
                if pipeline.is_tracing() != is_traced {
                    pipeline.set_tracing(is_traced);
                }
                let down = self.ports.iter().filter(|port| !port.up);
                for port in down.filter(|port| {
                    self.slots
                        .get(&port.number)
                        .is_none_or(|&s| !self.ports[s].up)
                }) {
                    pipeline.set_port_up(port.number, false);
                }
                let stream = self.handle.packet_stream.as_ref();
                for port in stream.map(PacketStream::ports_down).unwrap_or_default() {
                    pipeline.set_port_up(port, false);
                }
            }
        }
        self.pipeline.clone()
    }

    /// Keeps the packets of a port in its queue for a while, because the interface does not accept more frames.
    pub(super) fn held(&mut self, slot: usize, now: Nanos) -> anyhow::Result<()> {
        self.ports[slot].hold(now + RETRY_AFTER);
        self.wake_owner(slot)
    }

    /// Lets a port's queue go on, because the interface accepts frames again.
    pub(super) fn released(&mut self, slot: usize, now: Nanos) -> anyhow::Result<()> {
        self.ports[slot].release(now);
        self.wake_owner(slot)
    }

    /// Updates the timer of the thread that serves a port's queue.
    fn wake_owner(&mut self, slot: usize) -> anyhow::Result<()> {
        let owner = self.ports[slot].owner;
        let next = self.next_event(owner);
        self.alarms[owner].not_after(next)
    }

    /// Records a port's failure. The pipeline must be unlocked.
    pub(super) fn failed(&mut self, slot: usize, error: PortError) {
        let port = &mut self.ports[slot];
        port.release(0);
        let (number, name) = (port.number, &port.name);
        if std::mem::take(&mut port.up) {
            tracing::info!("port {number} ({name}) is down");
        }
        // An interface that came up without a packet can fail again.
        if let Some(pipeline) = &self.pipeline {
            pipeline.lock().set_port_up(number, false);
            self.handle.wake();
        }
        // An interface that is down can come up again; other failures are final.
        if port.attached && !matches!(error, PortError::Down) {
            tracing::error!("port {number} ({name}): {error}: the switch continues without it");
            port.attached = false;
        }
    }
}

/// Returns a port's seed. The finalizer of SplitMix64 makes the seeds of adjacent ports independent.
fn mix(seed: u64, port: u32) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(u64::from(port) + 1));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
