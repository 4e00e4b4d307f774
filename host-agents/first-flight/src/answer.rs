//! What tells a client that there will be no connection: Version Negotiation, and a CONNECTION_CLOSE in an Initial.
//!
//! Each answers one datagram of at least [`MIN_DATAGRAM`](crate::MIN_DATAGRAM) bytes and is shorter, so nothing is amplified
//! (RFC 9000, 8.1).

use crate::frames::{CONNECTION_CLOSE, CRYPTO};
use crate::keys::{Side, TAG};
use crate::packet::{self, Invariants, Packet};
use crate::{Reader, Version};

/// Most bytes of an answer: Version Negotiation between connection ids of 255 bytes.
pub const MAX: usize = 1 + 4 + 2 * 256 + 4 * Version::ALL.len();

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// No such service here, or none named: TLS alert `unrecognized_name`.
    Name,
    /// The service has none of the client's protocols: TLS alert `no_application_protocol`.
    Alpn,
    /// The ClientHello is wrong: TLS alert `decode_error`.
    Hello,
    /// The ClientHello is longer than anybody's needs to be (`CRYPTO_BUFFER_EXCEEDED`).
    TooLong,
    /// The service has no server that accepts connections (`CONNECTION_REFUSED`).
    NoServer,
}

impl Refusal {
    /// Error code (RFC 9000, 20.1; TLS alerts: RFC 9001, 4.8).
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

/// Writes a Version Negotiation packet (RFC 9000, 17.2.1) in answer to a packet; its length. `random` fills the bits that are
/// free.
pub fn version_negotiation(packet: &Invariants<'_>, random: u8, out: &mut [u8; MAX]) -> usize {
    let mut writer = Writer { out, len: 0 };
    // The bit that other versions fix is set, so that what shares the port takes it for QUIC.
    writer.put(&[0x80 | packet::FIXED | random]);
    writer.put(&[0; 4]);
    writer.cid(packet.scid);
    writer.cid(packet.dcid);
    for version in Version::ALL {
        writer.put(&version.number().to_be_bytes());
    }
    writer.len
}

/// Writes an Initial that closes the connection which `packet` opens; its length.
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

    /// A connection id behind its length, which the packet that it comes from had in a byte.
    fn cid(&mut self, cid: &[u8]) {
        self.put(&[cid.len() as u8]);
        self.put(cid);
    }
}
