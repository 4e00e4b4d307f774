//! The paths of a connection, and which of them may be lent.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;

use noq::{PathId, PathStatus};

use super::path::{Holder, Path};
use super::{Events, Lender};
use crate::grant::Grant;

/// Paths that are remembered, those that ended among them.
const PATHS: usize = 64;

/// All that noq has sent on, or the client named.
#[derive(Debug, Default)]
pub(super) struct Paths {
    known: Vec<Path>,
    /// Those up to this one that are not known are forgotten; who had their numbers, too.
    forgotten: u32,
}

impl Paths {
    pub(super) fn get(&mut self, id: u32) -> Option<&mut Path> {
        self.known.iter_mut().find(|path| path.id == id)
    }

    /// `None` if it is forgotten.
    pub(super) fn get_or_new(&mut self, id: u32) -> Option<&mut Path> {
        let at = match self.known.iter().position(|path| path.id == id) {
            Some(at) => at,
            None if id != 0 && id <= self.forgotten => return None,
            None => {
                if self.known.len() == PATHS {
                    self.forget();
                }
                self.known.push(Path::new(id));
                self.known.len() - 1
            }
        };
        Some(&mut self.known[at])
    }

    /// Whether one more takes the place of another.
    pub(super) fn full(&self) -> bool {
        self.known.len() == PATHS
    }

    /// Forgets a loan's name, which is never another's.
    pub(super) fn remove(&mut self, id: u32) {
        self.known.retain(|path| path.id != id);
    }

    /// By which noq itself sends: path 0 as long as the client keeps it.
    pub(super) fn own(&self) -> Option<u32> {
        let held = |path: &&Path| !path.over && matches!(path.holder, Holder::Balancer);
        self.known.iter().filter(held).map(|path| path.id).min()
    }

    /// The first that may be lent.
    pub(super) fn free(&self) -> Option<u32> {
        let own = self.own();
        let free = |path: &&Path| path.free() && Some(path.id) != own;
        self.known.iter().find(free).map(|path| path.id)
    }

    /// The oldest: ids rise (draft-ietf-quic-multipath, section 3.1).
    fn forget(&mut self) {
        let paths = self
            .known
            .iter()
            .enumerate()
            .filter(|(_, path)| path.id != 0);
        if let Some((at, _)) = paths.min_by_key(|(_, path)| path.id) {
            let mut path = self.known.remove(at);
            path.spend();
            self.forgotten = self.forgotten.max(path.id);
        }
    }

    pub(super) fn iter(&mut self) -> impl Iterator<Item = &mut Path> {
        self.known.iter_mut()
    }
}

impl<O> Lender<O> {
    /// Lends a path of this lender's connection that is validated and that nobody has, never the one that noq itself needs. `server` is what the client takes the balancer's
    /// address for. Until that real server asks for more, it may send little.
    ///
    /// noq's own use of further paths has to end before they can be lent, so the first call may find none though there is one.
    pub fn lend_path(
        &self,
        connection: &noq::Connection,
        server: SocketAddr,
    ) -> Option<(Grant, Events)> {
        if !self.lends.load(Relaxed) {
            return None;
        }
        // noq's lock is held by whoever sends, and this one's taken within: never the other way round.
        let (known, own) = {
            let state = &mut *self.state();
            let known: Vec<u32> = state.paths.iter().map(|path| path.id).collect();
            (known, state.paths.own())
        };
        for id in known {
            let status = match Some(id) == own {
                true => PathStatus::Available,
                false => PathStatus::Backup,
            };
            if let Some(path) = connection.path(PathId::from(id))
                && path.status().is_ok_and(|now| now != status)
            {
                // A path that is closed meanwhile is none to lend.
                let _ = path.set_status(status);
            }
        }
        let id = self.state().free()?;
        let client = connection.path(PathId::from(id))?.remote_address().ok()?;
        let rtt = connection.rtt(PathId::from(id))?;
        let zero = connection.path(PathId::ZERO);
        let zero = zero.and_then(|path| path.remote_address().ok());

        let state = &mut *self.state();
        let grant = state.grant(id, [client, server], rtt)?;
        let path = state.paths.get(id).filter(|path| path.free())?;
        let credit = state.credit.lend_first();
        let (first, feedback) = path.lend(credit)?;
        let grant = Grant {
            first,
            credit,
            ..grant
        };
        let events = Events::new(
            feedback,
            connection,
            id,
            (client, zero.unwrap_or(client)),
            server,
        );
        Some((grant, events))
    }
}

#[cfg(test)]
mod tests;
