// SPDX-License-Identifier: Apache-2.0
//! The traffic manager: unicast, multicast, copies to the CPU, and mirrors.

use super::{DROP_COPY_TO_CPU, DROP_MIRROR, DROP_PACKET, EGRESS, NO_PORT, Tna};
use crate::frame::ROOM;
use crate::packet::{Descriptor, Front, Handoff, IngressOutcome, InstanceType, Packet};
use crate::phv::Field;
use crate::program::tna::Chip;
use crate::state::multicast::Request;

/// Returns the value of a field that a program need not declare.
fn get(field: Option<Field>, pkt: &Packet) -> u64 {
    field.map_or(0, |f| f.get64(&pkt.mem))
}

/// Takes the request for a mirror from a packet. Returns `None` without a request, or if `drop_ctl` drops it.
pub(super) fn requested_mirror(pkt: &mut Packet, drop: u64) -> Option<(u32, Front)> {
    match pkt.mirror {
        Some(_) if drop & DROP_MIRROR == 0 => pkt.mirror.take(),
        _ => None,
    }
}

impl Tna<'_> {
    /// Enqueues the deparsed packet and its copies as its metadata ask for.
    pub(super) fn enqueue(
        &mut self,
        mut pkt: Box<Packet>,
        drop: u64,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        let tm = &self.metadata.for_tm;
        pkt.len = pkt.frame.len() as u32;
        let handoff = Handoff {
            qid: get(tm.qid, &pkt) as u8,
            class_of_service: get(tm.ingress_cos, &pkt) as u8,
            bypasses_egress: get(tm.bypass_egress, &pkt) != 0,
            ..Handoff::default()
        };
        let port = tm.ucast_egress_port.get64(&pkt.mem);
        let groups = [tm.mcast_grp_a, tm.mcast_grp_b].map(|group| get(group, &pkt) as u32);
        let copies_to_cpu = get(tm.copy_to_cpu, &pkt) != 0 && drop & DROP_COPY_TO_CPU == 0;
        if copies_to_cpu {
            let handoff = Handoff {
                class_of_service: get(tm.icos_for_copy_to_cpu, &pkt) as u8,
                ..handoff
            };
            let chip = self.metadata.chip;
            let port = self.core.options.cpu_port.unwrap_or(chip.cpu_port());
            let copy = self.copy(&pkt, handoff);
            out.push(descriptor(copy, port, InstanceType::Replication));
        }
        let mut outcome = match copies_to_cpu {
            true => IngressOutcome::Unicast,
            false => IngressOutcome::Dropped,
        };
        if drop & DROP_PACKET != 0 {
            self.core.pool.put(pkt);
            return outcome;
        }
        if groups != [0, 0] {
            let request = self.request(&pkt);
            let first = out.len();
            for group in groups.into_iter().filter(|&group| group != 0) {
                let copy = self.copy(&pkt, handoff);
                self.multicast(copy, (group, &request), out);
            }
            outcome = IngressOutcome::Multicast(out.len() - first);
        }
        if port == NO_PORT {
            self.core.pool.put(pkt);
            return outcome;
        }
        pkt.handoff = handoff;
        out.push(descriptor(pkt, port as u32, InstanceType::Normal));
        IngressOutcome::Unicast
    }

    fn copy(&mut self, pkt: &Packet, handoff: Handoff) -> Box<Packet> {
        let mut copy = self.core.pool.get();
        copy.copy_from(pkt);
        copy.handoff = handoff;
        copy
    }

    /// Returns what the metadata of a packet say about its copies.
    fn request(&self, pkt: &Packet) -> Request {
        let tm = &self.metadata.for_tm;
        let both = |fields: [Option<Field>; 2]| fields.map(|field| get(field, pkt));
        Request {
            rid: get(tm.rid, pkt) as u16,
            exclusions: both(tm.exclusions).map(|id| id as u16),
            hashes: both(tm.mcast_hashes).map(|hash| hash as u32),
            hashes_rid: self.metadata.chip == Chip::Tofino2,
        }
    }

    fn multicast(
        &mut self,
        pkt: Box<Packet>,
        (group, request): (u32, &Request),
        out: &mut Vec<Descriptor>,
    ) {
        let state = &self.core.state;
        let replicas = match state.multicast.tree(group) {
            Some(tree) => {
                let replicas = state.multicast.replicas(&tree, request, &state.ports_down);
                Some(replicas.into())
            }
            None => state.pre.group(group),
        };
        let mut is_first = true;
        let replicas = replicas.as_deref().unwrap_or(&[]);
        self.core.replicate(pkt, replicas, |mut copy, replica| {
            copy.handoff.rid = replica.instance;
            copy.handoff.is_first_replica = std::mem::take(&mut is_first);
            out.push(descriptor(copy, replica.port, InstanceType::Replication));
        });
    }

    /// Returns true if the packet asks for a mirror of what leaves the gress, instead of what entered it.
    pub(super) fn mirrors_outgoing(&self, gress: usize, pkt: &Packet) -> bool {
        match self.metadata.gress_of(gress).mirror_io_select {
            Some(f) => f.get64(&pkt.mem) != 0,
            None => gress == EGRESS,
        }
    }

    /// Enqueues the copies of a mirror session, if it exists.
    pub(super) fn mirror(
        &mut self,
        (session, front): &(u32, Front),
        frame: &[u8],
        kind: InstanceType,
        out: &mut Vec<Descriptor>,
    ) {
        let Some(session) = self.core.state.pre.session(*session) else {
            return;
        };
        let most = match session.truncate_to {
            0 => usize::MAX,
            most => most as usize,
        };
        let rest = frame.len().min(most.saturating_sub(front.len()));
        let mut copy = self.core.pool.get();
        copy.frame.set(ROOM, front);
        copy.frame.extend(&frame[..rest]);
        copy.frame.truncate(most);
        copy.len = copy.frame.len() as u32;
        copy.handoff = Handoff {
            class_of_service: session.class_of_service,
            ..Handoff::default()
        };
        self.core
            .replicate(copy, &session.replicas, |mut copy, replica| {
                copy.handoff.rid = replica.instance;
                let mut d = descriptor(copy, replica.port, kind);
                d.priority = session.class_of_service;
                out.push(d);
            });
    }
}

/// Makes the descriptor of a deparsed packet.
fn descriptor(packet: Box<Packet>, egress_port: u32, instance_type: InstanceType) -> Descriptor {
    Descriptor {
        egress_port,
        priority: packet.handoff.qid,
        instance_type,
        len: packet.len,
        packet,
    }
}
