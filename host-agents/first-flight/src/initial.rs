// SPDX-License-Identifier: Apache-2.0
//! A client's Initial packet (RFC 9000, 17.2.2) without its protection, and the same packet for a server that sent a
//! Retry.

use crate::keys::{Side, TAG};
use crate::{MIN_DATAGRAM, Reader, Retry, Version, packet};

/// Most bytes of a rebuilt datagram: the payload of an Ethernet frame over IPv6.
const MAX_DATAGRAM: usize = 1452;

/// The content of a client's Initial, without its token and its PADDING.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Initial {
    /// QUIC version.
    pub version: Version,
    /// Destination connection id, which the client chose if this is its first flight.
    pub dcid: Vec<u8>,
    /// Source connection id, the client's own.
    pub scid: Vec<u8>,
    /// The truncated packet number, 1 to 4 bytes.
    pub number: Vec<u8>,
    /// The frames without PADDING.
    pub frames: Vec<u8>,
}

impl Initial {
    /// Build the packet in response to `retry`, in a datagram of its own. Return `None` if it would be too large. The
    /// frames stay the same, so TLS sees no difference.
    ///
    /// The packet number stays the same, too. The client continues to count after a Retry (RFC 9000, 17.2.5.3), so it
    /// never uses this number with these keys, and it accepts an acknowledgment of the number.
    pub fn for_retry(&self, reader: &Reader, retry: &Retry<'_>) -> Option<Vec<u8>> {
        let mut packet = vec![packet::initial(self.version, self.number.len())];
        packet.extend(self.version.number().to_be_bytes());
        for cid in [retry.scid, &self.scid] {
            packet.push(cid.len() as u8);
            packet.extend(cid);
        }
        packet.extend(two_bytes(retry.token.len())?);
        packet.extend(retry.token);
        let used = packet.len() + 2 + self.number.len() + self.frames.len() + TAG;
        if used > MAX_DATAGRAM {
            return None;
        }
        let size = used.max(MIN_DATAGRAM);
        packet.extend(two_bytes(size - packet.len() - 2)?);
        let number_at = packet.len();
        packet.extend(&self.number);
        packet.extend(&self.frames);
        packet.resize(size, 0);
        let keys = reader.keys(self.version, retry.scid, Side::Client);
        keys.seal(&mut packet, number_at);
        Some(packet)
    }
}

/// Encode `n` as a variable-length integer of exactly two bytes (RFC 9000, 16). Return `None` if it needs more.
fn two_bytes(n: usize) -> Option<[u8; 2]> {
    let n = u16::try_from(n).ok().filter(|n| *n < 1 << 14)?;
    Some((n | 1 << 14).to_be_bytes())
}
