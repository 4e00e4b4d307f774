// SPDX-License-Identifier: Apache-2.0
//! Packet traces, for debugging P4 programs.
//!
//! [`Pipeline::set_tracing`](crate::Pipeline::set_tracing) turns tracing on. Every pass of a packet, through ingress or
//! through egress, then produces one [`Trace`]. Its `Display` is readable text; its `Serialize` is the JSON object that
//! `docs/tracing.md` describes. Values are text in both: decimal if the field has fewer than 16 bits, else hexadecimal
//! with all digits.
//!
//! The interpreter only announces each step. The recorder finds the changes by comparing the packet's headers and metadata
//! before and after.

mod names;
mod packets;
mod record;
mod steps;
mod text;

pub(crate) use names::{field_name, field_value, value};
pub(crate) use record::Recorder;
pub use text::Paragraphs;

use serde::{Serialize, Serializer};

use crate::Nanos;
use crate::packet::InstanceType;
use crate::program::source::SourceLocation;

/// One pass of a packet through ingress or egress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Trace {
    /// Number of the packet, counted from 1 since tracing began; copies share their original's number.
    /// 0 is a packet that was received before.
    pub packet: u64,
    /// Number of this copy of the packet; 0 is the original. Only logs contain it.
    #[serde(skip)]
    pub copy: u32,
    /// The half of the pipeline.
    pub pass: Pass,
    /// The ingress port (ingress) or the egress port (egress).
    pub port: u32,
    /// The origin of the packet.
    pub instance: InstanceType,
    /// Time at which the pass began, in nanoseconds of the caller's time.
    pub time_ns: Nanos,
    /// Length of the packet in bytes at the beginning of the pass.
    pub length: u32,
    /// The steps, in order.
    #[serde(serialize_with = "without_primitives")]
    pub steps: Vec<Step>,
    /// The packet's fate.
    pub outcome: Outcome,
    /// The enqueued packets: the packet itself, its copies and its clones.
    pub enqueued: Vec<Enqueued>,
}

fn without_primitives<S: Serializer>(steps: &[Step], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(steps.iter().filter(|step| !step.is_primitive()))
}

impl Step {
    fn is_primitive(&self) -> bool {
        matches!(self, Self::Primitive(_))
    }
}

/// Half of the pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pass {
    /// Parser, checksum verification, ingress.
    Ingress,
    /// Egress, checksum update, deparser.
    Egress,
}

/// Named values, in order; an object in JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named(pub Vec<(String, String)>);

impl Serialize for Named {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// An action with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Call {
    /// The action's name.
    pub name: String,
    /// The arguments, by parameter.
    pub args: Named,
    /// The position of its declaration, if the program contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceLocation>,
}

/// A table entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hit {
    /// Number of the entry in its table, from 0; a new entry takes the number of a deleted one. Only logs contain it.
    #[serde(skip)]
    pub handle: u32,
    /// The match on each field of the key: `1`, `0x0a000000/8`, `0x10 &&& 0xf0`, `1..9` or `*`.
    #[serde(rename = "match")]
    pub matches: Named,
    /// The priority, if the table uses priorities; larger ones win.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
}

/// A header that the deparser emitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Emitted {
    /// The name.
    pub header: String,
    /// Its length in bytes.
    pub bytes: usize,
}

