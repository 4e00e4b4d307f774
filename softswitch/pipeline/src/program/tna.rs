// SPDX-License-Identifier: Apache-2.0
//! The metadata of the Tofino Native Architecture, and the headers that the chip puts in front of packets.

use std::ops::Range;

use crate::phv::{Field, mask64};
use crate::program::layout::HeaderId;
use crate::program::pipelines::Pipelines;

/// The chip that a program was written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chip {
    Tofino1,
    Tofino2,
}

/// Number of the bits of a port that identify it within its pipe.
pub(crate) const LOCAL_PORT_BITS: u32 = 7;

/// Number of the bits of a queue's number within its pipe that identify it among those of its port.
pub(crate) const QUEUE_BITS: u32 = 4;

impl Chip {
    /// Returns the chip of an architecture; `None` for architectures without a chip.
    pub(crate) fn of(architecture: &str) -> Option<Self> {
        let mut all = [Self::Tofino1, Self::Tofino2].into_iter();
        all.find(|chip| chip.architecture() == architecture)
    }

    /// Returns the name of the chip's architecture.
    pub(crate) fn architecture(self) -> &'static str {
        match self {
            Self::Tofino1 => "tna",
            Self::Tofino2 => "t2na",
        }
    }

    /// Returns the number of bytes between the ingress intrinsic header and the packet: port metadata or resubmit data.
    pub(crate) fn port_metadata_bytes(self) -> usize {
        match self {
            Self::Tofino1 => 8,
            Self::Tofino2 => 24,
        }
    }

    /// Returns the number of bytes that a resubmitted packet can carry.
    pub(crate) fn resubmit_bytes(self) -> usize {
        match self {
            Self::Tofino1 => 8,
            Self::Tofino2 => 16,
        }
    }

    /// Returns the number of bits of an application's number in headers of the packet generator.
    pub(crate) fn generator_app_bits(self) -> u32 {
        match self {
            Self::Tofino1 => 3,
            Self::Tofino2 => 4,
        }
    }

    /// Returns the number of applications of a packet generator.
    pub(crate) fn generator_apps(self) -> u32 {
        1 << self.generator_app_bits()
    }

    /// Returns the CPU port unless the options name another.
    pub(crate) fn cpu_port(self) -> u32 {
        match self {
            Self::Tofino1 => 64,
            Self::Tofino2 => 0,
        }
    }

    /// Returns true if packets that leave through a port enter ingress again from this port.
    pub(crate) fn recirculates(self, port: u32) -> bool {
        let local = port & ((1 << LOCAL_PORT_BITS) - 1);
        local
            == match self {
                Self::Tofino1 => 68,
                Self::Tofino2 => 6,
            }
    }
}

/// The metadata of all blocks.
#[derive(Debug, Clone)]
pub(crate) struct TnaMetadata {
    pub(crate) chip: Chip,
    pub(crate) pipelines: Pipelines,
    pub(crate) ingress: TnaGress,
    pub(crate) egress: TnaGress,
    pub(crate) for_tm: TnaForTm,
    /// The metadata of ghost threads, if the program has any (Tofino 2).
    pub(crate) ghost: Option<TnaGhost>,
    /// Address and length of the packet that the ingress deparser has generated (Tofino 2).
    pub(crate) generated: [Option<Field>; 2],
    /// Whether the program handles parser errors of ingress, so that these packets stay.
    pub(crate) handles_parser_errors: bool,
}

/// The number of gresses, whose blocks alternate in a program.
pub(crate) const GRESSES: usize = 2;

impl TnaMetadata {
    /// Returns the metadata of the gress to which a parser or deparser belongs, by its position in the program.
    pub(crate) fn gress_of(&self, block: usize) -> &TnaGress {
        match block % GRESSES {
            0 => &self.ingress,
            _ => &self.egress,
        }
    }
}

/// The metadata of one gress.
#[derive(Debug, Clone)]
pub(crate) struct TnaGress {
    /// The header in front of the packets that the parser receives.
    pub(crate) intrinsic: IntrinsicHeader,
    pub(crate) global_tstamp: Option<Field>,
    pub(crate) parser_err: Option<Field>,
    pub(crate) drop_ctl: Field,
    /// True to mirror the outgoing packet instead of the incoming one (Tofino 2).
    pub(crate) mirror_io_select: Option<Field>,
    /// The parts of a packet's state to which the blocks of this gress refer.
    pub(crate) used_parts: Vec<Range<usize>>,
}

/// The metadata of a ghost thread: a queue and its length.
#[derive(Debug, Clone)]
pub(crate) struct TnaGhost {
    /// Number of versions of a program's registers: 2 if the program distinguishes them by `ping_pong`, else 1.
    pub(crate) versions: u64,
    pub(crate) ping_pong: Option<Field>,
    pub(crate) qlength: Option<Field>,
    pub(crate) qid: Option<Field>,
    pub(crate) pipe_id: Option<Field>,
}

/// The ingress metadata for the traffic manager.
#[derive(Debug, Clone)]
pub(crate) struct TnaForTm {
    pub(crate) ucast_egress_port: Field,
    pub(crate) bypass_egress: Option<Field>,
    pub(crate) ingress_cos: Option<Field>,
    pub(crate) qid: Option<Field>,
    pub(crate) icos_for_copy_to_cpu: Option<Field>,
    pub(crate) copy_to_cpu: Option<Field>,
    pub(crate) mcast_grp_a: Option<Field>,
    pub(crate) mcast_grp_b: Option<Field>,
    pub(crate) rid: Option<Field>,
    pub(crate) exclusions: [Option<Field>; 2],
    pub(crate) mcast_hashes: [Option<Field>; 2],
}

