// SPDX-License-Identifier: Apache-2.0
//! Addresses that a server announces during a connection (draft-munizaga-quic-alternative-server-address-02), which
//! replaces draft-munizaga-quic-new-preferred-address.

use std::net::{IpAddr, SocketAddr};

use crate::{Reader, write_varint};

/// Id of the transport parameter alternative_address, with which a client says that it understands
/// ALTERNATIVE_ADDRESS. Its value is empty, and servers must not send it (section 3 of the draft).
pub const ALTERNATIVE_ADDRESS: u64 = 0xff_0969_d85c;
/// Id of the transport parameter next_server, with which a client says that it understands NEXT_SERVER. Its value is
/// empty. Specified by Frontage (docs/moves.md).
pub const NEXT_SERVER: u64 = 0xff01;

/// The use that a client makes of announced addresses, which is the type of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Announcement {
    /// ALTERNATIVE_ADDRESS: the client migrates this connection to the address (section 5 of the draft).
    Move,
    /// NEXT_SERVER: the client opens a new connection at the address for further requests (docs/moves.md).
    HandOver,
}

impl Announcement {
    /// Return the announcement with the frame type `kind`.
    #[inline]
    pub const fn from_frame_type(kind: u64) -> Option<Self> {
        match kind {
            0x1d58_45e2 => Some(Self::Move),
            0x2ac3_51b7 => Some(Self::HandOver),
            _ => None,
        }
    }

    /// Return the frame type.
    pub const fn frame_type(self) -> u64 {
        match self {
            Self::Move => 0x1d58_45e2,
            Self::HandOver => 0x2ac3_51b7,
        }
    }

    /// Return the transport parameter of the clients that understand the frame.
    pub const fn parameter(self) -> u64 {
        match self {
            Self::Move => ALTERNATIVE_ADDRESS,
            Self::HandOver => NEXT_SERVER,
        }
    }
}

/// Types of entries (section 5 of the draft).
const CURRENT_PATH: u64 = 0;
const IPV4: u64 = 1;
const IPV6: u64 = 2;

/// The contents of ALTERNATIVE_ADDRESS or NEXT_SERVER: the complete set of addresses. It replaces that of every frame of
/// the type with a smaller sequence number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerAddresses {
    /// Number of the set. Clients ignore a frame whose number is not larger than the last one.
    pub sequence: u64,
    /// Addresses that the server prefers to the current one, with their priority hints, smallest first.
    pub preferred: Vec<(u64, SocketAddr)>,
    /// Addresses that are better than none, with their priority hints, smallest first.
    pub backup: Vec<(u64, SocketAddr)>,
}

impl ServerAddresses {
    /// Return the frame of this set.
    pub fn to_frame(&self, announcement: Announcement) -> Vec<u8> {
        let mut wire = Vec::new();
        write_varint(&mut wire, announcement.frame_type());
        write_varint(&mut wire, self.sequence);
        let count = self.preferred.len() + 1 + self.backup.len();
        write_varint(&mut wire, count as u64);
        self.preferred
            .iter()
            .for_each(|entry| write(&mut wire, entry));
        write_varint(&mut wire, CURRENT_PATH);
        self.backup.iter().for_each(|entry| write(&mut wire, entry));
        wire
    }

    /// Read what follows the frame type. Return `None` if it is malformed: its receiver closes the connection with
    /// FRAME_ENCODING_ERROR (section 5 of the draft).
    pub fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let mut set = Self {
            sequence: reader.varint()?,
            ..Self::default()
        };
        let count = reader.varint()?;
        let mut is_preferred = true;
        for _ in 0..count {
            let entry = match reader.varint()? {
                CURRENT_PATH if is_preferred => {
                    is_preferred = false;
                    continue;
                }
                IPV4 => (reader.varint()?, IpAddr::from(reader.array::<4>()?)),
                IPV6 => (reader.varint()?, IpAddr::from(reader.array::<16>()?)),
                _ => return None,
            };
            let port = u16::from_be_bytes(reader.array()?);
            let entry = (entry.0, SocketAddr::new(entry.1, port));
            let known = set.preferred.iter().chain(&set.backup);
            if known.clone().any(|(_, address)| *address == entry.1) {
                return None;
            }
            let side = match is_preferred {
                true => &mut set.preferred,
                false => &mut set.backup,
            };
            if side.last().is_some_and(|last| last.0 > entry.0) {
                return None;
            }
            side.push(entry);
        }
        (!is_preferred).then_some(set)
    }
}

