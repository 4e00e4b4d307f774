//! The interpreter passes the same tests of packets as native code: `common::engine` knows where it is.

#[path = "packets.rs"]
mod packets;
