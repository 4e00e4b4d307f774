// SPDX-License-Identifier: Apache-2.0
//! Egress parser, control and deparser, and the packet's fate after them.

use super::{DROP_MIRROR, DROP_PACKET, EGRESS, FRAME_CHECK_BYTES, Tna};
use crate::Nanos;
use crate::packet::{
    Descriptor, EgressOutcome, EgressOutput, InstanceType, Packet, QueueInfo, Recirculated,
};
use crate::program::tna::{IntrinsicField, Prefix};

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
            pkt.frame.move_to(&mut out.frame);
            return self.leave(pkt, port, &out.frame);
        }
        let prefix = self.egress_prefix(&pkt, port, &queue);
        self.parse(EGRESS, &mut pkt, &prefix, now);
        let block = self.block(EGRESS);
        self.core.apply(self.c, block, &mut pkt, now);
        if let Some(failure) = self.core.egress_failure(&pkt) {
            self.core.pool.put(pkt);
            return failure;
        }
        let bytes = self.emit(EGRESS, &mut pkt, now, &mut out.frame);
        if let Some(failure) = self.core.egress_failure(&pkt) {
            self.core.pool.put(pkt);
            return failure;
        }
        let drop = m.egress.drop_ctl.get64(&pkt.mem);
        let mirror = pkt.mirror.take().filter(|_| drop & DROP_MIRROR == 0);
        let is_outgoing = self.mirrors_outgoing(EGRESS, &pkt);
        let (kind, clones) = (InstanceType::EgressClone, &mut out.clones);
        if let Some(mirror) = mirror.as_ref().filter(|_| !is_outgoing) {
            self.mirror(mirror, &pkt.frame[prefix.len()..], kind, clones);
        }
        let c = self.c;
        let frame = &mut out.frame;
        self.core.append_payload(c, block, &mut pkt, bytes, frame);
        let leaving =
            (drop & DROP_PACKET == 0).then_some(out.frame.len() as u32 + FRAME_CHECK_BYTES);
        self.core.state.correct_counts(&mut pkt, leaving);
        if let Some(mirror) = mirror.as_ref().filter(|_| is_outgoing) {
            self.mirror(mirror, &out.frame, kind, clones);
        }
        if drop & DROP_PACKET != 0 {
            self.core.pool.put(pkt);
            return EgressOutcome::Dropped;
        }
        self.leave(pkt, port, &out.frame)
    }

    /// Sends the frame, unless the port leads back to ingress.
    fn leave(&mut self, mut pkt: Box<Packet>, port: u32, frame: &[u8]) -> EgressOutcome {
        let is_loopback = self.core.state.loopback_ports.contains(&port);
        if !is_loopback && !self.metadata.chip.recirculates(port) {
            self.core.pool.put(pkt);
            return EgressOutcome::Transmit { port };
        }
        pkt.reset(&self.c.layout.blank, frame);
        EgressOutcome::Recirculate(Recirculated {
            ingress_port: port,
            packet: pkt,
        })
    }

    fn egress_prefix(&self, pkt: &Packet, port: u32, queue: &QueueInfo) -> Prefix {
        let header = &self.metadata.egress.intrinsic;
        let handoff = &pkt.handoff;
        header.in_front(0, |field| match field {
            IntrinsicField::EgressPort => port.into(),
            IntrinsicField::EnqQdepth => queue.enq_qdepth.into(),
            IntrinsicField::EnqTstamp => queue.enq_timestamp,
            IntrinsicField::DeqQdepth => queue.deq_qdepth.into(),
            IntrinsicField::DeqTimedelta => queue.deq_timedelta,
            IntrinsicField::EgressRid => handoff.rid.into(),
            IntrinsicField::EgressRidFirst => handoff.is_first_replica.into(),
            IntrinsicField::EgressQid => handoff.qid.into(),
            IntrinsicField::EgressCos => handoff.class_of_service.into(),
            IntrinsicField::PktLength => (pkt.frame.len() as u32 + FRAME_CHECK_BYTES).into(),
            _ => 0,
        })
    }
}