fn write(wire: &mut Vec<u8>, (priority, address): &(u64, SocketAddr)) {
    write_varint(wire, if address.is_ipv4() { IPV4 } else { IPV6 });
    write_varint(wire, *priority);
    match address.ip() {
        IpAddr::V4(ip) => wire.extend(ip.octets()),
        IpAddr::V6(ip) => wire.extend(ip.octets()),
    }
    wire.extend(address.port().to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(body: &[u8]) -> Option<ServerAddresses> {
        ServerAddresses::read(&mut Reader(body))
    }

    /// The octets of section 5 of the draft, written by hand.
    #[test]
    fn frame_has_the_layout_of_the_draft() {
        let set = ServerAddresses {
            sequence: 7,
            preferred: vec![(0, "[2001:db8::1]:443".parse().unwrap())],
            backup: vec![(3, "192.0.2.1:4433".parse().unwrap())],
        };
        let frame = set.to_frame(Announcement::Move);
        let mut expected = vec![0x9d, 0x58, 0x45, 0xe2, 7, 3, 2, 0];
        expected.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        expected.extend([0x01, 0xbb, 0, 1, 3, 192, 0, 2, 1, 0x11, 0x51]);
        assert_eq!(frame, expected);
        assert_eq!(parse(&frame[4..]), Some(set));
    }

    #[test]
    fn rejects_malformed_sets() {
        let v4 = |priority, last| [1, priority, 192, 0, 2, last, 1, 187];
        let frame = |entries: &[&[u8]]| [&[1, entries.len() as u8][..], &entries.concat()].concat();
        assert!(parse(&frame(&[&v4(1, 1), &v4(1, 2), &[0], &v4(0, 3)])).is_some());
        // No current path, two of them, the same address twice, descending priorities, an unknown type.
        assert_eq!(parse(&frame(&[&v4(0, 1)])), None);
        assert_eq!(parse(&frame(&[&[0], &[0]])), None);
        assert_eq!(parse(&frame(&[&v4(0, 1), &[0], &v4(0, 1)])), None);
        assert_eq!(parse(&frame(&[&v4(1, 1), &v4(0, 2), &[0]])), None);
        assert_eq!(parse(&frame(&[&[3], &[0]])), None);
        // A type in two bytes.
        assert!(parse(&frame(&[&[0x40, 0]])).is_some());
        let whole = frame(&[&v4(0, 1), &[0]]);
        for length in 0..whole.len() {
            assert_eq!(parse(&whole[..length]), None);
        }
    }

    proptest! {
        #[test]
        fn sets_survive_a_round_trip(
            sequence in 0..1u64 << 62,
            addresses in prop::collection::hash_set(any::<SocketAddr>(), 0..6),
            preferred in 0..6usize,
        ) {
            let plain = |address: &SocketAddr| SocketAddr::new(address.ip(), address.port());
            let mut entries: Vec<_> = (0u64..).zip(addresses.iter().map(plain)).collect();
            let backup = entries.split_off(preferred.min(entries.len()));
            let set = ServerAddresses { sequence, preferred: entries, backup };
            let distinct: std::collections::HashSet<_> = addresses.iter().map(plain).collect();
            prop_assume!(distinct.len() == addresses.len());
            let frame = set.to_frame(Announcement::HandOver);
            prop_assert_eq!(parse(&frame[4..]), Some(set));
        }

        #[test]
        fn arbitrary_bytes_are_survived(body: Vec<u8>) {
            parse(&body);
        }
    }
}
