//! By which way each client came last: through the tunnel, or itself. What comes late by the tunnel does not count.

use std::net::SocketAddr;
use std::num::NonZeroU8;
use std::sync::Mutex;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use frontage_quic::recent::Recent;
use frontage_quic::stragglers::{Shape, Stragglers};

/// Clients whose way is remembered, at least: only those that ever came by the tunnel. One that was forgotten is answered as if it had come itself.
const CLIENTS: usize = 1 << 16;

/// Through the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The site where its packets enter; answers leave by the replica's own.
    pub origin: NonZeroU8,
    /// The Service Address that it sent to.
    pub service: SocketAddr,
}

#[derive(Clone, Copy, Debug, Default)]
struct Client {
    /// None: it came itself, last.
    way: Option<Way>,
    /// Both ways are in use while a path is validated (RFC 9000, section 9.6.2), but a client moves once.
    moved: bool,
    /// By the tunnel, once it comes itself.
    stragglers: Stragglers,
}

/// What is known of the clients that came lately.
#[derive(Debug)]
pub struct Ways {
    recent: Mutex<Recent<SocketAddr, Client>>,
    changes: AtomicU64,
    moved: AtomicU64,
}

impl Default for Ways {
    fn default() -> Self {
        Self {
            recent: Mutex::new(Recent::new(CLIENTS)),
            changes: AtomicU64::new(0),
            moved: AtomicU64::new(0),
        }
    }
}

impl Ways {
    /// A datagram of `client` came through the tunnel.
    pub(super) fn tunnelled(&self, client: SocketAddr, way: Way, shape: Shape) {
        let mut recent = self.recent.lock().expect("nobody panics with it");
        recent.change(client, |before| {
            let mut client = before.unwrap_or_default();
            if !client.stragglers.is_late(shape) && client.way != Some(way) {
                self.changes.fetch_add(1, Release);
                client.way = Some(way);
            }
            client
        });
    }

    /// A datagram of `client` came itself.
    pub(super) fn direct(&self, client: SocketAddr, shape: Shape) {
        let mut recent = self.recent.lock().expect("nobody panics with it");
        // Most have never come otherwise, and are not worth remembering.
        let Some(mut here) = recent.get(&client) else {
            return;
        };
        let surely = here.stragglers.moved(shape);
        if here.way.take().is_some() {
            self.changes.fetch_add(1, Release);
            self.moved.fetch_add(u64::from(!here.moved), Relaxed);
            here.moved = true;
        } else if !surely {
            return;
        }
        recent.change(client, |_| here);
    }

    /// The way by which answers to `client` go, if through the tunnel.
    pub fn get(&self, client: SocketAddr) -> Option<Way> {
        let recent = self.recent.lock().expect("nobody panics with it");
        recent.get(&client)?.way
    }

    /// Clients that went from the tunnel to the unicast address.
    pub fn moved(&self) -> u64 {
        self.moved.load(Relaxed)
    }
}

/// What a connection knows of its client, as long as no client changes.
#[derive(Debug, Default)]
pub(super) struct Known(Option<(u64, SocketAddr, Option<Way>)>);

impl Known {
    pub(super) fn way(&mut self, ways: &Ways, client: SocketAddr) -> Option<Way> {
        // Before the look-up: what changes in between is looked up again.
        let changes = ways.changes.load(Acquire);
        match self.0 {
            Some((at, same, way)) if (at, same) == (changes, client) => way,
            _ => {
                let way = ways.get(client);
                self.0 = Some((changes, client, way));
                way
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_go_where_the_client_came_from() {
        let ways = Ways::default();
        let [one, other, service] = ["[2001:db8::1]:1", "[2001:db8::1]:2", "[2001:db8:a::]:443"]
            .map(|at| at.parse().unwrap());
        let by = |origin| Way {
            origin: NonZeroU8::new(origin).unwrap(),
            service,
        };
        let mut known = Known::default();
        assert_eq!(known.way(&ways, one), None);
        ways.tunnelled(one, by(2), Shape::Large);
        assert_eq!(known.way(&ways, one), Some(by(2)));
        ways.direct(other, Shape::Large);
        assert_eq!(ways.get(other), None);
        // Anycast led it elsewhere meanwhile.
        ways.tunnelled(one, by(3), Shape::Large);
        assert_eq!(known.way(&ways, one), Some(by(3)));
        ways.direct(one, Shape::Large);
        assert_eq!((known.way(&ways, one), ways.moved()), (None, 1));
        ways.tunnelled(one, by(3), Shape::Large);
        ways.direct(one, Shape::Large);
        assert_eq!((known.way(&ways, one), ways.moved()), (None, 1));
        // It has moved for good: the rest was on its way.
        ways.direct(one, Shape::Small);
        ways.tunnelled(one, by(3), Shape::Small);
        assert_eq!(known.way(&ways, one), None);
        // Another connection of its begins.
        ways.tunnelled(one, by(3), Shape::Long);
        assert_eq!(known.way(&ways, one), Some(by(3)));
    }
}
