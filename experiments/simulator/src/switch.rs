// SPDX-License-Identifier: Apache-2.0
//! A switch: a pipeline between the channels of its ports, in simulated time. It works like `softswitch` itself
//! (`softswitch/switch/src/dataplane/switching/packets.rs`).

use std::collections::VecDeque;

use serde::Serialize;
use softswitch_pipeline::{
    Descriptor, EgressOutcome, EgressOutput, IngressOutcome, Pipeline, QueueInfo, Recirculated,
};
use softswitch_queue::PRIORITIES;

use crate::network::{Frame, Network, Outgoing};

/// Maximum number of recirculations at one instant, so that a program that recirculates forever does not block the simulation.
const MAX_RECIRCULATIONS: usize = 4096;

/// Packet counters of a switch, with drops by reason.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct SwitchCounts {
    /// Frames received.
    pub received: u64,
    /// Additional packets: copies for multicast groups, and clones.
    pub copied: u64,
    /// Additional passes of recirculated packets.
    pub recirculated: u64,
    /// Packets sent to the controller.
    pub to_controller: u64,
    /// Packets dropped.
    pub dropped: SwitchDrops,
}

impl SwitchCounts {
    /// Returns the number of passes through ingress.
    pub fn passes(&self) -> u64 {
        self.received + self.recirculated
    }
}

/// Why packets were dropped.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct SwitchDrops {
    /// Dropped by the program at ingress.
    pub ingress: u64,
    /// Dropped by the program at egress.
    pub egress: u64,
    /// Tail drops: the queue was full.
    pub tail_drop: u64,
    /// Sent to a multicast group without members.
    pub empty_group: u64,
    /// Sent to a port that does not exist.
    pub no_such_port: u64,
    /// Longer than the maximum of the pipeline.
    pub too_long: u64,
    /// Resubmitted too often.
    pub resubmit_limit: u64,
    /// Executed too many loop iterations.
    pub iteration_limit: u64,
    /// Recirculated too often at one instant.
    pub recirculation_limit: u64,
    /// Rejected by the parser.
    pub parser_error: u64,
    /// Failed an assertion of the program.
    pub assertion: u64,
}

impl SwitchDrops {
    /// Returns the sum.
    pub fn total(&self) -> u64 {
        self.ingress
            + self.egress
            + self.tail_drop
            + self.empty_group
            + self.no_such_port
            + self.too_long
            + self.resubmit_limit
            + self.iteration_limit
            + self.recirculation_limit
            + self.parser_error
            + self.assertion
    }
}

/// A switch. The channels of its ports contain the queued packets.
#[derive(Debug)]
pub struct Switch {
    /// Name of the switch.
    pub name: String,
    /// The program and its state.
    pub pipeline: Pipeline,
    /// Packet counters.
    pub counts: SwitchCounts,
    /// Sending channel of each port.
    ports: Vec<Option<u32>>,
    cpu_port: u32,
    descriptors: Vec<Descriptor>,
    pending: VecDeque<(Descriptor, u32)>,
    recirculating: VecDeque<(Recirculated, u32)>,
    output: EgressOutput,
}

impl Switch {
    /// Creates a switch. `ports` has pairs of port number and sending channel.
    pub fn new(name: String, pipeline: Pipeline, ports: &[(u32, u32)], cpu_port: u32) -> Self {
        let count = ports.iter().map(|&(number, _)| number as usize + 1).max();
        let mut channels = vec![None; count.unwrap_or(0)];
        for &(number, channel) in ports {
            channels[number as usize] = Some(channel);
        }
        Self {
            name,
            pipeline,
            counts: SwitchCounts::default(),
            ports: channels,
            cpu_port,
            descriptors: Vec::new(),
            pending: VecDeque::new(),
            recirculating: VecDeque::new(),
            output: EgressOutput::default(),
        }
    }

    /// Processes a frame received on a port.
    pub fn receive(&mut self, port: u32, mut frame: Frame, network: &mut Network) {
        self.counts.received += 1;
        let (now, descriptors) = (network.now, &mut self.descriptors);
        let outcome = self
            .pipeline
            .ingress_keeping(port, &mut frame.bytes, now, descriptors);
        network.recycle(frame.bytes);
        self.after_ingress(outcome, frame.rank, network);
        self.process_pending(network);
    }

    /// Transmits queued packets, because a channel is free.
    pub fn on_channel_free(&mut self, channel: u32, network: &mut Network) {
        self.transmit_due(channel, network);
        self.process_pending(network);
    }

