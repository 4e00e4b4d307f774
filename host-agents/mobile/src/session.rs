// SPDX-License-Identifier: Apache-2.0
//! The state of a session at one end, without sockets and without a clock.
//!
//! Each direction is a stream of bytes with offsets. The sender keeps every byte until the peer has delivered it to its
//! application, and resumes on a new carrier at the offset that the peer has received. Neither end stores more than a
//! *window* of bytes per direction. So a carrier is always read, and a slow application delays its own direction only.

use std::collections::VecDeque;

use ring::digest::{Context, SHA256};
use thiserror::Error;

use crate::frame::{DIGEST_LEN, Frame, InvalidFrame, MAX_DATA};

/// Bytes in a frame at the beginning of a carrier. The peer cannot deliver a frame before it is complete, and TCP's first
/// window is smaller than a frame of [`MAX_DATA`].
const FIRST_DATA: usize = 1024;
/// Bytes of a carrier that are sent in short frames.
const FIRST_BYTES: u64 = 64 * 1024;

/// The peer violated the protocol. The session ends, because its streams can no longer be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// A record is not a frame.
    #[error(transparent)]
    Frame(#[from] InvalidFrame),
    /// A frame does not follow what was received before it.
    #[error("data at offset {offset} after {received} bytes")]
    Gap {
        /// Offset of the frame.
        offset: u64,
        /// Offset that was expected.
        received: u64,
    },
    /// The peer sent more than a window of undelivered bytes.
    #[error("more than {0} bytes that are not delivered yet")]
    Window(u64),
    /// An acknowledged or received offset was never sent, or precedes an earlier one.
    #[error("offset {offset} is not between {first} and {last}")]
    Offset {
        /// Offset that the peer named.
        offset: u64,
        /// Least valid offset.
        first: u64,
        /// Greatest valid offset.
        last: u64,
    },
    /// A frame follows the end of the stream.
    #[error("a frame after the end of the stream")]
    AfterEnd,
    /// The received stream is not the one that the peer sent.
    #[error("the digest of the stream is wrong")]
    Digest,
}

/// The meaning of a frame beyond the two streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Nothing.
    Progress,
    /// The peer's local connection failed.
    Reset,
    /// The peer has finished and forgets the session.
    Bye,
}

/// One end of a session.
pub struct Session {
    sending: Sending,
    receiving: Receiving,
}

impl Session {
    /// Create a session that stores at most `window` bytes per direction.
    pub fn new(window: u32) -> Self {
        Self {
            sending: Sending::new(window.into()),
            receiving: Receiving::new(window.into()),
        }
    }

    /// Return how many bytes [`Session::push`] accepts now.
    pub fn room(&self) -> usize {
        self.sending.room()
    }

    /// Append bytes of the local application, at most [`Session::room`].
    pub fn push(&mut self, bytes: &[u8]) {
        self.sending.push(bytes);
    }

    /// End the local application's stream. Later calls do nothing.
    pub fn finish(&mut self) {
        self.sending.finish();
    }

    /// Return received bytes that the local application has not got yet.
    pub fn deliverable(&self) -> &[u8] {
        self.receiving.buffer.as_slices().0
    }

    /// Note that the local application got `count` bytes of [`Session::deliverable`].
    pub fn on_delivered(&mut self, count: usize) {
        self.receiving.buffer.drain(..count);
        self.receiving.delivered += count as u64;
    }

    /// Return whether the application got all bytes of a stream that has ended, but not its end.
    pub fn is_end_deliverable(&self) -> bool {
        self.receiving.has_ended && self.receiving.delivered + 1 == self.receiving.received
    }

    /// Note that the local application got the end of the stream.
    pub fn on_end_delivered(&mut self) {
        self.receiving.delivered = self.receiving.received;
    }

    /// Return the offset up to which this end has received, for the handshake of a new carrier.
    pub fn received(&self) -> u64 {
        self.receiving.received
    }

    /// Return whether both streams have ended and have been delivered to both applications.
    pub fn is_complete(&self) -> bool {
        self.sending.is_complete() && self.receiving.is_complete()
    }

    /// Begin a new carrier whose peer has received everything below `peer_received`. Return the number of bytes that
    /// are sent again.
    ///
    /// # Errors
    /// If the offset was never sent, or had been acknowledged before.
    pub fn resume(&mut self, peer_received: u64) -> Result<u64, Violation> {
        self.receiving.acked = None;
        self.sending.resume(peer_received)
    }

    /// Append the next frame for the carrier to `out`. Return false if nothing is to be sent.
    pub fn next_frame(&mut self, out: &mut Vec<u8>) -> bool {
        if let Some(delivered) = self.receiving.due_ack() {
            self.receiving.acked = Some(delivered);
            Frame::Ack(delivered).encode(out);
            return true;
        }
        self.sending.next_frame(out)
    }

    /// Append an acknowledgment of everything delivered to `out`, which also shows the peer that this end is alive.
    pub fn keep_alive(&mut self, out: &mut Vec<u8>) {
        self.receiving.acked = Some(self.receiving.delivered);
        Frame::Ack(self.receiving.delivered).encode(out);
    }

    /// Process a record of the carrier.
    ///
    /// # Errors
    /// If the peer violated the protocol.
    pub fn on_record(&mut self, record: &[u8]) -> Result<Event, Violation> {
        match Frame::decode(record)? {
            Frame::Data { offset, bytes } => self.receiving.on_data(offset, bytes)?,
            Frame::End { offset, digest } => self.receiving.on_end(offset, digest)?,
            Frame::Ack(delivered) => self.sending.on_ack(delivered)?,
            Frame::Reset => return Ok(Event::Reset),
            Frame::Bye => return Ok(Event::Bye),
        }
        Ok(Event::Progress)
    }
}

