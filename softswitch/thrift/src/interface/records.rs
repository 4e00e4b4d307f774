// SPDX-License-Identifier: Apache-2.0
//! Records.

use std::collections::BTreeMap;

use crate::wire::{Binary, records};

/// Values of [`MatchParam::kind`].
pub mod match_kind {
    /// The field equals a value.
    pub const EXACT: i32 = 0;
    /// Longest prefix match.
    pub const LPM: i32 = 1;
    /// Value and mask.
    pub const TERNARY: i32 = 2;
    /// Validity of a header.
    pub const VALID: i32 = 3;
    /// Inclusive range.
    pub const RANGE: i32 = 4;
}

/// Values of [`ActionEntry::kind`].
pub mod action_kind {
    /// There is no action.
    pub const NONE: i32 = 0;
    /// An action with its data.
    pub const ACTION_DATA: i32 = 1;
    /// A member of an action profile.
    pub const MEMBER: i32 = 2;
    /// A group of an action selector.
    pub const GROUP: i32 = 3;
}

/// Values of the resource type of `bm_get_id_from_name`.
pub mod resource {
    /// A table.
    pub const TABLE: i32 = 0;
    /// An action profile.
    pub const ACTION_PROFILE: i32 = 1;
    /// A counter.
    pub const COUNTER: i32 = 2;
    /// A meter.
    pub const METER: i32 = 3;
    /// A register.
    pub const REGISTER: i32 = 4;
    /// A learn list.
    pub const LEARNING_LIST: i32 = 5;
}

records! {
    /// An exact match.
    MatchExact {
        /// The value.
        1 key: Binary,
    }

    /// A match of the longest prefix.
    MatchLpm {
        /// The value.
        1 key: Binary,
        /// The prefix's length in bits.
        2 prefix_length: i32,
    }

    /// A ternary match.
    MatchTernary {
        /// The value.
        1 key: Binary,
        /// The bits to compare.
        2 mask: Binary,
    }

    /// A match of a header's validity.
    MatchValid {
        /// True if the header must be valid.
        1 key: bool,
    }

    /// A match of a range.
    MatchRange {
        /// The smallest value.
        1 start: Binary,
        /// The largest value.
        2 end: Binary,
    }

    /// The match of one field of a key.
    MatchParam {
        /// The kind, one of [`match_kind`].
        1 kind: i32,
        /// Set if the kind is `EXACT`.
        2 exact: Option<MatchExact>,
        /// Set if the kind is `LPM`.
        3 lpm: Option<MatchLpm>,
        /// Set if the kind is `TERNARY`.
        4 ternary: Option<MatchTernary>,
        /// Set if the kind is `VALID`.
        5 valid: Option<MatchValid>,
        /// Set if the kind is `RANGE`.
        6 range: Option<MatchRange>,
    }

    /// Properties of an entry besides its key.
    EntryOptions {
        /// The priority; the smaller number wins.
        1 priority: Option<i32>,
    }

    /// A counter's value.
    CounterValue {
        /// Bytes.
        1 bytes: i64,
        /// Packets.
        2 packets: i64,
    }

    /// A rate of a meter.
    MeterRate {
        /// Bytes or packets per microsecond.
        1 units_per_micros: f64,
        /// Burst in bytes or packets.
        2 burst_size: i32,
    }

    /// The action of an entry.
    ActionEntry {
        /// The kind, one of [`action_kind`].
        1 kind: i32,
        /// The action's name.
        2 action_name: Option<String>,
        /// The action's data.
        3 action_data: Option<Vec<Binary>>,
        /// The handle of the member.
        4 member: Option<i32>,
        /// The handle of the group.
        5 group: Option<i32>,
    }

    /// The age of an entry.
    EntryLife {
        /// Idle time-out in milliseconds.
        1 timeout_ms: i32,
        /// Time since the last hit in milliseconds.
        2 time_since_hit_ms: i32,
    }

    /// An entry of a table.
    TableEntry {
        /// The key.
        1 match_key: Vec<MatchParam>,
        /// The priority.
        2 options: EntryOptions,
        /// The handle.
        3 entry_handle: i32,
        /// The action.
        4 action_entry: ActionEntry,
        /// The age, if the entry has an idle time-out.
        5 life: Option<EntryLife>,
    }

    /// A member of an action profile.
    Member {
        /// The handle.
        1 handle: i32,
        /// The action's name.
        2 action_name: String,
        /// The action's data.
        3 action_data: Vec<Binary>,
    }

    /// A group of an action selector.
    Group {
        /// The handle.
        1 handle: i32,
        /// The handles of the members.
        2 members: Vec<i32>,
    }

    /// A port.
    PortInfo {
        /// The port's number.
        1 port_num: i32,
        /// The interface's name.
        2 iface_name: String,
        /// True if the interface is up.
        3 is_up: bool,
        /// More properties.
        4 extra: BTreeMap<String, String>,
    }

    /// The parameters of a CRC of 16 bits.
    Crc16Config {
        /// The polynomial without its leading term.
        1 polynomial: i16,
        /// The register's initial value.
        2 initial_remainder: i16,
        /// The value for the final exclusive or.
        3 final_xor_value: i16,
        /// True if the least significant bit of a byte comes first.
        4 data_reflected: bool,
        /// True if the register's bits are reversed at the end.
        5 remainder_reflected: bool,
    }

    /// The parameters of a CRC of 32 bits.
    Crc32Config {
        /// The polynomial without its leading term.
        1 polynomial: i32,
        /// The register's initial value.
        2 initial_remainder: i32,
        /// The value for the final exclusive or.
        3 final_xor_value: i32,
        /// True if the least significant bit of a byte comes first.
        4 data_reflected: bool,
        /// True if the register's bits are reversed at the end.
        5 remainder_reflected: bool,
    }

    /// The switch's identity and addresses.
    SwitchInfo {
        /// P4Runtime device id.
        1 device_id: i64,
        /// The port of this server.
        2 thrift_port: i32,
        /// The address of notifications.
        3 notifications_socket: Option<String>,
        /// The address of the event logger.
        4 elogger_socket: Option<String>,
        /// The address of the debugger.
        5 debugger_socket: Option<String>,
    }

    /// The target of a mirroring session.
    MirroringSession {
        /// An egress port.
        1 port: Option<i32>,
        /// A multicast group.
        2 mgid: Option<i32>,
    }
}
