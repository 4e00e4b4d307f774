// SPDX-License-Identifier: Apache-2.0
//! Egress, checksum update and deparser.

use super::{MICRO, V1Model, preserve};
use crate::Nanos;
use crate::packet::{
    Descriptor, EgressOutcome, EgressOutput, InstanceType, Packet, QueueInfo, Recirculated,
};
use crate::program::Compiled;
use crate::program::layout::set_if_present;

impl V1Model {
    /// Runs egress, checksum update and deparser as one pass of the trace.
    pub(crate) fn egress(
        &mut self,
        c: &Compiled,
        d: Descriptor,
        queue: QueueInfo,
        now: Nanos,
        out: &mut EgressOutput,
    ) -> EgressOutcome {
        let first = out.clones.len();
        if let Some(trace) = self.trace() {
            trace.begin_egress(&d, now);
        }
        let mut outcome = self.run_egress(c, d, queue, now, out);
        if let Some(trace) = self.trace() {
            trace.end_egress(&mut outcome, out.frame.len(), &mut out.clones[first..]);
        }
        outcome
    }

    fn run_egress(
        &mut self,
        c: &Compiled,
        d: Descriptor,
        queue: QueueInfo,
        now: Nanos,
        out: &mut EgressOutput,
    ) -> EgressOutcome {
        let s = &c.layout.standard;
        let mut pkt = d.packet;
        let drop_port = u64::from(self.options.drop_port);
        let mem = &mut pkt.mem;
        set_if_present(s.egress_timestamp, mem, now / MICRO);
        set_if_present(s.enq_timestamp, mem, queue.enq_timestamp / MICRO);
        set_if_present(s.enq_qdepth, mem, u64::from(queue.enq_qdepth));
        set_if_present(s.deq_timedelta, mem, queue.deq_timedelta / MICRO);
        set_if_present(s.deq_qdepth, mem, u64::from(queue.deq_qdepth));
        set_if_present(s.qid, mem, u64::from(queue.qid));
        s.egress_port.set64(mem, u64::from(d.egress_port));
        s.egress_spec.set64(mem, drop_port + 1);
        s.packet_length.set64(mem, u64::from(pkt.len));
        pkt.clear_requests();
        self.apply(c, c.egress, &mut pkt, now);
        if self.iterates_too_often(&pkt) {
            self.pool.put(pkt);
            return EgressOutcome::TooManyIterations;
        }
        if pkt.assertion_failed {
            self.pool.put(pkt);
            return EgressOutcome::AssertionFailed;
        }
        if let Some((session, list)) = pkt.clone_to.take()
            && let Some(session) = self.state.pre.session(session)
        {
            let mut copy = self.pool.get();
            copy.copy_from(&pkt);
            let kind = InstanceType::EgressClone;
            self.enqueue_clones(c, copy, &pkt, &session, list, kind, &mut out.clones);
        }
        if s.egress_spec.get64(&pkt.mem) == drop_port {
            self.pool.put(pkt);
            return EgressOutcome::Dropped;
        }
        self.deparse(c, &mut pkt, now, &mut out.frame);
        if self.iterates_too_often(&pkt) {
            self.pool.put(pkt);
            return EgressOutcome::TooManyIterations;
        }
        if pkt.recirculate != 0 {
            return EgressOutcome::Recirculate(self.recirculate(c, pkt, &out.frame));
        }
        self.pool.put(pkt);
        EgressOutcome::Transmit {
            port: d.egress_port,
        }
    }

    fn deparse(&mut self, c: &Compiled, pkt: &mut Packet, now: Nanos, frame: &mut Vec<u8>) {
        let bytes = self.emit(c, pkt, now, frame);
        if bytes == pkt.start {
            // If the headers' length has not changed, the payload can stay in place.
            pkt.frame[..bytes].copy_from_slice(&frame[..bytes]);
            std::mem::swap(&mut pkt.frame, frame);
        } else {
            frame.truncate(bytes);
            frame.extend_from_slice(&pkt.frame[pkt.start..]);
        }
        frame.truncate(pkt.truncate_to as usize);
        if let Some(trace) = &mut self.state.externs.trace {
            trace.deparse(c, pkt, frame);
        }
    }

    fn recirculate(&mut self, c: &Compiled, pkt: Box<Packet>, frame: &[u8]) -> Recirculated {
        let s = &c.layout.standard;
        let ingress_port = s.ingress_port.get64(&pkt.mem) as u32;
        let mut next = self.pool.get();
        next.reset(&c.layout.blank, frame);
        preserve(c.field_lists.get(&pkt.recirculate), &pkt.mem, &mut next.mem);
        s.instance_type
            .set64(&mut next.mem, InstanceType::Recirculated as u64);
        s.packet_length.set64(&mut next.mem, frame.len() as u64);
        self.pool.put(pkt);
        Recirculated {
            ingress_port,
            packet: next,
        }
    }
}
