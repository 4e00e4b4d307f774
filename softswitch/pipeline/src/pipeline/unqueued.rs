// SPDX-License-Identifier: Apache-2.0
//! Runs packets through the whole pipeline at once, for callers without queues.

use std::collections::VecDeque;

use crate::Nanos;
use crate::packet::{Descriptor, EgressOutcome, EgressOutput, QueueInfo};
use crate::pipeline::Pipeline;

impl Pipeline {
    /// Runs a frame received on `port` through ingress and, as if all queues were empty, through egress.
    /// Returns the port and the frame of each transmitted packet, in order. A packet and its copies
    /// recirculate at most [`Options::max_recirculations`](crate::Options::max_recirculations) times.
    pub fn process(&mut self, port: u32, frame: &[u8], now: Nanos) -> Vec<(u32, Vec<u8>)> {
        let (mut made, mut sent) = (Vec::new(), Vec::new());
        let mut out = EgressOutput::default();
        self.ingress(port, frame, now, &mut made);
        let mut waiting: VecDeque<Descriptor> = made.drain(..).collect();
        let most = self.core.options.max_recirculations;
        let mut recirculations = 0;
        while let Some(d) = waiting.pop_front() {
            let queue = QueueInfo {
                enq_timestamp: now,
                ..QueueInfo::default()
            };
            match self.egress(d, queue, now, &mut out) {
                EgressOutcome::Transmit { port } => sent.push((port, out.frame.to_vec())),
                EgressOutcome::Recirculate(packet) if recirculations < most => {
                    recirculations += 1;
                    self.ingress_recirculated(packet, now, &mut made);
                    waiting.extend(made.drain(..));
                }
                EgressOutcome::Dropped
                | EgressOutcome::Recirculate(_)
                | EgressOutcome::TooManyIterations
                | EgressOutcome::AssertionFailed => {}
            }
            waiting.extend(out.clones.drain(..));
        }
        sent
    }
}
