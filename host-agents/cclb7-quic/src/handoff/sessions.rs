//! The real servers that have a path of a client's connection, and which of them gets a request.

use std::sync::Arc;

use frontage_handoff::message::ToServer;
use tokio::sync::Mutex;

use super::life::Held;
use super::owner::Owner;
use super::servers::{Pool, Servers};
use super::session::Session;

/// Of one connection.
pub struct Sessions {
    owner: Owner,
    servers: Arc<Servers>,
    /// Those that live, and some that do not; who got a request last is last.
    list: Mutex<Vec<Arc<Session>>>,
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
    /// does nothing with it; if all do, one of these serves.
    pub async fn choose(&self, pool: &Pool, key: u64) -> Option<Held> {
        let chosen = pool.choose(key, |_| true)?;
        let idle = {
            let sessions = &mut *self.list.lock().await;
            match self.live_or_new(sessions, chosen).await {
                Ok(session) => return Some(session),
                Err(NoSession::Link) => None,
                Err(NoSession::Path) => sessions.iter().find(|session| session.is_idle()).cloned(),
            }
        };
        if let Some(idle) = idle {
            // A round trip to a neighbour, less than a proxy's way.
            idle.stop().await;
            let sessions = &mut *self.list.lock().await;
            if let Ok(session) = self.live_or_new(sessions, chosen).await {
                return Some(session);
            }
        }
        let sessions = &mut *self.list.lock().await;
        let other = pool.choose(key, |server| position(sessions, server).is_some())?;
        let live = position(sessions, other)?;
        Some(hold(sessions, live))
    }

    async fn live_or_new(
        &self,
        sessions: &mut Vec<Arc<Session>>,
        server: usize,
    ) -> Result<Held, NoSession> {
        sessions.retain(|session| !session.has_ended());
        if let Some(live) = position(sessions, server) {
            return Ok(hold(sessions, live));
        }
        let session = self.open(server).await?;
        sessions.push(session.clone());
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

/// Where the live session with `server` is.
fn position(sessions: &[Arc<Session>], server: usize) -> Option<usize> {
    let live = |session: &Arc<Session>| session.server == server && !session.has_ended();
    sessions.iter().position(live)
}

/// Takes up the session at `at`, which is the last that is to lose its path then.
fn hold(sessions: &mut [Arc<Session>], at: usize) -> Held {
    let session = sessions[at].clone();
    sessions[at..].rotate_left(1);
    Held::new(session)
}
