// SPDX-License-Identifier: Apache-2.0
//! Parser, checksum verification, ingress, and the packet's fate after it.

use super::replication::descriptor;
use super::{INGRESS, V1Model};
use crate::Nanos;
use crate::core::{MICRO, preserve};
use crate::packet::{Descriptor, IngressOutcome, InstanceType, Packet, Recirculated};
use crate::program::architecture::Standard;
use crate::program::layout::{set_if_present, set_inputs};

impl V1Model<'_> {
    /// Runs ingress for a packet, of which only the frame counts.
    pub(crate) fn receive(
        &mut self,
        port: u32,
        mut pkt: Box<Packet>,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        pkt.begin(&self.c.layout);
        let length = pkt.frame.len();
        let s = self.standard;
        s.ingress_port.set64(&mut pkt.mem, u64::from(port));
        s.packet_length.set64(&mut pkt.mem, length as u64);
        set_if_present(s.ingress_timestamp, &mut pkt.mem, now / MICRO);
        self.traced_ingress((pkt, 0), u64::from(port), now, out)
    }

    /// Runs ingress for a recirculated packet.
    pub(crate) fn ingress_recirculated(
        &mut self,
        recirculated: Recirculated,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        let pkt = recirculated.packet;
        let number = pkt.number;
        let port = self.standard.ingress_port.get64(&pkt.mem);
        self.traced_ingress((pkt, number), port, now, out)
    }

    /// Runs ingress as one pass of the trace. A new packet has the number 0.
    fn traced_ingress(
        &mut self,
        (pkt, number): (Box<Packet>, u64),
        port: u64,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        let (s, first) = (self.standard, out.len());
        if let Some(trace) = self.core.trace() {
            let origin = (port as u32, instance(s, &pkt.mem));
            trace.begin_ingress(&pkt, number, origin, now, s.egress_spec);
        }
        let outcome = self.run_ingress(pkt, port, now, out);
        if let Some(trace) = self.core.trace() {
            trace.end_ingress(outcome, s.mcast_grp, &mut out[first..]);
        }
        outcome
    }

    /// Runs ingress, again for each resubmission, and enqueues the packet and its copies.
    fn run_ingress(
        &mut self,
        mut pkt: Box<Packet>,
        port: u64,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        let s = self.standard;
        let mut resubmits = 0;
        loop {
            let input = self.parse(&mut pkt, now);
            debug_assert!(self.c.zero_at_ingress.iter().all(|w| w.get(&pkt.mem) == 0));
            self.core.apply(self.c, INGRESS, &mut pkt, now, &input);
            if let Some(failure) = self.core.ingress_failure(&pkt) {
                self.core.pool.put(pkt);
                return failure;
            }
            if let Some((session, list)) = pkt.clone_to.take() {
                self.clone_at_ingress(&pkt, port, session, list, now, out);
            }
            self.core.digest(self.c, &pkt);
            if pkt.resubmit == 0 {
                break;
            }
            resubmits += 1;
            if resubmits > self.core.options.max_resubmits {
                self.core.pool.put(pkt);
                return IngressOutcome::TooManyResubmits;
            }
            if let Some(trace) = &mut self.core.state.externs.trace {
                trace.resubmitted(Some(pkt.resubmit));
            }
            let list = self.c.field_list(pkt.resubmit);
            let mut next = self.core.pool.get();
            std::mem::swap(&mut next.frame, &mut pkt.frame);
            next.begin(&self.c.layout);
            preserve(list, &pkt.mem, &mut next.mem);
            s.instance_type
                .set64(&mut next.mem, InstanceType::Resubmitted as u64);
            s.packet_length
                .set64(&mut next.mem, u64::from(next.ingress_len));
            self.core.pool.put(std::mem::replace(&mut pkt, next));
        }
        pkt.exit = false;
        let group = s.mcast_grp.map_or(0, |f| f.get64(&pkt.mem)) as u32;
        if group != 0 {
            let copies = self.multicast(pkt, group, out);
            return IngressOutcome::Multicast(copies);
        }
        let egress_port = s.egress_spec.get64(&pkt.mem) as u32;
        if egress_port == self.core.options.drop_port {
            self.core.pool.put(pkt);
            return IngressOutcome::Dropped;
        }
        s.instance_type
            .set64(&mut pkt.mem, InstanceType::Normal as u64);
        out.push(descriptor(s, pkt, egress_port, InstanceType::Normal));
        IngressOutcome::Unicast
    }

    /// Makes an ingress clone: the received frame, parsed again, with the preserved metadata only.
    fn clone_at_ingress(
        &mut self,
        pkt: &Packet,
        port: u64,
        session: u32,
        list: u32,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) {
        let Some(session) = self.core.state.pre.session(session) else {
            return;
        };
        let mut copy = self.core.pool.get();
        copy.reset(&self.c.layout, &pkt.frame);
        self.standard.ingress_port.set64(&mut copy.mem, port);
        // The parser repeats the original's steps.
        self.core.mute(true);
        let input = self.parse(&mut copy, now);
        self.core.mute(false);
        set_inputs(&self.standard.inputs[INGRESS], &mut copy.mem, &input);
        copy.clear_requests();
        self.enqueue_clones(copy, pkt, &session, list, InstanceType::IngressClone, out);
    }
}

/// Returns the origin of a packet as its metadata has it.
fn instance(s: &Standard, mem: &[u8]) -> InstanceType {
    use InstanceType::{
        Coalesced, EgressClone, IngressClone, Normal, Recirculated, Replication, Resubmitted,
    };
    let all = [
        Normal,
        IngressClone,
        EgressClone,
        Coalesced,
        Recirculated,
        Replication,
        Resubmitted,
    ];
    let number = s.instance_type.get64(mem);
    all.into_iter()
        .find(|&t| t as u64 == number)
        .unwrap_or(Normal)
}
