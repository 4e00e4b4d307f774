// SPDX-License-Identifier: Apache-2.0
//! Errors of the balancer's side.

/// Why a [`Delegator`](super::Delegator) refuses a call. The call has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The path is not delegated.
    Path(u32),
    /// The stream cannot be delegated, or is not delegated.
    Stream(u64),
    /// The stream's limit is unknown, because the client raised the limits of too many other streams.
    UnknownLimit(u64),
    /// The stream has already been reclaimed.
    Ended(u64),
    /// The final size exceeds the client's limit for the stream.
    FinalSize { stream: u64, size: u64 },
    /// The stream ends beyond the client's MAX_DATA, by this many bytes.
    Credit { missing: u64 },
    /// The path has streams that were not reclaimed.
    Streams(u32),
    /// The client moved to another address while the path was delegated. Only the real server has validated that
    /// address, so the path must be abandoned.
    Moved(u32),
    /// The packet number is not in the range of the delegation.
    Number(u64),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Path(path) => write!(f, "path {path}: not delegated"),
            Self::Stream(stream) => {
                write!(
                    f,
                    "stream {stream}: cannot be delegated or is not delegated"
                )
            }
            Self::UnknownLimit(stream) => {
                write!(
                    f,
                    "stream {stream}: unknown limit: too many limits were raised"
                )
            }
            Self::Ended(stream) => write!(f, "stream {stream}: already reclaimed"),
            Self::FinalSize { stream, size } => {
                write!(
                    f,
                    "stream {stream}: final size {size} exceeds the client's limit"
                )
            }
            Self::Credit { missing } => {
                write!(
                    f,
                    "final size exceeds the client's MAX_DATA by {missing} bytes"
                )
            }
            Self::Streams(path) => write!(f, "path {path}: has streams that were not reclaimed"),
            Self::Moved(path) => write!(f, "path {path}: the client has moved"),
            Self::Number(number) => {
                write!(
                    f,
                    "packet number {number}: outside the range of the delegation"
                )
            }
        }
    }
}

impl std::error::Error for Error {}
