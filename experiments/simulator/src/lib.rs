// SPDX-License-Identifier: Apache-2.0
//! Discrete events over P4 pipelines, exact queues and TCP.
//!
//! A [`Scenario`] describes switches, hosts, links and workloads. Every switch runs a compiled P4 program with the controller's entries
//! (`softswitch-pipeline`). Every link has the software switch's queue (`softswitch-queue`). Every host speaks TCP
//! (`frontage-transport`) in complete frames with correct checksums, because the program reads and rewrites them.
//!
//! ```text
//!  workload ──> host ── channel ──> switch ── channel ──> switch ── channel ──> host
//!               TCP      queue,      P4        queue,      P4                   TCP, CCLB7's signals
//!                        rate, delay, loss
//! ```
//!
//! The same scenario gives the same bytes: one thread, events in exact order ([`agenda`]), integer time, and a generator of
//! its own for whatever draws ([`seed`]).

#![warn(missing_docs)]

pub mod agenda;
pub mod agent;
pub mod flows;
pub mod frame;
pub mod host;
pub mod network;
pub mod program;
pub mod record;
pub mod scenario;
pub mod seed;
pub mod simulation;
pub mod switch;
pub mod workload;

pub use record::Summary;
pub use scenario::Scenario;
pub use simulation::{Progress, Simulation};
