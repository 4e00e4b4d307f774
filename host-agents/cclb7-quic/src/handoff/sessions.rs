// SPDX-License-Identifier: Apache-2.0
//! Sessions of a client's connection, and the choice of a session for a request.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use frontage_handoff::message::ToServer;
use tokio::sync::Mutex;

use super::client::Client;
use super::servers::{Pool, RealServers};
use super::session::{Session, SessionGuard};

/// Time during which an unreachable real server is not chosen again: as long as most clients wait for a response.
const UNREACHABLE_HOLD: Duration = Duration::from_secs(30);

/// Sessions of one connection.
pub struct Sessions {
    client: Client,
    servers: Arc<RealServers>,
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    /// Live sessions and some that have ended, least recently used first.
    sessions: Vec<Arc<Session>>,
    /// Unreachable real servers, and since when.
    unreachable: HashMap<usize, Instant>,
}

impl List {
    /// Remove the sessions that have ended.
    fn sweep(&mut self) {
        self.unreachable
            .retain(|_, since| since.elapsed() < UNREACHABLE_HOLD);
        for session in self.sessions.extract_if(.., |session| session.has_ended()) {
            if let Some(since) = session.unreachable_since() {
                self.unreachable.insert(session.server, since);
            }
        }
    }

    /// Return the position of the live session with `server`.
    fn position(&self, server: usize) -> Option<usize> {
        let is_live = |session: &Arc<Session>| session.server == server && !session.has_ended();
        self.sessions.iter().position(is_live)
    }

    /// Return the server that the connection used last, if `pool` keeps it.
    fn kept(&self, pool: &Pool, is_multipath: bool) -> Option<usize> {
        let mut live = self
            .sessions
            .iter()
            .rev()
            .filter(|session| !session.has_ended());
        live.find(|session| pool.keeps(session.server, !is_multipath && !session.is_idle()))
            .map(|session| session.server)
    }

    /// Use the session at `at`, which becomes the most recently used.
    fn acquire(&mut self, at: usize) -> SessionGuard {
        let session = self.sessions[at].clone();
        self.sessions[at..].rotate_left(1);
        SessionGuard::new(session)
    }
}

impl Sessions {
    /// Create an empty list.
    pub fn new(client: Client, servers: Arc<RealServers>) -> Self {
        Self {
            client,
            servers,
            list: Mutex::default(),
        }
    }

    /// Return a session with the real server that `pool` chooses: a live one or a new one.
    ///
    /// If no path is free, the least recently used path without requests is reclaimed. If all have requests, one of the
    /// existing sessions is used. Real servers that were recently unreachable are not chosen.
    pub async fn choose(&self, pool: &Pool, key: u64) -> Option<SessionGuard> {
        let (chosen, idle) = {
            let list = &mut *self.list.lock().await;
            list.sweep();
            let is_reachable = |server| !list.unreachable.contains_key(&server);
            let kept = list.kept(pool, self.client.delegator.is_multipath());
            let chosen = kept.or_else(|| pool.choose(key, is_reachable))?;
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
            // Takes one round trip to a neighbour, which is less than proxying would.
            idle.stop().await;
            let list = &mut *self.list.lock().await;
            list.sweep();
            // The chosen server may have become unreachable in the meantime.
            if !list.unreachable.contains_key(&chosen)
                && let Ok(session) = self.live_or_new(list, chosen).await
            {
                return Some(session);
            }
        }
        let list = &mut *self.list.lock().await;
        let other = pool.choose(key, |server| list.position(server).is_some())?;
        let live = list.position(other)?;
        Some(list.acquire(live))
    }

    /// Return the live session with `server` of a swept list, or open one.
    async fn live_or_new(&self, list: &mut List, server: usize) -> Result<SessionGuard, NoSession> {
        if let Some(live) = list.position(server) {
            return Ok(list.acquire(live));
        }
        let session = self.open(server).await?;
        list.sessions.push(session.clone());
        Ok(SessionGuard::new(session))
    }

    async fn open(&self, server: usize) -> Result<Arc<Session>, NoSession> {
        let (address, cookie) = self.client.server_address().ok_or(NoSession::Link)?;
        let link = &self.servers.list()[server].link;
        // Opened before the path is delegated, because a path that is returned unused has to settle first.
        let both = link.open().await.ok_or(NoSession::Link)?;
        let delegator = &self.client.delegator;
        let connection = &self.client.connection;
        tokio::select! {
            () = delegator.started() => {}
            _ = connection.closed() => return Err(NoSession::Link),
        }
        let (delegation, grant, events) = match delegator.delegate_path(connection, address) {
            Some((grant, events)) => (grant.path, grant, events),
            // The client may have a single path.
            None => delegator
                .delegate_numbers(connection, address)
                .ok_or(NoSession::Path)?,
        };
        let open = ToServer::Open {
            grant,
            cookie,
            min_size: self.servers.min_size,
        };
        Ok(Session::start(
            self.servers.clone(),
            (server, delegation),
            both,
            self.client.clone(),
            &open,
            events,
        ))
    }
}

/// Why there is no session with a real server.
enum NoSession {
    /// The real server is not connected, or cannot send to the client.
    Link,
    /// All paths are delegated.
    Path,
}
