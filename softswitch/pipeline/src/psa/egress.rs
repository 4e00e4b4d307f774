// SPDX-License-Identifier: Apache-2.0
//! Egress parser, control and deparser, and the packet's fate after them (PSA 1.2, section 6.5).

use super::{EGRESS, PORT_RECIRCULATE, PacketPath, Psa};
use crate::Nanos;
use crate::core::preserve;
use crate::packet::{Descriptor, EgressOutcome, EgressOutput, Packet, Recirculated};

impl Psa<'_> {
    /// Runs egress.
    pub(crate) fn egress(
        &mut self,
        d: Descriptor,
        now: Nanos,
        out: &mut EgressOutput,
    ) -> EgressOutcome {
        let m = self.metadata;
        let mut pkt = d.packet;
        self.parse(EGRESS, (&m.egress_parser, &m.egress), &mut pkt, now);
        m.egress_output.clone.set64(&mut pkt.mem, 0);
        m.egress_output.drop.set64(&mut pkt.mem, 0);
        self.core.apply(self.c, EGRESS, &mut pkt, now, &[]);
        if let Some(failure) = self.core.egress_failure(&pkt) {
            self.core.pool.put(pkt);
            return failure;
        }
        pkt.exit = false;
        let port = d.egress_port;
        m.deparser_port.set64(&mut pkt.mem, port.into());
        self.deparse(EGRESS, &mut pkt, now);
        if let Some(failure) = self.core.egress_failure(&pkt) {
            self.core.pool.put(pkt);
            return failure;
        }
        if m.egress_output.clone.get64(&pkt.mem) != 0 {
            self.clone_at_egress(&pkt, out);
        }
        if m.egress_output.drop.get64(&pkt.mem) != 0 {
            self.core.pool.put(pkt);
            return EgressOutcome::Dropped;
        }
        if port == PORT_RECIRCULATE {
            let mut next = self.core.pool.get();
            next.reset(&self.c.layout, &pkt.frame);
            preserve(&m.handed.recirculate, &pkt.mem, &mut next.mem);
            self.core.pool.put(pkt);
            return EgressOutcome::Recirculate(Recirculated {
                ingress_port: PORT_RECIRCULATE,
                packet: next,
            });
        }
        self.core.transmit(pkt, port, out)
    }

    /// Clones the packet as the deparser left it, if the session exists.
    fn clone_at_egress(&mut self, pkt: &Packet, out: &mut EgressOutput) {
        let number = self.metadata.egress_output.clone_session;
        let number = number.get64(&pkt.mem) as u32;
        let Some(session) = self.core.state.pre.session(number) else {
            return;
        };
        let mut copy = self.core.pool.get();
        copy.reset(&self.c.layout, &pkt.frame);
        preserve(&self.metadata.handed.clone_e2e, &pkt.mem, &mut copy.mem);
        self.enqueue_clones(copy, &session, PacketPath::CloneE2e, &mut out.clones);
    }
}
