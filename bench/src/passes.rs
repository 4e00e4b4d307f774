// SPDX-License-Identifier: Apache-2.0
//! Further passes of packets through a program for Tofino, by which the recirculation ports and the pipes are busy.

use std::collections::{BTreeMap, VecDeque};

use anyhow::{Result, ensure};
use serde::Serialize;
use softswitch_pipeline::{
    Descriptor, EgressOutcome, EgressOutput, InstanceType, Pipeline, QueueInfo, Step,
};

use crate::pipeline::{NS_PER_PACKET, PAUSE_NS};
use crate::site::Site;
use crate::traffic::Packet;

/// Number of packets of each kind of which resubmissions are counted, because traces show them, but slow the pipeline down
/// a hundredfold.
const TRACED: u64 = 20;

/// Sums over the packets of a kind and all pipes. Lengths are without frame check sequences.
#[derive(Debug, Default, Serialize)]
pub struct Passes {
    packets: u64,
    bytes: u64,
    /// Packets that pass ingress a second time through the recirculation port of their pipe.
    second_passes: u64,
    second_pass_bytes: u64,
    /// Mirrored packets through the recirculation ports of all pipes.
    workers: u64,
    worker_bytes: u64,
    digests: u64,
    /// Packets of which `resubmissions` is the sum.
    traced: u64,
    resubmissions: u64,
}

/// Counts the passes by kind of packet, in the second round of the site's traffic. In the first one, the switch learns the
/// loads of all servers.
pub fn count(site: &Site) -> Result<BTreeMap<&'static str, Passes>> {
    let packets = site.traffic.packets()?;
    let mut counter = Counter::new(site.pipeline()?);
    counter.round(&packets)?;
    counter.now += PAUSE_NS;
    counter.round(&packets)
}

struct Counter {
    pipeline: Pipeline,
    now: u64,
}

impl Counter {
    fn new(mut pipeline: Pipeline) -> Self {
        pipeline.take_digests();
        Self { pipeline, now: 0 }
    }

    fn round(&mut self, packets: &[Packet]) -> Result<BTreeMap<&'static str, Passes>> {
        let mut kinds = BTreeMap::<_, Passes>::new();
        for packet in packets {
            self.now += NS_PER_PACKET;
            self.process(packet, kinds.entry(packet.kind).or_default())?;
        }
        Ok(kinds)
    }

    /// Processes a packet and everything that it causes.
    fn process(&mut self, packet: &Packet, passes: &mut Passes) -> Result<()> {
        let is_traced = passes.packets < TRACED;
        self.pipeline.set_tracing(is_traced);
        passes.packets += 1;
        passes.bytes += packet.frame.len() as u64;
        let (mut made, mut out) = (Vec::new(), EgressOutput::default());
        let mut left = Vec::new();
        self.pipeline
            .ingress(packet.port, &packet.frame, self.now, &mut made);
        let mut waiting = VecDeque::<Descriptor>::from(std::mem::take(&mut made));
        while let Some(descriptor) = waiting.pop_front() {
            let origin = descriptor.instance_type;
            let outcome =
                self.pipeline
                    .egress(descriptor, QueueInfo::default(), self.now, &mut out);
            match outcome {
                EgressOutcome::Transmit { port } => left.push(port),
                EgressOutcome::Recirculate(again) => {
                    passes.recirculated(origin, again.length() as u64);
                    self.pipeline
                        .ingress_recirculated(again, self.now, &mut made);
                }
                _ => {}
            }
            waiting.extend(made.drain(..).chain(out.clones.drain(..)));
        }
        ensure!(
            left == [packet.out_port],
            "a packet of kind {} must leave by port {}, not {left:?}",
            packet.kind,
            packet.out_port
        );
        passes.digests += self.pipeline.take_digests().len() as u64;
        passes.traced += u64::from(is_traced);
        passes.resubmissions += self.take_resubmissions();
        Ok(())
    }

    fn take_resubmissions(&mut self) -> u64 {
        let traces = self.pipeline.take_trace();
        let steps = traces.iter().flat_map(|trace| &trace.steps);
        steps
            .filter(|step| matches!(step, Step::Extern { call, .. } if *call == "resubmit"))
            .count() as u64
    }
}

impl Passes {
    fn recirculated(&mut self, origin: InstanceType, bytes: u64) {
        if matches!(
            origin,
            InstanceType::IngressClone | InstanceType::EgressClone
        ) {
            self.workers += 1;
            self.worker_bytes += bytes;
        } else {
            self.second_passes += 1;
            self.second_pass_bytes += bytes;
        }
    }
}
