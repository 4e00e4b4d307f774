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
    /// Runs the parser and verifies checksums. Returns the input of ingress.
    fn parse(&mut self, pkt: &mut Packet, now: Nanos) -> [u64; 2] {
        let parsed = self.core.parse(self.c, PARSER, pkt, now);
        [parsed.error, parsed.bad_checksum.into()]
    }
}
