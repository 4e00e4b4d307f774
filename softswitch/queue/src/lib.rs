//! What stands between a switch's egress and its neighbour: an exact queue and a link with rate, delay and loss.
//!
//! Both are pure state machines without a clock, so that a switch in real time and a simulation stand on the same ones.

#![warn(missing_docs)]

mod aifo;
mod link;
mod queue;

pub use aifo::Aifo;
pub use link::{DEFAULT_QUEUE_PACKETS, LinkConfig, Loss, Nanos, PortLink};
pub use queue::{Discipline, EgressQueue, PRIORITIES, QueueCounts, Slot, Started};
