//! What Frontage's QUIC agents stand on.

pub mod cid;
mod clients;
pub mod frames;
pub mod h3;
pub mod keys;
pub mod meter;
pub mod parameters;
pub mod quic_lb;
pub mod recent;
pub mod session;
pub mod socket;
pub mod stragglers;
