// SPDX-License-Identifier: Apache-2.0
//! The interpreter of the deparser, with the checksum update before it.

use crate::Nanos;
use crate::packet::Packet;
use crate::program::Compiled;
use crate::state::State;

impl State {
    /// Updates the checksums, writes the headers of a deparser into `frame` and returns their length in bytes.
    pub(crate) fn emit(
        &mut self,
        c: &Compiled,
        deparser: usize,
        pkt: &mut Packet,
        now: Nanos,
        frame: &mut Vec<u8>,
    ) -> usize {
        let mut m = self.machine(c, pkt, now);
        for sum in c.checksums.iter().filter(|s| s.update) {
            if sum.condition.as_ref().is_none_or(|c| c.eval(&m.env(&[]))) {
                let calculation = &c.calculations[sum.calculation as usize];
                let v = m.externs.hash(calculation, &c.layout, m.pkt);
                sum.field.set64(&mut m.pkt.mem, v);
            }
        }
        let deparser = &c.deparsers[deparser];
        m.run(&deparser.ops, &[]);
        frame.clear();
        for &h in &deparser.headers {
            let header = &c.layout.headers[h as usize];
            if header.is_valid(&pkt.mem) {
                header.emit(&pkt.mem, frame);
            }
        }
        frame.len()
    }
}
