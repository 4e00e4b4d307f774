// SPDX-License-Identifier: Apache-2.0
//! Short headers (RFC 9000, section 17.3.1): noq's own, and those of the client's connection that replace them.

use noq::ConnectionId;

use super::TAG_LEN;

/// Maximum length of a packet number in octets. All packets use it if it fits.
const MAX_NUMBER_LEN: usize = 4;
/// Maximum length of a connection id in octets (RFC 9000, section 17.2).
const MAX_ID_LEN: usize = 20;

/// Bits of the first octet.
const FORM_AND_FIXED: u8 = 0xc0;
pub(super) const FIXED: u8 = 0x40;
const SPIN: u8 = 0x20;
pub(super) const PHASE: u8 = 0x04;

/// First octet of a packet that must not be sent. No packet on the wire has it.
const WITHHELD: u8 = 0x00;
/// First octet, apart from [`SPIN`], of a packet in plaintext that waits for its number.
const UNNUMBERED: u8 = 0x10;
/// Length in octets of noq's own number, which follows the payload of a waiting packet in the place of the tag. The header
/// length follows in one more octet.
pub(super) const UNNUMBERED_TRAILER: usize = 8;

/// Return the connection id that noq writes. It reserves room for the client's id and a packet number of full length.
pub fn placeholder(id: &ConnectionId) -> ConnectionId {
    let mut octets = [0; MAX_ID_LEN];
    octets[..id.len()].copy_from_slice(id);
    ConnectionId::new(&octets[..MAX_ID_LEN.min(id.len() + MAX_NUMBER_LEN - 1)])
}

/// Overwrite noq's header of `header_len` octets. Returns the position and length of the packet number.
pub(super) fn write(
    packet: &mut [u8],
    header_len: usize,
    id: &ConnectionId,
    number: u64,
    generation: u32,
) -> (usize, usize) {
    // noq's header has room for an id that is longer by at least three octets. The rest after the number becomes PADDING.
    let at = 1 + id.len();
    let length = MAX_NUMBER_LEN.min(header_len - at);
    packet[0] =
        FIXED | packet[0] & SPIN | if generation & 1 == 1 { PHASE } else { 0 } | (length - 1) as u8;
    packet[1..at].copy_from_slice(id);
    packet[at..at + length].copy_from_slice(&number.to_be_bytes()[8 - length..]);
    packet[at + length..header_len].fill(0);
    (at, length)
}

/// Mark a packet that must not be sent.
pub(super) fn withhold(packet: &mut [u8]) {
    packet[0] = WITHHELD;
}

/// Mark noq's packet `own` as waiting for its number.
pub(super) fn mark_unnumbered(own: u64, packet: &mut [u8], header_len: usize) {
    let end = packet.len() - TAG_LEN;
    packet[end..end + UNNUMBERED_TRAILER].copy_from_slice(&own.to_be_bytes());
    packet[end + UNNUMBERED_TRAILER] = header_len as u8;
    packet[0] = UNNUMBERED | packet[0] & SPIN;
}

/// Return whether a packet of noq was sealed: it is neither a handshake packet nor withheld nor waiting for its number.
pub fn is_sealed(packet: &[u8]) -> bool {
    packet
        .first()
        .is_some_and(|first| first & FORM_AND_FIXED == FIXED)
}

/// Return whether a packet of noq waits for its number.
pub fn is_unnumbered(packet: &[u8]) -> bool {
    packet
        .first()
        .is_some_and(|first| first & !SPIN == UNNUMBERED)
}
