//! What the agents' programs have in common.

pub mod config;
pub mod limits;
pub mod prometheus;
mod say;
pub mod signals;
pub mod socket;

pub use say::say;
