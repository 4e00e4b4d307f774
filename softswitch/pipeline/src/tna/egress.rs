// SPDX-License-Identifier: Apache-2.0
//! Egress parser, control and deparser, and the packet's fate after them.

use super::{DROP_MIRROR, DROP_PACKET, EGRESS, FRAME_CHECK_BYTES, Tna};
use crate::Nanos;
use crate::packet::{
    Descriptor, EgressOutcome, EgressOutput, InstanceType, Packet, QueueInfo, Recirculated,
};
use crate::program::tna::IntrinsicField;

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
            pkt.frame.move_to(&mut out.frame);
            return self.transmit(pkt, port);
        }
        let prefix = self.add_egress_prefix(&mut pkt, port, &queue);
        self.parse(EGRESS, &mut pkt, prefix, now);
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
            self.mirror(mirror, &pkt.frame[prefix..], kind, clones);
        }
        let recirculates = self.recirculates(port);
        let (c, core) = (self.c, &mut *self.core);
        let length = if recirculates {
            core.replace_headers(c, block, &mut pkt, &out.frame[..bytes]);
            pkt.frame.len()
        } else {
            core.append_payload(c, block, &mut pkt, bytes, &mut out.frame);
            out.frame.len()
        };
        let leaving = (drop & DROP_PACKET == 0).then_some(length as u32 + FRAME_CHECK_BYTES);
        core.state.correct_counts(&mut pkt, leaving);
        if let Some(mirror) = mirror.as_ref().filter(|_| is_outgoing) {
            let frame = if recirculates {
                &pkt.frame[..]
            } else {
                &out.frame
            };
            self.mirror(mirror, frame, kind, clones);
        }
        if drop & DROP_PACKET != 0 {
            self.core.pool.put(pkt);
            return EgressOutcome::Dropped;
        }
        if recirculates {
            return recirculate(pkt, port);
        }
        self.transmit(pkt, port)
    }

    /// Returns true if packets that leave through a port enter ingress again.
    fn recirculates(&self, port: u32) -> bool {
        self.metadata.chip.recirculates(port) || self.core.state.loopback_ports.contains(&port)
    }

    fn transmit(&mut self, pkt: Box<Packet>, port: u32) -> EgressOutcome {
        self.core.pool.put(pkt);
        EgressOutcome::Transmit { port }
    }

    /// Puts the intrinsic header in front of a packet, and returns its length in bytes.
    fn add_egress_prefix(&self, pkt: &mut Packet, port: u32, queue: &QueueInfo) -> usize {
        let header = &self.metadata.egress.intrinsic;
        let handoff = &pkt.handoff;
        let length = pkt.frame.len() as u32 + FRAME_CHECK_BYTES;
        let prefix = pkt.frame.extend_front(header.bytes);
        header.write(prefix, |field| match field {
            IntrinsicField::EgressPort => port.into(),
            IntrinsicField::EnqQdepth => queue.enq_qdepth.into(),
            IntrinsicField::EnqTstamp => queue.enq_timestamp,
            IntrinsicField::DeqQdepth => queue.deq_qdepth.into(),
            IntrinsicField::DeqTimedelta => queue.deq_timedelta,
            IntrinsicField::EgressRid => handoff.rid.into(),
            IntrinsicField::EgressRidFirst => handoff.is_first_replica.into(),
            IntrinsicField::EgressQid => handoff.qid.into(),
            IntrinsicField::EgressCos => handoff.class_of_service.into(),
            IntrinsicField::PktLength => length.into(),
            _ => 0,
        });
        header.bytes
    }
}

fn recirculate(packet: Box<Packet>, port: u32) -> EgressOutcome {
    EgressOutcome::Recirculate(Recirculated {
        ingress_port: port,
        packet,
    })
}
