//! What a real server learns of its grant. The client's packets come in batches, and noq opens them one by one: what they say is added up until the
//! owner takes it, so that a batch is one message.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard};

use bytes::Bytes;
use frontage_quic_wire::frames::Ack;
use frontage_quic_wire::write_varint;
use noq::ConnectionId;
use tokio::sync::Notify;

use crate::grant::Keys;
use frontage_quic_wire::PacketNumberSet;

/// Answers to PATH_CHALLENGE that wait at most.
const ANSWERS: usize = 8;

/// What becomes of a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Frames of the client's that concern it: ACK with the path's numbers, MAX_DATA of the share, MAX_STREAM_DATA, STOP_SENDING, PATH_RESPONSE.
    Feedback(Bytes),
    /// The keys were updated.
    Keys(Keys),
    /// The client is elsewhere.
    Moved {
        client: SocketAddr,
        server: SocketAddr,
    },
    /// The client's connection id for the path is another.
    ConnectionId(ConnectionId),
    /// The client hears the balancer, and has acknowledged nothing of the real server's for long: who lends does well to end that.
    Unheard,
    /// The path or the connection is over: nothing may be sent any more.
    Closed,
}

/// Not taken yet.
#[derive(Debug, Default)]
pub(super) struct Pending {
    acked: PacketNumberSet,
    /// The largest number acknowledged so far, by which the delay counts.
    largest: Option<u64>,
    delay: u64,
    ecn: Option<[u64; 3]>,
    credit: Option<u64>,
    /// Streams and how many bytes of them the client takes.
    limits: Vec<(u64, u64)>,
    /// Streams and error codes.
    stopped: Vec<(u64, u64)>,
    /// Data of PATH_RESPONSE frames.
    answers: Vec<[u8; 8]>,
    keys: Option<Keys>,
    connection_id: Option<ConnectionId>,
    /// The real server is to be given up.
    unheard: bool,
    closed: bool,
    /// The owner was told that there is something.
    told: bool,
}

/// The lender's end of the way to a real server.
#[derive(Debug, Default)]
pub(super) struct Feedback {
    pending: Mutex<Pending>,
    pub(super) news: Notify,
}

impl Feedback {
    pub(super) fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().expect("nobody panics with it")
    }

    fn add(&self, add: impl FnOnce(&mut Pending)) {
        let pending = &mut *self.pending();
        add(pending);
        let told = std::mem::replace(&mut pending.told, true);
        if !told || pending.is_urgent() {
            self.news.notify_one();
        }
    }

    /// The client has these packets; `ack` is the frame that says so, `ecn` its counts without those of packets of others.
    pub(super) fn acked(&self, ranges: &mut PacketNumberSet, ack: &Ack<'_>, ecn: Option<[u64; 3]>) {
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

    /// There may be something that nobody says.
    pub(super) fn look(&self) {
        self.add(|_| {});
    }

    /// Bytes that may be sent in all.
    pub(super) fn credit(&self, credit: u64) {
        self.add(|pending| pending.credit = Some(credit));
    }

    pub(super) fn limit(&self, stream: u64, limit: u64) {
        self.add(|pending| {
            let mut limits = pending.limits.iter_mut();
            match limits.find(|(other, _)| *other == stream) {
                Some((_, known)) => *known = limit.max(*known),
                None => pending.limits.push((stream, limit)),
            }
        });
    }

    pub(super) fn stopped(&self, stream: u64, code: u64) {
        self.add(|pending| {
            if !pending.stopped.iter().any(|(other, _)| *other == stream) {
                pending.stopped.push((stream, code));
            }
        });
    }

    pub(super) fn answered(&self, data: [u8; 8]) {
        self.add(|pending| {
            // A client that answers what nobody asked is not to fill the memory.
            pending.answers.truncate(ANSWERS - 1);
            pending.answers.insert(0, data);
        });
    }

    pub(super) fn keys(&self, keys: Keys) {
        self.add(|pending| pending.keys = Some(keys));
    }

    /// Those that are not taken yet, for who needs them now.
    pub(super) fn take_keys(&self) -> Option<Keys> {
        self.pending().keys.take()
    }

    pub(super) fn connection_id(&self, id: ConnectionId) {
        self.add(|pending| pending.connection_id = Some(id));
    }

    /// The client does not hear it.
    pub(super) fn unheard(&self) {
        self.add(|pending| pending.unheard = true);
    }

    /// It is not given up yet.
    pub(super) fn call_off(&self) {
        self.pending().unheard = false;
    }

    pub(super) fn is_unheard(&self) -> bool {
        self.pending().unheard
    }

    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn frames(&self) -> Bytes {
        self.pending().frames()
    }

    #[cfg(test)]
    pub(super) fn new_connection_id(&self) -> Option<ConnectionId> {
        self.pending().connection_id
    }

    pub(super) fn close(&self) {
        self.add(|pending| pending.closed = true);
    }
}

impl Pending {
    /// Without it a real server does what it should not.
    pub(super) fn is_urgent(&self) -> bool {
        let known = self.keys.is_some() || self.connection_id.is_some();
        self.closed || known || !self.stopped.is_empty()
    }

    fn frames(&mut self) -> Bytes {
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
        for data in self.answers.drain(..) {
            wire.push(0x1b);
            wire.extend(data);
        }
        wire.into()
    }

    /// In the order in which a real server needs them.
    pub(super) fn take(&mut self, events: &mut VecDeque<Event>) {
        self.told = false;
        events.extend(self.keys.take().map(Event::Keys));
        events.extend(self.connection_id.take().map(Event::ConnectionId));
        let frames = self.frames();
        if !frames.is_empty() {
            events.push_back(Event::Feedback(frames));
        }
        if std::mem::take(&mut self.unheard) {
            events.push_back(Event::Unheard);
        }
        if self.closed {
            events.push_back(Event::Closed);
        }
    }
}
