// SPDX-License-Identifier: Apache-2.0
//! Ingress parser, control and deparser, and the packet's fate after them (PSA 1.2, section 6.2).

use super::replication::descriptor;
use super::{INGRESS, PORT_RECIRCULATE, PacketPath, Psa, set_parser_input};
use crate::Nanos;
use crate::core::preserve;
use crate::packet::{Descriptor, IngressOutcome, Packet, Recirculated};
use crate::phv::Field;

impl Psa<'_> {
    /// Runs ingress for a packet from a port, of which only the frame counts.
    pub(crate) fn receive(
        &mut self,
        port: u32,
        mut pkt: Box<Packet>,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        pkt.begin(&self.c.layout);
        self.traced_ingress((pkt, 0), (port, PacketPath::Normal), now, out)
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
        let origin = (PORT_RECIRCULATE, PacketPath::Recirculate);
        self.traced_ingress((pkt, number), origin, now, out)
    }

    /// Runs ingress as one pass of the trace. A new packet has the number 0.
    fn traced_ingress(
        &mut self,
        (pkt, number): (Box<Packet>, u64),
        (port, path): (u32, PacketPath),
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        let (output, first) = (&self.metadata.ingress_output, out.len());
        if let Some(trace) = self.core.trace() {
            let origin = (port, path.instance_type());
            trace.begin_ingress(&pkt, number, origin, now, output.common.drop);
        }
        let outcome = self.run_ingress(pkt, (port, path), now, out);
        if let Some(trace) = self.core.trace() {
            trace.end_ingress(outcome, Some(output.multicast_group), &mut out[first..]);
        }
        outcome
    }

    /// Runs ingress, again for each resubmission, and enqueues the packet and its copies.
    fn run_ingress(
        &mut self,
        mut pkt: Box<Packet>,
        (port, mut path): (u32, PacketPath),
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        let m = self.metadata;
        let output = &m.ingress_output;
        let mut resubmits = 0;
        loop {
            set_parser_input(&m.ingress_parser, &mut pkt.mem, port, path);
            self.parse(INGRESS, (&m.ingress_parser, &m.ingress), &mut pkt, now);
            self.set_default_output(&mut pkt);
            self.core.apply(self.c, INGRESS, &mut pkt, now, &[]);
            if let Some(failure) = self.core.ingress_failure(&pkt) {
                self.core.pool.put(pkt);
                return failure;
            }
            pkt.exit = false;
            if output.common.clone.get64(&pkt.mem) != 0 {
                self.assign_handed(&m.handed.clone_i2e, &mut pkt, now);
                self.clone_at_ingress(&pkt, out);
            }
            if output.common.drop.get64(&pkt.mem) != 0 {
                self.core.pool.put(pkt);
                return IngressOutcome::Dropped;
            }
            if output.resubmit.get64(&pkt.mem) == 0 {
                break;
            }
            self.assign_handed(&m.handed.resubmit, &mut pkt, now);
            resubmits += 1;
            if resubmits > self.core.options.max_resubmits {
                self.core.pool.put(pkt);
                return IngressOutcome::TooManyResubmits;
            }
            if let Some(trace) = self.core.trace() {
                trace.resubmitted(None);
            }
            let mut next = self.core.pool.get();
            std::mem::swap(&mut next.frame, &mut pkt.frame);
            next.begin(&self.c.layout);
            preserve(&m.handed.resubmit, &pkt.mem, &mut next.mem);
            self.core.pool.put(std::mem::replace(&mut pkt, next));
            path = PacketPath::Resubmit;
        }
        self.enqueue(pkt, now, out)
    }

    /// Lets the deparser assign the metadata that it hands to the next parser, if there are any.
    fn assign_handed(&mut self, handed: &[Field], pkt: &mut Packet, now: Nanos) {
        if !handed.is_empty() {
            self.core.run_deparser(self.c, INGRESS, pkt, now);
        }
    }

    /// Sets the decisions to their initial values (PSA 1.2, section 6.2).
    fn set_default_output(&self, pkt: &mut Packet) {
        let output = &self.metadata.ingress_output;
        let mem = &mut pkt.mem;
        output.class_of_service.set64(mem, 0);
        output.common.clone.set64(mem, 0);
        output.common.drop.set64(mem, 1);
        output.resubmit.set64(mem, 0);
        output.multicast_group.set64(mem, 0);
    }

    /// Deparses the packet, and enqueues it or its copies for a multicast group.
    fn enqueue(
        &mut self,
        mut pkt: Box<Packet>,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        let output = &self.metadata.ingress_output;
        self.deparse(INGRESS, &mut pkt, now);
        let mut next = self.core.pool.get();
        std::mem::swap(&mut next.frame, &mut pkt.frame);
        let class_of_service = output.class_of_service.get64(&pkt.mem) as u8;
        let group = output.multicast_group.get64(&pkt.mem) as u32;
        let port = output.egress_port.get64(&pkt.mem) as u32;
        // As in BMv2, egress sees the metadata that ingress left behind, although the specification does not say so.
        next.begin_with_metadata(&self.c.layout, &pkt.mem, pkt.ingress_len);
        (next.number, next.copy) = (pkt.number, pkt.copy);
        self.core.pool.put(pkt);
        if group != 0 {
            return IngressOutcome::Multicast(self.multicast(next, group, class_of_service, out));
        }
        let path = PacketPath::NormalUnicast;
        let m = self.metadata;
        out.push(descriptor(m, next, (port, 0), class_of_service, path));
        IngressOutcome::Unicast
    }

    /// Clones the packet as it was received, if the session exists.
    fn clone_at_ingress(&mut self, pkt: &Packet, out: &mut Vec<Descriptor>) {
        let number = self.metadata.ingress_output.common.clone_session;
        let number = number.get64(&pkt.mem) as u32;
        let Some(session) = self.core.state.pre.session(number) else {
            return;
        };
        let mut copy = self.core.pool.get();
        copy.reset(&self.c.layout, &pkt.frame);
        preserve(&self.metadata.handed.clone_i2e, &pkt.mem, &mut copy.mem);
        self.enqueue_clones(copy, &session, PacketPath::CloneI2e, out);
    }
}
