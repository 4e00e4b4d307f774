//! What a server tells of itself in its packets (CloudCookie, section IV-A; `docs/cookie.md`, "Signals"): RPT of a response, N_AF and N_FF
//! of the server. The agents that see packets as they leave, and the servers of simulations, stand on the same.
//!
//! A [`Response`] knows what was sent of it, and so what it still needs; [`Loads`] count those under way. Offsets are of the stream that
//! carries them: where several responses follow each other on one, what is before a response is to be sent as well before it ends.

#![warn(missing_docs)]

mod loads;
mod response;

pub use loads::Loads;
pub use response::Response;

/// 10^6 microseconds a second, 8 bits a byte.
const MICROSECONDS_TIMES_BITS: u64 = 8_000_000;

/// RPT in microseconds, rounded down: what `bytes` take at an assumed bandwidth in bit/s, which is not 0. Above 2 TB it is no more than
/// that: hours.
#[inline]
pub fn rpt_us(bytes: u64, bandwidth: u64) -> u64 {
    bytes.saturating_mul(MICROSECONDS_TIMES_BITS) / bandwidth
}
