//! A client's Initial (RFC 9000, 17.2.2) without its protection, and made anew for a server that sent a Retry.

use crate::keys::{Side, TAG};
use crate::{MIN_DATAGRAM, Reader, Retry, Version, packet};

/// Most bytes of a datagram made anew: what an Ethernet frame takes over IPv6.
const MOST: usize = 1452;

/// What makes a client's Initial, but its token and its PADDING.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Initial {
    /// Its version.
    pub version: Version,
    /// Chosen by the client, if this is of its first flight.
    pub dcid: Vec<u8>,
    /// The client's own.
    pub scid: Vec<u8>,
    /// The packet number's bytes that the packet has, 1 to 4.
    pub number: Vec<u8>,
    /// Its frames without PADDING.
    pub frames: Vec<u8>,
}

impl Initial {
    /// The same packet as an answer to `retry` in a datagram of its own; nothing if that would be too large. The frames are
    /// left as they are: TLS sees no difference.
    ///
    /// It keeps its packet number: the client goes on counting after a Retry (RFC 9000, 17.2.5.3), so it never uses that with
    /// these keys, and takes an acknowledgement of it.
    pub fn again(&self, reader: &Reader, retry: &Retry<'_>) -> Option<Vec<u8>> {
        let mut packet = vec![packet::initial(self.version, self.number.len())];
        packet.extend(self.version.number().to_be_bytes());
        for cid in [retry.scid, &self.scid] {
            packet.push(cid.len() as u8);
            packet.extend(cid);
        }
        packet.extend(two_bytes(retry.token.len())?);
        packet.extend(retry.token);
        let used = packet.len() + 2 + self.number.len() + self.frames.len() + TAG;
        if used > MOST {
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

/// A variable-length integer of two bytes, whatever it is; nothing if it needs more (RFC 9000, 16).
fn two_bytes(n: usize) -> Option<[u8; 2]> {
    let n = u16::try_from(n).ok().filter(|n| *n < 1 << 14)?;
    Some((n | 1 << 14).to_be_bytes())
}
