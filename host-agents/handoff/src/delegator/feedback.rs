// SPDX-License-Identifier: Apache-2.0
//! Feedback for a real server: what the client says about a delegation.
//!
//! The client's packets arrive in batches, and noq opens them one by one. Their frames are accumulated until the owner takes
//! them, so that a batch becomes a single message.

use std::collections::VecDeque;
use std::net::SocketAddr;

use bytes::Bytes;
use frontage_quic_wire::frames::Ack;
use frontage_quic_wire::write_varint;
use noq::ConnectionId;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::grant::Keys;
use frontage_quic_wire::PacketNumberSet;

/// Maximum number of queued PATH_RESPONSE frames.
const MAX_PATH_RESPONSES: usize = 8;

/// Something that the real server of a delegation must learn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Frames of the client: ACK with the path's numbers, MAX_DATA with the real server's credit, MAX_STREAM_DATA,
    /// STOP_SENDING, PATH_RESPONSE.
    Feedback(Bytes),
    /// The keys were updated.
    Keys(Keys),
    /// The client's address changed.
    Moved {
        client: SocketAddr,
        server: SocketAddr,
    },
    /// The client's connection id for the path changed.
    ConnectionId(ConnectionId),
    /// The real server must not use numbers below this one.
    NumbersExpired(u64),
    /// The client receives the balancer's packets, but has not acknowledged the real server's for long. The owner should
    /// abandon the delegation.
    Unreachable,
    /// The path or the connection ended. The real server must stop sending.
    Closed,
}

/// Feedback that the owner has not taken yet.
#[derive(Debug, Default)]
pub(super) struct Pending {
    acked: PacketNumberSet,
    /// The largest number acknowledged so far; its ACK determines the delay.
    largest: Option<u64>,
    delay: u64,
    ecn: Option<[u64; 3]>,
    credit: Option<u64>,
    /// Streams and their limits.
    limits: Vec<(u64, u64)>,
    /// Streams and error codes of STOP_SENDING.
    stopped: Vec<(u64, u64)>,
    /// Data of PATH_RESPONSE frames.
    path_responses: Vec<[u8; 8]>,
    keys: Option<Keys>,
    connection_id: Option<ConnectionId>,
    /// Numbers below this one have expired.
    expired: Option<u64>,
    is_unreachable: bool,
    is_closed: bool,
    /// True if the owner has been notified and has not reacted yet.
    is_notified: bool,
}

/// Feedback queue of one delegation, filled by the delegator.
#[derive(Debug, Default)]
pub(super) struct Feedback {
    pending: Mutex<Pending>,
    /// Notified when there is feedback for the owner.
    pub(super) ready: Notify,
}

