//! Where clients are: at which of the server's addresses, or behind which detour.
//!
//! A datagram from elsewhere than before is a *sighting*. It says nothing until the keys of a connection have opened it ([`crate::path`]): until then
//! anybody may have sent it.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU8;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Mutex, MutexGuard};

use crate::recent::Recent;

/// Clients that are remembered, at least. One that was forgotten is seen anew.
const CLIENTS: usize = 1 << 16;
/// Sightings that wait for a key, at least.
const SIGHTINGS: usize = 1 << 10;
/// Packets opened without meeting a sighting, after which those that wait are none.
const PATIENCE: u32 = 1 << 12;

/// The end of a 1-RTT packet: its AEAD's tag, which nothing changes on the way to the key (RFC 9001, section 5.3).
pub type Tag = [u8; 16];

/// An address of ours as a client used it, or what lies between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The server's own address, where the switch sends what came to the VIP.
    Vip,
    /// The static cookie's, with the epoch of the key that sealed it.
    Cookie(u32),
    /// One without cookies.
    Plain(IpAddr),
    /// Another network's.
    Detour(Detour),
}

/// The way of a client whose packets come through a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detour {
    /// The site where they enter; answers leave by the replica's own.
    pub origin: NonZeroU8,
    /// The address that the client sends to.
    pub service: SocketAddr,
}

#[derive(Clone, Copy, Debug)]
struct Client {
    /// Where its last long header came, and so what a handshake's answers come from.
    opening: Place,
    /// Where the first one of that handshake came: a client may complete it elsewhere.
    began: Place,
    /// Where one of its connections is, by an authentic packet since then.
    settled: Option<Place>,
    /// It was sighted elsewhere last.
    elsewhere: bool,
}

/// What is known of the clients that came lately.
#[derive(Debug)]
pub struct Places {
    /// By address and port.
    clients: Mutex<Recent<(u128, u16), Client>>,
    sightings: Mutex<Sightings>,
    /// Whether there are sightings.
    waiting: AtomicBool,
    /// Connections that went from the VIP to the static cookie's address.
    pub moved: AtomicU64,
    /// Connections that left a detour.
    pub returned: AtomicU64,
    /// Stateless resets that were not sent ([`Self::withholds_reset`]).
    pub withheld: AtomicU64,
}

#[derive(Debug)]
struct Sightings {
    by_tag: Recent<Tag, (SocketAddr, Place)>,
    missed: u32,
}

impl Default for Sightings {
    fn default() -> Self {
        Self {
            by_tag: Recent::new(SIGHTINGS),
            missed: 0,
        }
    }
}

impl Default for Places {
    fn default() -> Self {
        Self {
            clients: Mutex::new(Recent::new(CLIENTS)),
            sightings: Mutex::default(),
            waiting: AtomicBool::new(false),
            moved: AtomicU64::new(0),
            returned: AtomicU64::new(0),
            withheld: AtomicU64::new(0),
        }
    }
}

impl Places {
    /// `datagrams`, each of `stride` bytes but the last, came from `client` to `place`. Whether that was to be expected, and the next one like
    /// them need not be told.
    pub fn came(&self, client: SocketAddr, place: Place, datagrams: &[u8], stride: usize) -> bool {
        let mut expected = true;
        for datagram in datagrams.chunks(stride.max(1)) {
            if is_long(datagram) {
                self.opens(client, place);
            } else if self.is_there(client, place) {
                continue;
            } else {
                self.sight(client, place, datagram);
            }
            expected = false;
        }
        expected
    }

    /// A connection may begin, so what comes next is looked at.
    fn opens(&self, client: SocketAddr, place: Place) {
        self.clients().change(key(client), |before| Client {
            opening: place,
            began: before
                .filter(|before| before.settled.is_none())
                .map_or(place, |before| before.began),
            settled: None,
            elsewhere: false,
        });
    }

    /// Whether a datagram at `place` is from where its client is.
    fn is_there(&self, client: SocketAddr, place: Place) -> bool {
        let (mut clients, key) = (self.clients(), key(client));
        let Some(here) = clients.get(&key).filter(|here| here.settled.is_some()) else {
            return false;
        };
        let elsewhere = here.settled != Some(place);
        if elsewhere != here.elsewhere {
            clients.change(key, |_| Client { elsewhere, ..here });
        }
        !elsewhere
    }

    /// Whether a stateless reset to `client` is to stay here. A client that moves retires the connection id that it had (RFC 9000, section 5.1.2); what it
    /// had sent with that and comes late, by the longer way, is of no connection then. A reset would end the one that it has.
    pub(crate) fn withholds_reset(&self, client: SocketAddr) -> bool {
        let here = self.clients().get(&key(client));
        let withholds = here.is_some_and(|here| here.elsewhere);
        self.withheld.fetch_add(u64::from(withholds), Relaxed);
        withholds
    }

    /// Keeps what the datagram says until a key opens it.
    fn sight(&self, client: SocketAddr, place: Place, datagram: &[u8]) {
        if let Some(tag) = datagram.last_chunk() {
            let mut sightings = self.sightings();
            sightings.missed = 0;
            sightings.by_tag.change(*tag, |_| (client, place));
            self.waiting.store(true, Release);
        }
    }

    /// Where the packet with this tag came from, if that was not to be expected.
    #[inline]
    pub(crate) fn sighting(&self, tag: &Tag) -> Option<(SocketAddr, Place)> {
        if self.waiting.load(Acquire) {
            self.waited(tag)
        } else {
            None
        }
    }

