// SPDX-License-Identifier: Apache-2.0
//! SOCKS 5 wire format (RFC 1928, RFC 1929): requests, replies and datagram headers.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Protocol version.
pub const VERSION: u8 = 5;
/// Version of the username/password authentication (RFC 1929).
pub const AUTH_VERSION: u8 = 1;
/// Authentication method: none.
pub const NO_AUTHENTICATION: u8 = 0;
/// Authentication method: username and password (RFC 1929).
pub const USERNAME_PASSWORD: u8 = 2;
/// The server's answer if it accepts none of the offered methods.
pub const NO_ACCEPTABLE_METHOD: u8 = 0xff;
/// The UDP ASSOCIATE command, the only one that QuicSocks uses.
pub const UDP_ASSOCIATE: u8 = 3;

const IPV4: u8 = 1;
const DOMAIN: u8 = 3;
const IPV6: u8 = 4;

/// A reply code (RFC 1928, section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reply {
    Succeeded = 0,
    Failure = 1,
    NotAllowed = 2,
    HostUnreachable = 4,
    Refused = 5,
    Command = 7,
    AddressType = 8,
}

impl Reply {
    /// Returns the reply for a code on the wire. Unknown codes map to [`Reply::Failure`].
    pub const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Succeeded,
            2 => Self::NotAllowed,
            4 => Self::HostUnreachable,
            5 => Self::Refused,
            7 => Self::Command,
            8 => Self::AddressType,
            _ => Self::Failure,
        }
    }
}

impl std::fmt::Display for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Succeeded => "succeeded",
            Self::Failure => "general failure",
            Self::NotAllowed => "not allowed by the proxy's rules",
            Self::HostUnreachable => "the name has no reachable address",
            Self::Refused => "connection refused by the server",
            Self::Command => "command not supported by the proxy",
            Self::AddressType => "address type not supported by the proxy",
        })
    }
}

/// Destination of a datagram.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Destination {
    /// A host name, in lower case and without a trailing dot, and a port.
    Name(String, u16),
    Address(SocketAddr),
}

/// Why a message is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The message is truncated.
    Short,
    /// The address type is unknown.
    AddressType,
    /// The name is not a valid host name.
    Name,
    /// The port is 0.
    Port,
    /// Reserved bytes are not 0.
    Reserved,
    /// The datagram is a fragment. Reassembly is not supported.
    Fragment,
}

impl Destination {
    /// Creates a destination from a host name in any case, with or without a trailing dot.
    pub fn name(name: &[u8], port: u16) -> Result<Self, Malformed> {
        let name = name.strip_suffix(b".").unwrap_or(name);
        // Letters, digits and hyphens (RFC 1123, section 2.1), and underscores, which some hosts use. The resolver checks
        // the lengths of labels.
        let is_valid =
            |octet: &u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_' | b'.');
        if name.is_empty() || !name.iter().all(is_valid) {
            return Err(Malformed::Name);
        }
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        Ok(Self::Name(name, port))
    }

    /// Decodes an address and a port from the front of `wire`, and advances it.
    fn decode(wire: &mut &[u8]) -> Result<Self, Malformed> {
        let destination = match take(wire)? {
            [IPV4] => Self::Address((Ipv4Addr::from(take(wire)?), port(wire)?).into()),
            [IPV6] => Self::Address((Ipv6Addr::from(take(wire)?), port(wire)?).into()),
            [DOMAIN] => {
                let [length] = take(wire)?;
                let (name, rest) = wire
                    .split_at_checked(length.into())
                    .ok_or(Malformed::Short)?;
                *wire = rest;
                Self::name(name, port(wire)?)?
            }
            _ => return Err(Malformed::AddressType),
        };
        Ok(destination)
    }

    /// Appends the address and port to `wire`. A name is cut to 255 bytes.
    pub fn encode(&self, wire: &mut Vec<u8>) {
        let port = match self {
            Self::Address(address) => {
                match address.ip().to_canonical() {
                    IpAddr::V4(v4) => {
                        wire.push(IPV4);
                        wire.extend(v4.octets());
                    }
                    IpAddr::V6(v6) => {
                        wire.push(IPV6);
                        wire.extend(v6.octets());
                    }
                }
                address.port()
            }
            Self::Name(name, port) => {
                let name = &name.as_bytes()[..name.len().min(255)];
                wire.extend([DOMAIN, name.len() as u8]);
                wire.extend(name);
                *port
            }
        };
        wire.extend(port.to_be_bytes());
    }
}

fn take<const N: usize>(wire: &mut &[u8]) -> Result<[u8; N], Malformed> {
    let (taken, rest) = wire.split_first_chunk().ok_or(Malformed::Short)?;
    *wire = rest;
    Ok(*taken)
}

