// SPDX-License-Identifier: Apache-2.0
//! A session: one delegation of a client's connection to a real server, and the streams on it.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use frontage_handoff::delegate::{NoAckReport, NumberRequest};
use frontage_handoff::delegator::{Error, Event, Events};
use frontage_handoff::grant::Grant;
use frontage_handoff::link::{Inbox, LinkError, Outbox};
use frontage_handoff::message::{ToBalancer, ToServer};
use noq::{PathId, VarInt};
use parking_lot::Mutex;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;

use super::client::Client;
use super::comparison::Comparison;
use super::servers::RealServers;
use super::streams::{StreamUpdate, Streams};

/// Application error code with which a connection is closed after a protocol violation towards a real server. The client
/// gets a transport error code instead.
const VIOLATION: u32 = 0x0102;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Live,
    /// The session gets no more streams.
    Ending,
    /// The path belongs to the balancer again, or is retired.
    Over,
}

/// A path, or numbers of a single path, delegated to one real server.
pub struct Session {
    /// Index of the real server in the configuration.
    pub server: usize,
    /// Path id, or id of the delegation by packet numbers.
    pub delegation: u32,
    outbox: Outbox<ToServer>,
    streams: Streams,
    /// Held from the allocation of packet numbers until they are in `outbox`, so that they leave in ascending order.
    number_order: Mutex<()>,
    /// When the real server turned out to be unreachable for the client.
    unreachable_since: OnceLock<Instant>,
    comparison: Mutex<Comparison>,
    stage: watch::Sender<Stage>,
    /// Number of [`SessionGuard`]s.
    guards: AtomicUsize,
}

/// Keeps a session from being idle, for a request on it.
pub struct SessionGuard(Arc<Session>);

impl SessionGuard {
    /// Guard `session`.
    pub fn new(session: Arc<Session>) -> Self {
        session.guards.fetch_add(1, Relaxed);
        Self(session)
    }
}

impl Deref for SessionGuard {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.0
    }
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        self.0.guards.fetch_sub(1, Relaxed);
    }
}

impl Session {
    /// Send `open` to the real server, and relay messages and events from now on. Must be called within a Tokio runtime.
    pub fn start(
        servers: Arc<RealServers>,
        (server, delegation): (usize, u32),
        (outbox, inbox): (Outbox<ToServer>, Inbox<ToBalancer>),
        client: Client,
        open: &ToServer,
        events: Events,
    ) -> Arc<Self> {
        let ToServer::Open { grant, .. } = open else {
            unreachable!("a session begins with a grant");
        };
        let addresses = SentAddresses::new(grant);
        outbox.send(open);
        let session = Arc::new(Self {
            server,
            delegation,
            outbox,
            streams: Streams::default(),
            number_order: Mutex::default(),
            unreachable_since: OnceLock::new(),
            comparison: Mutex::default(),
            stage: watch::Sender::new(Stage::Live),
            guards: AtomicUsize::new(0),
        });
        let run = session
            .clone()
            .run(servers, client, inbox, events, addresses);
        tokio::spawn(run);
        session
    }

    /// Return whether the session gets no more streams.
    pub fn has_ended(&self) -> bool {
        *self.stage.borrow() != Stage::Live
    }

    /// Return whether the session is live and has no requests. It stays idle while no caller can create a [`SessionGuard`].
    pub fn is_idle(&self) -> bool {
        !self.has_ended() && self.guards.load(Relaxed) == 0
    }

    /// Have the real server return the path. Completes once it has, or once the real server is lost.
    pub async fn stop(&self) {
        self.stop_sending();
        let mut stage = self.stage.subscribe();
        // Cannot fail, because the sender belongs to this session.
        let _ = stage.wait_for(|stage| *stage == Stage::Over).await;
    }

    /// Send `Stop`, unless the session is already ending.
    fn stop_sending(&self) {
        if self.begin_end() {
            self.outbox.send(&ToServer::Stop);
        }
    }

