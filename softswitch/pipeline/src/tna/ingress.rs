// SPDX-License-Identifier: Apache-2.0
//! Ingress parser, control and deparser, and what they ask of the traffic manager.

use super::replication::requested_mirror;
use super::{DROP_PACKET, INGRESS, Tna};
use crate::Nanos;
use crate::packet::{Descriptor, Front, IngressOutcome, InstanceType, Packet, Recirculated};
use crate::program::tna::{IntrinsicField, IntrinsicValues};

impl Tna<'_> {
    /// Runs ingress for a packet from a port, of which only the frame counts.
    pub(crate) fn receive(
        &mut self,
        port: u32,
        pkt: Box<Packet>,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        self.traced_ingress((pkt, 0), (port, InstanceType::Normal), now, out)
    }

    /// Runs ingress for a recirculated packet.
    pub(crate) fn ingress_recirculated(
        &mut self,
        recirculated: Recirculated,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        let origin = (recirculated.ingress_port, InstanceType::Recirculated);
        let pkt = recirculated.packet;
        self.select_pipe(recirculated.ingress_port);
        let chip = self.metadata.chip;
        let generator = &mut self.core.state.generator;
        generator.recirculated(recirculated.ingress_port, &pkt.frame, now, chip);
        let number = pkt.number;
        self.traced_ingress((pkt, number), origin, now, out)
    }

    /// Runs ingress as one pass of the trace. A new packet has the number 0.
    fn traced_ingress(
        &mut self,
        (pkt, number): (Box<Packet>, u64),
        origin: (u32, InstanceType),
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        let (m, first) = (self.metadata, out.len());
        if let Some(trace) = self.core.trace() {
            trace.begin_ingress(&pkt, number, origin, now, m.ingress.drop_ctl);
        }
        let outcome = self.run_ingress(pkt, origin.0, now, out);
        if let Some(trace) = self.core.trace() {
            trace.end_ingress(outcome, m.for_tm.mcast_grp_a, &mut out[first..]);
        }
        outcome
    }

    /// Runs ingress, again if the packet is resubmitted, and enqueues the packet and its copies.
    fn run_ingress(
        &mut self,
        mut pkt: Box<Packet>,
        port: u32,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        self.select_pipe(port);
        let m = self.metadata;
        let mut resubmitted: Option<Front> = None;
        loop {
            let prefix = self.add_ingress_prefix(&mut pkt, port, resubmitted.as_deref(), now);
            let error = self.parse(INGRESS, &mut pkt, prefix, now);
            if error != self.c.parser.errors.no_error && !m.handles_parser_errors {
                return self.discard(pkt, IngressOutcome::ParserError);
            }
            let block = self.block(INGRESS);
            self.core.apply(self.c, block, &mut pkt, now, &[]);
            if let Some(failure) = self.core.ingress_failure(&pkt) {
                return self.discard(pkt, failure);
            }
            self.core.state.correct_counts(&mut pkt, None);
            let bytes = self.emit(INGRESS, &mut pkt, now);
            if let Some(failure) = self.core.ingress_failure(&pkt) {
                return self.discard(pkt, failure);
            }
            self.trigger_generator(&mut pkt, now);
            let drop = m.ingress.drop_ctl.get64(&pkt.mem);
            let mirror = requested_mirror(&mut pkt, drop);
            let is_outgoing = self.mirrors_outgoing(INGRESS, &pkt);
            if let Some(mirror) = mirror.as_ref().filter(|_| !is_outgoing) {
                let received = &pkt.frame[prefix..];
                self.mirror(mirror, received, InstanceType::IngressClone, out);
            }
            // A packet is resubmitted only once: `resubmit_flag` tells two passes apart, and the second ignores requests.
            if pkt.resubmit_front.is_some() && resubmitted.is_none() && drop & DROP_PACKET == 0 {
                resubmitted = pkt.resubmit_front.take();
                if let Some(trace) = self.core.trace() {
                    trace.resubmitted(None);
                }
                pkt.frame.replace_front(prefix, &[]);
                continue;
            }
            self.core.replace_headers(self.c, block, &mut pkt, bytes);
            if let Some(mirror) = mirror.as_ref().filter(|_| is_outgoing) {
                self.mirror(mirror, &pkt.frame, InstanceType::IngressClone, out);
            }
            return self.enqueue(pkt, drop, out);
        }
    }

    fn discard(&mut self, packet: Box<Packet>, outcome: IngressOutcome) -> IngressOutcome {
        self.core.pool.put(packet);
        outcome
    }

    /// Passes the intrinsic header to the parser, and puts the port metadata or the resubmitted data in front of a packet.
    /// Returns the number of bytes in front of the packet.
    fn add_ingress_prefix(
        &self,
        pkt: &mut Packet,
        port: u32,
        resubmitted: Option<&[u8]>,
        now: Nanos,
    ) -> usize {
        let chip = self.metadata.chip;
        let values = IntrinsicValues::of([
            (IntrinsicField::ResubmitFlag, resubmitted.is_some().into()),
            (IntrinsicField::IngressPort, port.into()),
            (IntrinsicField::IngressMacTstamp, now),
        ]);
        let bytes = self.put_header(INGRESS, pkt, values, chip.port_metadata_bytes());
        let (data, most) = match resubmitted {
            Some(data) => (data, chip.resubmit_bytes()),
            None => {
                let known = self.core.state.port_metadata.get(&port);
                (
                    known.map_or(&[][..], Vec::as_slice),
                    chip.port_metadata_bytes(),
                )
            }
        };
        let length = data.len().min(most);
        let first = bytes - chip.port_metadata_bytes();
        pkt.frame[first..][..length].copy_from_slice(&data[..length]);
        bytes
    }
}
