//! What the agents' programs have in common.

pub mod config;
pub mod limits;
pub mod prometheus;
pub mod socket;