/// The stream from the local application to the peer.
struct Sending {
    window: u64,
    /// The bytes from offset `acked` on.
    buffer: VecDeque<u8>,
    acked: u64,
    /// Offset of the first frame on the current carrier.
    first: u64,
    /// Offset of the next frame on the current carrier.
    next: u64,
    /// Offset of the next frame that has never been sent.
    fresh: u64,
    digest: Context,
    end: Option<End>,
}

/// The end of a stream: its length, and the digest of its bytes.
#[derive(Clone, Copy)]
struct End {
    offset: u64,
    digest: [u8; DIGEST_LEN],
}

impl Sending {
    fn new(window: u64) -> Self {
        Self {
            window,
            buffer: VecDeque::new(),
            acked: 0,
            first: 0,
            next: 0,
            fresh: 0,
            digest: Context::new(&SHA256),
            end: None,
        }
    }

    fn room(&self) -> usize {
        if self.end.is_some() {
            return 0;
        }
        self.window as usize - self.buffer.len()
    }

    fn push(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.room(), "more than the window");
        self.digest.update(bytes);
        self.buffer.extend(bytes);
    }

    fn finish(&mut self) {
        if self.end.is_none() {
            let offset = self.acked + self.buffer.len() as u64;
            let digest = digest(&self.digest);
            self.end = Some(End { offset, digest });
        }
    }

    fn is_complete(&self) -> bool {
        self.end.is_some_and(|end| self.acked > end.offset)
    }

    fn resume(&mut self, peer_received: u64) -> Result<u64, Violation> {
        self.check(peer_received, self.fresh)?;
        (self.first, self.next) = (peer_received, peer_received);
        Ok(self.fresh - self.next)
    }

    fn check(&self, offset: u64, last: u64) -> Result<(), Violation> {
        let first = self.acked;
        if (first..=last).contains(&offset) {
            return Ok(());
        }
        Err(Violation::Offset {
            offset,
            first,
            last,
        })
    }

    fn on_ack(&mut self, delivered: u64) -> Result<(), Violation> {
        self.check(delivered, self.next)?;
        // The end of the stream has an offset, but no byte.
        let bytes = (delivered - self.acked).min(self.buffer.len() as u64);
        self.buffer.drain(..bytes as usize);
        self.acked = delivered;
        Ok(())
    }

    fn next_frame(&mut self, out: &mut Vec<u8>) -> bool {
        let offset = self.next;
        let bytes = slice_at(&self.buffer, (offset - self.acked) as usize);
        let is_first = offset - self.first < FIRST_BYTES;
        let most = if is_first { FIRST_DATA } else { MAX_DATA };
        let bytes = &bytes[..bytes.len().min(most)];
        if !bytes.is_empty() {
            Frame::Data { offset, bytes }.encode(out);
            self.next += bytes.len() as u64;
        } else if let Some(End { digest, .. }) = self.end.filter(|end| end.offset == offset) {
            Frame::End { offset, digest }.encode(out);
            self.next += 1;
        } else {
            return false;
        }
        self.fresh = self.fresh.max(self.next);
        true
    }
}

/// Return the bytes from `start` on, up to where the ring buffer wraps.
fn slice_at(buffer: &VecDeque<u8>, start: usize) -> &[u8] {
    let (first, second) = buffer.as_slices();
    match start.checked_sub(first.len()) {
        None => &first[start..],
        Some(start) => second.get(start..).unwrap_or_default(),
    }
}

/// The stream from the peer to the local application.
struct Receiving {
    window: u64,
    /// The bytes from offset `delivered` on.
    buffer: VecDeque<u8>,
    received: u64,
    delivered: u64,
    /// Last acknowledgment on the current carrier.
    acked: Option<u64>,
    digest: Context,
    has_ended: bool,
}

impl Receiving {
    fn new(window: u64) -> Self {
        Self {
            window,
            buffer: VecDeque::new(),
            received: 0,
            delivered: 0,
            acked: None,
            digest: Context::new(&SHA256),
            has_ended: false,
        }
    }

    fn is_complete(&self) -> bool {
        self.has_ended && self.delivered == self.received
    }

    fn check(&self, offset: u64) -> Result<(), Violation> {
        if self.has_ended {
            return Err(Violation::AfterEnd);
        }
        let received = self.received;
        if offset != received {
            return Err(Violation::Gap { offset, received });
        }
        Ok(())
    }

    fn on_data(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Violation> {
        self.check(offset)?;
        if (self.buffer.len() + bytes.len()) as u64 > self.window {
            return Err(Violation::Window(self.window));
        }
        self.digest.update(bytes);
        self.buffer.extend(bytes);
        self.received += bytes.len() as u64;
        Ok(())
    }

    fn on_end(&mut self, offset: u64, expected: [u8; DIGEST_LEN]) -> Result<(), Violation> {
        self.check(offset)?;
        if digest(&self.digest) != expected {
            return Err(Violation::Digest);
        }
        self.has_ended = true;
        self.received += 1;
        Ok(())
    }

    /// Return the offset to acknowledge now. The peer needs acknowledgments before its window is full, and at the end.
    fn due_ack(&self) -> Option<u64> {
        let fresh = self.delivered - self.acked.unwrap_or(0).min(self.delivered);
        let is_due = fresh >= (self.window / 8).max(1) || fresh > 0 && self.is_complete();
        is_due.then_some(self.delivered)
    }
}

fn digest(context: &Context) -> [u8; DIGEST_LEN] {
    let digest = context.clone().finish();
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

#[cfg(test)]
mod tests;
