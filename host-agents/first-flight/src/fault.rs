// SPDX-License-Identifier: Apache-2.0
//! The reasons for rejecting a first flight. Each has a name, under which metrics count it.

/// Why a datagram, or the ClientHello in it, is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Fault {
    /// The datagram begins with a short header, so it is not a first flight.
    ShortHeader,
    /// The datagram ends within a header, or before the end of a packet.
    Truncated,
    /// The packet is a Version Negotiation packet, which clients never send.
    VersionNegotiation,
    /// The version is neither 1 nor 2.
    UnknownVersion,
    /// The fixed bit is 0 (RFC 9000, 17.2).
    FixedBit,
    /// A connection id has more than 20 bytes, or the client's initial one has fewer than 8 (RFC 9000, 7.2).
    ConnectionId,
    /// A datagram with an Initial has fewer than 1200 bytes (RFC 9000, 14.1).
    SmallDatagram,
    /// The datagram begins with a Handshake or Retry packet.
    PacketType,
    /// The packet does not authenticate: it is damaged, or belongs to another connection.
    Undecryptable,
    /// A frame is truncated, or not allowed in an Initial (RFC 9000, 12.4).
    Frame,
    /// There is CRYPTO data beyond [`Crypto::BOUND`](crate::Crypto::BOUND).
    CryptoTooLong,
    /// The CRYPTO data is not a ClientHello, or the ClientHello is inconsistent.
    BadHello,
}

impl Fault {
    /// All faults, in the order of their discriminants.
    pub const ALL: [Self; 12] = [
        Self::ShortHeader,
        Self::Truncated,
        Self::VersionNegotiation,
        Self::UnknownVersion,
        Self::FixedBit,
        Self::ConnectionId,
        Self::SmallDatagram,
        Self::PacketType,
        Self::Undecryptable,
        Self::Frame,
        Self::CryptoTooLong,
        Self::BadHello,
    ];

    /// Return the name of the fault in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ShortHeader => "short_header",
            Self::Truncated => "truncated",
            Self::VersionNegotiation => "version_negotiation",
            Self::UnknownVersion => "unknown_version",
            Self::FixedBit => "fixed_bit",
            Self::ConnectionId => "connection_id",
            Self::SmallDatagram => "small_datagram",
            Self::PacketType => "packet_type",
            Self::Undecryptable => "undecryptable",
            Self::Frame => "frame",
            Self::CryptoTooLong => "crypto_too_long",
            Self::BadHello => "bad_hello",
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::error::Error for Fault {}
