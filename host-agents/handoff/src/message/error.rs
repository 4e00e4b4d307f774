//! What can be wrong with a message.

use std::fmt;

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Error {
    /// No message of this direction has such a type.
    UnknownType(u64),
    /// A body of so many bytes is more than its type may have.
    TooLong(u64),
    /// The body ends within a field.
    Truncated,
    /// So many bytes follow the last field.
    TrailingBytes(usize),
    /// Another version of the protocol.
    Version(u64),
    /// No cipher suite of TLS 1.3 that QUIC uses.
    Suite(u16),
    /// The secret has so many bytes, which is not the length of its suite's hash.
    SecretLength(usize),
    /// The transport parameters have so many bytes.
    ParametersLength(u64),
    /// A connection id of so many bytes (RFC 9000, section 17.2: 20 at most).
    ConnectionIdLength(usize),
    /// An address of family 4 or 6 it must be.
    AddressFamily(u8),
    /// What may be absent is there 0 or 1 times.
    Presence(u8),
    /// Not the id of a bidirectional stream that the client opens.
    StreamId(u64),
    /// A path's id has 32 bits (draft-ietf-quic-multipath).
    PathId(u64),
    /// Nobody refuses for that.
    Reason(u64),
    /// No status of an HTTP answer.
    Status(u64),
    /// A count of key updates has 32 bits here.
    Generation(u64),
    /// No packet has such a number.
    PacketNumber(u64),
}

impl Error {
    /// As metrics call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnknownType(_) => "unknown_type",
            Self::TooLong(_) => "too_long",
            Self::Truncated => "truncated",
            Self::TrailingBytes(_) => "trailing_bytes",
            Self::Version(_) => "version",
            Self::Suite(_) => "suite",
            Self::SecretLength(_) => "secret_length",
            Self::ParametersLength(_) => "parameters_length",
            Self::ConnectionIdLength(_) => "connection_id_length",
            Self::AddressFamily(_) => "address_family",
            Self::Presence(_) => "presence",
            Self::StreamId(_) => "stream_id",
            Self::PathId(_) => "path_id",
            Self::Reason(_) => "reason",
            Self::Status(_) => "status",
            Self::Generation(_) => "generation",
            Self::PacketNumber(_) => "packet_number",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownType(kind) => write!(f, "no message of type {kind:#x} comes this way"),
            Self::TooLong(length) => write!(f, "a message of {length} bytes is too long"),
            Self::Truncated => f.write_str("a message ends within a field"),
            Self::TrailingBytes(n) => write!(f, "{n} bytes follow a message's last field"),
            Self::Version(version) => write!(
                f,
                "version {version} of the hand-off protocol is not spoken here"
            ),
            Self::Suite(suite) => write!(f, "{suite:#06x} is no cipher suite of QUIC"),
            Self::SecretLength(n) => write!(f, "a secret of {n} bytes is none of its suite"),
            Self::ParametersLength(n) => write!(f, "{n} bytes of transport parameters"),
            Self::ConnectionIdLength(n) => write!(f, "a connection id of {n} bytes"),
            Self::AddressFamily(family) => write!(f, "{family} is no address family"),
            Self::Presence(n) => write!(f, "an optional field is there {n} times"),
            Self::StreamId(id) => write!(f, "stream {id} is no request's"),
            Self::PathId(id) => write!(f, "{id} is no path's id"),
            Self::Reason(reason) => write!(f, "{reason} is no reason to refuse"),
            Self::Status(status) => write!(f, "{status} is no status"),
            Self::Generation(n) => write!(f, "{n} key updates"),
            Self::PacketNumber(n) => write!(f, "{n} is no packet's number"),
        }
    }
}

impl std::error::Error for Error {}
