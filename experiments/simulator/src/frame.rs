// SPDX-License-Identifier: Apache-2.0
//! Conversion between transport packets and Ethernet frames: IPv4 or IPv6, TCP or QUIC over UDP, with correct checksums.

mod checksum;
mod ip;
mod quic;
mod tcp;

use std::net::SocketAddr;

use frontage_transport::tcp::Segment;

pub use quic::{ConnectionId, Datagram};

/// Maximum number of bytes at the beginning of a frame that may differ from zero: its headers, and what switches put in
/// front of them. The payload is zero.
pub const MAX_HEAD: usize = 1024;

const ETHERNET: usize = 14;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Source and destination of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoints {
    /// Ethernet address of the sender.
    pub from_mac: [u8; 6],
    /// Ethernet address of the receiver.
    pub to_mac: [u8; 6],
    /// Address and port of the sender.
    pub from: SocketAddr,
    /// Address and port of the receiver, of the same family.
    pub to: SocketAddr,
}

/// Contents of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contents {
    /// Source and destination.
    pub endpoints: Endpoints,
    /// Transport packet.
    pub body: Body,
}

/// A transport packet. Payloads are zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "packets are short-lived")]
pub enum Body {
    /// A TCP segment.
    Tcp {
        /// The segment.
        segment: Segment,
        /// True if TSval contains a dynamic cookie (docs/cookie.md).
        ck: bool,
    },
    /// A QUIC packet.
    Quic(Datagram),
}

impl Body {
    /// Returns the number of bytes behind the TCP or UDP header.
    pub fn payload_length(&self) -> usize {
        let length = match self {
            Self::Tcp { segment, .. } => segment.len,
            Self::Quic(datagram) => datagram.packet.length,
        };
        length as usize
    }
}

/// Why a host cannot use a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Neither TCP nor QUIC over IP.
    OtherProtocol,
    /// Truncated, or with inconsistent lengths.
    Malformed,
    /// Wrong checksum.
    Checksum,
}

/// Writes a frame to a buffer that is empty or contains an earlier frame, which it replaces.
pub fn write(buffer: &mut Vec<u8>, endpoints: &Endpoints, body: &Body) {
    let ports = (endpoints.from.port(), endpoints.to.port());
    match body {
        Body::Tcp { segment, ck } => {
            let mut bytes = [0; ip::MAX_LENGTH + tcp::MAX_LENGTH];
            let header = segment.header_length() as usize;
            let length = header + segment.len as usize;
            let (at, pseudo) = ip::write(&mut bytes, endpoints, segment.ecn, TCP, length);
            tcp::write(&mut bytes[at..at + header], ports, segment, *ck, pseudo);
            fill(buffer, [&bytes[..at + header], &[]], at + length);
        }
        Body::Quic(datagram) => {
            let (mut head, mut bytes) = ([0; ip::MAX_LENGTH], [0; quic::MAX_LENGTH]);
            let length = quic::length(datagram);
            let (at, pseudo) = ip::write(&mut head, endpoints, datagram.packet.ecn, UDP, length);
            let written = quic::write(&mut bytes, ports, datagram, pseudo);
            fill(buffer, [&head[..at], &bytes[..written]], at + length);
        }
    }
}

/// Fills a buffer with headers, and zeros up to `length`.
fn fill(buffer: &mut Vec<u8>, headers: [&[u8]; 2], length: usize) {
    // Behind the head, an earlier frame is zero already.
    let head = buffer.len().min(MAX_HEAD);
    debug_assert!(buffer[head..].iter().all(|byte| *byte == 0));
    buffer[..head].fill(0);
    buffer.resize(length, 0);
    let mut room = &mut buffer[..];
    for header in headers {
        let (here, rest) = room.split_at_mut(header.len());
        here.copy_from_slice(header);
        room = rest;
    }
}

/// Parses a frame. Payloads are zeros, which do not change a checksum, so they are not read.
///
/// # Errors
/// Returns the reason why a host cannot use the frame.
pub fn read(frame: &[u8]) -> Result<Contents, Fault> {
    let ethernet = frame.first_chunk::<ETHERNET>().ok_or(Fault::Malformed)?;
    let packet = ip::read(ethernet, &frame[ETHERNET..])?;
    let (body, (from, to)) = match packet.protocol {
        TCP => {
            let (segment, ck, ports) = tcp::read(packet.payload, packet.ecn, packet.pseudo)?;
            (Body::Tcp { segment, ck }, ports)
        }
        UDP => {
            let (datagram, ports) = quic::read(packet.payload, packet.ecn, packet.pseudo)?;
            (Body::Quic(datagram), ports)
        }
        _ => return Err(Fault::OtherProtocol),
    };
    let mac = |at: usize| std::array::from_fn(|i| ethernet[at + i]);
    let endpoints = Endpoints {
        from_mac: mac(6),
        to_mac: mac(0),
        from: SocketAddr::new(packet.from, from),
        to: SocketAddr::new(packet.to, to),
    };
    Ok(Contents { endpoints, body })
}

#[cfg(test)]
mod tests;