    #[inline(never)]
    fn waited(&self, tag: &Tag) -> Option<(SocketAddr, Place)> {
        let mut sightings = self.sightings();
        let found = sightings.by_tag.take(tag);
        if found.is_none() {
            sightings.missed += 1;
            if sightings.missed > PATIENCE {
                *sightings = Sightings::default();
            }
        }
        if sightings.by_tag.is_empty() {
            // Other packets need not look.
            self.waiting.store(false, Relaxed);
        }
        found
    }

    /// A connection of `client` is there.
    pub(crate) fn settle(&self, client: SocketAddr, place: Place) {
        self.clients().change(key(client), |before| Client {
            opening: before.map_or(place, |before| before.opening),
            began: before.map_or(place, |before| before.began),
            settled: Some(place),
            elsewhere: false,
        });
    }

    /// Where the last long header of `client` came, to which a handshake's answers go.
    pub fn opening(&self, client: SocketAddr) -> Place {
        let client = self.clients().get(&key(client));
        client.map_or(Place::Vip, |client| client.opening)
    }

    /// Where the last handshake of `client` began.
    pub(crate) fn began(&self, client: SocketAddr) -> Place {
        let client = self.clients().get(&key(client));
        client.map_or(Place::Vip, |client| client.began)
    }

    /// Where `client` is.
    pub fn of(&self, client: SocketAddr) -> Place {
        let client = self.clients().get(&key(client));
        client.map_or(Place::Vip, |client| {
            client.settled.unwrap_or(client.opening)
        })
    }

    fn clients(&self) -> MutexGuard<'_, Recent<(u128, u16), Client>> {
        self.clients.lock().expect("nobody panics with it")
    }

    fn sightings(&self) -> MutexGuard<'_, Sightings> {
        self.sightings.lock().expect("nobody panics with it")
    }
}

/// Whether a datagram begins with a long header (RFC 8999, section 5.1), as those of a handshake do.
pub(crate) fn is_long(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & 0x80 != 0)
}

fn key(client: SocketAddr) -> (u128, u16) {
    let ip = match client.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    (ip.to_bits(), client.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client() -> SocketAddr {
        "[2001:db8::1]:1".parse().expect("an address")
    }

    const INITIAL: [u8; 40] = [0xc0; 40];

    fn short(number: u8) -> [u8; 40] {
        let mut datagram = [0x40; 40];
        datagram[39] = number;
        datagram
    }

    fn tag(number: u8) -> Tag {
        *short(number).last_chunk().expect("it has one")
    }

    #[test]
    fn what_is_expected_is_not_sighted() {
        let places = Places::default();
        let came = |place, datagram: &[u8]| places.came(client(), place, datagram, 40);
        assert!(!came(Place::Vip, &INITIAL));
        // The first one of a connection is.
        assert!(!came(Place::Vip, &short(1)));
        assert_eq!(places.sighting(&tag(1)), Some((client(), Place::Vip)));
        places.settle(client(), Place::Vip);
        assert!(came(Place::Vip, &short(2)));
        assert_eq!(places.sighting(&tag(2)), None);
        assert!(!came(Place::Cookie(0), &short(3)));
        assert_eq!(places.of(client()), Place::Vip);
        // Two datagrams in one.
        let both = [short(4), short(5)].concat();
        assert!(!places.came(client(), Place::Cookie(0), &both, 40));
        for number in 3..=5 {
            let seen = places.sighting(&tag(number));
            assert_eq!(seen, Some((client(), Place::Cookie(0))));
        }
        places.settle(client(), Place::Cookie(0));
        assert!(came(Place::Cookie(0), &short(6)));
        // Another connection of the same port.
        assert!(!came(Place::Vip, &INITIAL));
        assert_eq!(places.opening(client()), Place::Vip);
        assert!(!came(Place::Cookie(0), &short(7)));
    }

    #[test]
    fn what_is_late_brings_no_reset() {
        let places = Places::default();
        let came = |place, datagram: &[u8]| places.came(client(), place, datagram, 40);
        came(Place::Vip, &INITIAL);
        came(Place::Vip, &short(1));
        assert!(!places.withholds_reset(client()));
        places.settle(client(), Place::Cookie(0));
        assert!(!places.withholds_reset(client()));
        came(Place::Vip, &short(2));
        assert!(places.withholds_reset(client()));
        // From where it is, for a connection that is no more.
        came(Place::Cookie(0), &short(3));
        assert!(!places.withholds_reset(client()));
        assert_eq!(places.withheld.load(Relaxed), 1);
    }

    #[test]
    fn sightings_are_bounded_and_forgotten() {
        let places = Places::default();
        let cookie = Place::Cookie(0);
        for number in 0..100_000u32 {
            let mut datagram = [0x40; 40];
            datagram[30..34].copy_from_slice(&number.to_be_bytes());
            places.came(client(), cookie, &datagram, 40);
        }
        places.came(client(), cookie, &short(1), 40);
        assert!(places.sighting(&tag(1)).is_some());
        assert!(places.sighting(&tag(1)).is_none());
        for _ in 0..=PATIENCE {
            assert_eq!(places.sighting(&tag(2)), None);
        }
        assert!(!places.waiting.load(Relaxed));
        places.came(client(), cookie, &short(3), 40);
        assert!(places.waiting.load(Relaxed));
        assert!(places.sighting(&tag(3)).is_some());
        assert!(!places.waiting.load(Relaxed));
    }
}
