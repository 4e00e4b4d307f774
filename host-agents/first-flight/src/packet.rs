// SPDX-License-Identifier: Apache-2.0
//! The unprotected part of long headers (RFC 9000, 17.2).

use frontage_quic_wire::Reader;

use crate::{Fault, Version};

/// Most bytes of a connection id in versions 1 and 2.
pub const MAX_CID: usize = 20;

/// The version-independent fields (RFC 8999, 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invariants<'a> {
    /// Version number.
    pub version: u32,
    /// Destination connection id, at most 255 bytes.
    pub dcid: &'a [u8],
    /// Source connection id, at most 255 bytes.
    pub scid: &'a [u8],
}

impl<'a> Invariants<'a> {
    /// Parse the first packet of a datagram.
    ///
    /// # Errors
    /// [`Fault::ShortHeader`], [`Fault::Truncated`].
    #[inline]
    pub fn parse(datagram: &'a [u8]) -> Result<Self, Fault> {
        Self::split(datagram).map(|(invariants, _)| invariants)
    }

    #[inline]
    fn split(bytes: &'a [u8]) -> Result<(Self, Reader<'a>), Fault> {
        if bytes.first().ok_or(Fault::Truncated)? & LONG == 0 {
            return Err(Fault::ShortHeader);
        }
        let mut rest = Reader(&bytes[1..]);
        let mut read = || {
            let version = rest.bytes(4)?;
            let cid = |rest: &mut Reader<'a>| rest.byte().and_then(|n| rest.bytes(n.into()));
            Some(Self {
                version: u32::from_be_bytes(version.try_into().expect("4 bytes")),
                dcid: cid(&mut rest)?,
                scid: cid(&mut rest)?,
            })
        };
        let invariants = read().ok_or(Fault::Truncated)?;
        Ok((invariants, rest))
    }
}

const LONG: u8 = 0x80;
pub(crate) const FIXED: u8 = 0x40;

/// The type of a packet with a long header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Initial, which carries the ClientHello.
    Initial,
    /// 0-RTT, early data of a resumed session.
    ZeroRtt,
    /// Handshake, which carries the rest of the handshake.
    Handshake,
    /// Retry, by which a server validates the client's address.
    Retry,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Initial, Self::ZeroRtt, Self::Handshake, Self::Retry];

    /// Version 2 numbers the types from 1 (RFC 9369, 3.2).
    #[inline]
    fn read(version: Version, first: u8) -> Self {
        Self::ALL[usize::from((first >> 4 & 3).wrapping_sub(shift(version)) & 3)]
    }
}

const fn shift(version: Version) -> u8 {
    match version {
        Version::V1 => 0,
        Version::V2 => 1,
    }
}

/// Return the first byte of an Initial whose packet number has `number_len` bytes, 1 to 4.
pub(crate) const fn initial(version: Version, number_len: usize) -> u8 {
    LONG | FIXED | shift(version) << 4 | (number_len - 1) as u8
}

/// A protected packet of version 1 or 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// QUIC version.
    pub version: Version,
    /// Packet type.
    pub kind: Kind,
    /// Destination connection id, at most 20 bytes.
    pub dcid: &'a [u8],
    /// Source connection id, at most 20 bytes.
    pub scid: &'a [u8],
    /// The token of an Initial; token and tag of a Retry; empty for other types.
    pub token: &'a [u8],
    /// The complete packet.
    pub bytes: &'a [u8],
    /// Offset of the packet number in `bytes`.
    pub number_at: usize,
}

impl<'a> Packet<'a> {
    /// Parse the first packet of `datagram`. Return it and the rest of the datagram.
    ///
    /// # Errors
    /// Those of [`Invariants::parse`]; [`Fault::VersionNegotiation`], [`Fault::UnknownVersion`], [`Fault::FixedBit`],
    /// [`Fault::ConnectionId`].
    #[inline]
    pub fn parse(datagram: &'a [u8]) -> Result<(Self, &'a [u8]), Fault> {
        let (
            Invariants {
                version,
                dcid,
                scid,
            },
            mut rest,
        ) = Invariants::split(datagram)?;
        if version == 0 {
            return Err(Fault::VersionNegotiation);
        }
        let version = Version::from_number(version).ok_or(Fault::UnknownVersion)?;
        if datagram[0] & FIXED == 0 {
            return Err(Fault::FixedBit);
        }
        if dcid.len().max(scid.len()) > MAX_CID {
            return Err(Fault::ConnectionId);
        }
        let kind = Kind::read(version, datagram[0]);
        let token = match kind {
            Kind::Initial => rest.length_prefixed().ok_or(Fault::Truncated)?,
            Kind::Retry => rest.0,
            Kind::ZeroRtt | Kind::Handshake => &[],
        };
        // A Retry has no length field and fills its datagram.
        let (number_at, end) = if kind == Kind::Retry {
            (datagram.len(), datagram.len())
        } else {
            let length = rest.varint().ok_or(Fault::Truncated)?;
            let number_at = datagram.len() - rest.0.len();
            let length = usize::try_from(length).ok().filter(|n| *n <= rest.0.len());
            (number_at, number_at + length.ok_or(Fault::Truncated)?)
        };
        let (bytes, next) = datagram.split_at(end);
        let packet = Self {
            version,
            kind,
            dcid,
            scid,
            token,
            bytes,
            number_at,
        };
        Ok((packet, next))
    }
}
