// SPDX-License-Identifier: Apache-2.0
//! A P4 pipeline as a library: it loads the JSON that `p4c-bm2-ss` writes for BMv2's `simple_switch` (v1model), or
//! `p4c-bm2-psa` for `psa_switch` (PSA), and processes packets. `softswitch-p4c` also writes it for the Tofino Native
//! Architecture (TNA).
//!
//! The crate has no sockets and no clock, and its only threads compile programs. The caller passes the time with every
//! packet, and a seed for the `random` extern, so the same input always gives the same output. With [`ParallelPipeline`],
//! several threads of the caller run packets at the same time.
//!
//! A packet takes two calls, because the queues are outside:
//!
//! ```text
//!  frame ──> Pipeline::ingress ──> Descriptors ──> (your queues) ──> Pipeline::egress ──> frame
//!               ^   parser,            unicast, multicast,               egress,             │
//!               │   verify,            I2E clones                        update checksums,   │
//!               │   ingress, resubmit                                    deparser            │
//!               └──────────────────── Pipeline::ingress_recirculated <───────────────────────┘
//! ```
//!
//! With the other methods of [`Pipeline`], the control plane reads and writes tables, action profiles, counters, meters,
//! registers, value sets, multicast groups and clone sessions. Typed indices identify the objects; [`Info`] maps names
//! to indices. Each operation is atomic.
//!
//! ```
//! use softswitch_pipeline::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let program = Program::load(include_str!("../tests/programs/router.json"))?;
//! let mut pipeline = Pipeline::new(program, Options { seed: 1, ..Options::default() });
//!
//! // A route: 10.0.0.0/8 goes to next hop 1.
//! let info = pipeline.program().info();
//! let routes = info.table("I.routes").expect("the program has it");
//! let action = info.tables[routes.index()].action("I.set_next_hop").expect("the table has it");
//! let key = MatchField::Lpm { value: 0x0a00_0000u32.into(), prefix_len: 8 };
//! let call = ActionCall { action, args: vec![1u32.into()] };
//! let entry = Entry {
//!     key: EntryKey { fields: vec![key], priority: 0 },
//!     action: EntryAction::Direct(call),
//!     idle_timeout: 0,
//! };
//! pipeline.insert_entry(routes, entry, 0)?;
//!
//! // A packet at 1 ms that does not wait in a queue.
//! let (mut queue, mut out) = (Vec::new(), EgressOutput::default());
//! pipeline.ingress(1, &[0; 64], 1_000_000, &mut queue);
//! for descriptor in queue.drain(..) {
//!     match pipeline.egress(descriptor, QueueInfo::default(), 1_000_000, &mut out) {
//!         EgressOutcome::Transmit { port } => println!("{} bytes to port {port}", out.frame.len()),
//!         other => println!("{other:?}"),
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # How it runs
//!
//! The loader resolves the JSON to fields at fixed offsets in one block of bytes per packet, and to steps over them.
//! The first [`Pipeline`] with [`Engine::Native`], the default, compiles the steps to machine code with Cranelift: one
//! function for each parser, control and deparser. The code belongs to the [`Program`] and all its pipelines
//! share it.
//!
//! Native code adapts to the packets. The interpreter runs a control for a sample of the packets, and notes their paths:
//! the outcomes of conditions and the actions of tables. A thread then compiles the program again, with a copy of the steps
//! for each frequent path. On such a path, more is known about the packet than where paths meet, so repeated comparisons
//! and loads can be left out. Packets on other paths continue in the common code. [`Options::adapt_every`] sets how many
//! packets are sampled at first.
//!
//! The interpreter of the steps is the reference. It runs while tracing or coverage is on, and on hosts that Cranelift
//! does not support. Native code calls it for single steps that it does not implement: numbers of more than 128 bits,
//! variable-length fields, computed headers, digests, clones, meters and the like. Both engines produce the same packets,
//! state and random numbers; the tests compare them.
//!
//! # Layers
//!
//! A module uses only modules above it in this table.
//!
//! | module | content |
//! |---|---|
//! | `value`, `phv`, `word` | numbers, fields in a block of bytes, arithmetic |
//! | `info`, `entry`, `digest`, `error`, `options` | what the control plane and the caller exchange with the pipeline |
//! | `program` | the model of a program: layout, expressions, actions, parser, control flow, deparser |
//! | `load` | BMv2 JSON to `program` |
//! | `frame`, `packet`, `paths`, `trace`, `coverage` | the bytes of a packet; a packet in flight; its path through a control; the records of its steps; counts by position in the program |
//! | `state` | what persists between packets: tables, externs, value sets, multicast groups and clone sessions |
//! | `interpreter` | runs one block of a program, such as a parser or a control flow |
//! | `native` | runs one block in native code, and calls the interpreter for single steps |
//! | `executable` | a program with its native code, which adapts to the packets |
//! | `pool` | buffers for packets |
//! | `core` | what architectures share: the state, the choice between both engines, buffers |
//! | `v1model`, `psa`, `tna` | an architecture: the order of its blocks, its metadata, resubmission, clones, multicast |
//! | `pipeline` | the public interface |
//! | `parallel` | packets of several threads in one pipeline |
//!
//! # Where it differs from BMv2
//!
//! Behaviour that is undefined or fatal in BMv2 is defined here:
//!
//! - Fields of invalid headers are zero, until the program writes them for the same packet.
//! - Reads beyond the end of a stack, counter, meter or register return zero, and writes are ignored.
//! - Division by zero gives zero.
//! - Resubmissions and loops are bounded by [`Options`], because an endless one would stop the pipeline.
//! - A failed `assert` drops the packet.
//! - In PSA, deparsers also hand metadata to the parsers of resubmitted, recirculated and cloned packets.
//!
//! Meters are the three-colour markers of RFC 2698, and of RFC 2697 with excess bursts, in exact arithmetic. Clone sessions may truncate. Everything
//! else follows `simple_switch`.

