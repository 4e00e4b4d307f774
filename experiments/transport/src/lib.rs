// SPDX-License-Identifier: Apache-2.0
//! Transport protocols for the simulator's hosts: [`tcp`] and a QUIC-like [`quic`], with the same congestion controllers
//! ([`congestion`]).
//!
//! A connection is a pure state machine without clock, socket or randomness. Every call takes the time. `receive` takes a segment,
//! `poll_transmit` returns the next one to send, and `timeout` returns when to call `on_timeout`. The same calls always return the
//! same segments. Once the buffers have grown to the size of a window, no packet causes an allocation.
//!
//! Bytes have no contents: an application specifies how many bytes it writes, and queries how many have arrived.

pub mod congestion;
mod intervals;
pub mod quic;
mod rtt;
pub mod tcp;

/// Times count from the start of the simulation.
pub use softswitch_queue::Nanos;

/// One millisecond.
pub const MILLISECOND: Nanos = 1_000_000;

/// One second.
pub const SECOND: Nanos = 1_000_000_000;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
