// SPDX-License-Identifier: Apache-2.0
//! Egress, checksum update and deparser.

use super::{DEPARSER, EGRESS, V1Model};
use crate::Nanos;
use crate::core::{MICRO, preserve};
use crate::packet::{
    Descriptor, EgressOutcome, EgressOutput, InstanceType, Packet, QueueInfo, Recirculated,
};

impl V1Model<'_> {
    /// Runs egress, checksum update and deparser.
    pub(crate) fn egress(
        &mut self,
        d: Descriptor,
        queue: QueueInfo,
        now: Nanos,
        out: &mut EgressOutput,
    ) -> EgressOutcome {
        let s = self.standard;
        let mut pkt = d.packet;
        let drop_port = u64::from(self.core.options.drop_port);
        let input = [
            now / MICRO,
            queue.enq_timestamp / MICRO,
            queue.enq_qdepth.into(),
            queue.deq_timedelta / MICRO,
            queue.deq_qdepth.into(),
            queue.qid.into(),
            d.egress_port.into(),
            drop_port + 1,
            pkt.len.into(),
        ];
        pkt.clear_requests();
        self.core.apply(self.c, EGRESS, &mut pkt, now, &input);
        if let Some(failure) = self.core.egress_failure(&pkt) {
            self.core.pool.put(pkt);
            return failure;
        }
        if let Some((session, list)) = pkt.clone_to.take()
            && let Some(session) = self.core.state.pre.session(session)
        {
            let mut copy = self.core.pool.get();
            copy.copy_from(&pkt);
            let kind = InstanceType::EgressClone;
            self.enqueue_clones(copy, &pkt, &session, list, kind, &mut out.clones);
        }
        if s.egress_spec.get64(&pkt.mem) == drop_port {
            self.core.pool.put(pkt);
            return EgressOutcome::Dropped;
        }
        self.core.deparse(self.c, DEPARSER, &mut pkt, now);
        if self.core.iterates_too_often(&pkt) {
            self.core.pool.put(pkt);
            return EgressOutcome::TooManyIterations;
        }
        if pkt.recirculate != 0 {
            return EgressOutcome::Recirculate(self.recirculate(pkt));
        }
        self.core.transmit(pkt, d.egress_port, out)
    }

    fn recirculate(&mut self, pkt: Box<Packet>) -> Recirculated {
        let s = self.standard;
        let ingress_port = s.ingress_port.get64(&pkt.mem) as u32;
        let mut next = self.core.pool.get();
        next.reset(&self.c.layout, &pkt.frame);
        preserve(self.c.field_list(pkt.recirculate), &pkt.mem, &mut next.mem);
        s.instance_type
            .set64(&mut next.mem, InstanceType::Recirculated as u64);
        s.packet_length.set64(&mut next.mem, pkt.frame.len() as u64);
        self.core.pool.put(pkt);
        Recirculated {
            ingress_port,
            packet: next,
        }
    }
}
