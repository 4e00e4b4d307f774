//! GRE (RFC 2784, 2) with a key (RFC 2890, 2): the packet follows directly.

use crate::checksum::Sum;
use crate::{Error, Family};

/// IP protocol number.
pub const PROTOCOL: u8 = 47;

/// Bytes in front of the inner IP packet, as written here: flags, protocol type, key.
pub const LEN: usize = 8;

const CHECKSUM: u8 = 0x80;
const ROUTING: u8 = 0x40;
const KEY: u8 = 0x20;
const SEQUENCE: u8 = 0x10;
/// Strict source route and recursion control of RFC 1701, which RFC 2784 has receivers refuse.
const OBSOLETE: u8 = ROUTING | 0x0f;
const VERSION: u8 = 0x07;

/// The key, the inner family, the inner packet. A checksum is verified, a sequence number skipped.
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
        if !Sum::default().bytes(bytes).holds() {
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
