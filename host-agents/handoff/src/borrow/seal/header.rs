//! The headers of short packets (RFC 9000, section 17.3.1): noq's as it writes them, and the client connection's in their place.

use noq::ConnectionId;

/// Most octets of a packet's number, which all get if they fit.
const NUMBER: usize = 4;
/// Most octets of a connection id (RFC 9000, section 17.2).
const ID: usize = 20;
/// The first octet.
const FORM_AND_FIXED: u8 = 0xc0;
pub(super) const FIXED: u8 = 0x40;
pub(super) const SPIN: u8 = 0x20;
pub(super) const PHASE: u8 = 0x04;
/// That of a packet that is not to leave, which no packet has.
const WITHHELD: u8 = 0x00;

/// The id that noq is to write, in place of which come the client's and a number of full length.
pub fn placeholder(id: &ConnectionId) -> ConnectionId {
    let mut octets = [0; ID];
    octets[..id.len()].copy_from_slice(id);
    ConnectionId::new(&octets[..ID.min(id.len() + NUMBER - 1)])
}

/// Writes one in place of noq's, which has `header_len` octets. Where the number is, and how long.
pub(super) fn write(
    packet: &mut [u8],
    header_len: usize,
    id: &ConnectionId,
    number: u64,
    generation: u32,
) -> (usize, usize) {
    // noq's has room for an id longer by three octets at least. What the number does not need of it is PADDING.
    let at = 1 + id.len();
    let length = NUMBER.min(header_len - at);
    packet[0] =
        FIXED | packet[0] & SPIN | if generation & 1 == 1 { PHASE } else { 0 } | (length - 1) as u8;
    packet[1..at].copy_from_slice(id);
    packet[at..at + length].copy_from_slice(&number.to_be_bytes()[8 - length..]);
    packet[at + length..header_len].fill(0);
    (at, length)
}

/// Marks one that is not to leave.
pub(super) fn withhold(packet: &mut [u8]) {
    packet[0] = WITHHELD;
}

/// Whether a packet of noq's is one that was sealed: no handshake's, and not withheld.
pub fn leaves(packet: &[u8]) -> bool {
    packet
        .first()
        .is_some_and(|first| first & FORM_AND_FIXED == FIXED)
}
