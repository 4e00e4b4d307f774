//! The real servers that have a path of a client's connection, and which of them gets a request.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use frontage_handoff::message::ToServer;
use tokio::sync::Mutex;

use super::life::Held;
use super::owner::Owner;
use super::servers::{Pool, Servers};
use super::session::Session;

/// For so long a real server that the client did not hear is not chosen again: as long as most clients wait for an answer.
const AVOIDED: Duration = Duration::from_secs(30);

/// Of one connection.
pub struct Sessions {
    owner: Owner,
    servers: Arc<Servers>,
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    /// Those that live, and some that do not; who got a request last is last.
    sessions: Vec<Arc<Session>>,
    /// Real servers that the client did not hear, and since when.
    unheard: HashMap<usize, Instant>,
}

impl List {
    /// Forgets the sessions that do not live.
    fn sweep(&mut self) {
        self.unheard.retain(|_, since| since.elapsed() < AVOIDED);
        for session in self.sessions.extract_if(.., |session| session.has_ended()) {
            if let Some(since) = session.unheard() {
                self.unheard.insert(session.server, since);
            }
        }
    }

    /// Where the live session with `server` is.
    fn position(&self, server: usize) -> Option<usize> {
        let live = |session: &Arc<Session>| session.server == server && !session.has_ended();
        self.sessions.iter().position(live)
    }

    /// Takes up the session at `at`, which is the last that is to lose its path then.
    fn hold(&mut self, at: usize) -> Held {
        let session = self.sessions[at].clone();
        self.sessions[at..].rotate_left(1);
        Held::new(session)
    }
}

impl Sessions {
    /// None yet.
    pub fn new(owner: Owner, servers: Arc<Servers>) -> Self {
        Self {
            owner,
            servers,
            list: Mutex::default(),
        }
    }

    /// A session with the real server that `pool` chooses: one that lives, or a new one. If there is no path for it, one is taken back from a real server that
    /// does nothing with it; if all do, one of these serves. None that the client did not hear lately is chosen.
    pub async fn choose(&self, pool: &Pool, key: u64) -> Option<Held> {
        let (chosen, idle) = {
            let list = &mut *self.list.lock().await;
            list.sweep();
            let chosen = pool.choose(key, |server| !list.unheard.contains_key(&server))?;
            let idle = match self.live_or_new(list, chosen).await {
                Ok(session) => return Some(session),
                Err(NoSession::Link) => None,
                Err(NoSession::Path) => {
                    let mut sessions = list.sessions.iter();
                    sessions.find(|session| session.is_idle()).cloned()
                }
            };
            (chosen, idle)
        };
        if let Some(idle) = idle {
            // A round trip to a neighbour, less than a proxy's way.
            idle.stop().await;
            let list = &mut *self.list.lock().await;
            list.sweep();
            // The client may have been found not to hear it meanwhile.
            if !list.unheard.contains_key(&chosen)
                && let Ok(session) = self.live_or_new(list, chosen).await
            {
                return Some(session);
            }
        }
        let list = &mut *self.list.lock().await;
        let other = pool.choose(key, |server| list.position(server).is_some())?;
        let live = list.position(other)?;
        Some(list.hold(live))
    }

    /// Of a list that was swept.
    async fn live_or_new(&self, list: &mut List, server: usize) -> Result<Held, NoSession> {
        if let Some(live) = list.position(server) {
            return Ok(list.hold(live));
        }
        let session = self.open(server).await?;
        list.sessions.push(session.clone());
        Ok(Held::new(session))
    }

    async fn open(&self, server: usize) -> Result<Arc<Session>, NoSession> {
        let (known_as, cookie) = self.owner.known_as().ok_or(NoSession::Link)?;
        let link = &self.servers.list()[server].link;
        // Before the path is lent: a path that is not used after all has to settle first.
        let both = link.open().await.ok_or(NoSession::Link)?;
        let lender = &self.owner.lender;
        let connection = &self.owner.connection;
        let (loan, grant, events) = match lender.lend_path(connection, known_as) {
            Some((grant, events)) => (grant.path, grant, events),
            // Of a client that has one path, numbers.
            None => lender
                .lend_numbers(connection, known_as)
                .ok_or(NoSession::Path)?,
        };
        let open = ToServer::Open {
            grant,
            cookie,
            below: self.servers.below,
        };
        Ok(Session::begin(
            self.servers.clone(),
            (server, loan),
            both,
            self.owner.clone(),
            &open,
            events,
        ))
    }
}

/// Why there is no session with a real server.
enum NoSession {
    /// Nothing gets to it, or from it to the client.
    Link,
    /// All paths are lent.
    Path,
}