#![warn(missing_docs)]

mod core;
mod coverage;
mod digest;
mod entry;
mod error;
mod executable;
mod frame;
mod info;
mod interpreter;
mod load;
mod native;
mod options;
mod packet;
mod parallel;
mod paths;
mod phv;
mod pipeline;
mod pool;
mod program;
mod psa;
mod state;
mod tna;
mod trace;
mod v1model;
mod value;
mod word;

pub use coverage::{Branch, Coverage, Function, Statement};
pub use digest::Digest;
pub use entry::{
    ActionCall, ColorCounters, CounterValue, CrcConfig, DropCurve, Entry, EntryAction, EntryKey,
    EntryState, FilterConfig, Group, GroupMember, MatchField, MeterConfig, WeightedAction,
};
pub use error::{LoadError, StateError};
pub use frame::Frame;
pub use info::{
    ActionId, ActionInfo, CalculationId, CalculationInfo, CounterId, CounterInfo, DigestId,
    DigestInfo, DirectRegisterId, DirectRegisterInfo, FilterId, FilterInfo, HashId, HashInfo,
    HashKind, HeaderTypeInfo, Implementation, Info, KeyInfo, MatchKind, MeterId, MeterInfo,
    MeterUnit, ProfileId, ProfileInfo, RegisterId, RegisterInfo, TableId, TableInfo, ValueSetId,
    ValueSetInfo,
};
pub use load::FORMAT_VERSION;
pub use options::{Engine, Options};
pub use packet::{
    Descriptor, EgressOutcome, EgressOutput, IngressOutcome, InstanceType, MAX_FRAME, QueueInfo,
    Recirculated,
};
pub use parallel::{Exclusive, Lane, ParallelPipeline, Turn};
pub use pipeline::{
    FilterCell, GeneratorSnapshot, IdleEntry, LookupKey, MeterState, PipeSet, Pipeline, Program,
};
pub use program::dynamic_hash::{HashAlgorithm, HashConfig, HashFunction, HashSlice};
pub use program::parallelism::Parallelism;
pub use program::source::SourceLocation;
/// Times count from the caller's origin of time, such as the start of the switch.
pub use softswitch_queue::Nanos;
pub use state::generator::{
    GENERATOR_BUFFER_BYTES, GENERATOR_CONTEXT_BYTES, GeneratorApp, GeneratorCounts,
    GeneratorPattern, GeneratorPort, GeneratorTrigger,
};
pub use state::meter::Color;
pub use state::multicast::{LinkAggregation, MulticastBranch, MulticastNode, MulticastTree};
pub use state::pipes::MAX_PIPES;
pub use state::pre::{
    CloneSession, MAX_CLONE_SESSION, MAX_MULTICAST_GROUP, Replica, check_replicas,
};
pub use trace::{Call, Emitted, Enqueued, Hit, Named, Outcome, Paragraphs, Pass, Step, Trace};
pub use value::Value;
