// SPDX-License-Identifier: Apache-2.0
//! VXLAN (RFC 7348, 5): eight bytes and an Ethernet header before the inner packet.

use crate::{Error, Family};

/// UDP destination port.
pub const PORT: u16 = 4789;

/// Bytes before the inner IP packet.
pub const LEN: usize = 8 + ETHERNET;

const ETHERNET: usize = 14;
const VNI_VALID: u8 = 0x08;

/// Source and destination of the inner frame. Receivers ignore it, because both ends route the inner packet.
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 0];

/// Return the network identifier, the inner address family and the inner packet. Ignore reserved bits, as the RFC
/// requires.
#[inline]
pub(crate) fn open(bytes: &[u8]) -> Result<(u32, Family, &[u8]), Error> {
    let (head, packet) = bytes.split_first_chunk::<LEN>().ok_or(Error::TunnelShort)?;
    if head[0] & VNI_VALID == 0 {
        return Err(Error::VniAbsent);
    }
    let vni = u32::from_be_bytes([0, head[4], head[5], head[6]]);
    Ok((vni, Family::from_ether_type([head[20], head[21]])?, packet))
}

pub(crate) fn write(origin: u8, family: Family) -> [u8; LEN] {
    let mut head = [0; LEN];
    head[0] = VNI_VALID;
    head[6] = origin;
    head[8..14].copy_from_slice(&MAC);
    head[14..20].copy_from_slice(&MAC);
    head[20..].copy_from_slice(&family.ether_type());
    head
}
