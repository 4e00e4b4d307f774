// SPDX-License-Identifier: Apache-2.0
//! Copies: clones and multicast.

use super::V1Model;
use crate::core::preserve;
use crate::packet::{Descriptor, InstanceType, Packet};
use crate::program::architecture::Standard;
use crate::program::layout::set_if_present;
use crate::state::pre::{CloneSession, Replica};

impl V1Model<'_> {
    pub(super) fn enqueue_clones(
        &mut self,
        mut copy: Box<Packet>,
        original: &Packet,
        session: &CloneSession,
        list: u32,
        kind: InstanceType,
        out: &mut Vec<Descriptor>,
    ) {
        self.c.layout.clear_metadata(&mut copy.mem);
        preserve(self.c.field_list(list), &original.mem, &mut copy.mem);
        self.standard
            .instance_type
            .set64(&mut copy.mem, kind as u64);
        if session.truncate_to != 0 {
            copy.truncate_to = session.truncate_to;
            copy.len = copy.len.min(session.truncate_to);
        }
        let first = out.len();
        self.replicate(copy, &session.replicas, kind, out);
        for d in &mut out[first..] {
            d.priority = session.class_of_service;
        }
    }

    pub(super) fn multicast(
        &mut self,
        mut pkt: Box<Packet>,
        group: u32,
        out: &mut Vec<Descriptor>,
    ) -> usize {
        let kind = InstanceType::Replication;
        self.standard.instance_type.set64(&mut pkt.mem, kind as u64);
        pkt.clear_requests();
        let before = out.len();
        let replicas = self.core.state.pre.group(group);
        self.replicate(pkt, replicas.as_deref().unwrap_or(&[]), kind, out);
        out.len() - before
    }

    /// Makes one descriptor per replica.
    pub(super) fn replicate(
        &mut self,
        pkt: Box<Packet>,
        replicas: &[Replica],
        kind: InstanceType,
        out: &mut Vec<Descriptor>,
    ) {
        let s = self.standard;
        self.core.replicate(pkt, replicas, |mut copy, replica| {
            set_if_present(s.egress_rid, &mut copy.mem, u64::from(replica.instance));
            out.push(descriptor(s, copy, replica.port, kind));
        });
    }
}

pub(super) fn descriptor(
    standard: &Standard,
    packet: Box<Packet>,
    egress_port: u32,
    instance_type: InstanceType,
) -> Descriptor {
    let priority = standard.priority.map_or(0, |f| f.get64(&packet.mem)) as u8;
    Descriptor {
        egress_port,
        priority,
        instance_type,
        len: packet.len,
        packet,
    }
}
