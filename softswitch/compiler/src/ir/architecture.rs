// SPDX-License-Identifier: Apache-2.0
//! Architectures, and the kinds of their externs.

/// An architecture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Architecture {
    #[default]
    V1Model,
    Psa,
    Tna,
    T2na,
}

impl Architecture {
    /// The name on the command line, in P4Info and of the include file.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1Model => "v1model",
            Self::Psa => "psa",
            Self::Tna => "tna",
            Self::T2na => "t2na",
        }
    }

    /// Returns true for the architectures of Tofino.
    pub fn is_tofino(self) -> bool {
        matches!(self, Self::Tna | Self::T2na)
    }

    /// The kind of an extern type's instances, by the type's name.
    pub fn object_kind(self, extern_name: &str) -> ObjectKind {
        match self {
            Self::V1Model => v1model_kind(extern_name),
            Self::Psa => psa_kind(extern_name),
            Self::Tna | Self::T2na => tofino_kind(extern_name),
        }
    }
}

/// The kind of an instance of an extern type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    Counter,
    DirectCounter,
    Meter,
    DirectMeter,
    Register,
    /// A register with one cell for each entry of a table.
    DirectRegister,
    /// A register with one cell.
    RegisterParam,
    /// A method that reads and writes a cell.
    RegisterAction,
    ActionProfile,
    ActionSelector,
    Checksum16,
    Hash,
    /// The parameters of a hash.
    Polynomial,
    InternetChecksum,
    /// The checksum of TNA's parsers and deparsers.
    Checksum,
    Random,
    Digest,
    Lpf,
    DirectLpf,
    Wred,
    DirectWred,
    MathUnit,
    ParserCounter,
    ParserPriority,
    Mirror,
    Resubmit,
    /// The trigger of the packet generator in the ingress deparser.
    Pktgen,
    /// An algorithm for a table's matches, which does not change their results.
    MatchAlgorithm,
    /// A part of the package without methods.
    Engine,
    /// Any other.
    Foreign,
}

fn v1model_kind(extern_name: &str) -> ObjectKind {
    use ObjectKind as K;
    match extern_name {
        "counter" => K::Counter,
        "direct_counter" => K::DirectCounter,
        "meter" => K::Meter,
        "direct_meter" => K::DirectMeter,
        "register" => K::Register,
        "action_profile" => K::ActionProfile,
        "action_selector" => K::ActionSelector,
        "Checksum16" => K::Checksum16,
        _ => K::Foreign,
    }
}

/// Kinds that PSA and TNA have under the same names.
fn common_kind(extern_name: &str) -> ObjectKind {
    use ObjectKind as K;
    match extern_name {
        "Counter" => K::Counter,
        "DirectCounter" => K::DirectCounter,
        "Meter" => K::Meter,
        "DirectMeter" => K::DirectMeter,
        "Register" => K::Register,
        "ActionProfile" => K::ActionProfile,
        "ActionSelector" => K::ActionSelector,
        "Hash" => K::Hash,
        "Random" => K::Random,
        "Digest" => K::Digest,
        _ => K::Foreign,
    }
}

fn psa_kind(extern_name: &str) -> ObjectKind {
    match extern_name {
        "InternetChecksum" => ObjectKind::InternetChecksum,
        "PacketReplicationEngine" | "BufferingQueueingEngine" => ObjectKind::Engine,
        name => common_kind(name),
    }
}

fn tofino_kind(extern_name: &str) -> ObjectKind {
    use ObjectKind as K;
    match extern_name {
        "DirectRegister" => K::DirectRegister,
        "RegisterParam" => K::RegisterParam,
        "RegisterAction"
        | "RegisterAction2"
        | "RegisterAction3"
        | "RegisterAction4"
        | "DirectRegisterAction"
        | "DirectRegisterAction2"
        | "DirectRegisterAction3"
        | "DirectRegisterAction4"
        | "MinMaxAction"
        | "MinMaxAction2"
        | "MinMaxAction3"
        | "MinMaxAction4" => K::RegisterAction,
        "CRCPolynomial" => K::Polynomial,
        "Checksum" => K::Checksum,
        "Lpf" => K::Lpf,
        "DirectLpf" => K::DirectLpf,
        "Wred" => K::Wred,
        "DirectWred" => K::DirectWred,
        "MathUnit" => K::MathUnit,
        "ParserCounter" => K::ParserCounter,
        "ParserPriority" => K::ParserPriority,
        "Mirror" => K::Mirror,
        "Resubmit" => K::Resubmit,
        "Pktgen" => K::Pktgen,
        "Alpm" | "Atcam" => K::MatchAlgorithm,
        name => common_kind(name),
    }
}
