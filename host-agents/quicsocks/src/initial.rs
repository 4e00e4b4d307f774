//! Initial packets (RFC 9000, section 17.2.2; RFC 9369 for version 2): seen whether they are some, and built anew for a server that sent a Retry.
//!
//! Their keys follow from the client's first Destination Connection ID (RFC 9001, section 5.2), so that whoever sees the packet can read it and
//! make one like it. The ClientHello in it is left as it is: TLS sees no difference.

use frontage_quic::parameters::{put_varint, varint};
use frontage_quic::retry;
use rustls::Side;
use rustls::quic::{DirectionalKeys, Suite};

/// Least bytes of a datagram with an Initial packet (RFC 9000, section 14.1).
pub const LEAST: usize = 1200;
/// Most bytes that a datagram built anew may have: what an Ethernet frame takes over IPv6.
const MOST: usize = 1452;
/// Octets of the AEAD's tag.
const TAG: usize = 16;
/// Shortest connection id that a client may choose for its first packet, and longest of all (RFC 9000, section 7.2 and 17.2).
const CHOSEN: usize = 8;
const LONGEST: usize = 20;

/// Versions of QUIC whose Initial packets can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V1,
    V2,
}

impl Version {
    fn of(wire: u32) -> Option<Self> {
        match wire {
            1 => Some(Self::V1),
            0x6b33_43cf => Some(Self::V2),
            _ => None,
        }
    }

    const fn wire(self) -> u32 {
        match self {
            Self::V1 => 1,
            Self::V2 => 0x6b33_43cf,
        }
    }

    /// Two bits of the first octet (RFC 9369, section 3.2).
    const fn initial(self) -> u8 {
        match self {
            Self::V1 => 0b00,
            Self::V2 => 0b01,
        }
    }

    const fn retry(self) -> u8 {
        match self {
            Self::V1 => 0b11,
            Self::V2 => 0b00,
        }
    }

    const fn keys(self) -> rustls::quic::Version {
        match self {
            Self::V1 => rustls::quic::Version::V1,
            Self::V2 => rustls::quic::Version::V2,
        }
    }
}

/// Why a datagram does not begin a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// It is shorter than 1200 bytes.
    Short,
    /// It is no Initial packet, or a malformed one.
    NotInitial,
    /// Its version of QUIC is not known here.
    Version,
    /// Its keys do not open it.
    Forged,
}

/// A client's Initial packet without its protection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Initial {
    version: Version,
    /// Chosen by the client, if this is of its first flight.
    pub dst_cid: Vec<u8>,
    /// The client's own.
    pub src_cid: Vec<u8>,
    /// As it is on the wire: its last octets.
    number: Vec<u8>,
    /// Its frames without PADDING.
    frames: Vec<u8>,
}

/// A Retry packet (RFC 9000, section 17.2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry<'a> {
    version: Version,
    /// The client's own.
    pub dst_cid: &'a [u8],
    /// To be the next Destination Connection ID.
    src_cid: &'a [u8],
    token: &'a [u8],
    /// Without tag.
    packet: &'a [u8],
    tag: [u8; 16],
}

/// What long headers have in common (RFC 8999, section 5.1).
struct Long<'a> {
    first: u8,
    version: Version,
    dst_cid: &'a [u8],
    src_cid: &'a [u8],
    rest: &'a [u8],
}

fn long(packet: &[u8]) -> Result<Long<'_>, Problem> {
    let (&first, rest) = packet.split_first().ok_or(Problem::NotInitial)?;
    let (version, mut rest) = rest.split_first_chunk().ok_or(Problem::NotInitial)?;
    // Header form and fixed bit.
    if first & 0xc0 != 0xc0 {
        return Err(Problem::NotInitial);
    }
    let version = Version::of(u32::from_be_bytes(*version)).ok_or(Problem::Version)?;
    let mut cid = || {
        let (&length, more) = rest.split_first()?;
        let (cid, more) = more.split_at_checked(length.into())?;
        rest = more;
        (cid.len() <= LONGEST).then_some(cid)
    };
    let dst_cid = cid().ok_or(Problem::NotInitial)?;
    let src_cid = cid().ok_or(Problem::NotInitial)?;
    Ok(Long {
        first,
        version,
        dst_cid,
        src_cid,
        rest,
    })
}

