// SPDX-License-Identifier: Apache-2.0
//! Packets that the packet generators make.

use super::Tna;
use crate::Nanos;
use crate::packet::{Descriptor, Packet};

/// Bytes of a line of the buffer, in which the deparser gives addresses.
const LINE_BYTES: u64 = 16;

impl Tna<'_> {
    /// Runs ingress for a generated packet. Returns false if none is due.
    pub(crate) fn generate(&mut self, now: Nanos, out: &mut Vec<Descriptor>) -> bool {
        for pipe in 0..self.core.state.count() {
            let next = self.core.state.state_of(pipe).generator.next_event();
            if next.is_none_or(|at| at > now) {
                continue;
            }
            self.core.state.select(pipe);
            let chip = self.metadata.chip;
            let generator = &mut self.core.state.generator;
            if let Some(generated) = generator.next_packet(now, pipe as u32, chip) {
                let mut packet = self.core.pool.get();
                packet.frame.set(0, &generated.frame);
                self.receive(generated.port, packet, now, out);
                return true;
            }
        }
        false
    }

    /// Starts the applications that wait for the header that the ingress deparser emitted, if it did.
    pub(super) fn trigger_generator(&mut self, pkt: &mut Packet, now: Nanos) {
        let Some(header) = pkt.generator_header.take() else {
            return;
        };
        let [address, length] = self.metadata.generated;
        let value = |field: Option<crate::phv::Field>| field.map_or(0, |f| f.get64(&pkt.mem));
        let source = ((value(address) * LINE_BYTES) as u32, value(length) as u32);
        self.core.state.generator.deparsed(&header, source, now);
    }
}
