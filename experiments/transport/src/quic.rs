// SPDX-License-Identifier: Apache-2.0
//! A QUIC-like transport (RFC 9000): packet numbers, ACK ranges, streams, and the loss detection and congestion control of RFC 9002.
//!
//! The model covers what a path sees of QUIC: the size, time and purpose of each datagram. It has no cryptography: the handshake is one
//! full datagram in each direction, in the same packet number space as the data. It has no flow control (the application reads at once),
//! pacing, migration or version negotiation.

mod acks;
mod config;
mod connection;
mod packet;
mod recovery;
mod streams;

pub use config::Config;
pub use connection::{Connection, Statistics};
pub use packet::{Ack, AckRanges, Frames, Packet, StreamFrame};
