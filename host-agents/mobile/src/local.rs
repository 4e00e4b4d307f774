// SPDX-License-Identifier: Apache-2.0
//! The local end of a session: a TCP connection of an unmodified program, or the standard streams.

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Stdout};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;

/// The writing half of a local connection.
pub trait LocalWriter: AsyncWrite + Send + Unpin {
    /// End the connection with a reset, so that the program notices that bytes are missing.
    fn abort(self: Box<Self>);
}

impl LocalWriter for OwnedWriteHalf {
    fn abort(self: Box<Self>) {
        abort((*self).as_ref());
        // Otherwise the half would end the stream in the ordinary way first.
        self.forget();
    }
}

impl LocalWriter for Stdout {
    /// A pipe cannot be reset; the exit status shows the failure.
    fn abort(self: Box<Self>) {}
}

/// Let `stream` end with a reset when it is closed, and discard what it has not sent.
pub(crate) fn abort(stream: &TcpStream) {
    // If the kernel refuses, the connection ends in the ordinary way.
    let _ = SockRef::from(stream).set_linger(Some(std::time::Duration::ZERO));
}

/// A local connection.
pub struct Local {
    /// From the program.
    pub reader: Box<dyn AsyncRead + Send + Unpin>,
    /// To the program.
    pub writer: Box<dyn LocalWriter>,
}

impl Local {
    /// Return the local connection of a socket.
    pub fn tcp(stream: TcpStream) -> Self {
        // If the kernel refuses, small writes may be delayed.
        let _ = stream.set_nodelay(true);
        let (reader, writer) = stream.into_split();
        Self {
            reader: Box::new(reader),
            writer: Box::new(writer),
        }
    }

    /// Return the standard input and output streams.
    pub fn standard() -> Self {
        Self {
            reader: Box::new(tokio::io::stdin()),
            writer: Box::new(tokio::io::stdout()),
        }
    }

    /// End the connection with a reset, so that the program notices the failure.
    pub fn abort(self) {
        self.writer.abort();
    }
}