fn port(wire: &mut &[u8]) -> Result<u16, Malformed> {
    take(wire).map(u16::from_be_bytes)
}

/// Splits a datagram into its destination and payload (RFC 1928, section 7).
///
/// # Errors
/// Returns why the header is malformed.
pub fn parse_datagram(mut wire: &[u8]) -> Result<(Destination, &[u8]), Malformed> {
    let [r0, r1, fragment] = take(&mut wire)?;
    if (r0, r1) != (0, 0) {
        return Err(Malformed::Reserved);
    }
    if fragment != 0 {
        return Err(Malformed::Fragment);
    }
    let destination = Destination::decode(&mut wire)?;
    match &destination {
        Destination::Name(_, 0) => Err(Malformed::Port),
        Destination::Address(address) if address.port() == 0 => Err(Malformed::Port),
        _ => Ok((destination, wire)),
    }
}

/// Encodes the header of datagrams to or from `destination`.
pub fn encode_header(destination: &Destination) -> Vec<u8> {
    let mut wire = vec![0; 3];
    destination.encode(&mut wire);
    wire
}

/// Encodes a reply (RFC 1928, section 6), either for the control connection or as the report about a name.
pub fn encode_reply(reply: Reply, bound: SocketAddr) -> Vec<u8> {
    let mut wire = vec![VERSION, reply as u8, 0];
    Destination::Address(bound).encode(&mut wire);
    wire
}

/// Decodes a reply.
///
/// # Errors
/// Returns why the reply is malformed.
pub fn parse_reply(mut wire: &[u8]) -> Result<(Reply, Destination), Malformed> {
    let [version, code, _] = take(&mut wire)?;
    if version != VERSION {
        return Err(Malformed::Reserved);
    }
    Ok((Reply::from_code(code), Destination::decode(&mut wire)?))
}

/// Reads an address and a port from a stream.
///
/// # Errors
/// The outer error is a failure of the stream, the inner one a malformed address.
pub async fn read_destination(
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<Result<Destination, Malformed>> {
    let kind = stream.read_u8().await?;
    let mut wire = vec![kind];
    let length = match kind {
        IPV4 => 4,
        IPV6 => 16,
        DOMAIN => {
            let length = stream.read_u8().await?;
            wire.push(length);
            length.into()
        }
        _ => return Ok(Err(Malformed::AddressType)),
    };
    let at = wire.len();
    wire.resize(at + length + 2, 0);
    stream.read_exact(&mut wire[at..]).await?;
    Ok(Destination::decode(&mut &wire[..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagram_header_round_trips() {
        for destination in [
            Destination::name(b"Films.Example.", 443).unwrap(),
            Destination::Address("192.0.2.1:443".parse().unwrap()),
            Destination::Address("[2001:db8::1]:65535".parse().unwrap()),
        ] {
            let mut wire = encode_header(&destination);
            wire.extend(b"payload");
            assert_eq!(parse_datagram(&wire), Ok((destination, &b"payload"[..])));
        }
        let named = Destination::name(b"films.example", 443).unwrap();
        assert_eq!(named, Destination::Name("films.example".into(), 443));
    }

    #[test]
    fn malformed_datagram_reports_its_fault() {
        let good = encode_header(&Destination::name(b"a.example", 443).unwrap());
        for n in 0..good.len() {
            assert_eq!(parse_datagram(&good[..n]), Err(Malformed::Short), "{n}");
        }
        let with = |at: usize, octet: u8| {
            let mut wire = good.clone();
            wire[at] = octet;
            parse_datagram(&wire).unwrap_err()
        };
        assert_eq!(with(1, 1), Malformed::Reserved);
        assert_eq!(with(2, 1), Malformed::Fragment);
        assert_eq!(with(2, 0x80), Malformed::Fragment);
        assert_eq!(with(3, 2), Malformed::AddressType);
        assert_eq!(with(5, b' '), Malformed::Name);
        assert_eq!(with(4, 0), Malformed::Name);
        let zero = encode_header(&Destination::Name("a".into(), 0));
        assert_eq!(parse_datagram(&zero), Err(Malformed::Port));
    }

    #[test]
    fn reply_round_trips() {
        let bound = "[2001:db8::1]:1234".parse().unwrap();
        let wire = encode_reply(Reply::NotAllowed, bound);
        assert_eq!(
            parse_reply(&wire),
            Ok((Reply::NotAllowed, Destination::Address(bound)))
        );
        assert_eq!(parse_reply(&wire[..9]), Err(Malformed::Short));
    }
}
