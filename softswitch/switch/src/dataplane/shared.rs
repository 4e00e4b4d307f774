// SPDX-License-Identifier: Apache-2.0
//! The state that the packet threads share.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use softswitch_pipeline::{Digest, Nanos, Pipeline, Recirculated};
use tokio::sync::mpsc;

use super::alarm::Alarm;
use super::entrance::Entrance;
use super::packet_stream::PacketStream;
use super::port::{NEVER, Port, Ports};
use super::{Event, Handle, SharedPipeline};
use crate::port::PortError;

/// Time after which the switch offers frames again to an interface that did not accept more.
pub(super) const RETRY_AFTER: Nanos = 1_000_000;

/// Maximum number of a thread's waiting recirculated packets; further ones are dropped.
const RECIRCULATED_BACKLOG: usize = 4096;

/// The state that the threads share.
pub(super) struct Shared {
    pub(super) handle: Arc<Handle>,
    pub(super) ports: Ports,
    pub(super) events: mpsc::Sender<Event>,
    /// The timer of each thread. A thread that has changed a queue looks here afterwards, and a thread that is about to
    /// sleep looks at its queues while it has its timer.
    pub(super) alarms: Vec<Mutex<Alarm>>,
    /// The packets that each thread will run through ingress again.
    pub(super) recirculated: Vec<Mutex<VecDeque<Returning>>>,
    /// Time of the next packet of a packet generator.
    pub(super) generates_at: AtomicU64,
    /// Held while ports and a pipeline learn whether a port is up, so that they agree.
    port_states: Mutex<()>,
    /// Changes that each thread has not yet made.
    pub(super) changes: Vec<Mutex<Vec<Change>>>,
    /// Seed of the links' losses.
    pub(super) seed: u64,
}

/// A recirculated packet.
pub(super) struct Returning {
    pub(super) packet: Recirculated,
    pub(super) pipeline: SharedPipeline,
    /// A client's number of the packet, or 0.
    pub(super) stream_id: u64,
}

/// A change of the ports on which a thread receives.
pub(super) enum Change {
    Attach(Entrance),
    /// The port in this slot.
    Detach(usize),
}

impl Shared {
    pub(super) fn new(
        handle: Arc<Handle>,
        ports: Ports,
        events: mpsc::Sender<Event>,
        alarms: Vec<Alarm>,
        seed: u64,
    ) -> Self {
        let threads = alarms.len();
        Self {
            handle,
            ports,
            events,
            alarms: alarms.into_iter().map(Mutex::new).collect(),
            recirculated: (0..threads).map(|_| Mutex::default()).collect(),
            generates_at: AtomicU64::new(NEVER),
            port_states: Mutex::default(),
            changes: (0..threads).map(|_| Mutex::default()).collect(),
            seed,
        }
    }

    /// Returns the thread that serves the port in a slot.
    pub(super) fn owner(&self, slot: usize) -> usize {
        slot % self.changes.len()
    }

    /// Adds a port, made for the thread that will serve it, and returns its slot.
    ///
    /// # Errors
    /// If the port's number is in use, or too many ports were added.
    pub(super) fn add_port(
        &self,
        number: u32,
        make: impl FnOnce(usize) -> Port,
    ) -> anyhow::Result<usize> {
        self.ports.add(number, |slot| make(self.owner(slot)))
    }

    /// Returns the time of the next event of a thread's queues. The first thread also serves the packet generators.
    fn next_event(&self, thread: usize) -> Option<Nanos> {
        let ports = self.ports.iter().map(|(_, port)| port);
        let own = ports.filter(|port| port.owner == thread);
        let generator = (thread == 0).then(|| self.generates_at.load(Ordering::Acquire));
        let next = own.map(Port::next_event).chain(generator).min();
        next.filter(|at| *at != NEVER)
    }

    /// Notes that a thread is about to sleep.
    pub(super) fn sleep(&self, thread: usize) -> anyhow::Result<()> {
        let mut alarm = self.alarms[thread].lock();
        alarm.sleep(self.next_event(thread))
    }

    /// Wakes a thread at `at` at the latest, if it sleeps. The thread's queues, or the generators, have changed before.
    pub(super) fn wake_by(&self, thread: usize, at: Nanos) -> anyhow::Result<()> {
        if at == NEVER {
            return Ok(());
        }
        self.alarms[thread].lock().not_after(Some(at))
    }

