//! What a client's connection and a real server have to do with each other: a path that is lent, and the streams on it.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use frontage_handoff::lend::{Error, Event, Events};
use frontage_handoff::link::{Broken, Inbox, Outbox};
use frontage_handoff::message::{ToBalancer, ToServer};
use noq::{PathId, VarInt};
use tokio::sync::mpsc::UnboundedReceiver;

use super::life::Life;
use super::owner::Owner;
use super::servers::Servers;
use super::streams::{News, Streams};
use super::told::Told;

/// The application's code of a connection that is closed since the client lied to a real server; the client sees the transport's instead.
const VIOLATION: u32 = 0x0102;

/// One path, or numbers of the only one, lent to one real server.
pub struct Session {
    /// In the configuration's order.
    pub server: usize,
    /// The path's id, or the name of a loan of numbers.
    pub loan: u32,
    outbox: Outbox<ToServer>,
    streams: Streams,
    /// When it was given up, since the client hears the balancer and not the real server.
    unheard: OnceLock<Instant>,
    pub(super) life: Life,
}

impl Session {
    /// Tells the real server `open`, and passes on what happens from now on. Must be called within a Tokio runtime.
    pub fn begin(
        servers: Arc<Servers>,
        (server, loan): (usize, u32),
        (outbox, inbox): (Outbox<ToServer>, Inbox<ToBalancer>),
        owner: Owner,
        open: &ToServer,
        events: Events,
    ) -> Arc<Self> {
        let ToServer::Open { grant, .. } = open else {
            unreachable!("a session begins with a grant");
        };
        let told = Told::new(grant);
        outbox.send(open);
        let session = Arc::new(Self {
            server,
            loan,
            outbox,
            streams: Streams::default(),
            unheard: OnceLock::new(),
            life: Life::default(),
        });
        tokio::spawn(session.clone().run(servers, owner, inbox, events, told));
        session
    }

    /// Whether it can be given no streams any more.
    pub fn has_ended(&self) -> bool {
        self.life.has_ended()
    }

    /// Whether it lives and nothing is to be sent. It stays so while nobody can get a hold of it.
    pub fn is_idle(&self) -> bool {
        !self.has_ended() && !self.life.is_held()
    }

    /// Has the real server give the path back; ready once that is so, or the real server is lost.
    pub async fn stop(&self) {
        self.end();
        self.life.wait_until_over().await;
    }

    /// Nothing more is to be sent: asks for the path, once.
    fn end(&self) {
        if self.life.end() {
            self.outbox.send(&ToServer::Stop);
        }
    }

    /// Asks for an answer on `stream`. What the real server says about it; nothing more once it is lost. None if it is not asked, since all is over.
    pub fn request(&self, stream: u64, request: &ToServer) -> Option<UnboundedReceiver<News>> {
        // If the session ends at the same time, it either finds this stream or has left the mark.
        let news = self.streams.add(stream);
        if self.has_ended() || !self.outbox.send(request) {
            self.streams.forget(stream);
            return None;
        }
        Some(news)
    }

    /// Nothing more is to be said about `stream`.
    pub fn forget(&self, stream: u64) {
        self.streams.forget(stream);
    }

    /// When it was found that the client hears the balancer and not the real server, if that was so.
    pub fn unheard(&self) -> Option<Instant> {
        self.unheard.get().copied()
    }