    /// Let the session get no more streams. Returns whether it was live.
    fn begin_end(&self) -> bool {
        self.stage.send_if_modified(|stage| {
            let was_live = *stage == Stage::Live;
            if was_live {
                *stage = Stage::Ending;
            }
            was_live
        })
    }

    /// Send the messages of a request on `stream`. Returns the stream's updates, which end if the real server is lost; `None` if the session
    /// has ended.
    pub fn request(
        &self,
        stream: u64,
        request: &[ToServer],
    ) -> Option<UnboundedReceiver<StreamUpdate>> {
        // A session that ends concurrently either finds this stream or has already left the live stage.
        let updates = self.streams.add(stream);
        if self.has_ended() || !request.iter().all(|message| self.outbox.send(message)) {
            self.streams.forget(stream);
            return None;
        }
        self.comparison.lock().on_request();
        Some(updates)
    }

    /// Return whether responses to this client have been slower than proxied ones would have been, given the balancer's
    /// minimum round-trip times to the client and to the real server.
    pub fn is_slower(&self, client: Duration, link: Duration) -> bool {
        let mut comparison = self.comparison.lock();
        comparison.is_slower(client, link, Instant::now())
    }

    /// Send packet numbers ahead of a request, if the client has a single path, so that the response need not wait for
    /// them.
    pub fn send_numbers_ahead(&self, client: &Client) {
        let _order = self.number_order.lock();
        let numbers = client.delegator.allocate_numbers_ahead(self.delegation);
        if let Some((generation, numbers)) = numbers {
            self.outbox.send(&ToServer::NumbersAhead {
                generation,
                numbers,
            });
        }
    }

    /// Forget `stream`.
    pub fn forget(&self, stream: u64) {
        self.streams.forget(stream);
    }

    /// Return when the real server turned out to be unreachable for the client, if it did.
    pub fn unreachable_since(&self) -> Option<Instant> {
        self.unreachable_since.get().copied()
    }

    /// Relay messages and events until the path is returned, or the real server or the connection is lost.
    async fn run(
        self: Arc<Self>,
        servers: Arc<RealServers>,
        client: Client,
        mut inbox: Inbox<ToBalancer>,
        mut events: Events,
        mut addresses: SentAddresses,
    ) {
        let counters = &servers.list()[self.server].counters;
        let mut has_events = true;
        let next = loop {
            tokio::select! {
                event = events.recv(), if has_events => {
                    if event == Some(Event::Unreachable) {
                        counters.unreachable.fetch_add(1, Relaxed);
                        let server = &servers.list()[self.server].name;
                        tracing::warn!("{server}: its packets do not reach a client: delegation ended");
                    }
                    has_events = self.forward(&client, event, &mut addresses);
                }
                message = inbox.next() => match message {
                    Ok(Some(ToBalancer::Returned { next })) => break Some(next),
                    Ok(Some(message)) => self.on_message(&client, message),
                    Ok(None) | Err(LinkError::Lost) => break None,
                    Err(LinkError::Malformed(error)) => {
                        counters.on_malformed(error.name());
                        break None;
                    }
                },
            }
        };
        self.begin_end();
        let delegator = &client.delegator;
        if next.is_some() {
            // The real server has not begun these and never will, so the balancer can answer them itself.
            self.streams.reject_pending();
        } else {
            // The exchanges reclaim their streams as lost.
            self.streams.lose_all();
        }
        // A client that lacks the packets before the next number cannot decode it.
        let next = next.filter(|_| self.unreachable_since().is_none());
        match next.map(|next| delegator.return_path(self.delegation, next)) {
            Some(Ok(())) => _ = counters.returned.fetch_add(1, Relaxed),
            failed => {
                if let Some(Err(Error::Number(_))) = failed {
                    counters.on_malformed("number");
                }
                // Fails if the path has already ended.
                if delegator.abandon(self.delegation).is_ok()
                    && let Some(path) = client.connection.path(PathId::from(self.delegation))
                {
                    // The client may open another path. The last path, and the single path of a client without multipath,
                    // stay open.
                    let _ = path.close();
                }
            }
        }
        self.stage.send_replace(Stage::Over);
    }