/// The client's connection id, if a server's `datagram` begins with a long header: no connection has more than one before its handshake is complete.
pub fn client_cid(datagram: &[u8]) -> Option<&[u8]> {
    Some(long(datagram).ok()?.dst_cid)
}

/// Opens the Initial packet with which a client's `datagram` begins. Those of its first flight open; others have keys of another connection id.
pub fn open(suite: &Suite, datagram: &[u8]) -> Result<Initial, Problem> {
    if datagram.len() < LEAST {
        return Err(Problem::Short);
    }
    let header = long(datagram)?;
    if header.first >> 4 & 3 != header.version.initial() || header.dst_cid.len() < CHOSEN {
        return Err(Problem::NotInitial);
    }
    let mut rest = header.rest;
    let mut length = || usize::try_from(varint(&mut rest)?).ok();
    let token = length().ok_or(Problem::NotInitial)?;
    rest = rest.get(token..).ok_or(Problem::NotInitial)?;
    let mut length = || usize::try_from(varint(&mut rest)?).ok();
    let length = length().ok_or(Problem::NotInitial)?;
    let at = datagram.len() - rest.len();
    let mut packet = datagram
        .get(..at.saturating_add(length))
        .ok_or(Problem::NotInitial)?
        .to_vec();
    let keys = suite.keys(header.dst_cid, Side::Server, header.version.keys());
    let (number, payload) = unprotect(&keys.remote, &mut packet, at)?;
    Ok(Initial {
        version: header.version,
        dst_cid: header.dst_cid.into(),
        src_cid: header.src_cid.into(),
        number,
        frames: without_padding(payload).ok_or(Problem::NotInitial)?,
    })
}

/// Packet number and payload of `packet`, whose number is at `at` (RFC 9001, section 5.4).
fn unprotect<'a>(
    keys: &DirectionalKeys,
    packet: &'a mut [u8],
    at: usize,
) -> Result<(Vec<u8>, &'a [u8]), Problem> {
    let (head, tail) = packet.split_at_mut(at);
    if tail.len() < 4 + TAG {
        return Err(Problem::NotInitial);
    }
    let (number, sample) = tail.split_at_mut(4);
    let opened = keys
        .header
        .decrypt_in_place(&sample[..TAG], &mut head[0], number);
    opened.map_err(|_| Problem::Forged)?;
    let at = at + usize::from(head[0] & 3) + 1;
    let (header, payload) = packet.split_at_mut(at);
    let number = header[at - usize::from(header[0] & 3) - 1..].to_vec();
    let opened = keys
        .packet
        .decrypt_in_place(value(&number), header, payload);
    Ok((number, opened.map_err(|_| Problem::Forged)?))
}

/// A first flight's numbers are small, so that what is on the wire is all of them.
fn value(number: &[u8]) -> u64 {
    number
        .iter()
        .fold(0, |value, octet| value << 8 | u64::from(*octet))
}