    /// Until the path comes back, or the real server or the connection is lost.
    async fn run(
        self: Arc<Self>,
        servers: Arc<Servers>,
        owner: Owner,
        mut inbox: Inbox<ToBalancer>,
        mut events: Events,
        mut told: Told,
    ) {
        let counts = &servers.list()[self.server].counts;
        let mut passing = true;
        let next = loop {
            tokio::select! {
                event = events.recv(), if passing => {
                    if event == Some(Event::Unheard) {
                        counts.unheard.fetch_add(1, Relaxed);
                    }
                    passing = self.pass_on(&owner, event, &mut told);
                }
                message = inbox.next() => match message {
                    Ok(Some(ToBalancer::Returned { next })) => break Some(next),
                    Ok(Some(message)) => self.hear(&owner, message),
                    Ok(None) | Err(Broken::Lost) => break None,
                    Err(Broken::Malformed(error)) => {
                        counts.malformed(error.name());
                        break None;
                    }
                },
            }
        };
        self.life.end();
        let lender = &owner.lender;
        // Without the packets before it, the client cannot tell the next number.
        let is_unheard = self.unheard().is_some();
        if is_unheard && next.is_some() {
            self.streams.keep();
        } else {
            // Whoever waits for a stream takes it back as lost.
            self.streams.lose();
        }
        let next = next.filter(|_| !is_unheard);
        match next.map(|next| lender.give_back(self.loan, next)) {
            Some(Ok(())) => _ = counts.returned.fetch_add(1, Relaxed),
            refused => {
                if let Some(Err(Error::Number(_))) = refused {
                    counts.malformed("number");
                }
                // Of a path that is over, there is nothing to forsake.
                if lender.forsake(self.loan).is_ok()
                    && let Some(path) = owner.connection.path(PathId::from(self.loan))
                {
                    // The client may open another; if this one was the last, it goes on. Numbers are of none.
                    let _ = path.close();
                }
            }
        }
        self.life.over();
    }

    /// Passes `event` on to the real server. Whether there may be more.
    fn pass_on(&self, owner: &Owner, event: Option<Event>, told: &mut Told) -> bool {
        let event = match owner.cookie_prefix.as_ref().map(|_| owner.known_as()) {
            // A real server's packets cannot leave from where the client expects them any more.
            Some(None) => None,
            Some(Some((server, _))) => {
                if let Some(moved) = told.follow(server, event.as_ref()) {
                    self.outbox.send(&moved);
                }
                event
            }
            None => event,
        };
        match event {
            // Followed.
            Some(Event::Moved { .. }) if owner.cookie_prefix.is_some() => true,
            Some(Event::Feedback(frames)) => self.outbox.feedback(&frames),
            Some(Event::Keys(keys)) => self.outbox.send(&ToServer::Keys(keys)),
            Some(Event::Moved { client, server }) => {
                self.outbox.send(&ToServer::Moved { client, server })
            }
            Some(Event::ConnectionId(id)) => self.outbox.send(&ToServer::ConnectionId(id)),
            Some(Event::Unheard) => {
                let _ = self.unheard.set(Instant::now());
                self.streams.lose_begun();
                // What it has not begun it is not to begin.
                self.end();
                false
            }
            Some(Event::Closed) | None => {
                self.end();
                false
            }
        }
    }

    fn hear(&self, owner: &Owner, message: ToBalancer) {
        match self.streams.hear(message) {
            Some(ToBalancer::Blocked { credit }) => {
                // A loan that is over gets none.
                let _ = owner.lender.need_credit(self.loan, credit);
            }
            Some(ToBalancer::Wants { count }) => {
                // A loan that is over gets none.
                if let Ok((keys, numbers)) = owner.lender.more_numbers(self.loan, count) {
                    if let Some(keys) = keys {
                        self.outbox.send(&ToServer::Keys(keys));
                    }
                    self.outbox.send(&ToServer::Numbers(numbers));
                }
            }
            Some(ToBalancer::Silent { silence, next }) => {
                let silence = Duration::from_micros(silence);
                let connection = &owner.connection;
                // Of a loan that is over, nobody asks.
                let _ = owner.lender.silent(connection, self.loan, silence, next);
            }
            Some(ToBalancer::Failed { code }) => {
                owner.lender.violated(code);
                let code = VarInt::from_u32(VIOLATION);
                owner
                    .connection
                    .close(code, b"what a real server was told cannot be");
            }
            _ => {}
        }
    }
}
