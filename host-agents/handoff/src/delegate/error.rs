// SPDX-License-Identifier: Apache-2.0
//! Errors of the real server's side.

use noq::ConnectionError;

/// Why a grant or a message about it is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// QUIC does not use a TLS cipher suite with this number.
    Suite(u16),
    /// A traffic secret of this many octets does not match the cipher suite.
    Secret(usize),
    /// A connection id of this many octets is longer than the first one.
    ConnectionId(usize),
    /// The stream cannot be delegated: it is not bidirectional, not the client's, already delegated, or 2^30 or higher.
    Stream(u64),
    /// The packet number was already given, is below one that was, or was not requested.
    Number(u64),
    /// No client can have sent this feedback.
    Feedback(&'static str),
    /// noq rejects the grant, for example because the transport parameters are malformed.
    Refused(ConnectionError),
    /// The delegate has been dropped.
    Closed,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Suite(number) => {
                write!(
                    f,
                    "unknown cipher suite 0x{number:04x}: use 0x1301 to 0x1303"
                )
            }
            Self::Secret(octets) => {
                write!(
                    f,
                    "invalid traffic secret length {octets} for the cipher suite"
                )
            }
            Self::ConnectionId(octets) => {
                write!(
                    f,
                    "connection id of {octets} octets is longer than the first one"
                )
            }
            Self::Stream(id) => write!(
                f,
                "invalid stream {id}: must be bidirectional, opened by the client, below 2^30 and new"
            ),
            Self::Number(number) => {
                write!(
                    f,
                    "invalid packet number {number}: must be requested and new"
                )
            }
            Self::Feedback(why) => write!(f, "invalid feedback: {why}"),
            Self::Refused(error) => write!(f, "unusable grant: {error}"),
            Self::Closed => f.write_str("the delegate has been dropped"),
        }
    }
}

impl std::error::Error for Error {}
