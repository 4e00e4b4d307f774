//! What a client's connection and a real server have to do with each other: a path that is lent, and the streams on it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use frontage_handoff::lend::{Event, Events, Lender};
use frontage_handoff::link::{Inbox, Outbox};
use frontage_handoff::message::{Reason, ToBalancer, ToServer};
use frontage_quic::meter::Meter;
use noq::{Connection, PathId, VarInt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The application's code of a connection that is closed since the client lied to a real server; the client sees the transport's instead.
const VIOLATION: u32 = 0x0102;

/// What a real server says about a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// It leaves it to the balancer.
    Refused(Reason),
    /// All of the answer is on its way.
    Sent {
        /// Of the stream.
        final_size: u64,
        /// Of the answer.
        status: u16,
        /// Of its body.
        bytes: u64,
    },
    /// The client has all of it.
    Done,
    /// It was reset.
    Broken {
        /// The application error code.
        code: u64,
        /// Of the stream.
        final_size: u64,
    },
}

/// One path, lent to one real server.
pub struct Session {
    /// In the configuration's order.
    pub server: usize,
    /// The path's id.
    pub path: u32,
    outbox: Outbox<ToServer>,
    streams: Mutex<HashMap<u64, UnboundedSender<News>>>,
    ended: AtomicBool,
    credit: AtomicU64,
}

/// What a session is of.
#[derive(Clone)]
pub struct Owner {
    /// The client's.
    pub connection: Connection,
    /// Its lender.
    pub lender: Arc<Lender<Meter>>,
}

impl Session {
    /// Tells the real server `open`, and passes on what happens from now on. Must be called within a Tokio runtime.
    pub fn begin(
        server: usize,
        (outbox, inbox): (Outbox<ToServer>, Inbox<ToBalancer>),
        owner: Owner,
        open: &ToServer,
        events: Events,
    ) -> Arc<Self> {
        let (path, credit) = match open {
            ToServer::Open { grant, .. } => (grant.path, grant.credit),
            _ => unreachable!("a session begins with a grant"),
        };
        outbox.send(open);
        let session = Arc::new(Self {
            server,
            path,
            outbox,
            streams: Mutex::default(),
            ended: AtomicBool::new(false),
            credit: AtomicU64::new(credit),
        });
        tokio::spawn(session.clone().run(owner, inbox, events));
        session
    }

    /// Whether it can be given no streams any more.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Relaxed)
    }

    /// Asks for an answer on `stream`. What the real server says about it; nothing more once it is lost.
    pub fn request(&self, stream: u64, request: &ToServer) -> UnboundedReceiver<News> {
        let (tell, news) = unbounded_channel();
        // If the session ends at the same time, it either finds this sender or has left the mark.
        self.streams().insert(stream, tell);
        if self.has_ended() || !self.outbox.send(request) {
            self.streams().remove(&stream);
        }
        news
    }

    /// Nothing more is to be said about `stream`.
    pub fn forget(&self, stream: u64) {
        self.streams().remove(&stream);
    }

    fn streams(&self) -> MutexGuard<'_, HashMap<u64, UnboundedSender<News>>> {
        self.streams.lock().expect("nobody panics with it")
    }

    /// Until the real server, the path or the connection is lost.
    async fn run(self: Arc<Self>, owner: Owner, mut inbox: Inbox<ToBalancer>, mut events: Events) {
        let mut stopping = false;
        loop {
            tokio::select! {
                event = events.recv(), if !stopping => stopping = !self.pass_on(event),
                message = inbox.next() => match message {
                    Ok(Some(ToBalancer::Returned { .. }) | None) | Err(_) => break,
                    Ok(Some(message)) => self.hear(&owner, message),
                },
            }
        }
        self.ended.store(true, Relaxed);
        // Whoever waits for a stream takes it back as lost.
        self.streams().clear();
        // Of a path that is over, there is nothing to forsake.
        if owner.lender.forsake(self.path).is_ok()
            && let Some(path) = owner.connection.path(PathId::from(self.path))
        {
            // The client may open another; if this one was the last, it goes on.
            let _ = path.close();
        }
    }

    /// Passes `event` on to the real server. Whether there may be more.
    fn pass_on(&self, event: Option<Event>) -> bool {
        match event {
            Some(Event::Feedback(frames)) => self.outbox.feedback(&frames),
            Some(Event::Keys(keys)) => self.outbox.send(&ToServer::Keys(keys)),
            Some(Event::Moved { client, server }) => {
                self.outbox.send(&ToServer::Moved { client, server })
            }
            Some(Event::ConnectionId(id)) => self.outbox.send(&ToServer::ConnectionId(id)),
            Some(Event::Closed) | None => {
                self.ended.store(true, Relaxed);
                self.outbox.send(&ToServer::Stop);
                false
            }
        }
    }

    fn hear(&self, owner: &Owner, message: ToBalancer) {
        let (stream, news) = match message {
            ToBalancer::Accepted { .. } | ToBalancer::Returned { .. } => return,
            ToBalancer::Refused { stream, reason } => (stream, News::Refused(reason)),
            ToBalancer::Sent {
                stream,
                final_size,
                status,
                bytes,
            } => (
                stream,
                News::Sent {
                    final_size,
                    status,
                    bytes,
                },
            ),
            ToBalancer::Done { stream } => (stream, News::Done),
            ToBalancer::Broken {
                stream,
                code,
                final_size,
            } => (stream, News::Broken { code, final_size }),
            ToBalancer::Blocked { credit } => {
                let more = credit.saturating_sub(self.credit.load(Relaxed));
                if let Ok(now) = owner.lender.more_credit(self.path, more) {
                    self.credit.store(now, Relaxed);
                }
                return;
            }
            ToBalancer::Failed { code } => {
                owner.lender.violated(code);
                let code = VarInt::from_u32(VIOLATION);
                owner
                    .connection
                    .close(code, b"what a real server was told cannot be");
                return;
            }
        };
        if let Some(tell) = self.streams().get(&stream) {
            // Nobody hears of a stream whose exchange was given up.
            let _ = tell.send(news);
        }
    }
}