    fn after_ingress(&mut self, outcome: IngressOutcome, rank: u32, network: &mut Network) {
        let dropped = &mut self.counts.dropped;
        match outcome {
            IngressOutcome::Unicast | IngressOutcome::Multicast(1..) => {}
            IngressOutcome::Multicast(0) => dropped.empty_group += 1,
            IngressOutcome::Dropped => dropped.ingress += 1,
            IngressOutcome::TooLong => dropped.too_long += 1,
            IngressOutcome::TooManyResubmits => dropped.resubmit_limit += 1,
            IngressOutcome::TooManyIterations => dropped.iteration_limit += 1,
            IngressOutcome::ParserError => dropped.parser_error += 1,
            IngressOutcome::AssertionFailed => dropped.assertion += 1,
        }
        let survives = matches!(
            outcome,
            IngressOutcome::Unicast | IngressOutcome::Multicast(1..)
        );
        self.counts.copied += self.descriptors.len() as u64 - u64::from(survives);
        let mut descriptors = std::mem::take(&mut self.descriptors);
        for descriptor in descriptors.drain(..) {
            self.enqueue(descriptor, rank, network);
        }
        self.descriptors = descriptors;
    }

    /// Enqueues pending clones, and processes recirculated packets.
    fn process_pending(&mut self, network: &mut Network) {
        let mut recirculations = 0;
        loop {
            while let Some((descriptor, rank)) = self.pending.pop_front() {
                self.enqueue(descriptor, rank, network);
            }
            let Some((packet, rank)) = self.recirculating.pop_front() else {
                return;
            };
            recirculations += 1;
            if recirculations > MAX_RECIRCULATIONS {
                self.counts.dropped.recirculation_limit += 1;
                continue;
            }
            self.counts.recirculated += 1;
            let outcome =
                self.pipeline
                    .ingress_recirculated(packet, network.now, &mut self.descriptors);
            self.after_ingress(outcome, rank, network);
        }
    }

    fn enqueue(&mut self, descriptor: Descriptor, rank: u32, network: &mut Network) {
        let port = descriptor.egress_port as usize;
        let Some(index) = self.ports.get(port).copied().flatten() else {
            return self.egress_without_queue(descriptor, rank, network);
        };
        let channel = &mut network.channels[index as usize];
        let bytes = descriptor.len;
        let class = if channel.by_rank {
            rank
        } else {
            descriptor.priority.into()
        };
        let packet = Outgoing::Packet {
            descriptor,
            rank,
            depth: channel.queue.depth_packets(),
        };
        if let Err(Outgoing::Packet { descriptor, .. }) =
            channel.queue.enqueue(network.now, packet, bytes, class)
        {
            self.counts.dropped.tail_drop += 1;
            self.pipeline.recycle(descriptor);
        }
        self.transmit_due(index, network);
    }

    /// Transmits the packets of a channel's queue that are due.
    fn transmit_due(&mut self, index: u32, network: &mut Network) {
        while let Some(started) = network.channels[index as usize].queue.start(network.now) {
            let Outgoing::Packet {
                descriptor,
                rank,
                depth,
            } = started.packet
            else {
                unreachable!("a switch queues only packets");
            };
            let info = QueueInfo {
                enq_timestamp: started.enqueued_at,
                enq_qdepth: saturate(depth),
                deq_timedelta: started.at - started.enqueued_at,
                deq_qdepth: saturate(started.depth_packets),
                qid: descriptor.priority.min(PRIORITIES as u8 - 1),
            };
            if self.egress(descriptor, info, rank, network) {
                let spare = network.take_buffer(0);
                let bytes = self.output.take_frame(spare);
                network.transmit(index, started.slot, Frame { bytes, rank });
            }
        }
        if network.channels[index as usize].queue.depth_packets() > 0 {
            network.schedule_free(index);
        }
    }

    /// Runs egress. Returns true if it has written a frame to `self.output`.
    fn egress(
        &mut self,
        descriptor: Descriptor,
        info: QueueInfo,
        rank: u32,
        network: &Network,
    ) -> bool {
        let outcome = self
            .pipeline
            .egress(descriptor, info, network.now, &mut self.output);
        if !self.output.clones.is_empty() {
            self.counts.copied += self.output.clones.len() as u64;
            let clones = self.output.clones.drain(..);
            self.pending
                .extend(clones.map(|descriptor| (descriptor, rank)));
        }
        match outcome {
            EgressOutcome::Transmit { .. } => return true,
            EgressOutcome::Dropped => self.counts.dropped.egress += 1,
            EgressOutcome::TooManyIterations => self.counts.dropped.iteration_limit += 1,
            EgressOutcome::AssertionFailed => self.counts.dropped.assertion += 1,
            EgressOutcome::Recirculate(packet) => self.recirculating.push_back((packet, rank)),
        }
        false
    }

    /// Runs egress for the CPU port or a nonexistent port: the program may still count, clone or recirculate.
    fn egress_without_queue(&mut self, descriptor: Descriptor, rank: u32, network: &Network) {
        let to_controller = descriptor.egress_port == self.cpu_port;
        let info = QueueInfo {
            enq_timestamp: network.now,
            ..QueueInfo::default()
        };
        if !self.egress(descriptor, info, rank, network) {
            return;
        }
        if to_controller {
            self.counts.to_controller += 1;
        } else {
            self.counts.dropped.no_such_port += 1;
        }
    }
}

fn saturate(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