    /// Forward `event` to the real server. Returns whether there may be more.
    fn forward(
        &self,
        client: &Client,
        event: Option<Event>,
        addresses: &mut SentAddresses,
    ) -> bool {
        let event = match client
            .cookie_prefix
            .as_ref()
            .map(|_| client.server_address())
        {
            // The client now expects packets from an address that real servers cannot use.
            Some(None) => None,
            Some(Some((server, _))) => {
                if let Some(moved) = addresses.update(server, event.as_ref()) {
                    self.outbox.send(&moved);
                }
                event
            }
            None => event,
        };
        match event {
            // Handled by `update`.
            Some(Event::Moved { .. }) if client.cookie_prefix.is_some() => true,
            Some(Event::Feedback(frames)) => self.outbox.feedback(&frames),
            Some(Event::Keys(keys)) => self.outbox.send(&ToServer::Keys(keys)),
            Some(Event::Moved { client, server }) => {
                self.outbox.send(&ToServer::Moved { client, server })
            }
            Some(Event::ConnectionId(id)) => self.outbox.send(&ToServer::ConnectionId(id)),
            Some(Event::NumbersExpired(below)) => {
                self.outbox.send(&ToServer::NumbersExpired(below))
            }
            Some(Event::Unreachable) => {
                let _ = self.unreachable_since.set(Instant::now());
                self.streams.lose_accepted();
                // The real server must not start the remaining streams.
                self.stop_sending();
                false
            }
            Some(Event::Closed) | None => {
                self.stop_sending();
                false
            }
        }
    }

    /// Handle a message of the real server. Calls of the delegator fail if the delegation has ended in the meantime.
    fn on_message(&self, client: &Client, message: ToBalancer) {
        let delegator = &client.delegator;
        match self.streams.on_message(message) {
            Some(ToBalancer::Blocked { credit }) => {
                let _ = delegator.request_credit(self.delegation, credit);
            }
            Some(ToBalancer::NumbersNeeded { count, ahead }) => {
                let _order = self.number_order.lock();
                let request = NumberRequest { count, ahead };
                if let Ok((keys, numbers)) = delegator.allocate_numbers(self.delegation, request) {
                    if let Some(keys) = keys {
                        self.outbox.send(&ToServer::Keys(keys));
                    }
                    self.outbox.send(&ToServer::Numbers(numbers));
                }
            }
            Some(ToBalancer::RoundTrips { shortest, limiting }) => {
                let shortest = Duration::from_micros(shortest);
                let mut comparison = self.comparison.lock();
                comparison.on_report(shortest, limiting, Instant::now());
            }
            Some(ToBalancer::NoAckReport {
                elapsed,
                next,
                has_probed,
            }) => {
                let report = NoAckReport {
                    elapsed: Duration::from_micros(elapsed),
                    next,
                    has_probed,
                };
                let connection = &client.connection;
                let _ = delegator.on_no_ack_report(connection, self.delegation, report);
            }
            Some(ToBalancer::Failed { code }) => {
                delegator.set_violation(code);
                let code = VarInt::from_u32(VIOLATION);
                client
                    .connection
                    .close(code, b"protocol violation towards a real server");
            }
            _ => {}
        }
    }
}

/// Addresses that the real server got with the grant or the last `Moved`.
struct SentAddresses {
    client: SocketAddr,
    /// The balancer's address as the client knows it.
    server: SocketAddr,
}

impl SentAddresses {
    fn new(grant: &Grant) -> Self {
        Self {
            client: grant.client,
            server: grant.server,
        }
    }

    /// Return `Moved` if an address has changed.
    ///
    /// There is no event when the client switches to another address of the balancer, that is, to its cookie address. But
    /// the client's ACKs then arrive from there and cause an event.
    fn update(&mut self, server: SocketAddr, event: Option<&Event>) -> Option<ToServer> {
        let client = match event {
            Some(Event::Moved { client, .. }) => *client,
            _ => self.client,
        };
        if (client, server) == (self.client, self.server) {
            return None;
        }
        *self = Self { client, server };
        Some(ToServer::Moved { client, server })
    }
}
