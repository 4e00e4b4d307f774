//! The transports of simulated hosts: [`tcp`] and a QUIC-like [`quic`], over the same congestion
//! controllers ([`congestion`]).
//!
//! A connection is a pure state machine. It has no clock, no socket and no randomness: every call
//! takes the time, segments go in by `receive` and come out of `poll_transmit`, and `timeout` says
//! when to call `on_timeout`. The same calls always give the same segments. Once the buffers have
//! grown to the size of a window, nothing is allocated per packet.
//!
//! Bytes have no contents: an application says how many it writes and asks how many have arrived.

pub mod congestion;
mod intervals;
pub mod quic;
mod rtt;
pub mod tcp;

/// Times count from the start of the simulation.
pub use softswitch_queue::Nanos;

/// A millisecond.
pub const MILLISECOND: Nanos = 1_000_000;

/// A second.
pub const SECOND: Nanos = 1_000_000_000;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
