// SPDX-License-Identifier: Apache-2.0
//! The probe of the direct path: a packet of a reserved version, which servers answer with Version Negotiation.

use frontage_first_flight::MIN_DATAGRAM;

/// A version reserved to force Version Negotiation (RFC 9000, section 15: 0x?a?a?a?a).
const RESERVED_VERSION: u32 = 0x1a2a_3a4a;

/// The destination connection id of a probe, and behind it the source connection id.
pub type Ids = [u8; 16];

/// Encodes a packet of the reserved version.
pub fn encode(ids: &Ids) -> Vec<u8> {
    let mut packet = vec![0xc0];
    packet.extend(RESERVED_VERSION.to_be_bytes());
    for id in ids.chunks(8) {
        packet.push(8);
        packet.extend(id);
    }
    packet.resize(MIN_DATAGRAM, 0);
    packet
}

/// Returns true if `packet` is the Version Negotiation packet that answers the probe (RFC 9000, section 17.2.1).
pub fn is_answer(packet: &[u8], ids: &Ids) -> bool {
    let mut expected = vec![0, 0, 0, 0, 8];
    expected.extend(&ids[8..]);
    expected.push(8);
    expected.extend(&ids[..8]);
    packet
        .split_first()
        .is_some_and(|(first, rest)| first & 0x80 != 0 && rest.starts_with(&expected))
}

/// Encodes the Version Negotiation packet with which a server answers the probe.
#[cfg(test)]
pub(crate) fn answer(ids: &Ids) -> Vec<u8> {
    let mut packet = vec![0x80, 0, 0, 0, 0, 8];
    packet.extend(&ids[8..]);
    packet.push(8);
    packet.extend(&ids[..8]);
    packet.extend(1_u32.to_be_bytes());
    packet
}
