// SPDX-License-Identifier: Apache-2.0
//! Parser, checksum verification, ingress, and the packet's fate after it.

use super::replication::descriptor;
use super::{MICRO, V1Model, preserve};
use crate::Nanos;
use crate::digest::Digest;
use crate::info::DigestId;
use crate::packet::{Descriptor, IngressOutcome, InstanceType, MAX_FRAME, Packet, Recirculated};
use crate::program::Compiled;
use crate::program::layout::set_if_present;
use crate::value::Value;

impl V1Model {
    /// Runs ingress for a received frame.
    pub(crate) fn ingress(
        &mut self,
        c: &Compiled,
        port: u32,
        frame: &[u8],
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        if frame.len() > MAX_FRAME {
            return IngressOutcome::TooLong;
        }
        let mut pkt = self.pool.get();
        pkt.reset(&c.layout.blank, frame);
        self.receive(c, port, pkt, now, out)
    }

    /// Runs ingress for a received frame, which it keeps in exchange for another buffer.
    pub(crate) fn ingress_keeping(
        &mut self,
        c: &Compiled,
        port: u32,
        frame: &mut Vec<u8>,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        if frame.len() > MAX_FRAME {
            return IngressOutcome::TooLong;
        }
        let mut pkt = self.pool.get();
        std::mem::swap(&mut pkt.frame, frame);
        pkt.begin(&c.layout.blank);
        self.receive(c, port, pkt, now, out)
    }

    /// Runs ingress for an unparsed packet.
    fn receive(
        &mut self,
        c: &Compiled,
        port: u32,
        mut pkt: Box<Packet>,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        let length = pkt.frame.len();
        let s = &c.layout.standard;
        s.ingress_port.set64(&mut pkt.mem, u64::from(port));
        s.packet_length.set64(&mut pkt.mem, length as u64);
        set_if_present(s.ingress_timestamp, &mut pkt.mem, now / MICRO);
        self.traced_ingress(c, (pkt, 0), u64::from(port), now, out)
    }

    /// Runs ingress for a recirculated packet.
    pub(crate) fn ingress_recirculated(
        &mut self,
        c: &Compiled,
        recirculated: Recirculated,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        let pkt = recirculated.packet;
        let number = pkt.number;
        let port = c.layout.standard.ingress_port.get64(&pkt.mem);
        self.traced_ingress(c, (pkt, number), port, now, out)
    }

    /// Runs ingress as one pass of the trace. A new packet has the number 0.
    fn traced_ingress(
        &mut self,
        c: &Compiled,
        (pkt, number): (Box<Packet>, u64),
        port: u64,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        let first = out.len();
        if let Some(trace) = self.trace() {
            trace.begin_ingress(&c.layout, &pkt, number, port as u32, now);
        }
        let outcome = self.run_ingress(c, pkt, port, now, out);
        if let Some(trace) = self.trace() {
            trace.end_ingress(&c.layout, outcome, &mut out[first..]);
        }
        outcome
    }

    /// Runs ingress, again for each resubmission, and enqueues the packet and its copies.
    fn run_ingress(
        &mut self,
        c: &Compiled,
        mut pkt: Box<Packet>,
        port: u64,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        let s = &c.layout.standard;
        let mut resubmits = 0;
        loop {
            self.parse(c, &mut pkt, now);
            self.apply(c, c.ingress, &mut pkt, now);
            if self.iterates_too_often(&pkt) {
                self.pool.put(pkt);
                return IngressOutcome::TooManyIterations;
            }
            if pkt.assertion_failed {
                self.pool.put(pkt);
                return IngressOutcome::AssertionFailed;
            }
            if let Some((session, list)) = pkt.clone_to.take() {
                self.clone_at_ingress(c, &pkt, port, session, list, now, out);
            }
            self.digest(c, &pkt);
            if pkt.resubmit == 0 {
                break;
            }
            resubmits += 1;
            if resubmits > self.options.max_resubmits {
                self.pool.put(pkt);
                return IngressOutcome::TooManyResubmits;
            }
            if let Some(trace) = &mut self.state.externs.trace {
                trace.resubmitted(pkt.resubmit);
            }
            let list = c.field_lists.get(&pkt.resubmit);
            let mut next = self.pool.get();
            std::mem::swap(&mut next.frame, &mut pkt.frame);
            next.begin(&c.layout.blank);
            preserve(list, &pkt.mem, &mut next.mem);
            s.instance_type
                .set64(&mut next.mem, InstanceType::Resubmitted as u64);
            s.packet_length
                .set64(&mut next.mem, u64::from(next.ingress_len));
            self.pool.put(std::mem::replace(&mut pkt, next));
        }
        pkt.exit = false;
        let group = s.mcast_grp.map_or(0, |f| f.get64(&pkt.mem)) as u32;
        if group != 0 {
            let copies = self.multicast(c, pkt, group, out);
            return IngressOutcome::Multicast(copies);
        }
        let egress_port = s.egress_spec.get64(&pkt.mem) as u32;
        if egress_port == self.options.drop_port {
            self.pool.put(pkt);
            return IngressOutcome::Dropped;
        }
        s.instance_type
            .set64(&mut pkt.mem, InstanceType::Normal as u64);
        out.push(descriptor(
            &c.layout,
            pkt,
            egress_port,
            InstanceType::Normal,
        ));
        IngressOutcome::Unicast
    }

    fn mute_trace(&mut self, is_muted: bool) {
        if let Some(trace) = self.trace() {
            trace.mute(is_muted);
        }
        if let Some(coverage) = &mut self.state.externs.coverage {
            coverage.mute(is_muted);
        }
    }

    /// Keeps the digest that the program asked for.
    fn digest(&mut self, c: &Compiled, pkt: &Packet) {
        let Some(d) = pkt.digest else { return };
        let list = c.digests[d as usize].iter();
        let fields: Vec<Value> = list.map(|f| f.to_value(&pkt.mem)).collect();
        if let Some(trace) = &mut self.state.externs.trace {
            trace.digest(c, d, &fields);
        }
        self.state.externs.digests.push(Digest {
            id: DigestId(d),
            fields,
        });
    }

    /// Makes an ingress clone: the received frame, parsed again, with the preserved metadata only.
    #[expect(clippy::too_many_arguments, reason = "the packet's context")]
    fn clone_at_ingress(
        &mut self,
        c: &Compiled,
        pkt: &Packet,
        port: u64,
        session: u32,
        list: u32,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) {
        let Some(session) = self.state.pre.session(session) else {
            return;
        };
        let mut copy = self.pool.get();
        copy.reset(&c.layout.blank, &pkt.frame);
        c.layout.standard.ingress_port.set64(&mut copy.mem, port);
        // The parser repeats the original's steps.
        self.mute_trace(true);
        self.parse(c, &mut copy, now);
        self.mute_trace(false);
        copy.clear_requests();
        self.enqueue_clones(
            c,
            copy,
            pkt,
            &session,
            list,
            InstanceType::IngressClone,
            out,
        );
    }
}
