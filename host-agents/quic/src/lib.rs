//! What Frontage's QUIC agents stand on.

pub mod cid;
pub mod frames;
pub mod h3;
pub mod keys;
pub mod meter;
pub mod parameters;
pub mod quic_lb;
mod recent;
mod retry;
pub mod session;
pub mod socket;
