//! What goes in and out of the pipeline around the traffic manager.

use crate::Nanos;
use crate::info::MeterUnit;

/// Longest frame in bytes that the pipeline takes.
pub const MAX_FRAME: usize = 1 << 16;

/// `standard_metadata.instance_type`: how a packet came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InstanceType {
    /// From a port, or its unicast copy.
    Normal = 0,
    /// Cloned at ingress.
    IngressClone = 1,
    /// Cloned at egress.
    EgressClone = 2,
    /// Coalesced (never made by `simple_switch`).
    Coalesced = 3,
    /// Sent around again by `recirculate`.
    Recirculated = 4,
    /// A copy of a multicast group.
    Replication = 5,
    /// Parsed again by `resubmit`.
    Resubmitted = 6,
}

/// A packet between ingress and egress: what a queue holds.
///
/// Feed it to [`Pipeline::egress`](crate::Pipeline::egress) when it leaves the queue, or hand it back
/// with [`Pipeline::recycle`](crate::Pipeline::recycle) if the queue drops it, so that its buffers are
/// used again. It belongs to the pipeline that made it.
#[derive(Debug)]
pub struct Descriptor {
    /// The port it is destined to.
    pub egress_port: u32,
    /// `standard_metadata.priority` (a clone's: its session's class of service); larger is more urgent.
    pub priority: u8,
    /// How it came to be.
    pub instance_type: InstanceType,
    /// Its length in bytes as the program left it: headers added and removed at ingress are counted.
    pub len: u32,
    pub(crate) state: Box<State>,
}

/// A packet in flight: its bytes, its headers and metadata, and what the program asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    /// Headers and metadata, as the program's layout says.
    pub(crate) mem: Vec<u8>,
    /// The frame as it was received.
    pub(crate) frame: Vec<u8>,
    /// Bytes of the frame that the parser has consumed.
    pub(crate) start: usize,
    /// Length in bytes as headers come and go.
    pub(crate) len: u32,
    /// Length in bytes when it entered.
    pub(crate) ingress_len: u32,
    /// Most bytes to send.
    pub(crate) truncate_to: u32,
    /// Clone session and field list.
    pub(crate) clone_to: Option<(u32, u32)>,
    pub(crate) digest: Option<u32>,
    /// Field list; 0 is no request.
    pub(crate) resubmit: u32,
    /// Field list; 0 is no request.
    pub(crate) recirculate: u32,
    pub(crate) exit: bool,
    pub(crate) assertion_failed: bool,
    /// Its number in traces.
    pub(crate) number: u64,
}

impl State {
    /// What follows the parsed headers.
    pub(crate) fn payload(&self) -> &[u8] {
        let payload = &self.frame[self.start..];
        &payload[..payload.len().min(self.truncate_to as usize)]
    }

    /// What a meter or counter of this unit counts.
    pub(crate) fn amount(&self, unit: MeterUnit) -> u64 {
        match unit {
            MeterUnit::Bytes => u64::from(self.ingress_len),
            MeterUnit::Packets => 1,
        }
    }

    /// Forgets what the program asked for.
    pub(crate) fn clear_requests(&mut self) {
        self.clone_to = None;
        self.digest = None;
        self.resubmit = 0;
        self.recirculate = 0;
        self.exit = false;
        self.assertion_failed = false;
    }

    /// Becomes a new, unparsed packet.
    pub(crate) fn reset(&mut self, blank: &[u8], frame: &[u8]) {
        self.frame.clear();
        self.frame.extend_from_slice(frame);
        self.begin(blank);
    }

    /// Becomes the packet of its frame before it is parsed.
    pub(crate) fn begin(&mut self, blank: &[u8]) {
        self.mem.clear();
        self.mem.extend_from_slice(blank);
        self.start = 0;
        self.len = self.frame.len() as u32;
        self.ingress_len = self.len;
        self.truncate_to = u32::MAX;
        self.clear_requests();
    }

    /// Becomes a copy of another packet, keeping its own buffers.
    pub(crate) fn copy_from(&mut self, other: &State) {
        self.mem.clear();
        self.mem.extend_from_slice(&other.mem);
        self.frame.clear();
        self.frame.extend_from_slice(&other.frame);
        self.start = other.start;
        self.len = other.len;
        self.ingress_len = other.ingress_len;
        self.truncate_to = other.truncate_to;
        self.clear_requests();
    }
}

/// What the traffic manager knows of a packet that it takes out of a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueInfo {
    /// When it was enqueued.
    pub enq_timestamp: Nanos,
    /// Queue depth in packets when it was enqueued.
    pub enq_qdepth: u32,
    /// How long it was queued.
    pub deq_timedelta: Nanos,
    /// Queue depth in packets when it was dequeued.
    pub deq_qdepth: u32,
    /// Number of the queue at its port.
    pub qid: u8,
}

/// What ingress did with the packet itself (clones are made besides).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IngressOutcome {
    /// One descriptor, to one port.
    Unicast,
    /// So many descriptors of a multicast group; 0 if the group is empty or unknown.
    Multicast(usize),
    /// The program dropped it (`egress_spec` is the drop port).
    Dropped,
    /// The frame is longer than [`MAX_FRAME`].
    TooLong,
    /// It was resubmitted more often than [`Options::max_resubmits`](crate::Options::max_resubmits).
    TooManyResubmits,
    /// An `assert` or `assume` of the program did not hold (BMv2 would abort).
    AssertionFailed,
}

/// What egress did with the packet itself (clones are made besides).
#[derive(Debug)]
pub enum EgressOutcome {
    /// Send [`EgressOutput::frame`] to this port.
    Transmit {
        /// The port.
        port: u32,
    },
    /// The program dropped it.
    Dropped,
    /// Feed it to [`Pipeline::ingress_recirculated`](crate::Pipeline::ingress_recirculated).
    Recirculate(Recirculated),
    /// An `assert` or `assume` of the program did not hold (BMv2 would abort).
    AssertionFailed,
}

/// Where egress puts what it makes; keep one and use it again.
#[derive(Debug, Default)]
pub struct EgressOutput {
    /// The deparsed packet, if it is to be transmitted.
    pub frame: Vec<u8>,
    /// Egress-to-egress clones, to be enqueued.
    pub clones: Vec<Descriptor>,
}

/// A packet on its way from the deparser back to the parser.
#[derive(Debug)]
pub struct Recirculated {
    /// The port by which it once entered.
    pub ingress_port: u32,
    pub(crate) state: Box<State>,
}
