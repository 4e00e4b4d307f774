//! The tunnels of Artemis: a client's UDP datagram, unchanged, between the switches of sites, their dispatchers and their
//! replicas.
//!
//! Two encapsulations carry the same thing. VXLAN (RFC 7348) is the payload of a UDP datagram to port [`vxlan::PORT`];
//! GRE (RFC 2784) with a key (RFC 2890) is the payload of IP protocol [`gre::PROTOCOL`]. The network identifier, or the
//! key, is the id of the client's *origin site*: where its packets enter and its answers leave.
//!
//! [`decode`] borrows from what was received, [`Head`] holds the bytes that go in front of a payload: neither allocates,
//! so a datagram can be sent by scatter/gather. The crate has no I/O and needs no `std`.

#![cfg_attr(not(test), no_std)]

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

/// How a tunnel wraps a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encapsulation {
    /// RFC 7348, within UDP.
    Vxlan,
    /// RFC 2784 with the key of RFC 2890, within IP.
    Gre,
}

/// What came out of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunnelled<'a> {
    /// The site at which the client's packet entered.
    pub origin: NonZeroU8,
    /// The client's, or the replica's, datagram.
    pub inner: Datagram<'a>,
}

/// Reads what a tunnel carried: the payload of its UDP datagram (VXLAN), or of its IP packet (GRE). Bytes behind the inner
/// packet's own length are padding.
///
/// # Errors
/// Whatever is wrong with the packet, of which every field is checked, the inner checksums too.
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

/// The family that an EtherType says the inner packet is of.
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
