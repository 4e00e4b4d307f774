// SPDX-License-Identifier: Apache-2.0
//! GRE (RFC 2784, 2) with a key (RFC 2890, 2). The inner packet follows the header directly.

use crate::checksum::Sum;
use crate::{Error, Family};

/// IP protocol number.
pub const PROTOCOL: u8 = 47;

/// Bytes before the inner IP packet, as this crate writes them: flags, protocol type, key.
pub const LEN: usize = 8;

const CHECKSUM: u8 = 0x80;
const ROUTING: u8 = 0x40;
const KEY: u8 = 0x20;
const SEQUENCE: u8 = 0x10;
/// Routing, strict source route and recursion control of RFC 1701, which receivers must reject (RFC 2784).
const OBSOLETE: u8 = ROUTING | 0x0f;
const VERSION: u8 = 0x07;

/// Return the key, the inner address family and the inner packet. Verify a checksum, and skip a sequence number.
#[inline]
pub(crate) fn open(bytes: &[u8]) -> Result<(u32, Family, &[u8]), Error> {
    let (start, mut rest) = bytes.split_first_chunk::<4>().ok_or(Error::TunnelShort)?;
    let flags = start[0];
    if flags & OBSOLETE != 0 || start[1] & VERSION != 0 {
        return Err(Error::GreVersion);
    }
    if flags & KEY == 0 {
        return Err(Error::KeyAbsent);
    }
    if flags & CHECKSUM != 0 {
        if !Sum::default().bytes(bytes).is_valid() {
            return Err(Error::GreChecksum);
        }
        rest = rest.get(4..).ok_or(Error::TunnelShort)?;
    }
    let (key, mut packet) = rest.split_first_chunk::<4>().ok_or(Error::TunnelShort)?;
    if flags & SEQUENCE != 0 {
        packet = packet.get(4..).ok_or(Error::TunnelShort)?;
    }
    let family = Family::from_ether_type([start[2], start[3]])?;
    Ok((u32::from_be_bytes(*key), family, packet))
}

pub(crate) fn write(origin: u8, family: Family) -> [u8; LEN] {
    let [high, low] = family.ether_type();
    [KEY, 0, high, low, 0, 0, 0, origin]
}
