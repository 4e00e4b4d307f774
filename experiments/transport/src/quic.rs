//! A transport like QUIC (RFC 9000): packet numbers, acknowledgement ranges, streams, and the loss
//! detection and congestion control of RFC 9002.
//!
//! What a path sees of QUIC is there: how many bytes a datagram has, when it is sent and what for.
//! Cryptography is not: the handshake is one full datagram each way, in the same packet number
//! space as the data. Flow control is not either (the application reads at once), nor pacing,
//! migration and version negotiation.

mod acks;
mod config;
mod connection;
mod packet;
mod recovery;
mod streams;

pub use config::Config;
pub use connection::{Connection, Statistics};
pub use packet::{Ack, AckRanges, Frames, Packet, StreamFrame};
