//! A P4 v1model pipeline as a library: loads the JSON that `p4c-bm2-ss` makes for BMv2's `simple_switch`,
//! and runs packets through it.
//!
//! The crate has no sockets, no threads and no clock: the caller gives every packet its time, and a
//! seed for the `random` extern, so that the same input always gives the same output.
//!
//! A packet passes through two calls, because queues live outside:
//!
//! ```text
//!  frame ──> Pipeline::ingress ──> Descriptors ──> (your queues) ──> Pipeline::egress ──> frame
//!               ^   parser,            unicast, multicast,               egress,             │
//!               │   verify,            I2E clones                        update checksums,   │
//!               │   ingress, resubmit                                    deparser            │
//!               └──────────────────── Pipeline::ingress_recirculated <───────────────────────┘
//! ```
//!
//! The control plane reads and writes tables, action profiles, counters, meters, registers, value sets,
//! multicast groups and clone sessions by the other methods of [`Pipeline`]. Objects are named by typed
//! indices; [`Info`] gives the index of a name. Each operation is all or nothing.

mod action;
mod calculation;
mod control;
mod digest;
mod entry;
mod error;
mod expr;
mod extern_state;
mod hash;
mod info;
mod layout;
mod load;
mod packet;
mod parser;
mod phv;
mod pipeline;
mod pre;
mod program;
mod rng;
mod table;
mod value;

pub use digest::Digest;
pub use entry::{
    ActionCall, CounterValue, Entry, EntryAction, EntryKey, EntryState, Group, GroupMember,
    MatchField, WeightedAction,
};
pub use error::{LoadError, StateError};
pub use extern_state::meter::{Color, MeterConfig};
pub use info::{
    ActionId, ActionInfo, CounterId, CounterInfo, DigestId, DigestInfo, Implementation, Info,
    KeyInfo, MatchKind, MeterId, MeterInfo, MeterUnit, ProfileId, ProfileInfo, RegisterId,
    RegisterInfo, TableId, TableInfo, ValueSetId, ValueSetInfo,
};
pub use packet::{
    Descriptor, EgressOutcome, EgressOutput, IngressOutcome, InstanceType, MAX_FRAME, QueueInfo,
    Recirculated,
};
pub use control::IdleEntry;
pub use pipeline::{Options, Pipeline};
pub use program::Program;
pub use pre::{CloneSession, MAX_CLONE_SESSION, MAX_MULTICAST_GROUP, Replica};
pub use value::Value;

/// Nanoseconds since the caller's origin of time (the switch's start).
pub type Nanos = u64;
