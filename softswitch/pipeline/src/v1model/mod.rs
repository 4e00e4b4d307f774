// SPDX-License-Identifier: Apache-2.0
//! The v1model architecture: the order of its blocks, its standard metadata, and what happens to a packet between the
//! blocks.

mod egress;
mod ingress;
mod replication;

use crate::Nanos;
use crate::core::Core;
use crate::packet::Packet;
use crate::program::Compiled;
use crate::program::architecture::Standard;
use crate::program::layout::set_if_present;

/// The blocks, by their position in the program.
const PARSER: usize = 0;
const INGRESS: usize = 0;
const EGRESS: usize = 1;
const DEPARSER: usize = 0;

/// A v1model switch.
pub(crate) struct V1Model<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) c: &'a Compiled,
    pub(crate) standard: &'a Standard,
}

impl V1Model<'_> {
    /// Runs the parser and verifies checksums.
    fn parse(&mut self, pkt: &mut Packet, now: Nanos) {
        let parsed = self.core.parse(self.c, PARSER, pkt, now);
        set_if_present(self.standard.parser_error, &mut pkt.mem, parsed.error);
        let is_bad = u64::from(parsed.bad_checksum);
        set_if_present(self.standard.checksum_error, &mut pkt.mem, is_bad);
    }
}
