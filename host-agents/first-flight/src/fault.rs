//! Why a first flight is not understood: one name each, so that each has its counter.

/// What is wrong with a datagram, or with the ClientHello in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Fault {
    /// It begins with a short header: no first flight.
    ShortHeader,
    /// It ends within a header, or before a packet's own length.
    Truncated,
    /// It is a Version Negotiation packet, which no client sends.
    VersionNegotiation,
    /// Its version is neither 1 nor 2.
    UnknownVersion,
    /// The fixed bit is 0 (RFC 9000, 17.2).
    FixedBit,
    /// A connection id of more than 20 bytes, or a client's first one of fewer than 8 (RFC 9000, 7.2).
    ConnectionId,
    /// Initials in a datagram of fewer than 1200 bytes (RFC 9000, 14.1).
    SmallDatagram,
    /// It begins with a Handshake or Retry packet.
    PacketType,
    /// The packet's protection does not open: damaged, or of another connection.
    Undecryptable,
    /// A frame that an Initial must not carry, or one cut short (RFC 9000, 12.4).
    Frame,
    /// CRYPTO data beyond [`Crypto::BOUND`](crate::Crypto::BOUND).
    CryptoTooLong,
    /// What CRYPTO frames carry is no ClientHello, or one whose parts contradict each other.
    BadHello,
}

impl Fault {
    /// All of them, in the order of their numbers.
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

    /// The name that metrics have for it.
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
