//! Which packet numbers of a path this server was granted, so that an Open that comes again cannot make it seal by a nonce twice.
//!
//! The auxiliary connection lets no message come twice; this holds against a balancer that is wrong, or two that have the same state.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard};

use frontage_handoff::grant::Grant;

/// Grants that are remembered: those of the newest connections.
const GRANTS: usize = 1 << 16;

/// Of all connections.
#[derive(Default)]
pub struct Granted {
    /// Secrets are not to be kept for longer than their grants.
    hasher: RandomState,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The first number that may be granted, by path; none if it is granted now, or was when the balancer was lost.
    next: HashMap<u64, Option<u64>>,
    order: VecDeque<u64>,
}

/// A path of a connection.
#[derive(Clone, Copy)]
pub struct Id(u64);

impl Granted {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("nobody panics with it")
    }

    /// The numbers of `grant` are this server's, or none if they may have been before. Those of path 0 are not: they come one by one.
    pub fn take(&self, grant: &Grant) -> Option<Id> {
        let id = self.hasher.hash_one((&grant.header_secret, grant.path));
        let known = &mut *self.known();
        if grant.path == 0 {
            return Some(Id(id));
        }
        match known.next.insert(id, None) {
            Some(Some(next)) if next <= grant.first => {}
            Some(before) => {
                known.next.insert(id, before);
                return None;
            }
            None => {
                known.order.push_back(id);
                if known.order.len() > GRANTS
                    && let Some(oldest) = known.order.pop_front()
                {
                    known.next.remove(&oldest);
                }
            }
        }
        Some(Id(id))
    }

    /// Those from `next` on are not any more.
    pub fn give_back(&self, id: Id, next: u64) {
        if let Some(known) = self.known().next.get_mut(&id.0) {
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
    fn no_numbers_are_granted_twice() {
        let granted = Granted::default();
        let take = |secret, path, first| granted.take(&grant(secret, path, first));
        let id = take(1, 1, 10).expect("they are new");
        assert!(take(1, 1, 10).is_none() && take(1, 1, 1000).is_none());
        assert!(take(1, 2, 10).is_some() && take(2, 1, 10).is_some());
        granted.give_back(id, 20);
        for first in [10, 19] {
            assert!(take(1, 1, first).is_none());
        }
        assert!(take(1, 1, 20).is_some() && take(1, 1, 20).is_none());
        assert!(take(1, 0, 5).is_some() && take(1, 0, 5).is_some());
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let granted = Granted::default();
        for path in 1..=GRANTS as u32 + 9 {
            granted.take(&grant(1, path, 0)).expect("it is new");
        }
        let known = granted.known();
        assert_eq!((known.next.len(), known.order.len()), (GRANTS, GRANTS));
    }
}
