// SPDX-License-Identifier: Apache-2.0
//! The packets that pass between the pipeline and the traffic manager.

use std::ops::Range;

use smallvec::SmallVec;

use crate::Nanos;
use crate::frame::Frame;
use crate::program::layout::Layout;
use crate::program::tna::IntrinsicValues;

/// Maximum length in bytes of a received frame.
pub const MAX_FRAME: usize = 1 << 16;

/// `standard_metadata.instance_type`: the origin of a packet.
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
    /// Returned to the parser by `recirculate`.
    Recirculated = 4,
    /// A copy of a multicast group.
    Replication = 5,
    /// Parsed again by `resubmit`.
    Resubmitted = 6,
}

/// A packet between ingress and egress, for a queue.
///
/// Pass it to [`Pipeline::egress`](crate::Pipeline::egress) when it leaves the queue, or return it
/// with [`Pipeline::recycle`](crate::Pipeline::recycle) if the queue drops it, so that its buffers are
/// reused. It belongs to the pipeline that made it.
#[derive(Debug)]
pub struct Descriptor {
    /// The egress port.
    pub egress_port: u32,
    /// `standard_metadata.priority`, or for a clone its session's class of service; larger is more urgent.
    pub priority: u8,
    /// The origin of the packet.
    pub instance_type: InstanceType,
    /// Length in bytes after ingress, including added headers and without removed ones.
    pub len: u32,
    pub(crate) packet: Box<Packet>,
}

/// Data of the traffic manager of TNA for egress, besides the packet.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Handoff {
    /// Replication id.
    pub(crate) rid: u16,
    pub(crate) is_first_replica: bool,
    pub(crate) qid: u8,
    pub(crate) class_of_service: u8,
    pub(crate) bypasses_egress: bool,
}

/// Bytes that a deparser puts in front of a mirrored or resubmitted packet.
pub(crate) type Front = SmallVec<[u8; 32]>;

/// A cell of a counter.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CountedCell {
    /// A counter and an index.
    Array(u32, u64),
    /// A table, and the slot of an entry, or `None` for the default entry.
    Entry(u32, Option<u32>),
}

/// A packet in flight: its bytes, its headers and metadata, and what the program asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Packet {
    /// Headers and metadata, in the program's layout.
    pub(crate) mem: Vec<u8>,
    /// The received frame.
    pub(crate) frame: Frame,
    /// The chip's header, for a parser that does not find it in the frame.
    pub(crate) intrinsic: IntrinsicValues,
    /// Bytes of the frame that the parser has consumed.
    pub(crate) start: usize,
    /// Current length in bytes, which changes as headers are added and removed.
    pub(crate) len: u32,
    /// Length in bytes on reception.
    pub(crate) ingress_len: u32,
    /// Maximum number of bytes to send.
    pub(crate) truncate_to: u32,
    /// Clone session and field list.
    pub(crate) clone_to: Option<(u32, u32)>,
    pub(crate) digest: Option<u32>,
    /// Mirror session, and the bytes in front of the mirrored packet.
    pub(crate) mirror: Option<(u32, Front)>,
    /// The bytes in front of the resubmitted packet.
    pub(crate) resubmit_front: Option<Front>,
    /// The header with which the deparser starts the packet generator.
    pub(crate) generator_header: Option<Front>,
    /// Field list; 0 means none.
    pub(crate) resubmit: u32,
    /// Field list; 0 means none.
    pub(crate) recirculate: u32,
    /// The slot of the entry that the last table with direct registers hit.
    pub(crate) entry: Option<u32>,
    /// The number of the table of that entry.
    pub(crate) entry_table: u32,
    /// Cells of counters with the bytes to subtract, or `None` for the difference to the packet that leaves.
    pub(crate) count_corrections: SmallVec<[(CountedCell, Option<u64>); 2]>,
    /// Checksum, number of the deposit, and position in the frame of each residual checksum that the parser has begun.
    pub(crate) deposits: SmallVec<[(u32, u32, usize); 2]>,
    pub(crate) exit: bool,
    pub(crate) assertion_failed: bool,
    /// Loop iterations since the start of ingress or egress.
    pub(crate) iterations: u32,
    pub(crate) handoff: Handoff,
    /// Packet number in traces.
    pub(crate) number: u64,
    /// Number of this copy of the packet in traces.
    pub(crate) copy: u32,
}

impl Packet {
    /// Returns the bytes behind the parsed headers.
    pub(crate) fn payload(&self) -> &[u8] {
        let payload = &self.frame[self.start..];
        &payload[..payload.len().min(self.truncate_to as usize)]
    }

    /// Clears the program's requests.
    pub(crate) fn clear_requests(&mut self) {
        self.clone_to = None;
        self.digest = None;
        self.entry = None;
        self.deposits.clear();
        self.count_corrections.clear();
        self.mirror = None;
        self.resubmit_front = None;
        self.generator_header = None;
        self.resubmit = 0;
        self.recirculate = 0;
        self.exit = false;
        self.assertion_failed = false;
        self.iterations = 0;
    }