/// An Initial packet's frames but PADDING; none if they are malformed.
fn without_padding(payload: &[u8]) -> Option<Vec<u8>> {
    let (mut kept, mut rest) = (Vec::with_capacity(payload.len()), payload);
    while let Some(kind) = rest.first() {
        let frame = rest;
        if *kind == 0 {
            rest = &rest[1..];
            continue;
        }
        let varints = |rest: &mut &[u8], n| (0..n).try_for_each(|_| varint(rest).map(drop));
        let block = |rest: &mut &[u8]| {
            let length = usize::try_from(varint(rest)?).ok()?;
            *rest = rest.get(length..)?;
            Some(())
        };
        match varint(&mut rest)? {
            // PING
            0x01 => {}
            // ACK: largest, delay, ranges, first range, two for each range, counts of ECN
            kind @ 0x02..=0x03 => {
                varints(&mut rest, 2)?;
                let ranges = varint(&mut rest)?;
                varints(&mut rest, 1)?;
                (0..ranges).try_for_each(|_| varints(&mut rest, 2))?;
                varints(&mut rest, 3 * (kind - 2))?;
            }
            // CRYPTO
            0x06 => {
                varints(&mut rest, 1)?;
                block(&mut rest)?;
            }
            // CONNECTION_CLOSE
            0x1c => {
                varints(&mut rest, 2)?;
                block(&mut rest)?;
            }
            // No other may be here (RFC 9000, section 17.2.2).
            _ => return None,
        }
        kept.extend(&frame[..frame.len() - rest.len()]);
    }
    Some(kept)
}

impl Initial {
    /// The same packet as an answer to `retry` in a datagram of its own; none if that would be too large.
    ///
    /// It keeps its packet number: the client goes on counting after a Retry (RFC 9000, section 17.2.5.3), so it never uses that with these keys, and
    /// takes an acknowledgement of it.
    pub fn again(&self, suite: &Suite, retry: &Retry<'_>) -> Option<Vec<u8>> {
        let first = 0xc0 | self.version.initial() << 4 | (self.number.len() - 1) as u8;
        let mut packet = vec![first];
        packet.extend(self.version.wire().to_be_bytes());
        for cid in [retry.src_cid, &self.src_cid] {
            packet.push(cid.len() as u8);
            packet.extend(cid);
        }
        put_varint(&mut packet, retry.token.len() as u64);
        packet.extend(retry.token);
        // The length has two octets, whatever it is.
        let at = packet.len() + 2;
        let used = at + self.number.len() + self.frames.len() + TAG;
        if used > MOST {
            return None;
        }
        let padding = LEAST.saturating_sub(used);
        let length = self.number.len() + self.frames.len() + padding + TAG;
        packet.extend((length as u16 | 1 << 14).to_be_bytes());
        packet.extend(&self.number);
        let header = packet.len();
        packet.extend(&self.frames);
        packet.resize(packet.len() + padding, 0);
        let keys = suite.keys(retry.src_cid, Side::Client, self.version.keys());
        let (head, payload) = packet.split_at_mut(header);
        let number = value(&self.number);
        let tag = keys.local.packet.encrypt_in_place(number, head, payload);
        packet.extend(tag.ok()?.as_ref());
        let (head, tail) = packet.split_at_mut(at);
        let (number, sample) = tail.split_at_mut(4);
        let number = &mut number[..self.number.len()];
        let masked = keys
            .local
            .header
            .encrypt_in_place(&sample[..TAG], &mut head[0], number);
        masked.ok().map(|()| packet)
    }
}

impl<'a> Retry<'a> {
    /// Reads a server's `datagram`, if it is a Retry.
    pub fn read(datagram: &'a [u8]) -> Option<Self> {
        let header = long(datagram).ok()?;
        if header.first >> 4 & 3 != header.version.retry() {
            return None;
        }
        let (token, tag) = header.rest.split_last_chunk()?;
        Some(Self {
            version: header.version,
            dst_cid: header.dst_cid,
            src_cid: header.src_cid,
            token,
            packet: &datagram[..datagram.len() - tag.len()],
            tag: *tag,
        })
    }

    /// Whether a server that saw `initial` made this, and a client would take it (RFC 9000, section 17.2.5.2).
    pub fn answers(&self, initial: &Initial) -> bool {
        let secret = match self.version {
            Version::V1 => retry::V1,
            Version::V2 => retry::V2,
        };
        self.version == initial.version
            && self.dst_cid == initial.src_cid
            && !self.token.is_empty()
            && retry::tag(&secret, &initial.dst_cid, self.packet) == self.tag
    }
}

#[cfg(test)]
mod tests;
