// SPDX-License-Identifier: Apache-2.0
//! Copies: clones and multicast.

use super::{PacketPath, Psa, set_parser_input};
use crate::packet::{Descriptor, Packet};
use crate::program::architecture::PsaMetadata;
use crate::state::pre::{CloneSession, Replica};

impl Psa<'_> {
    /// Enqueues the copies of a clone session.
    pub(super) fn enqueue_clones(
        &mut self,
        mut copy: Box<Packet>,
        session: &CloneSession,
        path: PacketPath,
        out: &mut Vec<Descriptor>,
    ) {
        if session.truncate_to != 0 {
            copy.frame.truncate(session.truncate_to as usize);
            copy.len = copy.frame.len() as u32;
        }
        self.replicate(copy, &session.replicas, session.class_of_service, path, out);
    }

    /// Enqueues the copies of a multicast group, and returns their number.
    pub(super) fn multicast(
        &mut self,
        pkt: Box<Packet>,
        group: u32,
        class_of_service: u8,
        out: &mut Vec<Descriptor>,
    ) -> usize {
        let before = out.len();
        let replicas = self.core.state.pre.group(group);
        let replicas = replicas.as_deref().unwrap_or(&[]);
        let path = PacketPath::NormalMulticast;
        self.replicate(pkt, replicas, class_of_service, path, out);
        out.len() - before
    }

    /// Makes one descriptor per replica.
    fn replicate(
        &mut self,
        pkt: Box<Packet>,
        replicas: &[Replica],
        class_of_service: u8,
        path: PacketPath,
        out: &mut Vec<Descriptor>,
    ) {
        let m = self.metadata;
        self.core.replicate(pkt, replicas, |copy, replica| {
            let to = (replica.port, replica.instance);
            out.push(descriptor(m, copy, to, class_of_service, path));
        });
    }
}

/// Makes the descriptor of an unparsed packet for a port and an instance.
pub(super) fn descriptor(
    m: &PsaMetadata,
    mut packet: Box<Packet>,
    (egress_port, instance): (u32, u16),
    class_of_service: u8,
    path: PacketPath,
) -> Descriptor {
    let mem = &mut packet.mem;
    set_parser_input(&m.egress_parser, mem, egress_port, path);
    m.instance.set64(mem, instance.into());
    m.class_of_service.set64(mem, class_of_service.into());
    Descriptor {
        egress_port,
        priority: class_of_service,
        instance_type: path.instance_type(),
        len: packet.len,
        packet,
    }
}
