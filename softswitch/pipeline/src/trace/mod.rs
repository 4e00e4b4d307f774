//! What packets went through, for those who look inside.
//!
//! [`Pipeline::set_tracing`](crate::Pipeline::set_tracing) turns it on; then every pass of a packet, through
//! ingress or through egress, leaves one [`Trace`]. Its `Display` is text for people; its `Serialize` is
//! the JSON object that `docs/tracing.md` describes. Values are text in both: decimal if the field
//! has fewer than 16 bits, else hexadecimal with all its digits.
//!
//! The executor only says what it is about to do. What changed is found here, by comparing the packet's
//! headers and metadata before and after.

mod externs;
mod names;
mod packets;
mod record;
mod steps;
mod text;

pub(crate) use names::Places;
pub(crate) use record::Recorder;
pub use text::Paragraphs;

use serde::{Serialize, Serializer};

use crate::Nanos;
use crate::packet::InstanceType;

/// One pass of a packet through ingress or egress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Trace {
    /// Counts the packets that entered since tracing began, from 1; copies share their original's number.
    /// 0 is a packet that had entered before.
    pub packet: u64,
    /// Which half of the pipeline.
    pub pass: Pass,
    /// The port it came in by (ingress), or is going to (egress).
    pub port: u32,
    /// How it came to be.
    pub instance: InstanceType,
    /// When the pass began, in nanoseconds of the caller's time.
    pub time_ns: Nanos,
    /// Its length in bytes at the beginning of the pass.
    pub length: u32,
    /// What happened, in order.
    pub steps: Vec<Step>,
    /// What became of it.
    pub outcome: Outcome,
    /// What was put into queues: the packet itself, its copies and its clones.
    pub enqueued: Vec<Enqueued>,
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

/// Names with values, in order; an object in JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named(pub Vec<(String, String)>);

impl Serialize for Named {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// A place in the program's source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The file, as the compiler was told it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The text there.
    pub text: String,
}

/// An action with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Call {
    /// The action's name.
    pub name: String,
    /// Its parameters.
    pub args: Named,
    /// Where it is declared, if the program says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Place>,
}

/// A table entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hit {
    /// What it asks of each field of the key: `1`, `0x0a000000/8`, `0x10 &&& 0xf0`, `1..9` or `*`.
    #[serde(rename = "match")]
    pub matches: Named,
    /// Its priority, where the table has them; the larger wins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
}

/// A header of a frame that is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Emitted {
    /// Its name.
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
        /// Its name.
        state: String,
    },
    /// The parser filled a header.
    Extract {
        /// Its name.
        header: String,
        /// Its contents.
        fields: Named,
    },
    /// The parser chose its next state.
    Select {
        /// What it looked at; empty if there was no choice.
        key: Named,
        /// The state, `accept` if it was the last.
        next: String,
    },
    /// The parser stopped with an error.
    ParserError {
        /// Its name.
        error: String,
    },
    /// A checksum was verified.
    Checksum {
        /// The field that holds it.
        field: String,
        /// What it holds.
        found: String,
        /// What was computed.
        computed: String,
        /// Whether they agree.
        correct: bool,
    },
    /// A condition was evaluated.
    Condition {
        /// Its name in the JSON.
        name: String,
        /// Where it stands, if the program says.
        #[serde(skip_serializing_if = "Option::is_none")]
        source: Option<Place>,
        /// Its value.
        holds: bool,
    },
    /// A table was applied.
    Table {
        /// Its name.
        table: String,
        /// The packet's key.
        key: Named,
        /// The entry that it hit; none is a miss.
        #[serde(skip_serializing_if = "Option::is_none")]
        hit: Option<Hit>,
        /// The id of the action profile's member that the entry names or its group's selector chose; those of
        /// one-shot sets have none.
        #[serde(skip_serializing_if = "Option::is_none")]
        member: Option<u32>,
        /// The action that ran: the entry's, or the default action after a miss.
        #[serde(skip_serializing_if = "Option::is_none")]
        action: Option<Call>,
    },
    /// An action ran without a table.
    Action(Call),
    /// A header became valid.
    HeaderAdded {
        /// Its name.
        header: String,
        /// Its contents.
        fields: Named,
    },
    /// A header became invalid.
    HeaderRemoved {
        /// Its name.
        header: String,
    },
    /// A field changed.
    Changed {
        /// Its name.
        field: String,
        /// Its value before.
        from: String,
        /// Its value now.
        to: String,
    },
    /// An extern was used.
    Extern {
        /// `register_read`, `register_write`, `count`, `execute_meter`, `hash`, `random`, `digest`,
        /// `clone`, `resubmit`, `recirculate`, `truncate`, `mark_to_drop`, `exit`, `assert`, `log_msg`.
        call: &'static str,
        /// Its arguments and what it gave.
        args: Named,
    },
    /// The program's checksum update, and what else runs before the deparser, changed something: it follows.
    UpdateChecksums,
    /// The deparser put the headers in front of the payload.
    Deparse {
        /// The valid headers, in order.
        headers: Vec<Emitted>,
        /// Bytes of what follows them.
        payload: usize,
        /// Bytes of the frame.
        length: usize,
    },
}

/// What became of a packet at the end of a pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// On to one port's queue.
    Unicast {
        /// The port.
        port: u32,
    },
    /// On to the ports of a multicast group.
    Multicast {
        /// The group; one that does not exist has no copies.
        group: u32,
        /// Copies made.
        copies: usize,
    },
    /// The program dropped it: `egress_spec` is the drop port.
    Dropped {
        /// The action that set it, if one did.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// Dropped: the frame is longer than [`MAX_FRAME`](crate::MAX_FRAME).
    TooLong,
    /// Dropped: it was resubmitted too often.
    TooManyResubmits,
    /// Dropped: an `assert` or `assume` of the program did not hold.
    AssertionFailed,
    /// Dropped: the queue would not take it, so that no egress follows.
    QueueFull,
    /// Sent.
    Transmitted {
        /// The port.
        port: u32,
        /// Bytes of the frame.
        length: usize,
    },
    /// Back to the parser.
    Recirculated,
}

/// A packet that was put into a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Enqueued {
    /// The port.
    pub port: u32,
    /// How it came to be.
    pub instance: InstanceType,
    /// Bytes.
    pub length: u32,
}
