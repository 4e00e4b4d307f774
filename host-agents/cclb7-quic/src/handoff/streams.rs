// SPDX-License-Identifier: Apache-2.0
//! Streams of a session, and the real server's messages about each.

use std::collections::HashMap;

use frontage_handoff::message::{RejectReason, Resumable, ToBalancer};
use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A real server's message about a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamUpdate {
    /// The real server may respond from now on.
    Accepted,
    /// Another server can continue the response.
    Resumable(Resumable),
    /// The client has acknowledged this many bytes at the beginning of the stream.
    Progress(u64),
    /// The real server does not respond to the request.
    Rejected(RejectReason),
    /// The transport has accepted the whole response.
    Sent {
        /// Length of the stream in bytes.
        final_size: u64,
        /// HTTP status.
        status: u16,
        /// Length of the body in bytes.
        bytes: u64,
    },
    /// The client has acknowledged the whole response.
    Acknowledged,
    /// The stream ended early.
    Aborted {
        /// Application error code.
        code: u64,
        /// Length of the stream in bytes.
        final_size: u64,
    },
}

struct Stream {
    updates: UnboundedSender<StreamUpdate>,
    /// True if the real server may have sent on the stream.
    is_accepted: bool,
}

/// Streams of one session.
#[derive(Default)]
pub struct Streams(Mutex<HashMap<u64, Stream>>);

impl Streams {
    /// Add a stream. Returns its updates, which end when the stream is forgotten or lost.
    pub fn add(&self, stream: u64) -> UnboundedReceiver<StreamUpdate> {
        let (updates, received) = unbounded_channel();
        let entry = Stream {
            updates,
            is_accepted: false,
        };
        self.0.lock().insert(stream, entry);
        received
    }

    /// Forget a stream.
    pub fn forget(&self, stream: u64) {
        self.0.lock().remove(&stream);
    }

    /// Handle a message about a stream. Other messages are returned.
    pub fn on_message(&self, message: ToBalancer) -> Option<ToBalancer> {
        let (stream, update) = match message {
            ToBalancer::Accepted { stream } => {
                if let Some(stream) = self.0.lock().get_mut(&stream) {
                    stream.is_accepted = true;
                }
                (stream, StreamUpdate::Accepted)
            }
            ToBalancer::Rejected { stream, reason } => (stream, StreamUpdate::Rejected(reason)),
            ToBalancer::Sent {
                stream,
                final_size,
                status,
                bytes,
            } => (
                stream,
                StreamUpdate::Sent {
                    final_size,
                    status,
                    bytes,
                },
            ),
            ToBalancer::Acknowledged { stream } => (stream, StreamUpdate::Acknowledged),
            ToBalancer::Aborted {
                stream,
                code,
                final_size,
            } => (stream, StreamUpdate::Aborted { code, final_size }),
            ToBalancer::Resumable { stream, response } => {
                (stream, StreamUpdate::Resumable(response))
            }
            ToBalancer::Progress {
                stream,
                acknowledged,
            } => (stream, StreamUpdate::Progress(acknowledged)),
            other => return Some(other),
        };
        if let Some(stream) = self.0.lock().get(&stream) {
            // Fails if the exchange has been abandoned.
            let _ = stream.updates.send(update);
        }
        None
    }

    /// Treat all accepted streams as lost.
    pub fn lose_accepted(&self) {
        self.0.lock().retain(|_, stream| !stream.is_accepted);
    }

    /// Return all streams that were not accepted to the balancer: nothing was or will be sent on them.
    pub fn reject_pending(&self) {
        let mut streams = self.0.lock();
        for (_, stream) in streams.drain().filter(|(_, stream)| !stream.is_accepted) {
            let _ = stream
                .updates
                .send(StreamUpdate::Rejected(RejectReason::Path));
        }
    }

    /// Treat all streams as lost.
    pub fn lose_all(&self) {
        self.0.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pending_streams_are_rejected_and_accepted_ones_lost() {
        let streams = Streams::default();
        let mut updates = [0, 4, 8].map(|stream| streams.add(stream));
        for stream in [0, 4] {
            assert_eq!(streams.on_message(ToBalancer::Accepted { stream }), None);
        }
        let acknowledged = ToBalancer::Acknowledged { stream: 0 };
        assert_eq!(streams.on_message(acknowledged), None);
        let other = ToBalancer::NumbersNeeded { count: 1, ahead: 0 };
        assert_eq!(streams.on_message(other.clone()), Some(other));
        streams.lose_accepted();
        streams.reject_pending();
        let received = updates
            .each_mut()
            .map(|updates| std::iter::from_fn(|| updates.try_recv().ok()).collect::<Vec<_>>());
        assert_eq!(
            received,
            [
                vec![StreamUpdate::Accepted, StreamUpdate::Acknowledged],
                vec![StreamUpdate::Accepted],
                vec![StreamUpdate::Rejected(RejectReason::Path)]
            ]
        );
        assert!(updates.iter_mut().all(|updates| updates.is_closed()));
    }
}
