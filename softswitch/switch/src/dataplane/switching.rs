// SPDX-License-Identifier: Apache-2.0
//! A thread's work on packets: its buffers, and the packets between two steps.

mod packets;

use std::collections::VecDeque;
use std::sync::Arc;

use softswitch_pipeline::{Descriptor, EgressOutput, Nanos};

use super::SharedPipeline;
use super::current::Entered;
use super::port::{NEVER, SlotsByNumber};
use super::shared::{RETRY_AFTER, Returning, Shared};
use super::slot_set::SlotSet;

/// Maximum number of frame buffers kept for reuse.
const SPARE_BUFFERS: usize = 1024;

/// A packet before its egress queue.
enum Pending {
    Packet(Descriptor),
    /// The next clone of the port in this slot.
    CloneOf(usize),
}

/// Work outside the pipeline in which the thread is.
enum Elsewhere {
    /// The next packet of the port in this slot.
    Port(usize),
    Clone(Descriptor, SharedPipeline),
    Recirculated(Returning),
}

/// The packets of a thread.
#[derive(Default)]
pub(super) struct Switching {
    thread: usize,
    slots: SlotsByNumber,
    descriptors: Vec<Descriptor>,
    pending: VecDeque<Pending>,
    elsewhere: VecDeque<Elsewhere>,
    /// A client's number of the packet that is being processed, or 0.
    stream_id: u64,
    output: EgressOutput,
    spare: Vec<Vec<u8>>,
    /// Ports whose queues this turn has changed.
    touched: SlotSet,
    /// Ports with frames to send.
    leaving: SlotSet,
    /// Other threads with packets that recirculate.
    returning: SlotSet,
}

impl Switching {
    /// Creates the state of a thread.
    pub(super) fn new(thread: usize) -> Self {
        Self {
            thread,
            ..Self::default()
        }
    }

    /// Takes over changes of the ports and of the program.
    pub(super) fn refresh(&mut self, shared: &Shared) {
        self.slots = shared.ports.by_number();
        for (_, port) in shared.ports.iter() {
            if port.owner == self.thread {
                port.queue().forget_pipelines();
            }
        }
    }

    /// Runs the packets through the pipelines that have been replaced while they were in the switch.
    pub(super) fn finish_elsewhere(&mut self, shared: &Shared) {
        while let Some(work) = self.elsewhere.pop_front() {
            let pipeline = match &work {
                Elsewhere::Port(slot) => shared.ports.get(*slot).queue().awaited_pipeline(),
                Elsewhere::Clone(_, pipeline) => Some(Arc::clone(pipeline)),
                Elsewhere::Recirculated(it) => Some(Arc::clone(&it.pipeline)),
            };
            // Another thread may have been here.
            let Some(pipeline) = pipeline else { continue };
            let mut entered = Entered::alone(shared, &pipeline);
            let now = shared.handle.now();
            match work {
                Elsewhere::Port(slot) => self.serve(&mut entered, slot, now),
                Elsewhere::Clone(clone, _) => self.pass(&mut entered, clone, now),
                Elsewhere::Recirculated(it) => self.ingress_again(&mut entered, it, now),
            }
            self.enqueue_pending(&mut entered, now);
            entered.leave();
        }
    }

    /// Ends a thread's turn: moves frames to the outlets, and lets other threads know what they have to do.
    pub(super) fn end(&mut self, shared: &Shared) -> anyhow::Result<()> {
        while let Some(slot) = self.touched.pop() {
            let port = shared.ports.get(slot);
            let mut queue = port.queue();
            port.counters.link_loss.set(queue.lost());
            if !queue.made.is_empty() {
                // With the queue locked, which fixes the order.
                port.outlet.add(&mut queue.made);
                self.leaving.insert(slot);
            }
            drop(queue);
            if port.owner != self.thread {
                shared.wake_by(port.owner, port.next_event())?;
            }
        }
        while let Some(thread) = self.returning.pop() {
            super::wake(&shared.handle.wakes[thread]);
        }
        Ok(())
    }

    /// Returns a port with frames to send, and the buffers of sent frames.
    pub(super) fn next_leaving(&mut self) -> Option<(usize, &mut Vec<Vec<u8>>)> {
        self.spare.truncate(SPARE_BUFFERS);
        let slot = self.leaving.pop()?;
        Some((slot, &mut self.spare))
    }

    /// Returns true if packets wait that will not cause an event.
    pub(super) fn has_work(&self, shared: &Shared) -> bool {
        !shared.recirculated[self.thread].lock().is_empty()
    }

    /// Serves the events of the thread's queues up to `now`.
    pub(super) fn serve_queues(&mut self, entered: &mut Entered<'_>, now: Nanos) {
        let shared = entered.shared;
        for (slot, port) in shared.ports.iter() {
            let at = port.next_event();
            if port.owner != self.thread || at == NEVER || at > now {
                continue;
            }
            let mut queue = port.queue();
            if queue.is_retry_due(now) {
                // The result comes after this turn.
                queue.hold(now + RETRY_AFTER);
                self.leaving.insert(slot);
            }
            drop(queue);
            self.serve(entered, slot, now);
        }
        self.enqueue_pending(entered, now);
    }
}
