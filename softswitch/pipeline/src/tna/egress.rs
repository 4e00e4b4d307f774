// SPDX-License-Identifier: Apache-2.0
//! Egress parser, control and deparser, and the packet's fate after them.

use super::replication::requested_mirror;
use super::{DROP_PACKET, EGRESS, FRAME_CHECK_BYTES, Tna};
use crate::Nanos;
use crate::packet::{
    Descriptor, EgressOutcome, EgressOutput, InstanceType, Packet, QueueInfo, Recirculated,
};
use crate::program::tna::{IntrinsicField, IntrinsicValues};

impl Tna<'_> {
    /// Runs egress.
    pub(crate) fn egress(
        &mut self,
        d: Descriptor,
        queue: QueueInfo,
        now: Nanos,
        out: &mut EgressOutput,
    ) -> EgressOutcome {
        let m = self.metadata;
        let mut pkt = d.packet;
        let port = d.egress_port;
        self.select_pipe(port);
        if pkt.handoff.bypasses_egress {
            if self.recirculates(port) {
                return recirculate(pkt, port);
            }
            return self.core.transmit(pkt, port, out);
        }
        let prefix = self.add_egress_prefix(&mut pkt, port, &queue);
        self.parse(EGRESS, &mut pkt, prefix, now);
        let block = self.block(EGRESS);
        self.core.apply(self.c, block, &mut pkt, now, &[]);
        if let Some(failure) = self.core.egress_failure(&pkt) {
            self.core.pool.put(pkt);
            return failure;
        }
        let bytes = self.emit(EGRESS, &mut pkt, now);
        if let Some(failure) = self.core.egress_failure(&pkt) {
            self.core.pool.put(pkt);
            return failure;
        }
        let drop = m.egress.drop_ctl.get64(&pkt.mem);
        let mirror = requested_mirror(&mut pkt, drop);
        let is_outgoing = self.mirrors_outgoing(EGRESS, &pkt);
        let (kind, clones) = (InstanceType::EgressClone, &mut out.clones);
        if let Some(mirror) = mirror.as_ref().filter(|_| !is_outgoing) {
            self.mirror(mirror, &pkt.frame[prefix..], kind, clones);
        }
        self.core.replace_headers(self.c, block, &mut pkt, bytes);
        let length = pkt.frame.len() as u32 + FRAME_CHECK_BYTES;
        let leaving = (drop & DROP_PACKET == 0).then_some(length);
        self.core.state.correct_counts(&mut pkt, leaving);
        if let Some(mirror) = mirror.as_ref().filter(|_| is_outgoing) {
            self.mirror(mirror, &pkt.frame, kind, clones);
        }
        if drop & DROP_PACKET != 0 {
            self.core.pool.put(pkt);
            return EgressOutcome::Dropped;
        }
        if self.recirculates(port) {
            return recirculate(pkt, port);
        }
        self.core.transmit(pkt, port, out)
    }

    /// Returns true if packets that leave through a port enter ingress again.
    fn recirculates(&self, port: u32) -> bool {
        self.metadata.chip.recirculates(port) || self.core.state.loopback_ports.contains(&port)
    }

    /// Passes the intrinsic header to the parser, and returns the number of bytes in front of the packet.
    fn add_egress_prefix(&self, pkt: &mut Packet, port: u32, queue: &QueueInfo) -> usize {
        let handoff = &pkt.handoff;
        let length = pkt.frame.len() as u32 + FRAME_CHECK_BYTES;
        let values = IntrinsicValues::of([
            (IntrinsicField::EgressPort, port.into()),
            (IntrinsicField::EnqQdepth, queue.enq_qdepth.into()),
            (IntrinsicField::EnqTstamp, queue.enq_timestamp),
            (IntrinsicField::DeqQdepth, queue.deq_qdepth.into()),
            (IntrinsicField::DeqTimedelta, queue.deq_timedelta),
            (IntrinsicField::EgressRid, handoff.rid.into()),
            (
                IntrinsicField::EgressRidFirst,
                handoff.is_first_replica.into(),
            ),
            (IntrinsicField::EgressQid, handoff.qid.into()),
            (IntrinsicField::EgressCos, handoff.class_of_service.into()),
            (IntrinsicField::PktLength, length.into()),
        ]);
        self.put_header(EGRESS, pkt, values, 0)
    }
}

fn recirculate(packet: Box<Packet>, port: u32) -> EgressOutcome {
    EgressOutcome::Recirculate(Recirculated {
        ingress_port: port,
        packet,
    })
}
