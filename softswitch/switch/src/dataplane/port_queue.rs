// SPDX-License-Identifier: Apache-2.0
//! The queue and the link of a port.

use std::collections::VecDeque;
use std::sync::Arc;

use softswitch_pipeline::{Descriptor, Nanos};
use softswitch_queue::{EgressQueue, LinkConfig, Started};

use super::SharedPipeline;
use super::queue_limit::QueueLimit;

/// A packet in a queue. The queue knows the pipeline through which it entered and will leave.
pub(super) struct Queued {
    pub(super) descriptor: Descriptor,
    /// The number of packets that waited when it arrived.
    pub(super) depth: u64,
    pipeline: PipelineId,
}

/// The next packet of a queue.
pub(super) enum Next {
    Packet(Started<Queued>),
    /// It must leave through another pipeline, before any later packet.
    OfOtherPipeline,
    /// No packet is due.
    None,
}

/// The queue and the link of a port.
pub(super) struct PortQueue {
    queue: EgressQueue<Queued, Vec<u8>>,
    pipelines: Pipelines,
    /// The packet that has left the queue, but not the switch: its pipeline is not that of the thread that took it.
    delayed: Option<Started<Queued>>,
    /// Time of the next attempt to send the frames that the interface did not accept.
    retry_at: Option<Nanos>,
    /// The latest time that a thread has brought.
    now: Nanos,
    /// Frames for the outlet, in order.
    pub(super) made: Vec<Vec<u8>>,
    /// Clones of packets that left through this port, in order, with their pipelines.
    pub(super) clones: VecDeque<(Descriptor, SharedPipeline)>,
}

impl PortQueue {
    pub(super) fn new(link: LinkConfig, seed: u64) -> Self {
        Self {
            queue: EgressQueue::new(link, seed),
            pipelines: Pipelines::default(),
            delayed: None,
            retry_at: None,
            now: 0,
            made: Vec::new(),
            clones: VecDeque::new(),
        }
    }

    /// Returns the time of the queue: that of the thread, or of a thread that was here before and has read its clock later.
    pub(super) fn advance(&mut self, now: Nanos) -> Nanos {
        self.now = self.now.max(now);
        self.now
    }

    /// Enqueues a packet.
    ///
    /// # Errors
    /// If the queue is full, returns the packet.
    pub(super) fn enqueue(
        &mut self,
        now: Nanos,
        descriptor: Descriptor,
        pipeline: &SharedPipeline,
    ) -> Result<(), Descriptor> {
        let (bytes, priority) = (descriptor.len, descriptor.priority.into());
        let queued = Queued {
            descriptor,
            depth: self.queue.depth_packets(),
            pipeline: id(pipeline),
        };
        match self.queue.enqueue(now, queued, bytes, priority) {
            Ok(()) => {
                self.pipelines.add(pipeline);
                Ok(())
            }
            Err(Queued { descriptor, .. }) => Err(descriptor),
        }
    }

    /// Takes the next packet if the link is free by `now` and the packet leaves through this pipeline.
    pub(super) fn start(&mut self, now: Nanos, pipeline: &SharedPipeline) -> Next {
        let next = self.delayed.take().or_else(|| self.queue.start(now));
        let Some(next) = next else {
            return Next::None;
        };
        if next.packet.pipeline != id(pipeline) {
            self.delayed = Some(next);
            return Next::OfOtherPipeline;
        }
        self.pipelines.remove(next.packet.pipeline);
        Next::Packet(next)
    }

    /// Returns the pipeline of the packet that waits for it in front of all others.
    pub(super) fn awaited_pipeline(&self) -> Option<SharedPipeline> {
        let delayed = self.delayed.as_ref()?;
        self.pipelines.get(delayed.packet.pipeline)
    }

    /// Sends the frame of a started packet.
    pub(super) fn transmit(&mut self, slot: softswitch_queue::Slot, frame: Vec<u8>) {
        self.queue.transmit(slot, frame.len() as u32, frame);
    }

    /// Takes the next frame that has crossed the link by `now`.
    pub(super) fn arrive(&mut self, now: Nanos) -> Option<Vec<u8>> {
        self.queue.arrive(now).map(|(_, frame)| frame)
    }

    /// Returns the number of waiting packets of a priority.
    pub(super) fn depth_of(&self, priority: u8) -> u64 {
        self.queue.depth_of(priority.into())
    }

    /// Returns the number of frames that the link has lost.
    pub(super) fn lost(&self) -> u64 {
        self.queue.counts().lost
    }

    /// Limits the queue of a priority.
    pub(super) fn limit(&mut self, priority: usize, limit: QueueLimit) {
        match limit {
            QueueLimit::Depth(packets) => self.queue.limit_depth(priority, packets),
            QueueLimit::Rate(rate) => self.queue.limit_rate(priority, rate),
        }
    }

    /// Keeps packets in the queue until the next attempt to send.
    pub(super) fn hold(&mut self, until: Nanos) {
        self.queue.hold(until);
        self.retry_at = Some(until);
    }

    /// Lets packets leave the queue again.
    pub(super) fn release(&mut self, now: Nanos) {
        self.queue.hold(now);
        self.retry_at = None;
    }

    /// Returns true if the next attempt to send is due.
    pub(super) fn is_retry_due(&self, now: Nanos) -> bool {
        self.retry_at.is_some_and(|at| at <= now)
    }

    /// Returns the time of the next event of the queue, or of the next attempt to send.
    pub(super) fn next_event(&self) -> Option<Nanos> {
        if self.delayed.is_some() {
            return Some(0);
        }
        let queue = self.queue.next_event();
        queue.into_iter().chain(self.retry_at).min()
    }

    /// Forgets the pipelines without packets in the queue, so that they can end.
    pub(super) fn forget_pipelines(&mut self) {
        self.pipelines.forget_unused();
    }
}

/// The identity of a pipeline that exists.
type PipelineId = usize;

fn id(pipeline: &SharedPipeline) -> PipelineId {
    Arc::as_ptr(pipeline) as PipelineId
}

/// The pipelines of the packets in a queue, each with the number of its packets. A queue has one, except after a change of
/// the program. References to it in each packet would be a counter that all threads change for all packets.
#[derive(Default)]
struct Pipelines(Vec<(SharedPipeline, u64)>);

impl Pipelines {
    fn add(&mut self, pipeline: &SharedPipeline) {
        if let Some((_, packets)) = self.find(id(pipeline)) {
            *packets += 1;
        } else {
            self.forget_unused();
            self.0.push((Arc::clone(pipeline), 1));
        }
    }

    fn remove(&mut self, pipeline: PipelineId) {
        let Some((_, packets)) = self.find(pipeline) else {
            return;
        };
        *packets -= 1;
        if *packets == 0 && self.0.len() > 1 {
            self.forget_unused();
        }
    }

    fn get(&self, pipeline: PipelineId) -> Option<SharedPipeline> {
        let found = self.0.iter().find(|(it, _)| id(it) == pipeline);
        found.map(|(pipeline, _)| Arc::clone(pipeline))
    }

    fn find(&mut self, pipeline: PipelineId) -> Option<&mut (SharedPipeline, u64)> {
        self.0.iter_mut().find(|(it, _)| id(it) == pipeline)
    }

    fn forget_unused(&mut self) {
        self.0.retain(|(_, packets)| *packets > 0);
    }
}
