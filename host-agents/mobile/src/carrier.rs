// SPDX-License-Identifier: Apache-2.0
//! A carrier: a TCP connection that transmits encrypted records, each preceded by its length in two bytes.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use snow::TransportState;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::frame::MAX_FRAME;
use crate::local::abort;

/// Time without any byte after which a carrier counts as broken. A live peer sends at least every [`KEEP_ALIVE`].
pub const SILENCE: Duration = Duration::from_secs(5);
/// Time without a record after which an end sends one.
pub const KEEP_ALIVE: Duration = Duration::from_secs(1);
/// Encrypted bytes that may wait for the socket; more would only delay acknowledgments.
const MAX_QUEUED: usize = 64 * 1024;
/// Bytes that a carrier reads at once.
const READ_SIZE: usize = 64 * 1024;
/// Bytes of the tag of ChaCha20-Poly1305.
const TAG_LEN: usize = 16;
const LENGTH_LEN: usize = 2;
/// Most bytes of an encrypted record.
pub const MAX_RECORD: usize = MAX_FRAME + TAG_LEN;

/// An authenticated connection between the two ends of a session. Closing it discards what it has not sent, because the
/// next carrier sends it again.
pub struct Carrier {
    stream: TcpStream,
    noise: TransportState,
    incoming: BytesMut,
    outgoing: BytesMut,
    /// Addresses of this end and of the peer.
    pub addresses: (SocketAddr, SocketAddr),
    last_received: Instant,
    last_sent: Instant,
    is_closed: bool,
}

/// A carrier after its handshake.
pub struct Attachment {
    /// The carrier.
    pub carrier: Box<Carrier>,
    /// Offset up to which the peer has received.
    pub peer_received: u64,
}

impl Carrier {
    /// Create a carrier after its handshake. It first sends `message`, the last one of the handshake.
    ///
    /// # Errors
    /// If the connection has been lost.
    pub fn new(stream: TcpStream, noise: TransportState, message: &[u8]) -> io::Result<Self> {
        let addresses = (stream.local_addr()?, stream.peer_addr()?);
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            noise,
            incoming: BytesMut::new(),
            outgoing: BytesMut::from(message),
            addresses,
            last_received: Instant::now(),
            last_sent: Instant::now(),
            is_closed: false,
        })
    }

    /// Return whether another record should be queued.
    pub fn is_hungry(&self) -> bool {
        self.outgoing.len() < MAX_QUEUED
    }

    /// Return whether everything queued has been given to the kernel.
    pub fn is_flushed(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// Encrypt `frame`, and queue it.
    pub fn push(&mut self, frame: &[u8]) {
        let length = frame.len() + TAG_LEN;
        self.outgoing.extend((length as u16).to_be_bytes());
        let start = self.outgoing.len();
        self.outgoing.resize(start + length, 0);
        let written = self
            .noise
            .write_message(frame, &mut self.outgoing[start..])
            .expect("the frame is short, and a carrier ends long before its nonces do");
        debug_assert_eq!(written, length);
        self.last_sent = Instant::now();
    }

    /// Wait until the socket can be read, or written if anything is queued, and do so.
    ///
    /// # Errors
    /// If the connection is lost or was closed by the peer.
    pub async fn progress(&mut self) -> io::Result<()> {
        let interest = match self.is_flushed() {
            true => Interest::READABLE,
            false => Interest::READABLE | Interest::WRITABLE,
        };
        let ready = self.stream.ready(interest).await?;
        if ready.is_writable() {
            self.write()?;
        }
        if ready.is_readable() || ready.is_read_closed() {
            self.read()?;
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        while !self.outgoing.is_empty() {
            match self.stream.try_write(&self.outgoing) {
                Ok(count) => self.outgoing.advance(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn read(&mut self) -> io::Result<()> {
        self.incoming.reserve(READ_SIZE);
        match self.stream.try_read_buf(&mut self.incoming) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {
                self.last_received = Instant::now();
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Send everything queued, and close the connection in the ordinary way.
    ///
    /// # Errors
    /// If the connection is lost.
    pub async fn close(mut self) -> io::Result<()> {
        while !self.is_flushed() {
            self.stream.writable().await?;
            self.write()?;
        }
        self.is_closed = true;
        Ok(())
    }

    /// Decrypt the next received record into `frame`. Return false if it is incomplete.
    ///
    /// # Errors
    /// If the record was altered.
    pub fn next_record(&mut self, frame: &mut Vec<u8>) -> io::Result<bool> {
        let Some(length) = self.incoming.first_chunk::<LENGTH_LEN>() else {
            return Ok(false);
        };
        let length = usize::from(u16::from_be_bytes(*length));
        if !(TAG_LEN..=MAX_RECORD).contains(&length) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let Some(record) = self.incoming.get(LENGTH_LEN..LENGTH_LEN + length) else {
            return Ok(false);
        };
        frame.resize(length, 0);
        let read = self.noise.read_message(record, frame);
        frame.truncate(read.map_err(|_| io::ErrorKind::InvalidData)?);
        self.incoming.advance(LENGTH_LEN + length);
        Ok(true)
    }

    /// Return whether the peer has been silent for [`SILENCE`].
    pub fn is_silent(&self) -> bool {
        self.last_received.elapsed() >= SILENCE
    }

    /// Return whether this end should send something, so that the peer knows that it is alive.
    pub fn is_keep_alive_due(&self) -> bool {
        self.last_sent.elapsed() >= KEEP_ALIVE
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        if !self.is_closed {
            abort(&self.stream);
        }
    }
}