impl Feedback {
    pub(super) fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock()
    }

    fn add(&self, add: impl FnOnce(&mut Pending)) {
        let pending = &mut *self.pending();
        add(pending);
        let was_notified = std::mem::replace(&mut pending.is_notified, true);
        if !was_notified || pending.is_urgent() {
            self.ready.notify_one();
        }
    }

    /// Add an ACK. `ack` is the client's frame, `ranges` and `ecn` its part that concerns the real server's packets.
    pub(super) fn add_ack(
        &self,
        ranges: &mut PacketNumberSet,
        ack: &Ack<'_>,
        ecn: Option<[u64; 3]>,
    ) {
        self.add(|pending| {
            if pending.acked.is_empty() {
                std::mem::swap(&mut pending.acked, ranges);
            } else {
                pending.acked.merge(ranges);
            }
            if pending.largest.is_none_or(|largest| ack.largest > largest) {
                pending.largest = Some(ack.largest);
                pending.delay = ack.delay;
                pending.ecn = ecn.or(pending.ecn);
            }
        });
    }

    /// Let the next addition notify the owner again. The owner calls this before it checks the client's address and takes
    /// the feedback. Otherwise it would miss an address that changes between these two.
    pub(super) fn rearm(&self) {
        self.pending().is_notified = false;
    }

    /// Wake the owner to check the client's address.
    pub(super) fn wake(&self) {
        self.add(|_| {});
    }

    /// Set the real server's total credit in bytes.
    pub(super) fn set_credit(&self, credit: u64) {
        self.add(|pending| pending.credit = Some(credit));
    }

    pub(super) fn add_stream_limit(&self, stream: u64, limit: u64) {
        self.add(|pending| {
            let mut limits = pending.limits.iter_mut();
            match limits.find(|(other, _)| *other == stream) {
                Some((_, known)) => *known = limit.max(*known),
                None => pending.limits.push((stream, limit)),
            }
        });
    }

    pub(super) fn add_stop_sending(&self, stream: u64, code: u64) {
        self.add(|pending| {
            if !pending.stopped.iter().any(|(other, _)| *other == stream) {
                pending.stopped.push((stream, code));
            }
        });
    }

    pub(super) fn add_path_response(&self, data: [u8; 8]) {
        self.add(|pending| {
            // Bounds the memory that a client can occupy with unsolicited responses.
            pending.path_responses.truncate(MAX_PATH_RESPONSES - 1);
            pending.path_responses.insert(0, data);
        });
    }

    pub(super) fn set_keys(&self, keys: Keys) {
        self.add(|pending| pending.keys = Some(keys));
    }

    /// Take new keys out of the queue, for a caller that must deliver them first.
    pub(super) fn take_keys(&self) -> Option<Keys> {
        self.pending().keys.take()
    }

    pub(super) fn set_connection_id(&self, id: ConnectionId) {
        self.add(|pending| pending.connection_id = Some(id));
    }

    /// Set the number below which all have expired.
    pub(super) fn set_expired(&self, below: u64) {
        self.add(|pending| pending.expired = pending.expired.max(Some(below)));
    }

    /// Report that the real server's packets do not reach the client.
    pub(super) fn set_unreachable(&self) {
        self.add(|pending| pending.is_unreachable = true);
    }

    /// Withdraw a report that the owner has not taken yet.
    pub(super) fn clear_unreachable(&self) {
        self.pending().is_unreachable = false;
    }

    pub(super) fn is_unreachable(&self) -> bool {
        self.pending().is_unreachable
    }

    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn take_frames(&self) -> Bytes {
        self.pending().take_frames()
    }

    #[cfg(test)]
    pub(super) fn new_connection_id(&self) -> Option<ConnectionId> {
        self.pending().connection_id
    }

    pub(super) fn close(&self) {
        self.add(|pending| pending.is_closed = true);
    }
}

impl Pending {
    /// Return whether a delay would make the real server send packets that it must not send.
    pub(super) fn is_urgent(&self) -> bool {
        let has_changed = self.keys.is_some() || self.connection_id.is_some();
        self.is_closed || has_changed || self.expired.is_some() || !self.stopped.is_empty()
    }

    fn take_frames(&mut self) -> Bytes {
        let mut wire = Vec::new();
        self.acked.write_ack(None, self.delay, self.ecn, &mut wire);
        self.acked.clear();
        if let Some(credit) = self.credit.take() {
            write_varint(&mut wire, 0x10);
            write_varint(&mut wire, credit);
        }
        for (kind, frames) in [(0x11, &mut self.limits), (0x05, &mut self.stopped)] {
            for (stream, value) in frames.drain(..) {
                for value in [kind, stream, value] {
                    write_varint(&mut wire, value);
                }
            }
        }
        for data in self.path_responses.drain(..) {
            wire.push(0x1b);
            wire.extend(data);
        }
        wire.into()
    }

    /// Move everything to `events`, in the order in which the real server needs it.
    pub(super) fn take(&mut self, events: &mut VecDeque<Event>) {
        events.extend(self.keys.take().map(Event::Keys));
        events.extend(self.connection_id.take().map(Event::ConnectionId));
        events.extend(self.expired.take().map(Event::NumbersExpired));
        let frames = self.take_frames();
        if !frames.is_empty() {
            events.push_back(Event::Feedback(frames));
        }
        if std::mem::take(&mut self.is_unreachable) {
            events.push_back(Event::Unreachable);
        }
        if self.is_closed {
            events.push_back(Event::Closed);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn is_ready(feedback: &Feedback) -> bool {
        feedback.ready.notified().now_or_never().is_some()
    }

    #[test]
    fn addition_while_owner_takes_feedback_notifies_again() {
        let feedback = Feedback::default();
        feedback.wake();
        assert!(is_ready(&feedback));
        feedback.rearm();
        feedback.wake();
        feedback.pending().take(&mut VecDeque::new());
        assert!(is_ready(&feedback) && !is_ready(&feedback));
    }

    #[test]
    fn additions_until_owner_reacts_notify_once() {
        let feedback = Feedback::default();
        feedback.wake();
        assert!(is_ready(&feedback));
        feedback.set_credit(1);
        assert!(!is_ready(&feedback));
    }
}