    /// Lets a packet enter ingress again in a thread. Returns false, and drops the packet, if too many wait.
    pub(super) fn recirculate(&self, thread: usize, packet: Returning) -> bool {
        let mut waiting = self.recirculated[thread].lock();
        if waiting.len() >= RECIRCULATED_BACKLOG {
            return false;
        }
        self.handle.counters.recirculated.add(1);
        waiting.push_back(packet);
        true
    }

    /// Notes the time of the next packet of a packet generator, which the first thread will make.
    pub(super) fn set_generates_at(&self, thread: usize, at: Nanos) {
        let planned = self.generates_at.load(Ordering::Acquire);
        if thread == 0 && at != planned {
            self.generates_at.store(at, Ordering::Release);
        } else if at < planned {
            self.handle.wake();
        }
    }

    /// Passes digests to the control plane.
    pub(super) fn send_digests(&self, pipeline: &SharedPipeline, digests: Vec<Digest>) {
        if digests.is_empty() {
            return;
        }
        let n = digests.len() as u64;
        let event = Event::Digests(Arc::clone(pipeline), digests);
        if self.events.try_send(event).is_err() {
            self.handle.counters.digest_dropped.add(n);
        }
    }

    /// Prepares a pipeline for packets: the states of ports, and whether packets are traced.
    pub(super) fn prepare(&self, pipeline: &SharedPipeline) {
        let _agree = self.port_states.lock();
        let mut pipeline = pipeline.lock();
        let is_traced = self.handle.observers.need_traces(pipeline.program());
        if pipeline.is_tracing() != is_traced {
            pipeline.set_tracing(is_traced);
        }
        let by_number = self.ports.by_number();
        for (_, port) in self.ports.iter().filter(|(_, port)| !port.is_up()) {
            let current = by_number.get(&port.number);
            if current.is_none_or(|&slot| !self.ports.get(slot).is_up()) {
                pipeline.set_port_up(port.number, false);
            }
        }
        let stream = self.handle.packet_stream.as_ref();
        for port in stream.map(PacketStream::ports_down).unwrap_or_default() {
            pipeline.set_port_up(port, false);
        }
    }

    /// Notes that a port works. The thread must be outside the pipelines.
    pub(super) fn port_works(&self, port: &Port) {
        let _agree = self.port_states.lock();
        if !port.is_up.swap(true, Ordering::AcqRel) {
            let (number, name) = (port.number, &port.name);
            tracing::info!("port {number} ({name}) is up");
            self.tell_pipeline(|pipeline| pipeline.set_port_up(number, true));
        }
    }

    /// Records a port's failure. The thread must be outside the pipelines.
    pub(super) fn failed(&self, port: &Port, error: PortError) {
        port.queue().release(0);
        let (number, name) = (port.number, &port.name);
        let agree = self.port_states.lock();
        if port.is_up.swap(false, Ordering::AcqRel) {
            tracing::info!("port {number} ({name}) is down");
        }
        // An interface that came up without a packet can fail again.
        self.tell_pipeline(|pipeline| pipeline.set_port_up(number, false));
        drop(agree);
        self.handle.wake();
        // An interface that is down can come up again; other failures are final.
        if !matches!(error, PortError::Down) && port.is_attached.swap(false, Ordering::AcqRel) {
            tracing::error!("port {number} ({name}): {error}: the switch continues without it");
        }
    }

    /// Detaches a port; returns its slot. Packets in its queue are dropped when they are due. The thread must be outside the
    /// pipelines.
    pub(super) fn detach(&self, number: u32) -> Option<usize> {
        let slot = self.ports.remove(number)?;
        let port = self.ports.get(slot);
        port.is_attached.store(false, Ordering::Release);
        port.queue().release(0);
        let _agree = self.port_states.lock();
        port.is_up.store(false, Ordering::Release);
        self.tell_pipeline(|pipeline| pipeline.set_port_up(number, false));
        Some(slot)
    }

    /// Changes the pipeline for new packets, if there is one.
    fn tell_pipeline(&self, change: impl FnOnce(&mut Pipeline)) {
        if let Some(pipeline) = self.handle.pipeline() {
            change(&mut pipeline.lock());
        }
    }

    /// Keeps the packets of a port in its queue for a while if the interface does not accept more frames; otherwise, lets the
    /// queue go on.
    pub(super) fn hold_or_release(&self, port: &Port) -> anyhow::Result<()> {
        let mut queue = port.queue();
        let now = self.handle.now();
        // Another thread may have sent the frames in the meantime. With the queue locked, the last one to look is right.
        match port.outlet.holds() {
            true => queue.hold(now + RETRY_AFTER),
            false => queue.release(now),
        }
        drop(queue);
        self.wake_by(port.owner, port.next_event())
    }
}
