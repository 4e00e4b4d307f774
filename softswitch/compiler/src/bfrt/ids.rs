// SPDX-License-Identifier: Apache-2.0
//! Ids of objects, and of the fields that are the same in all programs. They equal those of Tofino's compiler.

use crate::ir::Architecture;

/// Priority of an entry; the smaller number wins.
pub const MATCH_PRIORITY: u64 = 65537;
/// Member of an action profile.
pub const ACTION_MEMBER_ID: u64 = 65539;
/// Group of an action selector.
pub const SELECTOR_GROUP_ID: u64 = 65540;
/// Idle time-out of an entry in milliseconds.
pub const ENTRY_TTL: u64 = 65543;
/// Whether packets hit an entry.
pub const ENTRY_HIT_STATE: u64 = 65544;
/// First of the rates and bursts of a meter that counts bytes.
pub const METER_CIR_KBPS: u64 = 65545;
/// First of the rates and bursts of a meter that counts packets.
pub const METER_CIR_PPS: u64 = 65549;
/// Bytes of a counter.
pub const COUNTER_BYTES: u64 = 65553;
/// Packets of a counter.
pub const COUNTER_PACKETS: u64 = 65554;
/// Cell of a meter.
pub const METER_INDEX: u64 = 65555;
/// Cell of a counter.
pub const COUNTER_INDEX: u64 = 65556;
/// Cell of a register.
pub const REGISTER_INDEX: u64 = 65557;
/// Cell of a low-pass filter.
pub const LPF_INDEX: u64 = 65560;
/// Cell of a random early detection.
pub const WRED_INDEX: u64 = 65561;
/// Member of the lookup in a group.
pub const FOUND_MEMBER_ID: u64 = 65562;
/// Group of the lookup in a group.
pub const LOOKUP_GROUP_ID: u64 = 65563;
/// The state of a group's member: active or not.
pub const ACTION_MEMBER_STATUS: u64 = 65564;
/// Maximum number of members of a group.
pub const MAX_GROUP_SIZE: u64 = 65565;
/// Position of a group in the table of actions.
pub const ADT_OFFSET: u64 = 65566;
/// First of the parameters of a low-pass filter.
pub const LPF_SPEC: u64 = 65567;
/// Port of port metadata.
pub const PORT_METADATA_PORT: u64 = 65575;
/// Port metadata without fields.
pub const PORT_METADATA_DEFAULT: u64 = 65576;
/// First of the parameters of a random early detection.
pub const WRED_SPEC: u64 = 65571;
/// First of the parameters of a hash's algorithm.
pub const HASH_ALGORITHM: u64 = 65577;
/// The action that chooses a known algorithm.
pub const HASH_PREDEFINED: u64 = 65581;
/// The action that sets the parameters of a CRC.
pub const HASH_USER_DEFINED: u64 = 65582;
/// Hash of the lookup in a group, and result of a hash.
pub const HASH_VALUE: u64 = 65583;
/// First of the parameters of a slice in the input of a hash.
pub const HASH_SLICE: u64 = 65584;

/// The first bytes of ids.
#[derive(Clone, Copy)]
pub struct Ids {
    is_tna: bool,
}

/// Replaces the first byte of an id.
fn with_prefix(id: u64, prefix: u64) -> u64 {
    prefix << 24 | id & 0x00ff_ffff
}

macro_rules! prefixes {
    ($($(#[$doc:meta])* $name:ident, $p4info:literal, $tna:literal;)*) => {
        impl Ids {$(
            $(#[$doc])*
            pub fn $name(self, id: u64) -> u64 {
                with_prefix(id, if self.is_tna { $tna } else { $p4info })
            }
        )*}
    };
}

prefixes! {
    /// The id of an action profile.
    profile, 0x11, 0x81;
    /// The id of the groups of an action selector.
    selector, 0x82, 0x82;
    /// The id of the lookup in the groups of an action selector.
    selector_lookup, 0x9a, 0x9a;
    /// The id of a counter.
    counter, 0x12, 0x83;
    /// The id of a meter.
    meter, 0x14, 0x85;
    /// The id of a register.
    register, 0x16, 0x8b;
    /// The id of a digest.
    digest, 0x17, 0x8e;
    /// The id of a parser value set.
    value_set, 0x03, 0xfe;
    /// The id of a random early detection.
    wred, 0x87, 0x87;
    /// The id of a low-pass filter.
    lpf, 0x89, 0x89;
    /// The id of port metadata.
    port_metadata, 0x90, 0x90;
    /// The id of a register parameter.
    register_parameter, 0x8d, 0x8d;
    /// The id of the input of a hash.
    hash_input, 0x95, 0x95;
    /// The id of the results of a hash.
    hash_result, 0x96, 0x96;
    /// The id of the algorithm of a hash.
    hash_algorithm, 0x97, 0x97;
}

impl Ids {
    /// The ids of an architecture's programs.
    pub fn of(architecture: Architecture) -> Self {
        Self {
            is_tna: architecture.is_tofino(),
        }
    }
}
