//! Pipeline and queues as one machine, in which threads take turns.

mod packets;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::MutexGuard;
use softswitch_pipeline::{Descriptor, EgressOutput, Nanos, Pipeline, Recirculated};
use softswitch_queue::{EgressQueue, LinkConfig};
use tokio::sync::mpsc;

use super::alarm::Alarm;
use super::counters::{PortCounters, SwitchCounters};
use super::engine::PortView;
use super::outlet::Outlet;
use super::{Event, Handle, SharedPipeline};
use crate::port::PortError;

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
                pipeline.set_tracing(self.handle.trace.is_some());
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
}

/// A port's own seed (the finalizer of SplitMix64 spreads neighbouring numbers).
fn mix(seed: u64, port: u32) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(u64::from(port) + 1));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
