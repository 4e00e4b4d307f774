// SPDX-License-Identifier: Apache-2.0
//! The fields through which a program and its architecture exchange metadata.

use super::op::ColorCodes;
use super::tna::TnaMetadata;
use crate::frame::ROOM;
use crate::phv::Field;

/// The architecture that a program was written for.
#[derive(Debug, Clone)]
pub(crate) enum Architecture {
    V1Model(Box<Standard>),
    Psa(Box<PsaMetadata>),
    Tna(Box<TnaMetadata>),
}

impl Architecture {
    /// Returns the name of the architecture, as `softswitch-p4c --arch` has it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::V1Model(_) => "v1model",
            Self::Psa(_) => "psa",
            Self::Tna(metadata) => metadata.chip.architecture(),
        }
    }

    /// Returns the field that tells after egress whether the packet is dropped.
    pub(crate) fn egress_fate(&self) -> Field {
        match self {
            Self::V1Model(standard) => standard.egress_spec,
            Self::Psa(metadata) => metadata.egress_output.drop,
            Self::Tna(metadata) => metadata.egress.drop_ctl,
        }
    }

    /// Returns the fields that the switch sets before a control, in the order in which it passes their values.
    pub(crate) fn inputs(&self, control: usize) -> &[Option<Field>] {
        match self {
            Self::V1Model(standard) => &standard.inputs[control],
            Self::Psa(_) | Self::Tna(_) => &[],
        }
    }

    /// Returns the number of bytes of room in front of received frames, where the chip puts its own headers.
    pub(crate) fn room(&self) -> usize {
        match self {
            Self::V1Model(_) | Self::Psa(_) => 0,
            Self::Tna(_) => ROOM,
        }
    }

    /// Returns the numbers of colours in metadata.
    pub(crate) fn color_codes(&self) -> ColorCodes {
        match self {
            Self::V1Model(_) => [0, 1, 2],
            Self::Psa(_) => [1, 2, 0],
            Self::Tna(_) => [0, 1, 3],
        }
    }
}

/// v1model's standard metadata. Optional fields are present if the program mentions them.
#[derive(Debug, Clone)]
pub(crate) struct Standard {
    pub(crate) ingress_port: Field,
    pub(crate) egress_spec: Field,
    pub(crate) instance_type: Field,
    pub(crate) packet_length: Field,
    pub(crate) mcast_grp: Option<Field>,
    pub(crate) egress_rid: Option<Field>,
    pub(crate) priority: Option<Field>,
    pub(crate) ingress_timestamp: Option<Field>,
    /// The fields that the switch sets before each control, in the order of the values in `v1model`.
    pub(crate) inputs: [Vec<Option<Field>>; 2],
}

/// PSA's metadata (PSA 1.2, section 4).
#[derive(Debug, Clone)]
pub(crate) struct PsaMetadata {
    pub(crate) ingress_parser: PsaParserInput,
    pub(crate) ingress: PsaInput,
    pub(crate) ingress_output: PsaIngressOutput,
    pub(crate) egress_parser: PsaParserInput,
    pub(crate) egress: PsaInput,
    pub(crate) instance: Field,
    pub(crate) class_of_service: Field,
    pub(crate) egress_output: PsaOutput,
    /// The egress port, as the egress deparser sees it.
    pub(crate) deparser_port: Field,
    pub(crate) handed: PsaHanded,
}

/// Fields that a deparser hands to the next parser. The metadata of normal packets stay in place.
#[derive(Debug, Clone, Default)]
pub(crate) struct PsaHanded {
    pub(crate) clone_i2e: Vec<Field>,
    pub(crate) clone_e2e: Vec<Field>,
    pub(crate) resubmit: Vec<Field>,
    pub(crate) recirculate: Vec<Field>,
}

/// Input of a parser.
#[derive(Debug, Clone)]
pub(crate) struct PsaParserInput {
    pub(crate) port: Field,
    pub(crate) packet_path: Field,
}

/// Input of a control.
#[derive(Debug, Clone)]
pub(crate) struct PsaInput {
    pub(crate) port: Field,
    pub(crate) packet_path: Field,
    pub(crate) timestamp: Field,
    pub(crate) parser_error: Field,
}

/// The decisions that both controls make.
#[derive(Debug, Clone)]
pub(crate) struct PsaOutput {
    pub(crate) clone: Field,
    pub(crate) clone_session: Field,
    pub(crate) drop: Field,
}

/// The decisions of the ingress control.
#[derive(Debug, Clone)]
pub(crate) struct PsaIngressOutput {
    pub(crate) common: PsaOutput,
    pub(crate) class_of_service: Field,
    pub(crate) resubmit: Field,
    pub(crate) multicast_group: Field,
    pub(crate) egress_port: Field,
}
