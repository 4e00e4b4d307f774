// SPDX-License-Identifier: Apache-2.0
//! The owner's end of a delegation's feedback queue.
//!
//! Feedback that closely follows other feedback is delayed by a small part of a round trip. The feedback of all clients then goes
//! to a real server in one packet (delayed relaying; QDSR, section 8).

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use noq::{Connection, PathId, WeakConnectionHandle};
use tokio::time::{Instant, sleep_until};

use super::feedback::{Event, Feedback};

/// Feedback may wait for one part in this many of a round trip. The real server's RTT estimate grows by that much.
const RTT_PARTS: u32 = 16;
/// Maximum delay of feedback in milliseconds.
const MAX_DELAY_MS: u128 = 8;
/// Origin of the relay times, which all connections share.
static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Return the next relay time, a few milliseconds ahead, for a client with this round-trip time, if feedback was last taken at
/// `last`. `None` if the feedback need not wait, because the round trip is short, or because the last feedback is long ago. A
/// client with few packets in flight has little feedback, and its real server needs each part of it to send more.
fn next_relay(rtt: Duration, last: Option<Instant>, now: Instant) -> Option<Instant> {
    let max_delay = (rtt / RTT_PARTS).as_millis().min(MAX_DELAY_MS);
    // Intervals are powers of two, so that the relay times of different connections coincide.
    let interval = 1 << max_delay.checked_ilog2()?;
    let since = last.map(|last| now.saturating_duration_since(last));
    if since.is_none_or(|since| since >= Duration::from_millis(interval)) {
        return None;
    }
    let elapsed = now.saturating_duration_since(*EPOCH).as_millis() as u64;
    Some(*EPOCH + Duration::from_millis((elapsed / interval + 1) * interval))
}

/// Events of one delegation.
#[derive(Debug)]
pub struct Events {
    feedback: Arc<Feedback>,
    queue: VecDeque<Event>,
    connection: WeakConnectionHandle,
    path: PathId,
    server: SocketAddr,
    client: ClientAddress,
    /// When the pending feedback is taken, if there is any.
    due: Option<Instant>,
    /// When feedback was last taken.
    taken: Option<Instant>,
    is_closed: bool,
}

/// The client's address as noq knows it.
#[derive(Clone, Copy, Debug)]
struct ClientAddress {
    /// On the delegated path.
    path: SocketAddr,
    /// On path 0.
    zero: SocketAddr,
    /// True if both were the same. Then one NAT binding serves both paths, and a packet on either shows where the client
    /// is. The client may send nothing on a path on which only a real server sends.
    is_common: bool,
}

impl ClientAddress {
    fn new(path: SocketAddr, zero: SocketAddr) -> Self {
        Self {
            path,
            zero,
            is_common: path == zero,
        }
    }
}

impl Events {
    /// Create the events of a delegation. The client's addresses on the path and on path 0 are parameters, because the
    /// caller holds the delegator's lock and cannot query noq.
    pub(super) fn new(
        feedback: Arc<Feedback>,
        connection: &Connection,
        path: u32,
        (client, zero): (SocketAddr, SocketAddr),
        server: SocketAddr,
    ) -> Self {
        Self {
            feedback,
            queue: VecDeque::new(),
            connection: connection.weak_handle(),
            path: PathId::from(path),
            server,
            client: ClientAddress::new(client, zero),
            due: None,
            taken: None,
            is_closed: false,
        }
    }

    /// Return the next event, or `None` after [`Event::Closed`]. Cancel safe.
    pub async fn recv(&mut self) -> Option<Event> {
        while self.queue.is_empty() {
            if self.is_closed {
                return None;
            }
            self.wait().await;
            self.feedback.rearm();
            self.check_address();
            self.feedback.pending().take(&mut self.queue);
        }
        let event = self.queue.pop_front();
        self.is_closed |= event == Some(Event::Closed);
        event
    }

    /// Wait until feedback is due.
    async fn wait(&mut self) {
        let ready = || self.feedback.ready.notified();
        if self.due.is_none() {
            ready().await;
            let connection = self.connection.upgrade();
            let rtt = connection.and_then(|connection| connection.rtt(PathId::ZERO));
            self.due = next_relay(rtt.unwrap_or_default(), self.taken, Instant::now());
        }
        while let Some(due) = self.due
            && !self.feedback.pending().is_urgent()
        {
            tokio::select! {
                () = sleep_until(due) => break,
                () = ready() => {}
            }
        }
        self.due = None;
        self.taken = Some(Instant::now());
    }

    fn address_on(&self, path: PathId) -> Option<SocketAddr> {
        let connection = self.connection.upgrade()?;
        connection.path(path)?.remote_address().ok()
    }

    /// Queue [`Event::Moved`] if the client's address has changed. noq does not report a move, but a move shows in the
    /// client's packets, so it is checked whenever there was one.
    fn check_address(&mut self) {
        let before = self.client;
        let Some(client) = self.address_on(self.path) else {
            return;
        };
        let zero = self.address_on(PathId::ZERO).unwrap_or(before.zero);
        let new_address = if client != before.path {
            self.client = ClientAddress::new(client, zero);
            Some(client)
        } else {
            self.client.zero = zero;
            (before.is_common && zero != before.zero).then_some(zero)
        };
        if let Some(client) = new_address {
            // Unacknowledged packets may have gone to the old address.
            self.feedback.clear_unreachable();
            let server = self.server;
            self.queue.push_back(Event::Moved { client, server });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        *EPOCH + Duration::from_millis(ms)
    }

    #[test]
    fn relay_times_of_different_connections_coincide() {
        let next = |rtt, now| next_relay(Duration::from_millis(rtt), Some(at(now)), at(now));
        assert_eq!(next(15, 100), None);
        assert_eq!(next(16, 100), Some(at(101)));
        assert_eq!(next(60, 100), Some(at(102)));
        assert_eq!(next(100, 101), Some(at(104)));
        assert_eq!(next(1000, 103), Some(at(104)));
        assert_eq!(next(1000, 104), Some(at(112)));
    }

    #[test]
    fn rare_feedback_is_relayed_at_once() {
        let next = |last, now| next_relay(Duration::from_millis(100), last, at(now));
        assert_eq!(next(None, 101), None);
        assert_eq!(next(Some(at(101)), 104), Some(at(108)));
        assert_eq!(next(Some(at(101)), 105), None);
    }
}
