// SPDX-License-Identifier: Apache-2.0
//! Records the beginning and the end of a pass.

use super::{Enqueued, Outcome, Pass};
use crate::Nanos;
use crate::core::Core;
use crate::layout::Layout;
use crate::packet::{Descriptor, EgressOutcome, IngressOutcome, InstanceType};
use crate::program::Compiled;

fn enqueued(packet: u64, made: &mut [Descriptor]) -> Vec<Enqueued> {
    let each = made.iter_mut().map(|d| {
        d.state.number = packet;
        Enqueued {
            port: d.egress_port,
            instance: d.instance_type,
            length: d.len,
        }
    });
    each.collect()
}

fn instance(layout: &Layout, mem: &[u8]) -> InstanceType {
    use InstanceType::{
        Coalesced, EgressClone, IngressClone, Normal, Recirculated, Replication, Resubmitted,
    };
    let all = [
        Normal,
        IngressClone,
        EgressClone,
        Coalesced,
        Recirculated,
        Replication,
        Resubmitted,
    ];
    let number = layout.standard.instance_type.get64(mem);
    all.into_iter()
        .find(|&t| t as u64 == number)
        .unwrap_or(Normal)
}

impl Core {
    /// Pauses recording while the parser runs for a clone, which repeats the original's steps.
    pub(crate) fn mute_trace(&mut self, muted: bool) {
        if let Some(trace) = &mut self.externs.trace {
            trace.muted = muted;
        }
    }

    /// Records the beginning of ingress; `number` is the number of a recirculated packet, or 0.
    pub(crate) fn trace_ingress(
        &mut self,
        c: &Compiled,
        number: u64,
        mem: &[u8],
        port: u32,
        length: usize,
        now: Nanos,
    ) {
        if let Some(trace) = &mut self.externs.trace {
            let instance = instance(&c.layout, mem);
            let packet = match number {
                0 if instance != InstanceType::Recirculated => trace.next_packet(),
                known => known,
            };
            trace.begin(packet, Pass::Ingress, port, instance, now, length as u32);
        }
    }

    /// Records the end of ingress and the enqueued packets, `made`.
    pub(crate) fn trace_ingress_end(
        &mut self,
        c: &Compiled,
        outcome: IngressOutcome,
        made: &mut [Descriptor],
    ) {
        let Some(trace) = &mut self.externs.trace else {
            return;
        };
        let group = c.layout.standard.mcast_grp;
        let group = group.map_or(0, |f| f.get64(&trace.before)) as u32;
        let port = c.layout.standard.egress_spec.get64(&trace.before) as u32;
        let by = trace.egress_spec_by.take();
        if let Some(current) = &mut trace.current {
            current.enqueued = enqueued(current.packet, made);
            current.outcome = match outcome {
                IngressOutcome::Unicast => Outcome::Unicast { port },
                IngressOutcome::Multicast(copies) => Outcome::Multicast { group, copies },
                IngressOutcome::Dropped => Outcome::Dropped { by },
                IngressOutcome::TooLong => Outcome::TooLong,
                IngressOutcome::TooManyResubmits => Outcome::TooManyResubmits,
                IngressOutcome::AssertionFailed => Outcome::AssertionFailed,
            };
        }
        trace.end();
    }

    /// Records the beginning of egress.
    pub(crate) fn trace_egress(&mut self, d: &Descriptor, now: Nanos) {
        if let Some(trace) = &mut self.externs.trace {
            let (port, kind) = (d.egress_port, d.instance_type);
            trace.begin(d.state.number, Pass::Egress, port, kind, now, d.len);
        }
    }

    /// Records a tail drop, which happens at the end of the pass that enqueued the packet.
    pub(crate) fn trace_tail_drop(&mut self, d: &Descriptor) {
        let Some(trace) = &mut self.externs.trace else {
            return;
        };
        let (port, kind, now) = (d.egress_port, d.instance_type, trace.time);
        trace.begin(d.state.number, Pass::Egress, port, kind, now, d.len);
        if let Some(current) = &mut trace.current {
            current.outcome = Outcome::TailDrop;
        }
        trace.end();
    }

    /// Records the end of egress, with the length in bytes of the frame, if any, and the enqueued clones.
    pub(crate) fn trace_egress_end(
        &mut self,
        outcome: &mut EgressOutcome,
        length: usize,
        clones: &mut [Descriptor],
    ) {
        let Some(trace) = &mut self.externs.trace else {
            return;
        };
        let by = trace.egress_spec_by.take();
        if let Some(current) = &mut trace.current {
            current.enqueued = enqueued(current.packet, clones);
            current.outcome = match outcome {
                EgressOutcome::Transmit { port } => Outcome::Transmitted {
                    port: *port,
                    length,
                },
                EgressOutcome::Dropped => Outcome::Dropped { by },
                EgressOutcome::AssertionFailed => Outcome::AssertionFailed,
                EgressOutcome::Recirculate(r) => {
                    r.state.number = current.packet;
                    Outcome::Recirculated
                }
            };
        }
        trace.end();
    }
}
