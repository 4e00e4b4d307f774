//! The owner's end of the way to a real server.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use noq::{Connection, PathId, WeakConnectionHandle};
use tokio::time::{Instant, sleep_until};

use super::feedback::{Event, Feedback};
use super::moments;

/// What becomes of a grant, from now on.
#[derive(Debug)]
pub struct Events {
    feedback: Arc<Feedback>,
    taken: VecDeque<Event>,
    connection: WeakConnectionHandle,
    path: PathId,
    server: SocketAddr,
    place: LocalAddress,
    /// There is something, which is taken then.
    due: Option<Instant>,
    closed: bool,
}

/// Where noq takes a client to be.
#[derive(Clone, Copy, Debug)]
struct LocalAddress {
    /// By the path.
    client: SocketAddr,
    /// By path 0.
    first: SocketAddr,
    /// They were the same: then one NAT binding serves both, and a packet by either tells where both are. The client may say nothing by a path that only a real
    /// server sends on.
    shared: bool,
}

impl LocalAddress {
    fn new(client: SocketAddr, first: SocketAddr) -> Self {
        Self {
            client,
            first,
            shared: client == first,
        }
    }
}

impl Events {
    /// Of a path where noq takes the client to be at `client`, and by path 0 at `first`. noq is not asked: the lender's lock is held.
    pub(super) fn new(
        feedback: Arc<Feedback>,
        connection: &Connection,
        path: u32,
        (client, first): (SocketAddr, SocketAddr),
        server: SocketAddr,
    ) -> Self {
        Self {
            feedback,
            taken: VecDeque::new(),
            connection: connection.weak_handle(),
            path: PathId::from(path),
            server,
            place: LocalAddress::new(client, first),
            due: None,
            closed: false,
        }
    }

    /// The next, `None` after [`Event::Closed`]. Nothing is lost if this is dropped before it is ready.
    pub async fn recv(&mut self) -> Option<Event> {
        while self.taken.is_empty() {
            if self.closed {
                return None;
            }
            self.wait().await;
            self.moved();
            self.feedback.pending().take(&mut self.taken);
        }
        let event = self.taken.pop_front();
        self.closed |= event == Some(Event::Closed);
        event
    }

    /// Until there is something that is to be taken now.
    async fn wait(&mut self) {
        let news = || self.feedback.news.notified();
        if self.due.is_none() {
            news().await;
            let connection = self.connection.upgrade();
            let rtt = connection.and_then(|connection| connection.rtt(PathId::ZERO));
            self.due = moments::next(rtt.unwrap_or_default(), Instant::now());
        }
        while let Some(due) = self.due
            && !self.feedback.pending().is_urgent()
        {
            tokio::select! {
                () = sleep_until(due) => break,
                () = news() => {}
            }
        }
        self.due = None;
    }

    fn at(&self, path: PathId) -> Option<SocketAddr> {
        let connection = self.connection.upgrade()?;
        connection.path(path)?.remote_address().ok()
    }

    /// noq says nothing when a client moves. That it did shows in its packets, so it is time to look when there were some.
    fn moved(&mut self) {
        let before = self.place;
        let Some(client) = self.at(self.path) else {
            return;
        };
        let first = self.at(PathId::ZERO).unwrap_or(before.first);
        let moves = if client != before.client {
            self.place = LocalAddress::new(client, first);
            Some(client)
        } else {
            self.place.first = first;
            (before.shared && first != before.first).then_some(first)
        };
        if let Some(client) = moves {
            // What it did not hear may have gone to where it was.
            self.feedback.call_off();
            let server = self.server;
            self.taken.push_back(Event::Moved { client, server });
        }
    }
}
