// SPDX-License-Identifier: Apache-2.0
//! QUIC's wire format (RFC 9000), for code that reads or writes packets beside a QUIC stack.
//!
//! - [`read_varint`], [`write_varint`], [`Reader`]: variable-length integers, and fields read from the front of a
//!   slice.
//! - [`frames`]: the frames of a 1-RTT packet, those of the multipath extension included.
//! - [`parameters`]: transport parameters.
//! - [`server_addresses`]: addresses that a server announces during a connection.
//! - [`PacketNumberSet`]: received packet numbers, and the ACK frame that reports them.
//!
//! Nothing here keeps state of a connection, and nothing but [`server_addresses`] allocates.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod frames;
mod packet_numbers;
pub mod parameters;
mod reader;
pub mod server_addresses;

pub use packet_numbers::PacketNumberSet;
pub use reader::{Reader, read_varint, write_varint};
