// SPDX-License-Identifier: Apache-2.0
//! A stream of a link as two message queues.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bytes::BytesMut;
use noq::{RecvStream, SendStream, VarInt};

use super::queue::Shared;
use super::writer::Writer;
use crate::message::{self, MAX_FEEDBACK, Message, ToServer};

/// Maximum number of bytes per read.
const MAX_CHUNK: usize = 64 << 10;
/// Application error code of a stream that was stopped because of a malformed message.
const MALFORMED: u32 = 1;

/// Why a stream of messages ended early.
#[derive(Debug)]
pub enum LinkError {
    /// The link is down, or the peer has reset the stream.
    Lost,
    /// A message is malformed.
    Malformed(message::Error),
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str("the link is down"),
            Self::Malformed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LinkError {}

/// Split a stream into its two queues; `writer` writes the outgoing one.
pub(super) fn pair<Out: Message, In: Message>(
    (send, receive): (SendStream, RecvStream),
    writer: &Writer,
) -> (Outbox<Out>, Inbox<In>) {
    let shared = Arc::<Shared>::default();
    writer.add(send, shared.clone());
    let outbox = Outbox {
        shared,
        marker: PhantomData,
    };
    let inbox = Inbox {
        stream: receive,
        buffer: BytesMut::new(),
        marker: PhantomData,
    };
    (outbox, inbox)
}

/// Sender of messages. Dropping it ends the stream.
pub struct Outbox<M> {
    shared: Arc<Shared>,
    marker: PhantomData<fn(M)>,
}

impl<M: Message> Outbox<M> {
    /// Queue a message. Returns whether the stream is usable.
    pub fn send(&self, message: &M) -> bool {
        let mut queue = self.shared.lock();
        queue.flush_feedback();
        message.encode(&mut queue.wire);
        let is_usable = queue.check();
        drop(queue);
        self.shared.wake.notify_one();
        is_usable
    }
}

impl Outbox<ToServer> {
    /// Queue [`ToServer::Feedback`], merged with feedback that is already queued: while the link is busy, the ACKs of ten
    /// packets cost as much as one. `frames` must be whole frames. Returns whether the stream is usable.
    pub fn feedback(&self, frames: &[u8]) -> bool {
        let mut queue = self.shared.lock();
        if queue.feedback.len() + frames.len() > MAX_FEEDBACK {
            queue.flush_feedback();
        }
        queue.feedback.extend_from_slice(frames);
        let is_usable = queue.check();
        drop(queue);
        self.shared.wake.notify_one();
        is_usable
    }
}

impl<M> Drop for Outbox<M> {
    fn drop(&mut self) {
        self.shared.lock().is_ended = true;
        self.shared.wake.notify_one();
    }
}

/// Receiver of messages.
pub struct Inbox<M> {
    stream: RecvStream,
    buffer: BytesMut,
    marker: PhantomData<fn() -> M>,
}

impl<M: Message> Inbox<M> {
    /// Return the next message; `None` if the peer has ended the stream. Cancel safe.
    ///
    /// # Errors
    /// If the link is down or the message is malformed. The peer is notified of a malformed message.
    pub async fn next(&mut self) -> Result<Option<M>, LinkError> {
        loop {
            match M::decode(&mut self.buffer) {
                Ok(Some(message)) => return Ok(Some(message)),
                Ok(None) => {}
                Err(error) => {
                    let _ = self.stream.stop(VarInt::from_u32(MALFORMED));
                    return Err(LinkError::Malformed(error));
                }
            }
            match self.stream.read_chunk(MAX_CHUNK).await {
                Ok(Some(chunk)) => self.buffer.extend_from_slice(&chunk),
                // The stream ended within a message.
                Ok(None) if !self.buffer.is_empty() => {
                    return Err(LinkError::Malformed(message::Error::Truncated));
                }
                Ok(None) => return Ok(None),
                Err(_) => return Err(LinkError::Lost),
            }
        }
    }
}
