// SPDX-License-Identifier: Apache-2.0
//! QUIC packets in UDP datagrams.
//!
//! The part that a switch can read follows RFC 9000, section 17: header form, version 1 and connection ids. The part that is encrypted
//! on a real wire has its own format here, with at most as many bytes: packet number, ACK and STREAM frames, and then zeros for data,
//! padding and the authentication tag.

use frontage_cookie::cid;
use frontage_transport::quic::{Ack, AckRanges, Frames, Packet, StreamFrame};
use frontage_transport::tcp::Ecn;

use super::Fault;
use super::checksum::{fold, sum};

/// A connection id. All ids have the length of those that servers choose.
pub type ConnectionId = [u8; cid::LEN];

/// A packet with its connection ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram {
    /// The packet.
    pub packet: Packet,
    /// Destination connection id.
    pub to: ConnectionId,
    /// Source connection id, which only packets with a long header have (those of the handshake).
    pub from: Option<ConnectionId>,
}

const UDP_HEADER: usize = 8;
const LONG: u8 = 0xc0;
const SHORT: u8 = 0x40;
const VERSION: [u8; 4] = [0, 0, 0, 1];
/// Maximum length of a datagram without the zeros at its end.
pub const MAX_LENGTH: usize = 512;
/// Unit of acknowledgment delays in nanoseconds (RFC 9000, section 18.2, exponent 3).
const DELAY_UNIT: u64 = 8_000;

const HAS_ACK: u8 = 1;
const HAS_CE: u8 = 2;
const PING: u8 = 4;
const CLOSE: u8 = 8;

/// Returns the length of the UDP datagram in bytes.
pub fn length(datagram: &Datagram) -> usize {
    UDP_HEADER + datagram.packet.length as usize
}

/// Writes a datagram without the zeros at its end. Returns the number of bytes written. `pseudo` is the sum of the pseudo-header.
pub fn write(
    udp: &mut [u8; MAX_LENGTH],
    ports: (u16, u16),
    datagram: &Datagram,
    pseudo: u64,
) -> usize {
    let packet = &datagram.packet;
    let mut out = Writer { bytes: udp, at: 0 };
    out.put(&ports.0.to_be_bytes());
    out.put(&ports.1.to_be_bytes());
    out.put(&(length(datagram) as u16).to_be_bytes());
    out.put(&[0, 0]);
    match &datagram.from {
        Some(from) => {
            out.put(&[LONG]);
            out.put(&VERSION);
            out.put(&[cid::LEN as u8]);
            out.put(&datagram.to);
            out.put(&[cid::LEN as u8]);
            out.put(from);
        }
        None => {
            out.put(&[SHORT]);
            out.put(&datagram.to);
        }
    }
    let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
    let ce = packet.ack.and_then(|ack| ack.ce);
    let flags = flag(packet.ack.is_some(), HAS_ACK)
        | flag(ce.is_some(), HAS_CE)
        | flag(packet.ping, PING)
        | flag(packet.close, CLOSE);
    out.put(&[flags, packet.frames.len() as u8]);
    out.number(packet.number);
    if let Some(ack) = &packet.ack {
        out.number(ack.delay / DELAY_UNIT);
        out.number(ack.ranges.len() as u64);
        // In descending order, each as the distance from the range above.
        let mut above = None;
        for &(first, last) in ack.ranges.iter() {
            out.number(above.map_or(last, |above: u64| above - last));
            out.number(last - first);
            above = Some(first);
        }
        ce.into_iter().for_each(|ce| out.number(ce));
    }
    for frame in packet.frames.iter() {
        out.number(frame.id << 1 | u64::from(frame.fin));
        out.number(frame.offset);
        out.number(u64::from(frame.len));
    }
    let written = out.at;
    debug_assert!(
        written <= length(datagram),
        "{written} bytes for {datagram:?}"
    );
    // A checksum field of zero means that the checksum is absent (RFC 768).
    let checksum = match fold(pseudo + sum(&udp[..written])) {
        [0, 0] => [0xff, 0xff],
        checksum => checksum,
    };
    udp[6..8].copy_from_slice(&checksum);
    written
}