    /// Counts a loop iteration. Returns false, and leaves the control flow, if there are more than `max`.
    #[inline]
    pub(crate) fn iterate(&mut self, max: u32) -> bool {
        self.iterations = self.iterations.saturating_add(1);
        let is_within = self.iterations <= max;
        self.exit |= !is_within;
        is_within
    }

    /// Turns this state into a new, unparsed packet.
    pub(crate) fn reset(&mut self, layout: &Layout, frame: &[u8]) {
        self.frame.set(0, frame);
        self.begin(layout);
    }

    /// Resets this state to its received frame, unparsed.
    pub(crate) fn begin(&mut self, layout: &Layout) {
        layout.reset(&mut self.mem);
        self.begin_frame();
    }

    /// Resets this state to its received frame, unparsed, of which some parts will be used.
    pub(crate) fn begin_parts(&mut self, layout: &Layout, parts: &[Range<usize>]) {
        layout.reset_parts(&mut self.mem, parts);
        self.begin_frame();
    }

    fn begin_frame(&mut self) {
        self.start = 0;
        self.len = self.frame.len() as u32;
        self.ingress_len = self.len;
        self.truncate_to = u32::MAX;
        self.handoff = Handoff::default();
        self.clear_requests();
    }

    /// Resets this state to its frame, unparsed, with the metadata of `mem`.
    pub(crate) fn begin_with_metadata(&mut self, layout: &Layout, mem: &[u8], ingress_len: u32) {
        self.begin(layout);
        let metadata = ..layout.metadata_bytes;
        self.mem[metadata].copy_from_slice(&mem[metadata]);
        self.ingress_len = ingress_len;
    }

    /// Turns this state into a copy of another packet, reusing its own buffers.
    pub(crate) fn copy_from(&mut self, other: &Packet) {
        self.mem.clear();
        self.mem.extend_from_slice(&other.mem);
        self.frame.copy_from(&other.frame);
        self.start = other.start;
        self.len = other.len;
        self.ingress_len = other.ingress_len;
        self.truncate_to = other.truncate_to;
        self.handoff = other.handoff;
        self.clear_requests();
    }
}

/// Queueing metadata, which the traffic manager fills in when it dequeues a packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueInfo {
    /// Time of enqueueing.
    pub enq_timestamp: Nanos,
    /// Queue depth in packets when it was enqueued.
    pub enq_qdepth: u32,
    /// Time in the queue.
    pub deq_timedelta: Nanos,
    /// Queue depth in packets when it was dequeued.
    pub deq_qdepth: u32,
    /// Number of the queue at the port.
    pub qid: u8,
}

/// The fate of a packet after ingress. Clones are made in addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IngressOutcome {
    /// One descriptor, to one port.
    Unicast,
    /// Number of copies for a multicast group; 0 if the group is empty or unknown.
    Multicast(usize),
    /// The program dropped the packet (`egress_spec` is the drop port).
    Dropped,
    /// The frame is longer than [`MAX_FRAME`].
    TooLong,
    /// The packet was resubmitted more often than [`Options::max_resubmits`](crate::Options::max_resubmits).
    TooManyResubmits,
    /// A loop had more rounds than [`Options::max_iterations`](crate::Options::max_iterations).
    TooManyIterations,
    /// The parser rejected the packet, and the program for TNA does not handle this.
    ParserError,
    /// An `assert` or `assume` of the program did not hold (BMv2 would abort).
    AssertionFailed,
}

/// The fate of a packet after egress. Clones are made in addition.
#[derive(Debug)]
pub enum EgressOutcome {
    /// Send [`EgressOutput::frame`] to this port.
    Transmit {
        /// The port.
        port: u32,
    },
    /// The program dropped the packet.
    Dropped,
    /// Recirculated: pass it to [`Pipeline::ingress_recirculated`](crate::Pipeline::ingress_recirculated).
    Recirculate(Recirculated),
    /// A loop had more rounds than [`Options::max_iterations`](crate::Options::max_iterations).
    TooManyIterations,
    /// An `assert` or `assume` of the program did not hold (BMv2 would abort).
    AssertionFailed,
}

/// The output of egress; reuse one, to avoid allocations.
#[derive(Debug, Default)]
pub struct EgressOutput {
    /// The deparsed packet, if it is to be transmitted.
    pub frame: Frame,
    /// Egress-to-egress clones, to be enqueued.
    pub clones: Vec<Descriptor>,
}

impl EgressOutput {
    /// Takes the frame as a vector, and leaves the memory of `spare` for the next one.
    pub fn take_frame(&mut self, spare: Vec<u8>) -> Vec<u8> {
        std::mem::replace(&mut self.frame, spare.into()).into()
    }
}

/// A recirculated packet, between the deparser and the parser.
#[derive(Debug)]
pub struct Recirculated {
    /// The port on which the packet was received.
    pub ingress_port: u32,
    pub(crate) packet: Box<Packet>,
}

impl Recirculated {
    /// Returns the length of the packet, in bytes.
    pub fn length(&self) -> usize {
        self.packet.frame.len()
    }
}
