// SPDX-License-Identifier: Apache-2.0
//! The codec of Artemis' tunnels, which carry clients' UDP datagrams unchanged between the switches of sites, their
//! dispatchers and their replicas.
//!
//! There are two encapsulations. VXLAN (RFC 7348) is the payload of a UDP datagram to port [`vxlan::PORT`]. GRE (RFC
//! 2784) with a key (RFC 2890) is the payload of IP protocol [`gre::PROTOCOL`]. The network identifier, or the key,
//! is the id of the client's *origin site*: where its packets enter and its responses leave.
//!
//! [`decode`] returns references into the received bytes, and [`Head`] holds the bytes before a payload. Neither
//! allocates, so a datagram can be sent by scatter/gather. The crate has no I/O and needs no `std`.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod checksum;
mod error;
pub mod gre;
mod head;
mod inner;
pub mod vxlan;

use core::num::NonZeroU8;

pub use error::Error;
pub use head::Head;
pub use inner::{Datagram, Flow};

/// The encapsulation of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encapsulation {
    /// RFC 7348, within UDP.
    Vxlan,
    /// RFC 2784 with the key of RFC 2890, within IP.
    Gre,
}

/// A decoded packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunnelled<'a> {
    /// Site at which the client's packet entered.
    pub origin: NonZeroU8,
    /// Datagram of the client or replica.
    pub inner: Datagram<'a>,
}

/// Decode a tunnelled packet: the payload of a UDP datagram (VXLAN) or of an IP packet (GRE). Bytes after the inner
/// packet's own length are padding.
///
/// # Errors
/// If any field or checksum of the packet is invalid.
pub fn decode(encapsulation: Encapsulation, bytes: &[u8]) -> Result<Tunnelled<'_>, Error> {
    let (id, family, packet) = match encapsulation {
        Encapsulation::Vxlan => vxlan::open(bytes)?,
        Encapsulation::Gre => gre::open(bytes)?,
    };
    let site = u8::try_from(id).ok().and_then(NonZeroU8::new);
    Ok(Tunnelled {
        origin: site.ok_or(Error::Origin)?,
        inner: Datagram::parse(family, packet)?,
    })
}

/// Address family of the inner packet, as its EtherType says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    fn from_ether_type(ether_type: [u8; 2]) -> Result<Self, Error> {
        match u16::from_be_bytes(ether_type) {
            0x0800 => Ok(Self::V4),
            0x86dd => Ok(Self::V6),
            _ => Err(Error::EtherType),
        }
    }

    const fn ether_type(self) -> [u8; 2] {
        match self {
            Self::V4 => [0x08, 0x00],
            Self::V6 => [0x86, 0xdd],
        }
    }
}
