// SPDX-License-Identifier: Apache-2.0
//! Errors of malformed messages.

use std::fmt;

/// Why a message is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Error {
    /// The type is unknown in this direction.
    UnknownType(u64),
    /// The body, of this many bytes, is longer than its type permits.
    TooLong(u64),
    /// The body ends within a field.
    Truncated,
    /// This many bytes follow the last field.
    TrailingBytes(usize),
    /// The protocol version is not supported.
    Version(u64),
    /// QUIC does not use this TLS 1.3 cipher suite.
    Suite(u16),
    /// The secret, of this many bytes, is not as long as the hash of its suite.
    SecretLength(usize),
    /// The transport parameters, of this many bytes, are too long.
    ParametersLength(u64),
    /// The connection id, of this many bytes, is too long (RFC 9000, section 17.2: 20 at most).
    ConnectionIdLength(usize),
    /// The address family is neither 4 nor 6.
    AddressFamily(u8),
    /// The presence octet of an optional field is neither 0 nor 1.
    Presence(u8),
    /// The stream is not bidirectional or not opened by the client.
    StreamId(u64),
    /// The path id exceeds 32 bits (draft-ietf-quic-multipath).
    PathId(u64),
    /// The code of the reject reason is unknown.
    Reason(u64),
    /// The HTTP status is invalid.
    Status(u64),
    /// The key generation exceeds 32 bits.
    Generation(u64),
    /// The flag is neither 0 nor 1.
    Flag(u64),
    /// The packet number is 2^62 or higher.
    PacketNumber(u64),
    /// The response is too long for a stream.
    ResponseSize(u64),
}

impl Error {
    /// Return the error's label in metrics.
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
            Self::Flag(_) => "flag",
            Self::PacketNumber(_) => "packet_number",
            Self::ResponseSize(_) => "response_size",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownType(kind) => write!(f, "unknown message type {kind:#x}"),
            Self::TooLong(length) => write!(f, "message too long: {length} bytes"),
            Self::Truncated => f.write_str("truncated message"),
            Self::TrailingBytes(n) => write!(f, "{n} trailing bytes in a message"),
            Self::Version(version) => write!(f, "unsupported hand-off protocol version {version}"),
            Self::Suite(suite) => write!(f, "unknown cipher suite {suite:#06x}"),
            Self::SecretLength(n) => write!(f, "invalid secret length {n} for the cipher suite"),
            Self::ParametersLength(n) => write!(f, "transport parameters too long: {n} bytes"),
            Self::ConnectionIdLength(n) => {
                write!(f, "invalid connection id length {n}: must be at most 20")
            }
            Self::AddressFamily(family) => {
                write!(f, "invalid address family {family}: must be 4 or 6")
            }
            Self::Presence(n) => write!(f, "invalid presence octet {n}: must be 0 or 1"),
            Self::StreamId(id) => write!(
                f,
                "invalid stream {id}: must be bidirectional and opened by the client"
            ),
            Self::PathId(id) => write!(f, "invalid path id {id}: must have at most 32 bits"),
            Self::Reason(reason) => write!(f, "unknown reject reason {reason}"),
            Self::Status(status) => write!(f, "invalid HTTP status {status}"),
            Self::Generation(n) => {
                write!(f, "invalid key generation {n}: must have at most 32 bits")
            }
            Self::Flag(value) => write!(f, "invalid flag {value}: must be 0 or 1"),
            Self::PacketNumber(n) => write!(f, "invalid packet number {n}: must be below 2^62"),
            Self::ResponseSize(n) => {
                write!(f, "invalid response size {n}: must end below 2^62")
            }
        }
    }
}

impl std::error::Error for Error {}
