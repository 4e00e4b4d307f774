// SPDX-License-Identifier: Apache-2.0
//! Outgoing message queue of a stream, shared by its outbox and the link's writer.

use bytes::{Bytes, BytesMut};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::message::{Message as _, ToServer};

/// Maximum number of queued bytes. A peer that does not read them counts as dead, because its view of the client's connection
/// would be stale.
const MAX_QUEUED: usize = 8 << 20;
/// Outgoing queue of a stream.
#[derive(Debug, Default)]
pub(super) struct Shared {
    queue: Mutex<Queue>,
    pub(super) wake: Notify,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Encoded messages.
    pub(super) wire: BytesMut,
    /// Frames after these messages that are not in a message yet.
    pub(super) feedback: BytesMut,
    /// True if the outbox has been dropped.
    pub(super) is_ended: bool,
    /// True if the queue is too long, or writing has failed.
    is_broken: bool,
}

impl Queue {
    /// Turn the queued frames into a message.
    pub(super) fn flush_feedback(&mut self) {
        if !self.feedback.is_empty() {
            let frames = self.feedback.split().freeze();
            ToServer::Feedback(frames).encode(&mut self.wire);
        }
    }

    /// Check the length of the queue. Returns whether the stream is usable.
    pub(super) fn check(&mut self) -> bool {
        self.is_broken |= self.wire.len() + self.feedback.len() > MAX_QUEUED;
        !self.is_broken
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
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
