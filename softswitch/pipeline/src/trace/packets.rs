// SPDX-License-Identifier: Apache-2.0
//! Records the beginning and the end of a pass.

use super::{Enqueued, Outcome, Pass, Recorder};
use crate::Nanos;
use crate::packet::{Descriptor, EgressOutcome, IngressOutcome, InstanceType, Packet};
use crate::phv::Field;

impl Recorder {
    /// Numbers the packets that a pass of a packet has made.
    fn enqueued(&mut self, (packet, copy): (u64, u32), made: &mut [Descriptor]) -> Vec<Enqueued> {
        let each = made.iter_mut().map(|d| {
            d.packet.number = packet;
            d.packet.copy = match d.instance_type {
                InstanceType::Normal => copy,
                _ => self.next_copy(packet),
            };
            Enqueued {
                port: d.egress_port,
                instance: d.instance_type,
                length: d.len,
            }
        });
        each.collect()
    }

    /// Pauses or resumes recording.
    pub(crate) fn mute(&mut self, is_muted: bool) {
        self.muted = is_muted;
    }

    /// Records the beginning of ingress; `number` is the number of a recirculated packet, or 0. A change of field `fate`
    /// may drop the packet.
    pub(crate) fn begin_ingress(
        &mut self,
        pkt: &Packet,
        number: u64,
        (port, instance): (u32, InstanceType),
        now: Nanos,
        fate: Field,
    ) {
        let packet = match number {
            0 if instance != InstanceType::Recirculated => (self.next_packet(), 0),
            known => (known, pkt.copy),
        };
        let length = pkt.frame.len() as u32;
        self.begin(packet, Pass::Ingress, port, instance, now, length);
        self.fate = Some(fate);
    }

    /// Records the end of ingress and the enqueued packets, `made`. The packet's multicast group is in field `group`.
    pub(crate) fn end_ingress(
        &mut self,
        outcome: IngressOutcome,
        group: Option<Field>,
        made: &mut [Descriptor],
    ) {
        let group = group.map_or(0, |f| f.get64(&self.before)) as u32;
        // Clones come first.
        let port = made.last().map_or(0, |d| d.egress_port);
        let by = self.fate_by.take();
        if let Some(mut current) = self.current.take() {
            current.enqueued = self.enqueued((current.packet, current.copy), made);
            current.outcome = match outcome {
                IngressOutcome::Unicast => Outcome::Unicast { port },
                IngressOutcome::Multicast(copies) => Outcome::Multicast { group, copies },
                IngressOutcome::Dropped => Outcome::Dropped { by },
                IngressOutcome::TooLong => Outcome::TooLong,
                IngressOutcome::TooManyResubmits => Outcome::TooManyResubmits,
                IngressOutcome::TooManyIterations => Outcome::TooManyIterations,
                IngressOutcome::ParserError => Outcome::ParserError,
                IngressOutcome::AssertionFailed => Outcome::AssertionFailed,
            };
            self.current = Some(current);
        }
        self.end();
    }

    /// Records the beginning of egress. A change of field `fate` may drop the packet.
    pub(crate) fn begin_egress(&mut self, d: &Descriptor, now: Nanos, fate: Field) {
        self.dequeued(d, now);
        self.fate = Some(fate);
    }

    fn dequeued(&mut self, d: &Descriptor, now: Nanos) {
        let (port, kind) = (d.egress_port, d.instance_type);
        let packet = (d.packet.number, d.packet.copy);
        self.begin(packet, Pass::Egress, port, kind, now, d.len);
    }

    /// Records a tail drop, which happens at the end of the pass that enqueued the packet.
    pub(crate) fn tail_drop(&mut self, d: &Descriptor) {
        self.dequeued(d, self.time);
        if let Some(current) = &mut self.current {
            current.outcome = Outcome::TailDrop;
        }
        self.end();
    }

    /// Records the end of egress, with the length in bytes of the frame, if any, and the enqueued clones.
    pub(crate) fn end_egress(
        &mut self,
        outcome: &mut EgressOutcome,
        length: usize,
        clones: &mut [Descriptor],
    ) {
        let by = self.fate_by.take();
        if let Some(mut current) = self.current.take() {
            current.enqueued = self.enqueued((current.packet, current.copy), clones);
            current.outcome = match outcome {
                EgressOutcome::Transmit { port } => Outcome::Transmitted {
                    port: *port,
                    length,
                },
                EgressOutcome::Dropped => Outcome::Dropped { by },
                EgressOutcome::TooManyIterations => Outcome::TooManyIterations,
                EgressOutcome::AssertionFailed => Outcome::AssertionFailed,
                EgressOutcome::Recirculate(r) => {
                    (r.packet.number, r.packet.copy) = (current.packet, current.copy);
                    Outcome::Recirculated
                }
            };
            self.current = Some(current);
        }
        self.end();
    }
}
