//! SOCKS 5 on the wire (RFC 1928, RFC 1929): requests, replies, and the header of each datagram.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The protocol's version, and that of user name and password.
pub const VERSION: u8 = 5;
pub const AUTH_VERSION: u8 = 1;
/// Authentication methods.
pub const NO_AUTH: u8 = 0;
pub const PASSWORD: u8 = 2;
pub const NO_METHOD: u8 = 0xff;
/// The one command here.
pub const UDP_ASSOCIATE: u8 = 3;

const IPV4: u8 = 1;
const DOMAIN: u8 = 3;
const IPV6: u8 = 4;

/// A reply's code (RFC 1928, section 6).
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
    /// The code that `wire` stands for; an unknown one is a failure.
    pub const fn of(wire: u8) -> Self {
        match wire {
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
            Self::HostUnreachable => "the name has no address, or it cannot be reached",
            Self::Refused => "the server refuses",
            Self::Command => "the proxy does not know the command",
            Self::AddressType => "the proxy does not know the type of address",
        })
    }
}

/// Where a datagram is to go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Destination {
    /// To a host by its name, in small letters and without a dot at its end, and its port.
    Name(String, u16),
    Address(SocketAddr),
}

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// It ends too early.
    Short,
    /// The type of its address is unknown.
    AddressType,
    /// A name is no host's.
    Name,
    /// The port is 0.
    Port,
    /// Octets that are reserved are not 0.
    Reserved,
    /// It is a fragment, which nothing here puts together.
    Fragment,
}

impl Destination {
    /// The destination of a host's `name` as people write it.
    pub fn name(name: &[u8], port: u16) -> Result<Self, Malformed> {
        let name = name.strip_suffix(b".").unwrap_or(name);
        // Letters, digits, hyphens (RFC 1123, section 2.1), and underscores, which some use; a resolver checks the lengths of labels.
        let good =
            |octet: &u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_' | b'.');
        if name.is_empty() || !name.iter().all(good) {
            return Err(Malformed::Name);
        }
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        Ok(Self::Name(name, port))
    }

    /// Takes an address and a port from the front of `wire`.
    fn take(wire: &mut &[u8]) -> Result<Self, Malformed> {
        let found = match take(wire)? {
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
        Ok(found)
    }

    /// Appends it. A name has at most 255 octets.
    pub fn put(&self, wire: &mut Vec<u8>) {
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

/// A datagram's header and what it carries (RFC 1928, section 7).
pub fn datagram(mut wire: &[u8]) -> Result<(Destination, &[u8]), Malformed> {
    let [r0, r1, fragment] = take(&mut wire)?;
    if (r0, r1) != (0, 0) {
        return Err(Malformed::Reserved);
    }
    if fragment != 0 {
        return Err(Malformed::Fragment);
    }
    let destination = Destination::take(&mut wire)?;
    match &destination {
        Destination::Name(_, 0) => Err(Malformed::Port),
        Destination::Address(address) if address.port() == 0 => Err(Malformed::Port),
        _ => Ok((destination, wire)),
    }
}

/// The header of datagrams to or from `destination`.
pub fn header(destination: &Destination) -> Vec<u8> {
    let mut wire = vec![0; 3];
    destination.put(&mut wire);
    wire
}

/// A reply (RFC 1928, section 6), on the control connection or about a name.
pub fn reply(reply: Reply, bound: SocketAddr) -> Vec<u8> {
    let mut wire = vec![VERSION, reply as u8, 0];
    Destination::Address(bound).put(&mut wire);
    wire
}

/// What a reply says, if `wire` is a whole one.
pub fn read_reply(mut wire: &[u8]) -> Result<(Reply, Destination), Malformed> {
    let [version, code, _] = take(&mut wire)?;
    if version != VERSION {
        return Err(Malformed::Reserved);
    }
    Ok((Reply::of(code), Destination::take(&mut wire)?))
}

/// Reads an address and a port from a connection; the inner error says what is wrong with them.
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
    Ok(Destination::take(&mut &wire[..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_come_back_as_they_went() {
        for destination in [
            Destination::name(b"Films.Example.", 443).unwrap(),
            Destination::Address("192.0.2.1:443".parse().unwrap()),
            Destination::Address("[2001:db8::1]:65535".parse().unwrap()),
        ] {
            let mut wire = header(&destination);
            wire.extend(b"payload");
            assert_eq!(datagram(&wire), Ok((destination, &b"payload"[..])));
        }
        let named = Destination::name(b"films.example", 443).unwrap();
        assert_eq!(named, Destination::Name("films.example".into(), 443));
    }

    #[test]
    fn what_is_wrong_has_a_name() {
        let good = header(&Destination::name(b"a.example", 443).unwrap());
        for n in 0..good.len() {
            assert_eq!(datagram(&good[..n]), Err(Malformed::Short), "{n}");
        }
        let with = |at: usize, octet: u8| {
            let mut wire = good.clone();
            wire[at] = octet;
            datagram(&wire).unwrap_err()
        };
        assert_eq!(with(1, 1), Malformed::Reserved);
        assert_eq!(with(2, 1), Malformed::Fragment);
        assert_eq!(with(2, 0x80), Malformed::Fragment);
        assert_eq!(with(3, 2), Malformed::AddressType);
        assert_eq!(with(5, b' '), Malformed::Name);
        assert_eq!(with(4, 0), Malformed::Name);
        let zero = header(&Destination::Name("a".into(), 0));
        assert_eq!(datagram(&zero), Err(Malformed::Port));
    }

    #[test]
    fn replies_say_what_was_bound() {
        let bound = "[2001:db8::1]:1234".parse().unwrap();
        let wire = reply(Reply::NotAllowed, bound);
        assert_eq!(
            read_reply(&wire),
            Ok((Reply::NotAllowed, Destination::Address(bound)))
        );
        assert_eq!(read_reply(&wire[..9]), Err(Malformed::Short));
    }
}
