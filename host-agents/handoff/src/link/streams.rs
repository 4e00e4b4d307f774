//! A stream of the auxiliary connection as two queues of messages.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::{Bytes, BytesMut};
use noq::{RecvStream, SendStream, VarInt};
use tokio::sync::Notify;

use super::writer::Writer;
use crate::message::{self, MAX_FEEDBACK, Message, ToServer};

/// Bytes of messages that may wait. A peer that does not take them is as good as dead: what it does with a client's connection is not what the
/// client says by then.
const MAX_WAITING: usize = 8 << 20;
/// Bytes read at once, at most.
const CHUNK: usize = 64 << 10;
/// Application error code of a stream that was reset since a message was none.
const MALFORMED: u32 = 1;

/// Why a stream of messages ended before its time.
#[derive(Debug)]
pub enum Broken {
    /// The link is down, or the peer has reset the stream.
    Lost,
    /// What came is no message.
    Malformed(message::Error),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str("the link is down"),
            Self::Malformed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Broken {}

/// Both directions of a stream, which `writer` writes.
pub(super) fn pair<Out: Message, In: Message>(
    (send, receive): (SendStream, RecvStream),
    writer: &Writer,
) -> (Outbox<Out>, Inbox<In>) {
    let shared = Arc::<Shared>::default();
    writer.add(send, shared.clone());
    let outbox = Outbox {
        shared,
        of: PhantomData,
    };
    let inbox = Inbox {
        stream: receive,
        waiting: BytesMut::new(),
        of: PhantomData,
    };
    (outbox, inbox)
}

/// What is to be written to a stream.
#[derive(Debug, Default)]
pub(super) struct Shared {
    waiting: Mutex<Waiting>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Messages, encoded.
    wire: BytesMut,
    /// Frames that came after them, of which no message was made yet.
    feedback: BytesMut,
    /// Nothing is added any more.
    ended: bool,
    /// It was too much, or nobody writes any more.
    broken: bool,
}

impl Waiting {
    fn seal_feedback(&mut self) {
        if !self.feedback.is_empty() {
            let frames = self.feedback.split().freeze();
            ToServer::Feedback(frames).encode(&mut self.wire);
        }
    }

    fn check(&mut self) -> bool {
        self.broken |= self.wire.len() + self.feedback.len() > MAX_WAITING;
        !self.broken
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect("nobody panics with it")
    }
}

/// Where messages are put; the stream ends with it.
pub struct Outbox<M> {
    shared: Arc<Shared>,
    of: PhantomData<fn(M)>,
}

impl<M: Message> Outbox<M> {
    /// Leaves a message to be sent; `false` if the stream is broken.
    pub fn send(&self, message: &M) -> bool {
        let mut waiting = self.shared.lock();
        waiting.seal_feedback();
        message.encode(&mut waiting.wire);
        let sound = waiting.check();
        drop(waiting);
        self.shared.wake.notify_one();
        sound
    }
}

impl Outbox<ToServer> {
    /// Leaves [`ToServer::Feedback`] to be sent, in one message with what waits: while the link is busy, ten packets' acknowledgements cost what
    /// one's do. `frames` are whole, and `false` means that the stream is broken.
    pub fn feedback(&self, frames: &[u8]) -> bool {
        let mut waiting = self.shared.lock();
        if waiting.feedback.len() + frames.len() > MAX_FEEDBACK {
            waiting.seal_feedback();
        }
        waiting.feedback.extend_from_slice(frames);
        let sound = waiting.check();
        drop(waiting);
        self.shared.wake.notify_one();
        sound
    }
}

impl<M> Drop for Outbox<M> {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.wake.notify_one();
    }
}

/// What a writer finds to do.
pub(super) enum Next {
    Write(Bytes),
    Wait,
    End,
    Reset,
}

impl Shared {
    pub(super) fn next(&self) -> Next {
        let mut waiting = self.lock();
        if waiting.broken {
            return Next::Reset;
        }
        waiting.seal_feedback();
        if !waiting.wire.is_empty() {
            return Next::Write(waiting.wire.split().freeze());
        }
        if waiting.ended { Next::End } else { Next::Wait }
    }

    /// Until there is something else to do.
    pub(super) async fn wait(&self) {
        self.wake.notified().await;
    }

    /// Nobody writes any more.
    pub(super) fn fail(&self) {
        self.lock().broken = true;
    }
}

/// Where messages come from.
pub struct Inbox<M> {
    stream: RecvStream,
    waiting: BytesMut,
    of: PhantomData<fn() -> M>,
}

impl<M: Message> Inbox<M> {
    /// The next message; `None` once the peer has said all. May be dropped while it waits.
    ///
    /// # Errors
    /// Once there cannot be one. The peer is told if that is its fault.
    pub async fn next(&mut self) -> Result<Option<M>, Broken> {
        loop {
            match M::decode(&mut self.waiting) {
                Ok(Some(message)) => return Ok(Some(message)),
                Ok(None) => {}
                Err(error) => {
                    let _ = self.stream.stop(VarInt::from_u32(MALFORMED));
                    return Err(Broken::Malformed(error));
                }
            }
            match self.stream.read_chunk(CHUNK).await {
                Ok(Some(chunk)) => self.waiting.extend_from_slice(&chunk),
                // The stream ended within a message.
                Ok(None) if !self.waiting.is_empty() => {
                    return Err(Broken::Malformed(message::Error::Truncated));
                }
                Ok(None) => return Ok(None),
                Err(_) => return Err(Broken::Lost),
            }
        }
    }
}
