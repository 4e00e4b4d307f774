//! What goes wrong.

use noq::ConnectionError;

/// Why something cannot be borrowed, or what was told of it cannot be so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// No TLS 1.3 cipher suite that QUIC uses has this number.
    Suite(u16),
    /// A traffic secret of the suite is not so many octets long.
    Secret(usize),
    /// A connection id of so many octets does not fit where the first one was.
    ConnectionId(usize),
    /// Not a stream that can be granted: not bidirectional or not the client's, granted already, or 2^30 or more.
    Stream(u64),
    /// A packet number that was given before, or one below such, or none was asked for.
    Number(u64),
    /// Not what a client can have said.
    Feedback(&'static str),
    /// noq does not accept the grant, as if its transport parameters are malformed.
    Refused(ConnectionError),
    /// The borrower is gone.
    Closed,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Suite(number) => write!(f, "QUIC has no TLS cipher suite 0x{number:04x}"),
            Self::Secret(octets) => {
                write!(
                    f,
                    "a traffic secret of {octets} octets is not the cipher suite's"
                )
            }
            Self::ConnectionId(octets) => {
                write!(f, "a connection id of {octets} octets has no room")
            }
            Self::Stream(id) => write!(
                f,
                "stream {id} is not the client's, not bidirectional, too high or granted already"
            ),
            Self::Number(number) => write!(f, "packet number {number} is none to be given"),
            Self::Feedback(why) => write!(f, "feedback has {why}"),
            Self::Refused(error) => write!(f, "the grant cannot be used: {error}"),
            Self::Closed => f.write_str("the borrower is gone"),
        }
    }
}

impl std::error::Error for Error {}
