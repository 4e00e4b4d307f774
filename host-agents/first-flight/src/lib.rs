// SPDX-License-Identifier: Apache-2.0
//! A reader of QUIC first flights (RFC 9000, RFC 9001; version 2: RFC 9369) for hosts between client and server. It
//! gets from Initial packets, coalesced or not and in any order, to the ClientHello's server name and ALPN.
//!
//! The keys of Initial packets are derived from the connection id that the client chose, so every host on the path
//! can read them. [`Reader`] decrypts the packets of a datagram, [`Crypto`] reassembles their CRYPTO frames,
//! [`hello::read`] parses the ClientHello, and [`answer`] writes the packet that refuses a client. None of them
//! allocates after its creation, and all buffers have fixed bounds.
//!
//! A proxy can also answer a Retry on behalf of its client: [`Reader::open`] removes the protection of an
//! [`Initial`], and [`Initial::for_retry`] builds it again for a [`Retry`].

#![forbid(unsafe_code)]
#![warn(missing_docs)]

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

/// Least number of bytes of a datagram with a client's Initial (RFC 9000, 14.1).
pub const MIN_DATAGRAM: usize = 1200;

/// A supported QUIC version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// RFC 9000.
    V1,
    /// RFC 9369.
    V2,
}

impl Version {
    /// All versions, preferred one first.
    pub const ALL: [Self; 2] = [Self::V1, Self::V2];

    /// Return the version number in packets.
    pub const fn number(self) -> u32 {
        match self {
            Self::V1 => 0x0000_0001,
            Self::V2 => 0x6b33_43cf,
        }
    }

    /// Return the version with this number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|v| v.number() == number)
    }
}
