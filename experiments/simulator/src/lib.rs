// SPDX-License-Identifier: Apache-2.0
//! A discrete-event simulator of data centers with compiled P4 programs in the loop.
//!
//! A [`Scenario`] describes switches, hosts, links and workloads. Every switch runs a compiled P4 program with the controller's entries
//! (`softswitch-pipeline`). Every link has the software switch's queue (`softswitch-queue`). Every host speaks TCP and QUIC
//! (`frontage-transport`) in complete frames with correct checksums, because programs read and rewrite them.
//!
//! ```text
//!  workload ──> host ── channel ──> switch ── channel ──> switch ── channel ──> host
//!               TCP      queue,      P4        queue,      P4                   TCP, CCLB7's signals
//!                        rate, delay, loss
//! ```
//!
//! The same scenario gives the same bytes, whatever the number of threads. The simulator processes the events of a node in exact order
//! ([`events`]), counts time in integers, and gives each user of random numbers its own generator ([`seed`]). Threads simulate parts of the
//! network ([`shard`]) for as long as no frame from another part can arrive ([`simulation`]).

#![warn(missing_docs)]

pub mod agent;
pub mod events;
pub mod flows;
pub mod frame;
pub mod host;
pub mod network;
pub mod program;
pub mod record;
pub mod scenario;
pub mod seed;
pub mod shard;
pub mod simulation;
pub mod switch;
pub mod workload;

pub use record::Summary;
pub use scenario::Scenario;
pub use simulation::{Progress, Simulation};
