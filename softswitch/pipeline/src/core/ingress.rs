// SPDX-License-Identifier: Apache-2.0
//! Parser, checksum verification, ingress, and the packet's fate after it.

use super::replication::descriptor;
use super::{Core, preserve, set};
use crate::Nanos;
use crate::digest::Digest;
use crate::info::DigestId;
use crate::machine::Machine;
use crate::packet::{Descriptor, IngressOutcome, InstanceType, State};
use crate::program::Compiled;
use crate::value::Value;

impl Core {
    pub(crate) fn run_ingress(
        &mut self,
        c: &Compiled,
        mut pkt: Box<State>,
        port: u64,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        let s = &c.layout.standard;
        let mut resubmits = 0;
        loop {
            self.parse(c, &mut pkt, now);
            self.apply(c, c.ingress, &mut pkt, now);
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
            if let Some(trace) = &mut self.externs.trace {
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

    /// Runs the parser and verifies checksums.
    pub(super) fn parse(&mut self, c: &Compiled, pkt: &mut State, now: Nanos) {
        if self.parse_natively(c, pkt, now) {
            return;
        }
        let mut m = Machine {
            layout: &c.layout,
            calculations: &c.calculations,
            externs: &mut self.externs,
            pkt,
            now,
        };
        if let Some(trace) = &mut m.externs.trace {
            trace.look(&m.pkt.mem);
        }
        let error = c.parser.parse(
            &mut m,
            &self.value_sets,
            self.options.max_parser_states,
            &mut self.key,
        );
        m.trace_changes(true);
        if error != c.parser.errors.no_error
            && let Some(trace) = &mut m.externs.trace
        {
            trace.parser_error(c, error);
        }
        let mut bad_checksum = false;
        for sum in c.checksums.iter().filter(|s| s.verify) {
            let env = &m.env(&[]);
            let header = &c.layout.headers[sum.header as usize];
            if header.is_valid(env.mem) && sum.condition.as_ref().is_none_or(|c| c.eval(env)) {
                let expected = sum.field.get64(env.mem);
                let calculation = &c.calculations[sum.calculation as usize];
                let computed = m.externs.hash(calculation, &c.layout, m.pkt);
                bad_checksum |= computed != expected;
                if let Some(trace) = &mut m.externs.trace {
                    trace.checksum(&c.layout, sum, expected, computed);
                }
            }
        }
        set(c.layout.standard.parser_error, &mut pkt.mem, error);
        set(
            c.layout.standard.checksum_error,
            &mut pkt.mem,
            u64::from(bad_checksum),
        );
    }

    /// Keeps the digest that the program asked for.
    pub(super) fn digest(&mut self, c: &Compiled, pkt: &State) {
        let Some(d) = pkt.digest else { return };
        let list = c.digests[d as usize].iter();
        let fields: Vec<Value> = list.map(|f| f.to_value(&pkt.mem)).collect();
        if let Some(trace) = &mut self.externs.trace {
            trace.digest(c, d, &fields);
        }
        self.externs.digests.push(Digest {
            id: DigestId(d),
            fields,
        });
    }

    /// Makes an ingress clone: the received frame, parsed again, with the preserved metadata only.
    #[expect(clippy::too_many_arguments, reason = "the packet's context")]
    pub(super) fn clone_at_ingress(
        &mut self,
        c: &Compiled,
        pkt: &State,
        port: u64,
        session: u32,
        list: u32,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) {
        let Some(session) = self.pre.session(session) else {
            return;
        };
        let mut copy = self.pool.get();
        copy.reset(&c.layout.blank, &pkt.frame);
        c.layout.standard.ingress_port.set64(&mut copy.mem, port);
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
