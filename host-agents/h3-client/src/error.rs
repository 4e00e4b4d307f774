// SPDX-License-Identifier: Apache-2.0
//! Why a request failed.

use std::io;

use frontage_quic::session::MissingInitialSuite;
use frontage_quicsocks_client as quicsocks;
use h3::error::{ConnectionError as H3ConnectionError, StreamError};
use noq::{ConnectError, ConnectionError, PathError};

/// Why a connection or a request failed.
///
/// The message is the same for each failure of a kind, so that reports can count failures by it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No byte arrived within the request timeout, or the connection timed out.
    #[error("timeout")]
    Timeout,
    /// The QUIC connection was closed.
    #[error(transparent)]
    Connection(ConnectionError),
    /// noq could not start the handshake.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The HTTP/3 connection failed.
    #[error(transparent)]
    Http3(#[from] H3ConnectionError),
    /// The HTTP/3 request stream failed.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The TLS configuration has no cipher suite for Initial packets.
    #[error(transparent)]
    Tls(#[from] MissingInitialSuite),
    /// The request is not valid HTTP.
    #[error(transparent)]
    Request(#[from] http::Error),
    /// A socket or a file failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The server's address is unknown, or an output file could not be created.
    #[error("{0:#}")]
    Setup(anyhow::Error),
    /// Opening another path failed.
    #[error("cannot open another path: {0}")]
    Path(PathError),
    /// The server did not allow as many paths as requested.
    #[error("cannot open another path: the server's limit is reached")]
    PathLimit,
    /// The QuicSocks proxy did not open an association.
    #[error("--quicksocks {proxy}: {error}")]
    Association {
        proxy: String,
        error: quicsocks::Error,
    },
    /// The connection through a QuicSocks proxy could not be established.
    #[error(transparent)]
    Proxy(quicsocks::Error),
    /// The response status is not 200.
    #[error("status {0}")]
    Status(u16),
    /// The Content-Length is not the expected one.
    #[error("length")]
    ContentLength,
    /// The body differs from the expected one.
    #[error("corrupt")]
    Corrupt,
    /// The body is shorter than expected.
    #[error("short")]
    TooShort,
    /// The body is longer than expected.
    #[error("long")]
    TooLong,
}

impl From<ConnectionError> for Error {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::TimedOut => Self::Timeout,
            error => Self::Connection(error),
        }
    }
}

impl From<quicsocks::Error> for Error {
    fn from(error: quicsocks::Error) -> Self {
        match error {
            quicsocks::Error::Handshake(error) => error.into(),
            error => Self::Proxy(error),
        }
    }
}
