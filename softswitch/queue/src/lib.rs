// SPDX-License-Identifier: Apache-2.0
//! The queue behind a switch's egress port and the link to its neighbour: exact departure times, rate, delay and loss.
//!
//! Both are pure state machines without a clock, so that a real-time switch and a simulation use the same code.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod aifo;
mod class;
mod exact_time;
mod link;
mod queue;

pub use aifo::Aifo;
pub use class::DEFAULT_CLASS_DEPTH;
pub use link::{DEFAULT_QUEUE_PACKETS, LinkConfig, Loss, Nanos, PortLink};
pub use queue::{Discipline, EgressQueue, PRIORITIES, QueueCounts, Slot, Started};
