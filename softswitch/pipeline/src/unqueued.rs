//! Packets through the whole pipeline at once, for those who have no queues.

use std::collections::VecDeque;

use crate::Nanos;
use crate::packet::{Descriptor, EgressOutcome, EgressOutput, QueueInfo};
use crate::pipeline::Pipeline;

/// Recirculations after which a packet and its copies are given up.
const MAX_RECIRCULATIONS: usize = 64;

impl Pipeline {
    /// Runs a frame received on `port` through ingress and, as if every queue were empty, through egress;
    /// gives port and frame of all that leaves, in order. Recirculated packets go around at most 64 times.
    pub fn process(&mut self, port: u32, frame: &[u8], now: Nanos) -> Vec<(u32, Vec<u8>)> {
        let (mut made, mut sent) = (Vec::new(), Vec::new());
        let mut out = EgressOutput::default();
        self.ingress(port, frame, now, &mut made);
        let mut waiting: VecDeque<Descriptor> = made.drain(..).collect();
        let mut recirculations = 0;
        while let Some(d) = waiting.pop_front() {
            let queue = QueueInfo {
                enq_timestamp: now,
                ..QueueInfo::default()
            };
            match self.egress(d, queue, now, &mut out) {
                EgressOutcome::Transmit { port } => sent.push((port, out.frame.clone())),
                EgressOutcome::Recirculate(packet) if recirculations < MAX_RECIRCULATIONS => {
                    recirculations += 1;
                    self.ingress_recirculated(packet, now, &mut made);
                    waiting.extend(made.drain(..));
                }
                EgressOutcome::Dropped
                | EgressOutcome::Recirculate(_)
                | EgressOutcome::AssertionFailed => {}
            }
            waiting.extend(out.clones.drain(..));
        }
        sent
    }
}