/// One step of a pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "step", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Step {
    /// The parser entered a state.
    ParserState {
        /// The name.
        state: String,
    },
    /// The parser filled a header.
    Extract {
        /// The name.
        header: String,
        /// The contents.
        fields: Named,
    },
    /// The parser chose its next state.
    Select {
        /// The `select` key; empty for a direct transition.
        key: Named,
        /// Widths of the key's parts in bits. Only logs contain them.
        #[serde(skip)]
        widths: Vec<u32>,
        /// The next state, or `accept`.
        next: String,
        /// Bytes of the packet that the parser has passed. Only logs contain it.
        #[serde(skip)]
        parsed: usize,
    },
    /// The parser stopped with an error.
    ParserError {
        /// The name.
        error: String,
    },
    /// A checksum was verified.
    Checksum {
        /// The field that holds it.
        field: String,
        /// The value in the packet.
        found: String,
        /// The computed value.
        computed: String,
        /// True if both are equal.
        correct: bool,
    },
    /// A condition was evaluated.
    Condition {
        /// Its name in the JSON.
        name: String,
        /// Its position, if the program contains it.
        #[serde(skip_serializing_if = "Option::is_none")]
        source: Option<SourceLocation>,
        /// The value of the condition.
        holds: bool,
    },
    /// A table was applied.
    Table {
        /// The name.
        table: String,
        /// The packet's key.
        key: Named,
        /// Widths of the key's fields in bits. Only logs contain them.
        #[serde(skip)]
        widths: Vec<u32>,
        /// The entry that it hit; `None` for a miss.
        #[serde(skip_serializing_if = "Option::is_none")]
        hit: Option<Hit>,
        /// The id of the action profile member that the entry refers to or that the selector chose; `None` for the members of
        /// one-shot sets.
        #[serde(skip_serializing_if = "Option::is_none")]
        member: Option<u32>,
        /// The action that ran: the entry's, or the default action after a miss.
        #[serde(skip_serializing_if = "Option::is_none")]
        action: Option<Call>,
    },
    /// An action ran without a table.
    Action(Call),
    /// A primitive of the action runs: a statement of the program, if its position is known. Only logs contain it; the
    /// text and the JSON contain the changes instead.
    Primitive(Option<SourceLocation>),
    /// A header became valid.
    HeaderAdded {
        /// The name.
        header: String,
        /// The contents.
        fields: Named,
    },
    /// A header became invalid.
    HeaderRemoved {
        /// The name.
        header: String,
    },
    /// A field changed.
    Changed {
        /// The name.
        field: String,
        /// Its value before.
        from: String,
        /// Its new value.
        to: String,
    },
    /// An extern was used.
    Extern {
        /// `register_read`, `register_write`, `count`, `execute_meter`, `hash`, `random`, `digest`,
        /// `clone`, `mirror`, `filter`, `math_unit`, `resubmit`, `recirculate`, `truncate`, `mark_to_drop`, `exit`, `assert`, `log_msg`.
        call: &'static str,
        /// Its arguments and its result.
        args: Named,
    },
    /// The checksum update, or another step before the deparser, changed the fields in the following steps.
    UpdateChecksums,
    /// The deparser emitted the headers in front of the payload.
    Deparse {
        /// The valid headers, in order.
        headers: Vec<Emitted>,
        /// Length of the payload in bytes.
        payload: usize,
        /// Bytes of the frame.
        length: usize,
    },
}

/// The fate of a packet at the end of a pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// Enqueued at one port.
    Unicast {
        /// The port.
        port: u32,
    },
    /// Enqueued at the ports of a multicast group.
    Multicast {
        /// The group. If it does not exist, there are no copies.
        group: u32,
        /// Number of copies.
        copies: usize,
    },
    /// The program dropped it: `egress_spec` is the drop port.
    Dropped {
        /// The action that set `egress_spec`, if any.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// Dropped: the frame is longer than [`MAX_FRAME`](crate::MAX_FRAME).
    TooLong,
    /// Dropped: the packet was resubmitted too often.
    TooManyResubmits,
    /// Dropped: a loop had too many rounds.
    TooManyIterations,
    /// Dropped: the parser rejected it.
    ParserError,
    /// Dropped: an `assert` or `assume` of the program did not hold.
    AssertionFailed,
    /// Tail drop: the queue was full, so there is no egress pass.
    TailDrop,
    /// Sent.
    Transmitted {
        /// The port.
        port: u32,
        /// Bytes of the frame.
        length: usize,
    },
    /// Recirculated to the parser.
    Recirculated,
}

/// An enqueued packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Enqueued {
    /// The port.
    pub port: u32,
    /// The origin of the packet.
    pub instance: InstanceType,
    /// Bytes.
    pub length: u32,
}
