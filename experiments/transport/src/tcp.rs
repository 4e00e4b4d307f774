// SPDX-License-Identifier: Apache-2.0
//! TCP (RFC 9293) with window scaling, timestamps and PAWS (RFC 7323), ECN (RFC 3168) and DCTCP's echo (RFC 8257).
//!
//! Loss recovery uses SACK (RFC 2018) and RFC 6675, or RFC 6582 without SACK. It includes limited transmit (RFC 3042), proportional rate
//! reduction (RFC 6937) and the retransmission timer of RFC 6298.
//!
//! Internally, positions are 64-bit offsets from the initial sequence number: the SYN is at 0, the first byte at 1, and the FIN after the
//! last byte. Only `sequence` handles the wrapping on the wire.

mod config;
mod connection;
mod receiver;
mod recovery;
mod scoreboard;
mod segment;
mod sender;
mod sequence;

pub use config::{Config, Model};
pub use connection::{Connection, State, Statistics};
pub use segment::{Ecn, Flags, SackBlocks, Segment, Timestamps};
