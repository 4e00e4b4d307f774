//! The first flight of a QUIC connection (RFC 9000, RFC 9001; version 2: RFC 9369), as one reads it who is not its server:
//! from Initial packets, coalesced or not and in any order, to the ClientHello's server name and ALPN.
//!
//! Initial packets are protected by keys that follow from the connection id that the client chose, so everybody on the way
//! can read them. [`Reader`] decrypts a datagram's, [`Crypto`] gathers what their CRYPTO frames carry, [`hello::read`] reads
//! that, and [`answer`] writes what refuses a client cleanly. Nothing of this allocates once it is made, and every bound is fixed.
//!
//! Who stands in for the client can answer a Retry, too: [`Reader::open`] takes the protection off an [`Initial`], and
//! [`Initial::again`] makes it anew for a [`Retry`].

pub mod answer;
pub mod compose;
mod crypto;
mod fault;
mod frames;
pub mod hello;
mod initial;
mod keys;
pub mod packet;
mod reader;
pub mod retry;

pub use crypto::Crypto;
pub use fault::Fault;
pub use initial::Initial;
pub use reader::Reader;
pub use retry::Retry;

/// Fewest bytes of a datagram with a client's Initial (RFC 9000, 14.1).
pub const MIN_DATAGRAM: usize = 1200;

/// A version whose first flights can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// RFC 9000.
    V1,
    /// RFC 9369.
    V2,
}

impl Version {
    /// All of them, best first.
    pub const ALL: [Self; 2] = [Self::V1, Self::V2];

    /// As it stands in packets.
    pub const fn number(self) -> u32 {
        match self {
            Self::V1 => 0x0000_0001,
            Self::V2 => 0x6b33_43cf,
        }
    }

    /// The version with this number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|v| v.number() == number)
    }
}
