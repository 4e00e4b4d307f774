// SPDX-License-Identifier: Apache-2.0
//! The Portable Switch Architecture (PSA 1.2): two parsers, controls and deparsers around the packet replication engine.
//! Where the specification leaves a choice, it is that of BMv2's `psa_switch`.

mod egress;
mod ingress;
mod replication;

use crate::Nanos;
use crate::core::{Core, MICRO};
use crate::packet::{InstanceType, Packet};
use crate::program::Compiled;
use crate::program::architecture::{PsaInput, PsaMetadata, PsaParserInput};

/// The blocks of both gresses, by their position in the program.
const INGRESS: usize = 0;
const EGRESS: usize = 1;

/// The port to which packets are sent for recirculation, and from which they arrive then.
const PORT_RECIRCULATE: u32 = 0xffff_fffa;

/// A PSA switch.
pub(crate) struct Psa<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) c: &'a Compiled,
    pub(crate) metadata: &'a PsaMetadata,
}

/// `PSA_PacketPath_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PacketPath {
    Normal = 0,
    NormalUnicast = 1,
    NormalMulticast = 2,
    CloneI2e = 3,
    CloneE2e = 4,
    Resubmit = 5,
    Recirculate = 6,
}

impl PacketPath {
    /// Returns the path in the terms of all architectures.
    fn instance_type(self) -> InstanceType {
        match self {
            Self::Normal | Self::NormalUnicast => InstanceType::Normal,
            Self::NormalMulticast => InstanceType::Replication,
            Self::CloneI2e => InstanceType::IngressClone,
            Self::CloneE2e => InstanceType::EgressClone,
            Self::Resubmit => InstanceType::Resubmitted,
            Self::Recirculate => InstanceType::Recirculated,
        }
    }
}

/// Sets the input of a parser.
fn set_parser_input(input: &PsaParserInput, mem: &mut [u8], port: u32, path: PacketPath) {
    input.port.set64(mem, port.into());
    input.packet_path.set64(mem, path as u64);
}

impl Psa<'_> {
    /// Runs the parser of a gress, and sets the input of its control.
    fn parse(
        &mut self,
        gress: usize,
        (from, to): (&PsaParserInput, &PsaInput),
        pkt: &mut Packet,
        now: Nanos,
    ) {
        to.timestamp.set64(&mut pkt.mem, now / MICRO);
        self.core.state.externs.sums.fill(0);
        let parsed = self.core.parse(self.c, gress, pkt, now);
        let mem = &mut pkt.mem;
        for (from, to) in [(from.port, to.port), (from.packet_path, to.packet_path)] {
            let value = from.get64(mem);
            to.set64(mem, value);
        }
        to.parser_error.set64(mem, parsed.error);
    }

    /// Runs the deparser of a gress, which may send a digest.
    fn deparse(&mut self, gress: usize, pkt: &mut Packet, now: Nanos) {
        self.core.state.externs.sums.fill(0);
        pkt.digest = None;
        self.core.deparse(self.c, gress, pkt, now);
        self.core.digest(self.c, pkt);
    }
}
