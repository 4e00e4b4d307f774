//! What fuzzers reach without a connection: a balancer that hears a client, and real servers that hear the balancer.

pub use crate::borrow::Hearer;
pub use crate::lend::Scene;
