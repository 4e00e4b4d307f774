//! A stream of a link as two message queues.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use noq::{RecvStream, SendStream, VarInt};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::writer::Writer;
use crate::message::{self, MAX_FEEDBACK, Message, ToServer};

/// Maximum number of queued bytes. A peer that does not read them counts as dead, because its view of the client's connection
/// would be stale.
const MAX_QUEUED: usize = 8 << 20;
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

/// Outgoing queue of a stream.
#[derive(Debug, Default)]
pub(super) struct Shared {
    queue: Mutex<Queue>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    /// Encoded messages.
    wire: BytesMut,
    /// Frames after these messages that are not in a message yet.
    feedback: BytesMut,
    /// Whether the outbox has been dropped.
    is_ended: bool,
    /// Whether the queue is too long, or writing has failed.
    is_broken: bool,
}

impl Queue {
    fn flush_feedback(&mut self) {
        if !self.feedback.is_empty() {
            let frames = self.feedback.split().freeze();
            ToServer::Feedback(frames).encode(&mut self.wire);
        }
    }

    /// Check the length of the queue. Returns whether the stream is usable.
    fn check(&mut self) -> bool {
        self.is_broken |= self.wire.len() + self.feedback.len() > MAX_QUEUED;
        !self.is_broken
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }
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

/// Next action of the writer.
pub(super) enum Action {
    Write(Bytes),
    Wait,
    End,
    Reset,
}

impl Shared {
    pub(super) fn next(&self) -> Action {
        let mut queue = self.lock();
        if queue.is_broken {
            return Action::Reset;
        }
        queue.flush_feedback();
        if !queue.wire.is_empty() {
            return Action::Write(queue.wire.split().freeze());
        }
        if queue.is_ended {
            Action::End
        } else {
            Action::Wait
        }
    }

    /// Wait until there may be another action.
    pub(super) async fn wait(&self) {
        self.wake.notified().await;
    }

    /// Record that writing has failed.
    pub(super) fn fail(&self) {
        self.lock().is_broken = true;
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