/// Parses a datagram. Returns it with the ports.
pub fn read(udp: &[u8], ecn: Ecn, pseudo: u64) -> Result<(Datagram, (u16, u16)), Fault> {
    let mut from = Reader { bytes: udp, at: 0 };
    let [a, b, c, d, e, f, _, _] = from.take::<UDP_HEADER>()?;
    if usize::from(u16::from_be_bytes([e, f])) != udp.len() {
        return Err(Fault::Malformed);
    }
    let long = match from.take::<1>()? {
        [LONG] => true,
        [SHORT] => false,
        _ => return Err(Fault::OtherProtocol),
    };
    if long && (from.take()? != VERSION || from.take()? != [cid::LEN as u8]) {
        return Err(Fault::OtherProtocol);
    }
    let to = from.take()?;
    let sender = if long {
        from.take::<1>()?;
        Some(from.take()?)
    } else {
        None
    };
    let [flags, streams] = from.take()?;
    let mut packet = Packet {
        number: from.number()?,
        handshake: long,
        ping: flags & PING != 0,
        close: flags & CLOSE != 0,
        ack: None,
        frames: Frames::default(),
        length: (udp.len() - UDP_HEADER) as u32,
        ecn,
    };
    if flags & HAS_ACK != 0 {
        packet.ack = Some(from.ack(flags & HAS_CE != 0)?);
    }
    for _ in 0..streams {
        let id = from.number()?;
        packet.frames.push(StreamFrame {
            id: id >> 1,
            fin: id & 1 == 1,
            offset: from.number()?,
            len: from.number()? as u32,
        });
    }
    // The remaining bytes are zeros, which do not change the sum.
    if fold(pseudo + sum(&udp[..from.at])) != [0, 0] {
        return Err(Fault::Checksum);
    }
    let ports = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    let datagram = Datagram {
        packet,
        to,
        from: sender,
    };
    Ok((datagram, ports))
}

struct Writer<'a> {
    bytes: &'a mut [u8; MAX_LENGTH],
    at: usize,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    /// Writes a variable-length integer (RFC 9000, section 16).
    fn number(&mut self, value: u64) {
        match value {
            ..0x40 => self.put(&[value as u8]),
            0x40..0x4000 => self.put(&(value as u16 | 1 << 14).to_be_bytes()),
            0x4000..0x4000_0000 => self.put(&(value as u32 | 2 << 30).to_be_bytes()),
            _ => self.put(&(value | 3 << 62).to_be_bytes()),
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let rest = self
            .bytes
            .get(self.at..)
            .and_then(|rest| rest.first_chunk());
        self.at += N;
        rest.copied().ok_or(Fault::Malformed)
    }

    fn number(&mut self) -> Result<u64, Fault> {
        let [first] = self.take()?;
        let mut value = u64::from(first & 0x3f);
        for _ in 1..1 << (first >> 6) {
            let [next] = self.take()?;
            value = value << 8 | u64::from(next);
        }
        Ok(value)
    }

    fn ack(&mut self, has_ce: bool) -> Result<Ack, Fault> {
        let delay = self.number()?.saturating_mul(DELAY_UNIT);
        let mut ranges = AckRanges::default();
        let mut above = None;
        for _ in 0..self.number()? {
            let distance = self.number()?;
            let last = match above {
                None => distance,
                Some(above) => u64::checked_sub(above, distance).ok_or(Fault::Malformed)?,
            };
            let first = last.checked_sub(self.number()?).ok_or(Fault::Malformed)?;
            ranges.push(first..=last);
            above = Some(first);
        }
        let ce = if has_ce { Some(self.number()?) } else { None };
        Ok(Ack { ranges, delay, ce })
    }
}