/// A field that the chip fills; the others are zero.
#[repr(usize)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IntrinsicField {
    ResubmitFlag,
    IngressPort,
    IngressMacTstamp,
    EgressPort,
    EnqQdepth,
    EnqTstamp,
    DeqQdepth,
    DeqTimedelta,
    EgressRid,
    EgressRidFirst,
    EgressQid,
    EgressCos,
    PktLength,
}

/// The values of all fields of an intrinsic header, of which the low bits count.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct IntrinsicValues([u64; IntrinsicField::COUNT]);

impl IntrinsicValues {
    /// Returns these values with some others.
    pub(crate) fn of<const N: usize>(fields: [(IntrinsicField, u64); N]) -> Self {
        let mut values = Self::default();
        for (field, value) in fields {
            values.0[field as usize] = value;
        }
        values
    }

    fn get(&self, field: IntrinsicField) -> u64 {
        self.0[field as usize]
    }
}

impl IntrinsicField {
    const COUNT: usize = Self::PktLength as usize + 1;

    /// Returns the offset in bytes of the field's value in [`IntrinsicValues`].
    pub(crate) fn offset(self) -> usize {
        self as usize * size_of::<u64>()
    }

    /// Returns the field of this name in the architecture.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "resubmit_flag" => Self::ResubmitFlag,
            "ingress_port" => Self::IngressPort,
            "ingress_mac_tstamp" => Self::IngressMacTstamp,
            "egress_port" => Self::EgressPort,
            "enq_qdepth" => Self::EnqQdepth,
            "enq_tstamp" => Self::EnqTstamp,
            "deq_qdepth" => Self::DeqQdepth,
            "deq_timedelta" => Self::DeqTimedelta,
            "egress_rid" => Self::EgressRid,
            "egress_rid_first" => Self::EgressRidFirst,
            "egress_qid" => Self::EgressQid,
            "egress_cos" => Self::EgressCos,
            "pkt_length" => Self::PktLength,
            _ => return None,
        })
    }
}

/// The position of a field of up to 64 bits in a header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bits {
    /// The first bit.
    pub(crate) first: u32,
    pub(crate) width: u32,
}

/// The form of an intrinsic header.
#[derive(Debug, Clone, Default)]
pub(crate) struct IntrinsicHeader {
    /// The program's header, if it declares one.
    pub(crate) id: Option<HeaderId>,
    pub(crate) bytes: usize,
    /// Each field with its position, in this order.
    pub(crate) fields: Vec<(IntrinsicField, Bits)>,
    /// The fields that the program may read.
    pub(crate) mentioned: Vec<(IntrinsicField, Field)>,
}

impl IntrinsicHeader {
    /// Writes the header to the beginning of zeros.
    pub(crate) fn write(&self, to: &mut [u8], values: &IntrinsicValues) {
        // Each word is stored once, because a load of bytes that several stores have just written is slow.
        let (mut word, mut number) = (0, 0);
        for (field, bits) in &self.fields {
            let value = values.get(*field) & mask64(bits.width);
            let begin = bits.first / u64::BITS;
            if begin != number {
                store_word(to, number, word);
                (word, number) = (0, begin);
            }
            let last = bits.first + bits.width - 1;
            let (end, used) = (last / u64::BITS, last % u64::BITS + 1);
            if begin != end {
                store_word(to, begin, word | value >> used);
                (word, number) = (0, end);
            }
            word |= value << (u64::BITS - used);
        }
        store_word(to, number, word);
    }
}

/// Stores a word of a header, or its first bytes if the header ends within.
fn store_word(header: &mut [u8], number: u32, word: u64) {
    let first = number as usize * size_of::<u64>();
    for (to, byte) in header.iter_mut().skip(first).zip(word.to_be_bytes()) {
        *to = byte;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intrinsic_header_has_low_bits_of_fields() {
        let bits = |first, width| Bits { first, width };
        let header = IntrinsicHeader {
            bytes: 17,
            fields: vec![
                (IntrinsicField::EgressPort, bits(7, 9)),
                (IntrinsicField::EnqTstamp, bits(20, 12)),
                (IntrinsicField::DeqTimedelta, bits(88, 48)),
            ],
            ..IntrinsicHeader::default()
        };
        let values = IntrinsicValues::of([
            (IntrinsicField::EgressPort, 0x1ff),
            (IntrinsicField::EnqTstamp, 0xf_edcb),
            (IntrinsicField::DeqTimedelta, 0xff_0123_4567_89ab),
        ]);
        let mut out = [0; 18];
        header.write(&mut out, &values);
        let mut expected = [0; 18];
        expected[..4].copy_from_slice(&[0x01, 0xff, 0x0d, 0xcb]);
        expected[11..17].copy_from_slice(&[0x01, 0x23, 0x45, 0x67, 0x89, 0xab]);
        assert_eq!(out, expected);
    }

    #[test]
    fn each_pipe_has_a_recirculation_port() {
        let ports =
            |chip: Chip| -> Vec<u32> { (0..512).filter(|&p| chip.recirculates(p)).collect() };
        assert_eq!(ports(Chip::Tofino1), [68, 196, 324, 452]);
        assert_eq!(ports(Chip::Tofino2), [6, 134, 262, 390]);
    }
}
