// SPDX-License-Identifier: Apache-2.0
//! The packets that refuse a connection: Version Negotiation, and a CONNECTION_CLOSE in an Initial.
//!
//! Each responds to one datagram of at least [`MIN_DATAGRAM`](crate::MIN_DATAGRAM) bytes and is shorter, so there is
//! no amplification (RFC 9000, 8.1).

use crate::frames::{CONNECTION_CLOSE, CRYPTO};
use crate::keys::{Side, TAG};
use crate::packet::{self, Invariants, Packet};
use crate::{Reader, Version};

/// Most bytes of a response: Version Negotiation with connection ids of 255 bytes.
pub const MAX: usize = 1 + 4 + 2 * 256 + 4 * Version::ALL.len();

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The server name is unknown or missing: TLS alert `unrecognized_name`.
    Name,
    /// The service supports none of the client's protocols: TLS alert `no_application_protocol`.
    Alpn,
    /// The ClientHello is malformed: TLS alert `decode_error`.
    Hello,
    /// The ClientHello is longer than [`Crypto::BOUND`](crate::Crypto::BOUND) (`CRYPTO_BUFFER_EXCEEDED`).
    TooLong,
    /// The service has no server that accepts connections (`CONNECTION_REFUSED`).
    NoServer,
}

impl Refusal {
    /// Return the error code (RFC 9000, 20.1; TLS alerts: RFC 9001, 4.8).
    pub const fn code(self) -> u16 {
        match self {
            Self::Name => 0x100 + 112,
            Self::Alpn => 0x100 + 120,
            Self::Hello => 0x100 + 50,
            Self::TooLong => 0x0d,
            Self::NoServer => 0x02,
        }
    }

    const fn reason(self) -> &'static str {
        match self {
            Self::Name => "no such service",
            Self::Alpn => "no such application protocol",
            Self::Hello => "bad ClientHello",
            Self::TooLong => "ClientHello too long",
            Self::NoServer => "no server accepts",
        }
    }
}

/// Write a Version Negotiation packet (RFC 9000, 17.2.1) in response to `packet`, and return its length. `random`
/// fills the unused bits.
pub fn version_negotiation(packet: &Invariants<'_>, random: u8, out: &mut [u8; MAX]) -> usize {
    let mut writer = Writer { out, len: 0 };
    // Set the bit that other versions fix, so that a demultiplexer of a shared port recognises QUIC.
    writer.put(&[0x80 | packet::FIXED | random]);
    writer.put(&[0; 4]);
    writer.cid(packet.scid);
    writer.cid(packet.dcid);
    for version in Version::ALL {
        writer.put(&version.number().to_be_bytes());
    }
    writer.len
}

/// Write an Initial that closes the connection which `packet` opens, and return its length.
pub fn close(reader: &Reader, packet: &Packet<'_>, refusal: Refusal, out: &mut [u8; MAX]) -> usize {
    let mut writer = Writer { out, len: 0 };
    writer.put(&[packet::initial(packet.version, 4)]);
    writer.put(&packet.version.number().to_be_bytes());
    writer.cid(packet.scid);
    writer.cid(&[]);
    let reason = refusal.reason();
    let [code_high, code_low] = (refusal.code() | 0x4000).to_be_bytes();
    let close = [
        CONNECTION_CLOSE,
        code_high,
        code_low,
        CRYPTO,
        reason.len() as u8,
    ];
    let length = 4 + close.len() + reason.len() + TAG;
    writer.put(&[0]); // no token
    writer.put(&(0x4000 | length as u16).to_be_bytes());
    let number_at = writer.len;
    writer.put(&[0; 4]);
    writer.put(&close);
    writer.put(reason.as_bytes());
    writer.put(&[0; TAG]);
    let len = writer.len;
    let keys = reader.keys(packet.version, packet.dcid, Side::Server);
    keys.seal(&mut out[..len], number_at);
    len
}

struct Writer<'a> {
    out: &'a mut [u8; MAX],
    len: usize,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.out[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Write a connection id and its length, which fits a byte as in the packet that it comes from.
    fn cid(&mut self, cid: &[u8]) {
        self.put(&[cid.len() as u8]);
        self.put(cid);
    }
}
