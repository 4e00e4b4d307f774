// SPDX-License-Identifier: Apache-2.0
//! Protection against repeated grants: a replayed `Open` must not make this server reuse a nonce.
//!
//! The link does not repeat messages. This protects against a faulty balancer, or two with the same state.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};

use frontage_handoff::grant::Grant;
use parking_lot::{Mutex, MutexGuard};

/// Number of remembered grants: those of the newest connections.
const MAX_GRANTS: usize = 1 << 16;

/// Granted packet numbers of all connections.
#[derive(Default)]
pub struct ReplayGuard {
    /// Hashes secrets, which must not be kept longer than their grants.
    hasher: RandomState,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The lowest number that may be granted, by path; `None` while the path is granted, or if the balancer was lost.
    next: HashMap<u64, Option<u64>>,
    order: VecDeque<u64>,
}

/// Identifies a path of a connection.
#[derive(Clone, Copy)]
pub struct PathKey(u64);

impl ReplayGuard {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock()
    }

    /// Start a grant; `None` if its numbers may have been granted before. Grants of path 0 contain no numbers, so they are always
    /// accepted.
    pub fn start(&self, grant: &Grant) -> Option<PathKey> {
        let id = self.hasher.hash_one((&grant.header_secret, grant.path));
        let known = &mut *self.known();
        if grant.path == 0 {
            return Some(PathKey(id));
        }
        match known.next.insert(id, None) {
            Some(Some(next)) if next <= grant.first => {}
            Some(before) => {
                known.next.insert(id, before);
                return None;
            }
            None => {
                known.order.push_back(id);
                if known.order.len() > MAX_GRANTS
                    && let Some(oldest) = known.order.pop_front()
                {
                    known.next.remove(&oldest);
                }
            }
        }
        Some(PathKey(id))
    }

    /// End a grant. Numbers from `next` on may be granted again.
    pub fn end(&self, path: PathKey, next: u64) {
        if let Some(known) = self.known().next.get_mut(&path.0) {
            *known = Some(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use frontage_handoff::grant::Keys;
    use noq::ConnectionId;

    use super::*;

    fn grant(secret: u8, path: u32, first: u64) -> Grant {
        let address = "192.0.2.1:443".parse().unwrap();
        let secret = Bytes::from(vec![secret; 32]);
        Grant {
            path,
            first,
            connection_id: ConnectionId::new(&[]),
            suite: 0x1301,
            header_secret: secret.clone(),
            keys: Keys {
                generation: 0,
                secret,
            },
            client_parameters: Bytes::new(),
            server: address,
            client: address,
            credit: 0,
            rtt: Duration::ZERO,
        }
    }

    #[test]
    fn numbers_are_never_granted_twice() {
        let guard = ReplayGuard::default();
        let start = |secret, path, first| guard.start(&grant(secret, path, first));
        let id = start(1, 1, 10).expect("new grant");
        assert!(start(1, 1, 10).is_none() && start(1, 1, 1000).is_none());
        assert!(start(1, 2, 10).is_some() && start(2, 1, 10).is_some());
        guard.end(id, 20);
        for first in [10, 19] {
            assert!(start(1, 1, first).is_none());
        }
        assert!(start(1, 1, 20).is_some() && start(1, 1, 20).is_none());
        assert!(start(1, 0, 5).is_some() && start(1, 0, 5).is_some());
    }

    #[test]
    fn oldest_grants_are_forgotten() {
        let guard = ReplayGuard::default();
        for path in 1..=MAX_GRANTS as u32 + 9 {
            guard.start(&grant(1, path, 0)).expect("new grant");
        }
        let known = guard.known();
        assert_eq!(
            (known.next.len(), known.order.len()),
            (MAX_GRANTS, MAX_GRANTS)
        );
    }
}
