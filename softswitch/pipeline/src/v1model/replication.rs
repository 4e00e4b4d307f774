// SPDX-License-Identifier: Apache-2.0
//! Copies: clones and multicast.

use super::{V1Model, preserve};
use crate::packet::{Descriptor, InstanceType, Packet};
use crate::program::Compiled;
use crate::program::layout::{Layout, set_if_present};
use crate::state::pre::{CloneSession, Replica};

impl V1Model {
    #[expect(clippy::too_many_arguments, reason = "the packet's context")]
    pub(super) fn enqueue_clones(
        &mut self,
        c: &Compiled,
        mut copy: Box<Packet>,
        original: &Packet,
        session: &CloneSession,
        list: u32,
        kind: InstanceType,
        out: &mut Vec<Descriptor>,
    ) {
        c.layout.clear_metadata(&mut copy.mem);
        preserve(c.field_lists.get(&list), &original.mem, &mut copy.mem);
        c.layout
            .standard
            .instance_type
            .set64(&mut copy.mem, kind as u64);
        if session.truncate_to != 0 {
            copy.truncate_to = session.truncate_to;
            copy.len = copy.len.min(session.truncate_to);
        }
        let first = out.len();
        self.replicate(c, copy, &session.replicas, kind, out);
        for d in &mut out[first..] {
            d.priority = session.class_of_service;
        }
    }

    pub(super) fn multicast(
        &mut self,
        c: &Compiled,
        mut pkt: Box<Packet>,
        group: u32,
        out: &mut Vec<Descriptor>,
    ) -> usize {
        let kind = InstanceType::Replication;
        c.layout
            .standard
            .instance_type
            .set64(&mut pkt.mem, kind as u64);
        pkt.clear_requests();
        let before = out.len();
        let replicas = self.state.pre.group(group);
        self.replicate(c, pkt, replicas.as_deref().unwrap_or(&[]), kind, out);
        out.len() - before
    }

    /// Makes one descriptor per replica.
    pub(super) fn replicate(
        &mut self,
        c: &Compiled,
        pkt: Box<Packet>,
        replicas: &[Replica],
        kind: InstanceType,
        out: &mut Vec<Descriptor>,
    ) {
        let Some((last, others)) = replicas.split_last() else {
            self.pool.put(pkt);
            return;
        };
        let rid = c.layout.standard.egress_rid;
        for r in others {
            let mut copy = self.pool.get();
            copy.copy_from(&pkt);
            set_if_present(rid, &mut copy.mem, u64::from(r.instance));
            out.push(descriptor(&c.layout, copy, r.port, kind));
        }
        let mut pkt = pkt;
        set_if_present(rid, &mut pkt.mem, u64::from(last.instance));
        out.push(descriptor(&c.layout, pkt, last.port, kind));
    }
}

pub(super) fn descriptor(
    layout: &Layout,
    packet: Box<Packet>,
    egress_port: u32,
    instance_type: InstanceType,
) -> Descriptor {
    let priority = layout.standard.priority.map_or(0, |f| f.get64(&packet.mem)) as u8;
    Descriptor {
        egress_port,
        priority,
        instance_type,
        len: packet.len,
        packet,
    }
}
