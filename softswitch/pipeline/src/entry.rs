// SPDX-License-Identifier: Apache-2.0
//! Table entries and action profile contents, as the control plane writes and reads them.

use std::ops::Add;

use crate::Nanos;
use crate::info::ActionId;
use crate::value::Value;

/// The match of an entry on one field of the key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum MatchField {
    /// Equal to the value.
    Exact(Value),
    /// The `prefix_len` most significant bits are equal; length 0 matches anything.
    Lpm {
        /// Bits beyond the prefix must be zero.
        value: Value,
        /// Length of the prefix in bits.
        prefix_len: u32,
    },
    /// `field & mask == value`; bits of `value` outside `mask` must be zero.
    Ternary {
        /// The value.
        value: Value,
        /// The bits to compare; zero matches anything.
        mask: Value,
    },
    /// `low <= field <= high`.
    Range {
        /// Inclusive.
        low: Value,
        /// Inclusive.
        high: Value,
    },
    /// Equal to the value; `None` matches anything.
    Optional(Option<Value>),
    /// The header is valid, or is not.
    Valid(bool),
}

/// The key that identifies an entry in its table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EntryKey {
    /// One match per field of the table's key, in the table's order.
    pub fields: Vec<MatchField>,
    /// The *larger* wins, as in P4Runtime. At least 1 where the table needs a priority, else 0.
    pub priority: i32,
}

/// An action with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ActionCall {
    /// The action.
    pub action: ActionId,
    /// One argument per parameter.
    pub args: Vec<Value>,
}

/// The action of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryAction {
    /// Run this action (tables with [`Implementation::Direct`](crate::info::Implementation)).
    Direct(ActionCall),
    /// Run a member of the table's action profile.
    Member(u32),
    /// Run a member chosen by hash from a group of the table's action selector.
    Group(u32),
    /// Run one of these, chosen by hash with the selector's inputs: an action profile action set
    /// of P4Runtime ("one-shot"). It does not use member or group ids.
    OneShot(Vec<WeightedAction>),
    /// Run one of these, chosen at random for each packet.
    RandomOneShot(Vec<WeightedAction>),
}

/// One action of a one-shot action set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightedAction {
    /// The action.
    pub call: ActionCall,
    /// Relative share, at least 1.
    pub weight: u32,
    /// Skipped while this port is down.
    pub watch_port: Option<u32>,
}

/// A table entry to insert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The packets that it matches.
    pub key: EntryKey,
    /// The action for these packets.
    pub action: EntryAction,
    /// Idle time after which [`poll_idle`](crate::Pipeline::poll_idle) reports the entry; 0 means never.
    pub idle_timeout: Nanos,
}

/// The current state of a table entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryState {
    /// The entry as inserted or last modified.
    pub entry: Entry,
    /// Its direct counter, if the table has one.
    pub counter: Option<CounterValue>,
    /// Configuration of its direct meter, if the table has one and it was configured.
    pub meter: Option<MeterConfig>,
    /// When a packet last hit it, or when it was inserted or modified.
    pub last_hit: Nanos,
    /// Its number in the table, for [`Pipeline::entry_of_handle`](crate::Pipeline::entry_of_handle).
    pub handle: u32,
}

/// Packets and bytes counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CounterValue {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl CounterValue {
    #[inline]
    pub(crate) fn add(&mut self, bytes: u32) {
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(u64::from(bytes));
    }
}

impl Add for CounterValue {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            packets: self.packets.wrapping_add(other.packets),
            bytes: self.bytes.wrapping_add(other.bytes),
        }
    }
}

/// The packets that a meter has given each colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ColorCounters {
    /// Green packets.
    pub green: CounterValue,
    /// Yellow packets.
    pub yellow: CounterValue,
    /// Red packets.
    pub red: CounterValue,
}

/// Rates and bursts of a meter, in bytes (per second) or packets (per second), depending on its declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeterConfig {
    /// Committed information rate, per second.
    pub cir: u64,
    /// Committed burst.
    pub cburst: u64,
    /// Peak information rate, per second; at least `cir`.
    pub pir: u64,
    /// Peak burst.
    pub pburst: u64,
    /// Excess burst of a meter with a single rate (RFC 2697), whose peak rate and burst equal the committed ones; 0 for
    /// meters with two rates (RFC 2698).
    pub eburst: u64,
}

/// A low-pass filter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FilterConfig {
    /// The level is the sum of the inputs, which decays; otherwise it follows the inputs.
    pub is_rate: bool,
    /// Time constant in nanoseconds while the level rises.
    pub gain_time: f32,
    /// Time constant in nanoseconds while the level falls.
    pub decay_time: f32,
    /// Number of low bits that the output leaves out.
    pub scale_down: u32,
    /// The drop probability by level, for random early detection.
    pub drop_curve: Option<DropCurve>,
}

/// Random early detection: the drop probability rises between two levels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DropCurve {
    /// Nothing is dropped below.
    pub min: u64,
    /// Everything is dropped from here on.
    pub max: u64,
    /// The probability just below `max`.
    pub max_probability: f32,
}

/// The parameters of a CRC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrcConfig {
    /// Width in bits: 16 or 32.
    pub width: u32,
    /// The polynomial without its leading term.
    pub polynomial: u32,
    /// The register's initial value, which is never reflected.
    pub initial: u32,
    /// The value for the final exclusive or.
    pub final_xor: u32,
    /// The least significant bit of a byte comes first.
    pub reflect_data: bool,
    /// The register's bits are reversed at the end.
    pub reflect_remainder: bool,
}

/// A group of an action selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Members, in order.
    pub members: Vec<GroupMember>,
    /// Maximum sum of weights; 0 means unlimited.
    pub max_size: u32,
}

/// A member of a group, with its weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupMember {
    /// Member id in the same action profile.
    pub member: u32,
    /// Relative share, at least 1.
    pub weight: u32,
    /// Skipped while this port is down.
    pub watch_port: Option<u32>,
}
