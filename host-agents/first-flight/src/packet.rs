//! Long headers (RFC 9000, 17.2), as far as they are not protected.

use frontage_quic_wire::Reader;

use crate::{Fault, Version};

/// Most bytes of a connection id in versions 1 and 2.
pub const MAX_CID: usize = 20;

/// What every version of QUIC has in front (RFC 8999, 5.1).
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
    /// Reads a datagram's first packet.
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
                version: u32::from_be_bytes(version.try_into().expect("four bytes")),
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

/// What a long header says that its packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Carries the ClientHello.
    Initial,
    /// Early data of a resumed session.
    ZeroRtt,
    /// Carries the rest of the handshake.
    Handshake,
    /// A server's demand that the client show its address.
    Retry,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Initial, Self::ZeroRtt, Self::Handshake, Self::Retry];

    /// Version 2 counts from one further (RFC 9369, 3.2).
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

/// The first byte of an Initial with a packet number of so many bytes, 1 to 4.
pub(crate) const fn initial(version: Version, number_len: usize) -> u8 {
    LONG | FIXED | shift(version) << 4 | (number_len - 1) as u8
}

/// A packet of version 1 or 2, still protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Its version.
    pub version: Version,
    /// Its type.
    pub kind: Kind,
    /// Destination connection id, at most 20 bytes.
    pub dcid: &'a [u8],
    /// Source connection id, at most 20 bytes.
    pub scid: &'a [u8],
    /// An Initial's token; what a Retry has behind its connection ids, its token and its tag. Others have none.
    pub token: &'a [u8],
    /// The whole packet.
    pub bytes: &'a [u8],
    /// Where the packet number begins in it.
    pub number_at: usize,
}

impl<'a> Packet<'a> {
    /// The first packet of `datagram`, and what follows it there.
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
        // Retry has no length: it is alone in its datagram.
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
