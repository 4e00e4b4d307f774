// SPDX-License-Identifier: Apache-2.0
//! The values that a server signals (CloudCookie, section IV-A; `docs/cookie.md`, "Signals"): RPT of each response,
//! and N_AF and N_FF of the server. The agents that see packets as they leave use it, and so do simulated servers.
//!
//! A [`Response`] knows how much of it was sent, and so what remains; [`Loads`] count the responses under way.
//! Offsets are those of the stream that carries a response. Where several responses follow each other on one stream,
//! what precedes a response must also be sent before it ends.

mod counters;
mod response;

pub use counters::Loads;
pub use response::Response;

/// 10^6 microseconds per second times 8 bits per byte.
const MICROSECONDS_TIMES_BITS: u64 = 8_000_000;

/// Return the RPT in microseconds, rounded down: the time that `bytes` take at an assumed `bandwidth` in bit/s, which
/// must not be 0. Above 2 TB the result saturates, at hours.
#[inline]
pub fn rpt_us(bytes: u64, bandwidth: u64) -> u64 {
    bytes.saturating_mul(MICROSECONDS_TIMES_BITS) / bandwidth
}
