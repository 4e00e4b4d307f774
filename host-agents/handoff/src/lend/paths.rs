//! The paths of a connection, and which of them may be lent.

use super::path::{Holder, Path};

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

#[cfg(test)]
mod tests;
