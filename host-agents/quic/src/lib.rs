//! What Frontage's QUIC agents stand on.

pub mod cid;
pub mod frames;
pub mod h3;
pub mod keys;
pub mod meter;
pub mod parameters;
mod path;
pub mod places;
pub mod quic_lb;
pub mod recent;
pub mod session;
pub mod socket;
